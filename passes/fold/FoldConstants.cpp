// FoldConstants: compute operations on constants with the reference kernels.
//
// In:      inferred types.                     Out: the results of such operations are firn.constant.
// Keeps:   every value bit for bit (it is the reference kernel's); random operators and those with side effects.
// Leaves:  an operation where refusal() gives a reason.
#include "dialects/firn/Inference.h"
#include "passes/PassReport.h"
#include "passes/Passes.h"
#include "passes/Quantized.h"
#include "passes/fold/ReferenceCall.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_FOLDCONSTANTS
#include "passes/Passes.h.inc"

namespace {
bool isRandom(StringRef name) {
  return name.contains("Random") || name == "ai.onnx::Bernoulli" || name == "ai.onnx::Multinomial" ||
         name == "ai.onnx::Dropout";
}

int64_t byteSize(RankedTensorType type) {
  return firn_dtype_bytes(dtypeOf(type.getElementType()), type.hasStaticShape() ? type.getNumElements() : 0);
}

/// Whether a layer that reads `op`'s result multiplies it with what is quantised too: it can become one of integers.
bool isWeightOfIntegers(Operation *op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return isa<ConvOp, MatMulOp, GemmOp>(user) && user->getOperand(1) == op->getResult(0) &&
           user->getOperand(0).getDefiningOp<DequantizeLinearOp>();
  });
}
/// Whether a layer that reads `op`'s result takes no integers.
bool isWeightOfConvolution(Operation *op) {
  return llvm::any_of(op->getUsers(), llvm::IsaPred<ConvOp, ConvTransposeOp>);
}

/// Whether integers of at most 8 bits and 16-bit floats stay what they are: kernels convert them as they read.
bool staysQuantized(Operation *op, StringRef which) {
  if (which != "none" && widensConstant(op))
    return which == "all" || isReadAsStored(op);
  if (which == "none" || !dequantizesConstant(op))
    return false;
  if (which == "all")
    return isWeightOfIntegers(op) || !isWeightOfConvolution(op);
  return isa<DequantizeLinearOp>(op) && isReadAsStored(op);
}

constexpr int64_t fewBytes = 4096; // not worth a conversion at every run

/// Why `op` is not computed now, or "" if it may be. Operations on values that are not constant are no candidates.
std::string refusal(Operation *op, int64_t maxGrowth, StringRef quantized) {
  if (isRandom(cast<Operator>(op).operatorName()))
    return "it is random";
  if (!referenceOperator(op))
    return "there is no reference kernel";
  if (op->hasAttr(opaqueAttribute))
    return "its library says that it has state";
  int64_t growth = 0;
  for (Value result : op->getResults())
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      growth += byteSize(type);
  for (Value operand : op->getOperands())
    if (ElementsAttr constant = constantOf(operand); constant && operand.hasOneUse())
      if (auto bytes = constantBytes(constant))
        growth -= bytes->bytes.size();
  bool isWorthwhile = growth > fewBytes || (quantized == "all" && isWeightOfIntegers(op));
  if (isWorthwhile && staysQuantized(op, quantized))
    return "kept as it is stored: would add " + std::to_string(growth) + " bytes";
  // Where no kernel takes the integers, a conversion at every run costs more than the bytes.
  bool isLast = quantized != "all" && dequantizesConstant(op);
  if (growth > maxGrowth && !isLast)
    return "kept: would add " + std::to_string(growth) + " bytes";
  return "";
}

struct FoldConstants : impl::FoldConstantsBase<FoldConstants> {
  using FoldConstantsBase::FoldConstantsBase;

  void runOnOperation() override {
    PassReport report("fold-constants", limit);
    SmallVector<Operation *> candidates;
    getOperation().walk([&](Operation *op) {
      if (isa<Operator>(op) && !isa<ConstantOp, IfOp, LoopOp>(op) && op->getNumResults() > 0)
        candidates.push_back(op);
    });
    for (Operation *op : candidates)
      if (!report.done())
        fold(op, report);
  }

  void fold(Operation *op, PassReport &report) {
    SmallVector<ElementsAttr> operands;
    for (Value operand : op->getOperands()) {
      ElementsAttr constant = constantOf(operand);
      if (!constant && !isAbsent(operand))
        return;
      operands.push_back(constant);
    }
    if (std::string why = refusal(op, maxGrowth, quantized); !why.empty()) {
      if (!isa<CastOp>(op) || quantized != "all") // else a step of a conversion that is still to be recognised
        report.refuse(op, why);
      return;
    }
    std::string whyNot;
    auto values = evaluate(op, operands, maxBytes, whyNot);
    if (!values)
      return report.refuse(op, whyNot);
    OpBuilder builder(op);
    for (auto [result, value] : llvm::zip(op->getResults(), *values))
      result.replaceAllUsesWith(builder.create<ConstantOp>(op->getLoc(), value));
    report.rewrite(op);
    op->erase();
  }
};
} // namespace

} // namespace firn
