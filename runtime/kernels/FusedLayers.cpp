// com.microsoft: normalisations, embeddings, activations and products that optimisers fuse.
#include "runtime/kernels/Compose.h"

FIRN_USES(Add)
FIRN_USES(Clip)
FIRN_USES(Conv)
FIRN_USES(DequantizeLinear)
FIRN_USES(Gather)
FIRN_USES(Gelu)
FIRN_USES(Gemm)
FIRN_USES(HardSigmoid)
FIRN_USES(LayerNormalization)
FIRN_USES(LeakyRelu)
FIRN_USES(MatMul)
FIRN_USES(Mul)
FIRN_USES(RMSNormalization)
FIRN_USES(Reciprocal)
FIRN_USES(ReduceMean)
FIRN_USES(ReduceSum)
FIRN_USES(Relu)
FIRN_USES(Shape)
FIRN_USES(Sigmoid)
FIRN_USES(Slice)
FIRN_USES(Sqrt)
FIRN_USES(Sub)
FIRN_USES(Tanh)
FIRN_USES(Transpose)
FIRN_USES(Trilu)
FIRN_USES(Unique)

namespace firn::kernels {
namespace {

using Value = Composer::Value;

Value add(Composer &c, Value a, Value b) { return b == Composer::absent ? a : c.op(firn_op_ai_onnx_Add, {a, b}); }

// --- normalisations --------------------------------------------------------------------------------------------------

/// Scale to mean 0 and variance 1 along the last axis; results 0 to 2 as far as they are wanted.
void layerNorm(Composer &c, Value x, Value scale, Value bias) {
  AttributeList attributes;
  attributes.integer("axis", -1).real("epsilon", floatAttribute(c.call, "epsilon", 1e-12f));
  Value made[3];
  int32_t count = c.wants(2) ? 3 : c.wants(1) ? 2 : 1;
  Value inputs[] = {x, scale, bias};
  c.op(firn_op_ai_onnx_LayerNormalization, inputs, 3, attributes, made, count);
  for (int32_t i = 0; i < count; ++i)
    c.result(i, made[i]);
}

void skipLayerNormalization(Composer &c) {
  Value x = c.need(0, "input", floatTypes, 2, 3), skip = c.need(1, "skip", floatTypes, 1, 3);
  Value sum = add(c, add(c, x, skip), c.in(4));
  layerNorm(c, sum, c.need(2, "gamma", floatTypes, 1, 1), c.in(3));
  c.result(3, sum);
}

/// Scale to root mean square 1 along the last axes. Results `mean` and `inverse` hold the mean and what elements were
/// multiplied by (-1: there is no such result).
void rmsNorm(Composer &c, Value x, Value scale, int64_t axis, float epsilon, int32_t mean, int32_t inverse) {
  AttributeList attributes;
  attributes.integer("axis", axis).real("epsilon", epsilon);
  c.result(0, c.op(firn_op_ai_onnx_RMSNormalization, {x, scale}, attributes));
  if (axis != -1)
    return; // statistics are those of rows
  if (mean >= 0 && c.wants(mean))
    c.result(mean, c.op(firn_op_ai_onnx_ReduceMean, {c.cast(x, FIRN_F32), c.integers({-1})}));
  if (inverse >= 0 && c.wants(inverse)) {
    Value wide = c.cast(x, FIRN_F32);
    Value square = c.op(firn_op_ai_onnx_ReduceMean, {c.op(firn_op_ai_onnx_Mul, {wide, wide}), c.integers({-1})});
    Value sum = c.op(firn_op_ai_onnx_Add, {square, c.scalar(FIRN_F32, double(epsilon))});
    c.result(inverse, c.op(firn_op_ai_onnx_Reciprocal, {c.op(firn_op_ai_onnx_Sqrt, {sum})}));
  }
}

void skipSimplifiedLayerNormalization(Composer &c) {
  Value x = c.need(0, "input", floatTypes, 2, 3), skip = c.need(1, "skip", floatTypes, 1, 3);
  Value sum = add(c, add(c, x, skip), c.in(3));
  rmsNorm(c, sum, c.need(2, "gamma", floatTypes, 1, 1), -1, floatAttribute(c.call, "epsilon", 1e-12f), 1, 2);
  c.result(3, sum);
}

void simplifiedLayerNormalization(Composer &c) {
  rmsNorm(c, c.need(0, "X", floatTypes), c.need(1, "scale", floatTypes), intAttribute(c.call, "axis", -1),
          floatAttribute(c.call, "epsilon", 1e-5f), -1, 1);
}

/// Words, positions and segments looked up, added and normalised; how many positions each mask leaves.
void embedLayerNormalization(Composer &c) {
  Value ids = c.need(0, "input_ids", indexTypes, 2, 2), positions = c.need(3, "position_embedding", floatTypes, 2, 2);
  AttributeList rows;
  rows.integer("axis", 0);
  Value sum = c.op(firn_op_ai_onnx_Gather, {c.need(2, "word_embedding", floatTypes, 2, 2), ids}, rows);
  if (c.in(8) != Composer::absent) {
    sum = add(c, sum, c.op(firn_op_ai_onnx_Gather, {positions, c.in(8)}, rows));
  } else {
    AttributeList length;
    length.integer("start", 1).integer("end", 2);
    Value end = c.op(firn_op_ai_onnx_Shape, {ids}, length);
    sum = add(c, sum, c.op(firn_op_ai_onnx_Slice, {positions, c.integers({0}), end, c.integers({0})}));
  }
  if (c.in(1) != Composer::absent)
    sum = add(c, sum, c.op(firn_op_ai_onnx_Gather, {c.need(4, "segment_embedding", floatTypes, 2, 2), c.in(1)}, rows));
  // The second output here is the mask's, not a mean.
  AttributeList attributes;
  attributes.integer("axis", -1).real("epsilon", floatAttribute(c.call, "epsilon", 1e-12f));
  c.result(0, c.op(firn_op_ai_onnx_LayerNormalization,
                   {sum, c.need(5, "gamma", floatTypes, 1, 1), c.need(6, "beta", floatTypes, 1, 1)}, attributes));
  if (c.wants(1)) {
    Value mask = c.in(7);
    if (mask == Composer::absent)
      mask = c.op(firn_op_ai_onnx_Mul, {ids, c.scalar(c.dtype(ids), 0)});
    AttributeList keep;
    keep.integer("keepdims", 0);
    c.result(1, c.cast(c.op(firn_op_ai_onnx_ReduceSum, {mask, c.integers({1})}, keep), FIRN_I32));
  }
  c.result(2, sum);
}

// --- activations -----------------------------------------------------------------------------------------------------

void gelu(Composer &c) { c.result(0, c.op(firn_op_ai_onnx_Gelu, {c.need(0, "X", floatTypes)})); }

void biasGelu(Composer &c) {
  Value sum = add(c, c.need(0, "A", floatTypes), c.need(1, "B", floatTypes, 1, 1));
  c.result(0, c.op(firn_op_ai_onnx_Gelu, {sum}));
}

void fastGelu(Composer &c) {
  AttributeList attributes;
  attributes.text("approximate", "tanh");
  c.result(0, c.op(firn_op_ai_onnx_Gelu, {add(c, c.need(0, "X", floatTypes), c.in(1))}, attributes));
}

void quickGelu(Composer &c) {
  Value x = c.need(0, "X", floatTypes);
  Value scaled = c.op(firn_op_ai_onnx_Mul, {x, c.scalar(c.dtype(x), double(floatAttribute(c.call, "alpha", 1.702f)))});
  c.result(0, c.op(firn_op_ai_onnx_Mul, {x, c.op(firn_op_ai_onnx_Sigmoid, {scaled})}));
}

/// The activation that attribute "activation" names, with parameters `a` and `b` where they are given.
Value activate(Composer &c, Value x, const float *a, const float *b) {
  int32_t dtype = c.dtype(0);
  auto is = [&](const char *name) { return stringAttributeIs(c.call, "activation", name, ""); };
  AttributeList attributes;
  if (a)
    attributes.real("alpha", *a);
  if (is("") || is("Identity"))
    return x;
  if (is("Relu"))
    return c.op(firn_op_ai_onnx_Relu, {x});
  if (is("Sigmoid"))
    return c.op(firn_op_ai_onnx_Sigmoid, {x});
  if (is("Tanh"))
    return c.op(firn_op_ai_onnx_Tanh, {x});
  if (is("LeakyRelu"))
    return c.op(firn_op_ai_onnx_LeakyRelu, {x}, attributes);
  if (is("HardSigmoid")) {
    if (b)
      attributes.real("beta", *b);
    return c.op(firn_op_ai_onnx_HardSigmoid, {x}, attributes);
  }
  if (is("Clip") && a && b)
    return c.op(firn_op_ai_onnx_Clip, {x, c.scalar(dtype, double(*a)), c.scalar(dtype, double(*b))});
  c.refuse(FIRN_CALL_UNSUPPORTED,
           "attribute 'activation' must be one of Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid and "
           "Clip (with both bounds)");
  return x;
}

// --- products --------------------------------------------------------------------------------------------------------

/// The last two axes swapped where `trans` says so, and with `transBatch` the first axis moved before the last.
Value arranged(Composer &c, Value x, bool trans, bool transBatch) {
  int32_t rank = c.isFailed() ? 0 : c.rank(x);
  if (rank < 2 || !(trans || transBatch))
    return x;
  int64_t order[FIRN_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i)
    order[i] = transBatch && i < rank - 2 ? i + 1 : transBatch && i == rank - 2 ? 0 : i;
  if (trans) {
    int64_t last = order[rank - 1];
    order[rank - 1] = order[rank - 2];
    order[rank - 2] = last;
  }
  AttributeList attributes;
  attributes.integers("perm", order, rank);
  return c.op(firn_op_ai_onnx_Transpose, {x}, attributes);
}

void fusedMatMul(Composer &c) {
  auto flag = [&](const char *name) { return intAttribute(c.call, name, 0) != 0; };
  Value a = arranged(c, c.need(0, "A", floatTypes, 1), flag("transA"), flag("transBatchA"));
  Value b = arranged(c, c.need(1, "B", floatTypes, 1), flag("transB"), flag("transBatchB"));
  Value product = c.op(firn_op_ai_onnx_MatMul, {a, b});
  float alpha = floatAttribute(c.call, "alpha", 1);
  c.result(0, alpha == 1 ? product : c.op(firn_op_ai_onnx_Mul, {product, c.scalar(c.dtype(0), double(alpha))}));
}

void fusedGemm(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"alpha", "beta", "transA", "transB"});
  Value product = c.op(firn_op_ai_onnx_Gemm,
                       {c.need(0, "A", floatTypes, 2, 2), c.need(1, "B", floatTypes, 2, 2), c.in(2)}, attributes);
  auto parameter = [&](const char *name) -> const float * {
    const firn_attribute *given = findAttribute(c.call, name);
    return given && given->kind == FIRN_ATTR_FLOAT ? static_cast<const float *>(given->data) : nullptr;
  };
  c.result(0, activate(c, product, parameter("activation_alpha"), parameter("activation_beta")));
}

