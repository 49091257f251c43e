// Feeds bytes to the readers of model files: ONNX and Firn graphs, told apart by content. They must answer every input
// with a module or with errors (or with both: broken nodes stand for unknown values).
#include "compiler/import/Import.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<firn::FirnDialect, mlir::func::FuncDialect>();
  firn::Diagnostics diagnostics("input.onnx");
  firn::ImportOptions options;
  options.maxNodes = 20'000; // keeps one input under the time limit
  options.isKnown = [](llvm::StringRef) { return true; };
  // A folder without files: external data must be refused, not found.
  mlir::OwningOpRef<mlir::ModuleOp> module =
      firn::importBytes(llvm::StringRef(reinterpret_cast<const char *>(data), size), "/nonexistent/input.onnx", options,
                        context, diagnostics);
  if (!module && !diagnostics.hasErrors()) {
    std::fprintf(stderr, "import gave neither a module nor an error\n");
    std::abort();
  }
  return 0;
}
