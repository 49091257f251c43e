#include "compiler/export/Collect.h"
#include "compiler/SourceLocation.h"
#include "compiler/export/Dimensions.h"
#include "compiler/export/Failure.h"
#include "compiler/export/onnx/ConvertFloats.h"
#include "compiler/export/onnx/Lower.h"
#include "compiler/import/Blob.h"
#include "compiler/import/firn/Reader.h"
#include "compiler/import/onnx/Schema.h"
#include "compiler/import/onnx/Upgrade.h"
#include "dialects/firn/Firn.h"
#include "dialects/firn/Lists.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/abi/dtype.h"
#include <cstring>

using namespace mlir;

namespace firn {
namespace {

class Collector {
public:
  Collector(ModuleOp collected, const ExportOptions &how, Diagnostics &reported)
      : module(collected), options(how), diagnostics(reported) {}
  std::optional<model::Model> run();

private:
  void readAttributes(model::Model &model);
  void reserveNames(const model::Graph &graph);
  void collectMain(func::FuncOp main, model::Graph &graph);
  void collectBlock(Block &block, model::Graph &graph, Dimensions &dimensions);
  void collectOp(Operation *op, model::Graph &graph, Dimensions &dimensions);
  void collectConstant(ConstantOp op, const SourceLocation &source, model::Graph &graph);
  void collectGraph(Region &region, const std::string &name, ArrayAttr types, model::Attribute &attribute,
                    const Dimensions &outer);
  void collectAttributes(Operation *op, const SourceLocation &source, model::Node &node);
  void collectCarried(Operation *op, ArrayAttr captures, model::Node &node);
  void finishCarried(model::Graph &graph, std::map<std::string, std::string> renamed);
  static void restoreOrder(const SourceLocation &source, model::Node &node);
  bool attributeOf(Attribute value, model::Attribute &attribute);
  bool tensorOf(Attribute value, RankedTensorType type, model::Tensor &tensor);
  model::Type typeOf(Type type) const;
  model::Type innerTypeOf(Type type) const;
  bool isInner(Value value);
  void nameResults(Operation *op, const SourceLocation &source);
  std::string nameOf(Value value);
  std::string outputName(Value value, const std::string &wanted, model::Graph &graph, bool mayBeOuter);
  void fail(Operation *op, const std::string &what);

