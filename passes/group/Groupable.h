// Groupable: what role an operation may have in a kernel, and how regions are made and dissolved.
#ifndef FIRN_PASSES_GROUP_GROUPABLE_H
#define FIRN_PASSES_GROUP_GROUPABLE_H

#include "dialects/firn/Firn.h"
#include "mlir/IR/Builders.h"

namespace firn {

enum class Role {
  None,        // runs alone, on its reference kernel or in the executor
  View,        // the same bytes in another shape
  Elementwise, // each element from the elements at its (broadcast) position
  Remap,       // each element from one element elsewhere
  Reduce,      // rows to numbers, or rows by numbers of the row
  Contraction,
  Attention,
  Pool,
  Sequence,
  Scatter, // a copy with some elements replaced
  Scan,    // running sums and products
  Sample,  // weighted sums of elements round a position
  Search,  // the largest elements, those that are not zero, ...
  Forest,  // tree ensembles
};

/// None where an element type has no generated code or a result dimension is only found by running the operation.
Role roleOf(mlir::Operation *op);

/// The kind of a kernel around an operation of this role ("map", "reduce", ...); "" where it makes no kernel of its
/// own.
llvm::StringRef kernelKind(Role role);

/// Constants that are written into the kernel instead of read by it: single numbers and the small integer lists that
/// say axes, bounds and shapes.
bool isInlineOperand(mlir::Value value);

/// Makes one firn.fused of `members` (in block order, the last one is the root) before the root. Values that others
/// read become results.
FusedOp makeFused(llvm::ArrayRef<mlir::Operation *> members, llvm::StringRef kind);

/// Where `op` finds a size of its result in its data and has generated code once that is known: replaces it by what
/// finds the size and a firn.fused (DataSizes.cpp).
void splitDataSizes(mlir::Operation *op);

/// Puts the operations of the region back into the block; operations with layout "nhwc" go back to ONNX's layout
/// between transposes. Returns the operations.
llvm::SmallVector<mlir::Operation *> dissolve(FusedOp fused);

} // namespace firn
#endif
