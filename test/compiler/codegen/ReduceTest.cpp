// Kernels of kind "reduce" against the reference kernels of their bodies.
#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace firn::test;

namespace {

std::string checkAll(FusedCase fused) {
  fused.kind = "reduce";
  for (const char *target : {"x86-64-v2", "x86-64-v3", "native"}) {
    fused.target = target;
    if (std::string problem = check(fused); !problem.empty())
      return std::string(target) + ": " + problem;
  }
  return "";
}

FusedCase reduction(const std::string &op, const Shape &from, const std::string &axes, int axisCount, const Shape &to,
                    const std::string &element = "f32", bool keepsDims = true) {
  FusedCase fused;
  fused.inputs = {{from, element, false, 0.5, 1.5}};
  fused.result = to;
  fused.resultElement = element;
  std::string type = "tensor<" + std::to_string(axisCount) + "xi64>", result = typeText(to, element);
  fused.body = "%a = firn.constant {value = dense<[" + axes + "]> : " + type + "} : " + type + "\n%r = firn." + op +
               " %0, %a {keepdims = " + (keepsDims ? "1" : "0") + " : i64} : (" + typeText(from, element) + ", " +
               type + ") -> " + result + "\nfirn.yield %r : " + result;
  return fused;
}

FusedCase rowwise(const std::string &op, const std::string &attributes, const Shape &shape) {
  FusedCase fused;
  fused.inputs = {{shape, "f32", false, -4, 4}};
  fused.result = shape;
  std::string type = typeText(shape);
  fused.body = "%r = firn." + op + " %0 " + attributes + " : (" + type + ") -> " + type + "\nfirn.yield %r : " + type;
  return fused;
}

} // namespace

TEST_CASE("reductions over trailing, leading, middle and all axes") {
  for (const char *op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1",
                         "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_sum_square"}) {
    INFO(op);
    FusedCase trailing = reduction(op, {5, 7, 33}, "-1", 1, {5, 7, 1});
    CHECK(checkAll(trailing) == "");
    CHECK(checkAll(reduction(op, {5, 7, 33}, "1", 1, {5, 1, 33})) == "");
    CHECK(checkAll(reduction(op, {19, 40}, "0", 1, {40}, "f32", false)) == "");
    CHECK(checkAll(reduction(op, {5, 7, 33}, "0, 2", 2, {7}, "f32", false)) == "");
    CHECK(checkAll(reduction(op, {3, 50}, "0, 1", 2, {}, "f32", false)) == "");
  }
  CHECK(checkAll(reduction("reduce_mean", {2, 16, 7, 7}, "2, 3", 2, {2, 16, 1, 1})) == "");
  CHECK(checkAll(reduction("reduce_sum", {9, 1}, "1", 1, {9, 1})) == "");
}

TEST_CASE("long rows use several accumulators") {
  CHECK(checkAll(reduction("reduce_sum", {3, 1003}, "1", 1, {3, 1})) == "");
  CHECK(checkAll(reduction("reduce_max", {3, 1003}, "1", 1, {3, 1})) == "");
  CHECK(checkAll(reduction("reduce_mean", {3, 517, 40}, "1", 1, {3, 1, 40})) == "");
}

TEST_CASE("reductions of other types") {
  for (const char *element : {"i32", "i64", "f64", "f16", "bf16"})
    for (const char *op : {"reduce_sum", "reduce_max", "reduce_min"}) {
      INFO(op << " " << element);
      FusedCase fused = reduction(op, {4, 37}, "1", 1, {4, 1}, element);
      if (element[0] == 'i')
        fused.inputs[0].values = {3, -7, 100, 2, 0, 55};
      fused.tolerance = element[0] == 'b' ? 1e-2 : element == std::string("f16") ? 1e-3 : 1e-12;
      CHECK(checkAll(fused) == "");
    }
}

