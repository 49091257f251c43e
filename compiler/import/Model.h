// Model: a model as its file says it, in no particular format.
//
// The readers (onnx/, firn/) fill it and the builder (Build.h) turns it into operations; on the way out the collector
// fills it and the writers encode it. It keeps protobuf away from MLIR: no file needs the headers of both.
#ifndef FIRN_COMPILER_IMPORT_MODEL_H
#define FIRN_COMPILER_IMPORT_MODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace firn::model {

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// One dimension: a size, a symbol, or (neither) unknown.
struct Dim {
  std::optional<int64_t> size;
  std::string symbol;
};

struct Type {
  enum class Kind { Unknown, Tensor, SparseTensor, Sequence, Map, Optional };
  Kind kind = Kind::Unknown;
  int32_t dtype = 0; // of a tensor; 0: not said. Of a map: its keys
  std::optional<std::vector<Dim>> dims;
  std::shared_ptr<Type> element; // of a sequence or an optional; of a map: its values
};

struct Value {
  std::string name;
  Type type;
  std::string doc;
};

/// A frozen tensor. `bytes` as in runtime/abi/dtype.h, owned by `owner` (and valid as long as it is).
struct Tensor {
  std::string name;
  int32_t dtype = 0;
  std::vector<int64_t> dims;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<void> owner;
  std::vector<std::string> strings; // of dtype FIRN_STRING
  std::string doc;
  bool isBroken = false; // an error was reported; there are no contents
};

struct Graph;

struct Attribute {
  enum class Kind { None, Float, Int, String, Tensor, Graph, Floats, Ints, Strings, Type, Reference, Other };
  std::string name;
  Kind kind = Kind::None;
  float f = 0;
  int64_t i = 0;
  std::string s; // String; of Reference: the function's attribute that it stands for; of Other: the kind, for messages
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Tensor tensor;
  std::shared_ptr<Graph> graph;
  model::Type type;
};

struct Node {
  std::string name;
  bool isUnnamed = false; // `name` is made up
  std::string domain;     // "" is ai.onnx
  std::string type;
  std::string overload;
  int64_t version = 0; // of the domain
  std::string origin;  // "Conv-11": what the file says, for messages, where upgrades changed the node
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
  std::string doc;
  Metadata metadata;
  std::vector<std::string> sources; // of a node that the collector made: names of the nodes that it comes from
  bool isBroken = false;            // an error was reported; what the node computes is unknown

  Attribute *attribute(llvm::StringRef key) {
    return const_cast<Attribute *>(static_cast<const Node *>(this)->attribute(key));
  }
  const Attribute *attribute(llvm::StringRef key) const {
    for (const Attribute &candidate : attributes)
      if (candidate.name == key)
        return &candidate;
    return nullptr;
  }
};

struct Graph {
  std::string name, doc;
  std::vector<Value> inputs, outputs, values; // values: declared types of what nodes define
  std::vector<Tensor> constants;
  std::vector<Node> nodes;
};

struct Function {
  std::string name, domain, overload, doc;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;   // without a default
  std::vector<Attribute> defaults;       // with one
  std::map<std::string, int64_t> opsets; // of the body
  std::vector<Node> nodes;
};

struct Model {
  int64_t formatVersion = 0; // ONNX's ir_version
  std::string producer, producerVersion, domain, doc;
  int64_t modelVersion = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<Function> functions;
  Metadata metadata;
  Graph graph;
};

/// "ai.onnx" for the empty domain.
inline std::string domainName(llvm::StringRef domain) { return domain.empty() ? "ai.onnx" : domain.str(); }

} // namespace firn::model
#endif
