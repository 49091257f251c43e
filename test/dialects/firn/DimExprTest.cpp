// DimExpr: one normal form, exact division, text that reads back.
#include "dialects/firn/DimExpr.h"

#include <catch2/catch.hpp>

using firn::DimExpr;

static const DimExpr n = DimExpr::symbol("n"), m = DimExpr::symbol("m");

TEST_CASE("equal_sizes_have_equal_texts") {
  CHECK((n + m).str() == (m + n).str());
  CHECK((n * m * DimExpr(2)).str() == (DimExpr(2) * m * n).str());
  CHECK((n - n).str() == "0");
  CHECK((n + DimExpr(1) - DimExpr(1)) == n);
  CHECK((n + DimExpr(1)) != n);
  CHECK((n * DimExpr(2) + DimExpr(1)).str() == "2*n+1");
}

TEST_CASE("a_product_is_divided_by_its_factors") {
  CHECK((n * m * DimExpr(384)).floorDiv(n * m * DimExpr(12)) == DimExpr(32));
  CHECK((n * m).floorDiv(m) == n);
  CHECK((n * m + n).floorDiv(m + DimExpr(1)) == n);
  CHECK_FALSE(n.exactDiv(m).has_value());
  CHECK_FALSE((n + DimExpr(1)).exactDiv(DimExpr(2)).has_value());
}

TEST_CASE("whole_multiples_leave_a_floor_division") {
  CHECK((DimExpr(4) * n + DimExpr(1)).floorDiv(DimExpr(2)) == DimExpr(2) * n);
  CHECK(n.floorDiv(DimExpr(2)).floorDiv(DimExpr(2)) == n.floorDiv(DimExpr(4)));
  CHECK((n + DimExpr(5)).floorDiv(DimExpr(2)) == (n + DimExpr(1)).floorDiv(DimExpr(2)) + DimExpr(2));
  CHECK(n.ceilDiv(DimExpr(2)) == (n + DimExpr(1)).floorDiv(DimExpr(2)));
}

TEST_CASE("constants_divide_downwards") {
  CHECK(DimExpr(-7).floorDiv(DimExpr(2)) == DimExpr(-4));
  CHECK(DimExpr(7).ceilDiv(DimExpr(2)) == DimExpr(4));
  CHECK(DimExpr(-7).mod(DimExpr(3)) == DimExpr(2));
  CHECK(DimExpr(7).floorDiv(DimExpr(0)) == DimExpr(0));
}

TEST_CASE("sizes_are_not_negative") {
  CHECK(n.isAtLeast(0));
  CHECK((n + DimExpr(3)).isAtLeast(3));
  CHECK_FALSE(n.isAtLeast(1));
  CHECK_FALSE((n - DimExpr(1)).isAtLeast(0));
  CHECK(DimExpr::max(n, DimExpr(0)) == n);
  CHECK(DimExpr::min(n, n + DimExpr(2)) == n);
  CHECK(DimExpr::max(n, m) == DimExpr::max(m, n));
}

TEST_CASE("texts_read_back") {
  for (const DimExpr &e : {n, n * m + DimExpr(3), DimExpr::max(n - DimExpr(2), DimExpr(1)), n.floorDiv(m),
                           n.mod(DimExpr(7)), DimExpr(-1) * n + DimExpr(12), DimExpr::symbol("u12.0.1") * DimExpr(2)}) {
    auto read = DimExpr::parse(e.str());
    REQUIRE(read.has_value());
    CHECK(*read == e);
  }
}

TEST_CASE("malformed_texts_are_refused") {
  for (const char *text : {"", "n+", "(n", "floordiv(n)", "n m", "99999999999999999999", "f(n, m)"})
    CHECK_FALSE(DimExpr::parse(text).has_value());
  CHECK_FALSE(DimExpr::parse(std::string(100000, '(')).has_value());
}

TEST_CASE("min_and_max_absorb_what_they_are_compared_with") {
  DimExpr few = DimExpr::min(DimExpr(512), n), many = DimExpr::max(DimExpr(512), n);
  CHECK(DimExpr::max(few, n).str() == "n");
  CHECK(DimExpr::min(n, many).str() == "n");
  CHECK(DimExpr::min(few, n) == few);
  CHECK(DimExpr::max(n, many) == many);
  CHECK(DimExpr::max(few, m).str() == "max(m, min(512, n))");
}

TEST_CASE("min_and_max_know_multiples_that_are_zero_together") {
  DimExpr few = DimExpr::min(DimExpr(512), n), many = DimExpr::max(DimExpr(5), n);
  CHECK(DimExpr::min(few * n, n) == n); // n = 0: both 0
  CHECK(DimExpr::max(n * m, few * n * m) == few * n * m);
  CHECK(DimExpr::min(n * m, n).str() == "min(m*n, n)"); // m may be 0
  CHECK(DimExpr::min((many - DimExpr(5)) * n, n).str() == "min(max(5, n)*n-5*n, n)");
  CHECK(DimExpr::min(DimExpr::min(DimExpr(0), n) * n, n).str() == "0");
}

TEST_CASE("unknown_is_contagious_and_equals_nothing") {
  DimExpr unknown = DimExpr::unknown();
  CHECK((unknown + n).isUnknown());
  CHECK((unknown - unknown).isUnknown());
  CHECK((unknown * DimExpr(0)).str() == "0");
  CHECK(unknown.floorDiv(unknown).isUnknown());
  CHECK(DimExpr::max(unknown, n).isUnknown());
  CHECK(unknown != unknown);
  CHECK_FALSE(unknown.isAtLeast(0));
  CHECK(DimExpr::parse(unknown.str())->isUnknown());
}

TEST_CASE("fractions_become_whole_by_floor_and_ceil") {
  DimExpr half = n * DimExpr::inverse(2);
  CHECK_FALSE(half.isWhole());
  CHECK(half.floor().str() == n.floorDiv(DimExpr(2)).str());
  CHECK(half.ceil().str() == n.ceilDiv(DimExpr(2)).str());
  CHECK((half + DimExpr::inverse(4)).floor().str() == (n * DimExpr(2) + DimExpr(1)).floorDiv(DimExpr(4)).str());
  CHECK(DimExpr::parse(half.str())->str() == half.str());
}

TEST_CASE("symbols_give_way_to_sizes") {
  DimExpr expr = DimExpr::min(n * m + DimExpr(1), DimExpr(7)) + (n + DimExpr(1)).floorDiv(DimExpr(2));
  CHECK(expr.with({{"n", DimExpr(3)}}).str() == "min(3*m+1, 7)+2");
  CHECK(expr.with({{"n", DimExpr(3)}, {"m", DimExpr(5)}}) == DimExpr(9));
  CHECK(expr.with({}) == expr);
}
