// FoldConvBatchNorm: a normalisation or scale per channel goes into the weights of the layer before or behind it.
//
// In:      firn.conv, conv_transpose, gemm or matmul with a constant weight, then (or, for a convolution, before it)
//          batch_normalization with constant parameters, or a product with a constant per output channel.
// Out:     the layer alone, with other weights and bias.
// Keeps:   values up to rounding: new weights are computed in double and rounded once. Other readers of the old
//          weight see the old one.
// Leaves:  a layer whose own result is read elsewhere or is an output; where a rule of the refusals applies.
//   %1 = firn.conv %0, %w; %2 = firn.batch_normalization %1, ...      ==>   firn.conv %0, %w', %b'
#include "passes/Passes.h"
#include "passes/fusion/LinearLayer.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_FOLDCONVBATCHNORM
#include "passes/Passes.h.inc"

namespace {

/// y = x * scale[c] + shift[c].
struct Affine {
  std::vector<double> scale, shift;
};

/// Inference with constant parameters as one product and sum per channel.
std::optional<Affine> affineOf(BatchNormalizationOp op, StringRef &why) {
  auto scale = numbersOf(op.getScale()), bias = numbersOf(op.getBias()), mean = numbersOf(op.getMean()),
       variance = numbersOf(op.getVariance());
  if (op.getTrainingMode()) {
    why = "training mode";
  } else if (!scale || !bias || !mean || !variance) {
    why = "the parameters are no constants";
  } else if (llvm::any_of(op.getResults().drop_front(), [](OpResult result) { return !result.use_empty(); })) {
    why = "running statistics are used";
  } else {
    Affine affine{*scale, *bias};
    for (size_t i = 0; i < scale->size(); ++i) {
      affine.scale[i] /= std::sqrt((*variance)[i] + double(op.getEpsilon().convertToFloat()));
      affine.shift[i] -= (*mean)[i] * affine.scale[i];
    }
    return affine;
  }
  return std::nullopt;
}

/// Why `layer` cannot take in `op`, which reads its result `sum`, whatever it computes, or "".
std::string refusal(const LinearLayer &layer, Value sum, Operation *op) {
  if (std::string why = otherReader(sum, op); !why.empty())
    return why;
  if (layer.operation()->getBlock() != op->getBlock())
    return "the layer runs in another region";
  if (!layer.bias())
    return "the layer's bias is no constant per channel";
  return layer.growthRefusal().str();
}

/// Why `layer` cannot take in the normalisation `op` of `channels` channels, or "".
std::string refusalOfNormalization(const LinearLayer &layer, BatchNormalizationOp op, size_t channels) {
  if (layer.channelAxis() != 1 || int64_t(channels) != layer.channels() || rankedType(op.getX()).getRank() < 2)
    return "the normalised axis is not that of the output channels";
  return refusal(layer, op.getX(), op);
}

bool foldNormalization(BatchNormalizationOp op, RuleRewriter &rewriter) {
  StringRef unfit;
  auto layer = LinearLayer::of(op.getX(), unfit);
  if (!layer)
    return false;
  auto affine = affineOf(op, unfit);
  std::string why = affine ? refusalOfNormalization(*layer, op, affine->scale.size()) : unfit.str();
  if (!why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  auto bias = layer->bias();
  for (size_t i = 0; i < bias->size(); ++i)
    (*bias)[i] = (*bias)[i] * affine->scale[i] + affine->shift[i];
  rewriter.setInsertionPoint(op);
  Operation *inner = layer->operation();
  Value weight = layer->scaledWeight(rewriter, inner->getOperand(1).getLoc(), affine->scale);
  Value newBias = layer->makeBias(rewriter, op.getBias().getLoc(), *bias);
  if (!weight || !newBias) {
    rewriter.refuse(op, "a new weight would not be finite");
    return false;
  }
  SmallVector<Value> values(op.getNumResults());
  if (layer->takesBias()) {
    values[0] = layer->rebuilt(rewriter, op, weight, newBias);
  } else {
    Value product = layer->rebuilt(rewriter, op, weight, {});
    values[0] = rewriter.create<AddOp>(op.getLoc(), product.getType(), product, newBias);
  }
  rewriter.replace(op, values, "folded into the layer before it");
  return true;
}

/// A product of the layer's result with a constant per output channel.
bool foldProduct(MulOp op, RuleRewriter &rewriter) {
  for (auto [x, constant] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    StringRef unfit;
    auto layer = constantOf(constant) ? LinearLayer::of(x, unfit) : std::nullopt;
    if (!layer || !haveSameType(x, op.getResult()))
      continue;
    auto factors = perChannel(constant, dimsOf(rankedType(x)), layer->channelAxis(), layer->channels());
    auto bias = layer->bias();
    std::string why = factors ? refusal(*layer, x, op) : "the factor is not one per output channel";
    rewriter.setInsertionPoint(op);
    Value weight, newBias;
    if (why.empty()) {
      Operation *inner = layer->operation();
      weight = layer->scaledWeight(rewriter, inner->getOperand(1).getLoc(), *factors);
      for (size_t i = 0; i < bias->size(); ++i)
        (*bias)[i] *= (*factors)[i];
      newBias = layer->hasBias() ? layer->makeBias(rewriter, inner->getOperand(2).getLoc(), *bias) : Value();
      if (!weight || (layer->hasBias() && !newBias))
        why = "a new weight would not be finite";
    }
    if (!why.empty()) {
      rewriter.refuse(op, why);
      return false;
    }
    rewriter.replace(op, layer->rebuilt(rewriter, op, weight, newBias), "folded into the layer before it");
    return true;
  }
  return false;
}

/// Why a normalisation before `conv` must stay, or "". A shift cannot pass zeros that padding puts beside it.
std::string refusalBefore(ConvOp conv, BatchNormalizationOp op, const Affine &affine) {
  if (std::string why = otherReader(op.getResult(0), conv); !why.empty())
    return why;
  if (op->getBlock() != conv->getBlock())
    return "the convolution runs in another region";
  if (llvm::all_of(affine.shift, [](double shift) { return shift == 0; }))
    return "";
  auto pads = conv.getPads();
  bool hasPads = pads && llvm::any_of(*pads, [](int64_t pad) { return pad != 0; });
  if (conv.getAutoPad().starts_with("SAME") || (conv.getAutoPad() == "NOTSET" && hasPads))
    return "its shift cannot pass the zero padding of the convolution";
  return "";
}

bool foldBefore(ConvOp conv, RuleRewriter &rewriter) {
  auto op = conv.getInput().getDefiningOp<BatchNormalizationOp>();
  StringRef unfit;
  auto layer = op ? LinearLayer::of(conv.getResult(), unfit) : std::nullopt;
  if (!layer)
    return false;
  auto affine = affineOf(op, unfit);
  std::string why = affine ? refusalBefore(conv, op, *affine) : unfit.str();
  auto bias = layer->bias();
  if (why.empty() && !bias)
    why = "the layer's bias is no constant per channel";
  if (!why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  std::vector<double> sums = layer->sumsOver(affine->shift);
  for (size_t i = 0; i < bias->size(); ++i)
    (*bias)[i] += sums[i];
  rewriter.setInsertionPoint(conv);
  Value weight = layer->weightScaledByInput(rewriter, conv.getWeight().getLoc(), affine->scale);
  Value newBias = layer->makeBias(rewriter, op.getBias().getLoc(), *bias);
  if (!weight || !newBias) {
    rewriter.refuse(op, "a new weight would not be finite");
    return false;
  }
  OperationState state(rewriter.fused(conv, {op}), conv->getName(), {op.getX(), weight, newBias},
                       conv->getResultTypes(), conv->getAttrs());
  rewriter.replace(conv, rewriter.create(state)->getResults(), "took in the normalisation before it");
  rewriter.eraseOp(op);
  return true;
}

struct FoldConvBatchNorm : impl::FoldConvBatchNormBase<FoldConvBatchNorm> {
  using FoldConvBatchNormBase::FoldConvBatchNormBase;

  void runOnOperation() override {
    PassReport report("fold-conv-batch-norm", limit);
    RuleSet rules;
    rules.add<BatchNormalizationOp>(foldNormalization);
    rules.add<MulOp>(foldProduct);
    rules.add<ConvOp>(foldBefore);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn
