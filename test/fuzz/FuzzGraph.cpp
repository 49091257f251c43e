// Mutates ONNX graphs as graphs (MutateModel.h) and sends them through inference, optimisation and grouping, at first
// as firn-opt does and, every other time, as firnc does before it generates code. Wrong graphs give messages, never
// crashes.
#include "compiler/Diagnostics.h"
#include "compiler/driver/Stages.h"
#include "compiler/import/Import.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "runtime/kernels/Table.h"
#include "test/fuzz/MutateModel.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

static size_t store(const std::string &bytes, uint8_t *data, size_t size, size_t maxSize) {
  if (bytes.size() > maxSize)
    return size; // as it was
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return store(firn::test::mutateModel({reinterpret_cast<char *>(data), size}, seed), data, size, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t aSize, const uint8_t *b, size_t bSize,
                                            uint8_t *out, size_t maxSize, unsigned seed) {
  std::string bytes = firn::test::spliceModels({reinterpret_cast<const char *>(a), aSize},
                                               {reinterpret_cast<const char *>(b), bSize}, seed);
  return store(bytes, out, 0, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<firn::FirnDialect, mlir::func::FuncDialect>();
  context.printOpOnDiagnostic(false);
  firn::Diagnostics diagnostics("input.onnx");
  firn::CompileModelOptions compile;
  compile.limits.nodes = 2'000; // these keep one input under the time and memory limit
  compile.limits.tensorBytes = 1 << 20;
  compile.limits.foldedBytes = 1 << 16;
  firn::ImportOptions options;
  options.limits = compile.limits;
  options.isKnown = [](llvm::StringRef name) {
    return firn::kernels::find(std::string_view(name.data(), name.size())) != nullptr;
  };
  mlir::OwningOpRef<mlir::ModuleOp> module =
      firn::importBytes(llvm::StringRef(reinterpret_cast<const char *>(data), size), "/nonexistent/input.onnx", options,
                        context, diagnostics);
  if (!module)
    return 0;
  if (!firn::findProblems(*module, diagnostics))
    return 0;
  firn::MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
  bool staysGraph = size % 2;
  mlir::LogicalResult done = mlir::failure();
  if (staysGraph) {
    (*module)->setAttr(firn::staysGraphAttribute, mlir::UnitAttr::get(&context));
    mlir::PassManager manager(&context);
    manager.enableVerifier(false);
    firn::PipelineOptions pipeline;
    pipeline.maxFolded = compile.limits.foldedBytes;
    firn::buildOptimisePipeline(manager, pipeline);
    done = manager.run(*module);
  } else {
    done = firn::optimise(*module, compile);
  }
  if (mlir::failed(done)) {
    if (!diagnostics.hasErrors()) {
      std::fprintf(stderr, "optimisation failed without a message\n");
      std::abort();
    }
    return 0;
  }
  if (mlir::failed(mlir::verify(*module))) {
    std::fprintf(stderr, "the optimised module is not valid:\n%s", diagnostics.text().c_str());
    std::abort();
  }
  if (!staysGraph && firn::requireRunnableTypes(*module, diagnostics))
    if (auto target = firn::describeTarget("x86-64-v3"))
      (void)firn::groupKernels(*module, *target, compile);
  return 0;
}
