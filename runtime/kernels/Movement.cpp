// Operators whose output is a rearrangement of their inputs, known from shapes and attributes alone.
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

constexpr uint32_t int64Type = typeSet(FIRN_I64);

// --- Transpose -------------------------------------------------------------------------------------------------------

int32_t permutation(firn_call *call, int32_t *perm) {
  int32_t rank = call->inputs[0].rank;
  int64_t count;
  const int64_t *given = intsAttribute(call, "perm", &count);
  if (given && count != rank)
    return fail(call, FIRN_CALL_INVALID, "perm must list every axis: expected %d, found %lld", rank,
                static_cast<long long>(count));
  bool seen[FIRN_MAX_RANK] = {};
  for (int32_t k = 0; k < rank; ++k) {
    perm[k] = rank - 1 - k;
    if (!given)
      continue;
    FIRN_TRY(checkAxis(call, given[k], rank, &perm[k]));
    if (seen[perm[k]])
      return fail(call, FIRN_CALL_INVALID, "perm must list every axis once, found %d twice", perm[k]);
    seen[perm[k]] = true;
  }
  return FIRN_CALL_OK;
}

int32_t inferTranspose(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  const firn_view &x = call->inputs[0];
  int32_t perm[FIRN_MAX_RANK];
  FIRN_TRY(permutation(call, perm));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k)
    dims[k] = x.dims[perm[k]];
  return setChecked(call, 0, x.dtype, dims, x.rank);
}

int32_t runTranspose(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int32_t perm[FIRN_MAX_RANK];
  FIRN_TRY(permutation(call, perm));
  int64_t toStrides[FIRN_MAX_RANK], fromStrides[FIRN_MAX_RANK];
  rowMajorStrides(y->dims, y->rank, toStrides);
  rowMajorStrides(call->inputs[0].dims, y->rank, fromStrides);
  StridedCopy copy;
  for (int32_t k = 0; k < y->rank; ++k)
    copy.addAxis(y->dims[k], toStrides[k], fromStrides[perm[k]]);
  copy.run(*y, call->inputs[0]);
  return FIRN_CALL_OK;
}

// --- Expand, Tile ----------------------------------------------------------------------------------------------------

int32_t inferExpand(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireIntegers(call, 1, "shape", int64Type));
  const firn_view &x = call->inputs[0], &shape = call->inputs[1];
  firn_view wanted = shape;
  if (elementCount(shape) > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "shape has %lld axes: at most %d are supported",
                static_cast<long long>(elementCount(shape)), FIRN_MAX_RANK);
  wanted.rank = int32_t(elementCount(shape));
  for (int32_t k = 0; k < wanted.rank; ++k) {
    wanted.dims[k] = getInt(shape, k);
    if (wanted.dims[k] < 0)
      return fail(call, FIRN_CALL_INVALID, "shape[%d] must not be negative, found %lld", k,
                  static_cast<long long>(wanted.dims[k]));
  }
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank;
  if (!broadcastDims(x.dims, x.rank, wanted.dims, wanted.rank, dims, &rank)) {
    char expected[320], found[320];
    return fail(call, FIRN_CALL_INVALID,
                "shape does not broadcast with the input: expected a shape that fits %s, found %s",
                shapeText(x, expected, sizeof expected), shapeText(wanted, found, sizeof found));
  }
  return setChecked(call, 0, x.dtype, dims, rank);
}

int32_t runExpand(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int64_t toStrides[FIRN_MAX_RANK], fromStrides[FIRN_MAX_RANK];
  rowMajorStrides(y->dims, y->rank, toStrides);
  broadcastStrides(call->inputs[0], y->dims, y->rank, fromStrides);
  StridedCopy copy;
  for (int32_t k = 0; k < y->rank; ++k)
    copy.addAxis(y->dims[k], toStrides[k], fromStrides[k]);
  copy.run(*y, call->inputs[0]);
  return FIRN_CALL_OK;
}

