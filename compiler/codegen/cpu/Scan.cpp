// Scans: running sums and products along an axis.
//
// Along the last axis a vector of elements becomes running values in log2(lanes) steps, so that only one operation a
// vector waits for the one before; along other axes lanes are neighbouring lines.
//
//   Numerics: floats run in f64 and round once an element, in an order that depends on the target's vectors; integers
//             wrap. NaN and infinities reach every later element.
//   Workers:  whole lines, so that results do not depend on their number.
#include "compiler/codegen/cpu/LoneOperation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {
namespace {

class ScanEmitter {
public:
  ScanEmitter(KernelContext &kernelContext, const LoneOperation &operation, size_t axis)
      : context(kernelContext), l(kernelContext.l), lone(operation) {
    SmallVector<DimExpr> dims = lone.dims(0);
    outer = product(ArrayRef(dims).take_front(axis));
    count = dims[axis];
    inner = product(ArrayRef(dims).drop_front(axis + 1));
    elementType = lone.elementType(0);
    running = isa<FloatType>(elementType) ? Type(l.b.getF64Type()) : elementType;
    from = lone.buffer(context, 0);
    to = lone.result(context, 0);
    isProduct = lone.name == "ai.onnx::CumProd";
    isReverse = lone.integer("reverse", 0) != 0;
    isExclusive = lone.integer("exclusive", 0) != 0;
    lanes = context.target.lanes(std::max(1u, Elements::registerType(running, 0).getIntOrFloatBitWidth() / 8));
  }

  void emit();

private:
  Value load(Value at, unsigned width) {
    return context.elements.cast(context.elements.load(from, at, elementType, width), elementType, running);
  }
  void store(Value value, Value at) {
    context.elements.store(context.elements.cast(value, running, elementType), to, at, elementType);
  }
  Value start(unsigned width) { return context.elements.integer(isProduct ? 1 : 0, running, width); }
  Value combine(Value a, Value b) { return isProduct ? context.elements.mul(a, b) : context.elements.add(a, b); }
  Value shifted(Value values, Value filler, int64_t by);
  void line(Value base);
  void columns(Value base, unsigned width);
  Value place(Value k, Value total, int64_t width) { return isReverse ? l.sub(l.sub(total, k), l.index(width)) : k; }

  KernelContext &context;
  LoopBuilder &l;
  const LoneOperation &lone;
  DimExpr outer, count, inner;
  Type elementType, running; // floats run in f64
  Value from, to;
  bool isProduct, isReverse, isExclusive;
  unsigned lanes;
};

/// Lanes moved `by` in the direction of the scan; what comes in is of `filler`.
Value ScanEmitter::shifted(Value values, Value filler, int64_t by) {
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < int64_t(lanes); ++i) {
    int64_t source = isReverse ? i + by : i - by;
    order.push_back(source >= 0 && source < int64_t(lanes) ? source : int64_t(lanes) + i);
  }
  return l.b.create<vector::ShuffleOp>(l.loc, values, filler, order);
}

/// One line of adjacent elements.
void ScanEmitter::line(Value base) {
  Value total = context.value(count), whole = l.mul(l.div(total, lanes), lanes);
  LoopBuilder::Values carry{start(0)};
  if (lanes > 1)
    carry = l.loop(l.index(0), whole, lanes, carry, [&](Value k, LoopBuilder::Values before) {
      Value at = l.add(base, place(k, total, lanes)), values = load(at, lanes), filler = start(lanes);
      for (unsigned by = 1; by < lanes; by *= 2)
        values = combine(shifted(values, filler, by), values);
      Value all = context.elements.splat(before[0], lanes);
      values = combine(all, values);
      store(isExclusive ? shifted(values, all, 1) : values, at);
      return LoopBuilder::Values{l.b.create<vector::ExtractOp>(l.loc, values, isReverse ? 0 : int64_t(lanes) - 1)};
    });
  else
    whole = l.index(0);
  l.loop(whole, total, 1, carry, [&](Value k, LoopBuilder::Values before) {
    Value at = l.add(base, place(k, total, 1)), next = combine(before[0], load(at, 0));
    store(isExclusive ? before[0] : next, at);
    return LoopBuilder::Values{next};
  });
}

/// Neighbouring lines, one a lane.
void ScanEmitter::columns(Value base, unsigned width) {
  Value total = context.value(count), stride = context.value(inner);
  l.loop(l.index(0), total, 1, {start(width)}, [&](Value k, LoopBuilder::Values before) {
    Value at = l.add(base, l.mul(place(k, total, 1), stride)), next = combine(before[0], load(at, width));
    store(isExclusive ? before[0] : next, at);
    return LoopBuilder::Values{next};
  });
}

void ScanEmitter::emit() {
  context.func.setParallel(worthWorkers(outer * count * inner, 2));
  bool isLast = inner == DimExpr(1);
  Value width = context.value(inner), total = context.value(count);
  Value groups = isLast ? l.index(1) : l.ceilDiv(width, lanes);
  Range range = workerRange(l.b, l.loc, context.func, l.mul(context.value(outer), groups));
  l.loop(range.begin, range.end, 1, [&](Value number) {
    if (isLast)
      return line(l.mul(number, total));
    Value first = l.mul(l.rem(number, groups), lanes);
    Value base = l.add(l.mul(l.div(number, groups), l.mul(total, width)), first);
    Value rest = l.sub(width, first);
    l.when(
        l.less(rest, l.index(lanes)),
        [&] { l.loop(l.index(0), rest, 1, [&](Value i) { columns(l.add(base, i), 0); }); },
        [&] { columns(base, lanes > 1 ? lanes : 0); });
  });
}

} // namespace

LogicalResult emitScan(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto lone = LoneOperation::of(fused, whyNot);
  if (!lone)
    return failure();
  auto axes = constantIntegers(lone->op->getOperand(1));
  auto axis = axes && axes->size() == 1 ? LoneOperation::axisOf((*axes)[0], lone->dims(0).size()) : std::nullopt;
  if (!axis || lone->elementType(0).isInteger(1)) {
    whyNot = "a scan along an axis that is not known";
    return failure();
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  ScanEmitter(context, *lone, *axis).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn
