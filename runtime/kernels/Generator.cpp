// Outputs made from a shape, a range or a few values.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

int32_t requireOne(firn_call *call, int32_t i, const char *name, uint32_t dtypes) {
  FIRN_TRY(requireInput(call, i, dtypes));
  if (elementCount(call->inputs[i]) == 1)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "%s must be one value, found %lld", name,
              static_cast<long long>(elementCount(call->inputs[i])));
}

// --- ConstantOfShape -------------------------------------------------------------------------------------------------

const firn_view *tensorAttribute(const firn_call *call, const char *name) {
  const firn_attribute *attribute = findAttribute(call, name);
  return attribute && attribute->kind == FIRN_ATTR_TENSOR ? static_cast<const firn_view *>(attribute->data) : nullptr;
}

int32_t inferConstantOfShape(firn_call *call) {
  FIRN_TRY(requireIntegers(call, 0, "the shape", typeSet(FIRN_I64)));
  const firn_view &shape = call->inputs[0], *value = tensorAttribute(call, "value");
  if (value && elementCount(*value) != 1)
    return fail(call, FIRN_CALL_INVALID, "attribute 'value' must be one value, found %lld",
                static_cast<long long>(elementCount(*value)));
  int64_t rank = elementCount(shape);
  if (rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %lld axes: at most %d are supported",
                static_cast<long long>(rank), FIRN_MAX_RANK);
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < rank; ++k)
    dims[k] = getInt(shape, k);
  return setChecked(call, 0, value ? value->dtype : FIRN_F32, dims, int32_t(rank));
}

int32_t runConstantOfShape(firn_call *call) {
  const firn_view *y = output(call, 0), *value = tensorAttribute(call, "value");
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  if (value)
    fillElements(*y, 0, elementCount(*y), *value);
  else
    memset(y->data, 0, size_t(firn_dtype_bytes(y->dtype, elementCount(*y))));
  return FIRN_CALL_OK;
}

// --- Range -----------------------------------------------------------------------------------------------------------

constexpr uint32_t rangeTypes = floatTypes | typeSet(FIRN_I16) | indexTypes;

int32_t rangeLength(firn_call *call, int64_t *length) {
  const firn_view &start = call->inputs[0], &limit = call->inputs[1], &delta = call->inputs[2];
  const char *endless = "delta must not be 0";
  if (isFloat(start.dtype)) {
    double step = getDouble(delta, 0);
    double steps = ceil((getDouble(limit, 0) - getDouble(start, 0)) / step);
    if (step == 0)
      return fail(call, FIRN_CALL_INVALID, "%s", endless);
    if (!(steps < 140737488355328.0)) // NaN too
      return fail(call, FIRN_CALL_INVALID, "the range is not finite: start %g, limit %g, delta %g", getDouble(start, 0),
                  getDouble(limit, 0), step);
    *length = steps > 0 ? int64_t(steps) : 0;
    return FIRN_CALL_OK;
  }
  int64_t from = getInt(start, 0), to = getInt(limit, 0), step = getInt(delta, 0);
  if (step == 0)
    return fail(call, FIRN_CALL_INVALID, "%s", endless);
  *length = 0;
  if (step > 0 ? from < to : from > to) {
    uint64_t distance = step > 0 ? uint64_t(to) - uint64_t(from) : uint64_t(from) - uint64_t(to);
    uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
    uint64_t steps = (distance - 1) / stride + 1;
    *length = steps > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(steps);
  }
  return FIRN_CALL_OK;
}

int32_t inferRange(firn_call *call) {
  static const char names[][6] = {"start", "limit", "delta"};
  for (int32_t i = 0; i < 3; ++i) {
    FIRN_TRY(requireOne(call, i, names[i], rangeTypes));
    FIRN_TRY(requireSameType(call, 0, i));
    FIRN_TRY(requireValue(call, i));
  }
  int64_t length;
  FIRN_TRY(rangeLength(call, &length));
  return setChecked(call, 0, call->inputs[0].dtype, &length, 1);
}

int32_t runRange(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const firn_view &start = call->inputs[0], &delta = call->inputs[2];
  for (int64_t i = 0; i < y->dims[0]; ++i) {
    if (isFloat(y->dtype))
      setDouble(*y, i, getDouble(start, 0) + double(i) * getDouble(delta, 0));
    else
      setInt(*y, i, getInt(start, 0) + i * getInt(delta, 0));
  }
  return FIRN_CALL_OK;
}

// --- EyeLike ---------------------------------------------------------------------------------------------------------

constexpr uint32_t eyeTypes = numericTypes | boolType;

