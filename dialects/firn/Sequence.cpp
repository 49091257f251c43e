// Inference of sequences and optionals.
#include "dialects/firn/Inference.h"
#include "dialects/firn/Lists.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {

// --- types -----------------------------------------------------------------------------------------------------------

bool isListType(Type type) { return isa<SequenceType, OptionalType, MapType>(type); }

/// Whether a dimension is known to be the same wherever the type is: a number, or a symbol of the model's inputs.
static bool isLasting(const DimExpr &dim) {
  std::set<std::string> symbols;
  dim.collectSymbols(symbols);
  return llvm::none_of(symbols, [](const std::string &s) { return s[0] == 'u' || s[0] == '?'; });
}

Type storedType(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return type;
  SmallVector<DimExpr> dims = dimsOf(ranked);
  for (DimExpr &dim : dims)
    if (!isLasting(dim))
      dim = DimExpr(-1);
  return tensorType(ranked.getElementType(), dims);
}

static bool isUnknown(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && isa<UnknownType>(tensor.getElementType());
}

/// The element type of a tensor, or of a sequence that nothing is in yet.
static Type scalarOf(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor ? tensor.getElementType() : type;
}

/// What the tensors of two sequences have in common.
static Type joinElements(Type a, Type b) {
  if (a == b || isUnknown(b))
    return a;
  if (isUnknown(a))
    return b;
  if (isListType(a) || isListType(b))
    return joinTypes(a, b);
  if (scalarOf(a) != scalarOf(b))
    return {};
  if (!isa<TensorType>(a))
    return b;
  if (!isa<TensorType>(b))
    return a;
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  if (!x || !y || x.getRank() != y.getRank())
    return UnrankedTensorType::get(scalarOf(a));
  SmallVector<DimExpr> dims = dimsOf(x);
  for (auto [axis, dim] : llvm::enumerate(dims))
    if (dim != dimOf(y, axis) || !isLasting(dim))
      dim = DimExpr(-1);
  return tensorType(x.getElementType(), dims);
}

Type joinTypes(Type a, Type b) {
  if (a == b || isUnknown(b))
    return a;
  if (isUnknown(a))
    return b;
  if (auto x = dyn_cast<SequenceType>(a), y = dyn_cast<SequenceType>(b); x && y) {
    Type element = joinElements(x.getElement(), y.getElement());
    return element ? sequenceOf(element) : Type();
  }
  if (auto x = dyn_cast<OptionalType>(a), y = dyn_cast<OptionalType>(b); x && y) {
    Type element = joinElements(x.getElement(), y.getElement());
    return element ? optionalOf(element) : Type();
  }
  // What is no optional becomes one that has a value.
  if (isa<OptionalType>(a))
    return joinTypes(a, optionalOf(storedType(b)));
  if (isa<OptionalType>(b))
    return joinTypes(optionalOf(storedType(a)), b);
  return {};
}

std::optional<ListForm> listFormOf(Type type) {
  auto of = [](int32_t form, Type scalar) { return ListForm{form, isa<UnknownType>(scalar) ? 0 : dtypeOf(scalar)}; };
  auto isTensors = [](Type held) { return isa<TensorType>(held) || dtypeOf(held) != 0; };
  if (isa<UnrankedTensorType>(type))
    return of(FIRN_FORM_UNRANKED, scalarOf(type));
  if (auto sequence = dyn_cast<SequenceType>(type)) {
    if (auto map = dyn_cast<MapType>(sequence.getElement()))
      return of(FIRN_FORM_SEQUENCE_OF_MAPS, map.getValue());
    if (isTensors(sequence.getElement()))
      return of(FIRN_FORM_SEQUENCE, scalarOf(sequence.getElement()));
  }
  if (auto map = dyn_cast<MapType>(type))
    return of(FIRN_FORM_MAP, map.getValue());
  if (auto optional = dyn_cast<OptionalType>(type)) {
    auto sequence = dyn_cast<SequenceType>(optional.getElement());
    if (sequence && isTensors(sequence.getElement()))
      return of(FIRN_FORM_OPTIONAL_SEQUENCE, scalarOf(sequence.getElement()));
    if (isTensors(optional.getElement()))
      return of(FIRN_FORM_OPTIONAL, scalarOf(optional.getElement()));
  }
  return std::nullopt;
}

