// An open model: the checked descriptor, and what is derived from it once.
#ifndef FIRN_RUNTIME_MODEL_H
#define FIRN_RUNTIME_MODEL_H

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"
#include "runtime/src/Image.h"

struct firn_model {
  int file; // stays open for verification; -1: linked in
  firn::runtime::LoadFor purpose;
  firn_footer footer;
  firn::runtime::Image image;
  const firn_model_desc *desc;
  char *mapping; // of the weights, from the page that they begin in
  size_t mappingBytes;
  const char *weights;

  // Derived by validation; all arrays lie in `tables`.
  void *tables;
  int64_t *constants;     // per value: what it is, if isConstant
  uint8_t *isConstant;    // per value: the same for all inputs
  uint8_t *isBufferLate;  // per buffer: its address or size is known only while running
  uint8_t *isStepLate;    // per step: arguments must be gathered just before it runs
  uint8_t *doesStepInfer; // per step: a reference step whose sizes are not all constant
  int32_t *root;          // per buffer: itself or, for an alias, whose bytes it is
  int32_t *argumentStart; // per step: of its buffers in a session's argument array
  int32_t *dimStart;      // per step: of its dims
  int32_t *lateValues;    // values to evaluate when a SYMBOL is set, ascending
  int32_t lateValueCount;
  int32_t argumentCount;
  int32_t dimCount;
  int32_t arenaBufferCount;
  int32_t mostViews;     // of a reference step
  int64_t scratchStride; // bytes of one worker's scratch, a multiple of 128
  bool hasDynamicInputs;
  bool hasParallelSteps;
  bool hasSymbols;
  bool hasLists;

  firn_model *variants;
  int32_t variantCount;
  bool hasParallelVariants;

  // String elements of weights, with addresses instead of offsets: buffer b has strings[b], else NULL.
  firn_string **strings;
};

namespace firn::runtime {

constexpr int mostNesting = 64;

/// Checks every table of the descriptor and derives the model's arrays.
firn_status validateModel(firn_model &model, const char *name, firn_error *error);

/// Frees what validation made.
void releaseTables(firn_model &model);

/// "f32[batch,128]" of an input or output, for messages.
const char *portText(const firn_model &model, const firn_port &port, char *text, size_t capacity);
/// "f32[2,128]" of a tensor.
const char *tensorText(const firn_tensor &tensor, char *text, size_t capacity);

/// Copies `count` string elements at `offset` of the weights to `to`, with addresses instead of offsets; false if one
/// lies outside.
bool resolveStrings(const firn_model &model, int64_t offset, int64_t count, firn_string *to);

} // namespace firn::runtime
#endif
