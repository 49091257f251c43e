// LinearAttention and CausalConvWithState: operators that carry a state of fixed size from token to token.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

constexpr uint32_t realTypes = typeSet(FIRN_F32) | typeSet(FIRN_F16) | typeSet(FIRN_BF16);

// --- LinearAttention -------------------------------------------------------------------------------------------------

enum Rule { linearRule, gatedRule, deltaRule, gatedDeltaRule };

struct LinearAttentionOperands {
  const firn_view *q, *k, *v, *past, *decay, *beta;
  int64_t batch, steps, qHeads, kvHeads, keySize, valueSize;
  bool isGated, isCorrected, hasDecayPerKey, hasBetaPerHead;
  double scale;
  int64_t stateDims[4];
};

int32_t requirePacked(firn_call *call, const char *name, const firn_view &view, int64_t batch, int64_t steps,
                      int64_t size, int64_t otherSize) {
  if (view.rank == 3 && view.dims[0] == batch && view.dims[1] == steps &&
      (view.dims[2] == size || view.dims[2] == otherSize))
    return FIRN_CALL_OK;
  int64_t dims[3] = {batch, steps, size};
  return requireShape(call, name, &view, dims, 3);
}

int32_t requirePresence(firn_call *call, const char *name, const firn_view *view, bool isWanted) {
  if (!view == !isWanted)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute update_rule %s input %s", isWanted ? "needs" : "forbids", name);
}

int32_t linearAttentionOperands(firn_call *call, LinearAttentionOperands *o) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
  FIRN_TRY(requireInput(call, 0, "query", realTypes, &o->q));
  FIRN_TRY(requireInput(call, 1, "key", realTypes, &o->k));
  FIRN_TRY(requireInput(call, 2, "value", realTypes, &o->v));
  FIRN_TRY(optionalInput(call, 3, "past_state", realTypes, &o->past));
  FIRN_TRY(optionalInput(call, 4, "decay", realTypes, &o->decay));
  FIRN_TRY(optionalInput(call, 5, "beta", realTypes, &o->beta));
  FIRN_TRY(requireSameDtype(call, "key", o->k, "query", *o->q));
  FIRN_TRY(requireSameDtype(call, "value", o->v, "query", *o->q));
  FIRN_TRY(requireSameDtype(call, "decay", o->decay, "query", *o->q));
  FIRN_TRY(requireSameDtype(call, "beta", o->beta, "query", *o->q));
  int32_t rule;
  FIRN_TRY(choiceAttribute(call, "update_rule", rules, 4, gatedDeltaRule, &rule));
  o->isGated = rule == gatedRule || rule == gatedDeltaRule;
  o->isCorrected = rule == deltaRule || rule == gatedDeltaRule;
  FIRN_TRY(requirePresence(call, "decay", o->decay, o->isGated));
  FIRN_TRY(requirePresence(call, "beta", o->beta, o->isCorrected));
  FIRN_TRY(boundedAttribute(call, "q_num_heads", 0, 1, INT32_MAX, &o->qHeads));
  FIRN_TRY(boundedAttribute(call, "kv_num_heads", 0, 1, INT32_MAX, &o->kvHeads));
  FIRN_TRY(requireRank(call, "query", *o->q, 3, 3));
  FIRN_TRY(requireRank(call, "value", *o->v, 3, 3));
  if (o->qHeads % o->kvHeads != 0 || o->q->dims[2] % o->qHeads != 0 || o->v->dims[2] % o->kvHeads != 0) {
    ShapeText q = describe(*o->q), v = describe(*o->v);
    return fail(call, FIRN_CALL_INVALID,
                "heads do not divide: query %s by q_num_heads=%lld, value %s and q_num_heads by kv_num_heads=%lld",
                q.text, static_cast<long long>(o->qHeads), v.text, static_cast<long long>(o->kvHeads));
  }
  o->batch = o->q->dims[0];
  o->steps = o->q->dims[1];
  o->keySize = o->q->dims[2] / o->qHeads;
  o->valueSize = o->v->dims[2] / o->kvHeads;
  int64_t keys = o->kvHeads * o->keySize;
  FIRN_TRY(requirePacked(call, "key", *o->k, o->batch, o->steps, keys, keys));
  FIRN_TRY(requirePacked(call, "value", *o->v, o->batch, o->steps, o->v->dims[2], o->v->dims[2]));
  if (o->decay)
    FIRN_TRY(requirePacked(call, "decay", *o->decay, o->batch, o->steps, o->kvHeads, keys));
  if (o->beta)
    FIRN_TRY(requirePacked(call, "beta", *o->beta, o->batch, o->steps, o->kvHeads, 1));
  o->hasDecayPerKey = o->decay && o->decay->dims[2] != o->kvHeads;
  o->hasBetaPerHead = o->beta && o->beta->dims[2] == o->kvHeads;
  int64_t stateDims[4] = {o->batch, o->kvHeads, o->keySize, o->valueSize};
  memcpy(o->stateDims, stateDims, sizeof stateDims);
  o->scale = floatAttribute(call, "scale", 0);
  if (o->scale == 0)
    o->scale = 1 / sqrt(double(o->keySize));
  return requireShape(call, "past_state", o->past, stateDims, 4);
}

