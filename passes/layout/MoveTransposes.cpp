// MoveTransposes: transposes around operations that work on any order of axes meet and go.
//
// In:      firn ops, shapes inferred.     Out: the same with fewer firn.transpose, by at least one for each change.
// Keeps:   every value; the order of axes of inputs and outputs of functions, branches and loops.
// Leaves:  transposes with nothing to meet.
// For each permutation p of a block: an operation behind a transpose by p may run in front of it, on operands in the
// order that they had before p. Its operands then need a transpose back unless they are transposes by p, constants or
// run in front too; its result needs one by p where others than transposes back read it. Which operations move is a
// minimum cut over the number of transposes; nothing moves unless that number falls.
//   %1 = firn.transpose %0 {perm = [0, 2, 3, 1]}
//   %2 = firn.relu %1                                   ==>   %3 = firn.relu %0
//   %3 = firn.transpose %2 {perm = [0, 3, 1, 2]}
#include "passes/Passes.h"
#include "passes/layout/ChannelsLast.h"
#include "passes/layout/MinCut.h"

#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_MOVETRANSPOSES
#include "passes/Passes.h.inc"

namespace {

using Permutation = SmallVector<int64_t>;

Permutation inverseOf(ArrayRef<int64_t> perm) {
  Permutation inverse(perm.size());
  for (auto [i, axis] : llvm::enumerate(perm))
    inverse[axis] = i;
  return inverse;
}

bool isConvertedByOneScale(Operation *op) {
  if (!isa<QuantizeLinearOp, DequantizeLinearOp>(op))
    return false;
  auto scale = rankedType(op->getOperand(1));
  return scale && scale.hasStaticShape() && scale.getNumElements() == 1 && scale.getRank() == 0;
}

/// Whether the operation is the same on permuted operands, its axis renumbered.
bool worksOnAnyOrder(Operation *op) {
  return isUnaryElementwise(op) || isBroadcasting(op) || isa<ConcatOp, SoftmaxOp, LogSoftmaxOp, HardmaxOp>(op) ||
         isConvertedByOneScale(op);
}

bool isDataOperand(OpOperand &operand) {
  return operand.getOperandNumber() == 0 || isBroadcasting(operand.getOwner()) || isa<ConcatOp>(operand.getOwner());
}

/// A constant, or one element: no order of axes to keep.
bool fitsAnyOrder(Value value) {
  if (ElementsAttr constant = constantOf(value))
    return firn_dtype_bits(dtypeOf(cast<ShapedType>(constant.getType()).getElementType())) >= 8;
  auto type = rankedType(value);
  return isa_and_nonnull<AbsentOp>(value.getDefiningOp()) ||
         (type && type.hasStaticShape() && type.getNumElements() == 1);
}

/// The transposes by one permutation in one block, and what lies around them.
class Mover {
public:
  Mover(Block &of, Permutation by, RuleRewriter &to)
      : block(of), perm(std::move(by)), back(inverseOf(perm)), rewriter(to) {}

