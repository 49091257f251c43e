// com.microsoft: attention in the forms of fused transformers, all in terms of ai.onnx's Attention.
#include "runtime/kernels/Compose.h"

FIRN_USES(Add)
FIRN_USES(Attention)
FIRN_USES(Concat)
FIRN_USES(Expand)
FIRN_USES(Gather)
FIRN_USES(GreaterOrEqual)
FIRN_USES(Less)
FIRN_USES(MatMul)
FIRN_USES(MatMulInteger)
FIRN_USES(Max)
FIRN_USES(Mul)
FIRN_USES(Or)
FIRN_USES(Range)
FIRN_USES(RotaryEmbedding)
FIRN_USES(Shape)
FIRN_USES(Split)
FIRN_USES(Sub)
FIRN_USES(Transpose)
FIRN_USES(Unsqueeze)
FIRN_USES(Where)

namespace firn::kernels {
namespace {

using Value = Composer::Value;
constexpr Value absent = Composer::absent;

/// Dimensions [from, to) of a value, as a list.
Value sizes(Composer &c, Value x, int64_t from, int64_t to) {
  AttributeList attributes;
  attributes.integer("start", from).integer("end", to);
  return c.op(firn_op_ai_onnx_Shape, {x}, attributes);
}

/// 0, 1, ... as [length], for a length that is a list of one.
Value counting(Composer &c, Value length) {
  Value end =
      c.op(firn_op_ai_onnx_Range, {c.scalar(FIRN_I64, 0), c.op(firn_op_ai_onnx_Gather, {length, c.scalar(FIRN_I64, 0)}),
                                   c.scalar(FIRN_I64, 1)});
  return end;
}

Value unsqueeze(Composer &c, Value x, std::initializer_list<int64_t> axes) {
  return c.op(firn_op_ai_onnx_Unsqueeze, {x, c.integers(axes)});
}

/// Parts of these sizes along an axis.
void split(Composer &c, Value x, std::initializer_list<int64_t> parts, int64_t axis, Value *made) {
  AttributeList attributes;
  attributes.integer("axis", axis);
  Value inputs[] = {x, c.integers(parts)};
  c.op(firn_op_ai_onnx_Split, inputs, 2, attributes, made, int32_t(parts.size()));
}

/// [B, S, heads * size] as [B, heads, S, size].
Value byHeads(Composer &c, Value x, int64_t heads) {
  return c.transpose(c.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

/// Part `i` of an axis, without the axis.
Value part(Composer &c, Value x, int64_t i, int64_t axis) {
  AttributeList attributes;
  attributes.integer("axis", axis);
  return c.op(firn_op_ai_onnx_Gather, {x, c.scalar(FIRN_I64, double(i))}, attributes);
}

Value sum(Composer &c, Value a, Value b) {
  return a == absent ? b : b == absent ? a : c.op(firn_op_ai_onnx_Add, {a, b});
}

/// What is added to the scores of keys that input `i` masks: lengths [B], or ones where keys count, [B, T], [B, S, T]
/// or [B, 1, S, T]. `total`: how many keys there are, a list of one.
Value maskBias(Composer &c, int32_t i, int32_t dtype, Value total) {
  Value mask = c.in(i);
  if (mask == absent || c.isFailed())
    return absent;
  int32_t rank = c.rank(mask);
  Value isKept;
  if (rank == 1) {
    Value lengths = unsqueeze(c, c.cast(mask, FIRN_I64), {1});
    isKept = c.op(firn_op_ai_onnx_Less, {counting(c, total), lengths});
    rank = 2;
  } else {
    isKept = c.cast(mask, FIRN_BOOL);
  }
  if (rank == 2)
    isKept = unsqueeze(c, isKept, {1, 2});
  else if (rank == 3)
    isKept = unsqueeze(c, isKept, {1});
  double filter = double(floatAttribute(c.call, "mask_filter_value", -10000));
  return c.op(firn_op_ai_onnx_Where, {isKept, c.scalar(dtype, 0), c.scalar(dtype, filter)});
}

struct Heads {
  Value q, k, v; // [B, S, heads * size], or all [B, heads, S, size]
  bool areSplit = false;
  int64_t heads, keyHeads;
  Value bias = absent, pastKey = absent, pastValue = absent;
  bool isCausal = false;
  int64_t window = -1;
  float softcap = 0;
};

/// The output as [B, S, heads * size]; keys and values, with those of the past, as far as `present` is wanted.
Value attend(Composer &c, const Heads &h, bool wantsPresent, Value *presentKey, Value *presentValue) {
  AttributeList attributes;
  if (!h.areSplit)
    attributes.integer("q_num_heads", h.heads).integer("kv_num_heads", h.keyHeads);
  if (h.isCausal)
    attributes.integer("is_causal", 1);
  if (h.window >= 0)
    attributes.integer("left_window_size", h.window);
  if (h.softcap != 0)
    attributes.real("softcap", h.softcap);
  if (float scale = floatAttribute(c.call, "scale", 0); scale != 0)
    attributes.real("scale", scale);
  Value inputs[] = {h.q, h.k, h.v, h.bias, h.pastKey, h.pastValue}, made[3];
  bool hasPast = h.pastKey != absent;
  c.op(firn_op_ai_onnx_Attention, inputs, 6, attributes, made, wantsPresent && hasPast ? 3 : 1);
  if (wantsPresent) {
    *presentKey = hasPast ? made[1] : h.areSplit ? h.k : byHeads(c, h.k, h.keyHeads);
    *presentValue = hasPast ? made[2] : h.areSplit ? h.v : byHeads(c, h.v, h.keyHeads);
  }
  return h.areSplit ? c.reshape(c.transpose(made[0], {0, 2, 1, 3}), {0, 0, -1}) : made[0];
}

int64_t headsOf(Composer &c, const char *name) {
  int64_t heads = intAttribute(c.call, name, 0);
  if (heads < 1 || heads > 1 << 20) {
    c.refuse(FIRN_CALL_INVALID, "the number of heads must be positive");
    heads = 1;
  }
  return heads;
}

/// The size of an axis that must be known when the model is compiled.
int64_t fixedSize(Composer &c, Value x, int32_t axis) {
  if (c.isFailed())
    return 1;
  int64_t size = c.type(x).dims[axis];
  if (size < 1)
    c.refuse(FIRN_CALL_UNSUPPORTED, "the size of its last axis must be known and positive");
  return size < 1 ? 1 : size;
}

// --- Attention, QAttention -------------------------------------------------------------------------------------------

/// What follows the projection of the input to [B, S, q + k + v]. `mask`, `past`, `bias`: numbers of inputs.
void projectedAttention(Composer &c, Value projected, int64_t width, int32_t dtype, int32_t mask, int32_t past,
                        int32_t bias) {
  for (const char *name : {"do_rotary", "past_present_share_buffer"})
    if (intAttribute(c.call, name, 0))
      return c.refuse(FIRN_CALL_UNSUPPORTED,
                      "attributes 'do_rotary' and 'past_present_share_buffer' are not supported");
  int64_t count;
  const int64_t *hidden = intsAttribute(c.call, "qkv_hidden_sizes", &count);
  bool isGiven = hidden && count == 3;
  int64_t q = isGiven ? hidden[0] : width / 3, k = isGiven ? hidden[1] : width / 3;
  Value parts[3];
  split(c, projected, {q, k, width - q - k}, 2, parts);
  Heads h;
  h.q = parts[0], h.k = parts[1], h.v = parts[2];
  h.heads = h.keyHeads = headsOf(c, "num_heads");
  h.isCausal = intAttribute(c.call, "unidirectional", 0) != 0;
  Value total = sizes(c, projected, 1, 2);
  if (c.in(past) != absent) {
    h.pastKey = part(c, c.need(past, "past", floatTypes, 5, 5), 0, 0);
    h.pastValue = part(c, past, 1, 0);
    total = sum(c, total, sizes(c, past, 3, 4));
  }
  h.bias = sum(c, maskBias(c, mask, dtype, total), c.in(bias));
  Value key, value;
  c.result(0, attend(c, h, c.wants(1), &key, &value));
  if (c.wants(1)) {
    AttributeList first;
    first.integer("axis", 0);
    c.result(1, c.op(firn_op_ai_onnx_Concat, {unsqueeze(c, key, {0}), unsqueeze(c, value, {0})}, first));
  }
}

void attention(Composer &c) {
  Value x = c.need(0, "input", floatTypes, 3, 3), weights = c.need(1, "weights", floatTypes, 2, 2);
  int64_t width = fixedSize(c, weights, 1);
  Value projected = sum(c, c.op(firn_op_ai_onnx_MatMul, {x, weights}), c.in(2));
  projectedAttention(c, projected, width, c.isFailed() ? FIRN_F32 : c.dtype(x), 3, 4, 5);
}

void qAttention(Composer &c) {
  Value x = c.need(0, "input", byteTypes, 3, 3), weights = c.need(1, "weight", byteTypes, 2, 2);
  Value bias = c.need(2, "bias", floatTypes, 1, 1);
  Value inScale = c.need(3, "input_scale", floatTypes), scale = c.need(4, "weight_scale", floatTypes);
  int64_t width = fixedSize(c, weights, 1);
  int32_t dtype = c.isFailed() ? FIRN_F32 : c.dtype(inScale);
  Value product = c.op(firn_op_ai_onnx_MatMulInteger, {x, weights, c.in(6), c.in(7)});
  Value projected = c.op(firn_op_ai_onnx_Mul, {c.cast(product, dtype), c.op(firn_op_ai_onnx_Mul, {inScale, scale})});
  projectedAttention(c, sum(c, projected, bias), width, dtype, 5, 8, 9);
}

// --- MultiHeadAttention ----------------------------------------------------------------------------------------------

/// Adds the biases of q, k and v, which lie behind each other in input 3.
void addBiases(Composer &c, Heads &h, int64_t width, bool onlyQuery) {
  if (c.in(3) == absent || c.isFailed())
    return;
  int64_t total = fixedSize(c, 3, 0);
  if (total <= 2 * width)
    return c.refuse(FIRN_CALL_INVALID, "bias must hold those of query, key and value");
  Value parts[3];
  split(c, 3, {width, width, total - 2 * width}, 0, parts);
  h.q = sum(c, h.q, parts[0]);
  if (!onlyQuery) {
    h.k = sum(c, h.k, parts[1]);
    h.v = sum(c, h.v, parts[2]);
  }
}

void multiHeadAttention(Composer &c) {
  Value query = c.need(0, "query", floatTypes, 3, 5), key = c.in(1);
  Heads h;
  h.heads = h.keyHeads = headsOf(c, "num_heads");
  h.isCausal = intAttribute(c.call, "unidirectional", 0) != 0;
  if (c.isFailed())
    return;
  if (c.in(8) != absent || c.in(9) != absent)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "past_sequence_length and cache_indirection are not supported");
  bool isCache = key != absent && c.rank(key) == 4; // keys and values by heads, as a cache holds them
  int64_t width;
  if (c.rank(query) == 5) { // [B, S, heads, 3, size]
    width = h.heads * fixedSize(c, query, 4);
    h.q = c.reshape(part(c, query, 0, 3), {0, 0, -1});
    h.k = c.reshape(part(c, query, 1, 3), {0, 0, -1});
    h.v = c.reshape(part(c, query, 2, 3), {0, 0, -1});
  } else if (key == absent) {
    return c.refuse(FIRN_CALL_INVALID, "key must be given where query is not packed");
  } else {
    h.q = query;
    width = fixedSize(c, query, 2);
    if (c.rank(key) == 5) { // [B, L, heads, 2, size]
      h.k = c.reshape(part(c, key, 0, 3), {0, 0, -1});
      h.v = c.reshape(part(c, key, 1, 3), {0, 0, -1});
    } else {
      h.k = key;
      h.v = c.need(2, "value", floatTypes, 3, 4);
    }
  }
  addBiases(c, h, width, isCache);
  Value total = sizes(c, h.k, isCache ? 2 : 1, isCache ? 3 : 2);
  if (isCache) {
    h.q = byHeads(c, h.q, h.heads);
    h.areSplit = true;
  } else if (c.in(6) != absent) {
    h.pastKey = c.need(6, "past_key", floatTypes, 4, 4);
    h.pastValue = c.need(7, "past_value", floatTypes, 4, 4);
    total = sum(c, total, sizes(c, h.pastKey, 2, 3));
  }
  h.bias = sum(c, maskBias(c, 4, c.dtype(query), total), c.in(5));
  Value presentKey, presentValue;
  bool wantsPresent = c.wants(1) || c.wants(2);
  c.result(0, attend(c, h, wantsPresent, &presentKey, &presentValue));
  if (wantsPresent) {
    c.result(1, presentKey);
    c.result(2, presentValue);
  }
}

// --- RotaryEmbedding, GroupQueryAttention ----------------------------------------------------------------------------

Value rotate(Composer &c, Value x, Value cosines, Value sines, Value positions, int64_t heads, int64_t rotated,
             bool interleaved) {
  AttributeList attributes;
  attributes.integer("interleaved", interleaved);
  if (heads > 0)
    attributes.integer("num_heads", heads);
  if (rotated > 0)
    attributes.integer("rotary_embedding_dim", rotated);
  return c.op(firn_op_ai_onnx_RotaryEmbedding, {x, cosines, sines, positions}, attributes);
}

void rotaryEmbedding(Composer &c) {
  Value x = c.need(0, "input", floatTypes, 3, 4), positions = c.need(1, "position_ids", indexTypes, 1, 2);
  Value cosines = c.need(2, "cos_cache", floatTypes, 2, 2), sines = c.need(3, "sin_cache", floatTypes, 2, 2);
  if (c.isFailed())
    return;
  if (floatAttribute(c.call, "scale", 1) != 1 || intAttribute(c.call, "is_packed_batching", 0))
    return c.refuse(FIRN_CALL_UNSUPPORTED, "a scale, and packed batches, are not supported");
  int64_t heads = intAttribute(c.call, "num_heads", 0), rotated = intAttribute(c.call, "rotary_embedding_dim", 0);
  if (c.rank(x) == 3 && heads == 0)
    heads = fixedSize(c, x, 2) / (2 * fixedSize(c, cosines, 1));
  positions = c.cast(positions, FIRN_I64);
  if (c.rank(1) == 1) { // where the first position of each sequence stands
    int64_t axis = c.rank(x) == 3 ? 1 : 2;
    Value length = sizes(c, x, axis, axis + 1);
    AttributeList first;
    first.integer("axis", 0);
    Value shape = c.op(firn_op_ai_onnx_Concat, {sizes(c, x, 0, 1), length}, first);
    positions = c.op(firn_op_ai_onnx_Expand, {sum(c, positions, counting(c, length)), shape});
  }
  c.result(0, rotate(c, x, cosines, sines, positions, c.rank(x) == 3 ? heads : 0, rotated,
                     intAttribute(c.call, "interleaved", 0) != 0));
}

/// Where each sequence's new tokens begin: behind the `seqlens_k` + 1 - S tokens before.
void groupQueryAttention(Composer &c) {
  Value query = c.need(0, "query", floatTypes, 3, 3), lengths = c.need(5, "seqlens_k", indexTypes);
  Heads h;
  h.heads = headsOf(c, "num_heads");
  h.keyHeads = headsOf(c, "kv_num_heads");
  if (c.isFailed())
    return;
  for (int32_t i = 11; i <= 15; ++i)
    if (c.in(i) != absent)
      return c.refuse(FIRN_CALL_UNSUPPORTED, "head_sink, quantised caches and norms of queries are not supported");
  if (intAttribute(c.call, "smooth_softmax", 0) > 0)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "attribute 'smooth_softmax' is not supported");
  if (c.in(1) == absent) { // packed
    int64_t width = fixedSize(c, query, 2), size = width / (h.heads + 2 * h.keyHeads);
    Value parts[3];
    split(c, query, {h.heads * size, h.keyHeads * size, h.keyHeads * size}, 2, parts);
    h.q = parts[0], h.k = parts[1], h.v = parts[2];
  } else {
    h.q = query;
    h.k = c.need(1, "key", floatTypes, 3, 3);
    h.v = c.need(2, "value", floatTypes, 3, 3);
  }
  Value length = sizes(c, query, 1, 2), before;
  before =
      c.op(firn_op_ai_onnx_Sub, {sum(c, c.reshape(c.cast(lengths, FIRN_I64), {-1, 1}), c.scalar(FIRN_I64, 1)), length});
  before = c.op(firn_op_ai_onnx_Max, {before, c.scalar(FIRN_I64, 0)}); // prompts of unequal length end early
  if (intAttribute(c.call, "do_rotary", 0)) {
    Value positions = c.in(9) != absent ? c.cast(c.in(9), FIRN_I64) : sum(c, before, counting(c, length));
    Value cosines = c.need(7, "cos_cache", floatTypes, 2, 2), sines = c.need(8, "sin_cache", floatTypes, 2, 2);
    bool interleaved = intAttribute(c.call, "rotary_interleaved", 0) != 0;
    h.q = rotate(c, h.q, cosines, sines, positions, h.heads, 0, interleaved);
    h.k = rotate(c, h.k, cosines, sines, positions, h.keyHeads, 0, interleaved);
  }
  h.isCausal = intAttribute(c.call, "causal", 1) != 0;
  int64_t window = intAttribute(c.call, "local_window_size", -1);
  h.window = window > 0 ? window - 1 : -1;
  h.softcap = floatAttribute(c.call, "softcap", 0);
  h.bias = c.in(10);
  if (c.in(3) != absent) {
    h.pastKey = c.need(3, "past_key", floatTypes, 4, 4);
    h.pastValue = c.need(4, "past_value", floatTypes, 4, 4);
    if (!c.isFailed() && c.type(query).dims[0] != 1) {
      // Shorter sequences leave a gap between their past and the new tokens.
      Value past = sizes(c, h.pastKey, 2, 3), position = counting(c, sum(c, past, length));
      Value isKept = c.op(firn_op_ai_onnx_Or, {c.op(firn_op_ai_onnx_Less, {position, before}),
                                               c.op(firn_op_ai_onnx_GreaterOrEqual, {position, past})});
      int32_t dtype = c.dtype(query);
      Value gap =
          c.op(firn_op_ai_onnx_Where, {unsqueeze(c, isKept, {1, 2}), c.scalar(dtype, 0), c.scalar(dtype, -INFINITY)});
      h.bias = sum(c, h.bias, gap);
    }
  }
  Value presentKey, presentValue;
  bool wantsPresent = c.wants(1) || c.wants(2);
  c.result(0, attend(c, h, wantsPresent, &presentKey, &presentValue));
  if (wantsPresent) {
    c.result(1, presentKey);
    c.result(2, presentValue);
  }
}

} // namespace

FIRN_COMPOSITE(com_microsoft, Attention, "com.microsoft::Attention", attention)
FIRN_COMPOSITE(com_microsoft, GroupQueryAttention, "com.microsoft::GroupQueryAttention", groupQueryAttention)
FIRN_COMPOSITE(com_microsoft, MultiHeadAttention, "com.microsoft::MultiHeadAttention", multiHeadAttention)
FIRN_COMPOSITE(com_microsoft, QAttention, "com.microsoft::QAttention", qAttention)
FIRN_COMPOSITE(com_microsoft, RotaryEmbedding, "com.microsoft::RotaryEmbedding", rotaryEmbedding)

} // namespace firn::kernels
