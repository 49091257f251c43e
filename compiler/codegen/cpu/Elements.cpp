// Elements in registers: types, loads and stores, constants, casts, rounding, arithmetic that all emitters use.
//
//   NaN:      maximum and minimum of floats give NaN where either side is NaN; casts of NaN to integers give 0
//   Casts:    floats to integers truncate and saturate; integers wrap; to f16 and bf16 round to nearest even, once
//   Integers: sums and products wrap; x / 0 is 0 and the least integer / -1 wraps, so that nothing traps
#include "compiler/codegen/cpu/Elements.h"

#include "dialects/kernel/Kernel.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace firn {
namespace {

bool isSmallFloat(Type type) { return type.isF16() || type.isBF16(); }

/// The same lanes with another element.
Type shapedLike(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

unsigned lanesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? unsigned(vector.getNumElements()) : 0;
}

Value splatAttr(OpBuilder &b, Location loc, TypedAttr value, unsigned lanes) {
  if (lanes == 0)
    return b.create<arith::ConstantOp>(loc, value);
  auto vector = VectorType::get(int64_t(lanes), value.getType());
  return b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(vector, Attribute(value)));
}

/// Integer arithmetic on the bits of floats.
struct Bits {
  OpBuilder &b;
  Location loc;
  Type type; // i32, or a vector of it

  Value number(int64_t value) {
    return splatAttr(b, loc, b.getIntegerAttr(getElementTypeOrSelf(type), value), lanesOf(type));
  }
  Value add(Value x, Value y) { return b.create<arith::AddIOp>(loc, x, y); }
  Value sub(Value x, Value y) { return b.create<arith::SubIOp>(loc, x, y); }
  Value both(Value x, Value y) { return b.create<arith::AndIOp>(loc, x, y); }
  Value either(Value x, Value y) { return b.create<arith::OrIOp>(loc, x, y); }
  Value up(Value x, int64_t by) { return b.create<arith::ShLIOp>(loc, x, number(by)); }
  Value down(Value x, int64_t by) { return b.create<arith::ShRUIOp>(loc, x, number(by)); }
  Value less(Value x, int64_t y) { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x, number(y)); }
  Value select(Value c, Value x, Value y) { return b.create<arith::SelectOp>(loc, c, x, y); }
  Value of(Value x) { return b.create<arith::BitcastOp>(loc, type, x); }
  Value asFloat(Value x) { return b.create<arith::BitcastOp>(loc, shapedLike(type, b.getF32Type()), x); }
};

/// The bits of a bf16 in the upper half of 32 bits, rounded to nearest even; NaN stays NaN.
Value bf16High(Bits bits, Value value) {
  Value raw = bits.of(value);
  Value odd = bits.both(bits.down(raw, 16), bits.number(1));
  Value rounded = bits.add(raw, bits.add(odd, bits.number(0x7fff)));
  Value isNan = bits.b.create<arith::CmpFOp>(bits.loc, arith::CmpFPredicate::UNO, value, value);
  rounded = bits.select(isNan, bits.either(raw, bits.number(0x400000)), rounded);
  return bits.both(rounded, bits.number(0xffff0000));
}

/// f32 to the bits of an f16 (in 32 bits) by integer arithmetic.
Value f16FromF32(Bits bits, Value value) {
  Value raw = bits.of(value);
  Value sign = bits.both(raw, bits.number(0x80000000));
  Value size = bits.sub(raw, sign);
  // Below 2^-14: adding 1/2 as a float moves the bits of a denormal f16 to the bottom, rounded by the adder.
  Value half = bits.number(0x3f000000);
  Value shifted = bits.b.create<arith::AddFOp>(bits.loc, bits.asFloat(size), bits.asFloat(half));
  Value tiny = bits.sub(bits.of(shifted), half);
  Value odd = bits.both(bits.down(size, 13), bits.number(1));
  Value normal = bits.down(bits.add(bits.add(size, odd), bits.number(0xfff - (int64_t(112) << 23))), 13);
  Value isFinite = bits.less(size, 0x7f800001);
  Value large = bits.select(isFinite, bits.number(0x7c00), bits.number(0x7e00));
  Value result = bits.select(bits.less(size, 0x38800000), tiny, normal);
  result = bits.select(bits.less(size, 0x47800000), result, large);
  return bits.either(result, bits.down(sign, 16));
}

/// The bits of an f16 (in 32 bits) to f32.
Value f32FromF16(Bits bits, Value half) {
  Value sign = bits.up(bits.both(half, bits.number(0x8000)), 16);
  Value size = bits.up(bits.both(half, bits.number(0x7fff)), 13);
  Value scale = bits.asFloat(bits.number(int64_t(254 - 15) << 23)); // 2^112
  Value scaled = bits.of(bits.b.create<arith::MulFOp>(bits.loc, bits.asFloat(size), scale));
  Value special = bits.either(size, bits.number(0x7f800000));
  Value result = bits.select(bits.less(size, 0x0f800000), scaled, special);
  return bits.asFloat(bits.either(result, sign));
}

} // namespace

