// Conversions between real numbers and quantised integers.

include "dialects/firn/FirnBase.td"

def Firn_QuantizeLinearOp : Firn_OnnxOp<"quantize_linear", "QuantizeLinear", "inferQuantize", [Pure]> {
  let summary = "saturate(round(x / scale) + zero_point)";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Optional<Firn_Operand>:$zero_point, DefaultValuedAttr<I64Attr, "1">:$axis,
                   DefaultValuedAttr<I64Attr, "0">:$block_size, DefaultValuedAttr<I64Attr, "0">:$output_dtype,
                   DefaultValuedAttr<I64Attr, "0">:$precision, DefaultValuedAttr<I64Attr, "1">:$saturate);
}
def Firn_DequantizeLinearOp : Firn_OnnxOp<"dequantize_linear", "DequantizeLinear", "inferDequantize", [Pure]> {
  let summary = "(x - zero_point) * scale";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$scale, Optional<Firn_Operand>:$zero_point, DefaultValuedAttr<I64Attr, "1">:$axis,
                   DefaultValuedAttr<I64Attr, "0">:$block_size, DefaultValuedAttr<I64Attr, "0">:$output_dtype);
}
def Firn_DynamicQuantizeLinearOp : Firn_OnnxOp<"dynamic_quantize_linear", "DynamicQuantizeLinear", "inferDynamicQuantize", [Pure]> {
  let summary = "u8 quantisation by the range of x, widened to include 0; results: y, scale, zero point";
  let arguments = (ins Firn_Operand:$x);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
