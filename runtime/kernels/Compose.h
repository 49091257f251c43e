// Operators that are compositions of others. One function says what an operator means in terms of ai.onnx; it serves
// three times: it infers types, it computes (this is the operator's reference kernel), and the compiler spells the
// operator out with it, so that code is generated.
//
//   void biasGelu(Composer &c) { c.result(0, c.op(firn_op_ai_onnx_Gelu, {c.op(firn_op_ai_onnx_Add, {c.in(0),
//   c.in(1)})})); } FIRN_COMPOSITE(com_microsoft, BiasGelu, "com.microsoft::BiasGelu", biasGelu)
//
// Sizes may be unknown while the compiler composes (dims of -1): a composition looks at ranks, dtypes, attributes and
// at sizes that weights fix, and leaves others to Reshape's 0 and -1 or to Shape.
#ifndef FIRN_KERNELS_COMPOSE_H
#define FIRN_KERNELS_COMPOSE_H

#include <initializer_list>

#include "runtime/kernels/Require.h"

namespace firn::kernels {

/// Attributes of one operation; the data of lists and texts is borrowed.
class AttributeList {
public:
  AttributeList() = default;
  AttributeList(const AttributeList &) = delete; // entries point into it
  AttributeList &operator=(const AttributeList &) = delete;
  AttributeList &integer(const char *name, int64_t value);
  AttributeList &real(const char *name, float value);
  AttributeList &text(const char *name, const char *value);
  AttributeList &integers(const char *name, const int64_t *values, int64_t count);
  AttributeList &integers(const char *name, std::initializer_list<int64_t> values);
  AttributeList &strings(const char *name, const firn_string *values, int64_t count);
  /// Those of the call's attributes that it has.
  AttributeList &taken(const firn_call *call, std::initializer_list<const char *> names);

  firn_attribute list[16];
  int32_t count = 0;

private:
  firn_attribute *add(const char *name, int64_t kind, int64_t length);
  int64_t numbers[64];
  float reals[16];
  int32_t numberCount = 0;
};

class Composer {
public:
  /// A value of the composition; `absent` where an optional one is left out.
  using Value = int32_t;
  static constexpr Value absent = -1;
  static constexpr int32_t mostValues = 160;

  explicit Composer(firn_call *composed);

  firn_call *call;
  int32_t status = FIRN_CALL_OK;

  // --- what is composed
  Value in(int32_t i) const { return input(call, i) ? i : absent; }
  bool wants(int32_t i) { return output(call, i) != nullptr; }
  /// Fails, so that nothing more happens, unless input `i` is there, of one of `dtypes`, and its rank in [low, high].
  Value need(int32_t i, const char *name, uint32_t dtypes, int32_t low = 0, int32_t high = FIRN_MAX_RANK);
  void refuse(int32_t why, const char *message);
  /// Types of inputs and constants are known; those of other values only while computing or inferring.
  const firn_view &type(Value value) const { return values[value < 0 ? 0 : value]; }
  int32_t dtype(Value value) const { return type(value).dtype; }
  int32_t rank(Value value) const { return type(value).rank; }
  bool isFailed() const { return status != FIRN_CALL_OK; }

  // --- what it is composed of
  Value op(const firn_operator &called, std::initializer_list<Value> inputs, const AttributeList &attributes = {}) {
    Value made;
    op(called, inputs.begin(), int32_t(inputs.size()), attributes, &made, 1);
    return made;
  }
  void op(const firn_operator &called, const Value *inputs, int32_t inputCount, const AttributeList &attributes,
          Value *made, int32_t count);
  Value given(const firn_view &constant) { return makeConstant ? makeConstant(*this, constant) : define(constant); }
  Value integers(std::initializer_list<int64_t> list);
  Value scalar(int32_t dtype, double number);
  /// A constant whose bytes are all `byte`.
  Value filled(int32_t dtype, std::initializer_list<int64_t> dims, uint8_t byte);
  /// A constant's bytes as elements of another type; fails to compose where the value is not constant.
  Value reinterpret(Value value, int32_t dtype, std::initializer_list<int64_t> dims);
  void result(int32_t i, Value value);

  // Shorthands.
  Value cast(Value value, int32_t dtype);
  Value reshape(Value value, std::initializer_list<int64_t> dims);
  Value transpose(Value value, std::initializer_list<int64_t> order);

protected:
  /// Adds an operation or a constant; the default ones infer or compute.
  Value (*makeConstant)(Composer &, const firn_view &) = nullptr;
  void (*makeOperation)(Composer &, const firn_operator &, const Value *, int32_t, const AttributeList &, Value *,
                        int32_t) = nullptr;
  Value (*makeReinterpreted)(Composer &, Value, const firn_view &) = nullptr;
  void *backend = nullptr; // of whoever set these

  /// The next value, with this type and perhaps data.
  Value define(const firn_view &view);

  firn_view values[mostValues] = {};
  int32_t valueCount = 0;
  Value results[16];

  friend int32_t inferComposite(firn_call *, void (*)(Composer &));
  friend int32_t runComposite(firn_call *, void (*)(Composer &));

private:
  void execute(const firn_operator &called, const Value *inputs, int32_t inputCount, const AttributeList &attributes,
               Value *made, int32_t count);
  bool hasMemory(firn_view &view, int64_t bytes);
  bool computes = false; // else what can be computed
  bool waits = false;    // a type waits for data
};

using Composition = void (*)(Composer &);

int32_t inferComposite(firn_call *call, Composition compose);
int32_t runComposite(firn_call *call, Composition compose);
template <Composition compose> int32_t inferComposite(firn_call *call) { return inferComposite(call, compose); }
template <Composition compose> int32_t runComposite(firn_call *call) { return runComposite(call, compose); }

/// What the compiler's table of compositions holds.
struct Composite {
  const char *name;
  Composition compose;
};

/// Registers an operator with its composition. CMake collects these lines as it does FIRN_OPERATOR's.
#define FIRN_COMPOSITE(domain, Name, qualified, compose)                                                               \
  extern "C" __attribute__((visibility("hidden"))) const firn::kernels::Composite firn_composite_##domain##_##Name;    \
  const firn::kernels::Composite firn_composite_##domain##_##Name = {qualified, compose};                              \
  FIRN_OPERATOR(domain, Name, qualified, inferComposite<compose>, runComposite<compose>)

/// How the compiler spells out an operator that has a reference kernel of its own.
#define FIRN_EXPANSION(domain, Name, qualified, compose)                                                               \
  extern "C" __attribute__((visibility("hidden"))) const firn::kernels::Composite firn_composite_##domain##_##Name;    \
  const firn::kernels::Composite firn_composite_##domain##_##Name = {qualified, compose};

/// Declares the operators that a composition calls.
#define FIRN_USES(Name) extern "C" __attribute__((visibility("hidden"))) const firn_operator firn_op_ai_onnx_##Name;

} // namespace firn::kernels
#endif
