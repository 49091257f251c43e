// Decompose: rare operations become those that code is generated for.
//
// In:      firn ops, shapes inferred, in a module that will be compiled (never exported).     Out: fewer kinds of ops.
// Keeps:   values up to rounding; movements and integers exactly. 16-bit floats keep operations that sum or multiply in
//          more digits than the graph's values have.
// Leaves:  an operation whose parameters (axes, sizes) are not constants.
//   %1 = firn.gemm %a, %b, %c {transB = 1}     ==>   %0 = firn.transpose %b; %1 = firn.matmul %a, %0; firn.add %1, %c
//   %1 = firn.batch_normalization %x, ...      ==>   firn.mul %x, %scale; firn.add, with [C, 1, ...] constants
//   %1:3 = firn.attention with a cache         ==>   firn.concat twice, firn.attention of what they give
//   %1 = firn.rotary_embedding %x, ...         ==>   slices, products and sums in f32, firn.concat
// Quantised layers: DecomposeQuantized.cpp; resize: SamplingRules.cpp; operators of the library: LibraryRules.cpp.
#include "passes/Passes.h"
#include "passes/lowering/DecomposeQuantized.h"
#include "passes/lowering/Decompositions.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"

namespace {

Value scalarOf(RuleRewriter &rewriter, Location loc, Type elementType, double number) {
  return makeNumbers(rewriter, loc, RankedTensorType::get({}, elementType), {number});
}

// --- contractions ----------------------------------------------------------------------------------------------------

StringRef gemmRefusal(GemmOp op) {
  auto type = rankedType(op.getResult());
  if (!type || !rankedType(op.getA()) || !rankedType(op.getB()))
    return "a rank is not known";
  if (!keepsDigits(type.getElementType()))
    return "16-bit sums would be rounded before the bias";
  bool isScaled = op.getAlpha().convertToFloat() != 1 || op.getBeta().convertToFloat() != 1;
  if (isScaled && !isFloat(type.getElementType()))
    return "integers scaled by a real number";
  return "";
}

bool decomposeGemm(GemmOp op, RuleRewriter &rewriter) {
  if (StringRef why = gemmRefusal(op); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = rankedType(op.getResult());
  Type element = type.getElementType();
  Value a = op.getA(), b = op.getB();
  if (op.getTransA())
    a = makeTranspose(rewriter, loc, a, {1, 0});
  if (op.getTransB())
    b = makeTranspose(rewriter, loc, b, {1, 0});
  Value value = rewriter.create<MatMulOp>(loc, type, a, b);
  if (double alpha = op.getAlpha().convertToFloat(); alpha != 1)
    value = rewriter.create<MulOp>(loc, type, value, scalarOf(rewriter, loc, element, alpha));
  if (Value c = operandOf(op, 2)) {
    if (double beta = op.getBeta().convertToFloat(); beta != 1)
      c = rewriter.create<MulOp>(loc, c.getType(), c, scalarOf(rewriter, loc, element, beta));
    value = rewriter.create<AddOp>(loc, type, value, c);
  }
  rewriter.replace(op, value, "matmul and add");
  return true;
}

// --- normalisations --------------------------------------------------------------------------------------------------

StringRef batchNormalizationRefusal(BatchNormalizationOp op) {
  auto type = rankedType(op.getX());
  if (!type || type.getRank() < 2)
    return "the rank of its input is not known or below 2";
  if (op.getTrainingMode())
    return "training mode";
  for (OpResult result : op->getResults().drop_front())
    if (!result.use_empty())
      return "running statistics are used";
  for (Value parameter : op->getOperands().drop_front())
    if (auto other = rankedType(parameter);
        !other || other.getElementType() != type.getElementType() || !keepsDigits(other.getElementType()))
      return "parameters of another or a 16-bit type";
  return "";
}

bool decomposeBatchNormalization(BatchNormalizationOp op, RuleRewriter &rewriter) {
  if (StringRef why = batchNormalizationRefusal(op); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = rankedType(op.getX()), vector = rankedType(op.getScale());
  Type element = type.getElementType();
  double epsilon = op.getEpsilon().convertToFloat();
  auto scale = numbersOf(op.getScale()), bias = numbersOf(op.getBias()), mean = numbersOf(op.getMean()),
       variance = numbersOf(op.getVariance());
  Value factor, shift;
  if (scale && bias && mean && variance) {
    for (size_t i = 0; i < scale->size(); ++i) {
      (*scale)[i] /= std::sqrt((*variance)[i] + epsilon);
      (*bias)[i] -= (*mean)[i] * (*scale)[i];
    }
    factor = makeNumbers(rewriter, loc, vector, *scale);
    shift = makeNumbers(rewriter, loc, vector, *bias);
  } else {
    Value sum = rewriter.create<AddOp>(loc, vector, op.getVariance(), scalarOf(rewriter, loc, element, epsilon));
    factor = rewriter.create<DivOp>(loc, vector, op.getScale(), rewriter.create<SqrtOp>(loc, vector, sum));
    shift =
        rewriter.create<SubOp>(loc, vector, op.getBias(), rewriter.create<MulOp>(loc, vector, op.getMean(), factor));
  }
  SmallVector<DimExpr> dims(type.getRank() - 1, DimExpr(1));
  dims[0] = dimOf(vector, 0);
  if (type.getRank() > 2) {
    factor = makeReshape(rewriter, loc, factor, dims);
    shift = makeReshape(rewriter, loc, shift, dims);
  }
  Value scaled = rewriter.create<MulOp>(loc, op.getX().getType(), op.getX(), factor);
  SmallVector<Value> values(op.getNumResults());
  values[0] = rewriter.create<AddOp>(loc, op.getX().getType(), scaled, shift);
  rewriter.replace(op, values, "multiply and add");
  return true;
}

/// x / p-norm, 0 where the norm is 0, as the reference kernel does.
bool decomposeLpNormalization(LpNormalizationOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  if (!type || !keepsDigits(type.getElementType()) || !isFloat(type.getElementType()))
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Type element = type.getElementType();
  int64_t axis = int64_t(op.getAxis());
  if (axis < 0)
    axis += type.getRank();
  SmallVector<DimExpr> dims = dimsOf(type);
  dims[axis] = DimExpr(1);
  RankedTensorType reduced = tensorType(element, dims);
  auto predicate = tensorType(rewriter.getI1Type(), dims);
  Value magnitude = op.getP() == 1 ? Value(rewriter.create<AbsOp>(loc, type, op.getX()))
                                   : Value(rewriter.create<MulOp>(loc, type, op.getX(), op.getX()));
  Value norm = rewriter.create<ReduceSumOp>(loc, reduced, magnitude, makeIntegers(rewriter, loc, {axis}), 1, 0);
  if (op.getP() != 1)
    norm = rewriter.create<SqrtOp>(loc, reduced, norm);
  Value isZero = rewriter.create<EqualOp>(loc, predicate, norm, scalarOf(rewriter, loc, element, 0));
  norm = rewriter.create<WhereOp>(loc, reduced, isZero, scalarOf(rewriter, loc, element, 1), norm);
  rewriter.replaceWith<DivOp>(op, {}, "spelt out", op.getType(), op.getX(), norm);
  return true;
}

// --- reductions ------------------------------------------------------------------------------------------------------

bool decomposeReduce(Operation *op, RuleRewriter &rewriter) {
  auto type = rankedType(op->getOperand(0)), resultType = rankedType(op->getResult(0));
  if (!type || !resultType || !keepsDigits(type.getElementType()) ||
      (isa<ReduceL2Op, ReduceLogSumOp, ReduceLogSumExpOp>(op) && !isFloat(type.getElementType()))) {
    rewriter.refuse(op, "16-bit values would be rounded before the sum, or a rank is not known");
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto reduce = [&](StringRef name, Value value, Type to, bool keepDims) {
    OperationState state(loc, name);
    state.addOperands(value);
    if (Value axes = operandOf(op, 1))
      state.addOperands(axes);
    state.addTypes(to);
    for (NamedAttribute attribute : op->getAttrs())
      if (!attribute.getName().getValue().starts_with("firn."))
        state.addAttribute(attribute.getName(), attribute.getValue());
    if (keepDims)
      state.attributes.set("keepdims", rewriter.getI64IntegerAttr(1));
    return rewriter.create(state)->getResult(0);
  };
  constexpr StringLiteral sum = ReduceSumOp::getOperationName();
  Value value;
  if (isa<ReduceL1Op>(op)) {
    value = reduce(sum, rewriter.create<AbsOp>(loc, type, x), resultType, false);
  } else if (isa<ReduceSumSquareOp, ReduceL2Op>(op)) {
    value = reduce(sum, rewriter.create<MulOp>(loc, type, x, x), resultType, false);
    if (isa<ReduceL2Op>(op))
      value = rewriter.create<SqrtOp>(loc, resultType, value);
  } else if (isa<ReduceLogSumOp>(op)) {
    value = rewriter.create<LogOp>(loc, resultType, reduce(sum, x, resultType, false));
  } else {
    // log(sum(e^(x - m))) + m with m the greatest element, 0 where that is infinite.
    auto axes = reducedAxes(op);
    if (!axes) {
      rewriter.refuse(op, "its axes are no constants");
      return false;
    }
    SmallVector<DimExpr> dims = dimsOf(type);
    for (int64_t axis : *axes)
      dims[axis] = DimExpr(1);
    RankedTensorType kept = tensorType(type.getElementType(), dims);
    Value most = reduce(ReduceMaxOp::getOperationName(), x, kept, true);
    Value isInfinite =
        rewriter.create<IsInfOp>(loc, tensorType(rewriter.getI1Type(), dims), most, uint64_t(1), uint64_t(1));
    most = rewriter.create<WhereOp>(loc, kept, isInfinite, scalarOf(rewriter, loc, type.getElementType(), 0), most);
    Value powers = rewriter.create<ExpOp>(loc, type, rewriter.create<SubOp>(loc, type, x, most));
    Value logarithm = rewriter.create<LogOp>(loc, kept, reduce(sum, powers, kept, true));
    value = rewriter.create<AddOp>(loc, kept, logarithm, most);
    if (!haveSameType(value, op->getResult(0)))
      value = makeReshape(rewriter, loc, value, dimsOf(resultType));
  }
  rewriter.replace(op, value, "spelt out");
  return true;
}

/// sum, max, min and mean of several operands: two at a time.
bool decomposeVariadic(Operation *op, RuleRewriter &rewriter) {
  auto type = rankedType(op->getResult(0));
  unsigned count = op->getNumOperands();
  bool isOrder = isa<MaxOp, MinOp>(op);
  if (!type || count < 2 || (isOrder && count == 2) || (!isOrder && !keepsDigits(type.getElementType())))
    return false;
  for (Value operand : op->getOperands())
    if (!rankedType(operand))
      return false;
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  Value value = op->getOperand(0);
  for (Value next : op->getOperands().drop_front()) {
    auto both = tensorType(type.getElementType(), broadcastShape(dimsOf(rankedType(value)), dimsOf(rankedType(next))));
    if (isa<MaxOp>(op))
      value = rewriter.create<MaxOp>(loc, both, ValueRange{value, next});
    else if (isa<MinOp>(op))
      value = rewriter.create<MinOp>(loc, both, ValueRange{value, next});
    else
      value = rewriter.create<AddOp>(loc, both, value, next);
  }
  value.setType(type);
  if (isa<MeanOp>(op))
    value = rewriter.create<DivOp>(loc, type, value, scalarOf(rewriter, loc, type.getElementType(), count));
  rewriter.replace(op, value, "two operands at a time");
  return true;
}

// --- attention -------------------------------------------------------------------------------------------------------

int64_t numberOf(Operation *op, StringRef name, int64_t fallback) {
  auto value = op->getAttrOfType<IntegerAttr>(name);
  return value ? value.getInt() : fallback;
}

/// [batch, length, heads * size] as [batch, heads, length, size]; such a value itself. Null where sizes do not divide.
Value splitHeads(RuleRewriter &rewriter, Location loc, Value x, int64_t heads) {
  SmallVector<DimExpr> d = dimsOf(rankedType(x));
  if (d.size() == 4)
    return x;
  auto size = heads > 0 ? d[2].exactDiv(DimExpr(heads)) : std::nullopt;
  if (!size)
    return {};
  return makeTranspose(rewriter, loc, makeReshape(rewriter, loc, x, {d[0], d[1], DimExpr(heads), *size}), {0, 2, 1, 3});
}

/// Keys and values that grow a cache: the cache becomes a tensor of its own, which attention reads.
bool decomposeAttention(AttentionOp op, RuleRewriter &rewriter) {
  auto isRead = [&](unsigned i) { return i < op->getNumResults() && !op->getResult(i).use_empty(); };
  Value past[2] = {operandOf(op, 4), operandOf(op, 5)};
  if (numberOf(op, "joined", 0) || (!past[0] && !isRead(1) && !isRead(2)))
    return false;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (operandOf(op, i) && !rankedType(operandOf(op, i)))
      return false;
  if (isRead(3) || !past[0] != !past[1]) {
    rewriter.refuse(op, "its scores are read");
    return false;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value present[2];
  SmallVector<Value> operands(op->getOperands());
  for (unsigned i : {0u, 1u}) {
    present[i] = splitHeads(rewriter, loc, op->getOperand(1 + i), numberOf(op, "kv_num_heads", 0));
    if (!present[i]) {
      rewriter.refuse(op, "the size of its heads is not known");
      return false;
    }
    if (!past[i])
      continue;
    SmallVector<DimExpr> dims = dimsOf(rankedType(present[i]));
    dims[2] = dims[2] + dimOf(rankedType(past[i]), 2);
    auto type = tensorType(getElementTypeOrSelf(past[i]), dims);
    present[i] = rewriter.create<ConcatOp>(loc, type, ValueRange{past[i], present[i]}, 2);
    operands[1 + i] = present[i];
  }
  OperationState state(loc, AttentionOp::getOperationName(), operands, op->getResult(0).getType(), op->getAttrs());
  if (past[0])
    state.attributes.set("joined", rewriter.getI64IntegerAttr(1));
  SmallVector<Value> results{rewriter.create(state)->getResult(0), present[0], present[1], Value()};
  results.resize(op->getNumResults());
  rewriter.replace(op, results, past[0] ? "the cache is a tensor of its own" : "keys and values are views");
  return true;
}

bool decomposeRotaryEmbedding(RotaryEmbeddingOp op, RuleRewriter &rewriter) {
  Value x = operandOf(op, 0), caches[2] = {operandOf(op, 1), operandOf(op, 2)}, positions = operandOf(op, 3);
  auto type = rankedType(x);
  if (!type || !rankedType(op.getResult()) || !rankedType(caches[0]) || !rankedType(caches[1]) ||
      (positions && !rankedType(positions)))
    return false;
  Type element = type.getElementType(), wide = element.isF64() ? element : Type(rewriter.getF32Type());
  SmallVector<DimExpr> d = dimsOf(type);
  bool isRow = d.size() == 3; // heads inside of rows
  DimExpr heads = isRow ? DimExpr(numberOf(op, "num_heads", 0)) : d[1];
  auto size = isRow ? d[2].exactDiv(heads) : std::optional(d[3]);
  int64_t rotated = numberOf(op, "rotary_embedding_dim", 0);
  if (!size || !size->isConstant() || rotated > size->constant() || rotated % 2 ||
      rankedType(caches[0]).getRank() != (positions ? 2 : 3)) {
    rewriter.refuse(op, "the size of its heads is not known");
    return false;
  }
  rotated = rotated ? rotated : size->constant();
  bool isInterleaved = numberOf(op, "interleaved", 0) != 0;
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  DimExpr batch = d[0], length = isRow ? d[1] : d[2], half(rotated / 2), one(1);
  auto widened = [&](Value value) -> Value {
    auto from = rankedType(value);
    if (from.getElementType() == wide)
      return value;
    return rewriter.create<CastOp>(loc, tensorType(wide, dimsOf(from)), value, dtypeOf(wide));
  };
  // Position and angle along the axes of x, heads repeated.
  Value angles[2];
  for (unsigned i : {0u, 1u}) {
    Value cache = caches[i];
    if (positions)
      cache = rewriter.create<GatherOp>(loc, tensorType(element, {batch, length, half}), cache, positions, 0);
    SmallVector<DimExpr> dims{batch, isRow ? length : one, isRow ? one : length, half};
    if (isInterleaved)
      dims.push_back(one);
    angles[i] = widened(makeReshape(rewriter, loc, cache, dims));
  }
  SmallVector<DimExpr> headDims{batch, isRow ? length : heads, isRow ? heads : length, *size};
  Value all = isRow ? makeReshape(rewriter, loc, x, headDims) : x;
  auto slice = [&](Value from, int64_t axis, int64_t begin, int64_t end) -> Value {
    auto fromType = rankedType(from);
    SmallVector<DimExpr> dims = dimsOf(fromType);
    dims[axis] = DimExpr(end - begin);
    if (dims == dimsOf(fromType))
      return from;
    SmallVector<Value> bounds{makeIntegers(rewriter, loc, {begin}), makeIntegers(rewriter, loc, {end}),
                              makeIntegers(rewriter, loc, {axis})};
    return rewriter.create<SliceOp>(loc, tensorType(fromType.getElementType(), dims), from, bounds);
  };
  Value turning = slice(all, 3, 0, rotated);
  int64_t axis = 3;
  if (isInterleaved) { // [..., half, 2]
    SmallVector<DimExpr> pairs(headDims);
    pairs[3] = half;
    pairs.push_back(DimExpr(2));
    turning = makeReshape(rewriter, loc, turning, pairs);
    axis = 4;
  }
  int64_t middle = isInterleaved ? 1 : rotated / 2;
  Value a = widened(slice(turning, axis, 0, middle)), b = widened(slice(turning, axis, middle, 2 * middle));
  auto product = [&](Value value, Value angle) -> Value {
    return rewriter.create<MulOp>(loc, value.getType(), value, angle);
  };
  Value real = rewriter.create<SubOp>(loc, a.getType(), product(a, angles[0]), product(b, angles[1]));
  Value imaginary = rewriter.create<AddOp>(loc, a.getType(), product(a, angles[1]), product(b, angles[0]));
  auto narrowed = [&](Value value) -> Value {
    if (wide == element)
      return value;
    return rewriter.create<CastOp>(loc, tensorType(element, dimsOf(rankedType(value))), value, dtypeOf(element));
  };
  SmallVector<Value> parts{narrowed(real), narrowed(imaginary)};
  auto join = [&](ArrayRef<Value> values, int64_t along) -> Value {
    SmallVector<DimExpr> dims = dimsOf(rankedType(values[0]));
    dims[along] = DimExpr(0);
    for (Value value : values)
      dims[along] = dims[along] + dimOf(rankedType(value), along);
    return rewriter.create<ConcatOp>(loc, tensorType(element, dims), values, along);
  };
  if (isInterleaved) {
    Value pairs = join(parts, 4);
    SmallVector<DimExpr> dims(headDims);
    dims[3] = DimExpr(rotated);
    parts = {makeReshape(rewriter, loc, pairs, dims)};
  }
  if (rotated < size->constant())
    parts.push_back(slice(all, 3, rotated, size->constant()));
  Value result = parts.size() == 1 ? parts[0] : join(parts, 3);
  if (isRow)
    result = makeReshape(rewriter, loc, result, d);
  rewriter.replace(op, result, "products of slices");
  return true;
}

// --- movements -------------------------------------------------------------------------------------------------------

bool decomposeSplit(SplitOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  if (!type || type.getRank() == 0)
    return false;
  int64_t axis = int64_t(op.getAxis());
  if (axis < 0)
    axis += type.getRank();
  for (OpResult result : op.getResults())
    if (auto piece = rankedType(result); !piece || piece.isDynamicDim(axis)) {
      rewriter.refuse(op, "the sizes of its pieces are no constants");
      return false;
    }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  SmallVector<Value> pieces;
  int64_t start = 0;
  for (OpResult result : op.getResults()) {
    int64_t end = start + rankedType(result).getDimSize(axis);
    SmallVector<Value> bounds{makeIntegers(rewriter, loc, {start}), makeIntegers(rewriter, loc, {end}),
                              makeIntegers(rewriter, loc, {axis})};
    pieces.push_back(result.use_empty() ? Value() : rewriter.create<SliceOp>(loc, result.getType(), op.getX(), bounds));
    start = end;
  }
  rewriter.replace(op, pieces, "slices");
  return true;
}

/// One constant index along an axis of known length: a slice without that axis.
bool decomposeGather(GatherOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX()), indices = rankedType(op.getIndices());
  auto index = constantIntegers(op.getIndices());
  int64_t axis = int64_t(op.getAxis());
  if (!type || !indices || !rankedType(op.getResult()) || indices.getRank() != 0 || !index || index->size() != 1)
    return false;
  axis += axis < 0 ? type.getRank() : 0;
  int64_t length = type.getDimSize(axis), at = (*index)[0];
  at += at < 0 ? length : 0;
  if (type.isDynamicDim(axis) || at < 0 || at >= length)
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  SmallVector<DimExpr> dims = dimsOf(type);
  dims[axis] = DimExpr(1);
  SmallVector<Value> bounds{makeIntegers(rewriter, loc, {at}), makeIntegers(rewriter, loc, {at + 1}),
                            makeIntegers(rewriter, loc, {axis})};
  Value slice = rewriter.create<SliceOp>(loc, tensorType(type.getElementType(), dims), op.getX(), bounds);
  rewriter.replace(op, makeReshape(rewriter, loc, slice, dimsOf(rankedType(op.getResult()))), "a slice");
  return true;
}

/// reshape, transpose, reshape.
void moveBlocks(Operation *op, ArrayRef<DimExpr> split, ArrayRef<int64_t> perm, RuleRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  Value value = makeReshape(rewriter, op->getLoc(), op->getOperand(0), split);
  value = makeTranspose(rewriter, op->getLoc(), value, perm);
  value = makeReshape(rewriter, op->getLoc(), value, dimsOf(rankedType(op->getResult(0))));
  rewriter.replace(op, value, "reshape, transpose, reshape");
}

bool decomposeDepthToSpace(DepthToSpaceOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  if (!type || !rankedType(op.getResult()))
    return false;
  SmallVector<DimExpr> d = dimsOf(type);
  DimExpr b(int64_t(op.getBlocksize())), channels = d[1].floorDiv(b * b);
  if (op.getMode() == "CRD")
    moveBlocks(op, {d[0], channels, b, b, d[2], d[3]}, {0, 1, 4, 2, 5, 3}, rewriter);
  else
    moveBlocks(op, {d[0], b, b, channels, d[2], d[3]}, {0, 3, 4, 1, 5, 2}, rewriter);
  return true;
}

bool decomposeSpaceToDepth(SpaceToDepthOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  if (!type || !rankedType(op.getResult()))
    return false;
  SmallVector<DimExpr> d = dimsOf(type);
  DimExpr b(int64_t(op.getBlocksize()));
  // CRD, since opset 28, keeps the input's channels outermost.
  auto mode = op->getAttrOfType<StringAttr>("mode");
  SmallVector<int64_t> order = {0, 3, 5, 1, 2, 4};
  if (mode && mode.getValue() == "CRD")
    order = {0, 1, 3, 5, 2, 4};
  moveBlocks(op, {d[0], d[1], d[2].floorDiv(b), b, d[3].floorDiv(b), b}, order, rewriter);
  return true;
}

/// Views all become reshapes without operand.
bool decomposeView(Operation *op, RuleRewriter &rewriter) {
  if (isa<ReshapeOp>(op) && !operandOf(op, 1))
    return false;
  if (!rankedType(op->getResult(0)) || !rankedType(op->getOperand(0)) ||
      mentionsSymbolsOf(op->getResult(0).getType(), op)) {
    rewriter.refuse(op, "a dimension is only known when it runs");
    return false;
  }
  rewriter.replaceWith<ReshapeOp>(op, {}, "a reshape", op->getResult(0).getType(), op->getOperand(0), Value());
  return true;
}

/// A transpose that only moves axes of length 1 is a view.
bool decomposeTranspose(TransposeOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op.getX());
  SmallVector<int64_t> perm = permutationOf(op);
  if (!type || !rankedType(op.getResult()) || !isViewPermutation(type, perm))
    return false;
  rewriter.replaceWith<ReshapeOp>(op, {}, "a reshape", op.getType(), op.getX(), Value());
  return true;
}

struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    PassReport report("decompose", limit);
    RuleSet rules;
    rules.add<GemmOp>(decomposeGemm);
    rules.add<BatchNormalizationOp>(decomposeBatchNormalization);
    rules.add<LpNormalizationOp>(decomposeLpNormalization);
    rules.addFor<ReduceL1Op, ReduceL2Op, ReduceLogSumOp, ReduceLogSumExpOp, ReduceSumSquareOp>(decomposeReduce);
    rules.addFor<SumOp, MeanOp, MaxOp, MinOp>(decomposeVariadic);
    rules.add<AttentionOp>(decomposeAttention);
    rules.add<RotaryEmbeddingOp>(decomposeRotaryEmbedding);
    rules.add<SplitOp>(decomposeSplit);
    rules.add<GatherOp>(decomposeGather);
    rules.add<DepthToSpaceOp>(decomposeDepthToSpace);
    rules.add<SpaceToDepthOp>(decomposeSpaceToDepth);
    rules.add<TransposeOp>(decomposeTranspose);
    rules.addFor<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(decomposeView);
    addQuantizedRules(rules);
    addSamplingRules(rules);
    addLibraryRules(rules);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
