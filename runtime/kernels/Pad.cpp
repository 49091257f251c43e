// Growing and cropping at the ends of axes.
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

/// What an axis loses and gains: first `cropped` elements of each end go, then `padded` ones come.
struct PadAxis {
  int64_t cropBegin = 0, cropEnd = 0, padBegin = 0, padEnd = 0;
  int64_t kept(int64_t dim) const { return dim - cropBegin - cropEnd; }
};

int32_t padAxes(firn_call *call, PadAxis *axes) {
  const firn_view &x = call->inputs[0], &pads = call->inputs[1];
  const firn_view *listed = input(call, 3);
  int64_t count = listed ? elementCount(*listed) : x.rank;
  if (elementCount(pads) != 2 * count)
    return fail(call, FIRN_CALL_INVALID, "pads must have two values for each axis: expected %lld, found %lld",
                static_cast<long long>(2 * count), static_cast<long long>(elementCount(pads)));
  bool seen[FIRN_MAX_RANK] = {};
  for (int64_t i = 0; i < count; ++i) {
    int32_t axis;
    FIRN_TRY(checkAxis(call, listed ? getInt(*listed, i) : i, x.rank, &axis));
    if (seen[axis])
      return fail(call, FIRN_CALL_INVALID, "axes may not repeat, found %d twice", axis);
    seen[axis] = true;
    int64_t begin = getInt(pads, i), end = getInt(pads, count + i);
    const int64_t limit = int64_t(1) << 47;
    if (begin < -limit || begin > limit || end < -limit || end > limit)
      return fail(call, FIRN_CALL_INVALID, "pads of axis %d are too large: found %lld and %lld", axis,
                  static_cast<long long>(begin), static_cast<long long>(end));
    axes[axis] = {begin < 0 ? -begin : 0, end < 0 ? -end : 0, begin > 0 ? begin : 0, end > 0 ? end : 0};
    if (axes[axis].kept(x.dims[axis]) < 0)
      return fail(call, FIRN_CALL_INVALID, "pads of axis %d take more than its %lld elements: found %lld and %lld",
                  axis, static_cast<long long>(x.dims[axis]), static_cast<long long>(begin),
                  static_cast<long long>(end));
  }
  return FIRN_CALL_OK;
}

enum class Mode { Constant, Reflect, Edge, Wrap };

int32_t modeOf(firn_call *call, Mode *mode) {
  static const char names[][9] = {"constant", "reflect", "edge", "wrap"};
  for (int32_t k = 0; k < 4; ++k)
    if (stringAttributeIs(call, "mode", names[k], "constant")) {
      *mode = Mode(k);
      return FIRN_CALL_OK;
    }
  return fail(call, FIRN_CALL_INVALID, "attribute 'mode' must be constant, reflect, edge or wrap");
}

int32_t inferPad(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireIntegers(call, 1, "pads", typeSet(FIRN_I64)));
  if (input(call, 2)) {
    FIRN_TRY(requireSameType(call, 0, 2));
    if (elementCount(call->inputs[2]) != 1)
      return fail(call, FIRN_CALL_INVALID, "constant_value must be one value, found %lld",
                  static_cast<long long>(elementCount(call->inputs[2])));
  }
  if (input(call, 3))
    FIRN_TRY(requireIntegers(call, 3, "axes", indexTypes));
  Mode mode;
  FIRN_TRY(modeOf(call, &mode));
  const firn_view &x = call->inputs[0];
  PadAxis axes[FIRN_MAX_RANK];
  FIRN_TRY(padAxes(call, axes));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k) {
    int64_t kept = axes[k].kept(x.dims[k]);
    dims[k] = kept + axes[k].padBegin + axes[k].padEnd;
    if (mode != Mode::Constant && kept == 0 && dims[k] > 0)
      return fail(call, FIRN_CALL_INVALID, "axis %d is empty: there is nothing to fill its pads with", k);
  }
  return setChecked(call, 0, x.dtype, dims, x.rank);
}

/// The element of n that stands at `position`, which may lie outside [0, n).
int64_t sourceOf(Mode mode, int64_t position, int64_t n) {
  if (mode == Mode::Edge)
    return position < 0 ? 0 : position >= n ? n - 1 : position;
  int64_t period = mode == Mode::Wrap ? n : n > 1 ? 2 * (n - 1) : 1;
  int64_t folded = (position % period + period) % period;
  return folded < n ? folded : period - folded;
}

