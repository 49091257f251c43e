// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

enum Reduction { none, sum, mean };

struct LossOperands {
  const firn_view *scores, *labels, *weights;
  int64_t batch, classes, inner; // scores are [batch, classes, inner], labels [batch, inner]
  int32_t reduction;
  bool ignores;
  int64_t ignored;
};

int32_t lossOperands(firn_call *call, LossOperands *o) {
  static const char *const reductions[] = {"none", "sum", "mean"};
  FIRN_TRY(requireInput(call, 0, "scores", floatTypes, &o->scores));
  FIRN_TRY(requireInput(call, 1, "labels", indexTypes, &o->labels));
  FIRN_TRY(optionalInput(call, 2, "weights", floatTypes, &o->weights));
  const firn_view &scores = *o->scores;
  FIRN_TRY(requireSameDtype(call, "weights", o->weights, "scores", scores));
  FIRN_TRY(requireRank(call, "scores", scores, 2, FIRN_MAX_RANK));
  int64_t expected[FIRN_MAX_RANK];
  expected[0] = scores.dims[0];
  for (int32_t k = 2; k < scores.rank; ++k)
    expected[k - 1] = scores.dims[k];
  FIRN_TRY(requireShape(call, "labels", o->labels, expected, scores.rank - 1));
  o->batch = scores.dims[0];
  o->classes = scores.dims[1];
  o->inner = extent(scores, 2, scores.rank);
  FIRN_TRY(requireVector(call, "weights", o->weights, o->classes));
  FIRN_TRY(choiceAttribute(call, "reduction", reductions, 3, mean, &o->reduction));
  o->ignores = findAttribute(call, "ignore_index") != nullptr;
  o->ignored = intAttribute(call, "ignore_index", 0);
  return FIRN_CALL_OK;
}

template <bool isSoftmax> int32_t inferLoss(firn_call *call) {
  if (const firn_view *labels = input(call, 1))
    setRankLike(call, 0, 0, stringAttributeIs(call, "reduction", "none", "mean") ? labels->rank : 0);
  if (isSoftmax)
    setRankLike(call, 1, 0);
  LossOperands o;
  FIRN_TRY(lossOperands(call, &o));
  FIRN_TRY(setChecked(call, 0, o.scores->dtype, o.labels->dims, o.reduction == none ? o.labels->rank : 0));
  return isSoftmax ? setChecked(call, 1, o.scores->dtype, o.scores->dims, o.scores->rank) : FIRN_CALL_OK;
}

/// The logarithm of the softmax, in place.
void logSoftmax(double *values, int64_t count) {
  double largest = -double(INFINITY), total = 0;
  for (int64_t c = 0; c < count; ++c)
    largest = values[c] > largest || isnan(values[c]) ? values[c] : largest;
  for (int64_t c = 0; c < count; ++c)
    total += exp(values[c] - largest);
  for (int64_t c = 0; c < count; ++c)
    values[c] = values[c] - largest - log(total);
}

template <bool isSoftmax> int32_t runLoss(firn_call *call) {
  LossOperands o;
  FIRN_TRY(lossOperands(call, &o));
  firn_view *loss = output(call, 0), *logProbabilities = isSoftmax ? output(call, 1) : nullptr;
  double *values, lossSum = 0, weightSum = 0;
  FIRN_TRY(allocate(call, o.classes, &values));
  for (int64_t i = 0; i < o.batch * o.inner; ++i) {
    int64_t first = i / o.inner * o.classes * o.inner + i % o.inner, label = getInt(*o.labels, i);
    loadDoubles(*o.scores, first, o.inner, o.classes, values);
    if (isSoftmax)
      logSoftmax(values, o.classes);
    for (int64_t c = 0; c < o.classes && logProbabilities; ++c)
      setDouble(*logProbabilities, first + c * o.inner, values[c]);
    bool isIgnored = o.ignores && label == o.ignored;
    if (!isIgnored && (label < 0 || label >= o.classes))
      return fail(call, FIRN_CALL_INVALID, "labels is out of range at element %lld: expected 0 to %lld, found %lld",
                  static_cast<long long>(i), static_cast<long long>(o.classes - 1), static_cast<long long>(label));
    double weight = isIgnored ? 0 : o.weights ? getDouble(*o.weights, label) : 1;
    double value = isIgnored ? 0 : -values[label] * weight;
    lossSum += value;
    weightSum += weight;
    if (loss && o.reduction == none)
      setDouble(*loss, i, value);
  }
  if (loss && o.reduction != none)
    setDouble(*loss, 0, o.reduction == sum ? lossSum : lossSum / weightSum);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, NegativeLogLikelihoodLoss, "ai.onnx::NegativeLogLikelihoodLoss", inferLoss<false>,
              runLoss<false>)
FIRN_OPERATOR(ai_onnx, SoftmaxCrossEntropyLoss, "ai.onnx::SoftmaxCrossEntropyLoss", inferLoss<true>, runLoss<true>)

} // namespace firn::kernels
