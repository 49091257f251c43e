// Reference kernels as a shared library for test/conformance/reference_kernels.py, which builds the calls itself.
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/kernels/Table.h"

#define FIRN_TEST_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Arena {
  std::vector<std::unique_ptr<void, decltype(&std::free)>> blocks;
};

void *allocate(firn_call *call, int64_t bytes) {
  if (bytes < 0 || bytes > int64_t(1) << 32)
    return nullptr;
  void *block = std::aligned_alloc(64, size_t(bytes + 64) / 64 * 64);
  static_cast<Arena *>(call->context)->blocks.emplace_back(block, &std::free);
  return block;
}

} // namespace

FIRN_TEST_EXPORT const firn_operator *firn_test_find(const char *qualified) { return firn::kernels::find(qualified); }

FIRN_TEST_EXPORT const char *firn_test_name(size_t i) {
  size_t count;
  const firn_operator *const *all = firn::kernels::operators(&count);
  return i < count ? all[i]->name : nullptr;
}

FIRN_TEST_EXPORT int32_t firn_test_infer(const firn_operator *entry, firn_call *call) {
  Arena arena;
  call->scratch = allocate;
  call->context = &arena;
  return entry->infer(call);
}

/// The bytes of output strings stay until the next run.
FIRN_TEST_EXPORT int32_t firn_test_run(const firn_operator *entry, firn_call *call) {
  static Arena arena;
  arena.blocks.clear();
  call->scratch = allocate;
  call->context = &arena;
  return entry->run(call);
}
