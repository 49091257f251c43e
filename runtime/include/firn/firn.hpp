// Firn's executor for C++17: owners of what firn.h hands out. Header only; errors are exceptions of type firn::Error.
//
//   firn::Model model("model.firn");
//   firn::Session session(model);
//   firn::Results results = session.run({firn::tensor(pixels.data(), {1, 3, 224, 224})});
//   const float *scores = results.data<float>(0);
#ifndef FIRN_FIRN_HPP
#define FIRN_FIRN_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "firn.h"

namespace firn {

/// A call that failed: what() is the executor's message.
class Error : public std::runtime_error {
public:
  Error(firn_status reason, const std::string &message) : std::runtime_error(message), status_(reason) {}
  firn_status status() const { return status_; }

private:
  firn_status status_;
};

namespace detail {
struct Message : firn_error {
  Message() : firn_error{} { struct_size = sizeof(firn_error); }
  void check(firn_status result) const {
    if (result != FIRN_OK)
      throw Error(result, message[0] ? message : firn_status_name(result));
  }
};

template <typename T> constexpr int32_t dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return FIRN_F32;
  else if constexpr (std::is_same_v<T, double>)
    return FIRN_F64;
  else if constexpr (std::is_same_v<T, bool>)
    return FIRN_BOOL;
  else if constexpr (std::is_same_v<T, firn_text>)
    return FIRN_STRING;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return std::is_signed_v<T> ? FIRN_I8 : FIRN_U8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
    return std::is_signed_v<T> ? FIRN_I16 : FIRN_U16;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return std::is_signed_v<T> ? FIRN_I32 : FIRN_U32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return std::is_signed_v<T> ? FIRN_I64 : FIRN_U64;
  else
    static_assert(!sizeof(T), "no element type of Firn; use the form of tensor() that takes a dtype");
}
} // namespace detail

