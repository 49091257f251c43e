// OperatorLibrary: operators that a user brings (--ops), known to importer, inference and folding from then on, and
// their code for compiled models. docs/custom-operators.md says how such a library is made.
#ifndef FIRN_COMPILER_OPERATORS_OPERATORLIBRARY_H
#define FIRN_COMPILER_OPERATORS_OPERATORLIBRARY_H

#include "compiler/Diagnostics.h"
#include "compiler/codegen/cpu/Target.h"

namespace firn {

/// Loads the libraries: shared ones (.so) and static ones (.a, .o), which are linked into a shared one for this
/// process. They stay loaded, and so do their operators. Reports what is wrong with them as options.ops; false then.
bool loadOperatorLibraries(const std::vector<std::string> &paths, Diagnostics &diagnostics);

/// The code for `target` in the static libraries, each whole as one object.
std::optional<std::vector<std::vector<char>>> operatorCode(const std::vector<std::string> &paths,
                                                           const TargetDescription &target, Diagnostics &diagnostics);

} // namespace firn
#endif
