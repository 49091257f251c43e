// Firn's own graph files, binary and text.
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>

using namespace firn::test;
using Catch::Matchers::Contains;

static const std::string head =
    "format: 'firn.v1' graph { name: 'g' inputs { name: 'x' type { dtype: F32 shape { dims: "
    "['batch', '2', '?'] } } } outputs { name: 'y' } ";
static const std::string relu = "nodes { op: 'Relu' name: 'n' inputs: 'x' outputs: 'y' } ";

static Imported importText(const std::string &text) { return importModelBytes(text, "model.fpbtxt"); }

TEST_CASE("the_digit_classifier_in_text_form_is_read") {
  Imported imported = importModelFile(FIRN_SOURCE_DIR "/test/models/digits.fpbtxt");
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("tensor<?x1x28x28xf32, #firn.dims<[\"batch\", \"\", \"\", \"\"]>>"));
  CHECK_THAT(imported.module, Contains("firn.gemm"));
}

TEST_CASE("text_is_recognised_by_its_first_field") {
  Imported imported = importModelBytes("# a comment\n" + head + relu + "}", "model");
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("tensor<?x2x?xf32, #firn.dims<[\"batch\", \"\", \"x.2\"]>>"));
  CHECK_THAT(imported.module, Contains("firn.opset = 28"));
}

TEST_CASE("errors_of_the_text_name_line_and_column") {
  CHECK_THAT(importText("format: 'firn.v1'\ngraph { nodez { } }").errors,
             Contains("the file is not a Firn graph: line 2, column 15") && Contains("nodez"));
  CHECK_THAT(importText("format: 'firn.v2' graph { }").errors, Contains("format is 'firn.v2', which is not known"));
  CHECK_THAT(importText("format: 'firn.v1'").errors, Contains("the file has no graph"));
}

TEST_CASE("filled_constants_are_the_same_everywhere") {
  Imported imported =
      importText(head + relu + "constants { name: 'w' dtype: F32 dims: [4] fill { seed: 7 scale: 0.1 } } }");
  CHECK(imported.errors == "");
  // Sums of twelve hashes of the seed, less six, times the scale.
  CHECK_THAT(imported.module,
             Contains("dense<[-0.100095414, 0.133354038, 0.0518862084, -0.0879370197]> : tensor<4xf32>"));
}

TEST_CASE("one_number_fills_a_constant") {
  Imported imported =
      importText(head + relu + "constants { name: 'w' dtype: F16 dims: [2, 3] floats { values: [0.5] } } }");
  CHECK_THAT(imported.module, Contains("dense<5.000000e-01> : tensor<2x3xf16>"));
}

TEST_CASE("contents_that_do_not_fit_are_refused") {
  auto errors = [](const std::string &constant) {
    return importText(head + relu + "constants { name: 'w' " + constant + " } }").errors;
  };
  CHECK_THAT(errors("dtype: F32 dims: [3] floats { values: [1, 2] }"),
             Contains("constant 'w' has the wrong number of values: expected 3, got 2"));
  CHECK_THAT(errors("dtype: I32 dims: [2] floats { values: [1, 2] }"),
             Contains("has an element type that these values do not fit"));
  CHECK_THAT(errors("dtype: I32 dims: [2] fill { }"), Contains("can be filled only with an element type of F32"));
  CHECK_THAT(errors("dtype: F32 dims: [9000000000] fill { }"),
             Contains("error[import.limit]: constant 'w' has 36000000000 bytes, the limit is 17179869184") &&
                 Contains("raise --max-tensor-bytes"));
  CHECK_THAT(errors("dtype: F32 dims: [900000000] fill { }"), Contains("raise --max-folded-bytes"));
  CHECK_THAT(errors("dtype: F32 dims: [-1] fill { }"), Contains("has a negative dimension or is too large"));
  CHECK_THAT(errors("dims: [1] fill { }"), Contains("has no element type"));
  CHECK_THAT(errors("dtype: F32 dims: [2]"), Contains("has no contents"));
  CHECK_THAT(errors("dtype: F32 dims: [2] raw: '123'"), Contains("has the wrong length: expected 8 bytes, got 3"));
}

TEST_CASE("side_files_are_checked_against_their_hash") {
  std::string folder = emptyFolder("side"), bytes("\0\0\x80?\0\0\0@", 8);
  writeBytes(folder + "/w.bin", bytes);
  auto errors = [&](const std::string &external) {
    writeBytes(folder + "/m.fpbtxt",
               head + relu + "constants { name: 'w' dtype: F32 dims: [2] external { " + external + " } } }");
    return importModelFile(folder + "/m.fpbtxt").errors;
  };
  CHECK(errors("location: 'w.bin' length: 8") == "");
  CHECK_THAT(errors("location: 'w.bin' length: 8 sha256: 'ab'"),
             Contains("has another SHA-256 in 'w.bin': expected ab, got "));
  CHECK_THAT(errors("location: 'w.bin' length: 4"), Contains("has the wrong length: expected 8 bytes, got 4"));
  CHECK_THAT(errors("location: '../w.bin' length: 8"), Contains("the path leaves the model's folder"));
  CHECK_THAT(errors("location: 'w.bin' offset: 9223372036854775807 length: 8"), Contains("the file has 8 bytes"));
}

TEST_CASE("binary_files_that_are_damaged_are_refused_at_every_length") {
  std::string folder = emptyFolder("damaged");
  writeBytes(folder + "/m.fpbtxt", head + relu + "}");
  REQUIRE(convert(folder + "/m.fpbtxt", folder + "/m.fpb") == "");
  std::string whole = readBytes(folder + "/m.fpb");
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO("length " << length);
    Imported imported = importModelBytes(whole.substr(0, length));
    // Cut behind the graph, between two fields, the rest is a model of its own.
    CHECK((length > whole.find("Relu") || !imported.hasModule));
    CHECK((imported.hasModule || imported.errors.find("error[import.") != std::string::npos));
  }
}
