// DecomposeQuantized: quantised layers as products of integers, whose sums are scaled, shifted and requantised by
// elementwise operations. Grouping makes those the epilogue of the product.
//
//   firn.q_linear_matmul %a, %sa, %za, %b, %sb, %zb, %sy, %zy   ==>   %0 = firn.matmul_integer %a, %b, %za, %zb
//                                                   %1 = firn.cast %0; %2 = firn.mul %1, (%sa * %sb / %sy)
//                                                   firn.quantize_linear %2, 1, %zy
//   firn.matmul(firn.dequantize_linear %a, %sa, %za), (firn.dequantize_linear %b, %sb, %zb)
//                                             ==>   firn.mul(firn.cast(firn.matmul_integer %a, %b, %za, %zb)), %sa *
//                                             %sb
// The first keeps every bit: the same numbers are rounded in the same order. The second sums exactly where the model
// summed rounded products.
#include "passes/lowering/DecomposeQuantized.h"

#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

namespace {

bool isByte(Value value) {
  auto type = rankedType(value);
  return type && type.getElementType().isInteger(8);
}
bool isOneNumber(Value value) {
  auto type = rankedType(value);
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

class Builder {
public:
  Builder(RuleRewriter &to, Location where) : rewriter(to), loc(where) {}

  Value real(Value value) {
    auto type = rankedType(value);
    if (type.getElementType().isF32())
      return value;
    return rewriter.create<CastOp>(loc, tensorType(rewriter.getF32Type(), dimsOf(type)), value, uint64_t(FIRN_F32));
  }
  Value number(double value) {
    return makeNumbers(rewriter, loc, RankedTensorType::get({}, rewriter.getF32Type()), {value});
  }
  /// a * b and a / b where shapes are equal or one is a single number.
  Value mul(Value a, Value b) { return rewriter.create<MulOp>(loc, wider(a, b), a, b); }
  Value div(Value a, Value b) { return rewriter.create<DivOp>(loc, wider(a, b), a, b); }
  /// One number as a scalar, a vector as it is followed by `behind` axes of length 1.
  Value shaped(Value value, int64_t behind) {
    auto type = rankedType(value);
    SmallVector<DimExpr> dims;
    if (!isOneNumber(value)) {
      dims = dimsOf(type);
      dims.append(behind, DimExpr(1));
    }
    return int64_t(dims.size()) == type.getRank() ? value : makeReshape(rewriter, loc, value, dims);
  }
  /// sums * factor, as real numbers.
  Value scaled(Value sums, Value factor) {
    Value value = real(sums);
    return rewriter.create<MulOp>(loc, value.getType(), value, factor);
  }
  Value requantized(Value value, Value zero, Type type) {
    return rewriter.create<QuantizeLinearOp>(loc, type, value, number(1), shaped(zero, 0), 1, 0, 0, 0, 1);
  }

private:
  Type wider(Value a, Value b) { return isOneNumber(a) ? b.getType() : a.getType(); }

  RuleRewriter &rewriter;
  Location loc;
};

/// [C, 1, ...]
SmallVector<DimExpr> channelDims(SmallVector<DimExpr> dims, int64_t space) {
  dims.append(space, DimExpr(1));
  return dims;
}

/// A zero point as an operand: absent where it is 0 everywhere.
Value zeroOperand(RuleRewriter &rewriter, Location loc, Value value) {
  auto numbers = value && constantOf(value) ? numbersOf(value, 1 << 20) : std::nullopt;
  bool isNone = !value || (numbers && llvm::all_of(*numbers, [](double number) { return number == 0; }));
  return isNone ? makeAbsent(rewriter, loc) : value;
}

Type sumsOf(Value result) { return tensorType(IntegerType::get(result.getContext(), 32), dimsOf(rankedType(result))); }

// --- layers with scales of their own ---------------------------------------------------------------------------------

/// Whether `value` is one number, or one for each of `length` lines.
bool isPerLine(Value value, const DimExpr &length) {
  auto type = rankedType(value);
  return type && (isOneNumber(value) || (type.getRank() == 1 && dimOf(type, 0) == length));
}

StringRef qlinearMatMulRefusal(QLinearMatMulOp op) {
  if (op->getNumOperands() != 8)
    return "operands are missing";
  Value a = op->getOperand(0), b = op->getOperand(3);
  auto type = rankedType(op->getResult(0));
  if (!isByte(a) || !isByte(b) || !type || !type.getElementType().isInteger(8))
    return "it is no product of bytes";
  if (type.getRank() < 1 || rankedType(a).getRank() < 2 || rankedType(b).getRank() < 2)
    return "it is a product of vectors";
  for (unsigned i : {1, 2, 6, 7})
    if (!isOneNumber(op->getOperand(i)))
      return "its rows have scales or zero points of their own";
  for (unsigned i : {4, 5})
    if (!isPerLine(op->getOperand(i), dimsOf(rankedType(b)).back()))
      return "scales or zero points are neither one number nor one a column";
  return "";
}

bool decomposeQLinearMatMul(QLinearMatMulOp op, RuleRewriter &rewriter) {
  if (StringRef why = qlinearMatMulRefusal(op); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Builder build(rewriter, loc);
  auto in = [&](unsigned i) { return op->getOperand(i); };
  Value sums = rewriter.create<MatMulIntegerOp>(
      loc, sumsOf(op->getResult(0)), in(0), in(3),
      ValueRange{zeroOperand(rewriter, loc, build.shaped(in(2), 0)), zeroOperand(rewriter, loc, in(5))});
  auto scale = [&](unsigned i) { return build.shaped(build.real(in(i)), 0); };
  Value factor = build.div(build.mul(scale(1), scale(4)), scale(6));
  Value value = build.scaled(sums, factor);
  rewriter.replace(op, build.requantized(value, in(7), op->getResult(0).getType()), "product of integers, requantised");
  return true;
}

Value integerConvolution(Operation *op, RuleRewriter &rewriter, Value x, Value w, Value xZero, Value wZero) {
  SmallVector<NamedAttribute> attributes;
  for (StringRef name : {"auto_pad", "dilations", "kernel_shape", "pads", "strides", "group"})
    if (Attribute value = op->getAttr(name))
      attributes.push_back(rewriter.getNamedAttr(name, value));
  OperationState state(op->getLoc(), ConvIntegerOp::getOperationName(),
                       {x, w, zeroOperand(rewriter, op->getLoc(), xZero), zeroOperand(rewriter, op->getLoc(), wZero)},
                       {sumsOf(op->getResult(0))}, attributes);
  return rewriter.create(state)->getResult(0);
}

StringRef qlinearConvRefusal(QLinearConvOp op) {
  if (op->getNumOperands() < 8)
    return "operands are missing";
  Value w = op->getOperand(3);
  auto type = rankedType(op->getResult(0)), x = rankedType(op->getOperand(0));
  if (!isByte(op->getOperand(0)) || !isByte(w) || !type || type.getRank() < 3 || !type.getElementType().isInteger(8))
    return "it is no convolution of bytes of known rank";
  if (!rankedType(w).hasStaticShape() || x.isDynamicDim(1))
    return "its channels or the shape of its weight are not known";
  for (unsigned i : {1, 2, 6, 7})
    if (!isOneNumber(op->getOperand(i)))
      return "scales or zero points of the image are more than one number";
  for (unsigned i : {4, 5})
    if (!isPerLine(op->getOperand(i), dimOf(rankedType(w), 0)))
      return "scales or zero points of the weight are neither one number nor one a channel";
  return "";
}

bool decomposeQLinearConv(QLinearConvOp op, RuleRewriter &rewriter) {
  if (StringRef why = qlinearConvRefusal(op); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Builder build(rewriter, loc);
  auto in = [&](unsigned i) { return op->getOperand(i); };
  int64_t space = rankedType(op->getResult(0)).getRank() - 2;
  Value sums = integerConvolution(op, rewriter, in(0), in(3), in(2), in(5));
  if (Value bias = operandOf(op, 8)) // sums wrap, as the specification allows
    sums = rewriter.create<AddOp>(loc, sums.getType(), sums,
                                  makeReshape(rewriter, loc, bias, channelDims(dimsOf(rankedType(bias)), space)));
  auto scale = [&](unsigned i) { return build.shaped(in(i), space); };
  Value factor = build.div(build.mul(scale(1), scale(4)), scale(6));
  Value value = build.scaled(sums, factor);
  rewriter.replace(op, build.requantized(value, in(7), op->getResult(0).getType()),
                   "convolution of integers, requantised");
  return true;
}

// --- layers between conversions --------------------------------------------------------------------------------------

/// The conversion of bytes behind an operand, with one scale, or one for each line of `axis`.
DequantizeLinearOp conversionOf(Value value, int64_t axis) {
  auto op = value.getDefiningOp<DequantizeLinearOp>();
  auto type = op ? rankedType(op.getX()) : RankedTensorType();
  auto scale = op ? rankedType(op.getScale()) : RankedTensorType();
  if (!type || !scale || !isByte(op.getX()) || !scale.getElementType().isF32() || op.getBlockSize() != 0 ||
      !rankedType(op.getResult()) || !getElementTypeOrSelf(op.getResult()).isF32())
    return {};
  if (isOneNumber(op.getScale()))
    return op;
  auto given = int64_t(op.getAxis()); // the accessor is unsigned
  given += given < 0 ? type.getRank() : 0;
  return axis >= 0 && scale.getRank() == 1 && given == axis ? op : DequantizeLinearOp();
}

/// Products of two conversions; a converted weight alone stays one of real numbers, which read it as it is.
bool multiplyIntegers(MatMulOp op, RuleRewriter &rewriter) {
  auto aType = rankedType(op.getA()), bType = rankedType(op.getB()), type = rankedType(op.getResult());
  if (!aType || !bType || !type || aType.getRank() < 2 || bType.getRank() < 2)
    return false;
  DequantizeLinearOp a = conversionOf(op.getA(), -1), b = conversionOf(op.getB(), bType.getRank() - 1);
  if (!a || !b)
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {a, b});
  Builder build(rewriter, loc);
  Value aZero = operandOf(a, 2), bZero = operandOf(b, 2);
  SmallVector<Value> zeros{zeroOperand(rewriter, loc, aZero ? build.shaped(aZero, 0) : aZero),
                           zeroOperand(rewriter, loc, bZero ? build.shaped(bZero, 0) : bZero)};
  Value sums = rewriter.create<MatMulIntegerOp>(loc, sumsOf(op.getResult()), a.getX(), b.getX(), zeros);
  Value factor = build.mul(build.shaped(a.getScale(), 0), build.shaped(b.getScale(), 0));
  rewriter.replace(op, build.scaled(sums, factor), "product of integers");
  return true;
}

bool convolveIntegers(ConvOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getResult()), input = rankedType(op.getInput());
  if (op->hasAttr("layout") || !type || !input || type.getRank() < 3 || input.isDynamicDim(1))
    return false;
  DequantizeLinearOp x = conversionOf(op.getInput(), -1), w = conversionOf(op.getWeight(), 0);
  if (!x || !w || !rankedType(w.getX()).hasStaticShape())
    return false;
  rewriter.setInsertionPoint(op);
  Builder build(rewriter, rewriter.fused(op, {x, w}));
  int64_t space = type.getRank() - 2;
  Value xZero = operandOf(x, 2), wZero = operandOf(w, 2);
  Value sums = integerConvolution(op, rewriter, x.getX(), w.getX(), xZero ? build.shaped(xZero, 0) : xZero,
                                  wZero ? build.shaped(wZero, 0) : wZero);
  Value factor = build.mul(build.shaped(x.getScale(), 0), build.shaped(w.getScale(), space));
  Value value = build.scaled(sums, factor);
  if (Value bias = operandOf(op, 2))
    value =
        rewriter.create<AddOp>(op.getLoc(), type, value,
                               makeReshape(rewriter, op.getLoc(), bias, channelDims(dimsOf(rankedType(bias)), space)));
  rewriter.replace(op, value, "convolution of integers");
  return true;
}

// --- integers below 8 bits -------------------------------------------------------------------------------------------

/// A constant of such integers, or rows picked from one, as bytes; null for other values.
Value asBytes(RuleRewriter &rewriter, Value value) {
  auto type = rankedType(value);
  auto integer = type ? dyn_cast<IntegerType>(type.getElementType()) : IntegerType();
  if (!integer || integer.getWidth() < 2 || integer.getWidth() >= 8)
    return {};
  bool isUnsigned = integer.isUnsigned();
  Type byte = isUnsigned ? IntegerType::get(value.getContext(), 8, IntegerType::Unsigned)
                         : IntegerType::get(value.getContext(), 8);
  if (constantOf(value))
    return rewriter.create<CastOp>(value.getLoc(), tensorType(byte, dimsOf(type)), value,
                                   uint64_t(isUnsigned ? FIRN_U8 : FIRN_I8));
  auto gather = value.getDefiningOp<GatherOp>();
  Value table = gather && constantOf(gather.getX()) ? asBytes(rewriter, gather.getX()) : Value();
  if (!table)
    return {};
  return rewriter.create<GatherOp>(gather.getLoc(), tensorType(byte, dimsOf(type)), table, gather.getIndices(),
                                   gather.getAxis());
}

/// Kernels load bytes: constants of fewer bits are stored as such.
bool widenSmallIntegers(Operation *op, RuleRewriter &rewriter) {
  if (isa<CastOp>(op) && !isFloat(getElementTypeOrSelf(op->getResult(0))))
    return false; // the one that widens
  rewriter.setInsertionPoint(op);
  Value x = asBytes(rewriter, op->getOperand(0)), zero = operandOf(op, 2);
  Value wideZero = zero && x ? asBytes(rewriter, zero) : Value();
  if (!x || (zero && !wideZero))
    return false;
  rewriter.modifyOpInPlace(op, [&] {
    op->setOperand(0, x);
    if (zero)
      op->setOperand(2, wideZero);
  });
  rewriter.changed(op, "small integers became bytes");
  return true;
}

// --- ranges that are found at run time -------------------------------------------------------------------------------

/// scale = (max(x, 0) - min(x, 0)) / 255, or 1 / 255 where both are 0; zero point = round(-min / scale).
bool decomposeDynamicQuantize(DynamicQuantizeLinearOp op, RuleRewriter &rewriter) {
  auto x = rankedType(op.getX());
  if (!x || !x.getElementType().isF32() || op->getNumResults() != 3)
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Builder build(rewriter, loc);
  auto scalar = RankedTensorType::get({}, rewriter.getF32Type());
  auto byte = RankedTensorType::get({}, getElementTypeOrSelf(op->getResult(0)));
  Value low = rewriter.create<ReduceMinOp>(loc, scalar, op.getX(), Value(), 0, 0);
  Value high = rewriter.create<ReduceMaxOp>(loc, scalar, op.getX(), Value(), 0, 0);
  Value none = build.number(0);
  low = rewriter.create<MinOp>(loc, scalar, ValueRange{low, none});
  high = rewriter.create<MaxOp>(loc, scalar, ValueRange{high, none});
  Value range = rewriter.create<SubOp>(loc, scalar, high, low);
  Value isEmpty = rewriter.create<EqualOp>(loc, RankedTensorType::get({}, rewriter.getI1Type()), high, low);
  range = rewriter.create<WhereOp>(loc, scalar, isEmpty, build.number(1), range);
  Value scale = rewriter.create<DivOp>(loc, scalar, range, build.number(255));
  Value zero = rewriter.create<SubOp>(loc, scalar, none, rewriter.create<DivOp>(loc, scalar, low, scale));
  zero = rewriter.create<ClipOp>(loc, scalar, zero, ValueRange{none, build.number(255)});
  zero = rewriter.create<RoundOp>(loc, scalar, zero);
  zero = rewriter.create<CastOp>(loc, byte, zero, uint64_t(FIRN_U8));
  Value y = rewriter.create<QuantizeLinearOp>(loc, op->getResult(0).getType(), op.getX(), scale, zero, 1, 0, 0, 0, 1);
  rewriter.replace(op, {y, scale, zero}, "range, scale and quantisation");
  return true;
}

} // namespace

void addQuantizedRules(RuleSet &rules) {
  rules.add<QLinearMatMulOp>(decomposeQLinearMatMul);
  rules.add<QLinearConvOp>(decomposeQLinearConv);
  rules.add<MatMulOp>(multiplyIntegers);
  rules.add<ConvOp>(convolveIntegers);
  rules.addFor<DequantizeLinearOp, CastOp>(widenSmallIntegers);
  rules.add<DynamicQuantizeLinearOp>(decomposeDynamicQuantize);
}

} // namespace firn
