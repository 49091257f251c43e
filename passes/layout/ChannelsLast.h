// ChannelsLast: how one operation looks when the channels (axis 1) of its tensors move to the end.
#ifndef FIRN_PASSES_LAYOUT_CHANNELSLAST_H
#define FIRN_PASSES_LAYOUT_CHANNELSLAST_H

#include "passes/Rules.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace firn {

/// The permutation from N, C, spatial to N, spatial, C, and back.
llvm::SmallVector<int64_t> toChannelsLast(int64_t rank);
llvm::SmallVector<int64_t> toChannelsFirst(int64_t rank);
/// Where axis `axis` of N, C, spatial is in N, spatial, C.
int64_t movedAxis(int64_t axis, int64_t rank);
/// The type of a transpose of `type`.
mlir::RankedTensorType permutedType(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> perm);
/// The type of the same tensor with its channels last.
mlir::RankedTensorType channelsLast(mlir::RankedTensorType type);

/// A firn.transpose, or a firn.reshape where that is the same.
mlir::Value permuted(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, llvm::ArrayRef<int64_t> perm);
/// A constant with its elements in another order; null if its elements are packed below 8 bits.
mlir::Value permutedConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::ElementsAttr constant,
                             llvm::ArrayRef<int64_t> perm);

/// An operand that broadcasts to the rank of `perm`, for an operation whose tensors are permuted: unit axes in front,
/// then permuted; as it is where it has one element.
mlir::Value permutedOperand(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> perm);

/// How an operation takes part in the choice of layouts.
enum class Part {
  Fixed,    // its tensors keep their axes
  Either,   // it can be written for both layouts; operands and result alike
  Sink,     // it can read both layouts; its result is the same tensor for both
  Converted // it wants channels last: convolutions that code is generated for
};
Part partOf(mlir::Operation *op);

/// Operands of an operation (Either, Sink, Converted) that change their layout with it: those of the rank of its
/// layout. Others are constants, scalars and values that broadcast.
int64_t layoutRank(mlir::Operation *op);
bool followsLayout(mlir::OpOperand &operand);

/// Builds `op` (not Fixed) with channels last in front of it. `operandOf` gives a data operand with its channels last.
/// The result has its channels last too, but for Part::Sink.
mlir::Operation *buildChannelsLast(mlir::OpBuilder &builder, mlir::Operation *op,
                                   llvm::function_ref<mlir::Value(mlir::OpOperand &)> channelsLastOperand);

} // namespace firn
#endif
