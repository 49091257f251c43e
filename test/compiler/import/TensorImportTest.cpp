// Frozen tensors of ONNX files: every way of storing them, and what is refused.
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <unistd.h>

using namespace firn::test;
using Catch::Matchers::Contains;

/// The module of a graph whose only constant has these fields.
static Imported importTensor(const std::string &fields) {
  return importOnnxText(17, "initializer { name: 'w' " + fields + " } " + node("Identity", "w", "y") + output("y"));
}

TEST_CASE("raw_and_typed_data_of_each_element_type_are_read") {
  struct Case {
    const char *fields, *expected;
  };
  const Case cases[] = {
      {"data_type: 1 dims: 2 raw_data: '\\000\\000\\200?\\000\\000\\000@'",
       "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"},
      {"data_type: 1 dims: 2 float_data: 1 float_data: 2", "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"},
      {"data_type: 2 dims: 2 int32_data: 1 int32_data: 255", "dense<[1, 255]> : tensor<2xui8>"},
      {"data_type: 3 dims: 2 int32_data: 1 int32_data: -1", "dense<[1, -1]> : tensor<2xi8>"},
      {"data_type: 4 dims: 2 int32_data: 1 int32_data: 65535", "dense<[1, 65535]> : tensor<2xui16>"},
      {"data_type: 5 dims: 2 int32_data: 1 int32_data: -2", "dense<[1, -2]> : tensor<2xi16>"},
      {"data_type: 6 dims: 2 int32_data: 1 int32_data: -2", "dense<[1, -2]> : tensor<2xi32>"},
      {"data_type: 7 dims: 2 int64_data: 1 int64_data: -2", "dense<[1, -2]> : tensor<2xi64>"},
      {"data_type: 9 dims: 2 int32_data: 1 int32_data: 1", "dense<true> : tensor<2xi1>"},
      {"data_type: 10 dims: 2 int32_data: 15360 int32_data: 16384",
       "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf16>"},
      {"data_type: 11 dims: 2 double_data: 1 double_data: 2", "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf64>"},
      {"data_type: 12 dims: 2 uint64_data: 1 uint64_data: 4294967295", "dense<[1, 4294967295]> : tensor<2xui32>"},
      {"data_type: 13 dims: 2 uint64_data: 1 uint64_data: 18446744073709551615",
       "dense<[1, 18446744073709551615]> : tensor<2xui64>"},
      {"data_type: 16 dims: 2 int32_data: 16256 int32_data: 16384",
       "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xbf16>"},
      {"data_type: 17 dims: 2 int32_data: 56 int32_data: 64",
       "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf8E4M3FN>"},
      {"data_type: 8 dims: 2 string_data: 'a' string_data: 'b'", "[\"a\", \"b\"]} : tensor<2x!firn.string>"},
      {"data_type: 22 dims: 3 int32_data: 33 int32_data: 3", "tensor<3xi4>"},
      {"data_type: 21 dims: 3 raw_data: '!\\003'", "tensor<3xui4>"},
      {"data_type: 25 dims: 5 raw_data: 'ab'", "tensor<5xui2>"},
      {"data_type: 1 dims: 0 dims: 4 raw_data: ''", "tensor<0x4xf32>"},
      {"data_type: 1 float_data: 5", "dense<5.000000e+00> : tensor<f32>"},
      {"data_type: 14 dims: 1 float_data: 1 float_data: 2", "tensor<1xcomplex<f32>>"},
  };
  for (const Case &c : cases) {
    Imported imported = importTensor(c.fields);
    INFO(c.fields);
    CHECK(imported.errors == "");
    CHECK_THAT(imported.module, Contains(c.expected));
  }
}

TEST_CASE("any_byte_but_zero_is_true") {
  CHECK_THAT(importTensor("data_type: 9 dims: 2 raw_data: '\\002\\377'").module,
             Contains("dense<true> : tensor<2xi1>"));
}

TEST_CASE("tensors_whose_data_does_not_fit_their_shape_are_refused") {
  struct Case {
    const char *fields, *expected;
  };
  const Case cases[] = {
      {"data_type: 1 dims: 2 raw_data: '1234'",
       "tensor 'w' has the wrong length of raw_data: expected 8 bytes, got 4 bytes"},
      {"data_type: 1 dims: 2 float_data: 1",
       "tensor 'w' has the wrong number of values in float_data: expected 2, got 1"},
      {"data_type: 22 dims: 3 raw_data: '1'", "expected 2 bytes, got 1 bytes"},
      {"data_type: 1 dims: -2", "tensor 'w' has a negative dimension: expected sizes of 0 or more, got [-2]"},
      {"data_type: 1 dims: 4611686018427387904 dims: 4", "tensor 'w' is too large: its element count overflows"},
      {"data_type: 99 dims: 1", "tensor 'w' has an unknown element type"},
      {"dims: 1", "tensor 'w' has an unknown element type"},
      {"data_type: 8 dims: 2 string_data: 'a'", "tensor 'w' has the wrong number of strings: expected 2, got 1"},
  };
  for (const Case &c : cases) {
    INFO(c.fields);
    CHECK_THAT(importTensor(c.fields).errors, Contains(c.expected));
  }
}

