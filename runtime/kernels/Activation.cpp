// Activation functions, and the softmax family that normalises along an axis.
#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

int32_t runRelu(firn_call *call) {
  return mapNumeric(call, [](auto x) { return larger(x, decltype(x)(0)); });
}

int32_t runLeakyRelu(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 0.01f);
  return mapFloat(call, [=](double x) { return x < 0 ? alpha * x : x; });
}

/// The slope broadcasts to the input, never the other way.
int32_t inferPRelu(firn_call *call) {
  FIRN_TRY(inferBinary<numericTypes>(call));
  const firn_view &x = call->inputs[0], &slope = call->inputs[1];
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank;
  broadcastDims(x.dims, x.rank, slope.dims, slope.rank, dims, &rank);
  if (rank == x.rank && memcmp(dims, x.dims, size_t(rank) * sizeof(int64_t)) == 0)
    return FIRN_CALL_OK;
  char expected[160], found[160];
  return fail(call, FIRN_CALL_INVALID, "slope must broadcast to the input's shape: expected at most %s, found %s",
              shapeText(x, expected, sizeof expected), shapeText(slope, found, sizeof found));
}

int32_t runPRelu(firn_call *call) {
  return zipNumeric(call, [](auto x, auto slope) { return x < 0 ? slope * x : x; });
}

int32_t runElu(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1);
  return mapFloat(call, [=](double x) { return x < 0 ? alpha * expm1(x) : x; });
}

int32_t runSelu(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1.67326319217681884765625f);
  double gamma = floatAttribute(call, "gamma", 1.05070102214813232421875f);
  return mapFloat(call, [=](double x) { return gamma * (x < 0 ? alpha * expm1(x) : x); });
}

int32_t runCelu(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1);
  return mapFloat(call, [=](double x) { return larger(0.0, x) + smaller(0.0, alpha * expm1(x / alpha)); });
}

double sigmoid(double x) { return 1 / (1 + exp(-x)); }
double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
double softsign(double x) { return isinf(x) ? copysign(1, x) : x / (1 + fabs(x)); }
double clampToUnit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/// A gate times x; a closed gate shuts out an infinity too.
double gated(double x, double gate) { return gate == 0 ? copysign(0.0, x) : x * gate; }

template <double (*function)(double)> int32_t runFunction(firn_call *call) { return mapFloat(call, function); }

int32_t runGelu(firn_call *call) {
  if (stringAttributeIs(call, "approximate", "tanh", "none"))
    return mapFloat(call, [](double x) {
      const double sqrtTwoOverPi = 0.79788456080286535588;
      return gated(x, 0.5 * (1 + tanh(sqrtTwoOverPi * (x + 0.044715 * x * x * x))));
    });
  // 1 + erf(t) as erfc(-t), which keeps its digits where erf nears -1.
  return mapFloat(call, [](double x) { return gated(x, 0.5 * erfc(-x * 0.70710678118654752440)); });
}

int32_t inferGelu(firn_call *call) {
  if (!stringAttributeIs(call, "approximate", "tanh", "none") &&
      !stringAttributeIs(call, "approximate", "none", "none"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'approximate' must be none or tanh");
  return inferSame<floatTypes>(call);
}

int32_t runSwish(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1);
  return mapFloat(call, [=](double x) { return gated(x, sigmoid(alpha * x)); });
}

int32_t inferSwiGLU(firn_call *call) {
  FIRN_TRY(inferBinary<floatTypes>(call));
  const firn_view &a = call->inputs[0], &b = call->inputs[1];
  if (a.rank == b.rank && memcmp(a.dims, b.dims, size_t(a.rank) * sizeof(int64_t)) == 0)
    return FIRN_CALL_OK;
  char expected[160], found[160];
  return fail(call, FIRN_CALL_INVALID, "input 1 must have the shape of input 0: expected %s, found %s",
              shapeText(a, expected, sizeof expected), shapeText(b, found, sizeof found));
}

int32_t runSwiGLU(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1);
  if (const firn_view *z = output(call, 0))
    zipAs<double>(call->inputs[0], call->inputs[1], *z,
                  [=](double a, double b) { return gated(a, sigmoid(alpha * a)) * b; });
  return FIRN_CALL_OK;
}

int32_t runHardSigmoid(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 0.2f), beta = floatAttribute(call, "beta", 0.5f);
  return mapFloat(call, [=](double x) { return clampToUnit(alpha * x + beta); });
}

int32_t runHardSwish(firn_call *call) {
  return mapFloat(call, [](double x) { return gated(x, clampToUnit(x / 6 + 0.5)); });
}

int32_t runMish(firn_call *call) {
  return mapFloat(call, [](double x) { return gated(x, tanh(softplus(x))); });
}

int32_t runThresholdedRelu(firn_call *call) {
  double alpha = floatAttribute(call, "alpha", 1);
  return mapFloat(call, [=](double x) { return x > alpha || isnan(x) ? x : 0.0; });
}

int32_t runShrink(firn_call *call) {
  double lambda = floatAttribute(call, "lambd", 0.5f), bias = floatAttribute(call, "bias", 0);
  return mapFloat(call, [=](double x) { return x < -lambda ? x + bias : x > lambda ? x - bias : isnan(x) ? x : 0.0; });
}

// --- along an axis ---------------------------------------------------------------------------------------------------

