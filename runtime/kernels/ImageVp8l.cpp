// VP8L, WebP's lossless bitstream (RFC 9649, 3): prefix codes in groups, a cache of colours, references back, and the
// four transforms. Pixels are alpha, red, green and blue from the top of 32 bits down; alpha is decoded and dropped.
#include "runtime/kernels/ImageWebp.h"

namespace firn::kernels {
namespace {

constexpr int32_t mostCodeBits = 15, mostCacheBits = 11, lengthCodes = 24, distanceCodes = 40;
constexpr int32_t mostSymbols = 256 + lengthCodes + (1 << mostCacheBits);

// Bits from the lowest of each byte on.
class BitReader {
public:
  explicit BitReader(ByteReader stream) : in(stream) {}

  uint32_t bits(int32_t count) {
    while (held < count) {
      buffer |= uint64_t(in.byte()) << held;
      held += 8;
    }
    auto value = uint32_t(buffer & ((uint64_t(1) << count) - 1));
    buffer >>= count;
    held -= count;
    return value;
  }
  bool isCut() const { return in.isCut; }

private:
  ByteReader in;
  uint64_t buffer = 0;
  int32_t held = 0;
};

/// A complete prefix code: how many codes of each length there are, and their symbols in order. A code of one symbol
/// has no bits.
struct PrefixCode {
  uint16_t count[mostCodeBits + 1];
  bool isSingle;
  uint16_t *symbols;

  uint32_t read(BitReader &in) const {
    int32_t value = 0, first = 0, index = 0;
    if (isSingle)
      return symbols[0];
    for (int32_t length = 1; length <= mostCodeBits; ++length) {
      value |= int32_t(in.bits(1));
      if (value - count[length] < first)
        return symbols[index + value - first];
      index += count[length];
      first = (first + count[length]) * 2;
      value *= 2;
    }
    return 0; // not reached: the code is complete
  }
};

/// Codes for green with lengths and cache, red, blue, alpha, and distances.
struct CodeGroup {
  PrefixCode codes[5];
};

/// How pixels of a stretch of the picture are told apart: by tiles of 2^bits pixels a side.
struct Tiles {
  int32_t bits;
  int64_t across;
  const uint32_t *values;

  uint32_t at(int64_t x, int64_t y) const { return values[(y >> bits) * across + (x >> bits)]; }
};

int64_t tilesOf(int64_t length, int32_t bits) { return (length + (int64_t(1) << bits) - 1) >> bits; }

enum TransformKind { predictor, crossColor, subtractGreen, colorIndexing };

struct Transform {
  uint32_t kind;
  int64_t width;  // of what comes out
  int32_t packed; // colorIndexing: 2^packed pixels lie in one
  Tiles tiles;    // colorIndexing: the palette
};

class Decoder {
public:
  Decoder(firn_call *called, ByteReader stream) : call(called), in(stream) {}

  /// Decodes the pixels, and the transforms to undo.
  int32_t run(int64_t width, int64_t height, uint32_t **pixels) {
    in.bits(32);
    in.bits(8);
    uint32_t seen = 0;
    while (in.bits(1)) {
      uint32_t kind = in.bits(2);
      if (seen >> kind & 1)
        return damaged("a transform comes twice");
      seen |= 1u << kind;
      Transform &transform = transforms[transformCount++];
      transform = {kind, width, 0, {}};
      FIRN_TRY(readTransform(transform, &width, height));
    }
    return readImage(width, height, true, pixels);
  }

  Transform transforms[4];
  int32_t transformCount = 0;

private:
  int32_t damaged(const char *what) { return damagedPicture(call, "WebP", what); }

  int32_t readTransform(Transform &transform, int64_t *width, int64_t height) {
    uint32_t *values;
    if (transform.kind == predictor || transform.kind == crossColor)
      return readTiles(*width, height, &transform.tiles);
    if (transform.kind == subtractGreen)
      return FIRN_CALL_OK;
    auto colors = int32_t(in.bits(8)) + 1;
    transform.packed = colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3;
    *width = tilesOf(*width, transform.packed);
    FIRN_TRY(readImage(colors, 1, false, &values));
    uint32_t *palette;
    FIRN_TRY(allocate(call, 256, &palette));
    memset(palette, 0, 256 * sizeof *palette);
    for (int32_t i = 0; i < colors; ++i) // each is told by its difference
      palette[i] = i ? sum(values[i], palette[i - 1]) : values[0];
    transform.tiles = {0, 256, palette};
    return FIRN_CALL_OK;
  }

  int32_t readTiles(int64_t width, int64_t height, Tiles *tiles) {
    auto bits = int32_t(in.bits(3)) + 2;
    int64_t across = tilesOf(width, bits);
    uint32_t *values;
    FIRN_TRY(readImage(across, tilesOf(height, bits), false, &values));
    *tiles = {bits, across, values};
    return FIRN_CALL_OK;
  }

