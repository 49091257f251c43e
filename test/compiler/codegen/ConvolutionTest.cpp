#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <memory>

using namespace firn::test;

namespace {

struct Conv {
  int64_t batch = 1;
  std::vector<int64_t> size; // spatial
  int64_t channels = 4, outputs = 8, group = 1;
  std::vector<int64_t> kernel, strides = {}, dilations = {}, pads = {};
  std::string autoPad = "NOTSET";
  bool isDynamic = false; // batch, height and width are symbols
  std::string element = "f32";
  std::string activation = "relu";
};

std::string list(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "array<i64: " + text + ">";
}

FusedCase build(Conv c) {
  size_t spatial = c.size.size();
  auto fill = [&](std::vector<int64_t> &values, size_t count, int64_t value) {
    if (values.empty())
      values.assign(count, value);
  };
  fill(c.strides, spatial, 1);
  fill(c.dilations, spatial, 1);
  fill(c.pads, 2 * spatial, 0);
  FusedCase fused;
  Shape x{c.batch}, w{c.outputs, c.channels / c.group}, r{c.batch};
  const char *names[] = {"d", "h", "w"};
  if (c.isDynamic) {
    x[0] = r[0] = "n";
    fused.sizes["n"] = c.batch;
  }
  for (size_t i = 0; i < spatial; ++i) {
    int64_t reach = (c.kernel[i] - 1) * c.dilations[i] + 1;
    int64_t out = c.autoPad == "NOTSET"  ? (c.size[i] + c.pads[i] + c.pads[i + spatial] - reach) / c.strides[i] + 1
                  : c.autoPad == "VALID" ? (c.size[i] - reach) / c.strides[i] + 1
                                         : (c.size[i] + c.strides[i] - 1) / c.strides[i];
    w.push_back(c.kernel[i]);
    if (c.isDynamic) {
      std::string name = names[3 - spatial + i];
      fused.sizes[name] = c.size[i];
      x.push_back(names[3 - spatial + i]);
      int64_t total = c.pads[i] + c.pads[i + spatial] - reach;
      std::string inner = total == 0  ? name
                          : total > 0 ? name + "+" + std::to_string(total)
                                      : name + "-" + std::to_string(-total);
      std::string text =
          c.strides[i] == 1
              ? (total + 1 == 0 ? name : name + (total + 1 > 0 ? "+" : "-") + std::to_string(std::abs(total + 1)))
              : "floordiv(" + inner + ", " + std::to_string(c.strides[i]) + ")+1";
      static std::vector<std::unique_ptr<std::string>> kept;
      kept.push_back(std::make_unique<std::string>(text));
      r.push_back(kept.back()->c_str());
    } else {
      x.push_back(c.size[i]);
      r.push_back(out);
    }
  }
  x.push_back(c.channels);
  r.push_back(c.outputs);
  Shape bias{c.outputs};
  std::string t = typeText(r, c.element);
  fused.inputs = {{x, c.element}, {w, c.element, true}, {bias, c.element}};
  fused.body = "%p = firn.conv %0, %1, %2 {layout = \"nhwc\", group = " + std::to_string(c.group) +
               " : i64, auto_pad = \"" + c.autoPad + "\", pads = " + list(c.pads) + ", strides = " + list(c.strides) +
               ", dilations = " + list(c.dilations) + "} : (" + typeText(x, c.element) + ", " + typeText(w, c.element) +
               ", " + typeText(bias, c.element) + ") -> " + t + "\n%t = firn." + c.activation + " %p : (" + t +
               ") -> " + t + "\nfirn.yield %t : " + t;
  fused.result = r;
  fused.resultElement = c.element;
  return fused;
}

std::string check(const Conv &c) { return firn::test::check(build(c)); }

} // namespace

TEST_CASE("a convolution over single pixels is a matrix product") {
  REQUIRE(check({2, {9, 7}, 20, 70, 1, {1, 1}}) == "");
  REQUIRE(check({2, {9, 8}, 20, 24, 1, {1, 1}, {2, 3}}) == "");
  REQUIRE(check({1, {11}, 5, 3, 1, {1}}) == "");
}

