// Writing elements at positions that an input names into a copy of another.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

enum class Combine { Replace, Add, Multiply, Maximum, Minimum };

int32_t combineOf(firn_call *call, Combine *combine) {
  static const char names[][5] = {"none", "add", "mul", "max", "min"};
  for (int32_t k = 0; k < 5; ++k)
    if (stringAttributeIs(call, "reduction", names[k], "none")) {
      *combine = Combine(k);
      bool isNumber = ((numericTypes | boolType) & typeSet(call->inputs[0].dtype)) != 0;
      if (k == 0 || isNumber)
        return FIRN_CALL_OK;
      return fail(call, FIRN_CALL_INVALID, "attribute 'reduction' must be none for elements of type %s, found %s",
                  dtypeName(call->inputs[0].dtype), names[k]);
    }
  return fail(call, FIRN_CALL_INVALID, "attribute 'reduction' must be none, add, mul, max or min");
}

template <typename T> T combined(Combine combine, T a, T b) {
  switch (combine) {
  case Combine::Add:
    return a + b;
  case Combine::Multiply:
    return a * b;
  case Combine::Maximum:
    return larger(a, b);
  case Combine::Minimum:
    return smaller(a, b);
  default:
    return b;
  }
}

template <typename T>
void combineAs(Combine combine, const firn_view &to, int64_t i, const firn_view &from, int64_t j, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    T a, b;
    load(to, i + k, 1, 1, &a);
    load(from, j + k, 1, 1, &b);
    a = combined(combine, a, b);
    store(to, i + k, 1, &a);
  }
}

/// Brings `count` updates into place.
void update(Combine combine, const firn_view &to, int64_t i, const firn_view &from, int64_t j, int64_t count) {
  if (combine == Combine::Replace)
    copyElements(to, i, from, j, count);
  else if (isFloat(to.dtype))
    combineAs<double>(combine, to, i, from, j, count);
  else if (to.dtype == FIRN_U64)
    combineAs<uint64_t>(combine, to, i, from, j, count);
  else
    combineAs<int64_t>(combine, to, i, from, j, count);
}

// --- ScatterElements -------------------------------------------------------------------------------------------------

int32_t inferScatterElements(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, indexTypes));
  FIRN_TRY(requireInput(call, 2, allTypes));
  FIRN_TRY(requireSameType(call, 0, 2));
  Combine combine;
  FIRN_TRY(combineOf(call, &combine));
  const firn_view &x = call->inputs[0], &indices = call->inputs[1], &updates = call->inputs[2];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), x.rank, &axis));
  char expected[320], found[320];
  bool fits = indices.rank == x.rank;
  for (int32_t k = 0; fits && k < x.rank; ++k)
    fits = k == axis || indices.dims[k] <= x.dims[k];
  if (!fits)
    return fail(call, FIRN_CALL_INVALID,
                "indices must fit into the input but for axis %d: expected at most %s, found %s", axis,
                shapeText(x, expected, sizeof expected), shapeText(indices, found, sizeof found));
  if (updates.rank != indices.rank || memcmp(updates.dims, indices.dims, size_t(indices.rank) * sizeof(int64_t)) != 0)
    return fail(call, FIRN_CALL_INVALID, "updates must have the shape of indices: expected %s, found %s",
                shapeText(indices, expected, sizeof expected), shapeText(updates, found, sizeof found));
  return setChecked(call, 0, x.dtype, x.dims, x.rank);
}

int32_t runScatterElements(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &indices = call->inputs[1];
  if (!y)
    return FIRN_CALL_OK;
  copyAll(*y, call->inputs[0]);
  if (elementCount(indices) == 0)
    return FIRN_CALL_OK;
  Combine combine;
  FIRN_TRY(combineOf(call, &combine));
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), y->rank);
  int64_t strides[FIRN_MAX_RANK], index[FIRN_MAX_RANK] = {}, position = 0;
  rowMajorStrides(y->dims, y->rank, strides);
  do {
    int64_t chosen, to = 0;
    FIRN_TRY(checkIndex(call, getInt(indices, position), y->dims[axis], &chosen));
    for (int32_t k = 0; k < y->rank; ++k)
      to += (k == axis ? chosen : index[k]) * strides[k];
    update(combine, *y, to, call->inputs[2], position++, 1);
  } while (nextIndex(index, indices.dims, indices.rank));
  return FIRN_CALL_OK;
}

// --- ScatterND -------------------------------------------------------------------------------------------------------

int32_t inferScatterND(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, typeSet(FIRN_I64)));
  FIRN_TRY(requireInput(call, 2, allTypes));
  FIRN_TRY(requireSameType(call, 0, 2));
  Combine combine;
  FIRN_TRY(combineOf(call, &combine));
  const firn_view &x = call->inputs[0], &indices = call->inputs[1], &updates = call->inputs[2];
  if (x.rank < 1 || indices.rank < 1)
    return fail(call, FIRN_CALL_INVALID, "data and indices must have an axis each, found %d and %d", x.rank,
                indices.rank);
  int64_t depth = indices.dims[indices.rank - 1];
  if (depth < 0 || depth > x.rank)
    return fail(call, FIRN_CALL_INVALID, "the last axis of indices must lie in [0, %d], found %lld", x.rank,
                static_cast<long long>(depth));
  int32_t rank = indices.rank - 1 + x.rank - int32_t(depth);
  bool fits = updates.rank == rank;
  for (int32_t k = 0; fits && k < rank; ++k)
    fits = updates.dims[k] == (k < indices.rank - 1 ? indices.dims[k] : x.dims[x.rank - rank + k]);
  if (!fits) {
    char data[320], positions[320], found[320];
    return fail(call, FIRN_CALL_INVALID,
                "updates must have the leading axes of indices %s and the trailing ones of data "
                "%s: found %s",
                shapeText(indices, positions, sizeof positions), shapeText(x, data, sizeof data),
                shapeText(updates, found, sizeof found));
  }
  return setChecked(call, 0, x.dtype, x.dims, x.rank);
}

