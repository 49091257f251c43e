// JPEG (ITU T.81): baseline, extended and progressive, 8 bits, Huffman codes; grey, YCbCr and RGB. The inverse
// transform, the upsampling and the conversion of colours are integer arithmetic as in the Independent JPEG Group's
// software, so that pixels come out as other programs see them.
#include "runtime/kernels/Image.h"

namespace firn::kernels {
namespace {

constexpr uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
                                41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
                                30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct HuffmanCode {
  bool isThere;
  uint8_t symbols[256];
  int32_t first[17], last[17], offset[17]; // by length: codes [first, last], and where their symbols begin

  bool read(ByteReader &segment) {
    uint32_t counts[17], total = 0;
    for (int32_t bits = 1; bits <= 16; ++bits)
      total += counts[bits] = segment.byte();
    if (total > 256)
      return false;
    for (uint32_t i = 0; i < total; ++i)
      symbols[i] = uint8_t(segment.byte());
    int32_t code = 0, at = 0;
    for (int32_t bits = 1; bits <= 16; ++bits) {
      first[bits] = code;
      offset[bits] = at;
      code += int32_t(counts[bits]);
      at += int32_t(counts[bits]);
      last[bits] = code - 1;
      if (code > 1 << bits)
        return false;
      code *= 2;
    }
    isThere = true;
    return !segment.isCut;
  }
};

struct Component {
  uint32_t id, h, v, table;         // sampling factors, quantisation table
  int64_t width, height;            // real samples
  int64_t blocksAcross, blocksDown; // with those that fill the last units up
  int16_t *coefficients;            // 64 a block
  uint8_t *samples;                 // blocksAcross * 8 a row
  int32_t predicted;                // the last DC
  uint32_t dc, ac;                  // codes of the present scan
};

struct Frame {
  int64_t width, height, unitsAcross, unitsDown;
  uint32_t hMost, vMost;
  int32_t count;
  bool isProgressive, isRgb, hasAdobe;
  uint32_t adobeTransform;
  int64_t restartInterval;
  Component components[3];
  uint16_t quantization[4][64];
  HuffmanCode dc[4], ac[4];
};

// --- entropy-coded data ----------------------------------------------------------------------------------------------

/// Bits of a scan, up to the next marker; behind it there are zeros.
class BitReader {
public:
  explicit BitReader(ByteReader &from) : file(from) {}

  int32_t bit() {
    if (held == 0) {
      current = nextByte();
      held = 8;
    }
    return current >> --held & 1;
  }
  int32_t bits(int32_t count) {
    int32_t value = 0;
    while (count-- > 0)
      value = value << 1 | bit();
    return value;
  }
  /// A number of `count` bits whose first bit tells its sign.
  int32_t extended(int32_t count) {
    int32_t value = bits(count);
    return count && value < 1 << (count - 1) ? value - (1 << count) + 1 : value;
  }
  /// -1 where no code fits.
  int32_t symbol(const HuffmanCode &code) {
    int32_t value = 0;
    for (int32_t length = 1; length <= 16; ++length) {
      value = value << 1 | bit();
      if (value <= code.last[length] && value >= code.first[length])
        return code.symbols[code.offset[length] + value - code.first[length]];
    }
    return -1;
  }
  /// To the next restart marker, if there is one.
  void restart() {
    held = 0;
    isAtMarker = false;
    while (file.left() >= 2 && !(file.at[0] == 0xff && file.at[1] != 0 && file.at[1] != 0xff))
      file.skip(1);
    if (file.left() >= 2 && file.at[1] >= 0xd0 && file.at[1] <= 0xd7)
      file.skip(2);
  }

private:
  int32_t nextByte() {
    if (isAtMarker || file.left() == 0)
      return 0;
    int32_t value = int32_t(file.byte());
    if (value != 0xff)
      return value;
    if (file.left() > 0 && *file.at == 0) { // a stuffed zero
      file.skip(1);
      return value;
    }
    --file.at;
    isAtMarker = true;
    return 0;
  }

