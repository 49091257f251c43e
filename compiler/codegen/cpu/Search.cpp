// Searches: the k greatest or least elements of each line; selections (Select.cpp).
//
// The best elements so far are a heap in the result itself, the worst of them on top; along the last axis a vector of
// elements at a time is compared with it, and few pass. Then the heap is sorted in place.
//
//   Order:    the best first; equal ones by their position; NaN is beyond every number, whether the greatest or the
//             least are wanted
//   Workers:  whole lines
//   Faults:   a line shorter than k
#include "compiler/codegen/cpu/Select.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {
namespace {

class TopKEmitter {
public:
  TopKEmitter(KernelContext &kernelContext, const LoneOperation &operation, size_t axis)
      : context(kernelContext), l(kernelContext.l), lone(operation) {
    SmallVector<DimExpr> dims = lone.dims(0);
    outer = product(ArrayRef(dims).take_front(axis));
    length = dims[axis];
    inner = product(ArrayRef(dims).drop_front(axis + 1));
    wanted = dimsOf(cast<RankedTensorType>(lone.op->getResult(0).getType()))[axis];
    elementType = lone.elementType(0);
    isLargest = lone.integer("largest", 1) != 0;
    from = lone.buffer(context, 0);
    values = lone.result(context, 0);
    indices = lone.result(context, 1);
  }

  void emit();

private:
  /// An element of the line: its value, and its position where indices are wanted (they are what the heap holds then).
  struct Item {
    Value value, position;
  };
  Value isBeyond(Value a, Value b);
  Value isBefore(const Item &a, const Item &b);
  Value place(Value slot) { return l.add(resultBase, l.mul(slot, stride)); }
  Item element(Value position) {
    return {context.elements.load(from, l.add(base, l.mul(position, stride)), elementType, 0), position};
  }
  Item at(Value slot);
  void put(const Item &item, Value slot);
  void siftDown(const Item &item, Value slot, Value size);
  Value replaceWorst(Value position, Value worst);
  void line(Value number);

