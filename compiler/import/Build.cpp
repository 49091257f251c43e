#include "compiler/import/Build.h"
#include "compiler/SourceLocation.h"
#include "compiler/export/firn/Writer.h"
#include "compiler/import/Blob.h"
#include "compiler/import/Prepare.h"
#include "compiler/import/onnx/Schema.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/StringMap.h"
#include <set>
#include <unordered_map>

using namespace mlir;

namespace firn {
namespace {

/// Names of dimensions as symbols: without the characters of expressions, and no two names one symbol.
class Symbols {
public:
  std::string of(const std::string &name) {
    auto found = symbols.find(name);
    return found != symbols.end() ? found->second : symbols[name] = fresh(name);
  }
  std::string fresh(const std::string &name) {
    std::string safe;
    for (char c : name)
      safe += llvm::StringRef("+-*(), ?\"\\").contains(c) || static_cast<unsigned char>(c) < 0x20 ? '_' : c;
    // A number would be a size.
    if (safe.empty() || llvm::isDigit(safe[0]))
      safe = "_" + safe;
    std::string symbol = safe;
    for (unsigned i = 1; !used.insert(symbol).second; ++i)
      symbol = safe + "_" + std::to_string(i);
    return symbol;
  }
  /// Symbol to name where they differ.
  DictionaryAttr changed(MLIRContext *context) const {
    NamedAttrList list;
    for (auto &[name, symbol] : symbols)
      if (name != symbol)
        list.set(symbol, StringAttr::get(context, name));
    return list.getDictionary(context);
  }

private:
  std::map<std::string, std::string> symbols;
  std::set<std::string> used;
};

struct Scope {
  const Scope *outer = nullptr;
  std::unordered_map<std::string, Value> values;

  Value find(const std::string &name) const {
    for (const Scope *scope = this; scope; scope = scope->outer)
      if (auto found = scope->values.find(name); found != scope->values.end())
        return found->second;
    return {};
  }
};

class ModuleBuilder {
public:
  ModuleBuilder(const model::Model &built, StringRef path, const std::function<bool(StringRef)> &opaque,
                MLIRContext &ctx, Diagnostics &reported)
      : model(built), isOpaque(opaque), file(path.substr(path.rfind('/') + 1).str()), context(&ctx), builder(&ctx),
        diagnostics(reported) {}

  OwningOpRef<ModuleOp> build();

private:
  void setAttributes(ModuleOp module);
  void buildMain(ModuleOp module);
  void buildConstants(const model::Graph &graph, Scope &scope, const std::set<std::string> &except);
  void buildNodes(const model::Graph &graph, Scope &scope);
  void buildNode(const model::Node &node, Scope &scope);
  void carryGraphs(const model::Node &node, const Scope &scope, OperationState &state);
  void buildRegion(Operation *op, unsigned index, const model::Graph &graph, const Scope &outer, Location location);
  void addAttributes(const model::Node &node, OperationState &state);
  Attribute attributeOf(const model::Attribute &attribute);
  Attribute constantNodeValue(const model::Node &node, Type &type);
  /// Null for a tensor without contents: an attribute of another kind, or one that was reported.
  Attribute valueOf(const model::Tensor &tensor, Type &type);
  Location locationOf(const model::Node &node, StringRef operation);
  bool isDefault(StringRef operation, StringRef name, Attribute value);
  Location nameLocation(StringRef name) { return sourceLocation(context, name, file, {}); }
  Type argumentType(const model::Value &input);
  Type declaredType(const model::Type &type);
  Type unknownType() { return UnrankedTensorType::get(UnknownType::get(context)); }
  Value placeholder(Location location, StringRef message);
  StringAttr string(StringRef text) { return StringAttr::get(context, text); }
  ArrayAttr strings(ArrayRef<std::string> texts) {
    return builder.getStrArrayAttr(SmallVector<StringRef>(texts.begin(), texts.end()));
  }

