#include "compiler/import/Import.h"
#include "compiler/import/Blob.h"
#include "compiler/import/Build.h"
#include "compiler/import/Prepare.h"
#include "compiler/import/firn/Reader.h"
#include "compiler/import/onnx/Reader.h"
#include "compiler/import/onnx/Upgrade.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

namespace firn {

enum class Format { Onnx, Firn, FirnText };

static Format formatOf(llvm::StringRef bytes, llvm::StringRef path) {
  if (path.ends_with(".fpbtxt") || isFirnText(bytes))
    return Format::FirnText;
  return isFirnBinary(bytes) ? Format::Firn : Format::Onnx;
}

static mlir::OwningOpRef<mlir::ModuleOp> importAs(Format format, llvm::StringRef bytes, llvm::StringRef path,
                                                  const ImportOptions &options, mlir::MLIRContext &context,
                                                  Diagnostics &diagnostics) {
  context.loadDialect<FirnDialect, mlir::func::FuncDialect>();
  if (int64_t(bytes.size()) > options.limits.modelBytes) {
    diagnostics.error("import.limit",
                      "the file has " + std::to_string(bytes.size()) + " bytes, the limit is " +
                          std::to_string(options.limits.modelBytes),
                      raiseLimit("--max-model-bytes"));
    return {};
  }
  std::optional<model::Model> model =
      format == Format::Onnx ? readOnnx(bytes, path, options.limits, diagnostics)
                             : readFirn(bytes, path, format == Format::FirnText, options.limits, diagnostics);
  if (!model)
    return {};
  if (!inlineFunctions(*model, options.limits, diagnostics))
    return {};
  if (options.edit && !options.edit(*model, diagnostics))
    return {};
  std::function<bool(llvm::StringRef)> isSupported;
  if (options.refuseUnknown)
    isSupported = [&](llvm::StringRef qualified) {
      llvm::StringRef name = qualified;
      return (name.consume_front("ai.onnx::") && !operationFor(name).empty()) ||
             (options.isKnown && options.isKnown(qualified));
    };
  check(*model, isSupported, diagnostics);
  if (!orderNodes(model->graph, diagnostics))
    return {};
  upgradeGraph(model->graph, diagnostics);
  auto isOpaque = [&](llvm::StringRef qualified) {
    return options.isKnown && (!options.isKnown(qualified) || (options.isPure && !options.isPure(qualified)));
  };
  return buildModule(*model, path, isOpaque, context, diagnostics);
}

mlir::OwningOpRef<mlir::ModuleOp> importBytes(llvm::StringRef bytes, llvm::StringRef path, const ImportOptions &options,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics) {
  return importAs(formatOf(bytes, path), bytes, path, options, context, diagnostics);
}

static mlir::OwningOpRef<mlir::ModuleOp> importFile(std::optional<Format> format, llvm::StringRef path,
                                                    const ImportOptions &options, mlir::MLIRContext &context,
                                                    Diagnostics &diagnostics) {
  std::string why;
  std::optional<MappedFile> file = mapFile(path.str(), why);
  if (!file) {
    diagnostics.error("import.unreadable", "the file cannot be read: " + why);
    return {};
  }
  llvm::StringRef bytes(file->bytes.data(), file->bytes.size());
  return importAs(format ? *format : formatOf(bytes, path), bytes, path, options, context, diagnostics);
}

mlir::OwningOpRef<mlir::ModuleOp> importModel(llvm::StringRef path, const ImportOptions &options,
                                              mlir::MLIRContext &context, Diagnostics &diagnostics) {
  return importFile(std::nullopt, path, options, context, diagnostics);
}
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                             mlir::MLIRContext &context, Diagnostics &diagnostics) {
  return importFile(Format::Onnx, path, options, context, diagnostics);
}
mlir::OwningOpRef<mlir::ModuleOp> importFirn(llvm::StringRef path, const ImportOptions &options,
                                             mlir::MLIRContext &context, Diagnostics &diagnostics) {
  return importFile(path.ends_with(".fpbtxt") ? Format::FirnText : Format::Firn, path, options, context, diagnostics);
}

} // namespace firn
