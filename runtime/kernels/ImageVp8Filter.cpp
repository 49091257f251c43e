// VP8: the loop filter (RFC 6386, 15), and colours as libwebp makes them: chroma weighs its nearer samples 9:3:3:1, and
// the conversion is in integers with 6 bits behind the point.
#include "runtime/kernels/ImageVp8.h"

namespace firn::kernels {
namespace {

int32_t clampedTo(int32_t low, int32_t value, int32_t high) { return value < low ? low : value > high ? high : value; }
uint8_t clamped(int32_t value) { return uint8_t(clampedTo(0, value, 255)); }
int32_t signedByte(int32_t value) { return clampedTo(-128, value, 127); }
int32_t distance(int32_t a, int32_t b) { return a < b ? b - a : a - b; }

/// Samples on both sides of an edge: at[-step] lies before it, at[0] behind.
struct Edge {
  uint8_t *at;
  int64_t step;

  int32_t sample(int32_t i) const { return at[i * step]; }
  void add(int32_t i, int32_t value) const { at[i * step] = clamped(at[i * step] + value); }

  bool isStep(int32_t limit) const {
    return 4 * distance(sample(-1), sample(0)) + distance(sample(-2), sample(1)) <= 2 * limit + 1;
  }
  bool isSmooth(int32_t limit) const {
    for (int32_t i = -4; i < 3; ++i)
      if (i != -1 && distance(sample(i), sample(i + 1)) > limit)
        return false;
    return true;
  }
  bool hasVariance(int32_t limit) const {
    return distance(sample(-2), sample(-1)) > limit || distance(sample(1), sample(0)) > limit;
  }

  /// Moves the two samples next to the edge; those beyond them count too.
  void filterTwo() const {
    int32_t a = signedByte(3 * (sample(0) - sample(-1)) + signedByte(sample(-2) - sample(1)));
    int32_t behind = signedByte(a + 4) >> 3, before = signedByte(a + 3) >> 3;
    add(-1, before);
    add(0, -behind);
  }
  /// Within a macroblock: two samples on each side.
  void filterFour() const {
    int32_t a = signedByte(3 * (sample(0) - sample(-1)));
    int32_t behind = signedByte(a + 4) >> 3, before = signedByte(a + 3) >> 3, outer = (behind + 1) >> 1;
    add(-2, outer);
    add(-1, before);
    add(0, -behind);
    add(1, -outer);
  }
  /// Between macroblocks: three samples on each side.
  void filterSix() const {
    int32_t a = signedByte(3 * (sample(0) - sample(-1)) + signedByte(sample(-2) - sample(1)));
    for (int32_t i = 0; i < 3; ++i) {
      int32_t value = (9 * (3 - i) * a + 63) >> 7;
      add(-1 - i, value);
      add(i, -value);
    }
  }
};

/// Filters `count` places along an edge, `along` apart.
void filterEdge(Edge edge, int64_t along, int32_t count, const Vp8FilterStrength &strength, bool isInside,
                bool isSimple) {
  int32_t limit = strength.limit + (isInside ? 0 : 4);
  for (int32_t i = 0; i < count; ++i, edge.at += along) {
    if (!edge.isStep(limit) || (!isSimple && !edge.isSmooth(strength.innerLimit)))
      continue;
    if (isSimple || edge.hasVariance(strength.varianceLimit))
      edge.filterTwo();
    else if (isInside)
      edge.filterFour();
    else
      edge.filterSix();
  }
}

/// Upright edges, then level ones; the outer one first.
void filterMacroblock(const Vp8Frame &frame, int64_t x, int64_t y, const Vp8FilterStrength &strength) {
  for (int32_t p = 0; p < (frame.isFilterSimple ? 1 : 3); ++p) {
    int32_t size = p ? 8 : 16;
    int64_t stride = frame.planes[p].stride;
    uint8_t *at = frame.planes[p].at + y * size * stride + x * size;
    for (int32_t level = 0; level < 2; ++level) {
      int64_t step = level ? stride : 1, along = level ? 1 : stride;
      for (int32_t i = (level ? y : x) > 0 ? 0 : 4; i < (strength.filtersInside ? size : 4); i += 4)
        filterEdge({at + i * step, step}, along, size, strength, i > 0, frame.isFilterSimple);
    }
  }
}

} // namespace

void filterLoop(const Vp8Frame &frame) {
  for (int64_t y = 0; y < frame.down; ++y)
    for (int64_t x = 0; x < frame.across; ++x) {
      const Vp8FilterStrength &strength = frame.strengths[y * frame.across + x];
      if (strength.limit)
        filterMacroblock(frame, x, y, strength);
    }
}

void convertColors(const Vp8Frame &frame, const FramePixels &to) {
  int64_t width = (to.width + 1) / 2, height = (to.height + 1) / 2;
  for (int64_t y = 0; y < to.height; ++y) {
    int64_t farY = clampedTo(0, int32_t(y / 2 + (y % 2 ? 1 : -1)), int32_t(height - 1));
    for (int64_t x = 0; x < to.width; ++x) {
      int64_t farX = clampedTo(0, int32_t(x / 2 + (x % 2 ? 1 : -1)), int32_t(width - 1));
      auto chroma = [&](const Vp8Plane &plane) {
        const uint8_t *near = plane.at + y / 2 * plane.stride, *far = plane.at + farY * plane.stride;
        int32_t nearest = near[x / 2];
        int32_t all = (nearest + 3 * (near[farX] + far[x / 2]) + far[farX] + 8) >> 3;
        return (all + nearest) >> 1;
      };
      int32_t luma = frame.planes[0].at[y * frame.planes[0].stride + x] * 19077 >> 8;
      int32_t u = chroma(frame.planes[1]), v = chroma(frame.planes[2]);
      uint8_t *pixel = to.at + y * to.rowBytes + 3 * x;
      pixel[0] = clamped((luma + (v * 26149 >> 8) - 14234) >> 6);
      pixel[1] = clamped((luma - (u * 6419 >> 8) - (v * 13320 >> 8) + 8708) >> 6);
      pixel[2] = clamped((luma + (u * 33050 >> 8) - 17685) >> 6);
    }
  }
}

} // namespace firn::kernels