std::string typeText(Type type) {
  if (auto sequence = dyn_cast<SequenceType>(type))
    return "sequence of " + typeText(sequence.getElement());
  if (auto optional = dyn_cast<OptionalType>(type))
    return "optional " + typeText(optional.getElement());
  if (auto map = dyn_cast<MapType>(type))
    return "map from " + elementTypeText(map.getKey()) + " to " + elementTypeText(map.getValue());
  if (auto tensor = dyn_cast<TensorType>(type))
    return isUnknown(type) ? "unknown" : elementTypeText(tensor.getElementType()) + shapeText(type);
  return isa<NoneType>(type) ? "absent" : elementTypeText(type);
}

// --- rules -----------------------------------------------------------------------------------------------------------

/// The type of operand i if it is a sequence; reports other types, but for those that are not known yet.
static SequenceType sequenceOperand(Inference &inference, unsigned i) {
  Value value = operandOf(inference.operation(), i);
  auto type = value ? dyn_cast<SequenceType>(value.getType()) : SequenceType();
  if (!type && !(value && isUnknown(value.getType())))
    inference.error("expected a sequence as input " + Twine(i) + ", found " +
                    (value ? typeText(value.getType()) : "nothing"));
  return type;
}

static void requirePosition(Inference &inference, unsigned i) {
  Type type = inference.elementType(i);
  if (type && dtypeOf(type) != FIRN_I64 && dtypeOf(type) != FIRN_I32)
    inference.error("expected a position of int32 or int64, found " + elementTypeText(type));
}

/// Operand i as it is kept in a sequence; null where it is not known yet, reports what is no tensor.
static Type tensorOperand(Inference &inference, unsigned i) {
  Value value = operandOf(inference.operation(), i);
  if (value && isUnknown(value.getType()))
    return {};
  if (value && isa<TensorType>(value.getType()))
    return storedType(value.getType());
  inference.error("expected a tensor as input " + Twine(i) + ", found " +
                  (value ? typeText(value.getType()) : "nothing"));
  return {};
}

/// A tensor out of a list: what is not certain of its dimensions, only running tells.
static void tensorResult(Inference &inference, Type stored) {
  auto ranked = dyn_cast<RankedTensorType>(stored);
  if (!ranked)
    return inference.resultType(0, stored);
  Inference::Dims dims = dimsOf(ranked);
  for (auto [axis, dim] : llvm::enumerate(dims))
    if (!dim.isConstant())
      dim = inference.unknownDim(0, axis);
  inference.result(0, ranked.getElementType(), dims);
}

void inferSequenceEmpty(Inference &inference) {
  int64_t dtype = inference.intAttribute("dtype", FIRN_F32);
  Type element = elementTypeOf(inference.operation()->getContext(), int32_t(dtype));
  if (!element)
    return inference.error("dtype " + Twine(dtype) + " is no element type");
  inference.resultType(0, sequenceOf(element));
}

void inferSequenceConstruct(Inference &inference) {
  Type element;
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    Type type = tensorOperand(inference, i);
    if (!type)
      continue;
    Type joined = element ? joinElements(element, type) : type;
    if (!joined)
      return inference.error("expected tensors of one element type, found " + elementTypeText(scalarOf(element)) +
                             " and " + elementTypeText(scalarOf(type))); // C1
    element = joined;
  }
  if (element)
    inference.resultType(0, sequenceOf(element));
}

void inferSequenceInsert(Inference &inference) {
  SequenceType sequence = sequenceOperand(inference, 0);
  Type tensor = tensorOperand(inference, 1);
  requirePosition(inference, 2);
  if (!sequence)
    return;
  if (!tensor)
    return inference.resultType(0, sequence);
  Type joined = joinElements(sequence.getElement(), tensor);
  if (!joined)
    return inference.error("expected a tensor of the sequence's element type " +
                           elementTypeText(scalarOf(sequence.getElement())) + ", found " +
                           elementTypeText(scalarOf(tensor))); // C1
  inference.resultType(0, sequenceOf(joined));
}

void inferSequenceErase(Inference &inference) {
  requirePosition(inference, 1);
  if (SequenceType sequence = sequenceOperand(inference, 0))
    inference.resultType(0, sequence);
}

void inferSequenceAt(Inference &inference) {
  requirePosition(inference, 1);
  // Of a sequence that nothing is in yet (it is empty, or a loop fills it) nothing is known.
  if (SequenceType sequence = sequenceOperand(inference, 0);
      sequence && isa<TensorType, MapType>(sequence.getElement()))
    tensorResult(inference, sequence.getElement());
}

