// VP8's key frames (RFC 6386): headers, modes and coefficients, read by a boolean decoder. Damaged streams are refused
// where libwebp refuses them: a partition that ends early is an error, and coefficients wrap to 16 bits.
#include "runtime/kernels/ImageVp8.h"

#include "runtime/kernels/ImageVp8Tables.h"

namespace firn::kernels {
namespace {

/// Decisions of known probability out of a stream (7.3).
class BoolReader {
public:
  BoolReader() : in{nullptr, nullptr} {}
  explicit BoolReader(ByteReader stream) : in(stream) { load(); }

  /// False with a probability of `probability` in 256.
  uint32_t decision(uint32_t probability) {
    if (held < 0)
      load();
    uint32_t split = 1 + ((range - 1) * probability >> 8), scaled = split << held;
    bool isTrue = value >= scaled;
    if (isTrue)
      value -= scaled;
    range = isTrue ? range - split : split;
    for (; range < 128; range <<= 1)
      --held;
    return isTrue;
  }
  uint32_t bits(int32_t count) {
    uint32_t result = 0;
    while (count-- > 0)
      result = result << 1 | decision(128);
    return result;
  }
  /// A size, then its sign; 0 where a flag tells so.
  int32_t optionalSigned(int32_t count) {
    if (!bits(1))
      return 0;
    auto size = int32_t(bits(count));
    return bits(1) ? -size : size;
  }
  bool isCut() const { return in.isCut; }

private:
  void load() {
    while (held < 0) {
      value = value << 8 | in.byte();
      held += 8;
    }
  }

