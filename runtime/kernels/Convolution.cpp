// Conv, ConvInteger and ConvTranspose.
#include "runtime/kernels/Convolution.h"

namespace firn::kernels {

int32_t convolutionShape(firn_call *call, const firn_view &x, const firn_view &w, ConvolutionShape *shape) {
  FIRN_TRY(requireRank(call, "X", x, 3, FIRN_MAX_RANK));
  FIRN_TRY(requireRank(call, "W", w, x.rank, x.rank));
  FIRN_TRY(boundedAttribute(call, "group", 1, 1, INT64_MAX, &shape->groups));
  ShapeText xText = describe(x), wText = describe(w);
  int64_t channels = x.dims[1], outputs = w.dims[0], wanted;
  if (__builtin_mul_overflow(w.dims[1], shape->groups, &wanted) || wanted != channels)
    return fail(call, FIRN_CALL_INVALID,
                "the channels of X %s do not match W %s and group=%lld: expected %lld channels, found %lld", xText.text,
                wText.text, static_cast<long long>(shape->groups),
                static_cast<long long>(w.dims[1] > INT64_MAX / shape->groups ? INT64_MAX : wanted),
                static_cast<long long>(channels));
  if (outputs % shape->groups != 0)
    return fail(call, FIRN_CALL_INVALID, "the output channels of W %s must be a multiple of group=%lld, found %lld",
                wText.text, static_cast<long long>(shape->groups), static_cast<long long>(outputs));
  FIRN_TRY(requireKernelShape(call, w.dims + 2, w.rank - 2));
  FIRN_TRY(readWindow(call, x.dims + 2, w.dims + 2, x.rank - 2, false, &shape->window));
  shape->x = &x;
  shape->w = &w;
  shape->batch = x.dims[0];
  shape->groupInputs = w.dims[1];
  shape->groupOutputs = outputs / shape->groups;
  shape->rank = x.rank;
  shape->dims[0] = shape->batch;
  shape->dims[1] = outputs;
  for (int32_t i = 0; i < shape->window.rank; ++i)
    shape->dims[i + 2] = shape->window.out[i];
  return FIRN_CALL_OK;
}

// --- Conv ------------------------------------------------------------------------------------------------------------

static int32_t convOperands(firn_call *call, const firn_view **bias, ConvolutionShape *shape) {
  const firn_view *x, *w;
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &x));
  FIRN_TRY(requireInput(call, 1, "W", floatTypes, &w));
  FIRN_TRY(optionalInput(call, 2, "B", floatTypes, bias));
  FIRN_TRY(requireSameDtype(call, "W", w, "X", *x));
  FIRN_TRY(requireSameDtype(call, "B", *bias, "X", *x));
  FIRN_TRY(convolutionShape(call, *x, *w, shape));
  return requireVector(call, "B", *bias, shape->dims[1]);
}

static int32_t inferConv(firn_call *call) {
  const firn_view *bias;
  ConvolutionShape shape;
  FIRN_TRY(convOperands(call, &bias, &shape));
  return setChecked(call, 0, shape.x->dtype, shape.dims, shape.rank);
}

static int32_t runConv(firn_call *call) {
  const firn_view *bias;
  ConvolutionShape shape;
  FIRN_TRY(convOperands(call, &bias, &shape));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  return convolve<double>(call, shape, 0, nullptr, 0, [&](int64_t n, int64_t m, double *sums) {
    double added = bias ? getDouble(*bias, m) : -0.0; // the neutral element of addition
    int64_t count = shape.window.outCount;
    for (int64_t i = 0; i < count; ++i)
      sums[i] += added;
    storeDoubles(*y, (n * shape.dims[1] + m) * count, count, sums);
  });
}

// --- ConvInteger -----------------------------------------------------------------------------------------------------

static int32_t convIntegerOperands(firn_call *call, const firn_view **xZero, const firn_view **wZero,
                                   ConvolutionShape *shape) {
  const firn_view *x, *w;
  FIRN_TRY(requireInput(call, 0, "x", byteTypes, &x));
  FIRN_TRY(requireInput(call, 1, "w", byteTypes, &w));
  FIRN_TRY(optionalInput(call, 2, "x_zero_point", byteTypes, xZero));
  FIRN_TRY(optionalInput(call, 3, "w_zero_point", byteTypes, wZero));
  FIRN_TRY(requireSameDtype(call, "x_zero_point", *xZero, "x", *x));
  FIRN_TRY(requireSameDtype(call, "w_zero_point", *wZero, "w", *w));
  FIRN_TRY(convolutionShape(call, *x, *w, shape));
  FIRN_TRY(requireOneElement(call, "x_zero_point", *xZero));
  return *wZero && elementCount(**wZero) != 1 ? requireVector(call, "w_zero_point", *wZero, shape->dims[1])
                                              : FIRN_CALL_OK;
}

