// Recurrent layers.
#include "compiler/codegen/cpu/Contraction.h"

using namespace mlir;

namespace firn {

LogicalResult emitSequence(FusedOp, kernel::FuncOp, const TargetDescription &, std::string &whyNot) {
  whyNot = "recurrent layers have no generated code";
  return failure();
}

} // namespace firn
