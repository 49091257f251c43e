#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

std::string matmul(const Shape &a, const Shape &b, const Shape &r, const std::string &element = "f32") {
  return "%p = firn.matmul %0, %1 : (" + typeText(a, element) + ", " + typeText(b, element) + ") -> " +
         typeText(r, element) + "\n";
}

/// relu(a * b + bias) with a frozen b.
FusedCase dense(Dim m, int64_t k, int64_t n) {
  Shape a{m, k}, b{k, n}, bias{n}, r{m, n};
  FusedCase c;
  c.inputs = {{a}, {b, "f32", true}, {bias}};
  std::string t = typeText(r);
  c.body = matmul(a, b, r) + "%s = firn.add %p, %2 : (" + t + ", " + typeText(bias) + ") -> " + t +
           "\n%t = firn.relu %s : (" + t + ") -> " + t + "\nfirn.yield %t : " + t;
  c.result = r;
  return c;
}

} // namespace

TEST_CASE("a dense layer with bias and relu agrees for odd sizes and tails") {
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 64, 64},
                         {5, 7, 9},
                         {6, 33, 64},
                         {13, 100, 70},
                         {49, 65, 130},
                         {128, 96, 24},
                         {3, 512, 512}})
    REQUIRE(check(dense(m, k, n)) == "");
}

TEST_CASE("a dense layer of dynamic rows agrees for every remainder") {
  for (int64_t m = 0; m <= 19; ++m) {
    FusedCase c = dense("m", 40, 100);
    c.sizes["m"] = m;
    REQUIRE(check(c) == "");
  }
}

namespace {

/// yield of the product of %0 and %1, perhaps seen through views that `views` makes of them (as %a and %b).
FusedCase product(const std::vector<Input> &inputs, const std::string &views, const Shape &a, const Shape &b,
                  const Shape &r, const std::string &element = "f32") {
  FusedCase c;
  c.inputs = inputs;
  std::string t = typeText(r, element);
  c.body = views + "%p = firn.matmul " + (views.find("%a =") == std::string::npos ? "%0" : "%a") + ", " +
           (views.find("%b =") == std::string::npos ? "%1" : "%b") + " : (" + typeText(a, element) + ", " +
           typeText(b, element) + ") -> " + t + "\nfirn.yield %p : " + t;
  c.result = r;
  c.resultElement = element;
  return c;
}

std::string transpose(const std::string &name, const std::string &of, const Shape &from, const Shape &to,
                      const std::string &perm) {
  return name + " = firn.transpose " + of + " {perm = array<i64: " + perm + ">} : (" + typeText(from) + ") -> " +
         typeText(to) + "\n";
}
std::string reshape(const std::string &name, const std::string &of, const Shape &from, const Shape &to) {
  return name + " = firn.reshape " + of + " : (" + typeText(from) + ") -> " + typeText(to) + "\n";
}

} // namespace

TEST_CASE("a product of two activations agrees") {
  for (auto [m, k, n] :
       {std::array<int64_t, 3>{1, 5, 7}, {4, 64, 100}, {33, 17, 65}, {128, 32, 128}, {1, 100, 1}, {9, 40, 1}}) {
    Shape a{m, k}, b{k, n}, r{m, n};
    REQUIRE(check(product({{a}, {b}}, "", a, b, r)) == "");
  }
}

TEST_CASE("batches of products broadcast") {
  Shape a{3, 1, 5, 8}, b{2, 8, 20}, r{3, 2, 5, 20};
  REQUIRE(check(product({{a}, {b}}, "", a, b, r)) == "");
  REQUIRE(check(product({{a}, {b, "f32", true}}, "", a, b, r)) == "");
  Shape flat{8, 20}, many{3, 1, 5, 20};
  REQUIRE(check(product({{a}, {flat, "f32", true}}, "", a, flat, many)) == "");
}

TEST_CASE("a product of vectors agrees") {
  Shape v{40}, b{40, 33}, r{33}, u{33}, scalar{};
  REQUIRE(check(product({{v}, {b}}, "", v, b, r)) == "");
  REQUIRE(check(product({{v}, {b, "f32", true}}, "", v, b, r)) == "");
  Shape column{40};
  REQUIRE(check(product({{b}, {u}}, "", b, u, column)) == "");
  REQUIRE(check(product({{u}, {u}}, "", u, u, scalar)) == "");
}

TEST_CASE("operands of a product may be views") {
  // Q K^T and P V of attention, heads split and merged by views.
  for (int64_t s : {1, 2, 7, 40}) {
    Shape flat{2, s, 48}, split{2, s, 3, 16}, heads{2, 3, s, 16}, turned{2, 3, 16, s}, scores{2, 3, s, s};
    std::string views = reshape("%qs", "%0", flat, split) + transpose("%a", "%qs", split, heads, "0, 2, 1, 3") +
                        reshape("%ks", "%1", flat, split) + transpose("%b", "%ks", split, turned, "0, 2, 3, 1");
    REQUIRE(check(product({{flat}, {flat}}, views, heads, turned, scores)) == "");
    FusedCase c;
    c.inputs = {{scores}, {flat}};
    c.body = reshape("%vs", "%1", flat, split) + transpose("%b", "%vs", split, heads, "0, 2, 1, 3") +
             "%p = firn.matmul %0, %b : (" + typeText(scores) + ", " + typeText(heads) + ") -> " + typeText(heads) +
             "\n" + transpose("%t", "%p", heads, split, "0, 2, 1, 3") + reshape("%y", "%t", split, flat) +
             "firn.yield %y : " + typeText(flat);
    c.result = flat;
    REQUIRE(check(c) == "");
  }
  Shape a{9, 20}, t{20, 9}, b{9, 33}, r{20, 33};
  REQUIRE(check(product({{a}, {b}}, transpose("%a", "%0", a, t, "1, 0"), t, b, r)) == "");
  REQUIRE(check(product({{t}, {t}}, transpose("%b", "%1", t, a, "1, 0"), t, a, {20, 20})) == "");
  REQUIRE(check(product({{t}, {t, "f32", true}}, transpose("%b", "%1", t, a, "1, 0"), t, a, {20, 20})) == "");
}

TEST_CASE("attention of dynamic sizes agrees") {
  for (int64_t s : {1, 3, 16, 37}) {
    Shape flat{"b", "s", 48}, split{"b", "s", 3, 16}, heads{"b", 3, "s", 16}, turned{"b", 3, 16, "s"},
        scores{"b", 3, "s", "s"};
    std::string views = reshape("%qs", "%0", flat, split) + transpose("%a", "%qs", split, heads, "0, 2, 1, 3") +
                        reshape("%ks", "%1", flat, split) + transpose("%b", "%ks", split, turned, "0, 2, 3, 1");
    FusedCase c = product({{flat}, {flat}}, views, heads, turned, scores);
    c.sizes = {{"b", 2}, {"s", s}};
    REQUIRE(check(c) == "");
    c = product({{scores}, {heads}}, "", scores, heads, heads);
    c.sizes = {{"b", 2}, {"s", s}};
    REQUIRE(check(c) == "");
  }
}

TEST_CASE("gemm scales, transposes and adds") {
  for (const char *attributes : {"alpha = 0.5 : f32, beta = 2.0 : f32", "transA = 1 : i64", "transB = 1 : i64",
                                 "transA = 1 : i64, transB = 1 : i64, beta = 0.25 : f32"})
    for (bool isFrozen : {false, true}) {
      bool ta = std::string(attributes).find("transA") != std::string::npos;
      bool tb = std::string(attributes).find("transB") != std::string::npos;
      Shape a = ta ? Shape{20, 11} : Shape{11, 20}, b = tb ? Shape{37, 20} : Shape{20, 37}, bias{37}, r{11, 37};
      FusedCase c;
      c.inputs = {{a}, {b, "f32", isFrozen}, {bias}};
      c.body = "%p = firn.gemm %0, %1, %2 {" + std::string(attributes) + "} : (" + typeText(a) + ", " + typeText(b) +
               ", " + typeText(bias) + ") -> " + typeText(r) + "\nfirn.yield %p : " + typeText(r);
      c.result = r;
      REQUIRE(check(c) == "");
    }
}

TEST_CASE("an epilogue of many operations agrees") {
  Shape a{2, 7, 24}, b{24, 50}, bias{50}, one{}, row{7, 1}, r{2, 7, 50};
  std::string t = typeText(r);
  FusedCase c;
  c.inputs = {{a}, {b, "f32", true}, {bias}, {r}, {one}, {row}};
  c.body = matmul(a, b, r) + "%s = firn.add %p, %2 : (" + t + ", " + typeText(bias) + ") -> " + t +
           "\n%g = firn.gelu %s : (" + t + ") -> " + t + "\n%m = firn.mul %g, %4 : (" + t + ", " + typeText(one) +
           ") -> " + t + "\n%x = firn.add %3, %m : (" + t + ", " + t + ") -> " + t + "\n%y = firn.sub %x, %5 : (" + t +
           ", " + typeText(row) + ") -> " + t + "\n%z = firn.add %y, %s : (" + t + ", " + t + ") -> " + t +
           "\nfirn.yield %z : " + t;
  c.result = r;
  REQUIRE(check(c) == "");
}

TEST_CASE("a product deeper than a panel in the second level agrees") {
  Shape a{30, 4000}, b{4000, 100}, r{30, 100};
  FusedCase c = product({{a}, {b, "f32", true}}, "", a, b, r);
  REQUIRE(check(c) == "");
  a = {"m", 4000};
  r = {"m", 100};
  c = product({{a}, {b, "f32", true}}, "", a, b, r);
  c.sizes["m"] = 11;
  REQUIRE(check(c) == "");
}

TEST_CASE("products of other element types agree") {
  Shape a{7, 40}, b{40, 33}, r{7, 33};
  for (bool isFrozen : {false, true}) {
    REQUIRE(check(product({{a, "f64"}, {b, "f64", isFrozen}}, "", a, b, r, "f64")) == "");
    FusedCase c = product({{a, "f16"}, {b, "f16", isFrozen}}, "", a, b, r, "f16");
    c.tolerance = 1e-3;
    REQUIRE(check(c) == "");
    c = product({{a, "bf16"}, {b, "bf16", isFrozen}}, "", a, b, r, "bf16");
    c.tolerance = 8e-3;
    REQUIRE(check(c) == "");
  }
}

TEST_CASE("8-bit weights stay in memory as they are") {
  for (const char *element : {"i8", "ui8"})
    for (bool perColumn : {false, true})
      for (bool hasZero : {false, true}) {
        Shape a{20, 40}, b{40, 37}, r{20, 37}, scale = perColumn ? Shape{37} : Shape{};
        bool isSigned = element[0] == 'i';
        FusedCase c;
        c.inputs = {{a},
                    {b, element, true, isSigned ? -128.0 : 0.0, isSigned ? 127.0 : 255.0},
                    {scale, "f32", false, 0.01, 0.02}};
        if (hasZero)
          c.inputs.push_back({scale, element, false, isSigned ? -20.0 : 100.0, isSigned ? 20.0 : 150.0});
        c.body = std::string("%w = firn.dequantize_linear %1, %2") + (hasZero ? ", %3" : "") + " {axis = 1 : i64} : (" +
                 typeText(b, element) + ", " + typeText(scale) + (hasZero ? ", " + typeText(scale, element) : "") +
                 ") -> " + typeText(b) + "\n%p = firn.matmul %0, %w : (" + typeText(a) + ", " + typeText(b) + ") -> " +
                 typeText(r) + "\nfirn.yield %p : " + typeText(r);
        c.result = r;
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("8-bit weights of a gemm stay in memory as they are, transposed or not") {
  for (bool isTransposed : {false, true})
    for (bool isDynamic : {false, true})
      for (int64_t m : {1, 7, 30}) {
        Shape a{isDynamic ? Dim("m") : Dim(m), 40}, r{isDynamic ? Dim("m") : Dim(m), 37}, scale{37};
        Shape b = isTransposed ? Shape{37, 40} : Shape{40, 37};
        FusedCase c;
        c.sizes["m"] = m;
        c.inputs = {{a}, {b, "i8", true, -128, 127}, {scale, "f32", false, 0.01, 0.02}, {scale, "i8", false, -20, 20}};
        c.body = "%w = firn.dequantize_linear %1, %2, %3 {axis = " + std::string(isTransposed ? "0" : "-1") +
                 " : i64} : (" + typeText(b, "i8") + ", " + typeText(scale) + ", " + typeText(scale, "i8") + ") -> " +
                 typeText(b) + "\n%p = firn.gemm %0, %w {transB = " + (isTransposed ? "1" : "0") + " : i64} : (" +
                 typeText(a) + ", " + typeText(b) + ") -> " + typeText(r) + "\nfirn.yield %p : " + typeText(r);
        c.result = r;
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("weights of 16-bit floats are widened as they are read") {
  for (const char *element : {"f16", "bf16"})
    for (const char *target : {"native", "x86-64-v2", "x86-64-v3"})
      for (int64_t m : {1, 4, 30}) {
        Shape a{m, 80}, b{80, 37}, r{m, 37};
        FusedCase c;
        c.target = target;
        c.inputs = {{a}, {b, element, true}};
        c.body = "%w = firn.cast %1 {to = 1 : i64} : (" + typeText(b, element) + ") -> " + typeText(b) +
                 "\n%p = firn.matmul %0, %w : (" + typeText(a) + ", " + typeText(b) + ") -> " + typeText(r) +
                 "\nfirn.yield %p : " + typeText(r);
        c.result = r;
        REQUIRE(check(c) == "");
      }
}

TEST_CASE("8-bit weights with scales in blocks along the depth are scaled block by block") {
  for (int64_t size : {16, 32})
    for (bool hasZero : {false, true})
      for (bool isDynamic : {false, true})
        for (int64_t m : {1, 4, 30}) {
          Shape a{isDynamic ? Dim("m") : Dim(m), 80}, b{80, 37}, r{isDynamic ? Dim("m") : Dim(m), 37};
          Shape blocks{(80 + size - 1) / size, 37};
          FusedCase c;
          c.sizes["m"] = m;
          c.inputs = {{a}, {b, "ui8", true, 0, 255}, {blocks, "f32", true, 0.01, 0.02}};
          if (hasZero)
            c.inputs.push_back({blocks, "ui8", true, 100, 150});
          c.body = std::string("%w = firn.dequantize_linear %1, %2") + (hasZero ? ", %3" : "") +
                   " {axis = 0 : i64, block_size = " + std::to_string(size) + " : i64} : (" + typeText(b, "ui8") +
                   ", " + typeText(blocks) + (hasZero ? ", " + typeText(blocks, "ui8") : "") + ") -> " + typeText(b) +
                   "\n%p = firn.matmul %0, %w : (" + typeText(a) + ", " + typeText(b) + ") -> " + typeText(r) +
                   "\nfirn.yield %p : " + typeText(r);
          c.result = r;
          REQUIRE(check(c) == "");
        }
}

TEST_CASE("products agree on every target") {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    FusedCase c = dense(13, 40, 50);
    c.target = target;
    REQUIRE(check(c) == "");
    c = dense("m", 40, 50);
    c.sizes["m"] = 10;
    c.target = target;
    REQUIRE(check(c) == "");
  }
}

TEST_CASE("a product of bytes agrees for signs, zero points and odd depths") {
  for (const char *target : {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (const char *left : {"ui8", "i8"})
      for (const char *right : {"i8", "ui8"})
        for (int zeroPoints : {0, 1, 2})
          for (int64_t k : {64, 37}) {
            Shape a{2, 9, k}, b{k, 70}, r{2, 9, 70}, one{}, columns{70};
            auto bytes = [](const Shape &shape, const char *element, bool isFrozen) {
              bool isSigned = element[0] == 'i';
              return Input{shape, element, isFrozen, isSigned ? -128.0 : 0.0, isSigned ? 127.0 : 255.0};
            };
            FusedCase c;
            c.target = target;
            Shape rightShape = zeroPoints == 2 ? columns : one;
            c.inputs = {bytes(a, left, false), bytes(b, right, true)};
            std::string names = "%0, %1", types = typeText(a, left) + ", " + typeText(b, right);
            if (zeroPoints) {
              c.inputs.push_back(bytes(one, left, false));
              c.inputs.push_back(bytes(rightShape, right, false));
              names += ", %2, %3";
              types += ", " + typeText(one, left) + ", " + typeText(rightShape, right);
            }
            std::string t = typeText(r, "i32"), f = typeText(r);
            c.body = "%p = firn.matmul_integer " + names + " : (" + types + ") -> " + t +
                     "\n%f = firn.cast %p {to = 1 : i64} : (" + t + ") -> " + f + "\nfirn.yield %f : " + f;
            c.result = r;
            c.tolerance = 1e-7;
            INFO(target << " " << left << " " << right << " " << zeroPoints << " " << k);
            REQUIRE(check(c) == "");
          }
}

TEST_CASE("numbers inside of the body serve as biases, scales and zero points") {
  Shape a{5, 20}, b{20, 37}, r{5, 37}, one{};
  FusedCase c;
  c.inputs = {{a}, {b, "f32", true}};
  c.body = "%c = firn.constant {value = dense<0.5> : tensor<37xf32>} : tensor<37xf32>\n%p = firn.gemm %0, %1, %c "
           "{beta = 2.0 : f32} : (" +
           typeText(a) + ", " + typeText(b) + ", tensor<37xf32>) -> " + typeText(r) +
           "\nfirn.yield %p : " + typeText(r);
  c.result = r;
  REQUIRE(check(c) == "");
  c.inputs = {{a}, {b, "i8", true, -128, 127}};
  c.body =
      "%s = firn.constant {value = dense<0.02> : tensor<f32>} : tensor<f32>\n%z = firn.constant {value = dense<3> : "
      "tensor<i8>} : tensor<i8>\n%w = firn.dequantize_linear %1, %s, %z : (" +
      typeText(b, "i8") + ", tensor<f32>, tensor<i8>) -> " + typeText(b) + "\n%p = firn.matmul %0, %w : (" +
      typeText(a) + ", " + typeText(b) + ") -> " + typeText(r) + "\nfirn.yield %p : " + typeText(r);
  REQUIRE(check(c) == "");
}
