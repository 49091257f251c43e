#include "runtime/src/Session.h"

#include <new>
#include <stdlib.h>
#include <string.h>

#include "runtime/src/Machine.h"
#include "runtime/src/Values.h"
#include "runtime/src/Variants.h"

namespace firn::runtime {

namespace {

bool isAligned(const void *data) { return reinterpret_cast<uintptr_t>(data) % FIRN_BUFFER_ALIGNMENT == 0; }

// Lays all arrays out in one block and returns its bytes.
size_t layOut(firn_session &session, char *memory) {
  const firn_model &model = *session.model;
  const firn_model_desc &desc = *model.desc;
  char *begin = memory;
  auto take = [&](auto *&array, int64_t count) {
    array = reinterpret_cast<decltype(&array[0])>(memory);
    memory += (size_t(count) * sizeof array[0] + 63) / 64 * 64;
  };
  memory = session.plan.layOut(model, memory + 64); // the first 64 bytes stand for empty tensors
  memory = begin + (size_t(memory - begin) + 63) / 64 * 64;
  take(session.addresses, desc.buffer_count);
  take(session.held, desc.buffer_count);
  take(session.kept, desc.buffer_count);
  take(session.staging, desc.input_count);
  take(session.handedOut, desc.output_count);
  take(session.arguments, model.argumentCount);
  take(session.dims, model.dimCount);
  take(session.patches, 2 * int64_t(model.argumentCount));
  take(session.views, model.mostViews);
  take(session.states, desc.input_count);
  take(session.withStates, desc.input_count);
  if (model.hasLists) {
    take(session.lists, desc.buffer_count);
    take(session.items, 1);
  }
  return size_t(memory - begin);
}

firn_status noMemory(firn_session &session, int64_t bytes, const char *what) {
  return fail(&session.error, FIRN_NO_MEMORY, "no memory for the %lld bytes of %s", static_cast<long long>(bytes),
              what);
}

// The dims of all steps, and the addresses that do not change from run to run.
void fillArguments(firn_session &session) {
  const firn_model &model = *session.model;
  const firn_model_desc &desc = *model.desc;
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    const firn_buffer &buffer = desc.buffers[i];
    if (isList(buffer))
      session.addresses[i] = reinterpret_cast<char *>(session.lists + i);
    else if (buffer.kind == FIRN_BUFFER_ARENA)
      session.addresses[i] = session.owner().arena.data + session.plan.offsets[i];
    else if (buffer.kind == FIRN_BUFFER_WEIGHT) // never written: validation saw to that
      session.addresses[i] = model.strings[i] ? reinterpret_cast<char *>(model.strings[i])
                                              : const_cast<char *>(model.weights) + buffer.offset;
  }
  session.patchCount = 0;
  for (int32_t s = 0; s < desc.step_count; ++s) {
    const firn_step &step = desc.steps[s];
    for (int32_t d = 0; d < step.dim_count; ++d)
      session.dims[model.dimStart[s] + d] = session.plan.values[step.dims[d]];
    for (int32_t b = 0; b < step.buffer_count; ++b) {
      int32_t argument = model.argumentStart[s] + b;
      int32_t root = step.buffers[b] < 0 ? -1 : model.root[step.buffers[b]];
      session.arguments[argument] = root < 0 ? nullptr : session.addresses[root];
      if (root >= 0 &&
          (desc.buffers[root].kind == FIRN_BUFFER_INPUT || desc.buffers[root].kind == FIRN_BUFFER_OUTPUT)) {
        session.patches[2 * session.patchCount] = argument;
        session.patches[2 * session.patchCount + 1] = root;
        ++session.patchCount;
      }
    }
  }
}

// Plans for the dims of `inputs` (types already checked).
firn_status prepare(firn_session &session, const firn_tensor *inputs) {
  FIRN_CHECK_STATUS(makePlan(session.plan, *session.model, inputs, &session.error));
  session.plan.isReady = false; // until the arena is there too
  firn_session &owner = session.owner();
  if (owner.ownsArena) {
    if (!reserve(session.allocator, owner.arena, session.plan.arenaBytes > 64 ? session.plan.arenaBytes : 64))
      return noMemory(session, session.plan.arenaBytes, "the arena");
  } else if (owner.arena.capacity < session.plan.arenaBytes) {
    return fail(&session.error, FIRN_NO_MEMORY, "the caller's arena has %lld bytes, %lld are needed",
                static_cast<long long>(owner.arena.capacity), static_cast<long long>(session.plan.arenaBytes));
  }
  fillArguments(session);
  session.plannedArena = owner.arena.data;
  session.plan.isReady = true;
  return FIRN_OK;
}

firn_status stage(firn_session &session, int32_t index, const void *data, int64_t bytes, char *&address) {
  Block &block = session.staging[index];
  if (!reserve(session.allocator, block, bytes))
    return noMemory(session, bytes, "a copy of an input");
  memcpy(block.data, data, size_t(bytes));
  address = block.data;
  return FIRN_OK;
}

// Where the bytes of input `index` are.
firn_status bindInput(firn_session &session, int32_t index, char *&address) {
  const firn_tensor &given = session.inputs[index];
  const firn_port &port = session.desc->inputs[index];
  if (!isAbsent(given)) {
    int64_t bytes = firn_tensor_bytes(&given);
    address = static_cast<char *>(given.data);
    if (bytes == 0)
      address = static_cast<char *>(session.tables);
    return isAligned(address) ? FIRN_OK : stage(session, index, given.data, bytes, address);
  }
  address = const_cast<char *>(session.model->weights) + port.default_offset;
  int64_t count = countElements(session.plan.values, port.dims, port.rank);
  if (port.dtype == FIRN_STRING) {
    if (!reserve(session.allocator, session.staging[index], count * int64_t(sizeof(firn_string))))
      return noMemory(session, count * int64_t(sizeof(firn_string)), "an input's default");
    address = session.staging[index].data;
    if (!resolveStrings(*session.model, port.default_offset, count, reinterpret_cast<firn_string *>(address)))
      return fail(&session.error, FIRN_BAD_MODEL, "the default of input '%s' lies outside of the weights", port.name);
    return FIRN_OK;
  }
  return isAligned(address) ? FIRN_OK : stage(session, index, address, countBytes(port.dtype, count), address);
}

// The caller's memory for output `index`, NULL if there is none. What the last run handed out does not count: a caller
// may pass the same array of tensors again.
void *callersOutput(const firn_session &session, int32_t index) {
  void *data = session.outputs[index].data;
  return data && data == session.handedOut[index] ? nullptr : data;
}

// Where OUTPUT buffer `root` of `bytes` bytes is to be written.
firn_status placeOutput(firn_session &session, int32_t root, int64_t bytes) {
  int32_t index = int32_t(session.desc->buffers[root].offset);
  void *callers = nullptr;
  if (session.model->root[session.desc->outputs[index].buffer] == root)
    callers = callersOutput(session, index);
  if (callers && session.outputs[index].bytes < bytes)
    return smallOutput(session, index, bytes);
  if (callers && isAligned(callers)) {
    session.addresses[root] = static_cast<char *>(callers);
    return FIRN_OK;
  }
  Block &block = session.kept[root];
  const char *before = block.data;
  if (!reserve(session.allocator, block, bytes > 64 ? bytes : 64))
    return noMemory(session, bytes, "an output");
  if (block.data != before)
    prefault(session.allocator, block);
  session.addresses[root] = session.kept[root].data;
  return FIRN_OK;
}

firn_status bindPorts(firn_session &session) {
  const firn_model_desc &desc = *session.desc;
  for (int32_t i = 0; i < desc.buffer_count; ++i) {
    const firn_buffer &buffer = desc.buffers[i];
    if (isList(buffer))
      continue;
    if (buffer.kind == FIRN_BUFFER_INPUT)
      FIRN_CHECK_STATUS(bindInput(session, int32_t(buffer.offset), session.addresses[i]));
    else if (session.isLateRoot(i) && buffer.kind != FIRN_BUFFER_ALIAS)
      session.held[i] = -1, session.addresses[i] = static_cast<char *>(session.tables);
    else if (buffer.kind == FIRN_BUFFER_OUTPUT)
      FIRN_CHECK_STATUS(placeOutput(session, i, session.plan.bytes[i]));
  }
  if (session.lists)
    FIRN_CHECK_STATUS(bindLists(session));
  for (int32_t i = 0; i < session.patchCount; ++i)
    session.arguments[session.patches[2 * i]] = session.addresses[session.patches[2 * i + 1]];
  if (session.model->hasSymbols) { // nothing of an earlier run may be seen
    for (int32_t i = 0; i < desc.value_count; ++i)
      if (desc.values[i].op == FIRN_VALUE_SYMBOL)
        session.plan.values[i] = 0;
    session.hasStaleValues = true;
  }
  return FIRN_OK;
}

firn_status finishOutput(firn_session &session, int32_t index) {
  if (isList(session.desc->buffers[session.desc->outputs[index].buffer]))
    return finishListOutput(session, index);
  describeOutput(session, index);
  firn_tensor &output = session.outputs[index];
  int32_t root = session.model->root[session.desc->outputs[index].buffer];
  int64_t bytes = firn_tensor_bytes(&output);
  int64_t present = session.isLateRoot(root) ? session.held[root] : session.plan.bytes[root];
  if (bytes < 0 || (bytes > 0 && bytes > present))
    return fail(&session.error, FIRN_FAILED, "output '%s' has no value", session.desc->outputs[index].name);
  char *from = session.addresses[root];
  if (void *callers = callersOutput(session, index)) {
    if (output.bytes < bytes)
      return smallOutput(session, index, bytes);
    if (callers != from && bytes > 0)
      memcpy(callers, from, size_t(bytes));
    return FIRN_OK;
  }
  output.data = from;
  output.bytes = bytes;
  session.handedOut[index] = from;
  return FIRN_OK;
}

// Kernels keep denormals and round to nearest, whatever mode the caller's thread is in.
class FloatMode {
public:
#if defined(__x86_64__)
  FloatMode() : before(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  ~FloatMode() { __builtin_ia32_ldmxcsr(before); }

private:
  unsigned before;
#elif defined(__aarch64__)
  FloatMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
  }
  ~FloatMode() { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }

private:
  uint64_t before;
#endif
};

firn_status runOnce(firn_session &session) {
  FIRN_CHECK_STATUS(checkInputTypes(*session.model, session.inputs, true, &session.error));
  firn_session &owner = session.owner();
  if (session.plannedArena != owner.arena.data || !isPlannedFor(session.plan, *session.model, session.inputs))
    FIRN_CHECK_STATUS(prepare(session, session.inputs));
  if (owner.ownsArena && owner.arena.data != owner.touchedArena) {
    owner.touchedArena = owner.arena.data;
    prefault(owner.allocator, owner.arena);
  }
  session.bump.rewind(session.allocator, 0);
  FIRN_CHECK_STATUS(bindPorts(session));
  session.fault = FIRN_FAULT_NONE;
  session.timesCount = 0;
  session.runStart = session.times ? nowNanos() : 0;
  session.hasWorkers = session.pool && session.model->hasParallelSteps && session.pool->acquire();
  firn_status status = session.hasWorkers ? session.pool->start(&session.error) : FIRN_OK;
  if (status == FIRN_OK) {
    [[maybe_unused]] FloatMode mode;
    status = runSteps(session, 0, session.desc->step_count);
  }
  if (session.hasWorkers)
    session.pool->giveBack();
  session.hasWorkers = false;
  FIRN_CHECK_STATUS(status);
  refreshValues(session);
  for (int32_t i = 0; i < session.desc->output_count; ++i)
    FIRN_CHECK_STATUS(finishOutput(session, i));
  return FIRN_OK;
}

// A run on the variant that these inputs fit, or on the general model.
firn_status runFitting(firn_session &session) {
  if (session.stateCount)
    FIRN_CHECK_STATUS(takeStates(session));
  session.lastVariant = -1;
  if (session.variants) {
    FIRN_CHECK_STATUS(checkInputTypes(*session.model, session.inputs, true, &session.error));
    session.lastVariant = findVariant(*session.model, session.inputs);
  }
  firn_session &chosen = session.lastVariant < 0 ? session : *session.variants[session.lastVariant];
  chosen.inputs = session.inputs;
  chosen.outputs = session.outputs;
  chosen.times = session.times;
  chosen.timesCapacity = session.timesCapacity;
  chosen.random = session.random;
  firn_status status = runOnce(chosen);
  session.random = chosen.random;
  session.timesCount = chosen.timesCount;
  if (&chosen != &session)
    session.error = chosen.error;
  if (status == FIRN_OK && session.stateCount)
    keepStates(session, chosen);
  return status;
}

firn_status createPool(firn_session &session, const firn_session_options &options, firn_error *error) {
  if (options.pool) {
    session.pool = options.pool;
    return FIRN_OK;
  }
  int32_t threads = options.threads;
  if (threads < 0 || threads > 4096)
    return fail(error, FIRN_BAD_ARGUMENT, "threads must be 0 to 4096, got %d", threads);
  if (!session.model->hasParallelSteps && !session.model->hasParallelVariants)
    return FIRN_OK;
  if (threads == 0) {
    int32_t cores = usableCores(), hint = session.desc->max_threads;
    threads = hint > 0 && hint < cores ? hint : cores;
  }
  if (threads == 1)
    return FIRN_OK;
  firn_pool_options pool{};
  pool.struct_size = sizeof pool;
  pool.threads = threads;
  pool.spin_micros = options.spin_micros;
  pool.pin = options.pin;
  session.ownsPool = true;
  return makePool(&pool, &session.pool, error); // its threads come with the first run
}

// The tables of a session, and scratch memory for its threads.
firn_status makeTables(firn_session &session, firn_error *error) {
  size_t bytes = layOut(session, reinterpret_cast<char *>(64)); // an address to count from, nothing is touched
  void *memory = session.allocator.allocate(session.allocator.context, bytes, FIRN_BUFFER_ALIGNMENT);
  if (!memory)
    return fail(error, FIRN_NO_MEMORY, "no memory for the %zu bytes of a session's tables", bytes);
  memset(memory, 0, bytes);
  session.tables = memory;
  session.tablesBytes = bytes;
  layOut(session, static_cast<char *>(memory));
  int64_t scratch = session.model->scratchStride * (session.pool ? session.pool->threads : 1);
  if (scratch && !reserve(session.allocator, session.scratch, scratch))
    return fail(error, FIRN_NO_MEMORY, "no memory for the %lld bytes of scratch", static_cast<long long>(scratch));
  return FIRN_OK;
}

firn_session *newSession(const firn_model *model, const firn_allocator &allocator) {
  void *memory = allocator.allocate(allocator.context, sizeof(firn_session), FIRN_BUFFER_ALIGNMENT);
  if (!memory)
    return nullptr;
  auto *session = new (memory) firn_session{};
  session->model = model;
  session->desc = model->desc;
  session->allocator = allocator;
  session->error.struct_size = sizeof session->error;
  session->lastVariant = -1;
  return session;
}

// Sessions on the variants; their plans come with the first run that takes them.
firn_status addVariants(firn_session &session, firn_error *error) {
  int32_t count = session.model->variantCount;
  if (count == 0)
    return FIRN_OK;
  uint64_t bytes = uint64_t(count) * sizeof(firn_session *);
  auto **list =
      static_cast<firn_session **>(session.allocator.allocate(session.allocator.context, bytes, FIRN_BUFFER_ALIGNMENT));
  if (!list)
    return fail(error, FIRN_NO_MEMORY, "no memory for the sessions of %d variants", count);
  memset(list, 0, size_t(bytes));
  session.variants = list;
  for (int32_t i = 0; i < count; ++i) {
    list[i] = newSession(session.model->variants + i, session.allocator);
    if (!list[i])
      return fail(error, FIRN_NO_MEMORY, "no memory for the sessions of %d variants", count);
    list[i]->whole = &session;
    list[i]->pool = session.pool;
    FIRN_CHECK_STATUS(makeTables(*list[i], error));
    list[i]->handedOut = session.handedOut; // memory of one variant is no caller's for another
  }
  return FIRN_OK;
}

firn_status setUp(firn_session &session, const firn_session_options &options, firn_error *error) {
  session.ownsArena = !options.arena;
  if (options.arena) {
    if (!isAligned(options.arena))
      return fail(error, FIRN_BAD_ARGUMENT, "the caller's arena must be 64-byte aligned");
    session.arena = {static_cast<char *>(options.arena), int64_t(options.arena_bytes)};
  }
  FIRN_CHECK_STATUS(createPool(session, options, error));
  FIRN_CHECK_STATUS(makeTables(session, error));
  FIRN_CHECK_STATUS(addVariants(session, error));
  if (session.model->hasDynamicInputs)
    return FIRN_OK;
  // All dimensions are constants: the inputs need not be known. `absent` ones are not looked at.
  size_t inputs = size_t(session.desc->input_count) + 1;
  auto *absent = static_cast<firn_tensor *>(calloc(inputs, sizeof(firn_tensor)));
  if (!absent)
    return fail(error, FIRN_NO_MEMORY, "no memory for a session");
  firn_status status = prepare(session, absent);
  free(absent);
  return status == FIRN_OK ? status : fail(error, status, "%s", session.error.message);
}

} // namespace

