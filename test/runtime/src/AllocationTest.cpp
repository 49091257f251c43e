// A second run allocates nothing: malloc and its relatives, and mmap, are replaced by counting ones.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

static long allocations;

#pragma GCC visibility push(default) // for the shared libraries too

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  ++allocations;
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}
#pragma GCC visibility pop

using namespace firn::test;

// Allocations of `count` runs.
static long allocationsOf(const firn::Session &session, const std::vector<firn_tensor> &inputs,
                          std::vector<firn_tensor> &outputs, int count) {
  long before = allocations;
  for (int i = 0; i < count; ++i)
    if (firn_session_run(session.get(), inputs.data(), outputs.data()) != FIRN_OK)
      return -1;
  return allocations - before;
}

TEST_CASE("the counter counts") {
  long before = allocations;
  std::vector<float> memory(1000);
  CHECK(memory.data());
  CHECK(allocations > before);
}

TEST_CASE("a second run of a model with dynamic dims allocates nothing, nor does one of smaller dims") {
  std::string bytes = makeArtifact("ScaleAdd", scaleAddWeights());
  firn::Model model(bytes.data(), bytes.size());
  firn::Session session(model, 2);
  std::vector<float> x(4000001), b(4000001);
  // Unaligned inputs, so that copies are among what is kept.
  auto inputs = [&](int64_t batch) {
    return std::vector<firn_tensor>{firn::tensor(x.data() + 1, {batch, 4}), firn::tensor(b.data() + 1, {batch, 4}), {}};
  };
  std::vector<firn_tensor> outputs(1);
  std::vector<firn_tensor> large = inputs(100000), small = inputs(10);
  CHECK(allocationsOf(session, large, outputs, 1) > 0);
  CHECK(allocationsOf(session, large, outputs, 3) == 0);
  CHECK(allocationsOf(session, small, outputs, 3) == 0);
  CHECK(allocationsOf(session, large, outputs, 3) == 0);
}

TEST_CASE("a second run of loops, late sizes and reference kernels allocates nothing") {
  std::string bytes = makeArtifact("Control");
  firn::Model control(bytes.data(), bytes.size());
  firn::Session loops(control);
  int64_t trips = 200, limit = 1000;
  bool no = false;
  std::vector<firn_tensor> inputs = {firn::tensor(&trips, {}), firn::tensor(&limit, {}), firn::tensor(&no, {}),
                                     firn::tensor(&no, {})};
  std::vector<firn_tensor> outputs(4);
  // Two results grow with each of the 200 iterations; their memory does so by halves.
  long first = allocationsOf(loops, inputs, outputs, 1);
  CHECK(first > 0);
  CHECK(first < 60);
  CHECK(allocationsOf(loops, inputs, outputs, 3) == 0);

  bytes = makeArtifact("Positive");
  firn::Model positive(bytes.data(), bytes.size());
  firn::Session session(positive, 1);
  std::vector<float> x(500, 1);
  int64_t shift = 0;
  inputs = {firn::tensor(x.data(), {500}), firn::tensor(&shift, {})};
  outputs.assign(4, firn_tensor{});
  CHECK(allocationsOf(session, inputs, outputs, 1) > 0);
  CHECK(allocationsOf(session, inputs, outputs, 3) == 0);
}

TEST_CASE("a second run of growing sequences allocates nothing") {
  std::string bytes = makeArtifact("Lists");
  firn::Model model(bytes.data(), bytes.size());
  firn::Session session(model, 1);
  std::vector<float> a{1, 2}, b(100, 3);
  std::vector<firn_tensor> items = {tensorOf(a, {2}, FIRN_F32), tensorOf(b, {100}, FIRN_F32)};
  int64_t times = 1000, at = 1;
  std::vector<firn_tensor> inputs = {
      tensorOf(items, {2}, FIRN_LIST), firn::tensor(&times, {}), firn::tensor(&at, {}), {}};
  std::vector<firn_tensor> outputs(6);
  CHECK(allocationsOf(session, inputs, outputs, 1) > 0);
  CHECK(allocationsOf(session, inputs, outputs, 3) == 0);
  times = 10;
  CHECK(allocationsOf(session, inputs, outputs, 3) == 0);
}

TEST_CASE("runs on a bound state allocate nothing once both of its buffers are there") {
  std::string bytes = makeArtifact("ScaleAdd", scaleAddWeights());
  firn::Model model(bytes.data(), bytes.size());
  firn::Session session(model, 2);
  session.bindState(0, 0);
  std::vector<float> x(4000), b(4000);
  std::vector<firn_tensor> inputs = {firn::tensor(x.data(), {1000, 4}), firn::tensor(b.data(), {1000, 4}), {}};
  std::vector<firn_tensor> outputs(1);
  CHECK(allocationsOf(session, inputs, outputs, 1) > 0);
  inputs[0] = {};
  CHECK(allocationsOf(session, inputs, outputs, 1) >= 0);
  CHECK(allocationsOf(session, inputs, outputs, 5) == 0);
}
