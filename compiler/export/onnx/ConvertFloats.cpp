#include "compiler/export/onnx/ConvertFloats.h"
#include "compiler/import/Blob.h"
#include "compiler/import/onnx/Schema.h"
#include "compiler/import/onnx/Upgrade.h"
#include "runtime/abi/dtype.h"
#include "runtime/kernels/SmallFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

using model::Type;

const char *const keptInF32[] = {
    "CumProd",
    "CumSum",
    "Det",
    "Exp",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MeanVarianceNormalization",
    "NegativeLogLikelihoodLoss",
    "Pow",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "SoftmaxCrossEntropyLoss",
    "Softplus",
};

/// Operators that pass a number on, so that one the narrow type cannot hold comes out again.
const char *const passesNumbersOn[] = {
    "Abs",      "Add",  "Cast",    "Clip", "Concat", "Div",       "Expand",     "Flatten", "Gather",
    "Identity", "Max",  "Min",     "Mul",  "Neg",    "Pad",       "Reciprocal", "Reshape", "Slice",
    "Split",    "Sqrt", "Squeeze", "Sub",  "Tile",   "Transpose", "Unsqueeze",  "Where",
};

bool isOneOf(llvm::ArrayRef<const char *> list, llvm::StringRef name) {
  return llvm::any_of(list, [&](const char *entry) { return name == entry; });
}

class Conversion {
public:
  Conversion(const FloatConversion &how, int64_t &written, std::map<std::string, Type> &known, UniqueNames &taken)
      : options(how), opset(written), format(how.dtype == FIRN_F16 ? kernels::formatF16 : kernels::formatBf16),
        suffix(how.dtype == FIRN_F16 ? "_fp16" : "_bf16"), types(known), names(taken) {
    narrowType.kind = Type::Kind::Tensor;
    narrowType.dtype = how.dtype;
  }

  void run(model::Graph &graph) {
    for (model::Value &input : graph.inputs)
      if (options.withInterface && isF32(input.type)) {
        input.type.dtype = options.dtype;
        becomeNarrow(input.name);
        for (model::Tensor &constant : graph.constants)
          if (constant.name == input.name) // its default
            constant = narrowed(constant, constant.name);
      }
    for (const model::Value &output : graph.outputs) // as declared, where nothing else tells
      if (!isKnown(output.name))
        types[output.name] = output.type;
    convert(graph, true, nullptr);
    finishConstants(graph);
    llvm::move(bounds, std::back_inserter(graph.constants));
  }

private:
  struct Constant {
    model::Tensor *tensor = nullptr;
    model::Graph *graph = nullptr;
    bool isReadAsF32 = false;
    std::string narrowName; // of its narrow form, "" while nothing reads one
  };
  /// Casts that a graph and those around it have already.
  struct Scope {
    const Scope *outer;
    std::unordered_map<std::string, std::string> casts;
    const std::string *find(const std::string &name) const {
      for (const Scope *scope = this; scope; scope = scope->outer)
        if (auto found = scope->casts.find(name); found != scope->casts.end())
          return &found->second;
      return nullptr;
    }
  };

  static bool isF32(const Type &type) { return type.kind == Type::Kind::Tensor && type.dtype == FIRN_F32; }
  bool isF32(const std::string &name) const {
    if (auto constant = constants.find(name); constant != constants.end())
      return constant->second.tensor->dtype == FIRN_F32;
    auto found = types.find(name);
    return found != types.end() && isF32(found->second);
  }
  bool isKnown(const std::string &name) const {
    auto found = types.find(name);
    return name.empty() || constants.count(name) || (found != types.end() && found->second.dtype);
  }
  bool isNarrow(const std::string &name) const { return narrowValues.count(name) != 0; }
  void becomeNarrow(const std::string &name) {
    types[name].dtype = options.dtype;
    narrowValues.insert(name);
  }

  model::Tensor narrowed(const model::Tensor &tensor, const std::string &name) const {
    model::Tensor made;
    made.name = name;
    made.dtype = options.dtype;
    made.dims = tensor.dims;
    made.doc = tensor.doc;
    size_t count = tensor.bytes.size() / 4;
    char *out = allocateBytes(made, count * 2);
    for (size_t i = 0; i < count; ++i) {
      float number;
      std::memcpy(&number, tensor.bytes.data() + 4 * i, 4);
      auto bits = uint16_t(kernels::encodeSmallFloat(format, double(number), false));
      std::memcpy(out + 2 * i, &bits, 2);
    }
    releasePages(tensor.bytes);
    return made;
  }

