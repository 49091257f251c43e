// Feeds bytes to the executor as a compiled model. Half of the mutations touch the footer alone and mend its hash, so
// that the checks behind the hash are reached. Code is never mutated behind a right hash: native code is trusted as a
// shared library is.
#include <cstring>

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"
#include "runtime/src/Hash.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  if (seed % 2 == 0 || size < sizeof(firn_footer))
    return LLVMFuzzerMutate(data, size, maxSize);
  uint8_t *footer = data + size - sizeof(firn_footer);
  const size_t hashed = offsetof(firn_footer, footer_hash);
  LLVMFuzzerMutate(footer, hashed, hashed);
  uint64_t hash = firn::runtime::xxh64(footer, hashed);
  std::memcpy(footer + hashed, &hash, sizeof hash);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  firn_model *model = nullptr;
  firn_error error = {};
  error.struct_size = sizeof error;
  if (firn_model_open_memory(data, size, &model, &error) != FIRN_OK)
    return 0;
  // What opens can be described and run, if it takes no inputs of unknown size.
  firn_port_info port = {};
  port.struct_size = sizeof port;
  for (int32_t i = 0; firn_model_input(model, i, &port) == FIRN_OK; ++i)
    if (std::strlen(port.name) > size)
      __builtin_trap();
  firn_step_info step = {};
  step.struct_size = sizeof step;
  for (int32_t i = 0; firn_model_step(model, i, &step) == FIRN_OK; ++i)
    if (!step.name)
      __builtin_trap();
  if (firn_model_verify(model, FIRN_VERIFY_DIGEST, 1, &error) == FIRN_BAD_ARGUMENT)
    __builtin_trap();
  firn_model_close(model);
  return 0;
}
