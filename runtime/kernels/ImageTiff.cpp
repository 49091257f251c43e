// TIFF 6.0, the baseline: one picture of 8 bits a sample, grey, palette or RGB, in strips that are stored as they are
// or in PackBits.
#include "runtime/kernels/Image.h"

namespace firn::kernels {
namespace {

class Tiff {
public:
  Tiff(firn_call *forCall, ByteReader bytes) : call(forCall), file(bytes), isBig(bytes.at[0] == 'M') {}

  int32_t run(bool wantsPixels, Picture *picture) {
    ByteReader head = at(4);
    ByteReader directory = at(long32(head));
    uint32_t count = short16(directory);
    if (head.isCut || directory.isCut || directory.left() < int64_t(count) * 12)
      return damagedPicture(call, "TIFF", "its directory is cut off");
    for (uint32_t i = 0; i < count; ++i) {
      ByteReader entry = directory.take(12);
      read(entry);
    }
    if (isDamaged)
      return damagedPicture(call, "TIFF", "an entry of its directory is cut off");
    bool isPalette = photometric == 3, isColor = photometric == 2;
    if (bits != 8 || photometric > 3 || samples < (isColor ? 3u : 1u) || samples > 16 || planes != 1 ||
        (compression != 1 && compression != 32773) || isTiled || (isPalette && colorCount < 768))
      return fail(call, FIRN_CALL_UNSUPPORTED,
                  "TIFF pictures of %u bits, %u samples, photometric interpretation %u and compression %u are not "
                  "supported",
                  bits, samples, photometric, compression);
    FIRN_TRY(setPictureSize(call, width, height, isColor || isPalette ? 3 : 1, wantsPixels, picture));
    return wantsPixels ? strips(*picture) : FIRN_CALL_OK;
  }

private:
  ByteReader at(uint64_t offset) const {
    ByteReader reader = file;
    reader.skip(offset <= uint64_t(file.left()) ? int64_t(offset) : -1);
    return reader;
  }
  uint32_t short16(ByteReader &from) const { return isBig ? from.big16() : from.little16(); }
  uint32_t long32(ByteReader &from) const { return isBig ? from.big32() : from.little32(); }

  /// The numbers of an entry, which stand in it or where it says.
  struct Numbers {
    uint32_t type, count;
    ByteReader bytes;
  };
  uint32_t next(Numbers &numbers) {
    uint32_t value = numbers.type == 3 ? short16(numbers.bytes) : long32(numbers.bytes);
    isDamaged |= numbers.bytes.isCut;
    return value;
  }
  void read(ByteReader entry) {
    uint32_t tag = short16(entry);
    Numbers numbers{short16(entry), long32(entry), entry};
    if (numbers.type != 3 && numbers.type != 4)
      return; // texts and fractions tell nothing that is needed
    if (int64_t(numbers.count) * (numbers.type == 3 ? 2 : 4) > 4)
      numbers.bytes = at(long32(entry));
    switch (tag) {
    case 256:
      width = next(numbers);
      break;
    case 257:
      height = next(numbers);
      break;
    case 258:
      for (uint32_t i = 0; i < numbers.count && i < 16; ++i)
        if (uint32_t value = next(numbers); i == 0 || value != bits)
          bits = i == 0 ? value : 0;
      break;
    case 259:
      compression = next(numbers);
      break;
    case 262:
      photometric = next(numbers);
      break;
    case 273:
      offsets = numbers;
      break;
    case 277:
      samples = next(numbers);
      break;
    case 278:
      rowsPerStrip = next(numbers);
      break;
    case 279:
      sizes = numbers;
      break;
    case 284:
      planes = next(numbers);
      break;
    case 320:
      colorCount = numbers.count;
      colors = numbers.bytes;
      break;
    case 322:
      isTiled = true;
      break;
    }
  }

  int32_t strips(const Picture &picture) {
    int64_t rowBytes = picture.width * samples;
    uint8_t *row;
    FIRN_TRY(allocate(call, rowBytes, &row));
    ByteReader strip{file.at, file.at};
    run8 = {};
    for (int64_t y = 0; y < picture.height; ++y) {
      if (y % (rowsPerStrip ? rowsPerStrip : 1) == 0) {
        if (offsets.count == 0 || sizes.count == 0)
          return damagedPicture(call, "TIFF", "it has too few strips");
        --offsets.count, --sizes.count;
        strip = at(next(offsets));
        strip = strip.take(next(sizes));
        run8 = {};
      }
      for (int64_t i = 0; i < rowBytes; ++i)
        row[i] = nextByte(strip);
      if (strip.isCut || isDamaged)
        return damagedPicture(call, "TIFF", "a strip is cut off");
      uint8_t *to = picture.pixels + y * picture.width * picture.channels;
      for (int64_t x = 0; x < picture.width; ++x)
        for (int32_t c = 0; c < picture.channels; ++c)
          *to++ = sample(row + x * samples, c);
    }
    return FIRN_CALL_OK;
  }
  uint8_t sample(const uint8_t *pixel, int32_t channel) const {
    if (photometric == 3) { // 16 bits of each red, then of each green, then of each blue
      ByteReader color = colors;
      color.skip(2 * (256 * channel + pixel[0]));
      return uint8_t(short16(color) >> 8);
    }
    return photometric == 0 ? uint8_t(255 - pixel[0]) : pixel[channel];
  }
  uint8_t nextByte(ByteReader &strip) {
    if (compression == 1)
      return uint8_t(strip.byte());
    while (run8.left == 0 && !strip.isCut) {
      int32_t code = int8_t(strip.byte());
      if (code == -128)
        continue;
      run8 = {code < 0 ? 1 - code : code + 1, code < 0, 0};
      if (run8.isRepeated)
        run8.value = uint8_t(strip.byte());
    }
    --run8.left;
    return run8.isRepeated ? run8.value : uint8_t(strip.byte());
  }

  firn_call *call;
  ByteReader file;
  bool isBig, isDamaged = false, isTiled = false;
  uint32_t width = 0, height = 0, bits = 1, compression = 1, photometric = 1, samples = 1, planes = 1;
  uint32_t rowsPerStrip = ~0u, colorCount = 0;
  Numbers offsets{3, 0, {nullptr, nullptr}}, sizes{3, 0, {nullptr, nullptr}};
  ByteReader colors{nullptr, nullptr};
  struct {
    int32_t left;
    bool isRepeated;
    uint8_t value;
  } run8{};
};

} // namespace

int32_t decodeTiff(firn_call *call, ByteReader bytes, bool wantsPixels, Picture *picture) {
  return Tiff(call, bytes).run(wantsPixels, picture);
}

} // namespace firn::kernels
