// Operations over sliding windows: convolution and pooling. Layout N, C, spatial axes.

include "dialects/firn/FirnBase.td"

defvar windowAttributes = (ins DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    OptionalAttr<DenseI64ArrayAttr>:$dilations, OptionalAttr<DenseI64ArrayAttr>:$kernel_shape,
    OptionalAttr<DenseI64ArrayAttr>:$pads, OptionalAttr<DenseI64ArrayAttr>:$strides);

def Firn_ConvOp : Firn_OnnxOp<"conv", "Conv", "inferConv", [Pure]> {
  let summary = "convolution (cross-correlation) with groups";
  let description = [{
    (I1) `input`: N x C x spatial, (I2) `weight`: M x C/group x kernel, (I3) `bias`: M, optional.
    (C1) rank(weight) = rank(input) >= 3. (C2) C = weight.dim(1) * group. (C3) M is a multiple of group.
    (C4) strides, dilations >= 1, pads >= 0, one per spatial axis. (C5) the kernel fits the padded input.
  }];
  let arguments = !con((ins Firn_Operand:$input, Firn_Operand:$weight, Optional<Firn_Operand>:$bias,
                        DefaultValuedAttr<I64Attr, "1">:$group), windowAttributes);
}
def Firn_ConvTransposeOp : Firn_OnnxOp<"conv_transpose", "ConvTranspose", "inferConvTranspose", [Pure]> {
  let summary = "transposed convolution";
  let description = "(I1) `input`: N x C x spatial, (I2) `weight`: C x M/group x kernel, (I3) `bias`: M, optional.";
  let arguments = !con((ins Firn_Operand:$input, Firn_Operand:$weight, Optional<Firn_Operand>:$bias,
                        DefaultValuedAttr<I64Attr, "1">:$group, OptionalAttr<DenseI64ArrayAttr>:$output_padding,
                        OptionalAttr<DenseI64ArrayAttr>:$output_shape), windowAttributes);
}
def Firn_ConvIntegerOp : Firn_OnnxOp<"conv_integer", "ConvInteger", "inferConv", [Pure]> {
  let summary = "convolution of 8-bit integers in 32 bits, zero points subtracted";
  let arguments = !con((ins Firn_Operand:$input, Firn_Operand:$weight, Variadic<Firn_Operand>:$zero_points,
                        DefaultValuedAttr<I64Attr, "1">:$group), windowAttributes);
}
def Firn_QLinearConvOp : Firn_OnnxOp<"q_linear_conv", "QLinearConv", "inferConv", [Pure]> {
  let summary = "convolution of quantised tensors, requantised";
  let arguments = !con((ins Variadic<Firn_Operand>:$inputs, DefaultValuedAttr<I64Attr, "1">:$group), windowAttributes);
}
def Firn_MaxPoolOp : Firn_OnnxOp<"max_pool", "MaxPool", "inferPool", [Pure]> {
  let summary = "greatest element of each window; second result: its index in the input";
  let arguments = !con((ins Firn_Operand:$input, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
                        DefaultValuedAttr<I64Attr, "0">:$storage_order), windowAttributes);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_AveragePoolOp : Firn_OnnxOp<"average_pool", "AveragePool", "inferPool", [Pure]> {
  let summary = "mean of each window";
  let arguments = !con((ins Firn_Operand:$input, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
                        DefaultValuedAttr<I64Attr, "0">:$count_include_pad), windowAttributes);
}
def Firn_LpPoolOp : Firn_OnnxOp<"lp_pool", "LpPool", "inferPool", [Pure]> {
  let summary = "p-norm of each window";
  let arguments = !con((ins Firn_Operand:$input, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
                        DefaultValuedAttr<I64Attr, "2">:$p), windowAttributes);
}
class Firn_GlobalPool<string mnemonic, string onnx, string what> : Firn_OnnxOp<mnemonic, onnx, "inferGlobalPool", [Pure]> {
  let summary = what # " over all spatial axes, which become 1";
  let arguments = (ins Firn_Operand:$input);
}
def Firn_GlobalAveragePoolOp : Firn_GlobalPool<"global_average_pool", "GlobalAveragePool", "mean">;
def Firn_GlobalMaxPoolOp : Firn_GlobalPool<"global_max_pool", "GlobalMaxPool", "greatest element">;
