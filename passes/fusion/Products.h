// Products: a tree of multiplications and divisions by constants as factors and one number.
#ifndef FIRN_PASSES_FUSION_PRODUCTS_H
#define FIRN_PASSES_FUSION_PRODUCTS_H

#include "passes/Rules.h"

namespace firn {

/// number * factors[0] * factors[1] * ...
struct Product {
  double number = 1;
  llvm::SmallVector<mlir::Value> factors;
  llvm::SmallVector<mlir::Operation *> operations; // the multiplications taken apart, the root last

  bool hasNumber(double expected) const;
  /// Takes the factor `value` out, if it is one.
  bool take(mlir::Value value);
  /// Takes out a factor that `match` accepts.
  bool takeIf(llvm::function_ref<bool(mlir::Value)> match);
};

/// Multiplications behind `root` whose results nobody else reads (but for the root's).
Product productOf(mlir::Value root);

/// Whether a is b within what 16-bit constants of a model are off.
bool isNear(double a, double b);
/// The operand of `op` beside a constant near `number` (a commutative binary operation), null if there is none.
template <typename OpT> mlir::Value besideNumber(mlir::Value value, double number) {
  auto op = value.getDefiningOp<OpT>();
  if (!op)
    return {};
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (auto splat = splatOf(other); splat && isNear(*splat, number) && haveSameType(x, value))
      return x;
  return {};
}

} // namespace firn
#endif
