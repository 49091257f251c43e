#include "compiler/import/Prepare.h"
#include "compiler/import/onnx/Schema.h"
#include "llvm/ADT/StringExtras.h"
#include <unordered_set>

namespace firn {
namespace {

/// Upgraded, though its domain is another.
bool isFlexAttention(const model::Node &node) {
  return node.domain == "ai.onnx.preview" && node.type == "FlexAttention";
}

struct Scope {
  const Scope *outer = nullptr;
  std::unordered_set<std::string> names;

  bool sees(const std::string &name) const {
    for (const Scope *scope = this; scope; scope = scope->outer)
      if (scope->names.count(name))
        return true;
    return false;
  }
};

class Checker {
public:
  Checker(model::Model &checked, const std::function<bool(llvm::StringRef)> &supported, Diagnostics &reported)
      : model(checked), isSupported(supported), diagnostics(reported) {}

  void run() {
    checkOpsets();
    checkGraph(model.graph, nullptr);
  }

private:
  void checkOpsets();
  void checkGraph(model::Graph &graph, const Scope *outer);
  void checkNode(model::Node &node, const Scope &scope);
  const Schema *checkOperator(model::Node &node);
  void checkAttributes(model::Node &node, const Schema &schema);
  void checkCounts(model::Node &node, const Schema &schema);
  void checkControl(model::Node &node);
  std::string closest(const std::string &name, const Scope &scope) const;
  void report(model::Node *node, llvm::StringRef id, const std::string &what, const std::string &expected = "",
              const std::string &found = "", const std::string &fix = "");

