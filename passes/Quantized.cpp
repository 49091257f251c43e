// Quantized: the readers of constants stored in few bits.
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
  if (!isa<CastOp>(op) || !op->hasOneUse() || !isFloat(getElementTypeOrSelf(op->getResult(0))))
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

static bool isHalf(Type elementType) { return elementType.isF16() || elementType.isBF16(); }

bool widensConstant(Operation *op) {
  auto type = isa<CastOp>(op) ? rankedType(op->getOperand(0)) : RankedTensorType();
  if (!type || !isHalf(type.getElementType()) || !constantOf(op->getOperand(0)) ||
      !getElementTypeOrSelf(op->getResult(0)).isF32())
    return false;
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    bool isRight = isa<MatMulOp, GemmOp>(use.getOwner()) && use.getOperandNumber() == 1;
    bool isPicked = isa<GatherOp>(use.getOwner()) && use.getOperandNumber() == 0;
    return isRight || isPicked || (isa<TransposeOp>(use.getOwner()) && use.get().hasOneUse());
  });
}

static StringRef scaleRefusal(Operation *product, DequantizeLinearOp dequantize) {
  auto type = rankedType(dequantize.getX()), scale = rankedType(dequantize.getScale());
  if (!scale || !constantOf(dequantize.getScale()))
    return "its scale is not known";
  if (!isQuantized(type.getElementType()) || type.getElementTypeBitWidth() != 8)
    return "its elements are no bytes";
  if (scale.getNumElements() == 1)
    return "";
  auto gemm = dyn_cast<GemmOp>(product);
  bool isTransposed = gemm && gemm.getTransB();
  auto axis = int64_t(dequantize.getAxis()); // the accessor is unsigned
  axis += axis < 0 ? type.getRank() : 0;
  if (dequantize.getBlockSize() != 0)
    return type.getRank() == 2 && axis == 0 && !isTransposed && type.getDimSize(1) > 1
               ? ""
               : "its scales are in blocks that do not lie along the product's depth";
  if (axis != (isTransposed ? 0 : type.getRank() - 1))
    return "its scales are not per column";
  return "";
}

StringRef productRefusal(Operation *product, Operation *conversion) {
  Value value = conversion->getResult(0), stored = conversion->getOperand(0);
  if (!isa<MatMulOp, GemmOp>(product) || product->getOperand(1) != value || product->getOperand(0) == value)
    return "it is not the right operand of a product";
  auto type = rankedType(stored);
  if (!constantOf(stored) || !type || type.getRank() < 2)
    return "it is no constant matrix";
  if (auto dequantize = dyn_cast<DequantizeLinearOp>(conversion))
    return scaleRefusal(product, dequantize);
  return isa<CastOp>(conversion) && isHalf(type.getElementType()) && getElementTypeOrSelf(value).isF32()
             ? ""
             : "it is no conversion of small numbers";
}

bool isReadAsStored(Operation *op) {
  return isa<DequantizeLinearOp, CastOp>(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) { return productRefusal(user, op).empty(); });
}

} // namespace firn
