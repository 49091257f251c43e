/* Specialised variants of a model: complete descriptions for some sizes of its dynamic dimensions, beside the general one
 * in the same file. They read the same weights and have inputs and outputs of the same names and types. A file without
 * variants lacks the symbol.
 */
#ifndef FIRN_ABI_VARIANTS_H
#define FIRN_ABI_VARIANTS_H

#include "runtime/abi/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_VARIANTS_SYMBOL "firn_variants_v1"

typedef struct firn_variants {
  uint32_t struct_size;
  int32_t count;
  const firn_model_desc *const *models; /* `count` of them; the first whose dimensions fit is taken */
} firn_variants;
static_assert(sizeof(firn_variants) == 16, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

#ifdef __cplusplus
}
#endif
#endif
