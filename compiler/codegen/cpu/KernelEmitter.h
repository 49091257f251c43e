// From a firn.fused operation to a kernel.func: the emitters, and what they share.
#ifndef FIRN_COMPILER_CODEGEN_CPU_KERNELEMITTER_H
#define FIRN_COMPILER_CODEGEN_CPU_KERNELEMITTER_H

#include "compiler/codegen/cpu/Target.h"
#include "dialects/firn/Firn.h"
#include "dialects/kernel/Kernel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <string>
#include <vector>

namespace firn {

/// Symbols of all dimension expressions in the op's types and body, sorted: the order of the kernel's dims.
std::vector<std::string> kernelSymbols(FusedOp fused);

/// A text that is equal for fused ops whose kernels are equal: ignores names, locations and where operands come from.
std::string kernelKey(FusedOp fused);

/// An empty kernel.func `name` for `fused`, appended to `module`: buffers are the fused op's operands, then its
/// results; dims are kernelSymbols(fused).
kernel::FuncOp createKernel(mlir::ModuleOp module, llvm::StringRef name, FusedOp fused);

/// Fills an empty kernel (createKernel) by the emitter of the fused op's kind. Failure: nothing usable is in `func`,
/// and `whyNot` says in one line what the emitter lacks (the caller takes reference kernels instead).
mlir::LogicalResult emitKernel(FusedOp fused, kernel::FuncOp func, const TargetDescription &target,
                               std::string &whyNot);

/// Operands and results (by index) that may share one buffer: the kernel has read each element of the operand before it
/// writes the element of the result that takes its place.
std::vector<std::pair<unsigned, unsigned>> inPlacePairs(FusedOp fused);

// One per kind. Each leaves a terminated body, sets scratch_bytes and parallel.
mlir::LogicalResult emitMap(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitReduce(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitContraction(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitAttention(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitPool(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitScatter(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitScan(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitSearch(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitSample(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitForest(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);
mlir::LogicalResult emitSequence(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot);

/// Index arithmetic at the top of a kernel: constants and dimension expressions, each made once in the entry block.
class DimValues {
public:
  DimValues(FusedOp fused, kernel::FuncOp func);

  /// All values live at the top of the entry block, so they dominate every use.
  mlir::Value get(const DimExpr &expr);
  mlir::Value constant(int64_t value);

private:
  mlir::Value atom(const DimExpr::Atom &atom);
  mlir::OpBuilder builder; // inserts before a constant that ends the index arithmetic
  kernel::FuncOp func;
  std::map<std::string, mlir::Value> symbols;
  std::map<std::string, mlir::Value> cache;
};

/// The half-open range of [0, total) that `func`'s worker computes; borders are multiples of `granule` (>= 1).
struct Range {
  mlir::Value begin, end;
};
Range workerRange(mlir::OpBuilder &builder, mlir::Location loc, kernel::FuncOp func, mlir::Value total,
                  int64_t granule = 1);

/// A conservative claim on whether `elements` elements of `cyclesPerElement` are worth a fork-join. Unknown sizes are.
bool worthWorkers(const DimExpr &elements, int64_t cyclesPerElement);

} // namespace firn
#endif
