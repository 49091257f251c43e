#include "runtime/src/Values.h"

namespace firn::runtime {

namespace {

// Far below INT64_MAX, so that rounding up to an alignment cannot overflow.
constexpr int64_t largestSize = INT64_MAX / 64;

int64_t saturated(bool negative) { return negative ? INT64_MIN : INT64_MAX; }

int64_t floorDiv(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return a == INT64_MIN ? INT64_MAX : -a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

} // namespace

int64_t applyValue(int32_t op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
  case FIRN_VALUE_ADD:
    return __builtin_add_overflow(a, b, &result) ? saturated(a < 0) : result;
  case FIRN_VALUE_SUB:
    return __builtin_sub_overflow(a, b, &result) ? saturated(a < 0) : result;
  case FIRN_VALUE_MUL:
    return __builtin_mul_overflow(a, b, &result) ? saturated((a < 0) != (b < 0)) : result;
  case FIRN_VALUE_FLOOR_DIV:
    return floorDiv(a, b);
  case FIRN_VALUE_CEIL_DIV:
    return b == 0 ? 0 : floorDiv(a, b) + (floorMod(a, b) != 0);
  case FIRN_VALUE_MOD:
    return floorMod(a, b);
  case FIRN_VALUE_MIN:
    return a < b ? a : b;
  case FIRN_VALUE_MAX:
    return a > b ? a : b;
  }
  return 0;
}

void evaluateValue(const firn_value *program, int64_t *values, int32_t i) {
  const firn_value &value = program[i];
  if (value.op == FIRN_VALUE_CONSTANT)
    values[i] = value.a;
  else if (value.op >= FIRN_VALUE_ADD)
    values[i] = applyValue(value.op, values[value.a], values[value.b]);
}

int64_t countElements(const int64_t *dims, int32_t rank) {
  int64_t count = 1;
  bool empty = false;
  for (int32_t d = 0; d < rank; ++d) {
    if (dims[d] < 0)
      return -1;
    if (dims[d] == 0)
      empty = true;
    else if (__builtin_mul_overflow(count, dims[d], &count) || count > largestSize)
      return -1;
  }
  return empty ? 0 : count;
}

int64_t countElements(const int64_t *values, const int32_t *dims, int32_t rank) {
  int64_t concrete[FIRN_MAX_RANK];
  for (int32_t d = 0; d < rank; ++d)
    concrete[d] = values[dims[d]];
  return countElements(concrete, rank);
}

int64_t countBytes(int32_t dtype, int64_t elements) {
  int64_t bits = firn_dtype_bits(dtype);
  if (elements < 0 || bits == 0 || elements > largestSize / 16)
    return -1;
  return firn_dtype_bytes(dtype, elements);
}

} // namespace firn::runtime
