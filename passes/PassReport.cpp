// PassReport: collecting remarks.
#include "passes/PassReport.h"
#include "dialects/firn/Firn.h"

namespace firn {

std::vector<PassRemark> *&passRemarks() {
  static thread_local std::vector<PassRemark> *remarks = nullptr;
  return remarks;
}

void PassReport::rewrite(mlir::Operation *op, llvm::StringRef what) {
  ++count;
  if (left > 0)
    --left;
  if (passRemarks())
    passRemarks()->push_back({name, nodeName(op->getLoc()), what.str(), false});
}

void PassReport::refuse(mlir::Operation *op, llvm::StringRef why) {
  if (passRemarks())
    passRemarks()->push_back({name, nodeName(op->getLoc()), why.str(), true});
}

} // namespace firn
