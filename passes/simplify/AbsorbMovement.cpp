// AbsorbMovement: operators that can say a movement themselves take it in.
//
// In:      firn ops, shapes inferred.     Out: the same with fewer pads, squeezes and transposes.
// Keeps:   every value bit for bit.
// Leaves:  pads by another value than 0, at axes or of sizes that the window has no attribute for; movements that
// others
//          read too.
//   firn.conv(firn.pad %x, [0, 0, 1, 1, 0, 0, 1, 1])           ==>   firn.conv %x {pads = [1, 1, 1, 1]}
//   firn.squeeze(firn.reduce_mean %x, %axes)                   ==>   firn.reduce_mean %x, %axes {keepdims = 0}
//   firn.gemm(firn.transpose %a, %b)                           ==>   firn.gemm %a, %b {transA = 1}
#include "passes/Passes.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_ABSORBMOVEMENT
#include "passes/Passes.h.inc"

namespace {

/// `op` again with some attributes and operands changed, in its place and with its result's type.
void replaceByVariant(Operation *op, ValueRange operands, ArrayRef<NamedAttribute> changes,
                      ArrayRef<Operation *> absorbed, StringRef what, RuleRewriter &rewriter,
                      Operation *replaced = nullptr) {
  replaced = replaced ? replaced : op;
  rewriter.setInsertionPoint(replaced);
  OperationState state(rewriter.fused(replaced, absorbed), op->getName(), operands, replaced->getResultTypes(),
                       op->getAttrs());
  for (NamedAttribute change : changes)
    state.attributes.set(change.getName(), change.getValue());
  rewriter.replace(replaced, rewriter.create(state)->getResults(), what);
}

// --- pads ------------------------------------------------------------------------------------------------------------

/// Zeros that `pad` adds in front of and behind each axis, as one list; nothing where it does anything else.
std::optional<SmallVector<int64_t>> zerosAround(PadOp pad, StringRef &why) {
  auto type = rankedType(pad.getX());
  auto given = constantIntegers(pad.getPads());
  if (!type || !given || pad.getMode() != "constant") {
    why = "the pads are no constants or repeat the input";
    return std::nullopt;
  }
  if (Value filling = operandOf(pad, 2); filling && !isSplatOf(filling, 0.0)) {
    why = "it pads by another value than 0";
    return std::nullopt;
  }
  int64_t rank = type.getRank();
  SmallVector<int64_t> axes;
  if (Value list = operandOf(pad, 3)) {
    auto numbers = constantIntegers(list);
    if (!numbers)
      return std::nullopt;
    axes = *numbers;
  } else {
    for (int64_t axis = 0; axis < rank; ++axis)
      axes.push_back(axis);
  }
  SmallVector<int64_t> zeros(2 * rank, 0);
  if (given->size() != 2 * axes.size())
    return std::nullopt;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank)
      return std::nullopt;
    zeros[axis] += (*given)[i];
    zeros[axis + rank] += (*given)[i + axes.size()];
  }
  return zeros;
}

/// The window's own pads with `zeros` around them, or nothing, with the reason in `why`.
std::optional<SmallVector<int64_t>> widenedPads(Operation *window, ArrayRef<int64_t> zeros, StringRef &why) {
  int64_t rank = zeros.size() / 2;
  auto kind = window->getAttrOfType<StringAttr>("auto_pad");
  if (kind && kind.getValue() != "NOTSET" && kind.getValue() != "VALID") {
    why = "the window's own pads follow from the size";
    return std::nullopt;
  }
  SmallVector<int64_t> pads(2 * (rank - 2), 0);
  if (auto own = window->getAttrOfType<DenseI64ArrayAttr>("pads"); own && own.size() == int64_t(pads.size()))
    pads.assign(own.asArrayRef().begin(), own.asArrayRef().end());
  for (int64_t axis = 0; axis < rank; ++axis)
    for (int64_t end : {int64_t(0), rank}) {
      int64_t zero = zeros[axis + end];
      if (zero < 0 || (axis < 2 && zero != 0)) {
        why = "it pads batch or channels, or takes elements away";
        return std::nullopt;
      }
      if (axis >= 2)
        pads[axis - 2 + (end ? rank - 2 : 0)] += zero;
    }
  return pads;
}

/// Whether all padded elements count in the means of an average_pool once they are its own.
bool countsPads(AveragePoolOp pool, ArrayRef<int64_t> zeros) {
  auto own = pool.getPads();
  bool hasOwn = own && llvm::any_of(*own, [](int64_t pad) { return pad != 0; });
  return pool.getCeilMode() == 0 && (pool.getCountIncludePad() != 0 || !hasOwn) &&
         llvm::any_of(zeros, [](int64_t zero) { return zero != 0; });
}

