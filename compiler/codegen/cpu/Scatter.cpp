// Scatters: a copy of a tensor in which some elements are replaced by, or combined with, updates.
//
// Each worker owns a part of the result: it copies that part and then applies the updates that fall into it, in the
// order of the indices, so that the last of several updates of one element wins (and sums come out the same) for any
// number of workers. Where the updates' places cannot be told from their position, every worker reads all indices.
// The result may take the place of the data; then nothing is copied.
//
//   Range:    an index outside of its axis is a fault of the node; negative ones count from the end
//   Numerics: add, mul, max and min round once an update; NaN wins in max and min; of booleans they are or and and
#include "compiler/codegen/cpu/LoneOperation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace firn {
namespace {

class ScatterEmitter {
public:
  ScatterEmitter(KernelContext &kernelContext, const LoneOperation &operation)
      : context(kernelContext), l(kernelContext.l), scalar{kernelContext}, lone(operation) {
    data = lone.buffer(context, 0);
    to = lone.result(context, 0);
    elementType = lone.elementType(0);
    dims = lone.dims(0);
    reduction = lone.text("reduction", "none");
  }

  void elements();
  void tuples();
  void rows();

private:
  struct Part {
    Value begin, end;
  };
  /// This worker's part of `count` rows of `size` elements each, copied from the data.
  Part ownRows(const DimExpr &count, const DimExpr &size, const DimExpr &updates);
  Value combined(Value old, Value update, unsigned lanes);
  void update(Value at, Value from, unsigned lanes);
  void updateRun(Value at, Value from, const DimExpr &count);
  Value indices() { return lone.buffer(context, 1); }
  Value updates() { return lone.buffer(context, 2); }

