// Reading elements at positions that an input names.
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

int64_t elementBytes(const firn_view &view) { return firn_dtype_bits(view.dtype) / 8; }

/// Copies one run of `count` elements; the usual sizes of single elements without a call.
void copyRun(const firn_view &to, int64_t i, const firn_view &from, int64_t j, int64_t count) {
  int64_t bytes = elementBytes(to) * count;
  char *target = static_cast<char *>(to.data);
  const char *source = static_cast<const char *>(from.data);
  if (bytes == 4 && count == 1)
    memcpy(target + 4 * i, source + 4 * j, 4);
  else if (bytes == 8 && count == 1)
    memcpy(target + 8 * i, source + 8 * j, 8);
  else
    copyElements(to, i, from, j, count);
}

// --- Gather ----------------------------------------------------------------------------------------------------------

int32_t inferGather(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, indexTypes));
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), x.rank, &axis));
  int32_t rank = x.rank - 1 + indices.rank;
  if (rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %d axes: at most %d are supported", rank, FIRN_MAX_RANK);
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < rank; ++k)
    dims[k] = k < axis ? x.dims[k] : k < axis + indices.rank ? indices.dims[k - axis] : x.dims[k - indices.rank + 1];
  return setChecked(call, 0, x.dtype, dims, rank);
}

int32_t runGather(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  if (!y)
    return FIRN_CALL_OK;
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), x.rank);
  int64_t outer = extent(x, 0, axis), n = x.dims[axis], inner = extent(x, axis + 1, x.rank);
  int64_t count = elementCount(indices), index;
  for (int64_t k = 0; k < count; ++k)
    FIRN_TRY(checkIndex(call, getInt(indices, k), n, &index));
  for (int64_t o = 0; o < outer && inner > 0; ++o)
    for (int64_t k = 0; k < count; ++k) {
      index = getInt(indices, k);
      copyRun(*y, (o * count + k) * inner, x, (o * n + (index < 0 ? index + n : index)) * inner, inner);
    }
  return FIRN_CALL_OK;
}

// --- GatherElements --------------------------------------------------------------------------------------------------

int32_t inferGatherElements(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, indexTypes));
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), x.rank, &axis));
  bool fits = indices.rank == x.rank;
  for (int32_t k = 0; fits && k < x.rank; ++k)
    fits = k == axis || indices.dims[k] <= x.dims[k];
  if (!fits) {
    char expected[320], found[320];
    return fail(call, FIRN_CALL_INVALID,
                "indices must fit into the input but for axis %d: expected at most %s, found %s", axis,
                shapeText(x, expected, sizeof expected), shapeText(indices, found, sizeof found));
  }
  return setChecked(call, 0, x.dtype, indices.dims, indices.rank);
}

int32_t runGatherElements(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), x.rank);
  int64_t strides[FIRN_MAX_RANK], index[FIRN_MAX_RANK] = {}, position = 0;
  rowMajorStrides(x.dims, x.rank, strides);
  do {
    int64_t chosen, from = 0;
    FIRN_TRY(checkIndex(call, getInt(indices, position), x.dims[axis], &chosen));
    for (int32_t k = 0; k < x.rank; ++k)
      from += (k == axis ? chosen : index[k]) * strides[k];
    copyRun(*y, position++, x, from, 1);
  } while (nextIndex(index, indices.dims, indices.rank));
  return FIRN_CALL_OK;
}

// --- GatherND --------------------------------------------------------------------------------------------------------

int32_t inferGatherND(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, typeSet(FIRN_I64)));
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  int64_t batch = intAttribute(call, "batch_dims", 0);
  if (x.rank < 1 || indices.rank < 1)
    return fail(call, FIRN_CALL_INVALID, "data and indices must have an axis each, found %d and %d", x.rank,
                indices.rank);
  if (batch < 0 || batch >= x.rank || batch >= indices.rank)
    return fail(call, FIRN_CALL_INVALID, "attribute 'batch_dims' must lie in [0, %d), found %lld",
                x.rank < indices.rank ? x.rank : indices.rank, static_cast<long long>(batch));
  for (int32_t k = 0; k < batch; ++k)
    if (x.dims[k] != indices.dims[k])
      return fail(call, FIRN_CALL_INVALID, "batch axis %d of indices must be that of data: expected %lld, found %lld",
                  k, static_cast<long long>(x.dims[k]), static_cast<long long>(indices.dims[k]));
  int64_t depth = indices.dims[indices.rank - 1];
  if (depth < 1 || depth > x.rank - batch)
    return fail(call, FIRN_CALL_INVALID, "the last axis of indices must lie in [1, %lld], found %lld",
                static_cast<long long>(x.rank - batch), static_cast<long long>(depth));
  int32_t kept = x.rank - int32_t(batch) - int32_t(depth), rank = indices.rank - 1 + kept;
  if (rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %d axes: at most %d are supported", rank, FIRN_MAX_RANK);
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < rank; ++k)
    dims[k] = k < indices.rank - 1 ? indices.dims[k] : x.dims[x.rank - rank + k];
  return setChecked(call, 0, x.dtype, dims, rank);
}