int32_t inferTile(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireIntegers(call, 1, "repeats", int64Type));
  const firn_view &x = call->inputs[0], &repeats = call->inputs[1];
  if (elementCount(repeats) != x.rank)
    return fail(call, FIRN_CALL_INVALID, "repeats must have one value for each axis: expected %d, found %lld", x.rank,
                static_cast<long long>(elementCount(repeats)));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k) {
    int64_t count = getInt(repeats, k);
    if (count < 0)
      return fail(call, FIRN_CALL_INVALID, "repeats[%d] must not be negative, found %lld", k,
                  static_cast<long long>(count));
    if (__builtin_mul_overflow(x.dims[k], count, &dims[k]))
      return fail(call, FIRN_CALL_INVALID, "repeats[%d] is too large: found %lld", k, static_cast<long long>(count));
  }
  return setChecked(call, 0, x.dtype, dims, x.rank);
}

/// Each axis becomes two: the repeats, which stand still in the input, and the axis itself.
int32_t runTile(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int64_t toStrides[FIRN_MAX_RANK], fromStrides[FIRN_MAX_RANK];
  rowMajorStrides(y->dims, y->rank, toStrides);
  rowMajorStrides(x.dims, x.rank, fromStrides);
  StridedCopy copy;
  for (int32_t k = 0; k < y->rank; ++k) {
    copy.addAxis(y->dims[k] / x.dims[k], toStrides[k] * x.dims[k], 0);
    copy.addAxis(x.dims[k], toStrides[k], fromStrides[k]);
  }
  copy.run(*y, x);
  return FIRN_CALL_OK;
}

// --- Concat, Split ---------------------------------------------------------------------------------------------------

int32_t inferConcat(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  firn_view result = call->inputs[0];
  if (!findAttribute(call, "axis"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'axis' is missing");
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), result.rank, &axis));
  for (int32_t i = 1; i < call->input_count; ++i) {
    FIRN_TRY(requireInput(call, i, allTypes));
    FIRN_TRY(requireSameType(call, 0, i));
    const firn_view &x = call->inputs[i];
    bool fits = x.rank == result.rank;
    for (int32_t k = 0; fits && k < x.rank; ++k)
      fits = k == axis || x.dims[k] == result.dims[k];
    if (!fits) {
      char expected[320], found[320];
      return fail(call, FIRN_CALL_INVALID,
                  "input %d must have the shape of input 0 but for axis %d: expected %s, found %s", i, axis,
                  shapeText(call->inputs[0], expected, sizeof expected), shapeText(x, found, sizeof found));
    }
    if (__builtin_add_overflow(result.dims[axis], x.dims[axis], &result.dims[axis]))
      return fail(call, FIRN_CALL_INVALID, "axis %d would be longer than 2^63", axis);
  }
  return setChecked(call, 0, result.dtype, result.dims, result.rank);
}

/// Copies between `part` and the stretch of `whole` that starts at `start` on `axis`.
void copyStretch(const firn_view &to, const firn_view &from, const firn_view &part, const firn_view &whole,
                 int32_t axis, int64_t start) {
  int64_t inner = extent(whole, axis + 1, whole.rank);
  bool gathers = &to == &whole;
  int64_t wholeStride = whole.dims[axis] * inner, partStride = part.dims[axis] * inner;
  StridedCopy copy;
  copy.addAxis(extent(whole, 0, axis), gathers ? wholeStride : partStride, gathers ? partStride : wholeStride);
  copy.addAxis(part.dims[axis] * inner, 1, 1);
  (gathers ? copy.toOffset : copy.fromOffset) = start * inner;
  copy.run(to, from);
}

int32_t runConcat(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), y->rank);
  int64_t start = 0;
  for (int32_t i = 0; i < call->input_count; ++i) {
    copyStretch(*y, call->inputs[i], call->inputs[i], *y, axis, start);
    start += call->inputs[i].dims[axis];
  }
  return FIRN_CALL_OK;
}