  const model::Model &model;
  const std::function<bool(StringRef)> &isOpaque;
  std::string file;
  MLIRContext *context;
  OpBuilder builder;
  Diagnostics &diagnostics;
  Symbols symbols;
  llvm::StringMap<NamedAttrList> defaultsOf;
};

OwningOpRef<ModuleOp> ModuleBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(nameLocation(model.graph.name));
  builder.setInsertionPointToStart(module->getBody());
  buildMain(*module);
  setAttributes(*module);
  return module;
}

void ModuleBuilder::setAttributes(ModuleOp module) {
  auto text = [&](StringRef key, const std::string &value) {
    if (!value.empty())
      module->setAttr(key, string(value));
  };
  StringRef stem = file;
  module->setAttr("firn.name",
                  string(model.graph.name.empty() ? stem.substr(0, stem.rfind('.')) : StringRef(model.graph.name)));
  text("firn.doc", model.doc);
  text("firn.graph_doc", model.graph.doc);
  if (!model.graph.values.empty()) // the file says types of intermediate values: an exported one does, too
    module->setAttr("firn.value_info", builder.getUnitAttr());
  text("firn.domain", model.domain);
  text("firn.producer", model.producer);
  text("firn.producer_version", model.producerVersion);
  auto opset = model.opsets.find("");
  module->setAttr("firn.opset", builder.getI64IntegerAttr(opset == model.opsets.end() ? 1 : opset->second));
  module->setAttr("firn.format_version", builder.getI64IntegerAttr(model.formatVersion));
  if (model.modelVersion)
    module->setAttr("firn.model_version", builder.getI64IntegerAttr(model.modelVersion));
  NamedAttrList metadata, opsets;
  for (auto &[key, value] : model.metadata)
    if (!key.empty())
      metadata.set(key, string(value));
  for (auto &[domain, version] : model.opsets)
    if (!domain.empty())
      opsets.set(domain, builder.getI64IntegerAttr(version));
  module->setAttr("firn.metadata", metadata.getDictionary(context));
  if (!opsets.empty())
    module->setAttr("firn.opsets", opsets.getDictionary(context));
  if (DictionaryAttr changed = symbols.changed(context); !changed.empty())
    module->setAttr("firn.symbols", changed);
}

// --- types -----------------------------------------------------------------------------------------------------------

Type ModuleBuilder::argumentType(const model::Value &input) {
  if (Type list = input.type.element ? declaredType(input.type) : Type())
    return list;
  Type element = input.type.kind == model::Type::Kind::Tensor ? elementTypeOf(context, input.type.dtype) : Type();
  if (!element) {
    Diagnostic diagnostic;
    diagnostic.id = "import.type";
    diagnostic.what = "input '" + input.name + "' has a type that is not supported";
    diagnostic.expected = "a tensor with an element type";
    static const char *const kinds[] = {
        "none", "a tensor without a known element type", "a sparse tensor", "a sequence", "a map", "an optional"};
    diagnostic.found = kinds[int(input.type.kind)];
    diagnostics.report(std::move(diagnostic));
    return unknownType();
  }
  if (!input.type.dims)
    return UnrankedTensorType::get(element);
  SmallVector<DimExpr> dims;
  for (auto [axis, dim] : llvm::enumerate(*input.type.dims)) {
    if (dim.size)
      dims.push_back(DimExpr(*dim.size));
    else
      dims.push_back(DimExpr::symbol(dim.symbol.empty() ? symbols.fresh(input.name + "." + std::to_string(axis))
                                                        : symbols.of(dim.symbol)));
  }
  return tensorType(element, dims);
}

Type ModuleBuilder::declaredType(const model::Type &type) {
  if (Type element = type.element ? declaredType(*type.element) : Type()) {
    auto value = dyn_cast<TensorType>(element);
    Type key = elementTypeOf(context, type.dtype);
    if (type.kind == model::Type::Kind::Map)
      return key && value ? MapType::get(context, key, value.getElementType()) : Type();
    return type.kind == model::Type::Kind::Sequence ? Type(SequenceType::get(context, element))
                                                    : OptionalType::get(context, element);
  }
  Type element = type.kind == model::Type::Kind::Tensor ? elementTypeOf(context, type.dtype) : Type();
  if (!element)
    return {};
  if (!type.dims)
    return UnrankedTensorType::get(element);
  SmallVector<DimExpr> dims;
  for (const model::Dim &dim : *type.dims)
    dims.push_back(dim.size             ? DimExpr(*dim.size)
                   : dim.symbol.empty() ? DimExpr(-1)
                                        : DimExpr::symbol(symbols.of(dim.symbol)));
  return tensorType(element, dims);
}

// --- attributes and constants ----------------------------------------------------------------------------------------

Attribute ModuleBuilder::valueOf(const model::Tensor &tensor, Type &type) {
  Type elementType = elementTypeOf(context, tensor.dtype);
  if (!elementType || tensor.isBroken)
    return {};
  auto tensorType = RankedTensorType::get(tensor.dims, elementType);
  type = tensorType;
  if (tensor.dtype == FIRN_STRING)
    return strings(tensor.strings);
  if (tensor.dtype == FIRN_BOOL && llvm::any_of(tensor.bytes, [](char c) { return c != 0 && c != 1; })) {
    // Any byte but 0 is true; from here on it is 1.
    std::vector<char> bytes(tensor.bytes.begin(), tensor.bytes.end());
    for (char &c : bytes)
      c = c != 0;
    return constantFromBytes(tensorType, bytes);
  }
  // Elements must lie as the machine wants them; side files and messages promise nothing.
  uintptr_t alignment = std::min<uintptr_t>(8, std::max(1, firn_dtype_bits(tensor.dtype) / 8));
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignment != 0)
    return constantFromBytes(tensorType, tensor.bytes);
  ElementsAttr constant = constantFromMapped(tensorType, tensor.bytes, tensor.owner);
  releasePages(tensor.bytes); // they were read once, to find equal ones; weights may be larger than memory
  return constant;
}

