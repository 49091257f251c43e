#include "test/fuzz/MutateModel.h"

#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <random>
#include <vector>

namespace firn::test {
namespace {

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void mutate(onnx::ModelProto &model) {
    onnx::GraphProto *graph = someGraph(model.mutable_graph());
    switch (below(15)) {
    case 0:
      return swapEdges(*graph);
    case 1:
      return reconnect(*graph);
    case 2:
      return changeDims(*graph);
    case 3:
      return changeType(*graph);
    case 4:
    case 5:
      return changeAttribute(*graph);
    case 6:
      return changeOperator(*graph);
    case 7:
      return changeOpset(model);
    case 8:
    case 9:
      return changeConstant(*graph);
    case 10:
      return doubleNode(*graph);
    case 11:
      return removeNode(*graph);
    case 12:
      return dropInput(*graph);
    case 13:
      return nest(*graph);
    default:
      return addOutput(*graph);
    }
  }

  void splice(onnx::GraphProto &graph, onnx::GraphProto other) {
    // Names of the other one get a prefix; one of its inputs becomes a value of ours.
    auto renamed = [](const std::string &name) { return name.empty() ? name : "s/" + name; };
    std::string joined = other.input_size() ? renamed(other.input(below(other.input_size())).name()) : "";
    std::string value = someValue(graph);
    for (onnx::ValueInfoProto &input : *other.mutable_input()) {
      input.set_name(renamed(input.name()));
      if (input.name() != joined)
        *graph.add_input() = input;
    }
    for (onnx::TensorProto &tensor : *other.mutable_initializer()) {
      tensor.set_name(renamed(tensor.name()));
      *graph.add_initializer() = tensor;
    }
    for (onnx::NodeProto &node : *other.mutable_node()) {
      for (std::string &input : *node.mutable_input())
        input = renamed(input) == joined ? value : renamed(input);
      for (std::string &output : *node.mutable_output())
        output = renamed(output);
      *graph.add_node() = node;
    }
    for (onnx::ValueInfoProto &output : *other.mutable_output()) {
      output.set_name(renamed(output.name()));
      *graph.add_output() = output;
    }
  }

  int below(int count) { return count <= 1 ? 0 : int(random() % unsigned(count)); }

private:
  template <typename Field> auto *any(Field *field) {
    return field->size() ? field->Mutable(below(field->size())) : nullptr;
  }

  /// The graph, or one nested in it.
  onnx::GraphProto *someGraph(onnx::GraphProto *graph) {
    std::vector<onnx::GraphProto *> graphs = {graph};
    for (size_t i = 0; i < graphs.size() && graphs.size() < 50; ++i)
      for (onnx::NodeProto &node : *graphs[i]->mutable_node())
        for (onnx::AttributeProto &attribute : *node.mutable_attribute())
          if (attribute.has_g())
            graphs.push_back(attribute.mutable_g());
    return graphs[below(int(graphs.size()))];
  }

  std::string someValue(const onnx::GraphProto &graph) {
    std::vector<std::string> names;
    for (const onnx::ValueInfoProto &input : graph.input())
      names.push_back(input.name());
    for (const onnx::TensorProto &tensor : graph.initializer())
      names.push_back(tensor.name());
    for (const onnx::NodeProto &node : graph.node())
      names.insert(names.end(), node.output().begin(), node.output().end());
    return names.empty() ? "" : names[below(int(names.size()))];
  }

  int64_t someSize() {
    static const int64_t sizes[] = {0,        1, 1, 2, 3, 4, 5, 7, 8, 16, 17, -1, 64, 100, 1 << 20, int64_t(1) << 33,
                                    INT64_MAX};
    return sizes[below(int(std::size(sizes)))];
  }
  int32_t someType() { return below(6) ? int32_t(1 + below(16)) : int32_t(below(30)); }

  void swapEdges(onnx::GraphProto &graph) {
    onnx::NodeProto *a = any(graph.mutable_node()), *b = any(graph.mutable_node());
    std::string *x = a ? any(a->mutable_input()) : nullptr, *y = b ? any(b->mutable_input()) : nullptr;
    if (x && y && x != y)
      x->swap(*y);
  }

  void reconnect(onnx::GraphProto &graph) {
    onnx::NodeProto *node = any(graph.mutable_node());
    if (std::string *input = node ? any(node->mutable_input()) : nullptr)
      *input = someValue(graph);
  }

  void changeDims(onnx::GraphProto &graph) {
    auto *values = below(4) ? graph.mutable_input() : graph.mutable_output();
    onnx::ValueInfoProto *value = any(values);
    if (!value || !value->type().has_tensor_type())
      return;
    auto *tensor = value->mutable_type()->mutable_tensor_type();
    if (below(8) == 0)
      return tensor->clear_shape();
    auto *dims = tensor->mutable_shape()->mutable_dim();
    onnx::TensorShapeProto_Dimension *dim = dims->size() == 0 || below(6) == 0 ? dims->Add() : any(dims);
    if (below(6) == 0 && dims->size())
      return dims->RemoveLast();
    if (below(3))
      return dim->set_dim_value(someSize());
    static const char *const names[] = {"n", "m", "batch", "", "?", "n+1"};
    dim->set_dim_param(names[below(int(std::size(names)))]);
  }

