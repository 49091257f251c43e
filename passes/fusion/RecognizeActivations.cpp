// RecognizeActivations: activation functions that a model spells out become one operation each.
//
// In:      firn ops, shapes inferred.     Out: firn.gelu, swish, hard_swish, hard_sigmoid, mish, softmax.
// Keeps:   values up to rounding: constants of the spelt-out form (1/sqrt(2), 0.044715, 1/6) may be off by the digits
//          of a 16-bit float. The operations taken in stay where others read their results.
// Leaves:  products with other factors, other constants, or another shape in between; ln(1 + e^x) alone, which
//          overflows where softplus does not; swish in a graph whose opset nobody named: runtimes lack the operator.
//   x * 0.5 * (1 + erf(x / sqrt(2)))                                        ==>   firn.gelu %x
//   x * 0.5 * (1 + tanh(0.79788456 * (x + 0.044715 * x^3)))                 ==>   firn.gelu %x {approximate = "tanh"}
//   x * sigmoid(a * x)                                                      ==>   firn.swish %x {alpha = a}
//   x * clip(x + 3, 0, 6) / 6, x * hard_sigmoid(x; 1/6, 1/2)                ==>   firn.hard_swish %x
//   clip(x + 3, 0, 6) / 6, clip(x / 6 + 1/2, 0, 1)                          ==>   firn.hard_sigmoid %x
//   x * tanh(ln(1 + e^x))                                                   ==>   firn.mish %x
//   e^(x - max(x)) / sum(e^(x - max(x)))                                    ==>   firn.softmax %x
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/fusion/Products.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_RECOGNIZEACTIVATIONS
#include "passes/Passes.h.inc"

