// Places buffers in one arena so that those alive at the same step do not overlap.
#ifndef FIRN_RUNTIME_ARENA_H
#define FIRN_RUNTIME_ARENA_H

#include <stdint.h>

#include "runtime/abi/model.h"

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

/// Buffers of the arena that never live at once, so that they may begin at one place.
struct Row {
  int64_t bytes;    // of the largest
  int32_t lastStep; // that needs one of them
  int32_t buffer;   // the last of them
};

/// Shares the ARENA buffers of a table out to rows, by their lifetimes alone, so that a formula can say what they take
/// for any sizes; buffers of equal dims come together. `order` and `rows` have room for all ARENA buffers, `rowOf` for
/// all buffers: -1 for others. Returns the number of rows.
int32_t assignRows(const firn_buffer *buffers, int32_t count, int32_t *order, Row *rows, int32_t *rowOf);

} // namespace firn::runtime
#endif
