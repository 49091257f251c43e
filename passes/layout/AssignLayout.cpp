// AssignLayout: convolutions take their channels last, and what lies between them follows where that saves moves.
//
// In:      firn ops, shapes inferred; rare operations decomposed.     Out: the same, with `layout = "nhwc"` on
//          convolutions and pools, axes and constants of other operations permuted, firn.transpose where layouts meet.
// Keeps:   every value; the order of axes of inputs and outputs of functions, branches and loops.
// Leaves:  convolutions whose weight is no constant of floats or whose channels or padding are not known, and all that
//          depends on the order of axes in a way that ChannelsLast does not write for both.
// Every operation of Part::Either or Sink has one of two layouts. A value whose producer and consumers disagree is
// transposed once, at the price of its bytes. The cheapest choice for the whole module is a minimum cut (source side:
// channels last); of several, the one with most operations channels last, which lets convolutions take in more of what
// follows them. Transposes of the model between the two orders are free where the layouts are the ones they convert.
//   %1 = firn.conv %0, %w     ==>   %a = firn.transpose %0 {0, 2, 3, 1}
//   %2 = firn.relu %1               %1 = firn.conv %a, %w {layout = "nhwc"}; %2 = firn.relu %1
//                                   %b = firn.transpose %2 {0, 3, 1, 2}
// Running twice changes nothing more.
#include "passes/Passes.h"
#include "passes/layout/ChannelsLast.h"
#include "passes/layout/MinCut.h"

#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_ASSIGNLAYOUT
#include "passes/Passes.h.inc"

namespace {

/// A reshape in place of a transpose costs no time, but may keep operations from being one kernel.
constexpr int64_t costOfView = 1;
/// What it is worth that an operation behind a convolution can be computed before the convolution's only store. Decides
/// between transposes of equal size, no more.
constexpr int64_t worthOfEpilogue = 2;
constexpr int64_t costOfByte = 8;

/// The price of moving a tensor; symbols count as 8.
int64_t costOf(RankedTensorType type) {
  double cost = costOfByte * std::max(firn_dtype_bits(dtypeOf(type.getElementType())) / 8, 1);
  for (int64_t size : type.getShape())
    cost *= ShapedType::isDynamic(size) ? 8 : double(size);
  return int64_t(std::min(cost, 1e13)) + costOfView;
}
bool isView(RankedTensorType type) { return isViewPermutation(type, toChannelsLast(type.getRank())); }

/// A transpose of the model from channels first to last, or back.
enum class Turn { None, ToLast, ToFirst };

class Assignment {
public:
  /// `limit`: convolutions that may change, -1 for any number.
  Assignment(ModuleOp of, PassReport &to, int64_t limit)
      : module(of), report(to), builder(of.getContext()), convolutionsLeft(limit) {}

  void run() {
    collect();
    if (parts.empty() && turns.empty())
      return;
    int64_t asItIs = connect();
    int64_t cost = cut.solve();
    if (!hasConverted && cost >= asItIs)
      return;
    rewrite();
  }

private:
  using Node = int;

  // --- the graph ---

