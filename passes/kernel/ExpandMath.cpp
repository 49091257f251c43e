// Polynomials for math functions on f32.
//
// Maximum errors in ULP over all finite inputs unless a range is given, swept by test/compiler/codegen/MathTest.cpp:
//   exp 1.5, expm1 2, log 1.5, log1p 2, sin and cos 1.5 (|x| <= 1e6), tan 3 (|x| <= 1e6), tanh 5, erf 6, asin 3,
//   acos 3, atan 3, sinh 5 and cosh 4 (a squared exponential doubles its error), asinh 4, acosh 4, atanh 4, pow 1.
// NaN gives NaN, infinities and the sign of zero are those of IEEE; results that are denormal stay so.
// tanh is MLIR's rational approximation.
#include "passes/kernel/ConvertKernelToLLVM.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace firn {
namespace {

/// Builds expressions on f32 (or f64) scalars or vectors of one shape.
class Expression {
public:
  Expression(OpBuilder &at, Location where, Type floatType, const MathOptions &with)
      : builder(at), loc(where), type(floatType), options(with) {}

  Type intType() const {
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    return retype(IntegerType::get(type.getContext(), width));
  }
  Type retype(Type element) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(element);
    return element;
  }
  Value number(double value) {
    Type element = getElementTypeOrSelf(type);
    return splat(builder.getFloatAttr(element, value), type);
  }
  Value integer(int64_t value) {
    Type whole = intType();
    return splat(builder.getIntegerAttr(getElementTypeOrSelf(whole), value), whole);
  }
  Value splat(TypedAttr value, Type of) {
    if (auto vector = dyn_cast<VectorType>(of))
      return builder.create<arith::ConstantOp>(loc, DenseElementsAttr::get(vector, Attribute(value)));
    return builder.create<arith::ConstantOp>(loc, value);
  }
  Value add(Value a, Value b) { return builder.create<arith::AddFOp>(loc, a, b); }
  Value sub(Value a, Value b) { return builder.create<arith::SubFOp>(loc, a, b); }
  Value mul(Value a, Value b) { return builder.create<arith::MulFOp>(loc, a, b); }
  Value div(Value a, Value b) { return builder.create<arith::DivFOp>(loc, a, b); }
  Value fma(Value a, Value b, Value c) {
    if (!options.hasFma)
      return add(mul(a, b), c);
    return builder.create<math::FmaOp>(loc, a, b, c);
  }
  Value sqrt(Value a) { return builder.create<math::SqrtOp>(loc, a); }
  Value abs(Value a) { return builder.create<math::AbsFOp>(loc, a); }
  Value copySign(Value a, Value sign) { return builder.create<math::CopySignOp>(loc, a, sign); }
  Value nearest(Value a) { return builder.create<math::RoundEvenOp>(loc, a); }
  Value select(Value c, Value a, Value b) { return builder.create<arith::SelectOp>(loc, c, a, b); }
  Value less(Value a, Value b) { return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, a, b); }
  Value greater(Value a, Value b) { return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, a, b); }
  Value equal(Value a, Value b) { return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, a, b); }
  /// max(x, low), min(x, high); NaN stays.
  Value atLeast(Value x, double low) { return select(less(x, number(low)), number(low), x); }
  Value atMost(Value x, double high) { return select(greater(x, number(high)), number(high), x); }
  Value bits(Value a) { return builder.create<arith::BitcastOp>(loc, intType(), a); }
  Value fromBits(Value a) { return builder.create<arith::BitcastOp>(loc, type, a); }
  Value toInt(Value a) { return builder.create<arith::FPToSIOp>(loc, intType(), a); }
  Value toFloat(Value a) { return builder.create<arith::SIToFPOp>(loc, type, a); }
  template <typename Op> Value whole(Value a, Value b) { return builder.create<Op>(loc, a, b); }
  /// c[0] + c[1] x + ...
  Value polynomial(Value x, ArrayRef<double> c) {
    Value sum = number(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, number(coefficient));
    return sum;
  }
  /// 2^n for whole numbers n in [-126, 127].
  Value powerOfTwo(Value n) {
    Value biased = whole<arith::AddIOp>(n, integer(127));
    return fromBits(whole<arith::ShLIOp>(biased, integer(23)));
  }

  OpBuilder &builder;
  Location loc;
  Type type;
  const MathOptions &options;
};

