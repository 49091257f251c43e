// Calls a reference kernel on small tensors: infer, memory for the outputs, run. Values pass as doubles whatever the
// dtype.
#ifndef FIRN_TEST_RUNTIME_KERNELS_KERNELCALL_H
#define FIRN_TEST_RUNTIME_KERNELS_KERNELCALL_H

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Table.h"

namespace firn::kernels {

class KernelCall {
public:
  using Dims = std::vector<int64_t>;
  using Values = std::vector<double>;

  explicit KernelCall(const char *operatorName) : entry(find(std::string("ai.onnx::") + operatorName)) {
    REQUIRE(entry);
    call.message = text;
    call.message_capacity = sizeof text;
    call.context = this;
    call.scratch = [](firn_call *self, int64_t size) { return static_cast<KernelCall *>(self->context)->memory(size); };
  }

  /// An input; fewer values than elements repeat.
  KernelCall &input(int32_t dtype, const Dims &dims, const Values &values) {
    firn_view view = typed(dtype, dims);
    view.data = memory(firn_dtype_bytes(dtype, elementCount(view)));
    for (int64_t i = 0; i < elementCount(view); ++i)
      setDouble(view, i, values[size_t(i) % values.size()]);
    inputs.push_back(view);
    return *this;
  }
  KernelCall &input(const Dims &dims, const Values &values) { return input(FIRN_F32, dims, values); }
  KernelCall &absent() {
    inputs.push_back(firn_view());
    inputs.back().rank = -1;
    return *this;
  }
  /// An input whose data nobody knows yet.
  KernelCall &typeOnly(int32_t dtype, const Dims &dims) {
    inputs.push_back(typed(dtype, dims));
    return *this;
  }

  KernelCall &attribute(const char *name, int64_t value) {
    return addAttribute(name, FIRN_ATTR_INT, &value, sizeof value, 1);
  }
  KernelCall &attribute(const char *name, float value) {
    return addAttribute(name, FIRN_ATTR_FLOAT, &value, sizeof value, 1);
  }
  KernelCall &attribute(const char *name, const char *value) {
    return addAttribute(name, FIRN_ATTR_STRING, value, strlen(value), int64_t(strlen(value)));
  }
  KernelCall &attribute(const char *name, const Dims &values) {
    return addAttribute(name, FIRN_ATTR_INTS, values.data(), values.size() * sizeof(int64_t), int64_t(values.size()));
  }
  KernelCall &attribute(const char *name, const std::vector<const char *> &values) {
    std::vector<firn_string> strings;
    for (const char *value : values)
      strings.push_back({value, int64_t(strlen(value))});
    return addAttribute(name, FIRN_ATTR_STRINGS, strings.data(), strings.size() * sizeof(firn_string),
                        int64_t(strings.size()));
  }

  /// Finds the types of `count` outputs.
  int32_t infer(int32_t count = 1) {
    outputs.assign(size_t(count), firn_view());
    call.inputs = inputs.data();
    call.input_count = int32_t(inputs.size());
    call.outputs = outputs.data();
    call.output_count = count;
    call.attributes = attributes.data();
    call.attribute_count = int32_t(attributes.size());
    return entry->infer(&call);
  }

  int32_t run(int32_t count = 1) {
    if (int32_t status = infer(count))
      return status;
    for (firn_view &view : outputs)
      view.data = memory(firn_dtype_bytes(view.dtype, elementCount(view)));
    return entry->run(&call);
  }

  /// Runs and returns output 0, or nothing and a failed check.
  Values result(int32_t count = 1) {
    int32_t status = run(count);
    INFO(text);
    CHECK(status == FIRN_CALL_OK);
    return status == FIRN_CALL_OK ? values(0) : Values();
  }

  /// The message with which infer refuses, empty if it does not.
  std::string refusal(int32_t count = 1) { return infer(count) == FIRN_CALL_INVALID ? text : ""; }
  std::string runRefusal(int32_t count = 1) { return run(count) == FIRN_CALL_INVALID ? text : ""; }

  Values values(size_t i) const {
    Values result;
    for (int64_t k = 0; k < elementCount(outputs[i]); ++k)
      result.push_back(getDouble(outputs[i], k));
    return result;
  }
  Dims dims(size_t i) const { return Dims(outputs[i].dims, outputs[i].dims + outputs[i].rank); }
  int32_t dtype(size_t i) const { return outputs[i].dtype; }
  int32_t needed() const { return call.needed; }

private:
  static firn_view typed(int32_t dtype, const Dims &dims) {
    firn_view view = {};
    view.dtype = dtype;
    view.rank = int32_t(dims.size());
    std::copy(dims.begin(), dims.end(), view.dims);
    return view;
  }

  void *memory(int64_t size) {
    blocks.emplace_back(size_t(size) + 64);
    return blocks.back().data();
  }

  KernelCall &addAttribute(const char *name, int64_t kind, const void *data, size_t size, int64_t count) {
    void *copy = memory(int64_t(size));
    memcpy(copy, data, size);
    attributes.push_back({name, copy, count, kind});
    return *this;
  }

  const firn_operator *entry;
  firn_call call = {};
  char text[512] = "";
  std::vector<firn_view> inputs, outputs;
  std::vector<firn_attribute> attributes;
  std::deque<std::vector<char>> blocks;
};

/// Catch2 matches vectors exactly; this one within a relative tolerance.
inline bool isNear(const std::vector<double> &got, const std::vector<double> &want, double tolerance = 1e-6) {
  CAPTURE(got, want);
  bool isEqual = got.size() == want.size();
  for (size_t i = 0; isEqual && i < got.size(); ++i)
    isEqual = got[i] == Approx(want[i]).epsilon(tolerance).margin(tolerance);
  CHECK(isEqual);
  return isEqual;
}

} // namespace firn::kernels
#endif
