#include "runtime/src/Plan.h"

#include <string.h>

#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Values.h"

namespace firn::runtime {

size_t Plan::tableBytes(const firn_model &model) {
  size_t values = size_t(model.desc->value_count), buffers = size_t(model.desc->buffer_count);
  size_t placed = size_t(model.arenaBufferCount), inputs = size_t(model.desc->input_count);
  return (values + 2 * buffers + inputs * FIRN_TENSOR_MAX_RANK) * sizeof(int64_t) +
         placed * (sizeof(Placement) + sizeof(Row) + sizeof(int64_t)) + (buffers + 1) / 2 * sizeof(int64_t);
}

char *Plan::layOut(const firn_model &model, char *memory) {
  auto take = [&](auto *&array, int32_t count) {
    array = reinterpret_cast<decltype(&array[0])>(memory);
    memory += size_t(count) * sizeof array[0];
  };
  take(values, model.desc->value_count);
  take(bytes, model.desc->buffer_count);
  take(offsets, model.desc->buffer_count);
  take(inputDims, model.desc->input_count * FIRN_TENSOR_MAX_RANK);
  take(placements, model.arenaBufferCount);
  take(rows, model.arenaBufferCount);
  take(order, 2 * model.arenaBufferCount); // even numbers keep what follows aligned
  take(rowOf, (model.desc->buffer_count + 1) / 2 * 2);
  return memory;
}

namespace {

firn_status wrongType(const firn_model &model, int32_t index, const firn_tensor &given, firn_status status,
                      const char *reason, firn_error *error) {
  char wanted[256], got[256];
  return fail(error, status, "input '%s' must be %s, got %s: %s", model.desc->inputs[index].name,
              portText(model, model.desc->inputs[index], wanted, sizeof wanted), tensorText(given, got, sizeof got),
              reason);
}

firn_status checkInputType(const firn_model &model, int32_t index, const firn_tensor &given, bool withData,
                           firn_error *error) {
  const firn_port &port = model.desc->inputs[index];
  if (port.buffer >= 0 && isList(model.desc->buffers[port.buffer]))
    return checkListInput(port.name, model.desc->buffers[port.buffer], given, withData, error);
  if (isAbsent(given)) {
    char wanted[256];
    return port.optional ? FIRN_OK
                         : fail(error, FIRN_BAD_INPUT, "input '%s' is missing: it must be %s", port.name,
                                portText(model, port, wanted, sizeof wanted));
  }
  if (given.dtype != port.dtype)
    return wrongType(model, index, given, FIRN_BAD_INPUT, "the dtype differs", error);
  if (given.rank != port.rank)
    return wrongType(model, index, given, FIRN_BAD_SHAPE, "the rank differs", error);
  int64_t bytes = firn_tensor_bytes(&given);
  if (bytes < 0)
    return wrongType(model, index, given, FIRN_BAD_SHAPE, "a dimension is negative or too large", error);
  if (withData && (given.bytes < bytes || (bytes > 0 && !given.data))) {
    char text[256];
    return fail(error, FIRN_BAD_INPUT, "input '%s' needs %lld bytes for %s, got %lld%s", port.name,
                static_cast<long long>(bytes), tensorText(given, text, sizeof text),
                static_cast<long long>(given.bytes), given.data ? "" : " at NULL");
  }
  return FIRN_OK;
}

firn_status checkDims(const Plan &plan, const firn_model &model, const firn_tensor *inputs, firn_error *error) {
  for (int32_t i = 0; i < model.desc->input_count; ++i) {
    const firn_port &port = model.desc->inputs[i];
    if (isAbsent(inputs[i]))
      continue;
    for (int32_t d = 0; d < port.rank; ++d) {
      int64_t wanted = plan.values[port.dims[d]];
      if (inputs[i].dims[d] == wanted)
        continue;
      char reason[96] = "";
      appendText(reason, sizeof reason, "dimension %d must be %lld", d, static_cast<long long>(wanted));
      return wrongType(model, i, inputs[i], FIRN_BAD_SHAPE, reason, error);
    }
  }
  return FIRN_OK;
}

firn_status checkConstraints(const Plan &plan, const firn_model &model, firn_error *error) {
  for (int32_t i = 0; i < model.desc->constraint_count; ++i) {
    const firn_constraint &constraint = model.desc->constraints[i];
    int64_t value = plan.values[constraint.value];
    if (value >= constraint.lower && value <= constraint.upper)
      continue;
    const firn_value &program = model.desc->values[constraint.value];
    if (program.op == FIRN_VALUE_SUB && constraint.lower == 0 && constraint.upper == 0)
      return fail(error, FIRN_BAD_SHAPE, "%s: got %lld and %lld", constraint.message,
                  static_cast<long long>(plan.values[program.a]), static_cast<long long>(plan.values[program.b]));
    if (constraint.lower == constraint.upper)
      return fail(error, FIRN_BAD_SHAPE, "%s: got %lld, must be %lld", constraint.message,
                  static_cast<long long>(value), static_cast<long long>(constraint.lower));
    if (constraint.upper == INT64_MAX && constraint.lower == 0)
      return fail(error, FIRN_BAD_SHAPE, "%s: it is %lld too short", constraint.message,
                  -static_cast<long long>(value));
    if (constraint.upper == INT64_MAX)
      return fail(error, FIRN_BAD_SHAPE, "%s: got %lld, must be at least %lld", constraint.message,
                  static_cast<long long>(value), static_cast<long long>(constraint.lower));
    return fail(error, FIRN_BAD_SHAPE, "%s: got %lld, allowed is %lld to %lld", constraint.message,
                static_cast<long long>(value), static_cast<long long>(constraint.lower),
                static_cast<long long>(constraint.upper));
  }
  return FIRN_OK;
}

// The first step that uses `buffer`, for messages.
const char *userOf(const firn_model &model, int32_t buffer) {
  for (int32_t s = 0; s < model.desc->step_count; ++s)
    for (int32_t i = 0; i < model.desc->steps[s].buffer_count; ++i)
      if (model.desc->steps[s].buffers[i] == buffer)
        return model.desc->steps[s].name;
  return "nobody";
}

firn_status impossibleBuffer(const Plan &plan, const firn_model &model, int32_t index, firn_error *error) {
  const firn_buffer &buffer = model.desc->buffers[index];
  firn_tensor tensor{};
  tensor.dtype = buffer.dtype;
  tensor.rank = buffer.rank;
  for (int32_t d = 0; d < buffer.rank; ++d)
    tensor.dims[d] = plan.values[buffer.dims[d]];
  char text[256];
  return fail(error, FIRN_BAD_SHAPE, "these input dimensions cannot be: node '%s' would work on %s",
              userOf(model, index), tensorText(tensor, text, sizeof text));
}

firn_status sizeBuffers(Plan &plan, const firn_model &model, firn_error *error) {
  const firn_model_desc &desc = *model.desc;
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    const firn_buffer &buffer = desc.buffers[i];
    bool isLate = false;
    if (isList(buffer)) { // in items of the session
      plan.bytes[i] = 0;
      continue;
    }
    for (int32_t d = 0; d < buffer.rank; ++d)
      isLate |= desc.values[buffer.dims[d]].late != 0;
    plan.bytes[i] = isLate ? -1 : countBytes(buffer.dtype, countElements(plan.values, buffer.dims, buffer.rank));
    if (!isLate && plan.bytes[i] < 0)
      return impossibleBuffer(plan, model, i, error);
    if (buffer.kind == FIRN_BUFFER_INPUT) {
      const firn_port &port = desc.inputs[buffer.offset];
      if (plan.bytes[i] > countBytes(port.dtype, countElements(plan.values, port.dims, port.rank)))
        return fail(error, FIRN_BAD_SHAPE, "input '%s' is smaller than its buffer %d of %lld bytes", port.name, i,
                    static_cast<long long>(plan.bytes[i]));
    }
    if (buffer.kind == FIRN_BUFFER_OUTPUT && !isLate) {
      const firn_port &port = desc.outputs[buffer.offset];
      int64_t bytes = countBytes(port.dtype, countElements(plan.values, port.dims, port.rank));
      if (bytes > plan.bytes[i])
        plan.bytes[i] = bytes;
    }
  }
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    int64_t whole = plan.bytes[model.root[i]];
    if (whole >= 0 && plan.bytes[i] > whole)
      return fail(error, FIRN_BAD_SHAPE, "these input dimensions cannot be: node '%s' reads %lld bytes of %lld",
                  userOf(model, i), static_cast<long long>(plan.bytes[i]), static_cast<long long>(whole));
  }
  return FIRN_OK;
}

