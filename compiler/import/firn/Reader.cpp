#include "compiler/import/firn/Reader.h"
#include "compiler/import/Blob.h"
#include "compiler/import/onnx/Schema.h"
#include "proto/graph.pb.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <climits>
#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

namespace firn {
namespace {

constexpr llvm::StringLiteral formatName = "firn.v1";

class Reader {
public:
  Reader(llvm::StringRef path, std::shared_ptr<v1::Model> proto, const Limits &bounds, Diagnostics &reported)
      : message(std::move(proto)), sideFiles(path, bounds), diagnostics(reported), limits(bounds) {}

  model::Model read();

private:
  void readGraph(const v1::Graph &proto, model::Graph &graph, int64_t depth);
  model::Node readNode(const v1::Node &proto, size_t index, int64_t depth);
  model::Attribute readAttribute(const v1::Attribute &proto, llvm::StringRef node, int64_t depth);
  model::Function readFunction(const v1::Function &proto);
  bool readConstant(const v1::Constant &proto, llvm::StringRef node, model::Tensor &tensor);
  std::string readContents(const v1::Constant &proto, int64_t bytes, model::Tensor &tensor);
  std::string fill(const v1::Fill &proto, model::Tensor &tensor);
  std::string beyond(const char *option, int64_t bytes, int64_t limit);
  static model::Value readValue(const v1::Value &proto);
  static std::map<std::string, int64_t> readOpsets(const google::protobuf::RepeatedPtrField<v1::Opset> &protos);

