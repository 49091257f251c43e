// VP8: prediction within a frame (RFC 6386, 12) and the inverse transforms (14).
#include "runtime/kernels/ImageVp8.h"

namespace firn::kernels {
namespace {

uint8_t clamped(int32_t value) { return uint8_t(value < 0 ? 0 : value > 255 ? 255 : value); }

/// Adds the inverse cosine transform of 16 coefficients to 4 x 4 samples. Factors are sqrt(2) cos(pi / 8) and
/// sqrt(2) sin(pi / 8) with 16 bits behind the point.
void addInverse(const int16_t *in, uint8_t *to, int64_t stride) {
  auto cosine = [](int32_t a) { return (a * 20091 >> 16) + a; };
  auto sine = [](int32_t a) { return a * 35468 >> 16; };
  int32_t columns[16];
  for (int32_t i = 0; i < 4; ++i) {
    int32_t a = in[i] + in[8 + i], b = in[i] - in[8 + i];
    int32_t c = sine(in[4 + i]) - cosine(in[12 + i]), d = cosine(in[4 + i]) + sine(in[12 + i]);
    columns[4 * i] = a + d;
    columns[4 * i + 1] = b + c;
    columns[4 * i + 2] = b - c;
    columns[4 * i + 3] = a - d;
  }
  for (int32_t y = 0; y < 4; ++y) {
    const int32_t *row = columns + y;
    int32_t a = row[0] + 4 + row[8], b = row[0] + 4 - row[8];
    int32_t c = sine(row[4]) - cosine(row[12]), d = cosine(row[4]) + sine(row[12]);
    const int32_t sums[4] = {a + d, b + c, b - c, a - d};
    for (int32_t x = 0; x < 4; ++x)
      to[y * stride + x] = clamped(to[y * stride + x] + (sums[x] >> 3));
  }
}

/// Predicts `size` x `size` samples as one; at the picture's edges a mean takes what there is.
void predictWhole(uint8_t mode, int32_t size, bool hasUp, bool hasLeft, uint8_t *to, int64_t stride) {
  const uint8_t *up = to - stride;
  int32_t mean = 128;
  if (mode == vp8Mean && (hasUp || hasLeft)) {
    int32_t sum = 0, count = (hasUp ? size : 0) + (hasLeft ? size : 0);
    for (int32_t i = 0; i < size; ++i)
      sum += (hasUp ? up[i] : 0) + (hasLeft ? to[i * stride - 1] : 0);
    mean = (sum + count / 2) / count;
  }
  for (int32_t y = 0; y < size; ++y) {
    int32_t left = to[y * stride - 1];
    for (int32_t x = 0; x < size; ++x)
      to[y * stride + x] = mode == vp8Mean   ? uint8_t(mean)
                           : mode == vp8Up   ? up[x]
                           : mode == vp8Left ? uint8_t(left)
                                             : clamped(left + up[x] - up[-1]);
  }
}

// The samples round a 4x4 block make one line: up its left side, then rightwards above it. A directional mode takes
// each sample from a place on that line, counted in halves: 2 i is the mean of samples i - 1, i (twice) and i + 1, 2 i
// + 1 that of i and i + 1. The ends of the line are repeated; sample 2 is the lowest on the left, 6 the corner.
constexpr uint8_t places[10][16] = {
    {},
    {},
    {14, 16, 18, 20, 14, 16, 18, 20, 14, 16, 18, 20, 14, 16, 18, 20}, // vp8Up
    {10, 10, 10, 10, 8, 8, 8, 8, 6, 6, 6, 6, 4, 4, 4, 4},             // vp8Left
    {12, 14, 16, 18, 10, 12, 14, 16, 8, 10, 12, 14, 6, 8, 10, 12},    // vp8DownRight
    {13, 15, 17, 19, 12, 14, 16, 18, 10, 13, 15, 17, 8, 12, 14, 16},  // vp8UpRight
    {16, 18, 20, 22, 18, 20, 22, 24, 20, 22, 24, 26, 22, 24, 26, 28}, // vp8DownLeft
    {15, 17, 19, 21, 16, 18, 20, 22, 17, 19, 21, 24, 18, 20, 22, 26}, // vp8UpLeft
    {11, 12, 14, 16, 9, 10, 11, 12, 7, 8, 9, 10, 5, 6, 7, 8},         // vp8LeftDown
    {9, 8, 7, 6, 7, 6, 5, 4, 5, 4, 2, 2, 2, 2, 2, 2},                 // vp8LeftUp
};

/// Predicts a 4x4 block; `upRight` are the 4 samples that follow those above it.
void predictBlock(uint8_t mode, const uint8_t *upRight, uint8_t *to, int64_t stride) {
  const uint8_t *up = to - stride;
  if (mode == vp8TrueMotion || mode == vp8Mean)
    return predictWhole(mode, 4, true, true, to, stride);
  int32_t line[16];
  for (int32_t i = 0; i < 4; ++i) {
    line[5 - i] = to[i * stride - 1];
    line[7 + i] = up[i];
    line[11 + i] = upRight[i];
  }
  line[0] = line[1] = line[2];
  line[6] = up[-1];
  line[15] = line[14];
  for (int32_t i = 0; i < 16; ++i) {
    int32_t place = places[mode][i], at = place / 2;
    to[i / 4 * stride + i % 4] =
        uint8_t(place % 2 ? (line[at] + line[at + 1] + 1) >> 1 : (line[at - 1] + 2 * line[at] + line[at + 1] + 2) >> 2);
  }
}

bool hasCoefficients(const int16_t *coefficients) {
  for (int32_t i = 0; i < 16; ++i)
    if (coefficients[i])
      return true;
  return false;
}

} // namespace

void inverseMeans(const int16_t *means, int16_t (*coefficients)[16]) {
  int32_t columns[16];
  for (int32_t i = 0; i < 4; ++i) {
    int32_t a = means[i] + means[12 + i], b = means[4 + i] + means[8 + i];
    int32_t c = means[4 + i] - means[8 + i], d = means[i] - means[12 + i];
    columns[i] = a + b;
    columns[4 + i] = d + c;
    columns[8 + i] = a - b;
    columns[12 + i] = d - c;
  }
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t *row = columns + 4 * i;
    int32_t a = row[0] + 3 + row[3], b = row[1] + row[2], c = row[1] - row[2], d = row[0] + 3 - row[3];
    coefficients[4 * i][0] = int16_t((a + b) >> 3);
    coefficients[4 * i + 1][0] = int16_t((d + c) >> 3);
    coefficients[4 * i + 2][0] = int16_t((a - b) >> 3);
    coefficients[4 * i + 3][0] = int16_t((d - c) >> 3);
  }
}