/// Length of part `i` along the axis.
int64_t partLength(const firn_call *call, int32_t axis, int32_t i) {
  if (const firn_view *split = input(call, 1))
    return getInt(*split, i);
  int64_t n = call->inputs[0].dims[axis], chunk = (n + call->output_count - 1) / call->output_count;
  int64_t left = n - chunk * i;
  return left < 0 ? 0 : left < chunk ? left : chunk;
}

int32_t inferSplit(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  const firn_view &x = call->inputs[0];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), x.rank, &axis));
  int64_t parts = call->output_count;
  if (input(call, 1)) {
    FIRN_TRY(requireIntegers(call, 1, "split", int64Type));
    parts = elementCount(call->inputs[1]);
  } else {
    parts = intAttribute(call, "num_outputs", parts);
  }
  if (parts != call->output_count)
    return fail(call, FIRN_CALL_INVALID, "the number of parts must be that of the outputs: expected %d, found %lld",
                call->output_count, static_cast<long long>(parts));
  firn_view part = x;
  int64_t total = 0;
  for (int32_t i = 0; i < call->output_count; ++i) {
    part.dims[axis] = partLength(call, axis, i);
    if (part.dims[axis] < 0 || part.dims[axis] > x.dims[axis] - total)
      return fail(call, FIRN_CALL_INVALID, "split[%d] must lie in [0, %lld], what is left of axis %d: found %lld", i,
                  static_cast<long long>(x.dims[axis] - total), axis, static_cast<long long>(part.dims[axis]));
    total += part.dims[axis];
    FIRN_TRY(setChecked(call, i, x.dtype, part.dims, part.rank));
  }
  if (total != x.dims[axis])
    return fail(call, FIRN_CALL_INVALID, "the parts must add up to axis %d: expected %lld, found %lld", axis,
                static_cast<long long>(x.dims[axis]), static_cast<long long>(total));
  return FIRN_CALL_OK;
}

int32_t runSplit(firn_call *call) {
  const firn_view &x = call->inputs[0];
  int32_t axis = normalizeAxis(intAttribute(call, "axis", 0), x.rank);
  int64_t start = 0;
  for (int32_t i = 0; i < call->output_count; ++i) {
    if (const firn_view *y = output(call, i))
      copyStretch(*y, x, *y, x, axis, start);
    start += partLength(call, axis, i);
  }
  return FIRN_CALL_OK;
}

// --- Slice -----------------------------------------------------------------------------------------------------------

struct SliceAxis {
  int64_t start = 0, step = 1, count;
};

/// First element, step and number of elements of axis `dim`, by the specification's clamping.
SliceAxis sliceAxis(int64_t dim, int64_t start, int64_t end, int64_t step) {
  auto clamped = [&](int64_t value, int64_t low, int64_t high) {
    value = value < 0 ? value + dim : value;
    return value < low ? low : value > high ? high : value;
  };
  if (dim == 0)
    return {0, step, 0};
  SliceAxis axis;
  axis.step = step;
  int64_t length; // of the range walked over
  if (step > 0) {
    axis.start = clamped(start, 0, dim);
    length = clamped(end, 0, dim) - axis.start;
  } else {
    axis.start = clamped(start, 0, dim - 1);
    length = axis.start - clamped(end, -1, dim - 1);
  }
  uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  axis.count = length > 0 ? int64_t((uint64_t(length) - 1) / stride + 1) : 0;
  return axis;
}

