// What emitters share: symbols, keys, index arithmetic, the split among workers, the dispatch by kind.
#include "compiler/codegen/cpu/KernelEmitter.h"

#include <set>

using namespace mlir;

namespace firn {
namespace {

void collectSymbols(Type type, std::set<std::string> &names) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (const DimExpr &dim : dimsOf(tensor))
      dim.collectSymbols(names);
}

} // namespace

std::vector<std::string> kernelSymbols(FusedOp fused) {
  std::set<std::string> names;
  fused->walk([&](Operation *op) {
    for (Type type : op->getOperandTypes())
      collectSymbols(type, names);
    for (Type type : op->getResultTypes())
      collectSymbols(type, names);
    if (auto values = dyn_cast<DimValuesOp>(op))
      for (Attribute text : values.getExprs())
        if (auto expr = DimExpr::parse(cast<StringAttr>(text).getValue()))
          expr->collectSymbols(names);
  });
  return {names.begin(), names.end()};
}

std::string kernelKey(FusedOp fused) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // In local scope operands from outside have no names, and values inside are numbered from 0.
  fused->print(stream, OpPrintingFlags().useLocalScope().printGenericOpForm().skipRegions(false));
  return text;
}

kernel::FuncOp createKernel(ModuleOp module, StringRef name, FusedOp fused) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  int64_t buffers = fused->getNumOperands() + fused->getNumResults();
  return builder.create<kernel::FuncOp>(fused.getLoc(), name, buffers, int64_t(kernelSymbols(fused).size()), false);
}

LogicalResult emitKernel(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  for (const std::string &symbol : kernelSymbols(fused))
    if (StringRef(symbol).starts_with("?")) {
      whyNot = "a dimension that nothing is known of";
      return failure();
    }
  StringRef kind = fused.getKind();
  if (kind == "map")
    return emitMap(fused, func, target, whyNot);
  if (kind == "reduce")
    return emitReduce(fused, func, target, whyNot);
  if (kind == "contraction")
    return emitContraction(fused, func, target, whyNot);
  if (kind == "attention")
    return emitAttention(fused, func, target, whyNot);
  if (kind == "pool")
    return emitPool(fused, func, target, whyNot);
  if (kind == "scatter")
    return emitScatter(fused, func, target, whyNot);
  if (kind == "scan")
    return emitScan(fused, func, target, whyNot);
  if (kind == "search")
    return emitSearch(fused, func, target, whyNot);
  if (kind == "sample")
    return emitSample(fused, func, target, whyNot);
  if (kind == "forest")
    return emitForest(fused, func, target, whyNot);
  if (kind == "sequence")
    return emitSequence(fused, func, target, whyNot);
  whyNot = "no emitter for fused operations of kind '" + kind.str() + "'";
  return failure();
}

DimValues::DimValues(FusedOp fused, kernel::FuncOp of) : builder(of.getContext()), func(of) {
  // Whatever emitters append to the entry block comes behind this constant, and all index arithmetic before it.
  builder.setInsertionPointToStart(&func.getBody().front());
  Value last = builder.create<arith::ConstantIndexOp>(func.getLoc(), 0);
  builder.setInsertionPoint(last.getDefiningOp());
  for (auto [i, name] : llvm::enumerate(kernelSymbols(fused)))
    symbols[name] = func.dim(int64_t(i));
}

Value DimValues::constant(int64_t value) { return get(DimExpr(value)); }

Value DimValues::get(const DimExpr &expr) {
  std::string key = expr.str();
  if (auto found = cache.find(key); found != cache.end())
    return found->second;
  Location loc = func.getLoc();
  Value sum;
  if (auto number = expr.asConstant()) {
    sum = builder.create<arith::ConstantIndexOp>(loc, *number);
  } else {
    for (const DimExpr::Term &term : expr.terms()) {
      Value product;
      for (const DimExpr::AtomRef &factor : term.atoms) {
        Value value = atom(*factor);
        product = product ? builder.create<arith::MulIOp>(loc, product, value).getResult() : value;
      }
      if (!product)
        product = constant(term.coefficient);
      else if (term.coefficient != 1)
        product = builder.create<arith::MulIOp>(loc, product, constant(term.coefficient));
      sum = sum ? builder.create<arith::AddIOp>(loc, sum, product).getResult() : product;
    }
  }
  return cache[key] = sum;
}