  std::shared_ptr<v1::Model> message;
  SideFiles sideFiles;
  Diagnostics &diagnostics;
  const Limits &limits;
  bool isSideFileMissing = false; // of the constant that is being read
  const char *exceeded = nullptr; // the option whose limit the constant that is being read exceeds
};

static model::Type readType(const v1::Type &proto) {
  using Kind = model::Type::Kind;
  model::Type type;
  type.dtype = proto.dtype();
  if (proto.form() != v1::Type::TENSOR) {
    type.kind = proto.form() == v1::Type::SEQUENCE   ? Kind::Sequence
                : proto.form() == v1::Type::OPTIONAL ? Kind::Optional
                : proto.form() == v1::Type::MAP      ? Kind::Map
                                                     : Kind::Unknown;
    type.element = std::make_shared<model::Type>(readType(proto.element()));
    return type;
  }
  type.kind = Kind::Tensor;
  if (!proto.has_shape())
    return type;
  type.dims.emplace();
  for (const std::string &text : proto.shape().dims()) {
    model::Dim &dim = type.dims->emplace_back();
    int64_t size;
    if (!llvm::StringRef(text).getAsInteger(10, size) && size >= 0)
      dim.size = size;
    else if (!text.empty() && text != "?")
      dim.symbol = text[0] == '$' ? text.substr(1) : text;
  }
  return type;
}

model::Value Reader::readValue(const v1::Value &proto) {
  model::Value value;
  value.name = proto.name();
  value.doc = proto.doc();
  if (proto.has_type())
    value.type = readType(proto.type());
  return value;
}

// --- constants -------------------------------------------------------------------------------------------------------

/// Writes `value` as an element of `dtype`; false where the element type cannot hold numbers given like this.
bool store(int32_t dtype, double real, int64_t integer, bool isInteger, char *out) {
  auto real64 = isInteger ? double(integer) : real;
  auto asFloat = [&](const llvm::fltSemantics &format, size_t size) {
    llvm::APFloat number(real64);
    bool losesInfo;
    number.convert(format, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(out, &bits, size);
    return true;
  };
  switch (dtype) {
  case FIRN_F32:
    return asFloat(llvm::APFloat::IEEEsingle(), 4);
  case FIRN_F64:
    return asFloat(llvm::APFloat::IEEEdouble(), 8);
  case FIRN_F16:
    return asFloat(llvm::APFloat::IEEEhalf(), 2);
  case FIRN_BF16:
    return asFloat(llvm::APFloat::BFloat(), 2);
  case FIRN_U8:
  case FIRN_I8:
  case FIRN_U16:
  case FIRN_I16:
  case FIRN_I32:
  case FIRN_I64:
  case FIRN_U32:
  case FIRN_U64:
    if (!isInteger)
      return false;
    std::memcpy(out, &integer, size_t(firn_dtype_bits(dtype) / 8));
    return true;
  case FIRN_BOOL:
    *out = isInteger ? integer != 0 : real != 0;
    return true;
  default:
    return false;
  }
}

// splitmix64: a full-period generator whose every output is a hash of the seed and the position.
uint64_t hashAt(uint64_t seed, uint64_t position) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (position + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string Reader::beyond(const char *option, int64_t bytes, int64_t limit) {
  exceeded = option;
  return "has " + std::to_string(bytes) + " bytes, the limit is " + std::to_string(limit);
}

std::string Reader::fill(const v1::Fill &proto, model::Tensor &tensor) {
  if (tensor.dtype != FIRN_F32 && tensor.dtype != FIRN_F64 && tensor.dtype != FIRN_F16 && tensor.dtype != FIRN_BF16)
    return "can be filled only with an element type of F32, F64, F16 or BF16";
  int64_t count = *elementCount(tensor.dims);
  size_t size = size_t(firn_dtype_bits(tensor.dtype) / 8);
  // A few bytes of the file can ask for any amount of made-up contents.
  if (count > limits.foldedBytes / int64_t(size))
    return beyond("--max-folded-bytes", count * int64_t(size), limits.foldedBytes);
  char *out = allocateBytes(tensor, size_t(count) * size);
  if (!out)
    return "does not fit into memory";
  double scale = proto.scale() == 0 ? 1 : proto.scale();
  for (int64_t i = 0; i < count; ++i) {
    // Each sum of 12 numbers of 2^-32 steps is exact, so every machine gets the same bits.
    uint64_t sum = 0;
    for (uint64_t j = 0; j < 12; ++j)
      sum += hashAt(proto.seed(), uint64_t(i) * 12 + j) >> 32;
    double normal = double(sum) / 4294967296.0 - 6;
    store(tensor.dtype, normal * scale, 0, false, out + size_t(i) * size);
  }
  return "";
}

/// What is wrong with the contents, "" if nothing.
std::string Reader::readContents(const v1::Constant &proto, int64_t bytes, model::Tensor &tensor) {
  int64_t count = *elementCount(tensor.dims);
  auto wrongCount = [&](const char *what, int64_t found) {
    return "has the wrong number of " + std::string(what) + ": expected " + std::to_string(count) + ", found " +
           std::to_string(found);
  };
  auto numbers = [&](const auto &values, bool isInteger) -> std::string {
    if (values.size() != count && values.size() != 1)
      return wrongCount("values", values.size());
    if (bytes > limits.foldedBytes && values.size() == 1)
      return beyond("--max-folded-bytes", bytes, limits.foldedBytes);
    size_t size = size_t(firn_dtype_bits(tensor.dtype) / 8);
    char *out = size ? allocateBytes(tensor, size_t(bytes)) : nullptr;
    if (!out)
      return size ? "does not fit into memory" : "has elements that only raw bytes can give";
    for (int64_t i = 0; i < count; ++i) {
      auto value = values[values.size() == 1 ? 0 : int(i)];
      if (!store(tensor.dtype, double(value), int64_t(isInteger ? value : 0), isInteger, out + size_t(i) * size))
        return "has an element type that these values do not fit";
    }
    return "";
  };
  switch (proto.contents_case()) {
  case v1::Constant::kRaw:
    if (int64_t(proto.raw().size()) != bytes)
      return "has the wrong length: expected " + std::to_string(bytes) + " bytes, found " +
             std::to_string(proto.raw().size());
    tensor.bytes = {proto.raw().data(), proto.raw().size()};
    tensor.owner = message;
    return "";
  case v1::Constant::kInts:
    return numbers(proto.ints().values(), true);
  case v1::Constant::kFloats:
    return numbers(proto.floats().values(), false);
  case v1::Constant::kDoubles:
    return numbers(proto.doubles().values(), false);
  case v1::Constant::kFill:
    return fill(proto.fill(), tensor);
  case v1::Constant::kExternal: {
    const v1::External &external = proto.external();
    if (external.length() != bytes)
      return "has the wrong length: expected " + std::to_string(bytes) + " bytes, found " +
             std::to_string(external.length());
    std::string why;
    std::optional<MappedFile> part = sideFiles.range(external.location(), external.offset(), external.length(), why);
    isSideFileMissing = !part;
    if (!part)
      return "cannot be read from '" + external.location() + "': " + why;
    tensor.bytes = part->bytes;
    tensor.owner = part->owner;
    if (external.sha256().empty())
      return "";
    auto hash = llvm::SHA256::hash(
        llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(part->bytes.data()), part->bytes.size()));
    releasePages(part->bytes);
    std::string hex = llvm::toHex(hash, true);
    return hex == external.sha256() ? ""
                                    : "has another SHA-256 in '" + external.location() + "': expected " +
                                          external.sha256() + ", found " + hex;
  }
  default:
    return count == 0 ? "" : "has no contents";
  }
}

bool Reader::readConstant(const v1::Constant &proto, llvm::StringRef node, model::Tensor &tensor) {
  tensor.name = proto.name();
  tensor.doc = proto.doc();
  tensor.dtype = proto.dtype();
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  std::optional<int64_t> bytes = byteCount(tensor.dtype, tensor.dims);
  std::string problem;
  if (firn_dtype_bits(tensor.dtype) == 0)
    problem = "has no element type";
  else if (!bytes)
    problem = "has a negative dimension or is too large";
  else if (*bytes > limits.tensorBytes)
    problem = beyond("--max-tensor-bytes", *bytes, limits.tensorBytes);
  else if (tensor.dtype == FIRN_STRING) {
    tensor.strings.assign(proto.strings().values().begin(), proto.strings().values().end());
    if (int64_t(tensor.strings.size()) != *elementCount(tensor.dims))
      problem = "has the wrong number of strings: expected " + std::to_string(*elementCount(tensor.dims)) + ", found " +
                std::to_string(tensor.strings.size());
  } else {
    problem = readContents(proto, *bytes, tensor);
  }
  if (problem.empty())
    return true;
  Diagnostic diagnostic;
  diagnostic.id = "import.tensor.data";
  if (exceeded) {
    diagnostic.id = "import.limit";
    diagnostic.fix = raiseLimit(exceeded);
  } else if (isSideFileMissing) {
    diagnostic.id = sideFiles.code().str();
  }
  exceeded = nullptr;
  isSideFileMissing = false;
  diagnostic.node = node.str();
  takeApart("constant '" + tensor.name + "' " + problem, diagnostic);
  diagnostics.report(std::move(diagnostic));
  return false;
}

// --- graphs ----------------------------------------------------------------------------------------------------------

model::Attribute Reader::readAttribute(const v1::Attribute &proto, llvm::StringRef node, int64_t depth) {
  using Kind = model::Attribute::Kind;
  model::Attribute attribute;
  attribute.name = proto.name();
  switch (proto.value_case()) {
  case v1::Attribute::kI:
    attribute.kind = Kind::Int;
    attribute.i = proto.i();
    break;
  case v1::Attribute::kF:
    attribute.kind = Kind::Float;
    attribute.f = proto.f();
    break;
  case v1::Attribute::kS:
    attribute.kind = Kind::String;
    attribute.s = proto.s();
    break;
  case v1::Attribute::kInts:
    attribute.kind = Kind::Ints;
    attribute.ints.assign(proto.ints().values().begin(), proto.ints().values().end());
    break;
  case v1::Attribute::kFloats:
    attribute.kind = Kind::Floats;
    attribute.floats.assign(proto.floats().values().begin(), proto.floats().values().end());
    break;
  case v1::Attribute::kStrings:
    attribute.kind = Kind::Strings;
    attribute.strings.assign(proto.strings().values().begin(), proto.strings().values().end());
    break;
  case v1::Attribute::kTensor:
    attribute.kind = Kind::Tensor;
    attribute.tensor.isBroken = !readConstant(proto.tensor(), node, attribute.tensor);
    break;
  case v1::Attribute::kGraph:
    attribute.kind = Kind::Graph;
    attribute.graph = std::make_shared<model::Graph>();
    readGraph(proto.graph(), *attribute.graph, depth + 1);
    break;
  case v1::Attribute::kType:
    attribute.kind = Kind::Type;
    attribute.type = readType(proto.type());
    break;
  case v1::Attribute::kReference:
    attribute.kind = Kind::Reference;
    attribute.s = proto.reference();
    break;
  default:
    attribute.kind = Kind::Other;
    attribute.s = "without a value";
  }
  return attribute;
}

model::Node Reader::readNode(const v1::Node &proto, size_t index, int64_t depth) {
  model::Node node;
  node.name = proto.name();
  node.type = proto.op();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  if (node.name.empty()) {
    node.isUnnamed = true;
    node.name = node.type + "_" + std::to_string(index);
  }
  node.overload = proto.overload();
  node.doc = proto.doc();
  for (const v1::Entry &entry : proto.metadata())
    node.metadata.emplace_back(entry.key(), entry.value());
  node.inputs.assign(proto.inputs().begin(), proto.inputs().end());
  node.outputs.assign(proto.outputs().begin(), proto.outputs().end());
  for (const v1::Attribute &attribute : proto.attributes())
    node.attributes.push_back(readAttribute(attribute, node.name, depth));
  return node;
}

void Reader::readGraph(const v1::Graph &proto, model::Graph &graph, int64_t depth) {
  graph.name = proto.name();
  graph.doc = proto.doc();
  if (depth > limits.depth) {
    diagnostics.error("import.limit", "graphs are nested deeper than " + std::to_string(limits.depth) + " levels",
                      raiseLimit("--max-depth"));
    return;
  }
  for (const v1::Value &value : proto.inputs())
    graph.inputs.push_back(readValue(value));
  for (const v1::Value &value : proto.outputs())
    graph.outputs.push_back(readValue(value));
  for (const v1::Value &value : proto.values())
    graph.values.push_back(readValue(value));
  for (const v1::Constant &constant : proto.constants()) {
    model::Tensor &tensor = graph.constants.emplace_back();
    tensor.isBroken = !readConstant(constant, "", tensor);
  }
  for (const v1::Node &node : proto.nodes())
    graph.nodes.push_back(readNode(node, graph.nodes.size(), depth));
}

std::map<std::string, int64_t> Reader::readOpsets(const google::protobuf::RepeatedPtrField<v1::Opset> &protos) {
  std::map<std::string, int64_t> opsets;
  for (const v1::Opset &opset : protos)
    opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  return opsets;
}

model::Function Reader::readFunction(const v1::Function &proto) {
  model::Function function;
  function.name = proto.name();
  function.domain = proto.domain();
  function.overload = proto.overload();
  function.doc = proto.doc();
  function.inputs.assign(proto.inputs().begin(), proto.inputs().end());
  function.outputs.assign(proto.outputs().begin(), proto.outputs().end());
  function.attributes.assign(proto.attributes().begin(), proto.attributes().end());
  for (const v1::Attribute &attribute : proto.defaults())
    function.defaults.push_back(readAttribute(attribute, "", 1));
  function.opsets = readOpsets(proto.opsets());
  for (const v1::Node &node : proto.nodes())
    function.nodes.push_back(readNode(node, function.nodes.size(), 1));
  return function;
}

model::Model Reader::read() {
  model::Model model;
  // Never before 4: constants that are inputs too are defaults here.
  model.formatVersion = std::max<int64_t>(message->source_format_version(), 4);
  model.producer = message->producer();
  model.producerVersion = message->producer_version();
  model.domain = message->domain();
  model.doc = message->doc();
  model.modelVersion = message->model_version();
  model.opsets = readOpsets(message->opsets());
  if (model.opsets.empty())
    model.opsets[""] = newestVersion("");
  for (const v1::Entry &entry : message->metadata())
    model.metadata.emplace_back(entry.key(), entry.value());
  for (const v1::Function &function : message->functions())
    model.functions.push_back(readFunction(function));
  readGraph(message->graph(), model.graph, 0);
  return model;
}

/// Keeps the first error of protobuf's text parser.
class TextErrors : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string &text) override {
    if (message.empty())
      message = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + text;
  }
  std::string message;
};

} // namespace