bool Elements::supports(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    return width == 1 || width == 8 || width == 16 || width == 32 || width == 64;
  }
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

Type Elements::registerType(Type elementType, unsigned lanes) {
  Type type = elementType;
  if (isSmallFloat(type))
    type = Float32Type::get(type.getContext());
  else if (auto integer = dyn_cast<IntegerType>(type))
    type = IntegerType::get(type.getContext(), integer.getWidth());
  return lanes == 0 ? type : VectorType::get(int64_t(lanes), type);
}

unsigned Elements::bytes(Type elementType) { return std::max(1u, elementType.getIntOrFloatBitWidth() / 8); }

Value Elements::load(Value buffer, Value offset, Type elementType, unsigned lanes, Value count) {
  auto read = [&](Type element) -> Value {
    Type type = lanes == 0 ? element : VectorType::get(int64_t(lanes), element);
    return builder.create<kernel::LoadOp>(loc, type, buffer, offset, count, /*invariant=*/UnitAttr());
  };
  if (!isSmallFloat(elementType))
    return read(registerType(elementType, 0));
  Value raw = read(builder.getI16Type());
  Type wide = lanes == 0 ? Type(builder.getI32Type()) : VectorType::get(int64_t(lanes), builder.getI32Type());
  Bits bits{builder, loc, wide};
  if (elementType.isBF16())
    return bits.asFloat(bits.up(builder.create<arith::ExtUIOp>(loc, wide, raw), 16));
  if (target.hasF16c) {
    Value half = builder.create<arith::BitcastOp>(loc, shapedLike(wide, builder.getF16Type()), raw);
    return builder.create<arith::ExtFOp>(loc, shapedLike(wide, builder.getF32Type()), half);
  }
  return f32FromF16(bits, builder.create<arith::ExtUIOp>(loc, wide, raw));
}

void Elements::store(Value value, Value buffer, Value offset, Type elementType, Value count) {
  if (isSmallFloat(elementType)) {
    Type wide = shapedLike(value.getType(), builder.getI32Type());
    Type narrow = shapedLike(value.getType(), builder.getI16Type());
    Bits bits{builder, loc, wide};
    if (elementType.isBF16()) {
      value = builder.create<arith::TruncIOp>(loc, narrow, bits.down(bf16High(bits, value), 16));
    } else if (target.hasF16c) {
      value = builder.create<arith::TruncFOp>(loc, shapedLike(value.getType(), builder.getF16Type()), value);
      value = builder.create<arith::BitcastOp>(loc, narrow, value);
    } else {
      value = builder.create<arith::TruncIOp>(loc, narrow, f16FromF32(bits, value));
    }
  }
  builder.create<kernel::StoreOp>(loc, value, buffer, offset, count, /*nontemporal=*/UnitAttr());
}

Value Elements::splat(Value scalar, unsigned lanes) {
  if (lanes == 0 || isa<VectorType>(scalar.getType()))
    return scalar;
  if (auto constant = scalar.getDefiningOp<arith::ConstantOp>())
    return splatAttr(builder, loc, constant.getValue(), lanes);
  return builder.create<vector::BroadcastOp>(loc, VectorType::get(int64_t(lanes), scalar.getType()), scalar);
}

Value Elements::number(double value, Type like) {
  Type element = getElementTypeOrSelf(like);
  if (isa<FloatType>(element))
    return splatAttr(builder, loc, builder.getFloatAttr(element, value), lanesOf(like));
  return splatAttr(builder, loc, builder.getIntegerAttr(element, int64_t(value)), lanesOf(like));
}

Value Elements::constant(double value, Type elementType, unsigned lanes) {
  Type type = registerType(elementType, 0);
  if (auto floating = dyn_cast<FloatType>(type)) {
    APFloat rounded(value);
    bool loses;
    if (isSmallFloat(elementType))
      rounded.convert(llvm::cast<FloatType>(elementType).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    rounded.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return splatAttr(builder, loc, builder.getFloatAttr(floating, rounded), lanes);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APSInt saturated(width, elementType.isUnsignedInteger() || width == 1);
  bool isExact;
  if (!std::isnan(value))
    APFloat(value).convertToInteger(saturated, APFloat::rmTowardZero, &isExact);
  return splatAttr(builder, loc, builder.getIntegerAttr(type, saturated), lanes);
}

Value Elements::integer(int64_t value, Type elementType, unsigned lanes) {
  Type type = registerType(elementType, 0);
  if (isa<FloatType>(type))
    return constant(double(value), elementType, lanes);
  if (type.isInteger(1))
    value = value != 0;
  return splatAttr(builder, loc,
                   builder.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), uint64_t(value), true)), lanes);
}

