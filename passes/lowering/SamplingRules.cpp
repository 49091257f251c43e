// Resize in the forms that the map emitter cannot pull through: one axis after the other, each a kernel that samples.
//
//   %1 = firn.resize %x {mode = "cubic"}   ==>   %0 = firn.resize %x {axes = [3], firn.sampled}
//                                                %1 = firn.resize %0 {axes = [2], firn.sampled}
// Interpolation is separable, so values stay up to rounding; 16-bit floats and integers are float32 in between.
#include "passes/lowering/Decompositions.h"

using namespace mlir;

namespace firn {
namespace {

struct ResizedAxis {
  int64_t axis;
  std::optional<double> scale;
  double start = 0, end = 1;
};

/// Whether the operand is given: files leave one out by an empty tensor too.
bool isGiven(ResizeOp op, unsigned operand) {
  Value value = operandOf(op, operand);
  auto type = value ? rankedType(value) : RankedTensorType();
  return value && !(type && type.hasStaticShape() && type.getNumElements() == 0);
}

/// The axes that change; nothing, with the reason, where scales or regions are no constants.
std::optional<SmallVector<ResizedAxis>> changedAxes(ResizeOp op, StringRef &why) {
  SmallVector<DimExpr> from = dimsOf(rankedType(op.getX())), to = dimsOf(rankedType(op.getResult()));
  SmallVector<int64_t> axes;
  if (auto given = op.getAxes())
    axes.assign(given->begin(), given->end());
  else
    for (size_t k = 0; k < from.size(); ++k)
      axes.push_back(int64_t(k));
  bool isCrop = op.getCoordinateTransformationMode() == "tf_crop_and_resize";
  std::optional<std::vector<double>> scales, region;
  if (isGiven(op, 2) && !(scales = numbersOf(operandOf(op, 2)))) {
    why = "its scales are no constants";
    return std::nullopt;
  }
  if (isCrop && !(region = operandOf(op, 1) ? numbersOf(operandOf(op, 1)) : std::nullopt)) {
    why = "its region of interest is no constant";
    return std::nullopt;
  }
  if ((scales && scales->size() != axes.size()) || (region && region->size() != 2 * axes.size())) {
    why = "scales or a region of another length than its axes";
    return std::nullopt;
  }
  SmallVector<ResizedAxis> changed;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis axis{axes[i] < 0 ? axes[i] + int64_t(from.size()) : axes[i], std::nullopt};
    if (scales)
      axis.scale = (*scales)[i];
    if (region) {
      axis.start = (*region)[i];
      axis.end = (*region)[axes.size() + i];
    }
    bool isWhole = !region || (axis.start == 0 && axis.end == 1);
    if (from[size_t(axis.axis)] == to[size_t(axis.axis)] && axis.scale.value_or(1) == 1 && isWhole)
      continue;
    changed.push_back(axis);
  }
  return changed;
}

/// Whether the map emitter has code for it: it reads elements where others compute on them.
bool isMapped(ResizeOp op, ArrayRef<ResizedAxis> axes) {
  SmallVector<DimExpr> from = dimsOf(rankedType(op.getX())), to = dimsOf(rankedType(op.getResult()));
  StringRef transformation = op.getCoordinateTransformationMode(), mode = op.getMode();
  Type element = getElementTypeOrSelf(op.getX());
  if (mode == "cubic" || op.getAntialias() || op.getExcludeOutside() || transformation == "tf_crop_and_resize" ||
      transformation == "half_pixel_symmetric")
    return false;
  size_t blended = 0;
  for (const ResizedAxis &axis : axes) {
    const DimExpr &in = from[size_t(axis.axis)], &out = to[size_t(axis.axis)];
    if (isOne(in))
      continue;
    ++blended;
    auto times = out.exactDiv(in);
    bool isRatioKnown = axis.scale || (in.isConstant() && out.isConstant()) || (times && times->isConstant());
    bool needsLength = transformation == "pytorch_half_pixel" || transformation == "align_corners";
    if (!isRatioKnown || (needsLength && !(in.isConstant() && out.isConstant() && out.constant() > 1)))
      return false;
  }
  return mode == "nearest" || (isFloat(element) && !element.isF64() && blended <= 2);
}

StringRef resizeRefusal(ResizeOp op) {
  auto type = rankedType(op.getX()), resultType = rankedType(op.getResult());
  if (!type || !resultType || type.getRank() != resultType.getRank())
    return "a rank is not known";
  if (mentionsSymbolsOf(resultType, op))
    return "its size is only known when it runs";
  if (op.getKeepAspectRatioPolicy() != "stretch")
    return "a policy that keeps aspect ratios";
  Type element = type.getElementType();
  bool isNumber = isFloat(element) || (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() >= 8);
  if (!isNumber || (op.getMode() != "nearest" && isa<IntegerType>(element) && element.getIntOrFloatBitWidth() > 16))
    return "elements of a type that float32 does not hold";
  return "";
}

bool decomposeResize(ResizeOp op, RuleRewriter &rewriter) {
  if (op->hasAttr("firn.sampled"))
    return false;
  StringRef why = resizeRefusal(op);
  auto axes = why.empty() ? changedAxes(op, why) : std::nullopt;
  if (!axes) {
    rewriter.refuse(op, why);
    return false;
  }
  if (isMapped(op, *axes))
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  SmallVector<DimExpr> from = t.dims(op.getX()), to = t.dims(op.getResult());
  Type element = t.element(op.getX());
  bool isRounded = op.getMode() != "nearest" && !element.isF32() && !element.isF64();
  Value value = isRounded ? t.cast(op.getX(), rewriter.getF32Type()) : op.getX();
  // Axes that shrink first, so that the others have less to do; of those that grow, the last one first: its elements
  // are gathered.
  auto shrinks = [&](const ResizedAxis &axis) {
    const DimExpr &in = from[size_t(axis.axis)], &out = to[size_t(axis.axis)];
    return in.isConstant() && out.isConstant() && out.constant() < in.constant();
  };
  llvm::sort(*axes, [&](const ResizedAxis &a, const ResizedAxis &b) {
    if (shrinks(a) != shrinks(b))
      return shrinks(a);
    return shrinks(a) ? a.axis < b.axis : a.axis > b.axis;
  });
  SmallVector<DimExpr> dims = from;
  for (const ResizedAxis &axis : *axes) {
    dims[size_t(axis.axis)] = to[size_t(axis.axis)];
    Value absent = makeAbsent(rewriter, op.getLoc());
    auto floats = [&](ArrayRef<double> numbers) {
      auto type = RankedTensorType::get({int64_t(numbers.size())}, rewriter.getF32Type());
      return makeNumbers(rewriter, op.getLoc(), type, numbers);
    };
    bool isCrop = op.getCoordinateTransformationMode() == "tf_crop_and_resize";
    SmallVector<Value> options{isCrop ? floats({axis.start, axis.end}) : absent,
                               axis.scale ? floats({*axis.scale}) : absent};
    if (!axis.scale)
      options.push_back(t.integers({to[size_t(axis.axis)]}));
    auto step = cast<ResizeOp>(rewriter.clone(*op.getOperation()));
    step->setOperands({value});
    step.getOptionsMutable().assign(options);
    step.setAxesAttr(rewriter.getDenseI64ArrayAttr({axis.axis}));
    step->setAttr("firn.sampled", rewriter.getUnitAttr());
    step->removeAttr("firn.id");
    step->getResult(0).setType(tensorType(t.element(value), dims));
    value = step.getResult();
  }
  if (isRounded && isa<IntegerType>(element))
    value = t.unary<RoundOp>(value);
  rewriter.replace(op, t.cast(value, element), "one axis after the other");
  return true;
}

} // namespace

void addSamplingRules(RuleSet &rules) { rules.add<ResizeOp>(decomposeResize); }

} // namespace firn
