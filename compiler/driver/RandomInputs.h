// RandomInputs: seeded inputs in plausible ranges, and sizes for dynamic dimensions: for proofs and comparisons.
#ifndef FIRN_COMPILER_DRIVER_RANDOMINPUTS_H
#define FIRN_COMPILER_DRIVER_RANDOMINPUTS_H

#include "compiler/plan/DimRange.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fold/ReferenceCall.h"
#include <map>
#include <set>

namespace firn {

/// The dynamic dimensions of a function's inputs; nothing, with the reason, where an input is no tensor of numbers or
/// booleans with a fixed rank.
std::optional<std::set<std::string>> inputSymbols(mlir::func::FuncOp main, std::string &whyNot);

/// A model run once.
struct ModelRun {
  std::vector<ReferenceTensor> inputs, outputs;
  std::map<std::string, int64_t> sizes; // of the dynamic dimensions
};

/// What tells runs of a model apart.
struct RunChoice {
  uint32_t seed = 20;
  int64_t batch = 1;    // of dimensions that look like a batch
  size_t firstSize = 0; // of sizesToTry, for all others
};
constexpr int64_t sizesToTry[] = {1, 2, 8, 32, 64, 160, 224};

/// Runs @main by the reference evaluator on seeded inputs, with the first sizes, and the widest range of integers (they
/// may index tables), that it accepts. Nothing, with its last reason, where it accepts none.
std::optional<ModelRun> runOnRandomInputs(mlir::ModuleOp module, const RunChoice &choice, const DimRanges &ranges,
                                          std::string &whyNot);

} // namespace firn
#endif
