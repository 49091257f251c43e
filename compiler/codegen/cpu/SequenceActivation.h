// The activations of recurrent layers, in registers.
#ifndef FIRN_COMPILER_CODEGEN_CPU_SEQUENCEACTIVATION_H
#define FIRN_COMPILER_CODEGEN_CPU_SEQUENCEACTIVATION_H

#include "compiler/codegen/cpu/Epilogue.h"

namespace firn {

/// One activation: `name` in lower case, what enters is clipped to [-clip, clip] where there is a clip.
struct GateActivation {
  std::string name;
  double alpha = 0, beta = 0;
  std::optional<double> clip = {};
};

/// The activations of an lstm, gru or rnn, `defaults` where the operation names none. Nothing, with the reason, if its
/// directions differ or it names an unknown one.
std::optional<llvm::SmallVector<GateActivation>>
readActivations(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> defaults, int64_t directions, std::string &whyNot);

/// activation(x) on registers of f32; NaN stays.
mlir::Value applyActivation(KernelContext &context, const GateActivation &activation, mlir::Value x);

} // namespace firn
#endif
