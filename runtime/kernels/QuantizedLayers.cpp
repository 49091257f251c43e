// com.microsoft: operators on quantised tensors.
#include "runtime/kernels/Compose.h"

FIRN_USES(Add)
FIRN_USES(AveragePool)
FIRN_USES(Concat)
FIRN_USES(DequantizeLinear)
FIRN_USES(DynamicQuantizeLinear)
FIRN_USES(GlobalAveragePool)
FIRN_USES(LeakyRelu)
FIRN_USES(MatMulInteger)
FIRN_USES(MaxPool)
FIRN_USES(Mul)
FIRN_USES(QLinearConv)
FIRN_USES(QuantizeLinear)
FIRN_USES(Sigmoid)
FIRN_USES(Softmax)
FIRN_USES(Transpose)

namespace firn::kernels {
namespace {

using Value = Composer::Value;

/// Input `i` as real numbers, by the scale and zero point behind it.
Value dequantized(Composer &c, int32_t i) {
  Value x = c.need(i, "a quantised input", byteTypes), scale = c.need(i + 1, "a scale", floatTypes);
  return c.op(firn_op_ai_onnx_DequantizeLinear, {x, scale, c.in(i + 2)});
}

/// By the scale in input `i` and the zero point behind it; without one the type is that of input 0.
Value quantized(Composer &c, Value x, int32_t i) {
  AttributeList attributes;
  if (c.in(i + 1) == Composer::absent && !c.isFailed())
    attributes.integer("output_dtype", c.dtype(0));
  return c.op(firn_op_ai_onnx_QuantizeLinear, {x, c.need(i, "a scale", floatTypes), c.in(i + 1)}, attributes);
}

/// Axis 1 moved to the end, and back.
Value moveChannels(Composer &c, Value x, int32_t rank, bool toEnd) {
  int64_t order[FIRN_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i)
    order[i] = i == 0 ? 0 : toEnd ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
  AttributeList attributes;
  attributes.integers("perm", order, rank);
  return c.op(firn_op_ai_onnx_Transpose, {x}, attributes);
}

bool isChannelsLast(const Composer &c) { return intAttribute(c.call, "channels_last", 0) != 0; }
int32_t rankOf(const Composer &c) { return c.isFailed() ? 0 : c.rank(0); }

void qLinearAdd(Composer &c) {
  c.result(0, quantized(c, c.op(firn_op_ai_onnx_Add, {dequantized(c, 0), dequantized(c, 3)}), 6));
}
void qLinearMul(Composer &c) {
  c.result(0, quantized(c, c.op(firn_op_ai_onnx_Mul, {dequantized(c, 0), dequantized(c, 3)}), 6));
}
void qLinearSigmoid(Composer &c) { c.result(0, quantized(c, c.op(firn_op_ai_onnx_Sigmoid, {dequantized(c, 0)}), 3)); }
void qLinearLeakyRelu(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"alpha"});
  c.result(0, quantized(c, c.op(firn_op_ai_onnx_LeakyRelu, {dequantized(c, 0)}, attributes), 3));
}
void qLinearSoftmax(Composer &c) {
  AttributeList attributes;
  attributes.integer("axis", intAttribute(c.call, "axis", -1));
  if (intAttribute(c.call, "opset", 13) < 13)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "softmax over several axes (opset below 13) is not supported");
  c.result(0, quantized(c, c.op(firn_op_ai_onnx_Softmax, {dequantized(c, 0)}, attributes), 3));
}

