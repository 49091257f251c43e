#include "compiler/import/onnx/Reader.h"
#include "compiler/import/onnx/TensorReader.h"
#include "llvm/ADT/StringExtras.h"
#include <climits>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

namespace firn {
namespace {

constexpr int64_t newestFormat = 14; // ir_version

/// Fields of ONNX newer than the generated classes; they arrive as unknown fields.
enum NewField { nodeOverload = 8, nodeMetadata = 9, functionAttributeProto = 11, functionOverload = 13 };

std::vector<std::string> newFields(const google::protobuf::UnknownFieldSet &fields, int number) {
  std::vector<std::string> texts;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == number &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      texts.push_back(fields.field(i).length_delimited());
  return texts;
}

std::string newField(const google::protobuf::UnknownFieldSet &fields, int number) {
  std::vector<std::string> texts = newFields(fields, number);
  return texts.empty() ? "" : texts.back();
}

class Reader {
public:
  Reader(llvm::StringRef path, std::shared_ptr<onnx::ModelProto> proto, const Limits &bounds, Diagnostics &reported)
      : message(std::move(proto)), tensors(path, message, bounds, reported), diagnostics(reported), limits(bounds) {}

  model::Model read();

private:
  void readGraph(const onnx::GraphProto &proto, model::Graph &graph, int64_t depth);
  model::Node readNode(const onnx::NodeProto &proto, size_t index, int64_t depth);
  model::Attribute readAttribute(const onnx::AttributeProto &proto, llvm::StringRef node, int64_t depth);
  model::Function readFunction(const onnx::FunctionProto &proto);
  std::map<std::string, int64_t>
  readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &protos) const;
  static model::Type readType(const onnx::TypeProto &proto);
  static model::Value readValue(const onnx::ValueInfoProto &proto);

  std::shared_ptr<onnx::ModelProto> message;
  TensorReader tensors;
  Diagnostics &diagnostics;
  const Limits &limits;
};

model::Type Reader::readType(const onnx::TypeProto &proto) {
  model::Type type;
  auto shaped = [&](const auto &tensor, model::Type::Kind kind) {
    type.kind = kind;
    type.dtype = tensor.elem_type();
    if (!tensor.has_shape())
      return;
    type.dims.emplace();
    for (const onnx::TensorShapeProto_Dimension &dim : tensor.shape().dim()) {
      model::Dim &read = type.dims->emplace_back();
      // Some exporters write -1 for "any".
      if (dim.has_dim_value() && dim.dim_value() >= 0)
        read.size = dim.dim_value();
      else if (dim.has_dim_param() && dim.dim_param() != "?") // exporters write "?" for any unnamed size
        read.symbol = dim.dim_param();
    }
  };
  switch (proto.value_case()) {
  case onnx::TypeProto::kTensorType:
    shaped(proto.tensor_type(), model::Type::Kind::Tensor);
    break;
  case onnx::TypeProto::kSparseTensorType:
    shaped(proto.sparse_tensor_type(), model::Type::Kind::SparseTensor);
    break;
  case onnx::TypeProto::kSequenceType:
    type.kind = model::Type::Kind::Sequence;
    type.element = std::make_shared<model::Type>(readType(proto.sequence_type().elem_type()));
    break;
  case onnx::TypeProto::kMapType:
    type.kind = model::Type::Kind::Map;
    type.dtype = proto.map_type().key_type();
    type.element = std::make_shared<model::Type>(readType(proto.map_type().value_type()));
    break;
  case onnx::TypeProto::kOptionalType:
    type.kind = model::Type::Kind::Optional;
    type.element = std::make_shared<model::Type>(readType(proto.optional_type().elem_type()));
    break;
  default:
    break;
  }
  return type;
}

model::Value Reader::readValue(const onnx::ValueInfoProto &proto) {
  return {proto.name(), readType(proto.type()), proto.doc_string()};
}

model::Attribute Reader::readAttribute(const onnx::AttributeProto &proto, llvm::StringRef node, int64_t depth) {
  using Kind = model::Attribute::Kind;
  model::Attribute attribute;
  attribute.name = proto.name();
  if (!proto.ref_attr_name().empty()) {
    attribute.kind = Kind::Reference;
    attribute.s = proto.ref_attr_name();
    return attribute;
  }
  auto type = proto.type();
  if (!proto.has_type()) {
    // The first version of the format had no type field: the field that is there tells.
    type = proto.has_f()          ? onnx::AttributeProto::FLOAT
           : proto.has_i()        ? onnx::AttributeProto::INT
           : proto.has_s()        ? onnx::AttributeProto::STRING
           : proto.has_t()        ? onnx::AttributeProto::TENSOR
           : proto.has_g()        ? onnx::AttributeProto::GRAPH
           : proto.floats_size()  ? onnx::AttributeProto::FLOATS
           : proto.strings_size() ? onnx::AttributeProto::STRINGS
                                  : onnx::AttributeProto::INTS;
  }
  switch (type) {
  case onnx::AttributeProto::FLOAT:
    attribute.kind = Kind::Float;
    attribute.f = proto.f();
    break;
  case onnx::AttributeProto::INT:
    attribute.kind = Kind::Int;
    attribute.i = proto.i();
    break;
  case onnx::AttributeProto::STRING:
    attribute.kind = Kind::String;
    attribute.s = proto.s();
    break;
  case onnx::AttributeProto::TENSOR:
  case onnx::AttributeProto::SPARSE_TENSOR:
    attribute.kind = Kind::Tensor;
    attribute.tensor.isBroken = type == onnx::AttributeProto::TENSOR
                                    ? !tensors.read(proto.t(), node, attribute.tensor)
                                    : !tensors.read(proto.sparse_tensor(), node, attribute.tensor);
    break;
  case onnx::AttributeProto::GRAPH:
    attribute.kind = Kind::Graph;
    attribute.graph = std::make_shared<model::Graph>();
    readGraph(proto.g(), *attribute.graph, depth + 1);
    break;
  case onnx::AttributeProto::FLOATS:
    attribute.kind = Kind::Floats;
    attribute.floats.assign(proto.floats().begin(), proto.floats().end());
    break;
  case onnx::AttributeProto::INTS:
    attribute.kind = Kind::Ints;
    attribute.ints.assign(proto.ints().begin(), proto.ints().end());
    break;
  case onnx::AttributeProto::STRINGS:
    attribute.kind = Kind::Strings;
    attribute.strings.assign(proto.strings().begin(), proto.strings().end());
    break;
  case onnx::AttributeProto::TYPE_PROTO:
    attribute.kind = Kind::Type;
    attribute.type = readType(proto.tp());
    break;
  default:
    attribute.kind = Kind::Other;
    attribute.s = llvm::StringRef(onnx::AttributeProto_AttributeType_Name(type)).lower();
  }
  return attribute;
}

model::Node Reader::readNode(const onnx::NodeProto &proto, size_t index, int64_t depth) {
  model::Node node;
  node.name = proto.name();
  node.type = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  if (node.name.empty()) {
    node.isUnnamed = true;
    node.name = node.type + "_" + std::to_string(index);
  }
  node.overload = newField(proto.unknown_fields(), nodeOverload);
  for (const std::string &entry : newFields(proto.unknown_fields(), nodeMetadata))
    if (onnx::StringStringEntryProto parsed; parsed.ParseFromString(entry))
      node.metadata.emplace_back(parsed.key(), parsed.value());
  node.doc = proto.doc_string();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const onnx::AttributeProto &attribute : proto.attribute())
    node.attributes.push_back(readAttribute(attribute, node.name, depth));
  return node;
}

