// Steps on lists. They move and share items; only a tensor that enters or leaves a list is copied.
#include <string.h>

#include "runtime/src/Steps.h"
#include "runtime/src/Values.h"

namespace firn::runtime {

namespace {

List &listAt(firn_session &session, const firn_step &step, int32_t position) {
  return session.lists[session.model->root[step.buffers[position]]];
}

bool isListBuffer(const firn_session &session, const firn_step &step, int32_t position) {
  return isList(session.desc->buffers[step.buffers[position]]);
}

firn_status lacksValue(firn_session &session, const firn_step &step) {
  return fail(&session.error, FIRN_FAILED, "node '%s' (%s): the optional has no value", step.name, step.kind_name);
}

// An item with what buffer `position` of the step holds: a tensor's copy, or the item itself of a list of one.
firn_status itemOf(firn_session &session, const firn_step &step, int32_t position, Item *&item) {
  if (isListBuffer(session, step, position)) {
    const List &list = listAt(session, step, position);
    if (!list.hasValue || list.count != 1)
      return lacksValue(session, step);
    item = list.items()[0];
    return FIRN_OK;
  }
  void *data;
  FIRN_CHECK_STATUS(gatherBuffer(session, step, position, data));
  firn_view view;
  FIRN_CHECK_STATUS(makeView(session, step, step.buffers[position], data, view));
  FIRN_CHECK_STATUS(makeItem(session, view.dtype, view.dims, view.rank, step.name, item));
  int64_t bytes = countBytes(view.dtype, countElements(view.dims, view.rank));
  if (bytes > 0)
    memcpy(item->view.data, data, size_t(bytes));
  return FIRN_OK;
}

firn_status add(firn_session &session, const firn_step &step, List &list, int64_t position, int32_t from) {
  Item *item;
  FIRN_CHECK_STATUS(itemOf(session, step, from, item));
  int32_t wanted = session.desc->buffers[step.buffers[step.buffer_count - 1]].dtype;
  if (wanted != FIRN_DTYPE_NONE && item->view.dtype != wanted) {
    const char *found = firn_dtype_name(item->view.dtype);
    return fail(&session.error, FIRN_FAILED, "node '%s' (%s): a tensor of %s in a list of %s", step.name,
                step.kind_name, found, firn_dtype_name(wanted));
  }
  return insertItem(session, list, position, item, step.name);
}

// The position that the step's buffer `from` says, counted from the front; `fallback` where it is absent.
firn_status readPosition(firn_session &session, const firn_step &step, int32_t from, int64_t count, int64_t last,
                         int64_t fallback, int64_t &position) {
  position = fallback;
  if (step.buffers[from] >= 0) {
    void *data;
    FIRN_CHECK_STATUS(gatherBuffer(session, step, from, data));
    bool isWide = session.desc->buffers[step.buffers[from]].dtype == FIRN_I64;
    if (heldBytes(session, session.model->root[step.buffers[from]]) < (isWide ? 8 : 4))
      return fail(&session.error, FIRN_FAILED, "node '%s' (%s): the position has no value", step.name, step.kind_name);
    int32_t narrow;
    if (isWide) {
      memcpy(&position, data, sizeof position);
    } else {
      memcpy(&narrow, data, sizeof narrow);
      position = narrow;
    }
  }
  int64_t given = position;
  position += position < 0 ? count : 0;
  if (position >= 0 && position <= last)
    return FIRN_OK;
  return fail(&session.error, FIRN_FAILED,
              "node '%s' (%s): position %lld is outside of the sequence, which has %lld tensors", step.name,
              step.kind_name, static_cast<long long>(given), static_cast<long long>(count));
}

firn_status copyOrMove(firn_session &session, const firn_step &step) {
  List &from = listAt(session, step, 0), &to = listAt(session, step, 1);
  int32_t form = session.desc->buffers[step.buffers[1]].form;
  if (!from.hasValue && form != FIRN_FORM_OPTIONAL && form != FIRN_FORM_OPTIONAL_SEQUENCE)
    return lacksValue(session, step);
  if (&from == &to)
    return FIRN_OK;
  if (step.operation == FIRN_LIST_COPY)
    return copyList(session, to, from, step.name);
  moveList(session, to, from);
  return FIRN_OK;
}

// The list that INSERT and ERASE change: the result, which is their operand's list or becomes a copy of it.
firn_status changedList(firn_session &session, const firn_step &step, List *&list) {
  List &from = listAt(session, step, 0);
  list = &listAt(session, step, step.buffer_count - 1);
  return list == &from ? FIRN_OK : copyList(session, *list, from, step.name);
}

firn_status insert(firn_session &session, const firn_step &step) {
  int64_t count = listAt(session, step, 0).count, position;
  FIRN_CHECK_STATUS(readPosition(session, step, 2, count, count, count, position));
  List *list;
  FIRN_CHECK_STATUS(changedList(session, step, list));
  return add(session, step, *list, position, 1);
}

firn_status erase(firn_session &session, const firn_step &step) {
  int64_t count = listAt(session, step, 0).count, position;
  FIRN_CHECK_STATUS(readPosition(session, step, 1, count, count - 1, -1, position));
  List *list;
  FIRN_CHECK_STATUS(changedList(session, step, list));
  eraseItem(session, *list, position);
  return FIRN_OK;
}

firn_status at(firn_session &session, const firn_step &step) {
  const List &list = listAt(session, step, 0);
  if (!list.hasValue)
    return lacksValue(session, step);
  int64_t position;
  FIRN_CHECK_STATUS(readPosition(session, step, 1, list.count, list.count - 1, 0, position));
  Item *item = list.items()[position];
  if (isListBuffer(session, step, 2)) {
    ++item->references; // the result may be the list that holds it
    List &result = listAt(session, step, 2);
    clearList(session, result);
    --item->references;
    return insertItem(session, result, 0, item, step.name);
  }
  FIRN_CHECK_STATUS(takeInferredDims(session, step, &item->view));
  FIRN_CHECK_STATUS(prepareWrite(session, step, 2));
  void *to;
  FIRN_CHECK_STATUS(gatherBuffer(session, step, 2, to));
  int64_t bytes = countBytes(item->view.dtype, countElements(item->view.dims, item->view.rank));
  if (bytes > 0)
    memcpy(to, item->view.data, size_t(bytes));
  return FIRN_OK;
}

template <typename T> firn_status store(firn_session &session, const firn_step &step, T value) {
  FIRN_CHECK_STATUS(prepareWrite(session, step, 1));
  void *to;
  FIRN_CHECK_STATUS(gatherBuffer(session, step, 1, to));
  if (heldBytes(session, session.model->root[step.buffers[1]]) < int64_t(sizeof value))
    return fail(&session.error, FIRN_FAILED, "node '%s' (%s): its result has no room", step.name, step.kind_name);
  memcpy(to, &value, sizeof value);
  return FIRN_OK;
}

firn_status make(firn_session &session, const firn_step &step) {
  List &list = listAt(session, step, step.buffer_count - 1);
  clearList(session, list);
  for (int32_t i = 0; i < step.input_count; ++i)
    FIRN_CHECK_STATUS(add(session, step, list, i, i));
  return FIRN_OK;
}

} // namespace

firn_status runList(firn_session &session, const firn_step &step) {
  refreshValues(session);
  switch (step.operation) {
  case FIRN_LIST_MAKE:
    return make(session, step);
  case FIRN_LIST_NONE: {
    List &list = listAt(session, step, 0);
    clearList(session, list);
    list.hasValue = false;
    return FIRN_OK;
  }
  case FIRN_LIST_COPY:
  case FIRN_LIST_MOVE:
    return copyOrMove(session, step);
  case FIRN_LIST_INSERT:
    return insert(session, step);
  case FIRN_LIST_ERASE:
    return erase(session, step);
  case FIRN_LIST_AT:
    return at(session, step);
  case FIRN_LIST_LENGTH:
    return store(session, step, listAt(session, step, 0).count);
  }
  return store(session, step, uint8_t(listAt(session, step, 0).hasValue)); // FIRN_LIST_HAS
}

} // namespace firn::runtime