bool isFirnBinary(llvm::StringRef bytes) {
  return bytes.size() > 9 && bytes[0] == 0x0a && bytes[1] == char(formatName.size()) &&
         bytes.substr(2).starts_with(formatName);
}

bool isFirnText(llvm::StringRef bytes) {
  while (true) {
    bytes = bytes.ltrim();
    if (!bytes.consume_front("#"))
      break;
    bytes = bytes.substr(std::min(bytes.find('\n'), bytes.size()));
  }
  if (!bytes.consume_front("format"))
    return false;
  bytes = bytes.ltrim();
  return bytes.consume_front(":") && (bytes.ltrim().starts_with("\"firn.") || bytes.ltrim().starts_with("'firn."));
}

std::optional<model::Graph> readGraph(llvm::StringRef bytes) {
  Diagnostics ignored;
  Limits limits; // the bytes are ours
  limits.depth = Limits::mostDepth;
  std::optional<model::Model> model = readFirn(bytes, "", false, limits, ignored);
  return model && !ignored.hasErrors() ? std::optional<model::Graph>(std::move(model->graph)) : std::nullopt;
}

std::optional<model::Model> readFirn(llvm::StringRef bytes, llvm::StringRef path, bool isText, const Limits &limits,
                                     Diagnostics &diagnostics) {
  google::protobuf::LogSilencer silencer; // what is wrong goes to the diagnostics alone
  auto message = std::make_shared<v1::Model>();
  if (bytes.empty()) {
    diagnostics.error("import.file", "the file is empty");
    return std::nullopt;
  }
  if (bytes.size() > size_t(INT_MAX)) {
    diagnostics.error("import.file", "the file is larger than 2 GiB, which no protobuf message may be",
                      "store the weights in a side file");
    return std::nullopt;
  }
  int recursionLimit = protobufDepth(limits, 4);
  if (isText) {
    google::protobuf::TextFormat::Parser parser;
    TextErrors errors;
    parser.RecordErrorsTo(&errors);
    parser.SetRecursionLimit(recursionLimit);
    google::protobuf::io::ArrayInputStream input(bytes.data(), int(bytes.size()));
    if (!parser.Parse(&input, message.get())) {
      diagnostics.error("import.file", "the file is not a Firn graph: " + errors.message);
      return std::nullopt;
    }
  } else {
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
    input.SetTotalBytesLimit(INT_MAX);
    input.SetRecursionLimit(recursionLimit);
    if (!message->ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
      diagnostics.error("import.file", "the file is damaged or truncated: it is not a Firn graph");
      return std::nullopt;
    }
  }
  if (message->format() != formatName) {
    diagnostics.error("import.file", "the file says that its format is '" + message->format() + "', which is not known",
                      "write format: \"firn.v1\"");
    return std::nullopt;
  }
  if (!message->has_graph()) {
    diagnostics.error("import.file", "the file has no graph");
    return std::nullopt;
  }
  return Reader(path, message, limits, diagnostics).read();
}

} // namespace firn
