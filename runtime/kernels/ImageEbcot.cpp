// Code-blocks of JPEG 2000: the MQ arithmetic decoder (T.800, Annex C) and the coding passes over bit-planes (Annex D).
#include "runtime/kernels/ImageJpeg2000.h"

namespace firn::kernels::jpeg2000 {
namespace {

// --- the arithmetic decoder ------------------------------------------------------------------------------------------

// Table C.2: estimate of the less probable symbol, the next states after one or the other symbol, whether they change
// roles.
struct State {
  uint16_t estimate;
  uint8_t afterMore, afterLess, isSwitch;
};
constexpr State states[47] = {
    {0x5601, 1, 1, 1},   {0x3401, 2, 6, 0},   {0x1801, 3, 9, 0},   {0x0ac1, 4, 12, 0},  {0x0521, 5, 29, 0},
    {0x0221, 38, 33, 0}, {0x5601, 7, 6, 1},   {0x5401, 8, 14, 0},  {0x4801, 9, 14, 0},  {0x3801, 10, 14, 0},
    {0x3001, 11, 17, 0}, {0x2401, 12, 18, 0}, {0x1c01, 13, 20, 0}, {0x1601, 29, 21, 0}, {0x5601, 15, 14, 1},
    {0x5401, 16, 14, 0}, {0x5101, 17, 15, 0}, {0x4801, 18, 16, 0}, {0x3801, 19, 17, 0}, {0x3401, 20, 18, 0},
    {0x3001, 21, 19, 0}, {0x2801, 22, 19, 0}, {0x2401, 23, 20, 0}, {0x2201, 24, 21, 0}, {0x1c01, 25, 22, 0},
    {0x1801, 26, 23, 0}, {0x1601, 27, 24, 0}, {0x1401, 28, 25, 0}, {0x1201, 29, 26, 0}, {0x1101, 30, 27, 0},
    {0x0ac1, 31, 28, 0}, {0x09c1, 32, 29, 0}, {0x08a1, 33, 30, 0}, {0x0521, 34, 31, 0}, {0x0441, 35, 32, 0},
    {0x02a1, 36, 33, 0}, {0x0221, 37, 34, 0}, {0x0141, 38, 35, 0}, {0x0111, 39, 36, 0}, {0x0085, 40, 37, 0},
    {0x0049, 41, 38, 0}, {0x0025, 42, 39, 0}, {0x0015, 43, 40, 0}, {0x0009, 44, 41, 0}, {0x0005, 45, 42, 0},
    {0x0001, 45, 43, 0}, {0x5601, 46, 46, 0}};

// Contexts: 0 to 8 significance, 9 to 13 signs, 14 to 16 refinement, and these two.
constexpr int32_t runContext = 17, uniformContext = 18, contextCount = 19;

class Decoder {
public:
  void resetContexts() {
    memset(state, 0, sizeof state);
    memset(symbol, 0, sizeof symbol);
    state[0] = 4;
    state[runContext] = 3;
    state[uniformContext] = 46;
  }

  void start(const uint8_t *from, const uint8_t *to) {
    at = from;
    end = to;
    code = peek(0) << 16;
    readByte();
    code <<= 7;
    count -= 7;
    interval = 0x8000;
  }

  uint32_t decode(int32_t context) {
    const State &now = states[state[context]];
    interval -= now.estimate;
    bool isLess; // the less probable symbol
    if ((code >> 16) < now.estimate) {
      isLess = interval >= now.estimate;
      interval = now.estimate;
    } else {
      code -= uint32_t(now.estimate) << 16;
      if (interval & 0x8000)
        return symbol[context];
      isLess = interval < now.estimate;
    }
    uint32_t result = symbol[context] ^ uint32_t(isLess);
    if (isLess && now.isSwitch)
      symbol[context] ^= 1;
    state[context] = isLess ? now.afterLess : now.afterMore;
    do {
      if (count == 0)
        readByte();
      interval <<= 1;
      code <<= 1;
      --count;
    } while (!(interval & 0x8000));
    return result;
  }

