// Operations whose result sizes are found in their data, in two parts: what counts, and what then writes.
//
//   %1 = firn.non_zero %x : ... -> tensor<2x?>    ==>   %0 = firn.constant_of_shape [the number of non-zeros, 0]
//                                                       %1 = firn.fused "search"(%x, %0) { firn.non_zero }
//
// The tensor without elements carries the size: its step finds the symbol at run time, by its shape function, so the
// kernel behind it gets the symbol as any other. Counting is an ordinary reduction.
#include "passes/group/Groupable.h"

#include "mlir/IR/IRMapping.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
namespace {

/// What decides: the operand whose elements that are not zero are counted. Null if `op` is of no such kind.
Value decidingOperand(Operation *op) {
  if (auto nonZero = dyn_cast<NonZeroOp>(op))
    return nonZero.getX();
  auto call = dyn_cast<CallOp>(op);
  if (!call || call.getCallee() != "ai.onnx::Compress")
    return {};
  auto condition = rankedType(op->getOperand(1)), type = rankedType(op->getOperand(0));
  if (!condition || !type || condition.getRank() != 1)
    return {};
  // Elements of the condition behind the end of the axis would not count.
  DimExpr length(1);
  if (auto axis = op->getAttrOfType<IntegerAttr>("axis")) {
    int64_t number = axis.getInt() < 0 ? axis.getInt() + type.getRank() : axis.getInt();
    if (number < 0 || number >= type.getRank())
      return {};
    length = dimOf(type, number);
  } else {
    for (const DimExpr &dim : dimsOf(type))
      length = length * dim;
  }
  DimExpr given = dimOf(condition, 0);
  bool fits = given == length || (given.isConstant() && length.isConstant() && given.constant() <= length.constant());
  return fits ? op->getOperand(1) : Value();
}

/// The one dimension of the result that is a symbol of `op`.
std::optional<DimExpr> foundSymbol(Operation *op) {
  auto type = op->getNumResults() == 1 ? rankedType(op->getResult(0)) : RankedTensorType();
  std::optional<DimExpr> found;
  if (type)
    for (const DimExpr &dim : dimsOf(type))
      if (mentionsSymbolsOf(tensorType(type.getElementType(), {dim}), op)) {
        if (found || !dim.asSymbol())
          return std::nullopt;
        found = dim;
      }
  return found;
}

} // namespace

void splitDataSizes(Operation *op) {
  auto id = op->getAttrOfType<IntegerAttr>("firn.id");
  Value decides = decidingOperand(op);
  auto type = decides ? rankedType(decides) : RankedTensorType();
  auto isSupported = [](Value value) {
    auto tensor = rankedType(value);
    Type element = tensor ? tensor.getElementType() : Type();
    return element &&
           (isFloat(element) || element.isInteger(1) ||
            (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() >= 8)) &&
           element.getIntOrFloatBitWidth() <= 64 && !(isFloat(element) && element.getIntOrFloatBitWidth() < 16);
  };
  auto symbol = id && type ? foundSymbol(op) : std::nullopt;
  if (!symbol || !llvm::all_of(op->getOperands(), isSupported))
    return;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type i64 = builder.getI64Type(), i1 = builder.getI1Type();
  SmallVector<DimExpr> dims = dimsOf(type), ones(dims.size(), DimExpr(1));
  auto cast = [&](Value value, Type to) -> Value {
    if (getElementTypeOrSelf(value) == to)
      return value;
    return builder.create<CastOp>(loc, tensorType(to, dims), value, uint64_t(dtypeOf(to)));
  };
  Value flags = cast(cast(decides, i1), i64), count = flags;
  if (!dims.empty())
    count = builder.create<ReduceSumOp>(loc, tensorType(i64, ones), flags, Value(), 1, 0);
  count = makeReshape(builder, loc, count, {DimExpr(1)});
  Value shape = builder.create<ConcatOp>(loc, RankedTensorType::get({2}, i64),
                                         ValueRange{count, makeIntegers(builder, loc, {0})}, 0);
  auto carrier = builder.create<ConstantOfShapeOp>(loc, tensorType(builder.getF32Type(), {*symbol, DimExpr(0)}), shape,
                                                   ElementsAttr());
  carrier->setAttr("firn.id", id);

  SmallVector<Value> inputs(op->getOperands());
  inputs.push_back(carrier);
  auto fused = builder.create<FusedOp>(loc, op->getResultTypes(), builder.getStringAttr("search"), inputs);
  Block *body = builder.createBlock(&fused.getBody());
  IRMapping map;
  for (Value input : inputs)
    map.map(input, body->addArgument(input.getType(), loc));
  Operation *copy = builder.clone(*op, map);
  copy->removeAttr("firn.id");
  builder.create<YieldOp>(loc, copy->getResults());
  op->replaceAllUsesWith(fused->getResults());
  op->erase();
}

} // namespace firn