  void collect() {
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<TransposeOp>(op)) {
        if (Turn turn = turnOf(cast<TransposeOp>(op)); turn != Turn::None)
          turns[op] = turn;
        return;
      }
      Part part = partOf(op);
      if (part == Part::Fixed) {
        if (isa<ConvOp, ConvIntegerOp, ConvTransposeOp>(op) && !op->hasAttr("layout"))
          report.refuse(op,
                        "its weight is no constant of floats, or its channels or padding are only known when it runs");
        return;
      }
      if (part == Part::Converted && convolutionsLeft-- == 0) {
        convolutionsLeft = 0;
        return;
      }
      parts[op] = part;
      nodes[op] = part == Part::Converted ? MinCut::source : cut.addNode();
      hasConverted |= part == Part::Converted;
      order.push_back(op);
    });
    for (auto &[op, turn] : turns)
      if (rankedType(op->getOperand(0)).getRank() == 3)
        turn = isBehindConvolution(op) ? Turn::ToLast : Turn::ToFirst; // the same permutation
  }

  Turn turnOf(TransposeOp op) {
    auto type = rankedType(op.getX());
    if (!type || type.getRank() < 3 || !rankedType(op.getResult()))
      return Turn::None;
    SmallVector<int64_t> perm = permutationOf(op);
    if (perm == toChannelsLast(type.getRank()))
      return Turn::ToLast;
    return perm == toChannelsFirst(type.getRank()) ? Turn::ToFirst : Turn::None;
  }

  /// Whether a convolution's result reaches `op` through operations that take any layout.
  bool isBehindConvolution(Operation *op) {
    SmallVector<Operation *> stack{op};
    llvm::DenseSet<Operation *> seen;
    while (!stack.empty()) {
      Operation *at = stack.pop_back_val();
      for (Value operand : at->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        auto part = parts.find(producer);
        if (!producer || part == parts.end() || !seen.insert(producer).second)
          continue;
        if (part->second == Part::Converted)
          return true;
        if (part->second == Part::Either)
          stack.push_back(producer);
      }
    }
    return false;
  }

  /// The side on which `value` comes into being.
  Node producerOf(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto turn = turns.find(op); op && turn != turns.end())
      return turn->second == Turn::ToFirst ? MinCut::source : MinCut::sink;
    auto node = nodes.find(op);
    if (!op || node == nodes.end() || parts[op] == Part::Sink)
      return MinCut::sink;
    return node->second;
  }

  /// The side on which a use wants its operand.
  Node consumerOf(OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto turn = turns.find(op); turn != turns.end())
      return turn->second == Turn::ToLast ? MinCut::source : MinCut::sink;
    auto node = nodes.find(op);
    return node == nodes.end() || !followsLayout(use) ? MinCut::sink : node->second;
  }

  void pay(Node from, Node to, int64_t cost, int64_t &asItIs) {
    if (from == to)
      return;
    cut.addEdge(from, to, cost);
    if (from == MinCut::source && cost < MinCut::infinite)
      asItIs += cost;
  }

  /// Prices every value; returns what the module costs as it is.
  int64_t connect() {
    int64_t asItIs = 0;
    auto connectValue = [&](Value value) {
      auto type = rankedType(value);
      if (!type || type.getRank() < 3 || value.use_empty() || constantOf(value))
        return;
      Node producer = producerOf(value);
      SmallVector<Node> consumers;
      for (OpOperand &use : value.getUses())
        consumers.push_back(consumerOf(use));
      llvm::sort(consumers);
      consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
      int64_t cost = isView(type) ? costOfView : costOf(type);
      if (consumers.size() == 1) {
        pay(consumers[0], producer, cost, asItIs);
        pay(producer, consumers[0], cost, asItIs);
        return;
      }
      // One copy serves all: `some` is channels last if any consumer is, `all` if every one is.
      Node some = cut.addNode(), all = cut.addNode();
      for (Node consumer : consumers) {
        pay(consumer, some, MinCut::infinite, asItIs);
        pay(all, consumer, MinCut::infinite, asItIs);
      }
      pay(some, producer, cost, asItIs);
      pay(producer, all, cost, asItIs);
      if (llvm::is_contained(consumers, int(MinCut::source)) && producer != MinCut::source)
        asItIs += cost;
    };
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        connectValue(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            connectValue(argument);
    });
    // Values that broadcast into an operation are turned for it alone.
    for (Operation *op : order)
      for (OpOperand &operand : op->getOpOperands())
        if (auto type = rankedType(operand.get()); type && !constantOf(operand.get()) && !followsLayout(operand))
          if (type.getRank() > 0 && type.getRank() < layoutRank(op) && nodes[op] != MinCut::source)
            cut.addEdge(nodes[op], MinCut::sink, type.getRank() == 1 ? costOfView : costOf(type));
    llvm::DenseSet<Operation *> behind;
    for (Operation *op : order) {
      bool isBehind = parts[op] == Part::Converted;
      for (OpOperand &operand : op->getOpOperands())
        isBehind |= followsLayout(operand) && behind.contains(operand.get().getDefiningOp());
      if (!isBehind)
        continue;
      behind.insert(op);
      if (auto type = rankedType(op->getResult(0)); parts[op] == Part::Either && type.getRank() >= 3 && !isView(type))
        cut.addEdge(MinCut::source, nodes[op], worthOfEpilogue);
    }
    return asItIs;
  }

  // --- the rewrite ---

  bool isLast(Operation *op) {
    auto node = nodes.find(op);
    return node != nodes.end() && (node->second == MinCut::source || cut.isOnSourceSide(node->second));
  }

  /// `value` with its channels last, made where it is defined if need be.
  Value lastOf(Value value) {
    auto known = last.find(value);
    if (known != last.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    if (op && turns.lookup(op) == Turn::ToFirst)
      return last[value] = op->getOperand(0);
    if (op)
      builder.setInsertionPointAfter(op);
    else
      builder.setInsertionPointToStart(value.getParentBlock());
    Location loc = op ? op->getLoc() : value.getLoc();
    return last[value] = permuted(builder, loc, value, toChannelsLast(rankedType(value).getRank()));
  }

  void rewrite() {
    SmallVector<Operation *> replaced;
    for (Operation *op : order) {
      if (!isLast(op))
        continue;
      SmallVector<Value> operands(op->getNumOperands());
      for (OpOperand &operand : op->getOpOperands())
        if (followsLayout(operand))
          operands[operand.getOperandNumber()] = lastOf(operand.get());
      builder.setInsertionPoint(op);
      Operation *made =
          buildChannelsLast(builder, op, [&](OpOperand &operand) { return operands[operand.getOperandNumber()]; });
      report.rewrite(op, "channels last");
      for (auto [result, value] : llvm::zip(op->getResults(), made->getResults())) {
        if (parts[op] == Part::Sink)
          result.replaceAllUsesWith(value);
        else
          last[result] = value;
      }
      replaced.push_back(op);
    }
    for (auto &[op, turn] : turns)
      if (auto known = last.find(op->getOperand(0)); turn == Turn::ToLast && known != last.end()) {
        op->getResult(0).replaceAllUsesWith(known->second);
        replaced.push_back(op);
      }
    llvm::DenseSet<Operation *> gone(replaced.begin(), replaced.end());
    for (Operation *op : replaced)
      for (Value result : op->getResults())
        giveBack(result, gone);
    for (Operation *op : replaced)
      op->dropAllReferences();
    for (Operation *op : replaced)
      op->erase();
    for (auto &[op, turn] : turns)
      if (turn == Turn::ToFirst && op->use_empty())
        op->erase();
  }

  /// Those that read `value` with its channels first read a transpose of what took its place.
  void giveBack(Value value, const llvm::DenseSet<Operation *> &gone) {
    auto isOther = [&](OpOperand &use) { return !gone.contains(use.getOwner()); };
    auto known = last.find(value);
    if (known == last.end() || !llvm::any_of(value.getUses(), isOther))
      return;
    builder.setInsertionPointAfter(known->second.getDefiningOp());
    Value first = permuted(builder, value.getLoc(), known->second, toChannelsFirst(rankedType(value).getRank()));
    value.replaceUsesWithIf(first, isOther);
  }

  ModuleOp module;
  PassReport &report;
  OpBuilder builder;
  MinCut cut;
  int64_t convolutionsLeft;
  bool hasConverted = false;
  llvm::MapVector<Operation *, Part> parts;
  llvm::MapVector<Operation *, Turn> turns;
  llvm::DenseMap<Operation *, Node> nodes;
  SmallVector<Operation *> order;
  llvm::DenseMap<Value, Value> last;
};

struct AssignLayout : impl::AssignLayoutBase<AssignLayout> {
  using AssignLayoutBase::AssignLayoutBase;

  void runOnOperation() override {
    PassReport report("assign-layout", limit);
    if (!report.done())
      Assignment(getOperation(), report, limit).run();
    updateFunctionTypes(getOperation());
  }
};

} // namespace
} // namespace firn