constexpr double ln2High = 0.693359375, ln2Low = -2.12194440e-4, log2e = 1.44269504088896341;
constexpr double infinity = std::numeric_limits<double>::infinity();
const double expTail[] = {5.000000083e-01, 1.666666687e-01, 4.166625400e-02,
                          8.333261581e-03, 1.394721197e-03, 1.991992163e-04};

/// n = nearest(x / ln 2) and r = x - n ln 2.
std::pair<Value, Value> reduceByLn2(Expression &e, Value x) {
  Value n = e.nearest(e.mul(x, e.number(log2e)));
  Value r = e.fma(n, e.number(-ln2High), x);
  return {n, e.fma(n, e.number(-ln2Low), r)};
}

Value emitExp(Expression &e, Value x) {
  x = e.atMost(e.atLeast(x, -104.0), 89.0); // beyond: 0 and infinity
  auto [n, r] = reduceByLn2(e, x);
  Value p = e.fma(e.mul(r, r), e.polynomial(r, expTail), e.add(r, e.number(1)));
  auto vector = dyn_cast<VectorType>(e.type);
  if (e.options.hasAvx512 && vector && (vector.getNumElements() == 16 || vector.getNumElements() == 8)) {
    // One instruction multiplies by 2^n, denormal results included.
    bool isWide = vector.getNumElements() == 16;
    Type maskType = e.builder.getIntegerType(isWide ? 16 : 8);
    Value mask = e.builder.create<LLVM::ConstantOp>(e.loc, maskType, e.builder.getIntegerAttr(maskType, -1));
    SmallVector<Value> arguments{p, n, p, mask};
    if (isWide)
      arguments.push_back(
          e.builder.create<LLVM::ConstantOp>(e.loc, e.builder.getI32Type(), e.builder.getI32IntegerAttr(4)));
    auto name =
        e.builder.getStringAttr(isWide ? "llvm.x86.avx512.mask.scalef.ps.512" : "llvm.x86.avx512.mask.scalef.ps.256");
    return e.builder.create<LLVM::CallIntrinsicOp>(e.loc, e.type, name, arguments).getResults();
  }
  // 2^n may be out of range where the product is not (n = 128, denormals): two factors.
  Value whole = e.toInt(n);
  Value half = e.whole<arith::ShRSIOp>(whole, e.integer(1));
  Value rest = e.whole<arith::SubIOp>(whole, half);
  return e.mul(e.mul(p, e.powerOfTwo(half)), e.powerOfTwo(rest));
}

/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1): no cancellation near 0.
Value emitExpm1(Expression &e, Value x) {
  Value inside = e.atMost(e.atLeast(x, -30.0), 88.7);
  Value n = e.atMost(e.nearest(e.mul(inside, e.number(log2e))), 127.0);
  Value r = e.fma(n, e.number(-ln2High), inside);
  r = e.fma(n, e.number(-ln2Low), r);
  Value p = e.fma(e.mul(r, r), e.polynomial(r, expTail), r);
  Value scale = e.powerOfTwo(e.toInt(n));
  Value y = e.fma(p, scale, e.sub(scale, e.number(1)));
  y = e.select(e.greater(x, e.number(88.72283)), e.number(infinity), y);
  return e.select(e.equal(x, e.number(0)), x, y); // keeps -0
}

/// log of x > 0 and normal: exponent and a mantissa in [sqrt(1/2), sqrt(2)).
Value emitLog(Expression &e, Value x) {
  static const double tail[] = {3.333331044e-01,  -2.499998659e-01, 2.000222658e-01,  -1.666925115e-01, 1.421865888e-01,
                                -1.238434308e-01, 1.187296550e-01,  -1.178983519e-01, 6.915424463e-02};
  constexpr double leastNormal = 1.17549435e-38, twoTo23 = 8388608.0;
  Value isTiny = e.less(x, e.number(leastNormal));
  Value scaled = e.select(isTiny, e.mul(x, e.number(twoTo23)), x);
  Value all = e.bits(scaled);
  // Subtracting the bits of sqrt(1/2) makes the exponent field floor(log2(x / sqrt(1/2))).
  constexpr int64_t rootHalf = 0x3f3504f3;
  Value shifted = e.whole<arith::SubIOp>(all, e.integer(rootHalf));
  Value exponent = e.whole<arith::ShRSIOp>(shifted, e.integer(23));
  Value mantissa = e.fromBits(e.whole<arith::SubIOp>(all, e.whole<arith::ShLIOp>(exponent, e.integer(23))));
  Value k = e.add(e.toFloat(exponent), e.select(isTiny, e.number(-23), e.number(0)));
  Value f = e.sub(mantissa, e.number(1));
  Value f2 = e.mul(f, f);
  Value y = e.mul(e.mul(f, f2), e.polynomial(f, tail));
  y = e.fma(k, e.number(ln2Low), y);
  y = e.fma(f2, e.number(-0.5), y);
  y = e.fma(k, e.number(ln2High), e.add(f, y));
  y = e.select(e.equal(x, e.number(infinity)), x, y);
  y = e.select(e.equal(x, e.number(0)), e.number(-infinity), y);
  Value isPositiveOrZero = e.builder.create<arith::CmpFOp>(e.loc, arith::CmpFPredicate::OGE, x, e.number(0));
  return e.select(isPositiveOrZero, y, e.number(std::numeric_limits<double>::quiet_NaN()));
}

