// Nodes of older opsets come in the newest form. The numbers of the upgraded models are held against another runtime in
// test/conformance; here are the forms.
#include "test/compiler/import/ImportHarness.h"
#include <catch2/catch.hpp>

using namespace firn::test;
using Catch::Matchers::Contains;

/// The module of one node on x (2x3x4 of f32) whose outputs are the graph's.
static std::string upgraded(int opset, const std::string &node, const std::string &more = "",
                            const std::string &dims = "2,3,4", int dtype = 1) {
  Imported imported = importOnnxText(opset, input("x", dims, dtype) + more + node + output("y"));
  CHECK(imported.errors == "");
  return imported.module;
}

TEST_CASE("axes_pads_and_other_attributes_become_constants") {
  CHECK_THAT(upgraded(11, node("ReduceMean", "x", "y", intsAttribute("axes", "0,2") + intAttribute("keepdims", "0"))),
             Contains("dense<[0, 2]> : tensor<2xi64>") && Contains("firn.reduce_mean %arg0, %0 {keepdims = 0"));
  CHECK_THAT(upgraded(11, node("ReduceSum", "x", "y")), Contains("firn.reduce_sum %arg0 :"));
  CHECK_THAT(upgraded(11, node("Squeeze", "x", "y", intsAttribute("axes", "0"))), Contains("firn.squeeze %arg0, %0"));
  CHECK_THAT(upgraded(11, node("Unsqueeze", "x", "y", intsAttribute("axes", "0"))),
             Contains("firn.unsqueeze %arg0, %0"));
  CHECK_THAT(upgraded(9, node("Slice", "x", "y", intsAttribute("starts", "1") + intsAttribute("ends", "2"))),
             Contains("firn.slice %arg0, %0, %1 :"));
  CHECK_THAT(upgraded(9, node("TopK", "x", "y,i", intAttribute("k", "3"))), Contains("dense<3> : tensor<1xi64>"));
  CHECK_THAT(upgraded(11, node("Split", "x", "y,z", intsAttribute("split", "1,1"))), Contains("firn.split %arg0, %0"));
  CHECK_THAT(upgraded(13, node("Split", "x", "y,z", "")), Contains("num_outputs = 2"));
  CHECK_THAT(upgraded(7, node("Pad", "x", "y", intsAttribute("pads", "0,0,0,1,1,1") + floatAttribute("value", "2"))),
             Contains("firn.pad %arg0, %0, %1") && Contains("dense<2.000000e+00> : tensor<f32>"));
  CHECK_THAT(
      upgraded(1, node("Reshape", "x", "y", intsAttribute("shape", "6,4") + intsAttribute("consumed_inputs", "0"))),
      Contains("dense<[6, 4]> : tensor<2xi64>"));
}

TEST_CASE("bounds_of_clip_have_the_type_of_the_data") {
  std::string clip = node("Clip", "x", "y", floatAttribute("min", "0") + floatAttribute("max", "6"));
  CHECK_THAT(upgraded(6, clip), Contains("dense<6.000000e+00> : tensor<f32>") && !Contains("cast_like"));
  CHECK_THAT(upgraded(6, clip, "", "2", 10), Contains("dense<6.000000e+00> : tensor<f16>"));
  CHECK_THAT(upgraded(6, node("Clip", "x", "y", floatAttribute("max", "6"))), Contains("firn.clip %arg0, %1, %0"));
  // Where the type is not known, a cast follows it.
  CHECK_THAT(upgraded(9, node("EyeLike", "x", "t") + node("Clip", "t", "y", floatAttribute("min", "0"))),
             Contains("firn.cast_like"));
}

TEST_CASE("softmax_over_several_axes_is_flattened_and_one_over_the_last_is_not") {
  CHECK_THAT(upgraded(11, node("Softmax", "x", "y")),
             Contains("firn.flatten %arg0") && Contains("firn.softmax") && Contains("firn.reshape"));
  CHECK_THAT(upgraded(11, node("Softmax", "x", "y", intAttribute("axis", "2"))), !Contains("firn.flatten"));
  CHECK_THAT(upgraded(11, node("Softmax", "x", "y", intAttribute("axis", "-1"))), !Contains("firn.flatten"));
  CHECK_THAT(upgraded(13, node("Softmax", "x", "y", intAttribute("axis", "1"))),
             Contains("axis = 1") && !Contains("flatten"));
  // The rank is followed through the graph.
  CHECK_THAT(upgraded(11, node("Flatten", "x", "t") + node("Softmax", "t", "y")), !Contains("firn.reshape"));
}

