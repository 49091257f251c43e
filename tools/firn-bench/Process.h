// Figures that need a process of their own: cold start and peak memory.
#ifndef FIRN_TOOLS_FIRN_BENCH_PROCESS_H
#define FIRN_TOOLS_FIRN_BENCH_PROCESS_H

#include <cstdint>
#include <string>
#include <vector>

namespace firn::tools {

struct ProcessFigures {
  double millis;        // from start to end of the process
  int64_t peakRssBytes; // what it said on its standard output
};

/// Starts this program with `arguments` and waits for it; throws Failure if it fails.
ProcessFigures runSelf(const std::vector<std::string> &arguments);

/// The peak resident memory of this process so far. Not getrusage's, which begins with that of the parent.
int64_t peakRssBytes();

} // namespace firn::tools
#endif
