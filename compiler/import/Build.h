// Build: a prepared Model becomes a module of the firn dialect (Import.h says what it looks like).
#ifndef FIRN_COMPILER_IMPORT_BUILD_H
#define FIRN_COMPILER_IMPORT_BUILD_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace firn {

/// `isOpaque`: whether the operator "domain::Name" is unknown or gives other results from call to call.
mlir::OwningOpRef<mlir::ModuleOp> buildModule(const model::Model &model, llvm::StringRef path,
                                              const std::function<bool(llvm::StringRef)> &isOpaque,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics);

} // namespace firn
#endif
