// The kernel dialect: registration, builders and verifiers.
#include "dialects/kernel/Kernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace firn::kernel;

#include "dialects/kernel/KernelOpsDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/KernelOpsTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/kernel/KernelOpsTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/kernel/KernelOps.cpp.inc"
      >();
}

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, int64_t buffers, int64_t dims,
                   bool parallel) {
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("buffer_count", builder.getI64IntegerAttr(buffers));
  state.addAttribute("dim_count", builder.getI64IntegerAttr(dims));
  state.addAttribute("scratch_bytes", builder.getI64IntegerAttr(0));
  state.addAttribute("parallel", builder.getBoolAttr(parallel));
  Block *body = new Block;
  state.addRegion()->push_back(body);
  Type buffer = BufferType::get(builder.getContext());
  for (int64_t i = 0; i < buffers; ++i)
    body->addArgument(buffer, state.location);
  for (int64_t i = 0; i < dims; ++i)
    body->addArgument(builder.getIndexType(), state.location);
  body->addArgument(buffer, state.location);
  body->addArgument(builder.getIndexType(), state.location);
  body->addArgument(builder.getIndexType(), state.location);
}

LogicalResult FuncOp::verify() {
  int64_t expected = getBufferCount() + getDimCount() + 3;
  if (getBody().getNumArguments() != expected)
    return emitOpError("expected ") << expected << " block arguments (buffers, dims, scratch, worker, workers), found "
                                    << getBody().getNumArguments();
  return success();
}