  ByteReader in;
  uint32_t value = 0, range = 255;
  int32_t held = -8; // bits behind the 8 that are compared
};

constexpr int32_t clampedTo(int32_t low, int32_t value, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

constexpr uint8_t zigzag[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15};
constexpr uint8_t bands[17] = {0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0};

/// Kinds of blocks, in the order of their probabilities.
enum BlockKind { lumaWithoutMean, means, chroma, luma };

struct Segment {
  int32_t quantizer, filterLevel;
  int32_t steps[4][2]; // by kind of block: of the first coefficient, of the others
};

/// Which neighbours had coefficients: 4 blocks of luma, 2 of u, 2 of v, and the means.
struct Context {
  uint8_t hasCoefficients[9];
  uint8_t modes[4];
};

class Decoder {
public:
  Decoder(firn_call *called, const FramePixels &pixels) : call(called), to(pixels) {}

  int32_t run(ByteReader stream) {
    uint32_t tag = stream.little16();
    tag |= stream.byte() << 16;
    stream.skip(7);
    frame.across = (to.width + 15) / 16;
    frame.down = (to.height + 15) / 16;
    header = BoolReader(stream.take(tag >> 5));
    if (stream.isCut || !readHeader() || !readPartitions(stream))
      return damagedPicture(call, "WebP", "its header is cut off");
    for (int32_t p = 0; p < 3; ++p)
      FIRN_TRY(makePlane(p ? 8 : 16, &frame.planes[p]));
    FIRN_TRY(allocate(call, frame.across, &above));
    memset(above, 0, size_t(frame.across) * sizeof *above);
    FIRN_TRY(allocate(call, 1, &macroblock));
    if (filterLevel)
      FIRN_TRY(allocate(call, frame.across * frame.down, &frame.strengths));
    for (int64_t y = 0; y < frame.down; ++y)
      if (!readRow(y))
        return damagedPicture(call, "WebP", "its pixels are cut off");
    if (frame.strengths)
      filterLoop(frame);
    convertColors(frame, to);
    return FIRN_CALL_OK;
  }

private:
  // --- headers (9) ---

  bool readHeader() {
    header.bits(2); // the colour space, and whether sums need no clamping
    readSegments();
    frame.isFilterSimple = header.bits(1);
    filterLevel = int32_t(header.bits(6));
    sharpness = int32_t(header.bits(3));
    hasFilterDeltas = header.bits(1);
    if (hasFilterDeltas && header.bits(1)) {
      int32_t deltas[8];
      for (int32_t &delta : deltas)
        delta = header.optionalSigned(6);
      filterDelta = deltas[0];
      splitFilterDelta = deltas[4];
    }
    partitionCount = 1 << header.bits(2);
    readQuantizers();
    header.bits(1); // whether later frames start from these probabilities
    memcpy(probabilities, vp8CoefficientDefaults, sizeof probabilities);
    for (size_t i = 0; i < sizeof vp8CoefficientUpdates; ++i)
      if (header.decision(vp8CoefficientUpdates[i]))
        reinterpret_cast<uint8_t *>(probabilities)[i] = uint8_t(header.bits(8));
    skipProbability = header.bits(1) ? int32_t(header.bits(8)) : -1;
    return !header.isCut();
  }

  void readSegments() {
    hasSegments = header.bits(1);
    if (!hasSegments)
      return;
    hasSegmentMap = header.bits(1);
    if (header.bits(1)) {
      isAbsolute = header.bits(1);
      for (Segment &segment : segments)
        segment.quantizer = header.optionalSigned(7);
      for (Segment &segment : segments)
        segment.filterLevel = header.optionalSigned(6);
    }
    for (int32_t i = 0; hasSegmentMap && i < 3; ++i)
      segmentProbabilities[i] = header.bits(1) ? uint8_t(header.bits(8)) : 255;
  }

  void readQuantizers() {
    auto base = int32_t(header.bits(7));
    int32_t lumaDelta = header.optionalSigned(4), meansDelta = header.optionalSigned(4),
            meansAcDelta = header.optionalSigned(4), chromaDelta = header.optionalSigned(4),
            chromaAcDelta = header.optionalSigned(4);
    for (Segment &segment : segments) {
      int32_t q = !hasSegments ? base : segment.quantizer + (isAbsolute ? 0 : base);
      auto dc = [q](int32_t delta, int32_t most) { return int32_t(vp8DcSteps[clampedTo(0, q + delta, most)]); };
      auto ac = [q](int32_t delta) { return int32_t(vp8AcSteps[clampedTo(0, q + delta, 127)]); };
      int32_t meansAc = ac(meansAcDelta) * 155 / 100;
      const int32_t steps[4][2] = {{dc(lumaDelta, 127), ac(0)},
                                   {dc(meansDelta, 127) * 2, meansAc < 8 ? 8 : meansAc},
                                   {dc(chromaDelta, 117), ac(chromaAcDelta)},
                                   {dc(lumaDelta, 127), ac(0)}};
      memcpy(segment.steps, steps, sizeof steps);
    }
  }

  /// The partitions of coefficients: the sizes of all but the last, then their bytes.
  bool readPartitions(ByteReader stream) {
    ByteReader sizes = stream.take(3 * (partitionCount - 1));
    if (stream.isCut)
      return false;
    for (int32_t i = 0; i < partitionCount; ++i) {
      int64_t bytes = sizes.little16();
      bytes |= sizes.byte() << 16;
      bool isLast = i == partitionCount - 1;
      partitions[i] = BoolReader(stream.take(isLast || bytes > stream.left() ? stream.left() : bytes));
    }
    return true;
  }

  /// Above the picture samples are 127, to its left 129.
  int32_t makePlane(int32_t size, Vp8Plane *plane) {
    int64_t width = frame.across * size, height = frame.down * size;
    plane->stride = width + 8;
    uint8_t *memory;
    FIRN_TRY(allocate(call, plane->stride * (height + 1), &memory));
    memset(memory, 127, size_t(plane->stride));
    plane->at = memory + plane->stride + 4;
    for (int64_t y = 0; y < height; ++y)
      plane->at[y * plane->stride - 1] = 129;
    return FIRN_CALL_OK;
  }

  // --- macroblocks ---

  bool readRow(int64_t y) {
    BoolReader &tokens = partitions[y % partitionCount];
    Context left{};
    for (int64_t x = 0; x < frame.across; ++x) {
      const Segment &segment =
          segments[!hasSegmentMap                             ? 0
                   : header.decision(segmentProbabilities[0]) ? 2 + header.decision(segmentProbabilities[2])
                                                              : header.decision(segmentProbabilities[1])];
      bool isSkipped = skipProbability >= 0 && header.decision(uint32_t(skipProbability));
      readModes(left.modes, above[x].modes);
      memset(macroblock->coefficients, 0, sizeof macroblock->coefficients);
      bool isEmpty = true;
      if (isSkipped) { // the means of a split macroblock's neighbours stay what they were
        size_t count = macroblock->isSplit ? 8 : 9;
        memset(left.hasCoefficients, 0, count);
        memset(above[x].hasCoefficients, 0, count);
      } else {
        isEmpty = !readCoefficients(tokens, segment, left.hasCoefficients, above[x].hasCoefficients);
      }
      if (header.isCut() || tokens.isCut())
        return false;
      reconstruct(frame, x, y, *macroblock);
      if (frame.strengths)
        frame.strengths[y * frame.across + x] = strengthOf(segment, isEmpty);
    }
    return true;
  }

  /// Modes (11.2 to 11.4): of the whole macroblock, or of each block by the modes of its neighbours.
  void readModes(uint8_t *left, uint8_t *up) {
    macroblock->isSplit = !header.decision(145);
    if (!macroblock->isSplit) {
      uint8_t mode = header.decision(156) ? (header.decision(128) ? vp8TrueMotion : vp8Left)
                                          : (header.decision(163) ? vp8Up : vp8Mean);
      macroblock->modes[0] = mode;
      memset(left, mode, 4);
      memset(up, mode, 4);
    }
    for (int32_t i = 0; macroblock->isSplit && i < 16; ++i)
      left[i / 4] = up[i % 4] = macroblock->modes[i] = readBlockMode(vp8BlockModes[up[i % 4]][left[i / 4]]);
    macroblock->chromaMode = !header.decision(142)   ? vp8Mean
                             : !header.decision(114) ? vp8Up
                             : header.decision(183)  ? vp8TrueMotion
                                                     : vp8Left;
  }

  uint8_t readBlockMode(const uint8_t *branches) {
    // Positive entries lead on, others are modes.
    static const int8_t tree[9][2] = {{-vp8Mean, 1},
                                      {-vp8TrueMotion, 2},
                                      {-vp8Up, 3},
                                      {4, 6},
                                      {-vp8Left, 5},
                                      {-vp8DownRight, -vp8UpRight},
                                      {-vp8DownLeft, 7},
                                      {-vp8UpLeft, 8},
                                      {-vp8LeftDown, -vp8LeftUp}};
    int32_t at = 0;
    do
      at = tree[at][header.decision(branches[at])];
    while (at > 0);
    return uint8_t(-at);
  }

  /// Coefficients (13); whether there are any.
  bool readCoefficients(BoolReader &tokens, const Segment &segment, uint8_t *left, uint8_t *up) {
    bool isAny = false;
    BlockKind lumaKind = luma;
    if (!macroblock->isSplit) {
      int16_t values[16] = {};
      left[8] = up[8] = readBlock(tokens, means, segment, left[8] + up[8], values) > 0;
      inverseMeans(values, macroblock->coefficients);
      lumaKind = lumaWithoutMean;
    }
    for (int32_t i = 0; i < 24; ++i) {
      // Of luma rows of 4 blocks, of u and v rows of 2.
      int32_t x = i < 16 ? i % 4 : 4 + (i - 16) / 4 * 2 + i % 2;
      int32_t y = i < 16 ? i / 4 : 4 + (i - 16) / 4 * 2 + i / 2 % 2;
      BlockKind kind = i < 16 ? lumaKind : chroma;
      int16_t *values = macroblock->coefficients[i];
      int32_t end = readBlock(tokens, kind, segment, left[y] + up[x], values);
      left[y] = up[x] = end > (kind == lumaWithoutMean ? 1 : 0);
      isAny |= end > 1 || values[0] != 0;
    }
    return isAny;
  }

  /// Reads a block whose neighbours to the left and above of `context` had coefficients; returns the place behind its
  /// last one.
  int32_t readBlock(BoolReader &tokens, BlockKind kind, const Segment &segment, int32_t context, int16_t *values) {
    int32_t i = kind == lumaWithoutMean ? 1 : 0;
    const uint8_t *branches = probabilities[kind][bands[i]][context];
    while (i < 16 && tokens.decision(branches[0])) {
      while (!tokens.decision(branches[1])) {
        if (++i == 16)
          return 16;
        branches = probabilities[kind][bands[i]][0];
      }
      int32_t size = tokens.decision(branches[2]) ? readLarge(tokens, branches) : 1;
      int32_t value = (tokens.decision(128) ? -size : size) * segment.steps[kind][i > 0];
      values[zigzag[i]] = int16_t(value);
      branches = probabilities[kind][bands[++i]][size > 1 ? 2 : 1];
    }
    return i;
  }

  /// A size of 2 or more.
  int32_t readLarge(BoolReader &tokens, const uint8_t *branches) {
    static const uint8_t more[4][12] = {{173, 148, 140},
                                        {176, 155, 140, 135},
                                        {180, 157, 141, 134, 130},
                                        {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}};
    if (!tokens.decision(branches[3]))
      return tokens.decision(branches[4]) ? 3 + int32_t(tokens.decision(branches[5])) : 2;
    if (!tokens.decision(branches[6])) {
      if (!tokens.decision(branches[7]))
        return 5 + int32_t(tokens.decision(159));
      auto high = int32_t(tokens.decision(165));
      return 7 + 2 * high + int32_t(tokens.decision(145));
    }
    uint32_t high = tokens.decision(branches[8]), category = 2 * high + tokens.decision(branches[9 + high]);
    int32_t value = 0;
    for (const uint8_t *probability = more[category]; *probability; ++probability)
      value = 2 * value + int32_t(tokens.decision(*probability));
    return value + 3 + (8 << category);
  }

  /// The loop filter's limits (9.6, 15.2).
  Vp8FilterStrength strengthOf(const Segment &segment, bool isEmpty) const {
    int32_t level = !hasSegments ? filterLevel : segment.filterLevel + (isAbsolute ? 0 : filterLevel);
    if (hasFilterDeltas)
      level += filterDelta + (macroblock->isSplit ? splitFilterDelta : 0);
    level = clampedTo(0, level, 63);
    if (level == 0)
      return {};
    int32_t inner = sharpness > 4 ? level >> 2 : sharpness > 0 ? level >> 1 : level;
    if (sharpness > 0 && inner > 9 - sharpness)
      inner = 9 - sharpness;
    inner = inner < 1 ? 1 : inner;
    int32_t variance = level >= 40 ? 2 : level >= 15 ? 1 : 0;
    return {uint8_t(2 * level + inner), uint8_t(inner), uint8_t(variance), macroblock->isSplit || !isEmpty};
  }

  firn_call *call;
  FramePixels to;
  Vp8Frame frame = {};
  BoolReader header, partitions[8];
  int32_t partitionCount = 1;
  bool hasSegments = false, hasSegmentMap = false;
  bool isAbsolute = true; // segments that tell nothing have quantizer and level 0
  uint8_t segmentProbabilities[3] = {255, 255, 255};
  Segment segments[4] = {};
  int32_t filterLevel = 0, sharpness = 0, filterDelta = 0, splitFilterDelta = 0;
  bool hasFilterDeltas = false;
  int32_t skipProbability = -1; // -1: no macroblock is skipped
  uint8_t probabilities[4][8][3][11] = {};
  Context *above = nullptr;
  Vp8Macroblock *macroblock = nullptr;
};

} // namespace

bool readVp8Size(ByteReader stream, int64_t *width, int64_t *height) {
  uint32_t tag = stream.byte();
  stream.skip(2);
  bool hasStartCode = stream.startsWith("\x9d\x01\x2a", 3);
  stream.skip(3);
  *width = stream.little16() & 0x3fff;
  *height = stream.little16() & 0x3fff;
  // A key frame of versions 0 to 3 that is shown.
  return !stream.isCut && hasStartCode && (tag & 1) == 0 && (tag >> 1 & 7) <= 3 && (tag >> 4 & 1) && *width && *height;
}

int32_t decodeVp8(firn_call *call, ByteReader stream, const FramePixels &to) { return Decoder(call, to).run(stream); }

} // namespace firn::kernels
