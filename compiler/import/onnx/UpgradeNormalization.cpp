// Upgrades of softmax, normalisations, pooling, recurrent layers and the few others with changed defaults.
#include "compiler/import/onnx/Upgrade.h"

namespace firn::upgrade {

// All axes from `axis` on counted as one. Where the axis is the last one, that is what it means today.
void softmax13(UpgradeContext &context) {
  int64_t axis = context.intOf("axis", 1);
  std::optional<int64_t> rank = context.facts.of(context.input(0)).rank;
  context.set("axis", int64_t(-1));
  if (axis == -1 || (rank && axis == *rank - 1))
    return;
  std::string x = context.input(0);
  std::string shape = context.emit("shape", "Shape", {x});
  context.setInput(0, context.emit("flattened", "Flatten", {x}, {intAttribute("axis", axis)}));
  context.emitAfter(0, "unflattened", "Reshape", {shape});
}

void batchNormalization7(UpgradeContext &context) {
  if (context.intOf("is_test", 0) == 0 && context.node.outputs.size() > 1)
    context.unsupported("batch normalisation in training mode is not supported in this version");
  context.drop("is_test");
}

// Not per channel but per element of an instance: scale, bias, mean and variance have the shape of one.
void batchNormalization9(UpgradeContext &context) {
  bool isSpatial = context.intOf("spatial", 1) != 0;
  context.drop("spatial");
  if (isSpatial)
    return;
  std::string x = context.input(0), variance = context.input(4);
  std::string epsilon = context.scalarLike("epsilon", context.floatOf("epsilon", 1e-5f), x);
  std::string deviation =
      context.emit("deviation", "Sqrt", {context.emit("safe_variance", "Add", {variance, epsilon})});
  std::string centred = context.emit("centred", "Sub", {x, context.input(3)});
  std::string unit = context.emit("unit", "Div", {centred, deviation});
  std::string scaled = context.emit("scaled", "Mul", {unit, context.input(1)});
  for (size_t i = 1; i < context.node.outputs.size(); ++i)
    if (!context.node.outputs[i].empty())
      return context.unsupported("batch normalisation in training mode per element is not supported");
  context.node.outputs.resize(1);
  context.node.type = "Add";
  context.node.inputs = {scaled, context.input(2)};
  context.node.attributes.clear();
}

void batchNormalization14(UpgradeContext &context) {
  auto &outputs = context.node.outputs;
  for (size_t i = 3; i < outputs.size(); ++i)
    if (!outputs[i].empty())
      return context.unsupported("saved mean and variance of batch normalisation are not supported");
  bool isTraining = outputs.size() > 1 && (!outputs[1].empty() || (outputs.size() > 2 && !outputs[2].empty()));
  outputs.resize(std::min<size_t>(outputs.size(), isTraining ? 3 : 1));
  if (isTraining)
    context.set("training_mode", int64_t(1));
}

// Scale and bias were one per group; now they are one per channel.
void groupNormalization21(UpgradeContext &context) {
  std::string x = context.input(0);
  std::string channels = context.emit("channels", "Shape", {x}, {intAttribute("start", 1), intAttribute("end", 2)});
  std::string groups = context.integers("groups", {context.intOf("num_groups", 1)});
  std::string perGroup = context.emit("channels_per_group", "Div", {channels, groups});
  std::string shape = context.emit("shape", "Concat", {groups, perGroup}, {intAttribute("axis", 0)});
  std::string axis = context.integers("axis", {1}), flat = context.integers("flat", {-1});
  for (size_t i : {1, 2}) {
    std::string which = i == 1 ? "scale" : "bias";
    std::string column = context.emit(which + "_column", "Unsqueeze", {context.input(i), axis});
    std::string spread = context.emit(which + "_spread", "Expand", {column, shape});
    context.setInput(i, context.emit(which + "_per_channel", "Reshape", {spread, flat}));
  }
}

void lpPool2(UpgradeContext &context) {
  if (const model::Attribute *p = context.node.attribute("p"); p && p->kind == model::Attribute::Kind::Float)
    context.set("p", int64_t(p->f));
}

void recurrent7(UpgradeContext &context) { context.drop("output_sequence"); }

void dft20(UpgradeContext &context) {
  context.setInput(2, context.integer("axis", context.intOf("axis", 1)));
  context.drop("axis");
}

void gridSample20(UpgradeContext &context) {
  const model::Attribute *mode = context.node.attribute("mode");
  std::string name = mode ? mode->s : "bilinear";
  context.set("mode", name == "bilinear" ? "linear" : name == "bicubic" ? "cubic" : llvm::StringRef(name));
}

void roiAlign16(UpgradeContext &context) { context.set("coordinate_transformation_mode", "output_half_pixel"); }

} // namespace firn::upgrade
