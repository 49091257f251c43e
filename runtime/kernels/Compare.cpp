// Comparisons, logic on bools and the choice by one.
#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

bool isEqual(const firn_string &a, const firn_string &b) {
  return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, size_t(a.length)) == 0);
}

int32_t runEqual(firn_call *call) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0], &y = call->inputs[1];
  if (x.dtype != FIRN_STRING)
    return zipNumeric(call, [](auto a, auto b) { return a == b; });
  const firn_string *a = static_cast<const firn_string *>(x.data), *b = static_cast<const firn_string *>(y.data);
  Operand operands[2] = {{&x, 0, 0, {}}, {&y, 0, 0, {}}};
  BroadcastLoop(*z, operands, 2).run([&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint8_t *>(z->data)[first + i] =
          isEqual(a[operands[0].offset + i * operands[0].step], b[operands[1].offset + i * operands[1].step]);
  });
  return FIRN_CALL_OK;
}

int32_t runGreater(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a > b; });
}

int32_t runGreaterOrEqual(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a >= b; });
}

int32_t runLess(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a < b; });
}

int32_t runLessOrEqual(firn_call *call) {
  return zipNumeric(call, [](auto a, auto b) { return a <= b; });
}

// A loaded bool is 0 or 1 whatever its byte was.

int32_t runAnd(firn_call *call) {
  return zipInteger(call, [](auto a, auto b) { return (a & b) != 0; });
}

int32_t runOr(firn_call *call) {
  return zipInteger(call, [](auto a, auto b) { return (a | b) != 0; });
}

int32_t runXor(firn_call *call) {
  return zipInteger(call, [](auto a, auto b) { return (a ^ b) != 0; });
}

int32_t runNot(firn_call *call) {
  return mapNumeric(call, [](auto x) { return x == 0; });
}

// --- Where -----------------------------------------------------------------------------------------------------------

constexpr uint32_t whereTypes =
    numericTypes | boolType | stringType | typeSet(FIRN_C64) | typeSet(FIRN_C128) | float8Types;

int32_t inferWhere(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, boolType));
  FIRN_TRY(requireInput(call, 1, whereTypes));
  FIRN_TRY(requireInput(call, 2, whereTypes));
  FIRN_TRY(requireSameType(call, 1, 2));
  return inferBroadcast(call, 0, call->inputs[1].dtype);
}

/// Elements of `bytes` bytes move as they are.
template <size_t bytes> void select(const firn_view *inputs, const firn_view &z) {
  const uint8_t *condition = static_cast<const uint8_t *>(inputs[0].data);
  const char *x = static_cast<const char *>(inputs[1].data), *y = static_cast<const char *>(inputs[2].data);
  char *to = static_cast<char *>(z.data);
  Operand operands[3] = {{&inputs[0], 0, 0, {}}, {&inputs[1], 0, 0, {}}, {&inputs[2], 0, 0, {}}};
  BroadcastLoop(z, operands, 3).run([&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      bool chosen = condition[operands[0].offset + i * operands[0].step] != 0;
      const char *from = chosen ? x + (operands[1].offset + i * operands[1].step) * int64_t(bytes)
                                : y + (operands[2].offset + i * operands[2].step) * int64_t(bytes);
      memcpy(to + (first + i) * int64_t(bytes), from, bytes);
    }
  });
}

int32_t runWhere(firn_call *call) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  switch (firn_dtype_bits(z->dtype)) {
  case 8:
    select<1>(call->inputs, *z);
    break;
  case 16:
    select<2>(call->inputs, *z);
    break;
  case 32:
    select<4>(call->inputs, *z);
    break;
  case 64:
    select<8>(call->inputs, *z);
    break;
  default:
    select<16>(call->inputs, *z);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Equal, "ai.onnx::Equal", inferComparison<numericTypes | boolType | stringType>, runEqual)
FIRN_OPERATOR(ai_onnx, Greater, "ai.onnx::Greater", inferComparison<numericTypes>, runGreater)
FIRN_OPERATOR(ai_onnx, GreaterOrEqual, "ai.onnx::GreaterOrEqual", inferComparison<numericTypes>, runGreaterOrEqual)
FIRN_OPERATOR(ai_onnx, Less, "ai.onnx::Less", inferComparison<numericTypes>, runLess)
FIRN_OPERATOR(ai_onnx, LessOrEqual, "ai.onnx::LessOrEqual", inferComparison<numericTypes>, runLessOrEqual)
FIRN_OPERATOR(ai_onnx, And, "ai.onnx::And", inferComparison<boolType>, runAnd)
FIRN_OPERATOR(ai_onnx, Or, "ai.onnx::Or", inferComparison<boolType>, runOr)
FIRN_OPERATOR(ai_onnx, Xor, "ai.onnx::Xor", inferComparison<boolType>, runXor)
FIRN_OPERATOR(ai_onnx, Not, "ai.onnx::Not", inferPredicate<boolType>, runNot)
FIRN_OPERATOR(ai_onnx, Where, "ai.onnx::Where", inferWhere, runWhere)

} // namespace firn::kernels
