#include "compiler/import/onnx/Upgrade.h"
#include "compiler/import/Blob.h"
#include "compiler/import/Prepare.h"
#include "compiler/import/onnx/Schema.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include <climits>
#include <cstring>

namespace firn {
namespace {

using Rule = void (*)(UpgradeContext &);
struct Change {
  const char *name;
  int64_t version; // that brought the change
  Rule rule;
  // The newest form means the same before the change, where its attributes and inputs are accepted at all.
  bool isCompatible = false;
};

// Of one operator: oldest change first.
const Change changes[] = {
    {"Add", 7, upgrade::broadcastAttribute},
    {"And", 7, upgrade::broadcastAttribute},
    {"BatchNormalization", 7, upgrade::batchNormalization7},
    {"BatchNormalization", 9, upgrade::batchNormalization9},
    {"BatchNormalization", 14, upgrade::batchNormalization14, true},
    {"Cast", 6, upgrade::cast6},
    {"Clip", 6, upgrade::clip6},
    {"Clip", 11, upgrade::clip11, true},
    {"Concat", 4, upgrade::concat4},
    {"DFT", 20, upgrade::dft20},
    {"DepthToSpace", 11, upgrade::depthToSpace11},
    {"Div", 7, upgrade::broadcastAttribute},
    {"Dropout", 7, upgrade::dropout7},
    {"Dropout", 12, upgrade::dropout12, true},
    {"Equal", 7, upgrade::broadcastAttribute},
    {"GRU", 7, upgrade::recurrent7},
    {"Gemm", 7, upgrade::gemm7},
    {"GlobalLpPool", 2, upgrade::lpPool2},
    {"Greater", 7, upgrade::broadcastAttribute},
    {"GridSample", 20, upgrade::gridSample20},
    {"GroupNormalization", 21, upgrade::groupNormalization21},
    {"Hardmax", 13, upgrade::softmax13},
    {"LSTM", 7, upgrade::recurrent7},
    {"Less", 7, upgrade::broadcastAttribute},
    {"LogSoftmax", 13, upgrade::softmax13},
    {"LpPool", 2, upgrade::lpPool2},
    {"Mul", 7, upgrade::broadcastAttribute},
    {"Or", 7, upgrade::broadcastAttribute},
    {"PRelu", 7, upgrade::prelu7},
    {"Pad", 2, upgrade::pad2},
    {"Pad", 11, upgrade::pad11},
    {"Pow", 7, upgrade::broadcastAttribute},
    {"RNN", 7, upgrade::recurrent7},
    {"ReduceL1", 18, upgrade::axesToInput, true},
    {"ReduceL2", 18, upgrade::axesToInput, true},
    {"ReduceLogSum", 18, upgrade::axesToInput, true},
    {"ReduceLogSumExp", 18, upgrade::axesToInput, true},
    {"ReduceMax", 18, upgrade::axesToInput, true},
    {"ReduceMean", 18, upgrade::axesToInput, true},
    {"ReduceMin", 18, upgrade::axesToInput, true},
    {"ReduceProd", 18, upgrade::axesToInput, true},
    {"ReduceSum", 13, upgrade::axesToInput, true},
    {"ReduceSumSquare", 18, upgrade::axesToInput, true},
    {"Reshape", 5, upgrade::reshape5},
    {"Resize", 11, upgrade::resize11},
    {"RoiAlign", 16, upgrade::roiAlign16},
    {"Scan", 9, upgrade::scan9},
    {"Scan", INT64_MAX, upgrade::scanToLoop},
    {"Scatter", INT64_MAX, upgrade::scatter},
    {"Selu", 6, upgrade::selu6},
    {"SequenceMap", INT64_MAX, upgrade::sequenceMapToLoop},
    {"Slice", 10, upgrade::slice10},
    {"Softmax", 13, upgrade::softmax13},
    {"Split", 2, upgrade::split2},
    {"Split", 13, upgrade::split13},
    {"Split", 18, upgrade::split18, true},
    {"Squeeze", 13, upgrade::axesToInput, true},
    {"Sub", 7, upgrade::broadcastAttribute},
    {"Tile", 6, upgrade::tile6},
    {"TopK", 10, upgrade::topk10},
    {"Unsqueeze", 13, upgrade::axesToInput},
    {"Upsample", INT64_MAX, upgrade::upsample},
    {"Xor", 7, upgrade::broadcastAttribute},
};

// The same for ai.onnx.ml.
const Change learningChanges[] = {
    {"LabelEncoder", 2, upgrade::labelEncoder2},
};

class Upgrader {
public:
  Upgrader(const model::Graph &graph, Diagnostics &reported) : diagnostics(reported) {
    collectNames(graph, used);
    collectRead(graph, read);
  }

