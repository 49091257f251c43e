// Arithmetic, mathematical functions, bits: one result an element, with numpy's broadcasting.
#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

constexpr uint32_t signedNumericTypes = floatTypes | signedTypes;

// --- one input -------------------------------------------------------------------------------------------------------

template <double (*function)(double)> int32_t runFunction(firn_call *call) { return mapFloat(call, function); }

double reciprocal(double x) { return 1 / x; }

int32_t runAbs(firn_call *call) {
  if (isFloat(call->inputs[0].dtype))
    return mapFloat(call, [](double x) { return fabs(x); });
  return mapNumeric(call, [](auto x) { return x < 0 ? -x : x; });
}

int32_t runNeg(firn_call *call) {
  return mapNumeric(call, [](auto x) { return -x; });
}

int32_t runSign(firn_call *call) {
  return mapNumeric(call, [](auto x) {
    decltype(x) one = 1, zero = 0;
    return x > zero ? one : x < zero ? -one : x == zero ? zero : x; // NaN stays NaN
  });
}

int32_t runBitwiseNot(firn_call *call) {
  mapAs<int64_t>(call->inputs[0], call->outputs[0], [](int64_t x) { return ~x; });
  return FIRN_CALL_OK;
}

int32_t runIsNaN(firn_call *call) {
  return mapFloat(call, [](double x) { return bool(isnan(x)); });
}

int32_t runIsInf(firn_call *call) {
  bool detectPositive = intAttribute(call, "detect_positive", 1) != 0;
  bool detectNegative = intAttribute(call, "detect_negative", 1) != 0;
  return mapFloat(call, [=](double x) { return isinf(x) && (x > 0 ? detectPositive : detectNegative); });
}

// --- two inputs ------------------------------------------------------------------------------------------------------

int32_t runAdd(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a + b; });
}

int32_t runSub(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a - b; });
}

int32_t runMul(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a * b; });
}

/// Integers truncate toward zero. Division by zero is undefined and gives 0, so that nothing traps.
double quotient(double a, double b) { return a / b; }
uint64_t quotient(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }

int32_t runDiv(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return quotient(a, b); });
}

/// The remainder of truncating division: the sign of the dividend.
double remainderTruncating(double a, double b) { return fmod(a, b); }
uint64_t remainderTruncating(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
int64_t remainderTruncating(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/// The remainder of flooring division: the sign of the divisor.
double remainderFlooring(double a, double b) {
  double r = fmod(a, b);
  if (r == 0)
    return copysign(r, b);
  return signbit(r) == signbit(b) ? r : r + b;
}
uint64_t remainderFlooring(uint64_t a, uint64_t b) { return remainderTruncating(a, b); }
int64_t remainderFlooring(int64_t a, int64_t b) {
  int64_t r = remainderTruncating(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int32_t runMod(firn_call *call) {
  if (intAttribute(call, "fmod", 0) != 0)
    return zipNumeric(call, [](auto a, auto b) { return remainderTruncating(a, b); });
  return zipNumeric(call, [](auto a, auto b) { return remainderFlooring(a, b); });
}

/// base^exponent with wrapping products.
uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}

/// A negative exponent gives the truncated reciprocal; 0 to a negative exponent is undefined and gives 0.
int64_t power(int64_t base, int64_t exponent) {
  if (exponent >= 0)
    return int64_t(power(uint64_t(base), uint64_t(exponent)));
  return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
}

int32_t inferPow(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  FIRN_TRY(requireInput(call, 1, numericTypes));
  return inferBroadcast(call, 0, call->inputs[0].dtype);
}

int32_t runPow(firn_call *call) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0], &y = call->inputs[1];
  if (isFloat(x.dtype) || isFloat(y.dtype))
    zipAs<double>(x, y, *z, [](double a, double b) { return pow(a, b); });
  else if (y.dtype == FIRN_U64)
    zipAs<uint64_t>(x, y, *z, [](uint64_t a, uint64_t b) { return power(a, b); });
  else
    zipAs<int64_t>(x, y, *z, [](int64_t a, int64_t b) { return power(a, b); });
  return FIRN_CALL_OK;
}

int32_t inferBitShift(firn_call *call) {
  if (!stringAttributeIs(call, "direction", "LEFT", "") && !stringAttributeIs(call, "direction", "RIGHT", ""))
    return fail(call, FIRN_CALL_INVALID, "attribute 'direction' must be LEFT or RIGHT");
  return inferBinary<integerTypes>(call);
}

/// A shift by the width or more, or by a negative amount, leaves only copies of the sign bit, or zeros.
int32_t runBitShift(firn_call *call) {
  bool left = stringAttributeIs(call, "direction", "LEFT", "");
  uint64_t bits = uint64_t(firn_dtype_bits(call->inputs[0].dtype));
  return zipInteger(call, [=](auto a, auto b) {
    decltype(a) fill = !left && a < 0 ? -1 : 0;
    return uint64_t(b) >= bits ? fill : left ? decltype(a)(uint64_t(a) << b) : decltype(a)(a >> b);
  });
}

template <typename Fn> int32_t zipBits(firn_call *call, Fn fn) {
  if (const firn_view *z = output(call, 0))
    zipAs<int64_t>(call->inputs[0], call->inputs[1], *z, fn);
  return FIRN_CALL_OK;
}

int32_t runBitwiseAnd(firn_call *call) {
  return zipBits(call, [](int64_t a, int64_t b) { return a & b; });
}

int32_t runBitwiseOr(firn_call *call) {
  return zipBits(call, [](int64_t a, int64_t b) { return a | b; });
}

int32_t runBitwiseXor(firn_call *call) {
  return zipBits(call, [](int64_t a, int64_t b) { return a ^ b; });
}

// --- any number of inputs --------------------------------------------------------------------------------------------

template <uint32_t dtypes> int32_t inferVariadic(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  for (int32_t i = 1; i < call->input_count; ++i) {
    FIRN_TRY(requireInput(call, i, dtypes));
    FIRN_TRY(requireSameType(call, 0, i));
  }
  return inferBroadcast(call, 0, call->inputs[0].dtype);
}

/// z = finish(x0 combine x1 combine ...), rounded once.
template <typename T, typename Combine, typename Finish>
int32_t foldInputsAs(firn_call *call, Combine combine, Finish finish) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  Operand *operands = scratch<Operand>(call, call->input_count);
  if (!operands)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for the strides of %d inputs", call->input_count);
  for (int32_t j = 0; j < call->input_count; ++j)
    operands[j].view = &call->inputs[j];
  T result[blockSize], next[blockSize];
  BroadcastLoop(*z, operands, call->input_count).run([&](int64_t first, int64_t count) {
    load(*operands[0].view, operands[0].offset, operands[0].step, count, result);
    for (int32_t j = 1; j < call->input_count; ++j) {
      load(*operands[j].view, operands[j].offset, operands[j].step, count, next);
      for (int64_t i = 0; i < count; ++i)
        result[i] = combine(result[i], next[i]);
    }
    for (int64_t i = 0; i < count; ++i)
      result[i] = finish(result[i]);
    store(*z, first, count, result);
  });
  return FIRN_CALL_OK;
}

