// Loops over elements: an operator gives its formula as a generic lambda over double, int64_t and uint64_t, and these
// functions bring every dtype to it. Floats narrower than double are rounded once, on the store.
#ifndef FIRN_KERNELS_ELEMENTWISE_H
#define FIRN_KERNELS_ELEMENTWISE_H

#include "runtime/kernels/Kernel.h"

namespace firn::kernels {

/// Elements that a loop converts at a time; small enough for the stack and the first cache.
constexpr int64_t blockSize = 256;

inline void load(const firn_view &view, int64_t first, int64_t stride, int64_t count, double *to) {
  loadDoubles(view, first, stride, count, to);
}
inline void load(const firn_view &view, int64_t first, int64_t stride, int64_t count, int64_t *to) {
  loadInts(view, first, stride, count, to);
}
inline void load(const firn_view &view, int64_t first, int64_t stride, int64_t count, uint64_t *to) {
  loadInts(view, first, stride, count, reinterpret_cast<int64_t *>(to));
}
inline void store(const firn_view &view, int64_t first, int64_t count, const double *from) {
  storeDoubles(view, first, count, from);
}
inline void store(const firn_view &view, int64_t first, int64_t count, const int64_t *from) {
  storeInts(view, first, count, from);
}
inline void store(const firn_view &view, int64_t first, int64_t count, const uint64_t *from) {
  storeInts(view, first, count, reinterpret_cast<const int64_t *>(from));
}
inline void store(const firn_view &view, int64_t first, int64_t count, const bool *from) {
  memcpy(static_cast<uint8_t *>(view.data) + first, from, size_t(count));
}

/// One operand of a BroadcastLoop: where its elements are for the current block, and how it moves.
struct Operand {
  const firn_view *view;
  int64_t offset; // element of the first result of the block
  int64_t step;   // from one result to the next
  int64_t strides[FIRN_MAX_RANK];
};

/// Walks over the elements of a result in blocks whose operands advance by constant steps. Axes that all operands cross
/// in one stride are merged first, so that blocks are long.
class BroadcastLoop {
public:
  /// `operands[0..count)` have their views set.
  BroadcastLoop(const firn_view &result, Operand *operands, int32_t count);

  /// Calls body(first, count) for each block: results [first, first + count), with count at most blockSize.
  template <typename Body> void run(Body body) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t done = 0; done < rowLength; done += blockSize) {
        int64_t count = rowLength - done < blockSize ? rowLength - done : blockSize;
        body(row * rowLength + done, count);
        for (int32_t j = 0; j < operandCount; ++j)
          operands[j].offset += operands[j].step * count;
      }
      advance();
    }
  }

private:
  void advance();

  Operand *operands;
  int32_t operandCount;
  int32_t rank = 0; // of the axes outside a row
  int64_t dims[FIRN_MAX_RANK];
  int64_t index[FIRN_MAX_RANK] = {};
  int64_t rows = 1;
  int64_t rowLength = 1;
};

/// y[i] = fn(x[i]) with elements as In; fn returns double, int64_t, uint64_t or bool.
template <typename In, typename Fn> void mapAs(const firn_view &x, const firn_view &y, Fn fn) {
  int64_t total = elementCount(x);
  In from[blockSize];
  decltype(fn(In())) to[blockSize];
  for (int64_t first = 0; first < total; first += blockSize) {
    int64_t count = total - first < blockSize ? total - first : blockSize;
    load(x, first, 1, count, from);
    for (int64_t i = 0; i < count; ++i)
      to[i] = fn(from[i]);
    store(y, first, count, to);
  }
}

/// z[i] = fn(x[i], y[i]) with broadcasting.
template <typename In, typename Fn> void zipAs(const firn_view &x, const firn_view &y, const firn_view &z, Fn fn) {
  Operand operands[2] = {{&x, 0, 0, {}}, {&y, 0, 0, {}}};
  In a[blockSize], b[blockSize];
  decltype(fn(In(), In())) to[blockSize];
  BroadcastLoop(z, operands, 2).run([&](int64_t first, int64_t count) {
    load(x, operands[0].offset, operands[0].step, count, a);
    load(y, operands[1].offset, operands[1].step, count, b);
    for (int64_t i = 0; i < count; ++i)
      to[i] = fn(a[i], b[i]);
    store(z, first, count, to);
  });
}

