#include "compiler/export/onnx/Writer.h"
#include "compiler/export/Write.h"
#include "runtime/abi/dtype.h"
#include <onnx/onnx_pb.h>

namespace firn {
namespace {

/// The oldest format version (ir_version) that may declare the opset.
int64_t formatFor(int64_t opset) {
  static const std::pair<int64_t, int64_t> table[] = {{9, 4},   {10, 5},  {11, 6},  {12, 7},  {15, 8}, {19, 9},
                                                      {21, 10}, {23, 11}, {24, 12}, {25, 13}, {28, 14}};
  int64_t format = 3;
  for (auto [since, version] : table)
    if (opset >= since)
      format = version;
  return format;
}

class Writer {
public:
  Writer(llvm::StringRef path, int64_t threshold) : sideFile(path), sideFileBytes(threshold) {}

  void write(const model::Model &model, onnx::ModelProto &proto);
  SideFileWriter &side() { return sideFile; }

private:
  void writeGraph(const model::Graph &graph, onnx::GraphProto &proto);
  void writeNode(const model::Node &node, onnx::NodeProto &proto);
  void writeAttribute(const model::Attribute &attribute, onnx::AttributeProto &proto);
  void writeTensor(const model::Tensor &tensor, onnx::TensorProto &proto);
  static void writeValue(const model::Value &value, onnx::ValueInfoProto &proto);

  SideFileWriter sideFile;
  int64_t sideFileBytes;
};

static void writeType(const model::Type &type, onnx::TypeProto &proto) {
  using Kind = model::Type::Kind;
  switch (type.kind) {
  case Kind::Tensor: {
    onnx::TypeProto_Tensor *tensor = proto.mutable_tensor_type();
    tensor->set_elem_type(type.dtype);
    if (!type.dims)
      return;
    tensor->mutable_shape();
    for (const model::Dim &dim : *type.dims) {
      onnx::TensorShapeProto_Dimension *written = tensor->mutable_shape()->add_dim();
      if (dim.size)
        written->set_dim_value(*dim.size);
      else if (!dim.symbol.empty())
        written->set_dim_param(dim.symbol);
    }
    return;
  }
  case Kind::Sequence:
    return writeType(*type.element, *proto.mutable_sequence_type()->mutable_elem_type());
  case Kind::Optional:
    return writeType(*type.element, *proto.mutable_optional_type()->mutable_elem_type());
  case Kind::Map:
    proto.mutable_map_type()->set_key_type(type.dtype);
    return writeType(*type.element, *proto.mutable_map_type()->mutable_value_type());
  default:
    return;
  }
}

void Writer::writeValue(const model::Value &value, onnx::ValueInfoProto &proto) {
  proto.set_name(value.name);
  if (!value.doc.empty())
    proto.set_doc_string(value.doc);
  if (value.type.kind != model::Type::Kind::Unknown)
    writeType(value.type, *proto.mutable_type());
}

void Writer::writeTensor(const model::Tensor &tensor, onnx::TensorProto &proto) {
  proto.set_name(tensor.name);
  if (!tensor.doc.empty())
    proto.set_doc_string(tensor.doc);
  proto.set_data_type(tensor.dtype);
  for (int64_t dim : tensor.dims)
    proto.add_dims(dim);
  if (tensor.dtype == FIRN_STRING) {
    for (const std::string &text : tensor.strings)
      proto.add_string_data(text);
    return;
  }
  if (int64_t(tensor.bytes.size()) < sideFileBytes) {
    proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
    return;
  }
  proto.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
  auto entry = [&](const char *key, const std::string &value) {
    onnx::StringStringEntryProto *added = proto.add_external_data();
    added->set_key(key);
    added->set_value(value);
  };
  entry("location", sideFile.location());
  entry("offset", std::to_string(sideFile.add(tensor.bytes)));
  entry("length", std::to_string(tensor.bytes.size()));
}

void Writer::writeAttribute(const model::Attribute &attribute, onnx::AttributeProto &proto) {
  using Kind = model::Attribute::Kind;
  proto.set_name(attribute.name);
  switch (attribute.kind) {
  case Kind::Float:
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(attribute.f);
    break;
  case Kind::Int:
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(attribute.i);
    break;
  case Kind::String:
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(attribute.s);
    break;
  case Kind::Tensor:
    proto.set_type(onnx::AttributeProto::TENSOR);
    writeTensor(attribute.tensor, *proto.mutable_t());
    break;
  case Kind::Graph:
    proto.set_type(onnx::AttributeProto::GRAPH);
    writeGraph(*attribute.graph, *proto.mutable_g());
    break;
  case Kind::Floats:
    proto.set_type(onnx::AttributeProto::FLOATS);
    proto.mutable_floats()->Add(attribute.floats.begin(), attribute.floats.end());
    break;
  case Kind::Ints:
    proto.set_type(onnx::AttributeProto::INTS);
    proto.mutable_ints()->Add(attribute.ints.begin(), attribute.ints.end());
    break;
  case Kind::Strings:
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string &text : attribute.strings)
      proto.add_strings(text);
    break;
  case Kind::Type:
    proto.set_type(onnx::AttributeProto::TYPE_PROTO);
    writeType(attribute.type, *proto.mutable_tp());
    break;
  default:
    break;
  }
}

void Writer::writeNode(const model::Node &node, onnx::NodeProto &proto) {
  if (!node.name.empty())
    proto.set_name(node.name);
  proto.set_op_type(node.type);
  if (!node.domain.empty())
    proto.set_domain(node.domain);
  if (!node.doc.empty())
    proto.set_doc_string(node.doc);
  for (const std::string &input : node.inputs)
    proto.add_input(input);
  for (const std::string &output : node.outputs)
    proto.add_output(output);
  for (const model::Attribute &attribute : node.attributes)
    writeAttribute(attribute, *proto.add_attribute());
  // metadata_props, field 9, is newer than the generated classes.
  for (auto &[key, value] : node.metadata) {
    onnx::StringStringEntryProto entry;
    entry.set_key(key);
    entry.set_value(value);
    proto.mutable_unknown_fields()->AddLengthDelimited(9, entry.SerializeAsString());
  }
}

void Writer::writeGraph(const model::Graph &graph, onnx::GraphProto &proto) {
  proto.set_name(graph.name);
  if (!graph.doc.empty())
    proto.set_doc_string(graph.doc);
  for (const model::Value &value : graph.inputs)
    writeValue(value, *proto.add_input());
  for (const model::Value &value : graph.outputs)
    writeValue(value, *proto.add_output());
  for (const model::Value &value : graph.values)
    if (value.type.kind != model::Type::Kind::Unknown) // says nothing, and is not valid
      writeValue(value, *proto.add_value_info());
  for (const model::Tensor &tensor : graph.constants)
    writeTensor(tensor, *proto.add_initializer());
  for (const model::Node &node : graph.nodes)
    writeNode(node, *proto.add_node());
}

void Writer::write(const model::Model &model, onnx::ModelProto &proto) {
  int64_t opset = 1;
  for (auto &[domain, version] : model.opsets) {
    onnx::OperatorSetIdProto *import = proto.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
    if (domain.empty())
      opset = version;
  }
  proto.set_ir_version(std::max(model.formatVersion, formatFor(opset)));
  if (!model.producer.empty())
    proto.set_producer_name(model.producer);
  if (!model.producerVersion.empty())
    proto.set_producer_version(model.producerVersion);
  if (!model.domain.empty())
    proto.set_domain(model.domain);
  if (!model.doc.empty())
    proto.set_doc_string(model.doc);
  if (model.modelVersion)
    proto.set_model_version(model.modelVersion);
  for (auto &[key, value] : model.metadata) {
    onnx::StringStringEntryProto *entry = proto.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  writeGraph(model.graph, *proto.mutable_graph());
}

} // namespace

std::optional<int64_t> writeOnnx(const model::Model &model, llvm::StringRef path, int64_t sideFileBytes,
                                 Diagnostics &diagnostics) {
  Writer writer(path, sideFileThreshold(sideFileBytes, model));
  onnx::ModelProto proto;
  writer.write(model, proto);
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    tooLarge(diagnostics);
    return std::nullopt;
  }
  return writeWithSideFile(path, bytes, writer.side(), diagnostics);
}

} // namespace firn
