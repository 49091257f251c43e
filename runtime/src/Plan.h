// Sizes and places of all buffers for given input dimensions.
#ifndef FIRN_RUNTIME_PLAN_H
#define FIRN_RUNTIME_PLAN_H

#include "runtime/src/Arena.h"
#include "runtime/src/Model.h"

namespace firn::runtime {

/// Arrays over the model's tables, in memory of whoever owns the plan.
struct Plan {
  int64_t *values;
  int64_t *bytes;   // per buffer; -1 while it is late
  int64_t *offsets; // per buffer, those of kind ARENA
  Placement *placements;
  int32_t *order;
  Row *rows; // of an arena whose sizes depend on the inputs
  int32_t *rowOf;
  int32_t rowCount;   // 0: not assigned yet
  int64_t *inputDims; // FIRN_TENSOR_MAX_RANK per input: those that the plan is for
  int64_t arenaBytes;
  bool isReady;

  /// Bytes of the arrays for this model.
  static size_t tableBytes(const firn_model &model);
  /// Lays the arrays out in zeroed memory; returns what follows them.
  char *layOut(const firn_model &model, char *memory);
};

/// Whether an input that may be left out was.
inline bool isAbsent(const firn_tensor &tensor) { return tensor.dtype == FIRN_DTYPE_NONE; }

/// Checks presence, dtype and rank of every input, and its data if `withData`.
firn_status checkInputTypes(const firn_model &model, const firn_tensor *inputs, bool withData, firn_error *error);

/// Whether the plan is already for these inputs' dims (their types have been checked).
bool isPlannedFor(const Plan &plan, const firn_model &model, const firn_tensor *inputs);

/// Evaluates all values that do not depend on data, checks dimensions and constraints, sizes and places the buffers.
firn_status makePlan(Plan &plan, const firn_model &model, const firn_tensor *inputs, firn_error *error);

} // namespace firn::runtime
#endif
