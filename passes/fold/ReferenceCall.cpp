// ReferenceCall: attributes, evaluation and shapes through reference kernels.
#include "passes/fold/ReferenceCall.h"

#include "dialects/firn/Lists.h"
#include "runtime/abi/model.h"
#include "runtime/kernels/Table.h"
#include <cstdlib>

using namespace mlir;

namespace firn {

// --- attributes ------------------------------------------------------------------------------------------------------

ReferenceAttributes::ReferenceAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName().getValue();
    // A string called layout is the compiler's own (nhwc); the recurrent operators have an integer of that name.
    bool isOurs =
        name.starts_with("firn.") || name == "callee" || (name == "layout" && isa<StringAttr>(attribute.getValue()));
    if (!isOurs)
      add(name, attribute.getValue());
  }
  auto operation = dyn_cast<CallOp>(op);
  const firn_custom_operator *custom = operation ? kernels::findCustom(operation.getCallee().str()) : nullptr;
  for (int32_t i = 0; custom && i < custom->attribute_count; ++i) {
    const firn_attribute &fallback = custom->attributes[i].attribute;
    if (fallback.data && !op->hasAttr(fallback.name))
      attributes.push_back(fallback);
  }
}

void ReferenceAttributes::add(StringRef name, Attribute value) {
  firn_attribute out{};
  out.count = 1;
  auto keep = [&](const void *from, size_t size) {
    bytes.emplace_back(static_cast<const char *>(from), static_cast<const char *>(from) + size);
    return static_cast<const void *>(bytes.back().data());
  };
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    int64_t v = integer.getValue().getSExtValue();
    out.kind = FIRN_ATTR_INT;
    out.data = keep(&v, sizeof v);
  } else if (auto real = dyn_cast<FloatAttr>(value)) {
    float v = real.getValue().convertToFloat();
    out.kind = FIRN_ATTR_FLOAT;
    out.data = keep(&v, sizeof v);
  } else if (auto text = dyn_cast<StringAttr>(value)) {
    out.kind = FIRN_ATTR_STRING;
    texts.push_back(text.getValue().str());
    out.data = texts.back().data();
    out.count = texts.back().size();
  } else if (auto ints = dyn_cast<DenseI64ArrayAttr>(value)) {
    out.kind = FIRN_ATTR_INTS;
    out.count = ints.size();
    out.data = keep(ints.asArrayRef().data(), ints.size() * sizeof(int64_t));
  } else if (auto floats = dyn_cast<DenseF32ArrayAttr>(value)) {
    out.kind = FIRN_ATTR_FLOATS;
    out.count = floats.size();
    out.data = keep(floats.asArrayRef().data(), floats.size() * sizeof(float));
  } else if (auto elements = dyn_cast<ElementsAttr>(value)) {
    auto expanded = expandedBytes(elements);
    auto type = dyn_cast<RankedTensorType>(elements.getType());
    if (!expanded || !type || type.getRank() > FIRN_MAX_RANK)
      return;
    bytes.push_back(std::move(*expanded));
    firn_view view{};
    view.data = bytes.back().data();
    view.dtype = dtypeOf(type.getElementType());
    view.rank = type.getRank();
    llvm::copy(type.getShape(), view.dims);
    views.push_back(view);
    out.kind = FIRN_ATTR_TENSOR;
    out.data = &views.back();
  } else if (auto list = dyn_cast<ArrayAttr>(value)) {
    if (!keepStrings(list))
      return;
    out.kind = FIRN_ATTR_STRINGS;
    out.count = stringLists.back().size();
    out.data = stringLists.back().data();
  } else if (auto tensor = dyn_cast<DictionaryAttr>(value)) { // of strings
    auto dims = tensor.getAs<DenseI64ArrayAttr>("dims");
    auto strings = tensor.getAs<ArrayAttr>("strings");
    if (!dims || !strings || dims.size() > FIRN_MAX_RANK || !keepStrings(strings))
      return;
    firn_view view{};
    view.data = stringLists.back().data();
    view.dtype = FIRN_STRING;
    view.rank = dims.size();
    llvm::copy(dims.asArrayRef(), view.dims);
    views.push_back(view);
    out.kind = FIRN_ATTR_TENSOR;
    out.data = &views.back();
  } else {
    return;
  }
  texts.push_back(name.str());
  out.name = texts.back().c_str();
  attributes.push_back(out);
}

bool ReferenceAttributes::keepStrings(ArrayAttr list) {
  stringLists.emplace_back();
  for (Attribute entry : list) {
    auto string = dyn_cast<StringAttr>(entry);
    if (!string)
      return false;
    texts.push_back(string.getValue().str());
    stringLists.back().push_back({texts.back().data(), int64_t(texts.back().size())});
  }
  return true;
}

const firn_operator *referenceOperator(Operation *op) {
  auto operation = dyn_cast<Operator>(op);
  return operation ? kernels::find(operation.operatorName()) : nullptr;
}

// --- calls -----------------------------------------------------------------------------------------------------------

std::optional<std::vector<char>> expandedBytes(ElementsAttr value) {
  auto bytes = constantBytes(value);
  auto type = dyn_cast_or_null<RankedTensorType>(value ? value.getType() : Type());
  if (!bytes || !type || dtypeOf(type.getElementType()) == FIRN_STRING)
    return std::nullopt;
  if (!bytes->isSplat)
    return std::vector<char>(bytes->bytes.begin(), bytes->bytes.end());
  std::vector<char> expanded;
  expanded.reserve(bytes->bytes.size() * type.getNumElements());
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    expanded.insert(expanded.end(), bytes->bytes.begin(), bytes->bytes.end());
  return expanded;
}

namespace {
/// One call of a reference kernel with everything that it needs.
class Call {
public:
  Call(Operation *op) : attributes(op), inputs(op->getNumOperands()), outputs(op->getNumResults()) {
    for (firn_view &view : outputs) {
      view = {};
      view.rank = 0; // wanted: kernels leave out outputs of negative rank
    }
    for (firn_view &view : inputs) {
      view = {};
      view.rank = -1;
    }
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.attributes = attributes.list().data();
    call.input_count = inputs.size();
    call.output_count = outputs.size();
    call.attribute_count = attributes.list().size();
    call.message = message;
    call.message_capacity = sizeof message;
    call.context = this;
    call.random = &random;
    call.scratch = [](firn_call *self, int64_t size) -> void * {
      if (size < 0 || size > (int64_t(1) << 36))
        return nullptr;
      void *memory = std::aligned_alloc(64, (size_t(size) + 64) / 64 * 64);
      static_cast<Call *>(self->context)->scratch.push_back(memory);
      return memory;
    };
    // Lists exist at run time alone.
    call.item = [](firn_call *, const firn_view *, int64_t) -> const firn_view * { return nullptr; };
    call.append = [](firn_call *, const firn_view *, int32_t, const int64_t *, int32_t) -> const firn_view * {
      return nullptr;
    };
  }
  ~Call() {
    for (void *memory : scratch)
      std::free(memory);
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  ReferenceAttributes attributes;
  std::vector<firn_view> inputs, outputs;
  firn_call call{};
  char message[512] = "";

private:
  std::vector<void *> scratch;
  uint64_t random = 0;
};

std::optional<int64_t> byteSize(const firn_view &view) {
  int64_t bits = firn_dtype_bits(view.dtype);
  if (view.rank < 0 || bits == 0)
    return std::nullopt;
  for (int32_t i = 0; i < view.rank; ++i)
    if (view.dims[i] < 0 || __builtin_mul_overflow(bits, view.dims[i], &bits))
      return std::nullopt;
  return bits / 8 + (bits % 8 != 0);
}
} // namespace

std::optional<ReferenceTensor> referenceTensor(ElementsAttr value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  auto bytes = constantBytes(value);
  if (!type || !bytes || type.getRank() > FIRN_MAX_RANK)
    return std::nullopt;
  ReferenceTensor tensor{};
  tensor.view.dtype = dtypeOf(type.getElementType());
  tensor.view.rank = type.getRank();
  llvm::copy(type.getShape(), tensor.view.dims);
  if (bytes->isSplat) {
    tensor.bytes = std::make_shared<std::vector<char>>(*expandedBytes(value));
    tensor.view.data = tensor.bytes->data();
  } else {
    tensor.view.data = const_cast<char *>(bytes->bytes.data()); // the context keeps it
  }
  return tensor;
}

std::optional<std::vector<ReferenceTensor>> runReference(Operation *op, ArrayRef<firn_view> inputs, int64_t maxBytes,
                                                         std::string &whyNot) {
  const firn_operator *reference = referenceOperator(op);
  if (!reference) {
    whyNot = "there is no reference kernel";
    return std::nullopt;
  }
  Call call(op);
  call.inputs.assign(inputs.begin(), inputs.end());
  call.call.inputs = call.inputs.data();
  if (reference->infer(&call.call) != FIRN_CALL_OK) {
    whyNot = call.message;
    return std::nullopt;
  }
  std::vector<ReferenceTensor> results;
  for (firn_view &view : call.outputs) {
    auto size = byteSize(view);
    if (!size || *size > maxBytes || view.dtype == FIRN_STRING) {
      whyNot = "a result would be too large or is no number";
      return std::nullopt;
    }
    results.push_back({view, std::make_shared<std::vector<char>>(*size)});
    results.back().view.data = view.data = results.back().bytes->data();
  }
  if (reference->run(&call.call) != FIRN_CALL_OK) {
    whyNot = call.message;
    return std::nullopt;
  }
  return results;
}

std::optional<SmallVector<ElementsAttr>> evaluate(Operation *op, ArrayRef<ElementsAttr> operands, int64_t maxBytes,
                                                  std::string &whyNot) {
  std::vector<ReferenceTensor> storage;
  std::vector<firn_view> inputs;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!operand) {
      inputs.push_back({});
      inputs.back().rank = -1;
      continue;
    }
    auto tensor = referenceTensor(operand);
    if (!tensor) {
      whyNot = "operand " + std::to_string(i) + " is no numeric constant";
      return std::nullopt;
    }
    storage.push_back(*tensor);
    inputs.push_back(tensor->view);
  }
  auto results = runReference(op, inputs, maxBytes, whyNot);
  if (!results)
    return std::nullopt;
  SmallVector<ElementsAttr> values;
  for (const ReferenceTensor &result : *results) {
    Type element = elementTypeOf(op->getContext(), result.view.dtype);
    values.push_back(
        constantFromBytes(RankedTensorType::get(ArrayRef(result.view.dims, result.view.rank), element), *result.bytes));
  }
  return values;
}

// --- inference -------------------------------------------------------------------------------------------------------

/// The name under which an unknown element of an operand is guessed.
static std::string unknownElement(unsigned operand, size_t n) {
  return "?" + std::to_string(operand) + "." + std::to_string(n);
}

/// What shape functions read is small; weights are not copied for them.
constexpr int64_t mostShapeElements = 1 << 16;

/// A list as reference kernels see it: only what it holds.
static firn_view listView(Type type) {
  firn_view view{};
  view.dtype = FIRN_LIST;
  view.rank = 1;
  view.dims[0] = -1;
  if (auto form = listFormOf(type)) {
    view.dims[FIRN_LIST_FORM] = form->form;
    view.dims[FIRN_LIST_DTYPE] = form->dtype;
  }
  auto sequence = dyn_cast<SequenceType>(type);
  Type element = sequence ? sequence.getElement() : type;
  if (auto map = dyn_cast<MapType>(element))
    view.dims[FIRN_LIST_KEY] = dtypeOf(map.getKey());
  auto ranked = dyn_cast<RankedTensorType>(element);
  view.dims[FIRN_LIST_RANK] = ranked ? ranked.getRank() : -1;
  return view;
}

/// The type that a kernel's shape function says of a list; null where there is none.
static Type listTypeOf(MLIRContext *context, const firn_view &view) {
  Type element = elementTypeOf(context, int32_t(view.dims[FIRN_LIST_DTYPE]));
  Type key = elementTypeOf(context, int32_t(view.dims[FIRN_LIST_KEY]));
  if (!element)
    return {};
  Type tensor = UnrankedTensorType::get(element);
  if (int64_t rank = view.dims[FIRN_LIST_RANK]; rank >= 0 && rank <= FIRN_MAX_RANK)
    tensor = tensorType(element, SmallVector<DimExpr>(size_t(rank), DimExpr(-1)));
  switch (view.dims[FIRN_LIST_FORM]) {
  case FIRN_FORM_SEQUENCE:
    return sequenceOf(tensor);
  case FIRN_FORM_OPTIONAL:
    return optionalOf(tensor);
  case FIRN_FORM_OPTIONAL_SEQUENCE:
    return optionalOf(sequenceOf(tensor));
  case FIRN_FORM_MAP:
    return key ? MapType::get(context, key, element) : Type();
  case FIRN_FORM_SEQUENCE_OF_MAPS:
    return key ? Type(sequenceOf(MapType::get(context, key, element))) : Type();
  }
  return {};
}

/// Sets the operand types of a call with symbols and unknown elements at these sizes (1 where there is none), those of
/// unknown rank as `unranked`; false where a type is not known.
static bool setInputs(Call &call, const Inference &inference, const std::map<std::string, int64_t> &sizes,
                      const std::optional<Inference::Dims> &unranked, std::deque<std::vector<char>> &storage) {
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    if (!inference.has(i))
      continue;
    if (isListType(inference.operation()->getOperand(i).getType())) {
      call.inputs[i] = listView(inference.operation()->getOperand(i).getType());
      continue;
    }
    auto dims = inference.dims(i);
    if (!dims)
      dims = unranked;
    Type element = inference.elementType(i);
    if (!dims || !element || dims->size() > FIRN_MAX_RANK)
      return false;
    firn_view &view = call.inputs[i];
    view.dtype = dtypeOf(element);
    view.rank = dims->size();
    auto sizeOf = [&](const std::string &atom) {
      auto at = sizes.find(atom);
      return at == sizes.end() ? 1 : at->second;
    };
    auto valueOf = [&](const DimExpr &expr) {
      DimExpr value(0);
      for (const DimExpr::Term &term : expr.terms()) {
        DimExpr product(term.coefficient);
        for (const DimExpr::AtomRef &atom : term.atoms)
          product = product * DimExpr(sizeOf(atom->text));
        value = value + product;
      }
      return value.constant();
    };
    for (auto [axis, dim] : llvm::enumerate(*dims))
      view.dims[axis] = valueOf(dim);
    if (ElementsAttr constant = constantOf(inference.operation()->getOperand(i))) {
      if (constant.getNumElements() > mostShapeElements)
        continue;
      if (auto bytes = expandedBytes(constant)) {
        storage.push_back(std::move(*bytes));
        storage.back().reserve(1);
        view.data = storage.back().data();
      }
    } else if (auto elements = inference.elements(i)) {
      int64_t size = firn_dtype_bytes(view.dtype, 1);
      storage.emplace_back(elements->size() * 8 + 1);
      for (auto [n, e] : llvm::enumerate(*elements)) {
        int64_t wide = e.isUnknown() ? sizeOf(unknownElement(i, n)) : valueOf(e);
        std::memcpy(storage.back().data() + n * size, &wide, size); // little-endian: the low bytes come first
      }
      view.data = storage.back().data();
    }
  }
  return true;
}

namespace {
struct Answer {
  std::vector<firn_view> inputs, outputs;
  std::deque<std::vector<char>> contents; // what the inputs' data points to
  int32_t status = FIRN_CALL_INVALID;
  std::string message;
  bool isSound() const { return status == FIRN_CALL_OK || status == FIRN_CALL_NEEDS_VALUE; }
};
} // namespace

/// The shape function's answer at concrete sizes; nothing where an operand's type is not known yet.
static std::optional<Answer> ask(const Inference &inference, const firn_operator &reference,
                                 const std::map<std::string, int64_t> &sizes,
                                 const std::optional<Inference::Dims> &unranked = std::nullopt) {
  Call call(inference.operation());
  Answer answer;
  if (!setInputs(call, inference, sizes, unranked, answer.contents))
    return std::nullopt;
  answer.status = reference.infer(&call.call);
  answer.inputs = call.inputs;
  answer.outputs = call.outputs;
  answer.message = call.message;
  return answer;
}

using Sizes = std::map<std::string, int64_t>;

