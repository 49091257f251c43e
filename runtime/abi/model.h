/* The layout of a compiled model (`model.firn`), written by compiler/artifact and read in place by the executor.
 *
 * The file is   [ELF shared object][padding][weights, page-aligned][firn_footer].
 * The footer is read and checked first, before any byte of the shared object is mapped executable. The shared object
 * exports one symbol, FIRN_MODEL_SYMBOL, of type firn_model_desc; all pointers below are relocated by the loader.
 * Counts and indices are checked once when a model is opened.
 */
#ifndef FIRN_ABI_MODEL_H
#define FIRN_ABI_MODEL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi/dtype.h"
#include "runtime/abi/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_ABI_VERSION 1
#define FIRN_MODEL_SYMBOL "firn_model_v1"
#define FIRN_MAGIC "FIRNMDL1"
#define FIRN_BUFFER_ALIGNMENT 64 /* of every buffer, weight and caller's tensor */

#define FIRN_MACHINE_X86_64 62   /* ELF's e_machine */
#define FIRN_MACHINE_AARCH64 183
#define FIRN_MACHINE_RISCV 243

/* CPU features that generated code may use; firn_footer.cpu_features lists those it needs. */
#define FIRN_CPU_SSE41 (1u << 0)
#define FIRN_CPU_SSE42 (1u << 1) /* with POPCNT */
#define FIRN_CPU_AVX (1u << 2)
#define FIRN_CPU_AVX2 (1u << 3)
#define FIRN_CPU_FMA (1u << 4)
#define FIRN_CPU_F16C (1u << 5)
#define FIRN_CPU_BMI2 (1u << 6)     /* BMI1, BMI2, LZCNT, MOVBE */
#define FIRN_CPU_AVX512 (1u << 7)   /* F, BW, CD, DQ, VL */
#define FIRN_CPU_AVX512VNNI (1u << 8)
#define FIRN_CPU_AVX512BF16 (1u << 9)
#define FIRN_CPU_AVX512FP16 (1u << 10)
#define FIRN_CPU_AVX512EXTRA (1u << 11) /* whatever else `native` chose beyond these: VBMI, VBMI2, BITALG, VPOPCNTDQ, IFMA, GFNI */
#define FIRN_CPU_NEON (1u << 16)
#define FIRN_CPU_DOTPROD (1u << 17)

