// Kernels of kind "map" against the reference kernels of their bodies.
#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace firn::test;

namespace {

const char *const targets[] = {"x86-64-v2", "x86-64-v3", "native"};

/// The case on every vector width that the host has.
std::string checkAll(FusedCase fused) {
  fused.kind = "map";
  for (const char *target : targets) {
    fused.target = target;
    if (std::string problem = check(fused); !problem.empty())
      return std::string(target) + ": " + problem;
  }
  return "";
}

/// One operation of one operand.
FusedCase unary(const std::string &op, const std::string &attributes, const Shape &shape, double low, double high,
                const std::string &element = "f32", const std::string &resultElement = "") {
  FusedCase fused;
  std::string to = resultElement.empty() ? element : resultElement;
  fused.inputs = {{shape, element, false, low, high}};
  fused.result = shape;
  fused.resultElement = to;
  std::string from = typeText(shape, element), result = typeText(shape, to);
  fused.body =
      "%r = firn." + op + " %0 " + attributes + " : (" + from + ") -> " + result + "\nfirn.yield %r : " + result;
  return fused;
}

FusedCase binary(const std::string &op, const std::string &attributes, const Shape &a, const Shape &b, const Shape &to,
                 const std::string &element = "f32", const std::string &resultElement = "") {
  FusedCase fused;
  std::string result = typeText(to, resultElement.empty() ? element : resultElement);
  fused.inputs = {{a, element, false, -3, 3}, {b, element, false, -3, 3}};
  fused.result = to;
  fused.resultElement = resultElement.empty() ? element : resultElement;
  fused.body = "%r = firn." + op + " %0, %1 " + attributes + " : (" + typeText(a, element) + ", " +
               typeText(b, element) + ") -> " + result + "\nfirn.yield %r : " + result;
  return fused;
}

const double notANumber = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
const std::vector<double> corners = {0.0,  -0.0,  1,     -1,     0.5, -0.5, 1.5,   2.5, -2.5, notANumber,
                                     inf,  -inf,  1e-30, -1e-30, 20,  -20,  90,    -90, 104,  -104,
                                     3e38, -3e38, 1e-40, 0.1,    7.9, -7.9, 127.5, 300};

} // namespace

TEST_CASE("unary functions of f32 agree with the reference") {
  struct Case {
    const char *op, *attributes;
    double low, high;
  };
  const Case cases[] = {{"abs", "", -3, 3},
                        {"neg", "", -3, 3},
                        {"ceil", "", -3, 3},
                        {"floor", "", -3, 3},
                        {"round", "", -3, 3},
                        {"sqrt", "", 0, 9},
                        {"reciprocal", "", 0.1, 3},
                        {"exp", "", -20, 5},
                        {"log", "", 0, 30},
                        {"sin", "", -100, 100},
                        {"cos", "", -100, 100},
                        {"tan", "", -1.4, 1.4},
                        {"asin", "", -1, 1},
                        {"acos", "", -1, 1},
                        {"atan", "", -20, 20},
                        {"sinh", "", -4, 4},
                        {"cosh", "", -4, 4},
                        {"tanh", "", -5, 5},
                        {"asinh", "", -20, 20},
                        {"acosh", "", 1, 20},
                        {"atanh", "", -0.99, 0.99},
                        {"erf", "", -4, 4},
                        {"sign", "", -1, 1},
                        {"sigmoid", "", -9, 9},
                        {"relu", "", -3, 3},
                        {"hard_swish", "", -5, 5},
                        {"mish", "", -9, 9},
                        {"softplus", "", -9, 9},
                        {"softsign", "", -9, 9},
                        {"identity", "", -3, 3},
                        {"leaky_relu", "{alpha = 0.1 : f32}", -3, 3},
                        {"elu", "{alpha = 1.5 : f32}", -3, 3},
                        {"celu", "{alpha = 1.5 : f32}", -3, 3},
                        {"selu", "", -3, 3},
                        {"thresholded_relu", "", -3, 3},
                        {"swish", "", -9, 9},
                        {"hard_sigmoid", "", -5, 5},
                        {"gelu", "", -5, 5},
                        {"gelu", "{approximate = \"tanh\"}", -5, 5}};
  for (const Case &c : cases) {
    INFO(c.op << " " << c.attributes);
    FusedCase fused = unary(c.op, c.attributes, {3, 67}, c.low, c.high);
    fused.tolerance = 2e-6;
    CHECK(checkAll(fused) == "");
  }
}

