// The executor's program: steps, one after another.
#include <string.h>

#include "runtime/src/Steps.h"
#include "runtime/src/Values.h"

namespace firn::runtime {

namespace {

// Where a step's buffers begin that it writes.
int32_t firstWritten(const firn_step &step) {
  switch (step.kind) {
  case FIRN_STEP_KERNEL:
  case FIRN_STEP_REFERENCE:
    return step.input_count;
  case FIRN_STEP_COPY:
    return 1;
  case FIRN_STEP_VALUES:
    return 0;
  case FIRN_STEP_LOOP:
    return 2; // the iteration number
  }
  return step.buffer_count;
}

int64_t bufferBytes(const firn_session &session, int32_t buffer) {
  const firn_buffer &table = session.desc->buffers[buffer];
  return countBytes(table.dtype, countElements(session.plan.values, table.dims, table.rank));
}

firn_status impossibleSize(firn_session &session, const firn_step &step, int32_t buffer) {
  const firn_buffer &table = session.desc->buffers[buffer];
  firn_tensor tensor{};
  tensor.dtype = table.dtype;
  tensor.rank = table.rank;
  for (int32_t d = 0; d < table.rank; ++d)
    tensor.dims[d] = session.plan.values[table.dims[d]];
  char text[256];
  return fail(&session.error, FIRN_FAILED, "node '%s' would make %s, which cannot be", step.name,
              tensorText(tensor, text, sizeof text));
}

} // namespace

int64_t heldBytes(const firn_session &session, int32_t root) {
  return session.isLateRoot(root) ? session.held[root] : session.plan.bytes[root];
}

firn_status prepareWrite(firn_session &session, const firn_step &step, int32_t position) {
  int32_t buffer = step.buffers[position];
  if (buffer < 0 || !session.isLateRoot(session.model->root[buffer]))
    return FIRN_OK;
  int64_t bytes = bufferBytes(session, buffer);
  if (bytes < 0)
    return impossibleSize(session, step, buffer);
  // In place: the step reads the same bytes.
  int32_t root = session.model->root[buffer];
  int64_t kept = 0;
  for (int32_t i = 0; i < position; ++i)
    if (step.buffers[i] >= 0 && session.model->root[step.buffers[i]] == root && session.held[root] > 0)
      kept = session.held[root];
  return holdLate(session, root, bytes, kept, step.name);
}

firn_status gatherBuffer(firn_session &session, const firn_step &step, int32_t position, void *&argument) {
  int32_t buffer = step.buffers[position];
  argument = nullptr;
  if (buffer < 0)
    return FIRN_OK;
  int32_t root = session.model->root[buffer];
  if (session.model->isBufferLate[buffer]) {
    int64_t bytes = bufferBytes(session, buffer);
    if (bytes < 0)
      return impossibleSize(session, step, buffer);
    if (bytes > heldBytes(session, root))
      return fail(&session.error, FIRN_FAILED, "node '%s' reads %lld bytes where there are %lld", step.name,
                  static_cast<long long>(bytes), static_cast<long long>(heldBytes(session, root)));
  }
  argument = session.addresses[root];
  return FIRN_OK;
}

namespace {

// Brings the arguments of a late step up to date; those of others were prepared before the run.
firn_status gather(firn_session &session, int32_t index, bool withWrites = true) {
  if (!session.model->isStepLate[index])
    return FIRN_OK;
  const firn_step &step = session.desc->steps[index];
  refreshValues(session);
  int64_t *dims = session.dims + session.model->dimStart[index];
  for (int32_t d = 0; d < step.dim_count; ++d)
    dims[d] = session.plan.values[step.dims[d]];
  if (withWrites)
    for (int32_t i = firstWritten(step); i < step.buffer_count; ++i)
      FIRN_CHECK_STATUS(prepareWrite(session, step, i));
  void **arguments = session.arguments + session.model->argumentStart[index];
  int32_t count = withWrites ? step.buffer_count : firstWritten(step);
  for (int32_t i = 0; i < count; ++i)
    FIRN_CHECK_STATUS(gatherBuffer(session, step, i, arguments[i]));
  return FIRN_OK;
}

firn_status runKernel(firn_session &session, int32_t index, const firn_step &step) {
  FIRN_CHECK_STATUS(gather(session, index));
  bool isParallel = step.parallel && session.hasWorkers;
  firn_kernel_args args = {session.arguments + session.model->argumentStart[index],
                           session.dims + session.model->dimStart[index],
                           session.scratch.data,
                           session.model->scratchStride,
                           &session.fault,
                           isParallel ? poolBarrier : noBarrier,
                           session.pool};
  if (isParallel)
    session.pool->run(step.kernel, &args);
  else
    step.kernel(&args, 0, 1);
  if (session.fault == FIRN_FAULT_NONE)
    return FIRN_OK;
  return fail(&session.error, FIRN_FAILED, "node '%s': %s", step.name,
              session.fault == FIRN_FAULT_INDEX ? "an index is out of range" : "its data is not what it can work on");
}

// --- reference kernels ---

void *takeScratch(firn_call *call, int64_t bytes) {
  auto *session = static_cast<firn_session *>(call->context);
  return session->bump.take(session->allocator, bytes);
}

} // namespace

firn_status makeView(firn_session &session, const firn_step &step, int32_t buffer, void *data, firn_view &view) {
  if (buffer < 0) {
    view.data = nullptr;
    view.dtype = FIRN_DTYPE_NONE;
    view.rank = -1;
    return FIRN_OK;
  }
  const firn_buffer &table = session.desc->buffers[buffer];
  if (isList(table)) {
    List &list = session.lists[session.model->root[buffer]];
    if (table.form != FIRN_FORM_UNRANKED) {
      view.data = &list;
      view.dtype = FIRN_LIST;
      view.rank = 1;
      view.dims[0] = list.count;
      view.dims[FIRN_LIST_FORM] = table.form;
      view.dims[FIRN_LIST_DTYPE] = table.dtype;
      view.dims[FIRN_LIST_KEY] = FIRN_DTYPE_NONE;
      view.dims[FIRN_LIST_RANK] = -1;
      return FIRN_OK;
    }
    if (list.count != 1)
      return fail(&session.error, FIRN_FAILED, "node '%s' reads a tensor that has no value", step.name);
    view = list.items()[0]->view;
    return FIRN_OK;
  }
  view.data = data;
  view.dtype = table.dtype;
  view.rank = table.rank;
  for (int32_t d = 0; d < table.rank; ++d)
    view.dims[d] = session.plan.values[table.dims[d]];
  return FIRN_OK;
}

namespace {

firn_status callFailed(firn_session &session, const firn_step &step, int32_t status, const char *message) {
  if (status == FIRN_CALL_NO_MEMORY)
    return fail(&session.error, FIRN_NO_MEMORY, "node '%s' (%s): no memory to work in", step.name, step.op->name);
  return fail(&session.error, FIRN_FAILED, "node '%s' (%s): %s", step.name, step.op->name,
              message[0] ? message : "failed without a reason");
}

} // namespace

firn_status takeInferredDims(firn_session &session, const firn_step &step, const firn_view *outputs) {
  const int32_t *buffers = step.buffers + step.input_count;
  int32_t count = step.buffer_count - step.input_count;
  const char *what = step.op ? step.op->name : step.kind_name;
  auto isTensor = [&](int32_t o) { return buffers[o] >= 0 && !isList(session.desc->buffers[buffers[o]]); };
  for (int32_t o = 0; o < count; ++o) {
    if (!isTensor(o))
      continue;
    const firn_buffer &table = session.desc->buffers[buffers[o]];
    if (outputs[o].dtype != table.dtype || outputs[o].rank != table.rank)
      return fail(&session.error, FIRN_FAILED, "node '%s' (%s): output %d is %s of rank %d, expected %s of rank %d",
                  step.name, what, o, firn_dtype_name(outputs[o].dtype), outputs[o].rank, firn_dtype_name(table.dtype),
                  table.rank);
  }
  bool hasFound = false;
  // Backwards, so that the first of several places of a symbol decides, and the others are compared with it.
  for (int32_t o = count - 1; o >= 0; --o) {
    if (!isTensor(o))
      continue;
    const firn_buffer &table = session.desc->buffers[buffers[o]];
    for (int32_t d = table.rank - 1; d >= 0; --d)
      if (session.desc->values[table.dims[d]].op == FIRN_VALUE_SYMBOL) {
        session.plan.values[table.dims[d]] = outputs[o].dims[d];
        hasFound = true;
      }
  }
  session.hasStaleValues |= hasFound;
  refreshValues(session);
  for (int32_t o = 0; o < count; ++o) {
    if (!isTensor(o))
      continue;
    const firn_buffer &table = session.desc->buffers[buffers[o]];
    for (int32_t d = 0; d < table.rank; ++d)
      if (session.plan.values[table.dims[d]] != outputs[o].dims[d])
        return fail(&session.error, FIRN_FAILED, "node '%s' (%s): dimension %d of output %d is %lld, expected %lld",
                    step.name, what, d, o, static_cast<long long>(outputs[o].dims[d]),
                    static_cast<long long>(session.plan.values[table.dims[d]]));
  }
  return FIRN_OK;
}

namespace {

// --- lists of reference kernels ---

const firn_view *itemOfList(firn_call *, const firn_view *list, int64_t i) {
  const auto *items = static_cast<const List *>(list->data);
  return i >= 0 && i < items->count ? &items->items()[i]->view : nullptr;
}

const firn_view *appendToList(firn_call *call, const firn_view *list, int32_t dtype, const int64_t *dims,
                              int32_t rank) {
  auto *session = static_cast<firn_session *>(call->context);
  auto *to = static_cast<List *>(list->data);
  Item *item;
  if (makeItem(*session, dtype, dims, rank, "", item) != FIRN_OK ||
      insertItem(*session, *to, to->count, item, "") != FIRN_OK)
    return nullptr;
  return &item->view;
}

// Empties the lists that a reference step writes; an unranked output gets an item of the type that `infer` found.
firn_status prepareLists(firn_session &session, const firn_step &step, const firn_view *outputs) {
  for (int32_t i = step.input_count; i < step.buffer_count; ++i) {
    if (step.buffers[i] < 0 || !isList(session.desc->buffers[step.buffers[i]]))
      continue;
    const firn_buffer &table = session.desc->buffers[step.buffers[i]];
    List &list = session.lists[session.model->root[step.buffers[i]]];
    clearList(session, list);
    if (table.form != FIRN_FORM_UNRANKED)
      continue;
    const firn_view &found = outputs[i - step.input_count];
    if (table.dtype != FIRN_DTYPE_NONE && found.dtype != table.dtype)
      return fail(&session.error, FIRN_FAILED, "node '%s' (%s): output %d has another element type than %s", step.name,
                  step.op->name, i - step.input_count, firn_dtype_name(table.dtype));
    Item *item;
    FIRN_CHECK_STATUS(makeItem(session, found.dtype, found.dims, found.rank, step.name, item));
    FIRN_CHECK_STATUS(insertItem(session, list, 0, item, step.name));
  }
  return FIRN_OK;
}

firn_status runReference(firn_session &session, int32_t index, const firn_step &step) {
  bool infers = session.model->doesStepInfer[index] != 0;
  FIRN_CHECK_STATUS(gather(session, index, !infers));
  void **arguments = session.arguments + session.model->argumentStart[index];
  firn_view *inputs = session.views, *outputs = session.views + step.input_count;
  for (int32_t i = 0; i < step.input_count; ++i)
    FIRN_CHECK_STATUS(makeView(session, step, step.buffers[i], arguments[i], inputs[i]));
  for (int32_t i = step.input_count; i < step.buffer_count; ++i) {
    if (step.buffers[i] >= 0 && isList(session.desc->buffers[step.buffers[i]]))
      session.views[i] = firn_view{}; // wanted, and its type is for `infer` to say
    else
      FIRN_CHECK_STATUS(makeView(session, step, step.buffers[i], nullptr, session.views[i]));
  }
  char message[512] = "";
  int64_t position = session.bump.position();
  firn_call call{};
  call.inputs = inputs;
  call.outputs = outputs;
  call.attributes = step.attributes;
  call.input_count = step.input_count;
  call.output_count = step.buffer_count - step.input_count;
  call.attribute_count = step.attribute_count;
  call.message = message;
  call.message_capacity = sizeof message;
  call.scratch = takeScratch;
  call.context = &session;
  call.random = &session.random;
  call.item = itemOfList;
  call.append = appendToList;
  if (infers) {
    if (int32_t status = step.op->infer(&call))
      return callFailed(session, step, status, message);
    FIRN_CHECK_STATUS(takeInferredDims(session, step, outputs));
    FIRN_CHECK_STATUS(prepareLists(session, step, outputs));
    FIRN_CHECK_STATUS(gather(session, index));
  }
  bool makesStrings = false;
  for (int32_t i = step.input_count; i < step.buffer_count; ++i) {
    FIRN_CHECK_STATUS(makeView(session, step, step.buffers[i], arguments[i], session.views[i]));
    makesStrings |= session.views[i].dtype == FIRN_STRING || session.views[i].dtype == FIRN_LIST;
  }
  int32_t status = step.op->run(&call);
  // The bytes of strings that a step made lie in its scratch: they stay until the next run begins.
  if (!makesStrings)
    session.bump.rewind(session.allocator, position);
  return status ? callFailed(session, step, status, message) : FIRN_OK;
}

// --- movement and shapes ---

firn_status runCopy(firn_session &session, int32_t index, const firn_step &step) {
  FIRN_CHECK_STATUS(gather(session, index));
  void **arguments = session.arguments + session.model->argumentStart[index];
  int64_t from = bufferBytes(session, step.buffers[0]), to = bufferBytes(session, step.buffers[1]);
  if (from != to)
    return fail(&session.error, FIRN_FAILED, "node '%s' gives %lld bytes where %lld are expected", step.name,
                static_cast<long long>(from), static_cast<long long>(to));
  memmove(arguments[1], arguments[0], size_t(from));
  return FIRN_OK;
}

firn_status runValues(firn_session &session, int32_t index, const firn_step &step) {
  FIRN_CHECK_STATUS(gather(session, index));
  int32_t buffer = step.buffers[0];
  int32_t dtype = session.desc->buffers[buffer].dtype;
  if (bufferBytes(session, buffer) < firn_dtype_bytes(dtype, step.dim_count))
    return fail(&session.error, FIRN_FAILED, "node '%s' gives %d values where fewer are expected", step.name,
                step.dim_count);
  const int64_t *dims = session.dims + session.model->dimStart[index];
  void *to = session.arguments[session.model->argumentStart[index]];
  for (int32_t i = 0; i < step.dim_count; ++i)
    if (dtype == FIRN_I64)
      static_cast<int64_t *>(to)[i] = dims[i];
    else
      static_cast<int32_t *>(to)[i] = int32_t(dims[i]);
  return FIRN_OK;
}

firn_status runBind(firn_session &session, int32_t index, const firn_step &step) {
  FIRN_CHECK_STATUS(gather(session, index));
  const int64_t *present = session.dims + session.model->dimStart[index];
  for (int32_t i = 0; i < step.dim_count; i += 2)
    session.plan.values[step.dims[i]] = present[i + 1];
  session.hasStaleValues = true;
  return FIRN_OK;
}

firn_status runAppend(firn_session &session, const firn_step &step) {
  refreshValues(session);
  int32_t item = step.buffers[0], target = session.model->root[step.buffers[1]];
  int64_t bytes = bufferBytes(session, item);
  int64_t count = session.plan.values[step.dims[0]], present, grown;
  if (bytes < 0 || __builtin_mul_overflow(bytes, count, &present) || __builtin_add_overflow(present, bytes, &grown))
    return impossibleSize(session, step, step.buffers[1]);
  if (session.held[target] > 0 && session.held[target] != present)
    return fail(&session.error, FIRN_FAILED,
                "node '%s': iteration %lld gives %lld bytes, earlier ones gave another size", step.name,
                static_cast<long long>(count), static_cast<long long>(bytes));
  FIRN_CHECK_STATUS(holdLate(session, target, grown, present, step.name));
  void *from;
  FIRN_CHECK_STATUS(gatherBuffer(session, step, 0, from));
  if (bytes)
    memcpy(session.addresses[target] + present, from, size_t(bytes));
  session.plan.values[step.dims[0]] = count + 1;
  session.hasStaleValues = true;
  return FIRN_OK;
}

// --- control flow ---

firn_status readScalar(firn_session &session, const firn_step &step, int32_t position, void *to, int64_t bytes) {
  void *from;
  FIRN_CHECK_STATUS(gatherBuffer(session, step, position, from));
  if (heldBytes(session, session.model->root[step.buffers[position]]) < bytes)
    return fail(&session.error, FIRN_FAILED, "node '%s' has a condition or trip count without a value", step.name);
  memcpy(to, from, size_t(bytes));
  return FIRN_OK;
}

// Empties what the loop's own steps append to.
void resetAppends(firn_session &session, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; ++i) {
    const firn_step &step = session.desc->steps[i];
    if (step.kind == FIRN_STEP_LOOP)
      i = step.end - 1;
    if (step.kind != FIRN_STEP_APPEND)
      continue;
    session.plan.values[step.dims[0]] = 0;
    session.held[session.model->root[step.buffers[1]]] = 0;
    session.hasStaleValues = true;
  }
}

firn_status runLoop(firn_session &session, const firn_step &step) {
  auto has = [&](int32_t position) { return position < step.buffer_count && step.buffers[position] >= 0; };
  refreshValues(session);
  int64_t trips = INT64_MAX, done = 0;
  uint8_t condition = 1;
  if (has(0))
    FIRN_CHECK_STATUS(readScalar(session, step, 0, &trips, sizeof trips));
  if (has(1))
    FIRN_CHECK_STATUS(readScalar(session, step, 1, &condition, 1));
  resetAppends(session, step.begin, step.end);
  for (; done < trips && condition; ++done) {
    if (has(2)) {
      FIRN_CHECK_STATUS(prepareWrite(session, step, 2));
      int32_t root = session.model->root[step.buffers[2]];
      if (heldBytes(session, root) < int64_t(sizeof done))
        return impossibleSize(session, step, step.buffers[2]);
      memcpy(session.addresses[root], &done, sizeof done);
    }
    FIRN_CHECK_STATUS(runSteps(session, step.begin, step.end));
    if (has(1))
      FIRN_CHECK_STATUS(readScalar(session, step, 1, &condition, 1));
  }
  if (step.dim_count) {
    session.plan.values[step.dims[0]] = done;
    session.hasStaleValues = true;
  }
  return FIRN_OK;
}

firn_status runIf(firn_session &session, const firn_step &step) {
  refreshValues(session);
  uint8_t condition;
  FIRN_CHECK_STATUS(readScalar(session, step, 0, &condition, 1));
  return condition ? runSteps(session, step.begin, step.middle) : runSteps(session, step.middle, step.end);
}

firn_status runPlainStep(firn_session &session, int32_t index, const firn_step &step) {
  switch (step.kind) {
  case FIRN_STEP_KERNEL:
    return runKernel(session, index, step);
  case FIRN_STEP_REFERENCE:
    return runReference(session, index, step);
  case FIRN_STEP_COPY:
    return runCopy(session, index, step);
  case FIRN_STEP_VALUES:
    return runValues(session, index, step);
  case FIRN_STEP_BIND:
    return runBind(session, index, step);
  case FIRN_STEP_APPEND:
    return runAppend(session, step);
  case FIRN_STEP_LIST:
    return runList(session, step);
  }
  return fail(&session.error, FIRN_FAILED, "%s", step.name); // FIRN_STEP_FAIL
}

firn_status runTimedStep(firn_session &session, int32_t index, const firn_step &step) {
  int64_t start = nowNanos();
  firn_status status = runPlainStep(session, index, step);
  int64_t end = nowNanos();
  if (session.timesCount < session.timesCapacity) {
    refreshValues(session);
    const int64_t *values = session.plan.values;
    session.times[session.timesCount] = {index,
                                         0,
                                         start - session.runStart,
                                         end - start,
                                         step.flops >= 0 ? values[step.flops] : -1,
                                         step.bytes >= 0 ? values[step.bytes] : -1};
  }
  ++session.timesCount;
  return status;
}

} // namespace

void refreshValues(firn_session &session) {
  if (!session.hasStaleValues)
    return;
  session.hasStaleValues = false;
  for (int32_t i = 0; i < session.model->lateValueCount; ++i)
    evaluateValue(session.desc->values, session.plan.values, session.model->lateValues[i]);
}

firn_status runSteps(firn_session &session, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end;) {
    const firn_step &step = session.desc->steps[i];
    int32_t next = i + 1;
    if (step.kind == FIRN_STEP_IF || step.kind == FIRN_STEP_LOOP) {
      next = step.end;
      FIRN_CHECK_STATUS(step.kind == FIRN_STEP_IF ? runIf(session, step) : runLoop(session, step));
    } else if (session.times) {
      FIRN_CHECK_STATUS(runTimedStep(session, i, step));
    } else {
      FIRN_CHECK_STATUS(runPlainStep(session, i, step));
    }
    i = next;
  }
  return FIRN_OK;
}

} // namespace firn::runtime