int32_t sliceAxes(firn_call *call, SliceAxis *slices) {
  const firn_view &x = call->inputs[0], &starts = call->inputs[1], &ends = call->inputs[2];
  const firn_view *axes = input(call, 3), *steps = input(call, 4);
  int64_t count = elementCount(starts);
  if (elementCount(ends) != count || (axes && elementCount(*axes) != count) || (steps && elementCount(*steps) != count))
    return fail(call, FIRN_CALL_INVALID,
                "starts, ends, axes and steps must have the same length: found %lld, %lld, %lld, "
                "%lld",
                static_cast<long long>(count), static_cast<long long>(elementCount(ends)),
                static_cast<long long>(axes ? elementCount(*axes) : count),
                static_cast<long long>(steps ? elementCount(*steps) : count));
  if (count > x.rank)
    return fail(call, FIRN_CALL_INVALID,
                "starts must have at most one value for each axis: expected up to %d, found %lld", x.rank,
                static_cast<long long>(count));
  bool sliced[FIRN_MAX_RANK] = {};
  for (int32_t k = 0; k < x.rank; ++k)
    slices[k].count = x.dims[k];
  for (int64_t i = 0; i < count; ++i) {
    int32_t axis;
    FIRN_TRY(checkAxis(call, axes ? getInt(*axes, i) : i, x.rank, &axis));
    if (sliced[axis])
      return fail(call, FIRN_CALL_INVALID, "axes may not repeat, found %d twice", axis);
    sliced[axis] = true;
    int64_t step = steps ? getInt(*steps, i) : 1;
    if (step == 0)
      return fail(call, FIRN_CALL_INVALID, "steps[%lld] must not be 0", static_cast<long long>(i));
    slices[axis] = sliceAxis(x.dims[axis], getInt(starts, i), getInt(ends, i), step);
  }
  return FIRN_CALL_OK;
}

int32_t inferSlice(firn_call *call) {
  static const char names[][8] = {"data", "starts", "ends", "axes", "steps"};
  FIRN_TRY(requireInput(call, 0, allTypes));
  for (int32_t i = 1; i <= 4; ++i)
    if (i <= 2 || input(call, i))
      FIRN_TRY(requireIntegers(call, i, names[i], indexTypes));
  const firn_view &x = call->inputs[0];
  SliceAxis slices[FIRN_MAX_RANK];
  FIRN_TRY(sliceAxes(call, slices));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k)
    dims[k] = slices[k].count;
  return setChecked(call, 0, x.dtype, dims, x.rank);
}

int32_t runSlice(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  SliceAxis slices[FIRN_MAX_RANK];
  FIRN_TRY(sliceAxes(call, slices));
  int64_t toStrides[FIRN_MAX_RANK], fromStrides[FIRN_MAX_RANK];
  rowMajorStrides(y->dims, y->rank, toStrides);
  rowMajorStrides(x.dims, x.rank, fromStrides);
  StridedCopy copy;
  for (int32_t k = 0; k < x.rank; ++k) {
    copy.fromOffset += slices[k].start * fromStrides[k];
    // A step longer than the axis takes one element; its product with the stride might overflow.
    copy.addAxis(slices[k].count, toStrides[k], slices[k].count > 1 ? slices[k].step * fromStrides[k] : 0);
  }
  copy.run(*y, x);
  return FIRN_CALL_OK;
}

// --- DepthToSpace, SpaceToDepth --------------------------------------------------------------------------------------

