// A batched matrix product inside of a fused body, and the code that computes it.
#ifndef FIRN_COMPILER_CODEGEN_CPU_MATMUL_H
#define FIRN_COMPILER_CODEGEN_CPU_MATMUL_H

#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Tile.h"

namespace firn {

/// root[batch..., m, n] = sum over k of a[batch..., m, k] * b[batch..., k, n].
struct MatrixProduct {
  mlir::Operation *op = nullptr;
  llvm::SmallVector<DimExpr> batch;
  DimExpr m, n, k;
  // Strides in elements; 0 along a batch axis: broadcast. Of a packed b only `bBatch` counts.
  View a, b;
  llvm::SmallVector<DimExpr> aBatch, bBatch;
  DimExpr am, ak, bk, bn;
  std::optional<PackedWeight> packed;
  /// Of an 8-bit b: (element - zero point) * scale, both one element or one per column.
  std::optional<View> scale, zeroPoint;
  double scaleNumber = 1, zeroPointNumber = 0; // the same as constants of the body
  bool isDequantized = false;
  /// Not 0: that many steps along k have a scale and zero point of their own per column; `scale` and `zeroPoint` are
  /// views of [blocks, n] then.
  int64_t blockSize = 0;
  /// Of firn.matmul_integer: subtracted from each element of a (one for all of it).
  std::optional<View> leftZeroPoint;
  double leftZeroPointNumber = 0;
  bool isVectorA = false, isVectorB = false; // the root lacks the axis of m, of n

  mlir::Type elementType() const { return a.elementType; }
  bool isInteger() const { return elementType().isIntOrIndex(); }
};

bool isConstantDim(const DimExpr &dim, int64_t value);
inline bool isByte(mlir::Type type) { return type.isInteger(8); }
/// The type of a product's accumulators, and what its tile is chosen for.
mlir::Type accumulatorType(const MatrixProduct &product);
TileShape tileShape(const MatrixProduct &product, mlir::Type type);

/// Reads firn.matmul, firn.gemm or firn.matmul_integer; nothing, with the reason in whyNot, if operands are not views
/// of arguments. Does not look at `packed`.
std::optional<MatrixProduct> readProduct(mlir::Operation *op, std::string &whyNot);

mlir::LogicalResult emitProduct(FusedOp fused, mlir::Operation *op, kernel::FuncOp func,
                                const TargetDescription &target, std::string &whyNot);

/// Panels of a constant b, or nothing where it stays as it is.
std::optional<PackedWeight> planProductPacking(FusedOp fused, mlir::Operation *op, const TargetDescription &target);

/// Emits a product whose axes are known: the batch, m and n axes of `epilogue` are those of `product`.
void emitProductLoops(KernelContext &context, MatrixProduct product, Epilogue epilogue);

} // namespace firn
#endif