template <typename Combine> int32_t foldInputs(firn_call *call, Combine combine) {
  auto keep = [](auto x) { return x; };
  if (isFloat(call->inputs[0].dtype))
    return foldInputsAs<double>(call, combine, keep);
  if (call->inputs[0].dtype == FIRN_U64)
    return foldInputsAs<uint64_t>(call, combine, keep);
  return foldInputsAs<int64_t>(call, combine, keep);
}

int32_t runMax(firn_call *call) {
  return foldInputs(call, [](auto a, auto b) { return larger(a, b); });
}

int32_t runMin(firn_call *call) {
  return foldInputs(call, [](auto a, auto b) { return smaller(a, b); });
}

int32_t runSum(firn_call *call) {
  return foldInputs(call, [](auto a, auto b) { return a + b; });
}

int32_t runMean(firn_call *call) {
  double count = call->input_count;
  return foldInputsAs<double>(call, [](double a, double b) { return a + b; }, [=](double sum) { return sum / count; });
}

// --- Clip ------------------------------------------------------------------------------------------------------------

int32_t inferClip(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  for (int32_t i = 1; i <= 2; ++i) {
    if (!input(call, i))
      continue;
    FIRN_TRY(requireSameType(call, 0, i));
    if (elementCount(call->inputs[i]) != 1) {
      char found[160];
      return fail(call, FIRN_CALL_INVALID, "input %d (%s) must be one value: found shape %s", i, i == 1 ? "min" : "max",
                  shapeText(call->inputs[i], found, sizeof found));
    }
  }
  return inferSame<numericTypes>(call);
}

/// min(max(x, low), high): where low is above high, high wins.
template <typename T> void clipAs(const firn_view &x, const firn_view *low, const firn_view *high, const firn_view &y) {
  T bounds[2] = {};
  if (low)
    load(*low, 0, 1, 1, &bounds[0]);
  if (high)
    load(*high, 0, 1, 1, &bounds[1]);
  mapAs<T>(x, y, [=](T value) {
    T above = low ? larger(value, bounds[0]) : value;
    return high ? smaller(above, bounds[1]) : above;
  });
}

int32_t runClip(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0];
  if (isFloat(x.dtype))
    clipAs<double>(x, input(call, 1), input(call, 2), *y);
  else if (x.dtype == FIRN_U64)
    clipAs<uint64_t>(x, input(call, 1), input(call, 2), *y);
  else
    clipAs<int64_t>(x, input(call, 1), input(call, 2), *y);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Abs, "ai.onnx::Abs", inferSame<numericTypes>, runAbs)