  model::Model &model;
  const std::function<bool(llvm::StringRef)> &isSupported;
  Diagnostics &diagnostics;
};

static Diagnostic problemOf(const model::Node &node, llvm::StringRef id, const std::string &what) {
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  diagnostic.node = node.name;
  diagnostic.operatorName = operatorLabel(node);
  diagnostic.what = what;
  return diagnostic;
}

void Checker::report(model::Node *node, llvm::StringRef id, const std::string &what, const std::string &expected,
                     const std::string &found, const std::string &fix) {
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  if (node) {
    diagnostic.node = node->name;
    diagnostic.operatorName = operatorLabel(*node);
    node->isBroken = true;
  }
  diagnostic.what = what;
  diagnostic.expected = expected;
  diagnostic.found = found;
  diagnostic.fix = fix;
  diagnostics.report(std::move(diagnostic));
}

void Checker::checkOpsets() {
  for (auto &[domain, version] : model.opsets) {
    int64_t newest = newestVersion(domain);
    if (version < 1 || (newest && version > newest && (domain.empty() || domain == "ai.onnx.ml")))
      report(nullptr, "import.opset", "opset of domain '" + model::domainName(domain) + "' is not known",
             "1 to " + std::to_string(newest), std::to_string(version),
             "export the model with opset " + std::to_string(newest) + " or older");
  }
}

// A name in scope that differs in few letters, for the hint.
std::string Checker::closest(const std::string &name, const Scope &scope) const {
  std::string best;
  // At most a third of the letters may differ, never all of them.
  size_t most = std::min<size_t>({3, name.size() / 3 + 1, name.empty() ? 0 : name.size() - 1});
  unsigned bestDistance = unsigned(most) + 1; // the first one too far
  for (const Scope *at = &scope; at; at = at->outer) {
    if (at->names.size() > 20000)
      continue;
    for (const std::string &candidate : at->names) {
      unsigned distance = llvm::StringRef(name).edit_distance(candidate, true, bestDistance);
      // Of equally near ones the first by name, so that two runs say the same.
      if (distance < bestDistance || (distance == bestDistance && !best.empty() && candidate < best)) {
        best = candidate;
        bestDistance = distance;
      }
    }
  }
  return best;
}

void Checker::checkGraph(model::Graph &graph, const Scope *outer) {
  Scope scope;
  scope.outer = outer;
  std::unordered_set<std::string> inputs;
  for (const model::Value &input : graph.inputs) {
    if (input.name.empty())
      report(nullptr, "import.name", "an input of graph '" + graph.name + "' has no name");
    else if (!inputs.insert(input.name).second)
      report(nullptr, "import.name", "two inputs are called '" + input.name + "'", "", "", "rename one of them");
    scope.names.insert(input.name);
  }
  std::unordered_set<std::string> constants;
  for (const model::Tensor &tensor : graph.constants) {
    if (tensor.name.empty())
      report(nullptr, "import.name", "an initializer of graph '" + graph.name + "' has no name");
    else if (!constants.insert(tensor.name).second)
      report(nullptr, "import.name", "two initializers are called '" + tensor.name + "'", "", "", "rename one of them");
    scope.names.insert(tensor.name);
  }
  for (model::Node &node : graph.nodes)
    for (const std::string &output : node.outputs)
      if (!output.empty() && !scope.names.insert(output).second)
        report(&node, "import.name", "value '" + output + "' is defined a second time", "", "",
               "give each output of a node a name of its own");
  for (model::Node &node : graph.nodes)
    if (!node.isBroken)
      checkNode(node, scope);
  if (!outer && graph.outputs.empty())
    report(nullptr, "import.graph", "the graph has no outputs", "", "",
           "declare what the model computes as graph output");
  for (const model::Value &output : graph.outputs)
    if (!scope.sees(output.name)) {
      std::string near = closest(output.name, scope);
      report(nullptr, "import.dangling", "graph output '" + output.name + "' is computed by no node", "", "",
             near.empty() ? "" : "did you mean '" + near + "'?");
    }
}

const Schema *Checker::checkOperator(model::Node &node) {
  std::string qualified = model::domainName(node.domain) + "::" + node.type;
  int64_t introduced = introducedIn(node.domain, node.type);
  if (node.type.empty()) {
    report(&node, "import.operator", "the node has no operator");
    return nullptr;
  }
  if (node.version == 0 && (introduced || !isSupported || !isSupported(qualified))) {
    report(&node, "import.opset", "domain '" + model::domainName(node.domain) + "' is not in opset_import", "", "",
           "add an opset_import entry for it");
    return nullptr;
  }
  const Schema *schema = findSchema(node.domain, node.type, node.version);
  // Optimisers write this layer, with today's meaning, into files of any opset.
  if (!schema && node.domain.empty() && node.type == "LayerNormalization") {
    node.version = introduced;
    schema = findSchema(node.domain, node.type, introduced);
  }
  if (introduced && !schema) {
    report(&node, "import.opset", "the operator is not part of the opset that the file declares",
           "opset " + std::to_string(introduced) + " or newer", std::to_string(node.version),
           "export the model with opset " + std::to_string(introduced) + " or newer");
    return nullptr;
  }
  // Operators that left the standard but live on as another one: upgraded, so none of the library's business.
  static const char *const upgraded[] = {"Upsample", "Scatter", "Constant", "If", "Loop", "Scan", "SequenceMap"};
  bool isUpgraded = isFlexAttention(node) || (node.domain.empty() && llvm::is_contained(upgraded, node.type));
  if (!isUpgraded && isSupported && !isSupported(qualified)) {
    bool isOnnx = newestVersion(node.domain) > 0;
    std::string near = introduced ? "" : closestOperator(node.domain, node.type);
    report(&node, "import.operator", introduced ? "operator is not supported" : "unknown operator '" + qualified + "'",
           "", "",
           !near.empty() ? "did you mean '" + near + "'?"
           : introduced || isOnnx
               ? "docs/operators.md lists the operators that are"
               : "bring it in a library (--ops, docs/custom-operators.md), or replace it by standard "
                 "operators before the export");
  }
  return schema;
}

void Checker::checkAttributes(model::Node &node, const Schema &schema) {
  std::unordered_set<std::string> seen;
  for (const model::Attribute &attribute : node.attributes) {
    if (!seen.insert(attribute.name).second) {
      report(&node, "import.attribute", "attribute '" + attribute.name + "' is given twice");
      continue;
    }
    if (attribute.kind == model::Attribute::Kind::Reference) {
      report(&node, "import.attribute",
             "attribute '" + attribute.name + "' refers to attribute '" + attribute.s +
                 "' of a function, but the node is in none");
      continue;
    }
    char expected = schema.kindOf(attribute.name), found = kindLetter(attribute.kind);
    if (!expected) {
      Diagnostic warning = problemOf(node, "import.attribute",
                                     "attribute '" + attribute.name + "' is not one of the operator's and is ignored");
      warning.severity = Severity::Warning;
      diagnostics.report(std::move(warning));
    } else if (attribute.kind == model::Attribute::Kind::Tensor && attribute.tensor.isBroken) {
      node.isBroken = true; // and reported
    } else if (found && expected != found && !(expected == 'p' && found == 't')) {
      report(&node, "import.attribute", "attribute '" + attribute.name + "' has the wrong kind", kindText(expected),
             kindText(found));
    }
  }
  for (const std::string &required : schema.requiredAttributes())
    if (!seen.count(required))
      report(&node, "import.attribute", "attribute '" + required + "' is missing", kindText(schema.kindOf(required)),
             "none");
}

static std::string range(size_t least, size_t most) {
  if (most == SIZE_MAX)
    return std::to_string(least) + " or more";
  return least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
}

void Checker::checkCounts(model::Node &node, const Schema &schema) {
  if (node.inputs.size() < schema.minInputs() || node.inputs.size() > schema.maxInputs())
    report(&node, "import.inputs", "wrong number of inputs", range(schema.minInputs(), schema.maxInputs()),
           std::to_string(node.inputs.size()));
  if (node.outputs.size() < schema.minOutputs() || node.outputs.size() > schema.maxOutputs())
    report(&node, "import.outputs", "wrong number of outputs", range(schema.minOutputs(), schema.maxOutputs()),
           std::to_string(node.outputs.size()));
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i].empty() && schema.requiresInput(i))
      report(&node, "import.inputs", "input " + std::to_string(i) + " is left out, but must be given");
}

