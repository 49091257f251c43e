// Quantized: constants stored as small integers or 16-bit floats, and who reads them as they are.
#ifndef FIRN_PASSES_QUANTIZED_H
#define FIRN_PASSES_QUANTIZED_H

#include "passes/Rules.h"

namespace firn {

/// Signed or unsigned integers of 2 to 8 bits (bool is none).
bool isQuantized(mlir::Type elementType);
/// Whether `op` turns a constant of such integers into real numbers, alone or as the first step of a spelt-out
/// (cast(q) - zero point) * scale that only this chain reads.
bool dequantizesConstant(mlir::Operation *op);
/// Whether `op` casts a constant of 16-bit floats to wider ones for products alone, transposed or not, and
/// gathers.
bool widensConstant(mlir::Operation *op);

/// Why a kernel of `product` (firn.matmul, firn.gemm) does not take its right operand, the result of `conversion` (a
/// firn.dequantize_linear or firn.cast of a constant), as it is stored; "" if it does.
llvm::StringRef productRefusal(mlir::Operation *product, mlir::Operation *conversion);
/// Whether `op` is such a conversion and all its readers are products that take what is stored.
bool isReadAsStored(mlir::Operation *op);

} // namespace firn
#endif
