// Selections: NonZero and Compress.
#ifndef FIRN_COMPILER_CODEGEN_CPU_SELECT_H
#define FIRN_COMPILER_CODEGEN_CPU_SELECT_H

#include "compiler/codegen/cpu/LoneOperation.h"

namespace firn {

void emitNonZero(KernelContext &context, const LoneOperation &lone);

/// Why no code is generated, or "".
std::string compressRefusal(const LoneOperation &lone);
void emitCompress(KernelContext &context, const LoneOperation &lone);

} // namespace firn
#endif
