// Attention and RotaryEmbedding.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

// --- Attention -------------------------------------------------------------------------------------------------------

/// Heads inside a 4-D tensor [batch, heads, length, size] or a 3-D one [batch, length, heads * size].
struct Heads {
  const firn_view *view;
  int64_t heads, length, size;
  int64_t batchStride, headStride, rowStride;
};

struct AttentionOperands {
  Heads q, k, v;
  const firn_view *mask, *pastKey, *pastValue, *nonpad;
  int64_t batch, past, total;
  int64_t first; // position of the first query behind the cache
  int64_t yDims[4], yRank;
  int64_t leftWindow, rightWindow, outputMode;
  bool isCausal, hasNanRows, hasZeroNan;
  double scale, softcap;
  double maskedScore; // where a mask of bool is false
};

int32_t headsOf(firn_call *call, const char *name, const firn_view &view, const char *headsName, Heads *result) {
  FIRN_TRY(requireRank(call, name, view, 3, 4));
  result->view = &view;
  int64_t heads = intAttribute(call, headsName, 0);
  ShapeText found = describe(view);
  if (view.rank == 4) {
    if (heads != 0 && heads != view.dims[1])
      return fail(call, FIRN_CALL_INVALID, "%s %s disagrees with attribute %s: expected %lld heads, found %lld", name,
                  found.text, headsName, static_cast<long long>(heads), static_cast<long long>(view.dims[1]));
    result->heads = view.dims[1];
    result->length = view.dims[2];
    result->size = view.dims[3];
    result->rowStride = result->size;
    result->headStride = result->length * result->size;
  } else {
    if (heads <= 0)
      return fail(call, FIRN_CALL_INVALID, "attribute %s must be positive where %s has 3 axes, found %lld", headsName,
                  name, static_cast<long long>(heads));
    if (view.dims[2] % heads != 0)
      return fail(call, FIRN_CALL_INVALID, "the last dimension of %s %s must be a multiple of %s=%lld", name,
                  found.text, headsName, static_cast<long long>(heads));
    result->heads = heads;
    result->length = view.dims[1];
    result->size = view.dims[2] / heads;
    result->rowStride = view.dims[2];
    result->headStride = result->size;
  }
  result->batchStride = result->heads * result->length * result->size;
  return FIRN_CALL_OK;
}

/// Whether the compiler put past_key and past_value in front of K and V already.
bool isJoined(firn_call *call) { return intAttribute(call, "joined", 0) != 0; }

int32_t checkCache(firn_call *call, AttentionOperands *o) {
  FIRN_TRY(optionalInput(call, 4, "past_key", floatTypes, &o->pastKey));
  FIRN_TRY(optionalInput(call, 5, "past_value", floatTypes, &o->pastValue));
  FIRN_TRY(optionalInput(call, 6, "nonpad_kv_seqlen", typeSet(FIRN_I64), &o->nonpad));
  if (!o->pastKey != !o->pastValue)
    return fail(call, FIRN_CALL_INVALID, "past_key and past_value must be given together");
  if (o->nonpad && o->pastKey)
    return fail(call, FIRN_CALL_INVALID, "nonpad_kv_seqlen cannot be given together with past_key and past_value");
  FIRN_TRY(requireVector(call, "nonpad_kv_seqlen", o->nonpad, o->batch));
  o->past = 0;
  if (o->pastKey) {
    FIRN_TRY(requireRank(call, "past_key", *o->pastKey, 4, 4));
    FIRN_TRY(requireSameDtype(call, "past_key", o->pastKey, "K", *o->k.view));
    FIRN_TRY(requireSameDtype(call, "past_value", o->pastValue, "V", *o->v.view));
    o->past = o->pastKey->dims[2];
    int64_t keyDims[4] = {o->batch, o->k.heads, o->past, o->k.size};
    int64_t valueDims[4] = {o->batch, o->v.heads, o->past, o->v.size};
    FIRN_TRY(requireShape(call, "past_key", o->pastKey, keyDims, 4));
    FIRN_TRY(requireShape(call, "past_value", o->pastValue, valueDims, 4));
  }
  o->first = o->past;
  if (isJoined(call)) { // K and V begin with the past
    o->past = 0;
    o->pastKey = o->pastValue = nullptr;
  }
  if (__builtin_add_overflow(o->past, o->k.length, &o->total))
    return fail(call, FIRN_CALL_INVALID, "past and new keys together are too long");
  return FIRN_CALL_OK;
}

