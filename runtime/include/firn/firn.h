/* Firn's executor: opens a compiled model (`model.firn`) and runs it. C11; C++ programs may prefer firn.hpp.
 *
 * Ownership. What firn_*_open and firn_*_create return is the caller's and ends with firn_*_close or firn_*_destroy
 * (NULL is fine there). A session must end before its model and its pool. Every other pointer that is passed in is
 * borrowed until the call returns; every pointer that is handed out lives as long as the object it came from, unless
 * the function says otherwise.
 *
 * Threads. A firn_model is immutable: any number of threads may use it at once. A firn_session is used by one thread at
 * a time; any number of sessions of one model run side by side.
 *
 * Structs that the caller fills begin with `struct_size`, the caller's sizeof; they grow at their end only and are read
 * no further than that. A zeroed rest means defaults. firn_tensor alone has a fixed layout, because it lives in arrays.
 *
 * A compiled model holds native code: open only files that you trust as you trust a shared library. Damage is found and
 * refused; malice cannot be.
 */
#ifndef FIRN_FIRN_H
#define FIRN_FIRN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_API __attribute__((visibility("default")))
#define FIRN_MUST_USE __attribute__((warn_unused_result))

/* --- status ------------------------------------------------------------------------------------------------------- */

/* Values are pinned: they never change their meaning. */
typedef enum firn_status {
  FIRN_OK = 0,
  FIRN_BAD_ARGUMENT = 1, /* a NULL pointer, an index out of range, a struct_size that cannot be */
  FIRN_UNREADABLE = 2,   /* the file is missing or cannot be read or mapped */
  FIRN_BAD_MODEL = 3,    /* not a compiled model, cut off, or damaged */
  FIRN_BAD_VERSION = 4,  /* a valid file of a format version that this executor does not read */
  FIRN_BAD_MACHINE = 5,  /* compiled for another machine, or for CPU features that this one lacks */
  FIRN_NO_MEMORY = 6,    /* the allocator refused, or the caller's arena is too small */
  FIRN_BAD_INPUT = 7,    /* an input is missing, or has another dtype or too few bytes */
  FIRN_BAD_SHAPE = 8,    /* an input has a rank or a dimension that the model does not take */
  FIRN_SMALL_OUTPUT = 9, /* the caller's memory for an output is too small; its dims say what is needed */
  FIRN_FAILED = 10,      /* the model stopped on its data: an index out of range, a shape that cannot be */
  FIRN_BUSY = 11,        /* the session is running in another thread */
  FIRN_DIFFERS = 12,     /* the file's digest or a proof's output is not what it should be */
  FIRN_NO_PROOF = 13,    /* the model was compiled without a proof */
  FIRN_NO_THREADS = 14   /* the system refused a thread */
} firn_status;

/* Why a call failed. Set struct_size before the call; `message` is terminated text, empty after FIRN_OK. */
typedef struct firn_error {
  uint32_t struct_size;
  int32_t status;
  char message[1016];
} firn_error;

/* The name of a status ("FIRN_BAD_SHAPE"), or "unknown status".
 * Threads: any.  Memory: a constant. */
FIRN_API const char *firn_status_name(int32_t status);

/* The version of this library, "0.1.0".
 * Threads: any.  Memory: a constant. */
FIRN_API const char *firn_version(void);

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* Element types; the numbers are those of ONNX. 4-bit and 2-bit elements are packed, the first in the low bits. */
#define FIRN_DTYPE_NONE 0
#define FIRN_F32 1
#define FIRN_U8 2
#define FIRN_I8 3
#define FIRN_U16 4
#define FIRN_I16 5
#define FIRN_I32 6
#define FIRN_I64 7
#define FIRN_STRING 8 /* an element is a firn_text */
#define FIRN_BOOL 9   /* one byte, 0 is false */
#define FIRN_F16 10
#define FIRN_F64 11
#define FIRN_U32 12
#define FIRN_U64 13
#define FIRN_C64 14
#define FIRN_C128 15
#define FIRN_BF16 16
#define FIRN_F8E4M3FN 17
#define FIRN_F8E4M3FNUZ 18
#define FIRN_F8E5M2 19
#define FIRN_F8E5M2FNUZ 20
#define FIRN_U4 21
#define FIRN_I4 22
#define FIRN_F4E2M1 23
#define FIRN_F8E8M0 24
#define FIRN_U2 25
#define FIRN_I2 26
#define FIRN_LIST 31 /* a list of tensors: an element is a firn_tensor */

/* An element of a FIRN_STRING tensor; not terminated. */
typedef struct firn_text {
  const char *data;
  int64_t length;
} firn_text;

