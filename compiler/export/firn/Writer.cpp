#include "compiler/export/firn/Writer.h"
#include "compiler/export/Write.h"
#include "proto/graph.pb.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <cmath>
#include <cstring>
#include <google/protobuf/text_format.h>

namespace firn {
namespace {

class Writer {
public:
  Writer(llvm::StringRef path, int64_t threshold, bool text) : sideFile(path), sideFileBytes(threshold), isText(text) {}

  void write(const model::Model &model, v1::Model &proto);
  SideFileWriter &side() { return sideFile; }

private:
  void writeGraph(const model::Graph &graph, v1::Graph &proto);
  void writeNode(const model::Node &node, v1::Node &proto);
  void writeAttribute(const model::Attribute &attribute, v1::Attribute &proto);
  void writeConstant(const model::Tensor &tensor, v1::Constant &proto);
  bool writeNumbers(const model::Tensor &tensor, v1::Constant &proto);
  static void writeValue(const model::Value &value, v1::Value &proto);

  SideFileWriter sideFile;
  int64_t sideFileBytes;
  bool isText;
};

static void writeType(const model::Type &type, v1::Type &proto) {
  using Kind = model::Type::Kind;
  if (type.kind == Kind::Sequence || type.kind == Kind::Optional || type.kind == Kind::Map) {
    proto.set_form(type.kind == Kind::Sequence   ? v1::Type::SEQUENCE
                   : type.kind == Kind::Optional ? v1::Type::OPTIONAL
                                                 : v1::Type::MAP);
    proto.set_dtype(v1::DType(type.dtype));
    return writeType(*type.element, *proto.mutable_element());
  }
  if (type.kind != Kind::Tensor)
    return;
  proto.set_dtype(v1::DType(type.dtype));
  if (!type.dims)
    return;
  v1::Shape *shape = proto.mutable_shape();
  for (const model::Dim &dim : *type.dims) {
    int64_t size;
    // A symbol that reads as a size or as no symbol at all is marked as one.
    bool isMarked = !dim.symbol.empty() &&
                    (!llvm::StringRef(dim.symbol).getAsInteger(10, size) || dim.symbol[0] == '$' || dim.symbol == "?");
    shape->add_dims(dim.size ? std::to_string(*dim.size) : (isMarked ? "$" : "") + dim.symbol);
  }
}

void Writer::writeValue(const model::Value &value, v1::Value &proto) {
  proto.set_name(value.name);
  proto.set_doc(value.doc);
  if (value.type.kind != model::Type::Kind::Unknown)
    writeType(value.type, *proto.mutable_type());
}

// Few numbers are written as numbers in text files, for people.
bool Writer::writeNumbers(const model::Tensor &tensor, v1::Constant &proto) {
  if (!isText || tensor.bytes.size() > 512 || tensor.bytes.empty())
    return false;
  auto each = [&](auto zero, auto add) {
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(zero)) {
      auto value = zero;
      std::memcpy(&value, tensor.bytes.data() + at, sizeof(value));
      add(value);
    }
    return true;
  };
  switch (tensor.dtype) {
  case FIRN_F32: {
    bool isFinite = true; // text forms of NaN lose its bits
    each(0.0f, [&](float value) { isFinite &= std::isfinite(value); });
    return isFinite && each(0.0f, [&](float value) { proto.mutable_floats()->add_values(value); });
  }
  case FIRN_I64:
    return each(int64_t(0), [&](int64_t value) { proto.mutable_ints()->add_values(value); });
  case FIRN_I32:
    return each(int32_t(0), [&](int32_t value) { proto.mutable_ints()->add_values(value); });
  case FIRN_BOOL:
    return each(char(0), [&](char value) { proto.mutable_ints()->add_values(value); });
  default:
    return false;
  }
}

void Writer::writeConstant(const model::Tensor &tensor, v1::Constant &proto) {
  proto.set_name(tensor.name);
  proto.set_doc(tensor.doc);
  proto.set_dtype(v1::DType(tensor.dtype));
  proto.mutable_dims()->Add(tensor.dims.begin(), tensor.dims.end());
  if (tensor.dtype == FIRN_STRING) {
    proto.mutable_strings();
    for (const std::string &text : tensor.strings)
      proto.mutable_strings()->add_values(text);
    return;
  }
  if (writeNumbers(tensor, proto))
    return;
  if (int64_t(tensor.bytes.size()) < sideFileBytes) {
    proto.set_raw(tensor.bytes.data(), tensor.bytes.size());
    return;
  }
  v1::External *external = proto.mutable_external();
  external->set_location(sideFile.location());
  auto hash = llvm::SHA256::hash(
      llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(tensor.bytes.data()), tensor.bytes.size()));
  external->set_sha256(llvm::toHex(hash, true));
  external->set_offset(sideFile.add(tensor.bytes)); // last: it lets go of the bytes
  external->set_length(int64_t(tensor.bytes.size()));
}

