// What each elementwise operation of the firn dialect computes on elements in registers.
//
// Formulas in f32 (f64 for f64); f16 and bf16 are computed in f32 and rounded once an operation. Functions are math
// operations, which passes/kernel/ExpandMath.cpp makes into polynomials (f32) or calls of libm (f64); their bounds in
// ULP stand there. Compositions: sigmoid, swish, softplus, mish, gelu (tanh form) 6 ULP; gelu (erf form) 3 eps |x|.
#include "compiler/codegen/cpu/Elements.h"

#include <cfloat>
#include <cmath>
#include <limits>

using namespace mlir;

namespace firn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Float expressions on one register type.
struct FloatMath {
  OpBuilder &b;
  Location loc;
  Elements &elements;
  Type type;

  Value number(double value) { return elements.number(value, type); }
  Value add(Value x, Value y) { return elements.add(x, y); }
  Value sub(Value x, Value y) { return elements.sub(x, y); }
  Value mul(Value x, Value y) { return elements.mul(x, y); }
  Value div(Value x, Value y) { return b.create<arith::DivFOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) { return elements.fma(x, y, z); }
  Value neg(Value x) { return b.create<arith::NegFOp>(loc, x); }
  Value abs(Value x) { return b.create<math::AbsFOp>(loc, x); }
  Value exp(Value x) { return b.create<math::ExpOp>(loc, x); }
  Value expm1(Value x) { return b.create<math::ExpM1Op>(loc, x); }
  Value select(Value c, Value x, Value y) { return b.create<arith::SelectOp>(loc, c, x, y); }
  Value compare(arith::CmpFPredicate p, Value x, Value y) { return b.create<arith::CmpFOp>(loc, p, x, y); }
  Value less(Value x, Value y) { return compare(arith::CmpFPredicate::OLT, x, y); }
  Value greater(Value x, Value y) { return compare(arith::CmpFPredicate::OGT, x, y); }
  /// max(x, low), min(x, high); NaN stays.
  Value atLeast(Value x, double low) { return select(less(x, number(low)), number(low), x); }
  Value atMost(Value x, double high) { return select(greater(x, number(high)), number(high), x); }
  Value sigmoid(Value x) { return div(number(1), add(number(1), exp(neg(x)))); }
  /// x * gate, where a gate of 0 wins over an infinite x.
  Value gated(Value x, Value gate) {
    bool isWide = getElementTypeOrSelf(type).isF64();
    return mul(atLeast(x, isWide ? -DBL_MAX : -double(FLT_MAX)), gate);
  }
};

/// The one value of a constant operand, if it is one.
std::optional<double> constantNumber(Value value) {
  ElementsAttr attribute = constantOf(value);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!attribute || !type)
    return std::nullopt;
  auto bytes = constantBytes(attribute);
  if (!bytes || bytes->bytes.empty() || !(bytes->isSplat || attribute.getNumElements() == 1))
    return std::nullopt;
  Type element = type.getElementType();
  uint64_t raw = 0;
  unsigned size = Elements::supports(element) ? Elements::bytes(element) : 0;
  if (size == 0 || bytes->bytes.size() < size)
    return std::nullopt;
  memcpy(&raw, bytes->bytes.data(), size);
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat number(floating.getFloatSemantics(), APInt(size * 8, raw));
    bool loses;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble();
  }
  APInt number(size * 8, raw);
  return element.isUnsignedInteger() ? double(number.getZExtValue()) : double(number.getSExtValue());
}

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

bool isLeft(BitShiftOp op) { return op.getDirection() == "LEFT"; }

} // namespace