  /// An image of its own codes; only the picture itself (`isMain`) may have several groups of them.
  int32_t readImage(int64_t width, int64_t height, bool isMain, uint32_t **pixels) {
    int32_t cacheBits = 0;
    if (in.bits(1)) {
      cacheBits = int32_t(in.bits(4));
      if (cacheBits < 1 || cacheBits > mostCacheBits)
        return damaged("its cache of colours has no allowed size");
    }
    Tiles tiles{};
    int64_t groupCount = 1;
    if (isMain && in.bits(1)) {
      FIRN_TRY(readTiles(width, height, &tiles));
      int64_t count = tiles.across * tilesOf(height, tiles.bits);
      for (int64_t i = 0; i < count; ++i) {
        int64_t group = tiles.values[i] >> 8 & 0xffff;
        groupCount = group >= groupCount ? group + 1 : groupCount;
      }
    }
    CodeGroup *groups;
    FIRN_TRY(allocate(call, groupCount, &groups));
    int32_t cacheSize = cacheBits ? 1 << cacheBits : 0;
    const int32_t alphabets[] = {256 + lengthCodes + cacheSize, 256, 256, 256, distanceCodes};
    for (int64_t i = 0; i < groupCount; ++i)
      for (int32_t k = 0; k < 5; ++k)
        FIRN_TRY(readCode(alphabets[k], &groups[i].codes[k]));
    FIRN_TRY(allocate(call, width * height, pixels));
    uint32_t *cache;
    FIRN_TRY(allocate(call, cacheSize, &cache));
    memset(cache, 0, size_t(cacheSize) * sizeof *cache);
    return readPixels(width, height, tiles, groups, cacheBits, cache, *pixels);
  }

  int32_t readCode(int32_t alphabet, PrefixCode *code) {
    uint8_t lengths[mostSymbols] = {};
    if (in.bits(1)) { // one symbol or two
      bool isPair = in.bits(1);
      uint32_t first = in.bits(in.bits(1) ? 8 : 1), second = isPair ? in.bits(8) : first;
      if (first >= uint32_t(alphabet) || second >= uint32_t(alphabet))
        return damaged("a prefix code has symbols beyond its alphabet");
      lengths[first] = lengths[second] = 1;
    } else if (!readLengths(lengths, alphabet)) {
      return damaged("a prefix code has no allowed lengths");
    }
    return in.isCut() ? damaged("it is cut off") : build(lengths, alphabet, code);
  }

  bool readLengths(uint8_t *lengths, int32_t alphabet) {
    static const uint8_t order[] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint8_t ofLengths[19] = {};
    auto given = int32_t(in.bits(4)) + 4;
    for (int32_t i = 0; i < given; ++i)
      ofLengths[order[i]] = uint8_t(in.bits(3));
    PrefixCode code;
    if (build(ofLengths, 19, &code))
      return false;
    int64_t left = alphabet;
    if (in.bits(1)) {
      auto bits = 2 + 2 * int32_t(in.bits(3));
      left = 2 + int64_t(in.bits(bits));
      if (left > alphabet)
        return false;
    }
    uint8_t last = 8;
    for (int32_t i = 0; i < alphabet && left > 0; --left) {
      uint32_t symbol = code.read(in);
      if (in.isCut())
        return false;
      if (symbol < 16) {
        lengths[i++] = uint8_t(symbol);
        last = symbol ? uint8_t(symbol) : last;
        continue;
      }
      uint32_t times = symbol == 16 ? 3 + in.bits(2) : symbol == 17 ? 3 + in.bits(3) : 11 + in.bits(7);
      if (times > uint32_t(alphabet - i))
        return false;
      memset(lengths + i, symbol == 16 ? last : 0, times);
      i += int32_t(times);
    }
    return true;
  }

  /// Makes the code of these lengths, which must be complete.
  int32_t build(const uint8_t *lengths, int32_t alphabet, PrefixCode *code) {
    memset(code->count, 0, sizeof code->count);
    for (int32_t i = 0; i < alphabet; ++i)
      ++code->count[lengths[i]];
    int32_t total = alphabet - code->count[0], left = 1, offsets[mostCodeBits + 2] = {};
    code->count[0] = 0;
    for (int32_t bits = 1; bits <= mostCodeBits; ++bits) {
      left = 2 * left - code->count[bits];
      if (left < 0)
        break;
      offsets[bits + 1] = offsets[bits] + code->count[bits];
    }
    code->isSingle = total == 1;
    if (total == 0 || (left != 0 && total != 1))
      return damaged("a prefix code is not complete");
    FIRN_TRY(allocate(call, total, &code->symbols));
    for (int32_t i = 0; i < alphabet; ++i)
      if (lengths[i])
        code->symbols[offsets[lengths[i]]++] = uint16_t(i);
    return FIRN_CALL_OK;
  }

