// FuseBias: a constant per output channel that is added to a convolution or gemm becomes its bias.
//
// In:      firn.conv, conv_transpose or gemm with a constant weight, then add or sub of a constant.
// Out:     the layer with a bias.
// Keeps:   every result bit for bit where the layer had no bias (a kernel adds it after the last product, as the add
//          did), up to rounding where two constants become one.
// Leaves:  the add where a rule of refusal() applies; the add behind a matmul, which has no bias, but for a product of
// two
//          matrices in a graph that stays one: there both are a gemm.
//   %1 = firn.conv %0, %w; %2 = firn.add %1, %c     ==>   %2 = firn.conv %0, %w, %c'
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/fusion/LinearLayer.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_FUSEBIAS
#include "passes/Passes.h.inc"

namespace {

/// Why `op` (an add or sub) must stay outside `layer`, or "".
std::string refusal(const LinearLayer &layer, Operation *op, const std::optional<std::vector<double>> &addend) {
  if (std::string why = otherReader(layer.operation()->getResult(0), op); !why.empty())
    return why;
  if (layer.operation()->getBlock() != op->getBlock())
    return "the add runs in another region";
  if (!haveSameType(layer.operation()->getResult(0), op->getResult(0)))
    return "the addend enlarges the result";
  if (!addend)
    return "the addend is not one constant per output channel";
  if (!layer.bias())
    return "the layer's bias is no constant per channel";
  return "";
}

bool fuse(Operation *op, RuleRewriter &rewriter) {
  double sign = isa<SubOp>(op) ? -1 : 1;
  for (unsigned i : {0u, 1u}) {
    Value x = op->getOperand(i), constant = op->getOperand(1 - i);
    StringRef unfit;
    auto layer = constantOf(constant) ? LinearLayer::of(x, unfit) : std::nullopt;
    if (!layer || !layer->takesBias() || (i == 1 && sign < 0))
      continue;
    auto addend = perChannel(constant, dimsOf(rankedType(x)), layer->channelAxis(), layer->channels());
    std::string why = refusal(*layer, op, addend);
    Value bias;
    if (why.empty()) {
      auto values = layer->bias();
      for (size_t c = 0; c < values->size(); ++c) // without a bias the sign of a zero stays
        (*values)[c] = layer->hasBias() ? (*values)[c] + sign * (*addend)[c] : sign * (*addend)[c];
      rewriter.setInsertionPoint(op);
      bias = layer->makeBias(rewriter, constant.getLoc(), *values);
      if (!bias)
        why = "a new bias would not be finite";
    }
    if (!why.empty()) {
      rewriter.refuse(op, why);
      return false;
    }
    rewriter.replace(op, layer->rebuilt(rewriter, op, {}, bias), "became the layer's bias");
    return true;
  }
  return false;
}

/// The product of two matrices and what is added to it, as one gemm.
bool fuseIntoGemm(AddOp op, RuleRewriter &rewriter) {
  for (auto [x, addend] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    auto product = x.getDefiningOp<MatMulOp>();
    auto a = product ? rankedType(product.getA()) : RankedTensorType();
    auto b = product ? rankedType(product.getB()) : RankedTensorType(), c = rankedType(addend);
    if (!a || !b || !c || a.getRank() != 2 || b.getRank() != 2 || c.getRank() > 2 || !isFloat(a.getElementType()))
      continue;
    std::optional<SmallVector<DimExpr>> dims = broadcastDims(dimsOf(c), dimsOf(rankedType(x)));
    std::string why = otherReader(x, op);
    if (why.empty() && product->getBlock() != op->getBlock())
      why = "the add runs in another region";
    if (why.empty() && (!dims || !haveSameType(x, op.getResult()) || !haveSameDims(*dims, dimsOf(rankedType(x)))))
      why = "the addend may enlarge the result";
    if (!why.empty()) {
      rewriter.refuse(op, why);
      continue;
    }
    rewriter.replaceWith<GemmOp>(op, {product}, "a product and a sum are a gemm", op.getType(), product.getA(),
                                 product.getB(), addend, llvm::APFloat(1.0f), llvm::APFloat(1.0f), 0, 0);
    return true;
  }
  return false;
}

struct FuseBias : impl::FuseBiasBase<FuseBias> {
  using FuseBiasBase::FuseBiasBase;

  void runOnOperation() override {
    PassReport report("fuse-bias", limit);
    RuleSet rules;
    rules.addFor<AddOp, SubOp>(fuse);
    if (staysGraph(getOperation()))
      rules.add<AddOp>(fuseIntoGemm);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
