// Checks of an artifact's tables, done once when a model is opened, so that running needs none.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Model.h"
#include "runtime/src/Values.h"

namespace firn::runtime {

namespace {

class Validator {
public:
  Validator(firn_model &checked, const char *fileName, firn_error *reported)
      : model(checked), desc(*checked.desc), name(fileName), error(reported) {}

  firn_status run() {
    FIRN_CHECK_STATUS(checkDescriptor());
    FIRN_CHECK_STATUS(allocateTables());
    FIRN_CHECK_STATUS(checkValues());
    FIRN_CHECK_STATUS(checkPorts());
    FIRN_CHECK_STATUS(checkBuffers());
    FIRN_CHECK_STATUS(checkConstraints());
    FIRN_CHECK_STATUS(checkSteps());
    FIRN_CHECK_STATUS(checkNesting(0, desc.step_count, 0));
    FIRN_CHECK_STATUS(checkProof());
    return loadStrings();
  }

private:
  firn_model &model;
  const firn_model_desc &desc;
  const char *name;
  firn_error *error;

  __attribute__((format(printf, 2, 3))) firn_status bad(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(error, FIRN_BAD_MODEL, "%s: is not a valid model: %s", name, text);
  }

  template <typename T> bool holds(const T *table, int64_t count) const {
    return count == 0 || (count > 0 && reinterpret_cast<uintptr_t>(table) % alignof(T) == 0 &&
                          model.image.holds(table, uint64_t(count), sizeof(T)));
  }
  bool holdsText(const char *text) const { return model.image.holdsText(text); }
  bool isValue(int32_t value) const { return value >= 0 && value < desc.value_count; }
  bool areValues(const int32_t *dims, int32_t count) const {
    if (!holds(dims, count))
      return false;
    for (int32_t d = 0; d < count; ++d)
      if (!isValue(dims[d]))
        return false;
    return true;
  }
  bool isLate(const int32_t *dims, int32_t count) const {
    for (int32_t d = 0; d < count; ++d)
      if (desc.values[dims[d]].late)
        return true;
    return false;
  }
  bool areConstant(const int32_t *dims, int32_t rank) const {
    for (int32_t d = 0; d < rank; ++d)
      if (!model.isConstant[dims[d]])
        return false;
    return true;
  }
  // Bytes of a tensor with constant dims, else -1.
  int64_t constantBytes(int32_t dtype, const int32_t *dims, int32_t rank) const {
    return areConstant(dims, rank) ? countBytes(dtype, countElements(model.constants, dims, rank)) : -1;
  }
  bool isInWeights(int64_t offset, int64_t bytes) const {
    return offset >= 0 && bytes >= 0 && uint64_t(offset) <= model.footer.weights_size &&
           uint64_t(bytes) <= model.footer.weights_size - uint64_t(offset);
  }

