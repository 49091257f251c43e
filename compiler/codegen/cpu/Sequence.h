// Recurrent layers of a fused body.
#ifndef FIRN_COMPILER_CODEGEN_CPU_SEQUENCE_H
#define FIRN_COMPILER_CODEGEN_CPU_SEQUENCE_H

#include "compiler/codegen/cpu/Contraction.h"

namespace firn {

/// The packings of the constant W and R of an LSTM, GRU or RNN: panels hold all gates of as many units as a vector has
/// lanes, gate by gate.
std::vector<PackedWeight> planSequencePacking(FusedOp fused, mlir::Operation *op, const TargetDescription &target);

} // namespace firn
#endif