  /// Moves what saves transposes; whether anything did.
  bool run() {
    collect();
    if (order.empty())
      return false;
    int64_t before = connect();
    if (cut.solve() >= before)
      return false;
    rewrite();
    return true;
  }

private:
  int64_t rank() const { return perm.size(); }
  bool hasRank(Value value) const {
    auto type = rankedType(value);
    return type && type.getRank() == rank();
  }
  /// What is in front of the transpose by `perm` that gives `value`; null if there is none.
  Value inFront(Value value) const {
    auto transpose = value.getDefiningOp<TransposeOp>();
    bool isBy = transpose && hasRank(transpose.getX()) && permutationOf(transpose) == perm;
    return isBy ? transpose.getX() : Value();
  }
  bool isBack(Operation *op) const {
    auto transpose = dyn_cast<TransposeOp>(op);
    return transpose && hasRank(transpose.getX()) && permutationOf(transpose) == back;
  }
  bool isCandidate(Operation *op) const {
    if (op->getBlock() != &block || op->getNumResults() != 1 || !hasRank(op->getResult(0)) || !worksOnAnyOrder(op))
      return false;
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return !isDataOperand(operand) || hasRank(operand.get()) || fitsAnyOrder(operand.get());
    });
  }

  /// Candidates that reach a transpose by `perm` or one back.
  void collect() {
    SmallVector<Operation *> stack;
    auto visit = [&](Operation *op) {
      if (op && !nodes.count(op) && isCandidate(op)) {
        nodes[op] = cut.addNode();
        stack.push_back(op);
      }
    };
    for (auto transpose : block.getOps<TransposeOp>()) {
      if (inFront(transpose.getResult()))
        for (Operation *user : transpose->getUsers())
          visit(user);
      if (isBack(transpose))
        visit(transpose.getX().getDefiningOp());
    }
    while (!stack.empty()) {
      Operation *op = stack.pop_back_val();
      for (Operation *user : op->getUsers())
        visit(user);
      for (Value operand : op->getOperands())
        visit(operand.getDefiningOp());
    }
    for (Operation &op : block)
      if (nodes.count(&op))
        order.push_back(&op);
  }

  int nodeOf(Operation *op) const {
    auto at = nodes.find(op);
    return at == nodes.end() ? MinCut::sink : at->second;
  }

  /// The nodes and edges: operations that move are on the source side. Returns the transposes that there are now.
  int64_t connect() {
    int64_t count = 0;
    SetVector<Value> outer; // read by candidates, neither constant nor a candidate's result
    for (Operation *op : order) {
      for (OpOperand &operand : op->getOpOperands())
        if (isDataOperand(operand) && !fitsAnyOrder(operand.get()) && !nodes.count(operand.get().getDefiningOp()))
          outer.insert(operand.get());
      count += connectResult(op);
    }
    for (Value value : outer) {
      bool isTranspose = bool(inFront(value));
      count += isTranspose;
      // A transpose by perm is needed where a reader stays; of another value, a transpose back where a reader moves.
      int need = cut.addNode();
      if (isTranspose)
        cut.addEdge(MinCut::source, need, 1);
      else if (!hasBack(value))
        cut.addEdge(need, MinCut::sink, 1);
      for (Operation *user : value.getUsers()) {
        if (isTranspose)
          cut.addEdge(need, nodeOf(user), MinCut::infinite);
        else if (int node = nodeOf(user); node != MinCut::sink)
          cut.addEdge(node, need, MinCut::infinite);
      }
    }
    return count;
  }

  int64_t connectResult(Operation *op) {
    int node = nodes[op];
    int forOthers = cut.addNode(), turnedBack = cut.addNode();
    cut.addEdge(node, forOthers, 1);  // op moves, a reader stays: a transpose behind it
    cut.addEdge(turnedBack, node, 1); // op stays, a reader moves: a transpose back
    bool hasBack = false;
    for (Operation *user : op->getUsers()) {
      if (isBack(user)) {
        hasBack = true;
        continue;
      }
      int reader = nodeOf(user);
      cut.addEdge(forOthers, reader, MinCut::infinite);
      if (reader != MinCut::sink)
        cut.addEdge(reader, turnedBack, MinCut::infinite);
    }
    if (hasBack) // goes if op moves
      cut.addEdge(MinCut::source, turnedBack, MinCut::infinite);
    return hasBack;
  }

  bool hasBack(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return isBack(user) && user->getBlock() == &block; });
  }

  bool moves(Operation *op) const { return nodes.count(op) && cut.isOnSourceSide(nodes.find(op)->second); }

  void rewrite() {
    SmallVector<Operation *> moved;
    for (Operation *op : order)
      if (moves(op)) {
        build(op);
        moved.push_back(op);
      }
    // Readers first: what an operation is replaced by must not be read by one that goes.
    for (Operation *op : llvm::reverse(moved))
      replace(op);
  }

  Value innerOf(Value value, Operation *reader) {
    if (auto at = inner.find(value); at != inner.end())
      return at->second;
    Value result = inFront(value);
    if (!result)
      result = fitsAnyOrder(value) ? permutedOperand(rewriter, value, back)
                                   : makeTranspose(rewriter, reader->getLoc(), value, back);
    return inner[value] = result;
  }

  void build(Operation *op) {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      bool isKept = !isDataOperand(operand) || isa_and_nonnull<AbsentOp>(operand.get().getDefiningOp());
      operands.push_back(isKept ? operand.get() : innerOf(operand.get(), op));
    }
    OperationState state(op->getLoc(), op->getName(), operands, permutedType(rankedType(op->getResult(0)), back),
                         op->getAttrs());
    if (isa<ConcatOp, SoftmaxOp, LogSoftmaxOp, HardmaxOp>(op))
      state.attributes.set("axis", rewriter.getI64IntegerAttr(perm[axisOf(op, rank())]));
    inner[op->getResult(0)] = rewriter.create(state)->getResult(0);
  }

  void replace(Operation *op) {
    Value moved = inner[op->getResult(0)];
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isBack(user))
        rewriter.replace(user, moved, "met its inverse");
    Value result;
    if (!op->use_empty()) {
      rewriter.setInsertionPointAfter(moved.getDefiningOp());
      result = makeTranspose(rewriter, op->getLoc(), moved, perm);
    }
    rewriter.replace(op, result, "works in front of the transpose");
  }

  Block &block;
  Permutation perm, back;
  RuleRewriter &rewriter;
  MinCut cut;
  llvm::DenseMap<Operation *, int> nodes;
  SmallVector<Operation *> order;
  llvm::DenseMap<Value, Value> inner; // of a value, the one in the order before the transpose
};

/// The permutations of a block's transposes, in their order; those that move nothing but axes of length 1 too.
SmallVector<Permutation> permutationsOf(Block &block) {
  SmallVector<Permutation> found;
  for (auto transpose : block.getOps<TransposeOp>())
    for (Permutation perm : {permutationOf(transpose), inverseOf(permutationOf(transpose))})
      if (rankedType(transpose.getX()) && !perm.empty() && !llvm::is_contained(found, perm))
        found.push_back(std::move(perm));
  return found;
}

struct MoveTransposes : impl::MoveTransposesBase<MoveTransposes> {
  using MoveTransposesBase::MoveTransposesBase;

  void runOnOperation() override {
    PassReport report("move-transposes", limit);
    RuleRewriter rewriter(&getContext(), report);
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      for (Permutation &perm : permutationsOf(*block))
        if (!report.done())
          Mover(*block, perm, rewriter).run();
    updateFunctionTypes(getOperation());
  }
};

} // namespace
} // namespace firn