void reconstruct(const Vp8Frame &frame, int64_t x, int64_t y, const Vp8Macroblock &macroblock) {
  for (int32_t p = 0; p < 3; ++p) {
    int32_t size = p ? 8 : 16, blocksAcross = size / 4;
    int64_t stride = frame.planes[p].stride;
    uint8_t *to = frame.planes[p].at + y * size * stride + x * size;
    bool isSplit = p == 0 && macroblock.isSplit;
    uint8_t upRight[4];
    // Beyond the last macroblock its own last sample above repeats, but for the first row.
    if (y > 0 && x == frame.across - 1)
      memset(upRight, to[size - 1 - stride], 4);
    else
      memcpy(upRight, to + size - stride, 4);
    if (!isSplit)
      predictWhole(p ? macroblock.chromaMode : macroblock.modes[0], size, y > 0, x > 0, to, stride);
    const int16_t(*coefficients)[16] = macroblock.coefficients + (p ? 12 + 4 * p : 0);
    for (int32_t i = 0; i < blocksAcross * blocksAcross; ++i) {
      uint8_t *block = to + i / blocksAcross * 4 * stride + i % blocksAcross * 4;
      if (isSplit) // blocks of the last column all see what is above the next macroblock
        predictBlock(macroblock.modes[i], i % 4 == 3 ? upRight : block + 4 - stride, block, stride);
      if (hasCoefficients(coefficients[i]))
        addInverse(coefficients[i], block, stride);
    }
  }
}

} // namespace firn::kernels