  ByteReader &file;
  int32_t current = 0, held = 0;
  bool isAtMarker = false;
};

struct Scan {
  int32_t first, last, high, low; // of the zigzag; successive approximation
  int32_t endRun = 0;             // blocks that hold no more
};

/// The coefficients [1, 63] of a sequential block.
bool readSequential(BitReader &in, const HuffmanCode &ac, int16_t *block) {
  for (int32_t k = 1; k < 64; ++k) {
    int32_t code = in.symbol(ac);
    if (code < 0)
      return false;
    int32_t size = code & 15, run = code >> 4;
    if (size == 0 && run != 15)
      return true;
    k += run;
    if (k > 63)
      return false;
    if (size)
      block[zigzag[k]] = int16_t(in.extended(size));
  }
  return true;
}

bool readFirst(BitReader &in, const HuffmanCode &ac, Scan &scan, int16_t *block) {
  if (scan.endRun > 0) {
    --scan.endRun;
    return true;
  }
  for (int32_t k = scan.first; k <= scan.last; ++k) {
    int32_t code = in.symbol(ac);
    if (code < 0)
      return false;
    int32_t size = code & 15, run = code >> 4;
    if (size == 0 && run < 15) {
      scan.endRun = (1 << run) - 1 + in.bits(run);
      return true;
    }
    k += run;
    if (k > scan.last)
      return size == 0;
    if (size)
      block[zigzag[k]] = int16_t(in.extended(size) * (1 << scan.low));
  }
  return true;
}

/// One more bit of coefficients that are not zero, and new ones among the others.
bool readRefinement(BitReader &in, const HuffmanCode &ac, Scan &scan, int16_t *block) {
  int32_t plus = 1 << scan.low, k = scan.first;
  auto refine = [&](int16_t &coefficient) {
    if (in.bit() && (coefficient & plus) == 0)
      coefficient = int16_t(coefficient + (coefficient >= 0 ? plus : -plus));
  };
  if (scan.endRun == 0)
    for (; k <= scan.last; ++k) {
      int32_t code = in.symbol(ac);
      if (code < 0 || (code & 15) > 1)
        return false;
      int32_t run = code >> 4, value = 0;
      if (code & 15) {
        value = in.bit() ? plus : -plus;
      } else if (run < 15) {
        scan.endRun = (1 << run) + in.bits(run);
        break;
      }
      for (; k <= scan.last; ++k) {
        int16_t &coefficient = block[zigzag[k]];
        if (coefficient)
          refine(coefficient);
        else if (run-- == 0) {
          coefficient = int16_t(value);
          break;
        }
      }
    }
  if (scan.endRun > 0) {
    for (; k <= scan.last; ++k)
      if (int16_t &coefficient = block[zigzag[k]])
        refine(coefficient);
    --scan.endRun;
  }
  return true;
}

bool readBlock(BitReader &in, Frame &frame, Component &component, Scan &scan, int16_t *block) {
  if (scan.first == 0) {
    if (scan.high) { // a further bit of the DC
      if (in.bit())
        block[0] = int16_t(block[0] | 1 << scan.low);
    } else {
      int32_t size = in.symbol(frame.dc[component.dc]);
      if (size < 0 || size > 15)
        return false;
      component.predicted = int16_t(component.predicted + in.extended(size));
      block[0] = int16_t(component.predicted * (1 << scan.low));
    }
    return frame.isProgressive || readSequential(in, frame.ac[component.ac], block);
  }
  return scan.high ? readRefinement(in, frame.ac[component.ac], scan, block)
                   : readFirst(in, frame.ac[component.ac], scan, block);
}

bool readScan(Frame &frame, ByteReader &file, ByteReader segment) {
  Component *taken[3];
  uint32_t count = segment.byte();
  if (count < 1 || count > uint32_t(frame.count))
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t id = segment.byte(), codes = segment.byte();
    taken[i] = nullptr;
    for (int32_t c = 0; c < frame.count; ++c)
      if (frame.components[c].id == id)
        taken[i] = &frame.components[c];
    if (!taken[i] || codes >> 4 > 3 || (codes & 15) > 3)
      return false;
    taken[i]->dc = codes >> 4;
    taken[i]->ac = codes & 15;
  }
  uint32_t first = segment.byte(), last = segment.byte(), approximation = segment.byte();
  Scan scan{int32_t(first), int32_t(last), int32_t(approximation >> 4), int32_t(approximation & 15)};
  if (!frame.isProgressive)
    scan = {0, 63, 0, 0};
  if (segment.isCut || first > 63 || last > 63 || first > last || scan.low > 13 || (first > 0 && count > 1) ||
      (frame.isProgressive && first == 0 && last != 0))
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    bool needsDc = scan.first == 0 && scan.high == 0, needsAc = scan.last > 0;
    if ((needsDc && !frame.dc[taken[i]->dc].isThere) || (needsAc && !frame.ac[taken[i]->ac].isThere))
      return false;
  }
  BitReader in(file);
  // A scan of one component has its blocks row by row; others have units of blocks of each.
  bool isSingle = count == 1;
  int64_t across = isSingle ? (taken[0]->width + 7) / 8 : frame.unitsAcross;
  int64_t down = isSingle ? (taken[0]->height + 7) / 8 : frame.unitsDown;
  for (int64_t unit = 0; unit < across * down; ++unit) {
    if (unit == 0 || (frame.restartInterval && unit % frame.restartInterval == 0)) {
      if (unit > 0)
        in.restart();
      scan.endRun = 0;
      for (uint32_t i = 0; i < count; ++i)
        taken[i]->predicted = 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
      Component &component = *taken[i];
      uint32_t h = isSingle ? 1 : component.h, v = isSingle ? 1 : component.v;
      for (uint32_t part = 0; part < h * v; ++part) {
        int64_t x = unit % across * h + part % h, y = unit / across * v + part / h;
        if (!readBlock(in, frame, component, scan, component.coefficients + (y * component.blocksAcross + x) * 64))
          return false;
      }
    }
  }
  return true;
}

