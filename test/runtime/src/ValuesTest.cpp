#include "runtime/src/Values.h"

#include <catch2/catch.hpp>

using namespace firn::runtime;

TEST_CASE("division rounds down and up, and by zero gives zero") {
  CHECK(applyValue(FIRN_VALUE_FLOOR_DIV, 7, 2) == 3);
  CHECK(applyValue(FIRN_VALUE_FLOOR_DIV, -7, 2) == -4);
  CHECK(applyValue(FIRN_VALUE_FLOOR_DIV, 7, -2) == -4);
  CHECK(applyValue(FIRN_VALUE_CEIL_DIV, 7, 2) == 4);
  CHECK(applyValue(FIRN_VALUE_CEIL_DIV, -7, 2) == -3);
  CHECK(applyValue(FIRN_VALUE_CEIL_DIV, 6, 2) == 3);
  CHECK(applyValue(FIRN_VALUE_MOD, -7, 3) == 2);
  CHECK(applyValue(FIRN_VALUE_MOD, 7, -3) == -2);
  for (int32_t op : {FIRN_VALUE_FLOOR_DIV, FIRN_VALUE_CEIL_DIV, FIRN_VALUE_MOD})
    CHECK(applyValue(op, 5, 0) == 0);
}

TEST_CASE("arithmetic saturates instead of overflowing") {
  CHECK(applyValue(FIRN_VALUE_ADD, INT64_MAX, 1) == INT64_MAX);
  CHECK(applyValue(FIRN_VALUE_ADD, INT64_MIN, -1) == INT64_MIN);
  CHECK(applyValue(FIRN_VALUE_SUB, INT64_MIN, 1) == INT64_MIN);
  CHECK(applyValue(FIRN_VALUE_MUL, INT64_MAX, 2) == INT64_MAX);
  CHECK(applyValue(FIRN_VALUE_MUL, INT64_MAX, -2) == INT64_MIN);
  CHECK(applyValue(FIRN_VALUE_FLOOR_DIV, INT64_MIN, -1) == INT64_MAX);
  CHECK(applyValue(FIRN_VALUE_MOD, INT64_MIN, -1) == 0);
}

TEST_CASE("sizes that cannot be are -1") {
  int64_t fits[] = {3, 4}, negative[] = {3, -1}, large[] = {int64_t(1) << 40, int64_t(1) << 40},
          empty[] = {int64_t(1) << 40, 0, 5};
  CHECK(countElements(fits, 2) == 12);
  CHECK(countElements(fits, 0) == 1);
  CHECK(countElements(negative, 2) == -1);
  CHECK(countElements(large, 2) == -1);
  CHECK(countElements(empty, 3) == 0);
  CHECK(countBytes(FIRN_F32, 12) == 48);
  CHECK(countBytes(FIRN_I4, 3) == 2);
  CHECK(countBytes(FIRN_F32, -1) == -1);
  CHECK(countBytes(99, 1) == -1);
  CHECK(countBytes(FIRN_F32, INT64_MAX / 64) == -1);
}
