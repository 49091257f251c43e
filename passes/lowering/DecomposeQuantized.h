// DecomposeQuantized: the rules of Decompose that take quantised layers apart.
#ifndef FIRN_PASSES_LOWERING_DECOMPOSEQUANTIZED_H
#define FIRN_PASSES_LOWERING_DECOMPOSEQUANTIZED_H

#include "passes/Rules.h"

namespace firn {

/// q_linear_matmul, q_linear_conv and products of dequantised operands become products of integers and elementwise
/// operations behind them; dynamic_quantize_linear becomes reductions and quantize_linear.
void addQuantizedRules(RuleSet &rules);

} // namespace firn
#endif
