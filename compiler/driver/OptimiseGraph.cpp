// OptimiseGraph: import, passes until nothing changes, export.
#include "compiler/driver/OptimiseGraph.h"
#include "compiler/driver/CheckGraph.h"
#include "compiler/driver/GraphReport.h"
#include "compiler/driver/Stages.h"
#include "compiler/export/Collect.h"
#include "compiler/export/Export.h"
#include "compiler/export/Write.h"
#include "compiler/import/Blob.h"
#include "compiler/import/onnx/Schema.h"
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

using namespace mlir;

namespace firn {

namespace {

constexpr llvm::StringLiteral prefix = "firn-";

/// "fold-shapes" of "firn-fold-shapes".
StringRef shortName(StringRef argument) {
  argument.consume_front(prefix);
  return argument;
}

bool contains(const std::vector<std::string> &names, StringRef argument) {
  return llvm::any_of(names, [&](const std::string &name) { return shortName(name) == shortName(argument); });
}

/// About what a small node takes in a file: a fold that adds less makes it smaller.
constexpr int64_t bytesOfNode = 64;

void dropUnusedInputs(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    for (unsigned i = func.getNumArguments(); i-- > 0;)
      if (func.getArgument(i).use_empty())
        func.eraseArgument(i);
}

class GraphOptimisation {
public:
  explicit GraphOptimisation(const OptimiseGraphOptions &from)
      : options(from), diagnostics(from.input, from.maxErrors) {}

  OptimiseGraphResult run() {
    int status = work();
    result.status = status;
    if (!diagnostics.all().empty())
      result.messages += options.wantJsonDiagnostics ? diagnostics.json() + "\n" : diagnostics.text();
    return std::move(result);
  }

private:
  int work() {
    context.printOpOnDiagnostic(false);
    if (options.opset > newestVersion("")) {
      diagnostics.error("export.opset", "opset " + std::to_string(options.opset) + " is newer than the newest known, " +
                                            std::to_string(newestVersion("")));
      return exitRejected;
    }
    OwningOpRef<ModuleOp> module = importSource(options, false, context, diagnostics);
    if (!module || diagnostics.hasErrors())
      return rejection(diagnostics);
    if (!fixDimensions(*module, options, diagnostics))
      return exitRejected;
    if (!measureInput(*module))
      return exitFile;
    if (options.wantReport)
      facts.before = describe(*module, inputBytes, true);
    if (options.isConversionOnly && (options.opset || options.floats.dtype))
      inferTypes(*module); // an older version, or the other type, may not take all
    source = module->clone();
    if (int status = options.isConversionOnly ? write(*module, options.output) : optimiseToSize(module))
      return status;
    if (options.wantReport)
      describeOutput(*module);
    int status = check();
    if (options.wantReport)
      if (int failed = report())
        return failed;
    return status;
  }

  /// Optimises and writes; where the file is larger than the one read, without the types of inner values, and then
  /// again without folds that add bytes.
  int optimiseToSize(OwningOpRef<ModuleOp> &module) {
    for (int64_t maxGrowth : {options.maxGrowth, bytesOfNode}) {
      module = source->clone();
      if (!optimise(*module, maxGrowth))
        return exitRejected;
      for (bool hasTypes : {true, false}) {
        if (!hasTypes && !(*module)->removeAttr("firn.value_info"))
          continue;
        form = {maxGrowth, hasTypes};
        if (int status = write(*module, options.output))
          return status;
        if (options.allowGrowth || outputBytes <= inputBytes)
          return exitDone;
      }
    }
    remarks.push_back({"size", "", "every form of the graph is larger than the file", true});
    return keepSource(module);
  }

  /// Puts the file that was read in the output's place, if that says what was asked for.
  int keepSource(OwningOpRef<ModuleOp> &module) {
    StringRef from = llvm::sys::path::extension(options.input), to = llvm::sys::path::extension(options.output);
    if (from != to || hasSideFile || !options.dims.empty() || !options.shapes.empty() || options.edits.any() ||
        options.pruneInputs || options.opset || options.floats.dtype ||
        (options.sideFileBytes > 0 && options.sideFileBytes < INT64_MAX))
      return exitDone;
    module = source->clone();
    outputBytes = inputBytes;
    return writeFile(options.output, StringRef(inputFile->bytes.data(), inputFile->bytes.size()), diagnostics)
               ? exitDone
               : exitFile;
  }