Value Elements::constant(const ConstantBytes &bytes, int64_t element, Type elementType, unsigned lanes) {
  Type type = registerType(elementType, 0);
  unsigned size = Elements::bytes(elementType);
  const char *at = bytes.bytes.data() + (bytes.isSplat ? 0 : element * size);
  uint64_t raw = 0;
  memcpy(&raw, at, size); // constants are little-endian, as the hosts that compile
  if (isa<FloatType>(elementType)) {
    APFloat value(llvm::cast<FloatType>(elementType).getFloatSemantics(), APInt(size * 8, raw));
    bool loses;
    value.convert(llvm::cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return splatAttr(builder, loc, builder.getFloatAttr(type, value), lanes);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    raw = raw != 0;
  return splatAttr(builder, loc, builder.getIntegerAttr(type, APInt(width, raw)), lanes);
}

Value Elements::round(Value value, Type elementType) {
  if (!isSmallFloat(elementType) || !getElementTypeOrSelf(value).isF32())
    return value;
  Bits bits{builder, loc, shapedLike(value.getType(), builder.getI32Type())};
  if (elementType.isBF16())
    return bits.asFloat(bf16High(bits, value));
  if (target.hasF16c) {
    Value half = builder.create<arith::TruncFOp>(loc, shapedLike(value.getType(), builder.getF16Type()), value);
    return builder.create<arith::ExtFOp>(loc, value.getType(), half);
  }
  return f32FromF16(bits, f16FromF32(bits, value));
}

Value Elements::floatToInteger(Value value, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  Type type = value.getType();
  auto compare = [&](arith::CmpFPredicate p, Value a, Value b) -> Value {
    return builder.create<arith::CmpFOp>(loc, p, a, b);
  };
  auto select = [&](Value c, Value a, Value b) -> Value { return builder.create<arith::SelectOp>(loc, c, a, b); };
  value = select(compare(arith::CmpFPredicate::UNO, value, value), number(0, type), value);
  Type result = shapedLike(type, IntegerType::get(to.getContext(), width));
  double high = std::ldexp(1.0, int(isUnsigned ? width : width - 1)), low = isUnsigned ? 0 : -high;
  value = select(compare(arith::CmpFPredicate::OLT, value, number(low, type)), number(low, type), value);
  if (width <= 16) { // the bounds are exact, and conversion to 32 bits is the one that CPUs have
    value = select(compare(arith::CmpFPredicate::OGT, value, number(high - 1, type)), number(high - 1, type), value);
    Value wide = builder.create<arith::FPToSIOp>(loc, shapedLike(type, builder.getI32Type()), value);
    return builder.create<arith::TruncIOp>(loc, result, wide);
  }
  Value isAbove = compare(arith::CmpFPredicate::OGE, value, number(high, type));
  value = select(isAbove, number(0, type), value);
  Value converted = isUnsigned ? builder.create<arith::FPToUIOp>(loc, result, value).getResult()
                               : builder.create<arith::FPToSIOp>(loc, result, value).getResult();
  APInt most = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  Value top = splatAttr(builder, loc, builder.getIntegerAttr(getElementTypeOrSelf(result), most), lanesOf(type));
  return select(isAbove, top, converted);
}

Value Elements::cast(Value value, Type from, Type to) {
  if (from == to)
    return value;
  Type type = value.getType();
  Type result = shapedLike(type, registerType(to, 0));
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (to.isInteger(1)) {
    if (fromFloat)
      return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, value, number(0, type));
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, value, number(0, type));
  }
  if (fromFloat && toFloat) {
    if (from.isF64() && isSmallFloat(to)) {
      // Rounding twice would be wrong where the first rounding makes a tie: round to odd in between.
      Value narrow = builder.create<arith::TruncFOp>(loc, result, value);
      Value back = builder.create<arith::ExtFOp>(loc, type, narrow);
      Bits bits{builder, loc, shapedLike(type, builder.getI32Type())};
      Value size = builder.create<math::AbsFOp>(loc, value), backSize = builder.create<math::AbsFOp>(loc, back);
      Value isInexact = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ONE, back, value);
      Value isAbove = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, backSize, size);
      Value raw = bits.of(narrow);
      raw = bits.select(isAbove, bits.sub(raw, bits.number(1)), raw);
      raw = bits.select(isInexact, bits.either(raw, bits.number(1)), raw);
      return round(bits.asFloat(raw), to);
    }
    if (from.isF64())
      return builder.create<arith::TruncFOp>(loc, result, value);
    if (to.isF64())
      return builder.create<arith::ExtFOp>(loc, result, value);
    return round(value, to);
  }
  if (fromFloat)
    return floatToInteger(value, to);
  bool isUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (toFloat) {
    bool viaDouble = to.isBF16() && from.getIntOrFloatBitWidth() >= 32; // one rounding for integers of 32 bits
    Type wide = viaDouble ? shapedLike(type, builder.getF64Type()) : result;
    Value converted = isUnsigned ? builder.create<arith::UIToFPOp>(loc, wide, value).getResult()
                                 : builder.create<arith::SIToFPOp>(loc, wide, value).getResult();
    return viaDouble ? cast(converted, builder.getF64Type(), to) : round(converted, to);
  }
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth == toWidth)
    return value;
  if (fromWidth > toWidth)
    return builder.create<arith::TruncIOp>(loc, result, value);
  if (isUnsigned)
    return builder.create<arith::ExtUIOp>(loc, result, value);
  return builder.create<arith::ExtSIOp>(loc, result, value);
}

