// GroupKernels: collect operations that become one kernel.
//
// In:      optimised firn ops, shapes inferred.      Out: firn.fused regions; beside them constants, views, control
// flow
//          and operations that run on reference kernels.
// Keeps:   every value. An operation joins a group only if all its readers are in it, so no value is computed twice,
// and
//          nothing that the group reads can depend on it.
// Leaves:  operations of Role::None.
//
// Groups grow backwards from a root: map (elementwise and index remaps), reduce (one reduction, elementwise before and
// behind), contraction and pool (one, elementwise behind), attention (views in front).
#include "passes/PassReport.h"
#include "passes/Passes.h"
#include "passes/Quantized.h"
#include "passes/group/Groupable.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_GROUPKERNELS
#include "passes/Passes.h.inc"

namespace {

constexpr size_t mostMembers = 48, mostOperands = 24;

bool isTranscendental(Operation *op) {
  return isa<ExpOp, LogOp, SinOp, CosOp, TanOp, AsinOp, AcosOp, AtanOp, SinhOp, CoshOp, TanhOp, AsinhOp, AcoshOp,
             AtanhOp, ErfOp, SigmoidOp, MishOp, SoftplusOp, EluOp, CeluOp, SeluOp, SwishOp, GeluOp, PowOp, DivOp,
             SqrtOp>(op);
}

SmallVector<DimExpr> shapeOf(Value value) { return dimsOf(cast<RankedTensorType>(value.getType())); }
bool sameShape(Value a, Value b) { return shapeOf(a) == shapeOf(b); }

/// A transpose that moves many elements is a kernel of its own, blocked for the cache.
bool isRealTranspose(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose)
    return false;
  auto type = cast<RankedTensorType>(transpose.getType());
  return !type.hasStaticShape() || type.getNumElements() > 1024;
}

class Group {
public:
  explicit Group(Operation *root) { add(root); }

  void grow() {
    // Members are looked at once each; operands of later additions come after.
    for (size_t i = 0; i < members.size(); ++i)
      for (Value operand : members[i]->getOperands())
        if (Operation *op = operand.getDefiningOp())
          if (!members.contains(op) && mayJoin(op, members[i]))
            add(op);
  }

  StringRef kind() const { return kernelKind(anchor ? anchorRole : Role::Elementwise); }
  SmallVector<Operation *> inBlockOrder() const {
    SmallVector<Operation *> list(members.begin(), members.end());
    llvm::sort(list, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return list;
  }

private:
  void add(Operation *op) {
    members.insert(op);
    Role role = roleOf(op);
    if (role != Role::Elementwise && role != Role::Remap && role != Role::View) {
      anchor = op;
      anchorRole = role;
    }
    for (Value operand : op->getOperands())
      if (!isInlineOperand(operand))
        ++operands;
  }

  Operation *root() const { return members[0]; }

  bool mayJoin(Operation *op, Operation *reader) {
    if (op->getBlock() != root()->getBlock() || isa<ConstantOp>(op) || members.size() >= mostMembers ||
        operands >= mostOperands)
      return false;
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers())
        if (!members.contains(user))
          return false;
    Role role = roleOf(op);
    if (!anchor)
      return joinsMap(op, role, reader);
    return anchorRole == Role::Contraction || anchorRole == Role::Pool ? joinsContraction(op, role, reader)
           : anchorRole == Role::Attention                             ? joinsAttention(op)
           : anchorRole == Role::Reduce                                ? joinsReduce(op, role, reader)
                                                                       : false;
  }

  /// Only elementwise operations of one shape so far, so that a contraction's, pool's or reduction's result can be
  /// finished in registers.
  bool isPlainEpilogue() const {
    return llvm::all_of(members, [&](Operation *op) {
      return roleOf(op) == Role::Elementwise && sameShape(op->getResult(0), root()->getResult(0));
    });
  }

  bool joinsMap(Operation *op, Role role, Operation *reader) {
    if (role == Role::Contraction || role == Role::Pool || role == Role::Reduce)
      return op->getNumResults() >= 1 && sameShape(op->getResult(0), root()->getResult(0)) && isPlainEpilogue() &&
             llvm::all_of(op->getResults().drop_front(), [](Value v) { return v.use_empty(); });
    if (isRealTranspose(op) || isRealTranspose(reader) || isa<ResizeOp>(op) || isa<ResizeOp>(reader))
      return false;
    if (role != Role::Elementwise && role != Role::Remap && role != Role::View)
      return false;
    if (op->getNumResults() != 1 || isa<ConcatOp, PadOp, GatherOp>(op))
      return false; // segments and indices are for the kernel's own root
    if (role == Role::View && !isElementwiseLike(reader))
      return false;
    return !repeats(op, reader);
  }
  static bool isElementwiseLike(Operation *op) { return roleOf(op) == Role::Elementwise; }

