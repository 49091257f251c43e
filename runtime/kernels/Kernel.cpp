#include "runtime/kernels/Kernel.h"

#include <stdarg.h>

#include "runtime/kernels/SmallFloat.h"

namespace firn::kernels {

int32_t fail(firn_call *call, int32_t status, const char *format, ...) {
  if (call->message_capacity > 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->message, size_t(call->message_capacity), format, arguments);
    va_end(arguments);
  }
  return status;
}

// --- attributes ------------------------------------------------------------------------------------------------------

const firn_attribute *findAttribute(const firn_call *call, const char *name) {
  for (int32_t i = 0; i < call->attribute_count; ++i)
    if (strcmp(call->attributes[i].name, name) == 0)
      return &call->attributes[i];
  return nullptr;
}

int64_t intAttribute(const firn_call *call, const char *name, int64_t fallback) {
  const firn_attribute *attribute = findAttribute(call, name);
  return attribute && attribute->kind == FIRN_ATTR_INT ? *static_cast<const int64_t *>(attribute->data) : fallback;
}

float floatAttribute(const firn_call *call, const char *name, float fallback) {
  const firn_attribute *attribute = findAttribute(call, name);
  return attribute && attribute->kind == FIRN_ATTR_FLOAT ? *static_cast<const float *>(attribute->data) : fallback;
}

bool stringAttributeIs(const firn_call *call, const char *name, const char *text, const char *fallback) {
  const firn_attribute *attribute = findAttribute(call, name);
  if (!attribute || attribute->kind != FIRN_ATTR_STRING)
    return strcmp(fallback, text) == 0;
  size_t length = strlen(text);
  return size_t(attribute->count) == length && memcmp(attribute->data, text, length) == 0;
}

const int64_t *intsAttribute(const firn_call *call, const char *name, int64_t *count) {
  const firn_attribute *attribute = findAttribute(call, name);
  if (!attribute || attribute->kind != FIRN_ATTR_INTS) {
    *count = 0;
    return nullptr;
  }
  *count = attribute->count;
  return static_cast<const int64_t *>(attribute->data);
}

// --- inputs and outputs ----------------------------------------------------------------------------------------------

const char *dtypeName(int32_t dtype) {
  static const char names[FIRN_DTYPE_COUNT][16] = {
      "none",      "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  return dtype > 0 && dtype < FIRN_DTYPE_COUNT ? names[dtype] : "none";
}

int32_t requireInput(firn_call *call, int32_t i, uint32_t dtypes) {
  const firn_view *view = input(call, i);
  if (!view)
    return fail(call, FIRN_CALL_INVALID, "input %d is missing", i);
  if (view->dtype > 0 && view->dtype < FIRN_DTYPE_COUNT && (dtypes & typeSet(view->dtype)))
    return FIRN_CALL_OK;
  char expected[256] = "";
  size_t used = 0;
  for (int32_t dtype = 1; dtype < FIRN_DTYPE_COUNT && used < sizeof expected; ++dtype)
    if (dtypes & typeSet(dtype))
      used += size_t(snprintf(expected + used, sizeof expected - used, used ? ", %s" : "%s", dtypeName(dtype)));
  return fail(call, FIRN_CALL_INVALID, "input %d has the wrong element type: expected one of %s, found %s", i, expected,
              dtypeName(view->dtype));
}

int32_t requireSameType(firn_call *call, int32_t i, int32_t j) {
  if (input(call, i)->dtype == input(call, j)->dtype)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "input %d must have the element type of input %d: expected %s, found %s", j, i,
              dtypeName(input(call, i)->dtype), dtypeName(input(call, j)->dtype));
}

int32_t requireValue(firn_call *call, int32_t i) {
  const firn_view *view = input(call, i);
  if (!view || view->data || elementCount(*view) == 0)
    return FIRN_CALL_OK;
  call->needed = i;
  return fail(call, FIRN_CALL_NEEDS_VALUE, "the output shape depends on the values of input %d", i);
}

const firn_view *input(const firn_call *call, int32_t i) {
  return i < call->input_count && call->inputs[i].rank >= 0 ? &call->inputs[i] : nullptr;
}

firn_view *output(const firn_call *call, int32_t i) {
  return i < call->output_count && call->outputs[i].rank >= 0 ? &call->outputs[i] : nullptr;
}

int64_t elementCount(const firn_view &view) { return extent(view, 0, view.rank); }

int64_t extent(const firn_view &view, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; ++i)
    count *= view.dims[i];
  return count;
}

