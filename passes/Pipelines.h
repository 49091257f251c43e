// Pipelines: the passes on the firn dialect, in the order that serves.
#ifndef FIRN_PASSES_PIPELINES_H
#define FIRN_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace firn {

struct PipelineOptions {
  bool rounding = true;                 // also rewrites that change how results are rounded
  bool fast = false;                    // also rewrites that treat numbers as real ones
  int64_t maxGrowth = int64_t(1) << 20; // bytes that folding one node may add
  int64_t maxFolded = int64_t(1) << 30; // bytes of a constant that folding makes
  unsigned maxRounds = 8;
  bool isGraph = false; // also what serves graph files alone (GraphForm.h); code generation has its own ways
  /// Whether a pass of the rounds, by its argument ("firn-fold-shapes"), takes part; null: all do. Inference always
  /// does.
  std::function<bool(llvm::StringRef argument)> isWanted = nullptr;
};

/// Argument and summary of each pass of a round and of those behind the rounds, in order.
std::vector<std::pair<std::string, std::string>> optimisePasses();

/// For a graph that stays a graph: infer, fold, simplify and fuse until nothing changes (the pass firn-optimise).
/// Running it twice changes nothing; names, order and types of inputs and outputs stay.
void buildOptimisePipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// For a graph that becomes code: buildOptimisePipeline, then rare operations decomposed, layouts assigned, and what
/// that left behind cleaned up. The next step is grouping.
void buildPreparePipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

} // namespace firn
#endif
