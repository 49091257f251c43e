// MovedElements: contents of small tensors through operations that only move elements.
#ifndef FIRN_PASSES_FOLD_MOVEDELEMENTS_H
#define FIRN_PASSES_FOLD_MOVEDELEMENTS_H

#include "dialects/firn/Inference.h"

namespace firn {

/// Where `inference` has found the types of a Reshape, Slice, Gather, Concat, ScatterND and the like: says which
/// elements of the operands its results hold, if those and everything that decides on it are known.
void inferMovedElements(Inference &inference);

} // namespace firn
#endif