TEST_CASE("unary functions keep NaN, infinities and denormals") {
  for (const char *op :
       {"abs",  "neg",   "ceil",    "floor", "round",      "sqrt",  "reciprocal", "exp",      "log", "tanh",
        "erf",  "sign",  "sigmoid", "relu",  "hard_swish", "mish",  "softplus",   "softsign", "elu", "selu",
        "gelu", "swish", "atan",    "sinh",  "cosh",       "asinh", "leaky_relu", "sin"}) {
    INFO(op);
    FusedCase fused = unary(op, "", {int64_t(corners.size())}, 0, 1);
    if (std::string(op) == "sin") // finite values beyond 1e9 are out of contract
      fused.inputs[0].values = {0.0, -0.0, notANumber, inf, -inf, 1e6, -1e6};
    else
      fused.inputs[0].values = corners;
    fused.workers = {1};
    fused.tolerance = 3e-7;
    CHECK(checkAll(fused) == "");
  }
}

TEST_CASE("operands broadcast") {
  CHECK(checkAll(binary("add", "", {4, 5, 33}, {4, 5, 33}, {4, 5, 33})) == "");
  CHECK(checkAll(binary("sub", "", {4, 5, 33}, {33}, {4, 5, 33})) == "");
  CHECK(checkAll(binary("mul", "", {4, 5, 33}, {4, 1, 33}, {4, 5, 33})) == "");
  CHECK(checkAll(binary("div", "", {4, 5, 33}, {4, 5, 1}, {4, 5, 33})) == "");
  CHECK(checkAll(binary("add", "", {4, 1, 33}, {5, 1}, {4, 5, 33})) == "");
  CHECK(checkAll(binary("max", "", {}, {7}, {7})) == "");
  CHECK(checkAll(binary("min", "", {1}, {}, {1})) == "");
  CHECK(checkAll(binary("add", "", {}, {}, {})) == "");
}

TEST_CASE("symbolic dimensions are found while running") {
  FusedCase fused = binary("add", "", {"n", 5, "m"}, {"m"}, {"n", 5, "m"});
  for (int64_t m : {1, 7, 16, 100})
    for (int64_t n : {0, 1, 3}) {
      fused.sizes = {{"n", n}, {"m", m}};
      CHECK(checkAll(fused) == "");
    }
}

TEST_CASE("integers wrap, and division by zero gives zero") {
  for (const char *element : {"i8", "ui8", "i32", "i64"})
    for (const char *op : {"add", "sub", "mul", "div", "max", "min"}) {
      INFO(op << " " << element);
      FusedCase fused = binary(op, "", {70}, {70}, {70}, element);
      fused.inputs[0].values = {100, 3, 0, 7, 90, 13};
      fused.inputs[1].values = {100, 0, 1, 2, 5};
      if (element[0] == 'i') {
        fused.inputs[0].values.push_back(-128);
        fused.inputs[1].values.push_back(-1);
      }
      CHECK(checkAll(fused) == "");
    }
  FusedCase mod = binary("mod", "", {50}, {50}, {50}, "i32");
  mod.inputs[0].values = {7, -7, 7, -7, 5, 0};
  mod.inputs[1].values = {3, 3, -3, -3, 0, -1, 1};
  CHECK(checkAll(mod) == "");
  CHECK(checkAll(binary("mod", "{fmod = 1 : i64}", {50}, {50}, {50})) == "");
  FusedCase floored = binary("mod", "{fmod = 0 : i64}", {50}, {50}, {50}, "i64");
  floored.inputs[1].values = {3, -2, 0, -1};
  CHECK(checkAll(floored) == "");
}

