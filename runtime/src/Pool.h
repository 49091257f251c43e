// Worker threads. The caller of a kernel is worker 0; the others spin for a while after work and then sleep.
#ifndef FIRN_RUNTIME_POOL_H
#define FIRN_RUNTIME_POOL_H

#include <atomic>
#include <pthread.h>

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"

namespace firn::runtime {

/// A flag on cache lines of its own (two: the hardware prefetches pairs).
struct alignas(128) Flag {
  std::atomic<uint32_t> value{0};
};

} // namespace firn::runtime

struct firn_pool {
  struct Worker {
    firn::runtime::Flag done; // the last epoch it has finished
    pthread_t thread;
    firn_pool *pool;
    int32_t number;
    int32_t cpu; // to be bound to, -1: none
  };

  // What all workers compute in the present epoch.
  firn_kernel kernel;
  const firn_kernel_args *args;
  int64_t spinNanos;
  int32_t threads; // the caller included
  int32_t started; // of `workers`
  Worker *workers; // threads - 1
  firn::runtime::Flag epoch;
  firn::runtime::Flag sleepers;        // workers that wait for an epoch
  firn::runtime::Flag callerSleeps;    // until a worker is done
  firn::runtime::Flag barrierSleepers; // workers that wait for a generation
  firn::runtime::Flag stop;
  firn::runtime::Flag inUse;
  firn::runtime::Flag arrived;    // of the barrier
  firn::runtime::Flag generation; // of the barrier

  /// Takes the workers for a run and wakes those that sleep; false while another session has them.
  bool acquire();
  /// Starts the threads that are not there yet; only for who has acquired the pool. Returns FIRN_OK or FIRN_NO_THREADS.
  firn_status start(firn_error *error);
  void giveBack();
  /// Runs kernel(args, w, threads) on all workers and returns when all have finished.
  void run(firn_kernel task, const firn_kernel_args *taskArgs);
  void workerLoop(Worker &self);

private:
  uint32_t awaitWork(uint32_t seen);
};

namespace firn::runtime {
/// firn_pool_create without its threads: start() makes them, so that a session that never runs costs none.
firn_status makePool(const firn_pool_options *options, firn_pool **pool, firn_error *error);
int64_t nowNanos();
/// firn_kernel_args.barrier of steps that run on a pool.
void poolBarrier(void *pool, int32_t worker, int32_t workers);
/// firn_kernel_args.barrier of a single worker.
void noBarrier(void *pool, int32_t worker, int32_t workers);
} // namespace firn::runtime
#endif
