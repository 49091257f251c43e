#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

/// A pool with channels last or second; `attributes` beside kernel_shape and layout.
std::string check(const std::string &op, bool isLast, int64_t batch, std::vector<int64_t> size, int64_t channels,
                  std::vector<int64_t> out, const std::string &attributes, const std::string &element = "f32",
                  const std::string &target = "native") {
  auto shape = [&](const std::vector<int64_t> &spatial) {
    Shape s{batch};
    if (!isLast)
      s.push_back(channels);
    for (int64_t d : spatial)
      s.push_back(d);
    if (isLast)
      s.push_back(channels);
    return s;
  };
  Shape x = shape(size), r = shape(out);
  std::string t = typeText(r, element), all = attributes;
  if (isLast)
    all += (all.empty() ? "" : ", ") + std::string("layout = \"nhwc\"");
  FusedCase c;
  c.kind = "pool";
  c.target = target;
  c.inputs = {{x, element, false, -3, 3}};
  if (element == "ui8")
    c.inputs[0].low = 0, c.inputs[0].high = 255;
  c.body = "%p = firn." + op + " %0 {" + all + "} : (" + typeText(x, element) + ") -> " + t + "\n";
  if (element == "f32")
    c.body += "%y = firn.neg %p : (" + t + ") -> " + t + "\nfirn.yield %y : " + t;
  else
    c.body += "firn.yield %p : " + t;
  c.result = r;
  c.resultElement = element;
  c.tolerance = element == "f16" ? 1e-3 : 1e-6;
  return firn::test::check(c);
}

} // namespace

TEST_CASE("pools agree in both layouts for pads, strides, dilations and ceil_mode") {
  for (bool isLast : {true, false})
    for (const char *op : {"max_pool", "average_pool"}) {
      REQUIRE(check(op, isLast, 1, {8, 10}, 20, {4, 5},
                    "kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>") == "");
      REQUIRE(check(op, isLast, 2, {9, 9}, 64, {5, 5},
                    "kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>") ==
              "");
      REQUIRE(check(op, isLast, 1, {12, 12}, 5, {10, 10},
                    "kernel_shape = array<i64: 2, 2>, dilations = array<i64: 2, 2>") == "");
      REQUIRE(check(op, isLast, 1, {10, 10}, 33, {5, 5},
                    "kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, ceil_mode = 1 : i64") == "");
      REQUIRE(check(op, isLast, 1, {21}, 70, {11},
                    "kernel_shape = array<i64: 3>, strides = array<i64: 2>, pads = array<i64: 1, 1>") == "");
      REQUIRE(check(op, isLast, 1, {4, 6, 5}, 16, {3, 5, 4}, "kernel_shape = array<i64: 2, 2, 2>") == "");
    }
}

TEST_CASE("an average counts padding where it is told to") {
  for (bool isLast : {true, false})
    REQUIRE(check("average_pool", isLast, 1, {10, 9}, 19, {6, 5},
                  "kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, "
                  "ceil_mode = 1 : i64, count_include_pad = 1 : i64") == "");
}

TEST_CASE("pools of whole images agree") {
  for (bool isLast : {true, false})
    for (const char *op : {"global_max_pool", "global_average_pool"}) {
      REQUIRE(check(op, isLast, 2, {7, 7}, 70, {1, 1}, "") == "");
      REQUIRE(check(op, isLast, 1, {13}, 3, {1}, "") == "");
      REQUIRE(check(op, isLast, 1, {40, 30}, 16, {1, 1}, "") == "");
    }
}

TEST_CASE("pools agree for other element types") {
  const char *window = "kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>";
  for (bool isLast : {true, false}) {
    REQUIRE(check("max_pool", isLast, 1, {8, 8}, 20, {4, 4}, window, "ui8") == "");
    REQUIRE(check("max_pool", isLast, 1, {8, 8}, 20, {4, 4}, window, "f16") == "");
    REQUIRE(check("average_pool", isLast, 1, {8, 8}, 20, {4, 4}, window, "f16") == "");
    REQUIRE(check("average_pool", isLast, 1, {8, 8}, 20, {4, 4}, window, "f64") == "");
  }
}

TEST_CASE("norms of windows agree") {
  for (const char *attributes : {"p = 1 : i64", "p = 2 : i64"})
    for (bool isLast : {false, true}) {
      std::string window =
          std::string("kernel_shape = array<i64: 3, 2>, strides = array<i64: 2, 2>, pads = array<i64: 1, 0, 1, 0>, ") +
          attributes;
      REQUIRE(check("lp_pool", isLast, 2, {9, 10}, 20, {5, 5}, window) == "");
      REQUIRE(check("lp_pool", isLast, 1, {9, 10}, 3, {5, 5}, window, "f16") == "");
    }
}

TEST_CASE("pools agree on every target") {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    REQUIRE(check("max_pool", true, 1, {8, 10}, 20, {4, 5},
                  "kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>", "f32", target) == "");
}
