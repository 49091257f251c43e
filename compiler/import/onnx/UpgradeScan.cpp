// Scan is Loop with its slicing spelt out: the loop's body gathers each input's slice itself, and what the loop stacks
// along axis 0 is turned round and transposed behind it.
#include "compiler/import/onnx/Upgrade.h"
#include <climits>

namespace firn::upgrade {

void scan9(UpgradeContext &context) {
  context.unsupported("Scan over batches (version 8) is not supported", "export the model with opset 9 or newer");
}

static int64_t elementOr(const std::vector<int64_t> &values, size_t i, int64_t fallback) {
  return i < values.size() ? values[i] : fallback;
}

static model::Node bodyNode(UpgradeContext &context, llvm::StringRef type, std::vector<std::string> inputs,
                            std::string output) {
  model::Node made;
  made.name = output;
  made.type = type.str();
  made.version = INT_MAX; // the newest form already
  made.origin = context.node.origin;
  made.inputs = std::move(inputs);
  made.outputs = {std::move(output)};
  return made;
}

void scanToLoop(UpgradeContext &context) {
  if (context.node.version < 9)
    return;
  model::Attribute *bodyAttribute = context.node.attribute("body");
  int64_t scanned = context.intOf("num_scan_inputs", 0);
  size_t inputCount = context.node.inputs.size();
  if (!bodyAttribute || !bodyAttribute->graph || scanned < 1 || size_t(scanned) > inputCount)
    return context.unsupported("num_scan_inputs does not fit the inputs", "give each scanned input a place");
  size_t states = inputCount - size_t(scanned);
  model::Graph body = *bodyAttribute->graph;
  if (body.inputs.size() != inputCount || body.outputs.size() < states ||
      context.node.outputs.size() != body.outputs.size())
    return context.report("import.control", "the body does not fit the node: expected " + std::to_string(inputCount) +
                                                " inputs and " + std::to_string(context.node.outputs.size()) +
                                                " outputs, found " + std::to_string(body.inputs.size()) + " and " +
                                                std::to_string(body.outputs.size()));
  std::vector<int64_t> inputAxes = context.intsOf("scan_input_axes"),
                       inputDirections = context.intsOf("scan_input_directions");
  std::vector<int64_t> outputAxes = context.intsOf("scan_output_axes"),
                       outputDirections = context.intsOf("scan_output_directions");

  // How often: the length of the first scanned input's axis.
  int64_t firstAxis = elementOr(inputAxes, 0, 0);
  std::vector<model::Attribute> range{intAttribute("start", firstAxis)};
  if (firstAxis != -1)
    range.push_back(intAttribute("end", firstAxis + 1));
  std::string length = context.emit("length", "Shape", {context.input(states)}, range);
  std::string trips = context.emit("trips", "Squeeze", {length, context.integers("zero_axis", {0})});

  std::string iteration = context.fresh("iteration"), condition = context.fresh("condition");
  model::Graph loop;
  loop.name = body.name;
  loop.values = body.values;
  loop.constants = body.constants;
  loop.inputs.push_back({iteration, {model::Type::Kind::Tensor, 7, std::vector<model::Dim>()}, ""});
  loop.inputs.push_back({condition, {model::Type::Kind::Tensor, 9, std::vector<model::Dim>()}, ""});
  for (size_t i = 0; i < states; ++i)
    loop.inputs.push_back(body.inputs[i]);
  for (size_t i = 0; i < size_t(scanned); ++i) {
    std::string index = iteration;
    if (elementOr(inputDirections, i, 0) == 1) {
      std::string last = context.emit("last", "Sub", {trips, context.integer("one", 1)});
      index = context.fresh("backward");
      loop.nodes.push_back(bodyNode(context, "Sub", {last, iteration}, index));
    }
    model::Node slice = bodyNode(context, "Gather", {context.input(states + i), index}, body.inputs[states + i].name);
    slice.attributes.push_back(intAttribute("axis", elementOr(inputAxes, i, 0)));
    loop.nodes.push_back(std::move(slice));
  }
  for (model::Node &node : body.nodes)
    loop.nodes.push_back(std::move(node));
  std::string goOn = context.fresh("go_on");
  loop.nodes.push_back(bodyNode(context, "Identity", {condition}, goOn));
  loop.outputs.push_back({goOn, {model::Type::Kind::Tensor, 9, std::vector<model::Dim>()}, ""});
  loop.outputs.insert(loop.outputs.end(), body.outputs.begin(), body.outputs.end());

  std::vector<std::string> inputs{trips, ""};
  for (size_t i = 0; i < states; ++i)
    inputs.push_back(context.input(i));
  for (size_t i = states; i < context.node.outputs.size(); ++i) {
    if (context.node.outputs[i].empty())
      continue;
    int64_t axis = elementOr(outputAxes, i - states, 0);
    bool isReversed = elementOr(outputDirections, i - states, 0) == 1;
    if (axis != 0) {
      const model::Type &type = body.outputs[i].type;
      if (!type.dims)
        return context.unsupported("scan output " + std::to_string(i - states) + " has a scan axis of " +
                                       std::to_string(axis) + ", which needs the rank of the body's output",
                                   "declare the type of the body's output");
      int64_t rank = int64_t(type.dims->size()) + 1;
      axis += axis < 0 ? rank : 0;
      if (axis < 0 || axis >= rank)
        return context.unsupported("scan_output_axes is outside the rank of the output");
      std::vector<int64_t> permutation;
      for (int64_t j = 1; j < rank; ++j)
        permutation.push_back(j);
      permutation.insert(permutation.begin() + axis, 0);
      context.emitAfter(i, "transposed", "Transpose", {}, {intsAttribute("perm", permutation)});
    }
    if (isReversed)
      context.emitAfter(i, "reversed", "Slice",
                        {context.integers("from", {-1}), context.integers("to", {INT64_MIN}),
                         context.integers("axes", {0}), context.integers("steps", {-1})});
  }
  context.node.type = "Loop";
  context.node.inputs = std::move(inputs);
  model::Attribute attribute = *context.node.attribute("body");
  attribute.graph = std::make_shared<model::Graph>(std::move(loop));
  context.node.attributes = {std::move(attribute)};
}

} // namespace firn::upgrade
