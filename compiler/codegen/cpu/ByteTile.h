// The microkernel of 8-bit integer products: exact sums in 32 bits, by the target's dot product where it has one.
#ifndef FIRN_COMPILER_CODEGEN_CPU_BYTETILE_H
#define FIRN_COMPILER_CODEGEN_CPU_BYTETILE_H

#include "compiler/codegen/cpu/Tile.h"

namespace firn {

/// How many neighbours along k one instruction multiplies, and what it takes on the left.
enum class ByteKernel {
  Quads,   // vpdpbusd: unsigned bytes times signed ones, four at a time
  Pairs,   // pmaddwd: 16-bit numbers, two at a time
  Singles, // 16-bit numbers, one at a time
};
ByteKernel byteKernel(const TargetDescription &target);
/// Panels of the right side are [k / step][columns][step] bytes.
int64_t byteStep(const TargetDescription &target);

/// The right side's zero points and signs, as panels hold them.
struct ByteColumns {
  bool isUnsigned = false;
  /// Bytes are stored minus 128, so that unsigned ones are signed (Quads).
  bool isShifted = false;
  LoopBuilder::Values zeros = {}; // vectors of i32, one per vector of the tile; empty: 0
};

/// Both sides of a tile. Rows of the left are adjacent along k: bytes as they are (Quads only), or staged.
struct ByteTile {
  mlir::Value left;
  LoopBuilder::Values rows; // where each row begins, in elements
  bool isStaged = false;    // by stagedLeft(), up to a multiple of the step
  bool isSigned = false;    // of a left side that is not staged
  mlir::Value leftZero;     // i32; a staged 16-bit side has it subtracted already
  mlir::Value right;
  mlir::Value panel;      // where the panel begins
  mlir::Value columnSums; // Quads: where the 32-bit sums of its columns begin
  int64_t panelColumns = 1;
  mlir::Value depth; // along k
  ByteColumns columns;
};

/// Sums over k of (left - its zero point) * (right - its zero point), row by row, as vectors of i32.
LoopBuilder::Values multiplyBytes(KernelContext &context, Tile tile, const ByteTile &bytes);

/// `sum` + the sums of four bytes in each lane of `columns` (Quads).
mlir::Value dotWithOnes(KernelContext &context, mlir::Value sum, mlir::Value columns);

/// The type of a staged left side, and bytes of the left, in registers, as it holds them. Elements behind the last one
/// along k are 0.
mlir::Type stagedType(KernelContext &context);
mlir::Value stagedLeft(KernelContext &context, mlir::Value loaded, bool isSigned, mlir::Value leftZero);

} // namespace firn
#endif
