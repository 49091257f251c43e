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