/* The last bytes of the file. Hashes are XXH64 with seed 0. */
typedef struct firn_footer {
  char magic[8]; /* FIRN_MAGIC, no terminator */
  uint32_t abi_version;
  uint32_t footer_size; /* sizeof(firn_footer) */
  uint64_t file_size;
  uint64_t image_size; /* the ELF shared object is bytes [0, image_size) */
  uint64_t image_hash;
  uint64_t weights_offset; /* multiple of the target's page size; weights end where the footer begins */
  uint64_t weights_size;
  uint32_t machine;      /* FIRN_MACHINE_ */
  uint32_t cpu_features; /* FIRN_CPU_ bits */
  uint8_t digest[32];    /* SHA-256 of the file up to the footer */
  uint64_t reserved[2];
  uint64_t footer_hash; /* of the footer up to this field */
} firn_footer;
static_assert(sizeof(firn_footer) == 120, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* What a generated kernel gets. Same for all workers of one step. */
typedef struct firn_kernel_args {
  void *const *buffers;  /* in the order of firn_step.buffers: inputs, then outputs */
  const int64_t *dims;   /* in the order of firn_step.dims */
  char *scratch;         /* worker w owns [scratch + w * scratch_stride, ... + scratch_stride) */
  int64_t scratch_stride;
  int32_t *status;       /* a kernel that meets bad data (an index out of range) stores FIRN_FAULT_; else untouched */
  void (*barrier)(void *pool, int32_t worker, int32_t workers); /* all workers of this step meet */
  void *pool;
} firn_kernel_args;
static_assert(sizeof(firn_kernel_args) == 56, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

#define FIRN_FAULT_NONE 0
#define FIRN_FAULT_INDEX 1 /* an index is out of range */

/* Computes the slice of worker `worker` of `workers`. */
typedef void (*firn_kernel)(const firn_kernel_args *args, int32_t worker, int32_t workers);

/* --- integer values ----------------------------------------------------------------------------------------------- */

/* Value i of the integer program is defined by instruction i, from values below i. Dimensions, sizes and counts are
 * values. Division by zero gives 0. */
#define FIRN_VALUE_CONSTANT 0  /* a */
#define FIRN_VALUE_INPUT_DIM 1 /* dimension b of input a */
#define FIRN_VALUE_SYMBOL 2    /* found at run time: set by a reference step's shape function, a LIST or a BIND step */
#define FIRN_VALUE_ADD 3       /* a, b are values from here on */
#define FIRN_VALUE_SUB 4
#define FIRN_VALUE_MUL 5
#define FIRN_VALUE_FLOOR_DIV 6
#define FIRN_VALUE_CEIL_DIV 7
#define FIRN_VALUE_MOD 8 /* sign of the divisor */
#define FIRN_VALUE_MIN 9
#define FIRN_VALUE_MAX 10

typedef struct firn_value {
  int32_t op;
  int32_t late; /* 1: depends on a SYMBOL, so it is known only while running */
  int64_t a;
  int64_t b;
} firn_value;
static_assert(sizeof(firn_value) == 24, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* --- buffers ------------------------------------------------------------------------------------------------------ */

#define FIRN_BUFFER_INPUT 0  /* the caller's tensor, input `offset` */
#define FIRN_BUFFER_OUTPUT 1 /* the caller's tensor or, if the caller gives none, the session's, output `offset` */
#define FIRN_BUFFER_WEIGHT 2 /* read-only, at `offset` in the weights */
#define FIRN_BUFFER_ARENA 3  /* in the arena; its size does not depend on late values */
#define FIRN_BUFFER_LATE 4   /* allocated (and kept) by the session when a step is about to write it */
#define FIRN_BUFFER_ALIAS 5  /* the bytes of buffer `offset`, whole, with other dims (reshape) */

/* Buffers of another FIRN_FORM_ (reference.h) than TENSOR are lists of tensors in memory of the session: they have no dims,
 * are of kind INPUT, OUTPUT, LATE or ALIAS, and only REFERENCE and LIST steps use them. Their dtype is that of their
 * tensors, of a map that of its values, or FIRN_DTYPE_NONE where only running tells. */
typedef struct firn_buffer {
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  int32_t form;        /* FIRN_FORM_ */
  const int32_t *dims; /* `rank` values */
  int64_t offset;      /* see kinds. ARENA: byte offset if the model's arena is static, else -1 */
  int32_t first_step;  /* ARENA: steps [first_step, last_step] (table order) need the bytes, aliases included */
  int32_t last_step;
} firn_buffer;
static_assert(sizeof(firn_buffer) == 40, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* --- steps -------------------------------------------------------------------------------------------------------- */

#define FIRN_STEP_KERNEL 0    /* kernel(args, worker, workers) */
#define FIRN_STEP_REFERENCE 1 /* op->run; first op->infer where an output's dims are SYMBOL values, which it sets */
#define FIRN_STEP_COPY 2      /* bytes of buffers[0] to buffers[1] (same dtype and element count) */
#define FIRN_STEP_VALUES 3    /* stores dims[0..] as elements of buffers[0] (i64 or i32) */
#define FIRN_STEP_BIND 4      /* SYMBOL dims[2k] takes the present value of dims[2k+1], all pairs at once */
#define FIRN_STEP_IF 5        /* buffers[0] (bool): run [begin, middle) if true, else [middle, end) */
#define FIRN_STEP_LOOP 6      /* see firn_step.begin; buffers: trip count (i64, -1: none), condition (bool, in and out,
                                 -1: none), iteration number (i64, written) ; dims[0]: SYMBOL that receives the number of
                                 iterations done, or no dims */
#define FIRN_STEP_APPEND 7    /* buffers[0] is appended to buffers[1] (LATE), whose leading dimension grows by one; in a
                                 loop. dims[0]: the SYMBOL that is buffers[1]'s leading dimension */
#define FIRN_STEP_FAIL 8      /* stops the run with the message `name` */
#define FIRN_STEP_LIST 9      /* FIRN_LIST_ `operation` on lists; the last buffer is the result */

/* Operations of LIST steps, with their buffers. "list" is of a form other than TENSOR, "tensor" a tensor or UNRANKED.
 * Positions are scalars of i64 or i32, counted from the end where negative. */
#define FIRN_LIST_MAKE 0   /* tensors -> list of copies of them */
#define FIRN_LIST_NONE 1   /* -> optional without a value */
#define FIRN_LIST_COPY 2   /* list -> list; an optional that becomes none must have a value */
#define FIRN_LIST_MOVE 3   /* the same; the first list is empty afterwards */
#define FIRN_LIST_INSERT 4 /* list, tensor, position or -1 (at the end) -> list (in place if it is the first one's) */
#define FIRN_LIST_ERASE 5  /* list, position or -1 (the last) -> list (in place if it is the first one's) */
#define FIRN_LIST_AT 6     /* list, position or -1 (the only one) -> tensor, whose SYMBOL dims it sets */
#define FIRN_LIST_LENGTH 7 /* list -> i64 */
#define FIRN_LIST_HAS 8    /* list -> bool: whether an optional has a value */
#define FIRN_LIST_OPERATION_COUNT 9

typedef struct firn_step {
  int32_t kind;
  int32_t parallel;      /* KERNEL: 1: all workers; 0: worker 0 of 1 */
  firn_kernel kernel;    /* KERNEL */
  const firn_operator *op; /* REFERENCE */
  const firn_attribute *attributes; /* REFERENCE */
  const int32_t *buffers; /* inputs, then outputs; -1: absent */
  const int32_t *dims;    /* values */
  int32_t attribute_count;
  int32_t input_count;   /* of buffers: the rest are outputs */
  int32_t buffer_count;
  int32_t dim_count;
  int32_t begin;         /* IF, LOOP: nested steps are [begin, end) of the table, skipped by whoever runs the outer ones; */
  int32_t middle;        /* they follow their IF or LOOP directly: begin is its index + 1 */
  int32_t end;
  int32_t operation;     /* LIST: FIRN_LIST_ */
  int64_t scratch_bytes; /* per worker */
  const char *name;      /* source nodes, for profiles and messages */
  const char *kind_name; /* "map", "reduce", "contraction", ... for profiles */
  int32_t flops;         /* value: floating-point operations (a multiply-add is 2), or -1 */
  int32_t bytes;         /* value: bytes read and written once, or -1 */
} firn_step;
static_assert(sizeof(firn_step) == 112, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* --- interface of the model --------------------------------------------------------------------------------------- */

typedef struct firn_port {
  const char *name;
  const int32_t *dims;        /* values; of an input: INPUT_DIM for a symbolic dimension, else CONSTANT */
  const char *const *symbols; /* per dim: its name for messages ("batch"), or NULL for a fixed one */
  int32_t dtype;
  int32_t rank;
  int32_t buffer;
  int32_t optional;       /* input: 1: may be left out, then default_offset (bytes into the weights) holds it */
  int64_t default_offset;
} firn_port;
static_assert(sizeof(firn_port) == 48, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* Two input dimensions that must agree, or one that must equal a constant or lie in a range, is a constraint:
 * lower <= value <= upper. Equality of two values is lower = 0, upper = 0 on their difference. */
typedef struct firn_constraint {
  int32_t value;
  int32_t reserved;
  int64_t lower;
  int64_t upper;
  const char *message; /* "dimension 0 of input 'b' must equal dimension 0 of input 'a' (batch)" */
} firn_constraint;
static_assert(sizeof(firn_constraint) == 32, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

typedef struct firn_pair {
  const char *key;
  const char *value;
} firn_pair;

/* One tensor of the proof: concrete dims, bytes at `offset` in the weights. */
typedef struct firn_proof_tensor {
  firn_view view; /* data is NULL */
  int64_t offset;
} firn_proof_tensor;
static_assert(sizeof(firn_proof_tensor) == 120, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

typedef struct firn_model_desc {
  uint32_t struct_size;
  uint32_t abi_version;
  int32_t input_count;
  int32_t output_count;
  int32_t value_count;
  int32_t buffer_count;
  int32_t step_count;
  int32_t constraint_count;
  int32_t metadata_count;
  int32_t provenance_count;
  int32_t proof_count;      /* 0 or input_count + output_count: inputs, then outputs */
  int32_t max_threads;      /* of the compiler's --threads: a hint for sessions that ask for 0; 0: none */
  const firn_port *inputs;
  const firn_port *outputs;
  const firn_value *values;
  const firn_buffer *buffers;
  const firn_step *steps;
  const firn_constraint *constraints;
  const firn_pair *metadata;   /* metadata_props of the source */
  const firn_pair *provenance; /* source_sha256, compiler, options, passes, target */
  const firn_proof_tensor *proof;
  int64_t arena_bytes; /* if static, else -1: the executor places the buffers for given dims */
  double proof_rtol;
  double proof_atol;
  const char *name;
} firn_model_desc;

#ifdef __cplusplus
}
#endif
#endif
