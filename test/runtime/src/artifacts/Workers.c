/* Workers meet: each writes its number, all wait, each reads what the others wrote, many times over. The arena is
 * static. sum[0] is what worker 0 has seen in all rounds, sum[1] the number of workers. */
#include "test/runtime/src/artifacts/Tables.h"

#define ROUNDS 200

static void meet(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  volatile int64_t *slots = args->buffers[0];
  int64_t *sum = args->buffers[1];
  int64_t *own = (int64_t *)(args->scratch + worker * args->scratch_stride);
  *own = 0;
  for (int64_t round = 0; round < ROUNDS; ++round) {
    slots[worker * 8] = worker + round;
    args->barrier(args->pool, worker, workers);
    for (int32_t w = 0; w < workers; ++w)
      *own += slots[w * 8];
    args->barrier(args->pool, worker, workers);
  }
  if (worker == 0) {
    sum[0] = *own;
    sum[1] = workers;
  }
}

static void serial(const firn_kernel_args *args, int32_t worker, int32_t workers) {
  ((int64_t *)args->buffers[0])[2] = worker * 100 + workers;
}

static const firn_value values[] = {CONSTANT(512), CONSTANT(3)};
static const firn_buffer buffers[] = {
    {.kind = FIRN_BUFFER_ARENA,
     .dtype = FIRN_I64,
     .rank = 1,
     .dims = LIST(0),
     .offset = 64,
     .first_step = 0,
     .last_step = 0},
    BUFFER(FIRN_BUFFER_OUTPUT, FIRN_I64, 0, 1),
};
static const firn_step steps[] = {
    {KERNEL(meet, "meet"), BUFFERS(0, 0, 1), .parallel = 1, .scratch_bytes = 8},
    {KERNEL(serial, "serial"), BUFFERS(0, 1), .parallel = 0},
};
static const firn_port outputs[] = {{.name = "sum", .dims = LIST(1), .dtype = FIRN_I64, .rank = 1, .buffer = 1}};

EXPORT const firn_model_desc firn_model_v1 = {.struct_size = sizeof(firn_model_desc),
                                              .abi_version = FIRN_ABI_VERSION,
                                              .output_count = COUNT(outputs),
                                              .outputs = outputs,
                                              .value_count = COUNT(values),
                                              .values = values,
                                              .buffer_count = COUNT(buffers),
                                              .buffers = buffers,
                                              .step_count = COUNT(steps),
                                              .steps = steps,
                                              .arena_bytes = 64 + 512 * 8,
                                              .name = "workers"};