Value emitLog1p(Expression &e, Value x) {
  // |x| small: 2 atanh(s), s = x / (2 + x). Else log(u), u = 1 + x, with what rounding u lost.
  static const double tail[] = {6.666667567e-01, 3.999887288e-01, 2.861703520e-01, 2.142585203e-01, 2.430832096e-01};
  Value s = e.div(x, e.add(x, e.number(2)));
  Value z = e.mul(s, s);
  // 2s = x - s x, so that the leading term is exact.
  Value near = e.sub(x, e.mul(s, e.sub(x, e.mul(z, e.polynomial(z, tail)))));
  Value u = e.add(x, e.number(1));
  Value far = emitLog(e, u);
  Value lost = e.div(e.sub(x, e.sub(u, e.number(1))), u);
  Value isOrdinary = e.less(e.abs(u), e.number(infinity));
  Value isZero = e.equal(u, e.number(0));
  far = e.select(isOrdinary, e.select(isZero, far, e.add(far, lost)), far);
  Value isNear = e.less(e.abs(x), e.number(0.25));
  Value y = e.select(isNear, near, far);
  return e.select(e.equal(x, e.number(0)), x, y);
}

struct Quadrant {
  Value sine, cosine; // of the remainder in [-pi/4, pi/4]
  Value number;       // 0..3, as an integer
};

Quadrant reduceByHalfPi(Expression &e, Value x) {
  // In f64: 53 bits leave enough of the remainder for |x| up to about 1e9.
  Type wide = e.retype(e.builder.getF64Type());
  Expression w(e.builder, e.loc, wide, e.options);
  Value xw = e.builder.create<arith::ExtFOp>(e.loc, wide, x);
  Value n = w.nearest(w.mul(xw, w.number(0.63661977236758134308)));
  Value r = w.fma(n, w.number(-1.57079632679489655800), xw);
  r = w.fma(n, w.number(-6.12323399573676603587e-17), r);
  Value quarter = e.builder.create<math::FloorOp>(e.loc, w.mul(n, w.number(0.25)));
  Value rest = w.fma(quarter, w.number(-4), n);
  Quadrant q;
  q.number = e.builder.create<arith::FPToSIOp>(e.loc, e.intType(), rest);
  Value narrow = e.builder.create<arith::TruncFOp>(e.loc, e.type, r);
  Value z = e.mul(narrow, narrow);
  q.sine = e.fma(e.mul(narrow, z),
                 e.polynomial(z, {-1.666666664e-01, 8.333329362e-03, -1.983932714e-04, 2.718237270e-06}), narrow);
  q.cosine = e.fma(e.mul(z, z), e.polynomial(z, {4.166664675e-02, -1.388736145e-03, 2.443772992e-05}),
                   e.fma(z, e.number(-0.5), e.number(1)));
  return q;
}

/// sin(r + q pi/2).
Value sineOf(Expression &e, const Quadrant &q, Value quadrant) {
  Value odd = e.whole<arith::AndIOp>(quadrant, e.integer(1));
  Value isOdd = e.builder.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::ne, odd, e.integer(0));
  Value y = e.select(isOdd, q.cosine, q.sine);
  Value sign = e.whole<arith::ShLIOp>(e.whole<arith::AndIOp>(quadrant, e.integer(2)), e.integer(30));
  return e.fromBits(e.whole<arith::XOrIOp>(e.bits(y), sign));
}
Value emitSin(Expression &e, Value x) {
  Quadrant q = reduceByHalfPi(e, x);
  return e.select(e.equal(x, e.number(0)), x, sineOf(e, q, q.number));
}
Value emitCos(Expression &e, Value x) {
  Quadrant q = reduceByHalfPi(e, x);
  return sineOf(e, q, e.whole<arith::AddIOp>(q.number, e.integer(1)));
}
Value emitTan(Expression &e, Value x) {
  Quadrant q = reduceByHalfPi(e, x);
  Value y = e.div(sineOf(e, q, q.number), sineOf(e, q, e.whole<arith::AddIOp>(q.number, e.integer(1))));
  return e.select(e.equal(x, e.number(0)), x, y);
}

