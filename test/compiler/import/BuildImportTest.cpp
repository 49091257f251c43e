// What a module looks like that comes from an ONNX file (compiler/import/Import.h).
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>

using namespace firn::test;
using Catch::Matchers::Contains;

TEST_CASE("names_the_function_its_arguments_and_results") {
  Imported imported = importOnnxText(17, input("x", "2,3") + node("Relu", "x", "y") + output("y"),
                                     "producer_name: 'p' metadata_props { key: 'k' value: 'v' }");
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.name = \"g\""));
  CHECK_THAT(imported.module, Contains("firn.opset = 17"));
  CHECK_THAT(imported.module, Contains("firn.metadata = {k = \"v\"}"));
  CHECK_THAT(imported.module, Contains("firn.producer = \"p\""));
  CHECK_THAT(imported.module, Contains("func.func @main(%arg0: tensor<2x3xf32> {firn.name = \"x\"})"));
  CHECK_THAT(imported.module, Contains("firn.relu %arg0 : (tensor<2x3xf32>) -> tensor<*x!firn.unknown>"));
  CHECK_THAT(imported.locations, Contains("\"n\"(fused<{op = \"Relu-14\", outputs = [\"y\"]}>[\"model.onnx\":0:0])"));
}

TEST_CASE("dimensions_left_open_are_symbols_of_the_input") {
  Imported imported = importOnnxText(17, input("x", "batch,?,-1,4") + node("Relu", "x", "y") + output("y"));
  CHECK_THAT(imported.module, Contains("#firn.dims<[\"batch\", \"x.1\", \"x.2\", \"\"]>"));
}

TEST_CASE("names_that_are_no_symbols_become_symbols_and_stay_apart") {
  Imported imported = importOnnxText(17, input("x", "a+b,a_b,a b") + node("Relu", "x", "y") + output("y"));
  CHECK_THAT(imported.module, Contains("#firn.dims<[\"a_b\", \"a_b_1\", \"a_b_2\"]>"));
  CHECK_THAT(imported.module, Contains("firn.symbols = {a_b = \"a+b\", a_b_1 = \"a_b\", a_b_2 = \"a b\"}"));
}

TEST_CASE("an_input_left_out_is_absent_and_trailing_ones_are_dropped") {
  Imported imported =
      importOnnxText(13, input("x", "2") + floats("max", "", "1") + node("Clip", "x,,max", "y") + output("y"));
  CHECK_THAT(imported.module, Contains("firn.absent : none"));
  CHECK_THAT(imported.module, Contains("(tensor<2xf32>, none, tensor<f32>)"));
  imported = importOnnxText(13, input("x", "2") + node("Clip", "x,,", "y") + output("y"));
  CHECK_THAT(imported.module, Contains("firn.clip %arg0 : (tensor<2xf32>)"));
}

TEST_CASE("an_output_in_the_middle_that_nobody_names_is_a_result") {
  Imported imported =
      importOnnxText(17, input("x", "4,2,5") + floats("w", "1,4,1", "1,2,3,4") +
                             node("LSTM", "x,w,w", "y,,c", intAttribute("hidden_size", "1")) + output("c"));
  CHECK_THAT(imported.module, Contains(":3 = firn.lstm"));
}

TEST_CASE("nodes_without_a_name_get_one") {
  Imported imported =
      importOnnxText(17, input("x", "2") + node("Neg", "x", "t") + node("Relu", "t", "y", "", "") + output("y"));
  CHECK_THAT(imported.locations, Contains("\"Relu_1\"(fused<{op = \"Relu-14\", outputs = [\"y\"], unnamed}>"));
}

TEST_CASE("nodes_out_of_order_are_sorted") {
  Imported imported =
      importOnnxText(17, input("x", "2") + node("Relu", "t", "y") + node("Neg", "x", "t") + output("y"));
  CHECK(imported.errors == "");
  CHECK(imported.module.find("firn.neg") < imported.module.find("firn.relu"));
}

TEST_CASE("an_initializer_of_an_input_is_its_default") {
  std::string graph =
      input("x", "2") + input("w", "2") + floats("w", "2", "1,2") + node("Add", "x,w", "y") + output("y");
  Imported imported = importModelBytes(onnxModel(17, graph, "", 8));
  CHECK_THAT(imported.module, Contains("firn.default = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"));
  // Before format version 4 every initializer was an input, and a constant.
  imported = importModelBytes(onnxModel(7, graph, "", 3));
  CHECK_THAT(imported.module, !Contains("firn.default"));
  CHECK_THAT(imported.module, Contains("firn.constant"));
}

TEST_CASE("operators_without_an_operation_are_calls_with_their_attributes") {
  Imported imported = importOnnxText(
      17,
      input("x", "2") + node("Det", "x", "t") +
          "node { op_type: 'Magic' domain: 'mine' name: 'm' input: 't' output: 'y' attribute { name: 'a' "
          "type: FLOATS floats: 1.5 } attribute { name: 'b' type: STRINGS strings: 'z' } } " +
          output("y"),
      "opset_import { domain: 'mine' version: 1 }");
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.call \"ai.onnx::Det\"(%arg0)"));
  CHECK_THAT(imported.module,
             Contains("firn.call \"mine::Magic\"(%0) {a = array<f32: 1.500000e+00>, b = [\"z\"], firn.opaque}"));
}

