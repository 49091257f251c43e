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

#include <limits>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYMOVEMENT
#include "passes/Passes.h.inc"

namespace {

/// Replaces `op` by its first operand if the types agree.
bool dropIfUnchanged(Operation *op, RuleRewriter &rewriter, StringRef what) {
  if (op->getNumResults() != 1 || !haveSameType(op->getResult(0), op->getOperand(0)))
    return false;
  rewriter.replace(op, op->getOperand(0), what);
  return true;
}

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

bool simplifyView(Operation *op, RuleRewriter &rewriter) {
  if (dropIfUnchanged(op, rewriter, "the shape stays"))
    return true;
  Operation *inner = op->getOperand(0).getDefiningOp();
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

// --- concat, split, pad, tile, resize --------------------------------------------------------------------------------

int64_t axisOf(Operation *op, int64_t rank) {
  int64_t axis = op->getAttrOfType<IntegerAttr>("axis").getInt();
  return axis < 0 ? axis + rank : axis;
}

/// An inner concat on the same axis with one use joins; inputs of length 0 go.
bool simplifyConcat(ConcatOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getResult());
  if (!type || type.getRank() == 0)
    return false;
  int64_t axis = axisOf(op, type.getRank());
  SmallVector<Value> inputs;
  SmallVector<Operation *> joined;
  for (Value input : op.getInputs()) {
    auto inputType = rankedType(input);
    if (!inputType)
      return false;
    auto inner = input.getDefiningOp<ConcatOp>();
    if (inner && input.hasOneUse() && axisOf(inner, type.getRank()) == axis) {
      llvm::append_range(inputs, inner.getInputs());
      joined.push_back(inner);
    } else if (inputType.getDimSize(axis) != 0) {
      inputs.push_back(input);
    }
  }
  if (inputs.empty())
    inputs.push_back(op.getInputs()[0]); // all empty: one of them is the result
  if (inputs.size() == 1 && haveSameType(inputs[0], op.getResult())) {
    rewriter.replace(op, inputs[0], "joined one input");
    return true;
  }
  if (inputs.size() == op.getInputs().size() && joined.empty())
    return false;
  rewriter.replaceWith<ConcatOp>(op, joined, "joined fewer inputs", op.getType(), inputs,
                                 rewriter.getI64IntegerAttr(axis));
  return true;
}

bool simplifySplit(SplitOp op, RuleRewriter &rewriter) {
  return op.getNumResults() == 1 && dropIfUnchanged(op, rewriter, "split into one");
}

bool allAre(Value value, int64_t number) {
  auto numbers = value ? constantIntegers(value) : std::nullopt;
  return numbers && llvm::all_of(*numbers, [&](int64_t n) { return n == number; });
}

bool simplifyPad(PadOp op, RuleRewriter &rewriter) {
  return allAre(op.getPads(), 0) && dropIfUnchanged(op, rewriter, "padded by nothing");
}

bool simplifyTile(TileOp op, RuleRewriter &rewriter) {
  return allAre(op.getRepeats(), 1) && dropIfUnchanged(op, rewriter, "repeated once");
}

bool simplifyExpand(ExpandOp op, RuleRewriter &rewriter) {
  return dropIfUnchanged(op, rewriter, "expanded to its own shape");
}

bool simplifyResize(ResizeOp op, RuleRewriter &rewriter) {
  if (op.getCoordinateTransformationMode() == "tf_crop_and_resize")
    return false;
  if (Value scales = operandOf(op, 2)) {
    auto numbers = numbersOf(scales, 64);
    if (!numbers || !llvm::all_of(*numbers, [](double scale) { return scale == 1; }))
      return false;
  }
  return dropIfUnchanged(op, rewriter, "resized to its own size");
}

// --- slices ----------------------------------------------------------------------------------------------------------

/// Elements start, start + step, ... of one axis, `length` of them.
struct Range {
  int64_t start, step, length;
};

/// The slice as one range per axis; nothing unless everything is a number.
std::optional<SmallVector<Range>> rangesOf(SliceOp op) {
  auto type = rankedType(op.getX()), resultType = rankedType(op.getResult());
  if (!type || !resultType || !type.hasStaticShape() || !resultType.hasStaticShape())
    return std::nullopt;
  auto bound = [&](unsigned i) -> std::optional<SmallVector<int64_t>> {
    Value value = operandOf(op, i);
    return value ? constantIntegers(value) : std::nullopt;
  };
  auto starts = bound(1), ends = bound(2), axes = bound(3), steps = bound(4);
  if (!starts || !ends || (operandOf(op, 3) && !axes) || (operandOf(op, 4) && !steps))
    return std::nullopt;
  SmallVector<Range> ranges;
  for (int64_t size : type.getShape())
    ranges.push_back({0, 1, size});
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = axes ? (*axes)[i] : int64_t(i);
    if (axis < 0)
      axis += type.getRank();
    if (axis < 0 || axis >= type.getRank())
      return std::nullopt;
    int64_t size = type.getDimSize(axis), step = steps ? (*steps)[i] : 1, start = (*starts)[i];
    if (start < 0)
      start += size;
    start = step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, 0, size - 1);
    ranges[axis] = {start, step, resultType.getDimSize(axis)};
  }
  return ranges;
}

