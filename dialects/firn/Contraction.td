// Contractions: sums of products over shared axes.

include "dialects/firn/FirnBase.td"

def Firn_MatMulOp : Firn_OnnxOp<"matmul", "MatMul", "inferMatMul", [Pure]> {
  let summary = "matrix product, batched over leading axes as numpy.matmul";
  let description = "(I1) `a`, (I2) `b`, rank >= 1. (C1) inner dimensions agree. (C2) batch axes broadcast. (C3) equal element types.";
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b);
}
def Firn_GemmOp : Firn_OnnxOp<"gemm", "Gemm", "inferGemm", [Pure]> {
  let summary = "alpha * A' * B' + beta * C";
  let description = "(I1) `a`, (I2) `b`: rank 2; (I3) `c`: broadcasts to the result, optional. (C1) inner dimensions agree. (C2) c broadcasts.";
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b, Optional<Firn_Operand>:$c,
                   DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "1.0f">:$beta,
                   DefaultValuedAttr<I64Attr, "0">:$transA, DefaultValuedAttr<I64Attr, "0">:$transB);
}
def Firn_EinsumOp : Firn_OnnxOp<"einsum", "Einsum", "inferEinsum", [Pure]> {
  let summary = "sum of products by an equation of axis letters";
  let description = "(I1..) `inputs`. (C1) the equation fits the operands. (C2) axes with one letter agree.";
  let arguments = (ins Variadic<Firn_Operand>:$inputs, StrAttr:$equation);
}
def Firn_MatMulIntegerOp : Firn_OnnxOp<"matmul_integer", "MatMulInteger", "inferMatMulInteger", [Pure]> {
  let summary = "matrix product of 8-bit integers in 32 bits, zero points subtracted";
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b, Variadic<Firn_Operand>:$zero_points);
}
def Firn_QLinearMatMulOp : Firn_OnnxOp<"q_linear_matmul", "QLinearMatMul", "inferQLinearMatMul", [Pure]> {
  let summary = "matrix product of quantised tensors, requantised";
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
}
def Firn_AttentionOp : Firn_OnnxOp<"attention", "Attention", "inferByLibrary", [Pure]> {
  let summary = "softmax(scale * Q K^T + mask) V, per head";
  let description = "`inputs`: Q, K, V, mask, past_key, past_value, nonpad_kv_seqlen; `outputs`: Y, present_key, present_value, qk_matmul_output.";
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