/// A tensor of `dtype` at `data`, which is borrowed.
inline firn_tensor tensor(const void *data, int32_t dtype, const std::vector<int64_t> &dims) {
  if (dims.size() > FIRN_TENSOR_MAX_RANK)
    throw Error(FIRN_BAD_SHAPE, "a tensor has at most 12 dimensions");
  firn_tensor result{};
  result.data = const_cast<void *>(data); // inputs are only read
  result.dtype = dtype;
  result.rank = int32_t(dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    result.dims[d] = dims[d];
  result.bytes = firn_tensor_bytes(&result);
  return result;
}

/// A tensor whose element type is T's.
template <typename T> firn_tensor tensor(const T *data, const std::vector<int64_t> &dims) {
  return tensor(static_cast<const void *>(data), detail::dtypeOf<T>(), dims);
}

/// An optional input that is left out, or an optional without a value.
inline firn_tensor absent() { return firn_tensor{}; }

/// A sequence of the tensors, which must outlive it; of two, keys and values, it is a map.
inline firn_tensor list(const std::vector<firn_tensor> &tensors) {
  return tensor(static_cast<const void *>(tensors.data()), FIRN_LIST, {int64_t(tensors.size())});
}

/// An open model; may be shared by threads.
class Model {
public:
  explicit Model(const std::string &path) {
    detail::Message error;
    error.check(firn_model_open(path.c_str(), &model, &error));
  }
  Model(const void *data, size_t bytes) {
    detail::Message error;
    error.check(firn_model_open_memory(data, bytes, &model, &error));
  }
  Model(Model &&other) noexcept : model(std::exchange(other.model, nullptr)) {}
  Model &operator=(Model &&other) noexcept {
    std::swap(model, other.model);
    return *this;
  }
  ~Model() { firn_model_close(model); }

  const firn_model *get() const { return model; }
  int32_t inputCount() const { return firn_model_input_count(model); }
  int32_t outputCount() const { return firn_model_output_count(model); }
  firn_port_info input(int32_t index) const { return port(firn_model_input, index); }
  firn_port_info output(int32_t index) const { return port(firn_model_output, index); }
  /// -1 if there is none of that name.
  int32_t findInput(const std::string &name) const { return firn_model_find_input(model, name.c_str()); }
  int32_t findOutput(const std::string &name) const { return firn_model_find_output(model, name.c_str()); }

  firn_model_info describe() const {
    firn_model_info info{};
    info.struct_size = sizeof info;
    detail::Message().check(firn_model_describe(model, &info));
    return info;
  }

  /// What a session needs for inputs of these dims; no inputs for a model without dynamic dimensions.
  firn_memory memory(const std::vector<firn_tensor> &inputs = {}) const {
    firn_memory result{};
    result.struct_size = sizeof result;
    detail::Message error;
    if (!inputs.empty() && inputs.size() != size_t(inputCount()))
      throw Error(FIRN_BAD_ARGUMENT, "one tensor per input is needed");
    error.check(firn_model_memory(model, inputs.empty() ? nullptr : inputs.data(), &result, nullptr, &error));
    return result;
  }

  /// Throws if the file is damaged or computes something else on this machine.
  void verify(uint32_t what = FIRN_VERIFY_DIGEST | FIRN_VERIFY_PROOF, int32_t threads = 0) const {
    detail::Message error;
    error.check(firn_model_verify(model, what, threads, &error));
  }

private:
  template <typename Function> firn_port_info port(Function describePort, int32_t index) const {
    firn_port_info info{};
    info.struct_size = sizeof info;
    detail::Message().check(describePort(model, index, &info));
    return info;
  }
  firn_model *model = nullptr;
};

/// Worker threads that sessions may share.
class Pool {
public:
  explicit Pool(int32_t threads = 0, int32_t spinMicros = 0, bool pin = false) {
    firn_pool_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.spin_micros = spinMicros;
    options.pin = pin;
    detail::Message error;
    error.check(firn_pool_create(&options, &pool, &error));
  }
  Pool(Pool &&other) noexcept : pool(std::exchange(other.pool, nullptr)) {}
  Pool &operator=(Pool &&other) noexcept {
    std::swap(pool, other.pool);
    return *this;
  }
  ~Pool() { firn_pool_destroy(pool); }
  firn_pool *get() const { return pool; }
  int32_t threads() const { return firn_pool_threads(pool); }

private:
  firn_pool *pool = nullptr;
};

/// Outputs of a run, in memory of the session: valid until its next run.
class Results {
public:
  explicit Results(std::vector<firn_tensor> outputs) : tensors(std::move(outputs)) {}
  size_t size() const { return tensors.size(); }
  const firn_tensor &operator[](size_t index) const { return tensors.at(index); }
  std::vector<int64_t> dims(size_t index) const {
    const firn_tensor &output = tensors.at(index);
    return std::vector<int64_t>(output.dims, output.dims + output.rank);
  }
  /// The tensors of an output that is a sequence or a map.
  Results items(size_t index) const {
    if (tensors.at(index).dtype != FIRN_LIST)
      throw Error(FIRN_BAD_ARGUMENT, "the output is no list of tensors");
    const auto *first = static_cast<const firn_tensor *>(tensors[index].data);
    return Results(std::vector<firn_tensor>(first, first + tensors[index].dims[0]));
  }
  /// The elements of an output, which must be of type T.
  template <typename T> const T *data(size_t index) const {
    if (tensors.at(index).dtype != detail::dtypeOf<T>())
      throw Error(FIRN_BAD_ARGUMENT, std::string("the output's elements are ") +
                                         firn_dtype_name(tensors.at(index).dtype) + ", not " +
                                         firn_dtype_name(detail::dtypeOf<T>()));
    return static_cast<const T *>(tensors[index].data);
  }

private:
  std::vector<firn_tensor> tensors;
};

/// Runs a model, one run at a time. Must end before its model and its pool.
class Session {
public:
  explicit Session(const Model &model, int32_t threads = 0) {
    firn_session_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    create(model, options);
  }
  Session(const Model &model, const Pool &pool) {
    firn_session_options options{};
    options.struct_size = sizeof options;
    options.pool = pool.get();
    create(model, options);
  }
  Session(const Model &model, const firn_session_options &options) { create(model, options); }
  Session(Session &&other) noexcept
      : session(std::exchange(other.session, nullptr)), inputCount(other.inputCount), outputCount(other.outputCount) {}
  Session &operator=(Session &&other) noexcept {
    std::swap(session, other.session);
    std::swap(inputCount, other.inputCount);
    std::swap(outputCount, other.outputCount);
    return *this;
  }
  ~Session() { firn_session_destroy(session); }

  firn_session *get() const { return session; }
  int32_t threads() const { return firn_session_threads(session); }

  /// From now on an output of each run is an input of the next: see firn_session_bind_state.
  void bindState(int32_t output, int32_t input) {
    firn_status status = firn_session_bind_state(session, output, input);
    if (status != FIRN_OK)
      throw Error(status, status == FIRN_BUSY ? "the session is running" : firn_session_message(session));
  }

  /// Runs into memory of the session.
  Results run(const std::vector<firn_tensor> &inputs) {
    std::vector<firn_tensor> outputs(static_cast<size_t>(outputCount));
    run(inputs, outputs);
    return Results(std::move(outputs));
  }
  /// Runs into the caller's memory where `outputs` have data.
  void run(const std::vector<firn_tensor> &inputs, std::vector<firn_tensor> &outputs) {
    if (inputs.size() != size_t(inputCount) || outputs.size() != size_t(outputCount))
      throw Error(FIRN_BAD_ARGUMENT, "the model has " + std::to_string(inputCount) + " inputs and " +
                                         std::to_string(outputCount) + " outputs");
    firn_status status = firn_session_run(session, inputs.data(), outputs.data());
    if (status != FIRN_OK)
      throw Error(status, status == FIRN_BUSY ? "the session is running" : firn_session_message(session));
  }

private:
  void create(const Model &model, const firn_session_options &options) {
    detail::Message error;
    error.check(firn_session_create(model.get(), &options, &session, &error));
    inputCount = model.inputCount();
    outputCount = model.outputCount();
  }
  firn_session *session = nullptr;
  int32_t inputCount = 0;
  int32_t outputCount = 0;
};

} // namespace firn
#endif