/// A pooling of real numbers between the two scales.
void pool(Composer &c, const firn_operator &pooling, const AttributeList &attributes) {
  Value x = dequantized(c, 0);
  int32_t rank = rankOf(c);
  if (isChannelsLast(c))
    x = moveChannels(c, x, rank, false);
  x = c.op(pooling, {x}, attributes);
  if (isChannelsLast(c))
    x = moveChannels(c, x, rank, true);
  c.result(0, quantized(c, x, 3));
}
void qLinearAveragePool(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call,
                   {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides", "dilations"});
  pool(c, firn_op_ai_onnx_AveragePool, attributes);
}
void qLinearGlobalAveragePool(Composer &c) { pool(c, firn_op_ai_onnx_GlobalAveragePool, {}); }

void nhwcMaxPool(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  Value x = c.need(0, "X", byteTypes, 3);
  int32_t rank = rankOf(c);
  x = c.op(firn_op_ai_onnx_MaxPool, {moveChannels(c, x, rank, false)}, attributes);
  c.result(0, moveChannels(c, x, rank, true));
}

void qLinearConcat(Composer &c) {
  Value parts[64];
  int32_t count = (c.call->input_count - 2) / 3;
  if (count < 1 || count > 64 || c.call->input_count != 2 + 3 * count)
    return c.refuse(FIRN_CALL_INVALID,
                    "behind the output's scale and zero point there must be one to 64 times a tensor, "
                    "its scale and its zero point");
  for (int32_t i = 0; i < count; ++i)
    parts[i] = dequantized(c, 2 + 3 * i);
  AttributeList attributes;
  attributes.taken(c.call, {"axis"});
  Value joined;
  c.op(firn_op_ai_onnx_Concat, parts, count, attributes, &joined, 1);
  c.result(0, c.op(firn_op_ai_onnx_QuantizeLinear, {joined, c.in(0), c.in(1)}));
}

void qLinearConv(Composer &c) {
  AttributeList attributes;
  attributes.taken(c.call, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  Value x = c.need(0, "x", byteTypes, 3);
  int32_t rank = rankOf(c);
  if (isChannelsLast(c))
    x = moveChannels(c, x, rank, false);
  Value y = c.op(firn_op_ai_onnx_QLinearConv,
                 {x, c.in(1), c.in(2), c.in(3), c.in(4), c.in(5), c.in(6), c.in(7), c.in(8)}, attributes);
  c.result(0, isChannelsLast(c) ? moveChannels(c, y, rank, true) : y);
}

// --- products --------------------------------------------------------------------------------------------------------

/// a * b of integers, times `scales`, plus `bias`.
Value scaledProduct(Composer &c, Value a, Value b, Value aZero, Value bZero, Value aScale, Value bScale, Value bias) {
  Value sum = c.op(firn_op_ai_onnx_MatMulInteger, {a, b, aZero, bZero});
  Value scale = c.op(firn_op_ai_onnx_Mul, {aScale, bScale});
  Value y = c.op(firn_op_ai_onnx_Mul, {c.cast(sum, c.isFailed() ? FIRN_F32 : c.dtype(bScale)), scale});
  return bias == Composer::absent ? y : c.op(firn_op_ai_onnx_Add, {y, bias});
}

void matMulIntegerToFloat(Composer &c) {
  Value a = c.need(0, "A", byteTypes), b = c.need(1, "B", byteTypes);
  Value aScale = c.need(2, "a_scale", floatTypes), bScale = c.need(3, "b_scale", floatTypes);
  c.result(0, scaledProduct(c, a, b, c.in(4), c.in(5), aScale, bScale, c.in(6)));
}

void dynamicQuantizeMatMul(Composer &c) {
  Value a = c.need(0, "A", typeSet(FIRN_F32)), b = c.need(1, "B", byteTypes), bScale = c.need(2, "b_scale", floatTypes);
  Value quantizedA[3];
  c.op(firn_op_ai_onnx_DynamicQuantizeLinear, &a, 1, {}, quantizedA, 3);
  c.result(0, scaledProduct(c, quantizedA[0], b, quantizedA[2], c.in(3), quantizedA[1], bScale, c.in(4)));
}

void qGemm(Composer &c) {
  Value a = c.need(0, "A", byteTypes, 2, 2), b = c.need(3, "B", byteTypes, 2, 2);
  Value aScale = c.need(1, "a_scale", floatTypes), bScale = c.need(4, "b_scale", floatTypes);
  if (intAttribute(c.call, "transA", 0))
    a = c.transpose(a, {1, 0});
  if (intAttribute(c.call, "transB", 0))
    b = c.transpose(b, {1, 0});
  Value sum = c.op(firn_op_ai_onnx_MatMulInteger, {a, b, c.in(2), c.in(5)});
  if (c.in(6) != Composer::absent)
    sum = c.op(firn_op_ai_onnx_Add, {sum, c.in(6)});
  Value scale = c.op(firn_op_ai_onnx_Mul, {aScale, bScale});
  if (float alpha = floatAttribute(c.call, "alpha", 1); alpha != 1)
    scale = c.op(firn_op_ai_onnx_Mul, {scale, c.scalar(FIRN_F32, double(alpha))});
  Value y = c.op(firn_op_ai_onnx_Mul, {c.cast(sum, FIRN_F32), scale});
  c.result(0, c.in(7) == Composer::absent ? y : quantized(c, y, 7));
}

} // namespace

FIRN_COMPOSITE(com_microsoft, DynamicQuantizeMatMul, "com.microsoft::DynamicQuantizeMatMul", dynamicQuantizeMatMul)
FIRN_COMPOSITE(com_microsoft, MatMulIntegerToFloat, "com.microsoft::MatMulIntegerToFloat", matMulIntegerToFloat)
FIRN_COMPOSITE(com_microsoft, NhwcMaxPool, "com.microsoft::NhwcMaxPool", nhwcMaxPool)
FIRN_COMPOSITE(com_microsoft, QGemm, "com.microsoft::QGemm", qGemm)
FIRN_COMPOSITE(com_microsoft, QLinearAdd, "com.microsoft::QLinearAdd", qLinearAdd)
FIRN_COMPOSITE(com_microsoft, QLinearAveragePool, "com.microsoft::QLinearAveragePool", qLinearAveragePool)
FIRN_COMPOSITE(com_microsoft, QLinearConcat, "com.microsoft::QLinearConcat", qLinearConcat)
FIRN_COMPOSITE(com_microsoft, QLinearConv, "com.microsoft::QLinearConv", qLinearConv)
FIRN_COMPOSITE(com_microsoft, QLinearGlobalAveragePool, "com.microsoft::QLinearGlobalAveragePool",
               qLinearGlobalAveragePool)
FIRN_COMPOSITE(com_microsoft, QLinearLeakyRelu, "com.microsoft::QLinearLeakyRelu", qLinearLeakyRelu)
FIRN_COMPOSITE(com_microsoft, QLinearMul, "com.microsoft::QLinearMul", qLinearMul)
FIRN_COMPOSITE(com_microsoft, QLinearSigmoid, "com.microsoft::QLinearSigmoid", qLinearSigmoid)
FIRN_COMPOSITE(com_microsoft, QLinearSoftmax, "com.microsoft::QLinearSoftmax", qLinearSoftmax)

} // namespace firn::kernels
