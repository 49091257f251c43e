// ShrinkConstants: a large constant of one number is written as that number and a shape.
//
// In:      firn ops of a graph that stays one.     Out: firn.constant_of_shape in place of such constants.
// Keeps:   every element, bit for bit.
// Leaves:  constants of less than 16 KiB, types that the operator does not make, defaults of inputs. Constant folding
//          makes constants of them again, so this is the last pass.
//   firn.constant {value = dense<1.0> : tensor<64x64xf32>}     ==>   firn.constant_of_shape [64, 64] {value = [1.0]}
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SHRINKCONSTANTS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t fewBytes = 16384; // one more node is not worth less

/// The bytes of the one element that all elements of `constant` are; nothing for others.
std::optional<ArrayRef<char>> repeated(ElementsAttr constant, int64_t size) {
  // Where they were made, their bytes were looked at: here they may lie in a file.
  auto bytes = constantBytes(constant);
  if (!bytes || !bytes->isSplat || int64_t(bytes->bytes.size()) < size)
    return std::nullopt;
  return bytes->bytes.take_front(size);
}

struct ShrinkConstants : impl::ShrinkConstantsBase<ShrinkConstants> {
  using ShrinkConstantsBase::ShrinkConstantsBase;

  void runOnOperation() override {
    PassReport report("shrink-constants", limit);
    SmallVector<ConstantOp> constants;
    getOperation()->walk([&](ConstantOp op) { constants.push_back(op); });
    for (ConstantOp op : constants)
      if (!report.done())
        shrink(op, report);
  }

  void shrink(ConstantOp op, PassReport &report) {
    auto type = rankedType(op.getResult());
    if (!type || isa<UnknownType>(type.getElementType()))
      return;
    int32_t dtype = dtypeOf(type.getElementType());
    int64_t bits = firn_dtype_bits(dtype);
    bool isMade = isa<IntegerType>(type.getElementType()) || type.getElementType().isF16() ||
                  type.getElementType().isF32() || type.getElementType().isF64();
    if (!isMade || bits < 8 || type.getNumElements() * (bits / 8) < fewBytes)
      return;
    auto element = repeated(constantOf(op.getResult()), bits / 8);
    if (!element)
      return;
    OpBuilder builder(op);
    Value shape = makeIntegers(builder, op.getLoc(), type.getShape());
    auto number = constantFromBytes(RankedTensorType::get({1}, type.getElementType()), *element);
    auto filled = builder.create<ConstantOfShapeOp>(op.getLoc(), type, shape, number);
    op.replaceAllUsesWith(filled.getResult());
    report.rewrite(filled, "one number and a shape");
    op.erase();
  }
};

} // namespace
} // namespace firn
