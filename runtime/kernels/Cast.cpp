// Conversions between element types: by value (Cast, CastLike) and by bits (BitCast).
#include <stdlib.h>

#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

constexpr uint32_t castTypes = allTypes & ~(typeSet(FIRN_C64) | typeSet(FIRN_C128));

bool isCastType(int64_t dtype) {
  return dtype > 0 && dtype < FIRN_DTYPE_COUNT && (castTypes & typeSet(int32_t(dtype)));
}

int32_t inferCastTo(firn_call *call, int64_t dtype) {
  FIRN_TRY(requireInput(call, 0, castTypes));
  if (!isCastType(dtype))
    return fail(call, FIRN_CALL_INVALID, "cannot cast to element type %lld: expected a number, bool or string",
                static_cast<long long>(dtype));
  if (!stringAttributeIs(call, "round_mode", "up", "up") && !stringAttributeIs(call, "round_mode", "down", "up") &&
      !stringAttributeIs(call, "round_mode", "nearest", "up"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'round_mode' must be up, down or nearest");
  return setChecked(call, 0, int32_t(dtype), call->inputs[0].dims, call->inputs[0].rank);
}

int32_t inferCast(firn_call *call) {
  if (!findAttribute(call, "to"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'to' is missing");
  return inferCastTo(call, intAttribute(call, "to", 0));
}

int32_t inferCastLike(firn_call *call) {
  FIRN_TRY(requireInput(call, 1, castTypes));
  return inferCastTo(call, call->inputs[1].dtype);
}

/// The number that a string spells out, blanks around it allowed.
int32_t parseNumber(firn_call *call, const firn_string &text, double *value) {
  char terminated[256]; // longer ones are no sensible number
  if (text.length > 0 && text.length < int64_t(sizeof terminated)) {
    memcpy(terminated, text.data, size_t(text.length));
    terminated[text.length] = 0;
    char *end;
    *value = strtod(terminated, &end);
    while (*end == ' ' || *end == '\t' || *end == '\n' || *end == '\r')
      ++end;
    if (end == terminated + text.length)
      return FIRN_CALL_OK;
  }
  int32_t shown = text.length < 40 ? int32_t(text.length) : 40;
  return fail(call, FIRN_CALL_INVALID, "expected a string that is a number, found '%.*s'", shown, text.data);
}

/// Integers of up to 18 digits exactly, beyond what a double holds; other numbers truncate.
bool parseInteger(const firn_string &text, int64_t *value) {
  int64_t i = text.length > 0 && (text.data[0] == '-' || text.data[0] == '+');
  if (text.length - i < 1 || text.length - i > 18)
    return false;
  *value = 0;
  for (int64_t k = i; k < text.length; ++k) {
    if (text.data[k] < '0' || text.data[k] > '9')
      return false;
    *value = *value * 10 + (text.data[k] - '0');
  }
  if (text.data[0] == '-')
    *value = -*value;
  return true;
}

int32_t castStrings(firn_call *call, const firn_view &x, const firn_view &y) {
  int64_t total = elementCount(x);
  for (int64_t i = 0; i < total; ++i) {
    const firn_string &text = static_cast<const firn_string *>(x.data)[i];
    int64_t integer;
    double number;
    if (!isFloat(y.dtype) && parseInteger(text, &integer)) {
      setInt(y, i, integer);
      continue;
    }
    FIRN_TRY(parseNumber(call, text, &number));
    setDouble(y, i, number);
  }
  return FIRN_CALL_OK;
}

constexpr int64_t textCapacity = 32; // bytes of any number

/// The shortest decimal that reads back as the same element, without an exponent where it needs none.
int32_t printFloat(const firn_view &x, int64_t i, char *text) {
  double value = getDouble(x, i);
  if (isnan(value))
    return snprintf(text, textCapacity, "NaN");
  if (isinf(value))
    return snprintf(text, textCapacity, value < 0 ? "-INF" : "INF");
  uint64_t storage = 0;
  firn_view again = x;
  again.data = &storage;
  for (int32_t digits = 1;; ++digits) {
    int32_t length = snprintf(text, textCapacity, "%.*e", digits - 1, value);
    setDouble(again, 0, strtod(text, nullptr));
    if (digits < 17 && getDouble(again, 0) != value)
      continue;
    int32_t exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -5 || exponent >= 16)
      return length;
    return snprintf(text, textCapacity, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 0, value);
  }
}

/// Numbers as text, whose bytes lie in scratch memory.
int32_t castToStrings(firn_call *call, const firn_view &x, const firn_view &y) {
  int64_t total = elementCount(x);
  char *text = scratch<char>(call, total * textCapacity);
  if (!text)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for %lld strings", static_cast<long long>(total));
  for (int64_t i = 0; i < total; ++i, text += textCapacity) {
    int32_t length;
    if (isFloat(x.dtype))
      length = printFloat(x, i, text);
    else if (x.dtype == FIRN_U64)
      length = snprintf(text, textCapacity, "%llu", static_cast<unsigned long long>(getInt(x, i)));
    else
      length = snprintf(text, textCapacity, "%lld", static_cast<long long>(getInt(x, i)));
    static_cast<firn_string *>(y.data)[i] = {text, length};
  }
  return FIRN_CALL_OK;
}

/// Floats of 8 bits as the attributes 'saturate' and 'round_mode' say.
void castToSmallFloats(firn_call *call, const firn_view &x, const firn_view &y) {
  bool saturate = intAttribute(call, "saturate", 1) != 0;
  int32_t direction = stringAttributeIs(call, "round_mode", "down", "up")      ? -1
                      : stringAttributeIs(call, "round_mode", "nearest", "up") ? 0
                                                                               : 1;
  int64_t total = elementCount(x);
  for (int64_t i = 0; i < total; ++i)
    static_cast<uint8_t *>(y.data)[i] = uint8_t(encodeFloat(y.dtype, getDouble(x, i), saturate, direction));
}

/// Integers of 4 and 2 bits: what is out of range is undefined, and 0 here as in ONNX's own tests.
void castToPackedIntegers(const firn_view &x, const firn_view &y) {
  int32_t bits = firn_dtype_bits(y.dtype);
  double low = isSigned(y.dtype) ? -(1 << (bits - 1)) : 0, high = low + (1 << bits) - 1;
  mapAs<double>(x, y, [=](double value) {
    value = trunc(value);
    return value >= low && value <= high ? value : 0.0;
  });
}

int32_t runCast(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(x) == 0)
    return FIRN_CALL_OK;
  if (x.dtype == FIRN_STRING && y->dtype != FIRN_STRING)
    return castStrings(call, x, *y);
  if (y->dtype == FIRN_STRING && x.dtype != FIRN_STRING)
    return castToStrings(call, x, *y);
  if (x.dtype == y->dtype && x.dtype != FIRN_BOOL)
    copyElements(*y, 0, x, 0, elementCount(x));
  else if ((typeSet(y->dtype) & float8Types) || y->dtype == FIRN_F8E8M0)
    castToSmallFloats(call, x, *y);
  else if (isFloat(x.dtype) && !isFloat(y->dtype) && firn_dtype_bits(y->dtype) < 8)
    castToPackedIntegers(x, *y);
  else if (isFloat(x.dtype))
    mapAs<double>(x, *y, [](double value) { return value; });
  else if (x.dtype == FIRN_U64 && y->dtype == FIRN_F64)
    mapAs<double>(x, *y, [](double value) { return value; });
  else if (x.dtype == FIRN_U64 && isFloat(y->dtype))
    mapAs<uint64_t>(x, *y, [](uint64_t value) { return stickyDouble(value); }); // rounds once, on the store
  else
    mapAs<int64_t>(x, *y, [](int64_t value) { return value; });
  return FIRN_CALL_OK;
}

// --- BitCast ---------------------------------------------------------------------------------------------------------

int32_t inferBitCast(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes & ~stringType));
  int64_t to = intAttribute(call, "to", 0);
  int32_t from = call->inputs[0].dtype;
  if (to <= 0 || to >= FIRN_DTYPE_COUNT || to == FIRN_STRING || firn_dtype_bits(int32_t(to)) != firn_dtype_bits(from))
    return fail(call, FIRN_CALL_INVALID,
                "attribute 'to' must be an element type of the width of %s: expected %d bits, "
                "found %s of %d bits",
                dtypeName(from), firn_dtype_bits(from), dtypeName(int32_t(to)), firn_dtype_bits(int32_t(to)));
  return setChecked(call, 0, int32_t(to), call->inputs[0].dims, call->inputs[0].rank);
}

int32_t runBitCast(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (y && elementCount(*y) > 0)
    memcpy(y->data, call->inputs[0].data, size_t(firn_dtype_bytes(y->dtype, elementCount(*y))));
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Cast, "ai.onnx::Cast", inferCast, runCast)
FIRN_OPERATOR(ai_onnx, CastLike, "ai.onnx::CastLike", inferCastLike, runCast)
FIRN_OPERATOR(ai_onnx, BitCast, "ai.onnx::BitCast", inferBitCast, runBitCast)

} // namespace firn::kernels
