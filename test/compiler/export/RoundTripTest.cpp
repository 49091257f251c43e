// What is imported and exported again says the same, in either format.
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {
/// a.onnx, a.onnx exported again, and by way of a.fpb and a.fpbtxt.
struct Trip {
  explicit Trip(const std::string &bytes, long sideFileBytes = 0) {
    std::string folder = emptyFolder("trip");
    writeBytes(folder + "/a.onnx", bytes);
    CHECK(convert(folder + "/a.onnx", folder + "/direct.onnx") == "");
    CHECK(convert(folder + "/a.onnx", folder + "/a.fpb", sideFileBytes) == "");
    CHECK(convert(folder + "/a.fpb", folder + "/binary.onnx") == "");
    CHECK(convert(folder + "/a.fpb", folder + "/a.fpbtxt") == "");
    CHECK(convert(folder + "/a.fpbtxt", folder + "/text.onnx") == "");
    text = onnxText(folder + "/direct.onnx");
    CHECK(onnxText(folder + "/binary.onnx") == text);
    CHECK(onnxText(folder + "/text.onnx") == text);
    original = onnxText(folder + "/a.onnx");
    firn = readBytes(folder + "/a.fpbtxt");
  }
  std::string original, text, firn;
};
} // namespace

TEST_CASE("names_values_attributes_and_metadata_survive") {
  Trip trip(
      onnxModel(17,
                // Attributes in the order of their names, so that the whole text can be compared.
                node("Conv", "image,w", "hidden value", intAttribute("group", "1") + intsAttribute("pads", "1,1,1,1"),
                     "first conv") +
                    node("LeakyRelu", "hidden value", "scores", floatAttribute("alpha", "0.01"), "") +
                    floats("w", "1,1,3,3", "1,2,3,4,5,6,7,8,9") + input("image", "batch size,1,?,8") +
                    "output { name: 'scores' type { tensor_type { elem_type: 1 shape { dim { "
                    "dim_param: 'batch size' } dim { } dim { } dim { dim_value: 8 } } } } } doc_string: 'what it is' ",
                "producer_name: 'p' producer_version: '2' domain: 'd' model_version: 3 doc_string: 'doc' "
                "metadata_props { key: 'a' value: "
                "'b' }"));
  for (const char *kept : {"producer_name: \"p\"", "producer_version: \"2\"", "model_version: 3", "doc_string: \"doc\"",
                           "doc_string: \"what it is\"", "key: \"a\"", "name: \"first conv\"", "\"hidden value\"",
                           "dim_param: \"batch size\"", "name: \"w\"", "version: 17", "ir_version: 8",
                           "name: \"group\"", "name: \"alpha\""})
    CHECK_THAT(trip.text, Contains(kept));
  // The second node had no name and gets none; the dimension left open stays open.
  CHECK_THAT(trip.text, !Contains("LeakyRelu_1") && !Contains("image.2"));
  CHECK_THAT(trip.firn, Contains("op: \"LeakyRelu\"") && Contains("dims: \"batch size\""));
}

TEST_CASE("graphs_inside_nodes_survive") {
  std::string body = input("i", "", 7) + input("go", "", 9) + input("s", "2") + node("Add", "s,x", "s2", "", "sum") +
                     node("Identity", "go", "go2", "", "keep") + output("go2") + output("s2") + output("s2");
  Trip trip(onnxModel(17, input("n", "", 7) + input("x", "2") +
                              node("Loop", "n,,x", "last,all", graphAttribute("body", body)) + output("last") +
                              output("all")));
  // A value that is yielded twice is copied the second time.
  CHECK_THAT(trip.text, Contains("name: \"sum\"") && Contains("output: \"s2_copy\"") && Contains("name: \"body\""));
}

TEST_CASE("defaults_and_inputs_that_are_outputs_survive") {
  Trip trip(onnxModel(17, input("x", "2") + input("w", "2") + floats("w", "2", "1,2") + node("Add", "x,w", "y") +
                              output("y") + output("x")));
  CHECK_THAT(trip.text, Contains("initializer") && !Contains("Identity"));
}