/// Input 0 to output 0 by a formula over double; integers go through double too and saturate.
template <typename Fn> int32_t mapFloat(firn_call *call, Fn fn) {
  if (const firn_view *y = output(call, 0))
    mapAs<double>(call->inputs[0], *y, fn);
  return FIRN_CALL_OK;
}

/// Input 0 to output 0 by a formula over double, int64_t and uint64_t, whichever holds the elements exactly.
template <typename Fn> int32_t mapNumeric(firn_call *call, Fn fn) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0];
  if (isFloat(x.dtype))
    mapAs<double>(x, *y, fn);
  else if (x.dtype == FIRN_U64)
    mapAs<uint64_t>(x, *y, fn);
  else
    mapAs<int64_t>(x, *y, fn);
  return FIRN_CALL_OK;
}

/// Inputs 0 and 1 to output 0 by a formula over int64_t and uint64_t.
template <typename Fn> int32_t zipInteger(firn_call *call, Fn fn) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0], &y = call->inputs[1];
  if (x.dtype == FIRN_U64)
    zipAs<uint64_t>(x, y, *z, fn);
  else
    zipAs<int64_t>(x, y, *z, fn);
  return FIRN_CALL_OK;
}

/// Inputs 0 and 1 to output 0 by a formula over double, int64_t and uint64_t.
template <typename Fn> int32_t zipNumeric(firn_call *call, Fn fn) {
  const firn_view *z = output(call, 0);
  if (!z)
    return FIRN_CALL_OK;
  if (!isFloat(call->inputs[0].dtype))
    return zipInteger(call, fn);
  zipAs<double>(call->inputs[0], call->inputs[1], *z, fn);
  return FIRN_CALL_OK;
}

/// Output 0 has the type of input 0, whose dtype must be in `dtypes`.
template <uint32_t dtypes> int32_t inferSame(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  setType(output(call, 0), call->inputs[0].dtype, call->inputs[0].dims, call->inputs[0].rank);
  return FIRN_CALL_OK;
}

/// Output 0 is bool, with the shape of input 0.
template <uint32_t dtypes> int32_t inferPredicate(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  setType(output(call, 0), FIRN_BOOL, call->inputs[0].dims, call->inputs[0].rank);
  return FIRN_CALL_OK;
}

/// Output 0 has dtype `dtype` and the broadcast shape of inputs [from, input_count).
int32_t inferBroadcast(firn_call *call, int32_t from, int32_t dtype);

/// Two inputs of one dtype and what comes of them: the same dtype, or bool.
template <uint32_t dtypes> int32_t inferBinary(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  FIRN_TRY(requireInput(call, 1, dtypes));
  FIRN_TRY(requireSameType(call, 0, 1));
  return inferBroadcast(call, 0, call->inputs[0].dtype);
}
template <uint32_t dtypes> int32_t inferComparison(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  FIRN_TRY(requireInput(call, 1, dtypes));
  FIRN_TRY(requireSameType(call, 0, 1));
  return inferBroadcast(call, 0, FIRN_BOOL);
}

// --- formulas that several operators share ---------------------------------------------------------------------------

/// The larger one; NaN wins, and +0 over -0.
template <typename T> T larger(T a, T b) { return a > b ? a : b; }
template <> inline double larger(double a, double b) {
  return isnan(a) ? a : isnan(b) ? b : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
/// The smaller one; NaN wins, and -0 over +0.
template <typename T> T smaller(T a, T b) { return a < b ? a : b; }
template <> inline double smaller(double a, double b) {
  return isnan(a) ? a : isnan(b) ? b : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

/// Whether `a` comes before `b` when the largest (or smallest) come first. NaN counts as beyond every number in either
/// direction, as numpy has it.
template <typename T> bool isBeyond(T a, T b, bool largest) { return largest ? a > b : a < b; }
template <> inline bool isBeyond(double a, double b, bool largest) {
  if (isnan(a) || isnan(b))
    return isnan(a) && !isnan(b);
  return largest ? a > b : a < b;
}

} // namespace firn::kernels
#endif
