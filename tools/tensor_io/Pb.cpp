// ONNX's TensorProto in protobuf's wire format, read and written by hand: the run-time tools need no protobuf.
#include <cstring>

#include "runtime/abi/dtype.h"
#include "tools/tensor_io/Files.h"

namespace firn::tools {

namespace {

// Field numbers of TensorProto (onnx.proto).
enum Field {
  Dims = 1,
  DataType = 2,
  Segment = 3,
  FloatData = 4,
  Int32Data = 5,
  StringData = 6,
  Int64Data = 7,
  Name = 8,
  RawData = 9,
  DoubleData = 10,
  Uint64Data = 11,
  ExternalData = 13,
  DataLocation = 14
};

[[noreturn]] void malformed(const char *what) { throw Failure(Rejected, std::string("is not a TensorProto: ") + what); }

class Reader {
public:
  explicit Reader(std::string_view bytes) : at(bytes.data()), end(bytes.data() + bytes.size()) {}
  bool isDone() const { return at == end; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end)
        malformed("it is cut off within a number");
      uint8_t byte = uint8_t(*at++);
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return value;
    }
    malformed("a number is too long");
  }
  std::string_view bytes(uint64_t count) {
    if (count > uint64_t(end - at))
      malformed("it is cut off");
    std::string_view result(at, size_t(count));
    at += count;
    return result;
  }
  std::string_view lengthDelimited() { return bytes(varint()); }

private:
  const char *at;
  const char *end;
};

// What the fields of a tensor say, before they are put together.
struct Fields {
  std::vector<int64_t> dims;
  int64_t dataType = 0;
  std::string name;
  bool hasRaw = false;
  std::string_view raw;
  std::string floats, doubles;   // little-endian elements
  std::vector<int64_t> integers; // of int32_data, int64_data and uint64_data
  std::vector<std::string> strings;
};

// A repeated number, packed or not.
template <typename Add> void readNumbers(Reader &reader, uint32_t wire, Add add) {
  if (wire == 2) {
    Reader packed(reader.lengthDelimited());
    while (!packed.isDone())
      add(packed.varint());
  } else if (wire == 0) {
    add(reader.varint());
  } else {
    malformed("a number has a wrong type");
  }
}

void readFixed(Reader &reader, uint32_t wire, uint32_t ownWire, size_t size, std::string &to) {
  if (wire == 2)
    to += reader.lengthDelimited();
  else if (wire == ownWire)
    to += reader.bytes(size);
  else
    malformed("a number has a wrong type");
}

void skip(Reader &reader, uint32_t wire) {
  switch (wire) {
  case 0:
    reader.varint();
    return;
  case 1:
    reader.bytes(8);
    return;
  case 2:
    reader.lengthDelimited();
    return;
  case 5:
    reader.bytes(4);
    return;
  }
  malformed("a field has an unknown type");
}

std::string_view text(Reader &reader, uint32_t wire) {
  if (wire != 2)
    malformed("a text has a wrong type");
  return reader.lengthDelimited();
}

Fields readFields(std::string_view bytes) {
  Fields fields;
  Reader reader(bytes);
  auto addInteger = [&](uint64_t value) { fields.integers.push_back(int64_t(value)); };
  while (!reader.isDone()) {
    uint64_t tag = reader.varint();
    uint32_t wire = tag & 7;
    switch (tag >> 3) {
    case Dims:
      readNumbers(reader, wire, [&](uint64_t value) {
        if (fields.dims.size() == FIRN_TENSOR_MAX_RANK)
          malformed("it has more than 12 dimensions");
        fields.dims.push_back(int64_t(value));
      });
      break;
    case DataType:
      readNumbers(reader, wire, [&](uint64_t value) { fields.dataType = int64_t(value); });
      break;
    case FloatData:
      readFixed(reader, wire, 5, 4, fields.floats);
      break;
    case DoubleData:
      readFixed(reader, wire, 1, 8, fields.doubles);
      break;
    case Int32Data:
    case Int64Data:
    case Uint64Data:
      readNumbers(reader, wire, addInteger);
      break;
    case StringData:
      fields.strings.emplace_back(text(reader, wire));
      break;
    case Name:
      fields.name = text(reader, wire);
      break;
    case RawData:
      fields.raw = text(reader, wire);
      fields.hasRaw = true;
      break;
    case Segment:
      malformed("segments are not supported");
    case DataLocation:
      readNumbers(reader, wire, [&](uint64_t value) {
        if (value != 0)
          malformed("its data lies in another file");
      });
      break;
    default:
      skip(reader, wire);
    }
  }
  return fields;
}

