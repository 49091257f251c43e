// Build: a prepared Model becomes a module of the firn dialect (Import.h says what it looks like).
#ifndef FIRN_COMPILER_IMPORT_BUILD_H
#define FIRN_COMPILER_IMPORT_BUILD_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace firn {

mlir::OwningOpRef<mlir::ModuleOp> buildModule(const model::Model &model, llvm::StringRef path,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics);

} // namespace firn
#endif
