#include "runtime/src/Pool.h"

#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/src/Error.h"
#include "runtime/src/Machine.h"

namespace firn::runtime {

int64_t nowNanos() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

constexpr int64_t patienceNanos = 200000;

// Waits until `word` satisfies the condition, for a thread that is running. Where that takes long it has lost its CPU
// to another process: then this thread sleeps, so that the system can give the other one this CPU.
template <typename Condition>
void waitFor(std::atomic<uint32_t> &word, std::atomic<uint32_t> &sleepers, Condition isMet) {
  int64_t deadline = 0;
  for (int spins = 1;; ++spins) {
    if (isMet(word.load(std::memory_order_acquire)))
      return;
    if (spins < 512) {
      relax();
      continue;
    }
    sched_yield();
    if (spins % 16)
      continue;
    int64_t now = nowNanos();
    if (deadline == 0)
      deadline = now + patienceNanos;
    else if (now >= deadline)
      break;
  }
  // Sequentially consistent with announce(): either it sees the sleeper or the sleeper sees the word.
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (uint32_t seen; !isMet(seen = word.load(std::memory_order_seq_cst));)
    futexWait(word, seen);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void announce(std::atomic<uint32_t> &word, std::atomic<uint32_t> &sleepers, uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst))
    futexWakeAll(word);
}

void *threadMain(void *argument) {
  auto *self = static_cast<firn_pool::Worker *>(argument);
  prctl(PR_SET_NAME, "firn-worker");
  if (self->cpu >= 0) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(self->cpu, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
  }
  self->pool->workerLoop(*self);
  return nullptr;
}

// The CPU of worker `number` when workers are pinned: the number-th of the process's mask.
int32_t cpuOf(int32_t number) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0)
    return -1;
  int32_t wanted = number % CPU_COUNT(&mask);
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask) && wanted-- == 0)
      return cpu;
  return -1;
}

bool startWorker(firn_pool *pool, firn_pool::Worker &worker) {
  // Signals belong to the application's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&worker.thread, nullptr, threadMain, &worker) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started)
    ++pool->started;
  return started;
}

} // namespace

void poolBarrier(void *context, int32_t, int32_t workers) {
  auto *pool = static_cast<firn_pool *>(context);
  uint32_t generation = pool->generation.value.load(std::memory_order_acquire);
  if (pool->arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 == uint32_t(workers)) {
    pool->arrived.value.store(0, std::memory_order_relaxed);
    announce(pool->generation.value, pool->barrierSleepers.value, generation + 1);
    return;
  }
  waitFor(pool->generation.value, pool->barrierSleepers.value, [&](uint32_t now) { return now != generation; });
}

void noBarrier(void *, int32_t, int32_t) {}

} // namespace firn::runtime

using namespace firn::runtime;

bool firn_pool::acquire() {
  if (threads == 1 || inUse.value.exchange(1, std::memory_order_acquire))
    return false;
  // They spin while the first steps run, instead of being woken when the first parallel one waits for them.
  if (sleepers.value.load(std::memory_order_seq_cst))
    futexWakeAll(epoch.value);
  return true;
}

void firn_pool::giveBack() { inUse.value.store(0, std::memory_order_release); }

void firn_pool::run(firn_kernel task, const firn_kernel_args *taskArgs) {
  kernel = task;
  args = taskArgs;
  uint32_t present = epoch.value.load(std::memory_order_relaxed) + 1;
  announce(epoch.value, sleepers.value, present);
  task(taskArgs, 0, threads);
  for (int32_t w = 0; w < threads - 1; ++w)
    waitFor(workers[w].done.value, callerSleeps.value, [&](uint32_t now) { return now == present; });
}