TEST_CASE("a convolution agrees for kernels, strides, dilations and pads") {
  REQUIRE(check({1, {8, 9}, 4, 8, 1, {3, 3}}) == "");
  REQUIRE(check({2, {13, 14}, 6, 70, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {23, 21}, 3, 32, 1, {7, 7}, {2, 2}, {}, {3, 3, 3, 3}}) == "");
  REQUIRE(check({1, {12, 15}, 5, 17, 1, {3, 5}, {2, 1}, {2, 3}, {2, 6, 1, 5}}) == "");
  REQUIRE(check({1, {7, 7}, 64, 100, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({3, {3, 2}, 16, 40, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {5, 40}, 8, 16, 1, {1, 3}, {}, {}, {0, 1, 0, 1}}) == "");
}

TEST_CASE("a convolution agrees over one and three spatial axes") {
  REQUIRE(check({2, {50}, 12, 33, 1, {5}, {}, {}, {2, 2}}) == "");
  REQUIRE(check({1, {64}, 2, 16, 1, {9}, {4}, {}, {4, 4}}) == "");
  REQUIRE(check({1, {5, 6, 7}, 3, 20, 1, {3, 2, 3}, {1, 2, 1}, {}, {1, 0, 1, 1, 1, 1}}) == "");
}

TEST_CASE("a convolution agrees with groups") {
  REQUIRE(check({1, {9, 9}, 12, 36, 3, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {9, 9}, 6, 12, 6, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({2, {6, 6}, 8, 8, 2, {1, 1}}) == "");
}

TEST_CASE("a convolution pads by rule") {
  for (const char *rule : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    REQUIRE(check({1, {9, 10}, 4, 8, 1, {3, 4}, {2, 1}, {}, {}, rule}) == "");
    REQUIRE(check({1, {9, 10}, 24, 24, 24, {3, 4}, {2, 1}, {}, {}, rule}) == "");
  }
}

TEST_CASE("a convolution of dynamic sizes agrees") {
  for (int64_t size : {1, 3, 8, 13}) {
    REQUIRE(check({2, {size, size + 2}, 6, 20, 1, {3, 3}, {}, {}, {1, 1, 1, 1}, "NOTSET", true}) == "");
    REQUIRE(check({1, {size + 2, size}, 6, 20, 1, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, "NOTSET", true}) == "");
    REQUIRE(check({1, {size, size}, 20, 20, 20, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, "NOTSET", true}) == "");
    REQUIRE(check({1, {size, 7}, 12, 12, 1, {1, 1}, {}, {}, {}, "NOTSET", true}) == "");
  }
}

TEST_CASE("a depthwise convolution agrees for odd channels, strides and dilations") {
  REQUIRE(check({1, {14, 14}, 40, 40, 40, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({2, {15, 13}, 24, 24, 24, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {12, 12}, 16, 16, 16, {5, 5}, {}, {2, 2}, {4, 4, 4, 4}}) == "");
  REQUIRE(check({1, {30}, 19, 19, 19, {7}, {}, {}, {3, 3}}) == "");
  REQUIRE(check({1, {2, 2}, 32, 32, 32, {5, 5}, {}, {}, {2, 2, 2, 2}}) == "");
  REQUIRE(check({1, {4, 5, 6}, 17, 17, 17, {3, 3, 3}, {}, {}, {1, 1, 1, 1, 1, 1}}) == "");
}

TEST_CASE("a convolution agrees on every target") {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    FusedCase c = build({1, {9, 10}, 6, 40, 1, {3, 3}, {}, {}, {1, 1, 1, 1}});
    c.target = target;
    REQUIRE(firn::test::check(c) == "");
    c = build({1, {9, 10}, 24, 24, 24, {3, 3}, {}, {}, {1, 1, 1, 1}});
    c.target = target;
    REQUIRE(firn::test::check(c) == "");
  }
}

TEST_CASE("a convolution with a long epilogue agrees") {
  Conv c{1, {9, 9}, 12, 36, 1, {3, 3}, {}, {}, {1, 1, 1, 1}};
  c.activation = "sigmoid";
  REQUIRE(check(c) == "");
  c = {1, {9, 9}, 36, 36, 36, {3, 3}, {}, {}, {1, 1, 1, 1}};
  c.activation = "gelu";
  REQUIRE(check(c) == "");
}

namespace {

/// A transposed convolution of an image of `size` to `out`.
std::string checkTransposed(int64_t batch, std::vector<int64_t> size, std::vector<int64_t> out, int64_t channels,
                            int64_t outputs, int64_t group, std::vector<int64_t> kernel, const std::string &attributes,
                            bool isDynamic = false) {
  Shape x{batch}, w{channels, outputs / group}, r{batch}, bias{outputs};
  FusedCase c;
  for (size_t i = 0; i < size.size(); ++i) {
    w.push_back(kernel[i]);
    if (isDynamic) { // of stride and kernel 2
      x.push_back(i ? "w" : "h");
      r.push_back(i ? "2*w" : "2*h");
      c.sizes[i ? "w" : "h"] = size[i];
    } else {
      x.push_back(size[i]);
      r.push_back(out[i]);
    }
  }
  x.push_back(channels);
  r.push_back(outputs);
  std::string t = typeText(r);
  c.inputs = {{x}, {w, "f32", true}, {bias}};
  c.body = "%p = firn.conv_transpose %0, %1, %2 {layout = \"nhwc\", group = " + std::to_string(group) + " : i64" +
           (attributes.empty() ? "" : ", ") + attributes + "} : (" + typeText(x) + ", " + typeText(w) + ", " +
           typeText(bias) + ") -> " + t + "\n%t = firn.relu %p : (" + t + ") -> " + t + "\nfirn.yield %t : " + t;
  c.result = r;
  return firn::test::check(c);
}

} // namespace

TEST_CASE("a convolution of few outputs agrees") {
  REQUIRE(check({1, {9, 21}, 33, 1, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({2, {600}, 1, 1, 1, {256}, {2}}) == "");
  REQUIRE(check({1, {9, 40}, 64, 3, 1, {1, 1}}) == "");
  REQUIRE(check({1, {9, 19}, 66, 2, 2, {3, 3}, {2, 1}, {1, 2}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {5, 19}, 40, 2, 1, {3, 3}, {}, {}, {1, 1, 1, 1}, "NOTSET", true}) == "");
  REQUIRE(check({1, {3, 5, 18}, 24, 1, 1, {2, 3, 3}, {}, {}, {0, 1, 1, 1, 1, 1}}) == "");
  Conv c{1, {9, 21}, 33, 1, 1, {3, 3}, {}, {}, {1, 1, 1, 1}};
  c.activation = "sigmoid";
  REQUIRE(check(c) == "");
}

TEST_CASE("a convolution of outputs for half a vector agrees") {
  REQUIRE(check({1, {9, 21}, 8, 8, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {9, 21}, 16, 24, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
  REQUIRE(check({1, {9, 21}, 16, 6, 1, {3, 3}, {}, {}, {1, 1, 1, 1}}) == "");
}

TEST_CASE("a transposed convolution agrees for kernels, strides, dilations, pads and groups") {
  REQUIRE(checkTransposed(1, {5, 6}, {10, 12}, 12, 20, 1, {2, 2}, "strides = array<i64: 2, 2>") == "");
  REQUIRE(checkTransposed(2, {5, 6}, {7, 8}, 5, 9, 1, {3, 3}, "") == "");
  REQUIRE(checkTransposed(1, {5, 6}, {9, 11}, 6, 33, 1, {3, 3},
                          "strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>") == "");
  REQUIRE(checkTransposed(1, {7}, {31}, 4, 8, 2, {5}, "strides = array<i64: 4>, output_padding = array<i64: 2>") == "");
  REQUIRE(checkTransposed(1, {4, 4}, {10, 11}, 3, 5, 1, {3, 2},
                          "strides = array<i64: 2, 3>, dilations = array<i64: 2, 1>, pads = array<i64: 0, 0, 1, 0>") ==
          "");
  REQUIRE(checkTransposed(1, {5, 6}, {10, 18}, 4, 4, 1, {3, 4},
                          "strides = array<i64: 2, 3>, auto_pad = \"SAME_UPPER\"") == "");
  REQUIRE(checkTransposed(1, {5, 20}, {10, 40}, 32, 1, 1, {2, 2}, "strides = array<i64: 2, 2>") == "");
  REQUIRE(checkTransposed(1, {5}, {9}, 4, 4, 1, {1}, "strides = array<i64: 2>") == "");
}

TEST_CASE("a transposed convolution of dynamic sizes agrees") {
  REQUIRE(checkTransposed(1, {5, 6}, {}, 12, 20, 1, {2, 2}, "strides = array<i64: 2, 2>", true) == "");
}

TEST_CASE("a transposed convolution to a given shape cuts what is too much and ends in elements without taps") {
  const char *attributes = "kernel_shape = array<i64: 3, 3>, strides = array<i64: 3, 2>, ";
  REQUIRE(checkTransposed(1, {3, 3}, {10, 8}, 1, 2, 1, {3, 3},
                          std::string(attributes) + "output_shape = array<i64: 10, 8>") == "");
  REQUIRE(checkTransposed(1, {3, 3}, {8, 6}, 1, 2, 1, {3, 3},
                          std::string(attributes) + "output_shape = array<i64: 8, 6>") == "");
}
