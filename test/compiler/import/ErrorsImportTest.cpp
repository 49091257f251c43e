// What is said of broken models, word for word, and that nothing crashes.
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>

using namespace firn::test;
using Catch::Matchers::Contains;

static std::string errorsOf(int opset, const std::string &graph, const std::string &moreFields = "") {
  return importOnnxText(opset, graph, moreFields).errors;
}

TEST_CASE("an_empty_file_is_refused") {
  Imported imported = importModelBytes("");
  CHECK_FALSE(imported.hasModule);
  CHECK(imported.errors == "model.onnx: error[import.file]: the file is empty\n  fix: export or copy the model "
                           "again\n1 error, 0 warnings\n");
}

TEST_CASE("a_file_that_is_no_protobuf_is_refused") {
  CHECK_THAT(importModelBytes("\xff\xff\xff\xff\xff garbage").errors, Contains("the file is not an ONNX model"));
  CHECK_THAT(importModelBytes("PK\x03\x04").errors, Contains("the file is not an ONNX model"));
}

TEST_CASE("a_truncated_file_is_refused_at_every_length") {
  std::string whole = onnxModel(17, input("x", "2") + floats("w", "2", "1,2") + node("Add", "x,w", "y") + output("y"));
  for (size_t length = 0; length < whole.size(); ++length) {
    Imported imported = importModelBytes(whole.substr(0, length));
    INFO("length " << length);
    // Cut between fields, what is left can still be a model without the rest.
    CHECK((imported.hasModule || imported.errors.find("error[import.") != std::string::npos));
  }
  CHECK_THAT(importModelBytes(whole.substr(0, whole.size() - 3)).errors, Contains("it is truncated"));
}

TEST_CASE("every_problem_is_reported_in_graph_order") {
  std::string graph =
      input("x", "2") + node("Relu", "xx", "a", "", "first") + node("Frobnicate", "x", "b", "", "second") +
      node("Transpose", "x", "c", stringAttribute("perm", "01"), "third") + node("Neg", "x", "a", "", "fourth") +
      node("Conv", "x", "d", "", "fifth") + output("a") + output("z");
  Imported imported = importModelBytes(onnxModel(17, graph), "m.onnx", true);
  CHECK(imported.errors ==
        "m.onnx: error[import.name]: node 'fourth' (Neg-13): value 'a' is defined a second time\n"
        "  fix: give each output of a node a name of its own\n"
        "m.onnx: error[import.dangling]: node 'first' (Relu-14): input 'xx' is defined nowhere\n"
        "  fix: did you mean 'x'?\n"
        "m.onnx: error[import.operator]: node 'second' (Frobnicate-17): unknown operator 'ai.onnx::Frobnicate'\n"
        "  fix: docs/operators.md lists the operators that are\n"
        "m.onnx: error[import.attribute]: node 'third' (Transpose-13): attribute 'perm' has the wrong kind: expected "
        "ints, got "
        "a string\n"
        "  fix: set the attribute as the operator's specification says\n"
        "m.onnx: error[import.inputs]: node 'fifth' (Conv-11): wrong number of inputs: expected 2 to 3, got 1\n"
        "  fix: give the node the inputs that the operator's specification lists\n"
        "m.onnx: error[import.dangling]: graph output 'z' is computed by no node\n"
        "  fix: define the value as a graph input, an initializer or the output of a node\n"
        "6 errors, 0 warnings\n");
  // What is broken stands for an unknown value, so that inference can look at the rest.
  CHECK(imported.hasModule);
  CHECK_THAT(imported.module, Contains("firn.fail"));
}

TEST_CASE("equal_errors_merge_and_say_of_how_many_nodes") {
  std::string graph = input("x", "2") + node("Foo", "x", "a", "", "one") + node("Foo", "x", "b", "", "two") +
                      node("Foo", "x", "y", "", "three") + output("y");
  Imported imported = importModelBytes(onnxModel(17, graph), "m.onnx", true);
  CHECK_THAT(imported.errors, Contains("node 'one' and 2 more nodes (Foo-17): unknown operator"));
  CHECK_THAT(imported.json,
             Contains("\"two\"") && Contains("\"errors\": 3") && Contains("\"code\": \"import.operator\""));
}

TEST_CASE("only_the_first_errors_are_kept") {
  std::string graph = input("x", "2");
  for (int i = 0; i < 60; ++i)
    graph += node("Op" + std::to_string(i), "x", "y" + std::to_string(i), "", "n" + std::to_string(i));
  Imported imported = importModelBytes(onnxModel(17, graph + output("y0")), "m.onnx", true);
  CHECK_THAT(imported.errors,
             Contains("only the first 50 errors are shown (--max-errors=50)\n60 errors, 0 warnings\n"));
}

