// SimplifyParts: slices, splits and concats of one tensor that undo or continue each other.
//
// In:      firn ops on tensors, shapes inferred.     Out: the same, with fewer of them.
// Keeps:   every element.
// Leaves:  bounds that are no constants, and those whose meaning depends on a size that is not known.
//   %1 = firn.slice %0 [1:], %2 = firn.slice %1 [2:5]                       ==>   firn.slice %0 [3:6]
//   %1:2 = firn.split %0; %2 = firn.concat %1#0, %1#1                       ==>   %0
//   %1 = firn.concat %a, %b; %2 = firn.slice %1 (within the length of %a)   ==>   firn.slice %a
#include "passes/Passes.h"
#include "passes/Rules.h"

#include <limits>
#include <map>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYPARTS
#include "passes/Passes.h.inc"

namespace {

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

/// The bounds of one axis as the operator has them: negative ones count from the end, whatever the size is.
struct Cut {
  int64_t start, end, step;
};
using Cuts = std::map<int64_t, Cut>; // by axis

constexpr int64_t toTheEnd = std::numeric_limits<int32_t>::max(); // files write this or more

/// The slice of `x` by these cuts, of this type, in front of the rewriter's insertion point.
Value makeSlice(RuleRewriter &rewriter, Location loc, Type type, Value x, const Cuts &cuts) {
  SmallVector<int64_t> starts, ends, axes, steps;
  for (const auto &[axis, cut] : cuts) {
    starts.push_back(cut.start);
    ends.push_back(cut.end);
    axes.push_back(axis);
    steps.push_back(cut.step);
  }
  SmallVector<Value> bounds;
  for (ArrayRef<int64_t> numbers : {ArrayRef(starts), ArrayRef(ends), ArrayRef(axes), ArrayRef(steps)})
    bounds.push_back(makeIntegers(rewriter, loc, numbers));
  return rewriter.create<SliceOp>(loc, type, x, bounds);
}

/// One slice by these cuts in place of `op` and `inner`, which it reads.
void mergeSlices(SliceOp op, SliceOp inner, const Cuts &cuts, RuleRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  Value merged = makeSlice(rewriter, rewriter.fused(op, {inner}), op.getType(), inner.getX(), cuts);
  rewriter.replace(op, merged, "two slices in one");
}

/// The cut of each axis that the slice names; nothing unless all its bounds are numbers.
std::optional<Cuts> cutsOf(SliceOp op) {
  auto type = rankedType(op.getX());
  if (!type)
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> lists;
  for (unsigned i = 1; i <= 4; ++i) {
    Value value = operandOf(op, i);
    std::optional<SmallVector<int64_t>> numbers = value ? constantIntegers(value) : SmallVector<int64_t>();
    if (!numbers)
      return std::nullopt;
    lists.push_back(*numbers);
  }
  Cuts cuts;
  for (size_t i = 0; i < lists[0].size(); ++i) {
    int64_t axis = operandOf(op, 3) ? lists[2][i] : int64_t(i);
    axis = axis < 0 ? axis + type.getRank() : axis;
    if (i >= lists[1].size() || axis < 0 || axis >= type.getRank() || cuts.count(axis))
      return std::nullopt;
    cuts[axis] = {lists[0][i], lists[1][i], operandOf(op, 4) ? lists[3][i] : 1};
  }
  return cuts;
}

/// [a.start, a.end) and of that [b.start, b.end), for any size of the axis; nothing where the size decides.
std::optional<Cut> cutOfCut(const Cut &a, const Cut &b) {
  if (a.step != 1 || b.step != 1 || a.start < 0 || b.start < 0 || a.start >= toTheEnd || b.start >= toTheEnd)
    return std::nullopt;
  bool isToEnd = a.end >= toTheEnd, isSameEnd = b.end >= toTheEnd;
  int64_t start = a.start + b.start;
  if (isSameEnd)
    return Cut{start, a.end, 1};
  if (b.end < 0) // from the end of a
    return isToEnd ? Cut{start, b.end, 1} : a.end < 0 ? std::optional(Cut{start, a.end + b.end, 1}) : std::nullopt;
  if (isToEnd)
    return Cut{start, a.start + b.end, 1};
  return a.end >= 0 ? std::optional(Cut{start, std::min(a.end, a.start + b.end), 1}) : std::nullopt;
}

/// Two slices of dimensions that only running tells, in one.
bool mergeCuts(SliceOp op, SliceOp inner, RuleRewriter &rewriter) {
  auto cuts = cutsOf(inner), further = cutsOf(op);
  if (!cuts || !further || mentionsSymbolsOf(op.getType(), inner)) {
    rewriter.refuse(op, "a slice of a slice whose bounds are not all numbers");
    return false;
  }
  for (const auto &[axis, cut] : *further) {
    auto [at, isNew] = cuts->try_emplace(axis, cut);
    if (isNew)
      continue;
    std::optional<Cut> both = cutOfCut(at->second, cut);
    if (!both) {
      rewriter.refuse(op, "a slice of a slice whose bounds depend on a size that is not known");
      return false;
    }
    at->second = *both;
  }
  mergeSlices(op, inner, *cuts, rewriter);
  return true;
}

bool sliceOfSlice(SliceOp op, SliceOp inner, RuleRewriter &rewriter) {
  auto outerRanges = rangesOf(op), innerRanges = rangesOf(inner);
  if (!outerRanges || !innerRanges)
    return mergeCuts(op, inner, rewriter);
  auto source = rankedType(inner.getX());
  Cuts cuts;
  for (auto [axis, pair] : llvm::enumerate(llvm::zip(*innerRanges, *outerRanges))) {
    auto [first, second] = pair;
    Range range{first.start + first.step * second.start, first.step * second.step, second.length};
    if (range.length == 0)
      range = {0, 1, 0};
    if (isWhole(range, source.getDimSize(axis)))
      continue;
    int64_t end = range.start + range.length * range.step;
    cuts[axis] = {range.start, end < 0 ? std::numeric_limits<int64_t>::min() : end, range.step};
  }
  mergeSlices(op, inner, cuts, rewriter);
  return true;
}

/// A slice of joined tensors that touches some of them only: of one input, or of fewer joined.
bool sliceOfConcat(SliceOp op, ConcatOp inner, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX()), resultType = rankedType(op.getResult());
  auto ranges = rangesOf(op);
  auto cuts = cutsOf(op);
  if (!type || !ranges || !cuts)
    return false;
  int64_t axis = axisOf(inner, type.getRank());
  Range range = (*ranges)[axis];
  if (range.step != 1 || range.length == 0 || isWhole(range, type.getDimSize(axis)))
    return false;
  SmallVector<Value> touched;
  int64_t offset = 0, before = 0, size = 0; // of all inputs, of those in front of the touched ones, of the touched ones
  for (Value input : inner.getInputs()) {
    int64_t length = rankedType(input).getDimSize(axis);
    if (offset < range.start + range.length && offset + length > range.start) {
      before = touched.empty() ? offset : before;
      touched.push_back(input);
      size += length;
    }
    offset += length;
  }
  bool isWholeInputs = before == range.start && size == range.length;
  if (touched.size() == inner.getInputs().size() || (touched.size() > 1 && !(isWholeInputs && inner->hasOneUse())))
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {inner});
  Value from = touched[0];
  if (touched.size() > 1) {
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = size;
    from = rewriter.create<ConcatOp>(loc, RankedTensorType::get(shape, type.getElementType()), touched,
                                     rewriter.getI64IntegerAttr(axis));
  }
  if (isWholeInputs)
    cuts->erase(axis);
  else
    (*cuts)[axis] = {range.start - before, range.start - before + range.length, 1};
  if (!cuts->empty())
    from = makeSlice(rewriter, loc, resultType, from, *cuts);
  rewriter.replace(op, from, "sliced before it is joined");
  return true;
}

