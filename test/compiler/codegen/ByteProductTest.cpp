// Products and convolutions of 8-bit integers against their reference kernels, to the last bit.
#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

const char *targets[] = {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

Input bytesOf(const Shape &shape, const std::string &element, bool isFrozen = false) {
  bool isSigned = element[0] == 'i';
  return {shape, element, isFrozen, isSigned ? -128.0 : 0.0, isSigned ? 127.0 : 255.0};
}

/// matmul_integer of two inputs, the right one (`isFrozen`: a constant) transposed before if asked for.
FusedCase product(const Shape &a, const Shape &b, const Shape &r, const std::string &left, const std::string &right,
                  bool hasZeros, bool isFrozen, bool isTransposed = false) {
  FusedCase c;
  Shape stored = b, one{};
  if (isTransposed)
    std::swap(stored[b.size() - 1], stored[b.size() - 2]);
  c.inputs = {bytesOf(a, left), bytesOf(stored, right, isFrozen)};
  std::string second = "%1", names, types;
  if (isTransposed) {
    std::string perm = b.size() == 2 ? "1, 0" : "0, 2, 1";
    c.body = "%b = firn.transpose %1 {perm = array<i64: " + perm + ">} : (" + typeText(stored, right) + ") -> " +
             typeText(b, right) + "\n";
    second = "%b";
  }
  if (hasZeros) {
    c.inputs.push_back(bytesOf(one, left));
    c.inputs.push_back(bytesOf({b.back()}, right));
    names = ", %2, %3";
    types = ", " + typeText(one, left) + ", " + typeText({b.back()}, right);
  }
  c.body += "%p = firn.matmul_integer %0, " + second + names + " : (" + typeText(a, left) + ", " + typeText(b, right) +
            types + ") -> " + typeText(r, "i32") + "\nfirn.yield %p : " + typeText(r, "i32");
  c.result = r;
  c.resultElement = "i32";
  c.tolerance = 0;
  return c;
}

struct Conv {
  Shape input; // N, spatial, C
  int64_t outputs, group;
  std::vector<int64_t> kernel, strides, dilations, pads;
  Shape result;
};

std::string list(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "array<i64: " + text + ">";
}

FusedCase convolution(const Conv &conv, const std::string &left, const std::string &right, int zeros,
                      bool isFrozen = true) {
  FusedCase c;
  Shape weight{conv.outputs, conv.input.back().value / conv.group}, one{}, channels{conv.outputs};
  for (int64_t size : conv.kernel)
    weight.push_back(size);
  Shape zeroShape = zeros == 2 ? channels : one;
  c.inputs = {bytesOf(conv.input, left), bytesOf(weight, right, isFrozen)};
  std::string names, types;
  if (zeros) {
    c.inputs.push_back(bytesOf(one, left));
    c.inputs.push_back(bytesOf(zeroShape, right));
    names = ", %2, %3";
    types = ", " + typeText(one, left) + ", " + typeText(zeroShape, right);
  }
  c.body = "%p = firn.conv_integer %0, %1" + names + " {layout = \"nhwc\", group = " + std::to_string(conv.group) +
           " : i64, kernel_shape = " + list(conv.kernel) + ", strides = " + list(conv.strides) +
           ", dilations = " + list(conv.dilations) + ", pads = " + list(conv.pads) + "} : (" +
           typeText(conv.input, left) + ", " + typeText(weight, right) + types + ") -> " +
           typeText(conv.result, "i32") + "\nfirn.yield %p : " + typeText(conv.result, "i32");
  c.result = conv.result;
  c.resultElement = "i32";
  c.tolerance = 0;
  return c;
}

const std::pair<const char *, const char *> signs[] = {{"ui8", "i8"}, {"i8", "i8"}, {"ui8", "ui8"}, {"i8", "ui8"}};

} // namespace

