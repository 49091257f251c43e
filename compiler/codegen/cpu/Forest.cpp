// Tree ensembles: firn::Forest, whose tables runtime/kernels/PackedForest.h describes.
//
// A step from a node to its child is two loads, a comparison and an addition, without a branch; eight walks run side by
// side, so that their latencies overlap: eight rows through one tree, and for the rows that are left eight trees for
// one row. Trees are the outer loop over a tile of rows, so a tree is read from the first cache. Vector gathers lose:
// sixteen lanes of three gathers a step cost as much as sixteen scalar steps on the CPUs of performance.md §1.
//
//   Error:    sums in float, in the order of the table: |y - exact| <= T eps sum |weight|
//   NaN:      as the table says, row by row
//   Order:    the same bits for any number of workers
//   Workers:  rows, eight at a time
#include "compiler/codegen/cpu/LoneOperation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace firn {
namespace {

constexpr int64_t walks = 8; // side by side; the table's trees come in groups of as many

class ForestEmitter {
public:
  ForestEmitter(KernelContext &kernelContext, const LoneOperation &lone, int64_t featureCount)
      : context(kernelContext), l(kernelContext.l), features(featureCount) {
    x = lone.buffer(context, 0);
    nodes = lone.buffer(context, 1);
    weights = lone.buffer(context, 2);
    trees = lone.buffer(context, 3);
    y = lone.result(context, 0);
    rows = lone.dims(0)[0];
    xType = lone.elementType(0);
    isSmall = lone.elementType(1).isUnsignedInteger(16);
    treeCount = lone.dims(3)[0].constant();
    targets = lone.integer("targets", 1);
    width = lone.integer("width", 1);
    aggregate = lone.text("aggregate", "SUM");
    missing = lone.text("missing", "FIRST");
  }

  void emit();

private:
  /// One walk: where its tree's nodes are, and its row.
  struct Walk {
    Value nodes, row;
  };
  struct Tree {
    Value nodes, weights, depth, target;
  };
  Tree tree(Value number);
  Value field(Value buffer, Value node, int64_t which);
  Value step(const Walk &walk, Value node);
  LoopBuilder::Values walk(ArrayRef<Walk> all, Value depth);
  /// Adds what leaf `node` says to a row.
  void vote(const Tree &tree, Value node, Value row);
  void start(Value begin, Value end);
  void tile(Value begin, Value end);
  Value merged(Value sum, Value weight);

  KernelContext &context;
  LoopBuilder &l;
  int64_t features, treeCount, targets, width;
  Value x, nodes, weights, trees, y;
  DimExpr rows;
  Type xType;
  bool isSmall;
  std::string aggregate, missing;
};

ForestEmitter::Tree ForestEmitter::tree(Value number) {
  auto entry = [&](int64_t i) {
    Value value = l.load(l.b.getI64Type(), trees, l.add(l.mul(number, 3), i));
    return l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), value).getResult();
  };
  Value first = entry(0);
  return {l.at(nodes, l.mul(first, isSmall ? 8 : 16)), l.at(weights, l.mul(first, width * 4)), entry(1),
          width == 1 && targets > 1 ? entry(2) : l.index(0)};
}

/// An integer field of a node: 0 the feature, 1 the child.
Value ForestEmitter::field(Value buffer, Value node, int64_t which) {
  Type type = l.b.getIntegerType(isSmall ? 16 : 32);
  return l.load(type, buffer, l.add(l.mul(node, 4), isSmall ? 2 + which : 1 + which));
}

/// From a node to its child.
Value ForestEmitter::step(const Walk &walk, Value node) {
  Type f32 = l.b.getF32Type(), index = l.b.getIndexType();
  Value threshold = l.load(f32, walk.nodes, l.mul(node, isSmall ? 2 : 4));
  Value tested = field(walk.nodes, node, 0), child = field(walk.nodes, node, 1), mark;
  if (missing == "MARKED") {
    unsigned bits = isSmall ? 16 : 32;
    Type type = l.b.getIntegerType(bits);
    Value zero = l.b.create<arith::ConstantIntOp>(l.loc, 0, type);
    mark = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::slt, tested, zero); // the highest bit
    Value low = l.b.create<arith::ConstantIntOp>(l.loc, (int64_t(1) << (bits - 1)) - 1, type);
    tested = l.b.create<arith::AndIOp>(l.loc, tested, low);
  }
  Value feature = l.b.create<arith::IndexCastUIOp>(l.loc, index, tested);
  Value value = l.load(xType, walk.row, feature);
  if (xType.isF64())
    threshold = l.b.create<arith::ExtFOp>(l.loc, xType, threshold);
  auto compare = [&](arith::CmpFPredicate predicate, Value b) {
    return l.b.create<arith::CmpFOp>(l.loc, predicate, value, b).getResult();
  };
  Value isSecond = compare(missing == "SECOND" ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::OGT, threshold);
  if (mark) {
    Value isMissing = l.b.create<arith::AndIOp>(l.loc, compare(arith::CmpFPredicate::UNO, value), mark);
    isSecond = l.b.create<arith::OrIOp>(l.loc, isSecond, isMissing);
  }
  return l.add(l.b.create<arith::IndexCastUIOp>(l.loc, index, child),
               l.b.create<arith::IndexCastUIOp>(l.loc, index, isSecond));
}

