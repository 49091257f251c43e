#include "passes/lowering/Decompositions.h"

using namespace mlir;

namespace firn {

bool keepsDigits(Type elementType) {
  return elementType.isF32() || elementType.isF64() ||
         (isa<IntegerType>(elementType) && elementType.getIntOrFloatBitWidth() >= 32);
}

SmallVector<DimExpr> broadcastShape(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  SmallVector<DimExpr> dims;
  size_t rank = std::max(a.size(), b.size());
  for (size_t i = 0; i < rank; ++i) {
    DimExpr x = i + a.size() < rank ? DimExpr(1) : a[i + a.size() - rank];
    DimExpr y = i + b.size() < rank ? DimExpr(1) : b[i + b.size() - rank];
    if (x == y || isOne(y) || x.isConstant())
      dims.push_back(isOne(x) ? y : x);
    else
      dims.push_back(y.isConstant() ? y : DimExpr::max(x, y));
  }
  return dims;
}

SmallVector<DimExpr> TensorBuilder::broadcast(Value a, Value b) { return broadcastShape(dims(a), dims(b)); }

Value TensorBuilder::scalar(double number, Type elementType) {
  return makeNumbers(rewriter, loc, RankedTensorType::get({}, elementType), {number});
}

Value TensorBuilder::cast(Value value, Type elementType) {
  if (element(value) == elementType)
    return value;
  return rewriter.create<CastOp>(loc, tensorType(elementType, dims(value)), value, uint64_t(dtypeOf(elementType)));
}

Value TensorBuilder::integers(ArrayRef<DimExpr> values) {
  SmallVector<int64_t> numbers;
  SmallVector<std::string> texts;
  for (const DimExpr &value : values) {
    if (value.isConstant())
      numbers.push_back(value.constant());
    texts.push_back(value.str());
  }
  if (numbers.size() == values.size())
    return makeIntegers(rewriter, loc, numbers);
  SmallVector<StringRef> references(texts.begin(), texts.end());
  return rewriter.create<DimValuesOp>(loc, RankedTensorType::get({int64_t(values.size())}, rewriter.getI64Type()),
                                      rewriter.getStrArrayAttr(references));
}

Value TensorBuilder::counting(const DimExpr &count) {
  RankedTensorType one = RankedTensorType::get({}, rewriter.getI64Type());
  auto numberOf = [&](int64_t value) { return makeNumbers(rewriter, loc, one, {double(value)}); };
  Value limit = count.isConstant()
                    ? numberOf(count.constant())
                    : Value(rewriter.create<DimValuesOp>(loc, one, rewriter.getStrArrayAttr({StringRef(count.str())})));
  return rewriter.create<RangeOp>(loc, tensorType(rewriter.getI64Type(), {count}), numberOf(0), limit, numberOf(1),
                                  IntegerAttr());
}

Value TensorBuilder::slice(Value value, int64_t axis, const DimExpr &start, const DimExpr &end) {
  SmallVector<DimExpr> to = dims(value);
  to[size_t(axis)] = end - start;
  SmallVector<Value> bounds{integers({start}), integers({end}), makeIntegers(rewriter, loc, {axis})};
  return rewriter.create<SliceOp>(loc, tensorType(element(value), to), value, bounds);
}

Value TensorBuilder::where(Value condition, Value a, Value b) {
  SmallVector<DimExpr> to = broadcastShape(dims(condition), broadcast(a, b));
  return rewriter.create<WhereOp>(loc, tensorType(element(a), to), condition, a, b);
}

Value TensorBuilder::reduceMean(Value value, ArrayRef<int64_t> axes) {
  SmallVector<DimExpr> to = dims(value);
  for (int64_t axis : axes)
    to[size_t(axis)] = DimExpr(1);
  return rewriter.create<ReduceMeanOp>(loc, tensorType(element(value), to), value, makeIntegers(rewriter, loc, axes), 1,
                                       0);
}

} // namespace firn
