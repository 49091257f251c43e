// Kernels around one operation that no other joins: scatters, scans, searches.
#ifndef FIRN_COMPILER_CODEGEN_CPU_LONEOPERATION_H
#define FIRN_COMPILER_CODEGEN_CPU_LONEOPERATION_H

#include "compiler/codegen/cpu/Epilogue.h"

namespace firn {

/// The one operation of a fused body beside constants, and where its operands and results are in memory.
class LoneOperation {
public:
  /// Nothing, with the reason in whyNot, if the body has more than one or an element type has no registers.
  static std::optional<LoneOperation> of(FusedOp fused, std::string &whyNot);

  mlir::Operation *op = nullptr;
  /// "topk", for operators of the library "ai.onnx::CumProd".
  std::string name;

  bool hasOperand(unsigned i) const { return bool(operandOf(op, i)); }
  llvm::SmallVector<DimExpr> dims(unsigned operand) const;
  mlir::Type elementType(unsigned operand) const;
  /// The buffer of an operand; null where it is written into the kernel.
  mlir::Value buffer(KernelContext &context, unsigned operand) const;
  /// The buffer of a result; null where nobody reads it.
  mlir::Value result(KernelContext &context, unsigned number) const;

  int64_t integer(llvm::StringRef attribute, int64_t otherwise) const;
  std::string text(llvm::StringRef attribute, llvm::StringRef otherwise) const;
  /// `axis` counted from the first of `rank`; nothing if there is none such.
  static std::optional<size_t> axisOf(int64_t axis, size_t rank);
};

DimExpr product(llvm::ArrayRef<DimExpr> dims);

/// Scalar code that emitters of lone operations share.
struct ScalarCode {
  KernelContext &context;

  /// An element as an index; for integer elements.
  mlir::Value loadIndex(mlir::Value buffer, mlir::Value offset, mlir::Type elementType);
  /// `index`, counted from the end where it is negative. Out of range it is a fault; `isInside` says whether it is
  /// not.
  mlir::Value normalized(mlir::Value index, mlir::Value size, mlir::Value &isInside);
  /// Whether 0 <= x < size.
  mlir::Value isBelow(mlir::Value x, mlir::Value size);
  void fault(mlir::Value condition);
  void copy(mlir::Value from, mlir::Value fromOffset, mlir::Value to, mlir::Value toOffset, mlir::Value count,
            mlir::Type elementType);
};

} // namespace firn
#endif
