// Collect: a module of the firn dialect becomes a Model (compiler/import/Model.h), which the writers encode.
#ifndef FIRN_COMPILER_EXPORT_COLLECT_H
#define FIRN_COMPILER_EXPORT_COLLECT_H

#include "compiler/export/Export.h"
#include "compiler/import/Model.h"
#include "mlir/IR/BuiltinOps.h"

namespace firn {

/// The model of `module`, whose constants the result points to. Nothing where an operation has no form outside.
std::optional<model::Model> collectModel(mlir::ModuleOp module, const ExportOptions &options, Diagnostics &diagnostics);

} // namespace firn
#endif
