// Dialect: a program as IR of the plan dialect, and back.
#ifndef FIRN_COMPILER_PLAN_DIALECT_H
#define FIRN_COMPILER_PLAN_DIALECT_H

#include "compiler/plan/Program.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/OwningOpRef.h"

namespace firn {

/// A module with one plan.program. Weights without their elements unless `withWeights`.
mlir::OwningOpRef<mlir::ModuleOp> planModule(const Program &program, llvm::StringRef name, mlir::MLIRContext &context,
                                             bool withWeights = false);

/// The program of verified IR. `operations`: per reference step, in order, the operation whose operator and attributes
/// it has; they may be fewer, then such steps have none.
Program programOf(plan::ProgramOp op, llvm::ArrayRef<mlir::Operation *> operations = {});

} // namespace firn
#endif