/// Everything that stays, copied into its place; the rest of the output is untouched.
void copyKept(const firn_view &to, const firn_view &from, const PadAxis *axes) {
  int64_t toStrides[FIRN_MAX_RANK], fromStrides[FIRN_MAX_RANK];
  rowMajorStrides(to.dims, to.rank, toStrides);
  rowMajorStrides(from.dims, from.rank, fromStrides);
  StridedCopy copy;
  for (int32_t k = 0; k < to.rank; ++k) {
    copy.toOffset += axes[k].padBegin * toStrides[k];
    copy.fromOffset += axes[k].cropBegin * fromStrides[k];
    copy.addAxis(axes[k].kept(from.dims[k]), toStrides[k], fromStrides[k]);
  }
  copy.run(to, from);
}

void fillConstant(const firn_view &y, const firn_view *value) {
  if (value)
    fillElements(y, 0, elementCount(y), *value);
  else if (elementCount(y) > 0)
    memset(y.data, 0, size_t(firn_dtype_bytes(y.dtype, elementCount(y)))); // 0, false or the empty string
}

/// Axis by axis from the last one: each copies whole slices that the axes behind it have completed.
void fillFromInside(const firn_view &y, const firn_view &x, const PadAxis *axes, Mode mode) {
  for (int32_t k = y.rank - 1; k >= 0; --k) {
    int64_t kept = axes[k].kept(x.dims[k]), n = y.dims[k], inner = extent(y, k + 1, y.rank);
    int64_t outer = extent(y, 0, k);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < n; ++i) {
        int64_t position = i - axes[k].padBegin;
        if (position < 0 || position >= kept)
          copyElements(y, (o * n + i) * inner, y, (o * n + axes[k].padBegin + sourceOf(mode, position, kept)) * inner,
                       inner);
      }
  }
}

int32_t runPad(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  Mode mode;
  FIRN_TRY(modeOf(call, &mode));
  PadAxis axes[FIRN_MAX_RANK];
  FIRN_TRY(padAxes(call, axes));
  if (mode == Mode::Constant)
    fillConstant(*y, input(call, 2));
  copyKept(*y, call->inputs[0], axes);
  if (mode != Mode::Constant)
    fillFromInside(*y, call->inputs[0], axes, mode);
  return FIRN_CALL_OK;
}

// --- CenterCropPad ---------------------------------------------------------------------------------------------------

int32_t centerAxes(firn_call *call, PadAxis *axes, int64_t *dims) {
  const firn_view &x = call->inputs[0], &shape = call->inputs[1];
  int64_t count;
  const int64_t *listed = intsAttribute(call, "axes", &count);
  if (!listed)
    count = x.rank;
  if (elementCount(shape) != count)
    return fail(call, FIRN_CALL_INVALID, "shape must have one value for each axis: expected %lld, found %lld",
                static_cast<long long>(count), static_cast<long long>(elementCount(shape)));
  for (int32_t k = 0; k < x.rank; ++k)
    dims[k] = x.dims[k];
  for (int64_t i = 0; i < count; ++i) {
    int32_t axis;
    FIRN_TRY(checkAxis(call, listed ? listed[i] : i, x.rank, &axis));
    int64_t wanted = getInt(shape, i), dim = x.dims[axis];
    if (wanted < 0)
      return fail(call, FIRN_CALL_INVALID, "shape[%lld] must not be negative, found %lld", static_cast<long long>(i),
                  static_cast<long long>(wanted));
    dims[axis] = wanted;
    axes[axis] = PadAxis();
    if (wanted < dim) {
      axes[axis].cropBegin = (dim - wanted) / 2;
      axes[axis].cropEnd = dim - wanted - axes[axis].cropBegin;
    } else {
      axes[axis].padBegin = (wanted - dim) / 2;
      axes[axis].padEnd = wanted - dim - axes[axis].padBegin;
    }
  }
  return FIRN_CALL_OK;
}

int32_t inferCenterCropPad(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  setRank(call, 0, call->inputs[0].dtype, call->inputs[0].rank);
  FIRN_TRY(requireIntegers(call, 1, "shape", indexTypes));
  PadAxis axes[FIRN_MAX_RANK];
  int64_t dims[FIRN_MAX_RANK];
  FIRN_TRY(centerAxes(call, axes, dims));
  return setChecked(call, 0, call->inputs[0].dtype, dims, call->inputs[0].rank);
}

int32_t runCenterCropPad(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  PadAxis axes[FIRN_MAX_RANK];
  int64_t dims[FIRN_MAX_RANK];
  FIRN_TRY(centerAxes(call, axes, dims));
  fillConstant(*y, nullptr);
  copyKept(*y, call->inputs[0], axes);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Pad, "ai.onnx::Pad", inferPad, runPad)
FIRN_OPERATOR(ai_onnx, CenterCropPad, "ai.onnx::CenterCropPad", inferCenterCropPad, runCenterCropPad)

} // namespace firn::kernels
