// Adagrad, Adam and Momentum: one step of training for any number of tensors.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

constexpr uint32_t optimizerTypes = typeSet(FIRN_F32) | typeSet(FIRN_F64);

struct OptimizerOperands {
  double rate;
  int64_t step;
  int32_t tensors, kinds; // inputs 2...: `tensors` values of each of `kinds` kinds: the tensor, its gradient, its state
};

int32_t optimizerOperands(firn_call *call, int32_t kinds, OptimizerOperands *o) {
  const firn_view *rate, *step;
  FIRN_TRY(requireInput(call, 0, "R", optimizerTypes, &rate));
  FIRN_TRY(requireInput(call, 1, "T", typeSet(FIRN_I64), &step));
  FIRN_TRY(requireOneElement(call, "R", rate));
  FIRN_TRY(requireOneElement(call, "T", step));
  int32_t given = call->input_count - 2;
  o->kinds = kinds;
  o->tensors = given / kinds;
  if (given < kinds || given % kinds != 0)
    return fail(call, FIRN_CALL_INVALID, "the number of inputs behind T must be a multiple of %d, found %d", kinds,
                given);
  for (int32_t i = 0; i < given; ++i) {
    const firn_view *view, *tensor;
    FIRN_TRY(requireInput(call, 2 + i, "inputs", optimizerTypes, &view));
    FIRN_TRY(requireInput(call, 2 + i % o->tensors, "inputs", optimizerTypes, &tensor));
    FIRN_TRY(requireSameDtype(call, "what belongs to a tensor", view, "that tensor", *tensor));
    FIRN_TRY(requireShape(call, "what belongs to a tensor", view, tensor->dims, tensor->rank));
  }
  o->rate = rate->data ? getDouble(*rate, 0) : 0; // not needed to infer
  o->step = step->data ? getInt(*step, 0) : 0;
  return FIRN_CALL_OK;
}

template <int32_t kinds> int32_t inferOptimizer(firn_call *call) {
  OptimizerOperands o;
  FIRN_TRY(optimizerOperands(call, kinds, &o));
  for (int32_t i = 0; i < o.tensors * (kinds - 1); ++i) {
    const firn_view &tensor = call->inputs[2 + i % o.tensors];
    FIRN_TRY(setChecked(call, i, tensor.dtype, tensor.dims, tensor.rank));
  }
  return FIRN_CALL_OK;
}

/// Calls update(x, gradient, state) for each element of each tensor; it changes x and state in place. Outputs are the
/// tensors, then their states, kind by kind.
template <int32_t kinds, typename Update>
int32_t runOptimizer(firn_call *call, const OptimizerOperands &o, Update update) {
  double norm = floatAttribute(call, "norm_coefficient", 0);
  for (int32_t t = 0; t < o.tensors; ++t)
    for (int64_t i = 0; i < elementCount(call->inputs[2 + t]); ++i) {
      double values[kinds];
      for (int32_t k = 0; k < kinds; ++k)
        values[k] = getDouble(call->inputs[2 + k * o.tensors + t], i);
      values[1] += norm * values[0];
      update(values[0], values[1], values + 2);
      for (int32_t k = 0; k < kinds - 1; ++k)
        if (firn_view *result = output(call, k * o.tensors + t))
          setDouble(*result, i, values[k == 0 ? 0 : k + 1]);
    }
  return FIRN_CALL_OK;
}

int32_t runAdagrad(firn_call *call) {
  OptimizerOperands o;
  FIRN_TRY(optimizerOperands(call, 3, &o));
  double epsilon = floatAttribute(call, "epsilon", 1e-6f), decay = floatAttribute(call, "decay_factor", 0);
  double rate = o.rate / (1 + double(o.step) * decay);
  return runOptimizer<3>(call, o, [=](double &x, double gradient, double *squares) {
    *squares += gradient * gradient;
    x -= rate * gradient / (sqrt(*squares) + epsilon);
  });
}

int32_t runAdam(firn_call *call) {
  OptimizerOperands o;
  FIRN_TRY(optimizerOperands(call, 4, &o));
  double alpha = floatAttribute(call, "alpha", 0.9f), beta = floatAttribute(call, "beta", 0.999f);
  double epsilon = floatAttribute(call, "epsilon", 1e-6f), after = floatAttribute(call, "norm_coefficient_post", 0);
  double rate = o.rate, step = double(o.step);
  if (o.step > 0)
    rate *= sqrt(1 - pow(beta, step)) / (1 - pow(alpha, step));
  return runOptimizer<4>(call, o, [=](double &x, double gradient, double *state) {
    state[0] = alpha * state[0] + (1 - alpha) * gradient;
    state[1] = beta * state[1] + (1 - beta) * gradient * gradient;
    x = (1 - after) * (x - rate * state[0] / (sqrt(state[1]) + epsilon));
  });
}

int32_t runMomentum(firn_call *call) {
  static const char *const modes[] = {"standard", "nesterov"};
  OptimizerOperands o;
  int32_t mode;
  FIRN_TRY(optimizerOperands(call, 3, &o));
  FIRN_TRY(choiceAttribute(call, "mode", modes, 2, 0, &mode));
  double alpha = floatAttribute(call, "alpha", 0), beta = o.step > 0 ? floatAttribute(call, "beta", 1) : 1;
  return runOptimizer<3>(call, o, [=](double &x, double gradient, double *momentum) {
    *momentum = alpha * *momentum + beta * gradient;
    x -= o.rate * (mode == 0 ? *momentum : gradient + alpha * *momentum);
  });
}

} // namespace

FIRN_OPERATOR(ai_onnx_preview_training, Adagrad, "ai.onnx.preview.training::Adagrad", inferOptimizer<3>, runAdagrad)
FIRN_OPERATOR(ai_onnx_preview_training, Adam, "ai.onnx.preview.training::Adam", inferOptimizer<4>, runAdam)
FIRN_OPERATOR(ai_onnx_preview_training, Momentum, "ai.onnx.preview.training::Momentum", inferOptimizer<3>, runMomentum)

} // namespace firn::kernels
