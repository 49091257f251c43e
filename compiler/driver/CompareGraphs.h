// CompareGraphs: whether a rewritten graph computes what the original computes, by the reference evaluator.
#ifndef FIRN_COMPILER_DRIVER_COMPAREGRAPHS_H
#define FIRN_COMPILER_DRIVER_COMPAREGRAPHS_H

#include "compiler/driver/RandomInputs.h"

#include <string>
#include <vector>

namespace firn {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-4; // |after - before| <= absolute + relative * |before|; integers exactly
};

/// The largest differences of one output over all runs.
struct OutputDifference {
  std::string name;
  double maxAbsolute = 0;
  double maxRelative = 0; // to the largest magnitude in the output
  std::string what;       // why it is outside of the tolerance, or ""
};

struct GraphComparison {
  size_t runs = 0;
  std::vector<OutputDifference> outputs;
  std::string firstNode; // of the rewritten graph: the first whose value differs from that of its name in the original
  std::string whyNot;    // why there is no comparison, or ""

  bool isCompared() const { return whyNot.empty(); }
  bool isEqual() const {
    return isCompared() && llvm::all_of(outputs, [](const OutputDifference &output) { return output.what.empty(); });
  }
};

/// Holds an original graph and what it computes on seeded inputs; several rewritten ones may be compared with it.
class GraphComparer {
public:
  /// `original`: as imported, with its dimensions fixed; stays the caller's. Dynamic dimensions have other sizes in
  /// each run, as far as the model takes them.
  GraphComparer(mlir::ModuleOp original, unsigned runs, Tolerance tolerance, const DimRanges &ranges = {});

  /// Inputs are found by name, outputs by position. A kernel that refuses only the rewritten graph is a difference.
  GraphComparison compare(mlir::ModuleOp rewritten) const;

  mlir::MLIRContext *context() const { return mlir::ModuleOp(original).getContext(); }

private:
  std::string firstDifference(mlir::ModuleOp rewritten, const ModelRun &run,
                              const std::vector<ReferenceTensor> &inputs) const;

  mlir::ModuleOp original;
  Tolerance tolerance;
  std::vector<ModelRun> runs;
  std::string whyNot;
};

} // namespace firn
#endif