bool simplifySlice(SliceOp op, RuleRewriter &rewriter) {
  Value steps = operandOf(op, 4);
  if ((!steps || areAll(steps, 1)) && rewriter.dropIfUnchanged(op, "sliced the whole"))
    return true;
  if (auto inner = op.getX().getDefiningOp<SliceOp>())
    return sliceOfSlice(op, inner, rewriter);
  auto inner = op.getX().getDefiningOp<ConcatOp>();
  return inner && sliceOfConcat(op, inner, rewriter);
}

// --- concats and splits ----------------------------------------------------------------------------------------------

/// The one axis that the slice cuts, with its bounds; nothing for another kind of slice.
std::optional<std::pair<int64_t, Cut>> soleCut(SliceOp op) {
  auto cuts = cutsOf(op);
  return cuts && cuts->size() == 1 ? std::optional(std::pair(*cuts->begin())) : std::nullopt;
}

/// How many inputs from `first` on are all results of one split along `axis`, in their order.
size_t resultsOfSplit(ValueRange inputs, size_t first, int64_t axis) {
  auto split = inputs[first].getDefiningOp<SplitOp>();
  size_t count = split ? split.getNumResults() : 0;
  if (count == 0 || first + count > inputs.size() || axisOf(split, rankedType(inputs[first]).getRank()) != axis)
    return 0;
  for (size_t i = 0; i < count; ++i)
    if (inputs[first + i] != split.getResult(i))
      return 0;
  return count;
}

