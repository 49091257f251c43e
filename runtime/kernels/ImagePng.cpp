// PNG: RFC 2083, with the inflation of RFC 1951. All colour types, depths and interlacing; transparency is dropped.
#include "runtime/kernels/Image.h"

namespace firn::kernels {
namespace {

// --- inflation -------------------------------------------------------------------------------------------------------

constexpr int32_t mostCodeBits = 15, mostSymbols = 288;

// A prefix code by its lengths: how many codes of each length there are, and their symbols in order.
struct PrefixCode {
  int16_t count[mostCodeBits + 1];
  int16_t symbols[mostSymbols];

  /// Whether the lengths make a code (it may be incomplete).
  bool build(const uint8_t *lengths, int32_t size) {
    memset(count, 0, sizeof count);
    for (int32_t i = 0; i < size; ++i)
      ++count[lengths[i]];
    int32_t left = 1, offsets[mostCodeBits + 2] = {};
    for (int32_t bits = 1; bits <= mostCodeBits; ++bits) {
      left = 2 * left - count[bits];
      if (left < 0)
        return false;
      offsets[bits + 1] = offsets[bits] + count[bits];
    }
    for (int32_t i = 0; i < size; ++i)
      if (lengths[i])
        symbols[offsets[lengths[i]]++] = int16_t(i);
    return true;
  }
};

class Inflater {
public:
  Inflater(ByteReader compressed, uint8_t *to, int64_t bytes) : in(compressed), begin(to), out(to), end(to + bytes) {}

