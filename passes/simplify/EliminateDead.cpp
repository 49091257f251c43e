// EliminateDead: drop what nobody reads.
//
// In:      firn ops on tensors.     Out: the same, without operations whose results are unused, and with firn.if and
//          firn.loop that yield only what is used.
// Keeps:   every value that the function returns; an operation whose run-time dimensions others are written in.
// Leaves:  operations that may stop the run (firn.fail).
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "dialects/firn/Inference.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <map>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_ELIMINATEDEAD
#include "passes/Passes.h.inc"

namespace {

/// Symbols that types and dimension values of the module mention, by the operations that mention them.
class SymbolUses {
public:
  explicit SymbolUses(ModuleOp module) {
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          if (auto dims = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
            add(op, dims.getExprs());
      for (Attribute list : {op->getAttr("exprs"), op->getAttr("firn.elements")})
        if (auto exprs = dyn_cast_or_null<ArrayAttr>(list))
          add(op, exprs);
    });
  }

  /// Whether another live operation mentions a symbol that `op` finds.
  bool needs(Operation *op) const {
    return llvm::any_of(op->getResults(), [&](OpResult result) { return needs(result); });
  }
  /// Whether another live operation mentions a symbol that `result` gives.
  bool needs(OpResult result) const {
    Operation *op = result.getOwner();
    auto id = op->getAttrOfType<IntegerAttr>("firn.id");
    if (!id)
      return false;
    int64_t number = unknownResultId(op, result.getResultNumber());
    return llvm::any_of(usersOf(id.getInt(), number), [&](Operation *user) { return !op->isAncestor(user); });
  }
  /// Whether the body of `loop` mentions a symbol that its carried value `i` has inside it.
  bool needsCarried(LoopOp loop, unsigned i) const {
    auto id = loop->getAttrOfType<IntegerAttr>("firn.id");
    return id && !usersOf(id.getInt(), carriedResultId(unknownResultId(loop, i))).empty();
  }
  /// `op` took the place of `before`, which had more results.
  void replace(Operation *before, Operation *op) {
    for (auto &[result, users] : usersByResult)
      std::replace(users.begin(), users.end(), before, op);
  }
  void forget(Operation *op) {
    op->walk([&](Operation *inner) { erased.insert(inner); });
  }

private:
  SmallVector<Operation *> usersOf(int64_t id, int64_t result) const {
    auto found = usersByResult.find({id, result});
    SmallVector<Operation *> users;
    if (found != usersByResult.end())
      llvm::copy_if(found->second, std::back_inserter(users), [&](Operation *user) { return !erased.contains(user); });
    return users;
  }
  void add(Operation *op, ArrayAttr exprs) {
    for (Attribute attribute : exprs) {
      if (auto nested = dyn_cast<ArrayAttr>(attribute)) // of one of several results
        add(op, nested);
      auto text = dyn_cast<StringAttr>(attribute);
      if (!text || text.getValue().empty())
        continue;
      auto expr = DimExpr::parse(std::string_view(text.getValue().data(), text.getValue().size()));
      std::set<std::string> symbols;
      if (expr)
        expr->collectSymbols(symbols);
      for (StringRef symbol : symbols) {
        int64_t id, result;
        if (symbol.consume_front("u") && !symbol.consumeInteger(10, id) && symbol.consume_front(".") &&
            !symbol.consumeInteger(10, result) && symbol.starts_with("."))
          usersByResult[{id, result}].push_back(op);
      }
    }
  }
  std::map<std::pair<int64_t, int64_t>, SmallVector<Operation *, 2>> usersByResult;
  llvm::DenseSet<Operation *> erased;
};

