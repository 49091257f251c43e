// The microkernel of contractions: a tile of accumulators in registers, and which tile suits a shape.
#ifndef FIRN_COMPILER_CODEGEN_CPU_TILE_H
#define FIRN_COMPILER_CODEGEN_CPU_TILE_H

#include "compiler/codegen/cpu/Epilogue.h"

namespace firn {

/// rows x (vectors * lanes) accumulators.
struct Tile {
  int64_t rows = 1;
  int64_t vectors = 1;
  int64_t lanes = 1;

  int64_t columns() const { return vectors * lanes; }
};

/// Lanes of the vectors that panels of `columns` columns are made of.
int64_t panelLanes(const TargetDescription &target, int64_t columns, unsigned bytes);

/// Whether products of elements of this type are sums in floating point, and the type of those sums.
bool isFloatElement(mlir::Type elementType);
mlir::Type sumType(mlir::Type elementType);

/// What a tile is chosen for. Sizes that are not known while compiling are absent.
struct TileShape {
  std::optional<int64_t> m, n;
  unsigned bytes = 4;                    // of an element in registers
  std::optional<int64_t> rowStride = {}; // bytes between rows of the left side
};

/// The fastest tile for a product; the same where panels have `columns` columns already.
Tile chooseTile(const TargetDescription &target, const TileShape &shape);
Tile chooseRows(const TargetDescription &target, const TileShape &shape, int64_t columns);

/// Element (r, k) of a tile's left side is at rows[r] + k * step.
struct LeftSide {
  mlir::Value buffer;
  LoopBuilder::Values rows;
  mlir::Value step;
  mlir::Type elementType;
};
/// Vector j of row k of its right side is at start + k * step + j * lanes. `counts[j]`: how many lanes of it exist
/// (null: all). `laneStep`: lanes are that far apart (null: adjacent). `zeroPoints`: per vector, subtracted from each
/// element.
struct RightSide {
  mlir::Value buffer;
  mlir::Value start;
  mlir::Value step;
  mlir::Type elementType;
  LoopBuilder::Values counts = {};
  mlir::Value laneStep = {};
  LoopBuilder::Values zeroPoints = {};
};

/// Accumulators (row-major) plus the sum over k in [0, count) of left * right, in registers of `type`'s elements.
LoopBuilder::Values multiplyTile(KernelContext &context, Tile tile, mlir::Type type, const LeftSide &left,
                                 const RightSide &right, mlir::Value count, LoopBuilder::Values accumulators);

/// As many vectors as lanes: lane i of the result is the sum of all lanes of vector i.
mlir::Value sumEach(LoopBuilder &l, llvm::SmallVector<mlir::Value> vectors);

/// Rows of vectors to columns: lane i of vector j becomes lane j of vector i. As many vectors as lanes, a power of two.
void transposeSquare(LoopBuilder &l, llvm::SmallVectorImpl<mlir::Value> &rows);

/// Whether that many multiply-adds are worth more workers than one (performance.md, section 5).
bool worthProducts(int64_t products);
/// The units of [0, total) that a worker computes, `work` multiply-adds in all; worker 0 alone where they are few.
Range productRange(KernelContext &context, mlir::Value total, const DimExpr &work);

/// Zeros for all accumulators.
LoopBuilder::Values zeroTile(KernelContext &context, Tile tile, mlir::Type type);

/// The epilogue of a finished tile. `positionOf(row)`: the root's position of lane 0 of vector 0 in that row (a value,
/// so that a heavy epilogue can loop over rows); vectors go on along `axis`. `rowAxes`: axes that differ between rows.
/// `scratch`: room for the tile, used by heavy epilogues.
void finishTile(KernelContext &context, Epilogue &epilogue, Tile tile, LoopBuilder::Values accumulators,
                llvm::function_ref<LoopBuilder::Values(mlir::Value)> positionOf, unsigned axis,
                llvm::ArrayRef<unsigned> rowAxes, const LoopBuilder::Values &counts, mlir::Value scratch);

/// Bytes that finishTile may need.
int64_t tileScratchBytes(const Epilogue &epilogue, Tile tile, unsigned bytes);

} // namespace firn
#endif