bool Elements::computes(Operation *op) {
  auto isSupported = [](Type type) { return isa<NoneType>(type) || supports(getElementTypeOrSelf(type)); };
  if (op->getNumResults() == 0 || !llvm::all_of(op->getOperandTypes(), isSupported) ||
      !isSupported(op->getResult(0).getType()))
    return false;
  bool isInteger = !isa<FloatType>(elementOf(op->getResult(0)));
  return TypeSwitch<Operation *, bool>(op)
      .Case<AbsOp, NegOp, SignOp, ReluOp, IdentityOp, NotOp, BitwiseNotOp, IsNaNOp, IsInfOp, AddOp, SubOp, MulOp, DivOp,
            ModOp, BitShiftOp, AndOp, OrOp, XorOp, BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, PReluOp, EqualOp, GreaterOp,
            LessOp, GreaterOrEqualOp, LessOrEqualOp, MaxOp, MinOp, WhereOp, ClipOp, CastOp, CastLikeOp>(
          [](auto) { return true; })
      .Case<SumOp, MeanOp, CeilOp, FloorOp, RoundOp, SqrtOp, ReciprocalOp, ExpOp, LogOp, SinOp, CosOp, TanOp, AsinOp,
            AcosOp, AtanOp, SinhOp, CoshOp, TanhOp, AsinhOp, AcoshOp, AtanhOp, ErfOp, SigmoidOp, HardSwishOp, MishOp,
            SoftplusOp, SoftsignOp, LeakyReluOp, EluOp, CeluOp, ThresholdedReluOp, SwishOp, SeluOp, HardSigmoidOp,
            GeluOp>([&](auto) { return !isInteger; })
      .Case([&](PowOp power) {
        auto exponent = constantNumber(power.getB());
        return !isInteger || (exponent && *exponent >= 0 && *exponent <= 64 && *exponent == std::floor(*exponent));
      })
      .Case([](QuantizeLinearOp quantize) {
        return elementOf(quantize.getX()).isF32() && elementOf(quantize.getScale()).isF32() &&
               (quantize.getPrecision() == 0 || quantize.getPrecision() == 1);
      })
      .Case([](DequantizeLinearOp dequantize) {
        Type scale = elementOf(dequantize.getScale());
        return isa<FloatType>(scale) && !isa<FloatType>(elementOf(dequantize.getX())) &&
               isa<FloatType>(elementOf(dequantize.getResult()));
      })
      .Default([](Operation *) { return false; });
}

Value Elements::floatUnary(Operation *op, Value x) {
  FloatMath m{builder, loc, *this, x.getType()};
  auto number = [](const APFloat &value) { return double(value.convertToFloat()); };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](CeilOp) -> Value { return builder.create<math::CeilOp>(loc, x); })
      .Case([&](FloorOp) -> Value { return builder.create<math::FloorOp>(loc, x); })
      .Case([&](RoundOp) -> Value { return builder.create<math::RoundEvenOp>(loc, x); })
      .Case([&](SqrtOp) -> Value { return builder.create<math::SqrtOp>(loc, x); })
      .Case([&](ReciprocalOp) -> Value { return m.div(m.number(1), x); })
      .Case([&](ExpOp) -> Value { return m.exp(x); })
      .Case([&](LogOp) -> Value { return builder.create<math::LogOp>(loc, x); })
      .Case([&](SinOp) -> Value { return builder.create<math::SinOp>(loc, x); })
      .Case([&](CosOp) -> Value { return builder.create<math::CosOp>(loc, x); })
      .Case([&](TanOp) -> Value { return builder.create<math::TanOp>(loc, x); })
      .Case([&](AsinOp) -> Value { return builder.create<math::AsinOp>(loc, x); })
      .Case([&](AcosOp) -> Value { return builder.create<math::AcosOp>(loc, x); })
      .Case([&](AtanOp) -> Value { return builder.create<math::AtanOp>(loc, x); })
      .Case([&](SinhOp) -> Value { return builder.create<math::SinhOp>(loc, x); })
      .Case([&](CoshOp) -> Value { return builder.create<math::CoshOp>(loc, x); })
      .Case([&](TanhOp) -> Value { return builder.create<math::TanhOp>(loc, x); })
      .Case([&](AsinhOp) -> Value { return builder.create<math::AsinhOp>(loc, x); })
      .Case([&](AcoshOp) -> Value { return builder.create<math::AcoshOp>(loc, x); })
      .Case([&](AtanhOp) -> Value { return builder.create<math::AtanhOp>(loc, x); })
      .Case([&](ErfOp) -> Value { return builder.create<math::ErfOp>(loc, x); })
      .Case([&](SigmoidOp) { return m.sigmoid(x); })
      .Case([&](SwishOp swish) {
        double alpha = number(swish.getAlpha());
        return m.gated(x, m.sigmoid(alpha == 1 ? x : m.mul(x, m.number(alpha))));
      })
      .Case([&](SoftplusOp) {
        Value grown = builder.create<math::Log1pOp>(loc, m.exp(m.neg(m.abs(x))));
        return m.add(m.select(m.greater(x, m.number(0)), x, m.number(0)), grown);
      })
      .Case([&](MishOp) {
        // tanh(ln(1 + e)) = e(e + 2) / (e(e + 2) + 2); beyond 20 it is 1.
        Value e = m.exp(m.atMost(x, 20));
        Value n = m.mul(e, m.add(e, m.number(2)));
        return m.gated(x, m.div(n, m.add(n, m.number(2))));
      })
      .Case([&](SoftsignOp) {
        bool isWide = getElementTypeOrSelf(x).isF64();
        double most = isWide ? DBL_MAX : double(FLT_MAX);
        Value finite = m.atMost(m.atLeast(x, -most), most);
        return m.div(finite, m.add(m.number(1), m.abs(finite)));
      })
      .Case([&](HardSwishOp) {
        return m.gated(x, m.atMost(m.atLeast(m.fma(x, m.number(1.0 / 6), m.number(0.5)), 0), 1));
      })
      .Case([&](HardSigmoidOp hard) {
        Value line = m.fma(x, m.number(number(hard.getAlpha())), m.number(number(hard.getBeta())));
        return m.atMost(m.atLeast(line, 0), 1);
      })
      .Case([&](LeakyReluOp leaky) {
        return m.select(m.less(x, m.number(0)), m.mul(x, m.number(number(leaky.getAlpha()))), x);
      })
      .Case([&](EluOp elu) {
        return m.select(m.less(x, m.number(0)), m.mul(m.number(number(elu.getAlpha())), m.expm1(x)), x);
      })
      .Case([&](SeluOp selu) {
        Value below = m.mul(m.number(number(selu.getAlpha())), m.expm1(x));
        return m.mul(m.number(number(selu.getGamma())), m.select(m.less(x, m.number(0)), below, x));
      })
      .Case([&](CeluOp celu) {
        double alpha = number(celu.getAlpha());
        Value below = m.mul(m.number(alpha), m.expm1(m.div(x, m.number(alpha))));
        Value sum = m.add(m.atLeast(x, 0), m.atMost(below, 0));
        return m.select(m.compare(arith::CmpFPredicate::UNO, x, x), x, sum);
      })
      .Case([&](ThresholdedReluOp relu) {
        Value stays = m.compare(arith::CmpFPredicate::UGT, x, m.number(number(relu.getAlpha())));
        return m.select(stays, x, m.number(0));
      })
      .Case([&](GeluOp gelu) {
        if (gelu.getApproximate() == "tanh") {
          // (1 + tanh(u)) / 2 = sigmoid(2u)
          constexpr double twiceRoot = 2 * 0.79788456080286535588;
          Value cubic = m.fma(m.mul(x, x), m.number(twiceRoot * 0.044715), m.number(twiceRoot));
          return m.gated(x, m.sigmoid(m.mul(x, cubic)));
        }
        Value erf = builder.create<math::ErfOp>(loc, m.mul(x, m.number(0.70710678118654752440)));
        return m.gated(x, m.fma(erf, m.number(0.5), m.number(0.5)));
      })
      .Default([](Operation *) { return Value(); });
}

