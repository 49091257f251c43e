// Lists of tensors: sequences, optionals, maps, and tensors whose rank only running tells.
//
// A list is a table of items; an item is one tensor in memory of the session, shared by all lists that hold it and
// never changed once it is there. So copying a list copies its table alone, and a loop that appends moves nothing.
// Items that nobody holds any more wait in the store for the next of their size: a second run allocates nothing.
#ifndef FIRN_RUNTIME_LISTS_H
#define FIRN_RUNTIME_LISTS_H

#include "runtime/abi/model.h"
#include "runtime/src/Error.h"
#include "runtime/src/Memory.h"

struct firn_session;

namespace firn::runtime {

struct Item {
  Item *next;         // of those that wait
  int64_t capacity;   // bytes for elements behind the header
  int32_t references; // lists that hold it
  int32_t sizeClass;
  firn_view view; // its data lies behind the header, or is the caller's
};

struct List {
  Block table; // of Item pointers
  int64_t count;
  bool hasValue; // an optional: false is none

  Item **items() const { return reinterpret_cast<Item **>(table.data); }
};

/// Free items by size: four classes to a power of two, so that at most a quarter of an item is slack.
struct ItemStore {
  static constexpr int32_t classCount = 200;
  Item *waiting[classCount];
  int64_t bytes; // of all items, held or waiting
};

inline bool isList(const firn_buffer &buffer) { return buffer.form != FIRN_FORM_TENSOR; }

/// A new item of this type with memory for its elements, held by nobody yet. Fails with FIRN_NO_MEMORY, or with
/// FIRN_FAILED where such a tensor cannot be.
firn_status makeItem(firn_session &session, int32_t dtype, const int64_t *dims, int32_t rank, const char *stepName,
                     Item *&item);
/// Inserts `item` at `position` (0 to count); the list holds it then. Frees an unheld item where memory is refused.
firn_status insertItem(firn_session &session, List &list, int64_t position, Item *item, const char *stepName);
void eraseItem(firn_session &session, List &list, int64_t position);
/// Lets go of all items; the list has a value.
void clearList(firn_session &session, List &list);
/// Makes `to` hold what `from` holds.
firn_status copyList(firn_session &session, List &to, const List &from, const char *stepName);
/// The same; `from` is empty afterwards.
void moveList(firn_session &session, List &to, List &from);

/// Empties every list of the session and takes the caller's tensors (already checked) into those of its inputs.
firn_status bindLists(firn_session &session);
/// Hands output `index`, a list, to the caller.
firn_status finishListOutput(firn_session &session, int32_t index);
/// Frees all memory of lists.
void freeLists(firn_session &session);
int64_t listBytes(const firn_session &session);

/// Checks the tensors of an input that is a list.
firn_status checkListInput(const char *name, const firn_buffer &buffer, const firn_tensor &given, bool withData,
                           firn_error *error);
/// What such a port is, for messages: "sequence of f32".
const char *formText(int32_t form, int32_t dtype, char *text, size_t capacity);

} // namespace firn::runtime
#endif