TEST_CASE("computed right sides of byte products agree for signs, zero points and odd sizes") {
  for (const char *target : targets)
    for (auto [left, right] : signs)
      for (bool isTransposed : {false, true}) {
        INFO(target << " " << left << " " << right << " " << isTransposed);
        FusedCase c = product({7, 37}, {37, 21}, {7, 21}, left, right, true, false, isTransposed);
        c.target = target;
        REQUIRE(check(c) == "");
        c = product({2, 5, 64}, {2, 64, 70}, {2, 5, 70}, left, right, false, false, isTransposed);
        c.target = target;
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("byte products of dynamic sizes agree, deep ones in pieces") {
  for (const char *target : {"native", "x86-64-v3"})
    for (bool isTransposed : {false, true})
      for (int64_t depth : {1, 30, 1024, 2055})
        for (int64_t m : {1, 19}) {
          FusedCase c =
              product({"b", "m", "k"}, {"b", "k", "n"}, {"b", "m", "n"}, "i8", "ui8", true, false, isTransposed);
          c.sizes = {{"b", 2}, {"m", m}, {"k", depth}, {"n", 33}};
          c.target = target;
          INFO(target << " " << isTransposed << " " << depth << " " << m);
          REQUIRE(check(c) == "");
        }
}

TEST_CASE("left sides of byte products with strides are staged") {
  Shape a{40, 9}, t{9, 40}, b{40, 50}, r{9, 50};
  for (const char *target : targets) {
    FusedCase c = product(t, b, r, "ui8", "i8", false, true);
    c.inputs[0] = bytesOf(a, "ui8");
    c.body = "%a = firn.transpose %0 {perm = array<i64: 1, 0>} : (" + typeText(a, "ui8") + ") -> " +
             typeText(t, "ui8") + "\n%p = firn.matmul_integer %a, %1 : (" + typeText(t, "ui8") + ", " +
             typeText(b, "i8") + ") -> " + typeText(r, "i32") + "\nfirn.yield %p : " + typeText(r, "i32");
    c.target = target;
    REQUIRE(check(c) == "");
  }
}

TEST_CASE("integer convolutions agree for signs and zero points, padding included") {
  Conv padded{{2, 9, 11, 6}, 21, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {2, 9, 11, 21}};
  for (const char *target : targets)
    for (auto [left, right] : signs)
      for (int zeros : {0, 1, 2}) {
        FusedCase c = convolution(padded, left, right, zeros);
        c.target = target;
        INFO(target << " " << left << " " << right << " " << zeros);
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("integer convolutions of all forms agree, their weight a constant or computed") {
  const Conv forms[] = {
      {{1, 14, 14, 64}, 70, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 14, 14, 70}},  // pixelwise
      {{1, 14, 15, 64}, 33, 1, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 7, 8, 33}},    // of every second pixel
      {{1, 30, 30, 3}, 32, 1, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, {1, 15, 15, 32}},   // a first layer
      {{1, 12, 12, 24}, 24, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 12, 12, 24}}, // depthwise
      {{1, 12, 12, 24}, 48, 24, {3, 3}, {2, 1}, {1, 2}, {1, 2, 1, 2}, {1, 6, 12, 48}},  // two outputs a channel
      {{2, 10, 10, 12}, 20, 4, {3, 5}, {1, 1}, {2, 1}, {2, 0, 0, 2}, {2, 8, 8, 20}},    // groups
      {{1, 40, 10}, 9, 1, {5}, {3}, {1}, {2, 2}, {1, 14, 9}},                           // one axis
      {{1, 5, 6, 7, 5}, 6, 1, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {1, 1, 0, 0, 1, 2}, {1, 5, 3, 5, 6}},
      {{"n", "h", "w", 8}, 16, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {"n", "h", "w", 16}},
  };
  for (const char *target : {"native", "x86-64-v3"})
    for (bool isFrozen : {true, false})
      for (const Conv &conv : forms) {
        FusedCase c = convolution(conv, "ui8", "i8", 2, isFrozen);
        c.sizes = {{"n", 2}, {"h", 9}, {"w", 13}};
        c.target = target;
        INFO(target << " " << c.body);
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("a byte product is requantised in registers") {
  for (const char *target : targets) {
    Shape a{13, 60}, b{60, 34}, r{13, 34}, channels{34}, one{};
    FusedCase c = product(a, b, r, "ui8", "i8", true, true);
    c.inputs.push_back({channels, "f32", true, 1e-4, 1e-3});
    c.inputs.push_back(bytesOf(one, "i8"));
    std::string i32 = typeText(r, "i32"), f32 = typeText(r), i8 = typeText(r, "i8");
    c.body = "%p = firn.matmul_integer %0, %1, %2, %3 : (" + typeText(a, "ui8") + ", " + typeText(b, "i8") + ", " +
             typeText(one, "ui8") + ", " + typeText(channels, "i8") + ") -> " + i32 +
             "\n%f = firn.cast %p {to = 1 : i64} : (" + i32 + ") -> " + f32 + "\n%s = firn.mul %f, %4 : (" + f32 +
             ", " + typeText(channels) + ") -> " + f32 +
             "\n%o = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>\n%q = firn.quantize_linear %s, %o, "
             "%5 : (" +
             f32 + ", " + typeText(one) + ", " + typeText(one, "i8") + ") -> " + i8 + "\nfirn.yield %q : " + i8;
    c.resultElement = "i8";
    c.target = target;
    REQUIRE(check(c) == "");
  }
}
