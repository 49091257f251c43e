// Inputs, outputs, memory, threads and profiles of sessions.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

firn::Model openScaleAdd() {
  std::string bytes = makeArtifact("ScaleAdd", scaleAddWeights());
  return firn::Model(bytes.data(), bytes.size());
}

// 64-byte aligned floats.
class Floats {
public:
  explicit Floats(size_t count, float start = 0)
      : elements(static_cast<float *>(std::aligned_alloc(64, (count * 4 + 127) / 64 * 64))) {
    for (size_t i = 0; i < count; ++i)
      elements[i] = start + float(i);
  }
  ~Floats() { std::free(elements); }
  Floats(const Floats &) = delete;
  Floats &operator=(const Floats &) = delete;
  float *elements;
};

float expected(float x, float b, size_t column, float s = 10) { return x * float(column + 1) * s + b; }

firn_status run(const firn::Session &session, std::vector<firn_tensor> inputs, firn_tensor &output) {
  return firn_session_run(session.get(), inputs.data(), &output);
}

std::string message(const firn::Session &session) { return firn_session_message(session.get()); }

} // namespace

TEST_CASE("a run computes for every batch, and again after the batch changes") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 2);
  for (int64_t batch : {1, 7, 3, 0, 64, 7}) {
    Floats x(size_t(batch) * 4), b(size_t(batch) * 4, 100);
    firn_tensor output{};
    REQUIRE(run(session, {firn::tensor(x.elements, {batch, 4}), firn::tensor(b.elements, {batch, 4}), {}}, output) ==
            FIRN_OK);
    CHECK(output.rank == 2);
    CHECK(output.dims[0] == batch);
    CHECK(output.bytes == batch * 16);
    for (size_t i = 0; i < size_t(batch) * 4; ++i)
      REQUIRE(static_cast<float *>(output.data)[i] == expected(float(i), 100 + float(i), i % 4));
  }
}

TEST_CASE("an optional input has its default where it is left out") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(4), b(4), s(1, 3);
  firn_tensor output{};
  REQUIRE(run(session,
              {firn::tensor(x.elements, {1, 4}), firn::tensor(b.elements, {1, 4}), firn::tensor(s.elements, {1})},
              output) == FIRN_OK);
  CHECK(static_cast<float *>(output.data)[3] == expected(3, 3, 3, 3));
  REQUIRE(run(session, {firn::tensor(x.elements, {1, 4}), firn::tensor(b.elements, {1, 4}), {}}, output) == FIRN_OK);
  CHECK(static_cast<float *>(output.data)[3] == expected(3, 3, 3, 10));
}

TEST_CASE("bad inputs are named, with what was given and what is allowed") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(16), b(16);
  firn_tensor good = firn::tensor(b.elements, {2, 4}), output{};

  CHECK(run(session, {firn_tensor{}, good, {}}, output) == FIRN_BAD_INPUT);
  CHECK(message(session) == "input 'x' is missing: it must be f32[batch,4]");
  CHECK(run(session, {firn::tensor(x.elements, FIRN_I32, {2, 4}), good, {}}, output) == FIRN_BAD_INPUT);
  CHECK(message(session) == "input 'x' must be f32[batch,4], got i32[2,4]: the dtype differs");
  CHECK(run(session, {firn::tensor(x.elements, {8}), good, {}}, output) == FIRN_BAD_SHAPE);
  CHECK(message(session) == "input 'x' must be f32[batch,4], got f32[8]: the rank differs");
  CHECK(run(session, {firn::tensor(x.elements, {2, 5}), good, {}}, output) == FIRN_BAD_SHAPE);
  CHECK(message(session) == "input 'x' must be f32[batch,4], got f32[2,5]: dimension 1 must be 4");
  CHECK(run(session, {firn::tensor(x.elements, {3, 4}), good, {}}, output) == FIRN_BAD_SHAPE);
  CHECK(message(session) == "dimension 0 of input 'b' must equal dimension 0 of input 'x' (batch): got 3 and 2");
  CHECK(run(session, {firn::tensor(x.elements, {-1, 4}), good, {}}, output) == FIRN_BAD_SHAPE);
  firn_tensor small = firn::tensor(x.elements, {2, 4});
  small.bytes = 31;
  CHECK(run(session, {small, good, {}}, output) == FIRN_BAD_INPUT);
  CHECK(message(session) == "input 'x' needs 32 bytes for f32[2,4], got 31");
  small.bytes = 32;
  small.data = nullptr;
  CHECK(run(session, {small, good, {}}, output) == FIRN_BAD_INPUT);
  firn_tensor huge = firn::tensor(x.elements, {2, 4});
  huge.dims[0] = int64_t(1) << 61;
  CHECK(run(session, {huge, huge, {}}, output) == FIRN_BAD_SHAPE);
  CHECK(firn_session_run(session.get(), nullptr, &output) == FIRN_BAD_ARGUMENT);
  CHECK(run(session, {good, good, {}}, output) == FIRN_OK); // and the session still works
  CHECK(message(session).empty());
}

