#include "runtime/src/Variants.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/abi/variants.h"
#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Loader.h"
#include "runtime/src/Plan.h"

namespace firn::runtime {

namespace {

constexpr int32_t mostVariants = 1024;

bool haveEqualPorts(const firn_port *a, const firn_port *b, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (strcmp(a[i].name, b[i].name) != 0 || a[i].dtype != b[i].dtype || a[i].rank != b[i].rank ||
        a[i].optional != b[i].optional)
      return false;
  return true;
}

firn_status openVariant(const firn_model &model, const firn_model_desc *desc, const char *name, firn_model &variant,
                        firn_error *error) {
  variant.file = -1;
  variant.purpose = model.purpose;
  variant.footer = model.footer;
  variant.image = model.image;
  variant.desc = desc;
  variant.weights = model.weights;
  FIRN_CHECK_STATUS(validateModel(variant, name, error));
  if (desc->input_count != model.desc->input_count || desc->output_count != model.desc->output_count ||
      !haveEqualPorts(desc->inputs, model.desc->inputs, desc->input_count) ||
      !haveEqualPorts(desc->outputs, model.desc->outputs, desc->output_count))
    return fail(error, FIRN_BAD_MODEL, "%s: is not a valid model: a variant has other inputs or outputs", name);
  return FIRN_OK;
}

bool isFor(const firn_model &variant, const firn_tensor *inputs) {
  for (int32_t i = 0; i < variant.desc->input_count; ++i) {
    const firn_port &port = variant.desc->inputs[i];
    if (isAbsent(inputs[i]) || (port.buffer >= 0 && isList(variant.desc->buffers[port.buffer])))
      continue;
    if (inputs[i].rank != port.rank)
      return false;
    for (int32_t d = 0; d < port.rank; ++d)
      if (variant.isConstant[port.dims[d]] && variant.constants[port.dims[d]] != inputs[i].dims[d])
        return false;
  }
  return true;
}

} // namespace

firn_status openVariants(firn_model &model, const char *name, firn_error *error) {
  const auto *list = static_cast<const firn_variants *>(findExport(model.image, FIRN_VARIANTS_SYMBOL));
  if (!list)
    return FIRN_OK;
  if (reinterpret_cast<uintptr_t>(list) % alignof(firn_variants) != 0 || !model.image.holds(list, 1, sizeof *list) ||
      list->count < 0 || list->count > mostVariants || reinterpret_cast<uintptr_t>(list->models) % 8 != 0 ||
      !model.image.holds(list->models, uint64_t(list->count), sizeof list->models[0]))
    return fail(error, FIRN_BAD_MODEL, "%s: is not a valid model: its variants lie outside of its code", name);
  model.variants = static_cast<firn_model *>(calloc(size_t(list->count) + 1, sizeof(firn_model)));
  if (!model.variants)
    return fail(error, FIRN_NO_MEMORY, "%s: no memory for its variants", name);
  for (; model.variantCount < list->count; ++model.variantCount) {
    const firn_model_desc *desc = list->models[model.variantCount];
    firn_model &variant = model.variants[model.variantCount];
    firn_status status = openVariant(model, desc, name, variant, error);
    if (status != FIRN_OK) {
      releaseTables(variant);
      return status;
    }
    model.hasParallelVariants |= variant.hasParallelSteps;
  }
  return FIRN_OK;
}

void closeVariants(firn_model &model) {
  for (int32_t i = 0; i < model.variantCount; ++i)
    releaseTables(model.variants[i]);
  free(model.variants);
}

int32_t findVariant(const firn_model &model, const firn_tensor *inputs) {
  for (int32_t i = 0; i < model.variantCount; ++i)
    if (isFor(model.variants[i], inputs))
      return i;
  return -1;
}

} // namespace firn::runtime

using namespace firn::runtime;

extern "C" {

const firn_model *firn_model_variant(const firn_model *model, int32_t index) {
  return model && index >= 0 && index < model->variantCount ? model->variants + index : nullptr;
}

} // extern "C"