  /// A number that the narrow type has no near one for: out of its range, or one that alone becomes 0.
  std::string lostNumber(const model::Tensor &tensor) const {
    if (tensor.dtype != FIRN_F32 || tensor.bytes.size() % 4)
      return "";
    size_t count = tensor.bytes.size() / 4;
    for (size_t i = 0; i < count; ++i) {
      float number;
      std::memcpy(&number, tensor.bytes.data() + 4 * i, 4);
      if (!std::isfinite(number) || number == 0)
        continue;
      double narrow = kernels::decodeSmallFloat(format, kernels::encodeSmallFloat(format, double(number), false));
      if (!std::isfinite(narrow) || (count == 1 && narrow == 0)) {
        char text[32];
        std::snprintf(text, sizeof(text), "%g", double(number));
        return text;
      }
    }
    return "";
  }
  const std::string &lostIn(const std::string &name) {
    auto [found, isNew] = lost.try_emplace(name);
    if (isNew)
      if (auto constant = constants.find(name); constant != constants.end())
        found->second = lostNumber(*constant->second.tensor);
    return found->second;
  }

  bool isKept(const model::Node &node) const {
    auto named = [&](const std::string &entry) { return entry == node.type || entry == node.name; };
    return (!llvm::is_contained(options.kept, "none") && isOneOf(keptInF32, node.type)) ||
           llvm::any_of(options.kept, named);
  }

  /// Why the node stays in f32, or "".
  std::string whyNot(const model::Node &node) {
    if (!node.domain.empty())
      return "only operators of ai.onnx are converted";
    if (isKept(node))
      return "it is among the operators that stay in f32";
    const Schema *schema = findSchema("", node.type, opset);
    if (!schema)
      return "opset " + std::to_string(opset) + " does not have it";
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        return "what goes in and out of nested graphs stays in f32";
    if (node.type != "Cast" && (node.attribute("dtype") || node.attribute("output_dtype")))
      return "an attribute says its element type";
    if (llvm::StringRef(node.type).contains("QuantizeLinear") || llvm::StringRef(node.type).starts_with("QLinear"))
      return "scales stay in f32";
    for (const auto *list : {&node.inputs, &node.outputs})
      for (const std::string &name : *list)
        if (auto found = types.find(name); found != types.end() && found->second.element)
          return "what is in lists stays in f32";
    for (auto [i, input] : llvm::enumerate(node.inputs))
      if (!isKnown(input) && schema->takes(i, narrowType))
        return "the type of input " + std::to_string(i) + " is not known";
    if (!llvm::all_of(node.outputs, [&](const std::string &output) { return isKnown(output); }))
      return "the type of a result is not known";
    if (std::string number = lostNumberOf(node); !number.empty())
      return "a constant of it holds " + number;
    if (readsWide(node))
      return "what it reads may hold numbers beyond the type";
    for (auto [i, output] : llvm::enumerate(node.outputs))
      if (isF32(output) && !schema->gives(i, narrowType))
        return "opset " + std::to_string(opset) + " does not give the type";
    bool takesAny = (node.type == "Cast" || node.type == "ConstantOfShape") && isF32(node.outputs[0]);
    for (auto [i, input] : llvm::enumerate(node.inputs))
      takesAny |= (isF32(input) || isNarrow(input)) && schema->takes(i, narrowType);
    return takesAny ? "" : "it takes nothing of the type";
  }

  std::string lostNumberOf(const model::Node &node) {
    for (const std::string &input : node.inputs)
      if (const std::string &number = lostIn(input); !number.empty())
        return number;
    const model::Attribute *value = node.type == "ConstantOfShape" ? node.attribute("value") : nullptr;
    return value ? lostNumber(value->tensor) : "";
  }
  bool readsWide(const model::Node &node) const {
    return isOneOf(passesNumbersOn, node.type) &&
           llvm::any_of(node.inputs, [&](const std::string &input) { return wideValues.count(input) != 0; });
  }