#define FIRN_TENSOR_MAX_RANK 12
#define FIRN_ALIGNMENT 64

/* A dense row-major tensor. Zeroed, it is absent. 64-byte aligned data is used in place; other data is copied.
 *
 * Sequences, optionals and maps are firn_tensors too (firn_port_info.form says what a port takes or gives):
 * a sequence has dtype FIRN_LIST, rank 1 and dims[0] tensors at `data`; an optional is its value, or absent; a map is a
 * FIRN_LIST of two tensors of rank 1 and equal length, keys and values; a sequence of maps is a FIRN_LIST of such. */
typedef struct firn_tensor {
  void *data;
  int64_t bytes; /* of memory at `data`, at least those that dims and dtype need */
  int64_t dims[FIRN_TENSOR_MAX_RANK];
  int32_t dtype; /* FIRN_DTYPE_NONE: absent */
  int32_t rank;
  int64_t reserved; /* 0 */
} firn_tensor;

/* "f32", "i64", ...; "none" for an unknown number.
 * Threads: any.  Memory: a constant. */
FIRN_API const char *firn_dtype_name(int32_t dtype);

/* Bytes that `tensor`'s dims and dtype need; -1 if a dimension is negative, the rank or the dtype unknown, or the
 * product too large. Threads: any.  Memory: none. */
FIRN_API int64_t firn_tensor_bytes(const firn_tensor *tensor);

/* --- models ------------------------------------------------------------------------------------------------------- */

typedef struct firn_model firn_model;

/* Opens a compiled model: checks the footer, the hash of its code, machine and CPU features, then loads the code,
 * checks every table, and maps the weights read-only. Weights are not read; firn_model_verify does. path: of the file,
 * which must not be changed while the model is open (replacing it by rename is fine). error: may be NULL. Returns
 * FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_UNREADABLE, FIRN_BAD_MODEL, FIRN_BAD_VERSION, FIRN_BAD_MACHINE, FIRN_NO_MEMORY.
 * Threads: any.  Memory: allocates a few tables; weights are shared with every process that has the file open. */
FIRN_API FIRN_MUST_USE firn_status firn_model_open(const char *path, firn_model **model, firn_error *error);

/* As firn_model_open, to be described and not to run: of any machine, with any CPU features. Sessions are refused.
 * Returns what firn_model_open returns, but for FIRN_BAD_MACHINE.
 * Threads: any.  Memory: as firn_model_open. */
FIRN_API FIRN_MUST_USE firn_status firn_model_open_to_read(const char *path, firn_model **model, firn_error *error);

/* As firn_model_open, from `bytes` bytes at `data`, which are copied.
 * Returns what firn_model_open returns.
 * Threads: any.  Memory: a copy of the file in anonymous memory. */
FIRN_API FIRN_MUST_USE firn_status firn_model_open_memory(const void *data, uint64_t bytes, firn_model **model,
                                                          firn_error *error);

/* A model that is linked into the program: `firnc --emit=obj -o NAME.o` writes an object that defines one, and a header
 * that declares it. */
typedef struct firn_static_model {
  uint32_t struct_size;
  uint32_t machine;      /* as firn_model_info */
  uint32_t cpu_features; /* as firn_model_info */
  uint32_t reserved;
  const struct firn_model_desc *tables;
  const void *weights;
  uint64_t weights_bytes;
  uint8_t digest[32]; /* SHA-256 of the weights */
} firn_static_model;

/* Opens a model that is linked into the program: checks machine and CPU features, then every table. Nothing is copied;
 * `linked` and what it points to stay as they are while the model is open.
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_BAD_MODEL, FIRN_BAD_VERSION, FIRN_BAD_MACHINE, FIRN_NO_MEMORY.
 * Threads: any.  Memory: allocates a few tables; code and weights are the program's. */
FIRN_API FIRN_MUST_USE firn_status firn_model_open_static(const firn_static_model *linked, firn_model **model,
                                                          firn_error *error);

/* Ends a model that has no sessions any more.
 * Threads: one, when nobody uses the model.  Memory: frees all. */
FIRN_API void firn_model_close(firn_model *model);

/* What a port holds. */
#define FIRN_FORM_TENSOR 0
#define FIRN_FORM_UNRANKED 1 /* a tensor of any rank */
#define FIRN_FORM_SEQUENCE 2
#define FIRN_FORM_OPTIONAL 3 /* of a tensor */
#define FIRN_FORM_OPTIONAL_SEQUENCE 4
#define FIRN_FORM_MAP 5
#define FIRN_FORM_SEQUENCE_OF_MAPS 6