firn_status holdLate(firn_session &session, int32_t root, int64_t bytes, int64_t keptBytes, const char *stepName) {
  if (session.desc->buffers[root].kind == FIRN_BUFFER_OUTPUT) {
    FIRN_CHECK_STATUS(placeOutput(session, root, bytes));
  } else {
    if (!reserve(session.allocator, session.kept[root], bytes > 64 ? bytes : 64, keptBytes))
      return fail(&session.error, FIRN_NO_MEMORY, "node '%s': no memory for its result of %lld bytes", stepName,
                  static_cast<long long>(bytes));
    session.addresses[root] = session.kept[root].data;
  }
  session.held[root] = bytes;
  return FIRN_OK;
}

firn_status smallOutput(firn_session &session, int32_t output, int64_t bytes) {
  describeOutput(session, output);
  return fail(&session.error, FIRN_SMALL_OUTPUT, "output '%s' needs %lld bytes, the caller gave %lld",
              session.desc->outputs[output].name, static_cast<long long>(bytes),
              static_cast<long long>(session.outputs[output].bytes));
}

void describeOutput(firn_session &session, int32_t index) {
  refreshValues(session);
  const firn_port &port = session.desc->outputs[index];
  firn_tensor &output = session.outputs[index];
  output.dtype = port.dtype;
  output.rank = port.rank;
  for (int32_t d = 0; d < port.rank; ++d)
    output.dims[d] = session.plan.values[port.dims[d]];
}

} // namespace firn::runtime

