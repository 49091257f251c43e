/* Sizes that depend on data: `positions` holds where x exceeds attribute `threshold` (found by a reference kernel),
 * `picked` is x at these places plus `shift`, which a generated kernel looks up; an index out of range is a fault. */
#include "test/runtime/src/artifacts/Tables.h"

static int copyText(char *to, const char *from) {
  while ((*to++ = *from++))
    ;
  return FIRN_CALL_INVALID;
}

static int32_t inferPositive(firn_call *call) {
  const float threshold = *(const float *)call->attributes[0].data;
  const firn_view *x = &call->inputs[0];
  const float *data = x->data;
  int64_t count = 0;
  if (!data)
    return FIRN_CALL_NEEDS_VALUE;
  for (int64_t i = 0; i < x->dims[0]; ++i)
    count += data[i] > threshold;
  call->outputs[0].dtype = FIRN_I64;
  call->outputs[0].rank = 1;
  call->outputs[0].dims[0] = count;
  return FIRN_CALL_OK;
}

static int32_t runPositive(firn_call *call) {
  const float threshold = *(const float *)call->attributes[0].data;
  const firn_view *x = &call->inputs[0];
  const float *data = x->data;
  if (x->dims[0] > 1000)
    return copyText(call->message, "x is longer than 1000");
  /* Through scratch, in two pieces. */
  int64_t *first = call->scratch(call, 8 * x->dims[0]), *second = call->scratch(call, 8 * x->dims[0] + 8);
  if (!first || !second || (uint64_t)first % 64 || (uint64_t)second % 64)
    return FIRN_CALL_NO_MEMORY;
  int64_t count = 0;
  for (int64_t i = 0; i < x->dims[0]; ++i)
    if (data[i] > threshold)
      first[count++] = i;
  for (int64_t i = 0; i < count; ++i)
    second[i] = first[i];
  for (int64_t i = 0; i < count; ++i)
    ((int64_t *)call->outputs[0].data)[i] = second[i];
  return FIRN_CALL_OK;
}

static const firn_operator positive = {"test::Positive", inferPositive, runPositive};
static const float threshold = 0.5f;
static const firn_attribute attributes[] = {{"threshold", &threshold, 1, FIRN_ATTR_FLOAT}};

static void pick(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  const float *x = args->buffers[0];
  const int64_t *positions = args->buffers[1], *shift = args->buffers[2];
  float *picked = args->buffers[3];
  for (int64_t i = worker; i < args->dims[1]; i += workers) {
    int64_t at = positions[i] + *shift;
    if (at < 0 || at >= args->dims[0]) {
      *args->status = FIRN_FAULT_INDEX;
      return;
    }
    picked[i] = x[at];
  }
}

static const firn_value values[] = {
    INPUT_DIM(0, 0), /* 0: length */
    SYMBOL(),        /* 1: count */
    CONSTANT(1),     /* 2 */
};

static const firn_buffer buffers[] = {
    BUFFER(FIRN_BUFFER_INPUT, FIRN_F32, 0, 0),  /* 0: x */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_I64, 1),     /* 1: shift */
    BUFFER(FIRN_BUFFER_LATE, FIRN_I64, 0, 1),   /* 2: positions */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_F32, 1, 1), /* 3: picked */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_I64, 2, 2), /* 4: count */
};

static const firn_step steps[] = {
    {STEP(FIRN_STEP_REFERENCE, "find"), BUFFERS(1, 0, 2), .op = &positive, .attributes = attributes,
     .attribute_count = 1},
    {KERNEL(pick, "pick"), BUFFERS(3, 0, 2, 1, 3), DIMS(0, 1), .parallel = 1},
    {STEP(FIRN_STEP_VALUES, "count"), BUFFERS(0, 4), DIMS(1)},
};

static const firn_port inputs[] = {
    {.name = "x",
     .dims = LIST(0),
     .symbols = (const char *const[]){"length"},
     .dtype = FIRN_F32,
     .rank = 1,
     .buffer = 0},
    {.name = "shift", .dtype = FIRN_I64, .rank = 0, .buffer = 1},
};
static const firn_port outputs[] = {
    {.name = "positions", .dims = LIST(1), .dtype = FIRN_I64, .rank = 1, .buffer = 2},
    {.name = "picked", .dims = LIST(1), .dtype = FIRN_F32, .rank = 1, .buffer = 3},
    {.name = "count", .dims = LIST(2), .dtype = FIRN_I64, .rank = 1, .buffer = 4},
    {.name = "x", .dims = LIST(0), .dtype = FIRN_F32, .rank = 1, .buffer = 0},
};

EXPORT const firn_model_desc firn_model_v1 = {.struct_size = sizeof(firn_model_desc),
                                              .abi_version = FIRN_ABI_VERSION,
                                              .input_count = COUNT(inputs),
                                              .inputs = inputs,
                                              .output_count = COUNT(outputs),
                                              .outputs = outputs,
                                              .value_count = COUNT(values),
                                              .values = values,
                                              .buffer_count = COUNT(buffers),
                                              .buffers = buffers,
                                              .step_count = COUNT(steps),
                                              .steps = steps,
                                              .arena_bytes = -1,
                                              .name = "positive"};