  /// Sizes of the file that was read and of what lies beside it.
  bool measureInput(ModuleOp module) {
    std::string why;
    inputFile = mapFile(options.input, why); // stays what it is where the output takes its place
    if (!inputFile) {
      diagnostics.error("import.unreadable", why);
      return false;
    }
    int64_t constants = 0;
    module.walk([&](ConstantOp op) {
      if (auto bytes = constantBytes(op.getValueAttr()))
        constants += bytes->bytes.size();
    });
    inputBytes = inputFile->bytes.size();
    hasSideFile = constants > inputBytes;
    inputBytes += hasSideFile ? constants : 0;
    return true;
  }

  bool optimise(ModuleOp module, int64_t maxGrowth) {
    remarks.clear();
    passRemarks() = &remarks;
    module->setAttr(staysGraphAttribute, UnitAttr::get(&context));
    if (options.opset)
      module->setAttr(targetOpsetAttribute, IntegerAttr::get(IntegerType::get(&context, 64), options.opset));
    MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
    PassManager manager(&context);
    manager.enableVerifier(false);
    PipelineOptions pipeline;
    pipeline.rounding = !options.strictMath;
    pipeline.fast = options.fastMath;
    pipeline.isGraph = true;
    pipeline.maxGrowth = maxGrowth;
    pipeline.maxFolded = options.limits.foldedBytes;
    pipeline.isWanted = [this](StringRef argument) {
      return (options.passes.empty() || contains(options.passes, argument)) && !contains(options.skipped, argument);
    };
    buildOptimisePipeline(manager, pipeline);
    bool isDone = succeeded(manager.run(module));
    passRemarks() = nullptr;
    module->removeAttr(staysGraphAttribute);
    module->removeAttr(targetOpsetAttribute);
    if (options.pruneInputs)
      dropUnusedInputs(module);
    return isDone && !diagnostics.hasErrors();
  }

  /// What cannot be written because of the file system is the user's; an operation that has no form is Firn's fault.
  int write(ModuleOp module, const std::string &path) {
    ExportOptions how;
    how.sideFileBytes = options.sideFileBytes;
    how.isConversion = options.isConversionOnly;
    how.opset = options.opset;
    how.floats = options.floats;
    if (std::optional<int64_t> bytes = exportModel(module, path, how, diagnostics)) {
      outputBytes = *bytes;
      return exitDone;
    }
    return diagnostics.hasOnly("export.unwritable") ? exitFile
           : diagnostics.hasOnly("export.size")     ? exitRejected
           : diagnostics.hasOnly("export.opset")    ? exitRejected
                                                    : exitInternal;
  }

  /// --verify, --check-cmd and --bisect.
  int check() {
    if (!options.verifyRuns && options.checkCommand.empty())
      return exitDone;
    GraphCheck check(options, *source);
    CheckVerdict verdict = check.run(options.output);
    facts.comparison = verdict.comparison;
    if (verdict.comparison)
      result.report += text(*verdict.comparison);
    if (!verdict.message.empty())
      result.messages += verdict.message + "\n";
    if (verdict.isRight)
      return exitDone;
    if (options.bisect && !options.isConversionOnly && verdict.isWrong)
      result.report += bisect(check);
    return exitDiffers;
  }

  /// The first rewrite with which the check fails, and beside the output the last right and the first wrong graph.
  std::string bisect(const GraphCheck &check) {
    std::string stem = options.output.substr(0, options.output.rfind('.')),
                extension = options.output.substr(stem.size());
    std::vector<PassRemark> all = remarks;
    int64_t total = llvm::count_if(all, [](const PassRemark &remark) { return !remark.isRefusal; });
    /// Writes the graph after so many rewrites; the last rewrite is in remarks.
    auto writeAfter = [&](int64_t rewrites, const std::string &path) {
      OwningOpRef<ModuleOp> module = source->clone();
      rewritesLeft() = rewrites;
      bool isDone = optimise(*module, form.maxGrowth);
      rewritesLeft() = -1;
      if (!form.hasTypes)
        (*module)->removeAttr("firn.value_info");
      return isDone && write(*module, path) == exitDone;
    };
    std::string good = stem + ".good" + extension, bad = stem + ".bad" + extension;
    auto isRightAfter = [&](int64_t rewrites) {
      bool isRight = writeAfter(rewrites, bad) && check.run(bad).isRight;
      if (options.progress)
        options.progress("bisect: " + std::to_string(rewrites) + " of " + std::to_string(total) +
                         " rewrites: " + (isRight ? "right" : "wrong"));
      return isRight;
    };
    std::string found;
    if (!isRightAfter(0)) {
      found = "bisect: the graph is wrong before the first rewrite: " + bad + "\n";
    } else if (isRightAfter(total)) {
      found = "bisect: the graph is right when it is written again; the check does not always give the same\n";
    } else {
      int64_t right = 0, wrong = total;
      while (wrong - right > 1) {
        int64_t middle = right + (wrong - right) / 2;
        (isRightAfter(middle) ? right : wrong) = middle;
      }
      writeAfter(right, good);
      writeAfter(wrong, bad);
      const PassRemark *last = nullptr;
      for (const PassRemark &remark : remarks)
        last = remark.isRefusal ? last : &remark;
      found = "bisect: rewrite " + std::to_string(wrong) + " of " + std::to_string(total) +
              " is the first wrong one\n" +
              (last ? "  pass " + last->pass + ", node '" + last->node + "': " + last->text + "\n" : "") +
              "  before it: " + good + "\n  after it: " + bad + "\n";
    }
    remarks = std::move(all);
    return found;
  }