  /// Results of LayerNormalization but the first have the type that it computes in.
  static bool followsInputs(const model::Node &node, size_t output) {
    return output == 0 || node.type != "LayerNormalization";
  }

  /// The value as the type that is wanted, by a cast where it has the other.
  std::string as(bool narrow, const std::string &name, Scope &scope, model::Graph &graph) {
    if (isNarrow(name) == narrow)
      return name;
    if (const std::string *made = scope.find(name))
      return *made;
    std::string made = names.fresh(name + (narrow ? suffix : "_f32"));
    bool isClipped = narrow && options.dtype == FIRN_F16 && wideValues.count(name);
    graph.nodes.push_back(cast(isClipped ? clipped(name, graph) : name, made, narrow));
    return scope.casts[name] = made;
  }
  /// What a mask adds stays finite, so that rows that are masked as a whole give numbers. Some way below the largest
  /// half, for the sum with a score.
  std::string clipped(const std::string &name, model::Graph &graph) {
    if (bounds.empty())
      for (float bound : {-60000.f, 60000.f}) {
        model::Tensor &tensor = bounds.emplace_back();
        tensor.name = names.fresh(bound < 0 ? "fp16_lowest" : "fp16_highest");
        tensor.dtype = FIRN_F32;
        std::memcpy(allocateBytes(tensor, 4), &bound, 4);
      }
    opset = std::max<int64_t>(opset, 12); // bounds as inputs
    model::Node node;
    node.type = "Clip";
    node.outputs = {names.fresh(name + "_clipped")};
    node.name = node.outputs[0];
    node.inputs = {name, bounds[0].name, bounds[1].name};
    types[node.outputs[0]] = types[name];
    graph.nodes.push_back(std::move(node));
    return graph.nodes.back().outputs[0];
  }
  model::Node cast(const std::string &from, const std::string &to, bool narrow) {
    model::Node node;
    node.type = "Cast";
    node.name = names.fresh(to + "_cast");
    node.inputs = {from};
    node.outputs = {to};
    node.attributes = {intAttribute("to", narrow ? options.dtype : FIRN_F32)};
    types[to] = types[from];
    types[to].dtype = FIRN_F32;
    if (narrow)
      becomeNarrow(to);
    return node;
  }

  void convert(model::Graph &graph, bool isMain, const Scope *outer) {
    for (model::Tensor &tensor : graph.constants)
      if (llvm::none_of(graph.inputs, [&](const model::Value &input) { return input.name == tensor.name; }))
        constants[tensor.name] = {&tensor, &graph, false, ""};
    Scope scope{outer, {}};
    std::vector<model::Node> nodes = std::move(graph.nodes), last;
    graph.nodes.clear();
    std::unordered_set<std::string> outputs;
    for (const model::Value &output : graph.outputs)
      outputs.insert(output.name);
    bool wantsNarrow = isMain && options.withInterface;
    for (model::Node &node : nodes) {
      bool becomesNarrow = decide(node);
      for (model::Attribute &attribute : node.attributes)
        if (attribute.graph)
          convert(*attribute.graph, false, &scope);
      convertInputs(node, becomesNarrow, scope, graph);
      for (auto [i, output] : llvm::enumerate(node.outputs)) {
        if (!isF32(output))
          continue;
        bool isMadeNarrow = becomesNarrow && followsInputs(node, i);
        if (outputs.count(output) && isMadeNarrow != wantsNarrow) { // the graph's output keeps its name
          std::string inner = names.fresh(output + (isMadeNarrow ? suffix : "_f32"));
          types[inner] = types[output];
          renamed[output] = inner;
          last.push_back(cast(inner, output, wantsNarrow));
          output = inner;
        }
        if (isMadeNarrow)
          becomeNarrow(output);
      }
      graph.nodes.push_back(std::move(node));
    }
    llvm::move(last, std::back_inserter(graph.nodes));
    for (model::Value &output : graph.outputs)
      if (isNarrow(output.name))
        output.type.dtype = options.dtype;
    for (model::Value &value : graph.values)
      if (isNarrow(value.name))
        value.type.dtype = options.dtype;
  }