  KernelContext &context;
  LoopBuilder &l;
  ScalarCode scalar;
  const LoneOperation &lone;
  Value data, to;
  Type elementType;
  SmallVector<DimExpr> dims;
  std::string reduction;
};

ScatterEmitter::Part ScatterEmitter::ownRows(const DimExpr &count, const DimExpr &size, const DimExpr &updates) {
  context.func.setParallel(worthWorkers(count * size, 1) || worthWorkers(updates, 4));
  Range range = workerRange(l.b, l.loc, context.func, context.value(count));
  Value row = context.value(size), start = l.mul(range.begin, row);
  scalar.copy(data, start, to, start, l.mul(l.sub(range.end, range.begin), row), elementType);
  return {range.begin, range.end};
}

Value ScatterEmitter::combined(Value old, Value update, unsigned) {
  Elements &e = context.elements;
  bool isBool = elementType.isInteger(1);
  if (reduction == "add")
    return isBool ? l.b.create<arith::OrIOp>(l.loc, old, update).getResult() : e.add(old, update);
  if (reduction == "mul")
    return isBool ? l.b.create<arith::AndIOp>(l.loc, old, update).getResult() : e.mul(old, update);
  if (reduction == "max")
    return e.maximum(old, update, elementType);
  return e.minimum(old, update, elementType);
}

/// Brings `lanes` updates (0: one) from `from` to `at`.
void ScatterEmitter::update(Value at, Value from, unsigned lanes) {
  Value value = context.elements.load(updates(), from, elementType, lanes);
  if (reduction != "none") {
    Value old = context.elements.load(to, at, elementType, lanes);
    value = context.elements.round(combined(old, value, lanes), elementType);
  }
  context.elements.store(value, to, at, elementType);
}

void ScatterEmitter::updateRun(Value at, Value from, const DimExpr &count) {
  auto known = count.asConstant();
  if (reduction == "none" && !(known && *known <= 4))
    return scalar.copy(updates(), from, to, at, context.value(count), elementType);
  Value total = context.value(count);
  unsigned lanes =
      context.target.lanes(std::max(1u, Elements::registerType(elementType, 0).getIntOrFloatBitWidth() / 8));
  if (elementType.isInteger(1) || lanes < 2 || (known && *known < int64_t(lanes)))
    return l.loop(l.index(0), total, 1, [&](Value i) { update(l.add(at, i), l.add(from, i), 0); });
  Value whole = l.mul(l.div(total, lanes), lanes);
  l.loop(l.index(0), whole, lanes, [&](Value i) { update(l.add(at, i), l.add(from, i), lanes); });
  l.loop(whole, total, 1, [&](Value i) { update(l.add(at, i), l.add(from, i), 0); });
}

/// scatter_elements: update i goes to the position of index i, but for the axis, where the index says.
void ScatterEmitter::elements() {
  SmallVector<DimExpr> shape = lone.dims(1);
  size_t axis = *LoneOperation::axisOf(lone.integer("axis", 0), dims.size());
  SmallVector<Value> strides(dims.size(), l.index(1)), steps(dims.size(), l.index(1));
  DimExpr stride(1), step(1);
  for (size_t k = dims.size(); k-- > 0;) {
    strides[k] = context.value(stride);
    steps[k] = context.value(step);
    stride = stride * dims[k];
    step = step * shape[k];
  }
  Part own = ownRows(dims[0], product(ArrayRef(dims).drop_front()), product(shape));
  Value size = context.value(dims[axis]);
  // Along the first axis a worker's part begins and ends with its rows, unless that is the axis of the indices.
  std::function<void(size_t, Value, Value)> loops = [&](size_t k, Value at, Value from) {
    if (k == dims.size()) {
      Value isInside, isOwn;
      Value chosen = scalar.normalized(scalar.loadIndex(indices(), from, lone.elementType(1)), size, isInside);
      isOwn = isInside;
      if (axis == 0 && context.func.getParallel())
        isOwn = l.both(isInside, scalar.isBelow(l.sub(chosen, own.begin), l.sub(own.end, own.begin)));
      l.when(isOwn, [&] { update(l.add(at, l.mul(chosen, strides[axis])), from, 0); });
      return;
    }
    Value begin = l.index(0), end = context.value(shape[k]);
    if (k == 0 && axis != 0) {
      begin = own.begin;
      end = l.min(own.end, end);
    }
    l.loop(begin, end, 1, [&](Value i) {
      loops(k + 1, k == axis ? at : l.add(at, l.mul(i, strides[k])), l.add(from, l.mul(i, steps[k])));
    });
  };
  loops(0, l.index(0), l.index(0));
}

/// scatter_nd: the run of updates t goes to the row that tuple t of the indices names.
void ScatterEmitter::tuples() {
  SmallVector<DimExpr> shape = lone.dims(1);
  int64_t depth = *shape.back().asConstant();
  DimExpr run = product(ArrayRef(dims).drop_front(size_t(depth))), tuples = product(ArrayRef(shape).drop_back());
  Part own = ownRows(product(ArrayRef(dims).take_front(size_t(depth))), run, tuples * run);
  Value size = context.value(run);
  l.loop(l.index(0), context.value(tuples), 1, [&](Value t) {
    Value row = l.index(0), isInside;
    for (int64_t d = 0; d < depth; ++d) {
      Value index = scalar.loadIndex(indices(), l.add(l.mul(t, depth), d), lone.elementType(1)), isThere;
      Value length = context.value(dims[size_t(d)]);
      row = l.add(l.mul(row, length), scalar.normalized(index, length, isThere));
      isInside = isInside ? l.both(isInside, isThere) : isThere;
    }
    Value isOwn = isInside;
    if (context.func.getParallel() || !isInside) {
      isOwn = scalar.isBelow(l.sub(row, own.begin), l.sub(own.end, own.begin));
      isOwn = isInside ? l.both(isInside, isOwn) : isOwn;
    }
    l.when(isOwn, [&] { updateRun(l.mul(row, size), l.mul(t, size), run); });
  });
}

/// TensorScatter: the updates of a batch become rows from a start of its own on, going round where it is circular.
void ScatterEmitter::rows() {
  SmallVector<DimExpr> shape = lone.dims(1);
  size_t axis = *LoneOperation::axisOf(lone.integer("axis", -2), dims.size());
  bool isCircular = lone.text("mode", "linear") == "circular";
  DimExpr longest = dims[axis], length = shape[axis], run = product(ArrayRef(dims).drop_front(axis + 1));
  DimExpr perBatch = product(ArrayRef(dims).slice(1, axis - 1));
  DimExpr count = product(ArrayRef(dims).take_front(axis));
  Part own = ownRows(count, longest * run, product(shape));
  Value size = context.value(run), most = context.value(longest), here = context.value(length);
  l.loop(own.begin, own.end, 1, [&](Value p) {
    Value start = l.index(0), isInside;
    if (lone.hasOperand(2)) {
      start = scalar.loadIndex(lone.buffer(context, 2), l.div(p, context.value(perBatch)), lone.elementType(2));
      Value last = l.sub(most, here); // may be negative: then nothing is below last + 1
      isInside =
          isCircular ? l.less(l.index(-1), start) : l.both(l.less(l.index(-1), start), l.less(start, l.add(last, 1)));
      scalar.fault(l.b.create<arith::XOrIOp>(l.loc, isInside, l.b.create<arith::ConstantIntOp>(l.loc, 1, 1)));
      start = l.select(isInside, start, l.index(0));
      if (isCircular)
        start = l.select(l.equal(most, l.index(0)), l.index(0), l.rem(start, l.max(most, l.index(1))));
    }
    Value from = l.mul(l.mul(p, here), size), to0 = l.mul(l.mul(p, most), size);
    Value first = l.min(here, l.sub(most, start));
    Value updated = lone.buffer(context, 1);
    scalar.copy(updated, from, to, l.add(to0, l.mul(start, size)), l.mul(first, size), elementType);
    if (isCircular)
      scalar.copy(updated, l.add(from, l.mul(first, size)), to, to0, l.mul(l.sub(here, first), size), elementType);
  });
}

/// Why no code is generated, or "".
std::string refusal(const LoneOperation &lone) {
  if (lone.name == "ai.onnx::TensorScatter")
    return lone.dims(0).size() < 2 || !LoneOperation::axisOf(lone.integer("axis", -2), lone.dims(0).size())
               ? "a cache of this rank"
               : "";
  if (lone.name == "scatter_elements")
    return lone.dims(0).empty() || lone.dims(0).size() != lone.dims(1).size() ||
                   !LoneOperation::axisOf(lone.integer("axis", 0), lone.dims(0).size())
               ? "an axis that is not there"
               : "";
  if (lone.name != "scatter_nd")
    return "no emitter for " + lone.name;
  auto depth = lone.dims(1).empty() ? std::nullopt : lone.dims(1).back().asConstant();
  return depth && *depth <= int64_t(lone.dims(0).size()) ? "" : "index tuples without a fixed length";
}

} // namespace

LogicalResult emitScatter(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto lone = LoneOperation::of(fused, whyNot);
  if (!lone)
    return failure();
  if (whyNot = refusal(*lone); !whyNot.empty())
    return failure();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  ScatterEmitter emitter(context, *lone);
  if (lone->name == "scatter_elements")
    emitter.elements();
  else if (lone->name == "scatter_nd")
    emitter.tuples();
  else
    emitter.rows();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn
