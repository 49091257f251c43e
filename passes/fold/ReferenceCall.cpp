// ReferenceCall: attributes, evaluation and shapes through reference kernels.
#include "passes/fold/ReferenceCall.h"

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

/// Sets the operand types of a call with `symbols` at concrete sizes; false where a type is not known.
static bool setInputs(Call &call, const Inference &inference, const std::map<std::string, int64_t> &sizes,
                      std::deque<std::vector<char>> &storage) {
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    if (!inference.has(i))
      continue;
    auto dims = inference.dims(i);
    Type element = inference.elementType(i);
    if (!dims || !element || dims->size() > FIRN_MAX_RANK)
      return false;
    firn_view &view = call.inputs[i];
    view.dtype = dtypeOf(element);
    view.rank = dims->size();
    auto valueOf = [&](const DimExpr &expr) {
      DimExpr value(0);
      for (const DimExpr::Term &term : expr.terms()) {
        DimExpr product(term.coefficient);
        for (const DimExpr::AtomRef &atom : term.atoms) {
          auto at = sizes.find(atom->text);
          product = product * DimExpr(at == sizes.end() ? 1 : at->second);
        }
        value = value + product;
      }
      return value.constant();
    };
    for (auto [axis, dim] : llvm::enumerate(*dims))
      view.dims[axis] = valueOf(dim);
    if (ElementsAttr constant = constantOf(inference.operation()->getOperand(i))) {
      if (auto bytes = expandedBytes(constant)) {
        storage.push_back(std::move(*bytes));
        storage.back().reserve(1);
        view.data = storage.back().data();
      }
    } else if (auto elements = inference.elements(i)) {
      storage.emplace_back(elements->size() * 8 + 1);
      for (auto [n, e] : llvm::enumerate(*elements)) {
        int64_t wide = valueOf(e);
        int32_t narrow = int32_t(wide);
        if (view.dtype == FIRN_I64)
          std::memcpy(storage.back().data() + n * 8, &wide, 8);
        else
          std::memcpy(storage.back().data() + n * 4, &narrow, 4);
      }
      view.data = storage.back().data();
    }
  }
  return true;
}

namespace {
struct Answer {
  std::vector<firn_view> inputs, outputs;
  int32_t status = FIRN_CALL_INVALID;
  std::string message;
  bool isSound() const { return status == FIRN_CALL_OK || status == FIRN_CALL_NEEDS_VALUE; }
};
} // namespace

/// The shape function's answer at concrete sizes; nothing where an operand's type is not known yet.
static std::optional<Answer> ask(const Inference &inference, const firn_operator &reference,
                                 const std::map<std::string, int64_t> &sizes) {
  Call call(inference.operation());
  std::deque<std::vector<char>> storage;
  if (!setInputs(call, inference, sizes, storage))
    return std::nullopt;
  Answer answer;
  answer.status = reference.infer(&call.call);
  answer.inputs = call.inputs;
  answer.outputs = call.outputs;
  answer.message = call.message;
  return answer;
}

/// Answers at two sets of sizes, or one where nothing is symbolic.
static SmallVector<Answer> askTwice(const Inference &inference, const firn_operator &reference,
                                    const std::set<std::string> &atoms) {
  // Each symbol its own size; multiples of many small numbers so that divisibility rules are met, then smaller ones for
  // tensors of many dimensions.
  static const int64_t sets[2][2][4] = {{{5040, 7920, 9360, 10920}, {15120, 18480, 20160, 25200}},
                                        {{120, 168, 264, 312}, {408, 456, 552, 696}}};
  SmallVector<Answer> answers;
  for (int isSmall = 0; isSmall < 2; ++isSmall) {
    answers.clear();
    for (int set = 0; set < (atoms.empty() ? 1 : 2); ++set) {
      std::map<std::string, int64_t> sizes;
      int64_t n = 0;
      for (const std::string &atom : atoms) {
        sizes[atom] = sets[isSmall][set][n % 4] + (isSmall ? 960 : 40320) * (n / 4);
        ++n;
      }
      auto answer = ask(inference, reference, sizes);
      if (!answer)
        return {};
      answers.push_back(*answer);
    }
    if (atoms.empty() || llvm::all_of(answers, [](const Answer &a) { return a.isSound(); }))
      return answers;
  }
  // Sizes that must agree differ, perhaps. Ones fit most rules; they tell dtypes and ranks, no dimension.
  std::map<std::string, int64_t> ones;
  for (const std::string &atom : atoms)
    ones[atom] = 1;
  Answer answer = *ask(inference, reference, ones);
  for (firn_view &view : answer.outputs)
    for (int32_t i = 0; i < std::max(view.rank, 0); ++i)
      view.dims[i] = -1;
  return {answer};
}

void inferByReference(Inference &inference) {
  Operation *op = inference.operation();
  const firn_operator *reference = referenceOperator(op);
  if (!reference)
    return inference.error("there is no such operator in the library");
  std::set<std::string> atoms;
  for (unsigned i = 0; i < inference.operandCount(); ++i)
    for (const auto &list : {inference.dims(i), inference.elements(i)})
      if (list)
        for (const DimExpr &dim : *list)
          for (const DimExpr::Term &term : dim.terms())
            for (const DimExpr::AtomRef &atom : term.atoms)
              atoms.insert(atom->text);
  SmallVector<Answer> answers = askTwice(inference, *reference, atoms);
  if (answers.empty())
    return;
  if (atoms.empty() && !answers[0].isSound())
    return inference.error(answers[0].message);
  for (unsigned r = 0; r < op->getNumResults(); ++r) {
    const firn_view &first = answers.front().outputs[r], &last = answers.back().outputs[r];
    Type element = elementTypeOf(op->getContext(), first.dtype);
    if (first.rank < 0 || !element || first.rank != last.rank) {
      inference.result(r, element, std::nullopt);
      continue;
    }
    Inference::Dims dims;
    for (int32_t axis = 0; axis < first.rank; ++axis) {
      std::optional<DimExpr> dim;
      if (first.dims[axis] >= 0 && first.dims[axis] == last.dims[axis])
        dim = DimExpr(first.dims[axis]);
      for (unsigned i = 0; !dim && i < inference.operandCount(); ++i)
        if (auto operandDims = inference.dims(i))
          for (auto [d, expr] : llvm::enumerate(*operandDims))
            if (first.dims[axis] >= 0 && answers.front().inputs[i].dims[d] == first.dims[axis] &&
                answers.back().inputs[i].dims[d] == last.dims[axis]) {
              dim = expr;
              break;
            }
      dims.push_back(dim ? *dim : inference.unknownDim(r, axis));
    }
    inference.result(r, element, dims);
  }
}

} // namespace firn
