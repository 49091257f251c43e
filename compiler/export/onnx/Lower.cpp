#include "compiler/export/onnx/Lower.h"
#include "compiler/import/Blob.h"
#include "compiler/import/Prepare.h"
#include "compiler/import/onnx/Schema.h"
#include "compiler/import/onnx/Upgrade.h"
#include "runtime/abi/dtype.h"
#include <cstring>
#include <deque>
#include <unordered_set>

namespace firn {
namespace {

using model::Attribute;
using Ints = std::vector<int64_t>;

/// An attribute that an older version lacks, and what that version always did.
struct Habit {
  const char *type, *attribute;
  int64_t value = 0;
  const char *text = ""; // of an attribute that is a text
};
const Habit habits[] = {
    {"ArgMax", "select_last_index"},
    {"ArgMin", "select_last_index"},
    {"AveragePool", "ceil_mode"},
    {"AveragePool", "count_include_pad"},
    {"AveragePool", "dilations", 1},
    {"BatchNormalization", "training_mode"},
    {"Cast", "saturate", 1},
    {"CastLike", "saturate", 1},
    {"DepthToSpace", "mode", 0, "DCR"},
    {"DequantizeLinear", "axis", 1},
    {"DequantizeLinear", "block_size"},
    {"GRU", "layout"},
    {"LSTM", "layout"},
    {"LpPool", "ceil_mode"},
    {"LpPool", "dilations", 1},
    {"MaxPool", "ceil_mode"},
    {"MaxPool", "dilations", 1},
    {"MaxPool", "storage_order"},
    {"QuantizeLinear", "axis", 1},
    {"QuantizeLinear", "block_size"},
    {"QuantizeLinear", "saturate", 1},
    {"RNN", "layout"},
    {"Reshape", "allowzero"},
    {"Resize", "antialias"},
    {"Resize", "keep_aspect_ratio_policy", 0, "stretch"},
    {"ScatterElements", "reduction", 0, "none"},
    {"ScatterND", "reduction", 0, "none"},
    {"Shape", "start"},
    {"TopK", "largest", 1},
    {"TopK", "sorted", 1},
};

/// What is known of the values of a graph and of those around it.
struct Scope {
  Scope(const Scope *around, const std::map<std::string, model::Type> &known) : outer(around), types(known) {}

  const Scope *outer;
  const std::map<std::string, model::Type> &types;
  std::map<std::string, const model::Tensor *> constants;
  std::unordered_set<std::string> defined;
  std::deque<model::Tensor> added; // constants

