// Comparison of tensors, and their summary for people.
#ifndef FIRN_TOOLS_TENSOR_IO_COMPARE_H
#define FIRN_TOOLS_TENSOR_IO_COMPARE_H

#include <string>

#include "tools/tensor_io/Tensor.h"

namespace firn::tools {

/// Why `got` is not `wanted`, or "". Types and shapes must be equal. Floats: |got - wanted| <= atol + rtol * |wanted|,
/// NaN equals NaN, an infinity equals itself; all else exactly.
std::string difference(const Tensor &got, const Tensor &wanted, double rtol, double atol);

/// "f32[1,10]  min -1.5  max 3  mean 0.2  [0.1, 0.2, 0.3, ...]".
std::string summary(const Tensor &tensor);

} // namespace firn::tools
#endif