/// The mask must broadcast to [batch, heads, queries, keys]; its last dimension may be shorter.
int32_t checkMask(firn_call *call, AttentionOperands *o) {
  FIRN_TRY(optionalInput(call, 3, "attn_mask", floatTypes | integerTypes | typeSet(FIRN_BOOL), &o->mask));
  if (!o->mask)
    return FIRN_CALL_OK;
  int64_t dims[4] = {o->batch, o->q.heads, o->q.length, o->total};
  bool fits = o->mask->rank >= 1 && o->mask->rank <= 4 && o->mask->dims[o->mask->rank - 1] <= o->total;
  for (int32_t k = 2; fits && k <= o->mask->rank; ++k) {
    int64_t size = o->mask->dims[o->mask->rank - k];
    fits = size == 1 || size == dims[4 - k];
  }
  if (fits)
    return FIRN_CALL_OK;
  ShapeText found = describe(*o->mask), expected = describe(dims, 4);
  return fail(call, FIRN_CALL_INVALID, "attn_mask must broadcast to %s, found %s", expected.text, found.text);
}

int32_t attentionOperands(firn_call *call, AttentionOperands *o) {
  const firn_view *q, *k, *v;
  FIRN_TRY(requireInput(call, 0, "Q", floatTypes, &q));
  FIRN_TRY(requireInput(call, 1, "K", floatTypes, &k));
  FIRN_TRY(requireInput(call, 2, "V", floatTypes, &v));
  FIRN_TRY(requireSameDtype(call, "K", k, "Q", *q));
  FIRN_TRY(headsOf(call, "Q", *q, "q_num_heads", &o->q));
  FIRN_TRY(headsOf(call, "K", *k, "kv_num_heads", &o->k));
  FIRN_TRY(headsOf(call, "V", *v, "kv_num_heads", &o->v));
  ShapeText qText = describe(*q), kText = describe(*k), vText = describe(*v);
  if ((q->rank != k->rank || q->rank != v->rank) && !isJoined(call))
    return fail(call, FIRN_CALL_INVALID, "Q %s, K %s and V %s must have equally many axes", qText.text, kText.text,
                vText.text);
  o->batch = q->dims[0];
  if (k->dims[0] != o->batch || v->dims[0] != o->batch)
    return fail(call, FIRN_CALL_INVALID, "Q %s, K %s and V %s must have one batch size", qText.text, kText.text,
                vText.text);
  if (o->k.heads != o->v.heads || o->k.length != o->v.length)
    return fail(call, FIRN_CALL_INVALID, "K %s and V %s must have the same heads and length", kText.text, vText.text);
  if (o->q.size != o->k.size)
    return fail(call, FIRN_CALL_INVALID, "the heads of Q %s and K %s differ in size: expected %lld, found %lld",
                qText.text, kText.text, static_cast<long long>(o->q.size), static_cast<long long>(o->k.size));
  if (o->q.heads != 0 && (o->k.heads == 0 || o->q.heads % o->k.heads != 0))
    return fail(call, FIRN_CALL_INVALID,
                "the number of query heads must be a multiple of that of key heads: found %lld and %lld",
                static_cast<long long>(o->q.heads), static_cast<long long>(o->k.heads));
  FIRN_TRY(checkCache(call, o));
  FIRN_TRY(checkMask(call, o));
  o->isCausal = intAttribute(call, "is_causal", 0) != 0;
  o->hasNanRows = intAttribute(call, "nan_rows", 0) != 0;
  o->hasZeroNan = intAttribute(call, "zero_nan", 0) != 0;
  FIRN_TRY(boundedAttribute(call, "left_window_size", -1, -1, INT64_MAX, &o->leftWindow));
  FIRN_TRY(boundedAttribute(call, "right_window_size", -1, -1, INT64_MAX, &o->rightWindow));
  FIRN_TRY(boundedAttribute(call, "qk_matmul_output_mode", 0, 0, 3, &o->outputMode));
  o->scale = findAttribute(call, "scale") ? double(floatAttribute(call, "scale", 1)) : 1 / sqrt(double(o->q.size));
  o->maskedScore = floatAttribute(call, "masked_score", -INFINITY);
  o->softcap = floatAttribute(call, "softcap", 0);
  o->yDims[0] = o->batch;
  o->yRank = intAttribute(call, "rows", 0) != 0 ? 3 : q->rank;
  if (o->yRank == 4) {
    o->yDims[1] = o->q.heads;
    o->yDims[2] = o->q.length;
    o->yDims[3] = o->v.size;
  } else {
    o->yDims[1] = o->q.length;
    if (__builtin_mul_overflow(o->q.heads, o->v.size, &o->yDims[2]))
      return fail(call, FIRN_CALL_INVALID, "the last dimension of the result is out of range");
  }
  return FIRN_CALL_OK;
}

