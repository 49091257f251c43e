// SplitToSequence and ConcatFromSequence: between tensors and sequences of them.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

// --- SplitToSequence -------------------------------------------------------------------------------------------------

namespace {

struct Split {
  const firn_view *x, *sizes;
  int32_t axis;
  bool keepsAxis;
  int64_t length() const { return x->dims[axis]; }
};

int32_t readSplit(firn_call *call, Split *split) {
  FIRN_TRY(requireInput(call, 0, "input", allTypes, &split->x));
  FIRN_TRY(optionalInput(call, 1, "split", indexTypes, &split->sizes));
  split->axis = normalizeAxis(intAttribute(call, "axis", 0), split->x->rank);
  if (split->axis < 0)
    return fail(call, FIRN_CALL_INVALID, "axis %lld is outside of input of rank %d",
                static_cast<long long>(intAttribute(call, "axis", 0)), split->x->rank);
  if (split->sizes && split->sizes->rank > 1)
    return fail(call, FIRN_CALL_INVALID, "split must have rank 0 or 1, found %d", split->sizes->rank);
  split->keepsAxis = split->sizes || intAttribute(call, "keepdims", 1) != 0;
  return FIRN_CALL_OK;
}

// Appends the piece [first, first + size) of the axis.
int32_t appendPiece(firn_call *call, const Split &split, int64_t first, int64_t size) {
  const firn_view &x = *split.x;
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < x.rank; ++d)
    if (d != split.axis || split.keepsAxis)
      dims[rank++] = d == split.axis ? size : x.dims[d];
  const firn_view *piece = call->append(call, &call->outputs[0], x.dtype, dims, rank);
  if (!piece)
    return FIRN_CALL_NO_MEMORY;
  int64_t outer = extent(x, 0, split.axis), inner = extent(x, split.axis + 1, x.rank);
  for (int64_t o = 0; o < outer; ++o)
    copyElements(*piece, o * size * inner, x, (o * split.length() + first) * inner, size * inner);
  return FIRN_CALL_OK;
}

} // namespace

int32_t inferSplitToSequence(firn_call *call) {
  Split split;
  FIRN_TRY(readSplit(call, &split));
  if (firn_view *out = output(call, 0)) {
    const int64_t list[] = {-1, FIRN_FORM_SEQUENCE, split.x->dtype, FIRN_DTYPE_NONE, split.x->rank - !split.keepsAxis};
    out->dtype = FIRN_LIST;
    out->rank = 1;
    memcpy(out->dims, list, sizeof list);
  }
  return FIRN_CALL_OK;
}

int32_t runSplitToSequence(firn_call *call) {
  Split split;
  FIRN_TRY(readSplit(call, &split));
  int64_t length = split.length();
  if (split.sizes && split.sizes->rank == 1) {
    int64_t sum = 0;
    for (int64_t i = 0; i < elementCount(*split.sizes); ++i) {
      int64_t size = getInt(*split.sizes, i);
      if (size < 0 || size > length - sum)
        return fail(call, FIRN_CALL_INVALID, "split must add up to %lld, the length of axis %d; entry %lld is %lld",
                    static_cast<long long>(length), split.axis, static_cast<long long>(i),
                    static_cast<long long>(size));
      FIRN_TRY(appendPiece(call, split, sum, size));
      sum += size;
    }
    return sum == length ? FIRN_CALL_OK
                         : fail(call, FIRN_CALL_INVALID, "split must add up to %lld, the length of axis %d, found %lld",
                                static_cast<long long>(length), split.axis, static_cast<long long>(sum));
  }
  int64_t size = split.sizes ? getInt(*split.sizes, 0) : 1;
  if (size <= 0)
    return fail(call, FIRN_CALL_INVALID, "split must be positive, found %lld", static_cast<long long>(size));
  for (int64_t first = 0; first < length; first += size)
    FIRN_TRY(appendPiece(call, split, first, size < length - first ? size : length - first));
  return FIRN_CALL_OK;
}

// --- ConcatFromSequence ----------------------------------------------------------------------------------------------

int32_t inferConcatFromSequence(firn_call *call) {
  const firn_view *list = input(call, 0);
  if (!list || list->dtype != FIRN_LIST)
    return fail(call, FIRN_CALL_INVALID, "input 0 must be a sequence");
  const firn_view *first = call->item(call, list, 0);
  if (!first)
    return fail(call, FIRN_CALL_INVALID, "the sequence has no tensors, so that the result has no shape");
  bool isNew = intAttribute(call, "new_axis", 0) != 0;
  int32_t rank = first->rank + isNew, axis = normalizeAxis(intAttribute(call, "axis", 0), rank);
  if (axis < 0 || rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_INVALID, "axis %lld is outside of a result of rank %d",
                static_cast<long long>(intAttribute(call, "axis", 0)), rank);
  int64_t length = 0;
  for (int64_t i = 0; const firn_view *part = call->item(call, list, i); ++i) {
    bool fits = part->dtype == first->dtype && part->rank == first->rank;
    for (int32_t d = 0; fits && d < part->rank; ++d)
      fits = part->dims[d] == first->dims[d] || (d == axis && !isNew);
    if (!fits)
      return fail(call, FIRN_CALL_INVALID, "tensor %lld of the sequence is %s %s, which does not fit to %s %s",
                  static_cast<long long>(i), dtypeName(part->dtype), describe(*part).text, dtypeName(first->dtype),
                  describe(*first).text);
    length += isNew ? 1 : part->dims[axis];
  }
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t d = 0; d < rank; ++d)
    dims[d] = d == axis ? length : first->dims[d - (isNew && d > axis)];
  return setChecked(call, 0, first->dtype, dims, rank);
}

int32_t runConcatFromSequence(firn_call *call) {
  const firn_view &list = call->inputs[0], &out = call->outputs[0];
  bool isNew = intAttribute(call, "new_axis", 0) != 0;
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), out.rank);
  int64_t outer = extent(out, 0, axis), inner = extent(out, axis + 1, out.rank), at = 0;
  for (int64_t i = 0; const firn_view *part = call->item(call, &list, i); ++i) {
    int64_t length = isNew ? 1 : part->dims[axis];
    for (int64_t o = 0; o < outer; ++o)
      copyElements(out, (o * out.dims[axis] + at) * inner, *part, o * length * inner, length * inner);
    at += length;
  }
  return FIRN_CALL_OK;
}

FIRN_OPERATOR(ai_onnx, SplitToSequence, "ai.onnx::SplitToSequence", inferSplitToSequence, runSplitToSequence)
FIRN_OPERATOR(ai_onnx, ConcatFromSequence, "ai.onnx::ConcatFromSequence", inferConcatFromSequence,
              runConcatFromSequence)

} // namespace firn::kernels