TEST_CASE("aligned memory of the caller is used in place, other memory is copied") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(9), b(9), y(9);
  firn_tensor output{};
  output.data = y.elements;
  output.bytes = 32;
  int64_t before = firn_session_memory(session.get());
  REQUIRE(run(session, {firn::tensor(x.elements, {2, 4}), firn::tensor(b.elements, {2, 4}), {}}, output) == FIRN_OK);
  CHECK(output.data == y.elements);
  CHECK(y.elements[7] == expected(7, 7, 3));
  CHECK(firn_session_memory(session.get()) == before + 128); // the arena for batch 2, no staging
  output.data = y.elements + 1;
  REQUIRE(run(session, {firn::tensor(x.elements + 1, {2, 4}), firn::tensor(b.elements + 1, {2, 4}), {}}, output) ==
          FIRN_OK);
  CHECK(y.elements[8] == expected(8, 8, 3));
}

TEST_CASE("an output that does not fit is refused and says what it needs") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(8), b(8), y(8);
  firn_tensor output{};
  output.data = y.elements;
  output.bytes = 31;
  CHECK(run(session, {firn::tensor(x.elements, {2, 4}), firn::tensor(b.elements, {2, 4}), {}}, output) ==
        FIRN_SMALL_OUTPUT);
  CHECK(output.dims[0] == 2);
  CHECK(message(session) == "output 'y' needs 32 bytes, the caller gave 31");
}

TEST_CASE("outputs of the session may be passed in again, and grow") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(400), b(400);
  firn_tensor output{};
  for (int64_t batch : {1, 2, 100, 1}) {
    REQUIRE(run(session, {firn::tensor(x.elements, {batch, 4}), firn::tensor(b.elements, {batch, 4}), {}}, output) ==
            FIRN_OK);
    CHECK(output.bytes == batch * 16);
  }
}

