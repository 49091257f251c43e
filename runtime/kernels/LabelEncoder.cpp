// LabelEncoder and CategoryMapper: elements looked up in a table of keys.
#include "runtime/kernels/Predictor.h"
#include "runtime/kernels/Sort.h"

namespace firn::kernels {
namespace {

constexpr uint32_t labelTypes =
    stringType | typeSet(FIRN_I64) | typeSet(FIRN_I32) | typeSet(FIRN_I16) | typeSet(FIRN_F32) | typeSet(FIRN_F64);

/// A list attribute as a tensor: of the forms X_strings, X_int64s, X_floats and X_tensor the one that is given; a rank
/// of -1 where none is.
firn_view listOf(const firn_call *call, const char *strings, const char *integers, const char *floats,
                 const char *tensor) {
  firn_view view = {};
  view.rank = -1;
  const char *const names[] = {strings, integers, floats};
  const int64_t kinds[] = {FIRN_ATTR_STRINGS, FIRN_ATTR_INTS, FIRN_ATTR_FLOATS};
  const int32_t dtypes[] = {FIRN_STRING, FIRN_I64, FIRN_F32};
  for (int i = 0; i < 3; ++i)
    if (const firn_attribute *list = names[i] ? findAttribute(call, names[i]) : nullptr;
        list && list->kind == kinds[i] && list->count > 0) {
      view.data = const_cast<void *>(list->data);
      view.dims[0] = list->count;
      view.dtype = dtypes[i];
      view.rank = 1;
      return view;
    }
  const firn_attribute *given = tensor ? findAttribute(call, tensor) : nullptr;
  return given && given->kind == FIRN_ATTR_TENSOR ? *static_cast<const firn_view *>(given->data) : view;
}

/// Where element `i` of `a` stands to element `j` of `b` in some order of the dtype's values; NaN equals NaN.
int compare(const firn_view &a, int64_t i, const firn_view &b, int64_t j) {
  if (a.dtype == FIRN_STRING) {
    const firn_string &x = static_cast<const firn_string *>(a.data)[i],
                      &y = static_cast<const firn_string *>(b.data)[j];
    if (x.length != y.length)
      return x.length < y.length ? -1 : 1;
    return x.length ? memcmp(x.data, y.data, size_t(x.length)) : 0;
  }
  if (isFloat(a.dtype)) {
    double x = getDouble(a, i), y = getDouble(b, j);
    if (isnan(x) || isnan(y))
      return int(isnan(x)) - int(isnan(y));
    return x < y ? -1 : x > y;
  }
  int64_t x = getInt(a, i), y = getInt(b, j);
  return x < y ? -1 : x > y;
}

/// Calls body(i, k) for each element i of `x` with the position k of its key, the last one of equal keys; -1 where it
/// has none.
template <typename Body>
int32_t lookUp(firn_call *call, const firn_view &x, const firn_view &keys, int64_t keyCount, Body body) {
  int64_t total = elementCount(x);
  if (total <= 8) { // sorting does not pay
    for (int64_t i = 0; i < total; ++i) {
      int64_t k = keyCount - 1;
      while (k >= 0 && compare(keys, k, x, i) != 0)
        --k;
      body(i, k);
    }
    return FIRN_CALL_OK;
  }
  int64_t *order, *space;
  FIRN_TRY(allocate(call, keyCount, &order));
  FIRN_TRY(allocate(call, keyCount, &space));
  for (int64_t k = 0; k < keyCount; ++k)
    order[k] = k;
  mergeSort(order, space, keyCount, [&](int64_t a, int64_t b) { return compare(keys, a, keys, b) < 0; });
  for (int64_t i = 0; i < total; ++i) {
    int64_t low = 0, high = keyCount; // the first key that is greater
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (compare(keys, order[middle], x, i) <= 0)
        low = middle + 1;
      else
        high = middle;
    }
    body(i, low > 0 && compare(keys, order[low - 1], x, i) == 0 ? order[low - 1] : -1);
  }
  return FIRN_CALL_OK;
}

// --- LabelEncoder ----------------------------------------------------------------------------------------------------

struct Encoder {
  firn_view keys, values;
  int64_t count;
};

int32_t encoderOf(firn_call *call, Encoder *e) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "X", labelTypes, &x));
  e->keys = listOf(call, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
  e->values = listOf(call, "values_strings", "values_int64s", "values_floats", "values_tensor");
  if (e->keys.rank < 0 || e->values.rank < 0)
    return fail(call, FIRN_CALL_INVALID, "one of the attributes keys_* and one of values_* must be given");
  e->count = elementCount(e->keys);
  if (elementCount(e->values) != e->count)
    return fail(call, FIRN_CALL_INVALID, "there must be a value for each key: found %lld keys and %lld values",
                static_cast<long long>(e->count), static_cast<long long>(elementCount(e->values)));
  if (e->keys.dtype != x->dtype)
    return fail(call, FIRN_CALL_INVALID, "the keys must have the input's type %s, found %s", dtypeName(x->dtype),
                dtypeName(e->keys.dtype));
  if (!(typeSet(e->values.dtype) & labelTypes))
    return fail(call, FIRN_CALL_INVALID, "values of type %s are not allowed", dtypeName(e->values.dtype));
  return FIRN_CALL_OK;
}