Value Elements::unary(Operation *op, Value x, Type elementType) {
  Type type = x.getType();
  bool isFloat = isa<FloatType>(elementType), isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  auto compare = [&](arith::CmpFPredicate p, Value a, Value b) -> Value {
    return builder.create<arith::CmpFOp>(loc, p, a, b);
  };
  auto compareInt = [&](arith::CmpIPredicate p, Value a, Value b) -> Value {
    return builder.create<arith::CmpIOp>(loc, p, a, b);
  };
  auto select = [&](Value c, Value a, Value b) -> Value { return builder.create<arith::SelectOp>(loc, c, a, b); };
  Value zero = number(0, type);
  if (isa<IdentityOp>(op))
    return x;
  if (isa<AbsOp>(op)) {
    if (isFloat)
      return builder.create<math::AbsFOp>(loc, x);
    return isUnsigned ? x : select(compareInt(arith::CmpIPredicate::slt, x, zero), sub(zero, x), x);
  }
  if (isa<NegOp>(op))
    return isFloat ? builder.create<arith::NegFOp>(loc, x).getResult() : sub(zero, x);
  if (isa<ReluOp>(op))
    return maximum(x, zero, elementType);
  if (isa<SignOp>(op)) {
    Value one = number(1, type);
    if (isFloat) {
      Value positive = select(compare(arith::CmpFPredicate::OGT, x, zero), one, x);
      Value either = select(compare(arith::CmpFPredicate::OLT, x, zero), number(-1, type), positive);
      return select(compare(arith::CmpFPredicate::OEQ, x, zero), zero, either);
    }
    Value isZero = compareInt(arith::CmpIPredicate::eq, x, zero);
    if (isUnsigned)
      return select(isZero, zero, one);
    return select(isZero, zero, select(compareInt(arith::CmpIPredicate::slt, x, zero), number(-1, type), one));
  }
  if (isa<NotOp, BitwiseNotOp>(op))
    return builder.create<arith::XOrIOp>(loc, x, number(-1, type));
  if (isa<IsNaNOp>(op))
    return compare(arith::CmpFPredicate::UNO, x, x);
  if (auto test = dyn_cast<IsInfOp>(op)) {
    Value up = compare(arith::CmpFPredicate::OEQ, x, number(infinity, type));
    Value down = compare(arith::CmpFPredicate::OEQ, x, number(-infinity, type));
    Value never = number(0, up.getType());
    return builder.create<arith::OrIOp>(loc, test.getDetectPositive() ? up : never,
                                        test.getDetectNegative() ? down : never);
  }
  return isFloat ? floatUnary(op, x) : Value();
}