/* An input or output of a model. */
typedef struct firn_port_info {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank;
  int32_t optional; /* an input: 1 if it may be left out */
  const char *name;
  int64_t dims[FIRN_TENSOR_MAX_RANK];        /* -1 for a dynamic dimension */
  const char *symbols[FIRN_TENSOR_MAX_RANK]; /* the name of a dynamic dimension, NULL if it has none */
  int32_t
      form; /* FIRN_FORM_; of others than TENSOR rank is 0, and dtype that of their tensors (of a map: its values) */
  int32_t reserved;
} firn_port_info;

/* Threads: any.  Memory: none. */
FIRN_API int32_t firn_model_input_count(const firn_model *model);
/* Threads: any.  Memory: none. */
FIRN_API int32_t firn_model_output_count(const firn_model *model);

/* Describes input or output `index`.
 * Returns FIRN_OK or FIRN_BAD_ARGUMENT.
 * Threads: any.  Memory: none. */
FIRN_API FIRN_MUST_USE firn_status firn_model_input(const firn_model *model, int32_t index, firn_port_info *port);
/* Threads: any.  Memory: none.  Returns FIRN_OK or FIRN_BAD_ARGUMENT. */
FIRN_API FIRN_MUST_USE firn_status firn_model_output(const firn_model *model, int32_t index, firn_port_info *port);

/* The index of the input or output called `name`, or -1.
 * Threads: any.  Memory: none. */
FIRN_API int32_t firn_model_find_input(const firn_model *model, const char *name);
/* Threads: any.  Memory: none. */
FIRN_API int32_t firn_model_find_output(const firn_model *model, const char *name);

typedef struct firn_model_info {
  uint32_t struct_size;
  uint32_t abi_version;
  const char *name;
  uint64_t file_bytes;
  uint64_t image_bytes; /* of native code and tables */
  uint64_t weights_bytes;
  int64_t arena_bytes;   /* -1: depends on the inputs' dimensions, ask firn_model_memory */
  int64_t scratch_bytes; /* of one thread */
  uint32_t machine;      /* ELF's number: 62 x86-64, 183 AArch64, 243 RISC-V */
  uint32_t cpu_features; /* bits; firn_cpu_features_text spells them */
  int32_t step_count;
  int32_t thread_hint; /* the compiler's --threads, 0: none */
  int32_t has_proof;
  int32_t has_late_sizes; /* 1: some sizes depend on data; their memory is allocated by the run that first needs it */
  uint8_t digest[32];     /* SHA-256 of the file before its footer */
} firn_model_info;

/* Describes the model as a whole.
 * Returns FIRN_OK or FIRN_BAD_ARGUMENT.
 * Threads: any.  Memory: none. */
FIRN_API FIRN_MUST_USE firn_status firn_model_describe(const firn_model *model, firn_model_info *info);

/* Entry `index` of the source's metadata or of the artifact's provenance; FIRN_BAD_ARGUMENT past the last one.
 * Threads: any.  Memory: none. */
FIRN_API FIRN_MUST_USE firn_status firn_model_metadata(const firn_model *model, int32_t index, const char **key,
                                                       const char **value);
/* Threads: any.  Memory: none.  Returns FIRN_OK, or FIRN_BAD_ARGUMENT past the last one. */
FIRN_API FIRN_MUST_USE firn_status firn_model_provenance(const firn_model *model, int32_t index, const char **key,
                                                         const char **value);

/* Message `index` of the constraints between input dimensions; NULL past the last one.
 * Threads: any.  Memory: none. */
FIRN_API const char *firn_model_constraint(const firn_model *model, int32_t index);

/* Variant `index` of the model: code for some sizes of its dynamic dimensions (`firnc --dim batch=1,4`), which sessions
 * on the model take by themselves. It can be described like a model, and is not closed. NULL past the last one.
 * Threads: any.  Memory: lives as long as the model. */
FIRN_API const firn_model *firn_model_variant(const firn_model *model, int32_t index);

#define FIRN_RUNS_KERNEL 0    /* generated code */
#define FIRN_RUNS_REFERENCE 1 /* a reference kernel: slow */
#define FIRN_RUNS_INSIDE 2    /* in the executor: a copy, control flow, a shape */

typedef struct firn_step_info {
  uint32_t struct_size;
  int32_t runs;     /* FIRN_RUNS_ */
  const char *name; /* the nodes of the source that it computes */
  const char *kind; /* "map", "contraction", ...; of a reference step its operator */
  int32_t parallel; /* 1: all threads work on it */
  int32_t depth;    /* how many if and loop steps it lies in */
} firn_step_info;

/* Describes step `index`.
 * Returns FIRN_OK or FIRN_BAD_ARGUMENT.
 * Threads: any.  Memory: none. */
