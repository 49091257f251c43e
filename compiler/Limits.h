// Limits: bounds against hostile files, each an option of firnc and firn-opt (docs/cli.md has the defaults too).
#ifndef FIRN_COMPILER_LIMITS_H
#define FIRN_COMPILER_LIMITS_H

#include <cstdint>
#include <string>

namespace firn {

struct Limits {
  int64_t modelBytes = int64_t(1) << 36;     // --max-model-bytes: the file and the external data that it names
  int64_t tensorBytes = int64_t(1) << 34;    // --max-tensor-bytes: one stored tensor
  int64_t nodes = 2'000'000;                 // --max-nodes: after inlining of functions
  int64_t depth = 64;                        // --max-depth: of nested graphs, and of calls of functions
  static constexpr int64_t mostDepth = 1000; // readers and passes recurse: deeper than this their stack ends
  int64_t foldedBytes = int64_t(1) << 30;    // --max-folded-bytes: a tensor that the compiler makes: folded, or filled
                                             // from a sparse or constant form
};

/// What to do about an exceeded limit.
inline std::string raiseLimit(const char *option) { return std::string("if you trust the file, raise ") + option; }

} // namespace firn
#endif
