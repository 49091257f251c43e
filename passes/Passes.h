// Constructors of all passes.
#ifndef FIRN_PASSES_PASSES_H
#define FIRN_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace firn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace firn
#endif