void setType(firn_view *view, int32_t dtype, const int64_t *dims, int32_t rank) {
  if (!view)
    return;
  view->dtype = dtype;
  view->rank = rank;
  for (int32_t i = 0; i < rank; ++i)
    view->dims[i] = dims[i];
}

void setRank(firn_call *call, int32_t i, int32_t dtype, int32_t rank) {
  int64_t dims[FIRN_MAX_RANK];
  for (int64_t &dim : dims)
    dim = -1;
  setType(output(call, i), dtype, dims, rank);
}

void setRankLike(firn_call *call, int32_t i, int32_t j, int32_t rank) {
  if (const firn_view *view = input(call, j))
    setRank(call, i, view->dtype, rank < 0 ? view->rank : rank);
}

int32_t setChecked(firn_call *call, int32_t i, int32_t dtype, const int64_t *dims, int32_t rank) {
  if (rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "output %d has %d axes: at most %d are supported", i, rank, FIRN_MAX_RANK);
  // 2^47 bytes are all that a process can address; below that no product of this library overflows.
  const int64_t limit = (int64_t(1) << 47) / ((firn_dtype_bits(dtype) + 7) / 8 + !firn_dtype_bits(dtype));
  int64_t count = 1;
  bool isEmpty = false;
  for (int32_t k = 0; k < rank; ++k) {
    if (dims[k] < 0)
      return fail(call, FIRN_CALL_INVALID, "output %d would have a negative dimension: axis %d is %lld", i, k,
                  static_cast<long long>(dims[k]));
    isEmpty |= dims[k] == 0;
  }
  for (int32_t k = 0; k < rank && !isEmpty; ++k) {
    if (dims[k] > limit / count)
      return fail(call, FIRN_CALL_INVALID, "output %d is too large: its dimensions multiply to more than 2^47 bytes",
                  i);
    count *= dims[k];
  }
  if (i < call->output_count)
    setType(output(call, i), dtype, dims, rank);
  return FIRN_CALL_OK;
}

int32_t normalizeAxis(int64_t axis, int32_t rank) {
  if (axis < -rank || axis >= rank)
    return -1;
  return int32_t(axis < 0 ? axis + rank : axis);
}

// --- elements --------------------------------------------------------------------------------------------------------

bool isFloat(int32_t dtype) {
  switch (dtype) {
  case FIRN_F32:
  case FIRN_F16:
  case FIRN_F64:
  case FIRN_BF16:
  case FIRN_F8E4M3FN:
  case FIRN_F8E4M3FNUZ:
  case FIRN_F8E5M2:
  case FIRN_F8E5M2FNUZ:
  case FIRN_F4E2M1:
  case FIRN_F8E8M0:
    return true;
  default:
    return false;
  }
}

bool isSigned(int32_t dtype) {
  return dtype == FIRN_I8 || dtype == FIRN_I16 || dtype == FIRN_I32 || dtype == FIRN_I64 || dtype == FIRN_I4 ||
         dtype == FIRN_I2;
}

bool isUnsigned(int32_t dtype) {
  return dtype == FIRN_U8 || dtype == FIRN_U16 || dtype == FIRN_U32 || dtype == FIRN_U64 || dtype == FIRN_U4 ||
         dtype == FIRN_U2 || dtype == FIRN_BOOL;
}

float f16ToFloat(uint16_t bits) { return float(decodeSmallFloat(formatF16, bits)); }
uint16_t floatToF16(float value) { return doubleToF16(value); }
uint16_t doubleToF16(double value) { return uint16_t(encodeSmallFloat(formatF16, value, false)); }

float bf16ToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t doubleToBf16(double value) { return uint16_t(encodeSmallFloat(formatBf16, value, false)); }

/// The format of a float of at most 16 bits that has a sign.
static const SmallFloat *smallFormat(int32_t dtype) {
  switch (dtype) {
  case FIRN_F16:
    return &formatF16;
  case FIRN_BF16:
    return &formatBf16;
  case FIRN_F8E4M3FN:
    return &formatF8E4M3FN;
  case FIRN_F8E4M3FNUZ:
    return &formatF8E4M3FNUZ;
  case FIRN_F8E5M2:
    return &formatF8E5M2;
  case FIRN_F8E5M2FNUZ:
    return &formatF8E5M2FNUZ;
  case FIRN_F4E2M1:
    return &formatF4E2M1;
  default:
    return nullptr;
  }
}

uint32_t getPacked(const firn_view &view, int64_t i, int32_t bits) {
  int64_t perByte = 8 / bits;
  uint32_t byte = static_cast<const uint8_t *>(view.data)[i / perByte];
  return (byte >> (i % perByte * bits)) & ((1u << bits) - 1);
}

