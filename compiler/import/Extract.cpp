// Extract: a part of a model, cut out by the names of values.
#include "compiler/import/EditModel.h"
#include "compiler/import/Prepare.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace firn {

std::string suggestNames(const std::string &name, const std::vector<std::string> &known) {
  unsigned farthest = unsigned(std::max<size_t>(2, name.size() / 3));
  std::vector<std::pair<unsigned, std::string>> near;
  llvm::StringRef wanted = name;
  for (const std::string &candidate : known) {
    unsigned distance = wanted.edit_distance(candidate, true, farthest);
    // What only lacks its beginning or end, as "Add_3" of "/layer/Add_3", is near too.
    if (distance > farthest && name.size() >= 3 && llvm::StringRef(candidate).contains_insensitive(wanted))
      distance = farthest;
    if (distance <= farthest)
      near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  for (size_t i = 0; i < near.size() && i < 3; ++i)
    text += (i ? ", '" : "did you mean '") + near[i].second + "'";
  return text.empty() ? "" : text + "?";
}

namespace {

/// Whether the expression of a dimension says something outside of Firn: short, and of names that the file has.
bool isReadable(llvm::StringRef text, const std::unordered_set<std::string> &symbols) {
  if (symbols.count(text.str()))
    return true;
  if (text.size() > 40)
    return false;
  while (!text.empty()) {
    llvm::StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    text = text.drop_front(std::max<size_t>(1, word.size()));
    bool isFunction = word == "floordiv" || word == "ceildiv" || word == "mod" || word == "min" || word == "max";
    if (!word.empty() && !llvm::isDigit(word[0]) && !isFunction && !symbols.count(word.str()))
      return false;
  }
  return true;
}

class Extraction {
public:
  Extraction(model::Model &whole, Diagnostics &reported) : graph(whole.graph), diagnostics(reported) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const std::string &output : graph.nodes[i].outputs)
        if (!output.empty())
          definer[output] = i;
    for (const model::Tensor &tensor : graph.constants)
      constants[tensor.name] = &tensor;
    for (const model::Value &input : graph.inputs)
      inputs[input.name] = &input;
    for (const auto *values : {&graph.inputs, &graph.outputs, &graph.values})
      for (const model::Value &value : *values)
        if (value.type.dims)
          for (const model::Dim &dim : *value.type.dims)
            symbols.insert(dim.symbol);
  }

  bool run(std::vector<std::string> from, std::vector<std::string> to, const ValueTypes &types) {
    bool isKnown = checkNames("--inputs", from);
    if (!checkNames("--outputs", to) || !isKnown)
      return false;
    if (to.empty())
      for (const model::Value &output : graph.outputs)
        to.push_back(output.name);
    given.insert(from.begin(), from.end());
    for (const std::string &output : to)
      need(output);
    if (!from.empty() && !checkComplete())
      return false;
    if (from.empty())
      for (const model::Value &input : graph.inputs)
        if (reached.count(input.name))
          from.push_back(input.name);
    for (const std::string &input : from)
      if (!reached.count(input) && !llvm::is_contained(to, input))
        diagnostics.warning("options.cut",
                            "input '" + input + "' of the part is read by nothing on the way to its outputs");
    return cut(from, to, types);
  }

private:
  bool checkNames(const char *option, const std::vector<std::string> &names);
  void need(const std::string &output);
  bool checkComplete();
  bool cut(const std::vector<std::string> &from, const std::vector<std::string> &to, const ValueTypes &types);
  std::optional<model::Type> declaredType(const std::string &name) const;

  model::Graph &graph;
  Diagnostics &diagnostics;
  std::unordered_map<std::string, size_t> definer;
  std::unordered_map<std::string, const model::Tensor *> constants;
  std::unordered_map<std::string, const model::Value *> inputs;
  std::unordered_set<std::string> given, symbols;       // symbols: of dimensions
  std::unordered_map<std::string, std::string> reached; // names that the part reads, and one that reads each
  std::set<size_t> needed;                              // nodes
};

bool Extraction::checkNames(const char *option, const std::vector<std::string> &names) {
  std::vector<std::string> known;
  std::unordered_set<std::string> seen;
  bool isGood = true;
  for (const std::string &name : names) {
    if (!seen.insert(name).second) {
      diagnostics.error("options.cut", std::string(option) + " names '" + name + "' twice");
      isGood = false;
    }
    if (definer.count(name) || constants.count(name) || inputs.count(name))
      continue;
    if (known.empty()) {
      for (const auto &entry : definer)
        known.push_back(entry.first);
      for (const auto &entry : constants)
        known.push_back(entry.first);
      for (const auto &entry : inputs)
        known.push_back(entry.first);
    }
    diagnostics.error("options.cut", std::string(option) + " names '" + name + "', which is no value of the main graph",
                      suggestNames(name, known));
    isGood = false;
  }
  return isGood;
}

// Walks backwards; inputs of the part end the walk.
void Extraction::need(const std::string &output) {
  std::vector<std::pair<std::string, std::string>> open{{output, "the output"}};
  while (!open.empty()) {
    auto [value, by] = open.back();
    open.pop_back();
    if (value.empty() || !reached.emplace(value, by).second || given.count(value))
      continue;
    auto found = definer.find(value);
    if (found == definer.end() || !needed.insert(found->second).second)
      continue;
    const model::Node &node = graph.nodes[found->second];
    std::string text = "node '" + node.name + "'";
    for (const std::string &input : node.inputs)
      open.emplace_back(input, text);
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        for (const std::string &captured : capturedNames(*attribute.graph))
          open.emplace_back(captured, text);
  }
}

