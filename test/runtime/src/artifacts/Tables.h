/* What the hand-written artifacts share. Each .c file here is the shared object of one artifact; the test appends
 * weights and footer. */
#ifndef FIRN_TEST_TABLES_H
#define FIRN_TEST_TABLES_H

#include "runtime/abi/model.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))
#define LIST(...)                                                                                                      \
  (const int32_t[]) { __VA_ARGS__ }
#define LENGTH(...) COUNT(((const int32_t[]){__VA_ARGS__}))

#define CONSTANT(number) {FIRN_VALUE_CONSTANT, 0, number, 0}
#define INPUT_DIM(input, dim) {FIRN_VALUE_INPUT_DIM, 0, input, dim}
#define SYMBOL() {FIRN_VALUE_SYMBOL, 1, 0, 0}

/* A buffer of one or more dims. */
#define BUFFER(kindOf, type, place, ...)                                                                               \
  {.kind = kindOf, .dtype = type, .rank = LENGTH(__VA_ARGS__), .dims = LIST(__VA_ARGS__), .offset = place}
#define SCALAR(kindOf, type, place) {.kind = kindOf, .dtype = type, .rank = 0, .dims = 0, .offset = place}
#define ARENA(type, first, last, ...)                                                                                  \
  {.kind = FIRN_BUFFER_ARENA,                                                                                          \
   .dtype = type,                                                                                                      \
   .rank = LENGTH(__VA_ARGS__),                                                                                        \
   .dims = LIST(__VA_ARGS__),                                                                                          \
   .offset = -1,                                                                                                       \
   .first_step = first,                                                                                                \
   .last_step = last}

#define STEP(kindOf, title) .kind = kindOf, .name = title, .kind_name = "test", .flops = -1, .bytes = -1
#define BUFFERS(inputs, ...) .buffers = LIST(__VA_ARGS__), .input_count = inputs, .buffer_count = LENGTH(__VA_ARGS__)
#define DIMS(...) .dims = LIST(__VA_ARGS__), .dim_count = LENGTH(__VA_ARGS__)
#define KERNEL(function, title) STEP(FIRN_STEP_KERNEL, title), .kernel = function
#define COSTED_KERNEL(function, title, operations)                                                                     \
  .kind = FIRN_STEP_KERNEL, .name = title, .kind_name = "map", .flops = operations, .bytes = -1, .kernel = function

#define EXPORT __attribute__((visibility("default")))

#endif
