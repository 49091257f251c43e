// RecognizeNormalizations: layer and RMS normalisation that a model spells out become one operation each.
//
// In:      firn ops, shapes inferred.     Out: firn.layer_normalization, firn.rms_normalization.
// Keeps:   values up to rounding; the mean is subtracted before squares are taken, as in the spelt-out form. The
//          operations taken in stay where others read their results.
// Leaves:  what refusal() names: axes that are not the last ones, a scale or bias that varies along other axes.
//   d = x - mean(x); d / sqrt(mean(d^2) + epsilon) * scale + bias      ==>   firn.layer_normalization %x, %scale, %bias
//   x / sqrt(mean(x^2) + epsilon) * scale                              ==>   firn.rms_normalization %x, %scale
#include "passes/Passes.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_RECOGNIZENORMALIZATIONS
#include "passes/Passes.h.inc"

namespace {

/// What stands under the fraction bar: numerator / sqrt(mean(squared^2 over axes) + epsilon).
struct Normalized {
  Value numerator, squared;
  SmallVector<int64_t> axes;
  double epsilon = 0;
  SmallVector<Operation *> operations;
};

/// x if `value` is x * x or x^2.
Value squareRootOf(Value value) {
  if (auto product = value.getDefiningOp<MulOp>())
    return product.getA() == product.getB() ? product.getA() : Value();
  auto power = value.getDefiningOp<PowOp>();
  return power && splatOf(power.getB()) == 2.0 ? power.getA() : Value();
}

/// Reads sqrt(mean(squared^2) + epsilon), or its square where `isRoot` is false.
bool readDeviation(Value value, bool isRoot, Normalized &found) {
  if (isRoot) {
    auto root = value.getDefiningOp<SqrtOp>();
    auto power = value.getDefiningOp<PowOp>();
    if (root)
      value = root.getX();
    else if (power && splatOf(power.getB()) == 0.5)
      value = power.getA();
    else
      return false;
  }
  auto sum = value.getDefiningOp<AddOp>();
  if (!sum)
    return false;
  for (auto [x, constant] : {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
    auto epsilon = splatOf(constant);
    auto mean = x.getDefiningOp<ReduceMeanOp>();
    auto axes = mean && epsilon ? reducedAxes(mean) : std::nullopt;
    if (!axes || !mean.getKeepdims() || !(*epsilon >= 0))
      continue;
    found.squared = squareRootOf(mean.getX());
    found.axes = *axes;
    found.epsilon = *epsilon;
    found.operations.append({mean, sum});
    return bool(found.squared);
  }
  return false;
}

/// Reads numerator / deviation in its forms: a quotient, a product with a reciprocal or with a power of -1/2.
std::optional<Normalized> readQuotient(Operation *op) {
  Normalized found;
  if (auto divide = dyn_cast<DivOp>(op)) {
    found.numerator = divide.getA();
    if (readDeviation(divide.getB(), true, found))
      return found;
    return std::nullopt;
  }
  auto product = dyn_cast<MulOp>(op);
  if (!product)
    return std::nullopt;
  for (auto [x, inverse] : {std::pair(product.getA(), product.getB()), std::pair(product.getB(), product.getA())}) {
    found.numerator = x;
    if (auto reciprocal = inverse.getDefiningOp<ReciprocalOp>();
        reciprocal && readDeviation(reciprocal.getX(), true, found))
      return found;
    if (auto divide = inverse.getDefiningOp<DivOp>();
        divide && splatOf(divide.getA()) == 1.0 && readDeviation(divide.getB(), true, found))
      return found;
    if (auto power = inverse.getDefiningOp<PowOp>();
        power && splatOf(power.getB()) == -0.5 && readDeviation(power.getA(), false, found))
      return found;
  }
  return std::nullopt;
}

/// `value` as a tensor of exactly the normalised dimensions; null if it varies along another axis or is shorter.
Value overNormalized(Value value, ArrayRef<DimExpr> normalized, RuleRewriter &rewriter) {
  auto type = rankedType(value);
  if (!type)
    return {};
  SmallVector<DimExpr> dims = dimsOf(type);
  while (dims.size() > normalized.size() && isOne(dims.front()))
    dims.erase(dims.begin());
  if (!haveSameDims(dims, normalized)) {
    // One number for all, where the dimensions are numbers.
    auto splat = splatOf(value);
    if (!splat || !llvm::all_of(normalized, [](const DimExpr &dim) { return dim.isConstant(); }) ||
        dims.size() > normalized.size())
      return {};
    return makeNumbers(rewriter, value.getLoc(), tensorType(type.getElementType(), normalized), {*splat});
  }
  if (int64_t(dims.size()) == type.getRank())
    return value;
  if (ElementsAttr constant = constantOf(value))
    if (auto numbers = numbersOf(value, 1 << 20); numbers && !numbers->empty())
      return makeNumbers(rewriter, value.getLoc(), tensorType(type.getElementType(), normalized), *numbers);
  return makeReshape(rewriter, value.getLoc(), value, dims);
}

/// The operation that alone reads `op`'s result, if it is an OpT of the same block and type; and its other operand.
template <typename OpT> OpT onlyReader(Operation *op, Value &other) {
  if (!op->hasOneUse())
    return {};
  auto reader = dyn_cast<OpT>(*op->user_begin());
  if (!reader || reader->getBlock() != op->getBlock() || !haveSameType(reader.getResult(), op->getResult(0)))
    return {};
  other = reader.getA() == op->getResult(0) ? reader.getB() : reader.getA();
  return other == op->getResult(0) ? OpT() : reader;
}

StringRef refusal(const Normalized &found, RankedTensorType type) {
  if (!type.getElementType().isF32() && !type.getElementType().isF16() && !type.getElementType().isBF16())
    return "the element type is no float of 32 bits or less";
  for (auto [i, axis] : llvm::enumerate(found.axes))
    if (axis != type.getRank() - int64_t(found.axes.size()) + int64_t(i))
      return "the normalised axes are not the last ones";
  if (found.axes.empty())
    return "no axis is normalised";
  return "";
}

bool recognize(Operation *op, RuleRewriter &rewriter) {
  auto found = readQuotient(op);
  if (!found)
    return false;
  auto type = rankedType(op->getResult(0));
  // Layer normalisation: the numerator is what is squared, x - mean(x) over the same axes.
  Value x;
  bool isLayer = false;
  if (auto difference = found->squared.getDefiningOp<SubOp>(); difference && found->numerator == found->squared) {
    auto mean = difference.getB().getDefiningOp<ReduceMeanOp>();
    auto axes = mean && mean.getX() == difference.getA() && mean.getKeepdims() ? reducedAxes(mean) : std::nullopt;
    if (axes && *axes == found->axes) {
      isLayer = true;
      x = difference.getA();
      found->operations.push_back(difference);
    }
  }
  if (!isLayer)
    x = found->squared;
  if (!type || (!isLayer && found->numerator != x) || !haveSameType(x, op->getResult(0)))
    return false;
  if (StringRef why = refusal(*found, type); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  if (!(isLayer ? rewriter.mayWrite(op, "layer_normalization", 17) : rewriter.mayWrite(op, "rms_normalization", 23)))
    return false;
  int64_t axis = found->axes.front();
  SmallVector<DimExpr> dims = dimsOf(type);
  ArrayRef<DimExpr> normalized = ArrayRef(dims).drop_front(axis);

  Operation *last = op;
  Value scale, bias, other;
  if (MulOp product = onlyReader<MulOp>(last, other)) {
    rewriter.setInsertionPoint(product);
    scale = overNormalized(other, normalized, rewriter);
    if (scale) {
      found->operations.push_back(last);
      last = product;
    } else {
      rewriter.refuse(product, "the scale is not one per normalised element");
    }
  }
  if (AddOp sum = isLayer ? onlyReader<AddOp>(last, other) : AddOp()) {
    rewriter.setInsertionPoint(sum);
    bias = overNormalized(other, normalized, rewriter);
    if (bias) {
      found->operations.push_back(last);
      last = sum;
    } else {
      rewriter.refuse(sum, "the bias is not one per normalised element");
    }
  }
  rewriter.setInsertionPoint(last);
  if (!scale) {
    if (!llvm::all_of(normalized, [](const DimExpr &dim) { return dim.isConstant(); })) {
      rewriter.refuse(op, "there is no scale, and the normalised size is no constant");
      return false;
    }
    scale = makeNumbers(rewriter, op->getLoc(), tensorType(type.getElementType(), normalized), {1.0});
  }
  auto epsilon = rewriter.getF32FloatAttr(float(found->epsilon));
  auto axisAttribute = rewriter.getI64IntegerAttr(axis), stash = rewriter.getI64IntegerAttr(1);
  if (isLayer)
    rewriter.replaceWith<LayerNormalizationOp>(last, found->operations, "layer_normalization",
                                               TypeRange{last->getResult(0).getType()}, x, scale, bias, axisAttribute,
                                               epsilon, stash);
  else
    rewriter.replaceWith<RMSNormalizationOp>(last, found->operations, "rms_normalization", last->getResult(0).getType(),
                                             x, scale, axisAttribute, epsilon, stash);
  return true;
}

struct RecognizeNormalizations : impl::RecognizeNormalizationsBase<RecognizeNormalizations> {
  using RecognizeNormalizationsBase::RecognizeNormalizationsBase;

  void runOnOperation() override {
    PassReport report("recognize-normalizations", limit);
    RuleSet rules;
    rules.addFor<DivOp, MulOp>(recognize);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