int32_t runGatherND(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0], &indices = call->inputs[1];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int32_t batch = int32_t(intAttribute(call, "batch_dims", 0)), depth = int32_t(indices.dims[indices.rank - 1]);
  int64_t run = extent(x, batch + depth, x.rank), item = extent(x, batch, x.rank);
  int64_t tuples = extent(indices, 0, indices.rank - 1), perBatch = extent(indices, batch, indices.rank - 1);
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t from = 0;
    for (int32_t d = 0; d < depth; ++d) {
      int64_t index;
      FIRN_TRY(checkIndex(call, getInt(indices, t * depth + d), x.dims[batch + d], &index));
      from = from * x.dims[batch + d] + index;
    }
    copyRun(*y, t * run, x, t / perBatch * item + from * run, run);
  }
  return FIRN_CALL_OK;
}

// --- Compress --------------------------------------------------------------------------------------------------------

int32_t compressAxis(firn_call *call, bool *flat, int32_t *axis) {
  const firn_view &x = call->inputs[0];
  *flat = !findAttribute(call, "axis");
  *axis = 0;
  return *flat ? int32_t(FIRN_CALL_OK) : checkAxis(call, intAttribute(call, "axis", 0), x.rank, axis);
}

/// Positions beyond the end of the condition are not selected.
int64_t selectedCount(const firn_view &condition, int64_t limit) {
  int64_t selected = 0;
  for (int64_t k = 0; k < elementCount(condition) && k < limit; ++k)
    selected += getInt(condition, k);
  return selected;
}

int32_t inferCompress(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  firn_view result = call->inputs[0];
  bool flat;
  int32_t axis;
  FIRN_TRY(compressAxis(call, &flat, &axis));
  if (flat) {
    result.dims[0] = elementCount(call->inputs[0]);
    result.rank = 1;
  }
  int64_t length = result.dims[axis];
  result.dims[axis] = -1;
  setType(output(call, 0), result.dtype, result.dims, result.rank);
  FIRN_TRY(requireIntegers(call, 1, "condition", boolType));
  result.dims[axis] = selectedCount(call->inputs[1], length);
  return setChecked(call, 0, result.dtype, result.dims, result.rank);
}

int32_t runCompress(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0], &condition = call->inputs[1];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  bool flat;
  int32_t axis;
  FIRN_TRY(compressAxis(call, &flat, &axis));
  int64_t outer = flat ? 1 : extent(x, 0, axis), n = flat ? elementCount(x) : x.dims[axis];
  int64_t inner = flat ? 1 : extent(x, axis + 1, x.rank), position = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n && k < elementCount(condition); ++k)
      if (getInt(condition, k)) {
        copyRun(*y, position, x, (o * n + k) * inner, inner);
        position += inner;
      }
  return FIRN_CALL_OK;
}

// --- ReverseSequence -------------------------------------------------------------------------------------------------

int32_t inferReverseSequence(firn_call *call) {
  setRankLike(call, 0, 0);
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireInput(call, 1, typeSet(FIRN_I64)));
  const firn_view &x = call->inputs[0], &lengths = call->inputs[1];
  int64_t batch = intAttribute(call, "batch_axis", 1), time = intAttribute(call, "time_axis", 0);
  if (x.rank < 2)
    return fail(call, FIRN_CALL_INVALID, "input 0 must have at least 2 axes, found %d", x.rank);
  if (batch < 0 || batch > 1 || time != 1 - batch)
    return fail(call, FIRN_CALL_INVALID,
                "attributes 'batch_axis' and 'time_axis' must be 0 and 1 or 1 and 0, found %lld "
                "and %lld",
                static_cast<long long>(batch), static_cast<long long>(time));
  if (lengths.rank != 1 || lengths.dims[0] != x.dims[batch])
    return fail(call, FIRN_CALL_INVALID,
                "sequence_lens must have one value for each batch element: expected %lld, found "
                "%lld",
                static_cast<long long>(x.dims[batch]), static_cast<long long>(elementCount(lengths)));
  return setChecked(call, 0, x.dtype, x.dims, x.rank);
}

int32_t runReverseSequence(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  bool timeFirst = intAttribute(call, "time_axis", 0) == 0;
  int64_t steps = x.dims[timeFirst ? 0 : 1], batches = x.dims[timeFirst ? 1 : 0], inner = extent(x, 2, x.rank);
  for (int64_t b = 0; b < batches; ++b) {
    int64_t length = getInt(call->inputs[1], b);
    if (length < 0 || length > steps)
      return fail(call, FIRN_CALL_INVALID, "sequence_lens[%lld] must lie in [0, %lld], found %lld",
                  static_cast<long long>(b), static_cast<long long>(steps), static_cast<long long>(length));
    for (int64_t t = 0; t < steps; ++t) {
      int64_t source = t < length ? length - 1 - t : t;
      copyRun(*y, (timeFirst ? t * batches + b : b * steps + t) * inner, x,
              (timeFirst ? source * batches + b : b * steps + source) * inner, inner);
    }
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Gather, "ai.onnx::Gather", inferGather, runGather)
FIRN_OPERATOR(ai_onnx, GatherElements, "ai.onnx::GatherElements", inferGatherElements, runGatherElements)
FIRN_OPERATOR(ai_onnx, GatherND, "ai.onnx::GatherND", inferGatherND, runGatherND)
FIRN_OPERATOR(ai_onnx, Compress, "ai.onnx::Compress", inferCompress, runCompress)
FIRN_OPERATOR(ai_onnx, ReverseSequence, "ai.onnx::ReverseSequence", inferReverseSequence, runReverseSequence)

} // namespace firn::kernels
