#include "compiler/import/Prepare.h"
#include "llvm/ADT/STLExtras.h"
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

using Names = std::unordered_map<std::string, std::string>;

class Inliner {
public:
  Inliner(model::Model &inlined, const Limits &bounds, Diagnostics &reported)
      : model(inlined), limits(bounds), diagnostics(reported) {
    for (const model::Function &function : model.functions)
      if (!functions.emplace(key(function.domain, function.name, function.overload), &function).second)
        diagnostics.error("import.function",
                          "function '" + key(function.domain, function.name, function.overload) + "' is defined twice");
    collectNames(model.graph, used);
  }

  bool run() {
    expand(model.graph.nodes, model.opsets);
    return !isStopped;
  }

private:
  static std::string key(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
    return model::domainName(domain) + "::" + name.str() + (overload.empty() ? "" : ":" + overload.str());
  }
  std::string fresh(const std::string &wanted);
  int64_t versionOf(const std::map<std::string, int64_t> &opsets, const std::string &domain) const;
  void expand(std::vector<model::Node> &nodes, const std::map<std::string, int64_t> &opsets);
  void call(const model::Node &node, const model::Function &function, std::vector<model::Node> &out);
  model::Node instantiate(const model::Node &node, const std::string &prefix, Names &names, const model::Node &caller,
                          const model::Function &function);
  void instantiate(model::Graph &graph, const std::string &prefix, Names names, const model::Node &caller,
                   const model::Function &function);
  std::string renamed(const std::string &name, const std::string &prefix, Names &names);

  model::Model &model;
  const Limits &limits;
  Diagnostics &diagnostics;
  std::unordered_map<std::string, const model::Function *> functions;
  std::unordered_set<std::string> used;
  std::vector<std::string> stack;
  int64_t nodeCount = 0;
  bool isStopped = false;
};

std::string Inliner::fresh(const std::string &wanted) {
  std::string name = wanted;
  for (unsigned i = 2; !used.insert(name).second; ++i)
    name = wanted + "_" + std::to_string(i);
  return name;
}

int64_t Inliner::versionOf(const std::map<std::string, int64_t> &opsets, const std::string &domain) const {
  if (auto found = opsets.find(domain); found != opsets.end())
    return found->second;
  if (auto found = model.opsets.find(domain); found != model.opsets.end())
    return found->second;
  // Files of the first two format versions had no opset_import: version 1 was all there was.
  return model.formatVersion < 3 && domain.empty() ? 1 : 0;
}

void Inliner::expand(std::vector<model::Node> &nodes, const std::map<std::string, int64_t> &opsets) {
  std::vector<model::Node> out;
  out.reserve(nodes.size());
  for (model::Node &node : nodes) {
    if (isStopped)
      return;
    // Calls count too: functions without a node of their own can still call each other without end.
    if (++nodeCount > limits.nodes) {
      isStopped = true;
      diagnostics.error("import.limit",
                        "the model has more than " + std::to_string(limits.nodes) +
                            " nodes once its functions are inlined",
                        raiseLimit("--max-nodes"));
      return;
    }
    auto function = functions.find(key(node.domain, node.type, node.overload));
    if (function != functions.end()) {
      call(node, *function->second, out);
      continue;
    }
    node.version = versionOf(opsets, node.domain);
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        expand(attribute.graph->nodes, opsets);
    out.push_back(std::move(node));
  }
  nodes = std::move(out);
}

