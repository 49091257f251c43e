// Upgrades of elementwise operators.
#include "compiler/import/onnx/Upgrade.h"
#include "llvm/ADT/StringSwitch.h"
#include <cfloat>
#include <climits>

namespace firn::upgrade {

void consumedInputs(UpgradeContext &context) { context.drop("consumed_inputs"); }

// The second operand `b` lies at axes [axis, axis + rank(b)) of the first: it gets axes of length 1 behind its own.
static std::string alignAt(UpgradeContext &context, const std::string &a, const std::string &b, int64_t axis) {
  std::optional<int64_t> rankA = context.facts.of(a).rank, rankB = context.facts.of(b).rank;
  if (rankA && rankB) {
    int64_t trailing = *rankA - (axis < 0 ? axis + *rankA : axis) - *rankB;
    if (trailing <= 0)
      return b;
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < trailing; ++i)
      axes.push_back(*rankB + i);
    return context.emit("aligned", "Unsqueeze", {b, context.integers("axes", axes)});
  }
  // Unknown ranks: as many ones as A has axes behind B's. Shape inference turns all this into a constant.
  std::string shapeA = context.emit("shape_a", "Shape", {a}), shapeB = context.emit("shape_b", "Shape", {b});
  std::string start = context.integers("axis", {axis});
  if (axis < 0)
    start = context.emit("axis_from_front", "Add", {start, context.emit("rank_a", "Shape", {shapeA})});
  start = context.emit("tail_start", "Add", {start, context.emit("rank_b", "Shape", {shapeB})});
  std::string tail = context.emit("tail", "Slice", {shapeA, start, context.integers("tail_end", {INT64_MAX})});
  model::Attribute one;
  one.name = "value";
  one.kind = model::Attribute::Kind::Tensor;
  one.tensor.dtype = 7;
  one.tensor.dims = {1};
  static const int64_t value = 1;
  one.tensor.bytes = {reinterpret_cast<const char *>(&value), 8};
  std::string ones = context.emit("ones", "ConstantOfShape", {context.emit("tail_length", "Shape", {tail})}, {one});
  std::string shape = context.emit("aligned_shape", "Concat", {shapeB, ones}, {intAttribute("axis", 0)});
  return context.emit("aligned", "Reshape", {b, shape});
}

void broadcastAttribute(UpgradeContext &context) {
  bool isBroadcast = context.intOf("broadcast", 0) != 0;
  // Without an axis the shapes align at their ends, as they do today.
  if (isBroadcast && context.has("axis"))
    context.setInput(1, alignAt(context, context.input(0), context.input(1), context.intOf("axis", 0)));
  context.drop("broadcast");
  context.drop("axis");
}

// The slope lay at axis 1, or was one for all.
void prelu7(UpgradeContext &context) {
  std::optional<int64_t> rank = context.facts.of(context.input(0)).rank;
  if (!rank || *rank > 1)
    context.setInput(1, alignAt(context, context.input(0), context.input(1), 1));
}

void selu6(UpgradeContext &context) {
  if (!context.has("alpha"))
    context.set("alpha", 1.6732f);
  if (!context.has("gamma"))
    context.set("gamma", 1.0507f);
}

void clip6(UpgradeContext &context) {
  // Without the attributes there was no bound at all; version 6 made them the largest float.
  if (!context.has("min"))
    context.set("min", -FLT_MAX);
  if (!context.has("max"))
    context.set("max", FLT_MAX);
}

void clip11(UpgradeContext &context) {
  float minimum = context.floatOf("min", -FLT_MAX), maximum = context.floatOf("max", FLT_MAX);
  std::string x = context.input(0);
  // A bound at the largest float bounds infinities, in f32; but nobody wrote it for that, and f64 must not be cut
  // there.
  bool hasMin = minimum > -FLT_MAX, hasMax = maximum < FLT_MAX;
  context.node.inputs.resize(1);
  if (hasMin)
    context.setInput(1, context.scalarLike("min", minimum, x));
  if (hasMax)
    context.setInput(2, context.scalarLike("max", maximum, x));
  context.drop("min");
  context.drop("max");
}

void dropout7(UpgradeContext &context) {
  if (context.intOf("is_test", 0) == 0 && context.reads(1))
    context.unsupported("dropout in training mode is not supported");
  context.drop("is_test");
}

void dropout12(UpgradeContext &context) {
  if (context.has("ratio"))
    context.setInput(1, context.scalarLike("ratio", context.floatOf("ratio", 0.5f), context.input(0)));
  context.drop("ratio");
  // Before version 10 the mask had the type of the data.
  if (context.node.version < 10 && context.reads(1))
    context.emitAfter(1, "mask", "CastLike", {context.input(0)});
}

void cast6(UpgradeContext &context) {
  const model::Attribute *to = context.node.attribute("to");
  if (!to || to->kind != model::Attribute::Kind::String)
    return;
  int64_t dtype = llvm::StringSwitch<int64_t>(to->s)
                      .Case("FLOAT", 1)
                      .Case("UINT8", 2)
                      .Case("INT8", 3)
                      .Case("UINT16", 4)
                      .Case("INT16", 5)
                      .Case("INT32", 6)
                      .Case("INT64", 7)
                      .Case("STRING", 8)
                      .Case("BOOL", 9)
                      .Case("FLOAT16", 10)
                      .Case("DOUBLE", 11)
                      .Case("UINT32", 12)
                      .Case("UINT64", 13)
                      .Case("COMPLEX64", 14)
                      .Case("COMPLEX128", 15)
                      .Default(0);
  if (dtype == 0)
    return context.unsupported("attribute 'to' names no element type: '" + to->s + "'");
  context.set("to", dtype);
}

void gemm7(UpgradeContext &context) { context.drop("broadcast"); }

} // namespace firn::upgrade
