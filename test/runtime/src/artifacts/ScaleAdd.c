/* y = x * w * s + b with a dynamic batch, an optional input s, a constraint, an alias, and a proof.
 * Weights: w at 0 (4 floats), default of s at 64, proof at 128 (x), 192 (b), 256 (y). */
#include "test/runtime/src/artifacts/Tables.h"

/* Rows are shared among workers. */
static void scale(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  const float *x = args->buffers[0], *w = args->buffers[1], *s = args->buffers[2];
  float *t = args->buffers[3];
  for (int64_t row = worker; row < args->dims[0]; row += workers)
    for (int i = 0; i < 4; ++i)
      t[row * 4 + i] = x[row * 4 + i] * w[i] * s[0];
}

static void add(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  const float *t = args->buffers[0], *b = args->buffers[1];
  float *y = args->buffers[2];
  for (int64_t i = worker; i < args->dims[0]; i += workers)
    y[i] = t[i] + b[i];
}

static const firn_value values[] = {
    INPUT_DIM(0, 0),           /* 0: batch */
    INPUT_DIM(1, 0),           /* 1 */
    CONSTANT(4),               /* 2 */
    {FIRN_VALUE_SUB, 0, 0, 1}, /* 3 */
    {FIRN_VALUE_MUL, 0, 0, 2}, /* 4: elements */
    CONSTANT(1),               /* 5 */
    CONSTANT(2),               /* 6 */
    {FIRN_VALUE_MUL, 0, 4, 6}, /* 7: flops */
};

static const firn_buffer buffers[] = {
    BUFFER(FIRN_BUFFER_INPUT, FIRN_F32, 0, 0, 2),  /* 0: x */
    BUFFER(FIRN_BUFFER_INPUT, FIRN_F32, 1, 1, 2),  /* 1: b */
    BUFFER(FIRN_BUFFER_INPUT, FIRN_F32, 2, 5),     /* 2: s */
    BUFFER(FIRN_BUFFER_WEIGHT, FIRN_F32, 0, 2),    /* 3: w */
    ARENA(FIRN_F32, 0, 1, 0, 2),                   /* 4: t */
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_F32, 0, 0, 2), /* 5: y */
    BUFFER(FIRN_BUFFER_ALIAS, FIRN_F32, 4, 4),     /* 6: t, flat */
};

static const firn_step steps[] = {
    {COSTED_KERNEL(scale, "scale", 7), BUFFERS(3, 0, 3, 2, 4), DIMS(0), .parallel = 1},
    {COSTED_KERNEL(add, "add", 4), BUFFERS(2, 6, 1, 5), DIMS(4), .parallel = 1},
};

static const firn_port inputs[] = {
    {.name = "x",
     .dims = LIST(0, 2),
     .symbols = (const char *const[]){"batch", 0},
     .dtype = FIRN_F32,
     .rank = 2,
     .buffer = 0},
    {.name = "b",
     .dims = LIST(1, 2),
     .symbols = (const char *const[]){"batch", 0},
     .dtype = FIRN_F32,
     .rank = 2,
     .buffer = 1},
    {.name = "s", .dims = LIST(5), .dtype = FIRN_F32, .rank = 1, .buffer = 2, .optional = 1, .default_offset = 64},
};
static const firn_port outputs[] = {
    {.name = "y",
     .dims = LIST(0, 2),
     .symbols = (const char *const[]){"batch", 0},
     .dtype = FIRN_F32,
     .rank = 2,
     .buffer = 5},
};
static const firn_constraint constraints[] = {
    {.value = 3,
     .lower = 0,
     .upper = 0,
     .message = "dimension 0 of input 'b' must equal dimension 0 of input 'x' (batch)"},
    {.value = 0, .lower = 0, .upper = 100000, .message = "dimension 0 of input 'x' (batch) is out of range"},
};
static const firn_pair metadata[] = {{"author", "a test"}};
static const firn_pair provenance[] = {{"compiler", "by hand"}, {"target", "x86-64"}};
static const firn_proof_tensor proof[] = {
    {{.dims = {2, 4}, .dtype = FIRN_F32, .rank = 2}, 128},
    {{.dims = {2, 4}, .dtype = FIRN_F32, .rank = 2}, 192},
    {{.rank = -1}, 0},
    {{.dims = {2, 4}, .dtype = FIRN_F32, .rank = 2}, 256},
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
                                              .constraint_count = COUNT(constraints),
                                              .constraints = constraints,
                                              .metadata_count = COUNT(metadata),
                                              .metadata = metadata,
                                              .provenance_count = COUNT(provenance),
                                              .provenance = provenance,
                                              .proof_count = COUNT(proof),
                                              .proof = proof,
                                              .proof_rtol = 1e-5,
                                              .proof_atol = 1e-6,
                                              .arena_bytes = -1,
                                              .name = "scale_add"};