TEST_CASE("layer_normalization_is_taken_from_files_of_older_opsets_too") {
  std::string graph =
      input("x", "2,3") + floats("s", "3", "1,2,3") + node("LayerNormalization", "x,s", "y") + output("y");
  Imported imported = importOnnxText(14, graph);
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.layer_normalization"));
}

TEST_CASE("branches_capture_outer_values_and_yield_them_directly") {
  std::string then = node("Neg", "x", "a", "", "inner") + output("a"), otherwise = output("x");
  Imported imported = importOnnxText(
      17, input("c", "", 9) + input("x", "2") +
              node("If", "c", "y", graphAttribute("else_branch", otherwise) + graphAttribute("then_branch", then)) +
              output("y"));
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.neg %arg1"));
  CHECK_THAT(imported.module, Contains("firn.yield %arg1"));
  CHECK(imported.module.find("firn.neg") < imported.module.find("firn.yield %arg1"));
}

TEST_CASE("a_loop_has_a_body_of_iteration_condition_and_carried_values") {
  std::string body = input("i", "", 7) + input("go", "", 9) + input("s", "2") + node("Add", "s,s", "s2", "", "twice") +
                     node("Identity", "go", "go2", "", "keep") + output("go2") + output("s2") + output("s2");
  Imported imported = importOnnxText(17, input("n", "", 7) + input("x", "2") +
                                             node("Loop", "n,,x", "last,all", graphAttribute("body", body)) +
                                             output("last") + output("all"));
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("^bb0(%arg2: tensor<i64>, %arg3: tensor<i1>, %arg4: tensor<*x!firn.unknown>)"));
  CHECK_THAT(imported.module, Contains("(tensor<i64>, none, tensor<2xf32>)"));
}

TEST_CASE("scan_becomes_a_loop_that_gathers_its_slices") {
  std::string body = input("s", "3") + input("e", "3") + node("Add", "s,e", "s2", "", "sum") + output("s2") +
                     "output { name: 's2' type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } } } ";
  Imported imported = importOnnxText(11, input("s0", "3") + input("x", "5,3") +
                                             node("Scan", "s0,x", "s,y",
                                                  intAttribute("num_scan_inputs", "1") + graphAttribute("body", body) +
                                                      intsAttribute("scan_output_axes", "1") +
                                                      intsAttribute("scan_input_directions", "1")) +
                                             output("s") + output("y"));
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.loop"));
  CHECK_THAT(imported.module, Contains("firn.gather %arg1"));
  CHECK_THAT(imported.module, Contains("firn.transpose"));
}

static std::string function(const std::string &name, const std::string &rest) {
  return "functions { name: '" + name +
         "' domain: 'local' opset_import { version: 17 } opset_import { domain: 'local' "
         "version: 1 } " +
         rest + "} ";
}
static const char localDomain[] = "opset_import { domain: 'local' version: 1 } ";

TEST_CASE("functions_are_inlined_with_attributes_and_without_optional_inputs") {
  std::string leaky = function(
      "Leaky",
      "input: 'a' input: 'b' output: 'r' attribute: 'slope' node { op_type: 'LeakyRelu' name: 'l' input: 'a' output: "
      "'t' attribute { name: 'alpha' type: FLOAT ref_attr_name: 'slope' } } node { op_type: 'Clip' name: 'c' input: "
      "'t' input: 'b' output: 'r' } ");
  std::string twice =
      function("Twice", "input: 'a' output: 'r' node { op_type: 'Leaky' domain: 'local' name: 'one' input: 'a' "
                        "output: 't' attribute { name: 'slope' type: FLOAT f: 0.5 } } node { op_type: 'Leaky' "
                        "domain: 'local' name: 'two' input: 't' output: 'r' } ");
  Imported imported = importOnnxText(
      17, input("x", "2") + "node { op_type: 'Twice' domain: 'local' name: 'f' input: 'x' output: 'y' } " + output("y"),
      localDomain + leaky + twice);
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.leaky_relu %arg0 {alpha = 5.000000e-01 : f32}"));
  CHECK_THAT(imported.locations, Contains("\"f/one/l\""));
  CHECK_THAT(imported.locations, Contains("\"f/two/c\""));
  CHECK_THAT(imported.module, !Contains("firn.call"));
}

TEST_CASE("a_function_that_returns_its_input_is_an_identity") {
  Imported imported = importOnnxText(
      17, input("x", "2") + "node { op_type: 'Same' domain: 'local' name: 'f' input: 'x' output: 'y' } " + output("y"),
      localDomain + function("Same", "input: 'a' output: 'a' "));
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("firn.identity %arg0"));
}

TEST_CASE("a_function_that_calls_itself_is_refused") {
  Imported imported = importOnnxText(
      17, input("x", "2") + "node { op_type: 'F' domain: 'local' name: 'f' input: 'x' output: 'y' } " + output("y"),
      localDomain + function("F",
                             "input: 'a' output: 'r' node { op_type: 'F' domain: 'local' name: 'g' input: 'a' output: "
                             "'r' } "));
  CHECK_THAT(imported.errors, Contains("node 'f/g' (local::F): function 'local::F' calls itself"));
}
