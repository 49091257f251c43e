// Shapes as values, and operators that change nothing but a shape.
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

constexpr uint32_t int64Type = typeSet(FIRN_I64);

/// Input 0 under another shape.
int32_t runCopy(firn_call *call) {
  if (const firn_view *y = output(call, 0))
    copyAll(*y, call->inputs[0]);
  return FIRN_CALL_OK;
}

int32_t inferIdentity(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  return setChecked(call, 0, call->inputs[0].dtype, call->inputs[0].dims, call->inputs[0].rank);
}

// --- Shape, Size -----------------------------------------------------------------------------------------------------

/// The slice [start, end) of the axes that Shape returns.
void shapeRange(const firn_call *call, int32_t *start, int32_t *end) {
  int64_t rank = call->inputs[0].rank;
  auto clamped = [&](int64_t axis) {
    axis = axis < 0 ? axis + rank : axis;
    return int32_t(axis < 0 ? 0 : axis > rank ? rank : axis);
  };
  *start = clamped(intAttribute(call, "start", 0));
  *end = clamped(intAttribute(call, "end", rank));
}

int32_t inferShape(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  int32_t start, end;
  shapeRange(call, &start, &end);
  int64_t length = end > start ? end - start : 0;
  return setChecked(call, 0, FIRN_I64, &length, 1);
}

int32_t runShape(firn_call *call) {
  int32_t start, end;
  shapeRange(call, &start, &end);
  if (const firn_view *y = output(call, 0))
    for (int32_t k = start; k < end; ++k)
      static_cast<int64_t *>(y->data)[k - start] = call->inputs[0].dims[k];
  return FIRN_CALL_OK;
}

int32_t inferSize(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  return setChecked(call, 0, FIRN_I64, nullptr, 0);
}

int32_t runSize(firn_call *call) {
  if (const firn_view *y = output(call, 0))
    *static_cast<int64_t *>(y->data) = elementCount(call->inputs[0]);
  return FIRN_CALL_OK;
}

// --- Reshape ---------------------------------------------------------------------------------------------------------

/// Fills in 0 and -1 of a wanted shape.
int32_t resolveShape(firn_call *call, const firn_view &shape, int64_t *dims, int32_t *rank) {
  const firn_view &x = call->inputs[0];
  bool allowZero = intAttribute(call, "allowzero", 0) != 0;
  int64_t count = elementCount(shape);
  if (count > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "shape has %lld axes: at most %d are supported",
                static_cast<long long>(count), FIRN_MAX_RANK);
  *rank = int32_t(count);
  int32_t unknown = -1;
  bool hasZero = false;
  for (int32_t k = 0; k < *rank; ++k) {
    dims[k] = getInt(shape, k);
    hasZero |= dims[k] == 0;
    if (dims[k] < -1)
      return fail(call, FIRN_CALL_INVALID, "shape[%d] must be at least -1, found %lld", k,
                  static_cast<long long>(dims[k]));
    if (dims[k] == -1 && unknown >= 0)
      return fail(call, FIRN_CALL_INVALID, "shape may have one -1, found one at %d and at %d", unknown, k);
    if (dims[k] == -1)
      unknown = k;
    if (dims[k] != 0 || allowZero)
      continue;
    if (k >= x.rank)
      return fail(call, FIRN_CALL_INVALID, "shape[%d] is 0, which copies axis %d of the input, but that has %d axes", k,
                  k, x.rank);
    dims[k] = x.dims[k];
  }
  if (unknown < 0)
    return FIRN_CALL_OK;
  if (allowZero && hasZero)
    return fail(call, FIRN_CALL_INVALID, "shape may not have both 0 and -1 with allowzero");
  // Zeros on both sides cancel, so that a batch of nothing still flattens.
  int64_t known = 1, total = 1;
  int32_t knownZeros = 0, totalZeros = 0;
  for (int32_t k = 0; k < *rank; ++k) {
    knownZeros += dims[k] == 0;
    if (k != unknown && dims[k] != 0 && __builtin_mul_overflow(known, dims[k], &known))
      return fail(call, FIRN_CALL_INVALID, "shape multiplies to more than 2^63 elements");
  }
  for (int32_t k = 0; k < x.rank; ++k) {
    totalZeros += x.dims[k] == 0;
    total *= x.dims[k] ? x.dims[k] : 1;
  }
  dims[unknown] = totalZeros > 0 && knownZeros == 0 ? 0 : total / known;
  return FIRN_CALL_OK;
}

