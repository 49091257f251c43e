// Outputs that are the next run's inputs. A bound output has two blocks of memory: one that the last run wrote and this
// one reads, one that this one writes. They change places when a run has succeeded; nothing is copied.
#include <utility>

#include "runtime/src/Error.h"
#include "runtime/src/Session.h"

namespace firn::runtime {

namespace {

// Whether the output has memory of its own in the model and in each variant.
bool hasOwnMemory(const firn_model &model, int32_t output) {
  const firn_buffer &buffer = model.desc->buffers[model.root[model.desc->outputs[output].buffer]];
  bool has = buffer.kind == FIRN_BUFFER_OUTPUT && buffer.offset == output;
  for (int32_t i = 0; i < model.variantCount; ++i)
    has &= hasOwnMemory(model.variants[i], output);
  return has;
}

firn_status checkBinding(firn_session &session, int32_t output, int32_t input) {
  const firn_model &model = *session.model;
  const firn_port &from = session.desc->outputs[output], &to = session.desc->inputs[input];
  char made[256], taken[256];
  bool fits = from.dtype == to.dtype && from.rank == to.rank &&
              (to.buffer < 0 || session.desc->buffers[from.buffer].form == session.desc->buffers[to.buffer].form);
  for (int32_t d = 0; fits && d < to.rank; ++d)
    fits = !model.isConstant[from.dims[d]] || !model.isConstant[to.dims[d]] ||
           model.constants[from.dims[d]] == model.constants[to.dims[d]];
  if (!fits)
    return fail(&session.error, FIRN_BAD_SHAPE, "output '%s' is %s, input '%s' is %s: one cannot become the other",
                from.name, portText(model, from, made, sizeof made), to.name, portText(model, to, taken, sizeof taken));
  if (isList(session.desc->buffers[from.buffer]))
    return fail(&session.error, FIRN_BAD_ARGUMENT, "output '%s' is %s, which no state keeps", from.name,
                portText(model, from, made, sizeof made));
  if (from.dtype == FIRN_STRING)
    return fail(&session.error, FIRN_BAD_ARGUMENT, "output '%s' has texts, which no state keeps", from.name);
  if (!hasOwnMemory(model, output))
    return fail(&session.error, FIRN_BAD_ARGUMENT, "output '%s' has no memory of its own", from.name);
  for (int32_t i = 0; i < session.desc->input_count; ++i)
    if (i != input && session.states[i].isBound && session.states[i].output == output)
      return fail(&session.error, FIRN_BAD_ARGUMENT, "output '%s' is bound to input '%s' already", from.name,
                  session.desc->inputs[i].name);
  return FIRN_OK;
}

firn_status bindState(firn_session &session, int32_t output, int32_t input) {
  if (input < 0 || input >= session.desc->input_count || output < -1 || output >= session.desc->output_count)
    return fail(&session.error, FIRN_BAD_ARGUMENT, "there is no input %d or no output %d", input, output);
  if (output >= 0)
    FIRN_CHECK_STATUS(checkBinding(session, output, input));
  State &state = session.states[input];
  session.stateCount += (output >= 0) - state.isBound;
  release(session.allocator, state.block);
  state = {};
  state.isBound = output >= 0;
  state.output = output;
  return FIRN_OK;
}

} // namespace

firn_status takeStates(firn_session &session) {
  for (int32_t i = 0; i < session.desc->input_count; ++i) {
    session.withStates[i] = session.inputs[i];
    const State &state = session.states[i];
    if (!state.isBound)
      continue;
    const firn_port &port = session.desc->inputs[i];
    const char *source = session.desc->outputs[state.output].name;
    void *callers = session.outputs[state.output].data;
    if (callers && callers != session.handedOut[state.output])
      return fail(&session.error, FIRN_BAD_ARGUMENT,
                  "output '%s' is bound to input '%s': its memory is the session's, data must be NULL", source,
                  port.name);
    if (!isAbsent(session.inputs[i]))
      continue;
    if (!isAbsent(state.value))
      session.withStates[i] = state.value;
    else if (!port.optional)
      return fail(&session.error, FIRN_BAD_INPUT,
                  "input '%s' is bound to output '%s', which no run has made yet: give its first value", port.name,
                  source);
  }
  session.inputs = session.withStates;
  return FIRN_OK;
}

void keepStates(firn_session &session, firn_session &ran) {
  for (int32_t i = 0; i < session.desc->input_count; ++i) {
    State &state = session.states[i];
    if (!state.isBound)
      continue;
    std::swap(ran.kept[ran.model->root[ran.desc->outputs[state.output].buffer]], state.block);
    state.value = session.outputs[state.output];
  }
}

} // namespace firn::runtime

using namespace firn::runtime;

extern "C" {

firn_status firn_session_bind_state(firn_session *session, int32_t output, int32_t input) {
  if (!session)
    return FIRN_BAD_ARGUMENT;
  if (session->isRunning.exchange(1, std::memory_order_acquire))
    return FIRN_BUSY;
  succeed(&session->error);
  firn_status status = bindState(*session, output, input);
  session->isRunning.store(0, std::memory_order_release);
  return status;
}

} // extern "C"