  const model::Tensor *constant(const std::string &name) const {
    if (auto found = constants.find(name); found != constants.end())
      return found->second;
    return outer && !defined.count(name) ? outer->constant(name) : nullptr;
  }
  const model::Type *type(const std::string &name) const {
    auto found = types.find(name);
    return found != types.end() ? &found->second : nullptr;
  }
  std::optional<int64_t> rank(const std::string &name) const {
    if (const model::Tensor *tensor = constant(name))
      return int64_t(tensor->dims.size());
    const model::Type *known = type(name);
    return known && known->dims ? std::optional(int64_t(known->dims->size())) : std::nullopt;
  }
  std::optional<int64_t> size(const std::string &name, int64_t axis) const {
    std::optional<int64_t> of = rank(name);
    if (!of || axis < -*of || axis >= *of)
      return std::nullopt;
    axis += axis < 0 ? *of : 0;
    if (const model::Tensor *tensor = constant(name))
      return tensor->dims[size_t(axis)];
    return (*type(name)->dims)[size_t(axis)].size;
  }
  std::optional<Ints> integers(const std::string &name) const {
    const model::Tensor *tensor = constant(name);
    if (!tensor || (tensor->dtype != FIRN_I64 && tensor->dtype != FIRN_I32))
      return std::nullopt;
    size_t size = tensor->dtype == FIRN_I64 ? 8 : 4;
    Ints values;
    for (size_t at = 0; at + size <= tensor->bytes.size(); at += size) {
      int64_t wide = 0;
      int32_t narrow = 0;
      std::memcpy(size == 8 ? static_cast<void *>(&wide) : &narrow, tensor->bytes.data() + at, size);
      values.push_back(size == 8 ? wide : narrow);
    }
    return values;
  }
  /// The one element of a constant of type float.
  std::optional<float> number(const std::string &name) const {
    const model::Tensor *tensor = constant(name);
    if (!tensor || tensor->dtype != FIRN_F32 || tensor->bytes.size() != sizeof(float))
      return std::nullopt;
    float value;
    std::memcpy(&value, tensor->bytes.data(), sizeof value);
    return value;
  }
};

Attribute floatOf(const char *name, float value) {
  Attribute made;
  made.name = name;
  made.kind = Attribute::Kind::Float;
  made.f = value;
  return made;
}

int64_t intOf(const model::Node &node, const char *name, int64_t fallback) {
  const Attribute *found = node.attribute(name);
  return found ? found->i : fallback;
}

std::string textOf(const model::Node &node, const char *name, const char *fallback) {
  const Attribute *found = node.attribute(name);
  return found ? found->s : fallback;
}

void drop(model::Node &node, const char *name) {
  llvm::erase_if(node.attributes, [&](const Attribute &attribute) { return attribute.name == name; });
}

std::string input(const model::Node &node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : ""; }

class Lowering {
public:
  Lowering(model::Model &lowered, int64_t wanted, const std::map<std::string, model::Type> &known, UniqueNames &taken,
           Diagnostics &reported)
      : model(lowered), opset(wanted), types(known), names(taken), diagnostics(reported) {}

  bool run() {
    lowerGraph(model.graph, nullptr);
    model.opsets[""] = opset;
    return !isFailed;
  }

private:
  /// One node on its way down.
  struct Step {
    model::Node &node;
    Scope &scope;
    std::vector<model::Node> before, after;
  };

  void lowerGraph(model::Graph &graph, const Scope *outer);
  void lowerNode(model::Node node, Scope &scope, std::vector<model::Node> &nodes);
  bool isAccepted(const model::Node &node) const { return versionAccepting(node, opset) == opset; }
  bool hasKnownTypes(const model::Node &node, const Scope &scope);
  bool hasAlikeBranches(const model::Node &node, const Scope &scope);
  std::string constant(Step &step, const char *what, int32_t dtype, const void *values, size_t count);
  std::string integers(Step &step, const char *what, const Ints &values);
  static model::Node beside(const Step &step, const char *what, const char *type, std::vector<std::string> inputs,
                            std::vector<std::string> outputs);

  // The rules: false, with the reason in `why`, where there is no older form.
  bool rewrite(Step &step);
  bool inputToInts(Step &step, size_t i, const char *attribute);
  bool axes(Step &step);
  bool split(Step &step);
  bool clip(Step &step);
  bool dropout(Step &step);
  bool pad(Step &step);
  bool slice(Step &step);
  bool topK(Step &step);
  bool softmax(Step &step);
  bool shape(Step &step);
  bool resize(Step &step);
  void dropHabits(model::Node &node) const;
  bool refuse(const std::string &what) {
    why = what;
    return false;
  }

