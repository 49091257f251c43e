// Rename: values and symbolic dimensions under other names.
#include "compiler/import/EditModel.h"
#include "llvm/ADT/STLExtras.h"
#include <cctype>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

using Names = std::unordered_map<std::string, std::string>;

/// Every place of a graph, and of those inside of it, that names a value.
template <typename Visit> void visitNames(model::Graph &graph, const Visit &visit) {
  for (auto *values : {&graph.inputs, &graph.outputs, &graph.values})
    for (model::Value &value : *values)
      visit(value.name);
  for (model::Tensor &tensor : graph.constants)
    visit(tensor.name);
  for (model::Node &node : graph.nodes) {
    llvm::for_each(node.inputs, visit);
    llvm::for_each(node.outputs, visit);
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        visitNames(*attribute.graph, visit);
  }
}

template <typename Visit> void visitDims(model::Type &type, const Visit &visit) {
  if (type.element)
    visitDims(*type.element, visit);
  if (type.dims)
    for (model::Dim &dim : *type.dims)
      if (!dim.size && !dim.symbol.empty())
        visit(dim.symbol);
}

template <typename Visit> void visitDims(model::Graph &graph, const Visit &visit) {
  for (auto *values : {&graph.inputs, &graph.outputs, &graph.values})
    for (model::Value &value : *values)
      visitDims(value.type, visit);
  for (model::Node &node : graph.nodes)
    for (model::Attribute &attribute : node.attributes) {
      visitDims(attribute.type, visit);
      if (attribute.graph)
        visitDims(*attribute.graph, visit);
    }
}

/// The new name of each old one; false where one is not known or not free.
bool resolve(const char *option, const char *kind, const ModelEdits::Renaming &renaming,
             const std::unordered_set<std::string> &known, Names &names, Diagnostics &diagnostics) {
  bool isGood = true;
  auto refuse = [&](const std::string &what, const std::string &fix) {
    diagnostics.error("options.rename", what, fix);
    isGood = false;
  };
  Names takenBy;
  for (const auto &[before, after] : renaming) {
    std::string text = std::string(option) + " " + before + "=" + after;
    if (!known.count(before))
      refuse(text + ": the model has no " + kind + " '" + before + "'",
             suggestNames(before, std::vector<std::string>(known.begin(), known.end())));
    else if (!names.emplace(before, after).second)
      refuse(text + ": '" + before + "' is renamed twice", "give each name once");
    if (auto [taken, isNew] = takenBy.emplace(after, before); !isNew && taken->second != before)
      refuse(text + ": '" + taken->second + "' becomes '" + after + "' already", "choose another name");
  }
  for (const auto &[before, after] : renaming)
    if (known.count(after) && !names.count(after))
      refuse(std::string(option) + " " + before + "=" + after + ": the model has a " + kind + " '" + after +
                 "' already",
             "choose another name, or rename that one too");
  return isGood;
}

/// "2*seq+1" with the names in it replaced; a name of the file may itself hold any character.
std::string renamedDim(const std::string &text, const Names &names) {
  if (auto whole = names.find(text); whole != names.end())
    return whole->second;
  auto isPart = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isPart(text[end]))
      ++end;
    if (end == at) {
      result += text[at++];
      continue;
    }
    std::string word = text.substr(at, end - at);
    auto found = names.find(word);
    result += found != names.end() ? found->second : word;
    at = end;
  }
  return result;
}

} // namespace

bool renameValues(model::Model &model, const ModelEdits::Renaming &renaming, Diagnostics &diagnostics) {
  std::unordered_set<std::string> known;
  visitNames(model.graph, [&](std::string &name) {
    if (!name.empty())
      known.insert(name);
  });
  Names names;
  if (!resolve("--rename", "value", renaming, known, names, diagnostics))
    return false;
  visitNames(model.graph, [&](std::string &name) {
    if (auto found = names.find(name); found != names.end())
      name = found->second;
  });
  return true;
}

bool renameDims(model::Model &model, const ModelEdits::Renaming &renaming, Diagnostics &diagnostics) {
  std::unordered_set<std::string> known;
  visitDims(model.graph, [&](std::string &symbol) { known.insert(symbol); });
  Names names;
  if (!resolve("--rename-dim", "dimension", renaming, known, names, diagnostics))
    return false;
  visitDims(model.graph, [&](std::string &symbol) { symbol = renamedDim(symbol, names); });
  return true;
}

} // namespace firn
