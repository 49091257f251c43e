// DeformConv: a convolution whose taps are moved by an input and read between elements.
#include "runtime/kernels/Convolution.h"

namespace firn::kernels {

namespace {

struct DeformOperands {
  const firn_view *x, *w, *offset, *bias, *mask;
  ConvolutionShape shape;
  int64_t offsetGroups;
};

int32_t deformOperands(firn_call *call, DeformOperands *o) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "W", floatTypes, &o->w));
  FIRN_TRY(requireInput(call, 2, "offset", floatTypes, &o->offset));
  FIRN_TRY(optionalInput(call, 3, "B", floatTypes, &o->bias));
  FIRN_TRY(optionalInput(call, 4, "mask", floatTypes, &o->mask));
  FIRN_TRY(requireSameDtype(call, "W", o->w, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "offset", o->offset, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "B", o->bias, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "mask", o->mask, "X", *o->x));
  FIRN_TRY(convolutionShape(call, *o->x, *o->w, &o->shape));
  FIRN_TRY(boundedAttribute(call, "offset_group", 1, 1, INT64_MAX, &o->offsetGroups));
  if (o->x->dims[1] % o->offsetGroups != 0)
    return fail(call, FIRN_CALL_INVALID, "the channels of X must be a multiple of offset_group=%lld, found %lld",
                static_cast<long long>(o->offsetGroups), static_cast<long long>(o->x->dims[1]));
  FIRN_TRY(requireVector(call, "B", o->bias, o->shape.dims[1]));
  int64_t dims[FIRN_MAX_RANK], taps;
  memcpy(dims, o->shape.dims, sizeof dims);
  if (__builtin_mul_overflow(o->offsetGroups, o->shape.window.tapCount, &taps) ||
      __builtin_mul_overflow(taps, int64_t(o->shape.window.rank), &dims[1]))
    return fail(call, FIRN_CALL_INVALID, "attribute offset_group is out of range");
  FIRN_TRY(requireShape(call, "offset", o->offset, dims, o->shape.rank));
  dims[1] = taps;
  return requireShape(call, "mask", o->mask, dims, o->shape.rank);
}

int32_t inferDeformConv(firn_call *call) {
  setRankLike(call, 0, 0);
  DeformOperands o;
  FIRN_TRY(deformOperands(call, &o));
  return setChecked(call, 0, o.x->dtype, o.shape.dims, o.shape.rank);
}

/// The plane at a real position, linearly between its 2^rank neighbours; those outside count as zero.
double sample(const Window &window, const double *plane, const double *position) {
  int64_t low[FIRN_MAX_RANK];
  double fraction[FIRN_MAX_RANK], sum = 0;
  for (int32_t i = 0; i < window.rank; ++i) {
    if (!(position[i] > -1 && position[i] < double(window.in[i])))
      return 0; // NaN too
    low[i] = int64_t(floor(position[i]));
    fraction[i] = position[i] - double(low[i]);
  }
  for (int64_t corner = 0; corner < int64_t(1) << window.rank; ++corner) {
    double weight = 1;
    int64_t at = 0;
    bool isInside = true;
    for (int32_t i = 0; i < window.rank; ++i) {
      int64_t up = (corner >> i) & 1, index = low[i] + up;
      weight *= up ? fraction[i] : 1 - fraction[i];
      isInside &= index >= 0 && index < window.in[i];
      at = at * window.in[i] + index;
    }
    if (isInside && weight != 0)
      sum += weight * plane[at];
  }
  return sum;
}

/// Fills samples[channel of the group, tap] for one output position.
void sampleTaps(const DeformOperands &o, int64_t n, int64_t group, const int64_t *index, int64_t out, const double *x,
                double *samples) {
  const Window &window = o.shape.window;
  int64_t perOffsetGroup = o.x->dims[1] / o.offsetGroups;
  for (int64_t c = 0; c < o.shape.groupInputs; ++c) {
    int64_t offsetGroup = (group * o.shape.groupInputs + c) / perOffsetGroup, tapIndex[FIRN_MAX_RANK] = {0}, tap = 0;
    do {
      int64_t at = (n * o.offsetGroups + offsetGroup) * window.tapCount + tap; // of the mask's channels
      double position[FIRN_MAX_RANK];
      for (int32_t i = 0; i < window.rank; ++i)
        position[i] = double(index[i] * window.stride[i] - window.padBegin[i] + tapIndex[i] * window.dilation[i]) +
                      getDouble(*o.offset, (at * window.rank + i) * window.outCount + out);
      double factor = o.mask ? getDouble(*o.mask, at * window.outCount + out) : 1;
      samples[c * window.tapCount + tap++] = factor * sample(window, x + c * window.inCount, position);
    } while (nextIndex(tapIndex, window.kernel, window.rank));
  }
}

int32_t runDeformConv(firn_call *call) {
  DeformOperands o;
  FIRN_TRY(deformOperands(call, &o));
  firn_view *y = output(call, 0);
  const ConvolutionShape &shape = o.shape;
  const Window &window = shape.window;
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int64_t xCount = shape.groupInputs * window.inCount, taps = shape.groupInputs * window.tapCount;
  double *x, *w, *samples;
  FIRN_TRY(allocate(call, xCount, &x));
  FIRN_TRY(allocate(call, taps * shape.groupOutputs, &w));
  FIRN_TRY(allocate(call, taps, &samples));
  for (int64_t n = 0; n < shape.batch; ++n)
    for (int64_t g = 0; g < shape.groups; ++g) {
      loadDoubles(*o.x, (n * shape.groups + g) * xCount, 1, xCount, x);
      loadDoubles(*o.w, g * taps * shape.groupOutputs, 1, taps * shape.groupOutputs, w);
      int64_t index[FIRN_MAX_RANK] = {0}, out = 0;
      do {
        sampleTaps(o, n, g, index, out, x, samples);
        for (int64_t k = 0; k < shape.groupOutputs; ++k) {
          int64_t m = g * shape.groupOutputs + k;
          double sum = 0;
          for (int64_t i = 0; i < taps; ++i)
            sum += w[k * taps + i] * samples[i];
          setDouble(*y, (n * shape.dims[1] + m) * window.outCount + out, sum + (o.bias ? getDouble(*o.bias, m) : -0.0));
        }
        ++out;
      } while (nextIndex(index, window.out, window.rank));
    }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, DeformConv, "ai.onnx::DeformConv", inferDeformConv, runDeformConv)

} // namespace firn::kernels
