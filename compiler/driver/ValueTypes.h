// ValueTypes: what inference finds of the values of a model, by name.
#ifndef FIRN_COMPILER_DRIVER_VALUETYPES_H
#define FIRN_COMPILER_DRIVER_VALUETYPES_H

#include "compiler/driver/Options.h"
#include "compiler/import/Model.h"

namespace firn {

/// Types of the values of the main graph of options.input as it is in the file (without its edits), as far as they can
/// be told. Problems of the model are not reported: only a part of it may be wanted.
std::map<std::string, model::Type> inferredTypes(const SourceOptions &options);

} // namespace firn
#endif
