// OptimiseGraph: import, passes until nothing changes, export.
#include "compiler/driver/OptimiseGraph.h"
#include "compiler/driver/Stages.h"
#include "compiler/export/Export.h"
#include "passes/GraphForm.h"
#include "passes/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
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
    if (!options.isConversionOnly && !optimise(*module))
      return finish(exitRejected);
    if (int status = write(*module))
      return finish(status);
    if (options.wantReport)
      if (int status = report(before, countOperators(*module)))
        return status;
    return finish(exitDone);
  }

private:
  bool optimise(ModuleOp module) {
    passRemarks() = &remarks;
    module->setAttr(staysGraphAttribute, UnitAttr::get(&context));
    MlirDiagnosticCollector collector(&context, diagnostics, "import.shape");
    PassManager manager(&context);
    manager.enableVerifier(false);
    PipelineOptions pipeline;
    pipeline.rounding = !options.strictMath;
    pipeline.maxGrowth = options.maxGrowth;
    pipeline.maxFolded = options.limits.foldedBytes;
    pipeline.isWanted = [this](StringRef argument) {
      return (options.passes.empty() || contains(options.passes, argument)) && !contains(options.skipped, argument);
    };
    buildOptimisePipeline(manager, pipeline);
    bool isDone = succeeded(manager.run(module));
    passRemarks() = nullptr;
    module->removeAttr(staysGraphAttribute);
    return isDone && !diagnostics.hasErrors();
  }

  /// What cannot be written because of the file system is the user's; an operation that has no form is Firn's fault.
  int write(ModuleOp module) {
    ExportOptions how;
    how.sideFileBytes = options.sideFileBytes;
    how.isConversion = options.isConversionOnly;
    if (exportModel(module, options.output, how, diagnostics))
      return exitDone;
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
    nlohmann::ordered_json json = {
        {"schema", "firn.optimise.v1"}, {"model", options.input},
        {"output", options.output},     {"operators", {{"before", before}, {"after", after}}},
        {"rewrites", rewrites},         {"refusals", nlohmann::ordered_json::array()}};
    llvm::outs() << "operators: " << before << " before, " << after << " after\n";
    for (const auto &[pass, count] : rewrites)
      llvm::outs() << "  " << pass << ": " << count << (count == 1 ? " rewrite\n" : " rewrites\n");
    if (!refusals.empty())
      llvm::outs() << "not rewritten:\n";
    for (const PassRemark *r : refusals) {
      llvm::outs() << "  " << r->pass << " " << r->node << ": " << r->text << "\n";
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