TEST_CASE("sparse_tensors_become_dense") {
  std::string sparse =
      "sparse_initializer { dims: 2 dims: 3 values { name: 'w' data_type: 1 dims: 2 float_data: 5 float_data: "
      "7 } indices { data_type: 7 dims: 2 int64_data: 1 int64_data: INDEX } } " +
      node("Identity", "w", "y") + output("y");
  std::string good = sparse, bad = sparse;
  good.replace(good.find("INDEX"), 5, "5");
  bad.replace(bad.find("INDEX"), 5, "6");
  CHECK_THAT(importOnnxText(17, good).module,
             Contains("dense<[[0.000000e+00, 5.000000e+00, 0.000000e+00], [0.000000e+00, "
                      "0.000000e+00, 7.000000e+00]]> : tensor<2x3xf32>"));
  CHECK_THAT(importOnnxText(17, bad).errors,
             Contains("is sparse with an index outside its shape: expected 0 to 5, got 6"));
}

static std::string externalModel(const std::string &location, const std::string &more = "") {
  return onnxModel(
      17, "initializer { name: 'w' data_type: 1 dims: 2 data_location: EXTERNAL external_data { key: 'location' "
          "value: '" +
              location + "' } " + more + "} " + node("Identity", "w", "y") + output("y"));
}

TEST_CASE("external_data_is_read_below_the_models_folder") {
  std::string folder = emptyFolder("external");
  std::string bytes("\0\0\x80?\0\0\0@", 8);
  REQUIRE(system(("mkdir -p " + folder + "/sub").c_str()) == 0);
  writeBytes(folder + "/sub/w.bin", "0123" + bytes);
  std::string at = "external_data { key: 'offset' value: '4' } ";
  writeBytes(folder + "/m.onnx", externalModel("sub/w.bin", at));
  Imported imported = importModelFile(folder + "/m.onnx");
  CHECK(imported.errors == "");
  CHECK_THAT(imported.module, Contains("dense<[1.000000e+00, 2.000000e+00]>"));

  writeBytes(folder + "/m.onnx", externalModel("sub/w.bin", "external_data { key: 'offset' value: '8' } "));
  CHECK_THAT(
      importModelFile(folder + "/m.onnx").errors,
      Contains("m.onnx: error[import.external]: tensor 'w' cannot be read from 'sub/w.bin': the file has 12 bytes, the "
               "tensor asks for 8 from 8"));
  writeBytes(folder + "/m.onnx", externalModel("sub/w.bin", at + "external_data { key: 'length' value: '4' } "));
  CHECK_THAT(importModelFile(folder + "/m.onnx").errors,
             Contains("has the wrong length of external data: expected 8 bytes"));
  writeBytes(folder + "/m.onnx", externalModel("sub/w.bin", "external_data { key: 'offset' value: '-4' } "));
  CHECK_THAT(importModelFile(folder + "/m.onnx").errors, Contains("has an external offset that is no size"));
}

TEST_CASE("no_file_outside_the_models_folder_is_opened") {
  std::string outer = emptyFolder("outside"), folder = outer + "/model";
  REQUIRE(system(("mkdir -p " + folder).c_str()) == 0);
  writeBytes(outer + "/w.bin", std::string(8, 'x'));
  auto errors = [&](const std::string &location) {
    writeBytes(folder + "/m.onnx", externalModel(location));
    return importModelFile(folder + "/m.onnx").errors;
  };
  CHECK_THAT(errors("../w.bin"), Contains("the path leaves the model's folder"));
  CHECK_THAT(errors("a/../../w.bin"), Contains("the path leaves the model's folder"));
  CHECK_THAT(errors(outer + "/w.bin"), Contains("absolute paths are not followed"));
  REQUIRE(symlink((outer + "/w.bin").c_str(), (folder + "/link.bin").c_str()) == 0);
  CHECK_THAT(errors("link.bin"), Contains("a symbolic link leaves the model's folder"));
  REQUIRE(symlink(outer.c_str(), (folder + "/up").c_str()) == 0);
  CHECK_THAT(errors("up/w.bin"), Contains("a symbolic link leaves the model's folder"));
  CHECK_THAT(errors("missing.bin"), Contains("cannot be read from 'missing.bin': No such file or directory"));
  CHECK_THAT(errors("."), Contains("it is not a regular file"));
  CHECK_THAT(errors(""), Contains("the location is no file name"));
}

TEST_CASE("a_constant_node_takes_each_form_of_its_attribute") {
  auto module = [](const std::string &attribute) {
    return importOnnxText(17, node("Constant", "", "c", attribute) + node("Identity", "c", "y") + output("y")).module;
  };
  CHECK_THAT(module(intAttribute("value_int", "7")), Contains("dense<7> : tensor<i64>"));
  CHECK_THAT(module(intsAttribute("value_ints", "7,8")), Contains("dense<[7, 8]> : tensor<2xi64>"));
  CHECK_THAT(module(floatAttribute("value_float", "1.5")), Contains("dense<1.500000e+00> : tensor<f32>"));
  CHECK_THAT(module("attribute { name: 'value_floats' type: FLOATS floats: 1 floats: 2 } "),
             Contains("dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"));
  CHECK_THAT(module(stringAttribute("value_string", "s")), Contains("[\"s\"]} : tensor<!firn.string>"));
  CHECK_THAT(module("attribute { name: 'value_strings' type: STRINGS strings: 'a' strings: 'b' } "),
             Contains("[\"a\", \"b\"]} : tensor<2x!firn.string>"));
  CHECK_THAT(module("attribute { name: 'value' type: TENSOR t { data_type: 6 int32_data: 3 } } "),
             Contains("dense<3> : tensor<i32>"));
  CHECK_THAT(
      module(
          "attribute { name: 'sparse_value' type: SPARSE_TENSOR sparse_tensor { dims: 2 values { data_type: 6 dims: 1 "
          "int32_data: 3 } indices { data_type: 7 dims: 1 int64_data: 1 } } } "),
      Contains("dense<[0, 3]> : tensor<2xi32>"));
}
