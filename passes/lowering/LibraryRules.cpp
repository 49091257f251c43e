// Operators of the library, and rare operations of the dialect, in terms of those that code is generated for.
//
//   lrn, hardmax, dropout (not training), Shrink, SwiGLU, MeanVarianceNormalization: elementwise operations, reductions
//   EyeLike, ReverseSequence, CenterCropPad, MaxUnpool: movements and scatters
#include "passes/lowering/Decompositions.h"

using namespace mlir;

namespace firn {
namespace {

int64_t integerOf(Operation *op, StringRef name, int64_t otherwise) {
  auto given = op->getAttrOfType<IntegerAttr>(name);
  return given ? given.getInt() : otherwise;
}

double numberOf(Operation *op, StringRef name, double otherwise) {
  auto given = op->getAttrOfType<FloatAttr>(name);
  return given ? given.getValueAsDouble() : otherwise;
}

bool hasRanks(Operation *op) {
  auto isRanked = [](Type type) { return isa<RankedTensorType, NoneType>(type); };
  return llvm::all_of(op->getOperandTypes(), isRanked) && llvm::all_of(op->getResultTypes(), isRanked) &&
         llvm::none_of(op->getResultTypes(), [&](Type type) { return mentionsSymbolsOf(type, op); });
}

/// x where it is f32 or f64, else as f32; null where it is no float.
Value widened(TensorBuilder &t, Value x) {
  Type element = t.element(x);
  if (!isFloat(element))
    return {};
  return element.isF32() || element.isF64() ? x : t.cast(x, t.rewriter.getF32Type());
}

// --- normalisations --------------------------------------------------------------------------------------------------

/// x / (bias + alpha / size * the sum of x^2 over neighbouring channels)^beta
bool decomposeLrn(LRNOp op, RuleRewriter &rewriter) {
  int64_t size = integerOf(op, "size", 0);
  if (!hasRanks(op) || size < 1 || size > 32 || rankedType(op.getX()).getRank() < 2)
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  Value x = widened(t, op.getX());
  if (!x)
    return false;
  Type element = t.element(x);
  Value squares = t.binary<MulOp>(x, x);
  if (size > 1) {
    SmallVector<DimExpr> dims = t.dims(x);
    SmallVector<int64_t> pads(2 * dims.size(), 0);
    pads[1] = (size - 1) / 2;
    pads[dims.size() + 1] = size / 2;
    DimExpr channels = dims[1];
    dims[1] = channels + DimExpr(size - 1);
    Value padded = rewriter.create<PadOp>(op.getLoc(), tensorType(element, dims), squares,
                                          makeIntegers(rewriter, op.getLoc(), pads), ValueRange{});
    squares = Value();
    for (int64_t i = 0; i < size; ++i) {
      Value shifted = t.slice(padded, 1, DimExpr(i), channels + DimExpr(i));
      squares = squares ? t.binary<AddOp>(squares, shifted) : shifted;
    }
  }
  Value scaled = t.binary<MulOp>(squares, t.scalar(numberOf(op, "alpha", 1e-4) / double(size), element));
  Value base = t.binary<AddOp>(scaled, t.scalar(numberOf(op, "bias", 1), element));
  Value power = t.binary<PowOp>(base, t.scalar(numberOf(op, "beta", 0.75), element));
  rewriter.replace(op, t.cast(t.binary<DivOp>(x, power), t.element(op.getX())), "sums of shifted squares");
  return true;
}

bool decomposeMeanVariance(CallOp op, RuleRewriter &rewriter) {
  SmallVector<int64_t> axes{0, 2, 3};
  if (auto given = op->getAttrOfType<DenseI64ArrayAttr>("axes"))
    axes.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  int64_t rank = rankedType(op->getOperand(0)).getRank();
  for (int64_t &axis : axes) {
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
      return false;
  }
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  Value x = widened(t, op->getOperand(0));
  if (!x)
    return false;
  Value distance = t.binary<SubOp>(x, t.reduceMean(x, axes));
  Value variance = t.reduceMean(t.binary<MulOp>(distance, distance), axes);
  Value deviation = t.binary<AddOp>(t.unary<SqrtOp>(variance), t.scalar(1e-9, t.element(x)));
  rewriter.replace(op, t.cast(t.binary<DivOp>(distance, deviation), t.element(op->getOperand(0))), "spelt out");
  return true;
}

// --- elementwise -----------------------------------------------------------------------------------------------------

/// 1 where the position along the axis is that of the first greatest element.
bool decomposeHardmax(HardmaxOp op, RuleRewriter &rewriter) {
  if (!hasRanks(op) || rankedType(op.getX()).getRank() == 0)
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  SmallVector<DimExpr> dims = t.dims(op.getX()), line(dims.size(), DimExpr(1));
  int64_t axis = int64_t(op.getAxis());
  axis += axis < 0 ? int64_t(dims.size()) : 0;
  if (axis < 0 || axis >= int64_t(dims.size()))
    return false;
  line[size_t(axis)] = dims[size_t(axis)];
  Value positions = t.reshape(t.counting(dims[size_t(axis)]), line);
  dims[size_t(axis)] = DimExpr(1);
  Value best = rewriter.create<ArgMaxOp>(op.getLoc(), tensorType(rewriter.getI64Type(), dims), op.getX(),
                                         uint64_t(axis), uint64_t(1), uint64_t(0));
  rewriter.replace(op, t.cast(t.compare<EqualOp>(positions, best), t.element(op.getX())), "a comparison of positions");
  return true;
}

bool decomposeDropout(DropoutOp op, RuleRewriter &rewriter) {
  Value training = operandOf(op, 2);
  if (!hasRanks(op) || (training && !isSplatOf(training, 0)) || op->getNumResults() < 2 || op->getResult(1).use_empty())
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  auto type = rankedType(op->getResult(1));
  auto yes = DenseElementsAttr::get(RankedTensorType::get({1}, rewriter.getI1Type()), true);
  Value mask = rewriter.create<ConstantOfShapeOp>(op.getLoc(), type, t.integers(dimsOf(type)), yes);
  Value kept = rewriter.create<IdentityOp>(op.getLoc(), op.getX().getType(), op.getX());
  rewriter.replace(op, {kept, mask}, "not training: the identity and true");
  return true;
}

bool decomposeShrink(CallOp op, RuleRewriter &rewriter) {
  double lambda = numberOf(op, "lambd", 0.5), bias = numberOf(op, "bias", 0);
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  Value x = widened(t, op->getOperand(0));
  if (!x || !(lambda >= 0))
    return false;
  Type element = t.element(x);
  auto number = [&](double value) { return t.scalar(value, element); };
  Value isSmall = t.compare<LessOrEqualOp>(t.unary<AbsOp>(x), number(lambda));
  Value outside =
      t.where(t.compare<LessOp>(x, number(0)), t.binary<AddOp>(x, number(bias)), t.binary<SubOp>(x, number(bias)));
  rewriter.replace(op, t.cast(t.where(isSmall, number(0), outside), t.element(op->getOperand(0))), "spelt out");
  return true;
}

bool decomposeSwiGlu(CallOp op, RuleRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  Value a = widened(t, op->getOperand(0)), b = widened(t, op->getOperand(1));
  if (!a || !b || t.element(a) != t.element(b))
    return false;
  Value gate =
      rewriter.create<SwishOp>(op.getLoc(), a.getType(), a, rewriter.getF32FloatAttr(float(numberOf(op, "alpha", 1))));
  rewriter.replace(op, t.cast(t.binary<MulOp>(gate, b), t.element(op->getOperand(0))), "spelt out");
  return true;
}

// --- movements -------------------------------------------------------------------------------------------------------

bool decomposeEyeLike(CallOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op->getResult(0));
  if (type.getRank() != 2)
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  SmallVector<DimExpr> dims = dimsOf(type);
  Value rows = t.reshape(t.counting(dims[0]), {dims[0], DimExpr(1)});
  Value columns = t.reshape(t.counting(dims[1]), {DimExpr(1), dims[1]});
  rows = t.binary<AddOp>(rows, makeIntegers(rewriter, op.getLoc(), {integerOf(op, "k", 0)}));
  rewriter.replace(op, t.cast(t.compare<EqualOp>(rows, columns), type.getElementType()), "a comparison of positions");
  return true;
}

/// A gather of rows by positions that are turned round within each length.
bool decomposeReverseSequence(CallOp op, RuleRewriter &rewriter) {
  Value x = op->getOperand(0), lengths = op->getOperand(1);
  bool isTimeFirst = integerOf(op, "time_axis", 0) == 0;
  if (rankedType(x).getRank() < 2 || rankedType(lengths).getRank() != 1)
    return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  SmallVector<DimExpr> dims = t.dims(x), rows(dims.begin() + 1, dims.end());
  DimExpr steps = dims[isTimeFirst ? 0 : 1], batches = dims[isTimeFirst ? 1 : 0];
  rows[0] = steps * batches;
  Type i64 = rewriter.getI64Type();
  auto along = [&](Value value, bool isTime) { // over the first two axes
    DimExpr count = isTime ? steps : batches;
    return isTime == isTimeFirst ? t.reshape(value, {count, DimExpr(1)}) : t.reshape(value, {DimExpr(1), count});
  };
  auto sizeOf = [&](const DimExpr &size) { return t.integers({size}); };
  Value time = along(t.counting(steps), true), batch = along(t.counting(batches), false);
  Value length = along(t.cast(lengths, i64), false);
  Value turned = t.binary<SubOp>(t.binary<SubOp>(length, makeIntegers(rewriter, op.getLoc(), {1})), time);
  Value source = t.where(t.compare<LessOp>(time, length), turned, time);
  Value flat = isTimeFirst ? t.binary<AddOp>(t.binary<MulOp>(source, sizeOf(batches)), batch)
                           : t.binary<AddOp>(t.binary<MulOp>(batch, sizeOf(steps)), source);
  // A length that is out of range must be an error: an index behind the last row is one.
  Value isLong = t.compare<GreaterOp>(length, sizeOf(steps));
  Value isNegative = t.compare<LessOp>(length, makeIntegers(rewriter, op.getLoc(), {0}));
  Value isBad = rewriter.create<OrOp>(op.getLoc(), isLong.getType(), isLong, isNegative);
  flat = t.where(isBad, sizeOf(rows[0]), flat);
  Value gathered =
      rewriter.create<GatherOp>(op.getLoc(), op->getResult(0).getType(), t.reshape(x, rows), flat, uint64_t(0));
  rewriter.replace(op, gathered, "a gather");
  return true;
}

bool decomposeCenterCropPad(CallOp op, RuleRewriter &rewriter) {
  Value x = op->getOperand(0);
  SmallVector<DimExpr> from = dimsOf(rankedType(x)), to = dimsOf(rankedType(op->getResult(0)));
  for (size_t k = 0; k < from.size(); ++k)
    if (from[k] != to[k] && !(from[k].isConstant() && to[k].isConstant()))
      return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  SmallVector<int64_t> pads(2 * from.size(), 0);
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] == to[k])
      continue;
    int64_t dim = from[k].constant(), wanted = to[k].constant();
    if (wanted < dim) {
      int64_t start = (dim - wanted) / 2;
      x = t.slice(x, int64_t(k), DimExpr(start), DimExpr(start + wanted));
    } else {
      pads[k] = (wanted - dim) / 2;
      pads[from.size() + k] = wanted - dim - pads[k];
    }
  }
  if (llvm::any_of(pads, [](int64_t pad) { return pad != 0; }))
    x = rewriter.create<PadOp>(op.getLoc(), op->getResult(0).getType(), x, makeIntegers(rewriter, op.getLoc(), pads),
                               ValueRange{});
  if (x == op->getOperand(0))
    x = rewriter.create<IdentityOp>(op.getLoc(), x.getType(), x);
  rewriter.replace(op, x, "slices and a pad");
  return true;
}

