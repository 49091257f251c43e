// GraphReport: what firn-opt did to a graph and why it did not do more, as a table and as JSON (docs/firn-opt.md).
#ifndef FIRN_COMPILER_DRIVER_GRAPHREPORT_H
#define FIRN_COMPILER_DRIVER_GRAPHREPORT_H

#include "compiler/driver/CompareGraphs.h"
#include "compiler/driver/GraphCounts.h"
#include "passes/PassReport.h"

#include <nlohmann/json_fwd.hpp>

namespace firn {

/// A graph in numbers.
struct GraphFacts {
  GraphCounts counts;
  int64_t bytes = 0;           // of the file and what lies beside it
  int64_t flops = 0;           // a multiply-add is two, one for each element of elementwise operators and reductions
  int64_t activationBytes = 0; // the most that is alive at once, node after node, every value in memory of its own
};

/// `module` has inferred types; dynamic dimensions count as 1. Of an If the dearest branch counts, of loops the body
/// once.
GraphFacts factsOf(mlir::ModuleOp module, const model::Model &model, int64_t bytes);

/// GraphFacts::activationBytes of a module.
int64_t peakActivations(mlir::ModuleOp module);

struct GraphReport {
  std::string input, output;
  GraphFacts before, after;
  std::vector<PassRemark> remarks;
  std::optional<GraphComparison> comparison;
  /// Nodes of the result that are new or were made from several, and the nodes that they come from.
  std::vector<std::pair<std::string, std::vector<std::string>>> origins;
};

/// The nodes of `model` that stand for others than the node of their name.
std::vector<std::pair<std::string, std::vector<std::string>>> originsOf(const model::Model &model);

std::string text(const GraphReport &report);
nlohmann::ordered_json json(const GraphReport &report);
std::string text(const GraphComparison &comparison);

} // namespace firn
#endif