namespace {
/// Whether a register is a constant that is not NaN.
bool isNumber(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return false;
  Attribute attribute = constant.getValue();
  if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(attribute);
  return number && !number.getValue().isNaN();
}
} // namespace

Value Elements::maximum(Value a, Value b, Type elementType) {
  if (!isa<FloatType>(elementType)) {
    if (elementType.isUnsignedInteger() || elementType.isInteger(1))
      return builder.create<arith::MaxUIOp>(loc, a, b);
    return builder.create<arith::MaxSIOp>(loc, a, b);
  }
  if (isNumber(a))
    std::swap(a, b);
  // The compare and select below are one instruction that gives a where a or b is NaN.
  Value isLess = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, a, b);
  Value larger = builder.create<arith::SelectOp>(loc, isLess, b, a);
  if (isNumber(b))
    return larger;
  Value isNan = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, b, b);
  return builder.create<arith::SelectOp>(loc, isNan, b, larger);
}

Value Elements::minimum(Value a, Value b, Type elementType) {
  if (!isa<FloatType>(elementType)) {
    if (elementType.isUnsignedInteger() || elementType.isInteger(1))
      return builder.create<arith::MinUIOp>(loc, a, b);
    return builder.create<arith::MinSIOp>(loc, a, b);
  }
  if (isNumber(a))
    std::swap(a, b);
  Value isGreater = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, a, b);
  Value smaller = builder.create<arith::SelectOp>(loc, isGreater, b, a);
  if (isNumber(b))
    return smaller;
  Value isNan = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, b, b);
  return builder.create<arith::SelectOp>(loc, isNan, b, smaller);
}

Value Elements::add(Value a, Value b) {
  if (isa<FloatType>(getElementTypeOrSelf(a)))
    return builder.create<arith::AddFOp>(loc, a, b);
  return builder.create<arith::AddIOp>(loc, a, b);
}
Value Elements::sub(Value a, Value b) {
  if (isa<FloatType>(getElementTypeOrSelf(a)))
    return builder.create<arith::SubFOp>(loc, a, b);
  return builder.create<arith::SubIOp>(loc, a, b);
}
Value Elements::mul(Value a, Value b) {
  if (isa<FloatType>(getElementTypeOrSelf(a)))
    return builder.create<arith::MulFOp>(loc, a, b);
  return builder.create<arith::MulIOp>(loc, a, b);
}

Value Elements::div(Value a, Value b, Type elementType) {
  if (isa<FloatType>(elementType))
    return builder.create<arith::DivFOp>(loc, a, b);
  auto is = [&](int64_t value) -> Value {
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, b, number(double(value), b.getType()));
  };
  Value zero = number(0, b.getType()), one = number(1, b.getType()), isZero = is(0);
  if (elementType.isUnsignedInteger()) {
    Value safe = builder.create<arith::SelectOp>(loc, isZero, one, b);
    Value quotient = builder.create<arith::DivUIOp>(loc, a, safe);
    return builder.create<arith::SelectOp>(loc, isZero, zero, quotient);
  }
  Value isMinusOne = is(-1);
  Value isSpecial = builder.create<arith::OrIOp>(loc, isZero, isMinusOne);
  Value safe = builder.create<arith::SelectOp>(loc, isSpecial, one, b);
  Value quotient = builder.create<arith::DivSIOp>(loc, a, safe);
  Value negated = builder.create<arith::SubIOp>(loc, zero, a);
  quotient = builder.create<arith::SelectOp>(loc, isMinusOne, negated, quotient);
  return builder.create<arith::SelectOp>(loc, isZero, zero, quotient);
}

Value Elements::fma(Value a, Value b, Value c) {
  if (!target.hasFma)
    return add(mul(a, b), c);
  return builder.create<math::FmaOp>(loc, a, b, c);
}

} // namespace firn
