// SimplifyQuantization: one form for constants stored as small integers, movements in front of their conversion.
//
// In:      firn ops on tensors, shapes inferred.     Out: firn.dequantize_linear on constants, which kernels read as
//          they are.
// Keeps:   every value bit for bit: differences of bytes are exact, the one product rounds as it did.
// Leaves:  chains where refusal() gives a reason, movements of other conversions.
//   firn.mul(firn.sub(firn.cast %q, %z), %s)      ==>   firn.dequantize_linear %q, %s, %z'
//   firn.gather(firn.dequantize_linear %q, %s)    ==>   firn.dequantize_linear(firn.gather %q), %s, or with a scale per
//                                                       row firn.mul(firn.cast(firn.gather %q), firn.gather %s)
//   firn.quantize_linear(firn.dequantize_linear %q, %s), %s   ==>   %q, whatever moves it in between
//   firn.transpose(firn.dequantize_linear %q)     ==>   firn.dequantize_linear(firn.transpose %q)
#include "passes/Passes.h"
#include "passes/Quantized.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYQUANTIZATION
#include "passes/Passes.h.inc"

namespace {

int64_t normalized(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// --- spelt-out conversions -------------------------------------------------------------------------------------------

/// (cast(q) - zero) * scale.
struct Spelt {
  CastOp cast;
  SubOp sub; // null where nothing is subtracted
  Value scale;
};

std::optional<Spelt> speltOf(MulOp op) {
  for (auto [value, scale] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    auto sub = value.getDefiningOp<SubOp>();
    auto cast = (sub ? sub.getA() : value).getDefiningOp<CastOp>();
    if (cast && dequantizesConstant(cast))
      return Spelt{cast, sub, scale};
  }
  return std::nullopt;
}

/// The axis of `dims` along which a constant of shape `shape`, broadcast to it, has one number a line: 0 with
/// isOne where it is one number for all. Nothing if there are more.
std::optional<int64_t> lineAxis(ArrayRef<int64_t> dims, ArrayRef<int64_t> shape, bool &isOne) {
  std::optional<int64_t> axis;
  if (shape.size() > dims.size())
    return std::nullopt;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t at = dims.size() - shape.size() + i;
    if (shape[i] == 1)
      continue;
    if (axis || shape[i] != dims[at])
      return std::nullopt;
    axis = at;
  }
  isOne = !axis;
  return axis.value_or(0);
}

/// Why the chain behind `spelt` must stay one, or "".
StringRef refusal(Spelt spelt, MulOp op) {
  auto type = rankedType(spelt.cast.getX()), scale = rankedType(spelt.scale);
  if (!haveSameType(spelt.cast.getResult(), op.getResult()) || !constantOf(spelt.scale))
    return "the scale is no constant that fits the integers";
  bool isOne;
  auto axis = lineAxis(type.getShape(), scale.getShape(), isOne);
  if (!axis)
    return "the scale is neither one number nor one a line";
  if (!spelt.sub)
    return "";
  auto zeros = numbersOf(spelt.sub.getB(), 1 << 24);
  bool isOneZero;
  auto zeroAxis =
      zeros ? lineAxis(type.getShape(), rankedType(spelt.sub.getB()).getShape(), isOneZero) : std::optional<int64_t>();
  if (!zeroAxis || (!isOne && !isOneZero && *axis != *zeroAxis))
    return "the zero point lies otherwise than the scale";
  if (type.getElementTypeBitWidth() != 8)
    return "the zero point of integers below 8 bits";
  double low = type.getElementType().isUnsignedInteger() ? 0 : -128, high = low + 255;
  for (double zero : *zeros)
    if (zero != std::rint(zero) || zero < low || zero > high)
      return "the zero point is no number of the integers' type";
  return "";
}

bool recogniseConversion(MulOp op, RuleRewriter &rewriter) {
  auto spelt = speltOf(op);
  if (!spelt)
    return false;
  if (StringRef why = refusal(*spelt, op); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  auto type = rankedType(spelt->cast.getX()), scaleType = rankedType(spelt->scale);
  bool isOne, isOneZero = true;
  int64_t axis = *lineAxis(type.getShape(), scaleType.getShape(), isOne), zeroAxis = 0;
  Location loc = spelt->scale.getLoc();
  if (spelt->sub)
    zeroAxis = *lineAxis(type.getShape(), rankedType(spelt->sub.getB()).getShape(), isOneZero);
  if (isOne)
    axis = zeroAxis;
  rewriter.setInsertionPoint(op);
  SmallVector<int64_t> shape;
  if (!isOne || !isOneZero)
    shape.push_back(type.getDimSize(axis));
  auto lines = [&](Value value, Type elementType) {
    return makeNumbers(rewriter, loc, RankedTensorType::get(shape, elementType), *numbersOf(value));
  };
  Value scale = lines(spelt->scale, scaleType.getElementType());
  Value zero = spelt->sub ? lines(spelt->sub.getB(), type.getElementType()) : Value();
  SmallVector<Operation *> others{spelt->cast};
  if (spelt->sub)
    others.push_back(spelt->sub);
  rewriter.replaceWith<DequantizeLinearOp>(op, others, "quantised constant", op.getType(), spelt->cast.getX(), scale,
                                           zero, axis, 0, 0);
  return true;
}

// --- movements -------------------------------------------------------------------------------------------------------

/// The conversion in front of a movement, where it is of a constant and its parameters are constants.
DequantizeLinearOp conversionOf(Value value) {
  auto op = value.getDefiningOp<DequantizeLinearOp>();
  bool fits = op && dequantizesConstant(op) && constantOf(op.getScale()) && rankedType(op.getResult());
  if (Value zero = fits ? operandOf(op, 2) : Value())
    fits = constantOf(zero) != nullptr;
  return fits ? op : DequantizeLinearOp();
}
bool hasOneScale(DequantizeLinearOp op) { return rankedType(op.getScale()).getNumElements() == 1; }

Value gatherFrom(GatherOp op, RuleRewriter &rewriter, Value from, int64_t axis) {
  SmallVector<DimExpr> dims = dimsOf(rankedType(from)), indices = dimsOf(rankedType(op.getIndices()));
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, indices.begin(), indices.end());
  return rewriter.create<GatherOp>(op.getLoc(), tensorType(getElementTypeOrSelf(from), dims), from, op.getIndices(),
                                   axis);
}

/// Only the rows that are picked are converted.
bool gatherFirst(GatherOp op, RuleRewriter &rewriter) {
  if (auto cast = op.getX().getDefiningOp<CastOp>(); cast && widensConstant(cast) && rankedType(op.getIndices())) {
    rewriter.setInsertionPoint(op);
    int64_t axis = normalized(op.getAxis(), rankedType(op.getX()).getRank());
    rewriter.replaceWith<CastOp>(op, {cast}, "picked before it is converted", op.getType(),
                                 gatherFrom(op, rewriter, cast.getX(), axis), cast.getTo());
    return true;
  }
  DequantizeLinearOp conversion = conversionOf(op.getX());
  auto indices = rankedType(op.getIndices());
  if (!conversion || !indices || !rankedType(op.getResult()))
    return false;
  int64_t rank = rankedType(op.getX()).getRank(), axis = normalized(op.getAxis(), rank);
  int64_t line = normalized(conversion.getAxis(), rank), block = conversion.getBlockSize();
  Type result = getElementTypeOrSelf(op.getResult());
  bool isPerRow = !hasOneScale(conversion) && line == axis;
  if (isPerRow && (block != 0 || getElementTypeOrSelf(conversion.getScale()) != result)) {
    rewriter.refuse(op, "the scales lie along the axis of the indices, in blocks or of another type");
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {conversion});
  Value picked = gatherFrom(op, rewriter, conversion.getX(), axis), scale = conversion.getScale();
  Value zero = operandOf(conversion, 2);
  if (!isPerRow) {
    if (!hasOneScale(conversion) && block != 0) {
      scale = gatherFrom(op, rewriter, scale, axis);
      if (zero)
        zero = gatherFrom(op, rewriter, zero, axis);
    }
    if (line > axis)
      line += indices.getRank() - 1;
    rewriter.replaceWith<DequantizeLinearOp>(op, {conversion}, "picked before it is converted", op.getType(), picked,
                                             scale, zero, line, uint64_t(block), conversion.getOutputDtype());
    return true;
  }
  // One scale for each row picked.
  SmallVector<DimExpr> dims = dimsOf(indices);
  dims.append(rank - 1 - axis, DimExpr(1));
  auto perRow = [&](Value values) { return makeReshape(rewriter, loc, gatherFrom(op, rewriter, values, 0), dims); };
  auto real = [&](Value value) -> Value {
    auto type = tensorType(result, dimsOf(rankedType(value)));
    return rewriter.create<CastOp>(loc, type, value, uint64_t(dtypeOf(result)));
  };
  Value value = real(picked);
  if (zero)
    value = rewriter.create<SubOp>(loc, op.getType(), value, real(perRow(zero)));
  value = rewriter.create<MulOp>(loc, op.getType(), value, perRow(scale));
  rewriter.replace(op, value, "picked before it is converted");
  return true;
}

bool transposeFirst(TransposeOp op, RuleRewriter &rewriter) {
  if (auto cast = op.getX().getDefiningOp<CastOp>(); cast && widensConstant(cast) && !permutationOf(op).empty()) {
    rewriter.setInsertionPoint(op);
    Value moved = makeTranspose(rewriter, rewriter.fused(op, {cast}), cast.getX(), permutationOf(op));
    rewriter.replaceWith<CastOp>(op, {cast}, "moved before it is converted", op.getType(), moved, cast.getTo());
    return true;
  }
  DequantizeLinearOp conversion = conversionOf(op.getX());
  SmallVector<int64_t> perm = permutationOf(op);
  if (!conversion || !conversion->hasOneUse() || perm.empty())
    return false;
  int64_t axis = normalized(conversion.getAxis(), perm.size()), block = conversion.getBlockSize();
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {conversion});
  Value moved = makeTranspose(rewriter, loc, conversion.getX(), perm), scale = conversion.getScale();
  Value zero = operandOf(conversion, 2);
  if (block != 0 && !hasOneScale(conversion)) {
    scale = makeTranspose(rewriter, loc, scale, perm);
    if (zero)
      zero = makeTranspose(rewriter, loc, zero, perm);
  }
  rewriter.replaceWith<DequantizeLinearOp>(op, {conversion}, "moved before it is converted", op.getType(), moved, scale,
                                           zero, int64_t(llvm::find(perm, axis) - perm.begin()), uint64_t(block),
                                           conversion.getOutputDtype());
  return true;
}

