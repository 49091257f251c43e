// What one run at a time needs.
#ifndef FIRN_RUNTIME_SESSION_H
#define FIRN_RUNTIME_SESSION_H

#include <atomic>

#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Memory.h"
#include "runtime/src/Model.h"
#include "runtime/src/Plan.h"
#include "runtime/src/Pool.h"

namespace firn::runtime {

/// What an input takes from an output of the run before.
struct State {
  Block block;       // holds `value`
  firn_tensor value; // absent before a first run
  int32_t output;
  bool isBound;
};

} // namespace firn::runtime

struct firn_session {
  using Block = firn::runtime::Block;

  const firn_model *model;
  const firn_model_desc *desc; // of the model
  firn_allocator allocator;
  firn_error error;
  std::atomic<uint32_t> isRunning;
  uint64_t random;

  firn_pool *pool; // NULL: the caller's thread alone
  bool ownsPool;
  bool hasWorkers; // in this run

  // Arrays in `tables`.
  void *tables;
  size_t tablesBytes;
  firn::runtime::Plan plan;
  char **addresses; // per buffer that is a root: its bytes now
  int64_t *held;    // per late root: bytes there now, -1 before it is written
  Block *kept;      // per buffer: memory of a LATE one, or of an OUTPUT that the caller gave no usable memory for
  Block *staging;   // per input: a 64-byte aligned copy of a tensor that is not
  void **handedOut; // per output: session memory that the last run returned
  void **arguments; // per step, its buffers
  int64_t *dims;    // per step, its dims
  int32_t *patches; // of `arguments` that are inputs or outputs: index, root
  int32_t patchCount;
  firn_view *views;                // of one reference step
  firn::runtime::State *states;    // per input
  firn_tensor *withStates;         // per input: the caller's tensor or the state
  int32_t stateCount;              // of bound inputs
  firn::runtime::List *lists;      // per buffer that is a root and a list; NULL in models without
  firn::runtime::ItemStore *items; // of the lists

  Block arena;
  bool ownsArena;
  const char *touchedArena; // the arena whose pages are there
  const char *plannedArena; // the arena that `addresses` point into

  // A session on a model with variants has a session on each, which run in its arena, on its threads, with its states.
  firn_session *whole; // NULL: this is it
  firn_session **variants;
  int32_t lastVariant;
  Block scratch; // of all workers
  firn::runtime::Bump bump;
  bool hasStaleValues; // a SYMBOL was set since late values were evaluated

  // The present run.
  const firn_tensor *inputs;
  firn_tensor *outputs;
  int32_t fault; // of generated kernels

  firn_step_time *times;
  int64_t timesCapacity;
  int64_t timesCount;
  int64_t runStart;

  firn_session &owner() { return whole ? *whole : *this; }
  int32_t workers() const { return hasWorkers ? pool->threads : 1; }
  bool isLateRoot(int32_t root) const { return model->isBufferLate[root] != 0; }
};

namespace firn::runtime {

/// Runs steps [begin, end) and what is nested in them.
firn_status runSteps(firn_session &session, int32_t begin, int32_t end);

/// Brings late values up to date.
void refreshValues(firn_session &session);

/// Makes `bytes` of memory for late buffer `root`, about to be written.
firn_status holdLate(firn_session &session, int32_t root, int64_t bytes, int64_t keptBytes, const char *stepName);

/// Reports an output that does not fit into the caller's memory.
firn_status smallOutput(firn_session &session, int32_t output, int64_t bytes);

/// Puts states in the place of the present run's absent inputs.
firn_status takeStates(firn_session &session);
/// Keeps what a successful run, of the session or of one on a variant, made for the next one.
void keepStates(firn_session &session, firn_session &ran);

/// Writes dtype, rank and dims of output `index`.
void describeOutput(firn_session &session, int32_t index);

} // namespace firn::runtime
#endif
