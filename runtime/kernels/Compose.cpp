#include "runtime/kernels/Compose.h"

FIRN_USES(Cast)
FIRN_USES(Reshape)
FIRN_USES(Shape)
FIRN_USES(Transpose)

namespace firn::kernels {

constexpr int64_t mostInferredBytes = 1 << 16;

// --- AttributeList ---------------------------------------------------------------------------------------------------

firn_attribute *AttributeList::add(const char *name, int64_t kind, int64_t length) {
  if (count == 16)
    return nullptr;
  list[count] = {name, nullptr, length, kind};
  return &list[count++];
}

AttributeList &AttributeList::integers(const char *name, const int64_t *values, int64_t length) {
  if (firn_attribute *attribute = add(name, FIRN_ATTR_INTS, length))
    attribute->data = values;
  return *this;
}

AttributeList &AttributeList::integers(const char *name, std::initializer_list<int64_t> values) {
  int64_t *to = numbers + numberCount;
  if (numberCount + int32_t(values.size()) <= 64)
    for (int64_t value : values)
      numbers[numberCount++] = value;
  return integers(name, to, int64_t(values.size()));
}

AttributeList &AttributeList::strings(const char *name, const firn_string *values, int64_t length) {
  if (firn_attribute *attribute = add(name, FIRN_ATTR_STRINGS, length))
    attribute->data = values;
  return *this;
}

AttributeList &AttributeList::integer(const char *name, int64_t value) {
  int64_t *to = numbers + numberCount++;
  *to = value;
  if (firn_attribute *attribute = add(name, FIRN_ATTR_INT, 1))
    attribute->data = to;
  return *this;
}

AttributeList &AttributeList::real(const char *name, float value) {
  if (firn_attribute *attribute = add(name, FIRN_ATTR_FLOAT, 1)) {
    reals[count - 1] = value;
    attribute->data = &reals[count - 1];
  }
  return *this;
}

AttributeList &AttributeList::text(const char *name, const char *value) {
  if (firn_attribute *attribute = add(name, FIRN_ATTR_STRING, int64_t(strlen(value))))
    attribute->data = value;
  return *this;
}

AttributeList &AttributeList::taken(const firn_call *call, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const firn_attribute *given = findAttribute(call, name))
      if (firn_attribute *attribute = add(name, given->kind, given->count))
        attribute->data = given->data;
  return *this;
}

// --- Composer --------------------------------------------------------------------------------------------------------

Composer::Composer(firn_call *composed) : call(composed) {
  for (Value &value : results)
    value = absent;
  // Input i is value i.
  for (int32_t i = 0; i < call->input_count && !isFailed(); ++i)
    define(call->inputs[i]);
}

void Composer::refuse(int32_t why, const char *message) {
  if (!isFailed())
    status = fail(call, why, "%s", message);
}

Composer::Value Composer::define(const firn_view &view) {
  if (valueCount == mostValues) {
    refuse(FIRN_CALL_UNSUPPORTED, "so many inputs are not supported");
    return 0;
  }
  values[valueCount] = view;
  return valueCount++;
}

Composer::Value Composer::need(int32_t i, const char *name, uint32_t dtypes, int32_t low, int32_t high) {
  const firn_view *view;
  if (!isFailed())
    status = requireInput(call, i, name, dtypes, &view);
  if (!isFailed())
    status = requireRank(call, name, *view, low, high);
  return i;
}

void Composer::op(const firn_operator &called, const Value *inputs, int32_t inputCount, const AttributeList &attributes,
                  Value *made, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    made[i] = absent;
  if (isFailed())
    return;
  while (inputCount > 0 && inputs[inputCount - 1] == absent)
    --inputCount;
  if (makeOperation)
    makeOperation(*this, called, inputs, inputCount, attributes, made, count);
  else
    execute(called, inputs, inputCount, attributes, made, count);
}

void Composer::execute(const firn_operator &called, const Value *inputs, int32_t inputCount,
                       const AttributeList &attributes, Value *made, int32_t count) {
  firn_view from[64], to[16];
  if (inputCount > 64 || count > 16)
    return refuse(FIRN_CALL_UNSUPPORTED, "so many inputs are not supported");
  firn_call sub = *call;
  sub.inputs = from;
  sub.outputs = to;
  sub.attributes = attributes.list;
  sub.attribute_count = attributes.count;
  sub.input_count = inputCount;
  sub.output_count = count;
  bool isKnown = true;
  for (int32_t i = 0; i < inputCount; ++i) {
    from[i] = {};
    from[i].rank = -1;
    if (inputs[i] != absent)
      from[i] = values[inputs[i]];
    isKnown &= from[i].rank < 0 || from[i].data || elementCount(from[i]) == 0;
  }
  for (int32_t i = 0; i < count; ++i) {
    to[i] = {};
    to[i].rank = 0;
  }
  status = called.infer(&sub);
  if (status == FIRN_CALL_NEEDS_VALUE && !computes && !waits) {
    // What is known of the results has been said; a call of inputs alone tells which of them is needed.
    waits = true;
    Value needed = sub.needed >= 0 && sub.needed < inputCount ? inputs[sub.needed] : absent;
    call->needed = needed >= 0 && needed < call->input_count ? needed : 0;
    status = FIRN_CALL_OK;
    for (int32_t i = 0; i < count && !isFailed(); ++i)
      made[i] = define(to[i]);
    return;
  }
  if (isFailed()) {
    status = waits ? FIRN_CALL_NEEDS_VALUE : status;
    return;
  }
  int64_t bytes = 0;
  for (int32_t i = 0; i < count; ++i)
    bytes += firn_dtype_bytes(to[i].dtype, elementCount(to[i]));
  // While types are inferred, values serve to find shapes: they are few.
  isKnown = (isKnown || &called == &firn_op_ai_onnx_Shape) && bytes <= mostInferredBytes;
  if (computes || isKnown) {
    for (int32_t i = 0; i < count && !isFailed(); ++i) {
      char *data;
      status = allocate(call, firn_dtype_bytes(to[i].dtype, elementCount(to[i])), &data);
      to[i].data = data;
    }
    if (!isFailed())
      status = called.run(&sub);
  }
  for (int32_t i = 0; i < count && !isFailed(); ++i)
    made[i] = define(to[i]);
}

