// All reference kernels by name, for the compiler and for tests. Artifacts link single operators by symbol instead.
#ifndef FIRN_KERNELS_TABLE_H
#define FIRN_KERNELS_TABLE_H

#include <string>
#include <string_view>

#include "runtime/abi/reference.h"

namespace firn::kernels {

/// The operator called `qualified` ("ai.onnx::Conv"), NULL where there is none.
const firn_operator *find(std::string_view qualified);

/// Every operator in the order of its name, and how many there are.
const firn_operator *const *operators(size_t *count);

/// The symbol that defines `qualified` in the archives: "firn_op_ai_onnx_Conv".
std::string symbolName(std::string_view qualified);

} // namespace firn::kernels
#endif
