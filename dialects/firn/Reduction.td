// Reductions, scans along an axis, softmax and normalisations.

include "dialects/firn/FirnBase.td"

class Firn_Reduce<string mnemonic, string onnx, string what> : Firn_OnnxOp<mnemonic, onnx, "inferReduce", [Pure]> {
  let summary = what # " over axes";
  let description = [{(I1) `x`, (I2) `axes`: i64, optional: all axes, or none with `noop_with_empty_axes`.
    (C1) each axis is in [-rank, rank). `keepdims` 1: reduced axes stay with length 1.}];
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$axes, DefaultValuedAttr<I64Attr, "1">:$keepdims,
                   DefaultValuedAttr<I64Attr, "0">:$noop_with_empty_axes);
}
def Firn_ReduceSumOp : Firn_Reduce<"reduce_sum", "ReduceSum", "sum">;
def Firn_ReduceMeanOp : Firn_Reduce<"reduce_mean", "ReduceMean", "arithmetic mean">;
def Firn_ReduceMaxOp : Firn_Reduce<"reduce_max", "ReduceMax", "greatest, NaN wins,">;
def Firn_ReduceMinOp : Firn_Reduce<"reduce_min", "ReduceMin", "least, NaN wins,">;
def Firn_ReduceProdOp : Firn_Reduce<"reduce_prod", "ReduceProd", "product">;
def Firn_ReduceL1Op : Firn_Reduce<"reduce_l1", "ReduceL1", "sum of magnitudes">;
def Firn_ReduceL2Op : Firn_Reduce<"reduce_l2", "ReduceL2", "root of the sum of squares">;
def Firn_ReduceLogSumOp : Firn_Reduce<"reduce_log_sum", "ReduceLogSum", "logarithm of the sum">;
def Firn_ReduceLogSumExpOp : Firn_Reduce<"reduce_log_sum_exp", "ReduceLogSumExp", "logarithm of the sum of exponentials">;
def Firn_ReduceSumSquareOp : Firn_Reduce<"reduce_sum_square", "ReduceSumSquare", "sum of squares">;

class Firn_ArgReduce<string mnemonic, string onnx, string what> : Firn_OnnxOp<mnemonic, onnx, "inferArgReduce", [Pure]> {
  let summary = "index of the " # what # " along an axis, the first of equals unless select_last_index";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<I64Attr, "1">:$keepdims,
                   DefaultValuedAttr<I64Attr, "0">:$select_last_index);
}
def Firn_ArgMaxOp : Firn_ArgReduce<"arg_max", "ArgMax", "greatest">;
def Firn_ArgMinOp : Firn_ArgReduce<"arg_min", "ArgMin", "least">;

def Firn_CumSumOp : Firn_OnnxOp<"cumsum", "CumSum", "inferUnary", [Pure]> {
  let summary = "running sum along `axis`";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$axis, DefaultValuedAttr<I64Attr, "0">:$exclusive, DefaultValuedAttr<I64Attr, "0">:$reverse);
}
class Firn_Softmax<string mnemonic, string onnx, string what> : Firn_OnnxOp<mnemonic, onnx, "inferAxisUnary", [Pure]> {
  let summary = what # " along `axis`";
  let description = "(I1) `x`. (C1) axis is in [-rank, rank). (C2) type(result) = type(x).";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "-1">:$axis);
}
def Firn_SoftmaxOp : Firn_Softmax<"softmax", "Softmax", "e^x / sum(e^x)">;
def Firn_LogSoftmaxOp : Firn_Softmax<"log_softmax", "LogSoftmax", "x - log(sum(e^x))">;
def Firn_HardmaxOp : Firn_Softmax<"hardmax", "Hardmax", "1 at the first greatest element, else 0,">;

def Firn_BatchNormalizationOp : Firn_OnnxOp<"batch_normalization", "BatchNormalization", "inferBatchNormalization", [Pure]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias, per channel (axis 1)";
  let description = "(I1) `x`, (I2) `scale`, (I3) `bias`, (I4) `mean`, (I5) `variance`. (C1) the last four have the shape [C].";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Firn_Operand:$bias, Firn_Operand:$mean, Firn_Operand:$variance,
                   DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon, DefaultValuedAttr<F32Attr, "0.9f">:$momentum,
                   DefaultValuedAttr<I64Attr, "0">:$training_mode);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_LayerNormalizationOp : Firn_OnnxOp<"layer_normalization", "LayerNormalization", "inferLayerNormalization", [Pure]> {
  let summary = "scale the trailing axes to mean 0 and variance 1";
  let description = [{
    For each index of the leading axes, over the elements x of axes [axis, rank):
    `y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + bias`.
    (I1) `x`, (I2) `scale`, (I3) `bias`, optional. (C1) axis is in [-rank, rank). (C2) scale and (C3) bias broadcast to the normalised axes.
    Results: y, mean, 1/deviation.
  }];
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Optional<Firn_Operand>:$bias, DefaultValuedAttr<I64Attr, "-1">:$axis,
                   DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon, DefaultValuedAttr<I64Attr, "1">:$stash_type);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_RMSNormalizationOp : Firn_OnnxOp<"rms_normalization", "RMSNormalization", "inferAxisUnary", [Pure]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * scale over the trailing axes";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, DefaultValuedAttr<I64Attr, "-1">:$axis,
                   DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon, DefaultValuedAttr<I64Attr, "1">:$stash_type);
}
def Firn_InstanceNormalizationOp : Firn_OnnxOp<"instance_normalization", "InstanceNormalization", "inferChannelNormalization", [Pure]> {
  let summary = "normalisation over the spatial axes, per instance and channel";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Firn_Operand:$bias, DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon);
}
def Firn_GroupNormalizationOp : Firn_OnnxOp<"group_normalization", "GroupNormalization", "inferChannelNormalization", [Pure]> {
  let summary = "normalisation over groups of channels and the spatial axes";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Firn_Operand:$bias, DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon,
                   I64Attr:$num_groups, DefaultValuedAttr<I64Attr, "1">:$stash_type);
}
def Firn_LpNormalizationOp : Firn_OnnxOp<"lp_normalization", "LpNormalization", "inferAxisUnary", [Pure]> {
  let summary = "x divided by its p-norm along an axis";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<I64Attr, "2">:$p);
}
def Firn_LRNOp : Firn_OnnxOp<"lrn", "LRN", "inferUnary", [Pure]> {
  let summary = "local response normalisation across channels";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<F32Attr, "1.0e-4f">:$alpha, DefaultValuedAttr<F32Attr, "0.75f">:$beta,
                   DefaultValuedAttr<F32Attr, "1.0f">:$bias, I64Attr:$size);
}
