// Failure: firn.fail in a branch, written as nodes that fail at run time, and only then.
#ifndef FIRN_COMPILER_EXPORT_FAILURE_H
#define FIRN_COMPILER_EXPORT_FAILURE_H

#include "compiler/export/Dimensions.h"
#include "dialects/firn/Firn.h"

namespace firn {

/// Nodes that define `outputs` (of op, in order) and fail. `condition`: the name of the value that the branch hangs on.
void emitFailure(FailOp op, IfOp branch, const std::string &node, llvm::ArrayRef<std::string> outputs,
                 const std::string &condition, UniqueNames &names, model::Graph &graph);

} // namespace firn
#endif