  /// Whether exactly the bytes that are wanted came out.
  bool run() {
    in.skip(2); // zlib's header: its window is all that came out so far
    for (bool isLast = false; !isLast;) {
      isLast = bits(1) != 0;
      uint32_t kind = bits(2);
      bool isFine = kind == 0 ? stored() : kind == 1 ? fixed() : kind == 2 && dynamic();
      if (!isFine || in.isCut)
        return false;
    }
    return out == end;
  }

private:
  uint32_t bits(int32_t count) {
    while (held < count) {
      buffer |= in.byte() << held;
      held += 8;
    }
    uint32_t value = buffer & ((1u << count) - 1);
    buffer >>= count;
    held -= count;
    return value;
  }
  int32_t symbol(const PrefixCode &code) {
    int32_t value = 0, first = 0, index = 0;
    for (int32_t length = 1; length <= mostCodeBits && !in.isCut; ++length) {
      value |= int32_t(bits(1));
      if (value - code.count[length] < first)
        return code.symbols[index + value - first];
      index += code.count[length];
      first = (first + code.count[length]) * 2;
      value *= 2;
    }
    return -1;
  }
  bool stored() {
    buffer = 0, held = 0;
    uint32_t length = in.little16(), inverted = in.little16();
    if (in.isCut || (length ^ 0xffff) != inverted || length > uint64_t(in.left()) || length > end - out)
      return false;
    memcpy(out, in.at, length);
    out += length;
    in.skip(length);
    return true;
  }
  bool fixed() {
    uint8_t sizes[mostSymbols];
    for (int32_t i = 0; i < mostSymbols; ++i)
      sizes[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    literals.build(sizes, mostSymbols);
    memset(sizes, 5, 30);
    distances.build(sizes, 30);
    return codes();
  }
  bool dynamic() {
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int32_t literalCount = int32_t(bits(5)) + 257, distanceCount = int32_t(bits(5)) + 1,
            sizeCount = int32_t(bits(4)) + 4;
    uint8_t sizes[320] = {};
    if (literalCount > 286 || distanceCount > 30)
      return false;
    for (int32_t i = 0; i < sizeCount; ++i)
      sizes[order[i]] = uint8_t(bits(3));
    if (!literals.build(sizes, 19))
      return false;
    memset(sizes, 0, sizeof sizes);
    for (int32_t i = 0; i < literalCount + distanceCount;) {
      int32_t code = symbol(literals);
      if (code < 0)
        return false;
      if (code < 16) {
        sizes[i++] = uint8_t(code);
        continue;
      }
      if (code == 16 && i == 0)
        return false;
      uint8_t repeated = code == 16 ? sizes[i - 1] : 0;
      int32_t times = code == 16 ? 3 + int32_t(bits(2)) : code == 17 ? 3 + int32_t(bits(3)) : 11 + int32_t(bits(7));
      if (times > literalCount + distanceCount - i)
        return false;
      while (times-- > 0)
        sizes[i++] = repeated;
    }
    return literals.build(sizes, literalCount) && distances.build(sizes + literalCount, distanceCount) && codes();
  }
  bool codes() {
    static const uint16_t lengthBase[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                          31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t lengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distanceBase[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                            33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                            1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distanceBits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                           6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    while (true) {
      int32_t code = symbol(literals);
      if (code < 0 || in.isCut)
        return false;
      if (code == 256)
        return true;
      if (code < 256) {
        if (out == end)
          return false;
        *out++ = uint8_t(code);
        continue;
      }
      if (code > 285)
        return false;
      int32_t length = lengthBase[code - 257] + int32_t(bits(lengthBits[code - 257]));
      int32_t place = symbol(distances);
      if (place < 0 || place > 29)
        return false;
      int32_t distance = distanceBase[place] + int32_t(bits(distanceBits[place]));
      if (distance > out - begin || length > end - out)
        return false;
      for (; length > 0; --length, ++out) // may overlap: it repeats what it writes
        *out = out[-distance];
    }
  }

  ByteReader in;
  uint8_t *begin, *out, *end;
  uint32_t buffer = 0;
  int32_t held = 0;
  PrefixCode literals, distances;
};

// --- pixels ----------------------------------------------------------------------------------------------------------

struct Header {
  int64_t width, height;
  uint32_t depth, color;
  bool isInterlaced;
  int32_t samples() const { return color == 2 ? 3 : color == 6 ? 4 : color == 4 ? 2 : 1; }
  int64_t rowBytes(int64_t pixels) const { return (pixels * samples() * depth + 7) / 8; }
};

// One sub-picture of an interlaced file, or the whole of another.
struct Pass {
  int32_t x, y, stepX, stepY;
};
constexpr Pass passes[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
constexpr Pass whole = {0, 0, 1, 1};

int64_t sizeOf(int64_t length, int32_t first, int32_t step) {
  return length > first ? (length - first + step - 1) / step : 0;
}

bool readHeader(ByteReader &chunk, Header &header) {
  header.width = chunk.big32();
  header.height = chunk.big32();
  header.depth = chunk.byte();
  header.color = chunk.byte();
  uint32_t compression = chunk.byte(), filter = chunk.byte(), interlace = chunk.byte();
  uint32_t depth = header.depth, color = header.color;
  bool hasDepth = depth == 8 || depth == 16 || (depth <= 4 && depth && (depth & (depth - 1)) == 0);
  bool fits = color == 0 || (color == 3 && depth <= 8) || ((color == 2 || color == 4 || color == 6) && depth >= 8);
  header.isInterlaced = interlace == 1;
  return !chunk.isCut && hasDepth && fits && compression == 0 && filter == 0 && interlace <= 1;
}

uint8_t paeth(int32_t left, int32_t up, int32_t corner) {
  int32_t guess = left + up - corner;
  int32_t a = guess > left ? guess - left : left - guess, b = guess > up ? guess - up : up - guess,
          c = guess > corner ? guess - corner : corner - guess;
  return uint8_t(a <= b && a <= c ? left : b <= c ? up : corner);
}

// Undoes the filter of a row of `count` bytes; `above` is NULL for the first one.
bool unfilter(uint32_t filter, uint8_t *row, const uint8_t *above, int64_t count, int64_t distance) {
  if (filter > 4)
    return false;
  for (int64_t i = 0; i < count; ++i) {
    int32_t left = i >= distance ? row[i - distance] : 0, up = above ? above[i] : 0;
    int32_t corner = above && i >= distance ? above[i - distance] : 0;
    row[i] = uint8_t(row[i] + (filter == 1   ? left
                               : filter == 2 ? up
                               : filter == 3 ? (left + up) / 2
                               : filter == 4 ? paeth(left, up, corner)
                                             : 0));
  }
  return true;
}

// Sample `i` of a row as a byte; an index of a palette as it is.
uint8_t sampleAt(const uint8_t *row, int64_t i, const Header &header) {
  if (header.depth == 8)
    return row[i];
  if (header.depth == 16)
    return row[2 * i];
  int64_t bit = i * header.depth;
  uint32_t most = (1u << header.depth) - 1, value = uint32_t(row[bit / 8]) >> (8 - header.depth - bit % 8) & most;
  return uint8_t(header.color == 3 ? value : value * 255 / most);
}

uint32_t crcOf(const uint8_t *data, int64_t bytes) {
  uint32_t crc = ~0u;
  for (int64_t i = 0; i < bytes; ++i) {
    crc ^= data[i];
    for (int32_t bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

} // namespace

int32_t decodePng(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  file.skip(8);
  Header header{};
  uint8_t palette[256][3] = {};
  uint8_t *compressed = nullptr;
  int64_t compressedBytes = 0;
  for (bool isFirst = true, isDone = false; !isDone; isFirst = false) {
    uint32_t length = file.big32();
    const uint8_t *start = file.at;
    bool isHeader = file.startsWith("IHDR", 4), isData = file.startsWith("IDAT", 4),
         isColors = file.startsWith("PLTE", 4);
    isDone = file.startsWith("IEND", 4);
    file.skip(4);
    ByteReader chunk = file.take(length);
    uint32_t crc = file.big32();
    if (file.isCut || isFirst != isHeader)
      return damagedPicture(call, "PNG", "it is cut off or its chunks are out of order");
    if (wantsPixels && crcOf(start, int64_t(length) + 4) != crc)
      return damagedPicture(call, "PNG", "a checksum differs");
    if (isHeader) {
      if (!readHeader(chunk, header))
        return damagedPicture(call, "PNG", "its header is not one");
      FIRN_TRY(setPictureSize(call, header.width, header.height, header.color == 0 || header.color == 4 ? 1 : 3,
                              wantsPixels, picture));
      if (!wantsPixels)
        return FIRN_CALL_OK;
      FIRN_TRY(allocate(call, file.left() + 1, &compressed));
    } else if (isData) {
      memcpy(compressed + compressedBytes, chunk.at, length);
      compressedBytes += length;
    } else if (isColors) {
      for (uint32_t i = 0; i < 3 * 256 && i < length; ++i)
        palette[i / 3][i % 3] = uint8_t(chunk.byte());
    }
  }
  int32_t passCount = header.isInterlaced ? 7 : 1;
  int64_t bytes = 0;
  for (int32_t p = 0; p < passCount; ++p) {
    const Pass &pass = header.isInterlaced ? passes[p] : whole;
    int64_t width = sizeOf(header.width, pass.x, pass.stepX), height = sizeOf(header.height, pass.y, pass.stepY);
    bytes += width ? height * (1 + header.rowBytes(width)) : 0;
  }
  uint8_t *raw;
  FIRN_TRY(allocate(call, bytes, &raw));
  Inflater *inflater;
  FIRN_TRY(allocate(call, 1, &inflater));
  *inflater = Inflater({compressed, compressed + compressedBytes}, raw, bytes);
  if (!inflater->run())
    return damagedPicture(call, "PNG", "its pixels cannot be inflated");
  int64_t distance = header.rowBytes(1);
  for (int32_t p = 0; p < passCount; ++p) {
    const Pass &pass = header.isInterlaced ? passes[p] : whole;
    int64_t width = sizeOf(header.width, pass.x, pass.stepX), height = sizeOf(header.height, pass.y, pass.stepY);
    int64_t rowBytes = header.rowBytes(width);
    const uint8_t *above = nullptr;
    for (int64_t y = 0; width > 0 && y < height; ++y, above = raw + 1, raw += 1 + rowBytes) {
      if (!unfilter(raw[0], raw + 1, above, rowBytes, distance))
        return damagedPicture(call, "PNG", "a row has an unknown filter");
      for (int64_t x = 0; x < width; ++x) {
        int64_t at = (pass.y + y * pass.stepY) * header.width + pass.x + x * pass.stepX;
        uint8_t *to = picture->pixels + at * picture->channels;
        for (int32_t c = 0; c < picture->channels; ++c)
          to[c] = header.color == 3 ? palette[sampleAt(raw + 1, x, header)][c]
                                    : sampleAt(raw + 1, x * header.samples() + c, header);
      }
    }
  }
  return FIRN_CALL_OK;
}

} // namespace firn::kernels
