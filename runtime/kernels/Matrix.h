// Matrix products for reference kernels: sums of products in double, or in wrapping 64-bit integers, in index order.
#ifndef FIRN_KERNELS_MATRIX_H
#define FIRN_KERNELS_MATRIX_H

#include "runtime/kernels/Require.h"

namespace firn::kernels {

/// A matrix inside a tensor: element (row, column) is element first + row * rowStride + column * columnStride.
/// `zeros`: what is subtracted from each element, one value a row of the left matrix or a column of the right one.
template <typename T> struct Matrix {
  const firn_view *view;
  int64_t first, rowStride, columnStride;
  const T *zeros = nullptr;
  int64_t zeroStride = 0; // 0: one value for all
};

/// Calls store(row, firstColumn, columnCount, sums) for each piece of the product of `a` (rows x depth) and `b` (depth
/// x columns). Columns are taken 64 at a time, so that a converted piece of `b` stays in the cache for all rows.
template <typename T, typename Store>
void multiply(const Matrix<T> &a, const Matrix<T> &b, int64_t rows, int64_t columns, int64_t depth, T *scratchMemory,
              Store store) {
  constexpr int64_t block = 64;
  T *piece = scratchMemory, *line = piece + depth * block, *sums = line + depth;
  for (int64_t column = 0; column < columns; column += block) {
    int64_t width = columns - column < block ? columns - column : block;
    if (b.columnStride == 1)
      for (int64_t k = 0; k < depth; ++k)
        loadAll(*b.view, b.first + k * b.rowStride + column, 1, width, piece + k * block);
    else
      for (int64_t j = 0; j < width; ++j) {
        loadAll(*b.view, b.first + (column + j) * b.columnStride, b.rowStride, depth, line);
        for (int64_t k = 0; k < depth; ++k)
          piece[k * block + j] = line[k];
      }
    for (int64_t k = 0; k < depth && b.zeros; ++k)
      for (int64_t j = 0; j < width; ++j)
        piece[k * block + j] -= b.zeros[(column + j) * b.zeroStride];
    for (int64_t row = 0; row < rows; ++row) {
      loadAll(*a.view, a.first + row * a.rowStride, a.columnStride, depth, line);
      for (int64_t k = 0; k < depth && a.zeros; ++k)
        line[k] -= a.zeros[row * a.zeroStride];
      for (int64_t j = 0; j < width; ++j)
        sums[j] = 0;
      for (int64_t k = 0; k < depth; ++k) {
        T factor = line[k];
        const T *from = piece + k * block;
        for (int64_t j = 0; j < width; ++j)
          sums[j] = multiplyAdd(sums[j], factor, from[j]);
      }
      store(row, column, width, sums);
    }
  }
}

/// Elements of scratch memory that multiply() wants.
inline int64_t multiplyScratch(int64_t depth) { return depth * 65 + 64; }

/// How numpy.matmul sees two tensors: a batch of products of one shape.
struct MatmulShape {
  int64_t rows, columns, depth;
  int64_t batch[FIRN_MAX_RANK], aStrides[FIRN_MAX_RANK], bStrides[FIRN_MAX_RANK]; // strides in elements
  int32_t batchRank;
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank;
};
int32_t matmulShape(firn_call *call, const firn_view &a, const firn_view &b, MatmulShape *shape);

/// Calls product(aFirst, bFirst, yFirst) for each matrix of the batch.
template <typename Product> void forEachProduct(const MatmulShape &shape, Product product) {
  int64_t index[FIRN_MAX_RANK] = {0};
  int64_t y = 0;
  for (int32_t k = 0; k < shape.batchRank; ++k)
    if (shape.batch[k] == 0)
      return;
  do {
    int64_t a = 0, b = 0;
    for (int32_t k = 0; k < shape.batchRank; ++k) {
      a += index[k] * shape.aStrides[k];
      b += index[k] * shape.bStrides[k];
    }
    product(a, b, y);
    y += shape.rows * shape.columns;
  } while (nextIndex(index, shape.batch, shape.batchRank));
}

/// The zero points or scales of one operand of a quantised product: one value for all, one a line (a row of `a`, a
/// column of `b`), or one a line of each matrix of the batch. Fails where the shape of `values` is none of these; one
/// value where `values` is NULL.
struct LineValues {
  int64_t stride;      // from line to line, 0 for one value
  int64_t batchStride; // from matrix to matrix, 0 where they share their values
  int64_t count;
};
int32_t lineValues(firn_call *call, const char *name, const firn_view *values, const firn_view &matrix, bool isRows,
                   LineValues *result);

} // namespace firn::kernels
#endif