  model::Model &model;
  int64_t opset;
  const std::map<std::string, model::Type> &types;
  UniqueNames &names;
  Diagnostics &diagnostics;
  std::string why;
  bool isFailed = false;
};

/// A new list among the graph's constants.
std::string Lowering::constant(Step &step, const char *what, int32_t dtype, const void *values, size_t count) {
  model::Tensor &tensor = step.scope.added.emplace_back();
  tensor.name = names.fresh(step.node.outputs[0] + "_" + what);
  tensor.dtype = dtype;
  tensor.dims = {int64_t(count)};
  size_t size = count * size_t(firn_dtype_bits(dtype)) / 8;
  std::memcpy(allocateBytes(tensor, size), values, size);
  step.scope.constants[tensor.name] = &tensor;
  return tensor.name;
}

std::string Lowering::integers(Step &step, const char *what, const Ints &values) {
  return constant(step, what, FIRN_I64, values.data(), values.size());
}

model::Node Lowering::beside(const Step &step, const char *what, const char *type, std::vector<std::string> inputs,
                             std::vector<std::string> outputs) {
  model::Node made;
  made.name = step.node.name.empty() ? "" : step.node.name + "/" + what;
  made.type = type;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.sources = step.node.sources;
  return made;
}

void Lowering::lowerGraph(model::Graph &graph, const Scope *outer) {
  Scope scope(outer, types);
  std::unordered_set<std::string> readBefore, readNow;
  collectRead(graph, readBefore);
  std::vector<model::Tensor> constants = std::move(graph.constants);
  graph.constants.clear();
  for (const model::Value &value : graph.inputs)
    scope.defined.insert(value.name);
  for (const model::Tensor &tensor : constants)
    if (scope.defined.insert(tensor.name).second) // not an input, which may be given
      scope.constants[tensor.name] = &tensor;
  std::vector<model::Node> given = std::move(graph.nodes);
  graph.nodes.clear();
  for (const model::Node &node : given) {
    scope.defined.insert(node.outputs.begin(), node.outputs.end());
    if (const Attribute *value = node.type == "Constant" && node.domain.empty() ? node.attribute("value") : nullptr)
      scope.constants[node.outputs[0]] = &value->tensor;
  }
  for (const model::Node &node : given)
    lowerNode(node, scope, graph.nodes); // a copy: constants in `given` are looked at until the end
  collectRead(graph, readNow);
  // What attributes say now is not read any more.
  auto isLeft = [&](const std::string &name) { return readBefore.count(name) && !readNow.count(name); };
  llvm::erase_if(graph.nodes, [&](const model::Node &node) {
    return node.type == "Constant" && node.domain.empty() && isLeft(node.outputs[0]);
  });
  for (model::Tensor &tensor : constants)
    if (!isLeft(tensor.name))
      graph.constants.push_back(std::move(tensor));
  for (model::Tensor &tensor : scope.added)
    if (readNow.count(tensor.name))
      graph.constants.push_back(std::move(tensor));
}

void Lowering::lowerNode(model::Node node, Scope &scope, std::vector<model::Node> &nodes) {
  for (Attribute &attribute : node.attributes)
    if (attribute.graph) {
      attribute.graph = std::make_shared<model::Graph>(*attribute.graph);
      lowerGraph(*attribute.graph, &scope);
    }
  if (!node.domain.empty()) {
    nodes.push_back(std::move(node));
    return;
  }
  int64_t since = formSince(node.type);
  since = std::max(since, versionAccepting(node, since));
  Step step{node, scope, {}, {}};
  dropHabits(node);
  bool isDone = formSince(node.type) <= opset && isAccepted(node);
  why.clear();
  if (!((isDone || (rewrite(step) && isAccepted(node))) && hasKnownTypes(node, scope) &&
        hasAlikeBranches(node, scope))) {
    Diagnostic report;
    report.id = "export.opset";
    report.node = node.name;
    report.operatorName = node.type;
    report.what = "it has no form in opset " + std::to_string(opset) + (why.empty() ? "" : ": " + why);
    report.expected = "an operator of opset " + std::to_string(opset);
    report.found = node.type + "-" + std::to_string(since);
    diagnostics.report(std::move(report));
    isFailed = true;
  }
  for (model::Node &made : step.before)
    lowerNode(std::move(made), scope, nodes);
  nodes.push_back(std::move(node));
  for (model::Node &made : step.after)
    lowerNode(std::move(made), scope, nodes);
}

/// Whether the version of the operator that holds takes the types of the node's values.
bool Lowering::hasKnownTypes(const model::Node &node, const Scope &scope) {
  const Schema *schema = findSchema("", node.type, opset);
  for (bool isInput : {true, false}) {
    const std::vector<std::string> &values = isInput ? node.inputs : node.outputs;
    for (size_t i = 0; i < values.size(); ++i) {
      const model::Type *type = scope.type(values[i]);
      if (type && schema && !(isInput ? schema->takes(i, *type) : schema->gives(i, *type)))
        return refuse("the type of its " + std::string(isInput ? "input " : "output ") + std::to_string(i) + " (" +
                      values[i] + ") came later");
    }
  }
  return true;
}

/// Whether the branches of an If are as alike as opsets before 11 want them.
bool Lowering::hasAlikeBranches(const model::Node &node, const Scope &scope) {
  if (node.type != "If" || opset >= 11)
    return true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    std::vector<std::optional<int64_t>> ranks;
    for (const Attribute &branch : node.attributes)
      if (branch.graph && i < branch.graph->outputs.size())
        ranks.push_back(scope.rank(branch.graph->outputs[i].name));
    if (llvm::any_of(ranks, [&](const std::optional<int64_t> &rank) { return !rank || rank != ranks[0]; }))
      return refuse("branches of different rank are of opset 11");
  }
  return true;
}

void Lowering::dropHabits(model::Node &node) const {
  const Schema *schema = findSchema("", node.type, opset);
  if (!schema)
    return;
  llvm::erase_if(node.attributes, [&](const Attribute &attribute) {
    return schema->kindOf(attribute.name) == 0 && llvm::any_of(habits, [&](const Habit &habit) {
             return node.type == habit.type && attribute.name == habit.attribute &&
                    (attribute.kind == Attribute::Kind::String ? attribute.s == habit.text
                     : attribute.kind == Attribute::Kind::Ints
                         ? llvm::all_of(attribute.ints, [&](int64_t value) { return value == habit.value; })
                         : attribute.i == habit.value);
           });
  });
}

bool Lowering::rewrite(Step &step) {
  const std::string &type = step.node.type;
  if (llvm::StringRef(type).starts_with("Reduce") || type == "Squeeze" || type == "Unsqueeze")
    return axes(step);
  using Rule = bool (Lowering::*)(Step &);
  static const std::map<std::string, Rule> rules = {
      {"Clip", &Lowering::clip},          {"Dropout", &Lowering::dropout}, {"Hardmax", &Lowering::softmax},
      {"LogSoftmax", &Lowering::softmax}, {"Pad", &Lowering::pad},         {"Resize", &Lowering::resize},
      {"Shape", &Lowering::shape},        {"Slice", &Lowering::slice},     {"Softmax", &Lowering::softmax},
      {"Split", &Lowering::split},        {"TopK", &Lowering::topK},
  };
  auto found = rules.find(type);
  return found != rules.end() && (this->*found->second)(step);
}

/// Input i, a constant list, becomes an attribute. Inputs behind it must be gone.
bool Lowering::inputToInts(Step &step, size_t i, const char *attribute) {
  std::string name = input(step.node, i);
  if (!name.empty()) {
    std::optional<Ints> values = step.scope.integers(name);
    if (!values)
      return refuse("its input " + std::to_string(i) + " must be constant there");
    step.node.attributes.push_back(intsAttribute(attribute, *values));
  }
  if (step.node.inputs.size() > i)
    step.node.inputs.resize(i);
  return true;
}

bool Lowering::axes(Step &step) {
  std::string list = input(step.node, 1);
  std::optional<Ints> axes = list.empty() ? Ints() : step.scope.integers(list);
  if (!axes)
    return refuse("its axes must be constant there");
  bool isNothing = axes->empty() && intOf(step.node, "noop_with_empty_axes", 0);
  drop(step.node, "noop_with_empty_axes");
  step.node.inputs.resize(1);
  if (isNothing) {
    // Sums of one element are the element; other reductions are not.
    if (step.node.type != "ReduceSum" && step.node.type != "ReduceMax" && step.node.type != "ReduceMin" &&
        step.node.type != "ReduceMean" && step.node.type != "ReduceProd")
      return refuse("it reduces no axis");
    drop(step.node, "keepdims");
    step.node.type = "Identity";
    return true;
  }
  if (axes->empty())
    return step.node.type != "Unsqueeze" || refuse("it has no axes");
  if (opset < 11) // from the front there
    for (int64_t &axis : *axes)
      if (axis < 0) {
        std::optional<int64_t> rank = step.scope.rank(step.node.inputs[0]);
        if (!rank)
          return refuse("negative axes are of opset 11, and the rank is not known");
        axis += *rank + (step.node.type == "Unsqueeze" ? int64_t(axes->size()) : 0);
      }
  step.node.attributes.push_back(intsAttribute("axes", *axes));
  return true;
}

bool Lowering::split(Step &step) {
  if (step.node.attribute("num_outputs")) {
    std::string x = step.node.inputs[0];
    std::optional<int64_t> size = step.scope.size(x, intOf(step.node, "axis", 0));
    if (!size)
      return refuse("the size of the axis that it splits is not known");
    int64_t count = int64_t(step.node.outputs.size()), part = (*size + count - 1) / count;
    Ints sizes(size_t(count), part);
    sizes.back() = *size - part * (count - 1);
    drop(step.node, "num_outputs");
    if (opset >= 13) {
      step.node.inputs = {x, integers(step, "sizes", sizes)};
      return true;
    }
    step.node.attributes.push_back(intsAttribute("split", sizes));
    return true;
  }
  return inputToInts(step, 1, "split");
}

bool Lowering::clip(Step &step) {
  std::optional<float> low, high;
  for (auto [i, bound] : {std::pair(size_t(1), &low), std::pair(size_t(2), &high)})
    if (std::string name = input(step.node, i); !name.empty() && !(*bound = step.scope.number(name)))
      return refuse("its bounds must be constants of type float there");
  if (low && high && *low > *high)
    low = high; // what they give now; before, they were not allowed
  if (low)
    step.node.attributes.push_back(floatOf("min", *low));
  if (high)
    step.node.attributes.push_back(floatOf("max", *high));
  step.node.inputs.resize(1);
  return true;
}

/// What runs is the identity.
bool Lowering::dropout(Step &step) {
  if (!input(step.node, 2).empty())
    return refuse("whether it is in training must not be an input");
  step.node.inputs.resize(1);
  drop(step.node, "seed");
  return true;
}

bool Lowering::pad(Step &step) {
  std::optional<Ints> pads = step.scope.integers(input(step.node, 1));
  if (!pads)
    return refuse("its pads must be constant there");
  if (std::string list = input(step.node, 3); !list.empty()) {
    std::optional<Ints> axes = step.scope.integers(list);
    std::optional<int64_t> rank = step.scope.rank(step.node.inputs[0]);
    if (!axes || !rank || pads->size() != axes->size() * 2)
      return refuse("its axes must be constant and its rank known there");
    Ints all(size_t(*rank) * 2);
    for (size_t i = 0; i < axes->size(); ++i) {
      int64_t axis = (*axes)[i] + ((*axes)[i] < 0 ? *rank : 0);
      if (axis < 0 || axis >= *rank)
        return refuse("axis " + std::to_string((*axes)[i]) + " is out of its rank");
      all[size_t(axis)] = (*pads)[i];
      all[size_t(axis + *rank)] = (*pads)[i + axes->size()];
    }
    pads = all;
  }
  std::string value = input(step.node, 2);
  if (opset >= 11) {
    if (textOf(step.node, "mode", "constant") == "wrap")
      return refuse("mode 'wrap' is of opset 19");
    step.node.inputs.resize(value.empty() ? 2 : 3);
    step.node.inputs[1] = integers(step, "pads", *pads);
    return true;
  }
  std::optional<float> number = value.empty() ? 0.0f : step.scope.number(value);
  if (!number)
    return refuse("its value must be a constant of type float there");
  step.node.inputs.resize(1);
  step.node.attributes.push_back(intsAttribute("pads", *pads));
  if (*number != 0)
    step.node.attributes.push_back(floatOf("value", *number));
  return true;
}

bool Lowering::slice(Step &step) {
  std::string strides = input(step.node, 4);
  if (!strides.empty()) {
    std::optional<Ints> steps = step.scope.integers(strides);
    if (!steps || llvm::any_of(*steps, [](int64_t s) { return s != 1; }))
      return refuse("steps are of opset 10");
    step.node.inputs.resize(4);
  }
  // A negative axis was allowed by what readers did, but is not said.
  return inputToInts(step, 3, "axes") && inputToInts(step, 2, "ends") && inputToInts(step, 1, "starts");
}

bool Lowering::topK(Step &step) {
  std::optional<Ints> k = step.scope.integers(input(step.node, 1));
  if (opset >= 10)
    return refuse("the smallest, or unsorted ones, are of opset 11");
  if (!k || k->size() != 1)
    return refuse("its k must be constant there");
  step.node.inputs.resize(1);
  step.node.attributes.push_back(intAttribute("k", (*k)[0]));
  return true;
}

/// Until 13 it went over all axes from `axis` on: the same for the last, which is moved there.
bool Lowering::softmax(Step &step) {
  std::optional<int64_t> rank = step.scope.rank(step.node.inputs[0]);
  int64_t axis = intOf(step.node, "axis", -1);
  if (!rank)
    return refuse("its rank must be known there");
  axis += axis < 0 ? *rank : 0;
  drop(step.node, "axis");
  step.node.attributes.push_back(intAttribute("axis", *rank - 1));
  if (axis == *rank - 1)
    return true;
  Ints perm;
  for (int64_t i = 0; i < *rank; ++i)
    perm.push_back(i == axis ? *rank - 1 : i == *rank - 1 ? axis : i);
  std::string moved = names.fresh(step.node.outputs[0] + "_moved"),
              result = names.fresh(step.node.outputs[0] + "_last");
  step.before.push_back(beside(step, "to_last", "Transpose", {step.node.inputs[0]}, {moved}));
  step.after.push_back(beside(step, "from_last", "Transpose", {result}, {step.node.outputs[0]}));
  for (model::Node *node : {&step.before.back(), &step.after.back()})
    node->attributes.push_back(intsAttribute("perm", perm));
  step.node.inputs[0] = moved;
  step.node.outputs[0] = result;
  return true;
}

bool Lowering::shape(Step &step) {
  int64_t start = intOf(step.node, "start", 0), end = intOf(step.node, "end", INT64_MAX);
  drop(step.node, "start");
  drop(step.node, "end");
  std::string all = names.fresh(step.node.outputs[0] + "_all");
  step.after.push_back(beside(step, "part", "Slice",
                              {all, integers(step, "start", {start}), integers(step, "end", {end})},
                              {step.node.outputs[0]}));
  step.node.outputs[0] = all;
  return true;
}

/// Region and scales may be left out since 13; before, they are empty lists.
bool Lowering::resize(Step &step) {
  if (opset < 11)
    return refuse("opset 11 brought the ways of sampling");
  for (size_t i = 1; i < 3; ++i)
    if (input(step.node, i).empty()) {
      step.node.inputs.resize(std::max(step.node.inputs.size(), i + 1));
      step.node.inputs[i] = constant(step, i == 1 ? "roi" : "scales", FIRN_F32, "", 0);
    }
  return true;
}

} // namespace

bool lowerModel(model::Model &model, int64_t opset, const std::map<std::string, model::Type> &types, UniqueNames &names,
                Diagnostics &diagnostics) {
  return Lowering(model, opset, types, names, diagnostics).run();
}

} // namespace firn
