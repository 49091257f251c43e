// What the kinds of steps share: where their buffers are, and memory for what they write.
#ifndef FIRN_RUNTIME_STEPS_H
#define FIRN_RUNTIME_STEPS_H

#include "runtime/src/Session.h"

namespace firn::runtime {

/// Bytes that are at the address of `root` now.
int64_t heldBytes(const firn_session &session, int32_t root);

/// Makes room for a late buffer that `step` is about to write.
firn_status prepareWrite(firn_session &session, const firn_step &step, int32_t position);

/// The address of a buffer of `step`, NULL for an absent one.
firn_status gatherBuffer(firn_session &session, const firn_step &step, int32_t position, void *&argument);

/// The tensor in a buffer: of an unranked one its item's, of another list the list as a whole.
firn_status makeView(firn_session &session, const firn_step &step, int32_t buffer, void *data, firn_view &view);

/// Sets the SYMBOL values of the outputs' dims from types found while running, and checks the other dims.
firn_status takeInferredDims(firn_session &session, const firn_step &step, const firn_view *outputs);

/// A LIST step.
firn_status runList(firn_session &session, const firn_step &step);

} // namespace firn::runtime
#endif