TEST_CASE("casts saturate, round and wrap as the reference does") {
  const std::pair<const char *, int> types[] = {{"f32", 1}, {"ui8", 2},  {"i8", 3},   {"i32", 6},  {"i64", 7},
                                                {"i1", 9},  {"f16", 10}, {"f64", 11}, {"bf16", 16}};
  for (auto [from, fromNumber] : types)
    for (auto [to, number] : types) {
      INFO(from << " to " << to);
      FusedCase fused = unary("cast", "{to = " + std::to_string(number) + " : i64}", {45}, 0, 1, from, to);
      fused.inputs[0].values = {0, 1, 2, 3, 100, 127};
      if (from[0] == 'f' || from[0] == 'b')
        fused.inputs[0].values = {0.5, -0.5, 1.5,  2.5,   notANumber, 3e4,  -3e4,  255.5,
                                  256, -129, 1e-3, 65519, 0.1,        1e10, -1e10, 1e20};
      else if (from[0] == 'i' && from[1] != '1')
        fused.inputs[0].values = {0, 1, -1, 100, -100, 127, -128};
      fused.tolerance = 1e-12;
      CHECK(checkAll(fused) == "");
    }
}

TEST_CASE("half precision rounds once an operation") {
  for (const char *element : {"f16", "bf16"}) {
    FusedCase fused;
    Shape shape = {5, 21};
    std::string type = typeText(shape, element);
    fused.inputs = {{shape, element, false, -3, 3}, {shape, element, false, -3, 3}};
    fused.result = shape;
    fused.resultElement = element;
    fused.body = "%s = firn.add %0, %1 : (" + type + ", " + type + ") -> " + type + "\n%p = firn.mul %s, %0 : (" +
                 type + ", " + type + ") -> " + type + "\nfirn.yield %p : " + type;
    fused.tolerance = 0;
    CHECK(checkAll(fused) == "");
  }
}

TEST_CASE("comparisons, logic and where") {
  for (const char *op : {"equal", "greater", "less", "greater_or_equal", "less_or_equal"})
    for (const char *element : {"f32", "i64", "i8"}) {
      FusedCase fused = binary(op, "", {3, 30}, {30}, {3, 30}, element, "i1");
      fused.inputs[0].values = {1, 2, 3};
      fused.inputs[1].values = {2, 2, 1, 3};
      CHECK(checkAll(fused) == "");
    }
  for (const char *op : {"and", "or", "xor"}) {
    FusedCase fused = binary(op, "", {40}, {40}, {40}, "i1");
    fused.inputs[0].values = {0, 1, 1};
    fused.inputs[1].values = {0, 1};
    CHECK(checkAll(fused) == "");
  }
  FusedCase where;
  where.inputs = {{{4, 1}, "i1", false, 0, 1, {0, 1, 1, 0}}, {{4, 33}}, {{33}}};
  where.result = {4, 33};
  where.body = "%r = firn.where %0, %1, %2 : (tensor<4x1xi1>, tensor<4x33xf32>, tensor<33xf32>) -> tensor<4x33xf32>\n"
               "firn.yield %r : tensor<4x33xf32>";
  CHECK(checkAll(where) == "");
}

TEST_CASE("pow, clip, shifts") {
  for (double exponent : {2.0, 3.0, 0.5, -0.5, -1.0, 1.7, 0.0, 10.0}) {
    FusedCase fused;
    fused.inputs = {{{50}, "f32", false, 0.01, 5}};
    fused.result = {50};
    fused.body =
        "%c = firn.constant {value = dense<" + std::to_string(exponent) +
        "> : tensor<f32>} : tensor<f32>\n"
        "%r = firn.pow %0, %c : (tensor<50xf32>, tensor<f32>) -> tensor<50xf32>\nfirn.yield %r : tensor<50xf32>";
    fused.tolerance = 3e-7;
    INFO(exponent);
    CHECK(checkAll(fused) == "");
  }
  FusedCase general = binary("pow", "", {60}, {60}, {60});
  general.inputs[0].values = {2, -2, 0, -0.0, inf, -inf, 1, -1, 0.5, notANumber, 1e-3};
  general.inputs[1].values = {3, 2, -3, 0.5, 0, inf, -inf, notANumber, 1, -1, 2.5, -2, 7};
  general.tolerance = 3e-7;
  CHECK(checkAll(general) == "");
  FusedCase clip;
  clip.inputs = {{{70}, "f32", false, -3, 3}, {{}, "f32", false, -1, -1}};
  clip.result = {70};
  clip.body = "%c = firn.constant {value = dense<1.5> : tensor<f32>} : tensor<f32>\n%r = firn.clip %0, %1, %c : "
              "(tensor<70xf32>, tensor<f32>, tensor<f32>) -> tensor<70xf32>\nfirn.yield %r : tensor<70xf32>";
  CHECK(checkAll(clip) == "");
  FusedCase shift = binary("bit_shift", "{direction = \"LEFT\"}", {33}, {33}, {33}, "ui8");
  shift.inputs[0].values = {1, 3, 255};
  shift.inputs[1].values = {1, 2, 7, 9};
  CHECK(checkAll(shift) == "");
}

