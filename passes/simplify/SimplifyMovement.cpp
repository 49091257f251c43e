// SimplifyMovement: drop operations that move no element, shorten chains of those that do.
//
// In:      firn ops on tensors, shapes inferred.     Out: the same, with fewer movements.
// Keeps:   every element; dimensions that only run time knows keep the operation that finds them.
// Leaves:  a movement whose parameters are not constant, and one whose result another op reads (the chain behind it is
//          still shortened where that costs nothing).
//   %1 = firn.transpose %0 {perm = [0, 2, 1]}; %2 = firn.transpose %1 {perm = [0, 2, 1]}     ==>   %0
//   %1 = firn.unsqueeze %0; %2 = firn.reshape %1                                             ==>   firn.reshape %0
#include "passes/Passes.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYMOVEMENT
#include "passes/Passes.h.inc"

namespace {

// --- transposes ------------------------------------------------------------------------------------------------------

bool simplifyTranspose(TransposeOp op, RuleRewriter &rewriter) {
  SmallVector<int64_t> perm = permutationOf(op);
  if (perm.empty() || !rankedType(op.getResult()))
    return false;
  if (llvm::is_sorted(perm) && rankedType(op.getX())) {
    rewriter.replace(op, op.getX(), "axes stay in order");
    return true;
  }
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner || !rankedType(inner.getX()))
    return false;
  SmallVector<int64_t> first = permutationOf(inner), both;
  if (first.size() != perm.size())
    return false;
  for (int64_t axis : perm)
    both.push_back(first[axis]);
  if (llvm::is_sorted(both)) {
    rewriter.replace(op, inner.getX(), "transposed there and back");
    return true;
  }
  rewriter.replaceWith<TransposeOp>(op, {inner}, "two transposes in one", op.getType(), inner.getX(),
                                    rewriter.getDenseI64ArrayAttr(both));
  return true;
}

// --- views -----------------------------------------------------------------------------------------------------------

bool isView(Operation *op) { return isa_and_nonnull<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(op); }

/// Why the view `op` of the view `inner` must stay one of two, or "".
StringRef viewRefusal(Operation *op, Operation *inner) {
  if (!rankedType(op->getResult(0)) || !rankedType(inner->getOperand(0)))
    return "a rank is not known";
  if (mentionsSymbolsOf(op->getResult(0).getType(), op) || mentionsSymbolsOf(op->getResult(0).getType(), inner))
    return "a dimension is only known when the view runs";
  return "";
}

/// A softmax of all axes from one on as a single one, written as view, softmax, view back: where only one of them is
/// longer than 1, the softmax of that axis.
template <typename Softmax> bool liftSoftmax(Operation *op, Softmax inner, RuleRewriter &rewriter) {
  Operation *first = inner.getX().getDefiningOp();
  auto between = rankedType(inner.getX());
  if (!isView(first) || !inner->hasOneUse() || !haveSameType(op->getResult(0), first->getOperand(0)) || !between ||
      between.getRank() == 0 || axisOf(inner, between.getRank()) != between.getRank() - 1)
    return false;
  SmallVector<DimExpr> dims = dimsOf(rankedType(first->getOperand(0)));
  while (dims.size() > 1 && isOne(dims.back()))
    dims.pop_back();
  if (dims.empty() || dims.back() != dimsOf(between).back())
    return false;
  rewriter.replaceWith<Softmax>(op, {first, inner}, "the softmax of one axis", op->getResult(0).getType(),
                                first->getOperand(0), rewriter.getI64IntegerAttr(int64_t(dims.size()) - 1));
  return true;
}