int32_t inferAttention(firn_call *call) {
  setRankLike(call, 0, 0);
  setRankLike(call, 1, 0, 4);
  setRankLike(call, 2, 2, 4);
  setRankLike(call, 3, 0, 4);
  AttentionOperands o;
  FIRN_TRY(attentionOperands(call, &o));
  int64_t keyDims[4] = {o.batch, o.k.heads, o.total, o.k.size};
  int64_t valueDims[4] = {o.batch, o.v.heads, o.total, o.v.size};
  int64_t scoreDims[4] = {o.batch, o.q.heads, o.q.length, o.total};
  int32_t dtype = o.q.view->dtype;
  FIRN_TRY(setChecked(call, 0, dtype, o.yDims, int32_t(o.yRank)));
  FIRN_TRY(setChecked(call, 1, dtype, keyDims, 4));
  FIRN_TRY(setChecked(call, 2, o.v.view->dtype, valueDims, 4));
  return setChecked(call, 3, dtype, scoreDims, 4);
}

/// Row `position` of the keys or values of one head: from the cache first, then from the new ones.
void loadCached(const Heads &heads, const firn_view *past, int64_t pastLength, int64_t batch, int64_t head,
                int64_t position, double *to) {
  if (position < pastLength)
    return loadDoubles(*past, ((batch * heads.heads + head) * pastLength + position) * heads.size, 1, heads.size, to);
  int64_t row = position - pastLength;
  loadDoubles(*heads.view, batch * heads.batchStride + head * heads.headStride + row * heads.rowStride, 1, heads.size,
              to);
}

void writePresent(const Heads &heads, const firn_view *past, int64_t pastLength, int64_t batch, firn_view *present) {
  if (!present)
    return;
  int64_t to = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads.heads; ++h) {
      if (past)
        copyElements(*present, to, *past, (b * heads.heads + h) * pastLength * heads.size, pastLength * heads.size);
      to += pastLength * heads.size;
      for (int64_t row = 0; row < heads.length; ++row, to += heads.size)
        copyElements(*present, to, *heads.view, b * heads.batchStride + h * heads.headStride + row * heads.rowStride,
                     heads.size);
    }
}

/// What is added to the scores of one query: -inf for keys that it must not see. Returns whether it sees any.
bool attentionBias(const AttentionOperands &o, const int64_t *maskStrides, int64_t batch, int64_t head, int64_t query,
                   double *bias) {
  int64_t nonpad = o.nonpad ? getInt(*o.nonpad, batch) : o.total;
  int64_t offset = o.nonpad ? nonpad - o.q.length : o.first;
  int64_t at = offset + query; // the query's absolute position
  int64_t maskLength = o.mask ? o.mask->dims[o.mask->rank - 1] : 0;
  if (o.mask) {
    int64_t first = batch * maskStrides[0] + head * maskStrides[1] + query * maskStrides[2];
    loadDoubles(*o.mask, first, 1, maskLength, bias);
    if (o.mask->dtype == FIRN_BOOL)
      for (int64_t j = 0; j < maskLength; ++j)
        bias[j] = bias[j] != 0 ? 0 : o.maskedScore;
  }
  bool seesAny = false;
  for (int64_t j = 0; j < o.total; ++j) {
    if (!o.mask)
      bias[j] = 0;
    bool isSeen = (!o.mask || j < maskLength) && j < nonpad && (!o.isCausal || j <= at) &&
                  (o.leftWindow < 0 || at - j <= o.leftWindow) && (o.rightWindow < 0 || j - at <= o.rightWindow);
    if (!isSeen)
      bias[j] = -double(INFINITY);
    seesAny |= !(bias[j] == -double(INFINITY));
  }
  return seesAny;
}

/// Where every value is -inf, the probabilities are 0, or NaN.
void softmaxInPlace(double *values, int64_t count, bool hasNanRows) {
  double largest = -double(INFINITY), sum = 0;
  for (int64_t j = 0; j < count; ++j)
    largest = values[j] > largest || isnan(values[j]) ? values[j] : largest;
  if (largest == -double(INFINITY) && !hasNanRows)
    largest = 0;
  for (int64_t j = 0; j < count; ++j)
    sum += values[j] = exp(values[j] - largest);
  for (int64_t j = 0; j < count && sum != 0; ++j)
    values[j] /= sum;
}

