// What reference kernels share: attribute access, element access of every dtype, broadcasting, messages, registration.
//
// Reference kernels are slow, obvious and portable: one C++ function per operator, sums in double in index order,
// nothing vectorised by hand. They use libc and libm only: no exceptions, no RTTI, no static constructors, no C++
// runtime library (header-only parts of the standard library are fine), no allocation but scratch().
#ifndef FIRN_KERNELS_KERNEL_H
#define FIRN_KERNELS_KERNEL_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/abi/reference.h"

namespace firn::kernels {

/// Registers an operator. `domain` has underscores for dots: FIRN_OPERATOR(ai_onnx, Relu, "ai.onnx::Relu", infer, run).
/// CMake collects these lines (they start at column 0) into the compiler's table of operators.
#define FIRN_OPERATOR(domain, Name, qualified, inferFn, runFn)                                                         \
  extern "C" __attribute__((visibility("hidden"))) const firn_operator firn_op_##domain##_##Name;                      \
  const firn_operator firn_op_##domain##_##Name = {qualified, inferFn, runFn};

/// Returns `status` with a formatted message in the call.
__attribute__((format(printf, 3, 4))) int32_t fail(firn_call *call, int32_t status, const char *format, ...);

/// Evaluates an expression that yields a status and returns it from the enclosing function unless it is FIRN_CALL_OK.
#define FIRN_TRY(expression)                                                                                           \
  do {                                                                                                                 \
    int32_t firnStatus = (expression);                                                                                 \
    if (firnStatus != FIRN_CALL_OK)                                                                                    \
      return firnStatus;                                                                                               \
  } while (0)

// --- attributes ------------------------------------------------------------------------------------------------------
const firn_attribute *findAttribute(const firn_call *call, const char *name);
int64_t intAttribute(const firn_call *call, const char *name, int64_t fallback);
float floatAttribute(const firn_call *call, const char *name, float fallback);
/// Whether string attribute `name` equals `text`; an absent one equals `fallback`.
bool stringAttributeIs(const firn_call *call, const char *name, const char *text, const char *fallback);
/// The list and its length; NULL and 0 where absent.
const int64_t *intsAttribute(const firn_call *call, const char *name, int64_t *count);

// --- inputs and outputs ----------------------------------------------------------------------------------------------
/// Sets of dtypes: the bit of each is its number.
constexpr uint32_t typeSet(int32_t dtype) { return uint32_t(1) << dtype; }
constexpr uint32_t floatTypes = typeSet(FIRN_F16) | typeSet(FIRN_BF16) | typeSet(FIRN_F32) | typeSet(FIRN_F64);
constexpr uint32_t float8Types =
    typeSet(FIRN_F8E4M3FN) | typeSet(FIRN_F8E4M3FNUZ) | typeSet(FIRN_F8E5M2) | typeSet(FIRN_F8E5M2FNUZ);
constexpr uint32_t signedTypes = typeSet(FIRN_I8) | typeSet(FIRN_I16) | typeSet(FIRN_I32) | typeSet(FIRN_I64);
constexpr uint32_t unsignedTypes = typeSet(FIRN_U8) | typeSet(FIRN_U16) | typeSet(FIRN_U32) | typeSet(FIRN_U64);
constexpr uint32_t integerTypes = signedTypes | unsignedTypes;
constexpr uint32_t numericTypes = floatTypes | integerTypes;
constexpr uint32_t boolType = typeSet(FIRN_BOOL);
constexpr uint32_t stringType = typeSet(FIRN_STRING);
constexpr uint32_t indexTypes = typeSet(FIRN_I32) | typeSet(FIRN_I64);
constexpr uint32_t allTypes = (typeSet(FIRN_DTYPE_COUNT) - 1) & ~typeSet(FIRN_DTYPE_NONE);

/// "float32", as ONNX's documents call it.
const char *dtypeName(int32_t dtype);
/// Fails unless input `i` is present and of one of `dtypes`.
int32_t requireInput(firn_call *call, int32_t i, uint32_t dtypes);
/// Fails unless inputs `i` and `j` have the same dtype (both present).
int32_t requireSameType(firn_call *call, int32_t i, int32_t j);
/// Asks for the data of input `i` of integers while it is missing (an empty input has none and needs none).
int32_t requireValue(firn_call *call, int32_t i);
/// Input or output `i` if it is present, else NULL.
const firn_view *input(const firn_call *call, int32_t i);
firn_view *output(const firn_call *call, int32_t i);
int64_t elementCount(const firn_view &view);
/// Product of dims [from, to).
int64_t extent(const firn_view &view, int32_t from, int32_t to);
/// Writes dtype and dims of an output; does nothing where `view` is NULL.
void setType(firn_view *view, int32_t dtype, const int64_t *dims, int32_t rank);
/// What is known of output `i` before the data that its shape waits for: dtype and rank; the dims become -1.
void setRank(firn_call *call, int32_t i, int32_t dtype, int32_t rank);
/// The same with the dtype of input `j` and its rank, or `rank` where that is given; nothing where it is absent.
void setRankLike(firn_call *call, int32_t i, int32_t j, int32_t rank = -1);
/// Writes the type of output `i` after checking it: no negative dimension, a size that a process can address.
int32_t setChecked(firn_call *call, int32_t i, int32_t dtype, const int64_t *dims, int32_t rank);
/// `axis` counted from the front; -1 if it is out of [-rank, rank).
int32_t normalizeAxis(int64_t axis, int32_t rank);
/// Scratch memory for `count` elements of T, NULL where refused.
template <typename T> T *scratch(firn_call *call, int64_t count) {
  return static_cast<T *>(call->scratch(call, count * int64_t(sizeof(T))));
}

// --- elements --------------------------------------------------------------------------------------------------------
bool isFloat(int32_t dtype);    // f16, bf16, f32, f64, f8*, f4
bool isSigned(int32_t dtype);   // signed integers
bool isUnsigned(int32_t dtype); // unsigned integers and bool
float f16ToFloat(uint16_t bits);
uint16_t floatToF16(float value); // round to nearest even, overflow to infinity
uint16_t doubleToF16(double value);
float bf16ToFloat(uint16_t bits);
uint16_t doubleToBf16(double value);
/// Any numeric element as a double (exact but for 64-bit integers beyond 2^53).
double getDouble(const firn_view &view, int64_t i);
/// Any numeric element as an integer: floats truncate; unsigned 64-bit values keep their bits.
int64_t getInt(const firn_view &view, int64_t i);
/// Stores with one rounding to the view's dtype. Integers: from double saturating, NaN as 0; from int64 wrapping.
/// bool: != 0.
void setDouble(const firn_view &view, int64_t i, double value);
void setInt(const firn_view &view, int64_t i, int64_t value);
/// Blocks of elements, for loops that settle the dtype once a block: `count` of them from `first` on, `stride` apart
/// (0 repeats one). The same conversions as getDouble, getInt, setDouble and setInt.
void loadDoubles(const firn_view &view, int64_t first, int64_t stride, int64_t count, double *to);
void loadInts(const firn_view &view, int64_t first, int64_t stride, int64_t count, int64_t *to);
void storeDoubles(const firn_view &view, int64_t first, int64_t count, const double *from);
void storeInts(const firn_view &view, int64_t first, int64_t count, const int64_t *from);
/// `value` as a double that still rounds to any narrower float as `value` does: the bits that do not fit are or-ed into
/// the last one that does.
double stickyDouble(uint64_t value);
/// Elements of 4 or 2 bits as their bits.
uint32_t getPacked(const firn_view &view, int64_t i, int32_t bits);
void setPacked(const firn_view &view, int64_t i, int32_t bits, uint32_t value);
/// The bits of a float of at most 16 bits; `saturate`: values out of range become the largest finite one (setDouble
/// saturates floats of 8 and 4 bits). E8M0 drops signs and rounds up for direction 1, down for -1, to nearest for 0.
uint32_t encodeFloat(int32_t dtype, double value, bool saturate, int32_t direction);
/// Copies `count` adjacent elements between views of the same dtype, whatever it is (strings, packed 4-bit, complex).
void copyElements(const firn_view &to, int64_t i, const firn_view &from, int64_t j, int64_t count);
/// Copies one element between views of the same dtype, whatever it is (strings, packed 4-bit, complex).
void copyElement(const firn_view &to, int64_t i, const firn_view &from, int64_t j);

// --- broadcasting ----------------------------------------------------------------------------------------------------
/// Numpy broadcasting of `a` and `b` into dims/rank (dims may start as a copy of another shape); false if they do not
/// fit.
bool broadcastDims(const int64_t *a, int32_t aRank, const int64_t *b, int32_t bRank, int64_t *dims, int32_t *rank);
/// Row-major strides of `view` seen as the trailing dims of a shape of `rank` axes, 0 where it is broadcast.
void broadcastStrides(const firn_view &view, const int64_t *dims, int32_t rank, int64_t *strides);
/// Advances a multi-index over dims; false after the last one.
bool nextIndex(int64_t *index, const int64_t *dims, int32_t rank);

// --- messages --------------------------------------------------------------------------------------------------------
/// Writes "[2, 3]" and returns `text`.
char *shapeText(const firn_view &view, char *text, int64_t capacity);

} // namespace firn::kernels
#endif
