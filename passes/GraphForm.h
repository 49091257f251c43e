// GraphForm: what passes keep to in a module that becomes a graph file again.
#ifndef FIRN_PASSES_GRAPHFORM_H
#define FIRN_PASSES_GRAPHFORM_H

#include "dialects/firn/Firn.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace firn {

/// A module with this attribute becomes a graph file again (compiler/export), so no pass may write what a file cannot
/// say, or only at length: branches are not replaced by firn.fail, shape arithmetic on open dimensions stays.
constexpr llvm::StringLiteral staysGraphAttribute = "firn.stays_graph";

/// Of such a module: the opset of ai.onnx that the file is to have (i64); without it, any.
constexpr llvm::StringLiteral targetOpsetAttribute = "firn.target_opset";

inline bool staysGraph(mlir::ModuleOp module) { return module->hasAttr(staysGraphAttribute); }

/// The shape operand that says what a reshape gives, in numbers alone: 0 copies the input's dimension, one -1 follows
/// from the others. Nothing where there is no such operand.
inline std::optional<llvm::SmallVector<int64_t>> reshapeNumbers(mlir::RankedTensorType from,
                                                                mlir::RankedTensorType to) {
  llvm::SmallVector<int64_t> numbers;
  bool isInferred = false;
  for (auto [axis, dim] : llvm::enumerate(dimsOf(to))) {
    if (dim == DimExpr(0))
      return std::nullopt; // 0 would mean a copy, and nothing follows from a product of 0
    if (std::optional<int64_t> constant = dim.asConstant()) {
      numbers.push_back(*constant);
    } else if (int64_t(axis) < from.getRank() && dimOf(from, axis) == dim && dim.str()[0] != '?') {
      numbers.push_back(0);
    } else if (!isInferred) {
      isInferred = true;
      numbers.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  // With a copied dimension of 0 elements nothing can be inferred: 0 / 0.
  if (isInferred && llvm::is_contained(numbers, 0))
    return std::nullopt;
  return numbers;
}

} // namespace firn
#endif
