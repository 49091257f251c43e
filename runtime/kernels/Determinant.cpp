// Determinants of matrices.
#include "runtime/kernels/Kernel.h"

namespace firn::kernels {
namespace {

int32_t inferDet(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  const firn_view &x = call->inputs[0];
  if (x.rank < 2 || x.dims[x.rank - 1] != x.dims[x.rank - 2]) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "the last two axes must be equal: found shape %s",
                shapeText(x, found, sizeof found));
  }
  return setChecked(call, 0, x.dtype, x.dims, x.rank - 2);
}

/// Gaussian elimination with the largest pivot of each column; `m` is lost.
double determinant(double *m, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
        pivot = i;
    if (pivot != k) {
      result = -result;
      for (int64_t j = k; j < n; ++j) {
        double kept = m[k * n + j];
        m[k * n + j] = m[pivot * n + j];
        m[pivot * n + j] = kept;
      }
    }
    result *= m[k * n + k];
    if (m[k * n + k] == 0)
      return result; // the column is zero from here down
    for (int64_t i = k + 1; i < n; ++i) {
      double factor = m[i * n + k] / m[k * n + k];
      for (int64_t j = k; j < n; ++j)
        m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return result;
}

int32_t runDet(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int64_t n = x.dims[x.rank - 1], matrices = elementCount(*y);
  double *matrix = scratch<double>(call, n * n + 1);
  if (!matrix)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for a matrix of %lld rows", static_cast<long long>(n));
  for (int64_t k = 0; k < matrices; ++k) {
    if (n > 0)
      loadDoubles(x, k * n * n, 1, n * n, matrix);
    setDouble(*y, k, determinant(matrix, n));
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Det, "ai.onnx::Det", inferDet, runDet)

} // namespace firn::kernels
