// Scan is Loop with its slicing spelt out: the loop's body gathers each input's slice itself, and what the loop stacks
// along axis 0 is turned round and transposed behind it. Version 8, over batches, is a loop of such scans. SequenceMap
// is a loop that takes a tensor of each sequence and inserts what its body computes into new ones.
#include "compiler/import/onnx/Upgrade.h"
#include <climits>

namespace firn::upgrade {

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

static model::Value scalarInput(std::string name, int32_t dtype) {
  model::Type type;
  type.kind = model::Type::Kind::Tensor;
  type.dtype = dtype;
  type.dims.emplace();
  return {std::move(name), std::move(type), ""};
}

/// The frame of a loop that runs as often as its trip count says: iteration number, condition, and the condition again
/// as the first output.
static model::Graph countedBody(UpgradeContext &context, const model::Graph &body, std::string &iteration) {
  model::Graph loop;
  loop.name = body.name;
  iteration = context.fresh("iteration");
  std::string condition = context.fresh("condition"), goOn = context.fresh("go_on");
  loop.inputs = {scalarInput(iteration, 7), scalarInput(condition, 9)};
  loop.nodes.push_back(bodyNode(context, "Identity", {condition}, goOn));
  loop.outputs.push_back(scalarInput(goOn, 9));
  return loop;
}

static void becomeLoop(UpgradeContext &context, model::Graph body, std::vector<std::string> inputs) {
  context.node.type = "Loop";
  context.node.inputs = std::move(inputs);
  model::Attribute attribute;
  attribute.name = "body";
  attribute.kind = model::Attribute::Kind::Graph;
  attribute.graph = std::make_shared<model::Graph>(std::move(body));
  context.node.attributes = {std::move(attribute)};
}

void scan9(UpgradeContext &context) {
  const model::Attribute *bodyAttribute = context.node.attribute("body");
  int64_t scanned = context.intOf("num_scan_inputs", 0);
  size_t inputCount = context.node.inputs.empty() ? 0 : context.node.inputs.size() - 1;
  if (!bodyAttribute || !bodyAttribute->graph || scanned < 1 || size_t(scanned) > inputCount)
    return context.unsupported("num_scan_inputs does not fit the inputs", "give each scanned input a place");
  const model::Graph &body = *bodyAttribute->graph;
  size_t states = inputCount - size_t(scanned);
  if (body.inputs.size() != inputCount || body.outputs.size() < states ||
      context.node.outputs.size() != body.outputs.size())
    return context.unsupported("the body has " + std::to_string(body.inputs.size()) + " inputs and " +
                               std::to_string(body.outputs.size()) + " outputs, the node " +
                               std::to_string(inputCount) + " and " + std::to_string(context.node.outputs.size()));
  auto sizeOf = [&](llvm::StringRef what, int64_t axis) {
    std::string length = context.emit(what, "Shape", {context.input(1 + states)},
                                      {intAttribute("start", axis), intAttribute("end", axis + 1)});
    return context.emit(what, "Squeeze", {length, context.integers("zero_axis", {0})});
  };
  std::string batches = sizeOf("batches", 0), longest = sizeOf("longest", 1), lengths = context.input(0), batch;
  model::Graph loop = countedBody(context, body, batch);
  auto node = [&](llvm::StringRef type, std::vector<std::string> inputs, llvm::StringRef what) {
    loop.nodes.push_back(bodyNode(context, type, std::move(inputs), context.fresh(what)));
    return loop.nodes.back().outputs[0];
  };
  // What of the batch there is: its own length, padded behind with zeros.
  std::string zero = context.integers("zero_axis", {0}), length, padding;
  if (!lengths.empty()) {
    length = node("Unsqueeze", {node("Gather", {lengths, batch}, "length"), zero}, "length_list");
    std::string missing = node("Sub", {node("Unsqueeze", {longest, zero}, "longest_list"), length}, "missing");
    padding = node("Concat", {zero, missing}, "padding");
    loop.nodes.back().attributes.push_back(intAttribute("axis", 0));
  }
  std::vector<std::string> inputs;
  for (size_t i = 0; i < inputCount; ++i) {
    inputs.push_back(node("Gather", {context.input(1 + i), batch}, "of_batch"));
    if (i >= states && !lengths.empty())
      inputs.back() = node("Slice", {inputs.back(), zero, length, zero}, "begin");
  }
  model::Node scan = bodyNode(context, "Scan", inputs, context.fresh("scan"));
  scan.outputs.clear();
  scan.attributes = {*bodyAttribute, intAttribute("num_scan_inputs", scanned)};
  if (std::vector<int64_t> directions = context.intsOf("directions"); !directions.empty())
    scan.attributes.push_back(intsAttribute("scan_input_directions", directions));
  for (const model::Value &output : body.outputs)
    scan.outputs.push_back(context.fresh(output.name));
  std::vector<std::string> outputs = scan.outputs;
  loop.nodes.push_back(std::move(scan));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= states && !lengths.empty())
      outputs[i] = node("Pad", {outputs[i], padding, "", zero}, "padded");
    loop.outputs.push_back({outputs[i], {}, ""});
  }
  becomeLoop(context, std::move(loop), {batches, ""});
}

void sequenceMapToLoop(UpgradeContext &context) {
  const model::Attribute *bodyAttribute = context.node.attribute("body");
  if (!bodyAttribute || !bodyAttribute->graph)
    return;
  const model::Graph &body = *bodyAttribute->graph;
  if (body.inputs.size() != context.node.inputs.size() || body.outputs.size() != context.node.outputs.size())
    return context.unsupported("the body has " + std::to_string(body.inputs.size()) + " inputs and " +
                               std::to_string(body.outputs.size()) + " outputs, the node " +
                               std::to_string(context.node.inputs.size()) + " and " +
                               std::to_string(context.node.outputs.size()));
  std::string iteration;
  model::Graph loop = countedBody(context, body, iteration);
  loop.values = body.values;
  loop.constants = body.constants;
  std::vector<std::string> inputs{context.emit("length", "SequenceLength", {context.input(0)}), ""};
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    bool isSequence = i == 0 || context.facts.of(context.input(i)).isSequence;
    loop.nodes.push_back(isSequence
                             ? bodyNode(context, "SequenceAt", {context.input(i), iteration}, body.inputs[i].name)
                             : bodyNode(context, "Identity", {context.input(i)}, body.inputs[i].name));
  }
  loop.nodes.insert(loop.nodes.end(), body.nodes.begin(), body.nodes.end());
  for (const model::Value &output : body.outputs) {
    if (output.type.kind != model::Type::Kind::Tensor || !output.type.dtype)
      return context.unsupported("the element type of the body's output '" + output.name + "' is not declared",
                                 "declare the types of the body's outputs");
    std::string gathered = context.fresh("gathered"), grown = context.fresh("grown");
    inputs.push_back(context.emit("empty", "SequenceEmpty", {}, {intAttribute("dtype", output.type.dtype)}));
    loop.inputs.push_back({gathered, {}, ""});
    loop.nodes.push_back(bodyNode(context, "SequenceInsert", {gathered, output.name}, grown));
    loop.outputs.push_back({grown, {}, ""});
  }
  becomeLoop(context, std::move(loop), std::move(inputs));
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

  std::string iteration;
  model::Graph loop = countedBody(context, body, iteration);
  loop.values = body.values;
  loop.constants = body.constants;
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
  becomeLoop(context, std::move(loop), std::move(inputs));
}

} // namespace firn::upgrade