bool simplifyView(Operation *op, RuleRewriter &rewriter) {
  if (rewriter.dropIfUnchanged(op, "the shape stays"))
    return true;
  Operation *inner = op->getOperand(0).getDefiningOp();
  if (auto softmax = dyn_cast_or_null<SoftmaxOp>(inner))
    return liftSoftmax(op, softmax, rewriter);
  if (auto softmax = dyn_cast_or_null<LogSoftmaxOp>(inner))
    return liftSoftmax(op, softmax, rewriter);
  if (auto hardmax = dyn_cast_or_null<HardmaxOp>(inner))
    return liftSoftmax(op, hardmax, rewriter);
  if (!isView(inner))
    return false;
  if (StringRef why = viewRefusal(op, inner); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  if (haveSameType(op->getResult(0), inner->getOperand(0))) {
    rewriter.replace(op, inner->getOperand(0), "reshaped there and back");
    return true;
  }
  rewriter.replaceWith<ReshapeOp>(op, {inner}, "two views in one", op->getResult(0).getType(), inner->getOperand(0),
                                  Value());
  return true;
}

// --- pad, tile, expand, resize
// -----------------------------------------------------------------------------------------

bool simplifyPad(PadOp op, RuleRewriter &rewriter) {
  return areAll(op.getPads(), 0) && rewriter.dropIfUnchanged(op, "padded by nothing");
}

bool simplifyTile(TileOp op, RuleRewriter &rewriter) {
  return areAll(op.getRepeats(), 1) && rewriter.dropIfUnchanged(op, "repeated once");
}

bool simplifyExpand(ExpandOp op, RuleRewriter &rewriter) {
  return rewriter.dropIfUnchanged(op, "expanded to its own shape");
}

bool simplifyResize(ResizeOp op, RuleRewriter &rewriter) {
  if (op.getCoordinateTransformationMode() == "tf_crop_and_resize")
    return false;
  if (Value scales = operandOf(op, 2)) {
    auto numbers = numbersOf(scales, 64);
    if (!numbers || !llvm::all_of(*numbers, [](double scale) { return scale == 1; }))
      return false;
  }
  return rewriter.dropIfUnchanged(op, "resized to its own size");
}

// --- broadcasts ------------------------------------------------------------------------------------------------------

/// An operand that is only expanded to the shape that the operation gives it anyway.
bool dropExpandedOperand(Operation *op, RuleRewriter &rewriter) {
  auto type = rankedType(op->getResult(0));
  if (!type)
    return false;
  SmallVector<DimExpr> whole = dimsOf(type);
  for (OpOperand &operand : op->getOpOperands()) {
    auto expand = operand.get().getDefiningOp<ExpandOp>();
    auto source = expand ? rankedType(expand.getX()) : RankedTensorType();
    if (!source)
      continue;
    std::optional<SmallVector<DimExpr>> dims = dimsOf(source);
    for (OpOperand &other : op->getOpOperands()) {
      auto otherType = rankedType(other.get());
      if (&other == &operand)
        continue;
      if (!otherType || !dims) {
        dims.reset();
        break;
      }
      dims = broadcastDims(*dims, dimsOf(otherType));
    }
    if (!dims || !haveSameDims(*dims, whole) || mentionsSymbolsOf(type, expand))
      continue;
    rewriter.modifyOpInPlace(op, [&] { operand.set(expand.getX()); });
    rewriter.changed(op, "the operation broadcasts by itself");
    return true;
  }
  return false;
}

struct SimplifyMovement : impl::SimplifyMovementBase<SimplifyMovement> {
  using SimplifyMovementBase::SimplifyMovementBase;

  void runOnOperation() override {
    PassReport report("simplify-movement", limit);
    RuleSet rules;
    rules.add<TransposeOp>(simplifyTranspose);
    rules.addFor<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(simplifyView);
    rules.add<PadOp>(simplifyPad);
    rules.add<TileOp>(simplifyTile);
    rules.add<ExpandOp>(simplifyExpand);
    rules.add<ResizeOp>(simplifyResize);
    rules.addFor<AddOp, SubOp, MulOp, DivOp, PowOp, ModOp, AndOp, OrOp, XorOp, EqualOp, GreaterOp, LessOp,
                 GreaterOrEqualOp, LessOrEqualOp, WhereOp, SumOp, MaxOp, MinOp, MeanOp>(dropExpandedOperand);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