  void run(model::Graph &graph, const Facts *outer) {
    Facts facts;
    facts.outer = outer;
    // Pointers into graph.constants stay valid only while it does not grow: it is filled at the end.
    model::Graph added;
    for (const model::Tensor &tensor : graph.constants) {
      facts.known[tensor.name] = {tensor.dtype, int64_t(tensor.dims.size())};
      facts.constants[tensor.name] = &tensor;
    }
    for (const model::Value &input : graph.inputs) {
      facts.constants.erase(input.name);
      facts.declare(input);
    }
    for (const std::vector<model::Value> *declared : {&graph.values, &graph.outputs})
      for (const model::Value &value : *declared)
        if (value.type.kind == model::Type::Kind::Sequence) // of tensors, what nodes make of them is known better
          facts.declare(value);
    std::vector<model::Node> nodes;
    nodes.reserve(graph.nodes.size());
    for (model::Node &node : graph.nodes)
      upgradeNode(std::move(node), added, facts, nodes);
    graph.nodes = std::move(nodes);
    for (model::Tensor &tensor : added.constants)
      graph.constants.push_back(std::move(tensor));
  }

private:
  void upgradeNode(model::Node &&node, model::Graph &added, Facts &facts, std::vector<model::Node> &nodes);

  std::unordered_set<std::string> used, read;
  Diagnostics &diagnostics;
};

void Upgrader::upgradeNode(model::Node &&node, model::Graph &added, Facts &facts, std::vector<model::Node> &nodes) {
  if (node.origin.empty())
    node.origin = operatorLabel(node);
  bool isLearning = node.domain == "ai.onnx.ml";
  bool isFlexAttention = node.domain == "ai.onnx.preview" && node.type == "FlexAttention";
  if (!(node.domain.empty() || isLearning || isFlexAttention) || node.isBroken) {
    facts.follow(node);
    nodes.push_back(std::move(node));
    return;
  }
  UpgradeContext context(added, facts, used, read, std::move(node), diagnostics);
  std::string type = context.node.type;
  int64_t version = context.node.version;
  if (isFlexAttention)
    upgrade::flexAttention(context);
  else if (version < 6 && !isLearning)
    upgrade::consumedInputs(context);
  for (const Change &change : isLearning ? llvm::ArrayRef<Change>(learningChanges) : llvm::ArrayRef<Change>(changes))
    if (!isFlexAttention && type == change.name && version < change.version)
      change.rule(context);
  context.node.version = newestVersion(context.node.domain);
  auto finish = [&](model::Node &made) {
    for (model::Attribute &attribute : made.attributes)
      if (attribute.graph && !made.isBroken)
        run(*attribute.graph, &facts);
    facts.follow(made);
    nodes.push_back(std::move(made));
  };
  llvm::for_each(context.before, finish);
  finish(context.node);
  llvm::for_each(context.after, finish);
}

} // namespace

void upgradeGraph(model::Graph &graph, Diagnostics &diagnostics) { Upgrader(graph, diagnostics).run(graph, nullptr); }

int64_t formSince(llvm::StringRef name) {
  int64_t since = introducedIn("", name);
  for (const Change &change : changes)
    if (name == change.name && change.version != INT64_MAX && !change.isCompatible)
      since = std::max(since, change.version);
  return since;
}

// --- facts -----------------------------------------------------------------------------------------------------------

void Facts::declare(const model::Value &value) {
  const model::Type &type = value.type;
  if (type.kind == model::Type::Kind::Tensor)
    known[value.name] = {type.dtype, type.dims ? std::optional<int64_t>(type.dims->size()) : std::nullopt};
  else if (type.kind == model::Type::Kind::Sequence && type.element->kind == model::Type::Kind::Tensor)
    known[value.name] = {type.element->dtype, std::nullopt, true};
}

Facts::Fact Facts::of(const std::string &name) const {
  for (const Facts *facts = this; facts; facts = facts->outer)
    if (auto found = facts->known.find(name); found != facts->known.end())
      return found->second;
  return {};
}

// The elements of a constant list of this element type.
template <typename T>
static std::optional<std::vector<T>> elementsOf(const Facts *facts, const std::string &name, int32_t dtype) {
  for (; facts; facts = facts->outer) {
    auto found = facts->constants.find(name);
    if (found == facts->constants.end())
      continue;
    const model::Tensor &tensor = *found->second;
    if (tensor.dtype != dtype || tensor.dims.size() > 1 || tensor.isBroken)
      return std::nullopt;
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    if (!values.empty()) // memcpy takes no null pointers
      std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> Facts::integers(const std::string &name) const {
  return elementsOf<int64_t>(this, name, FIRN_I64);
}
std::optional<std::vector<float>> Facts::floats(const std::string &name) const {
  return elementsOf<float>(this, name, FIRN_F32);
}

void Facts::follow(const model::Node &node) {
  if (node.outputs.empty() || !node.domain.empty() || node.isBroken)
    return;
  auto input = [&](size_t i) { return i < node.inputs.size() ? of(node.inputs[i]) : Fact(); };
  auto integer = [&](const char *name, int64_t fallback) {
    const model::Attribute *attribute = node.attribute(name);
    return attribute && attribute->kind == model::Attribute::Kind::Int ? attribute->i : fallback;
  };
  Fact first = input(0), second = input(1), result;
  llvm::StringRef type = node.type;
  static const llvm::StringSet<> likeFirst = {"Abs",
                                              "Neg",
                                              "Ceil",
                                              "Floor",
                                              "Round",
                                              "Sqrt",
                                              "Reciprocal",
                                              "Exp",
                                              "Log",
                                              "Sin",
                                              "Cos",
                                              "Tan",
                                              "Asin",
                                              "Acos",
                                              "Atan",
                                              "Sinh",
                                              "Cosh",
                                              "Tanh",
                                              "Erf",
                                              "Sign",
                                              "Sigmoid",
                                              "Relu",
                                              "HardSwish",
                                              "Mish",
                                              "Softplus",
                                              "Softsign",
                                              "Not",
                                              "Identity",
                                              "Elu",
                                              "Celu",
                                              "Selu",
                                              "LeakyRelu",
                                              "ThresholdedRelu",
                                              "HardSigmoid",
                                              "Gelu",
                                              "Clip",
                                              "Dropout",
                                              "Conv",
                                              "MaxPool",
                                              "AveragePool",
                                              "LpPool",
                                              "GlobalAveragePool",
                                              "Softmax",
                                              "LogSoftmax",
                                              "Hardmax",
                                              "Transpose",
                                              "Concat",
                                              "Split",
                                              "Slice",
                                              "Pad",
                                              "Tile",
                                              "Resize",
                                              "CumSum",
                                              "ScatterElements",
                                              "ScatterND",
                                              "InstanceNormalization",
                                              "LRN",
                                              "Trilu",
                                              "DepthToSpace",
                                              "SpaceToDepth",
                                              "LayerNormalization",
                                              "GroupNormalization",
                                              "TopK",
                                              "BatchNormalization",
                                              "GlobalMaxPool",
                                              "ConvTranspose",
                                              "LpNormalization",
                                              "PRelu",
                                              "Swish",
                                              "ReverseSequence"};
  static const llvm::StringSet<> binary = {"Add", "Sub", "Mul",  "Div",      "Mod",        "Pow",       "Max",
                                           "Min", "Sum", "Mean", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  static const llvm::StringSet<> comparison = {"Equal",       "Greater", "Less", "GreaterOrEqual",
                                               "LessOrEqual", "And",     "Or",   "Xor"};
  if (likeFirst.contains(type)) {
    result = first;
    for (size_t i = 1; i < node.outputs.size() && type == "Split"; ++i)
      known[node.outputs[i]] = result;
  } else if (binary.contains(type) || comparison.contains(type) || type == "Expand") {
    result.dtype = comparison.contains(type) ? FIRN_BOOL : first.dtype;
    result.rank = 0;
    for (size_t i = 0; i < node.inputs.size() && type != "Expand"; ++i)
      result.rank = result.rank && input(i).rank ? std::optional(std::max(*result.rank, *input(i).rank)) : std::nullopt;
    if (type == "Expand")
      result.rank = std::nullopt;
  } else if (type == "MatMul") {
    result.dtype = first.dtype;
    if (first.rank && second.rank && *first.rank >= 2 && *second.rank >= 2)
      result.rank = std::max(*first.rank, *second.rank);
  } else if (type == "Gemm" || type == "Flatten") {
    result = {first.dtype, 2};
  } else if (type == "Reshape") {
    result.dtype = first.dtype;
    if (auto shape = node.inputs.size() > 1 ? integers(node.inputs[1]) : std::nullopt)
      result.rank = int64_t(shape->size());
  } else if (type == "Unsqueeze" || type == "Squeeze") {
    result.dtype = first.dtype;
    if (auto axes = node.inputs.size() > 1 ? integers(node.inputs[1]) : std::nullopt; axes && first.rank)
      result.rank = *first.rank + (type == "Unsqueeze" ? 1 : -1) * int64_t(axes->size());
  } else if (type == "Gather") {
    result.dtype = first.dtype;
    if (first.rank && second.rank)
      result.rank = *first.rank + *second.rank - 1;
  } else if (type.starts_with("Reduce")) {
    result.dtype = first.dtype;
    auto axes = node.inputs.size() > 1 ? integers(node.inputs[1]) : std::nullopt;
    if (integer("keepdims", 1))
      result.rank = first.rank;
    else if (first.rank && axes && !axes->empty())
      result.rank = *first.rank - int64_t(axes->size());
  } else if (type == "Shape") {
    result = {FIRN_I64, 1};
  } else if (type == "Cast") {
    result = {int32_t(integer("to", 0)), first.rank};
  } else if (type == "CastLike") {
    result = {second.dtype, first.rank};
  } else if (type == "Where") {
    result.dtype = second.dtype;
    if (first.rank && second.rank && input(2).rank)
      result.rank = std::max({*first.rank, *second.rank, *input(2).rank});
  } else if (type == "LSTM" || type == "GRU" || type == "RNN") {
    result = {first.dtype, 4};
    for (size_t i = 1; i < node.outputs.size(); ++i)
      known[node.outputs[i]] = {first.dtype, 3};
  } else if (type == "DequantizeLinear") {
    result = {second.dtype, first.rank};
  } else if (type == "SequenceEmpty") {
    result = {int32_t(integer("dtype", 1)), std::nullopt, true};
  } else if (type == "SequenceConstruct" || type == "SplitToSequence") {
    result = {first.dtype, std::nullopt, true};
  } else if (type == "SequenceInsert" || type == "SequenceErase") {
    result = first;
  } else if (type == "SequenceAt" || type == "ConcatFromSequence") {
    result.dtype = first.dtype;
  } else if (type == "Loop") {
    for (size_t i = 0; i < node.outputs.size() && i + 2 < node.inputs.size(); ++i)
      if (Fact carried = input(i + 2); carried.isSequence)
        known[node.outputs[i]] = carried;
    return;
  } else if (type == "If") {
    const model::Attribute *branch = node.attribute("then_branch");
    for (size_t i = 0; branch && branch->graph && i < node.outputs.size() && i < branch->graph->outputs.size(); ++i)
      if (branch->graph->outputs[i].type.kind == model::Type::Kind::Sequence)
        declare({node.outputs[i], branch->graph->outputs[i].type, ""});
    return;
  } else if (type == "Constant") {
    if (const model::Attribute *value = node.attribute("value");
        value && value->kind == model::Attribute::Kind::Tensor) {
      result = {value->tensor.dtype, int64_t(value->tensor.dims.size())};
      // The address outlives moves of the node: its attributes stay where they are.
      constants[node.outputs[0]] = &value->tensor;
    }
  }
  if (result.dtype || result.rank || !of(node.outputs[0]).isSequence)
    known[node.outputs[0]] = result;
}

// --- one node --------------------------------------------------------------------------------------------------------

int64_t UpgradeContext::intOf(llvm::StringRef attribute, int64_t fallback) const {
  const model::Attribute *found = node.attribute(attribute);
  return found ? found->i : fallback;
}
float UpgradeContext::floatOf(llvm::StringRef attribute, float fallback) const {
  const model::Attribute *found = node.attribute(attribute);
  return found ? found->f : fallback;
}
std::vector<int64_t> UpgradeContext::intsOf(llvm::StringRef attribute) const {
  const model::Attribute *found = node.attribute(attribute);
  return found ? found->ints : std::vector<int64_t>();
}

model::Attribute intAttribute(llvm::StringRef name, int64_t value) {
  model::Attribute attribute;
  attribute.name = name.str();
  attribute.kind = model::Attribute::Kind::Int;
  attribute.i = value;
  return attribute;
}
model::Attribute intsAttribute(llvm::StringRef name, std::vector<int64_t> values) {
  model::Attribute attribute;
  attribute.name = name.str();
  attribute.kind = model::Attribute::Kind::Ints;
  attribute.ints = std::move(values);
  return attribute;
}

void UpgradeContext::drop(llvm::StringRef attribute) {
  llvm::erase_if(node.attributes, [&](const model::Attribute &candidate) { return candidate.name == attribute; });
}
void UpgradeContext::set(llvm::StringRef attribute, int64_t value) {
  drop(attribute);
  node.attributes.push_back(intAttribute(attribute, value));
}
void UpgradeContext::set(llvm::StringRef attribute, float value) {
  drop(attribute);
  model::Attribute &added = node.attributes.emplace_back();
  added.name = attribute.str();
  added.kind = model::Attribute::Kind::Float;
  added.f = value;
}
void UpgradeContext::set(llvm::StringRef attribute, llvm::StringRef value) {
  drop(attribute);
  model::Attribute &added = node.attributes.emplace_back();
  added.name = attribute.str();
  added.kind = model::Attribute::Kind::String;
  added.s = value.str();
}

void UpgradeContext::setInput(size_t i, const std::string &name) {
  if (node.inputs.size() <= i)
    node.inputs.resize(i + 1);
  node.inputs[i] = name;
}

std::string UpgradeContext::fresh(llvm::StringRef what) {
  std::string wanted = node.name + "/" + what.str(), name = wanted;
  for (unsigned i = 2; !used.insert(name).second; ++i)
    name = wanted + "_" + std::to_string(i);
  return name;
}

std::string UpgradeContext::addConstant(model::Tensor tensor, llvm::StringRef what) {
  tensor.name = fresh(what);
  facts.known[tensor.name] = {tensor.dtype, int64_t(tensor.dims.size())};
  // The facts need the contents only of what stays put; those of added constants live in a node of their own.
  auto kept = std::make_shared<model::Tensor>(tensor);
  facts.constants[tensor.name] = kept.get();
  tensor.owner = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<model::Tensor>>>(tensor.owner, kept);
  graph.constants.push_back(std::move(tensor));
  return graph.constants.back().name;
}

std::string UpgradeContext::integers(llvm::StringRef what, llvm::ArrayRef<int64_t> values) {
  model::Tensor tensor;
  tensor.dtype = FIRN_I64;
  tensor.dims = {int64_t(values.size())};
  char *bytes = allocateBytes(tensor, values.size() * 8);
  if (!values.empty())
    std::memcpy(bytes, values.data(), values.size() * 8);
  return addConstant(std::move(tensor), what);
}
std::string UpgradeContext::integer(llvm::StringRef what, int64_t value) {
  model::Tensor tensor;
  tensor.dtype = FIRN_I64;
  std::memcpy(allocateBytes(tensor, 8), &value, 8);
  return addConstant(std::move(tensor), what);
}
std::string UpgradeContext::floats(llvm::StringRef what, llvm::ArrayRef<float> values) {
  model::Tensor tensor;
  tensor.dtype = FIRN_F32;
  tensor.dims = {int64_t(values.size())};
  char *bytes = allocateBytes(tensor, values.size() * 4);
  if (!values.empty())
    std::memcpy(bytes, values.data(), values.size() * 4);
  return addConstant(std::move(tensor), what);
}

std::string UpgradeContext::scalarLike(llvm::StringRef what, double value, const std::string &like) {
  model::Tensor tensor;
  int32_t dtype = facts.of(like).dtype;
  const llvm::fltSemantics *format = dtype == FIRN_F16    ? &llvm::APFloat::IEEEhalf()
                                     : dtype == FIRN_BF16 ? &llvm::APFloat::BFloat()
                                     : dtype == FIRN_F64  ? &llvm::APFloat::IEEEdouble()
                                                          : &llvm::APFloat::IEEEsingle();
  bool isDirect = dtype == FIRN_F16 || dtype == FIRN_BF16 || dtype == FIRN_F64 || dtype == FIRN_F32;
  tensor.dtype = isDirect ? dtype : FIRN_F32;
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(*format, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  size_t size = size_t(firn_dtype_bits(tensor.dtype) / 8);
  std::memcpy(allocateBytes(tensor, size), &bits, size);
  std::string constant = addConstant(std::move(tensor), what);
  return isDirect ? constant : emit(what.str() + "_cast", "CastLike", {constant, like});
}

model::Node UpgradeContext::beside(llvm::StringRef what, llvm::StringRef type, std::vector<std::string> inputs,
                                   std::vector<model::Attribute> attributes) {
  model::Node made;
  made.name = fresh(what);
  made.isUnnamed = node.isUnnamed;
  made.type = type.str();
  made.version = newestVersion("");
  made.origin = node.origin;
  made.inputs = std::move(inputs);
  made.attributes = std::move(attributes);
  return made;
}

std::string UpgradeContext::emit(llvm::StringRef what, llvm::StringRef type, std::vector<std::string> inputs,
                                 std::vector<model::Attribute> attributes) {
  model::Node made = beside(what, type, std::move(inputs), std::move(attributes));
  made.outputs = {made.name};
  facts.follow(made);
  before.push_back(std::move(made));
  return before.back().outputs[0];
}

std::string UpgradeContext::emitAfter(size_t i, llvm::StringRef what, llvm::StringRef type,
                                      std::vector<std::string> moreInputs, std::vector<model::Attribute> attributes) {
  std::string inner = fresh(what.str() + "_in");
  moreInputs.insert(moreInputs.begin(), inner);
  model::Node made = beside(what, type, std::move(moreInputs), std::move(attributes));
  made.outputs = {node.outputs[i]};
  node.outputs[i] = inner;
  // A later wrap of the same output stands nearer to the node.
  after.insert(after.begin(), std::move(made));
  return inner;
}

void UpgradeContext::unsupported(const std::string &what, const std::string &fix) {
  report("import.upgrade", what, fix);
}

void UpgradeContext::report(llvm::StringRef id, const std::string &what, const std::string &fix) {
  node.isBroken = true;
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  diagnostic.node = node.name;
  diagnostic.operatorName = node.origin;
  takeApart(what, diagnostic);
  diagnostic.fix = fix;
  diagnostics.report(std::move(diagnostic));
}

} // namespace firn