// The bytes of all rows beside one another, which the model announces as the most that its arena has. Leaves in each
// row where it begins.
int64_t sizeRows(Plan &plan, const firn_model_desc &desc) {
  if (plan.rowCount == 0)
    plan.rowCount = assignRows(desc.buffers, desc.buffer_count, plan.order, plan.rows, plan.rowOf);
  for (int32_t r = 0; r < plan.rowCount; ++r)
    plan.rows[r].bytes = 0;
  for (int32_t i = 0; i < desc.buffer_count; ++i)
    if (plan.rowOf[i] >= 0 && plan.bytes[i] > plan.rows[plan.rowOf[i]].bytes)
      plan.rows[plan.rowOf[i]].bytes = plan.bytes[i];
  int64_t total = 0;
  for (int32_t r = 0; r < plan.rowCount; ++r) {
    int64_t bytes = (plan.rows[r].bytes + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
    plan.rows[r].bytes = total;
    total += bytes;
  }
  return total;
}

firn_status placeArena(Plan &plan, const firn_model &model, firn_error *error) {
  const firn_model_desc &desc = *model.desc;
  bool isStatic = desc.arena_bytes >= 0;
  int32_t count = 0;
  int64_t sum = 0;
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    const firn_buffer &buffer = desc.buffers[i];
    if (buffer.kind != FIRN_BUFFER_ARENA)
      continue;
    if (isStatic) {
      plan.offsets[i] = buffer.offset;
      if (plan.bytes[i] > desc.arena_bytes - buffer.offset)
        return fail(error, FIRN_BAD_SHAPE, "these input dimensions need more than the arena's %lld bytes",
                    static_cast<long long>(desc.arena_bytes));
    } else if (__builtin_add_overflow(sum, plan.bytes[i] + FIRN_BUFFER_ALIGNMENT, &sum))
      return fail(error, FIRN_NO_MEMORY, "these input dimensions need more memory than can be addressed");
    else
      plan.placements[count++] = {plan.bytes[i], buffer.first_step, buffer.last_step, 0};
  }
  if (isStatic) {
    plan.arenaBytes = desc.arena_bytes;
    return FIRN_OK;
  }
  int64_t limit = sizeRows(plan, desc);
  plan.arenaBytes = placeBuffers(plan.placements, count, plan.order);
  bool fits = plan.arenaBytes <= limit;
  int32_t next = 0;
  for (int32_t i = 0; i < desc.buffer_count; ++i)
    if (desc.buffers[i].kind == FIRN_BUFFER_ARENA)
      plan.offsets[i] = fits ? plan.placements[next++].offset : plan.rows[plan.rowOf[i]].bytes;
  if (!fits)
    plan.arenaBytes = limit;
  return FIRN_OK;
}

} // namespace

