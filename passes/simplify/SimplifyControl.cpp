// SimplifyControl: run branches and loops at compile time where their conditions are constants.
//
// In:      firn.if, firn.loop.     Out: the branch taken, or the body once or a few times, in place; nothing for a loop
//          that never runs.
// Keeps:   every result. A branch that is not taken may be wrong without harm.
// Leaves:  conditions and trip counts that only running tells; loops whose iterations are many operations or have open
//          dimensions; a loop that never runs and whose scan outputs have unknown sizes.
//   firn.if %true then { yield %a } else { yield %b }     ==>   %a
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYCONTROL
#include "passes/Passes.h.inc"

namespace {

/// Moves the operations of `block` in front of `op`; the values that its terminator names remain valid.
SmallVector<Value> inlineBlock(Block &block, Operation *op, RuleRewriter &rewriter) {
  SmallVector<Value> values(block.getTerminator()->getOperands());
  for (Operation &inner : llvm::make_early_inc_range(block.without_terminator()))
    rewriter.moveOpBefore(&inner, op);
  return values;
}

bool inlineBranch(IfOp op, RuleRewriter &rewriter) {
  auto condition = splatOf(op.getCondition());
  if (!condition)
    return false;
  if (findsSymbolsForOthers(op)) {
    rewriter.refuse(op, "other values are measured in dimensions that it finds");
    return false;
  }
  Region &taken = *condition != 0 ? op.getThenBranch() : op.getElseBranch();
  SmallVector<Value> values = inlineBlock(taken.front(), op, rewriter);
  rewriter.replace(op, values, *condition != 0 ? "the condition is true" : "the condition is false");
  return true;
}

/// How often the loop runs, if that is known to be 0 or 1.
std::optional<int> tripCount(LoopOp op) {
  Value count = operandOf(op, 0), condition = operandOf(op, 1);
  auto trips = count ? splatOf(count) : std::nullopt;
  auto start = condition ? splatOf(condition) : std::optional<double>(1);
  if ((trips && *trips <= 0) || (start && *start == 0))
    return 0;
  if (!start || (count && !trips))
    return std::nullopt;
  auto next = splatOf(op.getBody().front().getTerminator()->getOperand(0));
  if ((trips && *trips == 1) || (next && *next == 0))
    return 1;
  return std::nullopt;
}

/// Scan output i of a loop that never runs: no elements of the body's shape. Null if that shape is not static.
Value emptyScan(LoopOp op, unsigned i, RuleRewriter &rewriter) {
  auto element = dyn_cast<RankedTensorType>(op.getBody().front().getTerminator()->getOperand(i + 1).getType());
  if (!element || !element.hasStaticShape() || isa<UnknownType>(element.getElementType()))
    return {};
  SmallVector<int64_t> shape{0};
  llvm::append_range(shape, element.getShape());
  auto type = RankedTensorType::get(shape, element.getElementType());
  return rewriter.create<ConstantOp>(op.getLoc(), constantFromBytes(type, {}));
}

bool dropLoop(LoopOp op, RuleRewriter &rewriter) {
  unsigned carried = op.getCarried().size();
  SmallVector<Value> values(op.getCarried());
  rewriter.setInsertionPoint(op);
  for (unsigned i = carried; i < op.getNumResults(); ++i) {
    values.push_back(op.getResult(i).use_empty() ? Value() : emptyScan(op, i, rewriter));
    if (!values.back() && !op.getResult(i).use_empty()) {
      rewriter.refuse(op, "it never runs, but a scan output has no static shape");
      return false;
    }
  }
  rewriter.replace(op, values, "it never runs");
  return true;
}

/// One element of a scan output: `value` with a new leading axis of length 1.
Value stacked(Value value, Location loc, RuleRewriter &rewriter) {
  auto type = rankedType(value);
  SmallVector<DimExpr> dims{DimExpr(1)};
  llvm::append_range(dims, dimsOf(type));
  Value axes = makeIntegers(rewriter, loc, {0});
  return rewriter.create<UnsqueezeOp>(loc, tensorType(type.getElementType(), dims), value, axes);
}

/// Whether scan outputs can be put together from what the trips yield. What a carried argument stands for may have less
/// of a type than the argument.
bool hasRanksToStack(LoopOp op) {
  if (op.getNumResults() == op.getCarried().size())
    return true;
  auto isRanked = [](Value value) { return bool(rankedType(value)); };
  return llvm::all_of(op.getBody().front().getTerminator()->getOperands(), isRanked) &&
         llvm::all_of(op.getCarried(), isRanked);
}

bool inlineIteration(LoopOp op, RuleRewriter &rewriter) {
  if (!hasRanksToStack(op))
    return false;
  Block &body = op.getBody().front();
  unsigned carried = op.getCarried().size();
  rewriter.setInsertionPoint(op);
  auto scalar = [&](Type type, double number) {
    return makeNumbers(rewriter, op.getLoc(), RankedTensorType::get({}, type), {number});
  };
  SmallVector<Value> arguments{scalar(rewriter.getI64Type(), 0), scalar(rewriter.getI1Type(), 1)};
  llvm::append_range(arguments, op.getCarried());
  for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
    rewriter.replaceAllUsesWith(argument, value);
  SmallVector<Value> yields = inlineBlock(body, op, rewriter), values;
  rewriter.setInsertionPoint(op);
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    Value value = yields[i + 1];
    values.push_back(i >= carried ? stacked(value, op.getLoc(), rewriter) : value);
  }
  rewriter.replace(op, values, "it runs once");
  return true;
}