int32_t blockOf(firn_call *call, int64_t *block) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  *block = intAttribute(call, "blocksize", 0);
  if (call->inputs[0].rank != 4)
    return fail(call, FIRN_CALL_INVALID, "input 0 must have 4 axes, found %d", call->inputs[0].rank);
  if (*block < 1 || *block > 1 << 20)
    return fail(call, FIRN_CALL_INVALID, "attribute 'blocksize' must be positive, found %lld",
                static_cast<long long>(*block));
  if (!stringAttributeIs(call, "mode", "DCR", "DCR") && !stringAttributeIs(call, "mode", "CRD", "DCR"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'mode' must be DCR or CRD");
  return FIRN_CALL_OK;
}

int32_t inferDepthToSpace(firn_call *call) {
  int64_t block;
  FIRN_TRY(blockOf(call, &block));
  const int64_t *x = call->inputs[0].dims;
  if (x[1] % (block * block) != 0)
    return fail(call, FIRN_CALL_INVALID, "channels must be a multiple of blocksize^2 (%lld), found %lld",
                static_cast<long long>(block * block), static_cast<long long>(x[1]));
  int64_t dims[4] = {x[0], x[1] / (block * block)};
  if (__builtin_mul_overflow(x[2], block, &dims[2]) || __builtin_mul_overflow(x[3], block, &dims[3]))
    return fail(call, FIRN_CALL_INVALID, "attribute 'blocksize' is too large: found %lld",
                static_cast<long long>(block));
  return setChecked(call, 0, call->inputs[0].dtype, dims, 4);
}

int32_t inferSpaceToDepth(firn_call *call) {
  int64_t block;
  FIRN_TRY(blockOf(call, &block));
  const int64_t *x = call->inputs[0].dims;
  if (x[2] % block != 0 || x[3] % block != 0)
    return fail(call, FIRN_CALL_INVALID, "height and width must be multiples of blocksize (%lld), found %lld and %lld",
                static_cast<long long>(block), static_cast<long long>(x[2]), static_cast<long long>(x[3]));
  int64_t dims[4] = {x[0], 0, x[2] / block, x[3] / block};
  if (__builtin_mul_overflow(x[1], block * block, &dims[1]))
    return fail(call, FIRN_CALL_INVALID, "attribute 'blocksize' is too large: found %lld",
                static_cast<long long>(block));
  return setChecked(call, 0, call->inputs[0].dtype, dims, 4);
}

/// The correspondence of both operators, between a deep tensor [n, channels of blocks, h, w] and a wide one
/// [n, channels, h * block, w * block].
void moveBlocks(firn_call *call, const firn_view &deep, const firn_view &wide, bool toWide) {
  int64_t block = wide.dims[2] / deep.dims[2], channels = wide.dims[1];
  int64_t h = deep.dims[2], w = deep.dims[3];
  bool blockFirst =
      stringAttributeIs(call, "mode", "DCR", "DCR"); // [block, block, channel] else [channel, block, block]
  int64_t deepChannel = blockFirst ? h * w : block * block * h * w;
  int64_t deepRow = (blockFirst ? block * channels : block) * h * w, deepColumn = (blockFirst ? channels : 1) * h * w;
  int64_t wideRow = w * block, wideChannel = h * block * wideRow;
  StridedCopy copy;
  auto add = [&](int64_t dim, int64_t deepStride, int64_t wideStride) {
    copy.addAxis(dim, toWide ? wideStride : deepStride, toWide ? deepStride : wideStride);
  };
  add(wide.dims[0], channels * block * block * h * w, channels * wideChannel);
  add(channels, deepChannel, wideChannel);
  add(h, w, block * wideRow);
  add(block, deepRow, wideRow);
  add(w, 1, block);
  add(block, deepColumn, 1);
  copy.run(toWide ? wide : deep, toWide ? deep : wide);
}

int32_t runDepthToSpace(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (y && elementCount(*y) > 0)
    moveBlocks(call, call->inputs[0], *y, true);
  return FIRN_CALL_OK;
}

int32_t runSpaceToDepth(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (y && elementCount(*y) > 0)
    moveBlocks(call, *y, call->inputs[0], false);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Transpose, "ai.onnx::Transpose", inferTranspose, runTranspose)
FIRN_OPERATOR(ai_onnx, Expand, "ai.onnx::Expand", inferExpand, runExpand)
FIRN_OPERATOR(ai_onnx, Tile, "ai.onnx::Tile", inferTile, runTile)
FIRN_OPERATOR(ai_onnx, Concat, "ai.onnx::Concat", inferConcat, runConcat)
FIRN_OPERATOR(ai_onnx, Split, "ai.onnx::Split", inferSplit, runSplit)
FIRN_OPERATOR(ai_onnx, Slice, "ai.onnx::Slice", inferSlice, runSlice)
FIRN_OPERATOR(ai_onnx, DepthToSpace, "ai.onnx::DepthToSpace", inferDepthToSpace, runDepthToSpace)
FIRN_OPERATOR(ai_onnx, SpaceToDepth, "ai.onnx::SpaceToDepth", inferSpaceToDepth, runSpaceToDepth)

} // namespace firn::kernels
