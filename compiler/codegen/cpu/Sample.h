// What samplers share: positions and weights in f64 registers, elements gathered lane by lane, one axis of a Resize.
#ifndef FIRN_COMPILER_CODEGEN_CPU_SAMPLE_H
#define FIRN_COMPILER_CODEGEN_CPU_SAMPLE_H

#include "compiler/codegen/cpu/LoneOperation.h"

namespace firn {

/// f64 arithmetic in registers of `lanes` (0: scalars).
struct SampleMath {
  KernelContext &context;
  LoopBuilder &l;
  unsigned lanes;

  mlir::Type type() { return Elements::registerType(l.b.getF64Type(), lanes); }
  mlir::Value toFloat(mlir::Value index);
  /// first, first + 1, ... in the lanes.
  mlir::Value counting(mlir::Value first);
  mlir::Value number(double value);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value add(mlir::Value x, mlir::Value y) { return context.elements.add(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return context.elements.sub(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return context.elements.mul(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value floor(mlir::Value x);
  mlir::Value ceil(mlir::Value x);
  mlir::Value roundEven(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value atMost(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value clamp(mlir::Value x, mlir::Value low, mlir::Value high);
  /// low <= x <= high
  mlir::Value isIn(mlir::Value x, mlir::Value low, mlir::Value high);
  /// i64, truncated; `x` must be in its range.
  mlir::Value toInteger(mlir::Value x);
  /// One of the lanes of toInteger's result, as an index.
  mlir::Value lane(mlir::Value integers, unsigned i);
  /// The cubic kernel with coefficient `a`, which is 0 from a distance of 2 on.
  mlir::Value cubic(mlir::Value distance, double a);
  /// Elements base + offsets[i], one a lane.
  mlir::Value gathered(mlir::Value buffer, mlir::Value base, llvm::ArrayRef<mlir::Value> offsets,
                       mlir::Type elementType);
  /// sum + weight * value, where a weight of 0 wins over NaN and infinities.
  mlir::Value weighted(mlir::Value sum, mlir::Value weight, mlir::Value value);
};

/// A firn.resize that changes one axis.
struct AxisResize {
  size_t axis = 0;
  DimExpr outer, in, out, inner;
  std::optional<double> scale; // as given; else out / in
  double start = 0, end = 1;   // the region of interest in units of the axis
  std::string mode, transformation, nearestMode;
  bool isAntialiased = false, excludesOutside = false;
  double cubicCoefficient = -0.75, extrapolation = 0;

  /// Nothing, with the reason in whyNot, if its operands are not known or it changes several axes.
  static std::optional<AxisResize> of(ResizeOp op, std::string &whyNot);
};

void emitAxisResize(KernelContext &context, const LoneOperation &lone, const AxisResize &resize);

} // namespace firn
#endif
