// The wavelets of JPEG 2000: 5/3 in integers, 9/7 in floats, by lifting (T.800, Annex F).
#include "runtime/kernels/ImageJpeg2000.h"

namespace firn::kernels::jpeg2000 {
namespace {

// A line has 4 elements in front of its first and behind its last one: the signal mirrored at both ends.
constexpr int64_t border = 4;

template <typename T> void mirror(T *x, int64_t length) {
  for (int64_t i = 1; i <= border; ++i) {
    int64_t period = 2 * (length - 1);
    auto at = [&](int64_t k) {
      k %= period;
      k = k < 0 ? k + period : k;
      return k < length ? k : period - k;
    };
    x[-i] = x[at(-i)];
    x[length - 1 + i] = x[at(length - 1 + i)];
  }
}

// Damaged files make sums that wrap.
int32_t sum(int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }
float sum(float a, float b) { return a + b; }

/// x[i] += f(x[i - 1], x[i + 1]) for every other element: those of `first`'s parity that are in the line or up to
/// `reach` beside it.
template <typename T, typename Lift> void lift(T *x, int64_t length, int64_t first, int64_t reach, Lift f) {
  while (first - 2 >= -reach)
    first -= 2;
  for (int64_t i = first; i < length + reach; i += 2)
    x[i] = sum(x[i], f(x[i - 1], x[i + 1]));
}

/// The line whose first element has the coordinate `start`. Each step reaches one element less beside it than the one
/// before.
void reconstruct(int32_t *x, int64_t length, int64_t start) {
  int64_t even = start & 1, odd = 1 - even; // where coordinates of these parities begin
  if (length == 1) {
    x[0] = even ? x[0] / 2 : x[0];
    return;
  }
  mirror(x, length);
  lift(x, length, even, 1, [](int32_t a, int32_t b) { return int32_t(-((int64_t(a) + b + 2) >> 2)); });
  lift(x, length, odd, 0, [](int32_t a, int32_t b) { return int32_t((int64_t(a) + b) >> 1); });
}

void reconstruct(float *x, int64_t length, int64_t start) {
  int64_t even = start & 1, odd = 1 - even;
  if (length == 1) {
    x[0] = even ? x[0] / 2 : x[0];
    return;
  }
  constexpr float scale = 1.230174104914001f;
  constexpr float steps[] = {-0.443506852043971f, -0.882911075530934f, 0.052980118572961f, 1.586134342059924f};
  for (int64_t i = even; i < length; i += 2)
    x[i] *= scale;
  for (int64_t i = odd; i < length; i += 2)
    x[i] *= 1 / scale;
  mirror(x, length);
  for (int64_t k = 0; k < 4; ++k)
    lift(x, length, k % 2 ? odd : even, 3 - k, [step = steps[k]](float a, float b) { return step * (a + b); });
}

template <typename T> void inverse(T *plane, int64_t stride, const Box &box, T *line) {
  T *x = line + border;
  int64_t width = box.width(), height = box.height();
  for (int64_t row = 0; row < height; ++row) {
    memcpy(x, plane + row * stride, size_t(width) * sizeof(T));
    reconstruct(x, width, box.x0);
    memcpy(plane + row * stride, x, size_t(width) * sizeof(T));
  }
  for (int64_t column = 0; column < width; ++column) {
    for (int64_t row = 0; row < height; ++row)
      x[row] = plane[row * stride + column];
    reconstruct(x, height, box.y0);
    for (int64_t row = 0; row < height; ++row)
      plane[row * stride + column] = x[row];
  }
}

} // namespace

void inverseReversible(int32_t *plane, int64_t stride, const Box &box, int32_t *line) {
  inverse(plane, stride, box, line);
}
void inverseIrreversible(float *plane, int64_t stride, const Box &box, float *line) {
  inverse(plane, stride, box, line);
}

} // namespace firn::kernels::jpeg2000