int32_t runScatterND(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &indices = call->inputs[1], &updates = call->inputs[2];
  if (!y)
    return FIRN_CALL_OK;
  copyAll(*y, call->inputs[0]);
  if (elementCount(updates) == 0)
    return FIRN_CALL_OK;
  Combine combine;
  FIRN_TRY(combineOf(call, &combine));
  int32_t depth = int32_t(indices.dims[indices.rank - 1]);
  int64_t run = extent(*y, depth, y->rank), tuples = extent(indices, 0, indices.rank - 1);
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t to = 0;
    for (int32_t d = 0; d < depth; ++d) {
      int64_t index;
      FIRN_TRY(checkIndex(call, getInt(indices, t * depth + d), y->dims[d], &index));
      to = to * y->dims[d] + index;
    }
    update(combine, *y, to * run, updates, t * run, run);
  }
  return FIRN_CALL_OK;
}

// --- TensorScatter ---------------------------------------------------------------------------------------------------

int32_t inferTensorScatter(firn_call *call) {
  setRankLike(call, 0, 0);
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, allTypes));
  FIRN_TRY(requireSameType(call, 0, 1));
  const firn_view &cache = call->inputs[0], &updates = call->inputs[1];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", -2), cache.rank, &axis));
  if (axis == 0)
    return fail(call, FIRN_CALL_INVALID, "attribute 'axis' must not be the batch axis 0");
  if (!stringAttributeIs(call, "mode", "linear", "linear") && !stringAttributeIs(call, "mode", "circular", "linear"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'mode' must be linear or circular");
  bool fits = updates.rank == cache.rank;
  for (int32_t k = 0; fits && k < cache.rank; ++k)
    fits = k == axis ? updates.dims[k] <= cache.dims[k] : updates.dims[k] == cache.dims[k];
  if (!fits) {
    char expected[320], found[320];
    return fail(call, FIRN_CALL_INVALID,
                "update must have the shape of past_cache but for a shorter axis %d: expected %s, "
                "found %s",
                axis, shapeText(cache, expected, sizeof expected), shapeText(updates, found, sizeof found));
  }
  if (input(call, 2)) {
    FIRN_TRY(requireInput(call, 2, typeSet(FIRN_I64)));
    if (call->inputs[2].rank != 1 || call->inputs[2].dims[0] != cache.dims[0])
      return fail(call, FIRN_CALL_INVALID,
                  "write_indices must have one value for each batch element: expected %lld, "
                  "found %lld",
                  static_cast<long long>(cache.dims[0]), static_cast<long long>(elementCount(call->inputs[2])));
  }
  return setChecked(call, 0, cache.dtype, cache.dims, cache.rank);
}

int32_t runTensorScatter(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &updates = call->inputs[1], *starts = input(call, 2);
  if (!y)
    return FIRN_CALL_OK;
  copyAll(*y, call->inputs[0]);
  if (elementCount(updates) == 0)
    return FIRN_CALL_OK;
  bool circular = stringAttributeIs(call, "mode", "circular", "linear");
  int32_t axis = normalizeAxis(intAttribute(call, "axis", -2), y->rank);
  int64_t batches = y->dims[0], perBatch = extent(*y, 1, axis), inner = extent(*y, axis + 1, y->rank);
  int64_t longest = y->dims[axis], length = updates.dims[axis];
  for (int64_t b = 0; b < batches; ++b) {
    int64_t start = starts ? getInt(*starts, b) : 0;
    if (start < 0 || (!circular && start > longest - length))
      return fail(call, FIRN_CALL_INVALID, "write_indices[%lld] must lie in [0, %lld], found %lld",
                  static_cast<long long>(b), static_cast<long long>(longest - length), static_cast<long long>(start));
    for (int64_t p = b * perBatch; p < (b + 1) * perBatch; ++p)
      for (int64_t t = 0; t < length; ++t)
        copyElements(*y, (p * longest + (start % longest + t) % longest) * inner, updates, (p * length + t) * inner,
                     inner);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Scatter, "ai.onnx::Scatter", inferScatterElements, runScatterElements)
FIRN_OPERATOR(ai_onnx, ScatterElements, "ai.onnx::ScatterElements", inferScatterElements, runScatterElements)
FIRN_OPERATOR(ai_onnx, ScatterND, "ai.onnx::ScatterND", inferScatterND, runScatterND)
FIRN_OPERATOR(ai_onnx, TensorScatter, "ai.onnx::TensorScatter", inferTensorScatter, runTensorScatter)

} // namespace firn::kernels
