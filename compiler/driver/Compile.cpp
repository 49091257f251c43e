// Compile: one model through all stages (docs/architecture.md).
#include "compiler/artifact/Artifact.h"
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Pipeline.h"
#include "compiler/driver/Options.h"
#include "compiler/driver/Stages.h"
#include "compiler/import/Import.h"
#include "compiler/plan/Dialect.h"
#include "passes/PassReport.h"
#include "passes/Passes.h"
#include "passes/fold/ReferenceCall.h"
#include "runtime/kernels/Table.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace firn {

namespace {

/// "compiling 42/130 kernels" on a terminal.
class Progress {
public:
  explicit Progress(bool wanted) : isWanted(wanted) {}
  void stage(StringRef text) {
    if (isWanted)
      llvm::errs() << "\r\033[K" << text << (text.empty() ? "" : " ...");
  }
  ~Progress() { stage(""); }

private:
  bool isWanted;
};

std::string hex(ArrayRef<uint8_t> bytes) {
  std::string text;
  for (uint8_t b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

class Compilation {
public:
  explicit Compilation(const CompileModelOptions &from)
      : options(from), diagnostics(from.input, from.maxErrors), progress(from.wantProgress) {}

  int run() {
    auto described = describeTarget(options.target);
    if (!described) {
      llvm::errs() << "firnc: unknown target '" << options.target << "'; known: " << llvm::join(targetNames(), ", ")
                   << "\n";
      return exitBadCommandLine;
    }
    target = *described;
    if (!llvm::sys::fs::exists(options.input)) {
      llvm::errs() << options.input << ": no such file\n";
      return exitFile;
    }
    loadKernelDialects(context);
    context.loadDialect<FirnDialect, kernel::KernelDialect, func::FuncDialect>();
    context.printOpOnDiagnostic(false);
    int status = stages();
    progress.stage("");
    return status;
  }

private:
  int stages() {
    progress.stage("reading");
    ImportOptions import;
    import.isKnown = [](StringRef name) {
      return kernels::find(std::string_view(name.data(), name.size())) != nullptr;
    };
    import.refuseUnknown = true;
    OwningOpRef<ModuleOp> module = importModel(options.input, import, context, diagnostics);
    if (!module)
      return reject();
    if (diagnostics.hasErrors()) {
      // Broken nodes stand for unknown values: what else is wrong shows in the same run.
      MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
      PassManager manager(&context);
      manager.enableVerifier(false);
      manager.addPass(createSimplifyControl());
      manager.addPass(createInferShapes());
      (void)manager.run(*module);
      return reject();
    }
    if (!fixDimensions(*module, options, diagnostics))
      return reject();
    passRemarks() = &remarks;
    {
      progress.stage("optimising");
      MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
      if (failed(optimise(*module, options)))
        return reject();
    }
    if (!requireKnownRanks(*module, diagnostics))
      return reject();
    if (options.emit == "firn")
      return print(*module);
    progress.stage("grouping");
    if (failed(groupKernels(*module, target, options)))
      return internalFailure("grouping failed");
    if (options.emit == "fused")
      return print(*module);
    return generate(*module);
  }

  int generate(ModuleOp module) {
    progress.stage("generating code");
    GeneratedKernels generated = generateKernels(module, target, options);
    if (!generated.error.empty())
      return internalFailure(generated.error);
    if (options.emit == "kernel" || options.emit == "llvm" || options.emit == "asm")
      return text(generated.text);
    progress.stage("planning");
    Program program = planProgram(
        module, generated.bindings, [](FusedOp op) { return kernelSymbols(op); },
        [](FusedOp op) { return inPlacePairs(op); }, [](Operation *op) { return flopsOf(op); });
    placeArena(program);
    if (options.checkOnly) {
      progress.stage("");
      llvm::outs() << checkText(program, generated, diagnostics, options.wantJsonDiagnostics);
      return exitDone;
    }
    if (options.emit == "plan")
      return printPlan(module, program);
    ArtifactContents contents;
    describe(module, contents);
    if (options.wantProof) {
      std::string whyNot;
      if (!makeProof(options, context, contents, whyNot))
        diagnostics.warning("proof.none", "there is no proof: " + whyNot);
    }
    progress.stage("linking");
    auto write = options.emit == "obj" ? writeStaticObject : writeArtifact;
    if (int status = written(write(options.output, program, contents, generated.objects, target)))
      return status;
    progress.stage("");
    if (!diagnostics.all().empty())
      llvm::errs() << (options.wantJsonDiagnostics ? diagnostics.json() : diagnostics.text());
    if (options.wantReport)
      return report(module, program, generated, remarks, options);
    return exitDone;
  }

  void describe(ModuleOp module, ArtifactContents &contents) {
    if (auto name = module->getAttrOfType<StringAttr>("firn.name"))
      contents.name = name.getValue().str();
    if (auto metadata = module->getAttrOfType<DictionaryAttr>("firn.metadata"))
      for (NamedAttribute entry : metadata)
        if (auto value = dyn_cast<StringAttr>(entry.getValue()))
          contents.metadata.push_back({entry.getName().str(), value.getValue().str()});
    std::string digest = "unknown";
    if (auto buffer = llvm::MemoryBuffer::getFile(options.input, false, false)) {
      auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef((*buffer)->getBuffer()));
      digest = hex(hash);
    }
    contents.provenance = {
        {"source_sha256", digest},
        {"compiler", "firnc " FIRN_VERSION},
        {"target", target.name + " (" + target.triple + " " + target.cpu + " " + target.features + ")"},
        {"options", optionText(options)}};
    contents.maxThreads = options.threads;
  }

  int written(const std::string &error) {
    if (error.empty())
      return exitDone;
    progress.stage("");
    llvm::errs() << error << "\n";
    return StringRef(error).contains("cannot write") ? exitFile : exitInternal;
  }

  int print(ModuleOp module) {
    std::string out;
    llvm::raw_string_ostream stream(out);
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
    module.print(stream, flags);
    return text(out + "\n");
  }

  int printPlan(ModuleOp module, const Program &program) {
    auto name = module->getAttrOfType<StringAttr>("firn.name");
    OwningOpRef<ModuleOp> plan = planModule(program, name ? name.getValue() : "", context);
    if (failed(verify(*plan)))
      return internalFailure("the plan is not valid");
    return print(*plan);
  }

  int text(StringRef content) {
    if (options.output.empty() || options.output == "-") {
      llvm::outs() << content;
      return exitDone;
    }
    std::error_code error;
    llvm::raw_fd_ostream file(options.output, error);
    if (error) {
      llvm::errs() << options.output << ": " << error.message() << "\n";
      return exitFile;
    }
    file << content;
    return exitDone;
  }

  int reject() {
    progress.stage("");
    if (options.wantJsonDiagnostics)
      llvm::outs() << diagnostics.json() << "\n";
    else
      llvm::errs() << diagnostics.text();
    return exitRejected;
  }

  int internalFailure(StringRef what) {
    progress.stage("");
    llvm::errs() << options.input << ": internal failure: " << what << "\n";
    return exitInternal;
  }

  const CompileModelOptions &options;
  Diagnostics diagnostics;
  Progress progress;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  TargetDescription target;
  std::vector<PassRemark> remarks;
};

} // namespace

int compileModel(const CompileModelOptions &options) { return Compilation(options).run(); }

} // namespace firn