TEST_CASE("upsample_and_the_first_resize_scale_from_the_corner") {
  std::string scales = floats("s", "4", "1,1,2,2");
  for (const std::string &module :
       {upgraded(9, node("Upsample", "x,s", "y"), scales, "1,1,2,2"),
        upgraded(10, node("Resize", "x,s", "y"), scales, "1,1,2,2"),
        upgraded(7,
                 node("Upsample", "x", "y",
                      "attribute { name: 'scales' type: FLOATS floats: 1 floats: 1 floats: 2 floats: 2 } "),
                 "", "1,1,2,2")})
    CHECK_THAT(module, Contains("firn.resize") && Contains("coordinate_transformation_mode = \"asymmetric\"") &&
                           Contains("nearest_mode = \"floor\""));
  CHECK_THAT(upgraded(10, node("Resize", "x,s", "y"), floats("s", "4", "1,1,0.5,0.5"), "1,1,2,2"),
             Contains("nearest_mode = \"ceil\""));
}

TEST_CASE("broadcasting_at_an_axis_becomes_an_unsqueeze") {
  std::string attributes = intAttribute("broadcast", "1") + intAttribute("axis", "1");
  CHECK_THAT(upgraded(6, node("Add", "x,b", "y", attributes), floats("b", "3", "1,2,3")),
             Contains("dense<1> : tensor<1xi64>") && Contains("firn.unsqueeze"));
  CHECK_THAT(upgraded(6, node("Mul", "x,b", "y", intAttribute("broadcast", "1")), floats("b", "4", "1,2,3,4")),
             !Contains("unsqueeze"));
}

TEST_CASE("batch_normalization_per_element_is_spelt_out") {
  std::string statistics;
  for (const char *name : {"s", "b", "m", "v"})
    statistics += input(name, "3,4");
  CHECK_THAT(upgraded(7, node("BatchNormalization", "x,s,b,m,v", "y", intAttribute("spatial", "0")), statistics),
             Contains("firn.sqrt") && Contains("firn.div") && !Contains("batch_normalization"));
  CHECK_THAT(upgraded(7, node("BatchNormalization", "x,s,b,m,v", "y"), statistics),
             Contains("firn.batch_normalization"));
}

TEST_CASE("group_normalization_spreads_its_scale_over_channels") {
  CHECK_THAT(upgraded(18, node("GroupNormalization", "x,s,b", "y", intAttribute("num_groups", "1")),
                      floats("s", "1", "1") + floats("b", "1", "0")),
             Contains("firn.expand") && Contains("firn.group_normalization"));
  CHECK_THAT(upgraded(21, node("GroupNormalization", "x,s,b", "y", intAttribute("num_groups", "1")),
                      floats("s", "3", "1,1,1") + floats("b", "3", "0,0,0")),
             !Contains("firn.expand"));
}

TEST_CASE("casts_to_a_named_type_become_casts_to_its_number") {
  CHECK_THAT(upgraded(1, node("Cast", "x", "y", stringAttribute("to", "INT64"))), Contains("to = 7"));
}

TEST_CASE("forms_without_a_newer_one_are_refused_by_name") {
  Imported imported =
      importOnnxText(13, input("x", "2,3,4") + floats("s", "3", "1,1,1") + floats("b", "3", "0,0,0") +
                             floats("m", "3", "0,0,0") + floats("v", "3", "1,1,1") +
                             node("BatchNormalization", "x,s,b,m,v", "y,a,c,d,e") + output("y") + output("d"));
  CHECK_THAT(imported.errors,
             Contains("node 'n' (BatchNormalization-9): saved mean and variance of batch normalisation are "
                      "not supported\n  fix: export the model with a newer opset"));
}

TEST_CASE("messages_say_the_version_that_the_file_uses") {
  Imported imported = importOnnxText(11, input("x", "2,3,4") + node("Softmax", "x", "y") + output("y"));
  CHECK_THAT(imported.locations, Contains("op = \"Softmax-11\""));
}