  /// Whether pulling `op` into `reader` computes its elements several times and that costs more than reading them.
  bool repeats(Operation *op, Operation *reader) {
    if (!isElementwiseLike(reader) && !isa<ConcatOp, SliceOp, TransposeOp, SplitOp, ReshapeOp>(reader))
      return isElementwiseLike(op); // expand, tile, gather, pad read an element any number of times
    if (isElementwiseLike(reader) && !sameShape(op->getResult(0), reader->getResult(0)))
      return isTranscendental(op) || roleOf(op) != Role::Elementwise;
    return false;
  }

  bool joinsContraction(Operation *op, Role role, Operation *reader) {
    if (reader == anchor) {
      if (isa<DequantizeLinearOp, CastOp>(op)) // the product converts its weights itself
        return productRefusal(anchor, op).empty();
      // Views and transposes of a matmul's operands are read by strides.
      return isa<MatMulOp>(anchor) && isa<TransposeOp, ReshapeOp>(op) && op->getNumResults() == 1;
    }
    if (!isElementwiseLike(reader) || anchorRole == Role::Pool)
      return isa<MatMulOp>(anchor) && isa<TransposeOp, ReshapeOp>(op) && isOperandView(reader);
    return role == Role::Elementwise && sameShape(op->getResult(0), anchor->getResult(0)) && !isTranscendental(op);
  }
  bool isOperandView(Operation *op) const {
    return isa<TransposeOp, ReshapeOp>(op) && members.contains(op) && op->isBeforeInBlock(anchor);
  }

  /// Views of the operands are read by strides.
  static bool joinsAttention(Operation *op) {
    if (op->getNumResults() != 1)
      return false;
    if (auto slice = dyn_cast<SliceOp>(op))
      return llvm::all_of(slice.getBounds(), [](Value v) { return isAbsent(v) || constantIntegers(v); });
    return isa<TransposeOp, ReshapeOp>(op);
  }

  bool joinsReduce(Operation *op, Role role, Operation *reader) {
    if (role != Role::Elementwise)
      return false;
    if (reader == anchor)
      return op->getResult(0) == anchor->getOperand(0);
    return sameShape(op->getResult(0), reader->getResult(0)) ||
           (!isTranscendental(op) && !sameShape(op->getResult(0), reader->getResult(0)));
  }

  llvm::SetVector<Operation *> members;
  Operation *anchor = nullptr;
  Role anchorRole = Role::None;
  size_t operands = 0;
};

struct GroupKernels : impl::GroupKernelsBase<GroupKernels> {
  using GroupKernelsBase::GroupKernelsBase;

  void runOnOperation() override {
    PassReport report("group", limit);
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) {
      Operation *parent = block->getParentOp();
      if (!isa<ModuleOp>(parent) && !isa<FusedOp>(parent))
        blocks.push_back(block);
    });
    for (Block *block : blocks) {
      for (Operation &op : llvm::make_early_inc_range(*block))
        splitDataSizes(&op);
      group(*block, report);
    }
  }

  /// A conversion of weights belongs to each product that reads it.
  static void separateReaders(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isReadAsStored(&op))
        continue;
      OpBuilder builder(&op);
      while (!op.use_empty() && !op.getResult(0).hasOneUse())
        op.getResult(0).use_begin()->set(builder.clone(op)->getResult(0));
    }
  }

  void group(Block &block, PassReport &report) {
    separateReaders(block);
    SmallVector<Operation *> operations;
    for (Operation &op : block)
      operations.push_back(&op);
    llvm::DenseSet<Operation *> done;
    for (Operation *op : llvm::reverse(operations)) {
      if (done.contains(op) || report.done())
        continue;
      Role role = roleOf(op);
      if (role == Role::None || role == Role::View)
        continue;
      Group group(op);
      if (!single)
        group.grow();
      SmallVector<Operation *> members = group.inBlockOrder();
      done.insert(members.begin(), members.end());
      report.rewrite(op, group.kind());
      makeFused(members, group.kind());
    }
  }
};
} // namespace

} // namespace firn