Value Elements::compare(Operation *op, Value a, Value b, Type elementType) {
  bool isFloat = isa<FloatType>(elementType), isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  auto make = [&](F f, I s, I u) -> Value {
    if (isFloat)
      return builder.create<arith::CmpFOp>(loc, f, a, b);
    return builder.create<arith::CmpIOp>(loc, isUnsigned ? u : s, a, b);
  };
  if (isa<EqualOp>(op))
    return make(F::OEQ, I::eq, I::eq);
  if (isa<GreaterOp>(op))
    return make(F::OGT, I::sgt, I::ugt);
  if (isa<LessOp>(op))
    return make(F::OLT, I::slt, I::ult);
  if (isa<GreaterOrEqualOp>(op))
    return make(F::OGE, I::sge, I::uge);
  if (isa<LessOrEqualOp>(op))
    return make(F::OLE, I::sle, I::ule);
  return {};
}

Value Elements::remainder(Value a, Value b, Type elementType, bool fmod) {
  Type type = a.getType();
  auto select = [&](Value c, Value x, Value y) -> Value { return builder.create<arith::SelectOp>(loc, c, x, y); };
  if (isa<FloatType>(elementType)) {
    FloatMath m{builder, loc, *this, type};
    Value r;
    if (getElementTypeOrSelf(type).isF64() || !target.hasFma) {
      r = builder.create<arith::RemFOp>(loc, a, b);
    } else {
      // In f64 the truncated quotient of two f32 is off by one at most, and a - q b is exact, while it has 53 bits;
      // beyond that the remainder is one of rounding in any case.
      auto vector = dyn_cast<VectorType>(type);
      Type wide = vector ? Type(vector.clone(builder.getF64Type())) : Type(builder.getF64Type());
      FloatMath w{builder, loc, *this, wide};
      auto widen = [&](Value v) -> Value { return builder.create<arith::ExtFOp>(loc, wide, v); };
      Value x = w.abs(widen(a)), y = w.abs(widen(b));
      Value q = builder.create<math::FloorOp>(loc, w.div(x, y));
      Value rest = w.fma(w.neg(q), y, x);
      rest = w.select(w.less(rest, w.number(0)), w.add(rest, y), rest);
      rest = w.select(w.compare(arith::CmpFPredicate::OGE, rest, y), w.sub(rest, y), rest);
      Value isInfinite = w.compare(arith::CmpFPredicate::OEQ, y, w.number(infinity));
      Value isFinite = w.less(x, w.number(infinity));
      rest = w.select(builder.create<arith::AndIOp>(loc, isInfinite, isFinite), x, rest);
      r = builder.create<arith::TruncFOp>(loc, type, rest);
      r = builder.create<math::CopySignOp>(loc, r, a);
    }
    if (fmod)
      return r;
    // The divisor's sign.
    Value isZero = m.compare(arith::CmpFPredicate::OEQ, r, m.number(0));
    Value zero = builder.create<math::CopySignOp>(loc, m.number(0), b);
    Value differs = m.less(m.mul(builder.create<math::CopySignOp>(loc, m.number(1), r),
                                 builder.create<math::CopySignOp>(loc, m.number(1), b)),
                           m.number(0));
    return m.select(isZero, zero, m.select(differs, m.add(r, b), r));
  }
  auto is = [&](Value x, int64_t value) -> Value {
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x, number(double(value), type));
  };
  Value zero = number(0, type), one = number(1, type);
  if (elementType.isUnsignedInteger()) {
    Value safe = select(is(b, 0), one, b);
    return select(is(b, 0), zero, builder.create<arith::RemUIOp>(loc, a, safe));
  }
  Value isSpecial = builder.create<arith::OrIOp>(loc, is(b, 0), is(b, -1));
  Value r = builder.create<arith::RemSIOp>(loc, a, select(isSpecial, one, b));
  if (fmod)
    return select(isSpecial, zero, r);
  auto negative = [&](Value x) -> Value {
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, zero);
  };
  Value differs = builder.create<arith::XOrIOp>(loc, negative(r), negative(b));
  Value isRest = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, r, zero);
  r = select(builder.create<arith::AndIOp>(loc, differs, isRest), add(r, b), r);
  return select(isSpecial, zero, r);
}

