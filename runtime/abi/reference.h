/* The interface of reference kernels (runtime/kernels): what one operator computes, on concrete tensors.
 *
 * The compiler calls it to fold constants, tests compare generated code with it, and an artifact links the kernels
 * of operators that have no generated code. So a kernel is freestanding: libc's memory functions and libm, no
 * C++ runtime, no globals, no allocation but firn_call.scratch.
 *
 * Every operator is one constant `firn_op_<domain with _ for .>_<Name>` of type firn_operator, for example
 * firn_op_ai_onnx_Conv. Inputs, outputs and attributes are those of the newest version of ONNX's specification, by
 * position and by name; the importer has upgraded older forms.
 */
#ifndef FIRN_ABI_REFERENCE_H
#define FIRN_ABI_REFERENCE_H

#include <assert.h>
#include <stdint.h>

#include "runtime/abi/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_MAX_RANK 12

/* A dense row-major tensor. An absent optional input or output has rank -1.
 * With dtype FIRN_LIST it is a list of tensors, which firn_call.item and firn_call.append read and write: rank is 1 and
 * dims[0] the number of items. A sequence is the list of its tensors, an optional has one item or none, a map is a list
 * of two (keys, values), a sequence of maps has two items for each map. What it holds stands behind its dims[0], at
 * FIRN_LIST_FORM and so on; `infer` says so of its list outputs. */
typedef struct firn_view {
  void *data; /* NULL while only the type is known (firn_operator.infer), or for zero elements */
  int64_t dims[FIRN_MAX_RANK];
  int32_t dtype;
  int32_t rank;
} firn_view;
static_assert(sizeof(firn_view) == 112, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

/* What a value is. */
#define FIRN_FORM_TENSOR 0
#define FIRN_FORM_UNRANKED 1          /* one tensor, whose rank only running tells */
#define FIRN_FORM_SEQUENCE 2
#define FIRN_FORM_OPTIONAL 3          /* of a tensor */
#define FIRN_FORM_OPTIONAL_SEQUENCE 4
#define FIRN_FORM_MAP 5               /* two tensors: keys and values */
#define FIRN_FORM_SEQUENCE_OF_MAPS 6  /* keys and values of each map in turn */
#define FIRN_FORM_COUNT 7

#define FIRN_LIST_FORM 1  /* dims[1]: FIRN_FORM_ */
#define FIRN_LIST_DTYPE 2 /* dims[2]: of its tensors, of a map its values; FIRN_DTYPE_NONE: unknown */
#define FIRN_LIST_KEY 3   /* dims[3]: of a map's keys; FIRN_DTYPE_NONE: unknown */
#define FIRN_LIST_RANK 4  /* dims[4]: of its tensors where all have one, else -1 */

/* One string element; not terminated. */
typedef struct firn_string {
  const char *data;
  int64_t length;
} firn_string;

#define FIRN_ATTR_INT 1     /* data: one int64_t */
#define FIRN_ATTR_FLOAT 2   /* data: one float */
#define FIRN_ATTR_STRING 3  /* data: `count` bytes */
#define FIRN_ATTR_TENSOR 4  /* data: one firn_view */
#define FIRN_ATTR_INTS 5    /* data: `count` int64_t */
#define FIRN_ATTR_FLOATS 6  /* data: `count` float */
#define FIRN_ATTR_STRINGS 7 /* data: `count` firn_string */

typedef struct firn_attribute {
  const char *name;
  const void *data;
  int64_t count; /* 1 for scalars */
  int64_t kind;  /* FIRN_ATTR_ */
} firn_attribute;
static_assert(sizeof(firn_attribute) == 32, "the artifact ABI fixes this layout: bump FIRN_ABI_VERSION");

#define FIRN_CALL_OK 0
#define FIRN_CALL_INVALID 1     /* inputs or attributes break the specification; message says which and how */
#define FIRN_CALL_UNSUPPORTED 2 /* legal, but this kernel lacks it; message says what */
#define FIRN_CALL_NEEDS_VALUE 3 /* infer: the shape depends on the data of input `needed`, which is NULL */
#define FIRN_CALL_NO_MEMORY 4   /* scratch refused */

typedef struct firn_call {
  const firn_view *inputs;
  firn_view *outputs; /* infer: written but for data. run: complete; an output nobody wants has rank -1 */
  const firn_attribute *attributes;
  int32_t input_count;
  int32_t output_count;
  int32_t attribute_count;
  int32_t needed; /* infer, with FIRN_CALL_NEEDS_VALUE: that input's position */
  char *message;  /* terminated text when the status is not OK; never NULL */
  int64_t message_capacity;
  /* Memory of at least `bytes` bytes, aligned to 64, valid until the call returns; NULL when there is none. The bytes of
   * output strings may lie there: a caller who has such an output keeps the memory as long as that. */
  void *(*scratch)(struct firn_call *call, int64_t bytes);
  void *context;       /* of whoever calls */
  uint64_t *random;    /* state for Random*, Bernoulli and Multinomial without a seed; NULL: use 0 */
  /* Item `i` of a list; NULL past the last one. */
  const firn_view *(*item)(struct firn_call *call, const firn_view *list, int64_t i);
  /* A new last item of output `list`, whose data the kernel writes; NULL when there is no memory for it. */
  const firn_view *(*append)(struct firn_call *call, const firn_view *list, int32_t dtype, const int64_t *dims,
                             int32_t rank);
} firn_call;

/* infer: output dtypes and dims from input types, attributes and, where the specification says so, input data. With
 * FIRN_CALL_NEEDS_VALUE it has still written what is known of the outputs; a dimension that waits for data is -1.
 * run: computes; outputs have the dims that infer gave. Outputs do not overlap inputs. */
typedef struct firn_operator {
  const char *name; /* "ai.onnx::Conv" */
  int32_t (*infer)(firn_call *call);
  int32_t (*run)(firn_call *call);
} firn_operator;

#ifdef __cplusplus
}
#endif
#endif
