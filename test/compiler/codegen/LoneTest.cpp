// Kernels of kinds "scatter", "scan", "sample" and "search" against the reference kernels of their operations.
#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace firn::test;

namespace {

const double notANumber = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

/// On every vector width that the host has.
std::string checkAll(FusedCase fused) {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "native"}) {
    fused.target = target;
    if (std::string problem = check(fused); !problem.empty())
      return std::string(target) + ": " + problem;
  }
  return "";
}

FusedCase scatter(const std::string &op, const std::string &attributes, const Shape &data, const Shape &indices,
                  const Shape &updates, double low, double high, const std::string &element = "f32") {
  FusedCase c;
  c.kind = "scatter";
  c.inputs = {{data, element, false, 0, 9}, {indices, "i64", false, low, high}, {updates, element, false, 0, 9}};
  c.result = data;
  c.resultElement = element;
  std::string type = typeText(data, element);
  c.body = "%r = firn." + op + " %0, %1, %2 {" + attributes + "} : (" + type + ", " + typeText(indices, "i64") + ", " +
           typeText(updates, element) + ") -> " + type + "\nfirn.yield %r : " + type;
  return c;
}

std::string scan(const Shape &shape, int64_t axis, const std::string &attributes, const std::string &element = "f32",
                 const std::vector<double> &values = {}, std::map<std::string, int64_t> sizes = {}) {
  FusedCase c;
  c.kind = "scan";
  c.inputs = {{shape, element, false, -3, 3, values}};
  c.result = shape;
  c.resultElement = element;
  c.sizes = std::move(sizes);
  c.tolerance = element == "f16" ? 1e-3 : 1e-6;
  std::string type = typeText(shape, element);
  c.body = "%a = firn.constant {value = dense<" + std::to_string(axis) +
           "> : tensor<i64>} : tensor<i64>\n%r = firn.cumsum %0, %a {" + attributes + "} : (" + type +
           ", tensor<i64>) -> " + type + "\nfirn.yield %r : " + type;
  return checkAll(c);
}

/// Both results, or only one of them.
std::string topK(const Shape &shape, const Shape &result, int64_t axis, const std::string &attributes,
                 const std::string &element = "f32", const std::vector<double> &values = {}, char which = 'b',
                 std::map<std::string, int64_t> sizes = {}) {
  FusedCase c;
  c.kind = "search";
  c.inputs = {{shape, element, false, -100, 100, values}};
  if (element == "ui8")
    c.inputs[0].low = 0;
  c.sizes = std::move(sizes);
  c.tolerance = 0;
  std::string type = typeText(result, element), positions = typeText(result, "i64");
  c.body = "%k = firn.constant {value = dense<" + std::to_string(result[size_t(axis)].value) +
           "> : tensor<1xi64>} : tensor<1xi64>\n%r:2 = firn.topk %0, %k {axis = " + std::to_string(axis) + " : i64" +
           attributes + "} : (" + typeText(shape, element) + ", tensor<1xi64>) -> (" + type + ", " + positions + ")\n";
  c.result = result;
  if (which == 'i') {
    c.resultElement = "i64";
    c.body += "firn.yield %r#1 : " + positions;
  } else {
    c.resultElement = element;
    c.body += which == 'v' ? "firn.yield %r#0 : " + type : "firn.yield %r#0, %r#1 : " + type + ", " + positions;
  }
  if (which == 'b')
    c.moreResults = {{result, "i64"}};
  return checkAll(c);
}

/// A grid over an image; `size` are the spatial axes of the image, `points` those of the grid.
FusedCase grid(const Shape &size, const Shape &points, const std::string &attributes,
               const std::string &element = "f32") {
  FusedCase c;
  c.kind = "sample";
  Shape x{2, 3}, at{2}, to{2, 3};
  x.insert(x.end(), size.begin(), size.end());
  at.insert(at.end(), points.begin(), points.end());
  at.push_back(int64_t(size.size()));
  to.insert(to.end(), points.begin(), points.end());
  c.inputs = {{x, element, false, -3, 3}, {at, "f32", false, -1.6, 1.6}};
  c.result = to;
  c.resultElement = element;
  c.tolerance = element == "f16" ? 2e-3 : 1e-5;
  c.body = "%r = firn.call \"ai.onnx::GridSample\"(%0, %1) {" + attributes + "} : (" + typeText(x, element) + ", " +
           typeText(at) + ") -> " + typeText(to, element) + "\nfirn.yield %r : " + typeText(to, element);
  return c;
}

