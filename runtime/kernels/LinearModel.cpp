// Linear models of ai.onnx.ml.
#include "runtime/kernels/PredictorExpansion.h"

FIRN_USES(Concat)
FIRN_USES(Gemm)
FIRN_USES(Greater)
FIRN_USES(Neg)

namespace firn::kernels {
namespace {

struct LinearModel {
  Rows x;
  const double *coefficients, *intercepts; // [outputs, features], and [outputs] or NULL
  int64_t outputs;
  PostTransform transform;
};

/// `outputs`: how many rows of coefficients there must be, 0 where the coefficients say so.
int32_t linearModelOf(firn_call *call, int64_t outputs, LinearModel *model) {
  int64_t coefficientCount, interceptCount;
  FIRN_TRY(rowsOf(call, featureTypes, &model->x));
  FIRN_TRY(realsAttribute(call, "coefficients", nullptr, &model->coefficients, &coefficientCount));
  FIRN_TRY(realsAttribute(call, "intercepts", nullptr, &model->intercepts, &interceptCount));
  FIRN_TRY(postTransformOf(call, &model->transform));
  int64_t features = model->x.features;
  if (outputs == 0 && features > 0)
    outputs = coefficientCount / features;
  model->outputs = outputs;
  int64_t expected;
  if (__builtin_mul_overflow(outputs, features, &expected) || outputs < 1 || coefficientCount != expected)
    return fail(call, FIRN_CALL_INVALID,
                "attribute 'coefficients' must have one value for each of the input's %lld features, times the "
                "number of results: found %lld",
                static_cast<long long>(features), static_cast<long long>(coefficientCount));
  if (interceptCount == 0)
    model->intercepts = nullptr;
  else if (interceptCount != outputs)
    return fail(call, FIRN_CALL_INVALID, "attribute 'intercepts' must have %lld values, found %lld",
                static_cast<long long>(outputs), static_cast<long long>(interceptCount));
  return FIRN_CALL_OK;
}

void scoresOf(const LinearModel &model, int64_t row, double *scores) {
  for (int64_t k = 0; k < model.outputs; ++k) {
    double sum = 0;
    for (int64_t i = 0; i < model.x.features; ++i)
      sum += getDouble(*model.x.view, row * model.x.features + i) * model.coefficients[k * model.x.features + i];
    scores[k] = sum + (model.intercepts ? model.intercepts[k] : 0);
  }
}

int32_t regressorOf(firn_call *call, LinearModel *model) {
  int64_t targets;
  FIRN_TRY(boundedAttribute(call, "targets", 1, 1, int64_t(1) << 31, &targets));
  return linearModelOf(call, targets, model);
}

int32_t inferLinearRegressor(firn_call *call) {
  LinearModel model;
  FIRN_TRY(regressorOf(call, &model));
  int64_t dims[2] = {model.x.rows, model.outputs};
  return setChecked(call, 0, FIRN_F32, dims, 2);
}

int32_t runLinearRegressor(firn_call *call) {
  LinearModel model;
  double *scores;
  FIRN_TRY(regressorOf(call, &model));
  FIRN_TRY(allocate(call, model.outputs, &scores));
  for (int64_t row = 0; row < model.x.rows; ++row) {
    scoresOf(model, row, scores);
    transformScores(model.transform, scores, model.outputs);
    storeDoubles(call->outputs[0], row * model.outputs, model.outputs, scores);
  }
  return FIRN_CALL_OK;
}

/// One row of coefficients for two classes tells the second from the first.
bool isBinary(const LinearModel &model, const Labels &labels) { return model.outputs == 1 && labels.count == 2; }

int32_t inferLinearClassifier(firn_call *call) {
  LinearModel model;
  FIRN_TRY(linearModelOf(call, 0, &model));
  Labels labels = labelsOf(call, "classlabels_ints");
  return setClassifierTypes(call, model.x, labels, isBinary(model, labels) ? 2 : model.outputs);
}

int32_t runLinearClassifier(firn_call *call) {
  LinearModel model;
  double *scores;
  FIRN_TRY(linearModelOf(call, 0, &model));
  Labels labels = labelsOf(call, "classlabels_ints");
  bool isPair = isBinary(model, labels);
  int64_t count = isPair ? 2 : model.outputs;
  FIRN_TRY(allocate(call, count, &scores));
  for (int64_t row = 0; row < model.x.rows; ++row) {
    scoresOf(model, row, scores);
    if (isPair) {
      scores[1] = scores[0];
      scores[0] = -scores[1];
    }
    int64_t best = bestOf(scores, count);
    transformScores(model.transform, scores, count);
    if (const firn_view *label = output(call, 0)) {
      if (count > 1)
        labels.write(*label, row, best);
      else if (scores[0] >= (model.transform == PostTransform::None ? 0 : 0.5)) // the only class, or none
        labels.count ? labels.write(*label, row, 0) : labels.write(*label, row, 1);
      else
        Labels{labels.strings, nullptr, 0}.write(*label, row, 0);
    }
    if (const firn_view *z = output(call, 1))
      storeDoubles(*z, row * count, count, scores);
  }
  return FIRN_CALL_OK;
}

// --- spelt out -------------------------------------------------------------------------------------------------------

Composer::Value scoresOf(Composer &c, int32_t (*read)(firn_call *, LinearModel *), LinearModel &model) {
  Composer::Value x = c.need(0, "X", typeSet(FIRN_F32), 2, 2);
  if (!c.isFailed() && c.type(x).dims[1] < 0)
    c.refuse(FIRN_CALL_UNSUPPORTED, "the number of features is not known");
  if (!c.isFailed())
    c.status = read(c.call, &model);
  if (c.isFailed())
    return Composer::absent;
  Composer::Value weights = c.reshape(floatConstant(c, model.coefficients, 1, model.outputs * model.x.features),
                                      {model.outputs, model.x.features});
  AttributeList attributes;
  attributes.integer("transB", 1);
  Composer::Value bias = model.intercepts ? floatConstant(c, model.intercepts, 1, model.outputs) : Composer::absent;
  return c.op(firn_op_ai_onnx_Gemm, {x, weights, bias}, attributes);
}

void expandRegressor(Composer &c) {
  LinearModel model;
  Composer::Value y = scoresOf(c, regressorOf, model);
  c.result(0, c.isFailed() ? y : transformed(c, model.transform, y));
}

int32_t classifierOf(firn_call *call, LinearModel *model) { return linearModelOf(call, 0, model); }

void expandClassifier(Composer &c) {
  LinearModel model;
  Composer::Value y = scoresOf(c, classifierOf, model), best;
  if (c.isFailed())
    return;
  Labels labels = labelsOf(c.call, "classlabels_ints");
  if (isBinary(model, labels)) {
    AttributeList columns;
    columns.integer("axis", 1);
    best = c.op(firn_op_ai_onnx_Greater, {y, c.scalar(FIRN_F32, 0)});
    best = c.reshape(c.cast(best, FIRN_I64), {-1});
    y = c.op(firn_op_ai_onnx_Concat, {c.op(firn_op_ai_onnx_Neg, {y}), y}, columns);
  } else if (model.outputs > 1 && labels.count == model.outputs) {
    best = bestColumn(c, y);
  } else {
    return c.refuse(FIRN_CALL_UNSUPPORTED, "a single class");
  }
  c.result(1, transformed(c, model.transform, y));
  if (c.wants(0))
    c.result(0, labelled(c, labels, best));
}

} // namespace

FIRN_EXPANSION(ai_onnx_ml, LinearClassifier, "ai.onnx.ml::LinearClassifier", expandClassifier)
FIRN_EXPANSION(ai_onnx_ml, LinearRegressor, "ai.onnx.ml::LinearRegressor", expandRegressor)
FIRN_OPERATOR(ai_onnx_ml, LinearRegressor, "ai.onnx.ml::LinearRegressor", inferLinearRegressor, runLinearRegressor)
FIRN_OPERATOR(ai_onnx_ml, LinearClassifier, "ai.onnx.ml::LinearClassifier", inferLinearClassifier, runLinearClassifier)

} // namespace firn::kernels