/// How many inputs from `first` on are slices of one tensor, each beginning where the one before ends; their cut.
size_t adjacentSlices(ValueRange inputs, size_t first, int64_t axis, Cut &whole) {
  Value source;
  size_t count = 0;
  for (; first + count < inputs.size(); ++count) {
    auto slice = inputs[first + count].getDefiningOp<SliceOp>();
    auto cut = slice ? soleCut(slice) : std::nullopt;
    if (!cut || cut->first != axis || cut->second.step != 1 || !slice->hasOneUse())
      break;
    const Cut &next = cut->second;
    if (count > 0 && (slice.getX() != source || next.start != whole.end))
      break;
    // Where one bound counts from the end and the other from the start, the end may lie in front of the start.
    bool isForward = (next.start < 0) == (next.end < 0) ? next.start <= next.end
                     : next.start < 0                   ? next.end >= toTheEnd
                                                        : next.start == 0;
    if (!isForward)
      break;
    if (count == 0)
      source = slice.getX(), whole = next;
    whole.end = next.end;
  }
  return count;
}

/// The tensor that adjacent slices were cut from, or one slice of it.
Value joinSlices(ConcatOp op, ArrayRef<Operation *> slices, int64_t axis, const Cut &whole, RuleRewriter &rewriter) {
  Value source = slices[0]->getOperand(0);
  SmallVector<DimExpr> dims = dimsOf(rankedType(source));
  DimExpr length;
  for (Operation *slice : slices)
    length = length + dimOf(rankedType(slice->getResult(0)), axis);
  if (length == dims[axis])
    return source;
  dims[axis] = length;
  return makeSlice(rewriter, rewriter.fused(op, slices), tensorType(getElementTypeOrSelf(source), dims), source,
                   {{axis, whole}});
}

/// Inner concats on the same axis with one use join, parts of one tensor become it again, inputs of length 0 go.
bool simplifyConcat(ConcatOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getResult());
  if (!type || type.getRank() == 0 || !llvm::all_of(op.getInputs(), [](Value input) { return rankedType(input); }))
    return false;
  int64_t axis = axisOf(op, type.getRank());
  SmallVector<Value> inputs;
  SmallVector<Operation *> joined;
  rewriter.setInsertionPoint(op);
  for (size_t i = 0; i < op.getInputs().size();) {
    Value input = op.getInputs()[i];
    auto inner = input.getDefiningOp<ConcatOp>();
    Cut whole{};
    size_t ofSplit = resultsOfSplit(op.getInputs(), i, axis);
    size_t adjacent = adjacentSlices(op.getInputs(), i, axis, whole);
    if (ofSplit > 0) {
      inputs.push_back(input.getDefiningOp<SplitOp>().getX());
      joined.push_back(input.getDefiningOp());
      i += ofSplit;
    } else if (adjacent > 1) {
      SmallVector<Operation *> slices;
      for (size_t k = 0; k < adjacent; ++k)
        slices.push_back(op.getInputs()[i + k].getDefiningOp());
      inputs.push_back(joinSlices(op, slices, axis, whole, rewriter));
      joined.append(slices);
      i += adjacent;
    } else if (inner && input.hasOneUse() && axisOf(inner, type.getRank()) == axis) {
      llvm::append_range(inputs, inner.getInputs());
      joined.push_back(inner);
      ++i;
    } else {
      if (rankedType(input).getDimSize(axis) != 0)
        inputs.push_back(input);
      ++i;
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
  if (op.getNumResults() == 1 && rewriter.dropIfUnchanged(op, "split into one"))
    return true;
  auto inner = op.getX().getDefiningOp<ConcatOp>();
  auto type = rankedType(op.getX());
  if (!inner || !type || inner.getInputs().size() != op.getNumResults() ||
      axisOf(inner, type.getRank()) != axisOf(op, type.getRank()) ||
      !llvm::all_of(llvm::zip(inner.getInputs(), op.getResults()),
                    [](auto pair) { return haveSameType(std::get<0>(pair), std::get<1>(pair)); }))
    return false;
  rewriter.replace(op, inner.getInputs(), "split what was joined");
  return true;
}

struct SimplifyParts : impl::SimplifyPartsBase<SimplifyParts> {
  using SimplifyPartsBase::SimplifyPartsBase;

  void runOnOperation() override {
    PassReport report("simplify-parts", limit);
    RuleSet rules;
    rules.add<ConcatOp>(simplifyConcat);
    rules.add<SplitOp>(simplifySplit);
    rules.add<SliceOp>(simplifySlice);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
