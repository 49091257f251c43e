#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

struct Bytes16 {
  uint64_t words[2];
};

template <typename T>
void copyRow(void *to, int64_t i, int64_t toStride, const void *from, int64_t j, int64_t fromStride, int64_t count) {
  T *target = static_cast<T *>(to) + i;
  const T *source = static_cast<const T *>(from) + j;
  if (toStride == 1 && fromStride == 1) {
    memcpy(target, source, size_t(count) * sizeof(T));
    return;
  }
  for (int64_t k = 0; k < count; ++k)
    target[k * toStride] = source[k * fromStride];
}

void copyPackedRow(const firn_view &to, int64_t i, int64_t toStride, const firn_view &from, int64_t j,
                   int64_t fromStride, int64_t count) {
  int32_t bits = firn_dtype_bits(to.dtype);
  for (int64_t k = 0; k < count; ++k)
    setPacked(to, i + k * toStride, bits, getPacked(from, j + k * fromStride, bits));
}

} // namespace

void StridedCopy::run(const firn_view &to, const firn_view &from) const {
  // Axes of one element go; neighbours that both sides cross in one stride merge, so that rows are long.
  StridedCopy merged;
  for (int32_t k = 0; k < rank; ++k) {
    if (dims[k] == 0)
      return;
    if (dims[k] == 1)
      continue;
    int32_t last = merged.rank - 1;
    if (last >= 0 && merged.toStrides[last] == dims[k] * toStrides[k] &&
        merged.fromStrides[last] == dims[k] * fromStrides[k]) {
      merged.dims[last] *= dims[k];
      merged.toStrides[last] = toStrides[k];
      merged.fromStrides[last] = fromStrides[k];
    } else {
      merged.addAxis(dims[k], toStrides[k], fromStrides[k]);
    }
  }
  if (merged.rank == 0)
    merged.addAxis(1, 1, 1);
  int32_t row = merged.rank - 1;
  int64_t count = merged.dims[row], toStride = merged.toStrides[row], fromStride = merged.fromStrides[row];
  int32_t bits = firn_dtype_bits(to.dtype);
  int64_t index[maxCopyRank] = {};
  int64_t i = toOffset, j = fromOffset;
  while (true) {
    switch (bits) {
    case 8:
      copyRow<uint8_t>(to.data, i, toStride, from.data, j, fromStride, count);
      break;
    case 16:
      copyRow<uint16_t>(to.data, i, toStride, from.data, j, fromStride, count);
      break;
    case 32:
      copyRow<uint32_t>(to.data, i, toStride, from.data, j, fromStride, count);
      break;
    case 64:
      copyRow<uint64_t>(to.data, i, toStride, from.data, j, fromStride, count);
      break;
    case 128:
      copyRow<Bytes16>(to.data, i, toStride, from.data, j, fromStride, count);
      break;
    default:
      copyPackedRow(to, i, toStride, from, j, fromStride, count);
    }
    int32_t k = row - 1;
    for (; k >= 0; --k) {
      i += merged.toStrides[k];
      j += merged.fromStrides[k];
      if (++index[k] < merged.dims[k])
        break;
      i -= merged.toStrides[k] * merged.dims[k];
      j -= merged.fromStrides[k] * merged.dims[k];
      index[k] = 0;
    }
    if (k < 0)
      return;
  }
}

void rowMajorStrides(const int64_t *dims, int32_t rank, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    strides[k] = stride;
    stride *= dims[k];
  }
}

void copyAll(const firn_view &to, const firn_view &from) {
  if (int64_t count = elementCount(to))
    copyElements(to, 0, from, 0, count);
}

void fillElements(const firn_view &to, int64_t first, int64_t count, const firn_view &value) {
  StridedCopy copy;
  copy.toOffset = first;
  copy.addAxis(count, 1, 0);
  copy.run(to, value);
}

int32_t checkAxis(firn_call *call, int64_t axis, int32_t rank, int32_t *normal) {
  *normal = normalizeAxis(axis, rank);
  if (*normal >= 0)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "axis is out of range: expected [%d, %d), found %lld", -rank, rank,
              static_cast<long long>(axis));
}

int32_t checkIndex(firn_call *call, int64_t index, int64_t dim, int64_t *normal) {
  *normal = index < 0 ? index + dim : index;
  if (*normal >= 0 && *normal < dim)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "index is out of range: expected [%lld, %lld), found %lld",
              static_cast<long long>(-dim), static_cast<long long>(dim), static_cast<long long>(index));
}

int32_t requireIntegers(firn_call *call, int32_t i, const char *name, uint32_t dtypes) {
  FIRN_TRY(requireInput(call, i, dtypes));
  const firn_view &view = call->inputs[i];
  if (view.rank > 1) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "%s must be a list: expected one axis, found shape %s", name,
                shapeText(view, found, sizeof found));
  }
  return requireValue(call, i);
}

} // namespace firn::kernels