/// One axis of a resize, by scales where `scale` is not 0, else by sizes.
FusedCase resize(const Shape &from, const Shape &to, int axis, double scale, const std::string &attributes,
                 const std::string &element = "f32") {
  FusedCase c;
  c.kind = "sample";
  c.inputs = {{from, element, false, element == "ui8" ? 0.0 : -3.0, element == "ui8" ? 255.0 : 3.0}};
  c.result = to;
  c.resultElement = element;
  c.tolerance = element == "f16" ? 2e-3 : 1e-5;
  std::string type = typeText(from, element), result = typeText(to, element);
  std::string size = to[size_t(axis)].name.empty()
                         ? "%n = firn.constant {value = dense<" + std::to_string(to[size_t(axis)].value) +
                               "> : tensor<1xi64>} : tensor<1xi64>"
                         : "%n = firn.dim_values [\"" + to[size_t(axis)].name + "\"] : tensor<1xi64>";
  c.body = "%e = firn.absent : none\n%roi = firn.constant {value = dense<[0.1, 1.2]> : tensor<2xf32>} : tensor<2xf32>\n"
           "%s = firn.constant {value = dense<" +
           std::to_string(scale) + "> : tensor<1xf32>} : tensor<1xf32>\n" + size + "\n%r = firn.resize %0, %roi, " +
           (scale != 0 ? "%s" : "%e, %n") + " {axes = array<i64: " + std::to_string(axis) + ">, firn.sampled, " +
           attributes + "} : (" + type + ", tensor<2xf32>, " + (scale != 0 ? "tensor<1xf32>" : "none, tensor<1xi64>") +
           ") -> " + result + "\nfirn.yield %r : " + result;
  return c;
}

} // namespace

TEST_CASE("scatters of elements agree along every axis, for fewer indices than data") {
  for (int axis = -3; axis < 3; ++axis) {
    double size = std::vector<double>{5, 7, 33}[size_t((axis + 3) % 3)];
    std::string attributes = "axis = " + std::to_string(axis) + " : i64";
    REQUIRE(checkAll(scatter("scatter_elements", attributes, {5, 7, 33}, {4, 6, 32}, {4, 6, 32}, -size + 1,
                             size - 1)) == "");
  }
}

TEST_CASE("scatters combine elements by every reduction, in every type") {
  for (const char *reduction : {"none", "add", "mul", "max", "min"})
    for (const char *element : {"f32", "f64", "f16", "bf16", "i64", "i32", "ui8"}) {
      std::string attributes = std::string("axis = 0 : i64, reduction = \"") + reduction + "\"";
      CAPTURE(reduction, element);
      REQUIRE(check(scatter("scatter_elements", attributes, {6, 9}, {20, 9}, {20, 9}, 0, 5.99, element)) == "");
      REQUIRE(check(scatter("scatter_nd", "reduction = \"" + std::string(reduction) + "\"", {6, 37}, {9, 1}, {9, 37}, 0,
                            5.99, element)) == "");
    }
}

TEST_CASE("scatters of tuples agree for every depth and length of runs") {
  REQUIRE(checkAll(scatter("scatter_nd", "", {4, 3, 5}, {7, 3}, {7}, -3, 2.99)) == "");
  REQUIRE(checkAll(scatter("scatter_nd", "", {4, 3, 5}, {2, 3, 2}, {2, 3, 5}, -3, 2.99)) == "");
  REQUIRE(checkAll(scatter("scatter_nd", "", {4, 300}, {3, 1}, {3, 300}, -4, 3.99)) == "");
  REQUIRE(checkAll(scatter("scatter_nd", "", {2, 3}, {0}, {2, 3}, 0, 0)) == "");
}

TEST_CASE("scatters agree for symbolic and for empty shapes") {
  FusedCase c = scatter("scatter_elements", "axis = 1 : i64", {"n", "m"}, {"n", 4}, {"n", 4}, 0, 8.99);
  for (int64_t n : {0, 1, 7}) {
    c.sizes = {{"n", n}, {"m", 9}};
    REQUIRE(check(c) == "");
  }
  FusedCase tuples = scatter("scatter_nd", "reduction = \"add\"", {"n", "m"}, {"t", 1}, {"t", "m"}, 0, 3.99);
  for (int64_t t : {0, 1, 50}) {
    tuples.sizes = {{"n", 4}, {"m", 19}, {"t", t}};
    REQUIRE(check(tuples) == "");
  }
}

