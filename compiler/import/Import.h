// Import: a model file becomes a module of the firn dialect.
//
// The module has the attributes firn.name, firn.opset and what else the file says of itself, and one func.func @main:
//  - arguments are the graph's inputs with `firn.name` and, where the file gives a default, `firn.default`; dimensions
//    that the file leaves open become symbols: its dim_params (firn.symbols has the original text where it cannot be a
//    symbol), or "input.axis";
//  - results are the outputs with `firn.name` and `firn.declared`, the type that the file says;
//  - every node is one operation with the newest opset's meaning, firn.call where the dialect has none; older forms are
//    upgraded (onnx/Upgrade.h). Operand i is input i, firn.absent stands for an input left out. Results have the type
//    tensor<*x!firn.unknown>, which inference fills in. Locations: compiler/SourceLocation.h.
#ifndef FIRN_COMPILER_IMPORT_IMPORT_H
#define FIRN_COMPILER_IMPORT_IMPORT_H

#include "compiler/Diagnostics.h"
#include "compiler/Limits.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace firn {

namespace model {
struct Model;
}

struct ImportOptions {
  /// Whether the operator library has an entry "domain::Name". Asked only for operators that are no operation of the
  /// dialect.
  std::function<bool(llvm::StringRef qualifiedName)> isKnown;
  /// Of a known operator: whether equal calls compute the same; null: always.
  std::function<bool(llvm::StringRef qualifiedName)> isPure;
  /// Report operators that are neither operations nor known, instead of carrying them as unresolved calls.
  bool refuseUnknown = false;
  /// What is changed of the model once its functions are inlined, before it is checked; null: nothing. False where that
  /// was reported to be impossible.
  std::function<bool(model::Model &, Diagnostics &)> edit;
  Limits limits;
};

/// Reads an ONNX or Firn graph file, which it tells apart by content (text by its extension .fpbtxt too).
/// Where `diagnostics` got errors there may be a module still, in which broken nodes are firn.fail: shape inference on
/// it finds the problems that only types tell, so that the user sees all of them in one go. Ask diagnostics.hasErrors()
/// then.
mlir::OwningOpRef<mlir::ModuleOp> importModel(llvm::StringRef path, const ImportOptions &options,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics);
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                             mlir::MLIRContext &context, Diagnostics &diagnostics);
mlir::OwningOpRef<mlir::ModuleOp> importFirn(llvm::StringRef path, const ImportOptions &options,
                                             mlir::MLIRContext &context, Diagnostics &diagnostics);

/// The same from memory, for tests and fuzzers; external data lies beside `path`.
mlir::OwningOpRef<mlir::ModuleOp> importBytes(llvm::StringRef bytes, llvm::StringRef path, const ImportOptions &options,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics);

} // namespace firn
#endif
