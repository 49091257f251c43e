// Which elements of a buffer a value inside a fused body stands for, where it is only a view: transposes, reshapes,
// slices and splits of an operand; and how views between a computed value and a result change positions.
#ifndef FIRN_COMPILER_CODEGEN_CPU_VIEWS_H
#define FIRN_COMPILER_CODEGEN_CPU_VIEWS_H

#include "dialects/firn/Firn.h"
#include <optional>

namespace firn {

/// Element (i0, i1, ...) of a value is element offset + i0 * strides[0] + i1 * strides[1] + ... of a buffer.
struct View {
  mlir::BlockArgument argument; // of the fused body; null for a result
  mlir::Type elementType;
  llvm::SmallVector<DimExpr> dims;
  llvm::SmallVector<DimExpr> strides; // 0: broadcast
  DimExpr offset;

  unsigned rank() const { return dims.size(); }
};

llvm::SmallVector<DimExpr> denseStrides(llvm::ArrayRef<DimExpr> dims);

/// Strides of the same elements in another shape; nothing if they are not evenly spaced there.
std::optional<llvm::SmallVector<DimExpr>> reshapeStrides(llvm::ArrayRef<DimExpr> dims, llvm::ArrayRef<DimExpr> strides,
                                                         llvm::ArrayRef<DimExpr> newDims);

/// The elements of an operand of the fused op that `value` is a view of; nothing if it is computed.
std::optional<View> viewOf(mlir::Value value);

/// The strides seen from before a reshape, transpose, squeeze, unsqueeze, flatten or identity: those of `view`, a view
/// of the operation's result, for its operand. Nothing if it is another operation or elements are not evenly spaced.
std::optional<View> viewBefore(mlir::Operation *op, const View &view);
/// Whether viewBefore knows the operation.
bool isView(mlir::Operation *op);

/// The view with its axes aligned to the right with `dims` and broadcast to them; nothing if it does not fit.
std::optional<View> broadcastView(const View &view, llvm::ArrayRef<DimExpr> dims);

/// The number that every element of a constant is; nothing for other values.
std::optional<double> singleValue(mlir::Value value);

} // namespace firn
#endif