constexpr double halfPi = 1.57079632679489661923, pi = 3.14159265358979323846;

/// asin of |x| <= 1/2.
Value asinSeries(Expression &e, Value x) {
  Value z = e.mul(x, x);
  return e.fma(e.mul(x, z),
               e.polynomial(z, {1.666675444e-01, 7.495218979e-02, 4.548021322e-02, 2.413105644e-02, 4.224853483e-02}),
               x);
}
Value emitAsin(Expression &e, Value x) {
  Value a = e.abs(x);
  Value isBig = e.greater(a, e.number(0.5));
  Value inner = e.select(isBig, e.sqrt(e.mul(e.sub(e.number(1), a), e.number(0.5))), a);
  Value y = asinSeries(e, inner);
  y = e.select(isBig, e.fma(y, e.number(-2), e.number(halfPi)), y);
  return e.copySign(y, x);
}
Value emitAcos(Expression &e, Value x) {
  Value a = e.abs(x);
  Value isBig = e.greater(a, e.number(0.5));
  Value inner = e.select(isBig, e.sqrt(e.mul(e.sub(e.number(1), a), e.number(0.5))), x);
  Value y = asinSeries(e, inner);
  Value twice = e.add(y, y);
  Value big = e.select(e.less(x, e.number(0)), e.sub(e.number(pi), twice), twice);
  return e.select(isBig, big, e.sub(e.number(halfPi), y));
}
Value emitAtan(Expression &e, Value x) {
  Value a = e.abs(x);
  Value isBig = e.greater(a, e.number(2.414213562373095)), isMiddle = e.greater(a, e.number(0.4142135623730950));
  Value top = e.select(isBig, e.number(-1), e.select(isMiddle, e.sub(a, e.number(1)), a));
  Value bottom = e.select(isBig, a, e.select(isMiddle, e.add(a, e.number(1)), e.number(1)));
  Value t = e.div(top, bottom);
  Value z = e.mul(t, t);
  Value y = e.fma(
      e.mul(t, z),
      e.polynomial(z, {-3.333331534e-01, 1.999847855e-01, -1.424362855e-01, 1.059427666e-01, -6.078857355e-02}), t);
  y = e.add(y, e.select(isBig, e.number(halfPi), e.select(isMiddle, e.number(halfPi / 2), e.number(0))));
  return e.copySign(y, x);
}
Value emitSinh(Expression &e, Value x) {
  Value a = e.abs(x);
  Value z = e.mul(x, x);
  Value near =
      e.fma(e.mul(x, z), e.polynomial(z, {1.666666649e-01, 8.333350650e-03, 1.983605579e-04, 2.817501880e-06}), x);
  // e^(a - ln 2) does not overflow before sinh does; 0.25 / (e^a / 2) = e^-a / 2.
  Value half = emitExp(e, e.mul(a, e.number(0.5)));
  Value grown = e.mul(e.mul(half, e.number(0.5)), half);
  Value far = e.copySign(e.sub(grown, e.div(e.number(0.25), grown)), x);
  return e.select(e.less(a, e.number(1)), near, far);
}
Value emitCosh(Expression &e, Value x) {
  Value half = emitExp(e, e.mul(e.abs(x), e.number(0.5)));
  Value grown = e.mul(e.mul(half, e.number(0.5)), half);
  return e.add(grown, e.div(e.number(0.25), grown));
}
Value emitAsinh(Expression &e, Value x) {
  Value a = e.abs(x);
  Value isHuge = e.greater(a, e.number(1e9));
  Value tame = e.select(isHuge, e.number(1), a);
  Value z = e.mul(tame, tame);
  Value argument = e.add(tame, e.div(z, e.add(e.number(1), e.sqrt(e.add(z, e.number(1))))));
  Value y = e.select(isHuge, e.add(emitLog(e, a), e.number(0.69314718055994531)), emitLog1p(e, argument));
  return e.copySign(y, x);
}
Value emitAcosh(Expression &e, Value x) {
  Value isHuge = e.greater(x, e.number(1e9));
  Value t = e.sub(e.select(isHuge, e.number(1), x), e.number(1));
  Value y = emitLog1p(e, e.add(t, e.sqrt(e.mul(t, e.add(t, e.number(2))))));
  y = e.select(isHuge, e.add(emitLog(e, x), e.number(0.69314718055994531)), y);
  return e.select(e.less(x, e.number(1)), e.number(std::numeric_limits<double>::quiet_NaN()), y);
}
Value emitAtanh(Expression &e, Value x) {
  Value a = e.abs(x);
  Value y = e.mul(e.number(0.5), emitLog1p(e, e.div(e.add(a, a), e.sub(e.number(1), a))));
  return e.copySign(y, x);
}

