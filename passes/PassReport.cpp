// PassReport: collecting remarks.
#include "passes/PassReport.h"
#include "dialects/firn/Firn.h"

namespace firn {

std::vector<PassRemark> *&passRemarks() {
  static thread_local std::vector<PassRemark> *remarks = nullptr;
  return remarks;
}

int64_t &rewritesLeft() {
  static thread_local int64_t left = -1;
  return left;
}

void PassReport::rewrite(mlir::Operation *op, llvm::StringRef what) {
  ++count;
  if (left > 0)
    --left;
  if (rewritesLeft() > 0)
    --rewritesLeft();
  if (passRemarks())
    passRemarks()->push_back({name, nodeName(op->getLoc()), what.str(), false});
}

void PassReport::refuse(mlir::Operation *op, llvm::StringRef why) {
  if (passRemarks())
    passRemarks()->push_back({name, nodeName(op->getLoc()), why.str(), true});
}

} // namespace firn