constexpr int64_t mostUnrolled = 32; // operations that take a loop's place

/// How often a small loop runs that is better written out; nothing, with the reason in `why`, for another.
std::optional<int64_t> unrolledTrips(LoopOp op, StringRef &why) {
  Value count = operandOf(op, 0), condition = operandOf(op, 1);
  auto trips = count ? splatOf(count) : std::nullopt;
  auto start = condition ? splatOf(condition) : std::optional<double>(1);
  Block &body = op.getBody().front();
  Value next = body.getTerminator()->getOperand(0);
  bool goesOn = next == body.getArgument(1) || splatOf(next) == 1.0;
  if (!trips || !start || !goesOn) {
    why = "it may run more than once";
    return std::nullopt;
  }
  int64_t operations = 0;
  bool isClosed = llvm::all_of(body.getArgumentTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  });
  op.getBody().walk([&](Operation *inner) {
    operations += isa<Operator>(inner) && !isa<ConstantOp, AbsentOp>(inner);
    for (Value result : inner->getResults())
      if (!isa<ConstantOp, AbsentOp>(inner))
        isClosed &= rankedType(result) && rankedType(result).hasStaticShape();
  });
  if (!isClosed || !hasRanksToStack(op)) {
    why = "its body has open dimensions";
    return std::nullopt;
  }
  if (*trips * std::max<int64_t>(operations, 1) > mostUnrolled) {
    why = "it is too long to be written out";
    return std::nullopt;
  }
  return int64_t(*trips);
}

/// The body `trips` times, one after the other.
void unroll(LoopOp op, int64_t trips, RuleRewriter &rewriter) {
  Block &body = op.getBody().front();
  Operation *end = body.getTerminator();
  unsigned carried = op.getCarried().size();
  SmallVector<Value> state(op.getCarried());
  SmallVector<SmallVector<Value>> scans(op.getNumResults() - carried);
  rewriter.setInsertionPoint(op);
  for (int64_t trip = 0; trip < trips; ++trip) {
    IRMapping map;
    auto scalar = [&](Type type, double number) {
      return makeNumbers(rewriter, op.getLoc(), RankedTensorType::get({}, type), {number});
    };
    map.map(body.getArgument(0), scalar(rewriter.getI64Type(), double(trip)));
    map.map(body.getArgument(1), scalar(rewriter.getI1Type(), 1));
    for (unsigned i = 0; i < carried; ++i)
      map.map(body.getArgument(2 + i), state[i]);
    for (Operation &inner : body.without_terminator())
      rewriter.clone(inner, map);
    for (unsigned i = 0; i < carried; ++i)
      state[i] = map.lookupOrDefault(end->getOperand(1 + i));
    for (auto [i, scan] : llvm::enumerate(scans))
      scan.push_back(stacked(map.lookupOrDefault(end->getOperand(1 + carried + i)), op.getLoc(), rewriter));
  }
  for (const SmallVector<Value> &scan : scans) {
    auto element = rankedType(scan[0]);
    SmallVector<int64_t> shape(element.getShape());
    shape[0] = trips;
    auto type = RankedTensorType::get(shape, element.getElementType());
    state.push_back(rewriter.create<ConcatOp>(op.getLoc(), type, scan, rewriter.getI64IntegerAttr(0)));
  }
  rewriter.replace(op, state, "written out");
}

bool simplifyLoop(LoopOp op, RuleRewriter &rewriter) {
  auto trips = tripCount(op);
  if (!trips) {
    StringRef why;
    auto few = findsSymbolsForOthers(op) ? std::nullopt : unrolledTrips(op, why);
    if (few)
      unroll(op, *few, rewriter);
    else if (!why.empty())
      rewriter.refuse(op, why);
    return few.has_value();
  }
  if (findsSymbolsForOthers(op)) {
    rewriter.refuse(op, "other values are measured in dimensions that it finds");
    return false;
  }
  return *trips == 0 ? dropLoop(op, rewriter) : inlineIteration(op, rewriter);
}

struct SimplifyControl : impl::SimplifyControlBase<SimplifyControl> {
  using SimplifyControlBase::SimplifyControlBase;

  void runOnOperation() override {
    PassReport report("simplify-control", limit);
    RuleSet rules;
    rules.add<IfOp>(inlineBranch);
    rules.add<LoopOp>(simplifyLoop);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