int32_t inferEyeLike(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, eyeTypes));
  const firn_view &x = call->inputs[0];
  int64_t dtype = intAttribute(call, "dtype", x.dtype);
  if (x.rank != 2)
    return fail(call, FIRN_CALL_INVALID, "input 0 must have 2 axes, found %d", x.rank);
  if (dtype <= 0 || dtype >= FIRN_DTYPE_COUNT || !(eyeTypes & typeSet(int32_t(dtype))))
    return fail(call, FIRN_CALL_INVALID, "attribute 'dtype' must be a number or bool, found %lld",
                static_cast<long long>(dtype));
  return setChecked(call, 0, int32_t(dtype), x.dims, 2);
}

int32_t runEyeLike(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  memset(y->data, 0, size_t(firn_dtype_bytes(y->dtype, elementCount(*y))));
  int64_t diagonal = intAttribute(call, "k", 0), rows = y->dims[0], columns = y->dims[1];
  if (diagonal <= -rows || diagonal >= columns)
    return FIRN_CALL_OK;
  for (int64_t i = diagonal < 0 ? -diagonal : 0; i < rows && i + diagonal < columns; ++i)
    setInt(*y, i * columns + i + diagonal, 1);
  return FIRN_CALL_OK;
}

// --- OneHot ----------------------------------------------------------------------------------------------------------

int32_t inferOneHot(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  FIRN_TRY(requireOne(call, 1, "depth", numericTypes));
  FIRN_TRY(requireInput(call, 2, allTypes));
  FIRN_TRY(requireValue(call, 1));
  const firn_view &indices = call->inputs[0], &values = call->inputs[2];
  if (values.rank != 1 || values.dims[0] != 2)
    return fail(call, FIRN_CALL_INVALID, "values must be two values, [off, on], found %lld",
                static_cast<long long>(elementCount(values)));
  int32_t rank = indices.rank + 1, axis;
  if (rank > FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %d axes: at most %d are supported", rank, FIRN_MAX_RANK);
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", -1), rank, &axis));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < rank; ++k)
    dims[k] = k < axis ? indices.dims[k] : k == axis ? getInt(call->inputs[1], 0) : indices.dims[k - 1];
  return setChecked(call, 0, values.dtype, dims, rank);
}

int32_t runOneHot(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  const firn_view &indices = call->inputs[0], &values = call->inputs[2];
  int32_t axis = normalizeAxis(intAttribute(call, "axis", -1), y->rank);
  int64_t depth = y->dims[axis], inner = extent(*y, axis + 1, y->rank), count = elementCount(indices);
  fillElements(*y, 0, elementCount(*y), values);
  for (int64_t k = 0; k < count; ++k) {
    int64_t index = getInt(indices, k);
    index = index < 0 ? index + depth : index;
    if (index >= 0 && index < depth)
      copyElement(*y, (k / inner * depth + index) * inner + k % inner, values, 1);
  }
  return FIRN_CALL_OK;
}

// --- Trilu -----------------------------------------------------------------------------------------------------------

int32_t inferTrilu(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  if (call->inputs[0].rank < 2)
    return fail(call, FIRN_CALL_INVALID, "input 0 must have at least 2 axes, found %d", call->inputs[0].rank);
  if (input(call, 1))
    FIRN_TRY(requireOne(call, 1, "k", typeSet(FIRN_I64)));
  return setChecked(call, 0, call->inputs[0].dtype, call->inputs[0].dims, call->inputs[0].rank);
}

/// The upper part keeps columns from row + k on, the lower one those up to row + k.
int32_t runTrilu(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0];
  bool upper = intAttribute(call, "upper", 1) != 0;
  int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1], matrices = extent(x, 0, x.rank - 2);
  int64_t k = input(call, 1) ? getInt(call->inputs[1], 0) : 0;
  k = k < -rows ? -rows : k > columns ? columns : k;
  memset(y->data, 0, size_t(firn_dtype_bytes(y->dtype, elementCount(*y))));
  for (int64_t row = 0; row < matrices * rows; ++row) {
    int64_t edge = row % rows + k + (upper ? 0 : 1); // first column that the upper part keeps, or the lower one drops
    edge = edge < 0 ? 0 : edge > columns ? columns : edge;
    int64_t first = upper ? edge : 0, count = upper ? columns - edge : edge;
    if (count > 0)
      copyElements(*y, row * columns + first, x, row * columns + first, count);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, ConstantOfShape, "ai.onnx::ConstantOfShape", inferConstantOfShape, runConstantOfShape)
FIRN_OPERATOR(ai_onnx, Range, "ai.onnx::Range", inferRange, runRange)
FIRN_OPERATOR(ai_onnx, EyeLike, "ai.onnx::EyeLike", inferEyeLike, runEyeLike)
FIRN_OPERATOR(ai_onnx, OneHot, "ai.onnx::OneHot", inferOneHot, runOneHot)
FIRN_OPERATOR(ai_onnx, Trilu, "ai.onnx::Trilu", inferTrilu, runTrilu)

} // namespace firn::kernels
