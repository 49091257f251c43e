// SimplifySequences: sequences whose tensors are known one by one become those tensors.
//
// In:      firn ops, types inferred.     Out: the same without sequences and optionals that only the compiler sees.
// Keeps:   every tensor bit for bit.
// Leaves:  sequences whose length or positions only running tells, or that leave the model; positions out of range,
// which
//          stop the run; operations that others' dimensions are found by.
//   firn.sequence_at (firn.sequence_construct %a, %b), 1        ==>   %b
//   firn.concat_from_sequence (firn.sequence_construct %a, %b)  ==>   firn.concat %a, %b
//   firn.sequence_at (firn.split_to_sequence %x), 0             ==>   firn.split %x
#include "passes/Passes.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYSEQUENCES
#include "passes/Passes.h.inc"

namespace {

constexpr size_t mostTensors = 1024;

/// The position that an operand says, counted from the front in a sequence of `count`; `fallback` where it is absent.
/// Nothing where it is not constant or not in [0, last].
std::optional<size_t> positionOf(Operation *op, unsigned operand, size_t count, int64_t last, int64_t fallback) {
  int64_t position = fallback;
  if (Value given = operandOf(op, operand)) {
    auto numbers = constantIntegers(given);
    if (!numbers || numbers->size() != 1)
      return std::nullopt;
    position = (*numbers)[0] < 0 ? (*numbers)[0] + int64_t(count) : (*numbers)[0];
  }
  return position >= 0 && position <= last ? std::optional<size_t>(position) : std::nullopt;
}

/// The tensors of a sequence where each is known.
std::optional<SmallVector<Value>> tensorsOf(Value sequence) {
  Operation *op = sequence.getDefiningOp();
  if (isa_and_nonnull<SequenceEmptyOp>(op))
    return SmallVector<Value>();
  if (auto construct = dyn_cast_or_null<SequenceConstructOp>(op))
    return construct->getNumOperands() <= mostTensors
               ? std::optional<SmallVector<Value>>(SmallVector<Value>(construct.getInputs()))
               : std::nullopt;
  if (!isa_and_nonnull<IdentityOp, SequenceInsertOp, SequenceEraseOp>(op))
    return std::nullopt;
  auto tensors = tensorsOf(op->getOperand(0));
  if (!tensors || isa<IdentityOp>(op))
    return tensors;
  int64_t count = tensors->size();
  bool isInsert = isa<SequenceInsertOp>(op);
  auto position = isInsert ? positionOf(op, 2, count, count, count) : positionOf(op, 1, count, count - 1, count - 1);
  if (!position || tensors->size() >= mostTensors)
    return std::nullopt;
  if (isInsert)
    tensors->insert(tensors->begin() + *position, op->getOperand(1));
  else
    tensors->erase(tensors->begin() + *position);
  return tensors;
}

bool mayReplace(Operation *op, RuleRewriter &rewriter) {
  if (!findsSymbolsForOthers(op))
    return true;
  rewriter.refuse(op, "other values are measured in dimensions that it finds");
  return false;
}

bool simplifyAt(SequenceAtOp op, RuleRewriter &rewriter) {
  auto tensors = tensorsOf(op.getSequence());
  if (!tensors) {
    rewriter.refuse(op, "only running tells what is in the sequence");
    return false;
  }
  auto position = positionOf(op, 1, tensors->size(), int64_t(tensors->size()) - 1, -1);
  if (!position) {
    rewriter.refuse(op, "the position is not constant or out of range");
    return false;
  }
  if (!rankedType((*tensors)[*position]) || !mayReplace(op, rewriter))
    return false;
  rewriter.replace(op, (*tensors)[*position], "the tensor is known");
  return true;
}

bool simplifyLength(SequenceLengthOp op, RuleRewriter &rewriter) {
  auto tensors = tensorsOf(op.getSequence());
  if (!tensors)
    return false;
  rewriter.setInsertionPoint(op);
  auto type = RankedTensorType::get({}, rewriter.getI64Type());
  rewriter.replace(op, makeNumbers(rewriter, op.getLoc(), type, {double(tensors->size())}), "the length is known");
  return true;
}

bool simplifyConcat(ConcatFromSequenceOp op, RuleRewriter &rewriter) {
  auto tensors = tensorsOf(op.getSequence());
  auto result = rankedType(op.getResult());
  if (!tensors || tensors->empty() || !result)
    return false;
  bool isNew = op.getNewAxis() != 0;
  for (Value tensor : *tensors)
    if (auto type = rankedType(tensor); !type || type.getRank() + isNew != result.getRank())
      return false; // an error that only running reports
  if (!mayReplace(op, rewriter))
    return false;
  rewriter.setInsertionPoint(op);
  auto axis = int64_t(op.getAxis()); // the accessor is unsigned
  axis += axis < 0 ? result.getRank() : 0;
  for (Value &tensor : *tensors) {
    if (!isNew)
      break;
    auto type = rankedType(tensor);
    SmallVector<DimExpr> dims = dimsOf(type);
    dims.insert(dims.begin() + axis, DimExpr(1));
    Value axes = makeIntegers(rewriter, op.getLoc(), {axis});
    tensor = rewriter.create<UnsqueezeOp>(op.getLoc(), tensorType(type.getElementType(), dims), tensor, axes);
  }
  rewriter.replaceWith<ConcatOp>(op, {}, "the tensors are known", op.getType(), *tensors,
                                 rewriter.getI64IntegerAttr(axis));
  return true;
}

/// The sizes of the pieces where they are known.
std::optional<SmallVector<int64_t>> pieceSizes(SplitToSequenceOp op, int64_t length) {
  Value split = operandOf(op, 1);
  auto given = split ? constantIntegers(split) : std::optional<SmallVector<int64_t>>(SmallVector<int64_t>{1});
  if (!given || length > int64_t(mostTensors))
    return std::nullopt;
  if (split && rankedType(split).getRank() == 1)
    return given;
  int64_t size = (*given)[0];
  if (size <= 0)
    return std::nullopt;
  SmallVector<int64_t> sizes;
  for (int64_t at = 0; at < length; at += size)
    sizes.push_back(std::min(size, length - at));
  return sizes;
}

/// A split whose pieces are read one by one.
bool simplifySplit(SplitToSequenceOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  if (!type || type.getRank() == 0)
    return false;
  for (Operation *user : op->getUsers())
    if (!isa<SequenceAtOp, SequenceLengthOp, ConcatFromSequenceOp>(user) ||
        (isa<SequenceAtOp>(user) && !constantIntegers(user->getOperand(1)))) {
      rewriter.refuse(op, "the sequence itself is used");
      return false;
    }
  auto axis = int64_t(op.getAxis()); // the accessor is unsigned
  axis += axis < 0 ? type.getRank() : 0;
  if (type.isDynamicDim(axis) || op->use_empty())
    return false;
  auto sizes = pieceSizes(op, type.getDimSize(axis));
  if (!sizes || sizes->empty())
    return false;
  rewriter.setInsertionPoint(op);
  SmallVector<Type> types;
  for (int64_t size : *sizes) {
    SmallVector<DimExpr> dims = dimsOf(type);
    dims[axis] = DimExpr(size);
    types.push_back(tensorType(type.getElementType(), dims));
  }
  auto split = rewriter.create<SplitOp>(op.getLoc(), types, op.getX(), makeIntegers(rewriter, op.getLoc(), *sizes),
                                        rewriter.getI64IntegerAttr(axis), IntegerAttr());
  SmallVector<Value> pieces(split.getOutputs());
  if (!operandOf(op, 1) && op.getKeepdims() == 0)
    for (Value &piece : pieces) {
      SmallVector<DimExpr> dims = dimsOf(type);
      dims.erase(dims.begin() + axis);
      piece = makeReshape(rewriter, op.getLoc(), piece, dims);
    }
  rewriter.replaceWith<SequenceConstructOp>(op, {}, "the pieces are known", op.getType(), pieces);
  return true;
}

bool simplifyGetElement(OptionalGetElementOp op, RuleRewriter &rewriter) {
  auto made = op.getX().getDefiningOp<OptionalOp>();
  Value held = made ? operandOf(made, 0) : isa<OptionalType>(op.getX().getType()) ? Value() : op.getX();
  if (!held || !mayReplace(op, rewriter))
    return false;
  rewriter.replace(op, held, "what the optional holds is known");
  return true;
}

bool simplifyHasElement(OptionalHasElementOp op, RuleRewriter &rewriter) {
  auto made = op.getX() ? op.getX().getDefiningOp<OptionalOp>() : OptionalOp();
  if (!made)
    return false; // FoldShapes sees to what the type tells
  rewriter.setInsertionPoint(op);
  auto type = RankedTensorType::get({}, rewriter.getI1Type());
  double has = operandOf(made, 0) ? 1 : 0;
  rewriter.replace(op, makeNumbers(rewriter, op.getLoc(), type, {has}),
                   "it is known whether the optional holds something");
  return true;
}

struct SimplifySequences : impl::SimplifySequencesBase<SimplifySequences> {
  using SimplifySequencesBase::SimplifySequencesBase;

  void runOnOperation() override {
    PassReport report("simplify-sequences", limit);
    RuleSet rules;
    rules.add<SequenceAtOp>(simplifyAt);
    rules.add<SequenceLengthOp>(simplifyLength);
    rules.add<ConcatFromSequenceOp>(simplifyConcat);
    rules.add<SplitToSequenceOp>(simplifySplit);
    rules.add<OptionalGetElementOp>(simplifyGetElement);
    rules.add<OptionalHasElementOp>(simplifyHasElement);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