TEST_CASE("an index out of range is a fault and writes nothing elsewhere") {
  for (const char *op : {"scatter_elements", "scatter_nd"})
    for (double bad : {6.0, -7.0, 1e15}) {
      bool isTuples = std::string(op) == "scatter_nd";
      FusedCase c = scatter(op, "", {6, 5}, isTuples ? Shape{3, 1} : Shape{3, 5}, {3, 5}, 0, 0);
      c.inputs[1].values = {0, bad, 2};
      CompiledCase compiled(c);
      REQUIRE(compiled.failure() == "");
      compiled.run(1);
      REQUIRE(compiled.fault() != 0);
    }
}

TEST_CASE("running sums agree along every axis, exclusive and reverse") {
  for (const char *attributes :
       {"", "exclusive = 1 : i64", "reverse = 1 : i64", "exclusive = 1 : i64, reverse = 1 : i64"})
    for (const char *element : {"f32", "f64", "i32", "i64"}) {
      CAPTURE(attributes, element);
      REQUIRE(scan({3, 50}, 1, attributes, element) == "");
      REQUIRE(scan({67}, -1, attributes, element) == "");
      REQUIRE(scan({3, 5, 37}, 1, attributes, element) == "");
      REQUIRE(scan({5, 4}, 0, attributes, element) == "");
    }
  REQUIRE(scan({3, 50}, 1, "", "f16") == "");
  REQUIRE(scan({3, 50}, 0, "", "bf16") == "");
}

TEST_CASE("running sums of symbolic and empty shapes agree, and NaN reaches what is behind it") {
  for (int64_t n : {0, 1, 16, 33}) {
    REQUIRE(scan({"n", "m"}, 1, "", "f32", {}, {{"n", 3}, {"m", n}}) == "");
    REQUIRE(scan({"n", "m"}, 0, "", "f32", {}, {{"n", n}, {"m", 21}}) == "");
  }
  REQUIRE(scan({40}, 0, "", "f32", {1, 2, notANumber, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}) ==
          "");
  REQUIRE(scan({20}, 0, "reverse = 1 : i64", "f32", {1, inf, 3, 4, -inf, 6, 7, 8, 9, 10}) == "");
}

TEST_CASE("the greatest and least elements agree, equal ones by position, NaN first") {
  for (const char *attributes : {"", ", largest = 0 : i64"})
    for (char which : {'b', 'v', 'i'}) {
      CAPTURE(attributes, which);
      REQUIRE(topK({3, 200}, {3, 10}, 1, attributes, "f32", {}, which) == "");
      REQUIRE(topK({3, 200}, {3, 200}, 1, attributes, "f32", {}, which) == "");
      REQUIRE(topK({4, 50}, {4, 1}, 1, attributes, "f32", {}, which) == "");
      REQUIRE(topK({2, 30, 5}, {2, 7, 5}, 1, attributes, "f32", {}, which) == "");
      REQUIRE(topK({100}, {40}, 0, attributes, "f32", {3, 1, notANumber, 3, -inf, 1, inf, 3, notANumber, 0.0, -0.0},
                   which) == "");
    }
  for (const char *element : {"f64", "f16", "bf16", "i64", "i32", "ui8"})
    REQUIRE(topK({5, 77}, {5, 9}, 1, "", element) == "");
}

TEST_CASE("searches of symbolic and empty shapes agree; a line shorter than k is a fault") {
  for (int64_t n : {0, 1, 5})
    REQUIRE(topK({"n", "m"}, {"n", 3}, 1, "", "f32", {}, 'b', {{"n", n}, {"m", 40}}) == "");
  REQUIRE(topK({4, 9}, {4, 0}, 1, "") == "");
}

TEST_CASE("samples of a grid agree in every mode, at and beyond the borders") {
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *padding : {"zeros", "border", "reflection"})
      for (const char *aligned : {"0", "1"}) {
        CAPTURE(mode, padding, aligned);
        std::string attributes = "mode = \"" + std::string(mode) + "\", padding_mode = \"" + padding +
                                 "\", align_corners = " + aligned + " : i64";
        REQUIRE(checkAll(grid({7, 5}, {3, 11}, attributes)) == "");
        REQUIRE(check(grid({9}, {17}, attributes)) == "");
      }
  REQUIRE(check(grid({4, 5, 6}, {3, 2, 5}, "mode = \"linear\"")) == "");
  REQUIRE(check(grid({4, 5}, {3, 9}, "", "f16")) == "");
  REQUIRE(check(grid({4, 5}, {3, 9}, "", "f64")) == "");
  FusedCase special = grid({4, 5}, {3, 9}, "");
  special.inputs[1].values = {notANumber, 0.5, inf, -inf, 1e30, 0, -1, 1};
  REQUIRE(checkAll(special) == "");
  FusedCase dynamic = grid({"h", "w"}, {"a", "b"}, "");
  dynamic.sizes = {{"h", 5}, {"w", 6}, {"a", 1}, {"b", 3}};
  REQUIRE(check(dynamic) == "");
}

TEST_CASE("one axis of a resize agrees in every mode and transformation") {
  for (const char *transformation : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                     "asymmetric", "tf_crop_and_resize"})
    for (const char *mode : {"mode = \"nearest\"", "mode = \"nearest\", nearest_mode = \"ceil\"", "mode = \"linear\"",
                             "mode = \"cubic\"", "mode = \"cubic\", exclude_outside = 1 : i64",
                             "mode = \"cubic\", antialias = 1 : i64", "mode = \"linear\", antialias = 1 : i64"}) {
      CAPTURE(transformation, mode);
      std::string attributes = std::string(mode) +
                               ", extrapolation_value = 7.0 : f32, coordinate_transformation_mode = \"" +
                               transformation + "\"";
      REQUIRE(check(resize({3, 10}, {3, 23}, 1, 0, attributes)) == "");
      REQUIRE(check(resize({3, 23}, {3, 10}, 1, 0, attributes)) == "");
      REQUIRE(check(resize({2, 9, 37}, {2, 4, 37}, 1, 0, attributes)) == "");
      if (std::string(transformation) != "tf_crop_and_resize") {
        REQUIRE(check(resize({2, 9, 37}, {2, 23, 37}, 1, 2.6, attributes)) == "");
        REQUIRE(check(resize({18, 30}, {18, 18}, 1, 0.6, attributes)) == "");
      }
    }
}

TEST_CASE("resizes agree in other types, and where sizes are found while running") {
  for (const char *element : {"f16", "bf16", "f64"})
    REQUIRE(check(resize({3, 10}, {3, 23}, 1, 0, "mode = \"cubic\"", element)) == "");
  REQUIRE(checkAll(resize({3, 10, 70}, {3, 23, 70}, 1, 0, "mode = \"nearest\"", "ui8")) == "");
  FusedCase dynamic = resize({"n", "w"}, {"n", "v"}, 1, 0, "mode = \"linear\", antialias = 1 : i64");
  for (int64_t v : {0, 1, 9, 40}) {
    dynamic.sizes = {{"n", 3}, {"w", 17}, {"v", v}};
    REQUIRE(check(dynamic) == "");
  }
}

TEST_CASE("positions of what is not zero agree, NaN included, and slices that a condition keeps") {
  FusedCase c;
  c.kind = "search";
  c.tolerance = 0;
  Shape x{3, "n", 7}, found{3, "s"}, carrier{"s", 0};
  c.inputs = {{x, "f32", false, 0, 0, {0, 1, 0, 0, notANumber, -0.0, 0, 2}}, {carrier, "i1"}};
  c.sizes = {{"n", 8}, {"s", 63}};
  c.result = found;
  c.resultElement = "i64";
  c.body = "%r = firn.non_zero %0 : (" + typeText(x) + ") -> " + typeText(found, "i64") +
           "\nfirn.yield %r : " + typeText(found, "i64");
  REQUIRE(checkAll(c) == "");
  for (const char *axis : {"{}", "{axis = 1 : i64}"}) {
    bool isFlat = std::string(axis) == "{}";
    Shape data{4, 6, 5}, kept = isFlat ? Shape{"s"} : Shape{4, "s", 5};
    FusedCase d = c;
    d.inputs = {{data}, {{6}, "i1", false, 0, 1, {1, 0, 1, 1, 0, 1}}, {carrier, "i1"}};
    d.sizes = {{"s", 4}};
    d.result = kept;
    d.resultElement = "f32";
    d.body = std::string("%r = firn.call \"ai.onnx::Compress\"(%0, %1) ") + axis + " : (" + typeText(data) + ", " +
             typeText({6}, "i1") + ") -> " + typeText(kept) + "\nfirn.yield %r : " + typeText(kept);
    REQUIRE(checkAll(d) == "");
  }
}
