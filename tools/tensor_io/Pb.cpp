// ONNX's TensorProto, SequenceProto, OptionalProto and MapProto in protobuf's wire format, read and written by hand:
// the run-time tools need no protobuf.
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

// Of SequenceProto and OptionalProto: the same numbers for what they hold.
enum HoldingField {
  HoldingName = 1,
  HeldType = 2,
  HeldTensor = 3,
  HeldSparse = 4,
  HeldSequence = 5,
  HeldMap = 6,
  HeldOptional = 7
};
enum MapField { MapName = 1, KeyType = 2, IntegerKeys = 3, StringKeys = 4, MapValues = 5 };
// Their elem_type (DataType of onnx-data.proto).
enum HeldDataType { HoldsNothing = 0, HoldsTensors = 1, HoldsSequences = 3, HoldsMaps = 4 };

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

static Tensor parseTensor(std::string_view bytes) {
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

static std::string formatTensor(const Tensor &tensor) {
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

// --- sequences, optionals, maps --------------------------------------------------------------------------------------

namespace {

// Scalars of one type as a tensor of rank 1: the values of a map.
Tensor stacked(const std::vector<Tensor> &scalars, int32_t fallback) {
  Tensor result(scalars.empty() ? fallback : scalars[0].dtype, {int64_t(scalars.size())});
  int64_t size = scalars.empty() ? 0 : result.bytes() / result.count();
  for (size_t i = 0; i < scalars.size(); ++i) {
    if (scalars[i].dtype != result.dtype || scalars[i].count() != 1 || dtypeBits(result.dtype) < 8)
      malformed("the values of a map are not one of one type each");
    if (result.dtype == FIRN_STRING)
      result.strings.push_back(scalars[i].strings[0]);
    else
      std::memcpy(result.data() + int64_t(i) * size, scalars[i].data(), size_t(size));
  }
  if (result.dtype == FIRN_STRING)
    result.linkStrings();
  return result;
}

// The tensors (and maps) of a SequenceProto, or what an OptionalProto holds.
struct Held {
  std::string name;
  std::vector<Tensor> tensors, maps;
  std::string_view sequence;
  bool hasSequence = false;
};

Tensor parseMap(std::string_view bytes, int depth);

Held parseHolding(std::string_view bytes, int depth = 0) {
  if (depth > 4)
    malformed("it is nested too deeply");
  Held held;
  Reader reader(bytes);
  while (!reader.isDone()) {
    uint64_t tag = reader.varint();
    uint32_t wire = tag & 7;
    switch (tag >> 3) {
    case HoldingName:
      held.name = text(reader, wire);
      break;
    case HeldTensor:
      held.tensors.push_back(parseTensor(text(reader, wire)));
      break;
    case HeldMap:
      held.maps.push_back(parseMap(text(reader, wire), depth + 1));
      break;
    case HeldSequence:
      held.sequence = text(reader, wire);
      held.hasSequence = true;
      break;
    case HeldSparse:
    case HeldOptional:
      malformed("it holds sparse tensors or optionals, which are not supported");
    default:
      skip(reader, wire);
    }
  }
  return held;
}

Tensor parseMap(std::string_view bytes, int depth) {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  int32_t keyType = FIRN_I64;
  std::vector<Tensor> values;
  std::string name;
  Reader reader(bytes);
  while (!reader.isDone()) {
    uint64_t tag = reader.varint();
    uint32_t wire = tag & 7;
    switch (tag >> 3) {
    case MapName:
      name = text(reader, wire);
      break;
    case KeyType:
      readNumbers(reader, wire, [&](uint64_t value) { keyType = int32_t(value); });
      break;
    case IntegerKeys:
      readNumbers(reader, wire, [&](uint64_t value) { integers.push_back(int64_t(value)); });
      break;
    case StringKeys:
      strings.emplace_back(text(reader, wire));
      break;
    case MapValues:
      values = parseHolding(text(reader, wire), depth + 1).tensors;
      break;
    default:
      skip(reader, wire);
    }
  }
  if (keyType != FIRN_STRING && (keyType < FIRN_U8 || keyType > FIRN_I64) && keyType != FIRN_U32 && keyType != FIRN_U64)
    malformed("the keys of a map are neither integers nor strings");
  size_t count = keyType == FIRN_STRING ? strings.size() : integers.size();
  if (count != values.size())
    malformed("a map has another number of keys than of values");
  Tensor keys(keyType, {int64_t(count)});
  if (keyType == FIRN_STRING) {
    keys.strings = std::move(strings);
    keys.linkStrings();
  } else {
    int64_t size = dtypeBits(keyType) / 8;
    for (size_t i = 0; i < count; ++i)
      std::memcpy(keys.data() + int64_t(i) * size, &integers[i], size_t(size)); // little-endian: the low bytes
  }
  std::vector<Tensor> parts;
  parts.push_back(std::move(keys));
  parts.push_back(stacked(values, FIRN_F32));
  Tensor map = Tensor::list(std::move(parts));
  map.name = name;
  return map;
}

// Element `i` of a tensor of rank 1 as a scalar.
Tensor scalarAt(const Tensor &tensor, int64_t i) {
  Tensor scalar(tensor.dtype, {});
  if (tensor.dtype == FIRN_STRING) {
    scalar.strings = {tensor.strings[size_t(i)]};
    scalar.linkStrings();
  } else {
    std::memcpy(scalar.data(), tensor.data() + i * scalar.bytes(), size_t(scalar.bytes()));
  }
  return scalar;
}

void appendHeader(std::string &to, const std::string &name, HeldDataType type) {
  if (!name.empty())
    appendText(to, HoldingName, name);
  appendVarint(to, HeldType << 3);
  appendVarint(to, type);
}

std::string formatMap(const Tensor &map) {
  const Tensor &keys = map.items[0], &values = map.items[1];
  std::string result;
  if (!map.name.empty())
    appendText(result, MapName, map.name);
  appendVarint(result, KeyType << 3);
  appendVarint(result, uint64_t(keys.dtype));
  for (int64_t i = 0; i < keys.count(); ++i) {
    if (keys.dtype == FIRN_STRING) {
      appendText(result, StringKeys, keys.strings[size_t(i)]);
      continue;
    }
    appendVarint(result, IntegerKeys << 3);
    appendVarint(result, uint64_t(elementAsInt(keys, i)));
  }
  std::string held;
  appendHeader(held, "", HoldsTensors);
  for (int64_t i = 0; i < values.count(); ++i)
    appendText(held, HeldTensor, formatTensor(scalarAt(values, i)));
  appendText(result, MapValues, held);
  return result;
}

std::string formatSequence(const Tensor &list, bool isOfMaps) {
  std::string result;
  appendHeader(result, list.name, isOfMaps ? HoldsMaps : HoldsTensors);
  for (const Tensor &item : list.items)
    appendText(result, isOfMaps ? HeldMap : HeldTensor, isOfMaps ? formatMap(item) : formatTensor(item));
  return result;
}

} // namespace

Tensor parsePb(std::string_view bytes, int32_t form) {
  if (form == FIRN_FORM_TENSOR || form == FIRN_FORM_UNRANKED)
    return parseTensor(bytes);
  if (form == FIRN_FORM_MAP)
    return parseMap(bytes, 0);
  Held held = parseHolding(bytes);
  Tensor result;
  if (form == FIRN_FORM_OPTIONAL && !held.tensors.empty())
    result = std::move(held.tensors[0]);
  else if (form == FIRN_FORM_OPTIONAL_SEQUENCE && held.hasSequence)
    result = Tensor::list(parseHolding(held.sequence).tensors);
  else if (form == FIRN_FORM_SEQUENCE || form == FIRN_FORM_SEQUENCE_OF_MAPS)
    result = Tensor::list(std::move(form == FIRN_FORM_SEQUENCE ? held.tensors : held.maps));
  result.name = held.name;
  return result;
}

std::string formatPb(const Tensor &tensor, int32_t form) {
  if (form == FIRN_FORM_TENSOR || form == FIRN_FORM_UNRANKED)
    return formatTensor(tensor);
  if (form == FIRN_FORM_MAP)
    return formatMap(tensor);
  if (form == FIRN_FORM_SEQUENCE || form == FIRN_FORM_SEQUENCE_OF_MAPS)
    return formatSequence(tensor, form == FIRN_FORM_SEQUENCE_OF_MAPS);
  std::string result;
  if (tensor.dtype == FIRN_DTYPE_NONE) {
    appendHeader(result, tensor.name, HoldsNothing);
  } else if (tensor.isList()) {
    appendHeader(result, tensor.name, HoldsSequences);
    appendText(result, HeldSequence, formatSequence(tensor, false));
  } else {
    appendHeader(result, tensor.name, HoldsTensors);
    appendText(result, HeldTensor, formatTensor(tensor));
  }
  return result;
}

} // namespace firn::tools
