// Lower: nodes get the form that an older opset has.
//
// The collector writes the newest form of every operator. A node whose form the opset wanted does not have crosses the
// changes between them downwards: inputs that were attributes become attributes again, attributes that say what was
// always so are left out, and what needs no more than neighbours that the older opset has is spelt out.
#ifndef FIRN_COMPILER_EXPORT_ONNX_LOWER_H
#define FIRN_COMPILER_EXPORT_ONNX_LOWER_H

#include "compiler/Diagnostics.h"
#include "compiler/export/Dimensions.h"
#include "compiler/import/Model.h"

namespace firn {

/// Writes all nodes of ai.onnx in `model` in forms of `opset`, which it declares from then on. `types`: what is known
/// of the types of values, by name; `names`: those taken. Reports `export.opset` for each node that has no such form;
/// false then.
bool lowerModel(model::Model &model, int64_t opset, const std::map<std::string, model::Type> &types, UniqueNames &names,
                Diagnostics &diagnostics);

} // namespace firn
#endif
