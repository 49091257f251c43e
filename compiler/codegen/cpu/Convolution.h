// Convolutions as implicit matrix products: a row of the product is an output pixel, its left side the pixels under the
// window, which are read where they lie.
#ifndef FIRN_COMPILER_CODEGEN_CPU_CONVOLUTION_H
#define FIRN_COMPILER_CODEGEN_CPU_CONVOLUTION_H

#include "compiler/codegen/cpu/Matmul.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/Window.h"

namespace firn {

/// A convolution of a fused body with channels last.
struct ConvolutionShape {
  mlir::Operation *op = nullptr;
  WindowGeometry window;
  View input;      // dense, N x spatial x C
  unsigned weight; // the operand that holds the packed weight
  int64_t group = 1, groupInputs = 1, groupOutputs = 1;
  int64_t packedDepth = 0; // steps along k of one packed panel
  llvm::SmallVector<int64_t> kernel;

  bool isDepthwise() const { return groupInputs == 1 && groupOutputs == 1 && group > 1; }
  bool hasBorder() const;
  /// Taps along a row are one run of the image where the group's channels are all that there are, or a patch holds
  /// them.
  bool isRun() const { return window.width().step == 1 && (hasBorder() || group == 1); }
  int64_t runLength() const { return groupInputs * (isRun() ? window.width().taps : 1); }
  int64_t runsPerRow() const { return isRun() ? 1 : window.width().taps; }
  /// Whether so few outputs share an input that vectors along the runs do better than vectors of outputs. Their weights
  /// are packed as one panel per output, each run padded to whole vectors.
  bool isNarrow(const TargetDescription &target) const;
  int64_t depth() const { return window.taps() * groupInputs; }
};

std::optional<ConvolutionShape> readConvolution(mlir::Operation *op, std::string &whyNot);

mlir::LogicalResult emitConvolution(FusedOp fused, mlir::Operation *op, kernel::FuncOp func,
                                    const TargetDescription &target, std::string &whyNot);

std::optional<PackedWeight> planConvolutionPacking(FusedOp fused, mlir::Operation *op, const TargetDescription &target);

// The same for firn.conv_transpose: outputs that are a stride apart see the same taps, so each such phase is a
// convolution of stride 1.
mlir::LogicalResult emitTransposedConvolution(FusedOp fused, mlir::Operation *op, kernel::FuncOp func,
                                              const TargetDescription &target, std::string &whyNot);
std::optional<PackedWeight> planTransposedPacking(FusedOp fused, mlir::Operation *op, const TargetDescription &target);

/// The tile of a convolution's panels.
TileShape convolutionTile(const ConvolutionShape &shape);
/// Adds the bias of `op` to the epilogue; false, with the reason, if it is no view.
bool addBias(mlir::Operation *op, Epilogue &epilogue, std::string &whyNot);

/// Rows of the packed weight of a narrow convolution, from those that are not padded.
std::vector<int64_t> narrowRows(const ConvolutionShape &shape, const TargetDescription &target,
                                llvm::ArrayRef<int64_t> rows);

/// The loops over the windows of `shape`, whose packed weights begin `weightStart` elements into their buffer and whose
/// groups are `groupSize` elements apart. Adds the scratch it needs to the kernel's.
void emitWindowProduct(KernelContext &context, const ConvolutionShape &shape, Epilogue &epilogue, int64_t nr,
                       int64_t weightStart, int64_t groupSize);

/// Whether every output pixel meets one input pixel inside of the image: a plain matrix product.
bool isPixelwise(const ConvolutionShape &shape);
/// That product, of pixels and weights; of others the batch, rows and columns are right.
MatrixProduct pixelProduct(const ConvolutionShape &shape);

/// What is subtracted from bytes before they are multiplied.
struct ByteZeros {
  std::optional<View> input, weight; // one number, one per channel; else the numbers
  double inputNumber = 0, weightNumber = 0;
};

/// Channels that do not mix: vectors along them. Bytes (with `zeros`) are summed as floats, which is exact where
/// isExactDepthwise.
void emitDepthwise(KernelContext &context, const ConvolutionShape &shape, Epilogue &epilogue,
                   const ByteZeros *zeros = nullptr);
bool isExactDepthwise(const ConvolutionShape &shape);

} // namespace firn
#endif