bool Extraction::checkComplete() {
  bool isGood = true;
  for (const model::Value &input : graph.inputs) {
    auto found = reached.find(input.name);
    if (found == reached.end() || given.count(input.name) || constants.count(input.name))
      continue;
    diagnostics.error("options.cut", "the part needs input '" + input.name + "' too, which " + found->second + " reads",
                      "add it to --inputs, or a value between it and the outputs");
    isGood = false;
  }
  return isGood;
}

/// What the file says of a value, if that is a whole type.
std::optional<model::Type> Extraction::declaredType(const std::string &name) const {
  if (auto input = inputs.find(name); input != inputs.end())
    return input->second->type;
  if (auto constant = constants.find(name); constant != constants.end()) {
    model::Type type;
    type.kind = model::Type::Kind::Tensor;
    type.dtype = constant->second->dtype;
    type.dims.emplace();
    for (int64_t dim : constant->second->dims)
      type.dims->push_back({dim, ""});
    return type;
  }
  for (const auto *values : {&graph.outputs, &graph.values})
    for (const model::Value &value : *values)
      if (value.name == name && value.type.kind != model::Type::Kind::Unknown)
        return value.type;
  return std::nullopt;
}

bool Extraction::cut(const std::vector<std::string> &from, const std::vector<std::string> &to,
                     const ValueTypes &types) {
  // Types first: they may come from a second look at the whole model.
  std::optional<std::map<std::string, model::Type>> inferred;
  auto typeOf = [&](const std::string &name) -> model::Type {
    if (auto input = inputs.find(name); input != inputs.end())
      return input->second->type;
    if (constants.count(name))
      return *declaredType(name);
    if (!inferred)
      inferred = types ? types() : std::map<std::string, model::Type>();
    auto found = inferred->find(name);
    if (found == inferred->end() || found->second.kind == model::Type::Kind::Unknown)
      return declaredType(name).value_or(model::Type());
    model::Type type = found->second;
    if (type.dims)
      for (model::Dim &dim : *type.dims)
        if (!isReadable(dim.symbol, symbols))
          dim.symbol.clear();
    return type;
  };
  std::vector<model::Value> newInputs, newOutputs;
  bool isGood = true;
  for (const std::string &name : from) {
    newInputs.push_back({name, typeOf(name), inputs.count(name) ? inputs.at(name)->doc : ""});
    const model::Type &type = newInputs.back().type;
    if (type.kind == model::Type::Kind::Unknown || (type.kind == model::Type::Kind::Tensor && !type.dtype)) {
      diagnostics.error("options.cut", "the type of '" + name + "' is not known, so that it cannot become an input",
                        "cut at a value whose type the model declares or Firn's operators tell");
      isGood = false;
    }
  }
  if (!isGood)
    return false;
  for (const std::string &name : to) {
    auto old = llvm::find_if(graph.outputs, [&](const model::Value &output) { return output.name == name; });
    newOutputs.push_back(old != graph.outputs.end() ? *old : model::Value{name, typeOf(name), ""});
  }
  std::vector<model::Node> nodes;
  std::unordered_set<std::string> isDefined;
  for (size_t i : needed) {
    model::Node &node = graph.nodes[i];
    // A node may be needed for another of its outputs: the one that is an input now gets a name that nobody reads.
    for (std::string &output : node.outputs)
      if (given.count(output)) {
        std::string unread = output + "_uncut";
        while (definer.count(unread) || constants.count(unread) || inputs.count(unread))
          unread += "_";
        output = unread;
      }
    isDefined.insert(node.outputs.begin(), node.outputs.end());
    nodes.push_back(std::move(node));
  }
  std::unordered_set<std::string> isInput(from.begin(), from.end());
  // An input with a default keeps it; another initializer that became an input loses its contents.
  llvm::erase_if(graph.constants, [&](const model::Tensor &tensor) {
    return !reached.count(tensor.name) || (isInput.count(tensor.name) && !inputs.count(tensor.name));
  });
  llvm::erase_if(graph.values, [&](const model::Value &value) { return !isDefined.count(value.name); });
  graph.nodes = std::move(nodes);
  graph.inputs = std::move(newInputs);
  graph.outputs = std::move(newOutputs);
  return true;
}

} // namespace

bool extract(model::Model &model, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
             const ValueTypes &types, Diagnostics &diagnostics) {
  return Extraction(model, diagnostics).run(inputs, outputs, types);
}

bool editModel(model::Model &model, const ModelEdits &edits, const ValueTypes &types, Diagnostics &diagnostics) {
  if ((!edits.inputs.empty() || !edits.outputs.empty()) &&
      !extract(model, edits.inputs, edits.outputs, types, diagnostics))
    return false;
  bool isRenamed = edits.values.empty() || renameValues(model, edits.values, diagnostics);
  return (edits.dims.empty() || renameDims(model, edits.dims, diagnostics)) && isRenamed;
}

} // namespace firn