// --- the inverse transform -------------------------------------------------------------------------------------------

/// 8 values `step` apart, scaled by 2^13 and not yet rounded: Loeffler, Ligtenberg and Moschytz's algorithm with 12
/// products.
void transform(const int32_t *in, int32_t step, int64_t *out) {
  int64_t z1 = (in[2 * step] + int64_t(in[6 * step])) * 4433;
  int64_t even2 = z1 - in[6 * step] * int64_t(15137), even3 = z1 + in[2 * step] * int64_t(6270);
  int64_t even0 = (int64_t(in[0]) + in[4 * step]) * 8192, even1 = (int64_t(in[0]) - in[4 * step]) * 8192;
  int64_t a[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};
  int64_t odd0 = in[7 * step], odd1 = in[5 * step], odd2 = in[3 * step], odd3 = in[step];
  int64_t s1 = (odd0 + odd3) * -7373, s2 = (odd1 + odd2) * -20995, s5 = (odd0 + odd2 + odd1 + odd3) * 9633;
  int64_t s3 = (odd0 + odd2) * -16069 + s5, s4 = (odd1 + odd3) * -3196 + s5;
  int64_t b[4] = {odd3 * 12299 + s1 + s4, odd2 * 25172 + s2 + s3, odd1 * 16819 + s2 + s4, odd0 * 2446 + s1 + s3};
  for (int32_t i = 0; i < 4; ++i) {
    out[i] = a[i] + b[i];
    out[7 - i] = a[i] - b[i];
  }
}

uint8_t clamped(int64_t value) { return uint8_t(value < 0 ? 0 : value > 255 ? 255 : value); }

void inverse(const int16_t *block, const uint16_t *quantization, uint8_t *to, int64_t rowStride) {
  int32_t values[64];
  int64_t column[8];
  for (int32_t i = 0; i < 64; ++i)
    values[i] = block[i] * quantization[i];
  for (int32_t x = 0; x < 8; ++x) { // two bits more than the result has are kept between the passes
    transform(values + x, 8, column);
    for (int32_t y = 0; y < 8; ++y)
      values[8 * y + x] = int32_t((column[y] + (1 << 10)) >> 11);
  }
  for (int32_t y = 0; y < 8; ++y) {
    transform(values + 8 * y, 1, column);
    for (int32_t x = 0; x < 8; ++x)
      to[y * rowStride + x] = clamped(((column[x] + (1 << 17)) >> 18) + 128);
  }
}

int32_t makeSamples(firn_call *call, Frame &frame) {
  for (int32_t c = 0; c < frame.count; ++c) {
    Component &component = frame.components[c];
    int64_t stride = component.blocksAcross * 8;
    FIRN_TRY(allocate(call, stride * component.blocksDown * 8, &component.samples));
    for (int64_t y = 0; y < component.blocksDown; ++y)
      for (int64_t x = 0; x < component.blocksAcross; ++x)
        inverse(component.coefficients + (y * component.blocksAcross + x) * 64, frame.quantization[component.table],
                component.samples + y * 8 * stride + x * 8, stride);
  }
  return FIRN_CALL_OK;
}

// --- upsampling and colours ------------------------------------------------------------------------------------------

