// EliminateCommon: compute equal values once.
//
// In:      firn ops on tensors.     Out: the same, with one op for each value (operation, attributes, operands).
// Keeps:   every result bit for bit; two outputs of the function stay two values (firn.identity).
// Leaves:  operations with regions, random ones, and those that find a dimension only at run time.
//   %1 = firn.relu %0; %2 = firn.relu %0; %3 = firn.add %1, %2      ==>   %1 = firn.relu %0; %3 = firn.add %1, %1
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/ScopedHashTable.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_ELIMINATECOMMON
#include "passes/Passes.h.inc"

namespace {

/// Operations are equal if name, attributes, operands and result types are.
struct EqualOperation : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(const Operation *op) {
    return OperationEquivalence::computeHash(const_cast<Operation *>(op), OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue,
                                             OperationEquivalence::IgnoreLocations);
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b || a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() || b == getTombstoneKey())
      return a == b;
    return OperationEquivalence::isEquivalentTo(const_cast<Operation *>(a), const_cast<Operation *>(b),
                                                OperationEquivalence::IgnoreLocations);
  }
};
using Table = llvm::ScopedHashTable<Operation *, Operation *, EqualOperation>;

/// Whether an equal operation would compute the same.
bool isRepeatable(Operation *op) {
  if (op->getNumRegions() != 0 || op->getNumResults() == 0 || isa<FailOp, DropoutOp>(op))
    return false;
  if (op->hasAttr(opaqueAttribute))
    return false;
  if (auto call = dyn_cast<CallOp>(op)) {
    StringRef name = call.getCallee();
    return !name.contains("Random") && !name.contains("Bernoulli") && !name.contains("Multinomial") &&
           !name.contains("Dropout");
  }
  return isMemoryEffectFree(op);
}

class Eliminator {
public:
  Eliminator(PassReport &to, MLIRContext *context) : report(to), rewriter(context, to) {}

  void block(Block &block) {
    Table::ScopeTy scope(table);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (report.done())
        return;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          this->block(inner);
      if (!isRepeatable(&op))
        continue;
      if (Operation *first = table.lookup(&op))
        rewriter.replace(&op, first->getResults(), "computed before");
      else
        table.insert(&op, &op);
    }
  }

private:
  PassReport &report;
  RuleRewriter rewriter;
  Table table;
};

struct EliminateCommon : impl::EliminateCommonBase<EliminateCommon> {
  using EliminateCommonBase::EliminateCommonBase;

  void runOnOperation() override {
    PassReport report("eliminate-common", limit);
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (Block &block : func.getBody())
        Eliminator(report, &getContext()).block(block);
  }
};

} // namespace
} // namespace firn
