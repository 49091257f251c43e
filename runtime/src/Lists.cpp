#include "runtime/src/Lists.h"

#include <new>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/src/Session.h"
#include "runtime/src/Values.h"

namespace firn::runtime {

namespace {

constexpr int64_t headerBytes =
    (int64_t(sizeof(Item)) + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;

// Bytes of a class: 64, 80, 96, 112, 128, 160, ..., in whole cache lines.
int64_t classBytes(int32_t sizeClass) {
  int64_t bytes = (int64_t(16) << (sizeClass / 4)) * (4 + sizeClass % 4);
  return (bytes + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
}

int32_t classFor(int64_t bytes) {
  if (bytes <= classBytes(0))
    return 0;
  int32_t octave = 63 - __builtin_clzll(uint64_t(bytes)) - 6; // 64 << octave <= bytes
  int32_t sizeClass = 4 * octave;
  while (classBytes(sizeClass) < bytes)
    ++sizeClass;
  return sizeClass;
}

firn_status noMemory(firn_session &session, const char *stepName, int64_t bytes) {
  return fail(&session.error, FIRN_NO_MEMORY, "node '%s': no memory for %lld bytes of a list", stepName,
              static_cast<long long>(bytes));
}

// An item with room for `bytes`, its view not yet written; NULL where memory is refused.
Item *takeItem(firn_session &session, int64_t bytes) {
  ItemStore &store = *session.items;
  int32_t sizeClass = classFor(bytes);
  if (sizeClass >= ItemStore::classCount)
    return nullptr;
  if (Item *item = store.waiting[sizeClass]) {
    store.waiting[sizeClass] = item->next;
    return item;
  }
  int64_t capacity = classBytes(sizeClass);
  void *memory =
      session.allocator.allocate(session.allocator.context, uint64_t(headerBytes + capacity), FIRN_BUFFER_ALIGNMENT);
  if (!memory)
    return nullptr;
  store.bytes += headerBytes + capacity;
  return new (memory) Item{nullptr, capacity, 0, sizeClass, {}};
}

void putBack(firn_session &session, Item *item) {
  item->next = session.items->waiting[item->sizeClass];
  session.items->waiting[item->sizeClass] = item;
}

void letGo(firn_session &session, Item *item) {
  if (--item->references == 0)
    putBack(session, item);
}

firn_status reserveTable(firn_session &session, List &list, int64_t count, const char *stepName) {
  int64_t bytes = count * int64_t(sizeof(Item *));
  if (count <= INT64_MAX / 16 && reserve(session.allocator, list.table, bytes, list.count * int64_t(sizeof(Item *))))
    return FIRN_OK;
  return noMemory(session, stepName, bytes);
}

} // namespace

firn_status makeItem(firn_session &session, int32_t dtype, const int64_t *dims, int32_t rank, const char *stepName,
                     Item *&item) {
  int64_t bytes = rank >= 0 && rank <= FIRN_MAX_RANK ? countBytes(dtype, countElements(dims, rank)) : -1;
  if (bytes < 0)
    return fail(&session.error, FIRN_FAILED, "node '%s' would make a tensor of a list that cannot be", stepName);
  item = takeItem(session, bytes);
  if (!item)
    return noMemory(session, stepName, bytes);
  item->view.data = reinterpret_cast<char *>(item) + headerBytes;
  item->view.dtype = dtype;
  item->view.rank = rank;
  for (int32_t d = 0; d < rank; ++d)
    item->view.dims[d] = dims[d];
  return FIRN_OK;
}

firn_status insertItem(firn_session &session, List &list, int64_t position, Item *item, const char *stepName) {
  if (firn_status status = reserveTable(session, list, list.count + 1, stepName)) {
    if (item->references == 0)
      putBack(session, item);
    return status;
  }
  Item **items = list.items();
  memmove(items + position + 1, items + position, size_t(list.count - position) * sizeof(Item *));
  items[position] = item;
  ++item->references;
  ++list.count;
  return FIRN_OK;
}

void eraseItem(firn_session &session, List &list, int64_t position) {
  Item **items = list.items();
  letGo(session, items[position]);
  --list.count;
  memmove(items + position, items + position + 1, size_t(list.count - position) * sizeof(Item *));
}

void clearList(firn_session &session, List &list) {
  for (int64_t i = 0; i < list.count; ++i)
    letGo(session, list.items()[i]);
  list.count = 0;
  list.hasValue = true;
}

firn_status copyList(firn_session &session, List &to, const List &from, const char *stepName) {
  clearList(session, to);
  FIRN_CHECK_STATUS(reserveTable(session, to, from.count, stepName));
  for (int64_t i = 0; i < from.count; ++i) {
    to.items()[i] = from.items()[i];
    ++from.items()[i]->references;
  }
  to.count = from.count;
  to.hasValue = from.hasValue;
  return FIRN_OK;
}

void moveList(firn_session &session, List &to, List &from) {
  clearList(session, to);
  List held = to;
  to = from;
  from = held;
}

// --- the caller's lists ----------------------------------------------------------------------------------------------

namespace {

// Takes one tensor of the caller's into `list`: in place where it is aligned.
firn_status takeTensor(firn_session &session, List &list, const firn_tensor &given, const char *name) {
  int64_t bytes = firn_tensor_bytes(&given);
  bool isInPlace = bytes == 0 || reinterpret_cast<uintptr_t>(given.data) % FIRN_BUFFER_ALIGNMENT == 0;
  const int64_t none = 0;
  Item *item;
  FIRN_CHECK_STATUS(isInPlace ? makeItem(session, given.dtype, &none, 1, name, item)
                              : makeItem(session, given.dtype, given.dims, given.rank, name, item));
  if (isInPlace && bytes > 0)
    item->view.data = given.data;
  else if (bytes > 0)
    memcpy(item->view.data, given.data, size_t(bytes));
  item->view.rank = given.rank;
  memcpy(item->view.dims, given.dims, sizeof item->view.dims);
  return insertItem(session, list, list.count, item, name);
}

firn_status bindListInput(firn_session &session, List &list, int32_t index) {
  const firn_tensor &given = session.inputs[index];
  const char *name = session.desc->inputs[index].name;
  if (isAbsent(given)) {
    list.hasValue = false;
    return FIRN_OK;
  }
  if (given.dtype != FIRN_LIST)
    return takeTensor(session, list, given, name);
  const auto *items = static_cast<const firn_tensor *>(given.data);
  for (int64_t i = 0; i < given.dims[0]; ++i) {
    if (items[i].dtype != FIRN_LIST) {
      FIRN_CHECK_STATUS(takeTensor(session, list, items[i], name));
      continue;
    }
    const auto *map = static_cast<const firn_tensor *>(items[i].data);
    FIRN_CHECK_STATUS(takeTensor(session, list, map[0], name));
    FIRN_CHECK_STATUS(takeTensor(session, list, map[1], name));
  }
  return FIRN_OK;
}

void describeItem(const firn_view &view, firn_tensor &tensor) {
  tensor.data = view.data;
  tensor.dtype = view.dtype;
  tensor.rank = view.rank;
  memcpy(tensor.dims, view.dims, sizeof tensor.dims);
  tensor.bytes = firn_tensor_bytes(&tensor);
}

void describeList(firn_tensor *items, int64_t count, firn_tensor &tensor) {
  tensor.data = items;
  tensor.dtype = FIRN_LIST;
  tensor.rank = 1;
  tensor.dims[0] = count;
  tensor.bytes = count * int64_t(sizeof(firn_tensor));
}

// One tensor into the caller's memory, or as it lies there.
firn_status handTensor(firn_session &session, int32_t index, const firn_view &view, void *callers) {
  firn_tensor &output = session.outputs[index];
  firn_tensor given = output;
  describeItem(view, output);
  if (!callers) {
    session.handedOut[index] = output.data;
    return FIRN_OK;
  }
  int64_t bytes = output.bytes;
  output.data = given.data;
  output.bytes = given.bytes;
  if (given.bytes < bytes)
    return fail(&session.error, FIRN_SMALL_OUTPUT, "output '%s' needs %lld bytes, the caller gave %lld",
                session.desc->outputs[index].name, static_cast<long long>(bytes), static_cast<long long>(given.bytes));
  if (bytes > 0)
    memcpy(given.data, view.data, size_t(bytes));
  return FIRN_OK;
}

} // namespace

firn_status bindLists(firn_session &session) {
  const firn_model_desc &desc = *session.desc;
  for (int32_t i = 0; i < desc.buffer_count; ++i)
    if (isList(desc.buffers[i]))
      clearList(session, session.lists[i]);
  for (int32_t i = 0; i < desc.buffer_count; ++i)
    if (isList(desc.buffers[i]) && desc.buffers[i].kind == FIRN_BUFFER_INPUT)
      FIRN_CHECK_STATUS(bindListInput(session, session.lists[i], int32_t(desc.buffers[i].offset)));
  return FIRN_OK;
}

firn_status finishListOutput(firn_session &session, int32_t index) {
  int32_t buffer = session.desc->outputs[index].buffer, root = session.model->root[buffer];
  int32_t form = session.desc->buffers[buffer].form;
  const List &list = session.lists[root];
  firn_tensor &output = session.outputs[index];
  const char *name = session.desc->outputs[index].name;
  // What the last run handed out does not count as the caller's.
  void *callers = output.data && output.data != session.handedOut[index] ? output.data : nullptr;
  if (!list.hasValue) {
    output = firn_tensor{};
    session.handedOut[index] = nullptr;
    return FIRN_OK;
  }
  if (form == FIRN_FORM_UNRANKED || form == FIRN_FORM_OPTIONAL)
    return list.count == 1 ? handTensor(session, index, list.items()[0]->view, callers)
                           : fail(&session.error, FIRN_FAILED, "output '%s' has no value", name);
  if (callers)
    return fail(&session.error, FIRN_BAD_ARGUMENT,
                "output '%s' is a list: the session gives its memory, leave data NULL", name);
  bool isSequenceOfMaps = form == FIRN_FORM_SEQUENCE_OF_MAPS;
  int64_t maps = isSequenceOfMaps ? list.count / 2 : 0;
  Block &block = session.kept[root];
  int64_t bytes = (list.count + maps) * int64_t(sizeof(firn_tensor));
  if (!reserve(session.allocator, block, bytes ? bytes : 64))
    return noMemory(session, name, bytes);
  auto *tensors = reinterpret_cast<firn_tensor *>(block.data), *parts = tensors + maps;
  if (bytes)
    memset(block.data, 0, size_t(bytes));
  for (int64_t i = 0; i < list.count; ++i)
    describeItem(list.items()[i]->view, parts[i]);
  for (int64_t i = 0; i < maps; ++i)
    describeList(parts + 2 * i, 2, tensors[i]);
  describeList(tensors, isSequenceOfMaps ? maps : list.count, output);
  session.handedOut[index] = output.data;
  return FIRN_OK;
}

void freeLists(firn_session &session) {
  if (!session.lists)
    return;
  for (int32_t i = 0; i < session.desc->buffer_count; ++i) {
    clearList(session, session.lists[i]);
    release(session.allocator, session.lists[i].table);
  }
  for (Item *&waiting : session.items->waiting)
    while (Item *item = waiting) {
      waiting = item->next;
      session.allocator.release(session.allocator.context, item, uint64_t(headerBytes + item->capacity));
    }
}

int64_t listBytes(const firn_session &session) {
  if (!session.lists)
    return 0;
  int64_t sum = session.items->bytes;
  for (int32_t i = 0; i < session.desc->buffer_count; ++i)
    sum += session.lists[i].table.capacity;
  return sum;
}

// --- checks ----------------------------------------------------------------------------------------------------------

const char *formText(int32_t form, int32_t dtype, char *text, size_t capacity) {
  static const char *const patterns[FIRN_FORM_COUNT] = {
      "%s",        "%s of any rank",        "sequence of %s", "optional %s", "optional sequence of %s",
      "map to %s", "sequence of maps to %s"};
  text[0] = 0;
  appendText(text, capacity, patterns[form], dtype == FIRN_DTYPE_NONE ? "any type" : firn_dtype_name(dtype));
  return text;
}

namespace {

struct ListCheck {
  const char *name;
  const firn_buffer &buffer;
  bool withData;
  firn_error *error;

  __attribute__((format(printf, 2, 3))) firn_status wrong(const char *format, ...) const {
    char reason[160], wanted[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return fail(error, FIRN_BAD_INPUT, "input '%s' must be %s: %s", name,
                formText(buffer.form, buffer.dtype, wanted, sizeof wanted), reason);
  }

  firn_status tensor(const firn_tensor &given, int32_t dtype, int64_t i) const {
    if (given.dtype == FIRN_LIST || (dtype != FIRN_DTYPE_NONE && given.dtype != dtype))
      return wrong("item %lld is %s", static_cast<long long>(i),
                   given.dtype == FIRN_LIST ? "a list" : firn_dtype_name(given.dtype));
    int64_t bytes = firn_tensor_bytes(&given);
    if (bytes < 0)
      return wrong("item %lld has dims or a dtype that cannot be", static_cast<long long>(i));
    if (withData && (given.bytes < bytes || (bytes > 0 && !given.data)))
      return wrong("item %lld needs %lld bytes, got %lld%s", static_cast<long long>(i), static_cast<long long>(bytes),
                   static_cast<long long>(given.bytes), given.data ? "" : " at NULL");
    return FIRN_OK;
  }
  firn_status list(const firn_tensor &given) const {
    if (given.dtype != FIRN_LIST)
      return wrong("got a tensor of %s", firn_dtype_name(given.dtype));
    int64_t bytes = firn_tensor_bytes(&given);
    if (given.rank != 1 || bytes < 0 || (withData && (given.bytes < bytes || (bytes > 0 && !given.data))))
      return wrong("a list has rank 1, and dims[0] tensors at its data");
    return FIRN_OK;
  }
  firn_status map(const firn_tensor &given) const {
    FIRN_CHECK_STATUS(list(given));
    if (!withData)
      return FIRN_OK;
    const auto *parts = static_cast<const firn_tensor *>(given.data);
    if (given.dims[0] != 2)
      return wrong("a map is a list of two tensors, its keys and its values");
    FIRN_CHECK_STATUS(tensor(parts[0], FIRN_DTYPE_NONE, 0));
    FIRN_CHECK_STATUS(tensor(parts[1], buffer.dtype, 1));
    if (parts[0].rank != 1 || parts[1].rank != 1 || parts[0].dims[0] != parts[1].dims[0])
      return wrong("keys and values are two tensors of rank 1 and one length");
    return FIRN_OK;
  }
};

} // namespace

firn_status checkListInput(const char *name, const firn_buffer &buffer, const firn_tensor &given, bool withData,
                           firn_error *error) {
  ListCheck check{name, buffer, withData, error};
  int32_t form = buffer.form;
  if (isAbsent(given))
    return form == FIRN_FORM_OPTIONAL || form == FIRN_FORM_OPTIONAL_SEQUENCE ? FIRN_OK : check.wrong("it is missing");
  if (form == FIRN_FORM_UNRANKED || form == FIRN_FORM_OPTIONAL)
    return check.tensor(given, buffer.dtype, 0);
  if (form == FIRN_FORM_MAP)
    return check.map(given);
  FIRN_CHECK_STATUS(check.list(given));
  const auto *items = static_cast<const firn_tensor *>(given.data);
  for (int64_t i = 0; withData && i < given.dims[0]; ++i)
    FIRN_CHECK_STATUS(form == FIRN_FORM_SEQUENCE_OF_MAPS ? check.map(items[i])
                                                         : check.tensor(items[i], buffer.dtype, i));
  return FIRN_OK;
}

} // namespace firn::runtime