TEST_CASE("the caller may bring arena and allocator") {
  firn::Model model = openScaleAdd();
  struct Counter {
    int64_t live = 0, calls = 0;
    bool refuse = false;
  } counter;
  firn_allocator allocator{};
  allocator.struct_size = sizeof allocator;
  allocator.context = &counter;
  allocator.allocate = [](void *context, uint64_t bytes, uint64_t alignment) -> void * {
    auto *count = static_cast<Counter *>(context);
    if (count->refuse)
      return nullptr;
    count->live += int64_t(bytes);
    ++count->calls;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  allocator.release = [](void *context, void *memory, uint64_t bytes) {
    static_cast<Counter *>(context)->live -= int64_t(bytes);
    std::free(memory);
  };
  Floats arena(1000), x(400), b(400);
  firn_session_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  options.arena = arena.elements;
  options.arena_bytes = 128;
  options.allocator = &allocator;
  {
    firn::Session session(model, options);
    firn_tensor output{};
    REQUIRE(run(session, {firn::tensor(x.elements, {8, 4}), firn::tensor(b.elements, {8, 4}), {}}, output) == FIRN_OK);
    CHECK(static_cast<float *>(output.data)[31] == expected(31, 31, 3));
    CHECK(arena.elements[31] == expected(31, 0, 3)); // the intermediate lies in the caller's arena
    int64_t calls = counter.calls;
    REQUIRE(run(session, {firn::tensor(x.elements, {8, 4}), firn::tensor(b.elements, {8, 4}), {}}, output) == FIRN_OK);
    CHECK(counter.calls == calls);
    CHECK(run(session, {firn::tensor(x.elements, {9, 4}), firn::tensor(b.elements, {9, 4}), {}}, output) ==
          FIRN_NO_MEMORY);
    CHECK(message(session) == "the caller's arena has 128 bytes, 192 are needed");
    REQUIRE(run(session, {firn::tensor(x.elements, {8, 4}), firn::tensor(b.elements, {8, 4}), {}}, output) == FIRN_OK);
  }
  CHECK(counter.live == 0);
  counter.refuse = true;
  CHECK_THROWS_AS(firn::Session(model, options), firn::Error);
  options.arena = arena.elements + 1;
  counter.refuse = false;
  CHECK_THROWS_WITH(firn::Session(model, options), Contains("64-byte aligned"));
  CHECK(counter.live == 0);
}

TEST_CASE("results do not depend on the number of threads, and sessions run side by side") {
  firn::Model model = openScaleAdd();
  firn::Pool pool(3);
  std::atomic<int> wrong{0};
  auto work = [&](int number) {
    firn::Session session = number % 2 ? firn::Session(model, pool) : firn::Session(model, number + 1);
    Floats x(4000, float(number)), b(4000);
    for (int round = 0; round < 30; ++round) {
      firn_tensor output{};
      int64_t batch = 1 + (round * 37 + number) % 1000;
      if (run(session, {firn::tensor(x.elements, {batch, 4}), firn::tensor(b.elements, {batch, 4}), {}}, output) !=
          FIRN_OK)
        ++wrong;
      for (size_t i = 0; i < size_t(batch) * 4; ++i)
        wrong += static_cast<float *>(output.data)[i] != expected(float(number) + float(i), float(i), i % 4);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back(work, number);
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("workers meet at barriers, whether they spin or sleep") {
  std::string bytes = makeArtifact("Workers");
  firn::Model model(bytes.data(), bytes.size());
  for (int32_t threads : {1, 2, 3, 5})
    for (int32_t spin : {-1, 0}) {
      firn_session_options options{};
      options.struct_size = sizeof options;
      options.threads = threads;
      options.spin_micros = spin;
      options.pin = threads == 2;
      firn::Session session(model, options);
      CHECK(session.threads() == threads);
      for (int round = 0; round < 5; ++round) {
        firn::Results results = session.run({});
        int64_t sum = 0;
        for (int64_t r = 0; r < 200; ++r)
          for (int64_t w = 0; w < threads; ++w)
            sum += w + r;
        CHECK(results.data<int64_t>(0)[0] == sum);
        CHECK(results.data<int64_t>(0)[1] == threads);
        CHECK(results.data<int64_t>(0)[2] == 1);
        if (round == 2)
          std::this_thread::sleep_for(std::chrono::milliseconds(3)); // workers fall asleep
      }
    }
}

TEST_CASE("a session without a thread count uses the cores of the process") {
  std::string bytes = makeArtifact("Workers");
  firn::Model model(bytes.data(), bytes.size());
  firn::Session session(model);
  CHECK(session.threads() >= 1);
  CHECK(session.threads() <= int32_t(std::thread::hardware_concurrency()));
  CHECK_THROWS_AS(firn::Session(model, -1), firn::Error);
  CHECK_THROWS_AS(firn::Pool(5000), firn::Error);
}

TEST_CASE("a profile has one entry per step") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 2);
  Floats x(40), b(40);
  std::vector<firn_step_time> times(2);
  REQUIRE(firn_session_profile(session.get(), times.data(), 1) == FIRN_OK);
  firn_tensor output{};
  std::vector<firn_tensor> inputs = {firn::tensor(x.elements, {10, 4}), firn::tensor(b.elements, {10, 4}), {}};
  REQUIRE(run(session, inputs, output) == FIRN_OK);
  CHECK(firn_session_profile_count(session.get()) == 2);
  CHECK(times[1].duration_nanos == 0); // beyond the capacity
  REQUIRE(firn_session_profile(session.get(), times.data(), 2) == FIRN_OK);
  REQUIRE(run(session, inputs, output) == FIRN_OK);
  CHECK(times[0].step == 0);
  CHECK(times[0].flops == 80);
  CHECK(times[0].bytes == -1);
  CHECK(times[1].step == 1);
  CHECK(times[1].flops == 40);
  CHECK(times[1].start_nanos >= times[0].start_nanos + times[0].duration_nanos);
  CHECK(firn_session_profile(session.get(), nullptr, 0) == FIRN_OK);
}

#if defined(__x86_64__)
TEST_CASE("denormals are kept whatever mode the caller's thread is in, and the mode is the caller's again afterwards") {
  firn::Model model = openScaleAdd();
  firn::Session session(model, 1);
  Floats x(4), b(4), s(1, 1);
  x.elements[0] = 1e-40f;
  b.elements[0] = 0;
  firn_tensor output{};
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  firn_status status =
      run(session, {firn::tensor(x.elements, {1, 4}), firn::tensor(b.elements, {1, 4}), firn::tensor(s.elements, {1})},
          output);
  unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  REQUIRE(status == FIRN_OK);
  CHECK((after & 0x8040) == 0x8040);
  CHECK(static_cast<float *>(output.data)[0] == 1e-40f);
}
#endif
