// MatMul, MatMulInteger and Gemm.
#include "runtime/kernels/Matrix.h"

namespace firn::kernels {

int32_t matmulShape(firn_call *call, const firn_view &a, const firn_view &b, MatmulShape *shape) {
  FIRN_TRY(requireRank(call, "A", a, 1, FIRN_MAX_RANK));
  FIRN_TRY(requireRank(call, "B", b, 1, FIRN_MAX_RANK));
  int32_t aBatch = a.rank > 2 ? a.rank - 2 : 0, bBatch = b.rank > 2 ? b.rank - 2 : 0;
  shape->depth = a.dims[a.rank - 1];
  shape->rows = a.rank > 1 ? a.dims[a.rank - 2] : 1;
  shape->columns = b.rank > 1 ? b.dims[b.rank - 1] : 1;
  int64_t bDepth = b.rank > 1 ? b.dims[b.rank - 2] : b.dims[0];
  ShapeText aText = describe(a), bText = describe(b);
  if (bDepth != shape->depth)
    return fail(call, FIRN_CALL_INVALID,
                "the inner dimensions of A %s and B %s differ: expected %lld rows of B, found %lld", aText.text,
                bText.text, static_cast<long long>(shape->depth), static_cast<long long>(bDepth));
  if (!broadcastDims(a.dims, aBatch, b.dims, bBatch, shape->batch, &shape->batchRank))
    return fail(call, FIRN_CALL_INVALID, "the batch dimensions of A %s and B %s do not broadcast", aText.text,
                bText.text);
  firn_view batch = a;
  batch.rank = aBatch;
  broadcastStrides(batch, shape->batch, shape->batchRank, shape->aStrides);
  batch = b;
  batch.rank = bBatch;
  broadcastStrides(batch, shape->batch, shape->batchRank, shape->bStrides);
  for (int32_t k = 0; k < shape->batchRank; ++k) {
    shape->aStrides[k] *= shape->rows * shape->depth;
    shape->bStrides[k] *= shape->depth * shape->columns;
    shape->dims[k] = shape->batch[k];
  }
  shape->rank = shape->batchRank;
  if (a.rank > 1)
    shape->dims[shape->rank++] = shape->rows;
  if (b.rank > 1)
    shape->dims[shape->rank++] = shape->columns;
  return FIRN_CALL_OK;
}

int32_t lineValues(firn_call *call, const char *name, const firn_view *values, const firn_view &matrix, bool isRows,
                   LineValues *result) {
  *result = {0, 0, 1};
  if (!values || elementCount(*values) == 1)
    return FIRN_CALL_OK;
  int32_t lineAxis = matrix.rank - (isRows ? 2 : 1); // -1: a vector as left operand is one row
  int64_t lines = lineAxis >= 0 && matrix.rank > 1 ? matrix.dims[lineAxis] : 1;
  if (values->rank == 1 && values->dims[0] == lines) {
    *result = {1, 0, lines};
    return FIRN_CALL_OK;
  }
  int64_t expected[FIRN_MAX_RANK];
  bool isPerMatrix = values->rank == matrix.rank;
  for (int32_t k = 0; k < matrix.rank; ++k) {
    expected[k] = k < matrix.rank - 2 || k == lineAxis ? matrix.dims[k] : 1;
    isPerMatrix &= values->dims[k] == expected[k];
  }
  if (isPerMatrix) {
    *result = {1, lines, elementCount(*values)};
    return FIRN_CALL_OK;
  }
  ShapeText found = describe(*values), whole = describe(expected, matrix.rank);
  return fail(call, FIRN_CALL_INVALID, "%s has the wrong shape: expected a scalar, [%lld] or %s, found %s", name,
              static_cast<long long>(lines), whole.text, found.text);
}

// --- MatMul ----------------------------------------------------------------------------------------------------------

static int32_t matmulOperands(firn_call *call, const firn_view **a, const firn_view **b, MatmulShape *shape) {
  FIRN_TRY(requireInput(call, 0, "A", floatTypes | wideIntegerTypes, a));
  FIRN_TRY(requireInput(call, 1, "B", floatTypes | wideIntegerTypes, b));
  FIRN_TRY(requireSameDtype(call, "B", *b, "A", **a));
  return matmulShape(call, **a, **b, shape);
}

static int32_t inferMatMul(firn_call *call) {
  const firn_view *a, *b;
  MatmulShape shape;
  FIRN_TRY(matmulOperands(call, &a, &b, &shape));
  return setChecked(call, 0, a->dtype, shape.dims, shape.rank);
}

template <typename T>
static int32_t matmul(firn_call *call, const firn_view &a, const firn_view &b, const MatmulShape &shape,
                      const firn_view &y) {
  T *memory;
  FIRN_TRY(allocate(call, multiplyScratch(shape.depth), &memory));
  forEachProduct(shape, [&](int64_t aFirst, int64_t bFirst, int64_t yFirst) {
    Matrix<T> left = {&a, aFirst, shape.depth, 1}, right = {&b, bFirst, shape.columns, 1};
    multiply(left, right, shape.rows, shape.columns, shape.depth, memory,
             [&](int64_t row, int64_t column, int64_t count, const T *sums) {
               storeAll(y, yFirst + row * shape.columns + column, count, sums);
             });
  });
  return FIRN_CALL_OK;
}

static int32_t runMatMul(firn_call *call) {
  const firn_view *a, *b;
  MatmulShape shape;
  FIRN_TRY(matmulOperands(call, &a, &b, &shape));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  return isFloat(a->dtype) ? matmul<double>(call, *a, *b, shape, *y) : matmul<int64_t>(call, *a, *b, shape, *y);
}

// --- MatMulInteger ---------------------------------------------------------------------------------------------------

struct MatMulIntegerOperands {
  const firn_view *a, *b, *aZero, *bZero;
  LineValues aLines, bLines;
  MatmulShape shape;
};

static int32_t matMulIntegerOperands(firn_call *call, MatMulIntegerOperands *o) {
  FIRN_TRY(requireInput(call, 0, "A", byteTypes, &o->a));
  FIRN_TRY(requireInput(call, 1, "B", byteTypes, &o->b));
  FIRN_TRY(optionalInput(call, 2, "a_zero_point", byteTypes, &o->aZero));
  FIRN_TRY(optionalInput(call, 3, "b_zero_point", byteTypes, &o->bZero));
  FIRN_TRY(requireSameDtype(call, "a_zero_point", o->aZero, "A", *o->a));
  FIRN_TRY(requireSameDtype(call, "b_zero_point", o->bZero, "B", *o->b));
  FIRN_TRY(matmulShape(call, *o->a, *o->b, &o->shape));
  FIRN_TRY(lineValues(call, "a_zero_point", o->aZero, *o->a, true, &o->aLines));
  return lineValues(call, "b_zero_point", o->bZero, *o->b, false, &o->bLines);
}

static int32_t inferMatMulInteger(firn_call *call) {
  MatMulIntegerOperands o;
  FIRN_TRY(matMulIntegerOperands(call, &o));
  return setChecked(call, 0, FIRN_I32, o.shape.dims, o.shape.rank);
}

/// Sums of 8-bit products wrap at 32 bits, as the specification allows.
static int32_t runMatMulInteger(firn_call *call) {
  MatMulIntegerOperands o;
  FIRN_TRY(matMulIntegerOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const MatmulShape &shape = o.shape;
  int32_t *memory, *aZeros, *bZeros;
  FIRN_TRY(copyOf(call, o.aZero, &aZeros));
  FIRN_TRY(copyOf(call, o.bZero, &bZeros));
  FIRN_TRY(allocate(call, multiplyScratch(shape.depth), &memory));
  forEachProduct(shape, [&](int64_t aFirst, int64_t bFirst, int64_t yFirst) {
    Matrix<int32_t> left = {o.a, aFirst, shape.depth, 1}, right = {o.b, bFirst, shape.columns, 1};
    if (aZeros)
      left.zeros = aZeros + (aFirst ? aFirst / (shape.rows * shape.depth) * o.aLines.batchStride : 0);
    if (bZeros)
      right.zeros = bZeros + (bFirst ? bFirst / (shape.depth * shape.columns) * o.bLines.batchStride : 0);
    left.zeroStride = o.aLines.stride;
    right.zeroStride = o.bLines.stride;
    multiply(left, right, shape.rows, shape.columns, shape.depth, memory,
             [&](int64_t row, int64_t column, int64_t count, const int32_t *sums) {
               storeAll(*y, yFirst + row * shape.columns + column, count, sums);
             });
  });
  return FIRN_CALL_OK;
}

// --- Gemm ------------------------------------------------------------------------------------------------------------

struct GemmOperands {
  const firn_view *a, *b, *c;
  bool transA, transB;
  int64_t dims[2], depth;
};

static int32_t gemmOperands(firn_call *call, GemmOperands *o) {
  FIRN_TRY(requireInput(call, 0, "A", floatTypes | wideIntegerTypes, &o->a));
  FIRN_TRY(requireInput(call, 1, "B", floatTypes | wideIntegerTypes, &o->b));
  FIRN_TRY(optionalInput(call, 2, "C", floatTypes | wideIntegerTypes, &o->c));
  FIRN_TRY(requireSameDtype(call, "B", o->b, "A", *o->a));
  FIRN_TRY(requireSameDtype(call, "C", o->c, "A", *o->a));
  FIRN_TRY(requireRank(call, "A", *o->a, 2, 2));
  FIRN_TRY(requireRank(call, "B", *o->b, 2, 2));
  o->transA = intAttribute(call, "transA", 0) != 0;
  o->transB = intAttribute(call, "transB", 0) != 0;
  o->dims[0] = o->a->dims[o->transA];
  o->depth = o->a->dims[!o->transA];
  o->dims[1] = o->b->dims[!o->transB];
  int64_t depth = o->b->dims[o->transB];
  if (depth != o->depth) {
    ShapeText aText = describe(*o->a), bText = describe(*o->b);
    return fail(call, FIRN_CALL_INVALID,
                "the inner dimensions of A %s (transA=%d) and B %s (transB=%d) differ: expected %lld in B, found %lld",
                aText.text, o->transA, bText.text, o->transB, static_cast<long long>(o->depth),
                static_cast<long long>(depth));
  }
  if (!o->c)
    return FIRN_CALL_OK;
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank;
  if (o->c->rank <= 2 && broadcastDims(o->c->dims, o->c->rank, o->dims, 2, dims, &rank) && dims[0] == o->dims[0] &&
      dims[1] == o->dims[1])
    return FIRN_CALL_OK;
  ShapeText found = describe(*o->c), expected = describe(o->dims, 2);
  return fail(call, FIRN_CALL_INVALID,
              "C must broadcast to the result: expected a shape that broadcasts to %s, found %s", expected.text,
              found.text);
}

static int32_t inferGemm(firn_call *call) {
  GemmOperands o;
  FIRN_TRY(gemmOperands(call, &o));
  return setChecked(call, 0, o.a->dtype, o.dims, 2);
}

/// Integers stay integers where alpha and beta are 1; other factors act on real numbers, and the result truncates.
static void gemmEpilogue(const firn_view &y, int64_t first, int64_t count, double alpha, double beta, double *sums,
                         const double *c) {
  for (int64_t j = 0; j < count; ++j)
    sums[j] = alpha * sums[j] + (c ? beta * c[j] : -0.0);
  storeDoubles(y, first, count, sums);
}

static void gemmEpilogue(const firn_view &y, int64_t first, int64_t count, double alpha, double beta, int64_t *sums,
                         const int64_t *c) {
  for (int64_t j = 0; j < count; ++j) {
    if (alpha == 1 && (!c || beta == 1))
      setInt(y, first + j, int64_t(uint64_t(sums[j]) + (c ? uint64_t(c[j]) : 0)));
    else
      setDouble(y, first + j, alpha * double(sums[j]) + (c ? beta * double(c[j]) : 0));
  }
}

template <typename T> static int32_t gemm(firn_call *call, const GemmOperands &o, const firn_view &y) {
  int64_t rows = o.dims[0], columns = o.dims[1];
  double alpha = floatAttribute(call, "alpha", 1), beta = floatAttribute(call, "beta", 1);
  T *memory, *line;
  FIRN_TRY(allocate(call, multiplyScratch(o.depth), &memory));
  FIRN_TRY(allocate(call, 128, &line));
  int64_t cStrides[2] = {0, 0};
  if (o.c)
    broadcastStrides(*o.c, o.dims, 2, cStrides);
  Matrix<T> a = {o.a, 0, o.transA ? 1 : o.depth, o.transA ? rows : 1};
  Matrix<T> b = {o.b, 0, o.transB ? 1 : columns, o.transB ? o.depth : 1};
  multiply(a, b, rows, columns, o.depth, memory, [&](int64_t row, int64_t column, int64_t count, const T *sums) {
    T *values = line + 64;
    if (o.c)
      loadAll(*o.c, row * cStrides[0] + column * cStrides[1], cStrides[1], count, line);
    memcpy(values, sums, size_t(count) * sizeof(T));
    gemmEpilogue(y, row * columns + column, count, alpha, beta, values, o.c ? line : nullptr);
  });
  return FIRN_CALL_OK;
}

static int32_t runGemm(firn_call *call) {
  GemmOperands o;
  FIRN_TRY(gemmOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  return isFloat(o.a->dtype) ? gemm<double>(call, o, *y) : gemm<int64_t>(call, o, *y);
}

FIRN_OPERATOR(ai_onnx, MatMul, "ai.onnx::MatMul", inferMatMul, runMatMul)
FIRN_OPERATOR(ai_onnx, MatMulInteger, "ai.onnx::MatMulInteger", inferMatMulInteger, runMatMulInteger)
FIRN_OPERATOR(ai_onnx, Gemm, "ai.onnx::Gemm", inferGemm, runGemm)

} // namespace firn::kernels
