/* Operators of your own: what a library says of itself to `firnc --ops`, `firn-opt --ops` and `firn-mlir-opt --ops`.
 *
 * An operator is a schema (below), a shape function and a kernel (firn_operator in reference.h). The compiler calls the
 * shape function and, to fold constants, the kernel; a compiled model contains the code of the kernels that it uses, from a
 * static library. docs/custom-operators.md has a complete example.
 */
#ifndef FIRN_ABI_CUSTOM_H
#define FIRN_ABI_CUSTOM_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_CUSTOM_VERSION 1
#define FIRN_CUSTOM_SYMBOL "firn_custom_operators"

/* Kinds of inputs and outputs. */
#define FIRN_CUSTOM_REQUIRED 0
#define FIRN_CUSTOM_OPTIONAL 1 /* may be left out: its firn_view has rank -1 then */
#define FIRN_CUSTOM_VARIADIC 2 /* the last one only: one or more */

typedef struct firn_custom_value {
  const char *name; /* for messages */
  int64_t kind;     /* FIRN_CUSTOM_ */
} firn_custom_value;
static_assert(sizeof(firn_custom_value) == 16, "libraries fix this layout: bump FIRN_CUSTOM_VERSION");

typedef struct firn_custom_attribute {
  firn_attribute attribute; /* name, kind and default; data NULL: no default, the kernel does not see it where a node lacks it */
  int64_t required;         /* 1: a node that lacks it is an error */
} firn_custom_attribute;
static_assert(sizeof(firn_custom_attribute) == 40, "libraries fix this layout: bump FIRN_CUSTOM_VERSION");

/* The kernel has state or is random: calls are neither folded nor merged. */
#define FIRN_CUSTOM_IMPURE 1

typedef struct firn_custom_operator {
  const firn_operator *op; /* made by FIRN_CUSTOM_OPERATOR */
  int64_t since_version;   /* of the domain: files must import this version or a newer one */
  int64_t flags;           /* FIRN_CUSTOM_IMPURE or 0 */
  const firn_custom_value *inputs;
  const firn_custom_value *outputs;
  const firn_custom_attribute *attributes;
  int32_t input_count;
  int32_t output_count;
  int32_t attribute_count;
  int32_t reserved;
} firn_custom_operator;
static_assert(sizeof(firn_custom_operator) == 64, "libraries fix this layout: bump FIRN_CUSTOM_VERSION");

typedef struct firn_custom_library {
  uint32_t version; /* FIRN_CUSTOM_VERSION */
  uint32_t operator_count;
  const firn_custom_operator *operators;
} firn_custom_library;
static_assert(sizeof(firn_custom_library) == 16, "libraries fix this layout: bump FIRN_CUSTOM_VERSION");

#ifdef __cplusplus
#define FIRN_CUSTOM_EXPORT extern "C" __attribute__((visibility("default")))
}
#else
#define FIRN_CUSTOM_EXPORT extern __attribute__((visibility("default")))
#endif

/* Defines the operator firn_op_<domain>_<Name>; `domain` has underscores for dots:
 *   FIRN_CUSTOM_OPERATOR(com_example, Scale, "com.example::Scale", inferScale, runScale) */
#define FIRN_CUSTOM_OPERATOR(domain, Name, qualified, inferFn, runFn)                                                  \
  FIRN_CUSTOM_EXPORT const firn_operator firn_op_##domain##_##Name;                                                    \
  const firn_operator firn_op_##domain##_##Name = {qualified, inferFn, runFn};

/* Defines what a library says of itself, once: FIRN_CUSTOM_LIBRARY(operators, 2), an array of firn_custom_operator. */
#define FIRN_CUSTOM_LIBRARY(operators, count)                                                                          \
  FIRN_CUSTOM_EXPORT const firn_custom_library firn_custom_operators;                                                  \
  const firn_custom_library firn_custom_operators = {FIRN_CUSTOM_VERSION, count, operators};

#endif