TEST_CASE("transpositions") {
  auto transpose = [](Shape from, Shape to, const std::string &perm, const std::string &element = "f32") {
    FusedCase fused;
    fused.inputs = {{from, element}};
    fused.result = to;
    fused.resultElement = element;
    fused.body = "%r = firn.transpose %0 {perm = array<i64: " + perm + ">} : (" + typeText(from, element) + ") -> " +
                 typeText(to, element) + "\nfirn.yield %r : " + typeText(to, element);
    return fused;
  };
  CHECK(checkAll(transpose({2, 24, 7, 9}, {2, 7, 9, 24}, "0, 2, 3, 1")) == "");
  CHECK(checkAll(transpose({2, 7, 9, 24}, {2, 24, 7, 9}, "0, 3, 1, 2")) == "");
  CHECK(checkAll(transpose({1, 64, 40, 40}, {1, 40, 40, 64}, "0, 2, 3, 1")) == "");
  CHECK(checkAll(transpose({3, 5, 4}, {4, 5, 3}, "2, 1, 0")) == "");
  CHECK(checkAll(transpose({2, 3, 4, 40}, {2, 4, 3, 40}, "0, 2, 1, 3")) == "");
  CHECK(checkAll(transpose({33, 47}, {47, 33}, "1, 0")) == "");
  CHECK(checkAll(transpose({33, 47}, {47, 33}, "1, 0", "i64")) == "");
  CHECK(checkAll(transpose({33, 47}, {47, 33}, "1, 0", "f16")) == "");
  CHECK(checkAll(transpose({33, 47}, {47, 33}, "1, 0", "ui8")) == "");
  FusedCase dynamic = transpose({"n", "m"}, {"m", "n"}, "1, 0");
  for (int64_t n : {1, 8, 19, 32}) {
    dynamic.sizes = {{"n", n}, {"m", 21}};
    CHECK(checkAll(dynamic) == "");
  }
}

TEST_CASE("reshapes cut and merge loops") {
  FusedCase heads; // [batch, seq, 4 * 16] -> [batch, 4, seq, 16]
  heads.inputs = {{{"b", "s", 64}}};
  heads.result = {"b", 4, "s", 16};
  std::string from = typeText({"b", "s", 64}), cut = typeText({"b", "s", 4, 16}), to = typeText({"b", 4, "s", 16});
  heads.body = "%c = firn.reshape %0 : (" + from + ") -> " + cut +
               "\n%t = firn.transpose %c {perm = array<i64: 0, 2, 1, 3>} : (" + cut + ") -> " + to +
               "\nfirn.yield %t : " + to;
  heads.sizes = {{"b", 2}, {"s", 11}};
  CHECK(checkAll(heads) == "");
  FusedCase back; // and back, merging the axes of the result
  back.inputs = {{{"b", 4, "s", 16}}};
  back.result = {"b", "s", 64};
  back.body = "%t = firn.transpose %0 {perm = array<i64: 0, 2, 1, 3>} : (" + to + ") -> " + cut +
              "\n%c = firn.reshape %t : (" + cut + ") -> " + from + "\nfirn.yield %c : " + from;
  back.sizes = heads.sizes;
  CHECK(checkAll(back) == "");
  FusedCase odd; // sizes that do not nest
  odd.inputs = {{{2, 3}, "f32"}, {{3, 2}, "f32"}};
  odd.result = {3, 2};
  odd.body =
      "%t = firn.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
      "%f = firn.reshape %t : (tensor<3x2xf32>) -> tensor<2x3xf32>\n"
      "%u = firn.transpose %f {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
      "%r = firn.add %u, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>\nfirn.yield %r : tensor<3x2xf32>";
  CHECK(checkAll(odd) == "");
}

TEST_CASE("slices, splits, concatenations and pads") {
  FusedCase slice;
  slice.inputs = {{{6, 40}}};
  slice.result = {2, 15};
  slice.body = "%s = firn.constant {value = dense<[4, 37]> : tensor<2xi64>} : tensor<2xi64>\n"
               "%e = firn.constant {value = dense<[-9, 6]> : tensor<2xi64>} : tensor<2xi64>\n"
               "%a = firn.constant {value = dense<[0, 1]> : tensor<2xi64>} : tensor<2xi64>\n"
               "%p = firn.constant {value = dense<[-3, -2]> : tensor<2xi64>} : tensor<2xi64>\n"
               "%r = firn.slice %0, %s, %e, %a, %p : (tensor<6x40xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, "
               "tensor<2xi64>) -> tensor<2x16xf32>\nfirn.yield %r : tensor<2x16xf32>";
  slice.result = {2, 16};
  CHECK(checkAll(slice) == "");
  FusedCase concat;
  concat.inputs = {{{3, 5}}, {{3, 20}}, {{3, 7}}};
  concat.result = {3, 32};
  concat.body =
      "%c = firn.concat %0, %1, %2 {axis = 1 : i64} : (tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x7xf32>) -> "
      "tensor<3x32xf32>\n%r = firn.relu %c : (tensor<3x32xf32>) -> tensor<3x32xf32>\nfirn.yield %r : tensor<3x32xf32>";
  CHECK(checkAll(concat) == "");
  FusedCase dynamic;
  dynamic.inputs = {{{"n", 5}}, {{"m", 5}}};
  dynamic.result = {"m+n", 5};
  std::string n = typeText({"n", 5}), m = typeText({"m", 5}), sum = typeText({"m+n", 5});
  dynamic.body =
      "%c = firn.concat %0, %1 {axis = 0 : i64} : (" + n + ", " + m + ") -> " + sum + "\nfirn.yield %c : " + sum;
  dynamic.sizes = {{"n", 4}, {"m", 9}};
  CHECK(checkAll(dynamic) == "");
  for (const char *mode : {"constant", "reflect", "edge", "wrap"}) {
    FusedCase pad;
    pad.inputs = {{{5, 20}}};
    pad.result = {8, 26};
    pad.body = std::string("%p = firn.constant {value = dense<[1, 2, 2, 4]> : tensor<4xi64>} : tensor<4xi64>\n"
                           "%r = firn.pad %0, %p {mode = \"") +
               mode + "\"} : (tensor<5x20xf32>, tensor<4xi64>) -> tensor<8x26xf32>\nfirn.yield %r : tensor<8x26xf32>";
    INFO(mode);
    CHECK(checkAll(pad) == "");
  }
  FusedCase split;
  split.inputs = {{{4, 30}}};
  split.result = {4, 10};
  split.moreResults = {{{4, 20}, "f32"}};
  split.body = "%z = firn.constant {value = dense<[10, 20]> : tensor<2xi64>} : tensor<2xi64>\n"
               "%r:2 = firn.split %0, %z {axis = 1 : i64} : (tensor<4x30xf32>, tensor<2xi64>) -> (tensor<4x10xf32>, "
               "tensor<4x20xf32>)\nfirn.yield %r#0, %r#1 : tensor<4x10xf32>, tensor<4x20xf32>";
  CHECK(checkAll(split) == "");
}

TEST_CASE("gathers") {
  for (const char *index : {"i64", "i32"}) {
    FusedCase rows;
    rows.inputs = {{{50, 24}}, {{3, 5}, index, false, 0, 1, {0, 49, -1, 7, -50}}};
    rows.result = {3, 5, 24};
    rows.body = "%r = firn.gather %0, %1 {axis = 0 : i64} : (tensor<50x24xf32>, " + typeText({3, 5}, index) +
                ") -> tensor<3x5x24xf32>\nfirn.yield %r : tensor<3x5x24xf32>";
    CHECK(checkAll(rows) == "");
    FusedCase columns;
    columns.inputs = {{{4, 24}}, {{33}, index, false, 0, 1, {0, 23, -1, 7}}};
    columns.result = {4, 33};
    columns.body = "%r = firn.gather %0, %1 {axis = 1 : i64} : (tensor<4x24xf32>, " + typeText({33}, index) +
                   ") -> tensor<4x33xf32>\nfirn.yield %r : tensor<4x33xf32>";
    CHECK(checkAll(columns) == "");
  }
  FusedCase elements;
  elements.inputs = {{{4, 24}}, {{4, 9}, "i64", false, 0, 1, {0, 23, -1, 7}}};
  elements.result = {4, 9};
  elements.body =
      "%r = firn.gather_elements %0, %1 {axis = 1 : i64} : (tensor<4x24xf32>, tensor<4x9xi64>) -> tensor<4x9xf32>\n"
      "firn.yield %r : tensor<4x9xf32>";
  CHECK(checkAll(elements) == "");
  FusedCase tuples;
  tuples.inputs = {{{4, 6, 20}}, {{5, 2}, "i64", false, 0, 1, {0, 5, -1, 2, 3, 1, 2, -6}}};
  tuples.result = {5, 20};
  tuples.body = "%r = firn.gather_nd %0, %1 : (tensor<4x6x20xf32>, tensor<5x2xi64>) -> tensor<5x20xf32>\n"
                "firn.yield %r : tensor<5x20xf32>";
  CHECK(checkAll(tuples) == "");
}

TEST_CASE("expand, tile, trilu, range, depth and space") {
  FusedCase tile;
  tile.inputs = {{{3, 5}}};
  tile.result = {6, 20};
  tile.body =
      "%n = firn.constant {value = dense<[2, 4]> : tensor<2xi64>} : tensor<2xi64>\n"
      "%r = firn.tile %0, %n : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<6x20xf32>\nfirn.yield %r : tensor<6x20xf32>";
  CHECK(checkAll(tile) == "");
  for (int upper : {0, 1}) {
    FusedCase trilu;
    trilu.inputs = {{{2, 21, 19}}};
    trilu.result = {2, 21, 19};
    trilu.body =
        "%k = firn.constant {value = dense<-2> : tensor<i64>} : tensor<i64>\n%r = firn.trilu %0, %k {upper = " +
        std::to_string(upper) +
        " : i64} : (tensor<2x21x19xf32>, tensor<i64>) -> tensor<2x21x19xf32>\n"
        "firn.yield %r : tensor<2x21x19xf32>";
    CHECK(checkAll(trilu) == "");
  }
  FusedCase range;
  range.inputs = {{{}, "f32", false, 0, 1, {1.5}}, {{}, "f32", false, 0, 1, {20}}, {{}, "f32", false, 0, 1, {0.5}}};
  range.result = {37};
  range.body = "%r = firn.range %0, %1, %2 : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<37xf32>\nfirn.yield %r "
               ": tensor<37xf32>";
  CHECK(checkAll(range) == "");
  for (const char *mode : {"DCR", "CRD"}) {
    FusedCase depth;
    depth.inputs = {{{2, 12, 3, 5}}};
    depth.result = {2, 3, 6, 10};
    depth.body = std::string("%r = firn.depth_to_space %0 {blocksize = 2 : i64, mode = \"") + mode +
                 "\"} : (tensor<2x12x3x5xf32>) -> tensor<2x3x6x10xf32>\nfirn.yield %r : tensor<2x3x6x10xf32>";
    CHECK(checkAll(depth) == "");
  }
  FusedCase space;
  space.inputs = {{{2, 3, 6, 10}}};
  space.result = {2, 12, 3, 5};
  space.body = "%r = firn.space_to_depth %0 {blocksize = 2 : i64} : (tensor<2x3x6x10xf32>) -> tensor<2x12x3x5xf32>\n"
               "firn.yield %r : tensor<2x12x3x5xf32>";
  CHECK(checkAll(space) == "");
}

TEST_CASE("resize by nearest and linear interpolation") {
  struct Case {
    const char *mode, *transformation, *nearest;
    double scale;
    int64_t out;
  };
  const Case cases[] = {{"nearest", "asymmetric", "floor", 2, 20},
                        {"nearest", "half_pixel", "round_prefer_floor", 3, 30},
                        {"nearest", "half_pixel", "round_prefer_floor", 1.5, 15},
                        {"nearest", "asymmetric", "ceil", 0.5, 5},
                        {"nearest", "align_corners", "round_prefer_ceil", 1.7, 17},
                        {"linear", "half_pixel", "floor", 2, 20},
                        {"linear", "align_corners", "floor", 2, 20},
                        {"linear", "asymmetric", "floor", 1.5, 15}};
  for (const Case &c : cases) {
    FusedCase resize;
    resize.inputs = {{{1, 3, 10, 10}}};
    resize.result = {1, 3, c.out, c.out};
    std::string to = typeText(resize.result);
    resize.body = "%e = firn.absent : none\n%s = firn.constant {value = dense<[1.0, 1.0, " + std::to_string(c.scale) +
                  ", " + std::to_string(c.scale) +
                  "]> : tensor<4xf32>} : tensor<4xf32>\n%r = firn.resize %0, %e, %s {mode = \"" + c.mode +
                  "\", coordinate_transformation_mode = \"" + c.transformation + "\", nearest_mode = \"" + c.nearest +
                  "\"} : (tensor<1x3x10x10xf32>, none, tensor<4xf32>) -> " + to + "\nfirn.yield %r : " + to;
    INFO(c.mode << " " << c.transformation << " " << c.nearest << " " << c.scale);
    CHECK(checkAll(resize) == "");
  }
}

TEST_CASE("quantisation per tensor and per channel") {
  FusedCase quantize;
  quantize.inputs = {{{4, 50}, "f32", false, -3, 3}, {{4}, "f32", false, 0.01, 0.03}, {{4}, "ui8", false, 100, 140}};
  quantize.result = {4, 50};
  quantize.resultElement = "ui8";
  quantize.body =
      "%r = firn.quantize_linear %0, %1, %2 {axis = 0 : i64} : (tensor<4x50xf32>, tensor<4xf32>, tensor<4xui8>) -> "
      "tensor<4x50xui8>\nfirn.yield %r : tensor<4x50xui8>";
  CHECK(checkAll(quantize) == "");
  FusedCase dequantize;
  dequantize.inputs = {{{4, 50}, "i8", false, -128, 127}, {{}, "f32", false, 0.01, 0.03}, {{}, "i8", false, -3, 3}};
  dequantize.result = {4, 50};
  dequantize.body =
      "%r = firn.dequantize_linear %0, %1, %2 : (tensor<4x50xi8>, tensor<f32>, tensor<i8>) -> tensor<4x50xf32>\n"
      "firn.yield %r : tensor<4x50xf32>";
  CHECK(checkAll(dequantize) == "");
}

TEST_CASE("one-hot along any axis") {
  for (int axis : {-1, 0}) {
    FusedCase hot;
    hot.inputs = {{{5, 3}, "i64", false, 0, 1, {0, 3, -1, 18, 19, -19, -20}}, {{2}, "f32", false, 0, 1, {-1, 2}}};
    hot.result = axis == 0 ? Shape{19, 5, 3} : Shape{5, 3, 19};
    std::string to = typeText(hot.result);
    hot.body =
        "%d = firn.constant {value = dense<19> : tensor<i64>} : tensor<i64>\n%r = firn.one_hot %0, %d, %1 {axis = " +
        std::to_string(axis) + " : i64} : (tensor<5x3xi64>, tensor<i64>, tensor<2xf32>) -> " + to +
        "\nfirn.yield %r : " + to;
    CHECK(checkAll(hot) == "");
  }
}

TEST_CASE("constants that are tables") {
  FusedCase table;
  table.inputs = {{{2, 5}}};
  table.result = {2, 5};
  table.body =
      "%c = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>} : tensor<5xf32>\n"
      "%r = firn.mul %0, %c : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>\nfirn.yield %r : tensor<2x5xf32>";
  CHECK(checkAll(table) == "");
}