void fusedConv(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  Value y = c.op(firn_op_ai_onnx_Conv, {c.need(0, "X", floatTypes), c.need(1, "W", floatTypes), c.in(2)}, attributes);
  const firn_attribute *given = findAttribute(c.call, "activation_params");
  int64_t count = given && given->kind == FIRN_ATTR_FLOATS ? given->count : 0;
  const float *parameters = count ? static_cast<const float *>(given->data) : nullptr;
  c.result(0, activate(c, add(c, y, c.in(3)), count > 0 ? parameters : nullptr, count > 1 ? parameters + 1 : nullptr));
}

/// A product with weights of 2, 4 or 8 bits, [N, K] in blocks along K that share a scale and a zero point.
void matMulNBits(Composer &c) {
  int64_t k = intAttribute(c.call, "K", 0), n = intAttribute(c.call, "N", 0), bits = intAttribute(c.call, "bits", 4);
  int64_t block = intAttribute(c.call, "block_size", 0);
  Value a = c.need(0, "A", floatTypes, 1), b = c.need(1, "B", typeSet(FIRN_U8)),
        scales = c.need(2, "scales", floatTypes);
  Value zeros = c.in(3);
  if (k < 1 || n < 1 || k > int64_t(1) << 31 || n > int64_t(1) << 31 || block < 16 || block > 1 << 20 ||
      (bits != 2 && bits != 4 && bits != 8) || block * bits % 8 != 0)
    return c.refuse(FIRN_CALL_INVALID,
                    "attributes 'K', 'N' and 'block_size' (at least 16) must be positive, and 'bits' 2, 4 "
                    "or 8");
  if (c.in(4) != Composer::absent)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "an order of columns (g_idx) is not supported; export the model without it");
  int64_t blocks = (k + block - 1) / block, perByte = 8 / bits;
  int32_t packed = bits == 2 ? FIRN_U2 : bits == 4 ? FIRN_U4 : FIRN_U8;
  Value q = c.reinterpret(b, packed, {n, blocks * block});
  scales = c.reshape(scales, {n, blocks});
  AttributeList attributes;
  attributes.integer("axis", 1).integer("block_size", block);
  Value weights;
  if (zeros != Composer::absent && !c.isFailed() && c.dtype(zeros) != FIRN_U8) {
    // Zero points of the scales' type are no integers.
    Value shift = c.op(firn_op_ai_onnx_Mul, {c.reshape(zeros, {n, blocks}), scales});
    weights = c.reshape(c.op(firn_op_ai_onnx_DequantizeLinear, {q, scales}, attributes), {n, blocks, block});
    weights = c.op(firn_op_ai_onnx_Sub, {weights, c.reshape(shift, {n, blocks, 1})});
    weights = c.reshape(weights, {n, blocks * block});
  } else {
    Value zero;
    if (zeros == Composer::absent) {
      zero = c.filled(packed, {n, blocks}, bits == 2 ? 0xaa : bits == 4 ? 0x88 : 0x80);
    } else {
      int64_t padded = (blocks + perByte - 1) / perByte * perByte;
      zero = c.reinterpret(zeros, packed, {n, padded});
      if (padded != blocks)
        zero = c.op(firn_op_ai_onnx_Slice, {zero, c.integers({0}), c.integers({blocks}), c.integers({1})});
    }
    weights = c.op(firn_op_ai_onnx_DequantizeLinear, {q, scales, zero}, attributes);
  }
  if (k != blocks * block)
    weights = c.op(firn_op_ai_onnx_Slice, {weights, c.integers({0}), c.integers({k}), c.integers({1})});
  c.result(0, add(c, c.op(firn_op_ai_onnx_MatMul, {a, c.transpose(weights, {1, 0})}), c.in(5)));
}

// --- operators of ai.onnx under another name -------------------------------------------------------------------------

void trilu(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"upper"});
  c.result(0, c.op(firn_op_ai_onnx_Trilu, {c.in(0), c.in(1)}, attributes));
}

/// In the order of first appearance.
void unique(Composer &c) {
  AttributeList attributes;
  attributes.integer("sorted", 0);
  Value x = c.need(0, "x", allTypes, 1, 1), made[4];
  c.op(firn_op_ai_onnx_Unique, &x, 1, attributes, made, 4);
  c.result(0, made[0]);
  c.result(1, made[2]);
  c.result(2, made[3]);
}

} // namespace

FIRN_COMPOSITE(com_microsoft, BiasGelu, "com.microsoft::BiasGelu", biasGelu)
FIRN_COMPOSITE(com_microsoft, EmbedLayerNormalization, "com.microsoft::EmbedLayerNormalization",
               embedLayerNormalization)
FIRN_COMPOSITE(com_microsoft, FastGelu, "com.microsoft::FastGelu", fastGelu)
FIRN_COMPOSITE(com_microsoft, FusedConv, "com.microsoft::FusedConv", fusedConv)
FIRN_COMPOSITE(com_microsoft, FusedGemm, "com.microsoft::FusedGemm", fusedGemm)
FIRN_COMPOSITE(com_microsoft, FusedMatMul, "com.microsoft::FusedMatMul", fusedMatMul)
FIRN_COMPOSITE(com_microsoft, Gelu, "com.microsoft::Gelu", gelu)
FIRN_COMPOSITE(com_microsoft, MatMulNBits, "com.microsoft::MatMulNBits", matMulNBits)
FIRN_COMPOSITE(com_microsoft, QuickGelu, "com.microsoft::QuickGelu", quickGelu)
FIRN_COMPOSITE(com_microsoft, SimplifiedLayerNormalization, "com.microsoft::SimplifiedLayerNormalization",
               simplifiedLayerNormalization)
FIRN_COMPOSITE(ai_onnx, SimplifiedLayerNormalization, "ai.onnx::SimplifiedLayerNormalization",
               simplifiedLayerNormalization)
FIRN_COMPOSITE(com_microsoft, SkipLayerNormalization, "com.microsoft::SkipLayerNormalization", skipLayerNormalization)
FIRN_COMPOSITE(com_microsoft, SkipSimplifiedLayerNormalization, "com.microsoft::SkipSimplifiedLayerNormalization",
               skipSimplifiedLayerNormalization)
FIRN_COMPOSITE(com_microsoft, Trilu, "com.microsoft::Trilu", trilu)
FIRN_COMPOSITE(com_microsoft, Unique, "com.microsoft::Unique", unique)

} // namespace firn::kernels