/// Sound answers at different sizes: each symbol took several values, so that a dimension of a result that follows a
/// symbol shows it. One answer where nothing is symbolic, none where an operand's type is not known yet.
static SmallVector<Answer> askRepeatedly(Inference &inference, const firn_operator &reference,
                                         const std::set<std::string> &atoms) {
  if (atoms.empty()) {
    auto answer = ask(inference, reference, {});
    return answer ? SmallVector<Answer>{*answer} : SmallVector<Answer>();
  }
  // Each symbol its own size; multiples of many small numbers so that divisibility rules are met, then smaller ones for
  // tensors of many dimensions.
  static const int64_t sets[2][2][4] = {{{5040, 7920, 9360, 10920}, {15120, 18480, 20160, 25200}},
                                        {{120, 168, 264, 312}, {408, 456, 552, 696}}};
  for (int isSmall = 0; isSmall < 2; ++isSmall) {
    SmallVector<Answer> answers;
    for (int set = 0; set < 2; ++set) {
      Sizes sizes;
      int64_t n = 0;
      for (const std::string &atom : atoms) {
        sizes[atom] = sets[isSmall][set][n % 4] + (isSmall ? 960 : 40320) * (n / 4);
        ++n;
      }
      auto answer = ask(inference, reference, sizes);
      if (!answer)
        return {};
      if (answer->isSound())
        answers.push_back(*answer);
    }
    if (answers.size() == 2)
      return answers;
  }
  // Sizes that must agree differ, perhaps. Guesses from a few numbers meet such rules now and then.
  SmallVector<Answer> answers;
  std::vector<Sizes> sound;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int guess = 0; guess < 400 && answers.size() < 8; ++guess) {
    Sizes sizes;
    static const int64_t numbers[] = {1, 2, 3, 4, 5, 6, 8, 12};
    for (const std::string &atom : atoms) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sizes[atom] = numbers[(state >> 33) % (guess % 2 ? 8 : 3)];
    }
    auto answer = ask(inference, reference, sizes);
    if (!answer->isSound() || llvm::is_contained(sound, sizes))
      continue;
    answers.push_back(*answer);
    sound.push_back(sizes);
  }
  bool haveVaried =
      answers.size() >= 4 && llvm::all_of(atoms, [&](const std::string &atom) {
        return llvm::any_of(sound, [&](const Sizes &sizes) { return sizes.at(atom) != sound[0].at(atom); });
      });
  // Sizes that were the same whenever the operator was content must be so.
  for (auto a = atoms.begin(); haveVaried && answers.size() == 8 && a != atoms.end(); ++a)
    for (auto b = std::next(a); b != atoms.end(); ++b)
      if (llvm::all_of(sound, [&](const Sizes &sizes) { return sizes.at(*a) == sizes.at(*b); }))
        if (auto x = DimExpr::parse(*a), y = DimExpr::parse(*b); x && y)
          inference.requireEqual(*x, *y, *a + " and " + *b);
  // Too few: they tell dtypes and ranks, no dimension. Ones fit most rules.
  Sizes ones;
  for (const std::string &atom : atoms)
    ones[atom] = 1;
  if (answers.empty())
    answers.push_back(*ask(inference, reference, ones));
  if (!haveVaried)
    for (Answer &answer : answers)
      for (firn_view &view : answer.outputs)
        for (int32_t i = 0; i < std::max(view.rank, 0); ++i)
          view.dims[i] = -1;
  return answers;
}

/// Dimension `axis` of result r in terms of what the operands have, where all answers agree on it.
static std::optional<DimExpr> commonDim(const Inference &inference, ArrayRef<Answer> answers, unsigned r, int axis) {
  auto result = [&](const Answer &answer) { return answer.outputs[r].dims[axis]; };
  if (llvm::any_of(answers, [&](const Answer &answer) { return result(answer) < 0; }))
    return std::nullopt;
  if (llvm::all_of(answers, [&](const Answer &answer) { return result(answer) == result(answers[0]); }))
    return DimExpr(result(answers[0]));
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    auto dims = inference.dims(i).value_or(Inference::Dims());
    for (size_t d = 0; d < dims.size(); ++d)
      if (llvm::all_of(answers, [&](const Answer &answer) { return answer.inputs[i].dims[d] == result(answer); }))
        return dims[d];
    // A size that stands in a shape operand; unknown() becomes a symbol of the operation's own.
    auto elements = inference.elements(i);
    if (!elements || !inference.elementType(i).isSignlessInteger(64))
      continue;
    for (size_t n = 0; n < elements->size(); ++n)
      if (llvm::all_of(answers, [&](const Answer &answer) {
            const auto *data = static_cast<const int64_t *>(answer.inputs[i].data);
            return data && data[n] == result(answer);
          }))
        return (*elements)[n];
  }
  return std::nullopt;
}

