#include "compiler/codegen/cpu/SequenceActivation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace firn {
namespace {

/// A function that ONNX knows, and the parameters that it has unless others are given.
struct KnownActivation {
  StringLiteral name;
  bool hasAlpha, hasBeta;
  double alpha, beta;
};
constexpr KnownActivation knownActivations[] = {
    {"affine", true, true, 1, 0},
    {"elu", true, false, 1, 0},
    {"hardsigmoid", true, true, double(0.2f), 0.5},
    {"leakyrelu", true, false, double(0.01f), 0},
    {"relu", false, false, 0, 0},
    {"scaledtanh", true, true, 1, 1},
    {"sigmoid", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
    {"softsign", false, false, 0, 0},
    {"tanh", false, false, 0, 0},
    {"thresholdedrelu", true, false, 1, 0},
};

SmallVector<double> floatsOf(Operation *op, StringRef name) {
  SmallVector<double> values;
  Attribute given = op->getAttr(name);
  if (auto list = dyn_cast_or_null<DenseF32ArrayAttr>(given))
    values.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else if (auto array = dyn_cast_or_null<ArrayAttr>(given))
    for (Attribute element : array)
      if (auto number = dyn_cast<FloatAttr>(element))
        values.push_back(number.getValueAsDouble());
  return values;
}

bool isSame(const GateActivation &a, const GateActivation &b) {
  return a.name == b.name && a.alpha == b.alpha && a.beta == b.beta;
}

} // namespace

std::optional<SmallVector<GateActivation>> readActivations(Operation *op, ArrayRef<StringRef> defaults,
                                                           int64_t directions, std::string &whyNot) {
  SmallVector<double> alphas = floatsOf(op, "activation_alpha"), betas = floatsOf(op, "activation_beta");
  auto names = op->getAttrOfType<ArrayAttr>("activations");
  auto clip = op->getAttrOfType<FloatAttr>("clip");
  size_t each = defaults.size(), alphaAt = 0, betaAt = 0;
  SmallVector<GateActivation> list;
  // The lists of parameters hold entries only for those functions that have one.
  for (size_t i = 0; i < each * size_t(directions); ++i) {
    GateActivation activation;
    activation.name =
        names && i < names.size() ? cast<StringAttr>(names[i]).getValue().lower() : defaults[i % each].str();
    auto known = llvm::find_if(knownActivations, [&](const auto &entry) { return entry.name == activation.name; });
    if (known == std::end(knownActivations)) {
      whyNot = "activation '" + activation.name + "'";
      return std::nullopt;
    }
    activation.alpha = known->hasAlpha && alphaAt < alphas.size() ? alphas[alphaAt++] : known->alpha;
    activation.beta = known->hasBeta && betaAt < betas.size() ? betas[betaAt++] : known->beta;
    if (clip)
      activation.clip = clip.getValueAsDouble();
    if (i >= each && !isSame(activation, list[i - each])) {
      whyNot = "activations that differ between directions";
      return std::nullopt;
    }
    list.push_back(activation);
  }
  list.truncate(each);
  return list;
}

Value applyActivation(KernelContext &context, const GateActivation &activation, Value x) {
  LoopBuilder &l = context.l;
  Elements &e = context.elements;
  Type type = x.getType();
  auto number = [&](double value) { return e.number(value, type); };
  auto less = [&](Value a, Value b) -> Value {
    return l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::OLT, a, b);
  };
  auto select = [&](Value c, Value a, Value b) -> Value { return l.b.create<arith::SelectOp>(l.loc, c, a, b); };
  auto divide = [&](Value a, Value b) -> Value { return l.b.create<arith::DivFOp>(l.loc, a, b); };
  auto negative = [&](Value a) -> Value { return l.b.create<arith::NegFOp>(l.loc, a); };
  auto exp = [&](Value a) -> Value { return l.b.create<math::ExpOp>(l.loc, a); };
  auto tanh = [&](Value a) -> Value { return l.b.create<math::TanhOp>(l.loc, a); };
  auto abs = [&](Value a) -> Value { return l.b.create<math::AbsFOp>(l.loc, a); };
  Value zero = number(0), one = number(1);
  if (activation.clip) {
    Value high = number(*activation.clip), low = number(-*activation.clip);
    x = select(less(high, x), high, x);
    x = select(less(x, low), low, x);
  }
  auto line = [&] { return e.fma(x, number(activation.alpha), number(activation.beta)); };
  StringRef name = activation.name;
  if (name == "sigmoid")
    return divide(one, e.add(one, exp(negative(x))));
  if (name == "tanh")
    return tanh(x);
  if (name == "relu")
    return select(less(x, zero), zero, x);
  if (name == "affine")
    return line();
  if (name == "hardsigmoid") {
    Value y = line();
    y = select(less(y, zero), zero, y);
    return select(less(one, y), one, y);
  }
  if (name == "leakyrelu")
    return select(less(x, zero), e.mul(x, number(activation.alpha)), x);
  if (name == "elu")
    return select(less(x, zero), e.mul(number(activation.alpha), l.b.create<math::ExpM1Op>(l.loc, x)), x);
  if (name == "scaledtanh")
    return e.mul(number(activation.alpha), tanh(e.mul(number(activation.beta), x)));
  if (name == "softplus")
    return e.add(select(less(zero, x), x, zero), l.b.create<math::Log1pOp>(l.loc, exp(negative(abs(x)))));
  if (name == "softsign")
    return divide(x, e.add(one, abs(x)));
  return select(less(x, number(activation.alpha)), zero, x); // thresholdedrelu
}

} // namespace firn
