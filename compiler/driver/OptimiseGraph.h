// OptimiseGraph: a graph file in, a graph file out: converted, and optimised unless conversion alone is asked for.
#ifndef FIRN_COMPILER_DRIVER_OPTIMISEGRAPH_H
#define FIRN_COMPILER_DRIVER_OPTIMISEGRAPH_H

#include "compiler/driver/Options.h"
#include "compiler/export/Export.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace firn {

struct OptimiseGraphOptions : SourceOptions {
  std::string output; // .onnx, .fpb or .fpbtxt
  bool isConversionOnly = false;
  std::vector<std::string> passes;      // these alone; empty: all
  std::vector<std::string> skipped;     // none of these
  bool strictMath = false;              // no rewriting that changes rounding
  bool fastMath = false;                // also rewriting that treats numbers as real ones
  bool pruneInputs = false;             // inputs that nothing reads go
  int64_t maxGrowth = int64_t(1) << 20; // bytes that folding one node may add
  bool allowGrowth = false;             // the output may have more bytes than the input
  int64_t sideFileBytes = 0;            // larger constants go to OUTPUT.data; 0: where they must, INT64_MAX: none
  int64_t opset = 0;                    // of ai.onnx, to write; 0: that of the source, raised where operators ask
  FloatConversion floats;               // writes floats of 16 bits
  bool wantReport = false;
  bool wantJsonReport = false; // instead of text
  std::string reportFile;      // JSON
  unsigned verifyRuns = 0;     // compares with the original on so many seeded inputs
  double rtol = -1, atol = -1; // of the comparison; negative: 1e-3 and 1e-4; 0.02 for fp16, 0.1 for bf16; with
                               // strictMath 0
  std::string checkCommand;    // for the shell, with the file as $1 or in the place of {}: 0 where the result is right
  bool bisect = false;         // where a check fails, finds the rewrite that makes it fail
  std::function<void(const std::string &)> progress = nullptr; // is told of long work, a line each
};

struct OptimiseGraphResult {
  int status = 0;       // an exit status (Options.h)
  std::string messages; // diagnostics, for stderr
  std::string report;   // for stdout
};

/// Reads, optimises, writes and checks what it wrote. Several threads may each run one.
OptimiseGraphResult optimiseGraph(const OptimiseGraphOptions &options);

/// "fold-constants  compute operations on constants ...", a line for each pass that --passes and --skip know.
std::string passList();

/// Why a list of pass names is wrong, or "".
std::string unknownPass(const std::vector<std::string> &names);

} // namespace firn
#endif