  /// Whether the node computes in the narrow type; then what its attributes say of types follows.
  bool decide(model::Node &node) {
    std::string why = whyNot(node);
    auto isFloat = [&](const std::string &name) { return isF32(name) || isNarrow(name); };
    bool concerns = llvm::any_of(node.inputs, isFloat) || llvm::any_of(node.outputs, isFloat);
    if (!why.empty()) {
      if (concerns && options.onKept)
        options.onKept(node.name, node.type + " stays in f32: " + why);
      if (!lostNumberOf(node).empty() || readsWide(node))
        wideValues.insert(node.outputs.begin(), node.outputs.end());
      return false;
    }
    if (node.type == "Cast" && isF32(node.outputs[0]))
      node.attribute("to")->i = options.dtype;
    if (node.type == "ConstantOfShape") {
      if (!node.attribute("value")) {
        model::Attribute &zero = node.attributes.emplace_back();
        zero.name = "value";
        zero.kind = model::Attribute::Kind::Tensor;
        zero.tensor.dtype = FIRN_F32;
        zero.tensor.dims = {1};
        allocateBytes(zero.tensor, 4);
      }
      model::Tensor &value = node.attribute("value")->tensor;
      value = narrowed(value, value.name);
    }
    return true;
  }

  void convertInputs(model::Node &node, bool becomesNarrow, Scope &scope, model::Graph &graph) {
    const Schema *schema = becomesNarrow ? findSchema("", node.type, opset) : nullptr;
    for (auto [i, input] : llvm::enumerate(node.inputs)) {
      if (auto now = renamed.find(input); now != renamed.end())
        input = now->second;
      if (!isF32(input) && !isNarrow(input))
        continue;
      bool wantsNarrow = schema && schema->takes(i, narrowType);
      if (auto found = constants.find(input); found != constants.end()) {
        Constant &constant = found->second;
        if (wantsNarrow && constant.narrowName.empty())
          constant.narrowName = names.fresh(input + suffix);
        constant.isReadAsF32 |= !wantsNarrow;
        if (wantsNarrow)
          input = constant.narrowName;
      } else if (!schema || node.type != "Cast") { // a cast takes either
        input = as(wantsNarrow, input, scope, graph);
      }
    }
  }

  /// A constant that is read in both forms is there twice; one that is only read as narrow keeps its name.
  void finishConstants(model::Graph &graph) {
    std::unordered_map<std::string, std::string> final;
    std::vector<std::pair<model::Graph *, model::Tensor>> added;
    for (auto &[name, constant] : constants) {
      if (constant.narrowName.empty())
        continue;
      model::Tensor narrow = narrowed(*constant.tensor, constant.isReadAsF32 ? constant.narrowName : name);
      if (constant.isReadAsF32) {
        added.emplace_back(constant.graph, std::move(narrow));
      } else {
        *constant.tensor = std::move(narrow);
        final[constant.narrowName] = name;
      }
    }
    for (auto &[place, tensor] : added)
      place->constants.push_back(std::move(tensor));
    renameInputs(graph, final);
  }
  static void renameInputs(model::Graph &graph, const std::unordered_map<std::string, std::string> &to) {
    for (model::Node &node : graph.nodes) {
      for (std::string &input : node.inputs)
        if (auto found = to.find(input); found != to.end())
          input = found->second;
      for (model::Attribute &attribute : node.attributes)
        if (attribute.graph)
          renameInputs(*attribute.graph, to);
    }
  }

  const FloatConversion &options;
  int64_t &opset;
  kernels::SmallFloat format;
  std::string suffix;
  Type narrowType;
  std::map<std::string, Type> &types;
  UniqueNames &names;
  std::map<std::string, Constant> constants; // in an order that is always the same
  std::unordered_set<std::string> narrowValues, wideValues;
  std::unordered_map<std::string, std::string> renamed, lost;
  std::vector<model::Tensor> bounds; // of clipped values
};

} // namespace

void convertFloats(model::Model &model, const FloatConversion &conversion, int64_t &opset,
                   std::map<std::string, model::Type> &types, UniqueNames &names) {
  Conversion(conversion, opset, types, names).run(model.graph);
}

} // namespace firn