FIRN_API FIRN_MUST_USE firn_status firn_model_step(const firn_model *model, int32_t index, firn_step_info *step);

/* The checked tables of the artifact, of the type that runtime/abi/model.h defines, for tools that know it.
 * Threads: any.  Memory: lives as long as the model. */
FIRN_API const struct firn_model_desc *firn_model_tables(const firn_model *model);

typedef struct firn_memory {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t weights_bytes;
  int64_t arena_bytes;
  int64_t scratch_bytes; /* of one thread */
  int64_t output_bytes;  /* what the session allocates if the caller gives no outputs; without late sizes */
} firn_memory;

/* The memory that a session needs for inputs of these dims.
 * inputs: one per model input, of which only dtype, rank and dims are read; NULL if no dimension is dynamic.
 * outputs: NULL, or one per model output, which get dtype, rank and dims (-1 where known only after a run).
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_BAD_INPUT, FIRN_BAD_SHAPE, FIRN_NO_MEMORY.
 * Threads: any.  Memory: temporary. */
FIRN_API FIRN_MUST_USE firn_status firn_model_memory(const firn_model *model, const firn_tensor *inputs,
                                                     firn_memory *memory, firn_tensor *outputs, firn_error *error);

/* Where the arena depends on the inputs' dimensions: the row of each buffer of the tables (firn_model_tables), -1 for
 * those that are not in the arena. The arena is never larger than the largest buffers of all rows beside one another,
 * each rounded up to 64 bytes. Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_NO_MEMORY. Threads: any.  Memory: temporary. */
FIRN_API FIRN_MUST_USE firn_status firn_model_arena_rows(const firn_model *model, int32_t *rows);

#define FIRN_VERIFY_DIGEST 1u /* read the whole file and compare its SHA-256 */
#define FIRN_VERIFY_PROOF 2u  /* run the stored inputs and compare with the stored outputs */

/* Checks that the file is undamaged and computes on this machine what the model computes.
 * Returns FIRN_OK, FIRN_DIFFERS (the message says where, by how much), FIRN_NO_PROOF (after the digest was found
 * right), or what opening and running return. Threads: any.  Memory: temporary; a session for the proof. */
FIRN_API FIRN_MUST_USE firn_status firn_model_verify(const firn_model *model, uint32_t what, int32_t threads,
                                                     firn_error *error);

/* Writes the names of CPU feature bits ("AVX2, FMA"), at most `capacity` bytes with the terminator, and returns the
 * text. Threads: any.  Memory: none. */
FIRN_API const char *firn_cpu_features_text(uint32_t cpu_features, char *text, uint64_t capacity);

/* The CPU feature bits of this machine that compiled models may ask for.
 * Threads: any.  Memory: none. */
FIRN_API uint32_t firn_cpu_features(void);

/* --- sessions ----------------------------------------------------------------------------------------------------- */

typedef struct firn_session firn_session;
typedef struct firn_pool firn_pool;

/* The caller's memory functions. `allocate` returns NULL when there is none. */
typedef struct firn_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void *(*allocate)(void *context, uint64_t bytes, uint64_t alignment);
  void (*release)(void *context, void *memory, uint64_t bytes);
  void *context;
} firn_allocator;

typedef struct firn_pool_options {
  uint32_t struct_size;
  int32_t threads;     /* the caller included; 0: one per core that this process may use */
  int32_t spin_micros; /* how long an idle worker spins before it sleeps; 0: 1000, -1: none */
  int32_t pin;         /* 1: bind each worker to a CPU of the process's mask */
} firn_pool_options;

/* Makes worker threads that several sessions may share. While one session runs on them, another runs on its caller's
 * thread alone.
 * options: NULL for defaults.
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_NO_MEMORY, FIRN_NO_THREADS.
 * Threads: any.  Memory: allocates and starts threads. */
FIRN_API FIRN_MUST_USE firn_status firn_pool_create(const firn_pool_options *options, firn_pool **pool,
                                                    firn_error *error);

/* Ends the threads of a pool that no session uses any more.
 * Threads: one.  Memory: frees all. */
FIRN_API void firn_pool_destroy(firn_pool *pool);

/* Threads: any.  Memory: none. */
FIRN_API int32_t firn_pool_threads(const firn_pool *pool);