void Inliner::call(const model::Node &node, const model::Function &function, std::vector<model::Node> &out) {
  std::string name = key(function.domain, function.name, function.overload);
  auto refuse = [&](const char *id, const std::string &what, const std::string &fix = "") {
    Diagnostic diagnostic;
    diagnostic.id = id;
    diagnostic.node = node.name;
    diagnostic.operatorName = model::domainName(node.domain) + "::" + node.type;
    takeApart(what, diagnostic);
    diagnostic.fix = fix;
    diagnostics.report(std::move(diagnostic));
    out.push_back(node);
    out.back().isBroken = true;
  };
  if (llvm::is_contained(stack, name))
    return refuse("import.function", "function '" + name + "' calls itself",
                  "functions may not be recursive; use Loop");
  if (int64_t(stack.size()) >= limits.depth)
    return refuse("import.limit", "function calls are nested deeper than " + std::to_string(limits.depth) + " levels",
                  raiseLimit("--max-depth"));
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    return refuse("import.function", "the call does not fit function '" + name + "': expected at most " +
                                         std::to_string(function.inputs.size()) + " inputs and " +
                                         std::to_string(function.outputs.size()) + " outputs, found " +
                                         std::to_string(node.inputs.size()) + " and " +
                                         std::to_string(node.outputs.size()));
  stack.push_back(name);

  std::string prefix = node.name + "/";
  Names names{{"", ""}};
  for (size_t i = 0; i < function.inputs.size(); ++i)
    names[function.inputs[i]] = i < node.inputs.size() ? node.inputs[i] : "";
  // An output that is an input too, or named twice, needs a node of its own that copies it.
  std::vector<model::Node> copies;
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    std::string actual = i < node.outputs.size() ? node.outputs[i] : "";
    const std::string &formal = function.outputs[i];
    auto known = names.find(formal);
    if (known == names.end()) {
      names[formal] = actual.empty() ? fresh(prefix + formal) : actual;
    } else if (!actual.empty()) {
      model::Node copy;
      copy.name = prefix + formal;
      copy.type = "Identity";
      copy.version = versionOf(function.opsets, "");
      copy.inputs = {known->second};
      copy.outputs = {actual};
      copies.push_back(std::move(copy));
    }
  }
  std::vector<model::Node> body;
  for (const model::Node &inner : function.nodes)
    body.push_back(instantiate(inner, prefix, names, node, function));
  for (model::Node &copy : copies)
    body.push_back(std::move(copy));
  expand(body, function.opsets);
  for (model::Node &inner : body)
    out.push_back(std::move(inner));
  stack.pop_back();
}

std::string Inliner::renamed(const std::string &name, const std::string &prefix, Names &names) {
  auto [entry, isNew] = names.emplace(name, "");
  if (isNew)
    entry->second = fresh(prefix + name);
  return entry->second;
}

model::Node Inliner::instantiate(const model::Node &node, const std::string &prefix, Names &names,
                                 const model::Node &caller, const model::Function &function) {
  model::Node copy = node;
  copy.name = prefix + node.name;
  for (std::string &input : copy.inputs)
    input = renamed(input, prefix, names);
  for (std::string &output : copy.outputs)
    output = renamed(output, prefix, names);
  copy.attributes.clear();
  for (const model::Attribute &attribute : node.attributes) {
    if (attribute.kind == model::Attribute::Kind::Reference) {
      const model::Attribute *given = caller.attribute(attribute.s);
      if (!given)
        for (const model::Attribute &candidate : function.defaults)
          if (candidate.name == attribute.s)
            given = &candidate;
      if (given) { // otherwise the operator's own default holds
        copy.attributes.push_back(*given);
        copy.attributes.back().name = attribute.name;
      }
      continue;
    }
    copy.attributes.push_back(attribute);
    if (attribute.graph) {
      auto graph = std::make_shared<model::Graph>(*attribute.graph);
      instantiate(*graph, prefix, names, caller, function);
      copy.attributes.back().graph = std::move(graph);
    }
  }
  return copy;
}

void Inliner::instantiate(model::Graph &graph, const std::string &prefix, Names names, const model::Node &caller,
                          const model::Function &function) {
  // Names that the nested graph defines itself are its own, whatever they mean outside.
  for (model::Value &value : graph.inputs)
    value.name = names[value.name] = fresh(prefix + value.name);
  for (model::Tensor &tensor : graph.constants)
    tensor.name = names[tensor.name] = fresh(prefix + tensor.name);
  for (model::Node &node : graph.nodes)
    node = instantiate(node, prefix, names, caller, function);
  for (model::Value &value : graph.outputs)
    value.name = renamed(value.name, prefix, names);
  for (model::Value &value : graph.values)
    value.name = renamed(value.name, prefix, names);
}

} // namespace

bool inlineFunctions(model::Model &model, const Limits &limits, Diagnostics &diagnostics) {
  return Inliner(model, limits, diagnostics).run();
}

} // namespace firn