Attribute ModuleBuilder::attributeOf(const model::Attribute &attribute) {
  using Kind = model::Attribute::Kind;
  Type type;
  switch (attribute.kind) {
  case Kind::Float:
    return builder.getF32FloatAttr(attribute.f);
  case Kind::Int:
    return builder.getI64IntegerAttr(attribute.i);
  case Kind::String:
    return string(attribute.s);
  case Kind::Floats:
    return builder.getDenseF32ArrayAttr(attribute.floats);
  case Kind::Ints:
    return builder.getDenseI64ArrayAttr(attribute.ints);
  case Kind::Strings:
    return strings(attribute.strings);
  case Kind::Tensor: {
    if (attribute.tensor.isBroken)
      return {}; // reported by its reader
    Attribute value = valueOf(attribute.tensor, type);
    if (isa<ElementsAttr>(value))
      return value;
    // A tensor of strings, told apart from a list of strings.
    return DictionaryAttr::get(context,
                               {builder.getNamedAttr("dims", builder.getDenseI64ArrayAttr(attribute.tensor.dims)),
                                builder.getNamedAttr("strings", value)});
  }
  case Kind::Type: {
    Type declared = declaredType(attribute.type);
    return declared ? TypeAttr::get(declared) : Attribute();
  }
  default:
    return {};
  }
}

void ModuleBuilder::addAttributes(const model::Node &node, OperationState &state) {
  // What older versions had and no upgrade took away has no meaning any more; check has warned of the rest.
  const Schema *newest = newestSchema(node.domain, node.type);
  for (const model::Attribute &attribute : node.attributes) {
    if (attribute.graph || (newest && !newest->kindOf(attribute.name)))
      continue;
    if (Attribute value = attributeOf(attribute))
      state.addAttribute(attribute.name, value);
  }
}

// Constant has one attribute, of many forms.
Attribute ModuleBuilder::constantNodeValue(const model::Node &node, Type &type) {
  using Kind = model::Attribute::Kind;
  const model::Attribute *attribute = node.attributes.empty() ? nullptr : &node.attributes[0];
  if (!attribute)
    return {};
  auto bytesOf = [](const auto &values) {
    return ArrayRef<char>(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(values[0]));
  };
  auto numbers = [&](Type element, ArrayRef<int64_t> dims, ArrayRef<char> bytes) {
    auto tensor = RankedTensorType::get(dims, element);
    type = tensor;
    return constantFromBytes(tensor, bytes);
  };
  switch (attribute->kind) {
  case Kind::Tensor:
    return valueOf(attribute->tensor, type);
  case Kind::Float:
    return numbers(builder.getF32Type(), {}, bytesOf(ArrayRef<float>(attribute->f)));
  case Kind::Int:
    return numbers(builder.getI64Type(), {}, bytesOf(ArrayRef<int64_t>(attribute->i)));
  case Kind::Floats:
    return numbers(builder.getF32Type(), {int64_t(attribute->floats.size())}, bytesOf(attribute->floats));
  case Kind::Ints:
    return numbers(builder.getI64Type(), {int64_t(attribute->ints.size())}, bytesOf(attribute->ints));
  case Kind::String:
    type = RankedTensorType::get({}, StringType::get(context));
    return strings(attribute->s);
  case Kind::Strings:
    type = RankedTensorType::get({int64_t(attribute->strings.size())}, StringType::get(context));
    return strings(attribute->strings);
  default:
    return {};
  }
}

