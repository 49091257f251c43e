// The plan dialect: the executor's view of a model.
#ifndef FIRN_DIALECTS_PLAN_PLAN_H
#define FIRN_DIALECTS_PLAN_PLAN_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/plan/PlanOpsDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace firn::plan {

/// The words of the tables, by the numbers of runtime/abi: FIRN_VALUE_, FIRN_BUFFER_, dtypes. "" for an unknown number,
/// -1 for an unknown word.
llvm::StringRef valueKind(int32_t number);
int32_t valueKind(llvm::StringRef word);
llvm::StringRef bufferKind(int32_t number);
int32_t bufferKind(llvm::StringRef word);
llvm::StringRef formWord(int32_t form);
int32_t formOfWord(llvm::StringRef word);
llvm::StringRef dtypeWord(int32_t dtype);
int32_t dtypeOfWord(llvm::StringRef word);

/// Whether an operation is a step, and what all steps have.
bool isStep(mlir::Operation *op);
llvm::ArrayRef<int32_t> numbers(mlir::Operation *op, llvm::StringRef attribute);

/// ProgramVerifier.cpp: every broken rule of a program, each at its entry.
mlir::LogicalResult verifyProgram(ProgramOp program);

} // namespace firn::plan
#endif