int32_t inferLinearAttention(firn_call *call) {
  setRankLike(call, 0, 0, 3);
  setRankLike(call, 1, input(call, 3) ? 3 : 0, 4);
  LinearAttentionOperands o;
  FIRN_TRY(linearAttentionOperands(call, &o));
  int64_t dims[3] = {o.batch, o.steps, 0};
  if (__builtin_mul_overflow(o.qHeads, o.valueSize, &dims[2]))
    return fail(call, FIRN_CALL_INVALID, "the last dimension of the result is out of range");
  FIRN_TRY(setChecked(call, 0, o.q->dtype, dims, 3));
  return setChecked(call, 1, o.past ? o.past->dtype : o.q->dtype, o.stateDims, 4);
}

/// Takes the state of one head, [keySize, valueSize], one token further.
void updateState(const LinearAttentionOperands &o, int64_t row, int64_t head, const double *key, double *value,
                 double *retrieved, double *state) {
  int64_t n = o.keySize, m = o.valueSize;
  for (int64_t i = 0; i < n && o.isGated; ++i) {
    int64_t at = o.hasDecayPerKey ? (row * o.kvHeads + head) * n + i : row * o.kvHeads + head;
    double kept = exp(getDouble(*o.decay, at));
    for (int64_t j = 0; j < m; ++j)
      state[i * m + j] *= kept;
  }
  if (o.isCorrected) {
    double rate = getDouble(*o.beta, o.hasBetaPerHead ? row * o.kvHeads + head : row);
    for (int64_t j = 0; j < m; ++j)
      retrieved[j] = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j)
        retrieved[j] += state[i * m + j] * key[i];
    for (int64_t j = 0; j < m; ++j)
      value[j] = rate * (value[j] - retrieved[j]);
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j)
      state[i * m + j] += key[i] * value[j];
}

int32_t runLinearAttention(firn_call *call) {
  LinearAttentionOperands o;
  FIRN_TRY(linearAttentionOperands(call, &o));
  firn_view *y = output(call, 0), *present = output(call, 1);
  int64_t n = o.keySize, m = o.valueSize, group = o.qHeads / o.kvHeads;
  double *state, *key, *value, *sums;
  FIRN_TRY(allocate(call, n * m, &state));
  FIRN_TRY(allocate(call, n, &key));
  FIRN_TRY(allocate(call, m, &value));
  FIRN_TRY(allocate(call, m, &sums));
  for (int64_t b = 0; b < o.batch; ++b)
    for (int64_t h = 0; h < o.kvHeads; ++h) {
      int64_t stateFirst = (b * o.kvHeads + h) * n * m;
      for (int64_t i = 0; i < n * m; ++i)
        state[i] = o.past ? getDouble(*o.past, stateFirst + i) : 0;
      for (int64_t t = 0; t < o.steps; ++t) {
        int64_t row = b * o.steps + t;
        loadDoubles(*o.k, (row * o.kvHeads + h) * n, 1, n, key);
        loadDoubles(*o.v, (row * o.kvHeads + h) * m, 1, m, value);
        updateState(o, row, h, key, value, sums, state);
        for (int64_t g = h * group; g < (h + 1) * group && y; ++g) {
          for (int64_t j = 0; j < m; ++j)
            sums[j] = 0;
          for (int64_t i = 0; i < n; ++i) {
            double query = o.scale * getDouble(*o.q, (row * o.qHeads + g) * n + i);
            for (int64_t j = 0; j < m; ++j)
              sums[j] += query * state[i * m + j];
          }
          storeDoubles(*y, (row * o.qHeads + g) * m, m, sums);
        }
      }
      if (present)
        storeDoubles(*present, stateFirst, n * m, state);
    }
  return FIRN_CALL_OK;
}

