// QLinearConv and QLinearMatMul: sums of 8-bit products, which wrap at 32 bits as the specification allows, then one
// requantisation in float32.
#include "runtime/kernels/Convolution.h"
#include "runtime/kernels/Matrix.h"

namespace firn::kernels {

namespace {

// --- QLinearConv -----------------------------------------------------------------------------------------------------

struct QLinearConvOperands {
  const firn_view *x, *xScale, *xZero, *w, *wScale, *wZero, *yScale, *yZero, *bias;
  ConvolutionShape shape;
};

int32_t qlinearConvOperands(firn_call *call, QLinearConvOperands *o) {
  constexpr uint32_t scaleTypes = typeSet(FIRN_F32);
  FIRN_TRY(requireInput(call, 0, "x", byteTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "x_scale", scaleTypes, &o->xScale));
  FIRN_TRY(requireInput(call, 2, "x_zero_point", byteTypes, &o->xZero));
  FIRN_TRY(requireInput(call, 3, "w", byteTypes, &o->w));
  FIRN_TRY(requireInput(call, 4, "w_scale", scaleTypes, &o->wScale));
  FIRN_TRY(requireInput(call, 5, "w_zero_point", byteTypes, &o->wZero));
  FIRN_TRY(requireInput(call, 6, "y_scale", scaleTypes, &o->yScale));
  FIRN_TRY(requireInput(call, 7, "y_zero_point", byteTypes, &o->yZero));
  FIRN_TRY(optionalInput(call, 8, "B", typeSet(FIRN_I32), &o->bias));
  FIRN_TRY(requireSameDtype(call, "x_zero_point", o->xZero, "x", *o->x));
  FIRN_TRY(requireSameDtype(call, "w_zero_point", o->wZero, "w", *o->w));
  FIRN_TRY(convolutionShape(call, *o->x, *o->w, &o->shape));
  FIRN_TRY(requireOneElement(call, "x_scale", o->xScale));
  FIRN_TRY(requireOneElement(call, "x_zero_point", o->xZero));
  FIRN_TRY(requireOneElement(call, "y_scale", o->yScale));
  FIRN_TRY(requireOneElement(call, "y_zero_point", o->yZero));
  int64_t outputs = o->shape.dims[1];
  if (elementCount(*o->wScale) != 1)
    FIRN_TRY(requireVector(call, "w_scale", o->wScale, outputs));
  if (elementCount(*o->wZero) != 1)
    FIRN_TRY(requireVector(call, "w_zero_point", o->wZero, outputs));
  return requireVector(call, "B", o->bias, outputs);
}

int32_t inferQLinearConv(firn_call *call) {
  QLinearConvOperands o;
  FIRN_TRY(qlinearConvOperands(call, &o));
  return setChecked(call, 0, o.yZero->dtype, o.shape.dims, o.shape.rank);
}

int32_t runQLinearConv(firn_call *call) {
  QLinearConvOperands o;
  FIRN_TRY(qlinearConvOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int32_t *wZeros;
  FIRN_TRY(copyOf(call, o.wZero, &wZeros));
  int64_t count = o.shape.window.outCount;
  float xScale = float(getDouble(*o.xScale, 0)), yScale = float(getDouble(*o.yScale, 0));
  double zero = getDouble(*o.yZero, 0);
  bool hasWScales = elementCount(*o.wScale) > 1;
  return convolve<int32_t>(call, o.shape, int32_t(getInt(*o.xZero, 0)), wZeros, elementCount(*o.wZero) > 1,
                           [&](int64_t n, int64_t m, const int32_t *sums) {
                             float wScale = float(getDouble(*o.wScale, hasWScales ? m : 0));
                             float factor = xScale * wScale / yScale;
                             uint32_t bias = o.bias ? uint32_t(getInt(*o.bias, m)) : 0;
                             for (int64_t i = 0; i < count; ++i)
                               setDouble(*y, (n * o.shape.dims[1] + m) * count + i,
                                         double(rintf(float(int32_t(uint32_t(sums[i]) + bias)) * factor)) + zero);
                           });
}

// --- QLinearMatMul ---------------------------------------------------------------------------------------------------

struct QLinearMatMulOperands {
  const firn_view *a, *aScale, *aZero, *b, *bScale, *bZero, *yScale, *yZero;
  LineValues aScales, aZeros, bScales, bZeros, yScales, yZeros;
  MatmulShape shape;
};

int32_t qlinearMatMulOperands(firn_call *call, QLinearMatMulOperands *o) {
  constexpr uint32_t types = byteTypes | float8Types;
  constexpr uint32_t scaleTypes = typeSet(FIRN_F32) | typeSet(FIRN_F16) | typeSet(FIRN_BF16);
  FIRN_TRY(requireInput(call, 0, "a", types, &o->a));
  FIRN_TRY(requireInput(call, 1, "a_scale", scaleTypes, &o->aScale));
  FIRN_TRY(requireInput(call, 2, "a_zero_point", types, &o->aZero));
  FIRN_TRY(requireInput(call, 3, "b", types, &o->b));
  FIRN_TRY(requireInput(call, 4, "b_scale", scaleTypes, &o->bScale));
  FIRN_TRY(requireInput(call, 5, "b_zero_point", types, &o->bZero));
  FIRN_TRY(requireInput(call, 6, "y_scale", scaleTypes, &o->yScale));
  FIRN_TRY(requireInput(call, 7, "y_zero_point", types, &o->yZero));
  FIRN_TRY(requireSameDtype(call, "a_zero_point", o->aZero, "a", *o->a));
  FIRN_TRY(requireSameDtype(call, "b_zero_point", o->bZero, "b", *o->b));
  FIRN_TRY(requireSameDtype(call, "b_scale", o->bScale, "a_scale", *o->aScale));
  FIRN_TRY(requireSameDtype(call, "y_scale", o->yScale, "a_scale", *o->aScale));
  FIRN_TRY(matmulShape(call, *o->a, *o->b, &o->shape));
  firn_view y;
  setType(&y, o->yZero->dtype, o->shape.dims, o->shape.rank);
  FIRN_TRY(lineValues(call, "a_scale", o->aScale, *o->a, true, &o->aScales));
  FIRN_TRY(lineValues(call, "a_zero_point", o->aZero, *o->a, true, &o->aZeros));
  FIRN_TRY(lineValues(call, "b_scale", o->bScale, *o->b, false, &o->bScales));
  FIRN_TRY(lineValues(call, "b_zero_point", o->bZero, *o->b, false, &o->bZeros));
  FIRN_TRY(lineValues(call, "y_scale", o->yScale, y, true, &o->yScales));
  return lineValues(call, "y_zero_point", o->yZero, y, true, &o->yZeros);
}

int32_t inferQLinearMatMul(firn_call *call) {
  QLinearMatMulOperands o;
  FIRN_TRY(qlinearMatMulOperands(call, &o));
  return setChecked(call, 0, o.yZero->dtype, o.shape.dims, o.shape.rank);
}

/// Entry of `values` for one line of one matrix.
float lineValue(const firn_view &values, const LineValues &lines, int64_t matrix, int64_t line) {
  return float(getDouble(values, matrix * lines.batchStride + line * lines.stride));
}

template <typename T> int32_t qlinearMatMul(firn_call *call, const QLinearMatMulOperands &o, const firn_view &y) {
  const MatmulShape &shape = o.shape;
  int64_t aSize = shape.rows * shape.depth, bSize = shape.depth * shape.columns, ySize = shape.rows * shape.columns;
  bool isInteger = !isFloat(y.dtype);
  T *memory, *aZeros, *bZeros;
  FIRN_TRY(copyOf(call, o.aZero, &aZeros));
  FIRN_TRY(copyOf(call, o.bZero, &bZeros));
  FIRN_TRY(allocate(call, multiplyScratch(shape.depth), &memory));
  forEachProduct(shape, [&](int64_t aFirst, int64_t bFirst, int64_t yFirst) {
    int64_t aMatrix = aFirst ? aFirst / aSize : 0, bMatrix = bFirst ? bFirst / bSize : 0;
    int64_t yMatrix = yFirst ? yFirst / ySize : 0;
    Matrix<T> a = {o.a, aFirst, shape.depth, 1, aZeros + aMatrix * o.aZeros.batchStride, o.aZeros.stride};
    Matrix<T> b = {o.b, bFirst, shape.columns, 1, bZeros + bMatrix * o.bZeros.batchStride, o.bZeros.stride};
    multiply(a, b, shape.rows, shape.columns, shape.depth, memory,
             [&](int64_t row, int64_t column, int64_t count, const T *sums) {
               float aScale = lineValue(*o.aScale, o.aScales, aMatrix, row);
               float yScale = lineValue(*o.yScale, o.yScales, yMatrix, row);
               double zero = lineValue(*o.yZero, o.yZeros, yMatrix, row);
               for (int64_t j = 0; j < count; ++j) {
                 float factor = aScale * lineValue(*o.bScale, o.bScales, bMatrix, column + j) / yScale;
                 float value = float(sums[j]) * factor;
                 setDouble(y, yFirst + row * shape.columns + column + j,
                           double(isInteger ? rintf(value) : value) + zero);
               }
             });
  });
  return FIRN_CALL_OK;
}

int32_t runQLinearMatMul(firn_call *call) {
  QLinearMatMulOperands o;
  FIRN_TRY(qlinearMatMulOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  bool isInteger = !isFloat(o.a->dtype) && !isFloat(o.b->dtype);
  return isInteger ? qlinearMatMul<int32_t>(call, o, *y) : qlinearMatMul<double>(call, o, *y);
}

} // namespace

FIRN_OPERATOR(ai_onnx, QLinearConv, "ai.onnx::QLinearConv", inferQLinearConv, runQLinearConv)
FIRN_OPERATOR(ai_onnx, QLinearMatMul, "ai.onnx::QLinearMatMul", inferQLinearMatMul, runQLinearMatMul)

} // namespace firn::kernels
