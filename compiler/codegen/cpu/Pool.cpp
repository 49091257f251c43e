// Pooling over windows.
#include "compiler/codegen/cpu/Contraction.h"

using namespace mlir;

namespace firn {

LogicalResult emitPool(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot) {
  whyNot = "pools have no generated code";
  return failure();
}

} // namespace firn