/// Views keep one scale; scales along an axis keep the view behind.
bool viewFirst(Operation *op, RuleRewriter &rewriter) {
  DequantizeLinearOp conversion = conversionOf(op->getOperand(0));
  auto type = rankedType(op->getResult(0));
  if (!conversion || !conversion->hasOneUse() || !hasOneScale(conversion) || !type || !type.hasStaticShape())
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {conversion});
  Value moved = makeReshape(rewriter, loc, conversion.getX(), dimsOf(type));
  rewriter.replaceWith<DequantizeLinearOp>(op, {conversion}, "moved before it is converted", type, moved,
                                           conversion.getScale(), operandOf(conversion, 2), 0, 0,
                                           conversion.getOutputDtype());
  return true;
}

// --- there and back --------------------------------------------------------------------------------------------------

/// Whether integers of up to 16 bits come back when they are converted by these scales and quantised again: the product
/// and the quotient are each off by 2^-24 at most, 65535 times that is less than a half.
bool comeBack(Value scale, Type integer) {
  auto type = rankedType(scale);
  if (!type || !type.getElementType().isF32() || integer.getIntOrFloatBitWidth() > 16 || !isa<IntegerType>(integer))
    return false;
  auto numbers = numbersOf(scale, 1 << 20);
  return numbers && llvm::all_of(*numbers, [](double s) { return s > 1e-30 && s < 1e30; });
}