Value Elements::power(Value base, Type baseType, Value exponent, Type exponentType) {
  if (!isa<FloatType>(baseType))
    return {};
  Type wide = baseType.isF64() || exponentType.isF64() ? builder.getF64Type() : builder.getF32Type();
  Value x = cast(base, baseType.isF64() ? baseType : builder.getF32Type(), wide);
  Type plainExponent =
      isa<FloatType>(exponentType) && !exponentType.isF64() ? Type(builder.getF32Type()) : exponentType;
  Value y = cast(exponent, plainExponent, wide);
  Value z = builder.create<math::PowFOp>(loc, x, y);
  return cast(z, wide, baseType);
}

Value Elements::binary(Operation *op, Value a, Value b, Type elementType) {
  auto select = [&](Value c, Value x, Value y) -> Value { return builder.create<arith::SelectOp>(loc, c, x, y); };
  Type type = a.getType();
  if (isa<AddOp>(op))
    return add(a, b);
  if (isa<SubOp>(op))
    return sub(a, b);
  if (isa<MulOp>(op))
    return mul(a, b);
  if (isa<DivOp>(op))
    return div(a, b, elementType);
  if (auto mod = dyn_cast<ModOp>(op))
    return remainder(a, b, elementType, mod.getFmod() != 0);
  if (isa<AndOp, BitwiseAndOp>(op))
    return builder.create<arith::AndIOp>(loc, a, b);
  if (isa<OrOp, BitwiseOrOp>(op))
    return builder.create<arith::OrIOp>(loc, a, b);
  if (isa<XorOp, BitwiseXorOp>(op))
    return builder.create<arith::XOrIOp>(loc, a, b);
  if (isa<PReluOp>(op)) {
    Value zero = number(0, type);
    Value isNegative;
    if (isa<FloatType>(elementType))
      isNegative = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, a, zero);
    else if (elementType.isUnsignedInteger())
      return a;
    else
      isNegative = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, zero);
    return select(isNegative, mul(a, b), a);
  }
  if (auto shift = dyn_cast<BitShiftOp>(op)) {
    // A shift by the width or more, or a negative one, leaves copies of the sign bit, or zeros.
    unsigned width = elementType.getIntOrFloatBitWidth();
    bool isSigned = !elementType.isUnsignedInteger();
    Value inside = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, b, number(double(width), type));
    Value amount = select(inside, b, number(0, type));
    if (isLeft(shift))
      return select(inside, builder.create<arith::ShLIOp>(loc, a, amount), number(0, type));
    if (!isSigned)
      return select(inside, builder.create<arith::ShRUIOp>(loc, a, amount), number(0, type));
    Value fill = builder.create<arith::ShRSIOp>(loc, a, number(double(width - 1), type));
    return select(inside, builder.create<arith::ShRSIOp>(loc, a, amount), fill);
  }
  return {};
}

Value Elements::quantize(Operation *op, ArrayRef<Value> operands) {
  auto quantizeOp = llvm::cast<QuantizeLinearOp>(op);
  Type to = elementOf(quantizeOp.getResult());
  Value quotient = builder.create<arith::DivFOp>(loc, operands[0], operands[1]);
  Value y = builder.create<math::RoundEvenOp>(loc, quotient);
  if (operands.size() > 2 && operands[2])
    y = add(y, cast(operands[2], to, builder.getF32Type()));
  return cast(y, builder.getF32Type(), to);
}