/// Where the result has the size that the windows give, its elements are numbered as the indices number them.
bool decomposeMaxUnpool(CallOp op, RuleRewriter &rewriter) {
  auto type = rankedType(op->getOperand(0)), resultType = rankedType(op->getResult(0));
  auto list = [&](StringRef name, int64_t count, int64_t otherwise) {
    auto given = op->getAttrOfType<DenseI64ArrayAttr>(name);
    return given ? SmallVector<int64_t>(given.asArrayRef()) : SmallVector<int64_t>(size_t(count), otherwise);
  };
  int64_t spatial = type.getRank() - 2;
  if (spatial < 1 || resultType.getRank() != type.getRank())
    return false;
  auto kernel = list("kernel_shape", spatial, 0), strides = list("strides", spatial, 1),
       pads = list("pads", 2 * spatial, 0);
  if (int64_t(kernel.size()) != spatial || int64_t(strides.size()) != spatial || int64_t(pads.size()) != 2 * spatial)
    return false;
  SmallVector<DimExpr> from = dimsOf(type), to = dimsOf(resultType);
  for (int64_t k = 0; k < spatial; ++k)
    if ((from[size_t(k) + 2] - DimExpr(1)) * DimExpr(strides[size_t(k)]) +
            DimExpr(kernel[size_t(k)] - pads[size_t(k)] - pads[size_t(spatial + k)]) !=
        to[size_t(k) + 2])
      return false;
  rewriter.setInsertionPoint(op);
  TensorBuilder t(rewriter, op.getLoc());
  DimExpr total(1), count(1);
  for (const DimExpr &dim : to)
    total = total * dim;
  for (const DimExpr &dim : from)
    count = count * dim;
  auto flatType = tensorType(type.getElementType(), {total});
  Value zeros = rewriter.create<ConstantOfShapeOp>(
      op.getLoc(), flatType, t.integers({total}),
      cast<ElementsAttr>(DenseElementsAttr::get(RankedTensorType::get({1}, type.getElementType()),
                                                ArrayRef<Attribute>{rewriter.getZeroAttr(type.getElementType())})));
  Value indices = t.reshape(t.cast(op->getOperand(1), rewriter.getI64Type()), {count});
  Value isNegative = t.compare<LessOp>(indices, makeIntegers(rewriter, op.getLoc(), {0})); // no index from the end
  indices = t.where(isNegative, t.integers({total}), indices);
  Value flat =
      rewriter.create<ScatterElementsOp>(op.getLoc(), flatType, zeros, indices, t.reshape(op->getOperand(0), {count}));
  rewriter.replace(op, t.reshape(flat, to), "a scatter");
  return true;
}