typedef struct firn_session_options {
  uint32_t struct_size;
  int32_t threads;     /* the caller included; 0: the compiler's hint, else one per core that this process may use */
  int32_t spin_micros; /* as firn_pool_options */
  int32_t pin;         /* as firn_pool_options */
  firn_pool *pool;     /* shared workers instead of own ones; threads, spin_micros and pin are then not read */
  void *arena;         /* the caller's arena, 64-byte aligned; NULL: the session allocates */
  uint64_t arena_bytes;
  const firn_allocator *allocator; /* copied; NULL: the system's */
  uint64_t random_seed;            /* of operators that draw random numbers without a seed of their own */
} firn_session_options;

/* Makes what one run at a time needs: arena, scratch memory, threads.
 * options: NULL for defaults.
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_NO_MEMORY.
 * Threads: any.  Memory: allocates. The session's own threads start with its first run, and with dynamic input
 * dimensions the arena comes then. */
FIRN_API FIRN_MUST_USE firn_status firn_session_create(const firn_model *model, const firn_session_options *options,
                                                       firn_session **session, firn_error *error);

/* Ends a session that is not running.
 * Threads: one.  Memory: frees all, outputs that it handed out included. */
FIRN_API void firn_session_destroy(firn_session *session);

/* Runs one inference.
 * inputs: one per model input, in model order. An optional input may be absent (zeroed).
 * outputs: one per model output, in model order. `data` and `bytes` are the caller's memory, or NULL: then `data`
 * becomes memory of the session (or, for an output that is an input or a constant, that one's) that stays valid until
 * the next run. dtype, rank and dims are written; an optional without a value is absent (dtype FIRN_DTYPE_NONE). Lists
 * always lie in memory of the session: their `data` must be NULL. Outputs must not overlap inputs or each other.
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_BAD_INPUT, FIRN_BAD_SHAPE, FIRN_SMALL_OUTPUT, FIRN_FAILED, FIRN_NO_MEMORY,
 * FIRN_NO_THREADS (a first run), or FIRN_BUSY if `session` is running. firn_session_message says more. Threads: one
 * call at a time per session; sessions of one model run in parallel. Memory: allocates nothing once inputs of these
 * dims (and, for sizes that depend on data, results of these sizes) or larger ones have been seen. */
FIRN_API FIRN_MUST_USE firn_status firn_session_run(firn_session *session, const firn_tensor *inputs,
                                                    firn_tensor *outputs);

/* From now on output `output` of each run is input `input` of the next, without a copy: a cache that a model reads and
 * extends. The caller gives the input's first value as usual, and from then on an absent (zeroed) tensor; a tensor that
 * is present starts anew from there. The output's memory is the session's (`data` NULL) and may be read until the next
 * run. A run that fails leaves the state as it was. Dimensions may change from run to run. output: -1 ends a binding.
 * Returns FIRN_OK, FIRN_BAD_ARGUMENT, FIRN_BAD_SHAPE (the types cannot fit), FIRN_BUSY.
 * Threads: as the session.  Memory: none; each run then keeps two buffers for the output, which grow by halves. */
FIRN_API FIRN_MUST_USE firn_status firn_session_bind_state(firn_session *session, int32_t output, int32_t input);

/* Why the last call on this session failed; "" after FIRN_OK.
 * Threads: as the session.  Memory: valid until the next call. */
FIRN_API const char *firn_session_message(const firn_session *session);

/* The variant that the last run took, -1 for the general model. The steps of its profile are those of that model.
 * Threads: as the session.  Memory: none. */
FIRN_API int32_t firn_session_variant(const firn_session *session);

/* Threads in use, the caller included.
 * Threads: any.  Memory: none. */
FIRN_API int32_t firn_session_threads(const firn_session *session);

/* Bytes that the session holds now: arena, scratch, outputs and late sizes.
 * Threads: as the session.  Memory: none. */
FIRN_API int64_t firn_session_memory(const firn_session *session);

/* One execution of a step. A step in a loop has one per iteration. */
typedef struct firn_step_time {
  int32_t step;
  int32_t reserved;
  int64_t start_nanos; /* since the run began */
  int64_t duration_nanos;
  int64_t flops; /* -1: unknown */
  int64_t bytes; /* read and written once; -1: unknown */
} firn_step_time;

/* From now on each run writes the times of its steps to `times`, borrowed until another call or the session's end; NULL
 * stops it. Executions beyond `capacity` are counted but not stored.
 * Returns FIRN_OK or FIRN_BAD_ARGUMENT.
 * Threads: as the session.  Memory: none. */
FIRN_API FIRN_MUST_USE firn_status firn_session_profile(firn_session *session, firn_step_time *times, int64_t capacity);

/* Executions of steps in the last profiled run, those beyond the capacity included.
 * Threads: as the session.  Memory: none. */
FIRN_API int64_t firn_session_profile_count(const firn_session *session);

#ifdef __cplusplus
}
#endif
#endif