int32_t inferReshape(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireIntegers(call, 1, "shape", int64Type));
  firn_view wanted = call->inputs[0];
  FIRN_TRY(resolveShape(call, call->inputs[1], wanted.dims, &wanted.rank));
  FIRN_TRY(setChecked(call, 0, wanted.dtype, wanted.dims, wanted.rank));
  if (elementCount(wanted) == elementCount(call->inputs[0]))
    return FIRN_CALL_OK;
  char expected[320], found[320];
  return fail(call, FIRN_CALL_INVALID,
              "shape %s must have as many elements as the input: expected %lld (%s), found %lld",
              shapeText(wanted, found, sizeof found), static_cast<long long>(elementCount(call->inputs[0])),
              shapeText(call->inputs[0], expected, sizeof expected), static_cast<long long>(elementCount(wanted)));
}

int32_t inferFlatten(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  const firn_view &x = call->inputs[0];
  int64_t axis = intAttribute(call, "axis", 1);
  if (axis < -x.rank || axis > x.rank)
    return fail(call, FIRN_CALL_INVALID, "axis is out of range: expected [%d, %d], found %lld", -x.rank, x.rank,
                static_cast<long long>(axis));
  int32_t split = int32_t(axis < 0 ? axis + x.rank : axis);
  int64_t dims[2] = {extent(x, 0, split), extent(x, split, x.rank)};
  return setChecked(call, 0, x.dtype, dims, 2);
}

/// Flags of the axes that input 1 lists, which may not repeat.
int32_t listedAxes(firn_call *call, int32_t rank, bool *listed) {
  FIRN_TRY(requireIntegers(call, 1, "axes", int64Type));
  const firn_view &axes = call->inputs[1];
  for (int64_t i = 0; i < elementCount(axes); ++i) {
    int32_t axis;
    FIRN_TRY(checkAxis(call, getInt(axes, i), rank, &axis));
    if (listed[axis])
      return fail(call, FIRN_CALL_INVALID, "axes may not repeat, found %d twice", axis);
    listed[axis] = true;
  }
  return FIRN_CALL_OK;
}

int32_t inferSqueeze(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  const firn_view &x = call->inputs[0];
  bool listed[FIRN_MAX_RANK] = {};
  if (input(call, 1))
    FIRN_TRY(listedAxes(call, x.rank, listed));
  else
    for (int32_t k = 0; k < x.rank; ++k)
      listed[k] = x.dims[k] == 1;
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank = 0;
  for (int32_t k = 0; k < x.rank; ++k) {
    if (!listed[k])
      dims[rank++] = x.dims[k];
    else if (x.dims[k] != 1)
      return fail(call, FIRN_CALL_INVALID, "axis %d cannot be squeezed: expected 1, found %lld", k,
                  static_cast<long long>(x.dims[k]));
  }
  return setChecked(call, 0, x.dtype, dims, rank);
}

int32_t inferUnsqueeze(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireIntegers(call, 1, "axes", int64Type));
  const firn_view &x = call->inputs[0];
  int64_t total = x.rank + elementCount(call->inputs[1]);
  if (total > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %lld axes: at most %d are supported",
                static_cast<long long>(total), FIRN_MAX_RANK);
  int32_t rank = int32_t(total);
  bool listed[FIRN_MAX_RANK] = {};
  FIRN_TRY(listedAxes(call, rank, listed));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0, from = 0; k < rank; ++k)
    dims[k] = listed[k] ? 1 : x.dims[from++];
  return setChecked(call, 0, x.dtype, dims, rank);
}

} // namespace

FIRN_OPERATOR(ai_onnx, Identity, "ai.onnx::Identity", inferIdentity, runCopy)
FIRN_OPERATOR(ai_onnx, Shape, "ai.onnx::Shape", inferShape, runShape)
FIRN_OPERATOR(ai_onnx, Size, "ai.onnx::Size", inferSize, runSize)
FIRN_OPERATOR(ai_onnx, Reshape, "ai.onnx::Reshape", inferReshape, runCopy)
FIRN_OPERATOR(ai_onnx, Flatten, "ai.onnx::Flatten", inferFlatten, runCopy)
FIRN_OPERATOR(ai_onnx, Squeeze, "ai.onnx::Squeeze", inferSqueeze, runCopy)
FIRN_OPERATOR(ai_onnx, Unsqueeze, "ai.onnx::Unsqueeze", inferUnsqueeze, runCopy)

} // namespace firn::kernels
