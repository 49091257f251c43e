#include "runtime/kernels/PredictorExpansion.h"

FIRN_USES(ArgMax)
FIRN_USES(Gather)
FIRN_USES(Sigmoid)
FIRN_USES(Softmax)
extern "C" __attribute__((visibility("hidden"))) const firn_operator firn_op_ai_onnx_ml_LabelEncoder;

namespace firn::kernels {

using Value = Composer::Value;

Value transformed(Composer &c, PostTransform transform, Value scores) {
  AttributeList attributes;
  attributes.integer("axis", 1);
  switch (transform) {
  case PostTransform::None:
    return scores;
  case PostTransform::Logistic:
    return c.op(firn_op_ai_onnx_Sigmoid, {scores});
  case PostTransform::Softmax:
    return c.op(firn_op_ai_onnx_Softmax, {scores}, attributes);
  case PostTransform::SoftmaxZero:
  case PostTransform::Probit:
    c.refuse(FIRN_CALL_UNSUPPORTED, "post_transform SOFTMAX_ZERO and PROBIT");
  }
  return scores;
}

Value bestColumn(Composer &c, Value scores) {
  AttributeList across;
  across.integer("axis", 1).integer("keepdims", 0);
  return c.op(firn_op_ai_onnx_ArgMax, {scores}, across);
}

Value labelled(Composer &c, const Labels &labels, Value positions) {
  int64_t *numbers;
  if (!c.isFailed())
    c.status = allocate(c.call, labels.count, &numbers);
  if (c.isFailed())
    return Composer::absent;
  for (int64_t k = 0; k < labels.count; ++k)
    numbers[k] = k;
  if (labels.strings) {
    AttributeList table;
    table.integers("keys_int64s", numbers, labels.count).strings("values_strings", labels.strings, labels.count);
    return c.op(firn_op_ai_onnx_ml_LabelEncoder, {positions}, table);
  }
  if (memcmp(numbers, labels.integers, size_t(labels.count) * sizeof *numbers) == 0)
    return positions;
  firn_view view = {};
  view.data = const_cast<int64_t *>(labels.integers);
  view.dtype = FIRN_I64;
  view.rank = 1;
  view.dims[0] = labels.count;
  return c.op(firn_op_ai_onnx_Gather, {c.given(view), positions});
}

Value floatConstant(Composer &c, const double *numbers, int64_t rows, int64_t columns) {
  firn_view view = {};
  float *data;
  if (!c.isFailed())
    c.status = allocate(c.call, rows * columns, &data);
  if (c.isFailed())
    return Composer::absent;
  for (int64_t i = 0; i < rows * columns; ++i)
    data[i] = float(numbers[i]);
  view.data = data;
  view.dtype = FIRN_F32;
  view.rank = rows == 1 ? 1 : 2;
  view.dims[0] = rows == 1 ? columns : rows;
  view.dims[1] = columns;
  return c.given(view);
}

} // namespace firn::kernels