static int32_t inferConvInteger(firn_call *call) {
  const firn_view *xZero, *wZero;
  ConvolutionShape shape;
  FIRN_TRY(convIntegerOperands(call, &xZero, &wZero, &shape));
  return setChecked(call, 0, FIRN_I32, shape.dims, shape.rank);
}

/// Sums of 8-bit products wrap at 32 bits, as the specification allows.
static int32_t runConvInteger(firn_call *call) {
  const firn_view *xZero, *wZero;
  ConvolutionShape shape;
  FIRN_TRY(convIntegerOperands(call, &xZero, &wZero, &shape));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int32_t *wZeros;
  FIRN_TRY(copyOf(call, wZero, &wZeros));
  int64_t count = shape.window.outCount;
  return convolve<int32_t>(
      call, shape, xZero ? int32_t(getInt(*xZero, 0)) : 0, wZeros, wZero && elementCount(*wZero) > 1,
      [&](int64_t n, int64_t m, const int32_t *sums) { storeAll(*y, (n * shape.dims[1] + m) * count, count, sums); });
}

// --- ConvTranspose ---------------------------------------------------------------------------------------------------

// The transposed convolution scatters what the convolution from its output to its input gathers: in its window, `in` is
// the result's extent and `out` that of X.
struct TransposeShape {
  const firn_view *x, *w, *bias;
  Window window;
  int64_t groups, groupInputs, groupOutputs;
  int64_t dims[FIRN_MAX_RANK];
};

/// Extent and padding of the result along each axis.
static int32_t transposeExtents(firn_call *call, Window *window) {
  static const char *const autoPads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  constexpr int64_t largest = INT32_MAX;
  int64_t pads[2 * FIRN_MAX_RANK], extra[FIRN_MAX_RANK], wanted[FIRN_MAX_RANK];
  int32_t rank = window->rank, autoPad;
  FIRN_TRY(axisAttribute(call, "strides", rank, 1, 1, largest, window->stride));
  FIRN_TRY(axisAttribute(call, "dilations", rank, 1, 1, largest, window->dilation));
  FIRN_TRY(axisAttribute(call, "pads", 2 * rank, 0, 0, largest, pads));
  FIRN_TRY(axisAttribute(call, "output_padding", rank, 0, 0, largest, extra));
  FIRN_TRY(axisAttribute(call, "output_shape", rank, -1, 0, largest, wanted));
  FIRN_TRY(choiceAttribute(call, "auto_pad", autoPads, 4, 0, &autoPad));
  for (int32_t i = 0; i < rank; ++i) {
    if (window->kernel[i] < 1 || window->kernel[i] > largest || window->out[i] > (int64_t(1) << 31))
      return fail(call, FIRN_CALL_INVALID, "the kernel or X is out of range along spatial axis %d: found %lld and %lld",
                  i, static_cast<long long>(window->kernel[i]), static_cast<long long>(window->out[i]));
    int64_t stride = window->stride[i];
    if (extra[i] >= stride && extra[i] >= window->dilation[i])
      return fail(call, FIRN_CALL_INVALID,
                  "attribute output_padding must be less than stride or dilation along spatial axis %d: found %lld", i,
                  static_cast<long long>(extra[i]));
    int64_t full = stride * (window->out[i] - 1) + extra[i] + window->reach(i);
    if (autoPad == 1 || autoPad == 2 || wanted[i] >= 0) {
      int64_t size = wanted[i] >= 0 ? wanted[i] : window->out[i] * stride;
      int64_t total = full > size ? full - size : 0;
      window->padBegin[i] = autoPad == 1 ? total / 2 : total - total / 2;
      window->padEnd[i] = total - window->padBegin[i];
      window->in[i] = size;
      continue;
    }
    window->padBegin[i] = autoPad == 3 ? 0 : pads[i];
    window->padEnd[i] = autoPad == 3 ? 0 : pads[i + rank];
    window->in[i] = full - window->padBegin[i] - window->padEnd[i];
    if (window->in[i] < 0)
      return fail(call, FIRN_CALL_INVALID,
                  "the padding along spatial axis %d is larger than the result: expected at most %lld, found %lld", i,
                  static_cast<long long>(full), static_cast<long long>(window->padBegin[i] + window->padEnd[i]));
  }
  return countWindow(call, window);
}