/// x P(x^2) / Q(x^2); beyond 3.95 it is 1 in f32.
Value emitErf(Expression &e, Value x) {
  Value inside = e.atMost(e.atLeast(x, -3.95), 3.95);
  Value z = e.mul(inside, inside);
  Value top = e.polynomial(
      z, {1.128379144e+00, 1.915511607e-01, 5.287553849e-02, 3.808186312e-03, 2.846861918e-04, 2.025877495e-06});
  Value bottom =
      e.polynomial(z, {1.0, 5.030904727e-01, 1.145599539e-01, 1.505514950e-02, 1.170727370e-03, 3.783139713e-05});
  Value y = e.div(e.mul(inside, top), bottom);
  return e.atMost(e.atLeast(y, -1), 1);
}

/// a^b by log2 and exp2 in f64: f32 would lose the digits that b multiplies.
Value emitPow(Expression &e, Value a, Value b) {
  Type wide = e.retype(e.builder.getF64Type());
  Expression w(e.builder, e.loc, wide, e.options);
  auto widen = [&](Value v) -> Value { return e.builder.create<arith::ExtFOp>(e.loc, wide, v); };
  Value size = e.abs(a);
  // log2 |a|: exponent and mantissa in [sqrt(1/2), sqrt(2)) of the f64.
  Value x = widen(size);
  Value all = w.bits(x);
  Value exponent = w.whole<arith::ShRSIOp>(w.whole<arith::SubIOp>(all, w.integer(0x3fe6a09e667f3bcd)), w.integer(52));
  Value mantissa = w.fromBits(w.whole<arith::SubIOp>(all, w.whole<arith::ShLIOp>(exponent, w.integer(52))));
  Value s = w.div(w.sub(mantissa, w.number(1)), w.add(mantissa, w.number(1)));
  Value z = w.mul(s, s);
  Value log = w.polynomial(z, {2.8853900817778482, 0.96179669411308399, 0.57707794403889023, 0.41220878907715419,
                               0.31995006814669308, 0.28114879344083504, 0.024371562327044721});
  log = w.fma(s, log, w.toFloat(exponent));
  Value power = w.mul(log, widen(b));
  power = w.atMost(w.atLeast(power, -160), 130);
  Value n = w.nearest(power);
  Value y = w.polynomial(w.sub(power, n), {1.000000000000032, 0.69314718054476987, 0.24022650695430625,
                                           0.05550410945815281, 0.0096181292359426174, 0.0013333446188688019,
                                           0.00015403406811155507, 1.5311235340076531e-05, 1.3265044437512075e-06});
  Value scale = w.fromBits(w.whole<arith::ShLIOp>(w.whole<arith::AddIOp>(w.toInt(n), w.integer(1023)), w.integer(52)));
  Value result = e.builder.create<arith::TruncFOp>(e.loc, e.type, w.mul(y, scale));
  // The corners: |a| 0, 1 or infinite, b infinite, signs, NaN.
  Value zero = e.number(0), one = e.number(1), inf = e.number(infinity);
  Value bUp = e.greater(b, zero), bDown = e.less(b, zero);
  Value isInfiniteB = e.equal(e.abs(b), inf);
  Value aIsSmall = e.less(size, one), aIsBig = e.greater(size, one);
  auto either = [&](Value p, Value q) -> Value { return e.builder.create<arith::OrIOp>(e.loc, p, q); };
  auto both = [&](Value p, Value q) -> Value { return e.builder.create<arith::AndIOp>(e.loc, p, q); };
  Value isExtremeA = either(e.equal(size, zero), e.equal(size, inf));
  Value isExtreme = either(isExtremeA, isInfiniteB);
  Value grows = either(both(aIsBig, bUp), both(aIsSmall, bDown)),
        shrinks = either(both(aIsSmall, bUp), both(aIsBig, bDown));
  Value extreme = e.select(grows, inf, e.select(shrinks, zero, one));
  result = e.select(isExtreme, extreme, result);
  // A negative base: the sign by the parity of a whole exponent, NaN for another (unless |a| is extreme or b infinite).
  Value half = e.mul(b, e.number(0.5));
  auto floor = [&](Value v) -> Value { return e.builder.create<math::FloorOp>(e.loc, v); };
  Value isWhole = e.equal(floor(b), b);
  Value isOdd = both(isWhole, e.builder.create<arith::CmpFOp>(e.loc, arith::CmpFPredicate::UNE, floor(half), half));
  Value sign = e.builder.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::slt, e.bits(a), e.integer(0));
  Value nan = e.number(std::numeric_limits<double>::quiet_NaN());
  Value negative = e.builder.create<arith::NegFOp>(e.loc, result);
  Value ofNegative = e.select(isOdd, negative, e.select(either(isWhole, isExtreme), result, nan));
  result = e.select(sign, ofNegative, result);
  Value isNan = e.builder.create<arith::CmpFOp>(e.loc, arith::CmpFPredicate::UNO, a, b);
  result = e.select(isNan, nan, result);
  return e.select(either(e.equal(b, zero), e.equal(a, one)), one, result);
}