bool isWhole(const Range &range, int64_t size) { return range.start == 0 && range.step == 1 && range.length == size; }

bool simplifySlice(SliceOp op, RuleRewriter &rewriter) {
  Value steps = operandOf(op, 4);
  if ((!steps || allAre(steps, 1)) && dropIfUnchanged(op, rewriter, "sliced the whole"))
    return true;
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner)
    return false;
  auto outerRanges = rangesOf(op), innerRanges = rangesOf(inner);
  if (!outerRanges || !innerRanges) {
    rewriter.refuse(op, "a slice of a slice whose bounds are not all numbers");
    return false;
  }
  auto source = rankedType(inner.getX());
  SmallVector<int64_t> starts, ends, axes, strides;
  for (auto [axis, pair] : llvm::enumerate(llvm::zip(*innerRanges, *outerRanges))) {
    auto [first, second] = pair;
    Range range{first.start + first.step * second.start, first.step * second.step, second.length};
    if (range.length == 0)
      range = {0, 1, 0};
    if (isWhole(range, source.getDimSize(axis)))
      continue;
    int64_t end = range.start + range.length * range.step;
    starts.push_back(range.start);
    ends.push_back(end < 0 ? std::numeric_limits<int64_t>::min() : end);
    axes.push_back(axis);
    strides.push_back(range.step);
  }
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {inner});
  SmallVector<Value> bounds{makeIntegers(rewriter, loc, starts), makeIntegers(rewriter, loc, ends),
                            makeIntegers(rewriter, loc, axes), makeIntegers(rewriter, loc, strides)};
  rewriter.replaceWith<SliceOp>(op, {inner}, "two slices in one", op.getType(), inner.getX(), bounds);
  return true;
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
    PassReport report("SimplifyMovement", limit);
    RuleSet rules;
    rules.add<TransposeOp>(simplifyTranspose);
    rules.addFor<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(simplifyView);
    rules.add<ConcatOp>(simplifyConcat);
    rules.add<SplitOp>(simplifySplit);
    rules.add<PadOp>(simplifyPad);
    rules.add<TileOp>(simplifyTile);
    rules.add<ExpandOp>(simplifyExpand);
    rules.add<ResizeOp>(simplifyResize);
    rules.add<SliceOp>(simplifySlice);
    rules.addFor<AddOp, SubOp, MulOp, DivOp, PowOp, ModOp, AndOp, OrOp, XorOp, EqualOp, GreaterOp, LessOp,
                 GreaterOrEqualOp, LessOrEqualOp, WhereOp, SumOp, MaxOp, MinOp, MeanOp>(dropExpandedOperand);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
