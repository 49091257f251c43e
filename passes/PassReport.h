// PassReport: what a pass did and what it left, for `--report` and for tests.
//
// Rewrites and refusals are counted per module in the discardable attribute `firn.report`, since packaged LLVM compiles
// pass statistics away.
#ifndef FIRN_PASSES_PASSREPORT_H
#define FIRN_PASSES_PASSREPORT_H

#include "mlir/IR/Operation.h"
#include <string>
#include <vector>

namespace firn {

struct PassRemark {
  std::string pass;
  std::string node;
  std::string text; // why it stayed, or what it became
  bool isRefusal;
};

/// Where remarks go: one list per thread of compilation, set by the driver; none is kept where it is null.
std::vector<PassRemark> *&passRemarks();

class PassReport {
public:
  /// `limit`: rewrites allowed, -1 for any number.
  PassReport(llvm::StringRef pass, int64_t limit = -1) : name(pass), left(limit) {}
  /// Whether the limit is reached.
  bool done() const { return left == 0; }
  /// Counts a rewrite of `op`.
  void rewrite(mlir::Operation *op, llvm::StringRef what = "");
  /// Notes why `op` stays as it is.
  void refuse(mlir::Operation *op, llvm::StringRef why);
  int64_t rewrites() const { return count; }

private:
  std::string name;
  int64_t left, count = 0;
};

} // namespace firn
#endif