void ModuleBuilder::buildConstants(const model::Graph &graph, Scope &scope, const std::set<std::string> &except) {
  for (const model::Tensor &tensor : graph.constants) {
    if (except.count(tensor.name) || scope.values.count(tensor.name))
      continue;
    Location location = nameLocation(tensor.name);
    if (tensor.isBroken) {
      scope.values[tensor.name] = placeholder(location, "a damaged tensor");
      continue;
    }
    OperationState state(location, ConstantOp::getOperationName());
    Type type;
    state.addAttribute("value", valueOf(tensor, type));
    state.addTypes(type);
    scope.values[tensor.name] = builder.create(state)->getResult(0);
  }
}

// Stands for a value that an error was reported about, so that the rest can be looked at.
Value ModuleBuilder::placeholder(Location location, StringRef message) {
  return builder.create<FailOp>(location, TypeRange{unknownType()}, string(message)).getResult(0);
}

// --- nodes -----------------------------------------------------------------------------------------------------------

bool ModuleBuilder::isDefault(StringRef operation, StringRef name, Attribute value) {
  NamedAttrList &defaults = defaultsOf[operation];
  if (defaults.empty())
    OperationName(operation, context).populateDefaultAttrs(defaults);
  return defaults.get(name) == value;
}

Location ModuleBuilder::locationOf(const model::Node &node, StringRef operation) {
  NamedAttrList details;
  details.set(opKey, string(node.origin.empty() ? operatorLabel(node) : node.origin));
  details.set(outputsKey, strings(node.outputs));
  if (node.isUnnamed)
    details.set(unnamedKey, UnitAttr::get(context));
  if (!node.doc.empty())
    details.set(docKey, string(node.doc));
  if (!node.metadata.empty()) {
    NamedAttrList metadata;
    for (auto &[key, value] : node.metadata)
      if (!key.empty())
        metadata.set(key, string(value));
    details.set(metadataKey, metadata.getDictionary(context));
  }
  SmallVector<StringRef> graphs, defaults;
  for (const model::Attribute &attribute : node.attributes)
    if (!operation.empty() && attribute.kind != model::Attribute::Kind::Tensor && !attribute.graph)
      if (Attribute value = attributeOf(attribute); value && isDefault(operation, attribute.name, value))
        defaults.push_back(attribute.name);
  if (!defaults.empty())
    details.set(defaultsKey, builder.getStrArrayAttr(defaults));
  SmallVector<StringRef> order;
  for (const model::Attribute &attribute : node.attributes)
    order.push_back(attribute.name);
  if (!llvm::is_sorted(order))
    details.set(orderKey, builder.getStrArrayAttr(order));
  SmallVector<Attribute> types;
  for (const char *region : {"then_branch", "else_branch", "body"}) {
    const model::Attribute *attribute = node.attribute(region);
    if (!attribute || !attribute->graph)
      continue;
    graphs.push_back(attribute->graph->name);
    SmallVector<Attribute> declared;
    for (const auto *values : {&attribute->graph->inputs, &attribute->graph->outputs})
      for (const model::Value &value : *values) {
        Type type = declaredType(value.type);
        declared.push_back(TypeAttr::get(type ? type : unknownType()));
      }
    types.push_back(builder.getArrayAttr(declared));
  }
  if (!graphs.empty()) {
    details.set(graphsKey, builder.getStrArrayAttr(graphs));
    details.set(typesKey, builder.getArrayAttr(types));
  }
  return sourceLocation(context, node.name, file, details.getDictionary(context));
}

void ModuleBuilder::buildNodes(const model::Graph &graph, Scope &scope) {
  for (const model::Node &node : graph.nodes)
    buildNode(node, scope);
}