  /// A length or a distance, from its symbol and further bits.
  int64_t extended(uint32_t symbol) {
    if (symbol < 4)
      return symbol + 1;
    auto more = int32_t(symbol - 2) >> 1;
    return (int64_t(2 + (symbol & 1)) << more) + in.bits(more) + 1;
  }

  int32_t readPixels(int64_t width, int64_t height, const Tiles &tiles, const CodeGroup *groups, int32_t cacheBits,
                     uint32_t *cache, uint32_t *pixels) {
    int64_t count = width * height, at = 0, cacheSize = cacheBits ? 1 << cacheBits : 0;
    auto put = [&](uint32_t pixel) {
      pixels[at++] = pixel;
      if (cacheBits)
        cache[(0x1e35a7bdu * pixel) >> (32 - cacheBits)] = pixel;
    };
    while (at < count) {
      const PrefixCode *codes = groups[tiles.values ? tiles.at(at % width, at / width) >> 8 & 0xffff : 0].codes;
      uint32_t symbol = codes[0].read(in);
      if (symbol < 256) {
        uint32_t red = codes[1].read(in), blue = codes[2].read(in), alpha = codes[3].read(in);
        put(alpha << 24 | red << 16 | symbol << 8 | blue);
      } else if (symbol < 256 + lengthCodes) {
        int64_t length = extended(symbol - 256), distance = distanceOf(extended(codes[4].read(in)), width);
        if (distance > at || length > count - at)
          return damaged("a reference leads out of it");
        while (length-- > 0) // may overlap: it repeats what it writes
          put(pixels[at - distance]);
      } else {
        int64_t index = int64_t(symbol) - 256 - lengthCodes;
        if (index >= cacheSize)
          return damaged("a colour is not in the cache");
        put(cache[index]);
      }
      if (in.isCut())
        return damaged("its pixels are cut off");
    }
    return FIRN_CALL_OK;
  }

  /// The first 120 codes of a distance stand for pixels nearby: rows up, and 8 less columns left.
  static int64_t distanceOf(int64_t code, int64_t width) {
    static const uint8_t near[120] = {
        0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37, 0x39, 0x15, 0x1b,
        0x36, 0x3a, 0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b, 0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45,
        0x4b, 0x34, 0x3c, 0x03, 0x57, 0x59, 0x13, 0x1d, 0x56, 0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d,
        0x68, 0x02, 0x67, 0x69, 0x12, 0x1e, 0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e,
        0x78, 0x01, 0x77, 0x79, 0x53, 0x5d, 0x11, 0x1f, 0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b,
        0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41, 0x4f, 0x10, 0x20, 0x62, 0x6e, 0x30, 0x73, 0x7d,
        0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70};
    if (code > 120)
      return code - 120;
    int64_t distance = (near[code - 1] >> 4) * width + 8 - (near[code - 1] & 15);
    return distance < 1 ? 1 : distance;
  }

public:
  /// The sum of two pixels, byte by byte.
  static uint32_t sum(uint32_t a, uint32_t b) {
    uint32_t high = (a & 0xff00ff00) + (b & 0xff00ff00), low = (a & 0xff00ff) + (b & 0xff00ff);
    return (high & 0xff00ff00) | (low & 0xff00ff);
  }

private:
  firn_call *call;
  BitReader in;
};

// --- transforms undone -----------------------------------------------------------------------------------------------

int32_t byteOf(uint32_t pixel, int32_t shift) { return int32_t(pixel >> shift & 255); }

uint32_t mean(uint32_t a, uint32_t b) { return (((a ^ b) & 0xfefefefe) >> 1) + (a & b); }

int32_t distanceBetween(uint32_t a, uint32_t b) {
  int32_t distance = 0;
  for (int32_t shift = 0; shift < 32; shift += 8) {
    int32_t difference = byteOf(a, shift) - byteOf(b, shift);
    distance += difference < 0 ? -difference : difference;
  }
  return distance;
}

/// a + (b - c) / divisor, each byte kept in its range.
uint32_t clampedSum(uint32_t a, uint32_t b, uint32_t c, int32_t divisor) {
  uint32_t result = 0;
  for (int32_t shift = 0; shift < 32; shift += 8) {
    int32_t value = byteOf(a, shift) + (byteOf(b, shift) - byteOf(c, shift)) / divisor;
    result |= uint32_t(value < 0 ? 0 : value > 255 ? 255 : value) << shift;
  }
  return result;
}

/// What mode `mode` expects, from the pixels to the left and above.
uint32_t predict(uint32_t mode, uint32_t left, uint32_t up, uint32_t upRight, uint32_t upLeft) {
  switch (mode) {
  case 1:
    return left;
  case 2:
    return up;
  case 3:
    return upRight;
  case 4:
    return upLeft;
  case 5:
    return mean(mean(left, upRight), up);
  case 6:
    return mean(left, upLeft);
  case 7:
    return mean(left, up);
  case 8:
    return mean(upLeft, up);
  case 9:
    return mean(up, upRight);
  case 10:
    return mean(mean(left, upLeft), mean(up, upRight));
  case 11:
    return distanceBetween(left, upLeft) <= distanceBetween(up, upLeft) ? up : left;
  case 12:
    return clampedSum(left, up, upLeft, 1);
  case 13:
    return clampedSum(mean(left, up), mean(left, up), upLeft, 2);
  default:
    return 0xff000000;
  }
}

void undoPredictor(const Tiles &tiles, int64_t width, int64_t height, uint32_t *pixels) {
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      uint32_t *pixel = pixels + y * width + x;
      uint32_t expected; // right of the last column stands the first pixel of this row
      if (y == 0)
        expected = x == 0 ? 0xff000000 : pixel[-1];
      else if (x == 0)
        expected = pixel[-width];
      else
        expected = predict(tiles.at(x, y) >> 8 & 15, pixel[-1], pixel[-width], pixel[1 - width], pixel[-1 - width]);
      *pixel = Decoder::sum(*pixel, expected);
    }
}

void undoCrossColor(const Tiles &tiles, int64_t width, int64_t height, uint32_t *pixels) {
  auto delta = [](uint32_t factor, uint32_t color) { return uint32_t((int8_t(factor) * int8_t(color)) >> 5); };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      uint32_t &pixel = pixels[y * width + x], factors = tiles.at(x, y), green = pixel >> 8;
      uint32_t red = ((pixel >> 16) + delta(factors, green)) & 255;
      uint32_t blue = (pixel + delta(factors >> 8, green) + delta(factors >> 16, red)) & 255;
      pixel = (pixel & 0xff00ff00) | red << 16 | blue;
    }
}