namespace {

constexpr double rootOfTwo = 1.4142135623730951, tanhScale = 0.7978845608028654, cubeScale = 0.044715;

bool isFloatTensor(Value value) {
  auto type = rankedType(value);
  return type && isFloat(type.getElementType());
}

/// x if `value` is factor * x.
Value scaledFrom(Value value, double factor) {
  Product product = productOf(value);
  return product.factors.size() == 1 && product.hasNumber(factor) ? product.factors[0] : Value();
}

/// x if `value` is f(x) for the operation f, with one use or not.
template <typename OpT> Value operandOfA(Value value) {
  auto op = value.getDefiningOp<OpT>();
  return op ? Value(op.getX()) : Value();
}

/// Whether `value` is 0.044715 * x * x * x.
bool isScaledCube(Value value, Value x) {
  Product cube = productOf(value);
  if (!cube.hasNumber(cubeScale))
    return false;
  if (cube.take(x) && cube.take(x) && cube.take(x))
    return cube.factors.empty();
  // x * (x * x) where others read the square too
  cube = productOf(value);
  if (!cube.take(x) || cube.factors.size() != 1)
    return false;
  Product square = productOf(cube.factors[0]);
  return square.number == 1 && square.take(x) && square.take(x) && square.factors.empty();
}

/// Whether `value` is 0.79788456 * (x + 0.044715 x^3), or 0.79788456 * x * (1 + 0.044715 x^2).
bool isTanhArgument(Value value, Value x) {
  Product product = productOf(value);
  if (!product.hasNumber(tanhScale))
    return false;
  if (product.factors.size() == 1) {
    auto sum = product.factors[0].getDefiningOp<AddOp>();
    return sum &&
           ((sum.getA() == x && isScaledCube(sum.getB(), x)) || (sum.getB() == x && isScaledCube(sum.getA(), x)));
  }
  return product.take(x) && product.factors.size() == 1 && [&] {
    Value rest = besideNumber<AddOp>(product.factors[0], 1);
    if (!rest)
      return false;
    Product square = productOf(rest);
    return square.hasNumber(cubeScale) && square.take(x) && square.take(x) && square.factors.empty();
  }();
}

/// x if `value` is clip(x + 3, 0, 6).
Value shiftedClip(Value value, double shift, double most) {
  auto clip = value.getDefiningOp<ClipOp>();
  if (!clip || !isSplatOf(operandOf(clip, 1), 0.0) || splatOf(operandOf(clip, 2)) != most)
    return {};
  return besideNumber<AddOp>(clip.getX(), shift);
}

struct Match {
  StringRef name;
  double alpha = 1;
};

/// Factors {x, g(x)} of a product with this number.
std::optional<Match> matchFactors(Value x, Value other, double number) {
  if (isNear(number, 0.5)) {
    Value inner = besideNumber<AddOp>(other, 1);
    if (Value argument = inner ? operandOfA<ErfOp>(inner) : Value();
        argument && scaledFrom(argument, 1 / rootOfTwo) == x)
      return Match{"gelu"};
    if (Value argument = inner ? operandOfA<TanhOp>(inner) : Value(); argument && isTanhArgument(argument, x))
      return Match{"gelu_tanh"};
  }
  if (isNear(number, 1.0 / 6) && shiftedClip(other, 3, 6) == x)
    return Match{"hard_swish"};
  if (number != 1)
    return std::nullopt;
  if (auto hard = other.getDefiningOp<HardSigmoidOp>())
    if (hard.getX() == x && isNear(hard.getAlpha().convertToFloat(), 1.0 / 6) &&
        hard.getBeta().convertToFloat() == 0.5f)
      return Match{"hard_swish"};
  if (Value argument = operandOfA<SigmoidOp>(other)) {
    Product scaled = productOf(argument);
    if (scaled.factors.size() == 1 && scaled.factors[0] == x && std::isfinite(scaled.number) && scaled.number != 0)
      return Match{"swish", scaled.number};
  }
  if (Value argument = operandOfA<TanhOp>(other)) {
    if (operandOfA<SoftplusOp>(argument) == x)
      return Match{"mish"};
    Value sum = operandOfA<LogOp>(argument);
    Value power = sum ? besideNumber<AddOp>(sum, 1) : Value();
    if (power && operandOfA<ExpOp>(power) == x)
      return Match{"mish"};
  }
  return std::nullopt;
}

bool recognizeProduct(Operation *op, RuleRewriter &rewriter) {
  Value root = op->getResult(0);
  if (!isFloatTensor(root))
    return false;
  Product product = productOf(root);
  if (product.factors.size() == 1 && isNear(product.number, 1.0 / 6)) {
    Value x = shiftedClip(product.factors[0], 3, 6);
    // Behind a product with x itself it is part of a hard_swish.
    bool isPart = x && root.hasOneUse() && isa<MulOp>(*root.user_begin()) &&
                  llvm::is_contained((*root.user_begin())->getOperands(), x);
    if (!x || isPart)
      return false;
    rewriter.replaceWith<HardSigmoidOp>(op, product.operations, "hard_sigmoid", op->getResult(0).getType(), x,
                                        rewriter.getF32FloatAttr(1.0f / 6), rewriter.getF32FloatAttr(0.5f));
    return true;
  }
  if (product.factors.size() != 2)
    return false;
  for (unsigned i : {0u, 1u}) {
    Value x = product.factors[i];
    auto match = haveSameType(x, root) ? matchFactors(x, product.factors[1 - i], product.number) : std::nullopt;
    if (!match)
      continue;
    auto module = op->getParentOfType<ModuleOp>();
    if (match->name == "swish" && staysGraph(module) && !module->hasAttr(targetOpsetAttribute)) {
      rewriter.refuse(op, "swish is of opset 24, which ONNX Runtime does not run yet; --opset=24 writes it");
      return false;
    }
    int64_t since = match->name.starts_with("gelu") ? 20
                    : match->name == "hard_swish"   ? 14
                    : match->name == "swish"        ? 24
                                                    : 18;
    if (!rewriter.mayWrite(op, match->name, since))
      return false;
    ArrayRef<Operation *> parts = ArrayRef(product.operations).drop_back();
    Type type = root.getType();
    if (match->name == "gelu")
      rewriter.replaceWith<GeluOp>(op, parts, "gelu", type, x, rewriter.getStringAttr("none"));
    else if (match->name == "gelu_tanh")
      rewriter.replaceWith<GeluOp>(op, parts, "gelu by tanh", type, x, rewriter.getStringAttr("tanh"));
    else if (match->name == "hard_swish")
      rewriter.replaceWith<HardSwishOp>(op, parts, "hard_swish", type, x);
    else if (match->name == "swish")
      rewriter.replaceWith<SwishOp>(op, parts, "swish", type, x, rewriter.getF32FloatAttr(float(match->alpha)));
    else
      rewriter.replaceWith<MishOp>(op, parts, "mish", type, x);
    return true;
  }
  return false;
}

/// clip(alpha * x + beta, 0, 1) with positive alpha.
bool recognizeHardSigmoid(ClipOp op, RuleRewriter &rewriter) {
  if (!isFloatTensor(op.getX()) || !isSplatOf(operandOf(op, 1), 0.0) || splatOf(operandOf(op, 2)) != 1.0)
    return false;
  auto sum = op.getX().getDefiningOp<AddOp>();
  if (!sum)
    return false;
  for (auto [scaled, constant] : {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
    auto beta = splatOf(constant);
    if (!beta || !haveSameType(scaled, op.getResult()))
      continue;
    Product product = productOf(scaled);
    if (product.factors.size() != 1 || product.operations.empty() || !haveSameType(product.factors[0], op.getResult()))
      continue;
    rewriter.replaceWith<HardSigmoidOp>(op, {sum}, "hard_sigmoid", op.getType(), product.factors[0],
                                        rewriter.getF32FloatAttr(float(product.number)),
                                        rewriter.getF32FloatAttr(float(*beta)));
    return true;
  }
  return false;
}

/// The one axis of a reduction of `x` that keeps it with length 1.
std::optional<int64_t> keptAxis(Operation *reduce, Value x) {
  auto axes = reduce->getOperand(0) == x ? reducedAxes(reduce) : std::nullopt;
  auto keep = reduce->getAttrOfType<IntegerAttr>("keepdims");
  if (!axes || axes->size() != 1 || (keep && !keep.getInt()))
    return std::nullopt;
  return (*axes)[0];
}

bool recognizeSoftmax(DivOp op, RuleRewriter &rewriter) {
  auto power = op.getA().getDefiningOp<ExpOp>();
  auto sum = op.getB().getDefiningOp<ReduceSumOp>();
  auto difference = power ? power.getX().getDefiningOp<SubOp>() : SubOp();
  auto most = difference ? difference.getB().getDefiningOp<ReduceMaxOp>() : ReduceMaxOp();
  if (!sum || !most)
    return false;
  auto axis = keptAxis(sum, power), maxAxis = keptAxis(most, difference.getA());
  if (!axis || axis != maxAxis || !haveSameType(difference.getA(), op.getResult()))
    return false;
  rewriter.replaceWith<SoftmaxOp>(op, {most, difference, power, sum}, "softmax", op.getType(), difference.getA(),
                                  rewriter.getI64IntegerAttr(*axis));
  return true;
}

bool recognizeQuotient(Operation *op, RuleRewriter &rewriter) {
  return recognizeSoftmax(cast<DivOp>(op), rewriter) || recognizeProduct(op, rewriter);
}

struct RecognizeActivations : impl::RecognizeActivationsBase<RecognizeActivations> {
  using RecognizeActivationsBase::RecognizeActivationsBase;

  void runOnOperation() override {
    PassReport report("recognize-activations", limit);
    RuleSet rules;
    rules.addFor<MulOp>(recognizeProduct);
    rules.addFor<DivOp>(recognizeQuotient);
    rules.add<ClipOp>(recognizeHardSigmoid);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