void ModuleBuilder::buildNode(const model::Node &node, Scope &scope) {
  size_t resultCount = node.outputs.size(), operandCount = node.inputs.size();
  while (resultCount > 1 && node.outputs[resultCount - 1].empty())
    --resultCount;
  while (operandCount > 0 && node.inputs[operandCount - 1].empty())
    --operandCount;
  bool isOnnx = node.domain.empty();
  bool isIf = isOnnx && node.type == "If", isLoop = isOnnx && node.type == "Loop";
  StringRef name = isIf     ? IfOp::getOperationName()
                   : isLoop ? LoopOp::getOperationName()
                   : isOnnx ? operationFor(node.type)
                            : StringRef();
  Location location = locationOf(node, name);
  auto define = [&](Operation *op) {
    for (size_t i = 0; i < resultCount && i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty())
        scope.values.try_emplace(node.outputs[i], op->getResult(unsigned(i)));
  };
  if (node.isBroken) {
    SmallVector<Type> types(resultCount, unknownType());
    return define(builder.create<FailOp>(location, types, string("a broken node")));
  }
  for (auto &[key, message] : node.metadata)
    if (key == failKey) // written by compiler/export/Failure.cpp
      return define(builder.create<FailOp>(location, SmallVector<Type>(resultCount, unknownType()), string(message)));
  if (isOnnx && node.type == "Constant") {
    OperationState state(location, ConstantOp::getOperationName());
    Type type;
    Attribute value = constantNodeValue(node, type);
    if (!value) {
      Diagnostic diagnostic;
      diagnostic.id = "import.attribute";
      diagnostic.node = node.name;
      diagnostic.operatorName = node.origin;
      diagnostic.what = "the constant has no value";
      diagnostics.report(std::move(diagnostic));
      return define(builder.create<FailOp>(location, TypeRange{unknownType()}, string("a broken node")));
    }
    state.addAttribute("value", value);
    state.addTypes(type);
    return define(builder.create(state));
  }

  SmallVector<Value> operands;
  for (size_t i = 0; i < std::max<size_t>(operandCount, isLoop ? 2 : 0); ++i) {
    Value value = i < node.inputs.size() && !node.inputs[i].empty() ? scope.find(node.inputs[i]) : Value();
    operands.push_back(value ? value : builder.create<AbsentOp>(location, builder.getNoneType()));
  }
  OperationState state(location, name.empty() ? CallOp::getOperationName() : name);
  if (name.empty()) {
    std::string callee = model::domainName(node.domain) + "::" + node.type;
    state.addAttribute("callee", string(callee));
    if (isOpaque(callee))
      state.addAttribute(opaqueAttribute, builder.getUnitAttr());
  }
  state.addOperands(operands);
  state.addTypes(SmallVector<Type>(resultCount, unknownType()));
  addAttributes(node, state);
  if (name.empty())
    carryGraphs(node, scope, state);
  for (int i = 0; i < (isIf ? 2 : isLoop ? 1 : 0); ++i)
    state.addRegion();
  Operation *op = builder.create(state);
  if (isIf) {
    buildRegion(op, 0, *node.attribute("then_branch")->graph, scope, location);
    buildRegion(op, 1, *node.attribute("else_branch")->graph, scope, location);
  } else if (isLoop) {
    buildRegion(op, 0, *node.attribute("body")->graph, scope, location);
  }
  define(op);
}

