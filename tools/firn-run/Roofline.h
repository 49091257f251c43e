// What this machine could do at most, measured in a few milliseconds, so that a profile can say how near a step came.
#ifndef FIRN_TOOLS_FIRN_RUN_ROOFLINE_H
#define FIRN_TOOLS_FIRN_RUN_ROOFLINE_H

#include <cstdint>

namespace firn::tools {

struct Roofline {
  double gigaFlops; // f32 multiply-adds of `threads` cores, each two operations
  double gigaBytes; // read from memory beyond the caches by `threads` cores, per second
};

Roofline measureRoofline(int32_t threads);

/// The share of the attainable rate, of 0 to 1 (more where data came from a cache), of work with these operations and
/// bytes; negative if both are unknown.
double shareOf(const Roofline &roofline, int64_t flops, int64_t bytes, int64_t nanos);

} // namespace firn::tools
#endif
