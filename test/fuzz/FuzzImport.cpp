// Feeds bytes to the reader of one model format, FIRN_FUZZ_FORMAT: 0 ONNX, 1 Firn's graph as text, 2 the same as
// binary. It must answer every input with a module or with errors (or with both: broken nodes stand for unknown
// values).
#include "compiler/import/Import.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<firn::FirnDialect, mlir::func::FuncDialect>();
  // A folder without files: external data must be refused, not found.
  std::string path = FIRN_FUZZ_FORMAT == 1 ? "/nonexistent/input.fpbtxt" : "/nonexistent/input.onnx";
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (FIRN_FUZZ_FORMAT == 2 && bytes.compare(0, 2, "\x0a\x07") != 0)
    bytes = "\x0a\x07"
            "firn.v1" +
            bytes; // what tells the format
  firn::Diagnostics diagnostics(path);
  firn::ImportOptions options;
  options.limits.nodes = 20'000; // these keep one input under the time and memory limit
  options.limits.foldedBytes = 1 << 20;
  options.isKnown = [](llvm::StringRef) { return true; };
  mlir::OwningOpRef<mlir::ModuleOp> module = firn::importBytes(bytes, path, options, context, diagnostics);
  if (!module && !diagnostics.hasErrors()) {
    std::fprintf(stderr, "import gave neither a module nor an error\n");
    std::abort();
  }
  for (const firn::Diagnostic &diagnostic : diagnostics.all())
    if (!firn::findDiagnosticCode(diagnostic.id)) {
      std::fprintf(stderr, "a message with the unknown code %s\n", diagnostic.id.c_str());
      std::abort();
    }
  (void)diagnostics.text();
  (void)diagnostics.json();
  return 0;
}
