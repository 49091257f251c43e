// ConvertFloats: a model whose floats are of 32 bits computes in 16.
//
// Operators take float16 or bfloat16 where their specification allows it, and casts stand where the type changes.
// Operators stay in f32 that lose more than the rounding of their results: those whose sums, powers or exponentials
// leave the range soon (keptInF32), those that the user names, and what reads a number that the narrow type cannot
// hold, up to the next matrix product or normalization: the -1e9 of a mask, the 1e-12 of a variance.
#ifndef FIRN_COMPILER_EXPORT_ONNX_CONVERTFLOATS_H
#define FIRN_COMPILER_EXPORT_ONNX_CONVERTFLOATS_H

#include "compiler/export/Dimensions.h"
#include "compiler/export/Export.h"
#include "compiler/import/Model.h"

namespace firn {

/// Converts what `model`, written for `opset` (raised where a cast needs more), computes. `types`: of values by name,
/// kept up to date; `names`: those taken. Nested graphs keep the types of what goes in and out of them.
void convertFloats(model::Model &model, const FloatConversion &conversion, int64_t &opset,
                   std::map<std::string, model::Type> &types, UniqueNames &names);

} // namespace firn
#endif
