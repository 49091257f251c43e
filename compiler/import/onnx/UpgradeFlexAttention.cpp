// FlexAttention in the operators that it is defined by. Its graphs become branches that are always taken, which the
// optimiser puts in their place.
#include "compiler/import/onnx/Upgrade.h"
#include "runtime/abi/dtype.h"
#include <climits>
#include <cmath>

namespace firn::upgrade {

/// `value` changed by the graph in attribute `name`, if there is one.
static std::string modified(UpgradeContext &context, const char *name, const std::string &value) {
  const model::Attribute *attribute = context.node.attribute(name);
  if (!attribute || !attribute->graph)
    return value;
  model::Graph graph = *attribute->graph;
  if (graph.inputs.size() != 1 || graph.outputs.size() != 1) {
    context.unsupported(std::string("graph '") + name + "' has " + std::to_string(graph.inputs.size()) +
                            " inputs and " + std::to_string(graph.outputs.size()) + " outputs",
                        "give it one of each");
    return value;
  }
  auto identity = [&](const std::string &to) {
    model::Node node;
    node.name = to;
    node.type = "Identity";
    node.version = INT_MAX; // the newest form already
    node.origin = context.node.origin;
    node.inputs = {value};
    node.outputs = {to};
    return node;
  };
  graph.nodes.insert(graph.nodes.begin(), identity(graph.inputs[0].name));
  graph.inputs.clear();
  model::Graph other;
  other.name = graph.name;
  other.outputs.push_back({context.fresh("unchanged"), graph.outputs[0].type, ""});
  other.nodes.push_back(identity(other.outputs[0].name));
  auto branch = [](const char *branchName, model::Graph body) {
    model::Attribute made;
    made.name = branchName;
    made.kind = model::Attribute::Kind::Graph;
    made.graph = std::make_shared<model::Graph>(std::move(body));
    return made;
  };
  std::string always = context.emit("always", "Cast", {context.integer("one", 1)}, {intAttribute("to", FIRN_BOOL)});
  return context.emit(name, "If", {always},
                      {branch("then_branch", std::move(graph)), branch("else_branch", std::move(other))});
}

void flexAttention(UpgradeContext &context) {
  std::string query = context.input(0), key = context.input(1), value = context.input(2);
  int64_t precision = context.intOf("softmax_precision", 0);
  int32_t dtype = context.facts.of(query).dtype;
  if (!precision && !dtype)
    return context.unsupported("the element type of its query is not known before the model is compiled",
                               "give attribute softmax_precision");
  if (!precision)
    precision = dtype == FIRN_F64 ? FIRN_F64 : FIRN_F32;

  auto sizes = [&](const std::string &of, int64_t begin, int64_t end) {
    return context.emit("sizes", "Shape", {of}, {intAttribute("start", begin), intAttribute("end", end)});
  };
  auto concat = [&](std::vector<std::string> parts) {
    return context.emit("shape", "Concat", std::move(parts), {intAttribute("axis", 0)});
  };
  // Each head of keys and values serves a group of heads of queries.
  std::string heads = sizes(query, 1, 2), one = context.integers("one_size", {1});
  auto repeated = [&](const std::string &of) {
    std::string group = context.emit("group", "Div", {heads, sizes(of, 1, 2)});
    std::string spread = context.emit("spread", "Unsqueeze", {of, context.integers("group_axis", {2})});
    spread = context.emit("repeated", "Expand", {spread, concat({one, one, group, one, one})});
    return context.emit("of_heads", "Reshape", {spread, concat({sizes(of, 0, 1), heads, sizes(of, 2, 4)})});
  };
  std::string root; // of the scale: half of it for each factor
  if (context.has("scale")) {
    root = context.floats("scale", {std::sqrt(context.floatOf("scale", 1))});
  } else {
    std::string width = context.emit("width", "Cast", {sizes(query, 3, 4)}, {intAttribute("to", FIRN_F32)});
    root = context.emit("scale", "Reciprocal", {context.emit("scale", "Sqrt", {width})});
    root = context.emit("scale", "Sqrt", {root});
  }
  root = context.emit("scale", "CastLike", {root, query});
  std::string keys = context.emit("keys", "Mul", {repeated(key), root});
  keys = context.emit("keys", "Transpose", {keys}, {intsAttribute("perm", {0, 1, 3, 2})});
  std::string scores = context.emit("scores", "MatMul", {context.emit("queries", "Mul", {query, root}), keys});
  scores = context.emit("scores", "Cast", {scores}, {intAttribute("to", precision)});
  scores = modified(context, "score_mod", scores);
  std::string probabilities = context.emit("probabilities", "Softmax", {scores}, {intAttribute("axis", -1)});
  probabilities = modified(context, "prob_mod", probabilities);
  std::string values = context.emit("values", "Cast", {repeated(value)}, {intAttribute("to", precision)});
  std::string result = context.emit("result", "MatMul", {probabilities, values});
  context.node.domain.clear();
  context.node.type = "CastLike";
  context.node.inputs = {result, value};
  context.node.attributes.clear();
}

} // namespace firn::upgrade
