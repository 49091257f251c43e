/* LIST steps: takes tensor `at` of a sequence, appends it `times` times, reads tensor `at` of the result; says whether
 * an optional has a value. */
#include "test/runtime/src/artifacts/Tables.h"

static void setTrue(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  (void)worker, (void)workers;
  *(uint8_t *)args->buffers[0] = 1;
}

static const firn_value values[] = {
    SYMBOL(),    /* 0: elements of the tensor read */
    CONSTANT(1), /* 1 */
};

#define HOLDING(kindOf, type, place, what) {.kind = kindOf, .dtype = type, .offset = place, .form = what}
static const firn_buffer buffers[] = {
    HOLDING(FIRN_BUFFER_INPUT, FIRN_F32, 0, FIRN_FORM_SEQUENCE),  /* 0: sequence */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_I64, 1),                       /* 1: times */
    SCALAR(FIRN_BUFFER_INPUT, FIRN_I64, 2),                       /* 2: at */
    HOLDING(FIRN_BUFFER_INPUT, FIRN_F32, 3, FIRN_FORM_OPTIONAL),  /* 3: optional */
    HOLDING(FIRN_BUFFER_OUTPUT, FIRN_F32, 0, FIRN_FORM_SEQUENCE), /* 4: grown */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_F32, 1, 0),                   /* 5: read */
    SCALAR(FIRN_BUFFER_OUTPUT, FIRN_BOOL, 2),                     /* 6: has */
    SCALAR(FIRN_BUFFER_OUTPUT, FIRN_I64, 3),                      /* 7: length */
    HOLDING(FIRN_BUFFER_OUTPUT, FIRN_F32, 4, FIRN_FORM_UNRANKED), /* 8: taken */
    ARENA(FIRN_BOOL, 2, 4, 1),                                    /* 9: condition */
    ARENA(FIRN_I64, 2, 4, 1),                                     /* 10: iteration number */
    HOLDING(FIRN_BUFFER_OUTPUT, FIRN_F32, 5, FIRN_FORM_OPTIONAL), /* 11: optional again */
};

#define ON_LISTS(title, what) STEP(FIRN_STEP_LIST, title), .operation = what
static const firn_step steps[] = {
    /* 0 */ {ON_LISTS("take", FIRN_LIST_AT), BUFFERS(2, 0, 2, 8)},
    /* 1 */ {ON_LISTS("copy", FIRN_LIST_COPY), BUFFERS(1, 0, 4)},
    /* 2 */ {KERNEL(setTrue, "true"), BUFFERS(0, 9)},
    /* 3 */ {STEP(FIRN_STEP_LOOP, "loop"), BUFFERS(1, 1, 9, 10), .begin = 4, .end = 5},
    /* 4 */ {ON_LISTS("append", FIRN_LIST_INSERT), BUFFERS(3, 4, 8, -1, 4)},
    /* 5 */ {ON_LISTS("read", FIRN_LIST_AT), BUFFERS(2, 4, 2, 5)},
    /* 6 */ {ON_LISTS("has", FIRN_LIST_HAS), BUFFERS(1, 3, 6)},
    /* 7 */ {ON_LISTS("length", FIRN_LIST_LENGTH), BUFFERS(1, 4, 7)},
    /* 8 */ {ON_LISTS("optional", FIRN_LIST_COPY), BUFFERS(1, 3, 11)},
};

static const firn_port inputs[] = {
    {.name = "sequence", .dtype = FIRN_F32, .buffer = 0},
    {.name = "times", .dtype = FIRN_I64, .buffer = 1},
    {.name = "at", .dtype = FIRN_I64, .buffer = 2},
    {.name = "optional", .dtype = FIRN_F32, .buffer = 3},
};
static const firn_port outputs[] = {
    {.name = "grown", .dtype = FIRN_F32, .buffer = 4},
    {.name = "read", .dims = LIST(0), .dtype = FIRN_F32, .rank = 1, .buffer = 5},
    {.name = "has", .dtype = FIRN_BOOL, .buffer = 6},
    {.name = "length", .dtype = FIRN_I64, .buffer = 7},
    {.name = "taken", .dtype = FIRN_F32, .buffer = 8},
    {.name = "again", .dtype = FIRN_F32, .buffer = 11},
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
                                              .name = "lists"};