firn_status checkInputTypes(const firn_model &model, const firn_tensor *inputs, bool withData, firn_error *error) {
  for (int32_t i = 0; i < model.desc->input_count; ++i)
    FIRN_CHECK_STATUS(checkInputType(model, i, inputs[i], withData, error));
  return FIRN_OK;
}

bool isPlannedFor(const Plan &plan, const firn_model &model, const firn_tensor *inputs) {
  if (!plan.isReady)
    return false;
  for (int32_t i = 0; i < model.desc->input_count; ++i) {
    const int64_t *dims = plan.inputDims + i * FIRN_TENSOR_MAX_RANK;
    for (int32_t d = 0; d < model.desc->inputs[i].rank && !isAbsent(inputs[i]); ++d)
      if (inputs[i].dims[d] != dims[d])
        return false;
  }
  return true;
}

firn_status makePlan(Plan &plan, const firn_model &model, const firn_tensor *inputs, firn_error *error) {
  const firn_model_desc &desc = *model.desc;
  plan.isReady = false;
  for (int32_t i = 0; i < desc.value_count; ++i) {
    const firn_value &value = desc.values[i];
    if (value.op == FIRN_VALUE_INPUT_DIM)
      plan.values[i] = inputs[value.a].dims[value.b];
    else if (!value.late)
      evaluateValue(desc.values, plan.values, i);
  }
  FIRN_CHECK_STATUS(checkDims(plan, model, inputs, error));
  FIRN_CHECK_STATUS(checkConstraints(plan, model, error));
  FIRN_CHECK_STATUS(sizeBuffers(plan, model, error));
  FIRN_CHECK_STATUS(placeArena(plan, model, error));
  // An absent optional input has the dims of its port, which are constants.
  for (int32_t i = 0; i < desc.input_count; ++i)
    for (int32_t d = 0; d < desc.inputs[i].rank; ++d)
      plan.inputDims[i * FIRN_TENSOR_MAX_RANK + d] = plan.values[desc.inputs[i].dims[d]];
  plan.isReady = true;
  return FIRN_OK;
}

} // namespace firn::runtime
