// All reference kernels by name, for the compiler and for tests. Artifacts link single operators by symbol instead.
#ifndef FIRN_KERNELS_TABLE_H
#define FIRN_KERNELS_TABLE_H

#include <string>
#include <string_view>

#include "runtime/abi/custom.h"
#include "runtime/kernels/Compose.h"

namespace firn::kernels {

/// The operator called `qualified` ("ai.onnx::Conv"), NULL where there is none.
const firn_operator *find(std::string_view qualified);

/// How the operator is composed of others, NULL where it is not.
const Composite *findComposite(std::string_view qualified);

/// Every operator in the order of its name, and how many there are.
const firn_operator *const *operators(size_t *count);

/// Adds an operator that a user brought (compiler/OperatorLibrary.h); find() knows it from then on, beside the others.
/// False, and nothing happens, where the name is taken. `added` must stay.
bool addCustom(const firn_custom_operator &added);
/// What the user's library says of the operator; NULL where it is none of a user's.
const firn_custom_operator *findCustom(std::string_view qualified);

/// The symbol that defines `qualified` in the archives: "firn_op_ai_onnx_Conv".
std::string symbolName(std::string_view qualified);

} // namespace firn::kernels
#endif