/// Indices that are no integers are cut off.
bool decomposeOneHot(OneHotOp op, RuleRewriter &rewriter) {
  if (!rankedType(op.getIndices()) || !isFloat(getElementTypeOrSelf(op.getIndices())))
    return false;
  rewriter.setInsertionPoint(op);
  op.getIndicesMutable().assign(TensorBuilder(rewriter, op.getLoc()).cast(op.getIndices(), rewriter.getI64Type()));
  rewriter.changed(op, "indices as integers");
  return true;
}

bool decomposeCall(CallOp op, RuleRewriter &rewriter) {
  using CallRule = bool (*)(CallOp, RuleRewriter &);
  static const std::pair<StringLiteral, CallRule> rules[] = {
      {"ai.onnx::MeanVarianceNormalization", decomposeMeanVariance},
      {"ai.onnx::Shrink", decomposeShrink},
      {"ai.onnx::SwiGLU", decomposeSwiGlu},
      {"ai.onnx::EyeLike", decomposeEyeLike},
      {"ai.onnx::ReverseSequence", decomposeReverseSequence},
      {"ai.onnx::CenterCropPad", decomposeCenterCropPad},
      {"ai.onnx::MaxUnpool", decomposeMaxUnpool},
  };
  for (auto [name, rule] : rules)
    if (op.getCallee() == name)
      return hasRanks(op) && rule(op, rewriter);
  return false;
}

} // namespace

void addLibraryRules(RuleSet &rules) {
  rules.add<LRNOp>(decomposeLrn);
  rules.add<HardmaxOp>(decomposeHardmax);
  rules.add<DropoutOp>(decomposeDropout);
  rules.add<OneHotOp>(decomposeOneHot);
  rules.add<CallOp>(decomposeCall);
}

} // namespace firn