/// One row of a component at the picture's size. Factors of 2 weigh the nearer sample 3 to 1; others repeat samples.
void upsampleRow(const Frame &frame, const Component &component, int64_t y, int32_t *sums, uint8_t *to) {
  int64_t stride = component.blocksAcross * 8, width = component.width;
  int64_t h = frame.hMost / component.h, v = frame.vMost / component.v;
  auto row = [&](int64_t i) {
    i = i < 0 ? 0 : i >= component.height ? component.height - 1 : i;
    return component.samples + i * stride;
  };
  bool isSmoothAcross = frame.hMost == 2 * component.h && width > 2;
  bool isSmoothDown = frame.vMost == 2 * component.v;
  const uint8_t *near = row(y / v);
  if (!isSmoothAcross || (v != 1 && !isSmoothDown)) {
    // Twice as high alone is smooth too.
    bool isTall = h == 1 && isSmoothDown;
    const uint8_t *far = row(y / v + (y % 2 ? 1 : -1));
    for (int64_t x = 0; x < frame.width; ++x)
      to[x] = isTall ? uint8_t((near[x] * 3 + far[x] + (y % 2 ? 2 : 1)) >> 2) : near[x / h];
    return;
  }
  // Twice as wide, perhaps twice as high: columns first, in units of a quarter or a sixteenth.
  const uint8_t *far = row(y / v + (y % 2 ? 1 : -1));
  for (int64_t x = 0; x < width; ++x)
    sums[x] = v == 2 ? near[x] * 3 + far[x] : near[x];
  int32_t shift = v == 2 ? 4 : 2, leftBias = v == 2 ? 8 : 1, rightBias = v == 2 ? 7 : 2;
  for (int64_t x = 0; x < frame.width; ++x) {
    int64_t i = x / 2;
    bool isLeft = x % 2 == 0, isEdge = isLeft ? i == 0 : i == width - 1;
    int32_t other = isEdge ? sums[i] : sums[isLeft ? i - 1 : i + 1];
    to[x] = uint8_t((sums[i] * 3 + other + (isLeft ? leftBias : rightBias)) >> shift);
  }
}

int32_t makePixels(firn_call *call, const Frame &frame, Picture *picture) {
  uint8_t *rows[3];
  int32_t *sums;
  FIRN_TRY(allocate(call, frame.width + 8, &sums));
  for (int32_t c = 0; c < frame.count; ++c)
    FIRN_TRY(allocate(call, frame.width, &rows[c]));
  for (int64_t y = 0; y < frame.height; ++y) {
    for (int32_t c = 0; c < frame.count; ++c)
      upsampleRow(frame, frame.components[c], y, sums, rows[c]);
    uint8_t *to = picture->pixels + y * frame.width * picture->channels;
    for (int64_t x = 0; x < frame.width; ++x, to += picture->channels) {
      if (frame.count == 1 || frame.isRgb) {
        for (int32_t c = 0; c < frame.count; ++c)
          to[c] = rows[c][x];
        continue;
      }
      // 1.402, 0.344136, 0.714136 and 1.772 in 16 bits behind the point.
      int32_t luma = rows[0][x], blue = rows[1][x] - 128, red = rows[2][x] - 128;
      to[0] = clamped(luma + ((91881 * red + 32768) >> 16));
      to[1] = clamped(luma + ((-22554 * blue - 46802 * red + 32768) >> 16));
      to[2] = clamped(luma + ((116130 * blue + 32768) >> 16));
    }
  }
  return FIRN_CALL_OK;
}

// --- segments --------------------------------------------------------------------------------------------------------

bool readQuantization(Frame &frame, ByteReader segment) {
  while (segment.left() > 0) {
    uint32_t head = segment.byte();
    if ((head & 15) > 3 || head >> 4 > 1)
      return false;
    for (int32_t i = 0; i < 64; ++i)
      frame.quantization[head & 15][zigzag[i]] = uint16_t(head >> 4 ? segment.big16() : segment.byte());
  }
  return !segment.isCut;
}

bool readCodes(Frame &frame, ByteReader segment) {
  while (segment.left() > 0) {
    uint32_t head = segment.byte();
    if ((head & 15) > 3 || head >> 4 > 1 || !(head >> 4 ? frame.ac : frame.dc)[head & 15].read(segment))
      return false;
  }
  return true;
}