int32_t runAttention(firn_call *call) {
  AttentionOperands o;
  FIRN_TRY(attentionOperands(call, &o));
  firn_view *y = output(call, 0), *qk = output(call, 3);
  writePresent(o.k, o.pastKey, o.past, o.batch, output(call, 1));
  writePresent(o.v, o.pastValue, o.past, o.batch, output(call, 2));
  double *keys, *values, *query, *scores, *bias, *result;
  FIRN_TRY(allocate(call, o.total * o.k.size, &keys));
  FIRN_TRY(allocate(call, o.total * o.v.size, &values));
  FIRN_TRY(allocate(call, o.q.size, &query));
  FIRN_TRY(allocate(call, o.total, &scores));
  FIRN_TRY(allocate(call, o.total, &bias));
  FIRN_TRY(allocate(call, o.v.size, &result));
  int64_t maskStrides[4] = {0, 0, 0, 0};
  if (o.mask) {
    int64_t dims[4] = {o.batch, o.q.heads, o.q.length, o.mask->dims[o.mask->rank - 1]};
    broadcastStrides(*o.mask, dims, 4, maskStrides);
  }
  bool isReplaced = o.mask && o.mask->dtype == FIRN_BOOL && !isinf(o.maskedScore);
  int64_t group = o.k.heads ? o.q.heads / o.k.heads : 1;
  for (int64_t b = 0; b < o.batch; ++b)
    for (int64_t h = 0; h < o.q.heads; ++h) {
      for (int64_t j = 0; j < o.total && h % group == 0; ++j) {
        loadCached(o.k, o.pastKey, o.past, b, h / group, j, keys + j * o.k.size);
        loadCached(o.v, o.pastValue, o.past, b, h / group, j, values + j * o.v.size);
      }
      for (int64_t i = 0; i < o.q.length; ++i) {
        loadDoubles(*o.q.view, b * o.q.batchStride + h * o.q.headStride + i * o.q.rowStride, 1, o.q.size, query);
        int64_t qkFirst = ((b * o.q.heads + h) * o.q.length + i) * o.total;
        bool seesAny = attentionBias(o, maskStrides, b, h, i, bias);
        for (int64_t j = 0; j < o.total; ++j) {
          double sum = 0;
          for (int64_t e = 0; e < o.q.size; ++e)
            sum += query[e] * keys[j * o.k.size + e];
          scores[j] = sum * o.scale;
        }
        if (qk && o.outputMode == 0)
          storeDoubles(*qk, qkFirst, o.total, scores);
        for (int64_t j = 0; j < o.total && o.softcap > 0; ++j)
          scores[j] = o.softcap * tanh(scores[j] / o.softcap);
        if (qk && o.outputMode == 1)
          storeDoubles(*qk, qkFirst, o.total, scores);
        for (int64_t j = 0; j < o.total; ++j)
          scores[j] = isReplaced && bias[j] == o.maskedScore ? bias[j] : scores[j] + bias[j];
        if (qk && o.outputMode == 2)
          storeDoubles(*qk, qkFirst, o.total, scores);
        seesAny |= o.hasNanRows;
        if (seesAny)
          softmaxInPlace(scores, o.total, o.hasNanRows);
        else
          memset(scores, 0, size_t(o.total) * sizeof(double));
        for (int64_t j = 0; j < o.total && o.hasZeroNan; ++j)
          scores[j] = isnan(scores[j]) ? 0 : scores[j];
        if (qk && o.outputMode == 3)
          storeDoubles(*qk, qkFirst, o.total, scores);
        memset(result, 0, size_t(o.v.size) * sizeof(double));
        for (int64_t j = 0; j < o.total && seesAny; ++j)
          for (int64_t e = 0; e < o.v.size; ++e)
            result[e] += scores[j] * values[j * o.v.size + e];
        int64_t to = o.yRank == 4 ? ((b * o.q.heads + h) * o.q.length + i) * o.v.size
                                  : ((b * o.q.length + i) * o.q.heads + h) * o.v.size;
        if (y)
          storeDoubles(*y, to, o.v.size, result);
      }
    }
  return FIRN_CALL_OK;
}

// --- RotaryEmbedding -------------------------------------------------------------------------------------------------

struct RotaryOperands {
  Heads x;
  const firn_view *cosine, *sine, *positions;
  int64_t batch, half;
  bool isInterleaved;
};

