#include "compiler/driver/CheckGraph.h"
#include "compiler/driver/Stages.h"
#include "runtime/abi/dtype.h"

#include "llvm/Support/Program.h"

using namespace mlir;

namespace firn {

/// Exit status of the command of --check-cmd with the file as its first argument and in the place of every {}.
static int runCommand(const std::string &command, const std::string &path, std::string &why) {
  std::string script = command;
  bool hasPlace = false;
  for (size_t at = 0; (at = script.find("{}", at)) != std::string::npos; at += 4) {
    script.replace(at, 2, "\"$1\"");
    hasPlace = true;
  }
  if (!hasPlace && script.find("$1") == std::string::npos)
    script += " \"$1\"";
  return llvm::sys::ExecuteAndWait("/bin/sh", {"/bin/sh", "-c", script, "sh", path}, std::nullopt, {}, 0, 0, &why);
}

/// A float of 16 bits has 11 or 8 bits of mantissa; roundings add up over the depth of a network.
static Tolerance toleranceOf(const OptimiseGraphOptions &options) {
  Tolerance tolerance;
  if (options.floats.dtype)
    tolerance.relative = tolerance.absolute = options.floats.dtype == FIRN_F16 ? 0.02 : 0.1;
  else if (options.strictMath)
    tolerance = {0, 0};
  if (options.rtol >= 0)
    tolerance.relative = options.rtol;
  if (options.atol >= 0)
    tolerance.absolute = options.atol;
  return tolerance;
}

GraphCheck::GraphCheck(const OptimiseGraphOptions &from, ModuleOp original) : options(from) {
  if (!options.verifyRuns)
    return;
  comparer.emplace(original, options.verifyRuns, toleranceOf(options), options.ranges);
}

GraphComparison GraphCheck::compare(const std::string &path) const {
  SourceOptions written;
  written.input = path;
  written.limits = options.limits;
  written.operatorLibraries = options.operatorLibraries;
  MLIRContext &context = *comparer->context();
  Diagnostics diagnostics(path);
  OwningOpRef<ModuleOp> module = importSource(written, false, context, diagnostics);
  if (module && !diagnostics.hasErrors())
    return comparer->compare(*module);
  GraphComparison unreadable;
  unreadable.whyNot = "the written graph cannot be read: " + diagnostics.text();
  return unreadable;
}

CheckVerdict GraphCheck::run(const std::string &path) const {
  CheckVerdict verdict;
  if (comparer) {
    verdict.comparison = compare(path);
    verdict.isRight = verdict.comparison->isEqual();
    verdict.isWrong = verdict.comparison->isCompared() && !verdict.isRight;
  }
  if (options.checkCommand.empty())
    return verdict;
  std::string why;
  if (int status = runCommand(options.checkCommand, path, why)) {
    verdict.isRight = false;
    verdict.isWrong = true;
    verdict.message = "--check-cmd: exit status " + std::to_string(status) + (why.empty() ? "" : ": " + why);
  }
  return verdict;
}

} // namespace firn