  // Bits as they are (the selective bypass, D.6): 7 of them behind a byte of ones.
  void startRaw(const uint8_t *from, const uint8_t *to) {
    at = from;
    end = to;
    rawByte = rawLeft = 0;
  }
  uint32_t rawBit() {
    if (rawLeft == 0) {
      rawLeft = rawByte == 0xff ? 7 : 8;
      rawByte = at < end ? *at++ : 0xff;
    }
    return rawByte >> --rawLeft & 1;
  }

private:
  uint32_t peek(int64_t ahead) const { return end - at > ahead ? at[ahead] : 0xff; }
  // Behind the end, ones follow for ever (C.3.4).
  void readByte() {
    if (peek(0) == 0xff) {
      if (peek(1) > 0x8f) {
        code += 0xff00;
        count = 8;
        return;
      }
      ++at;
      code += peek(0) << 9;
      count = 7;
      return;
    }
    ++at;
    code += peek(0) << 8;
    count = 8;
  }

  const uint8_t *at = nullptr, *end = nullptr;
  uint32_t code = 0, interval = 0;
  int32_t count = 0;
  uint32_t rawByte = 0, rawLeft = 0;
  uint8_t state[contextCount] = {}, symbol[contextCount] = {};
};

// --- the passes ------------------------------------------------------------------------------------------------------

constexpr uint8_t isSignificant = 1, isNegative = 2, isVisited = 4, isRefined = 8;

class Passes {
public:
  Passes(BlockDecoder &memory, const Block &block, Band kind, uint32_t codeStyle)
      : magnitudes(memory.magnitudes), flags(memory.flags), width(block.width), height(block.height),
        stride(block.width + 2), band(kind), style(codeStyle) {
    memset(magnitudes, 0, size_t(width) * size_t(height) * sizeof *magnitudes);
    memset(flags, 0, size_t(stride) * size_t(height + 2));
    mq.resetContexts();
  }

  Decoder mq;

  /// Pass `kind` (0: significance, 1: refinement, 2: cleanup) of one plane.
  void run(int32_t kind, int32_t plane, bool bypass) {
    isRaw = bypass;
    half = 1u << plane;
    for (int32_t top = 0; top < height; top += 4)
      for (int32_t x = 0; x < width; ++x) {
        int32_t bottom = top + 4 < height ? top + 4 : height;
        if (kind == 0)
          significance(x, top, bottom);
        else if (kind == 1)
          refinement(x, top, bottom);
        else
          cleanup(x, top, bottom);
      }
    if (kind == 2 && (style & SegmentSymbols))
      for (int32_t i = 0; i < 4; ++i)
        mq.decode(uniformContext);
    if (style & ResetContexts)
      mq.resetContexts();
  }

  void signsTo(uint8_t *signs) const {
    for (int32_t y = 0; y < height; ++y)
      for (int32_t x = 0; x < width; ++x)
        signs[y * width + x] = *flagAt(x, y) & isNegative;
  }

private:
  uint8_t *flagAt(int32_t x, int32_t y) const { return flags + (y + 1) * stride + x + 1; }
  /// Significant neighbours beside, above and below, at the corners. A causal block does not look into the stripe
  /// below.
  struct Neighbours {
    int32_t beside, above, corners;
  };
  Neighbours neighbours(const uint8_t *f, int32_t y) const {
    auto at = [&](int32_t offset) { return int32_t(f[offset] & isSignificant); };
    Neighbours n{at(-1) + at(1), at(-stride), at(-stride - 1) + at(-stride + 1)};
    if (!((style & Causal) && y % 4 == 3)) {
      n.above += at(stride);
      n.corners += at(stride - 1) + at(stride + 1);
    }
    return n;
  }

  /// Table D.1.
  int32_t significanceContext(Neighbours n) const {
    if (band == HH) {
      int32_t straight = n.beside + n.above;
      if (n.corners >= 3)
        return 8;
      if (n.corners == 2)
        return straight >= 1 ? 7 : 6;
      if (n.corners == 1)
        return straight >= 2 ? 5 : straight == 1 ? 4 : 3;
      return straight >= 2 ? 2 : straight;
    }
    int32_t first = band == HL ? n.above : n.beside, second = band == HL ? n.beside : n.above;
    if (first == 2)
      return 8;
    if (first == 1)
      return second >= 1 ? 7 : n.corners >= 1 ? 6 : 5;
    if (second == 2)
      return 4;
    if (second == 1)
      return 3;
    return n.corners >= 2 ? 2 : n.corners;
  }

