// Evaluate: a model run by the reference kernels, operation by operation: the meaning that compiled code is held to.
#ifndef FIRN_COMPILER_DRIVER_EVALUATE_H
#define FIRN_COMPILER_DRIVER_EVALUATE_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/fold/ReferenceCall.h"
#include <functional>

namespace firn {

constexpr int64_t mostTensorBytes = int64_t(1) << 31; // in runs on made-up inputs

/// Is shown the results of each operation of the main graph.
using Observer = std::function<void(mlir::Operation *, llvm::ArrayRef<ReferenceTensor>)>;

/// Runs @main of a module as it was imported (no fused operations). Nothing, with the node and reason in `whyNot`,
/// where a kernel refuses, is missing, or a tensor would be over `maxBytes`.
std::optional<std::vector<ReferenceTensor>> evaluateModule(mlir::ModuleOp module,
                                                           const std::vector<ReferenceTensor> &inputs, int64_t maxBytes,
                                                           std::string &whyNot, const Observer &observe = nullptr);

} // namespace firn
#endif
