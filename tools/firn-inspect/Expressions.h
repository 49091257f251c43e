// Sizes of a model with dynamic dimensions, as formulas over the dimensions' names.
#ifndef FIRN_TOOLS_FIRN_INSPECT_EXPRESSIONS_H
#define FIRN_TOOLS_FIRN_INSPECT_EXPRESSIONS_H

#include <string>
#include <vector>

#include "runtime/abi/model.h"

namespace firn::tools {

/// The most bytes of the arena's buffers that are alive at once, such as "max(256*batch, 64*batch*sequence + 128)". The
/// arena is at least that large; alignment to 64 bytes and gaps come on top.
std::string arenaExpression(const firn_model_desc &model);

/// The largest buffers of all rows (firn_model_arena_rows) beside one another, aligned: the arena is never larger.
std::string arenaLimit(const firn_model_desc &model, const std::vector<int32_t> &rowOf);

} // namespace firn::tools
#endif
