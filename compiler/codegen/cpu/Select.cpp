// Selections: the positions of elements that are not zero, and the slices that a condition keeps. How many there are is
// known by the time they run (passes/group/DataSizes.cpp).
//
//   Workers: slices of an outer axis; positions are written by one worker
#include "compiler/codegen/cpu/Select.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {
namespace {

/// For each j in [0, count) in order: where element first + j of `buffer` is not zero and fewer than `most` came
/// before, body(j, number of those before). Returns how many came, `start` included. Vectors without any are skipped.
Value forEachNonZero(KernelContext &context, Value buffer, Type elementType, Value first, Value count, Value start,
                     Value most, llvm::function_ref<void(Value, Value)> body) {
  LoopBuilder &l = context.l;
  Type i1 = l.b.getI1Type();
  auto one = [&](Value j, Value before) {
    Value element = context.elements.load(buffer, l.add(first, j), elementType, 0);
    Value isTaken = l.both(context.elements.cast(element, elementType, i1), l.less(before, most));
    return l.choose(
        isTaken,
        [&] {
          body(j, before);
          return LoopBuilder::Values{l.add(before, 1)};
        },
        [&] { return LoopBuilder::Values{before}; })[0];
  };
  unsigned lanes =
      context.target.lanes(std::max(1u, Elements::registerType(elementType, 0).getIntOrFloatBitWidth() / 8));
  LoopBuilder::Values state{start};
  Value whole = l.index(0);
  if (lanes > 1) {
    whole = l.mul(l.div(count, lanes), lanes);
    state = l.loop(l.index(0), whole, lanes, state, [&](Value j, LoopBuilder::Values before) {
      Value block = context.elements.load(buffer, l.add(first, j), elementType, lanes);
      Value isAny = l.b.create<vector::ReductionOp>(l.loc, vector::CombiningKind::OR,
                                                    context.elements.cast(block, elementType, i1));
      return l.choose(
          isAny,
          [&] {
            return l.loop(l.index(0), l.index(lanes), 1, before, [&](Value lane, LoopBuilder::Values now) {
              return LoopBuilder::Values{one(l.add(j, lane), now[0])};
            });
          },
          [&] { return before; });
    });
  }
  return l.loop(whole, count, 1, state,
                [&](Value j, LoopBuilder::Values now) { return LoopBuilder::Values{one(j, now[0])}; })[0];
}

} // namespace

void emitNonZero(KernelContext &context, const LoneOperation &lone) {
  LoopBuilder &l = context.l;
  SmallVector<DimExpr> dims = lone.dims(0);
  Value from = lone.buffer(context, 0), to = lone.result(context, 0);
  Value most = context.value(dimsOf(cast<RankedTensorType>(lone.op->getResult(0).getType()))[1]);
  context.func.setParallel(false);
  if (dims.empty())
    return;
  Value rows = context.value(product(ArrayRef(dims).drop_back())), length = context.value(dims.back());
  l.loop(l.index(0), rows, 1, {l.index(0)}, [&](Value row, LoopBuilder::Values before) {
    Value first = l.mul(row, length);
    return LoopBuilder::Values{
        forEachNonZero(context, from, lone.elementType(0), first, length, before[0], most, [&](Value j, Value at) {
          Value rest = row;
          for (size_t k = dims.size(); k-- > 0;) {
            Value position = j;
            if (k + 1 < dims.size()) {
              Value size = context.value(dims[k]);
              position = k == 0 ? rest : l.rem(rest, size);
              rest = k == 0 ? rest : l.div(rest, size);
            }
            l.store(l.b.create<arith::IndexCastOp>(l.loc, l.b.getI64Type(), position), to,
                    l.add(l.mul(most, int64_t(k)), at));
          }
        })};
  });
}

std::string compressRefusal(const LoneOperation &lone) {
  bool hasAxis = lone.op->hasAttr("axis");
  if (hasAxis && !LoneOperation::axisOf(lone.integer("axis", 0), lone.dims(0).size()))
    return "an axis that is not there";
  return "";
}

void emitCompress(KernelContext &context, const LoneOperation &lone) {
  LoopBuilder &l = context.l;
  SmallVector<DimExpr> dims = lone.dims(0);
  DimExpr outer(1), length = product(dims), inner(1);
  size_t place = 0;
  if (lone.op->hasAttr("axis")) {
    place = *LoneOperation::axisOf(lone.integer("axis", 0), dims.size());
    outer = product(ArrayRef(dims).take_front(place));
    length = dims[place];
    inner = product(ArrayRef(dims).drop_front(place + 1));
  }
  Type elementType = lone.elementType(0);
  Value from = lone.buffer(context, 0), to = lone.result(context, 0);
  Value most = context.value(dimsOf(cast<RankedTensorType>(lone.op->getResult(0).getType()))[place]);
  Value size = context.value(length), run = context.value(inner), given = context.value(lone.dims(1)[0]);
  context.func.setParallel(worthWorkers(outer * length * inner, 1) && outer != DimExpr(1));
  Range range = workerRange(l.b, l.loc, context.func, context.value(outer));
  l.loop(range.begin, range.end, 1, [&](Value o) {
    forEachNonZero(
        context, lone.buffer(context, 1), lone.elementType(1), l.index(0), l.min(given, size), l.index(0), most,
        [&](Value j, Value at) {
          Value source = l.mul(l.add(l.mul(o, size), j), run), target = l.mul(l.add(l.mul(o, most), at), run);
          if (inner == DimExpr(1))
            context.elements.store(context.elements.load(from, source, elementType, 0), to, target, elementType);
          else
            ScalarCode{context}.copy(from, source, to, target, run, elementType);
        });
  });
}

} // namespace firn