  void changeType(onnx::GraphProto &graph) {
    if (onnx::ValueInfoProto *value = any(graph.mutable_input()); value && value->type().has_tensor_type())
      value->mutable_type()->mutable_tensor_type()->set_elem_type(someType());
  }

  void changeAttribute(onnx::GraphProto &graph) {
    onnx::NodeProto *node = any(graph.mutable_node());
    onnx::AttributeProto *attribute = node ? any(node->mutable_attribute()) : nullptr;
    if (!attribute)
      return;
    int64_t small = below(9) - 4, size = below(3) ? small : someSize();
    switch (attribute->type()) {
    case onnx::AttributeProto::INT:
      return attribute->set_i(size);
    case onnx::AttributeProto::FLOAT:
      return attribute->set_f(below(4) ? float(small) / 2 : below(2) ? INFINITY : NAN);
    case onnx::AttributeProto::INTS:
      if (attribute->ints_size() && below(4))
        return attribute->set_ints(below(attribute->ints_size()), size);
      return below(2) || !attribute->ints_size() ? attribute->add_ints(size) : attribute->mutable_ints()->RemoveLast();
    case onnx::AttributeProto::STRING:
      if (std::string *text = attribute->mutable_s(); !text->empty())
        (*text)[size_t(below(int(text->size())))] = char(random());
      return;
    default:
      node->mutable_attribute()->DeleteSubrange(below(node->attribute_size()), 1);
    }
  }

  void changeOperator(onnx::GraphProto &graph) {
    static const char *const names[] = {"Add",
                                        "Mul",
                                        "Div",
                                        "Sub",
                                        "MatMul",
                                        "Gemm",
                                        "Relu",
                                        "Sigmoid",
                                        "Softmax",
                                        "Reshape",
                                        "Transpose",
                                        "Concat",
                                        "Split",
                                        "Slice",
                                        "Gather",
                                        "GatherND",
                                        "ScatterND",
                                        "Shape",
                                        "Size",
                                        "Expand",
                                        "Tile",
                                        "Pad",
                                        "Squeeze",
                                        "Unsqueeze",
                                        "Cast",
                                        "Where",
                                        "ReduceSum",
                                        "ReduceMean",
                                        "ArgMax",
                                        "TopK",
                                        "Conv",
                                        "ConvTranspose",
                                        "MaxPool",
                                        "AveragePool",
                                        "GlobalAveragePool",
                                        "BatchNormalization",
                                        "LayerNormalization",
                                        "LSTM",
                                        "GRU",
                                        "Einsum",
                                        "OneHot",
                                        "Range",
                                        "ConstantOfShape",
                                        "NonZero",
                                        "CumSum",
                                        "Resize",
                                        "QuantizeLinear",
                                        "DequantizeLinear",
                                        "Identity",
                                        "Flatten",
                                        "Clip",
                                        "Attention",
                                        "DepthToSpace",
                                        "Trilu",
                                        "Mod",
                                        "Pow",
                                        "Equal",
                                        "Less",
                                        "And",
                                        "Not",
                                        "Dropout",
                                        "LRN",
                                        "InstanceNormalization",
                                        "GatherElements",
                                        "ScatterElements",
                                        "Compress",
                                        "Unique",
                                        "NonMaxSuppression",
                                        "RoiAlign",
                                        "GridSample",
                                        "ReverseSequence",
                                        "EyeLike",
                                        "DFT",
                                        "Col2Im",
                                        "Det",
                                        "IsNaN",
                                        "BitShift",
                                        "HardSwish",
                                        "Gelu",
                                        "Erf",
                                        "Swish",
                                        "Max",
                                        "Min",
                                        "Sum"};
    if (onnx::NodeProto *node = any(graph.mutable_node()); node && node->op_type() != "If" && node->op_type() != "Loop")
      node->set_op_type(names[below(int(std::size(names)))]);
  }

  void changeOpset(onnx::ModelProto &model) {
    if (auto *opset = any(model.mutable_opset_import()))
      opset->set_version(below(8) ? 7 + below(20) : someSize());
  }

  void changeConstant(onnx::GraphProto &graph) {
    onnx::TensorProto *tensor = any(graph.mutable_initializer());
    if (!tensor)
      return;
    if (below(5) == 0)
      return tensor->set_data_type(someType());
    if (below(5) == 0 && tensor->dims_size())
      return tensor->set_dims(below(tensor->dims_size()), someSize());
    if (tensor->data_type() == onnx::TensorProto::INT64 && tensor->int64_data_size())
      return tensor->set_int64_data(below(tensor->int64_data_size()), below(3) ? below(9) - 4 : someSize());
    std::string *raw = tensor->mutable_raw_data();
    if (tensor->data_type() == onnx::TensorProto::INT64 && raw->size() >= 8) {
      int64_t number = below(3) ? below(9) - 4 : someSize();
      raw->replace(size_t(below(int(raw->size() / 8))) * 8, 8, reinterpret_cast<const char *>(&number), 8);
    } else if (!raw->empty()) {
      (*raw)[size_t(below(int(raw->size())))] = char(random());
    }
  }