int32_t inferLabelEncoder(firn_call *call) {
  Encoder e;
  FIRN_TRY(encoderOf(call, &e));
  return setChecked(call, 0, e.values.dtype, call->inputs[0].dims, call->inputs[0].rank);
}

void writeDefault(const firn_call *call, const firn_view &y, int64_t i) {
  const firn_attribute *tensor = findAttribute(call, "default_tensor");
  if (tensor && tensor->kind == FIRN_ATTR_TENSOR) {
    const firn_view &value = *static_cast<const firn_view *>(tensor->data);
    if (value.dtype == y.dtype && elementCount(value) > 0)
      return copyElement(y, i, value, 0);
  }
  if (y.dtype == FIRN_STRING) {
    const firn_attribute *text = findAttribute(call, "default_string");
    bool isGiven = text && text->kind == FIRN_ATTR_STRING;
    static_cast<firn_string *>(y.data)[i] =
        isGiven ? firn_string{static_cast<const char *>(text->data), text->count} : firn_string{"_Unused", 7};
  } else if (isFloat(y.dtype)) {
    setDouble(y, i, double(floatAttribute(call, "default_float", -0.0f)));
  } else {
    setInt(y, i, intAttribute(call, "default_int64", -1));
  }
}

int32_t runLabelEncoder(firn_call *call) {
  Encoder e;
  FIRN_TRY(encoderOf(call, &e));
  const firn_view &y = call->outputs[0];
  return lookUp(call, call->inputs[0], e.keys, e.count,
                [&](int64_t i, int64_t k) { k < 0 ? writeDefault(call, y, i) : copyElement(y, i, e.values, k); });
}

// --- CategoryMapper --------------------------------------------------------------------------------------------------

int32_t inferCategoryMapper(firn_call *call) {
  const firn_view *x;
  int64_t strings, integers;
  FIRN_TRY(requireInput(call, 0, "X", stringType | typeSet(FIRN_I64), &x));
  stringsAttribute(call, "cats_strings", &strings);
  intsAttribute(call, "cats_int64s", &integers);
  if (strings != integers)
    return fail(call, FIRN_CALL_INVALID,
                "attributes 'cats_strings' and 'cats_int64s' must be of equal length: found %lld and %lld",
                static_cast<long long>(strings), static_cast<long long>(integers));
  return setChecked(call, 0, x->dtype == FIRN_STRING ? FIRN_I64 : FIRN_STRING, x->dims, x->rank);
}

int32_t runCategoryMapper(firn_call *call) {
  const firn_view &x = call->inputs[0], &y = call->outputs[0];
  firn_view strings = listOf(call, "cats_strings", nullptr, nullptr, nullptr);
  firn_view integers = listOf(call, nullptr, "cats_int64s", nullptr, nullptr);
  const firn_view &keys = x.dtype == FIRN_STRING ? strings : integers;
  const firn_view &values = x.dtype == FIRN_STRING ? integers : strings;
  return lookUp(call, x, keys, keys.rank < 0 ? 0 : keys.dims[0],
                [&](int64_t i, int64_t k) { k < 0 ? writeDefault(call, y, i) : copyElement(y, i, values, k); });
}

} // namespace

FIRN_OPERATOR(ai_onnx_ml, CategoryMapper, "ai.onnx.ml::CategoryMapper", inferCategoryMapper, runCategoryMapper)
FIRN_OPERATOR(ai_onnx_ml, LabelEncoder, "ai.onnx.ml::LabelEncoder", inferLabelEncoder, runLabelEncoder)

} // namespace firn::kernels