Value DimValues::atom(const DimExpr::Atom &atom) {
  if (atom.function == DimExpr::Function::Symbol) {
    auto found = symbols.find(atom.name);
    return found != symbols.end() ? found->second : constant(0); // kernelSymbols lists every symbol of the op
  }
  if (auto found = cache.find(atom.text); found != cache.end())
    return found->second;
  Location loc = func.getLoc();
  Value a = get(atom.args[0]), b = get(atom.args[1]);
  auto guarded = [&](auto divide) -> Value { // division by 0 gives 0, as in the executor's integer program
    if (auto divisor = atom.args[1].asConstant(); divisor && *divisor != 0)
      return divide(b);
    Value zero = constant(0), one = constant(1);
    Value isZero = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, b, zero);
    Value safe = builder.create<arith::SelectOp>(loc, isZero, one, b);
    Value quotient = divide(safe);
    return builder.create<arith::SelectOp>(loc, isZero, zero, quotient);
  };
  Value result;
  switch (atom.function) {
  case DimExpr::Function::FloorDiv:
    result = guarded([&](Value by) -> Value { return builder.create<arith::FloorDivSIOp>(loc, a, by); });
    break;
  case DimExpr::Function::CeilDiv:
    result = guarded([&](Value by) -> Value { return builder.create<arith::CeilDivSIOp>(loc, a, by); });
    break;
  case DimExpr::Function::Mod:
    result = guarded([&](Value by) -> Value {
      Value quotient = builder.create<arith::FloorDivSIOp>(loc, a, by);
      Value whole = builder.create<arith::MulIOp>(loc, quotient, by);
      return builder.create<arith::SubIOp>(loc, a, whole);
    });
    break;
  case DimExpr::Function::Min:
    result = builder.create<arith::MinSIOp>(loc, a, b);
    break;
  case DimExpr::Function::Max:
    result = builder.create<arith::MaxSIOp>(loc, a, b);
    break;
  case DimExpr::Function::Symbol:
  case DimExpr::Function::Inverse: // of contents only, no dimension holds it
    break;
  }
  return cache[atom.text] = result;
}

Range workerRange(OpBuilder &builder, Location loc, kernel::FuncOp func, Value total, int64_t granule) {
  auto number = [&](int64_t value) -> Value { return builder.create<arith::ConstantIndexOp>(loc, value); };
  if (!func.getParallel())
    return {number(0), total};
  // [ceil(units * w / W), ceil(units * (w + 1) / W)) in units of the granule: sizes differ by one unit at most.
  Value units = total;
  if (granule > 1) {
    Value more = builder.create<arith::AddIOp>(loc, total, number(granule - 1));
    units = builder.create<arith::DivUIOp>(loc, more, number(granule));
  }
  Value next = builder.create<arith::AddIOp>(loc, func.worker(), number(1));
  auto border = [&](Value worker) -> Value {
    Value product = builder.create<arith::MulIOp>(loc, units, worker);
    Value unit = builder.create<arith::DivUIOp>(loc, product, func.workers());
    if (granule == 1)
      return unit;
    Value at = builder.create<arith::MulIOp>(loc, unit, number(granule));
    return builder.create<arith::MinUIOp>(loc, at, total);
  };
  return {border(func.worker()), border(next)};
}

bool worthWorkers(const DimExpr &elements, int64_t cyclesPerElement) {
  // A fork-join costs 0.05 to 0.25 us (performance.md §1); a worker should get ten times that.
  auto count = elements.asConstant();
  return !count || *count > 20000 / std::max<int64_t>(1, cyclesPerElement);
}

} // namespace firn
