// Moving elements by bytes: what transposes, slices, concatenations and their like share. No dtype is looked into.
#ifndef FIRN_KERNELS_MOVEMENT_H
#define FIRN_KERNELS_MOVEMENT_H

#include "runtime/kernels/Kernel.h"

namespace firn::kernels {

/// Axes of a copy: twice as many as a tensor has, for copies that split axes.
constexpr int32_t maxCopyRank = 2 * FIRN_MAX_RANK;

/// An N-dimensional copy: element `index` goes from `fromOffset + index . fromStrides` to `toOffset + index .
/// toStrides`, all in elements. Strides may be 0 or negative.
struct StridedCopy {
  int32_t rank = 0;
  int64_t toOffset = 0;
  int64_t fromOffset = 0;
  int64_t dims[maxCopyRank];
  int64_t toStrides[maxCopyRank];
  int64_t fromStrides[maxCopyRank];

  void addAxis(int64_t dim, int64_t toStride, int64_t fromStride) {
    dims[rank] = dim;
    toStrides[rank] = toStride;
    fromStrides[rank++] = fromStride;
  }
  void run(const firn_view &to, const firn_view &from) const;
};

/// Row-major strides of a shape.
void rowMajorStrides(const int64_t *dims, int32_t rank, int64_t *strides);

/// Copies all elements in order.
void copyAll(const firn_view &to, const firn_view &from);

/// Fills `count` elements from `first` on with element 0 of `value`.
void fillElements(const firn_view &to, int64_t first, int64_t count, const firn_view &value);

/// Fails where `axis` is out of [-rank, rank); else `*normal` counts from the front.
int32_t checkAxis(firn_call *call, int64_t axis, int32_t rank, int32_t *normal);

/// Fails where `index` is out of [-dim, dim); else `*normal` counts from the front.
int32_t checkIndex(firn_call *call, int64_t index, int64_t dim, int64_t *normal);

/// Fails unless input `i` is a list of integers (or a single one) that is present with its values, whatever its length.
int32_t requireIntegers(firn_call *call, int32_t i, const char *name, uint32_t dtypes);

} // namespace firn::kernels
#endif