bool isSameConstant(Value a, Value b) {
  if (a == b)
    return true;
  ElementsAttr x = a ? constantOf(a) : ElementsAttr(), y = b ? constantOf(b) : ElementsAttr();
  return x && x == y;
}

/// Integers that become numbers, move, and become the same integers again only move.
bool dropRoundTrip(QuantizeLinearOp op, RuleRewriter &rewriter) {
  SmallVector<Operation *> movements;
  Value x = op.getX();
  while (isa_and_nonnull<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp, TransposeOp>(x.getDefiningOp()) &&
         x.hasOneUse()) {
    movements.push_back(x.getDefiningOp());
    x = movements.back()->getOperand(0);
  }
  auto back = x.getDefiningOp<DequantizeLinearOp>();
  auto from = back ? rankedType(back.getX()) : RankedTensorType(), to = rankedType(op.getResult());
  if (!from || !to || from.getElementType() != to.getElementType() || !comeBack(op.getScale(), to.getElementType()))
    return false;
  auto zeroOf = [](Operation *conversion) { return operandOf(conversion, 2); };
  bool isOneScale = rankedType(op.getScale()).getNumElements() == 1;
  bool isAlike = isSameConstant(op.getScale(), back.getScale()) &&
                 (zeroOf(op) ? zeroOf(back) && isSameConstant(zeroOf(op), zeroOf(back)) : !zeroOf(back)) &&
                 op.getBlockSize() == 0 && back.getBlockSize() == 0 &&
                 (isOneScale || (movements.empty() && op.getAxis() == back.getAxis()));
  if (!isAlike) {
    rewriter.refuse(op, "quantised by other parameters than before");
    return false;
  }
  rewriter.setInsertionPoint(op);
  Value moved = back.getX();
  for (Operation *movement : llvm::reverse(movements)) {
    OperationState state(movement->getLoc(), movement->getName());
    state.operands.assign(movement->operand_begin(), movement->operand_end());
    state.operands[0] = moved;
    state.addTypes(tensorType(from.getElementType(), dimsOf(rankedType(movement->getResult(0)))));
    state.attributes = NamedAttrList(movement->getAttrs());
    moved = rewriter.create(state)->getResult(0);
  }
  rewriter.replace(op, moved, "quantised as it was before");
  return true;
}

struct SimplifyQuantization : impl::SimplifyQuantizationBase<SimplifyQuantization> {
  using SimplifyQuantizationBase::SimplifyQuantizationBase;

  void runOnOperation() override {
    PassReport report("simplify-quantization", limit);
    RuleSet rules;
    rules.add<MulOp>(recogniseConversion);
    rules.add<QuantizeLinearOp>(dropRoundTrip);
    rules.add<GatherOp>(gatherFirst);
    rules.add<TransposeOp>(transposeFirst);
    rules.addFor<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(viewFirst);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
