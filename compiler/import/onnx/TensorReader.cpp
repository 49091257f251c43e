#include "compiler/import/onnx/TensorReader.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cstring>
#include <onnx/onnx_pb.h>

namespace firn {

bool TensorReader::fail(llvm::StringRef id, const llvm::Twine &what, const llvm::Twine &expected,
                        const llvm::Twine &found, const llvm::Twine &fix) {
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  diagnostic.node = currentNode;
  diagnostic.what = (currentTensor.empty() ? "tensor " : "tensor '" + currentTensor + "' ") + what.str();
  diagnostic.expected = expected.str();
  diagnostic.found = found.str();
  diagnostic.fix = fix.str();
  diagnostics.report(std::move(diagnostic));
  return false;
}

bool TensorReader::read(const onnx::TensorProto &proto, llvm::StringRef node, model::Tensor &tensor) {
  currentNode = node.str();
  currentTensor = proto.name();
  tensor.name = proto.name();
  tensor.doc = proto.doc_string();
  tensor.dtype = proto.data_type();
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  if (firn_dtype_bits(tensor.dtype) == 0)
    return fail("import.tensor.type", "has an unknown element type", "a number of TensorProto.DataType from 1 to 26",
                std::to_string(tensor.dtype));
  for (int64_t dim : tensor.dims)
    if (dim < 0)
      return fail("import.tensor.dims", "has a negative dimension", "sizes of 0 or more",
                  "[" + llvm::join(llvm::map_range(tensor.dims, [](int64_t d) { return std::to_string(d); }), ", ") +
                      "]",
                  "a stored tensor needs its real shape");
  std::optional<int64_t> bytes = byteCount(tensor.dtype, tensor.dims);
  if (!bytes)
    return fail("import.tensor.dims", "is too large: its element count overflows");
  if (*bytes > limits.tensorBytes)
    return fail("import.limit",
                "has " + llvm::Twine(*bytes) + " bytes, the limit is " + llvm::Twine(limits.tensorBytes), "", "",
                raiseLimit("--max-tensor-bytes"));
  if (proto.has_segment())
    return fail("import.tensor.segment", "is stored in segments, which nothing reads");
  int64_t count = *elementCount(tensor.dims);
  if (tensor.dtype == FIRN_STRING) {
    if (proto.string_data_size() != count)
      return fail("import.tensor.data", "has the wrong number of strings", llvm::Twine(count),
                  llvm::Twine(proto.string_data_size()));
    tensor.strings.assign(proto.string_data().begin(), proto.string_data().end());
    return true;
  }
  if (proto.data_location() == onnx::TensorProto_DataLocation_EXTERNAL)
    return readExternal(proto, *bytes, tensor);
  if (!proto.has_raw_data())
    return readTyped(proto, count, *bytes, tensor);
  const std::string &raw = proto.raw_data();
  if (int64_t(raw.size()) != *bytes)
    return fail("import.tensor.data", "has the wrong length of raw_data", llvm::Twine(*bytes) + " bytes",
                llvm::Twine(raw.size()) + " bytes", "write the tensor again from its source; the file is damaged");
  tensor.bytes = {raw.data(), raw.size()};
  tensor.owner = owner;
  return true;
}

bool TensorReader::readExternal(const onnx::TensorProto &proto, int64_t bytes, model::Tensor &tensor) {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const onnx::StringStringEntryProto &entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t number;
      if (llvm::StringRef(entry.value()).getAsInteger(10, number) || number < 0)
        return fail("import.external", "has an external " + entry.key() + " that is no size", "a number of bytes",
                    "'" + entry.value() + "'");
      (entry.key() == "offset" ? offset : length.emplace()) = number;
    }
  }
  if (length && *length != bytes)
    return fail("import.tensor.data", "has the wrong length of external data", llvm::Twine(bytes) + " bytes",
                llvm::Twine(*length) + " bytes");
  std::string why;
  std::optional<MappedFile> part = sideFiles.range(location, offset, bytes, why);
  if (!part)
    return fail(sideFiles.code(), "cannot be read from '" + location + "': " + why);
  tensor.bytes = part->bytes;
  tensor.owner = part->owner;
  return true;
}

// Each stored number becomes the low `size` bytes of one element (or, below 8 bits, one byte of packed elements).
template <typename Field> static void narrow(const Field &field, size_t size, char *out) {
  for (auto value : field) {
    std::memcpy(out, &value, size);
    out += size;
  }
}

