/* If, Loop, BIND and APPEND: a loop runs `trips` times or until the iteration number reaches `limit` - 1. It carries a
 * list that grows by its iteration number, and collects the squares of the numbers. Afterwards an If takes 1 or the
 * list's sum; where `fail` is set the model stops. */
#include "test/runtime/src/artifacts/Tables.h"

static void setTrue(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  *(uint8_t *)args->buffers[0] = 1;
}
static void grow(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  const int64_t *list = args->buffers[0], *number = args->buffers[1];
  int64_t *longer = args->buffers[2];
  for (int64_t i = 0; i < args->dims[0]; ++i)
    longer[i] = list[i];
  longer[args->dims[0]] = *number;
}
static void square(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  int64_t number = *(const int64_t *)args->buffers[0];
  *(int64_t *)args->buffers[1] = number * number;
}
static void goesOn(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  *(uint8_t *)args->buffers[2] = *(const int64_t *)args->buffers[0] + 1 < *(const int64_t *)args->buffers[1];
}
static void one(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  *(int64_t *)args->buffers[0] = 1;
}
static void sum(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  int64_t total = 0;
  for (int64_t i = 0; i < args->dims[0]; ++i)
    total += ((const int64_t *)args->buffers[0])[i];
  *(int64_t *)args->buffers[1] = total;
}

static const firn_value values[] = {
    SYMBOL(),                  /* 0: number of squares */
    SYMBOL(),                  /* 1: iterations */
    SYMBOL(),                  /* 2: length of the list */
    SYMBOL(),                  /* 3: length of the longer list */
    CONSTANT(0),               /* 4 */
    CONSTANT(1),               /* 5 */
    {FIRN_VALUE_ADD, 1, 2, 5}, /* 6 */
};

static const firn_buffer buffers[] = {
    SCALAR(FIRN_BUFFER_INPUT, FIRN_I64, 0),      /* 0: trips */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_I64, 1),      /* 1: limit */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_BOOL, 2),     /* 2: takeOne */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_BOOL, 3),     /* 3: fail */
    ARENA(FIRN_BOOL, 0, 10, 5),                  /* 4: condition */
    ARENA(FIRN_I64, 3, 10, 5),                   /* 5: iteration number */
    BUFFER(FIRN_BUFFER_LATE, FIRN_I64, 0, 2),    /* 6: list */
    BUFFER(FIRN_BUFFER_LATE, FIRN_I64, 0, 3),    /* 7: longer list */
    ARENA(FIRN_I64, 3, 10, 5),                   /* 8: square */
    BUFFER(FIRN_BUFFER_LATE, FIRN_I64, 0, 0, 5), /* 9: squares */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_I64, 2, 5),  /* 10: iterations */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_I64, 3, 5),  /* 11: sum */
    BUFFER(FIRN_BUFFER_ALIAS, FIRN_I64, 9, 0),   /* 12: squares, flat */
};

static const firn_step steps[] = {
    /* 0 */ {KERNEL(setTrue, "true"), BUFFERS(0, 4)},
    /* 1 */ {STEP(FIRN_STEP_BIND, "empty"), DIMS(2, 4)},
    /* 2 */ {STEP(FIRN_STEP_VALUES, "list"), BUFFERS(0, 6)},
    /* 3 */ {STEP(FIRN_STEP_LOOP, "loop"), BUFFERS(1, 0, 4, 5), DIMS(1), .begin = 4, .end = 11},
    /* 4 */ {STEP(FIRN_STEP_BIND, "loop"), DIMS(3, 6)},
    /* 5 */ {KERNEL(grow, "grow"), BUFFERS(2, 6, 5, 7), DIMS(2)},
    /* 6 */ {STEP(FIRN_STEP_BIND, "loop"), DIMS(2, 3)},
    /* 7 */ {STEP(FIRN_STEP_COPY, "loop"), BUFFERS(1, 7, 6)},
    /* 8 */ {KERNEL(square, "square"), BUFFERS(1, 5, 8)},
    /* 9 */ {STEP(FIRN_STEP_APPEND, "squares"), BUFFERS(1, 8, 9), DIMS(0)},
    /* 10 */ {KERNEL(goesOn, "condition"), BUFFERS(2, 5, 1, 4)},
    /* 11 */ {STEP(FIRN_STEP_VALUES, "iterations"), BUFFERS(0, 10), DIMS(1)},
    /* 12 */ {STEP(FIRN_STEP_IF, "if"), BUFFERS(1, 2), .begin = 13, .middle = 14, .end = 15},
    /* 13 */ {KERNEL(one, "one"), BUFFERS(0, 11)},
    /* 14 */ {KERNEL(sum, "sum"), BUFFERS(1, 6, 11), DIMS(2)},
    /* 15 */ {STEP(FIRN_STEP_IF, "if fail"), BUFFERS(1, 3), .begin = 16, .middle = 17, .end = 17},
    /* 16 */ {STEP(FIRN_STEP_FAIL, "the model was told to fail")},
};

static const firn_port inputs[] = {
    {.name = "trips", .dtype = FIRN_I64, .rank = 0, .buffer = 0},
    {.name = "limit", .dtype = FIRN_I64, .rank = 0, .buffer = 1},
    {.name = "takeOne", .dtype = FIRN_BOOL, .rank = 0, .buffer = 2},
    {.name = "fail", .dtype = FIRN_BOOL, .rank = 0, .buffer = 3},
};
static const firn_port outputs[] = {
    {.name = "list", .dims = LIST(2), .dtype = FIRN_I64, .rank = 1, .buffer = 6},
    {.name = "squares", .dims = LIST(0), .dtype = FIRN_I64, .rank = 1, .buffer = 12},
    {.name = "iterations", .dims = LIST(5), .dtype = FIRN_I64, .rank = 1, .buffer = 10},
    {.name = "sum", .dims = LIST(5), .dtype = FIRN_I64, .rank = 1, .buffer = 11},
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
                                              .name = "control"};
