// The microkernel of 8-bit integer products: sums in 32 bits, by the target's byte dot product where it has one.
#ifndef FIRN_COMPILER_CODEGEN_CPU_BYTETILE_H
#define FIRN_COMPILER_CODEGEN_CPU_BYTETILE_H

#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Tile.h"

namespace firn {

struct ByteTile {
  mlir::Value left;
  LoopBuilder::Values rows; // where each row's elements begin, adjacent along k
  mlir::Type leftType;
  mlir::Value right;
  mlir::Value panel; // where the panel begins
  PackedWeight packed;
  mlir::Value leftZero; // in registers of leftType; null: leftZeroNumber
  int64_t leftZeroNumber = 0;
  LoopBuilder::Values rightZeros = {}; // vectors of i32, one per vector of the tile; empty: 0
};

/// Sums over k of (left - its zero point) * (right - its zero point), row by row, as vectors of i32.
LoopBuilder::Values multiplyBytes(KernelContext &context, Tile tile, const ByteTile &bytes);

} // namespace firn
#endif