/// Colours for indices, 1 << packed of them to a pixel.
int32_t undoColorIndexing(firn_call *call, const Transform &transform, int64_t height, uint32_t **pixels) {
  int64_t width = transform.width, across = tilesOf(width, transform.packed);
  int32_t bits = 8 >> transform.packed;
  uint32_t *to;
  FIRN_TRY(allocate(call, width * height, &to));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      int64_t part = x - (x >> transform.packed << transform.packed);
      uint32_t indices = (*pixels)[y * across + (x >> transform.packed)] >> 8 & 255;
      to[y * width + x] = transform.tiles.values[indices >> (part * bits) & ((1u << bits) - 1)];
    }
  *pixels = to;
  return FIRN_CALL_OK;
}

int32_t undo(firn_call *call, const Transform &transform, int64_t height, uint32_t **pixels) {
  if (transform.kind == colorIndexing)
    return undoColorIndexing(call, transform, height, pixels);
  if (transform.kind == predictor)
    undoPredictor(transform.tiles, transform.width, height, *pixels);
  else if (transform.kind == crossColor)
    undoCrossColor(transform.tiles, transform.width, height, *pixels);
  for (int64_t i = 0; transform.kind == subtractGreen && i < transform.width * height; ++i) {
    uint32_t green = (*pixels)[i] >> 8 & 255;
    (*pixels)[i] = Decoder::sum((*pixels)[i], green << 16 | green);
  }
  return FIRN_CALL_OK;
}

} // namespace

bool readVp8lSize(ByteReader stream, int64_t *width, int64_t *height) {
  uint32_t signature = stream.byte(), sizes = stream.little32();
  *width = (sizes & 0x3fff) + 1;
  *height = (sizes >> 14 & 0x3fff) + 1;
  return !stream.isCut && signature == 0x2f && sizes >> 29 == 0;
}

int32_t decodeVp8l(firn_call *call, ByteReader stream, const FramePixels &to) {
  Decoder decoder(call, stream);
  uint32_t *pixels;
  FIRN_TRY(decoder.run(to.width, to.height, &pixels));
  for (int32_t i = decoder.transformCount - 1; i >= 0; --i)
    FIRN_TRY(undo(call, decoder.transforms[i], to.height, &pixels));
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x)
      for (int32_t c = 0; c < 3; ++c)
        to.at[y * to.rowBytes + 3 * x + c] = uint8_t(*(pixels + y * to.width + x) >> (16 - 8 * c));
  return FIRN_CALL_OK;
}

} // namespace firn::kernels