  firn_status checkDescriptor();
  firn_status allocateTables();
  firn_status checkValues();
  firn_status checkPorts();
  firn_status checkPort(const firn_port &port, const char *what, int32_t index, bool isInput);
  firn_status checkBuffers();
  firn_status checkBuffer(int32_t index);
  firn_status checkConstraints();
  firn_status checkSteps();
  firn_status checkStep(int32_t index);
  firn_status checkStepKind(int32_t index, const firn_step &step);
  firn_status checkListStep(int32_t index, const firn_step &step);
  firn_status checkWritten(int32_t index, const firn_step &step, int32_t position);
  firn_status checkOperator(int32_t index, const firn_step &step);
  firn_status checkNesting(int32_t begin, int32_t end, int depth);
  firn_status checkProof();
  firn_status loadStrings();
};

firn_status Validator::checkDescriptor() {
  if (!holds(&desc, 1))
    return bad("the descriptor lies outside of its code");
  if (desc.struct_size < sizeof desc || desc.abi_version != FIRN_ABI_VERSION)
    return bad("the descriptor has %u bytes and version %u", desc.struct_size, desc.abi_version);
  const int32_t counts[] = {desc.input_count, desc.output_count,     desc.value_count,    desc.buffer_count,
                            desc.step_count,  desc.constraint_count, desc.metadata_count, desc.provenance_count,
                            desc.proof_count, desc.max_threads};
  for (int32_t count : counts)
    if (count < 0 || count > (1 << 24))
      return bad("the descriptor has a count of %d", count);
  if (!holds(desc.inputs, desc.input_count) || !holds(desc.outputs, desc.output_count) ||
      !holds(desc.values, desc.value_count) || !holds(desc.buffers, desc.buffer_count) ||
      !holds(desc.steps, desc.step_count) || !holds(desc.constraints, desc.constraint_count) ||
      !holds(desc.metadata, desc.metadata_count) || !holds(desc.provenance, desc.provenance_count) ||
      !holds(desc.proof, desc.proof_count))
    return bad("a table lies outside of its code");
  if (!holdsText(desc.name))
    return bad("the model's name lies outside of its code");
  for (int32_t i = 0; i < desc.metadata_count; ++i)
    if (!holdsText(desc.metadata[i].key) || !holdsText(desc.metadata[i].value))
      return bad("metadata entry %d lies outside of its code", i);
  for (int32_t i = 0; i < desc.provenance_count; ++i)
    if (!holdsText(desc.provenance[i].key) || !holdsText(desc.provenance[i].value))
      return bad("provenance entry %d lies outside of its code", i);
  return FIRN_OK;
}

// One allocation for all derived arrays.
firn_status Validator::allocateTables() {
  size_t values = size_t(desc.value_count), buffers = size_t(desc.buffer_count), steps = size_t(desc.step_count);
  size_t bytes = values * (sizeof(int64_t) + sizeof(int32_t) + 1) +
                 buffers * (sizeof(firn_string *) + sizeof(int32_t) + 1) + steps * (2 * sizeof(int32_t) + 2) + 64;
  char *memory = static_cast<char *>(calloc(1, bytes));
  if (!memory)
    return fail(error, FIRN_NO_MEMORY, "%s: no memory for its tables", name);
  model.tables = memory;
  auto take = [&](auto *&array, size_t count) {
    array = reinterpret_cast<decltype(&array[0])>(memory);
    memory += count * sizeof array[0];
  };
  take(model.constants, values);
  take(model.strings, buffers);
  take(model.lateValues, values);
  take(model.root, buffers);
  take(model.argumentStart, steps);
  take(model.dimStart, steps);
  take(model.isConstant, values);
  take(model.isBufferLate, buffers);
  take(model.isStepLate, steps);
  take(model.doesStepInfer, steps);
  return FIRN_OK;
}

firn_status Validator::checkValues() {
  for (int32_t i = 0; i < desc.value_count; ++i) {
    const firn_value &value = desc.values[i];
    bool late = false, constant = false;
    switch (value.op) {
    case FIRN_VALUE_CONSTANT:
      constant = true;
      break;
    case FIRN_VALUE_INPUT_DIM:
      if (value.a < 0 || value.a >= desc.input_count || value.b < 0 || value.b >= desc.inputs[value.a].rank)
        return bad("value %d is dimension %lld of input %lld, which does not exist", i, static_cast<long long>(value.b),
                   static_cast<long long>(value.a));
      break;
    case FIRN_VALUE_SYMBOL:
      late = true;
      model.hasSymbols = true;
      break;
    default:
      if (value.op < FIRN_VALUE_ADD || value.op > FIRN_VALUE_MAX)
        return bad("value %d has unknown operation %d", i, value.op);
      if (value.a < 0 || value.a >= i || value.b < 0 || value.b >= i)
        return bad("value %d reads values %lld and %lld, which do not come before it", i,
                   static_cast<long long>(value.a), static_cast<long long>(value.b));
      late = desc.values[value.a].late || desc.values[value.b].late;
      constant = model.isConstant[value.a] && model.isConstant[value.b];
    }
    if ((late && !value.late) || (!late && value.late && constant))
      return bad("value %d is marked as known too early or too late", i);
    model.isConstant[i] = constant;
    if (constant)
      evaluateValue(desc.values, model.constants, i);
    if (value.late && value.op >= FIRN_VALUE_ADD)
      model.lateValues[model.lateValueCount++] = i;
  }
  return FIRN_OK;
}

firn_status Validator::checkPort(const firn_port &port, const char *what, int32_t index, bool isInput) {
  if (!holdsText(port.name))
    return bad("the name of %s %d lies outside of its code", what, index);
  bool isListPort = port.buffer >= 0 && port.buffer < desc.buffer_count && isList(desc.buffers[port.buffer]);
  bool hasDtype = firn_dtype_bits(port.dtype) != 0 || (isListPort && port.dtype == FIRN_DTYPE_NONE);
  if (port.rank < 0 || port.rank > FIRN_MAX_RANK || !hasDtype || (isListPort && (port.rank != 0 || port.optional)))
    return bad("%s '%s' has rank %d and dtype %d", what, port.name, port.rank, port.dtype);
  if (!areValues(port.dims, port.rank))
    return bad("%s '%s' has dimensions that do not exist", what, port.name);
  if (port.symbols && !holds(port.symbols, port.rank))
    return bad("%s '%s' has symbols outside of its code", what, port.name);
  for (int32_t d = 0; port.symbols && d < port.rank; ++d)
    if (port.symbols[d] && !holdsText(port.symbols[d]))
      return bad("%s '%s' has a symbol outside of its code", what, port.name);
  if (port.buffer < (isInput ? -1 : 0) || port.buffer >= desc.buffer_count)
    return bad("%s '%s' has buffer %d of %d", what, port.name, port.buffer, desc.buffer_count);
  if (!isInput)
    return FIRN_OK;
  if (isLate(port.dims, port.rank))
    return bad("input '%s' has a dimension that is known only at run time", port.name);
  for (int32_t d = 0; d < port.rank; ++d)
    model.hasDynamicInputs |= !model.isConstant[port.dims[d]];
  if (port.optional && !isInWeights(port.default_offset, constantBytes(port.dtype, port.dims, port.rank)))
    return bad("the default of input '%s' lies outside of the weights", port.name);
  return FIRN_OK;
}

firn_status Validator::checkPorts() {
  for (int32_t i = 0; i < desc.input_count; ++i)
    FIRN_CHECK_STATUS(checkPort(desc.inputs[i], "input", i, true));
  for (int32_t i = 0; i < desc.output_count; ++i)
    FIRN_CHECK_STATUS(checkPort(desc.outputs[i], "output", i, false));
  for (int32_t i = 0; i < desc.value_count; ++i) {
    const firn_value &value = desc.values[i];
    if (value.op == FIRN_VALUE_INPUT_DIM && desc.inputs[value.a].optional)
      return bad("value %d is a dimension of input '%s', which may be absent", i, desc.inputs[value.a].name);
  }
  return FIRN_OK;
}

firn_status Validator::checkBuffer(int32_t index) {
  const firn_buffer &buffer = desc.buffers[index];
  if (buffer.form < 0 || buffer.form >= FIRN_FORM_COUNT ||
      (isList(buffer) && (buffer.rank != 0 || buffer.kind == FIRN_BUFFER_WEIGHT || buffer.kind == FIRN_BUFFER_ARENA)))
    return bad("buffer %d has form %d, rank %d and kind %d", index, buffer.form, buffer.rank, buffer.kind);
  model.hasLists |= isList(buffer);
  bool hasDtype = firn_dtype_bits(buffer.dtype) != 0 || (isList(buffer) && buffer.dtype == FIRN_DTYPE_NONE);
  if (buffer.rank < 0 || buffer.rank > FIRN_MAX_RANK || !hasDtype)
    return bad("buffer %d has rank %d and dtype %d", index, buffer.rank, buffer.dtype);
  if (!areValues(buffer.dims, buffer.rank))
    return bad("buffer %d has dimensions that do not exist", index);
  bool late = isLate(buffer.dims, buffer.rank);
  model.root[index] = index;
  switch (buffer.kind) {
  case FIRN_BUFFER_INPUT:
    if (buffer.offset < 0 || buffer.offset >= desc.input_count || late ||
        buffer.dtype != desc.inputs[buffer.offset].dtype)
      return bad("buffer %d is input %lld, which does not exist or has another type", index,
                 static_cast<long long>(buffer.offset));
    return FIRN_OK;
  case FIRN_BUFFER_OUTPUT:
    if (buffer.offset < 0 || buffer.offset >= desc.output_count || buffer.dtype != desc.outputs[buffer.offset].dtype)
      return bad("buffer %d is output %lld, which does not exist or has another type", index,
                 static_cast<long long>(buffer.offset));
    model.isBufferLate[index] = late;
    return FIRN_OK;
  case FIRN_BUFFER_WEIGHT:
    if (!isInWeights(buffer.offset, constantBytes(buffer.dtype, buffer.dims, buffer.rank)))
      return bad("buffer %d lies outside of the weights", index);
    if (buffer.offset % FIRN_BUFFER_ALIGNMENT != 0)
      return bad("buffer %d lies in the weights at unaligned offset %lld", index,
                 static_cast<long long>(buffer.offset));
    return FIRN_OK;
  case FIRN_BUFFER_ARENA:
    if (late)
      return bad("buffer %d lies in the arena, but its size is known only at run time", index);
    if (buffer.first_step < 0 || buffer.last_step < buffer.first_step || buffer.last_step >= desc.step_count)
      return bad("buffer %d lives in steps %d to %d of %d", index, buffer.first_step, buffer.last_step,
                 desc.step_count);
    if (desc.arena_bytes >= 0) { // a size that depends on the inputs is checked when they are known
      int64_t bytes = areConstant(buffer.dims, buffer.rank) ? constantBytes(buffer.dtype, buffer.dims, buffer.rank) : 0;
      if (bytes < 0 || buffer.offset < 0 || buffer.offset % FIRN_BUFFER_ALIGNMENT != 0 || bytes > desc.arena_bytes ||
          buffer.offset > desc.arena_bytes - bytes)
        return bad("buffer %d lies outside of the arena of %lld bytes", index,
                   static_cast<long long>(desc.arena_bytes));
    }
    ++model.arenaBufferCount;
    return FIRN_OK;
  case FIRN_BUFFER_LATE:
    model.isBufferLate[index] = !isList(buffer);
    return FIRN_OK;
  case FIRN_BUFFER_ALIAS:
    if (buffer.offset < 0 || buffer.offset >= desc.buffer_count || buffer.offset == index)
      return bad("buffer %d is an alias of buffer %lld", index, static_cast<long long>(buffer.offset));
    return FIRN_OK;
  }
  return bad("buffer %d has unknown kind %d", index, buffer.kind);
}

firn_status Validator::checkBuffers() {
  for (int32_t i = 0; i < desc.buffer_count; ++i)
    FIRN_CHECK_STATUS(checkBuffer(i));
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    int32_t root = i;
    for (int hops = 0; desc.buffers[root].kind == FIRN_BUFFER_ALIAS; ++hops) {
      root = int32_t(desc.buffers[root].offset);
      if (hops > mostNesting)
        return bad("buffer %d is an alias of itself or of too many others", i);
    }
    if (isList(desc.buffers[i]) != isList(desc.buffers[root]))
      return bad("buffer %d is an alias of buffer %d, which is of another form", i, root);
    model.root[i] = root;
    model.isBufferLate[i] = model.isBufferLate[root] || isLate(desc.buffers[i].dims, desc.buffers[i].rank);
  }
  for (int32_t i = 0; i < desc.output_count; ++i)
    if (desc.buffers[desc.outputs[i].buffer].dtype != desc.outputs[i].dtype)
      return bad("output '%s' and its buffer have different types", desc.outputs[i].name);
  return FIRN_OK;
}

firn_status Validator::checkConstraints() {
  for (int32_t i = 0; i < desc.constraint_count; ++i) {
    const firn_constraint &constraint = desc.constraints[i];
    if (!isValue(constraint.value) || desc.values[constraint.value].late || !holdsText(constraint.message))
      return bad("constraint %d is about a value that does not exist", i);
  }
  return FIRN_OK;
}

// A step must not write what it may not: weights are read-only, inputs are the caller's.
firn_status Validator::checkWritten(int32_t index, const firn_step &step, int32_t position) {
  if (position >= step.buffer_count || step.buffers[position] < 0)
    return FIRN_OK;
  int32_t kind = desc.buffers[model.root[step.buffers[position]]].kind;
  if (kind == FIRN_BUFFER_WEIGHT || kind == FIRN_BUFFER_INPUT)
    return bad("step %d (%s) writes buffer %d, which is read-only", index, step.name, step.buffers[position]);
  return FIRN_OK;
}

firn_status Validator::checkOperator(int32_t index, const firn_step &step) {
  if (!holds(step.op, 1) || !step.op || !holdsText(step.op->name) ||
      !model.image.holdsCode(reinterpret_cast<const void *>(step.op->run)) ||
      !model.image.holdsCode(reinterpret_cast<const void *>(step.op->infer)))
    return bad("step %d (%s) calls a reference kernel that does not exist", index, step.name);
  if (step.attribute_count < 0 || !holds(step.attributes, step.attribute_count))
    return bad("step %d (%s) has attributes outside of its code", index, step.name);
  static const uint8_t sizes[] = {0, 8, 4, 1, sizeof(firn_view), 8, 4, sizeof(firn_string)};
  for (int32_t i = 0; i < step.attribute_count; ++i) {
    const firn_attribute &attribute = step.attributes[i];
    if (!holdsText(attribute.name) || attribute.kind < FIRN_ATTR_INT || attribute.kind > FIRN_ATTR_STRINGS ||
        attribute.count < 0 ||
        (attribute.count > 0 && !model.image.holds(attribute.data, uint64_t(attribute.count), sizes[attribute.kind])))
      return bad("step %d (%s) has a damaged attribute", index, step.name);
  }
  // Where every size is a constant, the compiler has asked the shape function; else it judges the sizes of each run.
  for (int32_t i = 0; i < step.buffer_count; ++i)
    if (int32_t buffer = step.buffers[i]; buffer >= 0)
      for (int32_t d = 0; d < desc.buffers[buffer].rank; ++d)
        model.doesStepInfer[index] |= desc.values[desc.buffers[buffer].dims[d]].op != FIRN_VALUE_CONSTANT;
  // Nor are the sizes of lists known before.
  for (int32_t i = 0; i < step.buffer_count; ++i)
    model.doesStepInfer[index] |= step.buffers[i] >= 0 && isList(desc.buffers[step.buffers[i]]);
  if (step.buffer_count > model.mostViews)
    model.mostViews = step.buffer_count;
  return FIRN_OK;
}

firn_status Validator::checkListStep(int32_t index, const firn_step &step) {
  // Per operation: buffers with the result, and what each is: l a list, t a tensor or a list of one, i an integer or
  // absent, n an i64, b a bool. MAKE has any number of tensors.
  static const char *const signatures[FIRN_LIST_OPERATION_COUNT] = {"l",   "l",   "ll", "ll", "ltil",
                                                                    "lil", "lit", "ln", "lb"};
  if (step.operation < 0 || step.operation >= FIRN_LIST_OPERATION_COUNT)
    return bad("step %d (%s) has unknown operation %d", index, step.name, step.operation);
  const char *signature = signatures[step.operation];
  int32_t count = step.operation == FIRN_LIST_MAKE ? step.buffer_count : int32_t(strlen(signature));
  if (count < 1 || step.buffer_count != count || step.input_count != count - 1)
    return bad("step %d (%s) has %d buffers for operation %d", index, step.name, step.buffer_count, step.operation);
  for (int32_t i = 0; i < count; ++i) {
    char wanted = step.operation == FIRN_LIST_MAKE ? (i + 1 < count ? 't' : 'l') : signature[i];
    if (step.buffers[i] < 0 && wanted == 'i')
      continue;
    if (step.buffers[i] < 0)
      return bad("step %d (%s) lacks buffer %d", index, step.name, i);
    const firn_buffer &buffer = desc.buffers[step.buffers[i]];
    bool fits = wanted == 'l'   ? isList(buffer)
                : wanted == 't' ? true
                : wanted == 'i' ? !isList(buffer) && (buffer.dtype == FIRN_I64 || buffer.dtype == FIRN_I32)
                : wanted == 'n' ? !isList(buffer) && buffer.dtype == FIRN_I64
                                : !isList(buffer) && buffer.dtype == FIRN_BOOL;
    if (!fits)
      return bad("step %d (%s) has unfitting buffer %d for operation %d", index, step.name, i, step.operation);
  }
  if (step.operation == FIRN_LIST_MOVE)
    FIRN_CHECK_STATUS(checkWritten(index, step, 0));
  return checkWritten(index, step, count - 1);
}

firn_status Validator::checkStepKind(int32_t index, const firn_step &step) {
  auto needs = [&](int32_t position, int32_t dtype) {
    return position < step.buffer_count && step.buffers[position] >= 0 &&
           (dtype == FIRN_DTYPE_NONE || desc.buffers[step.buffers[position]].dtype == dtype);
  };
  auto isSymbol = [&](int32_t dim) { return desc.values[step.dims[dim]].op == FIRN_VALUE_SYMBOL; };
  bool fits = true;
  switch (step.kind) {
  case FIRN_STEP_KERNEL:
    fits = model.image.holdsCode(reinterpret_cast<const void *>(step.kernel));
    model.hasParallelSteps |= step.parallel != 0;
    for (int32_t i = step.input_count; i < step.buffer_count; ++i)
      FIRN_CHECK_STATUS(checkWritten(index, step, i));
    break;
  case FIRN_STEP_REFERENCE:
    for (int32_t i = step.input_count; i < step.buffer_count; ++i)
      FIRN_CHECK_STATUS(checkWritten(index, step, i));
    return checkOperator(index, step);
  case FIRN_STEP_COPY:
    fits = step.buffer_count == 2 && needs(0, FIRN_DTYPE_NONE) && needs(1, desc.buffers[step.buffers[0]].dtype);
    FIRN_CHECK_STATUS(checkWritten(index, step, 1));
    break;
  case FIRN_STEP_VALUES:
    fits = step.buffer_count == 1 && (needs(0, FIRN_I64) || needs(0, FIRN_I32));
    FIRN_CHECK_STATUS(checkWritten(index, step, 0));
    break;
  case FIRN_STEP_BIND:
    fits = step.dim_count % 2 == 0;
    for (int32_t i = 0; fits && i < step.dim_count; i += 2)
      fits = isSymbol(i);
    break;
  case FIRN_STEP_IF:
    fits = step.buffer_count >= 1 && needs(0, FIRN_BOOL);
    break;
  case FIRN_STEP_LOOP:
    fits = step.buffer_count <= 3 && step.dim_count <= 1 && (step.dim_count == 0 || isSymbol(0));
    for (int32_t i = 0; fits && i < step.buffer_count; ++i)
      fits = step.buffers[i] < 0 || needs(i, i == 1 ? FIRN_BOOL : FIRN_I64);
    FIRN_CHECK_STATUS(checkWritten(index, step, 2));
    break;
  case FIRN_STEP_APPEND:
    fits = step.buffer_count == 2 && needs(0, FIRN_DTYPE_NONE) && needs(1, desc.buffers[step.buffers[0]].dtype) &&
           desc.buffers[model.root[step.buffers[1]]].kind == FIRN_BUFFER_LATE && step.dim_count == 1 && isSymbol(0) &&
           firn_dtype_bits(desc.buffers[step.buffers[0]].dtype) >= 8;
    break;
  case FIRN_STEP_FAIL:
    break;
  case FIRN_STEP_LIST:
    return checkListStep(index, step);
  default:
    return bad("step %d (%s) has unknown kind %d", index, step.name, step.kind);
  }
  return fits ? FIRN_OK : bad("step %d (%s, kind %d) has unfitting buffers or values", index, step.name, step.kind);
}

firn_status Validator::checkStep(int32_t index) {
  const firn_step &step = desc.steps[index];
  if (!holdsText(step.name) || !holdsText(step.kind_name))
    return bad("the name of step %d lies outside of its code", index);
  if (step.buffer_count < 0 || step.input_count < 0 || step.input_count > step.buffer_count || step.dim_count < 0 ||
      !holds(step.buffers, step.buffer_count) || !areValues(step.dims, step.dim_count))
    return bad("step %d (%s) has buffers or values that do not exist", index, step.name);
  if (step.scratch_bytes < 0 || step.scratch_bytes > (int64_t(1) << 40))
    return bad("step %d (%s) wants %lld bytes of scratch", index, step.name,
               static_cast<long long>(step.scratch_bytes));
  if ((step.flops != -1 && !isValue(step.flops)) || (step.bytes != -1 && !isValue(step.bytes)))
    return bad("step %d (%s) has a cost that does not exist", index, step.name);
  bool late = isLate(step.dims, step.dim_count);
  bool takesLists = step.kind == FIRN_STEP_REFERENCE || step.kind == FIRN_STEP_LIST;
  for (int32_t i = 0; i < step.buffer_count; ++i) {
    int32_t buffer = step.buffers[i];
    if (buffer < -1 || buffer >= desc.buffer_count)
      return bad("step %d (%s) uses buffer %d of %d", index, step.name, buffer, desc.buffer_count);
    if (buffer < 0)
      continue;
    if (isList(desc.buffers[buffer]) && !takesLists)
      return bad("step %d (%s) uses buffer %d, which is a list", index, step.name, buffer);
    late |= model.isBufferLate[buffer] != 0;
    const firn_buffer &root = desc.buffers[model.root[buffer]];
    if (root.kind == FIRN_BUFFER_ARENA && (index < root.first_step || index > root.last_step))
      return bad("step %d (%s) uses buffer %d, which lives in steps %d to %d", index, step.name, model.root[buffer],
                 root.first_step, root.last_step);
  }
  model.isStepLate[index] = late;
  model.argumentStart[index] = model.argumentCount;
  model.dimStart[index] = model.dimCount;
  if (__builtin_add_overflow(model.argumentCount, step.buffer_count, &model.argumentCount) ||
      __builtin_add_overflow(model.dimCount, step.dim_count, &model.dimCount))
    return bad("its steps have too many arguments");
  int64_t stride = (step.scratch_bytes + 127) / 128 * 128;
  if (stride > model.scratchStride)
    model.scratchStride = stride;
  return checkStepKind(index, step);
}

firn_status Validator::checkSteps() {
  for (int32_t i = 0; i < desc.step_count; ++i)
    FIRN_CHECK_STATUS(checkStep(i));
  return FIRN_OK;
}

firn_status Validator::checkNesting(int32_t begin, int32_t end, int depth) {
  if (depth > mostNesting)
    return bad("its ifs and loops are nested more than %d deep", mostNesting);
  for (int32_t i = begin; i < end;) {
    const firn_step &step = desc.steps[i];
    if (step.kind != FIRN_STEP_IF && step.kind != FIRN_STEP_LOOP) {
      ++i;
      continue;
    }
    int32_t middle = step.kind == FIRN_STEP_IF ? step.middle : step.end;
    if (step.begin != i + 1 || middle < step.begin || step.end < middle || step.end > end)
      return bad("step %d (%s) contains steps %d to %d of %d", i, step.name, step.begin, step.end, end);
    FIRN_CHECK_STATUS(checkNesting(step.begin, middle, depth + 1));
    FIRN_CHECK_STATUS(checkNesting(middle, step.end, depth + 1));
    i = step.end;
  }
  return FIRN_OK;
}

firn_status Validator::checkProof() {
  if (desc.proof_count != 0 && desc.proof_count != desc.input_count + desc.output_count)
    return bad("it has %d tensors of proof for %d inputs and %d outputs", desc.proof_count, desc.input_count,
               desc.output_count);
  for (int32_t i = 0; i < desc.proof_count; ++i) {
    const firn_view &view = desc.proof[i].view;
    if (view.rank == -1)
      continue;
    if (view.rank < 0 || view.rank > FIRN_MAX_RANK ||
        !isInWeights(desc.proof[i].offset, countBytes(view.dtype, countElements(view.dims, view.rank))))
      return bad("tensor %d of the proof lies outside of the weights", i);
  }
  return FIRN_OK;
}

firn_status Validator::loadStrings() {
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    const firn_buffer &buffer = desc.buffers[i];
    if (buffer.kind != FIRN_BUFFER_WEIGHT || buffer.dtype != FIRN_STRING)
      continue;
    int64_t count = countElements(model.constants, buffer.dims, buffer.rank);
    size_t bytes = (size_t(count) * sizeof(firn_string) + 64) / 64 * 64;
    model.strings[i] = static_cast<firn_string *>(aligned_alloc(64, bytes));
    if (!model.strings[i])
      return fail(error, FIRN_NO_MEMORY, "%s: no memory for its strings", name);
    if (!resolveStrings(model, buffer.offset, count, model.strings[i]))
      return bad("a string of buffer %d lies outside of the weights", i);
  }
  return FIRN_OK;
}

} // namespace

firn_status validateModel(firn_model &model, const char *name, firn_error *error) {
  return Validator(model, name, error).run();
}

bool resolveStrings(const firn_model &model, int64_t offset, int64_t count, firn_string *to) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t element[2]; // offset, length
    memcpy(element, model.weights + offset + i * 16, 16);
    if (element[0] < 0 || element[1] < 0 || uint64_t(element[0]) > model.footer.weights_size ||
        uint64_t(element[1]) > model.footer.weights_size - uint64_t(element[0]))
      return false;
    to[i] = {model.weights + element[0], element[1]};
  }
  return true;
}

} // namespace firn::runtime
