// LinearLayer: convolutions, gemm and matmul seen alike, as a constant weight with one output channel per scale and
// bias.
#ifndef FIRN_PASSES_FUSION_LINEARLAYER_H
#define FIRN_PASSES_FUSION_LINEARLAYER_H

#include "passes/Rules.h"

namespace firn {

/// A contraction whose weight (and bias, where it has one) is a floating-point constant.
class LinearLayer {
public:
  /// The layer that computes `value`; nothing, with the reason in `why`, if it is none or its weight is not constant.
  static std::optional<LinearLayer> of(mlir::Value value, llvm::StringRef &why);

  mlir::Operation *operation() const { return op; }
  /// Output channels, and the axis of the result that they run along.
  int64_t channels() const { return count; }
  int64_t channelAxis() const { return axis; }
  bool takesBias() const { return !llvm::isa<MatMulOp>(op); }
  /// The bias, one per channel (zeros where there is none); nothing if it is no constant of that kind.
  std::optional<std::vector<double>> bias() const;
  bool hasBias() const { return bool(operandOf(op, 2)); }

  /// Why another weight would cost too much space, or "".
  llvm::StringRef growthRefusal() const;
  /// A constant that multiplies output channel c by factors[c], in double, rounded once. Null if a product is not
  /// finite.
  mlir::Value scaledWeight(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<double> factors) const;
  /// The same for input channels of a convolution.
  mlir::Value weightScaledByInput(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<double> factors) const;
  /// What a constant per input channel adds to each output channel of a convolution without padding.
  std::vector<double> sumsOver(llvm::ArrayRef<double> inputs) const;
  /// The layer with another weight and bias (null: as they are) in front of `before`, with locations fused.
  mlir::Value rebuilt(RuleRewriter &rewriter, mlir::Operation *before, mlir::Value weight, mlir::Value bias) const;
  /// A bias constant of these values; null if one is not finite.
  mlir::Value makeBias(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<double> values) const;

private:
  /// The output channel, or input channel, that element i of the weight belongs to.
  int64_t outputChannel(int64_t element) const;
  int64_t inputChannel(int64_t element) const;

  mlir::Operation *op = nullptr;
  mlir::RankedTensorType weightType;
  int64_t count = 0, axis = 1, groups = 1;
};

/// The constant `value` as one number per channel of a result of shape `dims` that it broadcasts to along `axis` alone;
/// nothing if it varies along another axis, enlarges the result or is no constant.
std::optional<std::vector<double>> perChannel(mlir::Value value, llvm::ArrayRef<DimExpr> dims, int64_t axis,
                                              int64_t channels);

} // namespace firn
#endif