bool TensorReader::readTyped(const onnx::TensorProto &proto, int64_t count, int64_t bytes, model::Tensor &tensor) {
  int32_t bits = firn_dtype_bits(tensor.dtype);
  int64_t stored = 0, expected = count;
  const char *field = "";
  switch (tensor.dtype) {
  case FIRN_F32:
  case FIRN_C64:
    field = "float_data";
    stored = proto.float_data_size();
    expected = tensor.dtype == FIRN_C64 ? 2 * count : count;
    break;
  case FIRN_F64:
  case FIRN_C128:
    field = "double_data";
    stored = proto.double_data_size();
    expected = tensor.dtype == FIRN_C128 ? 2 * count : count;
    break;
  case FIRN_I64:
    field = "int64_data";
    stored = proto.int64_data_size();
    break;
  case FIRN_U32:
  case FIRN_U64:
    field = "uint64_data";
    stored = proto.uint64_data_size();
    break;
  default:
    field = "int32_data";
    stored = proto.int32_data_size();
    expected = bits < 8 ? bytes : count;
  }
  if (stored != expected)
    return fail("import.tensor.data", llvm::Twine("has the wrong number of values in ") + field, llvm::Twine(expected),
                llvm::Twine(stored));
  char *out = allocateBytes(tensor, size_t(bytes));
  if (!out)
    return fail("import.tensor.data", "does not fit into memory");
  switch (tensor.dtype) {
  case FIRN_F32:
  case FIRN_C64:
    narrow(proto.float_data(), 4, out);
    break;
  case FIRN_F64:
  case FIRN_C128:
    narrow(proto.double_data(), 8, out);
    break;
  case FIRN_I64:
    narrow(proto.int64_data(), 8, out);
    break;
  case FIRN_U32:
  case FIRN_U64:
    narrow(proto.uint64_data(), size_t(bits / 8), out);
    break;
  default:
    narrow(proto.int32_data(), size_t(bits < 8 ? 1 : bits / 8), out);
  }
  return true;
}

bool TensorReader::read(const onnx::SparseTensorProto &proto, llvm::StringRef node, model::Tensor &tensor) {
  model::Tensor values, indices;
  if (!read(proto.values(), node, values) || !read(proto.indices(), node, indices))
    return false;
  currentTensor = values.name;
  tensor.name = values.name;
  tensor.dtype = values.dtype;
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  std::optional<int64_t> bytes = byteCount(tensor.dtype, tensor.dims);
  int32_t bits = firn_dtype_bits(tensor.dtype);
  if (!bytes)
    return fail("import.tensor.dims", "is sparse with dimensions that do not fit into memory");
  // It is kept dense: a few bytes of the file must not fill the memory with zeros.
  if (*bytes > limits.foldedBytes)
    return fail("import.limit",
                "is sparse and becomes " + llvm::Twine(*bytes) + " bytes, the limit is " +
                    llvm::Twine(limits.foldedBytes),
                "", "", raiseLimit("--max-folded-bytes"));
  if (tensor.dtype == FIRN_STRING || bits < 8)
    return fail("import.tensor.type", "is sparse with elements that only a dense one may have");
  size_t rank = tensor.dims.size(), nonzeros = values.dims.size() == 1 ? size_t(values.dims[0]) : 0;
  bool isLinear = indices.dims.size() == 1;
  if (values.dims.size() != 1 || indices.dtype != FIRN_I64 || indices.dims.empty() || indices.dims.size() > 2 ||
      size_t(indices.dims[0]) != nonzeros || (!isLinear && size_t(indices.dims[1]) != rank))
    return fail("import.tensor.data", "is sparse with values and indices that do not belong together",
                "values [n] and indices [n] or [n, rank] of int64");
  char *out = allocateBytes(tensor, size_t(*bytes));
  if (!out)
    return fail("import.tensor.data", "does not fit into memory");
  size_t size = size_t(bits / 8);
  int64_t count = *elementCount(tensor.dims);
  for (size_t i = 0; i < nonzeros; ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < (isLinear ? 1 : rank); ++axis) {
      int64_t index;
      std::memcpy(&index, indices.bytes.data() + (isLinear ? i : i * rank + axis) * 8, 8);
      int64_t limit = isLinear ? count : tensor.dims[axis];
      if (index < 0 || index >= limit)
        return fail("import.tensor.data", "is sparse with an index outside its shape", "0 to " + llvm::Twine(limit - 1),
                    llvm::Twine(index));
      at = isLinear ? index : at * limit + index;
    }
    std::memcpy(out + size_t(at) * size, values.bytes.data() + i * size, size);
  }
  return true;
}

} // namespace firn
