// Compile: one model through all stages (docs/architecture.md).
#include "compiler/artifact/Artifact.h"
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Panels.h"
#include "compiler/codegen/cpu/Pipeline.h"
#include "compiler/driver/Options.h"
#include "compiler/driver/Stages.h"
#include "compiler/operators/OperatorLibrary.h"
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
#include <optional>

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
      diagnostics.error("options.target", "unknown target '" + options.target + "'",
                        "choose one of " + llvm::join(targetNames(), ", "));
      reject();
      return exitBadCommandLine;
    }
    target = *described;
    loadKernelDialects(context);
    context.loadDialect<FirnDialect, kernel::KernelDialect, func::FuncDialect>();
    context.printOpOnDiagnostic(false);
    int status = stages();
    progress.stage("");
    return status;
  }

private:
  /// The model, or one variant of it, on its way.
  struct Part {
    CompileModelOptions options;
    OwningOpRef<ModuleOp> module;
    GeneratedKernels generated;
    Program program;
  };

  int stages() {
    Part whole;
    whole.options = options;
    if (std::optional<int> status = prepare(whole))
      return *status;
    if (options.emit == "firn" || options.emit == "fused")
      return print(*whole.module);
    if (std::optional<int> status = generate(whole, "firn_k"))
      return *status;
    if (options.checkOnly) {
      progress.stage("");
      llvm::outs() << checkText(whole.program, whole.generated, diagnostics, options.wantJsonDiagnostics);
      return exitDone;
    }
    if (options.emit == "plan")
      return printPlan(*whole.module, whole.program);
    std::vector<Part> variants;
    Diagnostics said = diagnostics; // what the general model meets, its variants meet too
    for (const CompileModelOptions &variant : variantOptions(options)) {
      Part &part = variants.emplace_back();
      part.options = variant;
      std::optional<int> status = prepare(part);
      if (!status)
        status = generate(part, "firn_v" + std::to_string(variants.size()) + "_k");
      if (status)
        return *status;
    }
    diagnostics = said;
    return write(whole, variants);
  }

  /// Everything before code; a status where that is the end.
  std::optional<int> prepare(Part &part) {
    progress.stage("reading");
    part.module = importSource(options, true, context, diagnostics);
    if (!part.module)
      return reject();
    // Broken nodes stand for unknown values: what else is wrong shows in the same run.
    if (!diagnostics.hasErrors() && !fixDimensions(*part.module, part.options, diagnostics))
      return reject();
    if (!findProblems(*part.module, diagnostics))
      return reject();
    bool isVariant = part.options.variants.size() != options.variants.size();
    passRemarks() = isVariant ? &variantRemarks : &remarks;
    {
      progress.stage("optimising");
      MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
      if (failed(optimise(*part.module, part.options)))
        return reject();
    }
    if (!requireRunnableTypes(*part.module, diagnostics))
      return reject();
    if (options.emit == "firn")
      return std::nullopt;
    progress.stage("grouping");
    if (!options.variants.empty())
      part.module->getOperation()->setAttr(sharedWeightsAttr, UnitAttr::get(&context));
    if (failed(groupKernels(*part.module, target, part.options)))
      return internalFailure("grouping failed");
    return std::nullopt;
  }

  std::optional<int> generate(Part &part, const std::string &prefix) {
    progress.stage("generating code");
    part.generated = generateKernels(*part.module, target, part.options, prefix);
    if (!part.generated.error.empty())
      return internalFailure(part.generated.error);
    if (options.emit == "kernel" || options.emit == "llvm" || options.emit == "asm")
      return text(part.generated.text);
    progress.stage("planning");
    part.program = planProgram(
        *part.module, part.generated.bindings, [](FusedOp op) { return kernelSymbols(op); },
        [](FusedOp op) { return inPlacePairs(op); }, [](Operation *op) { return flopsOf(op); }, part.options.ranges);
    placeArena(part.program);
    return std::nullopt;
  }

  int write(Part &whole, std::vector<Part> &variants) {
    ArtifactContents contents;
    std::set<std::string> custom;
    for (const ProgramStep &step : whole.program.steps)
      if (step.op && kernels::findCustom(cast<Operator>(step.op).operatorName()))
        custom.insert(cast<Operator>(step.op).operatorName());
    describe(*whole.module, custom, contents);
    std::vector<std::vector<char>> objects = std::move(whole.generated.objects);
    for (Part &variant : variants) {
      shareWeights(whole.program, variant.program);
      contents.variants.push_back(&variant.program);
      for (std::vector<char> &object : variant.generated.objects)
        objects.push_back(std::move(object));
    }
    if (options.wantProof) {
      std::string whyNot;
      if (!makeProof(options, context, contents, whyNot))
        diagnostics.warning("proof.none", "there is no proof: " + whyNot);
    }
    progress.stage("linking");
    auto code = operatorCode(options.operatorLibraries, target, diagnostics);
    if (!code)
      return reject();
    if (code->empty() && !custom.empty()) {
      diagnostics.error("options.ops",
                        "no library has code of " + llvm::join(custom, ", ") + " that can become part of the model",
                        "give a static library (.a) for the target, beside the shared one or in its place");
      return reject();
    }
    objects.insert(objects.end(), code->begin(), code->end());
    auto write = options.emit == "obj" ? writeStaticObject : writeArtifact;
    if (int status = written(write(options.output, whole.program, contents, objects, target)))
      return status;
    progress.stage("");
    if (!diagnostics.all().empty())
      llvm::errs() << (options.wantJsonDiagnostics ? diagnostics.json() : diagnostics.text());
    if (options.wantReport)
      return report(*whole.module, whole.program, whole.generated, remarks, options);
    return exitDone;
  }

  void describe(ModuleOp module, const std::set<std::string> &custom, ArtifactContents &contents) {
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
    if (!custom.empty())
      contents.provenance.push_back({"custom_operators", llvm::join(custom, ", ")});
    contents.maxThreads = options.threads;
  }

  int written(const std::string &error) {
    if (error.empty())
      return exitDone;
    if (!StringRef(error).contains("cannot write"))
      return internalFailure(error);
    diagnostics.error("artifact.unwritable", error);
    reject();
    return exitFile;
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
    if (error)
      return written("cannot write '" + options.output + "': " + error.message());
    file << content;
    return exitDone;
  }

  int reject() {
    progress.stage("");
    if (options.wantJsonDiagnostics)
      llvm::outs() << (options.checkOnly ? rejectedCheckText(diagnostics) : diagnostics.json());
    else
      llvm::errs() << diagnostics.text();
    return rejection(diagnostics);
  }

  int internalFailure(StringRef what) {
    diagnostics.error("firn.internal", what);
    reject();
    return exitInternal;
  }

  const CompileModelOptions &options;
  Diagnostics diagnostics;
  Progress progress;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  TargetDescription target;
  std::vector<PassRemark> remarks, variantRemarks; // the report is about the general model
};

} // namespace

int compileModel(const CompileModelOptions &options) { return Compilation(options).run(); }

} // namespace firn
