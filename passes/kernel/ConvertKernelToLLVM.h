// The way of kernels to the LLVM dialect.
#ifndef FIRN_PASSES_KERNEL_CONVERTKERNELTOLLVM_H
#define FIRN_PASSES_KERNEL_CONVERTKERNELTOLLVM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace firn {

/// Every kernel.func of `module` becomes an llvm.func `void(const firn_kernel_args *, int32_t, int32_t)`, the
/// operations in it (scf, cf, arith, math, vector, index, kernel) become LLVM's. Loads and stores carry alias scopes by
/// buffer. Safe to run on several modules of one context at a time.
mlir::LogicalResult convertKernelsToLLVM(mlir::ModuleOp module);

/// What the target can do that expansions depend on.
struct MathOptions {
  bool hasFma = false;    // else fma is a multiplication and an addition: no call of libm's fmaf
  bool hasAvx512 = false; // vscalefps
};

/// Replaces math operations on f32 (scalars and vectors) that LLVM has no instruction for by polynomials. The bounds
/// are stated in ExpandMath.cpp.
void expandMath(mlir::ModuleOp module, const MathOptions &options);

/// The passes `convert-kernel-to-llvm` and `expand-math`, for firn-mlir-opt.
void registerKernelPasses();

} // namespace firn
#endif
