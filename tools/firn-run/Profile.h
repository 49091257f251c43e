// Where the time of a run goes.
#ifndef FIRN_TOOLS_FIRN_RUN_PROFILE_H
#define FIRN_TOOLS_FIRN_RUN_PROFILE_H

#include <string>
#include <vector>

#include "tools/tensor_io/Tensor.h"

namespace firn::tools {

/// Chrome trace events (chrome://tracing, ui.perfetto.dev) of one run.
std::string chromeTrace(const firn_model *model, const std::vector<firn_step_time> &times);

/// The `most` nodes that take longest, each with its share of the time, GFLOP/s, GB/s, and its share of the roofline of
/// `threads` cores, which is measured.
std::string hottestNodes(const firn_model *model, const std::vector<firn_step_time> &times, size_t most,
                         int32_t threads);

} // namespace firn::tools
#endif