int32_t inferAlongAxis(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  int64_t axis = intAttribute(call, "axis", -1);
  int32_t rank = call->inputs[0].rank;
  // A scalar has one row of one element, as in older versions, whatever the axis.
  if (rank > 0 && normalizeAxis(axis, rank) < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute 'axis' is out of range: expected [%d, %d), found %lld", -rank, rank,
                static_cast<long long>(axis));
  return inferSame<floatTypes>(call);
}

/// Calls body(values, n) on each row along the axis, as doubles that become the output's row.
template <typename Body> int32_t mapRows(firn_call *call, Body body) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(x) == 0)
    return FIRN_CALL_OK;
  int32_t axis = x.rank ? normalizeAxis(intAttribute(call, "axis", -1), x.rank) : -1;
  int64_t n = x.rank ? x.dims[axis] : 1;
  int64_t inner = extent(x, axis + 1, x.rank), outer = x.rank ? extent(x, 0, axis) : 1;
  double *row = scratch<double>(call, n);
  if (!row)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for a row of %lld elements", static_cast<long long>(n));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      int64_t first = o * n * inner + i;
      loadDoubles(x, first, inner, n, row);
      body(row, n);
      if (inner == 1)
        storeDoubles(*y, first, n, row);
      else
        for (int64_t k = 0; k < n; ++k)
          setDouble(*y, first + k * inner, row[k]);
    }
  return FIRN_CALL_OK;
}

double maximum(const double *row, int64_t n) {
  double result = row[0];
  for (int64_t k = 1; k < n; ++k)
    result = larger(result, row[k]);
  return result;
}

int32_t runSoftmax(firn_call *call) {
  return mapRows(call, [](double *row, int64_t n) {
    double largest = maximum(row, n), sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += row[k] = exp(row[k] - largest);
    for (int64_t k = 0; k < n; ++k)
      row[k] /= sum;
  });
}

int32_t runLogSoftmax(firn_call *call) {
  return mapRows(call, [](double *row, int64_t n) {
    double largest = maximum(row, n), sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += exp(row[k] - largest);
    for (int64_t k = 0; k < n; ++k)
      row[k] = row[k] - largest - log(sum);
  });
}

/// 1 at the first largest element, 0 elsewhere.
int32_t runHardmax(firn_call *call) {
  return mapRows(call, [](double *row, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k)
      if (row[k] > row[best] || (isnan(row[k]) && !isnan(row[best])))
        best = k;
    for (int64_t k = 0; k < n; ++k)
      row[k] = k == best;
  });
}

constexpr uint32_t signedNumericTypes = floatTypes | signedTypes;

} // namespace

FIRN_OPERATOR(ai_onnx, Relu, "ai.onnx::Relu", inferSame<signedNumericTypes>, runRelu)
FIRN_OPERATOR(ai_onnx, LeakyRelu, "ai.onnx::LeakyRelu", inferSame<floatTypes>, runLeakyRelu)
FIRN_OPERATOR(ai_onnx, PRelu, "ai.onnx::PRelu", inferPRelu, runPRelu)
FIRN_OPERATOR(ai_onnx, Elu, "ai.onnx::Elu", inferSame<floatTypes>, runElu)
FIRN_OPERATOR(ai_onnx, Selu, "ai.onnx::Selu", inferSame<floatTypes>, runSelu)
FIRN_OPERATOR(ai_onnx, Celu, "ai.onnx::Celu", inferSame<floatTypes>, runCelu)
FIRN_OPERATOR(ai_onnx, Gelu, "ai.onnx::Gelu", inferGelu, runGelu)
FIRN_OPERATOR(ai_onnx, Swish, "ai.onnx::Swish", inferSame<floatTypes>, runSwish)
FIRN_OPERATOR(ai_onnx, SwiGLU, "ai.onnx::SwiGLU", inferSwiGLU, runSwiGLU)
FIRN_OPERATOR(ai_onnx, HardSigmoid, "ai.onnx::HardSigmoid", inferSame<floatTypes>, runHardSigmoid)
FIRN_OPERATOR(ai_onnx, HardSwish, "ai.onnx::HardSwish", inferSame<floatTypes>, runHardSwish)
FIRN_OPERATOR(ai_onnx, Mish, "ai.onnx::Mish", inferSame<floatTypes>, runMish)
FIRN_OPERATOR(ai_onnx, Sigmoid, "ai.onnx::Sigmoid", inferSame<floatTypes>, runFunction<sigmoid>)
FIRN_OPERATOR(ai_onnx, Softplus, "ai.onnx::Softplus", inferSame<floatTypes>, runFunction<softplus>)
FIRN_OPERATOR(ai_onnx, Softsign, "ai.onnx::Softsign", inferSame<floatTypes>, runFunction<softsign>)
FIRN_OPERATOR(ai_onnx, Tanh, "ai.onnx::Tanh", inferSame<floatTypes>, runFunction<tanh>)
FIRN_OPERATOR(ai_onnx, ThresholdedRelu, "ai.onnx::ThresholdedRelu", inferSame<floatTypes>, runThresholdedRelu)
FIRN_OPERATOR(ai_onnx, Shrink, "ai.onnx::Shrink", inferSame<numericTypes>, runShrink)
FIRN_OPERATOR(ai_onnx, Softmax, "ai.onnx::Softmax", inferAlongAxis, runSoftmax)
FIRN_OPERATOR(ai_onnx, LogSoftmax, "ai.onnx::LogSoftmax", inferAlongAxis, runLogSoftmax)
FIRN_OPERATOR(ai_onnx, Hardmax, "ai.onnx::Hardmax", inferAlongAxis, runHardmax)

} // namespace firn::kernels