/// Gives the view memory, for the caller to fill; false where there is none.
bool Composer::hasMemory(firn_view &view, int64_t bytes) {
  char *data = nullptr;
  if (!isFailed())
    status = allocate(call, bytes, &data);
  view.data = data;
  return !isFailed();
}

Composer::Value Composer::integers(std::initializer_list<int64_t> list) {
  firn_view view = {};
  view.dtype = FIRN_I64;
  view.rank = 1;
  view.dims[0] = int64_t(list.size());
  if (!hasMemory(view, view.dims[0] * 8))
    return absent;
  for (int64_t i = 0; i < view.dims[0]; ++i)
    setInt(view, i, list.begin()[i]);
  return given(view);
}

Composer::Value Composer::scalar(int32_t dtype, double number) {
  firn_view view = {};
  view.dtype = dtype;
  if (!hasMemory(view, 16))
    return absent;
  setDouble(view, 0, number);
  return given(view);
}

Composer::Value Composer::filled(int32_t dtype, std::initializer_list<int64_t> dims, uint8_t byte) {
  firn_view view = {};
  view.dtype = dtype;
  view.rank = int32_t(dims.size());
  for (int32_t i = 0; i < view.rank; ++i)
    view.dims[i] = dims.begin()[i];
  int64_t bytes = firn_dtype_bytes(dtype, elementCount(view));
  if (!hasMemory(view, bytes))
    return absent;
  memset(view.data, byte, size_t(bytes));
  return given(view);
}

Composer::Value Composer::reinterpret(Value value, int32_t dtype, std::initializer_list<int64_t> dims) {
  if (isFailed())
    return absent;
  firn_view view = {};
  view.dtype = dtype;
  view.rank = int32_t(dims.size());
  for (int32_t i = 0; i < view.rank; ++i)
    view.dims[i] = dims.begin()[i];
  view.data = values[value].data;
  const firn_view &from = values[value];
  if (firn_dtype_bytes(dtype, elementCount(view)) != firn_dtype_bytes(from.dtype, elementCount(from)))
    refuse(FIRN_CALL_INVALID, "a tensor of packed values has the wrong size");
  return makeReinterpreted ? makeReinterpreted(*this, value, view) : define(view);
}

void Composer::result(int32_t i, Value value) {
  if (!isFailed() && i < 16)
    results[i] = value;
}

Composer::Value Composer::cast(Value value, int32_t dtype) {
  return op(firn_op_ai_onnx_Cast, {value}, AttributeList().integer("to", dtype));
}

Composer::Value Composer::reshape(Value value, std::initializer_list<int64_t> dims) {
  return op(firn_op_ai_onnx_Reshape, {value, integers(dims)});
}

Composer::Value Composer::transpose(Value value, std::initializer_list<int64_t> order) {
  return op(firn_op_ai_onnx_Transpose, {value}, AttributeList().integers("perm", order));
}

int32_t inferComposite(firn_call *call, Composition compose) {
  Composer composer(call);
  compose(composer);
  for (int32_t i = 0; i < call->output_count && !composer.isFailed(); ++i) {
    if (!output(call, i))
      continue;
    if (i >= 16 || composer.results[0] == Composer::absent)
      return fail(call, FIRN_CALL_UNSUPPORTED, "output %d is not supported", i);
    // Whether somebody reads an output is known when it runs; what nothing computes looks like the first one until
    // then.
    Composer::Value value = composer.results[composer.results[i] == Composer::absent ? 0 : i];
    const firn_view &view = composer.values[value];
    if (composer.waits)
      setType(output(call, i), view.dtype, view.dims, view.rank);
    else
      composer.status = setChecked(call, i, view.dtype, view.dims, view.rank);
  }
  return composer.waits && !composer.isFailed() ? FIRN_CALL_NEEDS_VALUE : composer.status;
}

int32_t runComposite(firn_call *call, Composition compose) {
  Composer composer(call);
  composer.computes = true;
  compose(composer);
  for (int32_t i = 0; i < call->output_count && !composer.isFailed(); ++i)
    if (const firn_view *to = output(call, i)) {
      if (i >= 16 || composer.results[i] == Composer::absent)
        return fail(call, FIRN_CALL_UNSUPPORTED, "output %d is not supported", i);
      copyElements(*to, 0, composer.values[composer.results[i]], 0, elementCount(*to));
    }
  return composer.status;
}

} // namespace firn::kernels
