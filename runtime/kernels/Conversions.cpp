// The conversions of half precision that LLVM calls where the target has no instruction for them, under LLVM's names.
// Integer arithmetic alone, so that the compiler cannot turn one of them into a call of itself.
#include "runtime/kernels/SmallFloat.h"

using namespace firn::kernels;

#pragma clang diagnostic ignored "-Wmissing-prototypes"
#define FIRN_RUNTIME_CALL extern "C" __attribute__((visibility("hidden")))

template <typename To, typename From> static To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// A float widened to double through its bits; signalling NaNs become quiet.
static double widen(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return doubleFromBits(uint64_t(bits >> 31) << 63 | uint64_t(0x7ff8) << 48);
  return value;
}

FIRN_RUNTIME_CALL _Float16 __truncdfhf2(double value) {
  return bitCast<_Float16>(uint16_t(encodeSmallFloat(formatF16, value, false)));
}

FIRN_RUNTIME_CALL _Float16 __truncsfhf2(float value) {
  return bitCast<_Float16>(uint16_t(encodeSmallFloat(formatF16, widen(value), false)));
}

FIRN_RUNTIME_CALL float __extendhfsf2(_Float16 value) {
  return float(decodeSmallFloat(formatF16, bitCast<uint16_t>(value)));
}

FIRN_RUNTIME_CALL double __extendhfdf2(_Float16 value) { return decodeSmallFloat(formatF16, bitCast<uint16_t>(value)); }

FIRN_RUNTIME_CALL __bf16 __truncdfbf2(double value) {
  return bitCast<__bf16>(uint16_t(encodeSmallFloat(formatBf16, value, false)));
}

FIRN_RUNTIME_CALL __bf16 __truncsfbf2(float value) {
  return bitCast<__bf16>(uint16_t(encodeSmallFloat(formatBf16, widen(value), false)));
}
