#include "compiler/plan/Lists.h"

#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {

std::optional<int32_t> listOperation(Operation *op) {
  if (isa<SequenceEmptyOp, SequenceConstructOp>(op))
    return FIRN_LIST_MAKE;
  if (isa<SequenceInsertOp>(op))
    return FIRN_LIST_INSERT;
  if (isa<SequenceEraseOp>(op))
    return FIRN_LIST_ERASE;
  if (isa<SequenceAtOp>(op))
    return FIRN_LIST_AT;
  if (isa<SequenceLengthOp>(op))
    return FIRN_LIST_LENGTH;
  if (isa<OptionalHasElementOp>(op))
    return FIRN_LIST_HAS;
  Value operand = op->getNumOperands() ? operandOf(op, 0) : Value();
  if (isa<OptionalOp>(op))
    return !operand ? FIRN_LIST_NONE : isa<TensorType>(operand.getType()) ? FIRN_LIST_MAKE : FIRN_LIST_COPY;
  if (isa<OptionalGetElementOp>(op))
    return isa<TensorType>(op->getResult(0).getType()) ? FIRN_LIST_AT : FIRN_LIST_COPY;
  return std::nullopt;
}

size_t listInputs(int32_t operation) {
  static const size_t counts[FIRN_LIST_OPERATION_COUNT] = {0, 0, 1, 1, 3, 2, 2, 1, 1};
  return counts[operation];
}

const char *listOperationName(int32_t operation) {
  static const char *const names[FIRN_LIST_OPERATION_COUNT] = {
      "list_make",      "list_none",   "list_copy",       "list_move",           "sequence_insert",
      "sequence_erase", "sequence_at", "sequence_length", "optional_has_element"};
  return names[operation];
}

/// Whether `user` runs behind `op` or inside of it.
static bool runsAfter(Operation *user, Operation *op, Value value) {
  for (Operation *around = op; around && around->getBlock(); around = around->getParentOp()) {
    Block *block = around->getBlock();
    if (Operation *ancestor = block->findAncestorOpInBlock(*user)) {
      if (ancestor != around && around->isBeforeInBlock(ancestor))
        return true;
      // Beside each other inside of one operation: branches of an If. Inside of `op` itself: it reads it when it runs.
      if (ancestor == op && user != op)
        return true;
    }
    if (value.getParentBlock() == block)
      return false;
    Operation *parent = block->getParentOp();
    if (isa_and_nonnull<LoopOp>(parent) &&
        parent->isAncestor(user)) // in the next iteration, unless it is made anew there
      return !parent->isAncestor(value.getParentRegion()->getParentOp());
  }
  return false;
}

bool isReadAfter(Value value, Operation *op) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return runsAfter(user, op, value); });
}

} // namespace firn
