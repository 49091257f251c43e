#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {

BroadcastLoop::BroadcastLoop(const firn_view &result, Operand *loopOperands, int32_t count)
    : operands(loopOperands), operandCount(count) {
  for (int32_t j = 0; j < count; ++j) {
    broadcastStrides(*operands[j].view, result.dims, result.rank, operands[j].strides);
    operands[j].offset = 0;
  }
  auto mergesWithPrevious = [&](int64_t dim, int32_t axis) {
    for (int32_t j = 0; j < count; ++j)
      if (operands[j].strides[rank - 1] != operands[j].strides[axis] * dim)
        return false;
    return true;
  };
  for (int32_t axis = 0; axis < result.rank; ++axis) {
    int64_t dim = result.dims[axis];
    if (dim == 1)
      continue;
    bool merges = rank > 0 && mergesWithPrevious(dim, axis);
    if (!merges)
      ++rank;
    dims[rank - 1] = merges ? dims[rank - 1] * dim : dim;
    for (int32_t j = 0; j < count; ++j)
      operands[j].strides[rank - 1] = operands[j].strides[axis];
  }
  if (rank > 0)
    rowLength = dims[--rank];
  for (int32_t k = 0; k < rank; ++k)
    rows *= dims[k];
  for (int32_t j = 0; j < count; ++j)
    operands[j].step = rowLength == 1 ? 0 : operands[j].strides[rank];
}

void BroadcastLoop::advance() {
  nextIndex(index, dims, rank);
  for (int32_t j = 0; j < operandCount; ++j) {
    operands[j].offset = 0;
    for (int32_t k = 0; k < rank; ++k)
      operands[j].offset += index[k] * operands[j].strides[k];
  }
}

int32_t inferBroadcast(firn_call *call, int32_t from, int32_t dtype) {
  firn_view shape = call->inputs[from];
  for (int32_t i = from + 1; i < call->input_count; ++i) {
    const firn_view *view = input(call, i);
    if (view && !broadcastDims(shape.dims, shape.rank, view->dims, view->rank, shape.dims, &shape.rank)) {
      char expected[160], found[160];
      return fail(call, FIRN_CALL_INVALID, "input %d does not broadcast: expected a shape that fits %s, found %s", i,
                  shapeText(shape, expected, sizeof expected), shapeText(*view, found, sizeof found));
    }
  }
  return setChecked(call, 0, dtype, shape.dims, shape.rank);
}

} // namespace firn::kernels
