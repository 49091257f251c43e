// Panels: the width of packed weights.
#ifndef FIRN_COMPILER_CODEGEN_CPU_PANELS_H
#define FIRN_COMPILER_CODEGEN_CPU_PANELS_H

#include "compiler/codegen/cpu/Tile.h"
#include "mlir/IR/BuiltinOps.h"

namespace firn {

/// On a module: variants of one model read its weights, so their layout must be the same for all of them.
constexpr llvm::StringLiteral sharedWeightsAttr = "firn.shared_weights";

/// The product that panels are made wide for. Where variants share them it has any number of rows: else each variant's
/// panels would fit its own best tile, and the file would hold the weights once for each.
inline TileShape panelShape(mlir::Operation *op, TileShape shape) {
  if (auto module = op->getParentOfType<mlir::ModuleOp>(); module && module->hasAttr(sharedWeightsAttr))
    shape.m = shape.rowStride = std::nullopt;
  return shape;
}

} // namespace firn
#endif
