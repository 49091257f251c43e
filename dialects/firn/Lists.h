// Types of values that are no tensors: sequences, optionals, maps.
#ifndef FIRN_DIALECTS_FIRN_LISTS_H
#define FIRN_DIALECTS_FIRN_LISTS_H

#include "dialects/firn/Firn.h"

namespace firn {

bool isListType(mlir::Type type);
inline SequenceType sequenceOf(mlir::Type element) { return SequenceType::get(element.getContext(), element); }
inline OptionalType optionalOf(mlir::Type element) { return OptionalType::get(element.getContext(), element); }

/// The type of a tensor as a list keeps it: without dimensions that only this place of the program means.
mlir::Type storedType(mlir::Type type);

/// The least type that is right for values of both; null where there is none (element types differ). One of them is no
/// tensor, or not known yet.
mlir::Type joinTypes(mlir::Type a, mlir::Type b);

/// What the executor keeps for a value of this type: FIRN_FORM_ of runtime/abi/reference.h and the dtype of the tensors
/// in it; nothing for types that it cannot keep (a sequence of sequences).
struct ListForm {
  int32_t form, dtype;
};
std::optional<ListForm> listFormOf(mlir::Type type);

/// "sequence of float32[2, ?]", for messages.
std::string typeText(mlir::Type type);

} // namespace firn
#endif
