// Quantized: constants stored as small integers, and who reads them as they are.
#ifndef FIRN_PASSES_QUANTIZED_H
#define FIRN_PASSES_QUANTIZED_H

#include "passes/Rules.h"

namespace firn {

/// Signed or unsigned integers of 2 to 8 bits (bool is none).
bool isQuantized(mlir::Type elementType);
/// Whether `op` turns a constant of such integers into real numbers, alone or as the first step of a spelt-out
/// (cast(q) - zero point) * scale that only this chain reads.
bool dequantizesConstant(mlir::Operation *op);

/// Why a kernel of `product` (firn.matmul, firn.gemm) does not take its right operand, a firn.dequantize_linear of a
/// constant, as the integers that it is made of; "" if it does.
llvm::StringRef productRefusal(mlir::Operation *product, DequantizeLinearOp dequantize);
/// Whether all readers are products that take the integers.
bool isReadQuantized(DequantizeLinearOp dequantize);

} // namespace firn
#endif
