#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

struct Layer {
  std::string op = "lstm";
  int64_t steps = 5, batch = 1, inputs = 10, hidden = 12;
  std::string direction = "forward";
  std::string attributes = "";
  bool hasBias = true, hasState = true, wantsAll = true, wantsSequence = true, isBatchFirst = false, isDynamic = false;
  bool hasPeepholes = false;
  std::vector<double> lengths = {};
};

FusedCase build(const Layer &y) {
  int64_t gates = y.op == "lstm" ? 4 : y.op == "gru" ? 3 : 1, directions = y.direction == "bidirectional" ? 2 : 1;
  FusedCase c;
  c.kind = "sequence";
  Dim steps = y.steps, batch = y.batch;
  if (y.isDynamic) {
    steps = "t";
    batch = "b";
    c.sizes = {{"t", y.steps}, {"b", y.batch}};
  }
  Shape x = y.isBatchFirst ? Shape{batch, steps, y.inputs} : Shape{steps, batch, y.inputs};
  Shape w{directions, gates * y.hidden, y.inputs}, r{directions, gates * y.hidden, y.hidden};
  Shape b{directions, 2 * gates * y.hidden};
  Shape state = y.isBatchFirst ? Shape{batch, directions, y.hidden} : Shape{directions, batch, y.hidden};
  Shape all = y.isBatchFirst ? Shape{batch, steps, directions, y.hidden} : Shape{steps, directions, batch, y.hidden};
  c.inputs = {{x}, {w, "f32", true, -0.3, 0.3}, {r, "f32", true, -0.3, 0.3}};
  std::string names = "%0, %1, %2", types = typeText(x) + ", " + typeText(w) + ", " + typeText(r);
  auto operand = [&](bool isGiven, const Shape &shape) {
    if (isGiven) {
      names += ", %" + std::to_string(c.inputs.size());
      types += ", " + typeText(shape);
      c.inputs.push_back({shape, "f32", false, -0.5, 0.5});
    } else {
      names += ", %none";
      types += ", none";
    }
  };
  operand(y.hasBias, b);
  operand(!y.lengths.empty(), {batch});
  if (!y.lengths.empty()) {
    Input &lengths = c.inputs.back();
    lengths.element = "i32";
    lengths.values = y.lengths;
    types = types.substr(0, types.rfind("tensor<")) + typeText({batch}, "i32");
  }
  operand(y.hasState, state);
  if (y.op == "lstm")
    operand(y.hasState, state);
  if (y.hasPeepholes)
    operand(true, {directions, 3 * y.hidden});
  int results = y.op == "lstm" ? 3 : 2;
  std::string resultTypes = typeText(all);
  for (int i = 1; i < results; ++i)
    resultTypes += ", " + typeText(state);
  c.body = "%none = firn.absent : none\n%y:" + std::to_string(results) + " = firn." + y.op + " " + names +
           " {direction = \"" + y.direction + "\", hidden_size = " + std::to_string(y.hidden) +
           " : i64, layout = " + std::to_string(int(y.isBatchFirst)) + " : i64" +
           (y.attributes.empty() ? "" : ", " + y.attributes) + "} : (" + types + ") -> (" + resultTypes + ")\n";
  if (y.wantsAll) {
    c.result = all;
    c.body += "firn.yield %y#0, %y#1" + std::string(results == 3 ? ", %y#2" : "") + " : " + resultTypes;
    for (int i = 1; i < results; ++i)
      c.moreResults.push_back({state, "f32"});
  } else if (y.wantsSequence) {
    c.result = all;
    c.body += "firn.yield %y#0 : " + typeText(all);
  } else {
    c.result = state;
    c.body += "firn.yield %y#1 : " + typeText(state);
  }
  c.tolerance = 1e-5;
  return c;
}

std::string check(const Layer &layer) { return firn::test::check(build(layer)); }

} // namespace

TEST_CASE("recurrent layers agree in every direction, with and without bias and state") {
  for (const char *op : {"lstm", "gru", "rnn"})
    for (const char *direction : {"forward", "reverse", "bidirectional"})
      for (bool isFull : {true, false}) {
        Layer y;
        y.op = op;
        y.direction = direction;
        y.hasBias = y.hasState = isFull;
        INFO(op << " " << direction << " " << isFull);
        REQUIRE(check(y) == "");
      }
}

