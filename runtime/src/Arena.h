// Places buffers in one arena so that those alive at the same step do not overlap.
#ifndef FIRN_RUNTIME_ARENA_H
#define FIRN_RUNTIME_ARENA_H

#include <stdint.h>

namespace firn::runtime {

struct Placement {
  int64_t bytes; // >= 0
  int32_t firstStep;
  int32_t lastStep;
  int64_t offset; // result, a multiple of 64
};

/// Greedy best fit: larger buffers first, each into the smallest hole that its neighbours in time leave. Deterministic.
/// `order` has room for `count` indices. Returns the arena's bytes.
int64_t placeBuffers(Placement *buffers, int32_t count, int32_t *order);

} // namespace firn::runtime
#endif