TEST_CASE("a_cycle_names_its_nodes") {
  std::string graph = input("x", "2") + node("Add", "x,c", "a", "", "p") + node("Neg", "a", "b", "", "q") +
                      node("Relu", "b", "c", "", "r") + output("c");
  CHECK_THAT(errorsOf(17, graph),
             Contains("error[import.cycle]: node 'p' (Add-14): the graph is cyclic: node reads its own "
                      "result through 'q', 'r', 'p'"));
}

TEST_CASE("opsets_that_are_missing_unknown_or_too_old_are_named") {
  std::string graph = input("x", "2") + node("Gelu", "x", "y") + output("y");
  CHECK_THAT(errorsOf(0, graph), Contains("domain 'ai.onnx' is not in opset_import"));
  CHECK_THAT(errorsOf(99, graph), Contains("opset of domain 'ai.onnx' is not known: expected 1 to 28, got 99"));
  CHECK_THAT(errorsOf(13, graph),
             Contains("the operator is not part of the opset that the file declares: expected opset 20 or "
                      "newer, got 13"));
}

TEST_CASE("required_attributes_and_inputs_must_be_there") {
  CHECK_THAT(errorsOf(17, input("x", "2") + node("Cast", "x", "y") + output("y")),
             Contains("attribute 'to' is missing"));
  CHECK_THAT(errorsOf(17, input("x", "2") + node("Add", ",x", "y") + output("y")),
             Contains("input 0 is left out, but must be given"));
}

TEST_CASE("an_attribute_that_the_operator_lacks_is_a_warning") {
  Imported imported =
      importOnnxText(17, input("x", "2") + node("Relu", "x", "y", intAttribute("alpha", "1")) + output("y"));
  CHECK_THAT(imported.errors,
             Contains("warning[import.attribute]: node 'n' (Relu-14): attribute 'alpha' is not one of the "
                      "operator's and is ignored\n  fix: ") &&
                 Contains("0 errors, 1 warning\n"));
  CHECK_THAT(imported.module, !Contains("alpha"));
}

TEST_CASE("inputs_that_are_no_tensors_are_refused_by_name") {
  CHECK_THAT(
      errorsOf(17, "input { name: 's' type { sparse_tensor_type { elem_type: 1 } } } " + node("Relu", "s", "y") +
                       output("y")),
      Contains(
          "input 's' has a type that is not supported: expected a tensor with an element type, got a sparse tensor"));
}

TEST_CASE("control_flow_whose_graphs_do_not_fit_is_refused") {
  std::string none = "", one = output("x");
  std::string both = graphAttribute("then_branch", one) + graphAttribute("else_branch", none);
  CHECK_THAT(errorsOf(17, input("c", "", 9) + input("x", "2") + node("If", "c", "y", both) + output("y")),
             Contains("graph 'else_branch' has the wrong number of outputs: expected 1, got 0"));
  CHECK_THAT(errorsOf(17, input("x", "2") + node("Loop", ",,x", "y", graphAttribute("body", one)) + output("y")),
             Contains("graph 'body' has the wrong number of inputs: expected 3, got 0"));
}

TEST_CASE("graphs_nested_too_deep_are_refused") {
  std::string graph = node("Neg", "x", "y") + output("y");
  for (int i = 0; i < 80; ++i)
    graph = node("If", "c", "y", graphAttribute("then_branch", graph) + graphAttribute("else_branch", output("x"))) +
            output("y");
  Imported imported = importOnnxText(17, input("c", "", 9) + input("x", "2") + graph);
  CHECK_THAT(imported.errors, Contains("error[import."));
}

TEST_CASE("functions_that_grow_without_end_are_refused") {
  // Each function calls the next one twice: 2^40 nodes.
  std::string functions = "opset_import { domain: 'local' version: 1 } ";
  auto call = [](int i, const std::string &in, const std::string &out) {
    return "node { op_type: 'F" + std::to_string(i) + "' domain: 'local' name: 'c' input: '" + in + "' output: '" +
           out + "' } ";
  };
  for (int i = 0; i < 40; ++i)
    functions += "functions { name: 'F" + std::to_string(i) +
                 "' domain: 'local' input: 'a' output: 'b' opset_import { domain: " + "'local' version: 1 } " +
                 call(i + 1, "a", "t") + call(i + 1, "t", "b") + "} ";
  Imported imported = importOnnxText(17, input("x", "2") + call(0, "x", "y") + output("y"), functions);
  CHECK_THAT(imported.errors, Contains("the model has more than 10000 nodes once its functions are inlined"));
}

TEST_CASE("control_characters_of_names_do_not_reach_the_terminal") {
  CHECK_THAT(errorsOf(17, input("x", "2") + node("Relu", "\\033[2J", "y") + output("y")), Contains("\\x1b[2J"));
}
