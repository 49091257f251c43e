// Quantized: the readers of constants stored as small integers.
#include "passes/Quantized.h"

using namespace mlir;

namespace firn {

bool isQuantized(Type elementType) {
  auto integer = dyn_cast<IntegerType>(elementType);
  return integer && integer.getWidth() > 1 && integer.getWidth() <= 8;
}

/// A constant, or an operation on constants that folding has yet to compute.
static bool isCalculable(Value value) {
  Operation *op = value.getDefiningOp();
  return op &&
         (constantOf(value) || llvm::all_of(op->getOperands(), [](Value operand) { return constantOf(operand); }));
}

bool dequantizesConstant(Operation *op) {
  auto type = op->getNumOperands() ? rankedType(op->getOperand(0)) : RankedTensorType();
  if (!type || !isQuantized(type.getElementType()) || !constantOf(op->getOperand(0)))
    return false;
  if (isa<DequantizeLinearOp>(op))
    return true;
  if (!isa<CastOp>(op) || !op->hasOneUse() || !isFloat(rankedType(op->getResult(0)).getElementType()))
    return false;
  auto user = [](Value value) { return *value.getUsers().begin(); };
  Value value = op->getResult(0);
  if (auto sub = dyn_cast<SubOp>(user(value)); sub && sub.getA() == value && isCalculable(sub.getB())) {
    value = sub.getResult();
    if (!value.hasOneUse())
      return false;
  }
  auto mul = dyn_cast<MulOp>(user(value));
  return mul && isCalculable(mul.getA() == value ? mul.getB() : mul.getA());
}

StringRef productRefusal(Operation *product, DequantizeLinearOp dequantize) {
  if (!isa<MatMulOp, GemmOp>(product) || product->getOperand(1) != dequantize.getResult() ||
      product->getOperand(0) == dequantize.getResult())
    return "it is not the right operand of a product";
  if (!constantOf(dequantize.getX()))
    return "it is no constant";
  auto type = rankedType(dequantize.getX()), scale = rankedType(dequantize.getScale());
  if (!type || !scale || !type.hasStaticShape() || type.getRank() < 2 || !constantOf(dequantize.getScale()))
    return "its shape or scale is not known";
  if (!isQuantized(type.getElementType()) || type.getElementTypeBitWidth() != 8)
    return "its elements are no bytes";
  if (scale.getNumElements() == 1)
    return "";
  auto gemm = dyn_cast<GemmOp>(product);
  bool isTransposed = gemm && gemm.getTransB();
  int64_t axis = dequantize.getAxis() < 0 ? dequantize.getAxis() + type.getRank() : dequantize.getAxis();
  if (dequantize.getBlockSize() != 0)
    return type.getRank() == 2 && axis == 0 && !isTransposed && type.getDimSize(1) > 1
               ? ""
               : "its scales are in blocks that do not lie along the product's depth";
  if (axis != (isTransposed ? 0 : type.getRank() - 1))
    return "its scales are not per column";
  return "";
}

bool isReadQuantized(DequantizeLinearOp dequantize) {
  return llvm::all_of(dequantize->getUsers(),
                      [&](Operation *user) { return productRefusal(user, dequantize).empty(); });
}

} // namespace firn
