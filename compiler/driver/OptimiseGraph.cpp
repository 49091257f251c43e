// OptimiseGraph: import, passes until nothing changes, export.
#include "compiler/driver/OptimiseGraph.h"
#include "compiler/driver/Stages.h"
#include "compiler/export/Export.h"
#include "compiler/export/Write.h"
#include "compiler/import/Blob.h"
#include "passes/GraphForm.h"
#include "passes/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>
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

size_t countOperators(ModuleOp module) {
  size_t count = 0;
  module.walk([&](Operation *op) { count += isa<Operator>(op) && !isa<ConstantOp, AbsentOp>(op); });
  return count;
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

  int run() {
    context.printOpOnDiagnostic(false);
    OwningOpRef<ModuleOp> module = importSource(options, false, context, diagnostics);
    if (!module || diagnostics.hasErrors())
      return finish(rejection(diagnostics));
    if (!fixDimensions(*module, options, diagnostics))
      return finish(exitRejected);
    size_t before = countOperators(*module);
    if (!measureInput(*module))
      return finish(exitFile);
    int status = options.isConversionOnly ? write(*module) : optimiseToSize(module);
    if (status)
      return finish(status);
    if (options.wantReport)
      if (int failed = report(before, countOperators(*module)))
        return failed;
    return finish(exitDone);
  }

private:
  /// Optimises and writes; where the file is larger than the one read, without the types of inner values, and then
  /// again without folds that add bytes.
  int optimiseToSize(OwningOpRef<ModuleOp> &module) {
    OwningOpRef<ModuleOp> source = module->clone();
    for (int64_t maxGrowth : {options.maxGrowth, bytesOfNode}) {
      module = source->clone();
      if (!optimise(*module, maxGrowth))
        return exitRejected;
      for (bool hasTypes : {true, false}) {
        if (!hasTypes && !(*module)->removeAttr("firn.value_info"))
          continue;
        if (int status = write(*module))
          return status;
        if (options.allowGrowth || outputBytes <= inputBytes)
          return exitDone;
      }
    }
    remarks.push_back({"size", "", "every form of the graph is larger than the file", true});
    return keepSource(module, std::move(source));
  }

  /// Puts the file that was read in the output's place, if that says what was asked for.
  int keepSource(OwningOpRef<ModuleOp> &module, OwningOpRef<ModuleOp> source) {
    StringRef from = llvm::sys::path::extension(options.input), to = llvm::sys::path::extension(options.output);
    if (from != to || hasSideFile || !options.dims.empty() || !options.shapes.empty() || options.edits.any() ||
        options.pruneInputs || options.sideFileBytes > 0)
      return exitDone;
    module = std::move(source);
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
    if (options.pruneInputs)
      dropUnusedInputs(module);
    return isDone && !diagnostics.hasErrors();
  }

  /// What cannot be written because of the file system is the user's; an operation that has no form is Firn's fault.
  int write(ModuleOp module) {
    ExportOptions how;
    how.sideFileBytes = options.sideFileBytes;
    how.isConversion = options.isConversionOnly;
    if (std::optional<int64_t> bytes = exportModel(module, options.output, how, diagnostics)) {
      outputBytes = *bytes;
      return exitDone;
    }
    return diagnostics.hasOnly("export.unwritable") ? exitFile
           : diagnostics.hasOnly("export.size")     ? exitRejected
                                                    : exitInternal;
  }

  int finish(int status) {
    if (!diagnostics.all().empty())
      llvm::errs() << (options.wantJsonDiagnostics ? diagnostics.json() + "\n" : diagnostics.text());
    return status;
  }

  int report(size_t before, size_t after) {
    // Rounds repeat themselves: each refusal once, rewrites counted.
    std::map<std::string, size_t> rewrites;
    std::vector<const PassRemark *> refusals;
    std::set<std::string> seen;
    for (const PassRemark &remark : remarks)
      if (!remark.isRefusal)
        ++rewrites[remark.pass];
      else if (seen.insert(remark.pass + '\n' + remark.node + '\n' + remark.text).second)
        refusals.push_back(&remark);
    nlohmann::ordered_json json = {{"schema", "firn.optimise.v1"},
                                   {"model", options.input},
                                   {"output", options.output},
                                   {"operators", {{"before", before}, {"after", after}}},
                                   {"bytes", {{"before", inputBytes}, {"after", outputBytes}}},
                                   {"rewrites", rewrites},
                                   {"refusals", nlohmann::ordered_json::array()}};
    llvm::outs() << "operators: " << before << " before, " << after << " after\n"
                 << "bytes: " << inputBytes << " before, " << outputBytes << " after\n";
    for (const auto &[pass, count] : rewrites)
      llvm::outs() << "  " << pass << ": " << count << (count == 1 ? " rewrite\n" : " rewrites\n");
    if (!refusals.empty())
      llvm::outs() << "not rewritten:\n";
    for (const PassRemark *r : refusals) {
      llvm::outs() << "  " << r->pass << (r->node.empty() ? "" : " ") << r->node << ": " << r->text << "\n";
      json["refusals"].push_back({{"pass", r->pass}, {"node", r->node}, {"why", r->text}});
    }
    if (options.reportFile.empty())
      return exitDone;
    std::error_code error;
    llvm::raw_fd_ostream file(options.reportFile, error);
    if (!error)
      file << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
    if (error)
      llvm::errs() << options.reportFile << ": " << error.message() << "\n";
    return error ? exitFile : exitDone;
  }

  const OptimiseGraphOptions &options;
  Diagnostics diagnostics;
  std::optional<MappedFile> inputFile;
  bool hasSideFile = false;
  int64_t inputBytes = 0, outputBytes = 0; // with what lies beside the files
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::vector<PassRemark> remarks;
};

} // namespace

int optimiseGraph(const OptimiseGraphOptions &options) { return GraphOptimisation(options).run(); }

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
