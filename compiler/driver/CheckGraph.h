// CheckGraph: whether a graph that was written is right: by comparison with the original, and by a user's command.
#ifndef FIRN_COMPILER_DRIVER_CHECKGRAPH_H
#define FIRN_COMPILER_DRIVER_CHECKGRAPH_H

#include "compiler/driver/CompareGraphs.h"
#include "compiler/driver/OptimiseGraph.h"

namespace firn {

struct CheckVerdict {
  bool isRight = true;
  bool isWrong = false; // shown to be; where neither, nothing could be shown
  std::optional<GraphComparison> comparison;
  std::string message; // of the command
};

class GraphCheck {
public:
  /// `original` stays the caller's.
  GraphCheck(const OptimiseGraphOptions &options, mlir::ModuleOp original);

  /// Reads the file at `path` again and compares, then runs the command.
  CheckVerdict run(const std::string &path) const;

private:
  GraphComparison compare(const std::string &path) const;

  const OptimiseGraphOptions &options;
  std::optional<GraphComparer> comparer;
};

} // namespace firn
#endif