using Emitter = Value (*)(Expression &, Value);

Emitter emitterOf(Operation *op) {
  return TypeSwitch<Operation *, Emitter>(op)
      .Case([](math::ExpOp) { return emitExp; })
      .Case([](math::ExpM1Op) { return emitExpm1; })
      .Case([](math::LogOp) { return emitLog; })
      .Case([](math::Log1pOp) { return emitLog1p; })
      .Case([](math::SinOp) { return emitSin; })
      .Case([](math::CosOp) { return emitCos; })
      .Case([](math::TanOp) { return emitTan; })
      .Case([](math::AsinOp) { return emitAsin; })
      .Case([](math::AcosOp) { return emitAcos; })
      .Case([](math::AtanOp) { return emitAtan; })
      .Case([](math::SinhOp) { return emitSinh; })
      .Case([](math::CoshOp) { return emitCosh; })
      .Case([](math::AsinhOp) { return emitAsinh; })
      .Case([](math::AcoshOp) { return emitAcosh; })
      .Case([](math::AtanhOp) { return emitAtanh; })
      .Case([](math::ErfOp) { return emitErf; })
      .Default([](Operation *) { return Emitter(nullptr); });
}

void expandRational(ModuleOp module, ArrayRef<Operation *> operations) {
  RewritePatternSet patterns(module.getContext());
  populatePolynomialApproximateTanhPattern(patterns);
  GreedyRewriteConfig config;
  config.strictMode = GreedyRewriteStrictness::ExistingOps;
  (void)applyOpPatternsAndFold(operations, FrozenRewritePatternSet(std::move(patterns)), config);
}

} // namespace

void expandMath(ModuleOp module, const MathOptions &options) {
  SmallVector<Operation *> functions, rational;
  module.walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
        !getElementTypeOrSelf(op->getResult(0)).isF32())
      return;
    if (isa<math::TanhOp>(op))
      rational.push_back(op);
    else if (emitterOf(op) || isa<math::PowFOp>(op))
      functions.push_back(op);
  });
  for (Operation *op : functions) {
    OpBuilder builder(op);
    Expression e(builder, op->getLoc(), op->getResult(0).getType(), options);
    Value y =
        isa<math::PowFOp>(op) ? emitPow(e, op->getOperand(0), op->getOperand(1)) : emitterOf(op)(e, op->getOperand(0));
    op->getResult(0).replaceAllUsesWith(y);
    op->erase();
  }
  if (!rational.empty())
    expandRational(module, rational);
  if (options.hasFma)
    return;
  SmallVector<math::FmaOp> fused; // without an instruction it would be a call of fmaf
  module.walk([&](math::FmaOp op) { fused.push_back(op); });
  for (math::FmaOp op : fused) {
    OpBuilder builder(op);
    Value product = builder.create<arith::MulFOp>(op.getLoc(), op.getA(), op.getB());
    op.getResult().replaceAllUsesWith(builder.create<arith::AddFOp>(op.getLoc(), product, op.getC()));
    op.erase();
  }
}

} // namespace firn
