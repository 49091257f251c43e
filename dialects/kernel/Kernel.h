// The kernel dialect: the inside of a kernel.
#ifndef FIRN_DIALECTS_KERNEL_KERNEL_H
#define FIRN_DIALECTS_KERNEL_KERNEL_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/kernel/KernelOpsDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/KernelOpsTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.h.inc"

#endif
