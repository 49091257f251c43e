// Operations on lists that the executor does itself, and whether it may do them in place.
#ifndef FIRN_COMPILER_PLAN_LISTS_H
#define FIRN_COMPILER_PLAN_LISTS_H

#include "dialects/firn/Firn.h"

namespace firn {

/// The FIRN_LIST_ operation (runtime/abi/model.h) that `op` is; nothing for all others.
std::optional<int32_t> listOperation(mlir::Operation *op);
/// Buffers that it reads (of MAKE: any number).
size_t listInputs(int32_t operation);
/// "sequence_insert", for messages and profiles.
const char *listOperationName(int32_t operation);

/// Whether anything that runs behind `op`, or inside of it, reads `value`: behind it in its block and in those around
/// it, or in the next iteration of a loop.
bool isReadAfter(mlir::Value value, mlir::Operation *op);

} // namespace firn
#endif