  /// Tables D.2 and D.3.
  void decodeSign(uint8_t *f, int32_t y) {
    if (isRaw) {
      *f |= mq.rawBit() ? isNegative : 0;
      return;
    }
    auto signOf = [&](int32_t offset) { return f[offset] & isSignificant ? (f[offset] & isNegative ? -1 : 1) : 0; };
    auto clamp = [](int32_t v) { return v > 1 ? 1 : v < -1 ? -1 : v; };
    bool isBlind = (style & Causal) && y % 4 == 3;
    int32_t across = clamp(signOf(-1) + signOf(1)), down = clamp(signOf(-stride) + (isBlind ? 0 : signOf(stride)));
    bool isFlipped = across < 0 || (across == 0 && down < 0);
    if (isFlipped)
      across = -across, down = -down;
    int32_t context = across == 1 ? 12 + down : 9 + down;
    *f |= (mq.decode(context) ^ uint32_t(isFlipped)) ? isNegative : 0;
  }

  void becomeSignificant(uint8_t *f, int32_t x, int32_t y) {
    decodeSign(f, y);
    *f |= isSignificant;
    magnitudes[y * width + x] = half * 3; // this bit, and the middle of what is below it
  }

  void significance(int32_t x, int32_t top, int32_t bottom) {
    for (int32_t y = top; y < bottom; ++y) {
      uint8_t *f = flagAt(x, y);
      int32_t context = *f & isSignificant ? 0 : significanceContext(neighbours(f, y));
      if (context == 0)
        continue;
      *f |= isVisited;
      if (isRaw ? mq.rawBit() : mq.decode(context))
        becomeSignificant(f, x, y);
    }
  }

  void refinement(int32_t x, int32_t top, int32_t bottom) {
    for (int32_t y = top; y < bottom; ++y) {
      uint8_t *f = flagAt(x, y);
      if ((*f & (isSignificant | isVisited)) != isSignificant)
        continue;
      uint32_t bit;
      if (isRaw) {
        bit = mq.rawBit();
      } else {
        Neighbours n = neighbours(f, y);
        bit = mq.decode(*f & isRefined ? 16 : n.beside + n.above + n.corners ? 15 : 14);
      }
      *f |= isRefined;
      magnitudes[y * width + x] += bit ? half : 0u - half;
    }
  }

  void cleanup(int32_t x, int32_t top, int32_t bottom) {
    int32_t y = top;
    if (bottom - top == 4) {
      bool isQuiet = true;
      for (int32_t i = top; i < bottom && isQuiet; ++i) {
        uint8_t *f = flagAt(x, i);
        isQuiet = !(*f & (isSignificant | isVisited)) && significanceContext(neighbours(f, i)) == 0;
      }
      if (isQuiet) {
        if (!mq.decode(runContext))
          return;
        uint32_t high = mq.decode(uniformContext);
        y += int32_t(high << 1 | mq.decode(uniformContext));
        becomeSignificant(flagAt(x, y), x, y);
        ++y;
      }
    }
    for (; y < bottom; ++y) {
      uint8_t *f = flagAt(x, y);
      if (!(*f & (isSignificant | isVisited)) && mq.decode(significanceContext(neighbours(f, y))))
        becomeSignificant(f, x, y);
    }
    for (int32_t i = top; i < bottom; ++i)
      *flagAt(x, i) &= uint8_t(~isVisited);
  }

  uint32_t *magnitudes;
  uint8_t *flags;
  int32_t width, height, stride;
  Band band;
  uint32_t style;
  bool isRaw = false;
  uint32_t half = 0;
};

} // namespace

bool BlockDecoder::decode(const Block &block, Band band, uint32_t style) {
  Passes passes(*this, block, band, style);
  int32_t plane = block.planes - 1, kind = 2, index = 0;
  bool isGood = true;
  for (const Piece *piece = block.pieces; piece && isGood;) {
    // A segment: pieces up to the next one that begins a codeword.
    int64_t length = 0;
    int32_t count = 0;
    do {
      if (piece->length)
        memcpy(bytes + length, piece->data, size_t(piece->length));
      length += piece->length;
      count += piece->passes;
      piece = piece->next;
    } while (piece && !piece->startsSegment);
    bool isRaw = (style & Bypass) && index >= 10 && kind != 2;
    if (isRaw)
      passes.mq.startRaw(bytes, bytes + length);
    else
      passes.mq.start(bytes, bytes + length);
    for (int32_t i = 0; i < count && isGood; ++i, ++index) {
      isGood = plane >= 0;
      if (!isGood)
        break;
      passes.run(kind, plane, isRaw);
      kind = kind == 2 ? 0 : kind + 1;
      plane -= kind == 0;
    }
  }
  passes.signsTo(signs);
  return isGood;
}

} // namespace firn::kernels::jpeg2000
