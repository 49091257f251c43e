// PassReport: what a pass did and what it left, for `--report` and for tests.
//
// Packaged LLVM compiles pass statistics away, hence our own.
#ifndef FIRN_PASSES_PASSREPORT_H
#define FIRN_PASSES_PASSREPORT_H

#include "mlir/IR/Operation.h"
#include <string>
#include <vector>

namespace firn {

struct PassRemark {
  std::string pass; // as the command line knows it: "fold-constants"
  std::string node;
  std::string text; // why it stayed, or what it became
  bool isRefusal;
};

/// Where remarks go: one list per thread of compilation, set by the driver; none is kept where it is null.
std::vector<PassRemark> *&passRemarks();

/// Rewrites that the passes of this thread may still do, -1 for any number: finds the rewrite that changes a result.
int64_t &rewritesLeft();

class PassReport {
public:
  /// `limit`: rewrites allowed, -1 for any number.
  PassReport(llvm::StringRef pass, int64_t limit = -1) : name(pass), left(limit) {}
  /// Whether the limit, or that of all passes, is reached.
  bool done() const { return left == 0 || rewritesLeft() == 0; }
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
