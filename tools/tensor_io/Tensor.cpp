#include "tools/tensor_io/Tensor.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/abi/dtype.h"

namespace firn::tools {

namespace {

// Largest tensor that a tool makes: a hostile shape must not eat the machine before its file turns out too short.
constexpr int64_t mostBytes = int64_t(1) << 40;

// A small float with these exponent and fraction bits. `isFinite`: there is no infinity, the all-ones code is NaN;
// `isUnsignedZero` (the FNUZ types): NaN is the code of minus zero, and the bias is one larger.
struct SmallFloat {
  int exponentBits, fractionBits;
  bool isFinite, isUnsignedZero;
};

double decode(uint32_t code, SmallFloat format) {
  uint32_t fractionMask = (1u << format.fractionBits) - 1, exponentMask = (1u << format.exponentBits) - 1;
  uint32_t fraction = code & fractionMask, exponent = (code >> format.fractionBits) & exponentMask;
  bool isNegative = (code >> (format.fractionBits + format.exponentBits)) & 1;
  if (format.isUnsignedZero && isNegative && fraction == 0 && exponent == 0)
    return NAN;
  if (format.isFinite && !format.isUnsignedZero && exponent == exponentMask && fraction == fractionMask)
    return NAN;
  if (!format.isFinite && exponent == exponentMask)
    return fraction ? NAN : isNegative ? -INFINITY : INFINITY;
  int bias = int(exponentMask >> 1) + format.isUnsignedZero;
  double value = exponent ? std::ldexp(1 + std::ldexp(fraction, -format.fractionBits), int(exponent) - bias)
                          : std::ldexp(fraction, 1 - bias - format.fractionBits);
  return isNegative ? -value : value;
}

template <typename T> T load(const char *data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <typename T> void store(char *data, int64_t i, T value) {
  std::memcpy(data + i * int64_t(sizeof(T)), &value, sizeof(T));
}

// Element `i` of packed elements of `bits` bits.
uint32_t loadPacked(const char *data, int64_t i, int bits) {
  int64_t perByte = 8 / bits;
  return (uint32_t(uint8_t(data[i / perByte])) >> (i % perByte * bits)) & ((1u << bits) - 1);
}

void storePacked(char *data, int64_t i, int bits, uint32_t value) {
  int64_t perByte = 8 / bits;
  int shift = int(i % perByte) * bits;
  uint32_t mask = ((1u << bits) - 1) << shift;
  char &byte = data[i / perByte];
  byte = char((uint32_t(uint8_t(byte)) & ~mask) | ((value << shift) & mask));
}

uint32_t bitsOfFloat(double value) {
  float single = float(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return bits;
}

} // namespace

int32_t dtypeBits(int32_t dtype) { return firn_dtype_bits(dtype); }

bool isFloat(int32_t dtype) {
  switch (dtype) {
  case FIRN_F32:
  case FIRN_F64:
  case FIRN_F16:
  case FIRN_BF16:
  case FIRN_F8E4M3FN:
  case FIRN_F8E4M3FNUZ:
  case FIRN_F8E5M2:
  case FIRN_F8E5M2FNUZ:
  case FIRN_F4E2M1:
  case FIRN_F8E8M0:
    return true;
  }
  return false;
}

bool isComplex(int32_t dtype) { return dtype == FIRN_C64 || dtype == FIRN_C128; }

std::string typeText(int32_t dtype, const int64_t *dims, int32_t rank) {
  std::string text = firn_dtype_name(dtype);
  text += '[';
  for (int32_t d = 0; d < rank; ++d)
    text += (d ? "," : "") + (dims[d] < 0 ? "?" : std::to_string(dims[d]));
  return text + ']';
}

int64_t checkedCount(int32_t dtype, const std::vector<int64_t> &dims) {
  if (dims.size() > FIRN_TENSOR_MAX_RANK)
    throw Failure(Rejected, "a tensor of rank " + std::to_string(dims.size()) + " has more than " +
                                std::to_string(FIRN_TENSOR_MAX_RANK) + " dimensions");
  if (dtypeBits(dtype) == 0)
    throw Failure(Rejected, "a tensor has unknown element type " + std::to_string(dtype));
  bool isEmpty = false;
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0)
      throw Failure(Rejected, "a tensor has dimension " + std::to_string(dim));
    isEmpty |= dim == 0;
    if (dim && (__builtin_mul_overflow(count, dim, &count) || count > mostBytes))
      throw Failure(Rejected,
                    "a tensor of shape " + typeText(dtype, dims.data(), int32_t(dims.size())) + " is too large");
  }
  return isEmpty ? 0 : count;
}

void prefault(void *memory, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr size_t worthwhile = 64 << 10;
  size_t page = size_t(sysconf(_SC_PAGESIZE)), begin = (reinterpret_cast<size_t>(memory) + page - 1) / page * page,
         end = (reinterpret_cast<size_t>(memory) + bytes) / page * page;
  if (bytes >= worthwhile && end > begin) // a system that does not know it gives the pages one by one
    (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  (void)memory, (void)bytes;
#endif
}

Tensor::Tensor(int32_t elementType, std::vector<int64_t> shape) : dtype(elementType), dims(std::move(shape)) {
  size = firn_dtype_bytes(dtype, checkedCount(dtype, dims));
  size_t rounded = size_t(size) / FIRN_ALIGNMENT * FIRN_ALIGNMENT + FIRN_ALIGNMENT;
  memory.reset(static_cast<char *>(std::aligned_alloc(FIRN_ALIGNMENT, rounded)));
  if (!memory)
    throw Failure(Rejected, "no memory for a tensor of " + std::to_string(size) + " bytes");
  prefault(memory.get(), rounded);
  std::memset(memory.get(), 0, rounded);
}

Tensor Tensor::list(std::vector<Tensor> tensors) {
  Tensor result;
  result.dtype = FIRN_LIST;
  result.dims = {int64_t(tensors.size())};
  result.items = std::move(tensors);
  result.size = int64_t(result.items.size() * sizeof(firn_tensor));
  result.memory.reset(static_cast<char *>(std::calloc(result.items.size() + 1, sizeof(firn_tensor))));
  if (!result.memory)
    throw Failure(Rejected, "no memory for a list of tensors");
  for (size_t i = 0; i < result.items.size(); ++i) {
    firn_tensor view = result.items[i].view();
    std::memcpy(result.memory.get() + i * sizeof view, &view, sizeof view);
  }
  return result;
}

Tensor Tensor::borrow(const firn_tensor &tensor) {
  if (tensor.dtype == FIRN_LIST) {
    std::vector<Tensor> items;
    for (int64_t i = 0; i < tensor.dims[0]; ++i)
      items.push_back(borrow(static_cast<const firn_tensor *>(tensor.data)[i]));
    return list(std::move(items));
  }
  Tensor result;
  if (tensor.dtype == FIRN_DTYPE_NONE)
    return result;
  result.dtype = tensor.dtype;
  result.dims.assign(tensor.dims, tensor.dims + tensor.rank);
  result.size = firn_tensor_bytes(&tensor);
  result.memory = {static_cast<char *>(tensor.data), Free{false}};
  if (tensor.dtype == FIRN_STRING) {
    const auto *texts = static_cast<const firn_text *>(tensor.data);
    for (int64_t i = 0, n = result.count(); i < n; ++i)
      result.strings.emplace_back(texts[i].data ? texts[i].data : "", size_t(texts[i].length));
  }
  return result;
}

int64_t Tensor::count() const { return isList() ? int64_t(items.size()) : checkedCount(dtype, dims); }

firn_tensor Tensor::view() const {
  firn_tensor result{};
  result.data = memory.get();
  result.bytes = size;
  result.dtype = dtype;
  result.rank = int32_t(dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    result.dims[d] = dims[d];
  return result;
}

void Tensor::linkStrings() {
  auto *texts = reinterpret_cast<firn_text *>(memory.get());
  for (size_t i = 0; i < strings.size(); ++i)
    texts[i] = {strings[i].data(), int64_t(strings[i].size())};
}

std::string Tensor::type() const {
  if (dtype == FIRN_DTYPE_NONE)
    return "absent";
  return typeText(dtype, dims.data(), int32_t(dims.size()));
}

int64_t elementAsInt(const Tensor &tensor, int64_t i) {
  const char *data = tensor.data();
  switch (tensor.dtype) {
  case FIRN_U8:
  case FIRN_BOOL:
    return load<uint8_t>(data, i);
  case FIRN_I8:
    return load<int8_t>(data, i);
  case FIRN_U16:
    return load<uint16_t>(data, i);
  case FIRN_I16:
    return load<int16_t>(data, i);
  case FIRN_U32:
    return load<uint32_t>(data, i);
  case FIRN_I32:
    return load<int32_t>(data, i);
  case FIRN_U64:
    return int64_t(load<uint64_t>(data, i));
  case FIRN_I64:
    return load<int64_t>(data, i);
  case FIRN_U4:
    return loadPacked(data, i, 4);
  case FIRN_I4:
    return int64_t(loadPacked(data, i, 4) ^ 8) - 8;
  case FIRN_U2:
    return loadPacked(data, i, 2);
  case FIRN_I2:
    return int64_t(loadPacked(data, i, 2) ^ 2) - 2;
  }
  return 0;
}

double elementAsDouble(const Tensor &tensor, int64_t i) {
  const char *data = tensor.data();
  switch (tensor.dtype) {
  case FIRN_F32:
    return double(load<float>(data, i));
  case FIRN_F64:
    return load<double>(data, i);
  case FIRN_C64:
    return double(load<float>(data, 2 * i));
  case FIRN_C128:
    return load<double>(data, 2 * i);
  case FIRN_F16:
    return decode(load<uint16_t>(data, i), {5, 10, false, false});
  case FIRN_BF16:
    return decode(load<uint16_t>(data, i), {8, 7, false, false});
  case FIRN_F8E4M3FN:
    return decode(load<uint8_t>(data, i), {4, 3, true, false});
  case FIRN_F8E4M3FNUZ:
    return decode(load<uint8_t>(data, i), {4, 3, true, true});
  case FIRN_F8E5M2:
    return decode(load<uint8_t>(data, i), {5, 2, false, false});
  case FIRN_F8E5M2FNUZ:
    return decode(load<uint8_t>(data, i), {5, 2, true, true});
  case FIRN_F4E2M1: {
    static const double values[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    uint32_t code = loadPacked(data, i, 4);
    return code & 8 ? -values[code & 7] : values[code & 7];
  }
  case FIRN_F8E8M0: {
    uint8_t code = load<uint8_t>(data, i);
    return code == 255 ? NAN : std::ldexp(1, code - 127);
  }
  case FIRN_U64:
    return double(load<uint64_t>(data, i));
  }
  return double(elementAsInt(tensor, i));
}

void elementsAsDouble(const Tensor &tensor, int64_t begin, int64_t count, double *to) {
  const char *data = tensor.data();
  if (tensor.dtype == FIRN_F32)
    for (int64_t i = 0; i < count; ++i)
      to[i] = double(load<float>(data, begin + i));
  else
    for (int64_t i = 0; i < count; ++i)
      to[i] = elementAsDouble(tensor, begin + i);
}

void setElement(Tensor &tensor, int64_t i, double value) {
  char *data = tensor.data();
  switch (tensor.dtype) {
  case FIRN_F32:
    return store(data, i, float(value));
  case FIRN_F64:
    return store(data, i, value);
  case FIRN_C64:
    return store(data, 2 * i, float(value));
  case FIRN_C128:
    return store(data, 2 * i, value);
  case FIRN_BF16: // truncated: good enough for made-up inputs
    return store(data, i, uint16_t(bitsOfFloat(value) >> 16));
  case FIRN_F16: {
    if (value == 0)
      return store(data, i, uint16_t(0));
    int exponent;
    double fraction = std::frexp(std::fabs(value), &exponent); // in [0.5, 1)
    uint32_t sign = value < 0 ? 0x8000 : 0;
    if (exponent > 16)
      return store(data, i, uint16_t(sign | 0x7c00));
    if (exponent < -13)
      return store(data, i, uint16_t(sign | uint32_t(std::ldexp(std::fabs(value), 24))));
    return store(data, i, uint16_t(sign | (uint32_t(exponent + 14) << 10) | (uint32_t(fraction * 2048) & 1023)));
  }
  }
  int64_t integer = int64_t(value);
  switch (dtypeBits(tensor.dtype)) {
  case 8:
    return store(data, i, uint8_t(integer));
  case 16:
    return store(data, i, uint16_t(integer));
  case 32:
    return store(data, i, uint32_t(integer));
  case 64:
    return store(data, i, integer);
  case 4:
    return storePacked(data, i, 4, uint32_t(integer));
  case 2:
    return storePacked(data, i, 2, uint32_t(integer));
  }
}

std::string elementText(const Tensor &tensor, int64_t i) {
  char text[96];
  if (tensor.dtype == FIRN_STRING)
    return '"' + tensor.strings[size_t(i)].substr(0, 60) + '"';
  if (isComplex(tensor.dtype)) {
    bool isDouble = tensor.dtype == FIRN_C128;
    double imaginary =
        isDouble ? load<double>(tensor.data(), 2 * i + 1) : double(load<float>(tensor.data(), 2 * i + 1));
    std::snprintf(text, sizeof text, "%.6g%+.6gi", elementAsDouble(tensor, i), imaginary);
  } else if (isFloat(tensor.dtype)) {
    std::snprintf(text, sizeof text, "%.6g", elementAsDouble(tensor, i));
  } else if (tensor.dtype == FIRN_U64) {
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(elementAsInt(tensor, i)));
  } else {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(elementAsInt(tensor, i)));
  }
  return text;
}

} // namespace firn::tools
