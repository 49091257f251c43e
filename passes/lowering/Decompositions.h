// Rules of the Decompose pass by family, and what they build with.
#ifndef FIRN_PASSES_LOWERING_DECOMPOSITIONS_H
#define FIRN_PASSES_LOWERING_DECOMPOSITIONS_H

#include "passes/Rules.h"

namespace firn {

void addSamplingRules(RuleSet &rules); // SamplingRules.cpp: resize
void addLibraryRules(RuleSet &rules);  // LibraryRules.cpp: lrn, hardmax, operators of the library

/// Element types whose intermediate values may be written out: f32, f64 and integers.
bool keepsDigits(mlir::Type elementType);

/// Builds operations on tensors of known shapes, with the types that inference would give them.
class TensorBuilder {
public:
  TensorBuilder(RuleRewriter &to, mlir::Location where) : rewriter(to), loc(where) {}

  RuleRewriter &rewriter;
  mlir::Location loc;

  static llvm::SmallVector<DimExpr> dims(mlir::Value value) { return dimsOf(rankedType(value)); }
  static mlir::Type element(mlir::Value value) { return mlir::getElementTypeOrSelf(value); }

  mlir::Value scalar(double number, mlir::Type elementType);
  mlir::Value cast(mlir::Value value, mlir::Type elementType);
  /// An i64 tensor of rank 1: a constant where all are numbers.
  mlir::Value integers(llvm::ArrayRef<DimExpr> values);
  /// 0, 1, ..., count - 1 as i64.
  mlir::Value counting(const DimExpr &count);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<DimExpr> dims) {
    return makeReshape(rewriter, loc, value, dims);
  }
  mlir::Value slice(mlir::Value value, int64_t axis, const DimExpr &start, const DimExpr &end);
  mlir::Value where(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value reduceMean(mlir::Value value, llvm::ArrayRef<int64_t> axes);
  template <typename Op> mlir::Value unary(mlir::Value x) { return rewriter.create<Op>(loc, x.getType(), x); }
  /// Elementwise on the broadcast shape.
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return rewriter.create<Op>(loc, tensorType(element(a), broadcast(a, b)), a, b);
  }
  template <typename Op> mlir::Value compare(mlir::Value a, mlir::Value b) {
    return rewriter.create<Op>(loc, tensorType(rewriter.getI1Type(), broadcast(a, b)), a, b);
  }
  static llvm::SmallVector<DimExpr> broadcast(mlir::Value a, mlir::Value b);
};

/// The shape of two broadcast operands, as inference states it where symbols meet.
llvm::SmallVector<DimExpr> broadcastShape(llvm::ArrayRef<DimExpr> a, llvm::ArrayRef<DimExpr> b);

} // namespace firn
#endif
