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
def Firn_AttentionOp : Firn_OnnxOp<"attention", "Attention", "inferAttention", [Pure]> {
  let summary = "softmax(scale * Q K^T + mask) V, per head";
  let description = [{
    `inputs`: (I1) Q, (I2) K, (I3) V, (I4) mask, (I5) past_key, (I6) past_value, (I7) nonpad_kv_seqlen; `outputs`: Y,
    present_key, present_value, qk_matmul_output. Q, K, V: [batch, heads, length, size], or [batch, length, heads * size]
    with `q_num_heads`, `kv_num_heads`. (C1) ranks 3 or 4, one batch size. (C2) heads of Q and K have one size. (C3) K
    and V have one length and as many heads. (C4) Q's heads are a multiple of K's. (C5) three axes need the numbers of
    heads. (C6) the mask broadcasts to [batch, heads, queries, keys]; its last axis may be shorter: keys behind it are not seen.
    Attributes of the compiler's own, never written to a file: `rows` = 1: the result is [batch, length, heads * size],
    whatever Q's rank. `masked_score`: what stands for a score where a mask of bool is false, instead of -inf. `joined` = 1: K and V begin with past_key and
    past_value already, which only say how long the past is; ranks of Q, K and V may differ then. `nan_rows` = 1: a query
    that sees no key gives NaN, as a softmax that is spelt out does, not zeros. `zero_nan` = 1: a query with a score that
    is no number gives zeros.
  }];
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_RotaryEmbeddingOp : Firn_OnnxOp<"rotary_embedding", "RotaryEmbedding", "inferRotaryEmbedding", [Pure]> {
  let summary = "pairs of elements of each head turned by the angle of their position";
  let description = [{
    `inputs`: (I1) X: [batch, heads, length, size] or, with `num_heads`, [batch, length, heads * size]; (I2) cos_cache,
    (I3) sin_cache: [batch, length, n], or [positions, n] with (I4) position_ids: [batch, length]. The first 2 n elements
    of a head (`rotary_embedding_dim`, 0: all) turn: element i with i + n, or 2 i with 2 i + 1 if `interleaved`.
    (C1) rank 3 or 4. (C2) rank 3 needs num_heads.
  }];
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
}
