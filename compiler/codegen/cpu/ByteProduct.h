// Products of 8-bit integers with exact 32-bit sums: firn.matmul_integer and firn.conv_integer.
#ifndef FIRN_COMPILER_CODEGEN_CPU_BYTEPRODUCT_H
#define FIRN_COMPILER_CODEGEN_CPU_BYTEPRODUCT_H

#include "compiler/codegen/cpu/Convolution.h"

namespace firn {

/// How a target wants constant bytes packed.
void packBytes(PackedWeight &weight, const TargetDescription &target);

/// Reads a zero point: a number, or a view along the columns (of length `columns`). False if it is neither.
bool readZeroPoint(mlir::Value value, const DimExpr &columns, std::optional<View> &along, double &number);

/// Emits a product of bytes. With `windows` its rows are the output pixels of a convolution, whose axes are
/// product.batch and product.m, and its columns the outputs of one group; else they are those of `product.a`.
void emitByteProduct(KernelContext &context, MatrixProduct product, const ConvolutionShape *windows, Epilogue epilogue);

/// firn.conv_integer with channels last.
mlir::LogicalResult emitIntegerConvolution(FusedOp fused, mlir::Operation *op, kernel::FuncOp func,
                                           const TargetDescription &target, std::string &whyNot);

} // namespace firn
#endif