void Reader::readGraph(const onnx::GraphProto &proto, model::Graph &graph, int64_t depth) {
  graph.name = proto.name();
  graph.doc = proto.doc_string();
  if (depth > limits.depth) {
    diagnostics.error("import.limit", "graphs are nested deeper than " + std::to_string(limits.depth) + " levels",
                      raiseLimit("--max-depth"));
    return;
  }
  for (const onnx::ValueInfoProto &value : proto.input())
    graph.inputs.push_back(readValue(value));
  for (const onnx::ValueInfoProto &value : proto.output())
    graph.outputs.push_back(readValue(value));
  for (const onnx::ValueInfoProto &value : proto.value_info())
    graph.values.push_back(readValue(value));
  auto readConstant = [&](const auto &tensor) {
    model::Tensor &read = graph.constants.emplace_back();
    read.isBroken = !tensors.read(tensor, "", read);
  };
  llvm::for_each(proto.initializer(), readConstant);
  llvm::for_each(proto.sparse_initializer(), readConstant);
  for (const onnx::NodeProto &node : proto.node())
    graph.nodes.push_back(readNode(node, graph.nodes.size(), depth));
}

std::map<std::string, int64_t>
Reader::readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &protos) const {
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto &opset : protos) {
    std::string domain = opset.domain() == "ai.onnx" ? "" : opset.domain();
    auto [entry, isNew] = opsets.emplace(domain, opset.version());
    if (!isNew && entry->second != opset.version())
      diagnostics.error("import.opset",
                        "domain '" + model::domainName(domain) + "' is imported with two versions, " +
                            std::to_string(entry->second) + " and " + std::to_string(opset.version()),
                        "keep one opset_import for each domain");
  }
  return opsets;
}

