/* Element types, shared by the compiler, the executor and the reference kernels.
 * The numbers are those of ONNX's TensorProto.DataType, so that files need no translation. */
#ifndef FIRN_ABI_DTYPE_H
#define FIRN_ABI_DTYPE_H

#include <stdint.h>

#define FIRN_DTYPE_NONE 0
#define FIRN_F32 1
#define FIRN_U8 2
#define FIRN_I8 3
#define FIRN_U16 4
#define FIRN_I16 5
#define FIRN_I32 6
#define FIRN_I64 7
#define FIRN_STRING 8 /* an element is a firn_string */
#define FIRN_BOOL 9   /* one byte, 0 is false */
#define FIRN_F16 10
#define FIRN_F64 11
#define FIRN_U32 12
#define FIRN_U64 13
#define FIRN_C64 14
#define FIRN_C128 15
#define FIRN_BF16 16
#define FIRN_F8E4M3FN 17
#define FIRN_F8E4M3FNUZ 18
#define FIRN_F8E5M2 19
#define FIRN_F8E5M2FNUZ 20
#define FIRN_U4 21 /* 4-bit and 2-bit elements are packed, the first in the low bits; a tensor ends on a byte */
#define FIRN_I4 22
#define FIRN_F4E2M1 23
#define FIRN_F8E8M0 24
#define FIRN_U2 25
#define FIRN_I2 26
#define FIRN_DTYPE_COUNT 27
#define FIRN_LIST 31 /* no element type: the view or tensor is a list of tensors (a sequence or a map) */

/* Bits of one element, 0 for an unknown number. */
static inline int32_t firn_dtype_bits(int32_t dtype) {
  static const uint8_t bits[FIRN_DTYPE_COUNT] = {0,  32, 8,  8,   16, 16, 32, 64, 128, 8, 16, 64, 32, 64,
                                                 64, 128, 16, 8, 8,  8,  8,  4,  4,   4, 8,  2,  2};
  return dtype > 0 && dtype < FIRN_DTYPE_COUNT ? bits[dtype] : 0;
}

/* Bytes of `count` elements (count >= 0 and small enough for the product, which the caller has checked). */
static inline int64_t firn_dtype_bytes(int32_t dtype, int64_t count) {
  int64_t bits = firn_dtype_bits(dtype);
  return bits >= 8 ? bits / 8 * count : (bits * count + 7) / 8;
}

#endif