Value Elements::dequantize(Operation *op, ArrayRef<Value> operands) {
  auto dequantizeOp = llvm::cast<DequantizeLinearOp>(op);
  Type from = elementOf(dequantizeOp.getX()), to = elementOf(dequantizeOp.getResult());
  Type scaleType = elementOf(dequantizeOp.getScale());
  Type wide = builder.getF32Type();
  Value x;
  if (from.getIntOrFloatBitWidth() <= 16) {
    x = cast(operands[0], from, wide); // differences of 16 bits are exact in f32
    if (operands.size() > 2 && operands[2])
      x = sub(x, cast(operands[2], from, wide));
  } else {
    Type i64 = builder.getI64Type();
    x = cast(operands[0], from, i64);
    if (operands.size() > 2 && operands[2])
      x = sub(x, cast(operands[2], from, i64));
    x = cast(x, i64, wide);
  }
  Value scale = scaleType.isF64() ? cast(operands[1], scaleType, wide) : operands[1];
  Value y = mul(x, scale);
  return to.isF64() ? cast(y, wide, to) : round(y, to);
}

Value Elements::compute(Operation *op, ArrayRef<Value> operands, std::string &whyNot) {
  Type from = op->getNumOperands() ? elementOf(op->getOperand(0)) : Type();
  Type to = elementOf(op->getResult(0));
  Value result;
  if (!computes(op)) {
    whyNot = "no vector code for " + op->getName().getStringRef().str() + " on " + elementTypeText(to);
    return {};
  }
  if (isa<CastOp, CastLikeOp>(op)) {
    result = cast(operands[0], from, to);
  } else if (auto clip = dyn_cast<ClipOp>(op)) {
    result = operands[0];
    if (operands.size() > 1 && operands[1])
      result = maximum(result, operands[1], from);
    if (operands.size() > 2 && operands[2])
      result = minimum(result, operands[2], from);
  } else if (isa<WhereOp>(op)) {
    result = builder.create<arith::SelectOp>(loc, operands[0], operands[1], operands[2]);
  } else if (isa<MaxOp, MinOp, SumOp, MeanOp>(op)) {
    result = operands[0];
    for (Value next : operands.drop_front())
      result = isa<MaxOp>(op)   ? maximum(result, next, from)
               : isa<MinOp>(op) ? minimum(result, next, from)
                                : add(result, next);
    if (isa<MeanOp>(op))
      result = div(result, number(double(operands.size()), result.getType()), from);
    result = round(result, to);
  } else if (isa<QuantizeLinearOp>(op)) {
    result = quantize(op, operands);
  } else if (isa<DequantizeLinearOp>(op)) {
    result = dequantize(op, operands);
  } else if (auto pow = dyn_cast<PowOp>(op)) {
    Value x = operands[0];
    auto exponent = constantNumber(pow.getB());
    FloatMath m{builder, loc, *this, x.getType()};
    bool isFloat = isa<FloatType>(from);
    double n = exponent.value_or(0.25);
    if (exponent && n == std::floor(n) && n >= 0 && n <= (isFloat ? 4 : 64)) {
      // Square and multiply: exact for integers, 2 ULP for floats.
      Value square = x;
      for (int64_t rest = int64_t(n); rest > 0; rest >>= 1) {
        if (rest & 1)
          result = result ? mul(result, square) : square;
        if (rest > 1)
          square = mul(square, square);
      }
      if (!result)
        result = integer(
            1, from, isa<VectorType>(x.getType()) ? unsigned(llvm::cast<VectorType>(x.getType()).getNumElements()) : 0);
    } else if (isFloat && exponent && (n == 0.5 || n == -0.5)) {
      Value root = m.add(builder.create<math::SqrtOp>(loc, x), m.number(0)); // -0 gives +0
      root = m.select(m.compare(arith::CmpFPredicate::OEQ, x, m.number(-infinity)), m.number(infinity), root);
      result = n > 0 ? root : m.div(m.number(1), root);
    } else if (isFloat && exponent && n == -1) {
      result = m.div(m.number(1), x);
    } else {
      result = power(x, from, operands[1], elementOf(op->getOperand(1)));
    }
    if (result)
      result = round(result, to);
  } else if (isa<EqualOp, GreaterOp, LessOp, GreaterOrEqualOp, LessOrEqualOp>(op)) {
    result = compare(op, operands[0], operands[1], from);
  } else if (operands.size() == 2) {
    result = binary(op, operands[0], operands[1], from);
    if (result)
      result = round(result, to);
  } else {
    result = unary(op, operands[0], from);
    if (result)
      result = round(result, to);
  }
  if (!result)
    whyNot = "no vector code for " + op->getName().getStringRef().str() + " on " + elementTypeText(to);
  return result;
}

} // namespace firn