TEST_CASE("an empty row gives the identity") {
  for (const char *op : {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"}) {
    FusedCase fused = reduction(op, {"n", "m"}, "1", 1, {"n", 1});
    fused.sizes = {{"n", 3}, {"m", 0}};
    CHECK(checkAll(fused) == "");
  }
}

TEST_CASE("symbolic rows") {
  FusedCase sum = reduction("reduce_sum", {"n", "m"}, "1", 1, {"n", 1});
  FusedCase softmax = rowwise("softmax", "", {"n", "m"});
  FusedCase middle = rowwise("softmax", "{axis = 1 : i64}", {2, "n", "m"});
  for (int64_t m : {1, 3, 16, 65, 200}) {
    sum.sizes = softmax.sizes = middle.sizes = {{"n", 5}, {"m", m}};
    CHECK(checkAll(sum) == "");
    CHECK(checkAll(softmax) == "");
    CHECK(checkAll(middle) == "");
  }
}

TEST_CASE("softmax and its logarithm, along any axis") {
  for (const char *op : {"softmax", "log_softmax"}) {
    CHECK(checkAll(rowwise(op, "{axis = -1 : i64}", {12, 33})) == "");
    CHECK(checkAll(rowwise(op, "{axis = 1 : i64}", {3, 20, 37})) == "");
    CHECK(checkAll(rowwise(op, "{axis = 0 : i64}", {20, 37})) == "");
    CHECK(checkAll(rowwise(op, "{axis = -1 : i64}", {2, 3, 128})) == "");
    CHECK(checkAll(rowwise(op, "{axis = -1 : i64}", {7, 3})) == "");
  }
  FusedCase nan = rowwise("softmax", "", {4, 40});
  nan.inputs[0].values = {1, 2, std::numeric_limits<double>::quiet_NaN(), 3, -std::numeric_limits<double>::infinity()};
  CHECK(checkAll(nan) == "");
}

TEST_CASE("softmax of a scaled, masked operand transposed at the end") {
  FusedCase fused;
  fused.inputs = {{{2, 4, 9, 24}, "f32", false, -4, 4}, {{2, 1, 1, 24}, "f32", false, -2, 0}};
  fused.result = {2, 9, 4, 24};
  fused.body =
      "%c = firn.constant {value = dense<0.125> : tensor<f32>} : tensor<f32>\n"
      "%s = firn.mul %0, %c : (tensor<2x4x9x24xf32>, tensor<f32>) -> tensor<2x4x9x24xf32>\n"
      "%m = firn.add %s, %1 : (tensor<2x4x9x24xf32>, tensor<2x1x1x24xf32>) -> tensor<2x4x9x24xf32>\n"
      "%p = firn.softmax %m {axis = -1 : i64} : (tensor<2x4x9x24xf32>) -> tensor<2x4x9x24xf32>\n"
      "%t = firn.transpose %p {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x4x9x24xf32>) -> tensor<2x9x4x24xf32>\n"
      "firn.yield %t : tensor<2x9x4x24xf32>";
  CHECK(checkAll(fused) == "");
}

TEST_CASE("layer normalisation with its three results") {
  FusedCase fused;
  fused.inputs = {{{3, 5, 48}, "f32", false, -2, 5}, {{48}}, {{48}}};
  fused.result = {3, 5, 48};
  fused.body = "%r = firn.layer_normalization %0, %1, %2 {axis = -1 : i64} : (tensor<3x5x48xf32>, tensor<48xf32>, "
               "tensor<48xf32>) "
               "-> tensor<3x5x48xf32>\nfirn.yield %r : tensor<3x5x48xf32>";
  CHECK(checkAll(fused) == "");
  FusedCase residual = fused; // x + y first, and a GELU behind
  residual.inputs.push_back({{3, 5, 48}});
  residual.body =
      "%s = firn.add %0, %3 : (tensor<3x5x48xf32>, tensor<3x5x48xf32>) -> tensor<3x5x48xf32>\n"
      "%r = firn.layer_normalization %s, %1, %2 {axis = -1 : i64} : (tensor<3x5x48xf32>, tensor<48xf32>, "
      "tensor<48xf32>) -> tensor<3x5x48xf32>\n%g = firn.gelu %r : (tensor<3x5x48xf32>) -> tensor<3x5x48xf32>\n"
      "firn.yield %g : tensor<3x5x48xf32>";
  CHECK(checkAll(residual) == "");
  FusedCase all = fused;
  all.moreResults = {{{3, 5, 1}, "f32"}, {{3, 5, 1}, "f32"}};
  all.body = "%r:3 = firn.layer_normalization %0, %1, %2 {axis = -1 : i64} : (tensor<3x5x48xf32>, tensor<48xf32>, "
             "tensor<48xf32>) "
             "-> (tensor<3x5x48xf32>, tensor<3x5x1xf32>, tensor<3x5x1xf32>)\n"
             "firn.yield %r#0, %r#1, %r#2 : tensor<3x5x48xf32>, tensor<3x5x1xf32>, tensor<3x5x1xf32>";
  CHECK(checkAll(all) == "");
}

TEST_CASE("other normalisations") {
  FusedCase rms;
  rms.inputs = {{{6, 40}, "f32", false, -2, 5}, {{40}}};
  rms.result = {6, 40};
  rms.body = "%r = firn.rms_normalization %0, %1 : (tensor<6x40xf32>, tensor<40xf32>) -> tensor<6x40xf32>\nfirn.yield "
             "%r : tensor<6x40xf32>";
  CHECK(checkAll(rms) == "");
  FusedCase instance;
  instance.inputs = {{{2, 3, 5, 7}, "f32", false, -2, 5}, {{3}}, {{3}}};
  instance.result = {2, 3, 5, 7};
  instance.body =
      "%r = firn.instance_normalization %0, %1, %2 : (tensor<2x3x5x7xf32>, tensor<3xf32>, tensor<3xf32>) -> "
      "tensor<2x3x5x7xf32>\nfirn.yield %r : tensor<2x3x5x7xf32>";
  CHECK(checkAll(instance) == "");
  FusedCase group;
  group.inputs = {{{2, 12, 5, 7}, "f32", false, -2, 5}, {{12}}, {{12}}};
  group.result = {2, 12, 5, 7};
  group.body =
      "%r = firn.group_normalization %0, %1, %2 {num_groups = 3 : i64} : (tensor<2x12x5x7xf32>, tensor<12xf32>, "
      "tensor<12xf32>) -> tensor<2x12x5x7xf32>\nfirn.yield %r : tensor<2x12x5x7xf32>";
  CHECK(checkAll(group) == "");
  CHECK(checkAll(rowwise("lp_normalization", "{axis = 1 : i64, p = 2 : i64}", {6, 40})) == "");
  CHECK(checkAll(rowwise("lp_normalization", "{axis = 0 : i64, p = 1 : i64}", {6, 40})) == "");
}

TEST_CASE("positions of extremes") {
  for (const char *op : {"arg_max", "arg_min"})
    for (int last : {0, 1})
      for (int axis : {0, 1}) {
        FusedCase fused;
        Shape from = {37, 41}, to = axis == 0 ? Shape{1, 41} : Shape{37, 1};
        fused.inputs = {{from, "f32", false, 0, 1, {1, 5, 2, 5, -1, 4, -1}}};
        fused.result = to;
        fused.resultElement = "i64";
        fused.body = std::string("%r = firn.") + op + " %0 {axis = " + std::to_string(axis) +
                     " : i64, select_last_index = " + std::to_string(last) + " : i64} : (tensor<37x41xf32>) -> " +
                     typeText(to, "i64") + "\nfirn.yield %r : " + typeText(to, "i64");
        INFO(op << " axis " << axis << " last " << last);
        CHECK(checkAll(fused) == "");
      }
}

TEST_CASE("global pools") {
  for (const char *op : {"global_average_pool", "global_max_pool"}) {
    FusedCase fused;
    fused.inputs = {{{2, 5, 7, 7}}};
    fused.result = {2, 5, 1, 1};
    fused.body = std::string("%r = firn.") + op +
                 " %0 : (tensor<2x5x7x7xf32>) -> tensor<2x5x1x1xf32>\nfirn.yield %r : tensor<2x5x1x1xf32>";
    CHECK(checkAll(fused) == "");
  }
}

TEST_CASE("a value normalised by its own statistics in single operations") {
  // (x - mean(x)) * gate, reduced again behind a squeeze
  FusedCase fused;
  fused.inputs = {{{4, 6, 20}}, {{20}}};
  fused.result = {4, 6, 20};
  fused.body =
      "%a = firn.constant {value = dense<[2]> : tensor<1xi64>} : tensor<1xi64>\n"
      "%m = firn.reduce_mean %0, %a {keepdims = 1 : i64} : (tensor<4x6x20xf32>, tensor<1xi64>) -> tensor<4x6x1xf32>\n"
      "%d = firn.sub %0, %m : (tensor<4x6x20xf32>, tensor<4x6x1xf32>) -> tensor<4x6x20xf32>\n"
      "%q = firn.mul %d, %d : (tensor<4x6x20xf32>, tensor<4x6x20xf32>) -> tensor<4x6x20xf32>\n"
      "%v = firn.reduce_mean %q, %a {keepdims = 0 : i64} : (tensor<4x6x20xf32>, tensor<1xi64>) -> tensor<4x6xf32>\n"
      "%u = firn.unsqueeze %v, %a : (tensor<4x6xf32>, tensor<1xi64>) -> tensor<4x6x1xf32>\n"
      "%s = firn.sqrt %u : (tensor<4x6x1xf32>) -> tensor<4x6x1xf32>\n"
      "%n = firn.div %d, %s : (tensor<4x6x20xf32>, tensor<4x6x1xf32>) -> tensor<4x6x20xf32>\n"
      "%r = firn.mul %n, %1 : (tensor<4x6x20xf32>, tensor<20xf32>) -> tensor<4x6x20xf32>\n"
      "firn.yield %r : tensor<4x6x20xf32>";
  CHECK(checkAll(fused) == "");
}