int32_t rotaryOperands(firn_call *call, RotaryOperands *o) {
  constexpr uint32_t dtypes = floatTypes;
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "X", dtypes, &x));
  FIRN_TRY(requireInput(call, 1, "cos_cache", dtypes, &o->cosine));
  FIRN_TRY(requireInput(call, 2, "sin_cache", dtypes, &o->sine));
  FIRN_TRY(optionalInput(call, 3, "position_ids", typeSet(FIRN_I64), &o->positions));
  FIRN_TRY(requireSameDtype(call, "cos_cache", o->cosine, "X", *x));
  FIRN_TRY(requireSameDtype(call, "sin_cache", o->sine, "X", *x));
  FIRN_TRY(headsOf(call, "X", *x, "num_heads", &o->x));
  o->batch = x->dims[0];
  o->isInterleaved = intAttribute(call, "interleaved", 0) != 0;
  int64_t rotated;
  FIRN_TRY(boundedAttribute(call, "rotary_embedding_dim", 0, 0, o->x.size, &rotated));
  if (rotated == 0)
    rotated = o->x.size;
  if (rotated % 2 != 0)
    return fail(call, FIRN_CALL_INVALID, "the rotated part of a head must have an even size, found %lld",
                static_cast<long long>(rotated));
  o->half = rotated / 2;
  if (o->positions) {
    int64_t ids[2] = {o->batch, o->x.length};
    FIRN_TRY(requireShape(call, "position_ids", o->positions, ids, 2));
    FIRN_TRY(requireRank(call, "cos_cache", *o->cosine, 2, 2));
    int64_t cache[2] = {o->cosine->dims[0], o->half};
    FIRN_TRY(requireShape(call, "cos_cache", o->cosine, cache, 2));
    return requireShape(call, "sin_cache", o->sine, cache, 2);
  }
  int64_t cache[3] = {o->batch, o->x.length, o->half};
  FIRN_TRY(requireShape(call, "cos_cache", o->cosine, cache, 3));
  return requireShape(call, "sin_cache", o->sine, cache, 3);
}

int32_t inferRotary(firn_call *call) {
  setRankLike(call, 0, 0);
  RotaryOperands o;
  FIRN_TRY(rotaryOperands(call, &o));
  return setChecked(call, 0, o.x.view->dtype, o.x.view->dims, o.x.view->rank);
}

int32_t runRotary(firn_call *call) {
  RotaryOperands o;
  FIRN_TRY(rotaryOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  double *head, *cosine, *sine;
  FIRN_TRY(allocate(call, o.x.size, &head));
  FIRN_TRY(allocate(call, o.half, &cosine));
  FIRN_TRY(allocate(call, o.half, &sine));
  for (int64_t b = 0; b < o.batch; ++b)
    for (int64_t i = 0; i < o.x.length; ++i) {
      int64_t row = b * o.x.length + i;
      if (o.positions) {
        int64_t position = getInt(*o.positions, row);
        if (position < 0 || position >= o.cosine->dims[0])
          return fail(call, FIRN_CALL_INVALID,
                      "position_ids[%lld, %lld] is out of range: expected 0 to %lld, found %lld",
                      static_cast<long long>(b), static_cast<long long>(i),
                      static_cast<long long>(o.cosine->dims[0] - 1), static_cast<long long>(position));
        row = position;
      }
      loadDoubles(*o.cosine, row * o.half, 1, o.half, cosine);
      loadDoubles(*o.sine, row * o.half, 1, o.half, sine);
      for (int64_t h = 0; h < o.x.heads; ++h) {
        int64_t at = b * o.x.batchStride + h * o.x.headStride + i * o.x.rowStride;
        loadDoubles(*o.x.view, at, 1, o.x.size, head);
        for (int64_t k = 0; k < o.half; ++k) {
          double &real = head[o.isInterleaved ? 2 * k : k], &imaginary = head[o.isInterleaved ? 2 * k + 1 : k + o.half];
          double rotated = cosine[k] * real - sine[k] * imaginary;
          imaginary = sine[k] * real + cosine[k] * imaginary;
          real = rotated;
        }
        storeDoubles(*y, at, o.x.size, head);
      }
    }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Attention, "ai.onnx::Attention", inferAttention, runAttention)
FIRN_OPERATOR(ai_onnx, RotaryEmbedding, "ai.onnx::RotaryEmbedding", inferRotary, runRotary)

} // namespace firn::kernels