// --- CausalConvWithState ---------------------------------------------------------------------------------------------

struct CausalConvOperands {
  const firn_view *x, *w, *bias, *past;
  int64_t taps;
  int64_t stateDims[3];
  bool hasSilu;
};

int32_t causalConvOperands(firn_call *call, CausalConvOperands *o) {
  static const char *const activations[] = {"none", "silu", "swish"};
  FIRN_TRY(requireInput(call, 0, "input", realTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "weight", realTypes, &o->w));
  FIRN_TRY(optionalInput(call, 2, "bias", realTypes, &o->bias));
  FIRN_TRY(optionalInput(call, 3, "past_state", realTypes, &o->past));
  FIRN_TRY(requireSameDtype(call, "weight", o->w, "input", *o->x));
  FIRN_TRY(requireSameDtype(call, "bias", o->bias, "input", *o->x));
  FIRN_TRY(requireSameDtype(call, "past_state", o->past, "input", *o->x));
  FIRN_TRY(requireRank(call, "input", *o->x, 3, 3));
  FIRN_TRY(requireRank(call, "weight", *o->w, 3, 3));
  o->taps = o->w->dims[2];
  int64_t channels = o->x->dims[1], wDims[3] = {channels, 1, o->taps};
  FIRN_TRY(requireShape(call, "weight", o->w, wDims, 3));
  if (o->taps < 1)
    return fail(call, FIRN_CALL_INVALID, "weight must have at least one tap, found shape [%lld, 1, 0]",
                static_cast<long long>(channels));
  FIRN_TRY(requireVector(call, "bias", o->bias, channels));
  int32_t activation;
  FIRN_TRY(choiceAttribute(call, "activation", activations, 3, 0, &activation));
  o->hasSilu = activation != 0;
  int64_t stateDims[3] = {o->x->dims[0], channels, o->taps - 1};
  memcpy(o->stateDims, stateDims, sizeof stateDims);
  return requireShape(call, "past_state", o->past, stateDims, 3);
}

int32_t inferCausalConv(firn_call *call) {
  setRankLike(call, 0, 0);
  setRankLike(call, 1, 0, 3);
  CausalConvOperands o;
  FIRN_TRY(causalConvOperands(call, &o));
  FIRN_TRY(setChecked(call, 0, o.x->dtype, o.x->dims, 3));
  return setChecked(call, 1, o.x->dtype, o.stateDims, 3);
}

int32_t runCausalConv(firn_call *call) {
  CausalConvOperands o;
  FIRN_TRY(causalConvOperands(call, &o));
  firn_view *y = output(call, 0), *present = output(call, 1);
  int64_t channels = o.x->dims[1], length = o.x->dims[2], before = o.taps - 1;
  double *padded, *weights, *sums;
  FIRN_TRY(allocate(call, before + length, &padded));
  FIRN_TRY(allocate(call, o.taps, &weights));
  FIRN_TRY(allocate(call, length, &sums));
  for (int64_t row = 0; row < o.x->dims[0] * channels; ++row) {
    int64_t channel = row % channels;
    for (int64_t i = 0; i < before; ++i)
      padded[i] = o.past ? getDouble(*o.past, row * before + i) : 0;
    loadDoubles(*o.x, row * length, 1, length, padded + before);
    loadDoubles(*o.w, channel * o.taps, 1, o.taps, weights);
    for (int64_t i = 0; i < length; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < o.taps; ++k)
        sum += weights[k] * padded[i + k];
      sum += o.bias ? getDouble(*o.bias, channel) : -0.0;
      sums[i] = o.hasSilu ? sum / (1 + exp(-sum)) : sum;
    }
    if (y)
      storeDoubles(*y, row * length, length, sums);
    if (present)
      storeDoubles(*present, row * before, before, padded + length);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, CausalConvWithState, "ai.onnx::CausalConvWithState", inferCausalConv, runCausalConv)
FIRN_OPERATOR(ai_onnx, LinearAttention, "ai.onnx::LinearAttention", inferLinearAttention, runLinearAttention)

} // namespace firn::kernels