uint32_t firn_pool::awaitWork(uint32_t seen) {
  for (;;) {
    int64_t deadline = 0;
    for (uint32_t spins = 1;; ++spins) {
      uint32_t present = epoch.value.load(std::memory_order_acquire);
      if (present != seen)
        return present;
      relax();
      if (spins % 64 == 0) { // the clock costs as much as a few pauses
        int64_t now = nowNanos();
        if (deadline == 0)
          deadline = now + spinNanos;
        else if (now >= deadline)
          break;
        if (spins >= 512) // somebody else may need this CPU, the caller too
          sched_yield();
      }
    }
    sleepers.value.fetch_add(1, std::memory_order_seq_cst);
    if (epoch.value.load(std::memory_order_seq_cst) == seen)
      futexWait(epoch.value, seen);
    sleepers.value.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void firn_pool::workerLoop(Worker &self) {
  uint32_t seen = 0;
  for (;;) {
    seen = awaitWork(seen);
    if (stop.value.load(std::memory_order_acquire))
      return;
    kernel(args, self.number, threads);
    announce(self.done.value, callerSleeps.value, seen);
  }
}

namespace firn::runtime {

firn_status makePool(const firn_pool_options *options, firn_pool **result, firn_error *error) {
  succeed(error);
  if (!result)
    return fail(error, FIRN_BAD_ARGUMENT, "no place for the pool was given");
  *result = nullptr;
  firn_pool_options given{};
  if (options && options->struct_size < sizeof options->struct_size)
    return fail(error, FIRN_BAD_ARGUMENT, "struct_size of the pool's options is not set");
  if (options)
    memcpy(&given, options, options->struct_size < sizeof given ? options->struct_size : sizeof given);
  if (given.threads < 0 || given.threads > 4096)
    return fail(error, FIRN_BAD_ARGUMENT, "threads must be 0 to 4096, got %d", int(given.threads));
  int32_t threads = given.threads ? given.threads : usableCores();
  void *memory = aligned_alloc(alignof(firn_pool), sizeof(firn_pool));
  if (!memory)
    return fail(error, FIRN_NO_MEMORY, "no memory for a thread pool");
  auto *pool = new (memory) firn_pool{};
  pool->threads = threads;
  pool->spinNanos = given.spin_micros < 0 ? 0 : int64_t(given.spin_micros ? given.spin_micros : 1000) * 1000;
  if (threads > 1) {
    void *workers = aligned_alloc(alignof(firn_pool::Worker), sizeof(firn_pool::Worker) * size_t(threads - 1));
    if (!workers) {
      firn_pool_destroy(pool);
      return fail(error, FIRN_NO_MEMORY, "no memory for %d threads", int(threads));
    }
    pool->workers = static_cast<firn_pool::Worker *>(workers);
  }
  for (int32_t w = 0; w < threads - 1; ++w) {
    auto *worker = new (&pool->workers[w]) firn_pool::Worker{};
    worker->pool = pool;
    worker->number = w + 1;
    worker->cpu = given.pin ? cpuOf(w + 1) : -1;
  }
  *result = pool;
  return FIRN_OK;
}

} // namespace firn::runtime

firn_status firn_pool::start(firn_error *error) {
  while (started < threads - 1)
    if (!startWorker(this, workers[started]))
      return fail(error, FIRN_NO_THREADS, "the system refused thread %d of %d", int(started + 2), int(threads));
  return FIRN_OK;
}

extern "C" {

firn_status firn_pool_create(const firn_pool_options *options, firn_pool **result, firn_error *error) {
  FIRN_CHECK_STATUS(makePool(options, result, error));
  firn_status status = (*result)->start(error);
  if (status != FIRN_OK) {
    firn_pool_destroy(*result);
    *result = nullptr;
  }
  return status;
}

void firn_pool_destroy(firn_pool *pool) {
  if (!pool)
    return;
  pool->stop.value.store(1, std::memory_order_release);
  pool->epoch.value.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(pool->epoch.value);
  for (int32_t w = 0; w < pool->started; ++w)
    pthread_join(pool->workers[w].thread, nullptr);
  free(pool->workers);
  free(pool);
}

int32_t firn_pool_threads(const firn_pool *pool) { return pool ? pool->threads : 0; }

} // extern "C"