void inferSequenceLength(Inference &inference) {
  sequenceOperand(inference, 0);
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 64), Inference::Dims());
}

/// The size of each piece along the axis where all have one, and whether the axis stays.
static DimExpr pieceSize(Inference &inference, const DimExpr &whole) {
  if (!inference.has(1))
    return DimExpr(1);
  auto sizes = inference.elements(1);
  auto dims = inference.dims(1);
  if (!sizes || !dims || sizes->empty())
    return DimExpr(-1);
  const DimExpr &first = (*sizes)[0];
  if (dims->empty()) // the last piece may be smaller
    return first.isConstant() && whole.isConstant() && first.constant() > 0 && whole.constant() % first.constant() == 0
               ? first
               : DimExpr(-1);
  return first.isConstant() && llvm::all_of(*sizes, [&](const DimExpr &size) { return size == first; }) ? first
                                                                                                        : DimExpr(-1);
}

void inferSplitToSequence(Inference &inference) {
  Type element = inference.elementType(0);
  auto dims = inference.dims(0);
  if (!element)
    return;
  if (!dims)
    return inference.resultType(0, sequenceOf(UnrankedTensorType::get(element)));
  auto axis = inference.axis(inference.intAttribute("axis", 0), int64_t(dims->size())); // C1
  if (!axis)
    return;
  if (dims->empty())
    return inference.error("expected at least one axis to split, found a scalar");
  if (!inference.has(1) && inference.intAttribute("keepdims", 1) == 0)
    dims->erase(dims->begin() + *axis);
  else
    (*dims)[*axis] = pieceSize(inference, (*dims)[*axis]);
  inference.resultType(0, sequenceOf(storedType(tensorType(element, *dims))));
}

void inferConcatFromSequence(Inference &inference) {
  SequenceType sequence = sequenceOperand(inference, 0);
  if (!sequence)
    return;
  auto ranked = dyn_cast<RankedTensorType>(sequence.getElement());
  if (!ranked)
    return isListType(sequence.getElement())
               ? inference.error("expected a sequence of tensors, found " + typeText(sequence))
               : inference.resultType(0, UnrankedTensorType::get(scalarOf(sequence.getElement())));
  bool isNew = inference.intAttribute("new_axis", 0) != 0;
  auto axis = inference.axis(inference.intAttribute("axis", 0), ranked.getRank() + isNew); // C1
  if (!axis)
    return;
  if (ranked.getRank() + isNew == 0)
    return inference.error("expected tensors of at least one axis, found scalars");
  Inference::Dims dims = dimsOf(ranked);
  if (isNew)
    dims.insert(dims.begin() + *axis, DimExpr(0));
  for (auto [i, dim] : llvm::enumerate(dims))
    if (int64_t(i) == *axis || !dim.isConstant())
      dim = inference.unknownDim(0, i);
  inference.result(0, ranked.getElementType(), dims);
}

void inferOptional(Inference &inference) {
  Value value = operandOf(inference.operation(), 0);
  if (value && isUnknown(value.getType()))
    return;
  if (value && isa<OptionalType, MapType>(value.getType()))
    return inference.error("expected a tensor or a sequence, found " + typeText(value.getType()));
  if (value)
    return inference.resultType(0, optionalOf(storedType(value.getType())));
  auto type = inference.operation()->getAttrOfType<TypeAttr>("type");
  if (!type || !isa<TensorType, SequenceType>(type.getValue()))
    return inference.error("expected an input, or attribute 'type' to say what the optional may hold"); // C1
  inference.resultType(0, optionalOf(storedType(type.getValue())));
}

void inferOptionalHasElement(Inference &inference) {
  Value value = operandOf(inference.operation(), 0);
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 1), Inference::Dims());
  if (!value)
    inference.resultElements(0, {DimExpr(0)});
  else if (!isUnknown(value.getType()) && !isa<OptionalType>(value.getType()))
    inference.resultElements(0, {DimExpr(1)});
}

void inferOptionalGetElement(Inference &inference) {
  Value value = operandOf(inference.operation(), 0);
  if (!value)
    return inference.error("expected an optional, a tensor or a sequence, found nothing");
  auto optional = dyn_cast<OptionalType>(value.getType());
  if (optional && isa<TensorType>(optional.getElement()))
    return tensorResult(inference, optional.getElement());
  if (!isUnknown(value.getType()))
    inference.resultType(0, optional ? optional.getElement() : value.getType());
}

} // namespace firn