// The counts that tie a control node to its graphs; the builder relies on them.
void Checker::checkControl(model::Node &node) {
  auto graphOf = [&](const char *name) -> const model::Graph * {
    const model::Attribute *attribute = node.attribute(name);
    return attribute ? attribute->graph.get() : nullptr;
  };
  auto count = [&](const char *graph, const char *what, size_t expected, size_t found, bool isLeast) {
    if (isLeast ? found < expected : found != expected)
      report(&node, "import.control", std::string("graph '") + graph + "' has the wrong number of " + what,
             std::to_string(expected) + (isLeast ? " or more" : ""), std::to_string(found));
  };
  if (node.type == "If")
    for (const char *name : {"then_branch", "else_branch"})
      if (const model::Graph *graph = graphOf(name)) {
        count(name, "inputs", 0, graph->inputs.size(), false);
        count(name, "outputs", node.outputs.size(), graph->outputs.size(), false);
      }
  if (node.type == "Loop" || node.type == "Scan")
    // Scan of version 8 begins with lengths, which may be left out.
    for (size_t i = node.type == "Loop" ? 2 : node.version < 9; i < node.inputs.size(); ++i)
      if (node.inputs[i].empty())
        report(&node, "import.inputs", "input " + std::to_string(i) + " is left out, but must be given");
  const model::Graph *body = graphOf("body");
  if (node.type == "Loop" && body && node.inputs.size() >= 2) {
    size_t carried = node.inputs.size() - 2;
    count("body", "inputs", carried + 2, body->inputs.size(), false);
    count("body", "outputs", carried + 1, body->outputs.size(), true);
    if (body->outputs.size() >= carried + 1)
      count("body", "outputs", node.outputs.size() + 1, body->outputs.size(), false);
  }
  if (node.type == "Loop" && node.inputs.size() < 2)
    report(&node, "import.inputs", "wrong number of inputs", "2 or more", std::to_string(node.inputs.size()));
}

void Checker::checkNode(model::Node &node, const Scope &scope) {
  for (const std::string &input : node.inputs)
    if (!input.empty() && !scope.sees(input)) {
      std::string near = closest(input, scope);
      Diagnostic diagnostic = problemOf(node, "import.dangling", "input '" + input + "' is defined nowhere");
      diagnostic.input = input;
      diagnostic.fix = near.empty() ? "" : "did you mean '" + near + "'?";
      diagnostics.report(std::move(diagnostic));
      node.isBroken = true;
    }
  const Schema *schema = checkOperator(node);
  if (schema) {
    checkAttributes(node, *schema);
    checkCounts(node, *schema);
    if (node.domain.empty())
      checkControl(node);
  }
  static const char *const withGraphs[] = {"If", "Loop", "Scan", "SequenceMap"};
  // Unknown operators, where they are no errors, are carried with their graphs.
  bool hasRegions =
      !schema || isFlexAttention(node) || (node.domain.empty() && llvm::is_contained(withGraphs, node.type));
  for (const model::Attribute &attribute : node.attributes) {
    if (attribute.graph && hasRegions)
      checkGraph(*attribute.graph, &scope);
    else if (attribute.kind == model::Attribute::Kind::Graph || attribute.kind == model::Attribute::Kind::Other)
      report(&node, "import.attribute",
             "attribute '" + attribute.name + "' is " +
                 (attribute.graph ? "a graph, which only If, Loop, Scan, SequenceMap and FlexAttention may have here"
                                  : attribute.s + ", which is not supported"));
  }
}

} // namespace

void check(model::Model &model, const std::function<bool(llvm::StringRef)> &isSupported, Diagnostics &diagnostics) {
  Checker(model, isSupported, diagnostics).run();
}

} // namespace firn