  ModuleOp module;
  const ExportOptions &options;
  Diagnostics &diagnostics;
  UniqueNames names;
  DenseMap<Value, std::string> valueNames;
  std::map<std::string, std::string> originalSymbols;
  int64_t opset = 0;
  bool isFailed = false;
};

void Collector::fail(Operation *op, const std::string &what) {
  isFailed = true;
  Diagnostic diagnostic = diagnosticAt(op->getLoc(), "export.operation", what);
  diagnostics.report(std::move(diagnostic));
}

static std::string textAttribute(Operation *op, StringRef name) {
  auto text = op->getAttrOfType<StringAttr>(name);
  return text ? text.str() : "";
}
static int64_t intAttributeOf(Operation *op, StringRef name, int64_t fallback) {
  auto number = op->getAttrOfType<IntegerAttr>(name);
  return number ? number.getInt() : fallback;
}

void Collector::readAttributes(model::Model &model) {
  model.producer = textAttribute(module, "firn.producer");
  model.producerVersion = textAttribute(module, "firn.producer_version");
  model.domain = textAttribute(module, "firn.domain");
  model.doc = textAttribute(module, "firn.doc");
  model.graph.name = textAttribute(module, "firn.name");
  model.graph.doc = textAttribute(module, "firn.graph_doc");
  model.modelVersion = intAttributeOf(module, "firn.model_version", 0);
  model.formatVersion = std::max<int64_t>(4, intAttributeOf(module, "firn.format_version", 4));
  opset = intAttributeOf(module, "firn.opset", 1);
  if (auto metadata = module->getAttrOfType<DictionaryAttr>("firn.metadata"))
    for (NamedAttribute entry : metadata)
      if (auto value = dyn_cast<StringAttr>(entry.getValue()))
        model.metadata.emplace_back(entry.getName().str(), value.str());
  if (auto opsets = module->getAttrOfType<DictionaryAttr>("firn.opsets"))
    for (NamedAttribute entry : opsets)
      if (auto version = dyn_cast<IntegerAttr>(entry.getValue()))
        model.opsets[entry.getName().str()] = version.getInt();
  if (auto symbols = module->getAttrOfType<DictionaryAttr>("firn.symbols"))
    for (NamedAttribute entry : symbols)
      if (auto name = dyn_cast<StringAttr>(entry.getValue()))
        originalSymbols[entry.getName().str()] = name.str();
}

void Collector::reserveNames(const model::Graph &graph) {
  for (const model::Value &input : graph.inputs)
    names.fresh(input.name);
  for (const model::Tensor &tensor : graph.constants)
    names.fresh(tensor.name);
  for (const model::Node &node : graph.nodes) {
    for (const std::string &output : node.outputs)
      names.fresh(output);
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        reserveNames(*attribute.graph);
  }
}

/// One node may have become several that carry its name; runtimes want different ones in a graph.
static void separateNodeNames(model::Graph &graph) {
  UniqueNames nodes;
  for (model::Node &node : graph.nodes) {
    if (!node.name.empty())
      node.name = nodes.fresh(node.name);
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        separateNodeNames(*attribute.graph);
  }
}

std::optional<model::Model> Collector::run() {
  model::Model model;
  readAttributes(model);
  auto functions = module.getOps<func::FuncOp>();
  if (functions.empty()) {
    diagnostics.error("export.module", "the module has no function to export");
    return std::nullopt;
  }
  // Names inside of graphs that pass through as they are must stay theirs alone.
  module.walk([&](CallOp call) {
    if (auto graphs = call->getAttrOfType<DictionaryAttr>(carriedGraphsAttribute))
      for (NamedAttribute entry : graphs)
        if (std::optional<model::Graph> graph = readGraph(cast<StringAttr>(entry.getValue()).getValue()))
          reserveNames(*graph);
  });
  collectMain(*functions.begin(), model.graph);
  model.opsets[""] = opset;
  if (isFailed)
    return std::nullopt;
  if (options.floats.dtype == FIRN_BF16 && !options.opset) // 22 gave it to the last of the operators
    model.opsets[""] = opset = std::max<int64_t>(opset, 22);
  if (options.opset || options.floats.dtype) {
    std::map<std::string, model::Type> types;
    for (auto &[value, name] : valueNames)
      types[name] = typeOf(value.getType());
    if (options.floats.dtype) {
      int64_t written = options.opset ? options.opset : opset;
      convertFloats(model, options.floats, written, types, names);
      model.opsets[""] = written;
    }
    if (options.opset && !lowerModel(model, options.opset, types, names, diagnostics))
      return std::nullopt;
  }
  if (!options.isConversion || options.opset)
    separateNodeNames(model.graph);
  return model;
}

// --- names -----------------------------------------------------------------------------------------------------------

std::string Collector::nameOf(Value value) {
  if (isAbsent(value))
    return "";
  auto found = valueNames.find(value);
  if (found != valueNames.end())
    return found->second;
  return valueNames[value] = names.fresh("value");
}

void Collector::nameResults(Operation *op, const SourceLocation &source) {
  ArrayAttr outputs = source.details ? source.details.getAs<ArrayAttr>(outputsKey) : ArrayAttr();
  for (OpResult result : op->getResults()) {
    if (valueNames.count(result)) // named by the graph's outputs
      continue;
    unsigned i = result.getResultNumber();
    StringRef name;
    if (outputs && i < outputs.size() && isa<StringAttr>(outputs[i]))
      name = cast<StringAttr>(outputs[i]).getValue();
    if (name.empty() && result.use_empty() && op->getNumResults() > 1) {
      valueNames[result] = ""; // an optional output that nobody asks for
      continue;
    }
    std::string fallback = (source.node.empty() ? "value" : source.node) + (i ? "_out" + std::to_string(i) : "_out");
    valueNames[result] = names.fresh(name.empty() ? fallback : name.str());
  }
}

// --- types, attributes, constants ------------------------------------------------------------------------------------

model::Type Collector::typeOf(Type type) const {
  model::Type result;
  auto holding = [&](model::Type::Kind kind, Type element) {
    auto held = std::make_shared<model::Type>(typeOf(element));
    if (!isa<TensorType, SequenceType, MapType>(element)) { // an element type alone: of any rank
      held->kind = model::Type::Kind::Tensor;
      held->dtype = dtypeOf(element);
    }
    if (held->kind == model::Type::Kind::Unknown)
      return result;
    result.kind = kind;
    result.element = std::move(held);
    return result;
  };
  if (auto sequence = dyn_cast<SequenceType>(type))
    return holding(model::Type::Kind::Sequence, sequence.getElement());
  if (auto optional = dyn_cast<OptionalType>(type))
    return holding(model::Type::Kind::Optional, optional.getElement());
  if (auto map = dyn_cast<MapType>(type)) {
    result.dtype = dtypeOf(map.getKey());
    return holding(model::Type::Kind::Map, map.getValue());
  }
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor || isa<UnknownType>(tensor.getElementType()))
    return result;
  result.kind = model::Type::Kind::Tensor;
  result.dtype = dtypeOf(tensor.getElementType());
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  if (!ranked)
    return result;
  result.dims.emplace();
  for (auto [axis, size] : llvm::enumerate(ranked.getShape())) {
    model::Dim &dim = result.dims->emplace_back();
    if (!ShapedType::isDynamic(size)) {
      dim.size = size;
      continue;
    }
    auto encoding = dyn_cast_or_null<DimsAttr>(ranked.getEncoding());
    std::string text = encoding ? cast<StringAttr>(encoding.getExprs()[axis]).str() : "";
    auto original = originalSymbols.find(text);
    dim.symbol = original != originalSymbols.end() ? original->second : text;
  }
  return result;
}

/// Whether a value is neither left out nor an output of its graph, which says its type itself.
bool Collector::isInner(Value value) {
  bool isOutput =
      llvm::any_of(value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  return !isOutput && isa<RankedTensorType>(value.getType()) && !nameOf(value).empty();
}

/// Symbols that mean nothing outside of Firn are left out.
model::Type Collector::innerTypeOf(Type type) const {
  model::Type result = typeOf(type);
  if (auto ranked = dyn_cast<RankedTensorType>(type); ranked && result.dims)
    for (auto [axis, dim] : llvm::enumerate(*result.dims)) {
      std::set<std::string> symbols;
      dimOf(ranked, axis).collectSymbols(symbols);
      if (llvm::any_of(symbols, [](const std::string &s) {
            return s[0] == '?' || (s[0] == 'u' && std::isdigit(static_cast<unsigned char>(s[1])));
          }))
        dim.symbol.clear();
    }
  return result;
}

bool Collector::tensorOf(Attribute value, RankedTensorType type, model::Tensor &tensor) {
  tensor.dims.assign(type.getShape().begin(), type.getShape().end());
  tensor.dtype = dtypeOf(type.getElementType());
  if (auto texts = dyn_cast<ArrayAttr>(value)) {
    for (Attribute text : texts)
      tensor.strings.push_back(isa<StringAttr>(text) ? cast<StringAttr>(text).str() : "");
    return true;
  }
  std::optional<ConstantBytes> stored = constantBytes(value);
  std::optional<int64_t> size = byteCount(tensor.dtype, tensor.dims);
  if (!stored || !size)
    return false;
  if (!stored->isSplat) {
    tensor.bytes = stored->bytes;
    return int64_t(stored->bytes.size()) == *size;
  }
  char *out = allocateBytes(tensor, size_t(*size));
  if (!out || stored->bytes.empty())
    return false;
  for (int64_t at = 0; at < *size; at += int64_t(stored->bytes.size()))
    std::memcpy(out + at, stored->bytes.data(), stored->bytes.size());
  return true;
}

bool Collector::attributeOf(Attribute value, model::Attribute &attribute) {
  using Kind = model::Attribute::Kind;
  if (auto number = dyn_cast<IntegerAttr>(value)) {
    attribute.kind = Kind::Int;
    attribute.i = number.getInt();
  } else if (auto real = dyn_cast<FloatAttr>(value)) {
    attribute.kind = Kind::Float;
    attribute.f = float(real.getValueAsDouble());
  } else if (auto text = dyn_cast<StringAttr>(value)) {
    attribute.kind = Kind::String;
    attribute.s = text.str();
  } else if (auto ints = dyn_cast<DenseI64ArrayAttr>(value)) {
    attribute.kind = Kind::Ints;
    attribute.ints.assign(ints.asArrayRef().begin(), ints.asArrayRef().end());
  } else if (auto floats = dyn_cast<DenseF32ArrayAttr>(value)) {
    attribute.kind = Kind::Floats;
    attribute.floats.assign(floats.asArrayRef().begin(), floats.asArrayRef().end());
  } else if (auto list = dyn_cast<ArrayAttr>(value)) {
    attribute.kind = Kind::Strings;
    for (Attribute element : list) {
      if (!isa<StringAttr>(element))
        return false;
      attribute.strings.push_back(cast<StringAttr>(element).str());
    }
  } else if (auto elements = dyn_cast<ElementsAttr>(value)) {
    attribute.kind = Kind::Tensor;
    return tensorOf(elements, cast<RankedTensorType>(elements.getShapedType()), attribute.tensor);
  } else if (auto type = dyn_cast<TypeAttr>(value)) {
    attribute.kind = Kind::Type;
    attribute.type = typeOf(type.getValue());
    return attribute.type.kind != model::Type::Kind::Unknown;
  } else if (auto strings = dyn_cast<DictionaryAttr>(value)) {
    auto dims = strings.getAs<DenseI64ArrayAttr>("dims");
    auto texts = strings.getAs<ArrayAttr>("strings");
    if (!dims || !texts)
      return false;
    attribute.kind = Kind::Tensor;
    return tensorOf(texts, RankedTensorType::get(dims.asArrayRef(), StringType::get(value.getContext())),
                    attribute.tensor);
  } else {
    return false;
  }
  return true;
}

void Collector::collectAttributes(Operation *op, const SourceLocation &source, model::Node &node) {
  const Schema *schema = newestSchema(node.domain, node.type);
  // Operations have all defaults written out; the file gets back those that were written there.
  NamedAttrList defaults;
  op->getName().populateDefaultAttrs(defaults);
  ArrayAttr given = source.details ? source.details.getAs<ArrayAttr>(defaultsKey) : ArrayAttr();
  for (NamedAttribute entry : op->getAttrs()) {
    StringRef name = entry.getName();
    // Our own notes on an operation are none of the operator's attributes.
    if (name.contains('.') || (isa<CallOp>(op) && name == "callee") || (schema && !schema->kindOf(name)))
      continue;
    if (defaults.get(name) == entry.getValue() &&
        !(given && llvm::is_contained(given, StringAttr::get(op->getContext(), name))))
      continue;
    model::Attribute attribute;
    attribute.name = name.str();
    if (attributeOf(entry.getValue(), attribute))
      node.attributes.push_back(std::move(attribute));
    else
      fail(op, "attribute '" + name.str() + "' has no form outside of Firn");
  }
}

/// The graphs of an operator that nobody here knows, with the names that values have now.
void Collector::collectCarried(Operation *op, ArrayAttr captures, model::Node &node) {
  std::map<std::string, std::string> renamed;
  for (auto [name, value] : llvm::zip(captures, op->getOperands().take_back(captures.size())))
    renamed[cast<StringAttr>(name).str()] = nameOf(value);
  for (NamedAttribute entry : op->getAttrOfType<DictionaryAttr>(carriedGraphsAttribute)) {
    std::optional<model::Graph> graph = readGraph(cast<StringAttr>(entry.getValue()).getValue());
    if (!graph)
      return fail(op, "graph '" + entry.getName().str() + "' cannot be read back");
    finishCarried(*graph, renamed);
    model::Attribute &attribute = node.attributes.emplace_back();
    attribute.name = entry.getName().str();
    attribute.kind = model::Attribute::Kind::Graph;
    attribute.graph = std::make_shared<model::Graph>(std::move(*graph));
  }
}

void Collector::finishCarried(model::Graph &graph, std::map<std::string, std::string> renamed) {
  for (const model::Value &input : graph.inputs)
    renamed.erase(input.name);
  for (const model::Tensor &tensor : graph.constants)
    renamed.erase(tensor.name);
  for (const model::Node &node : graph.nodes)
    for (const std::string &output : node.outputs)
      renamed.erase(output);
  auto rename = [&](std::string &name) {
    if (auto found = renamed.find(name); found != renamed.end())
      name = found->second;
  };
  for (model::Node &node : graph.nodes) {
    if (node.isUnnamed)
      node.name.clear();
    llvm::for_each(node.inputs, rename);
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        finishCarried(*attribute.graph, renamed);
    if (node.domain.empty())
      opset = std::max(opset, versionAccepting(node, std::max(opset, formSince(node.type))));
  }
  for (model::Value &output : graph.outputs)
    rename(output.name);
}

/// Attributes in the order of the file; operations have them by name.
void Collector::restoreOrder(const SourceLocation &source, model::Node &node) {
  auto order = source.details && !source.isFused ? source.details.getAs<ArrayAttr>(orderKey) : ArrayAttr();
  if (!order)
    return;
  auto place = [&](const model::Attribute &attribute) {
    return std::make_pair(llvm::find(order, StringAttr::get(order.getContext(), attribute.name)) - order.begin(),
                          StringRef(attribute.name));
  };
  llvm::sort(node.attributes, [&](const auto &a, const auto &b) { return place(a) < place(b); });
}

void Collector::collectConstant(ConstantOp op, const SourceLocation &source, model::Graph &graph) {
  model::Tensor tensor;
  if (!tensorOf(op.getValue(), cast<RankedTensorType>(op.getType()), tensor))
    return fail(op, "the constant has no contents that a file could hold");
  // What a node of the model computed, before it was folded, keeps its name; an initializer has no other than its own.
  bool isFromNode = source.details && source.details.getAs<ArrayAttr>(outputsKey);
  if (isFromNode)
    nameResults(op, source);
  if (options.isConversion && isFromNode && StringRef(source.operatorName).starts_with("Constant-")) {
    model::Node node;
    node.name = source.details.get(unnamedKey) ? "" : source.node;
    node.type = "Constant";
    node.outputs = {nameOf(op.getResult())};
    model::Attribute &value = node.attributes.emplace_back();
    value.name = "value";
    value.kind = model::Attribute::Kind::Tensor;
    value.tensor = std::move(tensor);
    graph.nodes.push_back(std::move(node));
    return;
  }
  if (!valueNames.count(op.getResult()))
    valueNames[op.getResult()] = names.fresh(source.node.empty() ? "constant" : source.node);
  tensor.name = valueNames[op.getResult()];
  graph.constants.push_back(std::move(tensor));
}

// --- nodes and graphs ------------------------------------------------------------------------------------------------

/// What inference found, or (before it ran) what the file declared.
static Type betterType(Type inferred, ArrayAttr declared, size_t i) {
  if (isa<RankedTensorType>(inferred) || isListType(inferred) || !declared || i >= declared.size() ||
      !isa<TypeAttr>(declared[i]))
    return inferred;
  return cast<TypeAttr>(declared[i]).getValue();
}

void Collector::collectGraph(Region &region, const std::string &name, ArrayAttr types, model::Attribute &attribute,
                             const Dimensions &outer) {
  attribute.kind = model::Attribute::Kind::Graph;
  attribute.graph = std::make_shared<model::Graph>();
  model::Graph &graph = *attribute.graph;
  graph.name = name;
  Dimensions dimensions(outer, graph);
  Block &block = region.front();
  for (BlockArgument argument : block.getArguments()) {
    std::string wanted = nodeName(argument.getLoc());
    valueNames[argument] = names.fresh(wanted.empty() ? "input" : wanted);
    graph.inputs.push_back(
        {valueNames[argument], typeOf(betterType(argument.getType(), types, graph.inputs.size())), ""});
    dimensions.define(argument, valueNames[argument]);
  }
  collectBlock(block, graph, dimensions);
  Operation *yield = block.getTerminator();
  std::set<std::string> seen;
  for (Value value : yield->getOperands()) {
    // A graph's outputs are values of its own nodes, each once.
    Operation *definer = value.getDefiningOp();
    bool isOwn = definer && definer->getBlock() == &block;
    std::string output = nameOf(value);
    if (!isOwn || !seen.insert(output).second) {
      std::string copy = names.fresh(output + "_copy");
      model::Node node;
      node.type = "Identity";
      node.name = copy;
      node.inputs = {output};
      node.outputs = {copy};
      graph.nodes.push_back(std::move(node));
      output = copy;
    }
    size_t i = graph.inputs.size() + graph.outputs.size();
    graph.outputs.push_back({output, typeOf(betterType(value.getType(), types, i)), ""});
  }
}

void Collector::collectOp(Operation *op, model::Graph &graph, Dimensions &dimensions) {
  SourceLocation source = sourceOf(op->getLoc());
  if (isa<AbsentOp>(op))
    return;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return collectConstant(constant, source, graph);
  if (auto values = dyn_cast<DimValuesOp>(op)) {
    nameResults(op, source);
    SmallVector<DimExpr> exprs = *integerElements(values.getResult());
    if (!dimensions.emitVector(exprs, cast<RankedTensorType>(values.getType()), valueNames[values.getResult()]))
      fail(op, "a dimension in it comes from no input of the graph");
    return;
  }
  if (auto failure = dyn_cast<FailOp>(op))
    if (auto branch = dyn_cast<IfOp>(op->getParentOp())) {
      nameResults(op, source);
      std::vector<std::string> outputs;
      for (Value result : op->getResults())
        outputs.push_back(nameOf(result));
      opset = std::max<int64_t>(opset, 5);
      bool isReadBack = StringRef(source.operatorName).starts_with("Reshape-");
      std::string node = isReadBack ? source.node : source.node + "/fail";
      return emitFailure(failure, branch, node, outputs, nameOf(branch.getCondition()), names, graph);
    }
  auto rule = dyn_cast<Operator>(op);
  if (!rule)
    return fail(op, "operation '" + op->getName().getStringRef().str() + "' has no form outside of Firn");
  nameResults(op, source);
  model::Node node;
  node.name = source.details && source.details.get(unnamedKey) ? "" : source.node;
  node.sources = sourceNodes(op->getLoc());
  if (source.details) {
    if (auto doc = source.details.getAs<StringAttr>(docKey))
      node.doc = doc.str();
    if (auto metadata = source.details.getAs<DictionaryAttr>(metadataKey))
      for (NamedAttribute entry : metadata)
        node.metadata.emplace_back(entry.getName().str(), cast<StringAttr>(entry.getValue()).str());
  }
  std::string qualified = rule.operatorName();
  auto [domain, type] = StringRef(qualified).rsplit("::");
  node.domain = domain == "ai.onnx" ? "" : domain.str();
  node.type = type.str();
  auto captures = op->getAttrOfType<ArrayAttr>(capturesAttribute);
  for (Value operand : op->getOperands().drop_back(captures ? captures.size() : 0))
    node.inputs.push_back(nameOf(operand));
  for (Value result : op->getResults())
    node.outputs.push_back(nameOf(result));
  collectAttributes(op, source, node);
  if (captures)
    collectCarried(op, captures, node);
  restoreOrder(source, node);
  if (module->hasAttr("firn.value_info"))
    for (Value result : op->getResults())
      if (isInner(result))
        graph.values.push_back({nameOf(result), innerTypeOf(result.getType()), ""});
  if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && (!reshape.getShape() || isAbsent(reshape.getShape()))) {
    std::string shape = names.fresh(nameOf(op->getResult(0)) + "_shape");
    auto from = dyn_cast<RankedTensorType>(reshape.getOperand(0).getType());
    auto to = dyn_cast<RankedTensorType>(reshape.getType());
    bool hasZeros = false;
    if (!from || !to || !dimensions.emitShape(from, to, shape, hasZeros))
      return fail(op, "its shape comes from no input of the graph");
    node.inputs.resize(1);
    node.inputs.push_back(shape);
    llvm::erase_if(node.attributes, [](const model::Attribute &a) { return a.name == "allowzero"; });
    opset = std::max<int64_t>(opset, 5);
    if (hasZeros) {
      model::Attribute allowZero;
      allowZero.name = "allowzero";
      allowZero.kind = model::Attribute::Kind::Int;
      allowZero.i = 1;
      node.attributes.push_back(std::move(allowZero));
      opset = std::max<int64_t>(opset, 14);
    }
  }
  // Loop's first two are optional, but they have their places.
  while (node.inputs.size() > (isa<LoopOp>(op) ? 2 : 0) && node.inputs.back().empty())
    node.inputs.pop_back();
  while (node.outputs.size() > 1 && node.outputs.back().empty())
    node.outputs.pop_back();
  if (op->getNumRegions()) {
    ArrayAttr graphs, types;
    if (source.details && !source.isFused) {
      graphs = source.details.getAs<ArrayAttr>(graphsKey);
      types = source.details.getAs<ArrayAttr>(typesKey);
    }
    static const char *const branchNames[] = {"then_branch", "else_branch"};
    for (unsigned i = 0; i < op->getNumRegions(); ++i) {
      model::Attribute &attribute = node.attributes.emplace_back();
      attribute.name = isa<IfOp>(op) ? branchNames[i] : "body";
      std::string name = graphs && i < graphs.size() ? cast<StringAttr>(graphs[i]).str() : "";
      ArrayAttr declared = types && i < types.size() ? dyn_cast<ArrayAttr>(types[i]) : ArrayAttr();
      collectGraph(op->getRegion(i), name.empty() ? attribute.name : name, declared, attribute, dimensions);
    }
  }
  if (node.domain.empty())
    opset = std::max(opset, versionAccepting(node, std::max(opset, formSince(node.type))));
  graph.nodes.push_back(std::move(node));
}

void Collector::collectBlock(Block &block, model::Graph &graph, Dimensions &dimensions) {
  for (Operation &op : block.without_terminator()) {
    collectOp(&op, graph, dimensions);
    for (Value result : op.getResults())
      if (auto found = valueNames.find(result); found != valueNames.end() && !found->second.empty())
        dimensions.define(result, found->second);
  }
  dimensions.finish();
  opset = std::max(opset, dimensions.opset());
}

void Collector::collectMain(func::FuncOp main, model::Graph &graph) {
  auto argText = [&](unsigned i, StringRef name) {
    auto text = main.getArgAttrOfType<StringAttr>(i, name);
    return text ? text.str() : std::string();
  };
  auto resultText = [&](unsigned i, StringRef name) {
    auto text = main.getResultAttrOfType<StringAttr>(i, name);
    return text ? text.str() : std::string();
  };
  Block &block = main.getBody().front();
  Dimensions dimensions(names, graph);
  for (BlockArgument argument : block.getArguments()) {
    unsigned i = argument.getArgNumber();
    std::string name = argText(i, "firn.name");
    valueNames[argument] = names.fresh(name.empty() ? "input" + std::to_string(i) : name);
    // Dimensions that the file left open have our names, "x.0"; they stay open.
    model::Value input{valueNames[argument], typeOf(argument.getType()), argText(i, "firn.doc")};
    if (input.type.dims)
      for (auto [axis, dim] : llvm::enumerate(*input.type.dims))
        if (dim.symbol == input.name + "." + std::to_string(axis))
          dim.symbol.clear();
    graph.inputs.push_back(std::move(input));
    dimensions.define(argument, valueNames[argument]);
    if (Attribute value = main.getArgAttr(i, "firn.default")) {
      model::Tensor &tensor = graph.constants.emplace_back();
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (auto elements = dyn_cast<ElementsAttr>(value))
        type = cast<RankedTensorType>(elements.getShapedType());
      if (!type || !tensorOf(value, type, tensor))
        fail(main, "the default of input '" + name + "' cannot be written");
      tensor.name = valueNames[argument];
    }
  }
  // Outputs have their names before anything else can take them. A value that is an input, or an output already, is
  // copied.
  auto results = cast<func::ReturnOp>(block.getTerminator()).getOperands();
  std::vector<std::string> outputs;
  std::vector<std::pair<Value, std::string>> copies;
  for (auto [i, value] : llvm::enumerate(results)) {
    std::string name = resultText(unsigned(i), "firn.name");
    auto known = valueNames.find(value);
    if (known != valueNames.end() && known->second == name) {
      outputs.push_back(name);
      continue;
    }
    outputs.push_back(names.fresh(name.empty() ? "output" + std::to_string(i) : name));
    if (known == valueNames.end() && value.getDefiningOp())
      valueNames[value] = outputs.back();
    else
      copies.emplace_back(value, outputs.back());
  }
  collectBlock(block, graph, dimensions);
  for (auto &[value, name] : copies) {
    model::Node node;
    node.type = "Identity";
    node.name = name + "_copy";
    node.inputs = {nameOf(value)};
    node.outputs = {name};
    graph.nodes.push_back(std::move(node));
  }
  for (auto [i, name] : llvm::enumerate(outputs)) {
    auto declared = main.getResultAttrOfType<TypeAttr>(unsigned(i), "firn.declared");
    model::Type type = typeOf(declared ? declared.getValue() : results[i].getType());
    graph.outputs.push_back({name, type, resultText(unsigned(i), "firn.doc")});
  }
}

} // namespace

std::optional<model::Model> collectModel(ModuleOp module, const ExportOptions &options, Diagnostics &diagnostics) {
  return Collector(module, options, diagnostics).run();
}

} // namespace firn