TEST_CASE("large_constants_lie_in_a_side_file_and_come_back") {
  std::string values = "0";
  for (int i = 1; i < 2000; ++i)
    values += "," + std::to_string(i);
  Trip trip(onnxModel(17, input("x", "2000") + floats("w", "2000", values) + node("Add", "x,w", "y") + output("y")),
            1000);
  CHECK_THAT(trip.firn, Contains("location: \"a.fpbtxt.data\"") && Contains("length: 8000") && Contains("sha256: "));
}

TEST_CASE("the_opset_rises_only_as_far_as_the_new_form_asks") {
  auto versionOf = [](int opset, const std::string &node) {
    std::string text = Trip(onnxModel(opset, input("x", "2,3") + node + output("y"))).text;
    size_t at = text.find("opset_import");
    at = text.find("version: ", at);
    return std::stoi(text.substr(at + 9));
  };
  CHECK(versionOf(9, node("Relu", "x", "y")) == 9);
  CHECK(versionOf(7, node("ReduceMean", "x", "y")) == 7);
  CHECK(versionOf(7, node("ReduceMean", "x", "y", intsAttribute("axes", "1"))) == 18);
  CHECK(versionOf(11, node("Squeeze", "x", "y", intsAttribute("axes", "1"))) == 13);
  CHECK(versionOf(9, node("Clip", "x", "y")) == 9);
  CHECK(versionOf(9, node("Clip", "x", "y", floatAttribute("min", "0"))) == 11);
  CHECK(versionOf(20, node("Relu", "x", "y")) == 20);
}

TEST_CASE("a_file_that_cannot_be_written_is_reported") {
  std::string folder = emptyFolder("unwritable");
  writeBytes(folder + "/a.onnx", onnxModel(17, input("x", "2") + node("Relu", "x", "y") + output("y")));
  CHECK_THAT(convert(folder + "/a.onnx", folder + "/no/such/folder/b.onnx"),
             Contains("error[export.unwritable]") && Contains("No such file or directory"));
}

TEST_CASE("a_branch_that_fails_is_nodes_that_fail_and_is_read_back_as_one") {
  std::string folder = emptyFolder("failure");
  std::string branch = "outputs { name: 'r' } nodes { name: 'n' op: 'Relu' inputs: 'x' outputs: 'r' } ";
  std::string failing = "outputs { name: 'f' } nodes { name: 'stop' op: 'Reshape' inputs: ['x', 'shape'] outputs: 'f' "
                        "metadata { key: 'firn.fail' value: 'never taken' } } ";
  writeBytes(
      folder + "/a.fpbtxt",
      "format: 'firn.v1' opsets { version: 17 } graph { name: 'g' inputs { name: 'x' type { dtype: F32 shape { dims: "
      "['2'] } } } inputs { name: 'c' type { dtype: BOOL shape { } } } outputs { name: 'y' } constants { name: 'shape' "
      "dtype: I64 dims: [1] ints { values: [2] } } nodes { name: 'if' op: 'If' inputs: 'c' outputs: 'y' attributes { "
      "name: 'then_branch' graph { " +
          branch + "} } attributes { name: 'else_branch' graph { " + failing + "} } } }");
  CHECK_THAT(importModelFile(folder + "/a.fpbtxt").module, Contains("firn.fail \"never taken\""));
  CHECK(convert(folder + "/a.fpbtxt", folder + "/b.onnx") == "");
  CHECK(convert(folder + "/b.onnx", folder + "/c.onnx") == "");
  CHECK_THAT(importModelFile(folder + "/b.onnx").module, Contains("firn.fail \"never taken\""));
  CHECK_THAT(onnxText(folder + "/b.onnx"), Contains("op_type: \"Reshape\"") && Contains("op_type: \"Cast\""));
}