void setPacked(const firn_view &view, int64_t i, int32_t bits, uint32_t value) {
  int64_t perByte = 8 / bits;
  int32_t shift = int32_t(i % perByte) * bits;
  uint32_t mask = ((1u << bits) - 1) << shift;
  uint8_t *byte = static_cast<uint8_t *>(view.data) + i / perByte;
  *byte = uint8_t((*byte & ~mask) | ((value << shift) & mask));
}

static double decodeE8M0(uint8_t bits) { return bits == 0xff ? double(NAN) : ldexp(1.0, int32_t(bits) - 127); }

static uint32_t encodeE8M0(double value, bool saturate, int32_t direction) {
  if (isnan(value))
    return 0xff;
  value = fabs(value);
  if (isinf(value))
    return saturate ? 0xfe : 0xff;
  if (value == 0)
    return saturate ? 0 : 0xff;
  int exponent;
  double fraction = 2 * frexp(value, &exponent); // in [1, 2)
  --exponent;
  if (direction > 0 ? fraction > 1 : direction == 0 && fraction >= 1.5)
    ++exponent;
  if (exponent < -127 || exponent > 127)
    return saturate ? (exponent < 0 ? 0 : 0xfe) : 0xff;
  return uint32_t(exponent + 127);
}

uint32_t encodeFloat(int32_t dtype, double value, bool saturate, int32_t direction) {
  if (dtype == FIRN_F8E8M0)
    return encodeE8M0(value, saturate, direction);
  const SmallFloat *format = smallFormat(dtype);
  return format ? encodeSmallFloat(*format, value, saturate) : 0;
}

double getDouble(const firn_view &view, int64_t i) {
  switch (view.dtype) {
  case FIRN_F32:
  case FIRN_C64:
    return static_cast<const float *>(view.data)[view.dtype == FIRN_C64 ? 2 * i : i];
  case FIRN_F64:
  case FIRN_C128:
    return static_cast<const double *>(view.data)[view.dtype == FIRN_C128 ? 2 * i : i];
  case FIRN_F16:
    return decodeSmallFloat(formatF16, static_cast<const uint16_t *>(view.data)[i]);
  case FIRN_BF16:
    return bf16ToFloat(static_cast<const uint16_t *>(view.data)[i]);
  case FIRN_F8E4M3FN:
  case FIRN_F8E4M3FNUZ:
  case FIRN_F8E5M2:
  case FIRN_F8E5M2FNUZ:
    return decodeSmallFloat(*smallFormat(view.dtype), static_cast<const uint8_t *>(view.data)[i]);
  case FIRN_F4E2M1:
    return decodeSmallFloat(formatF4E2M1, getPacked(view, i, 4));
  case FIRN_F8E8M0:
    return decodeE8M0(static_cast<const uint8_t *>(view.data)[i]);
  case FIRN_U64:
    return double(static_cast<const uint64_t *>(view.data)[i]);
  default:
    return double(getInt(view, i));
  }
}

/// Truncates, saturating at [low, high] (which are exact, or one beyond a representable bound for 64 bits); NaN is 0.
static int64_t saturate(double value, int64_t low, int64_t high) {
  if (isnan(value))
    return 0;
  if (value <= double(low))
    return low;
  if (value >= double(high))
    return high;
  return int64_t(value);
}

static uint64_t saturateUnsigned(double value) {
  if (!(value > 0)) // NaN too
    return 0;
  return value >= 18446744073709551616.0 ? UINT64_MAX : uint64_t(value);
}

int64_t getInt(const firn_view &view, int64_t i) {
  switch (view.dtype) {
  case FIRN_U8:
    return static_cast<const uint8_t *>(view.data)[i];
  case FIRN_I8:
    return static_cast<const int8_t *>(view.data)[i];
  case FIRN_U16:
    return static_cast<const uint16_t *>(view.data)[i];
  case FIRN_I16:
    return static_cast<const int16_t *>(view.data)[i];
  case FIRN_U32:
    return static_cast<const uint32_t *>(view.data)[i];
  case FIRN_I32:
    return static_cast<const int32_t *>(view.data)[i];
  case FIRN_I64:
  case FIRN_U64:
    return static_cast<const int64_t *>(view.data)[i];
  case FIRN_BOOL:
    return static_cast<const uint8_t *>(view.data)[i] != 0;
  case FIRN_U4:
    return getPacked(view, i, 4);
  case FIRN_I4:
    return int64_t(getPacked(view, i, 4) ^ 8) - 8;
  case FIRN_U2:
    return getPacked(view, i, 2);
  case FIRN_I2:
    return int64_t(getPacked(view, i, 2) ^ 2) - 2;
  case FIRN_STRING:
    return 0;
  default:
    return saturate(getDouble(view, i), INT64_MIN, INT64_MAX);
  }
}