int32_t readFrame(firn_call *call, Frame &frame, ByteReader segment, bool wantsPixels, Picture *picture) {
  uint32_t depth = segment.byte();
  frame.height = segment.big16();
  frame.width = segment.big16();
  frame.count = int32_t(segment.byte());
  if (depth != 8 || (frame.count != 1 && frame.count != 3))
    return fail(call, FIRN_CALL_UNSUPPORTED, "JPEG pictures of %u bits and %d components are not supported", depth,
                frame.count);
  for (int32_t c = 0; c < frame.count; ++c) {
    Component &component = frame.components[c];
    component.id = segment.byte();
    uint32_t factors = segment.byte();
    component.h = frame.count == 1 ? 1 : factors >> 4;
    component.v = frame.count == 1 ? 1 : factors & 15;
    component.table = segment.byte();
    if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4 || component.table > 3)
      return damagedPicture(call, "JPEG", "a component has sampling factors or a table that cannot be");
    frame.hMost = component.h > frame.hMost ? component.h : frame.hMost;
    frame.vMost = component.v > frame.vMost ? component.v : frame.vMost;
  }
  if (segment.isCut)
    return damagedPicture(call, "JPEG", "its header is cut off");
  FIRN_TRY(setPictureSize(call, frame.width, frame.height, frame.count, wantsPixels, picture));
  frame.unitsAcross = (frame.width + 8 * frame.hMost - 1) / (8 * frame.hMost);
  frame.unitsDown = (frame.height + 8 * frame.vMost - 1) / (8 * frame.vMost);
  for (int32_t c = 0; c < frame.count; ++c) {
    Component &component = frame.components[c];
    if (frame.hMost % component.h || frame.vMost % component.v)
      return fail(call, FIRN_CALL_UNSUPPORTED, "JPEG pictures whose sampling factors are no multiples of each other");
    component.width = (frame.width * component.h + frame.hMost - 1) / frame.hMost;
    component.height = (frame.height * component.v + frame.vMost - 1) / frame.vMost;
    component.blocksAcross = frame.unitsAcross * component.h;
    component.blocksDown = frame.unitsDown * component.v;
    int64_t count = component.blocksAcross * component.blocksDown * 64;
    if (!wantsPixels)
      continue;
    FIRN_TRY(allocate(call, count, &component.coefficients));
    memset(component.coefficients, 0, size_t(count) * sizeof(int16_t));
  }
  return FIRN_CALL_OK;
}

} // namespace

int32_t decodeJpeg(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  Frame *frame;
  FIRN_TRY(allocate(call, 1, &frame));
  memset(frame, 0, sizeof *frame);
  file.skip(2);
  bool hasFrame = false, hasScan = false;
  while (true) {
    while (file.left() > 0 && *file.at != 0xff)
      file.skip(1);
    while (file.left() > 0 && *file.at == 0xff)
      file.skip(1);
    if (file.left() == 0)
      break; // without an end marker
    uint32_t marker = file.byte();
    if (marker == 0xd9)
      break;
    if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8))
      continue;
    int64_t length = int64_t(file.big16()) - 2;
    if (length < 0 || length > file.left())
      return damagedPicture(call, "JPEG", "a segment is cut off");
    ByteReader segment = file.take(length);
    bool isFrame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (isFrame && marker > 0xc2)
      return fail(call, FIRN_CALL_UNSUPPORTED,
                  "JPEG pictures of process %u (lossless, arithmetic or hierarchical) are "
                  "not supported",
                  marker - 0xc0);
    if (isFrame && hasFrame)
      return damagedPicture(call, "JPEG", "it has two frames");
    if (isFrame) {
      frame->isProgressive = marker == 0xc2;
      FIRN_TRY(readFrame(call, *frame, segment, wantsPixels, picture));
      if (!wantsPixels)
        return FIRN_CALL_OK;
      hasFrame = true;
    } else if (marker == 0xdb) {
      if (!readQuantization(*frame, segment))
        return damagedPicture(call, "JPEG", "a quantisation table is none");
    } else if (marker == 0xc4) {
      if (!readCodes(*frame, segment))
        return damagedPicture(call, "JPEG", "a Huffman table is none");
    } else if (marker == 0xdd) {
      frame->restartInterval = segment.big16();
    } else if (marker == 0xee && segment.startsWith("Adobe", 5) && segment.left() >= 12) {
      frame->hasAdobe = true;
      frame->adobeTransform = segment.at[11];
    } else if (marker == 0xda) {
      if (!hasFrame || !readScan(*frame, file, segment))
        return damagedPicture(call, "JPEG", "a scan cannot be read");
      hasScan = true;
    }
  }
  if (!hasScan)
    return damagedPicture(call, "JPEG", "it has no picture");
  const Component *parts = frame->components;
  frame->isRgb =
      frame->hasAdobe ? frame->adobeTransform == 0 : parts[0].id == 'R' && parts[1].id == 'G' && parts[2].id == 'B';
  FIRN_TRY(makeSamples(call, *frame));
  return makePixels(call, *frame, picture);
}

} // namespace firn::kernels
