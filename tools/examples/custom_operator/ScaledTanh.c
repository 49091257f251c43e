/* A custom operator from the first line to the last: com.example::ScaledTanh, y = scale * tanh(alpha * x).
 *
 *   cc -O2 -fPIC -I<firn>/include/firn -c ScaledTanh.c && ar rcs libscaled_tanh.a ScaledTanh.o
 *   firnc model.onnx -o model.firn --ops libscaled_tanh.a
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/abi/custom.h"

/* The value of a float attribute. Its default comes from the table below, so it is always there. */
static float attribute(const firn_call *call, const char *name) {
  for (int32_t i = 0; i < call->attribute_count; ++i)
    if (strcmp(call->attributes[i].name, name) == 0)
      return *(const float *)call->attributes[i].data;
  return 0;
}

static int64_t element_count(const firn_view *view) {
  int64_t count = 1;
  for (int32_t i = 0; i < view->rank; ++i)
    count *= view->dims[i];
  return count;
}

/* The shape function: what the output is for these inputs, or what is wrong with them. No data is read. */
static int32_t infer(firn_call *call) {
  const firn_view *x = &call->inputs[0], *scale = &call->inputs[1];
  if (x->dtype != FIRN_F32 || scale->dtype != FIRN_F32) {
    snprintf(call->message, (size_t)call->message_capacity,
             "x and scale must be float32: expected element types %d and %d, found %d and %d", FIRN_F32, FIRN_F32,
             x->dtype, scale->dtype);
    return FIRN_CALL_INVALID;
  }
  if (x->rank < 1 || scale->rank != 1 || scale->dims[0] != x->dims[x->rank - 1]) {
    snprintf(call->message, (size_t)call->message_capacity,
             "scale must have one value for each element of the last axis: expected [%lld], found %lld axes of %lld",
             x->rank < 1 ? 0LL : (long long)x->dims[x->rank - 1], (long long)scale->rank,
             scale->rank < 1 ? 0LL : (long long)scale->dims[0]);
    return FIRN_CALL_INVALID;
  }
  call->outputs[0].dtype = x->dtype;
  call->outputs[0].rank = x->rank;
  memcpy(call->outputs[0].dims, x->dims, sizeof x->dims);
  return FIRN_CALL_OK;
}

/* The kernel: the output has the type that infer gave it, and memory. */
static int32_t run(firn_call *call) {
  const float *x = (const float *)call->inputs[0].data, *scale = (const float *)call->inputs[1].data;
  float *y = (float *)call->outputs[0].data, alpha = attribute(call, "alpha");
  int64_t count = element_count(&call->inputs[0]), row = call->inputs[1].dims[0];
  for (int64_t i = 0; i < count; ++i)
    y[i] = scale[i % row] * tanhf(alpha * x[i]);
  return FIRN_CALL_OK;
}

FIRN_CUSTOM_OPERATOR(com_example, ScaledTanh, "com.example::ScaledTanh", infer, run)

/* The schema. */
static const float default_alpha = 1;
static const firn_custom_value inputs[] = {{"x", FIRN_CUSTOM_REQUIRED}, {"scale", FIRN_CUSTOM_REQUIRED}};
static const firn_custom_value outputs[] = {{"y", FIRN_CUSTOM_REQUIRED}};
static const firn_custom_attribute attributes[] = {{{"alpha", &default_alpha, 1, FIRN_ATTR_FLOAT}, 0}};
static const firn_custom_operator operators[] = {
    {&firn_op_com_example_ScaledTanh, 1, 0, inputs, outputs, attributes, 2, 1, 1, 0}};
FIRN_CUSTOM_LIBRARY(operators, 1)
