#include "runtime/kernels/Require.h"

namespace firn::kernels {

ShapeText describe(const int64_t *dims, int32_t rank) {
  ShapeText result;
  firn_view view;
  view.rank = rank;
  for (int32_t i = 0; i < rank; ++i)
    view.dims[i] = dims[i];
  shapeText(view, result.text, sizeof result.text);
  return result;
}

int32_t optionalInput(firn_call *call, int32_t i, const char *name, uint32_t dtypes, const firn_view **view) {
  *view = input(call, i);
  if (!*view)
    return FIRN_CALL_OK;
  int32_t dtype = (*view)->dtype;
  if (dtype > 0 && dtype < FIRN_DTYPE_COUNT && (dtypes & typeSet(dtype)))
    return FIRN_CALL_OK;
  char list[320];
  int64_t used = 0;
  list[0] = 0;
  for (int32_t k = 1; k < FIRN_DTYPE_COUNT && used < int64_t(sizeof list); ++k)
    if (dtypes & typeSet(k))
      used += snprintf(list + used, sizeof list - size_t(used), used ? ", %s" : "%s", dtypeName(k));
  return fail(call, FIRN_CALL_INVALID,
              "input %d (%s) has a type that the operator does not take: expected %s, found %s", i, name, list,
              dtypeName(dtype));
}

int32_t requireInput(firn_call *call, int32_t i, const char *name, uint32_t dtypes, const firn_view **view) {
  FIRN_TRY(optionalInput(call, i, name, dtypes, view));
  if (!*view)
    return fail(call, FIRN_CALL_INVALID, "input %d (%s) is missing", i, name);
  return FIRN_CALL_OK;
}

int32_t requireSameDtype(firn_call *call, const char *name, const firn_view *view, const char *otherName,
                         const firn_view &other) {
  if (!view || view->dtype == other.dtype)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "%s must have the type of %s: expected %s, found %s", name, otherName,
              dtypeName(other.dtype), dtypeName(view->dtype));
}

int32_t requireRank(firn_call *call, const char *name, const firn_view &view, int32_t low, int32_t high) {
  if (view.rank >= low && view.rank <= high)
    return FIRN_CALL_OK;
  ShapeText found = describe(view);
  if (low == high)
    return fail(call, FIRN_CALL_INVALID, "%s must have %d axes, found shape %s", name, low, found.text);
  if (high >= FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_INVALID, "%s must have at least %d axes, found shape %s", name, low, found.text);
  return fail(call, FIRN_CALL_INVALID, "%s must have %d to %d axes, found shape %s", name, low, high, found.text);
}

int32_t requireShape(firn_call *call, const char *name, const firn_view *view, const int64_t *dims, int32_t rank) {
  if (!view)
    return FIRN_CALL_OK;
  bool isEqual = view->rank == rank;
  for (int32_t i = 0; i < rank && isEqual; ++i)
    isEqual = view->dims[i] == dims[i];
  if (isEqual)
    return FIRN_CALL_OK;
  ShapeText expected = describe(dims, rank), found = describe(*view);
  return fail(call, FIRN_CALL_INVALID, "%s has the wrong shape: expected %s, found %s", name, expected.text,
              found.text);
}

int32_t requireVector(firn_call *call, const char *name, const firn_view *view, int64_t count) {
  return requireShape(call, name, view, &count, 1);
}

int32_t requireOneElement(firn_call *call, const char *name, const firn_view *view) {
  if (!view || elementCount(*view) == 1)
    return FIRN_CALL_OK;
  ShapeText found = describe(*view);
  return fail(call, FIRN_CALL_INVALID, "%s must be a scalar, found shape %s", name, found.text);
}

int32_t boundedAttribute(firn_call *call, const char *name, int64_t fallback, int64_t low, int64_t high,
                         int64_t *value) {
  *value = intAttribute(call, name, fallback);
  if (*value >= low && *value <= high)
    return FIRN_CALL_OK;
  if (high == INT64_MAX)
    return fail(call, FIRN_CALL_INVALID, "attribute %s is out of range: expected at least %lld, found %lld", name,
                static_cast<long long>(low), static_cast<long long>(*value));
  return fail(call, FIRN_CALL_INVALID, "attribute %s is out of range: expected %lld to %lld, found %lld", name,
              static_cast<long long>(low), static_cast<long long>(high), static_cast<long long>(*value));
}

int32_t choiceAttribute(firn_call *call, const char *name, const char *const *choices, int32_t count, int32_t fallback,
                        int32_t *choice) {
  for (*choice = 0; *choice < count; ++*choice)
    if (stringAttributeIs(call, name, choices[*choice], choices[fallback]))
      return FIRN_CALL_OK;
  char list[320];
  int64_t used = 0;
  for (int32_t i = 0; i < count && used < int64_t(sizeof list); ++i)
    used += snprintf(list + used, sizeof list - size_t(used), i ? ", %s" : "%s", choices[i]);
  const firn_attribute *attribute = findAttribute(call, name);
  int length = attribute->count < 80 ? int(attribute->count) : 80;
  return fail(call, FIRN_CALL_INVALID, "attribute %s has an unknown value: expected one of %s, found '%.*s'", name,
              list, length, static_cast<const char *>(attribute->data));
}

void loadAll(const firn_view &view, int64_t first, int64_t stride, int64_t count, int32_t *to) {
  if (count == 0)
    return; // an empty view has no memory
  if (view.dtype == FIRN_U8) {
    const uint8_t *from = static_cast<const uint8_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
  } else if (view.dtype == FIRN_I8) {
    const int8_t *from = static_cast<const int8_t *>(view.data) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * stride];
  } else {
    for (int64_t i = 0; i < count; ++i)
      to[i] = int32_t(getInt(view, first + i * stride));
  }
}

int32_t outOfMemory(firn_call *call, int64_t count, int64_t size) {
  return fail(call, FIRN_CALL_NO_MEMORY, "no scratch memory for %lld elements of %lld bytes",
              static_cast<long long>(count), static_cast<long long>(size));
}

} // namespace firn::kernels