  KernelContext &context;
  LoopBuilder &l;
  const LoneOperation &lone;
  DimExpr outer, length, inner, wanted;
  Type elementType;
  bool isLargest;
  Value from, values, indices;
  Value base, resultBase, stride, k;
};

Value TopKEmitter::isBeyond(Value a, Value b) {
  if (isa<FloatType>(elementType)) {
    // Unordered or beyond, and b a number.
    Value beyond =
        l.b.create<arith::CmpFOp>(l.loc, isLargest ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT, a, b);
    Value isNumber = l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::ORD, b, b);
    return l.b.create<arith::AndIOp>(l.loc, beyond, isNumber);
  }
  bool isUnsigned = elementType.isUnsignedInteger();
  auto predicate = isLargest ? (isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                             : (isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt);
  return l.b.create<arith::CmpIOp>(l.loc, predicate, a, b);
}

Value TopKEmitter::isBefore(const Item &a, const Item &b) {
  Value beyond = isBeyond(a.value, b.value);
  if (!indices)
    return beyond; // equal values are the same
  Value isEarlier = l.less(a.position, b.position);
  Value isEqual =
      l.b.create<arith::XOrIOp>(l.loc, isBeyond(b.value, a.value), l.b.create<arith::ConstantIntOp>(l.loc, 1, 1));
  return l.b.create<arith::OrIOp>(l.loc, beyond, l.both(isEqual, isEarlier));
}

TopKEmitter::Item TopKEmitter::at(Value slot) {
  if (!indices)
    return {context.elements.load(values, place(slot), elementType, 0), {}};
  return element(ScalarCode{context}.loadIndex(indices, place(slot), l.b.getI64Type()));
}

void TopKEmitter::put(const Item &item, Value slot) {
  if (!indices)
    return context.elements.store(item.value, values, place(slot), elementType);
  l.store(l.b.create<arith::IndexCastOp>(l.loc, l.b.getI64Type(), item.position), indices, place(slot));
}

/// Puts `item` into the heap of `size` whose slot `slot` is free: worse ones below move up.
void TopKEmitter::siftDown(const Item &item, Value slot, Value size) {
  Type index = l.b.getIndexType(), i1 = l.b.getI1Type();
  Value yes = l.b.create<arith::ConstantIntOp>(l.loc, 1, 1);
  LoopBuilder::Values end = l.repeat(
      {index, i1}, {slot, yes},
      [&](LoopBuilder::Values state) { return l.both(state[1], l.less(l.add(l.mul(state[0], 2), 1), size)); },
      [&](LoopBuilder::Values state) -> LoopBuilder::Values {
        Value left = l.add(l.mul(state[0], 2), 1), right = l.min(l.add(left, 1), l.sub(size, l.index(1)));
        Item a = at(left), b = at(right);
        Value isRight = isBefore(a, b); // the worse one
        Value child = l.select(isRight, right, left);
        Item worse{l.select(isRight, b.value, a.value), indices ? l.select(isRight, b.position, a.position) : Value()};
        Value moves = isBefore(item, worse);
        l.when(moves, [&] { put(worse, state[0]); });
        return {l.select(moves, child, state[0]), moves};
      });
  put(item, end[0]);
}

/// Element `position` takes the place of the worst if it is beyond it. Returns the worst value from now on.
Value TopKEmitter::replaceWorst(Value position, Value worst) {
  Item item = element(position);
  return l.choose(
      isBeyond(item.value, worst),
      [&] {
        siftDown(item, l.index(0), k);
        return LoopBuilder::Values{at(l.index(0)).value};
      },
      [&] { return LoopBuilder::Values{worst}; })[0];
}

void TopKEmitter::line(Value number) {
  Value n = context.value(length);
  Value o = l.div(number, stride), i = l.rem(number, stride);
  base = l.add(l.mul(l.mul(o, n), stride), i);
  resultBase = l.add(l.mul(l.mul(o, k), stride), i);
  l.loop(l.index(0), k, 1, [&](Value j) { put(element(j), j); });
  Value parents = l.div(k, 2);
  l.loop(l.index(0), parents, 1, [&](Value j) {
    Value slot = l.sub(l.sub(parents, j), l.index(1));
    siftDown(at(slot), slot, k);
  });
  LoopBuilder::Values worst{at(l.index(0)).value};
  Value next = k;
  unsigned lanes = context.target.lanes(Elements::registerType(elementType, 0).getIntOrFloatBitWidth() / 8);
  if (inner == DimExpr(1) && lanes > 1) {
    Value end = l.add(k, l.mul(l.div(l.sub(n, k), lanes), lanes));
    worst = l.loop(k, end, lanes, worst, [&](Value j, LoopBuilder::Values present) -> LoopBuilder::Values {
      Value block = context.elements.load(from, l.add(base, j), elementType, lanes);
      Value beyond = isBeyond(block, context.elements.splat(present[0], lanes));
      Value isAny = l.b.create<vector::ReductionOp>(l.loc, vector::CombiningKind::OR, beyond);
      return l.choose(
          isAny,
          [&] {
            return l.loop(l.index(0), l.index(lanes), 1, present, [&](Value lane, LoopBuilder::Values now) {
              return LoopBuilder::Values{replaceWorst(l.add(j, lane), now[0])};
            });
          },
          [&] { return present; });
    });
    next = end;
  }
  l.loop(next, n, 1, worst,
         [&](Value j, LoopBuilder::Values now) { return LoopBuilder::Values{replaceWorst(j, now[0])}; });
  // The worst one goes to the end of what is left, again and again.
  l.loop(l.index(1), k, 1, [&](Value j) {
    Value last = l.sub(k, j);
    Item moved = at(last), first = at(l.index(0));
    put(first, last);
    siftDown(moved, l.index(0), last);
  });
  if (indices && values)
    l.loop(l.index(0), k, 1, [&](Value j) { context.elements.store(at(j).value, values, place(j), elementType); });
}

void TopKEmitter::emit() {
  context.func.setParallel(worthWorkers(outer * length * inner, 2));
  stride = context.value(inner);
  k = context.value(wanted);
  Value n = context.value(length), isShort = l.less(n, k);
  ScalarCode{context}.fault(isShort);
  Value lines = l.mul(context.value(outer), stride);
  lines = l.select(l.both(l.less(l.index(0), k), l.less(l.sub(k, l.index(1)), n)), lines, l.index(0));
  Range range = workerRange(l.b, l.loc, context.func, lines);
  l.loop(range.begin, range.end, 1, [&](Value number) { line(number); });
}

} // namespace

LogicalResult emitSearch(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto lone = LoneOperation::of(fused, whyNot);
  if (!lone)
    return failure();
  std::optional<size_t> axis;
  bool isNonZero = isa<NonZeroOp>(lone->op), isCompress = lone->name == "ai.onnx::Compress";
  if (isCompress) {
    if (whyNot = compressRefusal(*lone); !whyNot.empty())
      return failure();
  } else if (!isNonZero) {
    axis = LoneOperation::axisOf(lone->integer("axis", -1), lone->dims(0).size());
    if (!axis || lone->elementType(0).isInteger(1) || !isa<TopKOp>(lone->op)) {
      whyNot = "a search along an axis that is not there";
      return failure();
    }
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  if (isNonZero)
    emitNonZero(context, *lone);
  else if (isCompress)
    emitCompress(context, *lone);
  else
    TopKEmitter(context, *lone, *axis).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn
