// Inference: what rules see of an operation, and the check of types against the rules.
#include "dialects/firn/Inference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace firn {

Inference::Inference(Operation *operation, Fallback byLibrary)
    : op(operation), library(std::move(byLibrary)), results(operation->getNumResults()) {}

bool Inference::has(unsigned i) const { return bool(operandOf(op, i)); }

Type Inference::elementType(unsigned i) const {
  Value value = operandOf(op, i);
  if (!value)
    return {};
  auto tensor = dyn_cast<TensorType>(value.getType());
  return !tensor || isa<UnknownType>(tensor.getElementType()) ? Type() : tensor.getElementType();
}

std::optional<Inference::Dims> Inference::dims(unsigned i) const {
  Value value = operandOf(op, i);
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  return type ? std::optional<Dims>(dimsOf(type)) : std::nullopt;
}

std::optional<Inference::Dims> Inference::elements(unsigned i) const {
  Value value = operandOf(op, i);
  return value ? integerElements(value) : std::nullopt;
}
std::optional<Inference::Dims> Inference::numbers(unsigned i) const {
  Value value = operandOf(op, i);
  return value ? knownNumbers(value) : std::nullopt;
}

int64_t Inference::intAttribute(StringRef name, int64_t fallbackValue) const {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getValue().getSExtValue() : fallbackValue;
}
StringRef Inference::stringAttribute(StringRef name, StringRef fallbackValue) const {
  auto attribute = op->getAttrOfType<StringAttr>(name);
  return attribute ? attribute.getValue() : fallbackValue;
}
std::optional<SmallVector<int64_t>> Inference::intsAttribute(StringRef name) const {
  auto attribute = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return attribute ? std::optional<SmallVector<int64_t>>(SmallVector<int64_t>(attribute.asArrayRef())) : std::nullopt;
}

void Inference::result(unsigned i, Type elementType, std::optional<Dims> dims) {
  if (i >= results.size())
    return;
  if (dims)
    for (auto [axisIndex, dim] : llvm::enumerate(*dims))
      if (!dim.isWhole())
        dim = unknownDim(i, axisIndex);
  results[i].elementType = elementType;
  results[i].dims = std::move(dims);
}
void Inference::resultType(unsigned i, Type type) {
  if (i < results.size())
    results[i].type = type;
}
void Inference::resultElements(unsigned i, Dims elements) {
  bool isKnown = llvm::any_of(elements, [](const DimExpr &e) { return !e.isUnknown(); });
  if (i < results.size() && elements.size() <= 1024 && (isKnown || elements.empty()))
    results[i].elements = std::move(elements);
}

int64_t unknownResultId(Operation *op, unsigned resultIndex) {
  auto ids = op->getAttrOfType<DenseI64ArrayAttr>(resultIdsAttribute);
  return ids && resultIndex < ids.size() ? ids[resultIndex] : int64_t(resultIndex);
}

DimExpr Inference::unknownDim(unsigned resultIndex, unsigned axisIndex) const {
  auto id = op->getAttrOfType<IntegerAttr>("firn.id");
  if (!id) {
    // The module counts, so that ids are unique and the same in every compilation.
    ModuleOp module = op->getParentOfType<ModuleOp>();
    Operation *counter = module ? module.getOperation() : op;
    auto next = counter->getAttrOfType<IntegerAttr>("firn.next_id");
    Builder builder(op->getContext());
    id = builder.getI64IntegerAttr(next ? next.getInt() : 0);
    op->setAttr("firn.id", id);
    counter->setAttr("firn.next_id", builder.getI64IntegerAttr(id.getInt() + 1));
  }
  return DimExpr::symbol("u" + std::to_string(id.getInt()) + "." + std::to_string(unknownResultId(op, resultIndex)) +
                         "." + std::to_string(axisIndex));
}
void Inference::unknownResult(unsigned i, Type elementType, unsigned rank) {
  Dims dims;
  for (unsigned axisIndex = 0; axisIndex < rank; ++axisIndex)
    dims.push_back(unknownDim(i, axisIndex));
  result(i, elementType, dims);
}

void Inference::error(const Twine &message, StringRef code) { messages.push_back({message.str(), code}); }

void Inference::requireEqual(const DimExpr &a, const DimExpr &b, const Twine &what) {
  if (!a.isWhole() || !b.isWhole() || a == b)
    return;
  if (a.isConstant() && b.isConstant())
    return error("expected " + what + " to be equal, found " + a.str() + " and " + b.str());
  required.push_back({a, b, ("expected " + what + " to be equal").str()});
}
void Inference::requireBroadcast(const DimExpr &a, const DimExpr &b, const Twine &what) {
  DimExpr one(1);
  if (!a.isWhole() || !b.isWhole() || a == b || a == one || b == one)
    return;
  // 0 where one of them is 1, else the difference.
  DimExpr product = (a - one) * (b - one);
  DimExpr isNeither = DimExpr::min(one, DimExpr::max(product, DimExpr(0) - product));
  required.push_back({a, a + isNeither * (b - a), ("expected " + what + " to be equal, or one of them 1").str()});
}
void Inference::requireAtLeast(const DimExpr &size, const DimExpr &least, const Twine &what) {
  DimExpr rest = size - least;
  if (!rest.isWhole() || rest.isAtLeast(0))
    return;
  if (rest.isConstant())
    return error("expected " + what + ", found " + size.str());
  required.push_back({rest, std::nullopt, ("expected " + what).str()});
}