void setDouble(const firn_view &view, int64_t i, double value) {
  switch (view.dtype) {
  case FIRN_F32:
    static_cast<float *>(view.data)[i] = float(value);
    return;
  case FIRN_F64:
    static_cast<double *>(view.data)[i] = value;
    return;
  case FIRN_C64:
    static_cast<float *>(view.data)[2 * i] = float(value);
    static_cast<float *>(view.data)[2 * i + 1] = 0;
    return;
  case FIRN_C128:
    static_cast<double *>(view.data)[2 * i] = value;
    static_cast<double *>(view.data)[2 * i + 1] = 0;
    return;
  case FIRN_F16:
    static_cast<uint16_t *>(view.data)[i] = doubleToF16(value);
    return;
  case FIRN_BF16:
    static_cast<uint16_t *>(view.data)[i] = doubleToBf16(value);
    return;
  case FIRN_F8E4M3FN:
  case FIRN_F8E4M3FNUZ:
  case FIRN_F8E5M2:
  case FIRN_F8E5M2FNUZ:
  case FIRN_F8E8M0:
    static_cast<uint8_t *>(view.data)[i] = uint8_t(encodeFloat(view.dtype, value, true, 1));
    return;
  case FIRN_F4E2M1:
    return setPacked(view, i, 4, encodeSmallFloat(formatF4E2M1, value, true));
  case FIRN_BOOL:
    static_cast<uint8_t *>(view.data)[i] = value != 0; // NaN is true
    return;
  case FIRN_U64:
    static_cast<uint64_t *>(view.data)[i] = saturateUnsigned(value);
    return;
  default: {
    int32_t bits = firn_dtype_bits(view.dtype);
    if (isSigned(view.dtype)) {
      int64_t high = int64_t((uint64_t(1) << (bits - 1)) - 1);
      return setInt(view, i, saturate(value, -high - 1, high));
    }
    if (isUnsigned(view.dtype))
      setInt(view, i, saturate(value, 0, (int64_t(1) << bits) - 1));
  }
  }
}

double stickyDouble(uint64_t value) {
  if (value >> 53)
    value = (value & ~uint64_t(0x7ff)) | uint64_t((value & 0x7ff) != 0) << 11;
  return double(value);
}

void setInt(const firn_view &view, int64_t i, int64_t value) {
  switch (view.dtype) {
  case FIRN_U8:
  case FIRN_I8:
    static_cast<uint8_t *>(view.data)[i] = uint8_t(value);
    return;
  case FIRN_U16:
  case FIRN_I16:
    static_cast<uint16_t *>(view.data)[i] = uint16_t(value);
    return;
  case FIRN_U32:
  case FIRN_I32:
    static_cast<uint32_t *>(view.data)[i] = uint32_t(value);
    return;
  case FIRN_U64:
  case FIRN_I64:
    static_cast<int64_t *>(view.data)[i] = value;
    return;
  case FIRN_BOOL:
    static_cast<uint8_t *>(view.data)[i] = value != 0;
    return;
  case FIRN_U4:
  case FIRN_I4:
    return setPacked(view, i, 4, uint32_t(value));
  case FIRN_U2:
  case FIRN_I2:
    return setPacked(view, i, 2, uint32_t(value));
  case FIRN_F64:
    static_cast<double *>(view.data)[i] = double(value);
    return;
  case FIRN_F32:
    static_cast<float *>(view.data)[i] = float(value);
    return;
  case FIRN_STRING:
    return;
  default:
    setDouble(view, i, value < 0 ? -stickyDouble(0 - uint64_t(value)) : stickyDouble(uint64_t(value)));
  }
}

void loadDoubles(const firn_view &view, int64_t first, int64_t stride, int64_t count, double *to) {
  if (count == 0)
    return; // an empty view has no memory
  switch (view.dtype) {
  case FIRN_F32: {
    const float *from = static_cast<const float *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
    return;
  }
  case FIRN_F64: {
    const double *from = static_cast<const double *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
    return;
  }
  case FIRN_F16: {
    const uint16_t *from = static_cast<const uint16_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = decodeSmallFloat(formatF16, from[i * stride]);
    return;
  }
  case FIRN_BF16: {
    const uint16_t *from = static_cast<const uint16_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = bf16ToFloat(from[i * stride]);
    return;
  }
  default:
    for (int64_t i = 0; i < count; ++i)
      to[i] = getDouble(view, first + i * stride);
  }
}

