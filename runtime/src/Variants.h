// Specialised variants of a model, and sessions on them.
#ifndef FIRN_RUNTIME_VARIANTS_H
#define FIRN_RUNTIME_VARIANTS_H

#include "runtime/src/Model.h"

namespace firn::runtime {

/// Opens the variants that the model's file has, if any: each is a model that shares code and weights.
firn_status openVariants(firn_model &model, const char *name, firn_error *error);
void closeVariants(firn_model &model);

/// The first variant that is for inputs of these dims, -1 if there is none.
int32_t findVariant(const firn_model &model, const firn_tensor *inputs);

} // namespace firn::runtime
#endif