  /// Gives values the types that follow; what can be found is there also where something is wrong.
  void inferTypes(ModuleOp module) {
    Diagnostics unsaid;
    MlirDiagnosticCollector collector(&context, unsaid, "import.shape");
    PassManager manager(&context);
    manager.enableVerifier(false);
    manager.addPass(createInferShapes());
    (void)manager.run(module);
  }

  /// The numbers of a graph, as its file says it.
  GraphFacts describe(ModuleOp module, int64_t bytes, bool isSource) {
    OwningOpRef<ModuleOp> inferred = module.clone();
    inferTypes(*inferred);
    Diagnostics unsaid;
    ExportOptions how;
    how.isConversion = isSource || options.isConversionOnly;
    how.opset = isSource ? 0 : options.opset;
    how.floats = isSource ? FloatConversion() : options.floats;
    how.floats.onKept = [this](const std::string &node, const std::string &why) {
      remarks.push_back({"convert", node, why, true});
    };
    std::optional<model::Model> model = collectModel(module, how, unsaid);
    if (model && !isSource)
      facts.origins = originsOf(*model);
    return factsOf(*inferred, model ? *model : model::Model(), bytes);
  }

  void describeOutput(ModuleOp module) {
    facts.after = describe(module, outputBytes, false);
    if (!options.floats.dtype)
      return;
    // The types of the written graph are not those of the module.
    SourceOptions written = options;
    written.input = options.output;
    Diagnostics unsaid;
    if (OwningOpRef<ModuleOp> read = importSource(written, false, context, unsaid)) {
      inferTypes(*read);
      facts.after.activationBytes = peakActivations(*read);
    }
  }

  int report() {
    facts.input = options.input;
    facts.output = options.output;
    facts.remarks = remarks;
    std::string asJson = json(facts).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    result.report = options.wantJsonReport ? asJson : text(facts) + result.report;
    if (options.reportFile.empty())
      return exitDone;
    std::error_code error;
    llvm::raw_fd_ostream file(options.reportFile, error);
    if (!error)
      file << asJson;
    if (error)
      result.messages += options.reportFile + ": " + error.message() + "\n";
    return error ? exitFile : exitDone;
  }

  const OptimiseGraphOptions &options;
  Diagnostics diagnostics;
  std::optional<MappedFile> inputFile;
  bool hasSideFile = false;
  int64_t inputBytes = 0, outputBytes = 0; // with what lies beside the files
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> source; // as read, with the dimensions that were asked for
  struct {
    int64_t maxGrowth = 0;
    bool hasTypes = true;
  } form; // of the graph that was written
  std::vector<PassRemark> remarks;
  GraphReport facts;
  OptimiseGraphResult result;
};

} // namespace

OptimiseGraphResult optimiseGraph(const OptimiseGraphOptions &options) { return GraphOptimisation(options).run(); }

std::string passList() {
  std::string text;
  for (const auto &[argument, summary] : optimisePasses()) {
    std::string name = shortName(argument).str();
    text += name + std::string(name.size() < 26 ? 26 - name.size() : 1, ' ') + summary + "\n";
  }
  return text;
}

std::string unknownPass(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (llvm::none_of(optimisePasses(), [&](const auto &pass) { return shortName(pass.first) == shortName(name); }))
      return "unknown pass '" + name + "'; --list-passes prints those there are";
  return "";
}

} // namespace firn