[[noreturn]] void wrongCount(const Fields &fields, int32_t dtype, int64_t got, int64_t wanted, const char *unit) {
  throw Failure(Rejected, "a tensor " + typeText(dtype, fields.dims.data(), int32_t(fields.dims.size())) + " has " +
                              std::to_string(got) + " " + unit + ", expected " + std::to_string(wanted));
}

void fillFromBytes(Tensor &tensor, const Fields &fields, std::string_view bytes) {
  if (int64_t(bytes.size()) != tensor.bytes())
    wrongCount(fields, tensor.dtype, int64_t(bytes.size()), tensor.bytes(), "bytes");
  std::memcpy(tensor.data(), bytes.data(), bytes.size());
}

// int32_data and its like: one entry an element, or a byte of packed ones.
void fillFromIntegers(Tensor &tensor, const Fields &fields) {
  int64_t bits = dtypeBits(tensor.dtype), size = bits < 8 ? 1 : bits / 8;
  int64_t wanted = tensor.bytes() / size;
  if (int64_t(fields.integers.size()) != wanted)
    wrongCount(fields, tensor.dtype, int64_t(fields.integers.size()), wanted, "numbers");
  for (int64_t i = 0; i < wanted; ++i)
    std::memcpy(tensor.data() + i * size, &fields.integers[size_t(i)], size_t(size)); // little-endian: the low bytes
}

void appendVarint(std::string &to, uint64_t value) {
  for (; value >= 128; value >>= 7)
    to += char(value | 128);
  to += char(value);
}

void appendText(std::string &to, int field, std::string_view text) {
  appendVarint(to, uint64_t(field) << 3 | 2);
  appendVarint(to, text.size());
  to += text;
}

} // namespace

Tensor parsePb(std::string_view bytes) {
  Fields fields = readFields(bytes);
  if (fields.dataType <= 0 || fields.dataType >= FIRN_DTYPE_COUNT)
    malformed(("it has element type " + std::to_string(fields.dataType)).c_str());
  int32_t dtype = int32_t(fields.dataType);
  // What is there bounds what is allocated.
  int64_t count = checkedCount(dtype, fields.dims);
  int64_t needed = dtype == FIRN_STRING ? 0 : firn_dtype_bytes(dtype, count);
  if (dtype == FIRN_STRING ? count != int64_t(fields.strings.size()) : needed / 8 > int64_t(bytes.size()))
    wrongCount(fields, dtype, int64_t(dtype == FIRN_STRING ? fields.strings.size() : bytes.size()), count, "elements");
  Tensor tensor(dtype, fields.dims);
  tensor.name = fields.name;
  if (dtype == FIRN_STRING) {
    tensor.strings = std::move(fields.strings);
    tensor.linkStrings();
  } else if (fields.hasRaw) {
    fillFromBytes(tensor, fields, fields.raw);
  } else if (dtype == FIRN_F32 || dtype == FIRN_C64) {
    fillFromBytes(tensor, fields, fields.floats);
  } else if (dtype == FIRN_F64 || dtype == FIRN_C128) {
    fillFromBytes(tensor, fields, fields.doubles);
  } else {
    fillFromIntegers(tensor, fields);
  }
  return tensor;
}

std::string formatPb(const Tensor &tensor) {
  std::string result;
  for (int64_t dim : tensor.dims) {
    appendVarint(result, Dims << 3);
    appendVarint(result, uint64_t(dim));
  }
  appendVarint(result, DataType << 3);
  appendVarint(result, uint64_t(tensor.dtype));
  if (tensor.dtype == FIRN_STRING)
    for (const std::string &element : tensor.strings)
      appendText(result, StringData, element);
  if (!tensor.name.empty())
    appendText(result, Name, tensor.name);
  if (tensor.dtype != FIRN_STRING)
    appendText(result, RawData, std::string_view(tensor.data(), size_t(tensor.bytes())));
  return result;
}

} // namespace firn::tools