static int32_t transposeShape(firn_call *call, TransposeShape *shape) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &shape->x));
  FIRN_TRY(requireInput(call, 1, "W", floatTypes, &shape->w));
  FIRN_TRY(optionalInput(call, 2, "B", floatTypes, &shape->bias));
  const firn_view &x = *shape->x, &w = *shape->w;
  FIRN_TRY(requireSameDtype(call, "W", &w, "X", x));
  FIRN_TRY(requireSameDtype(call, "B", shape->bias, "X", x));
  FIRN_TRY(requireRank(call, "X", x, 3, FIRN_MAX_RANK));
  FIRN_TRY(requireRank(call, "W", w, x.rank, x.rank));
  FIRN_TRY(boundedAttribute(call, "group", 1, 1, INT64_MAX, &shape->groups));
  ShapeText xText = describe(x), wText = describe(w);
  if (w.dims[0] != x.dims[1])
    return fail(call, FIRN_CALL_INVALID, "the channels of X %s do not match W %s: expected %lld, found %lld",
                xText.text, wText.text, static_cast<long long>(w.dims[0]), static_cast<long long>(x.dims[1]));
  if (x.dims[1] % shape->groups != 0)
    return fail(call, FIRN_CALL_INVALID, "the channels of X %s must be a multiple of group=%lld, found %lld",
                xText.text, static_cast<long long>(shape->groups), static_cast<long long>(x.dims[1]));
  FIRN_TRY(requireKernelShape(call, w.dims + 2, w.rank - 2));
  shape->window.rank = x.rank - 2;
  for (int32_t i = 0; i < shape->window.rank; ++i) {
    shape->window.kernel[i] = w.dims[i + 2];
    shape->window.out[i] = x.dims[i + 2];
  }
  FIRN_TRY(transposeExtents(call, &shape->window));
  shape->groupInputs = x.dims[1] / shape->groups;
  shape->groupOutputs = w.dims[1];
  shape->dims[0] = x.dims[0];
  if (__builtin_mul_overflow(w.dims[1], shape->groups, &shape->dims[1]))
    return fail(call, FIRN_CALL_INVALID, "the number of output channels is out of range");
  for (int32_t i = 0; i < shape->window.rank; ++i)
    shape->dims[i + 2] = shape->window.in[i];
  return requireVector(call, "B", shape->bias, shape->dims[1]);
}

static int32_t inferConvTranspose(firn_call *call) {
  TransposeShape shape;
  FIRN_TRY(transposeShape(call, &shape));
  return setChecked(call, 0, shape.x->dtype, shape.dims, shape.x->rank);
}

static int32_t runConvTranspose(firn_call *call) {
  TransposeShape shape;
  FIRN_TRY(transposeShape(call, &shape));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const Window &window = shape.window;
  const TapRow *rows;
  int64_t rowCount;
  FIRN_TRY(tapRows(call, window, &rows, &rowCount));
  int64_t xCount = shape.groupInputs * window.outCount, stride = window.stride[window.rank - 1];
  double *x, *w, *sums;
  FIRN_TRY(allocate(call, xCount, &x));
  FIRN_TRY(allocate(call, window.tapCount, &w));
  FIRN_TRY(allocate(call, window.inCount, &sums));
  for (int64_t n = 0; n < shape.dims[0]; ++n)
    for (int64_t g = 0; g < shape.groups; ++g) {
      loadDoubles(*shape.x, (n * shape.groups + g) * xCount, 1, xCount, x);
      for (int64_t k = 0; k < shape.groupOutputs; ++k) {
        int64_t m = g * shape.groupOutputs + k;
        for (int64_t i = 0; i < window.inCount; ++i)
          sums[i] = 0;
        for (int64_t c = 0; c < shape.groupInputs; ++c) {
          loadDoubles(*shape.w, ((g * shape.groupInputs + c) * shape.groupOutputs + k) * window.tapCount, 1,
                      window.tapCount, w);
          for (int64_t r = 0; r < rowCount; ++r) {
            const TapRow row = rows[r];
            for (int64_t i = 0; i < row.count; ++i)
              sums[row.in + i * stride] += w[row.tap] * x[c * window.outCount + row.out + i];
          }
        }
        double added = shape.bias ? getDouble(*shape.bias, m) : -0.0;
        for (int64_t i = 0; i < window.inCount; ++i)
          sums[i] += added;
        storeDoubles(*y, (n * shape.dims[1] + m) * window.inCount, window.inCount, sums);
      }
    }
  return FIRN_CALL_OK;
}

FIRN_OPERATOR(ai_onnx, Conv, "ai.onnx::Conv", inferConv, runConv)
FIRN_OPERATOR(ai_onnx, ConvInteger, "ai.onnx::ConvInteger", inferConvInteger, runConvInteger)
FIRN_OPERATOR(ai_onnx, ConvTranspose, "ai.onnx::ConvTranspose", inferConvTranspose, runConvTranspose)

} // namespace firn::kernels