TEST_CASE("recurrent layers agree for batches, layouts and lengths") {
  for (const char *op : {"lstm", "gru"})
    for (int64_t batch : {1, 2, 4, 5, 9})
      for (bool isBatchFirst : {false, true}) {
        Layer y;
        y.op = op;
        y.batch = batch;
        y.steps = 15;
        y.hidden = 33;
        y.isBatchFirst = isBatchFirst;
        INFO(op << " " << batch << " " << isBatchFirst);
        REQUIRE(check(y) == "");
        y.isDynamic = true;
        REQUIRE(check(y) == "");
      }
}

TEST_CASE("workers that share the steps of one layer agree") {
  for (const char *op : {"lstm", "gru", "rnn"})
    for (int64_t hidden : {150, 260}) {
      Layer y;
      y.op = op;
      y.hidden = hidden;
      y.steps = 7;
      y.attributes = std::string(op) == "gru" ? "linear_before_reset = 1 : i64" : "";
      REQUIRE(check(y) == "");
      y.wantsAll = false;
      REQUIRE(check(y) == "");
      y.wantsSequence = false;
      REQUIRE(check(y) == "");
    }
}

TEST_CASE("a layer without steps keeps its state") {
  Layer y;
  y.steps = 0;
  y.isDynamic = true;
  REQUIRE(check(y) == "");
}

TEST_CASE("recurrent layers agree on every target") {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    Layer y;
    y.batch = 3;
    FusedCase c = build(y);
    c.target = target;
    REQUIRE(firn::test::check(c) == "");
  }
}

TEST_CASE("clips, coupled gates, peepholes and every activation agree") {
  Layer y;
  y.steps = 6;
  y.batch = 5;
  y.hidden = 21;
  y.attributes = "clip = 0.2 : f32";
  for (const char *op : {"lstm", "gru", "rnn"}) {
    y.op = op;
    REQUIRE(check(y) == "");
  }
  y.op = "lstm";
  y.hasPeepholes = true;
  y.direction = "bidirectional";
  REQUIRE(check(y) == "");
  y.attributes = "input_forget = 1 : i64";
  REQUIRE(check(y) == "");
  y = Layer();
  for (const char *name : {"Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus",
                           "Softsign", "Tanh", "ThresholdedRelu"}) {
    CAPTURE(name);
    y.op = "rnn";
    y.attributes = std::string("activations = [\"") + name + "\"]";
    REQUIRE(check(y) == "");
    y.op = "gru";
    y.attributes = std::string("activations = [\"HardSigmoid\", \"") + name +
                   "\"], activation_alpha = array<f32: 0.3, 0.7>, activation_beta = array<f32: 0.4, 0.9>";
    REQUIRE(check(y) == "");
  }
}

TEST_CASE("rows end at their own lengths, in every direction") {
  for (const char *op : {"lstm", "gru", "rnn"})
    for (const char *direction : {"forward", "reverse", "bidirectional"})
      for (bool isBatchFirst : {false, true}) {
        CAPTURE(op, direction, isBatchFirst);
        Layer y;
        y.op = op;
        y.direction = direction;
        y.isBatchFirst = isBatchFirst;
        y.steps = 7;
        y.batch = 6;
        y.hidden = 19;
        y.lengths = {7, 3, 1, 0, 5, 7};
        REQUIRE(check(y) == "");
        y.isDynamic = true;
        REQUIRE(check(y) == "");
        if (std::string(op) == "gru") {
          y.attributes = "linear_before_reset = 1 : i64";
          REQUIRE(check(y) == "");
        }
      }
}

TEST_CASE("what has no code is said") {
  Layer y;
  y.direction = "bidirectional";
  y.attributes = "activations = [\"Sigmoid\", \"Tanh\", \"Tanh\", \"Relu\", \"Tanh\", \"Tanh\"]";
  REQUIRE(check(y) == "refused: activations that differ between directions");
}
