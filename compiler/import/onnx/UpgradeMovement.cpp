// Upgrades of operators that move elements, of reductions' axes and of resampling.
#include "compiler/import/onnx/Upgrade.h"
#include "llvm/ADT/STLExtras.h"
#include <climits>

namespace firn::upgrade {

// Attribute `name` becomes input `index`.
static void intsToInput(UpgradeContext &context, llvm::StringRef name, size_t index) {
  if (context.has(name))
    context.setInput(index, context.integers(name, context.intsOf(name)));
  context.drop(name);
}

void reshape5(UpgradeContext &context) { intsToInput(context, "shape", 1); }
void axesToInput(UpgradeContext &context) { intsToInput(context, "axes", 1); }
void split13(UpgradeContext &context) { intsToInput(context, "split", 1); }

void concat4(UpgradeContext &context) {
  if (!context.has("axis"))
    context.set("axis", int64_t(1));
}

void split2(UpgradeContext &context) {
  // The sizes could come as a tensor of the data's type; only the attribute is known in the wild.
  if (!context.input(1).empty())
    return context.unsupported("split sizes as a second input are not supported in this version");
  if (!context.has("axis"))
    context.set("axis", int64_t(0));
}

void split18(UpgradeContext &context) {
  if (context.input(1).empty())
    context.set("num_outputs", int64_t(context.node.outputs.size()));
}

void slice10(UpgradeContext &context) {
  intsToInput(context, "starts", 1);
  intsToInput(context, "ends", 2);
  intsToInput(context, "axes", 3);
}

void pad2(UpgradeContext &context) {
  if (const model::Attribute *paddings = context.node.attribute("paddings")) {
    model::Attribute pads = *paddings;
    pads.name = "pads";
    context.drop("paddings");
    context.node.attributes.push_back(std::move(pads));
  }
}

void pad11(UpgradeContext &context) {
  intsToInput(context, "pads", 1);
  if (context.floatOf("value", 0) != 0)
    context.setInput(2, context.scalarLike("value", context.floatOf("value", 0), context.input(0)));
  context.drop("value");
}

// Repeats along one axis became repeats along all.
void tile6(UpgradeContext &context) { context.unsupported("Tile along one axis is not supported"); }

void topk10(UpgradeContext &context) {
  context.setInput(1, context.integers("k", {context.intOf("k", 0)}));
  context.drop("k");
}

void scatter(UpgradeContext &context) { context.node.type = "ScatterElements"; }

void depthToSpace11(UpgradeContext &context) { context.set("mode", "DCR"); }

// What Upsample and the first Resize did: coordinates scaled from the corner, nearest one below.
static void fromCorner(UpgradeContext &context) {
  const model::Attribute *mode = context.node.attribute("mode");
  std::string name = mode ? mode->s : "nearest";
  context.set("mode", name == "bilinear" || name == "trilinear" ? "linear" : llvm::StringRef(name));
  context.set("coordinate_transformation_mode", "asymmetric");
  context.set("nearest_mode", "floor");
}

void upsample(UpgradeContext &context) {
  std::string scales = context.input(1);
  if (context.has("scales")) {
    scales = context.floats("scales", context.node.attribute("scales")->floats);
    context.drop("scales");
  } else if (context.has("height_scale") || context.has("width_scale")) {
    scales = context.floats("scales", {1, 1, context.floatOf("height_scale", 1), context.floatOf("width_scale", 1)});
    context.drop("height_scale");
    context.drop("width_scale");
  }
  if (scales.empty())
    return context.unsupported("no scales are given");
  context.node.type = "Resize";
  context.node.inputs = {context.input(0), "", scales};
  fromCorner(context);
}

// The first Resize took the nearest element below where it enlarged and the one above where it shrank.
void resize11(UpgradeContext &context) {
  std::string x = context.input(0), scales = context.input(1);
  fromCorner(context);
  std::optional<std::vector<float>> factors = context.facts.floats(scales);
  bool shrinks = factors && llvm::any_of(*factors, [](float factor) { return factor < 1; });
  if (context.node.attribute("mode")->s == "nearest" && shrinks) {
    std::vector<float> down, up;
    for (float factor : *factors) {
      down.push_back(factor < 1 ? factor : 1);
      up.push_back(factor < 1 ? 1 : factor);
    }
    if (llvm::any_of(up, [](float factor) { return factor > 1; })) {
      std::vector<model::Attribute> attributes = context.node.attributes;
      x = context.emit("enlarged", "Resize", {x, "", context.floats("up", up)}, attributes);
      scales = context.floats("down", down);
    }
    context.set("nearest_mode", "ceil");
  }
  context.node.inputs = {x, "", scales};
}

} // namespace firn::upgrade