/// The leaves of walks that take `depth` steps each.
LoopBuilder::Values ForestEmitter::walk(ArrayRef<Walk> all, Value depth) {
  LoopBuilder::Values roots(all.size(), l.index(1));
  return l.loop(l.index(0), depth, 1, roots, [&](Value, LoopBuilder::Values at) {
    LoopBuilder::Values next;
    for (auto [which, node] : llvm::zip(all, at))
      next.push_back(step(which, node));
    return next;
  });
}

Value ForestEmitter::merged(Value sum, Value weight) {
  if (aggregate == "SUM")
    return l.b.create<arith::AddFOp>(l.loc, sum, weight);
  auto predicate = aggregate == "MIN" ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGT;
  return l.select(l.b.create<arith::CmpFOp>(l.loc, predicate, weight, sum), weight, sum);
}

void ForestEmitter::vote(const Tree &tree, Value node, Value row) {
  Type f32 = l.b.getF32Type();
  auto add = [&](Value from, Value to) { l.store(merged(l.load(f32, y, to), l.load(f32, tree.weights, from)), y, to); };
  if (width == 1)
    return add(node, l.add(l.mul(row, targets), tree.target));
  l.loop(l.index(0), l.index(width), 1,
         [&](Value k) { add(l.add(l.mul(node, width), k), l.add(l.mul(row, targets), k)); });
}

void ForestEmitter::start(Value begin, Value end) {
  float none = aggregate == "SUM" ? 0.0f : aggregate == "MIN" ? INFINITY : -INFINITY;
  Value value = l.b.create<arith::ConstantOp>(l.loc, l.b.getF32FloatAttr(none));
  l.loop(l.mul(begin, targets), l.mul(end, targets), 1, [&](Value i) { l.store(value, y, i); });
}

void ForestEmitter::tile(Value begin, Value end) {
  int64_t rowBytes = features * (xType.isF64() ? 8 : 4);
  Value full = l.add(begin, l.mul(l.div(l.sub(end, begin), walks), walks));
  l.loop(l.index(0), l.index(treeCount), 1, [&](Value number) {
    Tree one = tree(number);
    l.loop(begin, full, walks, [&](Value row) {
      Value first = l.at(x, l.mul(row, rowBytes));
      SmallVector<Walk> all;
      for (int64_t i = 0; i < walks; ++i)
        all.push_back({one.nodes, i ? l.at(first, l.index(i * rowBytes)) : first});
      LoopBuilder::Values leaves = walk(all, one.depth);
      for (int64_t i = 0; i < walks; ++i)
        vote(one, leaves[i], l.add(row, i));
    });
  });
  l.loop(full, end, 1, [&](Value row) {
    Value at = l.at(x, l.mul(row, rowBytes));
    l.loop(l.index(0), l.index(treeCount), walks, [&](Value number) {
      SmallVector<Tree> group;
      SmallVector<Walk> all;
      for (int64_t i = 0; i < walks; ++i) {
        group.push_back(tree(l.add(number, i)));
        all.push_back({group.back().nodes, at});
      }
      // The first of a group is the deepest; leaves of others lead to themselves.
      LoopBuilder::Values leaves = walk(all, group[0].depth);
      for (int64_t i = 0; i < walks; ++i)
        vote(group[i], leaves[i], row);
    });
  });
}

void ForestEmitter::emit() {
  Value total = context.value(rows);
  // About 2 cycles a step, and eight steps a tree, say.
  context.func.setParallel(worthWorkers(rows, treeCount * 16));
  Range range = workerRange(l.b, l.loc, context.func, total, walks);
  start(range.begin, range.end);
  // All trees see a tile of rows before the next one: rows and a tree share the first cache.
  int64_t rowBytes = std::max<int64_t>(1, features) * (xType.isF64() ? 8 : 4);
  int64_t tileRows = std::clamp<int64_t>(context.target.l1Bytes / 2 / rowBytes / walks * walks, 32, 256);
  l.loop(range.begin, range.end, tileRows, [&](Value begin) { tile(begin, l.min(l.add(begin, tileRows), range.end)); });
}

} // namespace

LogicalResult emitForest(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto lone = LoneOperation::of(fused, whyNot);
  if (!lone)
    return failure();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  for (unsigned i = 0; i < 4; ++i)
    if (!lone->buffer(context, i)) {
      whyNot = "a table of trees that is no operand of its own";
      return failure();
    }
  auto features = lone->dims(0)[1].asConstant();
  if (!features) {
    whyNot = "a number of features that is not known";
    return failure();
  }
  ForestEmitter(context, *lone, *features).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn
