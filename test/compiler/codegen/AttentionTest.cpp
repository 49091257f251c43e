#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace firn::test;

namespace {

std::string transpose(const std::string &name, const std::string &of, const Shape &from, const Shape &to,
                      const std::string &perm) {
  return name + " = firn.transpose " + of + " {perm = array<i64: " + perm + ">} : (" + typeText(from) + ") -> " +
         typeText(to) + "\n";
}

/// firn.attention of the inputs given (%0, %1, ...; "" stands for an absent one).
struct AttentionCase {
  std::vector<Input> inputs;  // Q, K, V, then whatever `more` names
  std::vector<int> more = {}; // operands behind V: number of an input, -1 for none
  std::string attributes = "";
  std::string element = "f32";
  std::map<std::string, int64_t> sizes = {};

  std::string run(const Shape &result, double tolerance = 1e-5) const {
    FusedCase c;
    c.kind = "attention";
    c.inputs = inputs;
    std::string operands = "%0, %1, %2", types;
    for (int i = 0; i < 3; ++i)
      types += (i ? ", " : "") + typeText(inputs[i].shape, inputs[i].element);
    for (int number : more) {
      operands += number < 0 ? ", %none" : ", %" + std::to_string(number);
      types += ", " + (number < 0 ? "none" : typeText(inputs[number].shape, inputs[number].element));
    }
    c.body = "%none = firn.absent : none\n%y = firn.attention " + operands + " {" + attributes + "} : (" + types +
             ") -> " + typeText(result, element) + "\nfirn.yield %y : " + typeText(result, element);
    c.result = result;
    c.resultElement = element;
    c.sizes = sizes;
    c.tolerance = tolerance;
    return check(c);
  }
};

Shape heads(Dim b, Dim h, Dim s, Dim d) { return {b, h, s, d}; }

} // namespace

TEST_CASE("attention of static sizes agrees, few rows and many, sizes that fill no vector") {
  for (auto [h, s, t, d, dv] : {std::array<int64_t, 5>{2, 1, 1, 8, 8},
                                {3, 1, 37, 64, 64},
                                {2, 5, 20, 24, 20},
                                {2, 7, 9, 5, 3},
                                {3, 49, 49, 32, 32},
                                {2, 128, 128, 64, 64},
                                {1, 100, 300, 80, 128},
                                {1, 13, 600, 16, 33}}) {
    Shape q = heads(2, h, s, d), k = heads(2, h, t, d), v = heads(2, h, t, dv);
    INFO(h << " " << s << " " << t << " " << d << " " << dv);
    REQUIRE(AttentionCase{{{q}, {k}, {v}}}.run(heads(2, h, s, dv)) == "");
  }
}

TEST_CASE("attention of symbolic sizes agrees for every remainder of rows and keys") {
  Shape q = heads("b", 2, "s", 24), k = heads("b", 2, "t", 24), v = heads("b", 2, "t", 40);
  for (auto [s, t] : {std::array<int64_t, 2>{1, 1},
                      {1, 40},
                      {2, 0},
                      {5, 33},
                      {6, 5},
                      {11, 16},
                      {12, 31},
                      {13, 257},
                      {40, 64},
                      {97, 300},
                      {0, 7}}) {
    AttentionCase c{{{q}, {k}, {v}}};
    c.sizes = {{"b", 2}, {"s", s}, {"t", t}};
    INFO(s << " " << t);
    REQUIRE(c.run(heads("b", 2, "s", 40)) == "");
  }
}

TEST_CASE("heads may be inside of rows") {
  for (int64_t s : {1, 3, 40}) {
    Shape q{2, s, 48}, k{2, 20, 48}, v{2, 20, 24};
    REQUIRE(AttentionCase{{{q}, {k}, {v}}, {}, "q_num_heads = 3 : i64, kv_num_heads = 3 : i64"}.run({2, s, 24}) == "");
    Shape kg{2, 20, 16}, vg{2, 20, 8};
    REQUIRE(AttentionCase{{{q}, {kg}, {vg}}, {}, "q_num_heads = 3 : i64, kv_num_heads = 1 : i64"}.run({2, s, 24}) ==
            "");
  }
}

TEST_CASE("groups of query heads share heads of keys") {
  for (int64_t s : {1, 2, 9, 70}) {
    Shape q = heads(2, 6, s, 16), k = heads(2, 2, 33, 16);
    REQUIRE(AttentionCase{{{q}, {k}, {k}}, {}, "is_causal = 1 : i64"}.run(q) == "");
    Shape mask{6, s, 33};
    REQUIRE(AttentionCase{{{q}, {k}, {k}, {mask}}, {3}}.run(q) == "");
  }
}

TEST_CASE("masks are added or choose, broadcast, and may be short") {
  for (int64_t s : {1, 20}) {
    Shape q = heads(2, 3, s, 16), k = heads(2, 3, 37, 16);
    for (const Shape &mask : {Shape{2, 3, s, 37}, {2, 1, 1, 37}, {s, 37}, {37}, {2, 3, s, 30}, {1, 1, s, 5}})
      for (const char *element : {"f32", "i1"}) {
        INFO(typeText(mask, element) << " of " << s);
        Input given{mask, element};
        if (std::string(element) == "i1")
          given.low = 0;
        REQUIRE(AttentionCase{{{q}, {k}, {k}, given}, {3}, "scale = 0.5 : f32"}.run(q) == "");
      }
  }
}

TEST_CASE("a query that sees no key gives zeros, or NaN where asked for") {
  for (int64_t s : {1, 8}) {
    Shape q = heads(1, 1, s, 4), k = heads(1, 1, 20, 4), mask{s, 20};
    Input none{mask, "f32"};
    none.values = std::vector<double>(size_t(s * 20), -INFINITY);
    none.values[0] = s == 1 ? -INFINITY : 0;
    REQUIRE(AttentionCase{{{q}, {k}, {k}, none}, {3}}.run(q) == "");
    REQUIRE(AttentionCase{{{q}, {k}, {k}, none}, {3}, "nan_rows = 1 : i64"}.run(q) == "");
    none.values[0] = NAN;
    REQUIRE(AttentionCase{{{q}, {k}, {k}, none}, {3}}.run(q) == "");
    REQUIRE(AttentionCase{{{q}, {k}, {k}, none}, {3}, "zero_nan = 1 : i64"}.run(q) == "");
  }
}

TEST_CASE("a number may stand for masked scores, and heads of the result be merged") {
  for (int64_t s : {1, 20}) {
    Shape q = heads(2, 3, s, 16), k = heads(2, 3, 37, 16), mask{s, 37};
    Input given{mask, "i1", false, 0};
    REQUIRE(AttentionCase{{{q}, {k}, {k}, given}, {3}, "masked_score = 0.5 : f32, rows = 1 : i64"}.run({2, s, 48}) ==
            "");
  }
}

TEST_CASE("causal masks, windows and softcap agree over several blocks") {
  for (int64_t s : {2, 30, 300})
    for (const char *attributes :
         {"is_causal = 1 : i64", "is_causal = 1 : i64, left_window_size = 5 : i64", "right_window_size = 3 : i64",
          "left_window_size = 0 : i64, right_window_size = 0 : i64", "softcap = 0.5 : f32", "scale = 3.0 : f32"}) {
      Shape q = heads(1, 2, s, 16), k = heads(1, 2, 290, 16);
      INFO(attributes << " of " << s);
      REQUIRE(AttentionCase{{{q}, {k}, {k}}, {}, attributes}.run(q) == "");
    }
}

TEST_CASE("lengths of keys and joined pasts shift what a causal mask allows") {
  for (int64_t s : {3, 10}) {
    Shape q = heads(2, 2, s, 16), k = heads(2, 2, 20, 16), past = heads(2, 2, 7, 16), counts{2};
    Input lengths{counts, "i64"};
    lengths.values = {20, 5};
    REQUIRE(AttentionCase{{{q}, {k}, {k}, lengths}, {-1, -1, -1, 3}}.run(q) == "");
    lengths.values = {0, 5};
    REQUIRE(AttentionCase{{{q}, {k}, {k}, lengths}, {-1, -1, -1, 3}}.run(q) == "");
    REQUIRE(AttentionCase{{{q}, {k}, {k}, lengths}, {-1, -1, -1, 3}, "is_causal = 1 : i64"}.run(q) == "");
    REQUIRE(AttentionCase{{{q}, {k}, {k}, {past}, {past}}, {-1, 3, 4}, "is_causal = 1 : i64, joined = 1 : i64"}.run(
                q) == "");
  }
}

TEST_CASE("16-bit operands are multiplied and summed in 32 bits") {
  for (const char *element : {"f16", "bf16"})
    for (int64_t s : {1, 20}) {
      Shape q = heads(1, 2, s, 20), k = heads(1, 2, 33, 20);
      AttentionCase c{{{q, element}, {k, element}, {k, element}}};
      c.element = element;
      REQUIRE(c.run(q, std::string(element) == "f16" ? 2e-3 : 1e-2) == "");
    }
}

TEST_CASE("operands of attention may be views") {
  for (int64_t s : {1, 20}) {
    // Keys stored transposed, queries and values with heads inside of rows.
    Shape q = heads(2, 3, s, 16), stored{2, s, 3, 16}, kt{2, 3, 16, s}, odd{16, s, 3, 2};
    FusedCase c;
    c.kind = "attention";
    c.inputs = {{stored}, {kt}, {odd}};
    c.body = transpose("%q", "%0", stored, q, "0, 2, 1, 3") + transpose("%k", "%1", kt, q, "0, 1, 3, 2") +
             transpose("%v", "%2", odd, q, "3, 2, 1, 0") + "%y = firn.attention %q, %k, %v : (" + typeText(q) + ", " +
             typeText(q) + ", " + typeText(q) + ") -> " + typeText(q) + "\nfirn.yield %y : " + typeText(q);
    c.result = q;
    REQUIRE(check(c) == "");
  }
}

TEST_CASE("attention is compiled for other targets") {
  for (const char *target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    Shape q = heads(1, 2, 20, 20);
    FusedCase c;
    c.kind = "attention";
    c.target = target;
    c.inputs = {{q}, {q}, {q}};
    c.body = "%y = firn.attention %0, %1, %2 {is_causal = 1 : i64} : (" + typeText(q) + ", " + typeText(q) + ", " +
             typeText(q) + ") -> " + typeText(q) + "\nfirn.yield %y : " + typeText(q);
    c.result = q;
    REQUIRE(check(c) == "");
  }
}
