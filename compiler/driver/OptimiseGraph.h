// OptimiseGraph: a graph file in, a graph file out: converted, and optimised unless conversion alone is asked for.
#ifndef FIRN_COMPILER_DRIVER_OPTIMISEGRAPH_H
#define FIRN_COMPILER_DRIVER_OPTIMISEGRAPH_H

#include "compiler/driver/Options.h"

#include <cstdint>
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
  int64_t sideFileBytes = 0;            // larger constants go to a file beside the output; 0: only where they must
  bool wantReport = false;
  std::string reportFile; // JSON
};

/// Reads, optimises and writes; messages go to stderr, the report to stdout. Returns an exit status (Options.h).
int optimiseGraph(const OptimiseGraphOptions &options);

/// "fold-constants  compute operations on constants ...", a line for each pass that --passes and --skip know.
std::string passList();

/// Why a list of pass names is wrong, or "".
std::string unknownPass(const std::vector<std::string> &names);

} // namespace firn
#endif