void Writer::writeAttribute(const model::Attribute &attribute, v1::Attribute &proto) {
  using Kind = model::Attribute::Kind;
  proto.set_name(attribute.name);
  switch (attribute.kind) {
  case Kind::Float:
    proto.set_f(attribute.f);
    break;
  case Kind::Int:
    proto.set_i(attribute.i);
    break;
  case Kind::String:
    proto.set_s(attribute.s);
    break;
  case Kind::Tensor:
    writeConstant(attribute.tensor, *proto.mutable_tensor());
    break;
  case Kind::Graph:
    writeGraph(*attribute.graph, *proto.mutable_graph());
    break;
  case Kind::Floats:
    proto.mutable_floats()->mutable_values()->Add(attribute.floats.begin(), attribute.floats.end());
    break;
  case Kind::Ints:
    proto.mutable_ints()->mutable_values()->Add(attribute.ints.begin(), attribute.ints.end());
    break;
  case Kind::Strings:
    proto.mutable_strings();
    for (const std::string &text : attribute.strings)
      proto.mutable_strings()->add_values(text);
    break;
  case Kind::Type:
    writeType(attribute.type, *proto.mutable_type());
    break;
  default:
    break;
  }
}

void Writer::writeNode(const model::Node &node, v1::Node &proto) {
  proto.set_name(node.name);
  proto.set_domain(node.domain);
  proto.set_op(node.type);
  proto.set_doc(node.doc);
  for (const std::string &input : node.inputs)
    proto.add_inputs(input);
  for (const std::string &output : node.outputs)
    proto.add_outputs(output);
  for (const model::Attribute &attribute : node.attributes)
    writeAttribute(attribute, *proto.add_attributes());
  for (auto &[key, value] : node.metadata) {
    v1::Entry *entry = proto.add_metadata();
    entry->set_key(key);
    entry->set_value(value);
  }
}

void Writer::writeGraph(const model::Graph &graph, v1::Graph &proto) {
  proto.set_name(graph.name);
  proto.set_doc(graph.doc);
  for (const model::Value &value : graph.inputs)
    writeValue(value, *proto.add_inputs());
  for (const model::Value &value : graph.outputs)
    writeValue(value, *proto.add_outputs());
  for (const model::Value &value : graph.values)
    writeValue(value, *proto.add_values());
  for (const model::Tensor &tensor : graph.constants)
    writeConstant(tensor, *proto.add_constants());
  for (const model::Node &node : graph.nodes)
    writeNode(node, *proto.add_nodes());
}

void Writer::write(const model::Model &model, v1::Model &proto) {
  proto.set_format("firn.v1");
  for (auto &[domain, version] : model.opsets) {
    v1::Opset *opset = proto.add_opsets();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  for (auto &[key, value] : model.metadata) {
    v1::Entry *entry = proto.add_metadata();
    entry->set_key(key);
    entry->set_value(value);
  }
  proto.set_producer(model.producer);
  proto.set_producer_version(model.producerVersion);
  proto.set_domain(model.domain);
  proto.set_model_version(model.modelVersion);
  proto.set_doc(model.doc);
  proto.set_source_format_version(model.formatVersion);
  writeGraph(model.graph, *proto.mutable_graph());
}

} // namespace

std::string graphBytes(const model::Graph &graph) {
  model::Model model;
  model.graph = graph;
  v1::Model proto;
  Writer("", INT64_MAX, false).write(model, proto);
  return proto.SerializeAsString();
}

std::optional<int64_t> writeFirn(const model::Model &model, llvm::StringRef path, int64_t sideFileBytes,
                                 Diagnostics &diagnostics) {
  bool isText = path.ends_with(".fpbtxt");
  // In a text file, bytes are escapes that nobody reads: what is longer than a few lines goes beside it.
  int64_t threshold = isText && sideFileBytes == 0 ? 4096 : sideFileThreshold(sideFileBytes, model);
  Writer writer(path, threshold, isText);
  v1::Model proto;
  writer.write(model, proto);
  std::string bytes;
  if (isText) {
    google::protobuf::TextFormat::Printer printer;
    printer.SetUseShortRepeatedPrimitives(true);
    if (!printer.PrintToString(proto, &bytes)) {
      diagnostics.error("export.size", "the model cannot be written as text");
      return std::nullopt;
    }
  } else if (!proto.SerializeToString(&bytes)) {
    tooLarge(diagnostics);
    return std::nullopt;
  }
  return writeWithSideFile(path, bytes, writer.side(), diagnostics);
}

} // namespace firn
