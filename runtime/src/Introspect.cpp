// What a model says about itself.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Model.h"
#include "runtime/src/Plan.h"
#include "runtime/src/Values.h"
#include "runtime/src/Variants.h"

#ifndef FIRN_VERSION
#define FIRN_VERSION "0.1.0"
#endif

// The public header spells the element types out, so that it stands alone.
static_assert(FIRN_TENSOR_MAX_RANK == FIRN_MAX_RANK && FIRN_ALIGNMENT == FIRN_BUFFER_ALIGNMENT,
              "firn.h and the artifact ABI must agree");
static_assert(sizeof(firn_text) == sizeof(firn_string) && offsetof(firn_text, length) == offsetof(firn_string, length),
              "firn.h and the artifact ABI must agree");
static_assert(sizeof(firn_tensor) == 128, "firn_tensor has a fixed layout");

namespace firn::runtime {
namespace {

// Copies as much of a struct as its reader knows; its struct_size stays the reader's.
template <typename T> firn_status hand(const T &full, T *to) {
  uint32_t size = to->struct_size;
  if (size < sizeof(uint32_t) || size > (1u << 16))
    return FIRN_BAD_ARGUMENT;
  memcpy(to, &full, size < sizeof full ? size : sizeof full);
  to->struct_size = size;
  return FIRN_OK;
}

firn_status describePort(const firn_model &model, const firn_port *ports, int32_t count, int32_t index,
                         firn_port_info *info) {
  if (index < 0 || index >= count || !info)
    return FIRN_BAD_ARGUMENT;
  const firn_port &port = ports[index];
  firn_port_info full{};
  full.dtype = port.dtype;
  full.rank = port.rank;
  full.optional = port.optional != 0;
  full.name = port.name;
  full.form = port.buffer < 0 ? FIRN_FORM_TENSOR : model.desc->buffers[port.buffer].form;
  for (int32_t d = 0; d < port.rank; ++d) {
    bool isFixed = model.isConstant[port.dims[d]] != 0;
    full.dims[d] = isFixed ? model.constants[port.dims[d]] : -1;
    full.symbols[d] = isFixed || !port.symbols ? nullptr : port.symbols[d];
  }
  return hand(full, info);
}

int32_t findPort(const firn_port *ports, int32_t count, const char *name) {
  for (int32_t i = 0; name && i < count; ++i)
    if (strcmp(ports[i].name, name) == 0)
      return i;
  return -1;
}

firn_status pairAt(const firn_pair *pairs, int32_t count, int32_t index, const char **key, const char **value) {
  if (index < 0 || index >= count)
    return FIRN_BAD_ARGUMENT;
  if (key)
    *key = pairs[index].key;
  if (value)
    *value = pairs[index].value;
  return FIRN_OK;
}

// Bytes of outputs that the session would allocate.
int64_t sessionOutputs(const firn_model &model, const Plan &plan) {
  int64_t sum = 0;
  for (int32_t i = 0; i < model.desc->output_count; ++i) {
    int32_t root = model.root[model.desc->outputs[i].buffer];
    const firn_buffer &buffer = model.desc->buffers[root];
    if (buffer.kind == FIRN_BUFFER_OUTPUT && buffer.offset == i && plan.bytes[root] > 0)
      sum += plan.bytes[root];
  }
  return sum;
}

void describeOutputs(const firn_model &model, const Plan &plan, firn_tensor *outputs) {
  for (int32_t i = 0; i < model.desc->output_count; ++i) {
    const firn_port &port = model.desc->outputs[i];
    outputs[i].dtype = port.dtype;
    outputs[i].rank = port.rank;
    int32_t form = model.desc->buffers[port.buffer].form;
    if (form == FIRN_FORM_UNRANKED || form == FIRN_FORM_OPTIONAL) {
      outputs[i].rank = -1;
    } else if (form != FIRN_FORM_TENSOR) {
      outputs[i].dtype = FIRN_LIST;
      outputs[i].rank = 1;
      outputs[i].dims[0] = -1;
    }
    for (int32_t d = 0; d < port.rank; ++d)
      outputs[i].dims[d] = model.desc->values[port.dims[d]].late ? -1 : plan.values[port.dims[d]];
  }
}

bool hasLateSizes(const firn_model &model) {
  for (int32_t i = 0; i < model.desc->buffer_count; ++i)
    if (model.isBufferLate[i] || isList(model.desc->buffers[i]))
      return true;
  return false;
}

} // namespace
} // namespace firn::runtime

