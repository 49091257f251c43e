// Export: a module of the firn dialect becomes a model file again.
//
// Names of nodes and values come back from the locations (compiler/SourceLocation.h), inputs, outputs and everything
// else that the file said from the attributes (compiler/import/Import.h). Operators are written in their newest form;
// the opset is that of the source file, raised as far as that form asks.
#ifndef FIRN_COMPILER_EXPORT_EXPORT_H
#define FIRN_COMPILER_EXPORT_EXPORT_H

#include "compiler/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace firn {

/// A file whose floats have 16 bits instead of 32 (onnx/ConvertFloats.h).
struct FloatConversion {
  int32_t dtype = 0;             // FIRN_F16 or FIRN_BF16; 0: none
  bool withInterface = false;    // inputs and outputs too
  std::vector<std::string> kept; // operators and nodes, by name, that stay in f32; "none": no others do
  std::function<void(const std::string &node, const std::string &why)> onKept = nullptr; // is told what stays, and why
};

struct ExportOptions {
  /// Constants of at least this many bytes go to the side file "<path>.data"; 0: only those that protobuf's limit of
  /// 2 GiB forces out (in text files: those above 4 KiB); INT64_MAX: none.
  int64_t sideFileBytes = 0;
  /// The opset of ai.onnx to write; 0: that of the source, raised as far as the operators ask.
  int64_t opset = 0;
  /// Whether the module says what the file said: constants that were nodes of type Constant are such nodes again, and
  /// nodes keep their names even where two are equal. Else constants are initializers and names are made different.
  bool isConversion = true;
  FloatConversion floats;
};

/// Writes `module` to `path`: .onnx, .fpb (binary) or .fpbtxt (text) by its extension, anything else as ONNX. Returns
/// the bytes of the file and of its side file; nothing, and a diagnostic, where it cannot be written. The file appears
/// whole or not at all.
std::optional<int64_t> exportModel(mlir::ModuleOp module, llvm::StringRef path, const ExportOptions &options,
                                   Diagnostics &diagnostics);

} // namespace firn
#endif
