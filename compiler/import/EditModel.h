// EditModel: a user's edits (Edit.h) applied to a model whose functions are inlined, before it is checked.
#ifndef FIRN_COMPILER_IMPORT_EDITMODEL_H
#define FIRN_COMPILER_IMPORT_EDITMODEL_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Edit.h"
#include "compiler/import/Model.h"
#include <functional>

namespace firn {

/// The type that inference finds for values of the main graph; Unknown where it finds none. Asked only where the file
/// itself does not say the whole type.
using ValueTypes = std::function<std::map<std::string, model::Type>()>;

/// Extract.cpp: keeps what computes `outputs` from `inputs`. Inputs may be any values of the main graph, outputs too;
/// either may be empty: then the model's own hold. Reports (options.cut) names that are no value, each input of the
/// model that the part needs beyond those given, and inputs without a type; as a warning, inputs that nothing reads.
bool extract(model::Model &model, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
             const ValueTypes &types, Diagnostics &diagnostics);

/// Rename.cpp: renames values of all graphs, all at once, so that two may swap their names. Reports (options.rename)
/// names that are no value and new names that are taken.
bool renameValues(model::Model &model, const ModelEdits::Renaming &renaming, Diagnostics &diagnostics);

/// Rename.cpp: the same for symbolic dimensions, also inside of expressions ("2*seq+1").
bool renameDims(model::Model &model, const ModelEdits::Renaming &renaming, Diagnostics &diagnostics);

/// All of it, in this order.
bool editModel(model::Model &model, const ModelEdits &edits, const ValueTypes &types, Diagnostics &diagnostics);

/// "did you mean 'a', 'b'?": the known names nearest to `name`, at most three; "" where none is near.
std::string suggestNames(const std::string &name, const std::vector<std::string> &known);

} // namespace firn
#endif