FIRN_OPERATOR(ai_onnx, Acos, "ai.onnx::Acos", inferSame<floatTypes>, runFunction<acos>)
FIRN_OPERATOR(ai_onnx, Acosh, "ai.onnx::Acosh", inferSame<floatTypes>, runFunction<acosh>)
FIRN_OPERATOR(ai_onnx, Asin, "ai.onnx::Asin", inferSame<floatTypes>, runFunction<asin>)
FIRN_OPERATOR(ai_onnx, Asinh, "ai.onnx::Asinh", inferSame<floatTypes>, runFunction<asinh>)
FIRN_OPERATOR(ai_onnx, Atan, "ai.onnx::Atan", inferSame<floatTypes>, runFunction<atan>)
FIRN_OPERATOR(ai_onnx, Atanh, "ai.onnx::Atanh", inferSame<floatTypes>, runFunction<atanh>)
FIRN_OPERATOR(ai_onnx, Ceil, "ai.onnx::Ceil", inferSame<floatTypes>, runFunction<ceil>)
FIRN_OPERATOR(ai_onnx, Cos, "ai.onnx::Cos", inferSame<floatTypes>, runFunction<cos>)
FIRN_OPERATOR(ai_onnx, Cosh, "ai.onnx::Cosh", inferSame<floatTypes>, runFunction<cosh>)
FIRN_OPERATOR(ai_onnx, Erf, "ai.onnx::Erf", inferSame<numericTypes>, runFunction<erf>)
FIRN_OPERATOR(ai_onnx, Exp, "ai.onnx::Exp", inferSame<floatTypes>, runFunction<exp>)
FIRN_OPERATOR(ai_onnx, Floor, "ai.onnx::Floor", inferSame<floatTypes>, runFunction<floor>)
FIRN_OPERATOR(ai_onnx, Log, "ai.onnx::Log", inferSame<floatTypes>, runFunction<log>)
FIRN_OPERATOR(ai_onnx, Neg, "ai.onnx::Neg", inferSame<signedNumericTypes>, runNeg)
FIRN_OPERATOR(ai_onnx, Reciprocal, "ai.onnx::Reciprocal", inferSame<floatTypes>, runFunction<reciprocal>)
FIRN_OPERATOR(ai_onnx, Round, "ai.onnx::Round", inferSame<floatTypes>, runFunction<rint>)
FIRN_OPERATOR(ai_onnx, Sign, "ai.onnx::Sign", inferSame<numericTypes>, runSign)
FIRN_OPERATOR(ai_onnx, Sin, "ai.onnx::Sin", inferSame<floatTypes>, runFunction<sin>)
FIRN_OPERATOR(ai_onnx, Sinh, "ai.onnx::Sinh", inferSame<floatTypes>, runFunction<sinh>)
FIRN_OPERATOR(ai_onnx, Sqrt, "ai.onnx::Sqrt", inferSame<floatTypes>, runFunction<sqrt>)
FIRN_OPERATOR(ai_onnx, Tan, "ai.onnx::Tan", inferSame<floatTypes>, runFunction<tan>)
FIRN_OPERATOR(ai_onnx, BitwiseNot, "ai.onnx::BitwiseNot", inferSame<integerTypes>, runBitwiseNot)
FIRN_OPERATOR(ai_onnx, IsInf, "ai.onnx::IsInf", inferPredicate<floatTypes | float8Types>, runIsInf)
FIRN_OPERATOR(ai_onnx, IsNaN, "ai.onnx::IsNaN", inferPredicate<floatTypes | float8Types>, runIsNaN)
FIRN_OPERATOR(ai_onnx, Add, "ai.onnx::Add", inferBinary<numericTypes>, runAdd)
FIRN_OPERATOR(ai_onnx, Sub, "ai.onnx::Sub", inferBinary<numericTypes>, runSub)
FIRN_OPERATOR(ai_onnx, Mul, "ai.onnx::Mul", inferBinary<numericTypes>, runMul)
FIRN_OPERATOR(ai_onnx, Div, "ai.onnx::Div", inferBinary<numericTypes>, runDiv)
FIRN_OPERATOR(ai_onnx, Mod, "ai.onnx::Mod", inferBinary<numericTypes>, runMod)
FIRN_OPERATOR(ai_onnx, Pow, "ai.onnx::Pow", inferPow, runPow)
FIRN_OPERATOR(ai_onnx, BitShift, "ai.onnx::BitShift", inferBitShift, runBitShift)
FIRN_OPERATOR(ai_onnx, BitwiseAnd, "ai.onnx::BitwiseAnd", inferBinary<integerTypes>, runBitwiseAnd)
FIRN_OPERATOR(ai_onnx, BitwiseOr, "ai.onnx::BitwiseOr", inferBinary<integerTypes>, runBitwiseOr)
FIRN_OPERATOR(ai_onnx, BitwiseXor, "ai.onnx::BitwiseXor", inferBinary<integerTypes>, runBitwiseXor)
FIRN_OPERATOR(ai_onnx, Max, "ai.onnx::Max", inferVariadic<numericTypes>, runMax)
FIRN_OPERATOR(ai_onnx, Min, "ai.onnx::Min", inferVariadic<numericTypes>, runMin)
FIRN_OPERATOR(ai_onnx, Sum, "ai.onnx::Sum", inferVariadic<floatTypes>, runSum)
FIRN_OPERATOR(ai_onnx, Mean, "ai.onnx::Mean", inferVariadic<floatTypes>, runMean)
FIRN_OPERATOR(ai_onnx, Clip, "ai.onnx::Clip", inferClip, runClip)

} // namespace firn::kernels