using namespace firn::runtime;

extern "C" {

const char *firn_status_name(int32_t status) {
  static const char *const names[] = {"FIRN_OK",          "FIRN_BAD_ARGUMENT", "FIRN_UNREADABLE", "FIRN_BAD_MODEL",
                                      "FIRN_BAD_VERSION", "FIRN_BAD_MACHINE",  "FIRN_NO_MEMORY",  "FIRN_BAD_INPUT",
                                      "FIRN_BAD_SHAPE",   "FIRN_SMALL_OUTPUT", "FIRN_FAILED",     "FIRN_BUSY",
                                      "FIRN_DIFFERS",     "FIRN_NO_PROOF",     "FIRN_NO_THREADS"};
  return uint32_t(status) < sizeof names / sizeof names[0] ? names[status] : "unknown status";
}

const char *firn_version(void) { return FIRN_VERSION; }

const char *firn_dtype_name(int32_t dtype) {
  static const char *const names[FIRN_DTYPE_COUNT] = {
      "none",       "f32",    "u8",         "i8",  "u16", "i16",    "i32",    "i64",  "string",
      "bool",       "f16",    "f64",        "u32", "u64", "c64",    "c128",   "bf16", "f8e4m3fn",
      "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2"};
  if (dtype == FIRN_LIST)
    return "list";
  return dtype > 0 && dtype < FIRN_DTYPE_COUNT ? names[dtype] : names[0];
}

int64_t firn_tensor_bytes(const firn_tensor *tensor) {
  if (!tensor || tensor->rank < 0 || tensor->rank > FIRN_TENSOR_MAX_RANK)
    return -1;
  int64_t count = countElements(tensor->dims, tensor->rank);
  if (tensor->dtype == FIRN_LIST)
    return count < 0 || count > INT64_MAX / 256 ? -1 : count * int64_t(sizeof(firn_tensor));
  return countBytes(tensor->dtype, count);
}

int32_t firn_model_input_count(const firn_model *model) { return model ? model->desc->input_count : 0; }
int32_t firn_model_output_count(const firn_model *model) { return model ? model->desc->output_count : 0; }

firn_status firn_model_input(const firn_model *model, int32_t index, firn_port_info *port) {
  return model ? describePort(*model, model->desc->inputs, model->desc->input_count, index, port) : FIRN_BAD_ARGUMENT;
}

firn_status firn_model_output(const firn_model *model, int32_t index, firn_port_info *port) {
  return model ? describePort(*model, model->desc->outputs, model->desc->output_count, index, port) : FIRN_BAD_ARGUMENT;
}

int32_t firn_model_find_input(const firn_model *model, const char *name) {
  return model ? findPort(model->desc->inputs, model->desc->input_count, name) : -1;
}

int32_t firn_model_find_output(const firn_model *model, const char *name) {
  return model ? findPort(model->desc->outputs, model->desc->output_count, name) : -1;
}

firn_status firn_model_describe(const firn_model *model, firn_model_info *info) {
  if (!model || !info)
    return FIRN_BAD_ARGUMENT;
  firn_model_info full{};
  full.abi_version = model->footer.abi_version;
  full.name = model->desc->name;
  full.file_bytes = model->footer.file_size;
  full.image_bytes = model->footer.image_size;
  full.weights_bytes = model->footer.weights_size;
  full.scratch_bytes = model->scratchStride;
  full.machine = model->footer.machine;
  full.cpu_features = model->footer.cpu_features;
  full.step_count = model->desc->step_count;
  full.thread_hint = model->desc->max_threads;
  full.has_proof = model->desc->proof_count > 0;
  full.has_late_sizes = hasLateSizes(*model);
  memcpy(full.digest, model->footer.digest, sizeof full.digest);
  full.arena_bytes = model->desc->arena_bytes;
  if (full.arena_bytes < 0) {
    firn_memory memory{};
    memory.struct_size = sizeof memory;
    if (!model->hasDynamicInputs && firn_model_memory(model, nullptr, &memory, nullptr, nullptr) == FIRN_OK)
      full.arena_bytes = memory.arena_bytes;
    else
      full.arena_bytes = -1;
  }
  return hand(full, info);
}

firn_status firn_model_metadata(const firn_model *model, int32_t index, const char **key, const char **value) {
  return model ? pairAt(model->desc->metadata, model->desc->metadata_count, index, key, value) : FIRN_BAD_ARGUMENT;
}

firn_status firn_model_provenance(const firn_model *model, int32_t index, const char **key, const char **value) {
  return model ? pairAt(model->desc->provenance, model->desc->provenance_count, index, key, value) : FIRN_BAD_ARGUMENT;
}

const char *firn_model_constraint(const firn_model *model, int32_t index) {
  return model && index >= 0 && index < model->desc->constraint_count ? model->desc->constraints[index].message
                                                                      : nullptr;
}

firn_status firn_model_step(const firn_model *model, int32_t index, firn_step_info *info) {
  if (!model || !info || index < 0 || index >= model->desc->step_count)
    return FIRN_BAD_ARGUMENT;
  const firn_step &step = model->desc->steps[index];
  firn_step_info full{};
  full.runs = step.kind == FIRN_STEP_KERNEL      ? FIRN_RUNS_KERNEL
              : step.kind == FIRN_STEP_REFERENCE ? FIRN_RUNS_REFERENCE
                                                 : FIRN_RUNS_INSIDE;
  full.name = step.name;
  full.kind = step.kind == FIRN_STEP_REFERENCE ? step.op->name : step.kind_name;
  full.parallel = step.kind == FIRN_STEP_KERNEL && step.parallel;
  for (int32_t i = 0; i < index; ++i) {
    const firn_step &outer = model->desc->steps[i];
    full.depth += (outer.kind == FIRN_STEP_IF || outer.kind == FIRN_STEP_LOOP) && outer.end > index;
  }
  return hand(full, info);
}

const firn_model_desc *firn_model_tables(const firn_model *model) { return model ? model->desc : nullptr; }

firn_status firn_model_memory(const firn_model *model, const firn_tensor *inputs, firn_memory *memory,
                              firn_tensor *outputs, firn_error *error) {
  succeed(error);
  if (!model || !memory)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_model_memory got NULL");
  if (!inputs && model->hasDynamicInputs)
    return fail(error, FIRN_BAD_ARGUMENT, "the model has dynamic input dimensions: inputs must be given");
  int32_t variant = -1;
  if (inputs && model->variantCount) {
    FIRN_CHECK_STATUS(checkInputTypes(*model, inputs, false, error));
    variant = findVariant(*model, inputs);
  }
  if (variant >= 0)
    return firn_model_memory(model->variants + variant, inputs, memory, outputs, error);
  Plan plan{};
  void *tables = calloc(1, Plan::tableBytes(*model) + 64);
  if (!tables)
    return fail(error, FIRN_NO_MEMORY, "no memory to plan the arena");
  plan.layOut(*model, static_cast<char *>(tables));
  // Without inputs every dimension is a constant, and makePlan looks at none of these.
  auto *absent = static_cast<firn_tensor *>(calloc(size_t(model->desc->input_count) + 1, sizeof(firn_tensor)));
  firn_status status = FIRN_OK;
  if (!absent)
    status = fail(error, FIRN_NO_MEMORY, "no memory to plan the arena");
  if (status == FIRN_OK && inputs)
    status = checkInputTypes(*model, inputs, false, error);
  if (status == FIRN_OK)
    status = makePlan(plan, *model, inputs ? inputs : absent, error);
  if (status == FIRN_OK) {
    firn_memory full{};
    full.weights_bytes = int64_t(model->footer.weights_size);
    full.arena_bytes = plan.arenaBytes;
    full.scratch_bytes = model->scratchStride;
    full.output_bytes = sessionOutputs(*model, plan);
    status = hand(full, memory);
    if (outputs)
      describeOutputs(*model, plan, outputs);
  }
  free(absent);
  free(tables);
  return status;
}

firn_status firn_model_arena_rows(const firn_model *model, int32_t *rows) {
  if (!model || !rows)
    return FIRN_BAD_ARGUMENT;
  size_t count = size_t(model->arenaBufferCount) + 1;
  void *memory = calloc(count, sizeof(Row) + sizeof(int32_t));
  if (!memory)
    return FIRN_NO_MEMORY;
  auto *table = static_cast<Row *>(memory);
  assignRows(model->desc->buffers, model->desc->buffer_count, reinterpret_cast<int32_t *>(table + count), table, rows);
  free(memory);
  return FIRN_OK;
}

} // extern "C"