std::string invalidByReference(Operation *op) {
  const firn_operator *reference = referenceOperator(op);
  auto isKnown = [](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return isAbsent(operand) || (type && type.hasStaticShape() && !isa<UnknownType>(type.getElementType()));
  };
  if (!reference || !llvm::all_of(op->getOperands(), isKnown))
    return "";
  Inference inference(op);
  for (unsigned i = 0; i < inference.operandCount(); ++i)
    if (auto elements = inference.elements(i))
      if (llvm::any_of(*elements, [](const DimExpr &element) { return !element.isConstant(); }))
        return "";
  auto answer = ask(inference, *reference, {});
  return answer && answer->status == FIRN_CALL_INVALID ? answer->message : "";
}

void inferByReference(Inference &inference) {
  Operation *op = inference.operation();
  const firn_operator *reference = referenceOperator(op);
  if (!reference)
    return inference.error("there is no such operator in the library");
  std::set<std::string> atoms;
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    auto dims = inference.dims(i), elements = inference.elements(i);
    if (constantOf(op->getOperand(i)))
      elements.reset();
    for (const auto &list : {dims, elements})
      if (list)
        for (auto [n, dim] : llvm::enumerate(*list)) {
          if (dim.isUnknown())
            atoms.insert(unknownElement(i, n));
          else
            for (const DimExpr::Term &term : dim.terms())
              for (const DimExpr::AtomRef &atom : term.atoms)
                atoms.insert(atom->text);
        }
  }
  SmallVector<Answer> answers = askRepeatedly(inference, *reference, atoms);
  if (answers.empty())
    return;
  if (atoms.empty() && !answers[0].isSound())
    return inference.error(answers[0].message);
  for (unsigned r = 0; r < op->getNumResults(); ++r) {
    const firn_view &first = answers.front().outputs[r];
    Type element = elementTypeOf(op->getContext(), first.dtype);
    if (first.dtype == FIRN_LIST) {
      if (Type type = listTypeOf(op->getContext(), first))
        inference.resultType(r, type);
      else
        inference.error("there is no type for output " + std::to_string(r));
      continue;
    }
    if (first.rank < 0 || !element ||
        llvm::any_of(answers, [&](const Answer &answer) { return answer.outputs[r].rank != first.rank; })) {
      inference.result(r, element, std::nullopt);
      continue;
    }
    Inference::Dims dims;
    for (int32_t axis = 0; axis < first.rank; ++axis)
      dims.push_back(commonDim(inference, answers, r, axis).value_or(DimExpr::unknown()));
    inference.result(r, element, dims);
  }
}

void inferAcrossRanks(Inference &inference) {
  Operation *op = inference.operation();
  const firn_operator *reference = referenceOperator(op);
  auto isOpen = [](const Inference::Result &result) { return !result.type && !(result.elementType && result.dims); };
  if (!reference || llvm::none_of(inference.inferred(), isOpen))
    return;
  SmallVector<Answer> answers;
  for (int64_t rank = 0; rank <= 5; ++rank)
    if (auto answer = ask(inference, *reference, {}, Inference::Dims(rank, DimExpr(1))); answer && answer->isSound())
      answers.push_back(*answer);
  if (answers.empty())
    return;
  for (unsigned r = 0; r < op->getNumResults(); ++r) {
    if (!isOpen(inference.inferred()[r]))
      continue;
    const firn_view &first = answers[0].outputs[r];
    Type element = elementTypeOf(op->getContext(), first.dtype);
    // One answer says little of other ranks.
    bool isOneRank = answers.size() > 2 && first.rank >= 0 &&
                     llvm::all_of(answers, [&](const Answer &a) { return a.outputs[r].rank == first.rank; });
    if (element && isOneRank)
      inference.unknownResult(r, element, unsigned(first.rank));
    else if (element)
      inference.resultType(r, UnrankedTensorType::get(element));
  }
}

} // namespace firn
