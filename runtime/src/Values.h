// The integer program: dimensions, sizes and counts.
#ifndef FIRN_RUNTIME_VALUES_H
#define FIRN_RUNTIME_VALUES_H

#include "runtime/abi/model.h"

namespace firn::runtime {

/// The result of an instruction of two operands. Saturates, so that a size that overflows stays too large for any
/// buffer; division by zero gives 0.
int64_t applyValue(int32_t op, int64_t a, int64_t b);

/// Evaluates instruction `i` from values below it. `values[i]` of INPUT_DIM and SYMBOL instructions are left alone.
void evaluateValue(const firn_value *program, int64_t *values, int32_t i);

/// Elements of a tensor with these dims; -1 if one is negative or the product does not fit.
int64_t countElements(const int64_t *dims, int32_t rank);
int64_t countElements(const int64_t *values, const int32_t *dims, int32_t rank);

/// Bytes of `elements` (as countElements gives them) of `dtype`; -1 if there is no such number.
int64_t countBytes(int32_t dtype, int64_t elements);

} // namespace firn::runtime
#endif
