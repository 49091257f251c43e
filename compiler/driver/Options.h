// Options of a compilation, as firnc's command line states them.
#ifndef FIRN_COMPILER_DRIVER_OPTIONS_H
#define FIRN_COMPILER_DRIVER_OPTIONS_H

#include "compiler/Limits.h"
#include "compiler/import/Edit.h"
#include "compiler/plan/DimRange.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace firn {

/// What firnc and firn-opt are told of the model that they read, and how they answer.
struct SourceOptions {
  std::string input;
  std::map<std::string, int64_t> dims;                  // symbol -> size
  DimRanges ranges;                                     // symbol -> the sizes that it may have
  std::map<std::string, std::vector<int64_t>> variants; // symbol -> sizes that get code of their own
  std::map<std::string, std::vector<int64_t>> shapes;   // input -> dimensions
  std::vector<std::string> operatorLibraries;           // --ops
  ModelEdits edits;                                     // cut out and renamed
  Limits limits;
  bool wantJsonDiagnostics = false;
  unsigned maxErrors = 50;
};

struct CompileModelOptions : SourceOptions {
  std::string output;
  std::string target = "native";
  unsigned threads = 0;     // of the executor: a hint in the artifact
  unsigned hostThreads = 0; // of this compilation; 0: all cores
  unsigned optLevel = 3;
  std::string emit; // "": the artifact; firn, fused, kernel, plan, llvm, asm, obj
  bool wantReport = false;
  std::string reportFile; // JSON
  bool wantProof = false;
  bool checkOnly = false;
  bool wantProgress = false;
  bool strictMath = false; // no rewriting that changes rounding
};

/// Exit statuses of all tools (docs/cli.md).
constexpr int exitDone = 0, exitRejected = 1, exitBadCommandLine = 2, exitFile = 3, exitDiffers = 4, exitInternal = 70;

/// Compiles options.input; messages go to stderr, what --emit asks for without -o to stdout. Returns an exit status.
int compileModel(const CompileModelOptions &options);

} // namespace firn
#endif
