// Windows that slide over an image whose channels lie last: the geometry of convolutions and pools.
#ifndef FIRN_COMPILER_CODEGEN_CPU_WINDOW_H
#define FIRN_COMPILER_CODEGEN_CPU_WINDOW_H

#include "compiler/codegen/cpu/Epilogue.h"
#include <array>

namespace firn {

/// One spatial axis. Tap t of output i reads input i * stride + first + t * step, if that is in [0, in).
struct WindowAxis {
  DimExpr in = DimExpr(1), out = DimExpr(1);
  int64_t stride = 1;
  int64_t taps = 1;
  int64_t first = 0;
  int64_t step = 1;
  int64_t padAfter = 0;  // positions behind the input that count as padding
  bool isInside = false; // no window reaches over an end

  int64_t reach() const { return (taps - 1) * step; } // from the first tap to the last one
  /// Whether a tap of some output may lie outside of the input.
  bool hasBorder() const;
};

/// Depth, height and width; the leading ones are of size 1 where the image has fewer axes.
struct WindowGeometry {
  unsigned spatial = 2; // axes that exist
  DimExpr batch;
  DimExpr channels;
  std::array<WindowAxis, 3> axes;

  const WindowAxis &width() const { return axes[2]; }
  int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  /// The position in the result of a window, for Epilogue: batch, the spatial axes that exist, channel.
  LoopBuilder::Values position(mlir::Value batchIndex, mlir::ArrayRef<mlir::Value> window, mlir::Value channel) const;
};

/// Whether the operation's attribute `layout` says that channels lie last.
bool isChannelsLast(mlir::Operation *op);

/// Reads strides, dilations, pads and auto_pad of `op` for windows of `kernel` from an image `in` to `out` (both with
/// channels last if isChannelsLast, else second). Nothing, with the reason, for what cannot be known while compiling.
std::optional<WindowGeometry> readWindow(mlir::Operation *op, llvm::ArrayRef<DimExpr> in, llvm::ArrayRef<DimExpr> out,
                                         llvm::ArrayRef<int64_t> kernel, std::string &whyNot);

/// The taps of window `index` that lie inside: [begin, end). `axis.step` must be positive.
Range insideTaps(KernelContext &context, const WindowAxis &axis, mlir::Value index);

} // namespace firn
#endif