std::optional<int64_t> Inference::axis(int64_t axisValue, int64_t rank) {
  if (axisValue >= -rank && axisValue < std::max<int64_t>(rank, 1))
    return axisValue < 0 ? axisValue + rank : axisValue;
  error("expected an axis in [" + Twine(-rank) + ", " + Twine(rank - 1) + "], found " + Twine(axisValue),
        "import.attribute");
  return std::nullopt;
}

void Inference::fallback() {
  if (library)
    library(*this);
}

void inferByLibrary(Inference &inference) { inference.fallback(); }

Location problemLocation(Operation *operation, StringRef code) {
  Builder builder(operation->getContext());
  SmallVector<Attribute> inputs;
  for (Value operand : operation->getOperands()) {
    auto result = dyn_cast<OpResult>(operand);
    inputs.push_back(builder.getArrayAttr({LocationAttr(operand.getLoc()),
                                           builder.getI64IntegerAttr(result ? result.getResultNumber() : 0),
                                           TypeAttr::get(operand.getType())}));
  }
  while (!inputs.empty() && isAbsent(operation->getOperand(unsigned(inputs.size() - 1))))
    inputs.pop_back();
  DictionaryAttr problem =
      builder.getDictionaryAttr({builder.getNamedAttr(problemCodeKey, builder.getStringAttr(code)),
                                 builder.getNamedAttr(problemInputsKey, builder.getArrayAttr(inputs))});
  return FusedLoc::get({operation->getLoc()}, problem, operation->getContext());
}

/// Whether a declared dimension can be the inferred one: one of them unknown, or the same number.
static bool agree(int64_t declared, const DimExpr &inferred) {
  return ShapedType::isDynamic(declared) || !inferred.isConstant() || inferred.constant() == declared;
}

LogicalResult verifyInferred(Operation *operation) {
  // Before inference everything is unknown; the inference pass reports by node then.
  for (Value operand : operation->getOperands())
    if (auto type = dyn_cast<TensorType>(operand.getType()))
      if (!isa<RankedTensorType>(type) || isa<UnknownType>(type.getElementType()))
        return success();
  for (Type type : operation->getResultTypes())
    if (isa<UnrankedTensorType>(type))
      return success();
  Inference inference(operation);
  cast<Operator>(operation).inferShapes(inference);
  LogicalResult status = success();
  for (const Inference::Error &error : inference.errors())
    status = operation->emitOpError(error.message);
  if (failed(status))
    return status;
  for (auto [declaredType, inferred] : llvm::zip(operation->getResultTypes(), inference.inferred())) {
    auto declared = dyn_cast<RankedTensorType>(declaredType);
    if (!declared || !inferred.dims || !inferred.elementType)
      continue;
    bool fits =
        declared.getElementType() == inferred.elementType && declared.getRank() == int64_t(inferred.dims->size());
    for (int64_t i = 0; fits && i < declared.getRank(); ++i)
      fits = agree(declared.getDimSize(i), (*inferred.dims)[i]);
    if (!fits)
      status = operation->emitOpError("expected result type ")
               << tensorType(inferred.elementType, *inferred.dims) << ", found " << declaredType;
  }
  return status;
}

std::optional<Inference::Dims> broadcast(Inference &inference, const Inference::Dims &a, const Inference::Dims &b) {
  size_t rank = std::max(a.size(), b.size());
  std::string shapes = shapeText(a) + " and " + shapeText(b);
  Inference::Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    DimExpr x = i + a.size() < rank ? DimExpr(1) : a[i + a.size() - rank];
    DimExpr y = i + b.size() < rank ? DimExpr(1) : b[i + b.size() - rank];
    if (x == y || (y.isConstant() && y.constant() == 1)) {
      dims.push_back(x);
    } else if (x.isConstant() && x.constant() == 1) {
      dims.push_back(y);
    } else if (x.isConstant() && y.isConstant()) {
      inference.error("expected shapes that broadcast, found " + shapeText(a) + " and " + shapeText(b));
      return std::nullopt;
    } else if (x.isConstant() || y.isConstant()) {
      inference.requireBroadcast(x, y, "the sizes on axis " + Twine(i) + " of " + shapes);
      dims.push_back(x.isConstant() ? x : y);
    } else {
      inference.requireBroadcast(x, y, "the sizes on axis " + Twine(i) + " of " + shapes);
      // Two different symbols: equal, or one of them 1. The greater one, but 0 where 0 meets 1.
      DimExpr greater = DimExpr::max(x, y);
      dims.push_back(x.isAtLeast(1) && y.isAtLeast(1) ? greater : DimExpr::min(x * y, greater));
    }
  }
  return dims;
}

} // namespace firn
