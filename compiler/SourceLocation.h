// SourceLocation: what the location of an operation says about the node of the model that it came from.
//
// An imported operation has the location  "node"(fused<{op = "Conv-11", outputs = ["y"], ...}>["model.onnx":0:0]).
// The names of values live here and not in attributes, so that two equal nodes are equal operations to CSE.
#ifndef FIRN_COMPILER_SOURCELOCATION_H
#define FIRN_COMPILER_SOURCELOCATION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include <string>
#include <vector>

namespace firn {

/// Keys of `details`.
constexpr llvm::StringLiteral opKey = "op";           // "Conv-11"
constexpr llvm::StringLiteral outputsKey = "outputs"; // names of the values that the node defines, "" where none
constexpr llvm::StringLiteral unnamedKey = "unnamed"; // unit: the node has no name, ours is made up
constexpr llvm::StringLiteral docKey = "doc";         // the node's comment
constexpr llvm::StringLiteral metadataKey = "metadata";
constexpr llvm::StringLiteral failKey = "firn.fail"; // in a node's metadata: it stands for firn.fail with this message
constexpr llvm::StringLiteral defaultsKey = "defaults"; // attributes that the file gives though they are the default
constexpr llvm::StringLiteral orderKey =
    "order"; // names of the attributes as the file has them, where not by the alphabet
constexpr llvm::StringLiteral graphsKey = "graphs"; // names of the graphs behind the regions

constexpr llvm::StringLiteral typesKey = "types"; // of each of these graphs: declared types of inputs, then outputs

struct SourceLocation {
  std::string node;         // of several fused nodes: joined by '+'
  std::string operatorName; // of the last of them
  mlir::DictionaryAttr details;
  bool isFused = false;
};

mlir::Location sourceLocation(mlir::MLIRContext *context, llvm::StringRef node, llvm::StringRef file,
                              mlir::DictionaryAttr details);
SourceLocation sourceOf(mlir::Location location);
/// The nodes that a location names, each once.
std::vector<std::string> sourceNodes(mlir::Location location);

} // namespace firn
#endif
