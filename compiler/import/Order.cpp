#include "compiler/import/Prepare.h"
#include "compiler/import/onnx/Schema.h"
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace firn {

static void collectCaptured(const model::Graph &graph, std::vector<std::string> &captured) {
  std::unordered_set<std::string> own;
  for (const model::Value &value : graph.inputs)
    own.insert(value.name);
  for (const model::Tensor &tensor : graph.constants)
    own.insert(tensor.name);
  for (const model::Node &node : graph.nodes)
    own.insert(node.outputs.begin(), node.outputs.end());
  auto read = [&](const std::string &name) {
    if (!name.empty() && !own.count(name))
      captured.push_back(name);
  };
  for (const model::Node &node : graph.nodes) {
    for (const std::string &input : node.inputs)
      read(input);
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        for (const std::string &name : capturedNames(*attribute.graph))
          read(name);
  }
  for (const model::Value &output : graph.outputs)
    read(output.name);
}

void collectNames(const model::Graph &graph, std::unordered_set<std::string> &names) {
  for (const model::Value &value : graph.inputs)
    names.insert(value.name);
  for (const model::Tensor &tensor : graph.constants)
    names.insert(tensor.name);
  for (const model::Node &node : graph.nodes) {
    names.insert(node.outputs.begin(), node.outputs.end());
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        collectNames(*attribute.graph, names);
  }
}

void collectRead(const model::Graph &graph, std::unordered_set<std::string> &read) {
  for (const model::Value &output : graph.outputs)
    read.insert(output.name);
  for (const model::Node &node : graph.nodes) {
    read.insert(node.inputs.begin(), node.inputs.end());
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        collectRead(*attribute.graph, read);
  }
}

std::vector<std::string> capturedNames(const model::Graph &graph) {
  std::vector<std::string> captured;
  collectCaptured(graph, captured);
  return captured;
}

namespace {
/// Which nodes read what each node defines.
struct Dependences {
  std::vector<std::vector<size_t>> readers;
  std::vector<size_t> open; // inputs of each node that are not computed yet
};
} // namespace

static Dependences dependencesOf(const model::Graph &graph) {
  std::unordered_map<std::string, size_t> definedBy;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string &output : graph.nodes[i].outputs)
      if (!output.empty())
        definedBy[output] = i;
  Dependences result{std::vector<std::vector<size_t>>(graph.nodes.size()), std::vector<size_t>(graph.nodes.size())};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto read = [&](const std::string &name) {
      auto found = definedBy.find(name);
      if (found == definedBy.end())
        return;
      result.readers[found->second].push_back(i);
      ++result.open[i];
    };
    for (const std::string &input : graph.nodes[i].inputs)
      read(input);
    for (const model::Attribute &attribute : graph.nodes[i].attributes)
      if (attribute.graph)
        for (const std::string &name : capturedNames(*attribute.graph))
          read(name);
  }
  return result;
}

// Nodes that are left over all wait for each other or for such; walking backwards from one must close a circle.
static bool reportCycle(const model::Graph &graph, const Dependences &dependences, const std::vector<bool> &isPlaced,
                        Diagnostics &diagnostics) {
  std::vector<size_t> writer(graph.nodes.size(), SIZE_MAX);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!isPlaced[i])
      for (size_t reader : dependences.readers[i])
        if (writer[reader] == SIZE_MAX)
          writer[reader] = i;
  size_t at = 0;
  while (isPlaced[at])
    ++at;
  std::vector<size_t> visits(graph.nodes.size());
  while (visits[at]++ == 0)
    at = writer[at];
  std::vector<std::string> names;
  size_t start = at, length = 0;
  do {
    if (names.size() < 6)
      names.push_back("'" + graph.nodes[at].name + "'");
    ++length;
    at = writer[at];
  } while (at != start);
  Diagnostic diagnostic;
  diagnostic.id = "import.cycle";
  diagnostic.node = graph.nodes[start].name;
  diagnostic.operatorName = operatorLabel(graph.nodes[start]);
  diagnostic.what = "the graph is cyclic: node reads its own result through ";
  for (size_t i = names.size(); i-- > 0;)
    diagnostic.what += names[i] + (i ? ", " : "");
  if (length > names.size())
    diagnostic.what += " and " + std::to_string(length - names.size()) + " more";
  diagnostic.fix = "write recurrence with Loop or Scan";
  diagnostics.report(std::move(diagnostic));
  return false;
}

bool orderNodes(model::Graph &graph, Diagnostics &diagnostics) {
  Dependences dependences = dependencesOf(graph);
  std::vector<size_t> open = dependences.open;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready; // the file's order where there is a choice
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (open[i] == 0)
      ready.push(i);
  std::vector<size_t> order;
  std::vector<bool> isPlaced(graph.nodes.size());
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    isPlaced[i] = true;
    for (size_t reader : dependences.readers[i])
      if (--open[reader] == 0)
        ready.push(reader);
  }
  if (order.size() < graph.nodes.size())
    return reportCycle(graph, dependences, isPlaced, diagnostics);
  std::vector<model::Node> nodes;
  nodes.reserve(order.size());
  for (size_t i : order)
    nodes.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(nodes);
  for (model::Node &node : graph.nodes)
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph && !orderNodes(*attribute.graph, diagnostics))
        return false;
  return true;
}

} // namespace firn