model::Function Reader::readFunction(const onnx::FunctionProto &proto) {
  model::Function function;
  function.name = proto.name();
  function.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  function.doc = proto.doc_string();
  function.overload = newField(proto.unknown_fields(), functionOverload);
  function.inputs.assign(proto.input().begin(), proto.input().end());
  function.outputs.assign(proto.output().begin(), proto.output().end());
  function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  for (const std::string &bytes : newFields(proto.unknown_fields(), functionAttributeProto)) {
    // The message must live as long as the model: its tensors are referenced.
    auto parsed = std::make_shared<onnx::AttributeProto>();
    if (!parsed->ParseFromString(bytes))
      continue;
    function.defaults.push_back(readAttribute(*parsed, "", 1));
    if (auto &attribute = function.defaults.back(); attribute.kind == model::Attribute::Kind::Tensor)
      attribute.tensor.owner =
          std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(attribute.tensor.owner, parsed);
  }
  function.opsets = readOpsets(proto.opset_import());
  for (const onnx::NodeProto &node : proto.node())
    function.nodes.push_back(readNode(node, function.nodes.size(), 1));
  return function;
}

model::Model Reader::read() {
  model::Model model;
  model.formatVersion = message->ir_version();
  model.producer = message->producer_name();
  model.producerVersion = message->producer_version();
  model.domain = message->domain();
  model.doc = message->doc_string();
  model.modelVersion = message->model_version();
  model.opsets = readOpsets(message->opset_import());
  for (const onnx::StringStringEntryProto &entry : message->metadata_props())
    model.metadata.emplace_back(entry.key(), entry.value());
  for (const onnx::FunctionProto &function : message->functions())
    model.functions.push_back(readFunction(function));
  readGraph(message->graph(), model.graph, 0);
  return model;
}

/// Whether `bytes`, which were refused, are a model but for their depth.
bool isTooDeep(llvm::StringRef bytes) {
  Limits deepest;
  deepest.depth = Limits::mostDepth;
  onnx::ModelProto message;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  input.SetRecursionLimit(protobufDepth(deepest, 3));
  return message.ParsePartialFromCodedStream(&input) && input.ConsumedEntireMessage();
}

/// Why `bytes` are no protobuf message: where its fields stop making sense.
std::string damage(llvm::StringRef bytes) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  while (true) {
    int at = input.CurrentPosition();
    uint32_t tag = input.ReadTag();
    if (tag == 0)
      return "it is damaged inside";
    std::string field = "field " + std::to_string(tag >> 3) + " at byte " + std::to_string(at);
    uint64_t number;
    uint32_t word;
    switch (tag & 7) {
    case 0:
      if (!input.ReadVarint64(&number))
        return "it is truncated inside " + field;
      break;
    case 1:
      if (!input.ReadLittleEndian64(&number))
        return "it is truncated inside " + field;
      break;
    case 2:
      if (!input.ReadVarint64(&number))
        return "it is truncated inside " + field;
      if (number > uint64_t(bytes.size() - size_t(input.CurrentPosition())))
        return field + " has " + std::to_string(number) + " bytes, but the file ends after " +
               std::to_string(bytes.size() - size_t(input.CurrentPosition())) + " more: it is truncated";
      input.Skip(int(number));
      break;
    case 5:
      if (!input.ReadLittleEndian32(&word))
        return "it is truncated inside " + field;
      break;
    default:
      return "it is no protobuf message from byte " + std::to_string(at) + " on";
    }
  }
}

} // namespace

std::optional<model::Model> readOnnx(llvm::StringRef bytes, llvm::StringRef path, const Limits &limits,
                                     Diagnostics &diagnostics) {
  if (bytes.empty()) {
    diagnostics.error("import.file", "the file is empty");
    return std::nullopt;
  }
  if (bytes.size() > size_t(INT_MAX)) {
    diagnostics.error("import.file", "the file is larger than 2 GiB, which no protobuf message may be",
                      "store the weights as external data");
    return std::nullopt;
  }
  google::protobuf::LogSilencer silencer; // what is wrong goes to the diagnostics alone
  auto message = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  // A nested graph takes three levels of messages: attribute, graph, node.
  input.SetRecursionLimit(protobufDepth(limits, 3));
  if (!message->ParsePartialFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    if (isTooDeep(bytes))
      diagnostics.error("import.limit", "graphs are nested deeper than " + std::to_string(limits.depth) + " levels",
                        raiseLimit("--max-depth"));
    else
      diagnostics.error("import.file", "the file is not an ONNX model: " + damage(bytes));
    return std::nullopt;
  }
  if (!message->has_graph()) {
    diagnostics.error("import.file", "the file is not an ONNX model: it has no graph");
    return std::nullopt;
  }
  if (message->ir_version() < 0 || message->ir_version() > newestFormat) {
    Diagnostic diagnostic;
    diagnostic.id = "import.format";
    diagnostic.what = "the file's ir_version is not known";
    diagnostic.expected = "1 to " + std::to_string(newestFormat);
    diagnostic.found = std::to_string(message->ir_version());
    diagnostics.report(std::move(diagnostic)); // the rest may still tell something
  }
  return Reader(path, message, limits, diagnostics).read();
}

} // namespace firn