void loadInts(const firn_view &view, int64_t first, int64_t stride, int64_t count, int64_t *to) {
  if (count == 0)
    return; // an empty view has no memory
  switch (view.dtype) {
  case FIRN_I64: {
    const int64_t *from = static_cast<const int64_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
    return;
  }
  case FIRN_I32: {
    const int32_t *from = static_cast<const int32_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
    return;
  }
  default:
    for (int64_t i = 0; i < count; ++i)
      to[i] = getInt(view, first + i * stride);
  }
}

void storeDoubles(const firn_view &view, int64_t first, int64_t count, const double *from) {
  if (count == 0)
    return; // an empty view has no memory
  switch (view.dtype) {
  case FIRN_F32: {
    float *to = static_cast<float *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = float(from[i]);
    return;
  }
  case FIRN_F64:
    memcpy(static_cast<double *>(view.data) + first, from, size_t(count) * sizeof(double));
    return;
  case FIRN_F16: {
    uint16_t *to = static_cast<uint16_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = uint16_t(encodeSmallFloat(formatF16, from[i], false));
    return;
  }
  case FIRN_BF16: {
    uint16_t *to = static_cast<uint16_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = uint16_t(encodeSmallFloat(formatBf16, from[i], false));
    return;
  }
  default:
    for (int64_t i = 0; i < count; ++i)
      setDouble(view, first + i, from[i]);
  }
}

void storeInts(const firn_view &view, int64_t first, int64_t count, const int64_t *from) {
  if (count == 0)
    return; // an empty view has no memory
  switch (view.dtype) {
  case FIRN_I64:
    memcpy(static_cast<int64_t *>(view.data) + first, from, size_t(count) * sizeof(int64_t));
    return;
  case FIRN_I32: {
    int32_t *to = static_cast<int32_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = int32_t(from[i]);
    return;
  }
  default:
    for (int64_t i = 0; i < count; ++i)
      setInt(view, first + i, from[i]);
  }
}

void copyElements(const firn_view &to, int64_t i, const firn_view &from, int64_t j, int64_t count) {
  if (count == 0)
    return; // an empty view has no memory
  int32_t bits = firn_dtype_bits(from.dtype);
  if (bits >= 8) {
    int64_t bytes = bits / 8;
    memcpy(static_cast<char *>(to.data) + i * bytes, static_cast<const char *>(from.data) + j * bytes,
           size_t(count * bytes));
    return;
  }
  for (int64_t k = 0; k < count; ++k)
    setPacked(to, i + k, bits, getPacked(from, j + k, bits));
}

void copyElement(const firn_view &to, int64_t i, const firn_view &from, int64_t j) { copyElements(to, i, from, j, 1); }

// --- broadcasting ----------------------------------------------------------------------------------------------------

bool broadcastDims(const int64_t *a, int32_t aRank, const int64_t *b, int32_t bRank, int64_t *dims, int32_t *rank) {
  int64_t result[FIRN_MAX_RANK];
  int32_t resultRank = aRank > bRank ? aRank : bRank;
  for (int32_t k = 1; k <= resultRank; ++k) { // from the last axis
    int64_t da = k <= aRank ? a[aRank - k] : 1;
    int64_t db = k <= bRank ? b[bRank - k] : 1;
    if (da != db && da != 1 && db != 1)
      return false;
    result[resultRank - k] = da == 1 ? db : da;
  }
  for (int32_t k = 0; k < resultRank; ++k)
    dims[k] = result[k];
  *rank = resultRank;
  return true;
}

void broadcastStrides(const firn_view &view, const int64_t *dims, int32_t rank, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    int32_t axis = k - (rank - view.rank);
    strides[k] = axis < 0 || (view.dims[axis] == 1 && dims[k] != 1) ? 0 : stride;
    if (axis >= 0)
      stride *= view.dims[axis];
  }
}

bool nextIndex(int64_t *index, const int64_t *dims, int32_t rank) {
  for (int32_t k = rank - 1; k >= 0; --k) {
    if (++index[k] < dims[k])
      return true;
    index[k] = 0;
  }
  return false;
}

char *shapeText(const firn_view &view, char *text, int64_t capacity) {
  int64_t used = snprintf(text, size_t(capacity), "[");
  for (int32_t k = 0; k < view.rank && used < capacity; ++k)
    used += snprintf(text + used, size_t(capacity - used), k ? ", %lld" : "%lld", static_cast<long long>(view.dims[k]));
  if (used < capacity)
    snprintf(text + used, size_t(capacity - used), "]");
  return text;
}

} // namespace firn::kernels
