// Sliding windows over the spatial axes of a tensor [batch, channels, spatial...], as convolution and pooling see them.
#ifndef FIRN_KERNELS_WINDOW_H
#define FIRN_KERNELS_WINDOW_H

#include "runtime/kernels/Require.h"

namespace firn::kernels {

/// Tap k of the window at output o reads input o * stride - padBegin + k * dilation, along each axis.
struct Window {
  int32_t rank;
  int64_t in[FIRN_MAX_RANK], kernel[FIRN_MAX_RANK], stride[FIRN_MAX_RANK], dilation[FIRN_MAX_RANK];
  int64_t padBegin[FIRN_MAX_RANK], padEnd[FIRN_MAX_RANK], out[FIRN_MAX_RANK];
  int64_t inCount, tapCount, outCount; // products over the axes

  /// What a window covers along `axis`, gaps included.
  int64_t reach(int32_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

/// Attribute `name` with one integer in [low, high] an axis, `fallback` where it is absent.
int32_t axisAttribute(firn_call *call, const char *name, int32_t rank, int64_t fallback, int64_t low, int64_t high,
                      int64_t *values);
/// Reads kernel_shape, which must equal `kernel` where it is present.
int32_t requireKernelShape(firn_call *call, const int64_t *kernel, int32_t rank);
/// Reads strides, dilations, pads, auto_pad and, where `hasCeilMode`, ceil_mode. Fails for windows that do not fit.
int32_t readWindow(firn_call *call, const int64_t *in, const int64_t *kernel, int32_t rank, bool hasCeilMode,
                   Window *window);
/// Sets the three products; fails where they are out of range.
int32_t countWindow(firn_call *call, Window *window);

/// A run of outputs along the last axis for which one tap reads inside the input: output out + i reads input in + i *
/// stride of the last axis, 0 <= i < count.
struct TapRow {
  int64_t tap, out, in, count;
};
/// All of them, by tap in row-major order and then by output; they lie in scratch memory.
int32_t tapRows(firn_call *call, const Window &window, const TapRow **rows, int64_t *count);

/// Rounds up; `by` is positive.
inline int64_t divideUp(int64_t value, int64_t by) { return value >= 0 ? (value + by - 1) / by : -(-value / by); }

} // namespace firn::kernels
#endif