bool mayDrop(Operation *op) {
  if (isa<FailOp, func::FuncOp, ModuleOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (isa<IfOp, LoopOp>(op))
    return !op->walk([](FailOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return isa<CallOp, DropoutOp>(op) || isMemoryEffectFree(op);
}

/// `narrow` has the results `kept` of `op`, whose unknown dimensions keep their names.
void keepResultIds(Operation *op, ArrayRef<unsigned> kept, Operation *narrow) {
  if (!op->hasAttr("firn.id"))
    return;
  SmallVector<int64_t> ids;
  for (unsigned i : kept)
    ids.push_back(unknownResultId(op, i));
  narrow->setAttr(resultIdsAttribute, DenseI64ArrayAttr::get(op->getContext(), ids));
}

/// A firn.if that yields only the results that are used.
bool narrowIf(IfOp op, SymbolUses &symbols, PassReport &report) {
  SmallVector<unsigned> kept;
  for (OpResult result : op.getResults())
    if (!result.use_empty() || symbols.needs(result))
      kept.push_back(result.getResultNumber());
  if (kept.size() == op.getNumResults() || kept.empty())
    return false;
  report.rewrite(op, "dropped unused outputs");
  OpBuilder builder(op);
  SmallVector<Type> types;
  for (unsigned i : kept)
    types.push_back(op.getResult(i).getType());
  OperationState state(op.getLoc(), op->getName(), op->getOperands(), types, op->getAttrs());
  state.addRegion();
  state.addRegion();
  Operation *narrow = builder.create(state);
  for (unsigned r = 0; r < 2; ++r) {
    narrow->getRegion(r).takeBody(op->getRegion(r));
    Operation *yield = narrow->getRegion(r).front().getTerminator();
    SmallVector<Value> values;
    for (unsigned i : kept)
      values.push_back(yield->getOperand(i));
    yield->setOperands(values);
  }
  for (auto [position, i] : llvm::enumerate(kept))
    op.getResult(i).replaceAllUsesWith(narrow->getResult(position));
  keepResultIds(op, kept, narrow);
  symbols.replace(op, narrow);
  op.erase();
  return true;
}

/// A firn.loop without the scan outputs and carried values that are not used.
bool narrowLoop(LoopOp op, SymbolUses &symbols, PassReport &report) {
  Block &body = op.getBody().front();
  Operation *yield = body.getTerminator();
  unsigned carried = op.getCarried().size();
  llvm::BitVector dropped(op.getNumResults());
  for (OpResult result : op.getResults()) {
    unsigned i = result.getResultNumber();
    dropped[i] = result.use_empty() && !symbols.needs(result) &&
                 (i >= carried || (body.getArgument(i + 2).use_empty() && !symbols.needsCarried(op, i)));
  }
  if (dropped.none())
    return false;
  report.rewrite(op, "dropped unused outputs");
  SmallVector<Value> operands{op->getOperand(0), op->getOperand(1)}, yields{yield->getOperand(0)};
  SmallVector<Type> types;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    if (dropped[i])
      continue;
    if (i < carried)
      operands.push_back(op.getCarried()[i]);
    yields.push_back(yield->getOperand(i + 1));
    types.push_back(op.getResult(i).getType());
  }
  OpBuilder builder(op);
  OperationState state(op.getLoc(), op->getName(), operands, types, op->getAttrs());
  state.addRegion();
  auto narrow = cast<LoopOp>(builder.create(state));
  yield->setOperands(yields);
  for (unsigned i = carried; i-- > 0;)
    if (dropped[i])
      body.eraseArgument(i + 2);
  narrow.getBody().takeBody(op.getBody());
  SmallVector<unsigned> kept;
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (!dropped[i])
      kept.push_back(i);
  for (auto [position, i] : llvm::enumerate(kept))
    op.getResult(i).replaceAllUsesWith(narrow.getResult(position));
  keepResultIds(op, kept, narrow);
  symbols.replace(op, narrow);
  op.erase();
  return true;
}

struct EliminateDead : impl::EliminateDeadBase<EliminateDead> {
  using EliminateDeadBase::EliminateDeadBase;

  void runOnOperation() override {
    PassReport report("eliminate-dead", limit);
    SymbolUses symbols(getOperation());
    for (bool hasChanged = true; hasChanged && !report.done();) {
      hasChanged = false;
      for (auto func : getOperation().getOps<func::FuncOp>())
        for (Block &block : func.getBody())
          hasChanged |= drop(block, symbols, report);
    }
  }

  /// From the last operation to the first, so that one pass drops whole chains.
  bool drop(Block &block, SymbolUses &symbols, PassReport &report) {
    bool hasChanged = false;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (report.done())
        return hasChanged;
      if (op.use_empty() && mayDrop(&op)) {
        if (symbols.needs(&op)) {
          report.refuse(&op, "dimensions of other values are found by it");
          continue;
        }
        if (!isa<ConstantOp, AbsentOp>(op))
          report.rewrite(&op, "nobody reads it");
        symbols.forget(&op);
        op.erase();
        hasChanged = true;
        continue;
      }
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          hasChanged |= drop(inner, symbols, report);
      if (auto branch = dyn_cast<IfOp>(op))
        hasChanged |= narrowIf(branch, symbols, report);
      else if (auto loop = dyn_cast<LoopOp>(op))
        hasChanged |= narrowLoop(loop, symbols, report);
    }
    return hasChanged;
  }
};

} // namespace
} // namespace firn
