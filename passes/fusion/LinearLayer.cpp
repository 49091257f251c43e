// LinearLayer: reading, scaling and rebuilding layers with constant weights.
#include "passes/fusion/LinearLayer.h"

#include <cmath>

using namespace mlir;

namespace firn {

std::optional<LinearLayer> LinearLayer::of(Value value, StringRef &why) {
  LinearLayer layer;
  layer.op = value.getDefiningOp();
  if (!isa_and_nonnull<ConvOp, ConvTransposeOp, GemmOp, MatMulOp>(layer.op)) {
    why = "no contraction computes its operand";
    return std::nullopt;
  }
  if (layer.op->hasAttr("layout")) {
    why = "its channels are the last axis already";
    return std::nullopt;
  }
  auto type = rankedType(value);
  layer.weightType = rankedType(layer.op->getOperand(1));
  if (!type || !layer.weightType || !constantOf(layer.op->getOperand(1))) {
    why = "the weight is no constant";
    return std::nullopt;
  }
  if (!type.getElementType().isF32() && !type.getElementType().isF64()) {
    why = "weights of 16 bits would be rounded twice";
    return std::nullopt;
  }
  ArrayRef<int64_t> shape = layer.weightType.getShape();
  if (auto conv = dyn_cast<ConvOp>(layer.op)) {
    layer.groups = int64_t(conv.getGroup());
    layer.count = shape[0];
  } else if (auto transposed = dyn_cast<ConvTransposeOp>(layer.op)) {
    layer.groups = int64_t(transposed.getGroup());
    layer.count = shape[1] * layer.groups;
  } else if (auto gemm = dyn_cast<GemmOp>(layer.op)) {
    layer.count = shape[gemm.getTransB() ? 0 : 1];
  } else {
    if (shape.size() != 2) {
      why = "the weight of the matmul is no matrix";
      return std::nullopt;
    }
    layer.count = shape[1];
    layer.axis = type.getRank() - 1;
  }
  return layer;
}

int64_t LinearLayer::outputChannel(int64_t element) const {
  ArrayRef<int64_t> shape = weightType.getShape();
  int64_t kernel = 1;
  for (int64_t size : shape.drop_front(2))
    kernel *= size;
  int64_t first = element / kernel / shape[1], second = element / kernel % shape[1];
  if (isa<ConvOp>(op))
    return first;
  if (isa<ConvTransposeOp>(op)) // C x O/group: the second axis counts within the group of the first
    return first / (shape[0] / groups) * shape[1] + second;
  if (auto gemm = dyn_cast<GemmOp>(op))
    return gemm.getTransB() ? first : second;
  return second;
}

int64_t LinearLayer::inputChannel(int64_t element) const {
  ArrayRef<int64_t> shape = weightType.getShape();
  int64_t kernel = 1;
  for (int64_t size : shape.drop_front(2))
    kernel *= size;
  int64_t first = element / kernel / shape[1], second = element / kernel % shape[1];
  return first / (shape[0] / groups) * shape[1] + second; // of a convolution: O x C/group
}

std::optional<std::vector<double>> LinearLayer::bias() const {
  Value given = operandOf(op, 2);
  if (!given)
    return std::vector<double>(count, 0.0);
  auto type = rankedType(given);
  if (!type)
    return std::nullopt;
  SmallVector<DimExpr> dims{DimExpr(count)};
  auto values = perChannel(given, dims, 0, count);
  if (auto gemm = dyn_cast<GemmOp>(op); gemm && !values && type.getRank() == 2 && type.getDimSize(0) == 1)
    values = perChannel(given, {DimExpr(1), DimExpr(count)}, 1, count);
  if (auto gemm = dyn_cast<GemmOp>(op); gemm && values)
    for (double &value : *values)
      value *= gemm.getBeta().convertToFloat();
  return values;
}

static bool areFinite(ArrayRef<double> numbers, Type elementType) {
  double most = elementType.isF32() ? 3.4028234663852886e38 : 1.7976931348623157e308;
  return llvm::all_of(numbers, [&](double n) { return std::fabs(n) <= most; });
}

StringRef LinearLayer::growthRefusal() const {
  Value weight = op->getOperand(1);
  ElementsAttr constant = constantOf(weight);
  auto bytes = constantBytes(constant);
  bool isShared = llvm::any_of(weight.getUsers(), [&](Operation *user) {
    return user != op && (!user->use_empty() || user->getNumResults() == 0);
  });
  return isShared && bytes && bytes->bytes.size() > (1u << 20) ? "its large weight is shared and would be stored twice"
                                                               : "";
}

Value LinearLayer::scaledWeight(OpBuilder &builder, Location loc, ArrayRef<double> factors) const {
  auto numbers = numbersOf(op->getOperand(1));
  if (!numbers)
    return {};
  for (size_t i = 0; i < numbers->size(); ++i)
    (*numbers)[i] *= factors[outputChannel(i)];
  return areFinite(*numbers, weightType.getElementType()) ? makeNumbers(builder, loc, weightType, *numbers) : Value();
}

Value LinearLayer::weightScaledByInput(OpBuilder &builder, Location loc, ArrayRef<double> factors) const {
  auto numbers = numbersOf(op->getOperand(1));
  if (!numbers)
    return {};
  for (size_t i = 0; i < numbers->size(); ++i)
    (*numbers)[i] *= factors[inputChannel(i)];
  return areFinite(*numbers, weightType.getElementType()) ? makeNumbers(builder, loc, weightType, *numbers) : Value();
}

std::vector<double> LinearLayer::sumsOver(ArrayRef<double> inputs) const {
  std::vector<double> sums(count, 0.0);
  if (auto numbers = numbersOf(op->getOperand(1)))
    for (size_t i = 0; i < numbers->size(); ++i)
      sums[outputChannel(i)] += (*numbers)[i] * inputs[inputChannel(i)];
  return sums;
}

Value LinearLayer::makeBias(OpBuilder &builder, Location loc, ArrayRef<double> values) const {
  Type element = weightType.getElementType();
  return areFinite(values, element) ? makeNumbers(builder, loc, RankedTensorType::get({count}, element), values)
                                    : Value();
}

Value LinearLayer::rebuilt(RuleRewriter &rewriter, Operation *before, Value weight, Value newBias) const {
  rewriter.setInsertionPoint(before);
  SmallVector<Value> operands{op->getOperand(0), weight ? weight : op->getOperand(1)};
  if (newBias)
    operands.push_back(newBias);
  else if (Value given = operandOf(op, 2))
    operands.push_back(given);
  OperationState state(rewriter.fused(before, {op}), op->getName(), operands, op->getResultTypes(), op->getAttrs());
  if (newBias && isa<GemmOp>(op))
    state.attributes.set("beta", rewriter.getF32FloatAttr(1));
  return rewriter.create(state)->getResult(0);
}

std::optional<std::vector<double>> perChannel(Value value, ArrayRef<DimExpr> dims, int64_t axis, int64_t channels) {
  auto type = rankedType(value);
  if (!type || !type.hasStaticShape() || type.getRank() > int64_t(dims.size()) || !isFloat(type.getElementType()))
    return std::nullopt;
  int64_t offset = int64_t(dims.size()) - type.getRank();
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (int64_t size = type.getDimSize(i); size != 1 && (i + offset != axis || size != channels))
      return std::nullopt;
  auto numbers = numbersOf(value);
  if (numbers && numbers->size() == 1)
    numbers->assign(channels, numbers->front());
  return numbers;
}

} // namespace firn