static void forgetMadeUpNames(model::Graph &graph) {
  for (model::Node &node : graph.nodes) {
    if (node.isUnnamed)
      node.name.clear();
    for (model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        forgetMadeUpNames(*attribute.graph);
  }
}

/// Graphs of an operator that nobody here knows stay as they are; what they read from outside must stay, too.
void ModuleBuilder::carryGraphs(const model::Node &node, const Scope &scope, OperationState &state) {
  NamedAttrList graphs;
  std::vector<std::string> captures;
  for (const model::Attribute &attribute : node.attributes) {
    if (!attribute.graph)
      continue;
    model::Graph graph = *attribute.graph;
    for (const std::string &name : capturedNames(graph))
      if (!llvm::is_contained(captures, name))
        if (Value value = scope.find(name)) {
          captures.push_back(name);
          state.addOperands(value);
        }
    forgetMadeUpNames(graph);
    graphs.set(attribute.name, string(graphBytes(graph)));
  }
  if (graphs.empty())
    return;
  state.addAttribute(carriedGraphsAttribute, graphs.getDictionary(context));
  state.addAttribute(capturesAttribute, strings(captures));
}

void ModuleBuilder::buildRegion(Operation *op, unsigned index, const model::Graph &graph, const Scope &outer,
                                Location location) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&op->getRegion(index));
  Scope scope;
  scope.outer = &outer;
  for (auto [i, input] : llvm::enumerate(graph.inputs)) {
    // The iteration number and the condition are scalars; what carried values are is found by inference.
    Type type = i == 0   ? Type(RankedTensorType::get({}, builder.getI64Type()))
                : i == 1 ? Type(RankedTensorType::get({}, builder.getI1Type()))
                         : unknownType();
    scope.values[input.name] = block->addArgument(type, nameLocation(input.name));
  }
  buildConstants(graph, scope, {});
  buildNodes(graph, scope);
  SmallVector<Value> yielded;
  for (const model::Value &output : graph.outputs) {
    Value value = scope.find(output.name);
    yielded.push_back(value ? value : placeholder(location, "an output that nothing computes"));
  }
  builder.create<YieldOp>(location, yielded);
}

void ModuleBuilder::buildMain(ModuleOp module) {
  const model::Graph &graph = model.graph;
  std::unordered_map<std::string, const model::Tensor *> constants;
  for (const model::Tensor &tensor : graph.constants)
    constants.emplace(tensor.name, &tensor);

  // Until format version 4 every constant had to be an input too; since then that means a default.
  bool hasDefaults = model.formatVersion >= 4;
  std::vector<const model::Value *> inputs;
  std::set<std::string> names;
  for (const model::Value &input : graph.inputs)
    if ((hasDefaults || !constants.count(input.name)) && names.insert(input.name).second)
      inputs.push_back(&input);
  SmallVector<Type> inputTypes, outputTypes(graph.outputs.size(), unknownType());
  for (const model::Value *input : inputs)
    inputTypes.push_back(argumentType(*input));
  auto main = builder.create<func::FuncOp>(module.getLoc(), "main", builder.getFunctionType(inputTypes, outputTypes));
  Block *block = main.addEntryBlock();
  builder.setInsertionPointToStart(block);

  // Attributes are set in one go: setting one copies the list of all.
  SmallVector<DictionaryAttr> inputAttributes, outputAttributes;
  auto described = [&](const model::Value &value) {
    NamedAttrList attributes;
    attributes.set("firn.name", string(value.name));
    if (!value.doc.empty())
      attributes.set("firn.doc", string(value.doc));
    return attributes;
  };
  Scope scope;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    scope.values[input->name] = block->getArgument(unsigned(i));
    block->getArgument(unsigned(i)).setLoc(nameLocation(input->name));
    NamedAttrList attributes = described(*input);
    Type type;
    if (auto found = constants.find(input->name); found != constants.end() && !found->second->isBroken)
      attributes.set("firn.default", valueOf(*found->second, type));
    inputAttributes.push_back(attributes.getDictionary(context));
  }
  main.setAllArgAttrs(inputAttributes);
  buildConstants(graph, scope, names);
  buildNodes(graph, scope);

  SmallVector<Value> results;
  for (const model::Value &output : graph.outputs) {
    Value value = scope.find(output.name);
    results.push_back(value ? value : placeholder(module.getLoc(), "an output that nothing computes"));
    NamedAttrList attributes = described(output);
    if (Type declared = declaredType(output.type))
      attributes.set("firn.declared", TypeAttr::get(declared));
    outputAttributes.push_back(attributes.getDictionary(context));
  }
  main.setAllResultAttrs(outputAttributes);
  builder.create<func::ReturnOp>(module.getLoc(), results);
  outputTypes.clear();
  llvm::append_range(outputTypes, ValueRange(results).getTypes());
  main.setType(builder.getFunctionType(inputTypes, outputTypes));
}

} // namespace

OwningOpRef<ModuleOp> buildModule(const model::Model &model, StringRef path,
                                  const std::function<bool(StringRef)> &isOpaque, MLIRContext &context,
                                  Diagnostics &diagnostics) {
  return ModuleBuilder(model, path, isOpaque, context, diagnostics).build();
}

} // namespace firn
