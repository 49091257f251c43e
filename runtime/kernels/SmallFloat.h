// Floats of 16 bits and fewer as bit patterns, by integer arithmetic alone: the same bits on every machine.
#ifndef FIRN_KERNELS_SMALLFLOAT_H
#define FIRN_KERNELS_SMALLFLOAT_H

#include <stdint.h>
#include <string.h>

namespace firn::kernels {

/// A format of one sign bit, some exponent bits and `mantissaBits`. `minExponent` is the exponent of the smallest
/// normal value and of all subnormal ones; `largest` the bits of the largest finite value; `nan` those of NaN.
struct SmallFloat {
  int32_t bits;
  int32_t mantissaBits;
  int32_t minExponent;
  uint32_t largest;
  uint32_t infinity; // what overflow gives without saturation; the NaN of formats that lack infinity
  uint32_t nan;
  bool hasNegativeZero; // false: that pattern is the only NaN
};

constexpr SmallFloat formatF16 = {16, 10, -14, 0x7bff, 0x7c00, 0x7e00, true};
constexpr SmallFloat formatBf16 = {16, 7, -126, 0x7f7f, 0x7f80, 0x7fc0, true};
constexpr SmallFloat formatF8E4M3FN = {8, 3, -6, 0x7e, 0x7f, 0x7f, true};
constexpr SmallFloat formatF8E4M3FNUZ = {8, 3, -7, 0x7f, 0x80, 0x80, false};
constexpr SmallFloat formatF8E5M2 = {8, 2, -14, 0x7b, 0x7c, 0x7e, true};
constexpr SmallFloat formatF8E5M2FNUZ = {8, 2, -15, 0x7f, 0x80, 0x80, false};
constexpr SmallFloat formatF4E2M1 = {4, 1, 0, 0x7, 0x7, 0x8, true}; // has no NaN: minus zero stands for it

inline uint64_t doubleBits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline double doubleFromBits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounds to nearest, ties to even. `saturate`: values out of range, infinities included, become the largest finite
/// one.
inline uint32_t encodeSmallFloat(const SmallFloat &format, double value, bool saturate) {
  uint64_t bits = doubleBits(value);
  uint32_t sign = uint32_t(bits >> 63) << (format.bits - 1);
  bits &= UINT64_MAX >> 1;
  uint64_t infinity = uint64_t(0x7ff) << 52;
  if (bits > infinity)
    return format.hasNegativeZero ? sign | format.nan : format.nan;
  uint32_t magnitude = format.infinity;
  if (bits < infinity) {
    int32_t exponent =
        int32_t(bits >> 52) - 1023; // a subnormal double is far below half of any smallest value: it becomes 0
    uint64_t mantissa = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
    int32_t below = exponent < format.minExponent ? format.minExponent - exponent : 0;
    int32_t shift = 52 - format.mantissaBits + below;
    if (shift > 54)
      shift = 54; // less than half of the smallest value whatever the mantissa
    uint64_t kept = mantissa >> shift;
    uint64_t rest = mantissa & ((uint64_t(1) << shift) - 1);
    uint64_t half = uint64_t(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    // The hidden bit adds one to the exponent field, and so does a carry out of the mantissa.
    uint64_t encoded = kept + (below ? 0 : uint64_t(exponent - format.minExponent) << format.mantissaBits);
    magnitude = encoded > format.largest ? format.infinity : uint32_t(encoded);
  }
  if (magnitude == format.infinity && saturate)
    magnitude = format.largest;
  if (!format.hasNegativeZero && (magnitude == 0 || magnitude == format.nan))
    return magnitude;
  return sign | magnitude;
}

inline double decodeSmallFloat(const SmallFloat &format, uint32_t bits) {
  uint32_t signBit = uint32_t(1) << (format.bits - 1);
  uint64_t sign = uint64_t((bits & signBit) != 0) << 63;
  uint32_t magnitude = bits & (signBit - 1);
  if (!format.hasNegativeZero && bits == format.nan)
    return doubleFromBits(uint64_t(0x7ff8) << 48);
  if (magnitude > format.largest)
    return doubleFromBits(sign |
                          (magnitude == format.infinity && format.infinity != format.nan ? uint64_t(0x7ff0) << 48
                                                                                         : uint64_t(0x7ff8) << 48));
  uint32_t field = magnitude >> format.mantissaBits;
  uint32_t mantissa = magnitude & ((1u << format.mantissaBits) - 1);
  if (field)
    mantissa |= 1u << format.mantissaBits;
  int32_t exponent = int32_t(field ? field - 1 : 0) + format.minExponent - format.mantissaBits;
  double scale = doubleFromBits(uint64_t(exponent + 1023) << 52);
  return doubleFromBits(sign | doubleBits(mantissa * scale));
}

} // namespace firn::kernels
#endif
