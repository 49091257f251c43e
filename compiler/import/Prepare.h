// Prepare: makes the model of a file fit to be built. Each step reports what it finds and marks the nodes that are
// broken, so that the rest of the model can still be built and the problems that only types tell are found in one go.
#ifndef FIRN_COMPILER_IMPORT_PREPARE_H
#define FIRN_COMPILER_IMPORT_PREPARE_H

#include "compiler/Diagnostics.h"
#include "compiler/Limits.h"
#include "compiler/import/Model.h"
#include <functional>
#include <unordered_set>

namespace firn {

/// Inline.cpp: gives every node the version of its domain and replaces calls of the model's own functions by their
/// bodies. A function that calls itself, however indirectly, is refused. False where the model outgrew its limit: there
/// is nothing to look at then.
bool inlineFunctions(model::Model &model, const Limits &limits, Diagnostics &diagnostics);

/// Check.cpp: operators, versions, counts of inputs and outputs, attributes, names that are defined twice or never.
/// `isSupported`: whether there is an operation or a library entry for "domain::Name"; null: not asked.
void check(model::Model &model, const std::function<bool(llvm::StringRef)> &isSupported, Diagnostics &diagnostics);

/// Order.cpp: puts nodes behind what they read, in the file's order where it does already. False: a cycle was reported.
bool orderNodes(model::Graph &graph, Diagnostics &diagnostics);

/// Adds the names that `graph` and the graphs nested in it define.
void collectNames(const model::Graph &graph, std::unordered_set<std::string> &names);
/// Adds those that their nodes read and that they give as outputs.
void collectRead(const model::Graph &graph, std::unordered_set<std::string> &read);

/// Names that nodes of `graph` (and graphs nested in it) read and that it does not define itself.
std::vector<std::string> capturedNames(const model::Graph &graph);

} // namespace firn
#endif