bool absorbPad(Operation *op, RuleRewriter &rewriter) {
  auto pad = op->getOperand(0).getDefiningOp<PadOp>();
  auto type = pad ? rankedType(pad.getX()) : RankedTensorType();
  if (!type || type.getRank() < 3 || op->hasAttr("layout"))
    return false;
  std::string shared = otherReader(pad.getResult(), op);
  StringRef why = shared;
  std::optional<SmallVector<int64_t>> zeros, pads;
  if (why.empty())
    if ((zeros = zerosAround(pad, why)))
      pads = widenedPads(op, *zeros, why);
  auto pool = dyn_cast<AveragePoolOp>(op);
  if (pads && pool && !countsPads(pool, *zeros)) {
    why = "the window counts its own pads otherwise";
    pads.reset();
  }
  if (!pads) {
    rewriter.refuse(op, why);
    return false;
  }
  SmallVector<Value> operands(op->getOperands());
  operands[0] = pad.getX();
  SmallVector<NamedAttribute> changes{rewriter.getNamedAttr("pads", rewriter.getDenseI64ArrayAttr(*pads)),
                                      rewriter.getNamedAttr("auto_pad", rewriter.getStringAttr("NOTSET"))};
  if (pool)
    changes.push_back(rewriter.getNamedAttr("count_include_pad", rewriter.getI64IntegerAttr(1)));
  replaceByVariant(op, operands, changes, {pad}, "the pads became the window's", rewriter);
  return true;
}

// --- reductions ------------------------------------------------------------------------------------------------------

/// The axes of length 1 that `reduce` leaves, or nothing where that is not known.
std::optional<SmallVector<int64_t>> keptAxes(Operation *reduce) {
  auto type = rankedType(reduce->getOperand(0));
  auto keeps = reduce->getAttrOfType<IntegerAttr>("keepdims");
  if (!type || !keeps || keeps.getInt() == 0)
    return std::nullopt;
  if (isa<ArgMaxOp, ArgMinOp>(reduce))
    return SmallVector<int64_t>{axisOf(reduce, type.getRank())};
  auto axes = reducedAxes(reduce);
  return axes && !axes->empty() ? axes : std::nullopt;
}

bool isReduction(Operation *op) {
  return isa_and_nonnull<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceL1Op, ReduceL2Op,
                         ReduceLogSumOp, ReduceLogSumExpOp, ReduceSumSquareOp, ArgMaxOp, ArgMinOp>(op);
}

/// A view that drops exactly the axes that a reduction keeps with length 1.
bool absorbSqueeze(Operation *op, RuleRewriter &rewriter) {
  Operation *reduce = op->getOperand(0).getDefiningOp();
  auto type = rankedType(op->getResult(0));
  if (!isReduction(reduce) || !reduce->hasOneUse() || !type)
    return false;
  auto axes = keptAxes(reduce);
  if (!axes)
    return false;
  SmallVector<DimExpr> dims;
  for (auto [axis, dim] : llvm::enumerate(dimsOf(rankedType(reduce->getOperand(0)))))
    if (!llvm::is_contained(*axes, int64_t(axis)))
      dims.push_back(dim);
  if (!haveSameDims(dims, dimsOf(type)))
    return false;
  replaceByVariant(reduce, reduce->getOperands(), {rewriter.getNamedAttr("keepdims", rewriter.getI64IntegerAttr(0))},
                   {reduce}, "the reduction drops its axes", rewriter, op);
  return true;
}

// --- products --------------------------------------------------------------------------------------------------------

bool absorbTransposes(GemmOp op, RuleRewriter &rewriter) {
  SmallVector<Value> operands(op->getOperands());
  SmallVector<NamedAttribute> changes;
  SmallVector<Operation *> absorbed;
  for (unsigned i : {0u, 1u}) {
    auto transpose = operands[i].getDefiningOp<TransposeOp>();
    if (!transpose || !rankedType(transpose.getX()) || permutationOf(transpose) != SmallVector<int64_t>{1, 0})
      continue;
    operands[i] = transpose.getX();
    int64_t isTransposed = i == 0 ? op.getTransA() : op.getTransB();
    changes.push_back(
        rewriter.getNamedAttr(i == 0 ? "transA" : "transB", rewriter.getI64IntegerAttr(isTransposed ? 0 : 1)));
    absorbed.push_back(transpose);
  }
  if (absorbed.empty())
    return false;
  replaceByVariant(op, operands, changes, absorbed, "it reads its operand transposed", rewriter);
  return true;
}

struct AbsorbMovement : impl::AbsorbMovementBase<AbsorbMovement> {
  using AbsorbMovementBase::AbsorbMovementBase;

  void runOnOperation() override {
    PassReport report("absorb-movement", limit);
    RuleSet rules;
    rules.addFor<ConvOp, AveragePoolOp>(absorbPad);
    rules.addFor<ReshapeOp, FlattenOp, SqueezeOp>(absorbSqueeze);
    rules.add<GemmOp>(absorbTransposes);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
