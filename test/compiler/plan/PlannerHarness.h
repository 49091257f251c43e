// Plans a module given as text, for PlannerTest. No MLIR here, so that the test needs no LLVM flags.
#ifndef FIRN_TEST_COMPILER_PLAN_PLANNERHARNESS_H
#define FIRN_TEST_COMPILER_PLAN_PLANNERHARNESS_H

#include <cstdint>
#include <string>
#include <vector>

struct PlannedBuffer {
  int32_t kind;
  int64_t offset, bytes; // bytes: -1 where a dimension is not constant
  int32_t firstStep, lastStep;
};
struct PlannedStep {
  int32_t kind;
  std::vector<int32_t> buffers;
  int32_t begin, middle, end;
  int32_t operation; // on lists
};
struct Planned {
  std::vector<PlannedBuffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<int32_t> outputs; // buffers of the outputs
  std::vector<std::string> constraints;
  int64_t arenaBytes, weightBytes;
};

/// `text`: MLIR with one func.func. All fused operations count as kernels that allow their first operand to be
/// overwritten by their first result.
Planned plan(const std::string &text);

#endif
