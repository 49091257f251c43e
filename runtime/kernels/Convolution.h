// The convolution that Conv, ConvInteger and QLinearConv share.
#ifndef FIRN_KERNELS_CONVOLUTION_H
#define FIRN_KERNELS_CONVOLUTION_H

#include "runtime/kernels/Window.h"

namespace firn::kernels {

struct ConvolutionShape {
  const firn_view *x, *w;
  Window window;
  int64_t batch, groups, groupInputs, groupOutputs; // channels of one group
  int64_t dims[FIRN_MAX_RANK];                      // of the result
  int32_t rank;
};

/// Checks x [batch, channels, spatial...] against w [outputs, channels / group, kernel...] and the attributes.
int32_t convolutionShape(firn_call *call, const firn_view &x, const firn_view &w, ConvolutionShape *shape);

/// sums[outputs] += w[taps] * x[inputs] for one channel.
template <typename T>
void addChannel(const Window &window, const TapRow *rows, int64_t rowCount, const T *x, const T *w, T *sums) {
  int64_t stride = window.stride[window.rank - 1];
  for (int64_t r = 0; r < rowCount; ++r) {
    const TapRow row = rows[r];
    const T *from = x + row.in;
    T *to = sums + row.out;
    T factor = w[row.tap];
    if (stride == 1)
      for (int64_t i = 0; i < row.count; ++i)
        to[i] = multiplyAdd(to[i], factor, from[i]);
    else
      for (int64_t i = 0; i < row.count; ++i)
        to[i] = multiplyAdd(to[i], factor, from[i * stride]);
  }
}

/// Calls store(batch, output channel, sums) for each plane of the result. `xZero` and `wZeros` (one value an output
/// channel, wZeroStride apart; may be NULL) are subtracted from x and w; padding contributes nothing.
template <typename T, typename Store>
int32_t convolve(firn_call *call, const ConvolutionShape &shape, T xZero, const T *wZeros, int64_t wZeroStride,
                 Store store) {
  const Window &window = shape.window;
  const TapRow *rows;
  int64_t rowCount;
  FIRN_TRY(tapRows(call, window, &rows, &rowCount));
  int64_t xCount = shape.groupInputs * window.inCount, wCount = shape.groupInputs * window.tapCount;
  T *x, *w, *sums;
  FIRN_TRY(allocate(call, xCount, &x));
  FIRN_TRY(allocate(call, wCount, &w));
  FIRN_TRY(allocate(call, window.outCount, &sums));
  for (int64_t n = 0; n < shape.batch; ++n)
    for (int64_t g = 0; g < shape.groups; ++g) {
      loadAll(*shape.x, (n * shape.groups + g) * xCount, 1, xCount, x);
      for (int64_t i = 0; i < xCount && xZero != 0; ++i)
        x[i] -= xZero;
      for (int64_t k = 0; k < shape.groupOutputs; ++k) {
        int64_t m = g * shape.groupOutputs + k;
        loadAll(*shape.w, m * wCount, 1, wCount, w);
        for (int64_t i = 0; i < wCount && wZeros; ++i)
          w[i] -= wZeros[m * wZeroStride];
        for (int64_t i = 0; i < window.outCount; ++i)
          sums[i] = 0;
        for (int64_t c = 0; c < shape.groupInputs; ++c)
          addChannel(window, rows, rowCount, x + c * window.inCount, w + c * window.tapCount, sums);
        store(n, m, sums);
      }
    }
  return FIRN_CALL_OK;
}

} // namespace firn::kernels
#endif