  void doubleNode(onnx::GraphProto &graph) {
    onnx::NodeProto *node = any(graph.mutable_node());
    if (!node)
      return;
    onnx::NodeProto copy = *node;
    copy.set_name(copy.name() + "+");
    for (std::string &output : *copy.mutable_output())
      output += "+";
    if (copy.input_size() && node->output_size() && below(2))
      copy.set_input(below(copy.input_size()), node->output(0));
    std::string output = copy.output_size() ? copy.output(0) : "";
    *graph.add_node() = std::move(copy);
    if (onnx::NodeProto *reader = any(graph.mutable_node()); reader->input_size() && below(2))
      reader->set_input(below(reader->input_size()), output);
    else
      graph.add_output()->set_name(output);
  }

  void removeNode(onnx::GraphProto &graph) {
    if (graph.node_size() < 2)
      return;
    int at = below(graph.node_size());
    onnx::NodeProto removed = graph.node(at);
    graph.mutable_node()->DeleteSubrange(at, 1);
    // Its readers read what it read.
    for (onnx::NodeProto &node : *graph.mutable_node())
      for (std::string &input : *node.mutable_input())
        for (const std::string &output : removed.output())
          if (input == output)
            input = removed.input_size() ? removed.input(0) : someValue(graph);
  }

  void dropInput(onnx::GraphProto &graph) {
    onnx::NodeProto *node = any(graph.mutable_node());
    if (!node || node->input_size() == 0)
      return;
    if (below(2))
      node->mutable_input(below(node->input_size()))->clear();
    else
      node->mutable_input()->RemoveLast();
  }

  /// A node moves into both branches of an If, or into the body of a Loop.
  void nest(onnx::GraphProto &graph) {
    onnx::NodeProto *node = any(graph.mutable_node());
    if (!node || node->output_size() != 1 || node->op_type() == "Loop" || graph.node_size() > 60)
      return;
    onnx::NodeProto inner = *node;
    std::string output = inner.output(0);
    std::string condition = "c/" + output;
    inner.set_output(0, "inner/" + output);
    node->Clear();
    node->set_name("nest/" + output);
    node->add_output(output);
    auto addGraph = [&](const char *name) {
      onnx::AttributeProto *attribute = node->add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      *attribute->mutable_g()->add_node() = inner;
      return attribute->mutable_g();
    };
    if (below(2)) {
      node->set_op_type("If");
      node->add_input(condition);
      for (const char *name : {"then_branch", "else_branch"})
        addGraph(name)->add_output()->set_name(inner.output(0));
      auto *tensor = graph.add_initializer();
      tensor->set_name(condition);
      tensor->set_data_type(onnx::TensorProto::BOOL);
      tensor->add_int32_data(below(2));
    } else {
      node->set_op_type("Loop");
      node->add_input(condition);
      node->add_input("");
      onnx::GraphProto *body = addGraph("body");
      body->add_input()->set_name("i/" + output);
      body->add_input()->set_name("go/" + output);
      body->add_output()->set_name("go/" + output);
      body->add_output()->set_name(inner.output(0)); // stacked
      auto *tensor = graph.add_initializer();
      tensor->set_name(condition);
      tensor->set_data_type(onnx::TensorProto::INT64);
      tensor->add_int64_data(below(4));
    }
  }

  void addOutput(onnx::GraphProto &graph) {
    if (std::string name = someValue(graph); !name.empty())
      graph.add_output()->set_name(name);
  }

  std::mt19937 random;
};

onnx::ModelProto smallModel() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  onnx::GraphProto *graph = model.mutable_graph();
  for (const char *name : {"a", "b"}) {
    onnx::ValueInfoProto *input = graph->add_input();
    input->set_name(name);
    auto *tensor = input->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    tensor->mutable_shape()->add_dim()->set_dim_param("n");
    tensor->mutable_shape()->add_dim()->set_dim_value(4);
  }
  onnx::NodeProto *node = graph->add_node();
  node->set_op_type("Add");
  node->add_input("a");
  node->add_input("b");
  node->add_output("y");
  graph->add_output()->set_name("y");
  return model;
}

onnx::ModelProto parsed(const std::string &bytes) {
  google::protobuf::LogSilencer silencer;
  onnx::ModelProto model;
  return model.ParseFromString(bytes) && model.graph().node_size() ? model : smallModel();
}

} // namespace

std::string mutateModel(const std::string &bytes, unsigned seed) {
  onnx::ModelProto model = parsed(bytes);
  Mutator mutator(seed);
  for (int changes = 1 + mutator.below(4); changes > 0; --changes)
    mutator.mutate(model);
  return model.SerializeAsString();
}

std::string spliceModels(const std::string &bytes, const std::string &other, unsigned seed) {
  onnx::ModelProto model = parsed(bytes), second = parsed(other);
  if (model.graph().node_size() + second.graph().node_size() < 100)
    Mutator(seed).splice(*model.mutable_graph(), second.graph());
  return model.SerializeAsString();
}

} // namespace firn::test