using namespace firn::runtime;

extern "C" {

firn_status firn_session_create(const firn_model *model, const firn_session_options *options, firn_session **result,
                                firn_error *error) {
  succeed(error);
  if (!model || !result)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_session_create got NULL");
  *result = nullptr;
  if (model->purpose != LoadFor::Running)
    return fail(error, FIRN_BAD_MACHINE, "model '%s' was opened to be read, not to run", model->desc->name);
  firn_session_options given{};
  if (options && options->struct_size < sizeof options->struct_size)
    return fail(error, FIRN_BAD_ARGUMENT, "struct_size of the session's options is not set");
  if (options)
    memcpy(&given, options, options->struct_size < sizeof given ? options->struct_size : sizeof given);
  if (given.allocator && (given.allocator->struct_size < sizeof *given.allocator || !given.allocator->allocate ||
                          !given.allocator->release))
    return fail(error, FIRN_BAD_ARGUMENT, "the caller's allocator lacks its struct_size or a function");
  firn_allocator allocator = makeAllocator(given.allocator);
  firn_session *session = newSession(model, allocator);
  if (!session)
    return fail(error, FIRN_NO_MEMORY, "no memory for a session");
  session->random = given.random_seed;
  firn_status status = setUp(*session, given, error);
  if (status != FIRN_OK) {
    firn_session_destroy(session);
    return status;
  }
  *result = session;
  return FIRN_OK;
}

void firn_session_destroy(firn_session *session) {
  if (!session)
    return;
  const firn_allocator allocator = session->allocator;
  if (session->variants) {
    for (int32_t i = 0; i < session->model->variantCount; ++i)
      firn_session_destroy(session->variants[i]);
    allocator.release(allocator.context, session->variants,
                      uint64_t(session->model->variantCount) * sizeof(firn_session *));
  }
  if (session->ownsPool)
    firn_pool_destroy(session->pool);
  if (session->tables) {
    freeLists(*session);
    for (int32_t i = 0; i < session->desc->buffer_count; ++i)
      release(allocator, session->kept[i]);
    for (int32_t i = 0; i < session->desc->input_count; ++i) {
      release(allocator, session->staging[i]);
      release(allocator, session->states[i].block);
    }
    allocator.release(allocator.context, session->tables, session->tablesBytes);
  }
  if (session->ownsArena)
    release(allocator, session->arena);
  release(allocator, session->scratch);
  session->bump.free(allocator);
  allocator.release(allocator.context, session, sizeof(firn_session));
}

firn_status firn_session_run(firn_session *session, const firn_tensor *inputs, firn_tensor *outputs) {
  if (!session)
    return FIRN_BAD_ARGUMENT;
  if (session->isRunning.exchange(1, std::memory_order_acquire))
    return FIRN_BUSY; // without a message: the other call may be writing one
  succeed(&session->error);
  session->inputs = inputs;
  session->outputs = outputs;
  firn_status status;
  if ((!inputs && session->desc->input_count) || (!outputs && session->desc->output_count))
    status = fail(&session->error, FIRN_BAD_ARGUMENT, "firn_session_run got NULL");
  else
    status = runFitting(*session);
  session->isRunning.store(0, std::memory_order_release);
  return status;
}

const char *firn_session_message(const firn_session *session) { return session ? session->error.message : ""; }

int32_t firn_session_threads(const firn_session *session) {
  return session && session->pool ? session->pool->threads : session ? 1 : 0;
}

int64_t firn_session_memory(const firn_session *session) {
  if (!session)
    return 0;
  int64_t sum = listBytes(*session) + int64_t(session->tablesBytes) + session->scratch.capacity +
                session->bump.bytes() + (session->ownsArena ? session->arena.capacity : 0);
  for (int32_t i = 0; i < session->desc->buffer_count; ++i)
    sum += session->kept[i].capacity;
  for (int32_t i = 0; i < session->desc->input_count; ++i)
    sum += session->staging[i].capacity + session->states[i].block.capacity;
  for (int32_t i = 0; session->variants && i < session->model->variantCount; ++i)
    sum += firn_session_memory(session->variants[i]);
  return sum;
}

int32_t firn_session_variant(const firn_session *session) { return session ? session->lastVariant : -1; }

firn_status firn_session_profile(firn_session *session, firn_step_time *times, int64_t capacity) {
  if (!session || capacity < 0)
    return FIRN_BAD_ARGUMENT;
  session->times = times;
  session->timesCapacity = times ? capacity : 0;
  session->timesCount = 0;
  return FIRN_OK;
}

int64_t firn_session_profile_count(const firn_session *session) { return session ? session->timesCount : 0; }

} // extern "C"
