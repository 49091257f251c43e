// Products: taking multiplications apart.
#include "passes/fusion/Products.h"

#include <cmath>

using namespace mlir;

namespace firn {

bool isNear(double a, double b) { return std::fabs(a - b) <= 3e-4 * std::fabs(b); }

bool Product::hasNumber(double expected) const { return isNear(number, expected); }

bool Product::take(Value value) {
  auto at = llvm::find(factors, value);
  if (at == factors.end())
    return false;
  factors.erase(at);
  return true;
}

bool Product::takeIf(llvm::function_ref<bool(Value)> match) {
  for (auto *at = factors.begin(); at != factors.end(); ++at)
    if (match(*at)) {
      factors.erase(at);
      return true;
    }
  return false;
}

static void collect(Value value, Value root, Product &product, unsigned depth) {
  Operation *op = value.getDefiningOp();
  bool isInner = value == root || value.hasOneUse();
  if (op && isInner && depth < 8 && haveSameType(value, root)) {
    if (auto multiply = dyn_cast<MulOp>(op)) {
      // Squares stay whole where their operand is no tree itself: both factors are one value.
      for (Value operand : op->getOperands()) {
        if (auto number = splatOf(operand))
          product.number *= *number;
        else
          collect(operand, root, product, depth + 1);
      }
      product.operations.push_back(op);
      return;
    }
    if (auto divide = dyn_cast<DivOp>(op))
      if (auto number = splatOf(divide.getB()); number && *number != 0) {
        product.number /= *number;
        collect(divide.getA(), root, product, depth + 1);
        product.operations.push_back(op);
        return;
      }
    if (auto power = dyn_cast<PowOp>(op))
      if (auto number = splatOf(power.getB()); number && (*number == 2 || *number == 3)) {
        product.factors.append(size_t(*number), power.getA());
        product.operations.push_back(op);
        return;
      }
  }
  product.factors.push_back(value);
}

Product productOf(Value root) {
  Product product;
  collect(root, root, product, 0);
  return product;
}

} // namespace firn
