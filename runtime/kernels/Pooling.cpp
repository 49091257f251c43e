// Pooling over windows (MaxPool, AveragePool, LpPool), over whole planes (Global...), and MaxUnpool.
#include "runtime/kernels/Window.h"

namespace firn::kernels {

namespace {

/// X [batch, channels, spatial...], of which every (batch, channel) pair is a plane.
struct PoolShape {
  const firn_view *x;
  Window window;
  int64_t planes;
  int64_t dims[FIRN_MAX_RANK];
};

int32_t poolShape(firn_call *call, uint32_t dtypes, PoolShape *shape) {
  FIRN_TRY(requireInput(call, 0, "X", dtypes, &shape->x));
  const firn_view &x = *shape->x;
  FIRN_TRY(requireRank(call, "X", x, 3, FIRN_MAX_RANK));
  int32_t rank = x.rank - 2;
  int64_t kernel[FIRN_MAX_RANK];
  if (!findAttribute(call, "kernel_shape"))
    return fail(call, FIRN_CALL_INVALID, "attribute kernel_shape is missing");
  FIRN_TRY(axisAttribute(call, "kernel_shape", rank, 1, 1, INT32_MAX, kernel));
  FIRN_TRY(readWindow(call, x.dims + 2, kernel, rank, true, &shape->window));
  shape->planes = x.dims[0] * x.dims[1];
  shape->dims[0] = x.dims[0];
  shape->dims[1] = x.dims[1];
  for (int32_t i = 0; i < rank; ++i)
    shape->dims[i + 2] = shape->window.out[i];
  return FIRN_CALL_OK;
}

constexpr uint32_t maxPoolTypes = floatTypes | byteTypes;

// --- MaxPool ---------------------------------------------------------------------------------------------------------

int32_t inferMaxPool(firn_call *call) {
  PoolShape shape;
  FIRN_TRY(poolShape(call, maxPoolTypes, &shape));
  FIRN_TRY(setChecked(call, 0, shape.x->dtype, shape.dims, shape.x->rank));
  return setChecked(call, 1, FIRN_I64, shape.dims, shape.x->rank);
}

/// `at`, an index into a plane in row-major order, as one in column-major order.
int64_t columnMajor(const Window &window, int64_t at) {
  int64_t index[FIRN_MAX_RANK], result = 0, stride = 1;
  for (int32_t i = window.rank - 1; i >= 0; --i) {
    index[i] = at % window.in[i];
    at /= window.in[i];
  }
  for (int32_t i = 0; i < window.rank; ++i) {
    result += index[i] * stride;
    stride *= window.in[i];
  }
  return result;
}

/// A window without any input inside, all padding, yields the lowest value of the type and index -1. The first of equal
/// maxima wins, NaN wins over all numbers.
int32_t runMaxPool(firn_call *call) {
  PoolShape shape;
  FIRN_TRY(poolShape(call, maxPoolTypes, &shape));
  firn_view *y = output(call, 0), *indices = output(call, 1);
  const Window &window = shape.window;
  const TapRow *rows;
  int64_t rowCount;
  FIRN_TRY(tapRows(call, window, &rows, &rowCount));
  double *x, *largest;
  int64_t *at, stride = window.stride[window.rank - 1];
  FIRN_TRY(allocate(call, window.inCount, &x));
  FIRN_TRY(allocate(call, window.outCount, &largest));
  FIRN_TRY(allocate(call, window.outCount, &at));
  bool isColumnMajor = intAttribute(call, "storage_order", 0) != 0;
  double lowest = isFloat(shape.x->dtype) ? -double(INFINITY) : -128;
  for (int64_t plane = 0; plane < shape.planes; ++plane) {
    loadDoubles(*shape.x, plane * window.inCount, 1, window.inCount, x);
    for (int64_t o = 0; o < window.outCount; ++o) {
      largest[o] = lowest;
      at[o] = -1;
    }
    for (int64_t r = 0; r < rowCount; ++r) {
      const TapRow row = rows[r];
      for (int64_t i = 0; i < row.count; ++i) {
        double value = x[row.in + i * stride], known = largest[row.out + i];
        if (value > known || at[row.out + i] < 0 || (isnan(value) && !isnan(known))) {
          largest[row.out + i] = value;
          at[row.out + i] = row.in + i * stride;
        }
      }
    }
    if (y)
      storeDoubles(*y, plane * window.outCount, window.outCount, largest);
    for (int64_t o = 0; o < window.outCount && indices; ++o)
      setInt(*indices, plane * window.outCount + o,
             at[o] < 0 ? -1 : plane * window.inCount + (isColumnMajor ? columnMajor(window, at[o]) : at[o]));
  }
  return FIRN_CALL_OK;
}

// --- AveragePool and LpPool ------------------------------------------------------------------------------------------

int32_t inferPool(firn_call *call) {
  PoolShape shape;
  FIRN_TRY(poolShape(call, floatTypes, &shape));
  return setChecked(call, 0, shape.x->dtype, shape.dims, shape.x->rank);
}

/// How many taps of each window lie inside the input, or inside the padded input. What ceil_mode adds at the end is
/// never inside.
int32_t countTaps(firn_call *call, const Window &window, bool includesPadding, double **counts) {
  FIRN_TRY(allocate(call, window.outCount, counts));
  if (window.outCount == 0)
    return FIRN_CALL_OK;
  int64_t index[FIRN_MAX_RANK] = {0};
  double *to = *counts;
  do {
    double count = 1;
    for (int32_t i = 0; i < window.rank; ++i) {
      int64_t first = index[i] * window.stride[i] - window.padBegin[i];
      int64_t low = includesPadding ? -window.padBegin[i] : 0;
      int64_t high = window.in[i] + (includesPadding ? window.padEnd[i] : 0);
      int64_t from = first < low ? divideUp(low - first, window.dilation[i]) : 0;
      int64_t end = first < high ? divideUp(high - first, window.dilation[i]) : 0;
      end = end < window.kernel[i] ? end : window.kernel[i];
      count *= end > from ? double(end - from) : 0;
    }
    *to++ = count;
  } while (nextIndex(index, window.out, window.rank));
  return FIRN_CALL_OK;
}

/// Stores finish(sum over the window of term(x), output) for every plane.
template <typename Term, typename Finish>
int32_t sumPool(firn_call *call, const PoolShape &shape, Term term, Finish finish) {
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const Window &window = shape.window;
  const TapRow *rows;
  int64_t rowCount, stride = window.stride[window.rank - 1];
  FIRN_TRY(tapRows(call, window, &rows, &rowCount));
  double *x, *sums;
  FIRN_TRY(allocate(call, window.inCount, &x));
  FIRN_TRY(allocate(call, window.outCount, &sums));
  for (int64_t plane = 0; plane < shape.planes; ++plane) {
    loadDoubles(*shape.x, plane * window.inCount, 1, window.inCount, x);
    for (int64_t i = 0; i < window.inCount; ++i)
      x[i] = term(x[i]);
    for (int64_t o = 0; o < window.outCount; ++o)
      sums[o] = 0;
    for (int64_t r = 0; r < rowCount; ++r) {
      const TapRow row = rows[r];
      for (int64_t i = 0; i < row.count; ++i)
        sums[row.out + i] += x[row.in + i * stride];
    }
    for (int64_t o = 0; o < window.outCount; ++o)
      sums[o] = finish(sums[o], o);
    storeDoubles(*y, plane * window.outCount, window.outCount, sums);
  }
  return FIRN_CALL_OK;
}

int32_t runAveragePool(firn_call *call) {
  PoolShape shape;
  double *counts;
  FIRN_TRY(poolShape(call, floatTypes, &shape));
  FIRN_TRY(countTaps(call, shape.window, intAttribute(call, "count_include_pad", 0) != 0, &counts));
  return sumPool(
      call, shape, [](double value) { return value; }, [&](double sum, int64_t o) { return sum / counts[o]; });
}

/// |value| to the power of `p`, and back.
double power(double value, int64_t p) {
  return p == 1 ? fabs(value) : p == 2 ? value * value : pow(fabs(value), double(p));
}
double root(double sum, int64_t p) { return p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / double(p)); }

int32_t runLpPool(firn_call *call) {
  PoolShape shape;
  int64_t p;
  FIRN_TRY(poolShape(call, floatTypes, &shape));
  FIRN_TRY(boundedAttribute(call, "p", 2, 1, INT64_MAX, &p));
  return sumPool(
      call, shape, [=](double value) { return power(value, p); }, [=](double sum, int64_t) { return root(sum, p); });
}

// --- global pooling --------------------------------------------------------------------------------------------------

int32_t globalShape(firn_call *call, const firn_view **x, int64_t *planes, int64_t *count) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, x));
  FIRN_TRY(requireRank(call, "X", **x, 2, FIRN_MAX_RANK));
  *planes = extent(**x, 0, 2);
  *count = extent(**x, 2, (*x)->rank);
  return FIRN_CALL_OK;
}

int32_t inferGlobalPool(firn_call *call) {
  const firn_view *x;
  int64_t planes, count, dims[FIRN_MAX_RANK];
  FIRN_TRY(globalShape(call, &x, &planes, &count));
  for (int32_t i = 0; i < x->rank; ++i)
    dims[i] = i < 2 ? x->dims[i] : 1;
  return setChecked(call, 0, x->dtype, dims, x->rank);
}

/// Stores reduce(values, count) for every plane.
template <typename Reduce> int32_t globalPool(firn_call *call, Reduce reduce) {
  const firn_view *x;
  int64_t planes, count;
  FIRN_TRY(globalShape(call, &x, &planes, &count));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  double *values;
  FIRN_TRY(allocate(call, count, &values));
  for (int64_t plane = 0; plane < planes; ++plane) {
    loadDoubles(*x, plane * count, 1, count, values);
    setDouble(*y, plane, reduce(values, count));
  }
  return FIRN_CALL_OK;
}

int32_t runGlobalAveragePool(firn_call *call) {
  return globalPool(call, [](const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += values[i];
    return sum / double(count);
  });
}

int32_t runGlobalMaxPool(firn_call *call) {
  return globalPool(call, [](const double *values, int64_t count) {
    double largest = -double(INFINITY);
    for (int64_t i = 0; i < count; ++i)
      largest = values[i] > largest || isnan(values[i]) ? values[i] : largest;
    return largest;
  });
}

int32_t runGlobalLpPool(firn_call *call) {
  int64_t p;
  FIRN_TRY(boundedAttribute(call, "p", 2, 1, INT64_MAX, &p));
  return globalPool(call, [=](const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += power(values[i], p);
    return root(sum, p);
  });
}

// --- MaxUnpool -------------------------------------------------------------------------------------------------------

struct UnpoolShape {
  const firn_view *x, *indices, *wanted;
  int64_t inferred[FIRN_MAX_RANK]; // what the indices count in
  int64_t dims[FIRN_MAX_RANK];
};

int32_t unpoolShape(firn_call *call, UnpoolShape *shape) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &shape->x));
  FIRN_TRY(requireInput(call, 1, "I", typeSet(FIRN_I64), &shape->indices));
  FIRN_TRY(optionalInput(call, 2, "output_shape", typeSet(FIRN_I64), &shape->wanted));
  const firn_view &x = *shape->x;
  FIRN_TRY(requireRank(call, "X", x, 3, FIRN_MAX_RANK));
  FIRN_TRY(requireShape(call, "I", shape->indices, x.dims, x.rank));
  FIRN_TRY(requireVector(call, "output_shape", shape->wanted, x.rank));
  int32_t rank = x.rank - 2;
  int64_t kernel[FIRN_MAX_RANK], stride[FIRN_MAX_RANK], pads[2 * FIRN_MAX_RANK];
  if (!findAttribute(call, "kernel_shape"))
    return fail(call, FIRN_CALL_INVALID, "attribute kernel_shape is missing");
  FIRN_TRY(axisAttribute(call, "kernel_shape", rank, 1, 1, INT32_MAX, kernel));
  FIRN_TRY(axisAttribute(call, "strides", rank, 1, 1, INT32_MAX, stride));
  FIRN_TRY(axisAttribute(call, "pads", 2 * rank, 0, 0, INT32_MAX, pads));
  if (shape->wanted)
    FIRN_TRY(requireValue(call, 2));
  for (int32_t i = 0; i < x.rank; ++i) {
    int64_t size = x.dims[i];
    if (i >= 2 && (__builtin_mul_overflow(size - 1, stride[i - 2], &size) ||
                   __builtin_add_overflow(size, kernel[i - 2] - pads[i - 2] - pads[rank + i - 2], &size)))
      return fail(call, FIRN_CALL_INVALID, "axis %d of the result is out of range", i);
    shape->inferred[i] = size;
    shape->dims[i] = shape->wanted ? getInt(*shape->wanted, i) : size;
  }
  return FIRN_CALL_OK;
}

int32_t inferMaxUnpool(firn_call *call) {
  UnpoolShape shape;
  FIRN_TRY(requireInput(call, 0, floatTypes));
  setRank(call, 0, call->inputs[0].dtype, call->inputs[0].rank);
  FIRN_TRY(unpoolShape(call, &shape));
  return setChecked(call, 0, shape.x->dtype, shape.dims, shape.x->rank);
}

int32_t runMaxUnpool(firn_call *call) {
  UnpoolShape shape;
  FIRN_TRY(unpoolShape(call, &shape));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const firn_view &x = *shape.x;
  int64_t total = 1;
  for (int32_t i = 0; i < x.rank; ++i)
    if (shape.inferred[i] < 0 || __builtin_mul_overflow(total, shape.inferred[i], &total))
      return fail(call, FIRN_CALL_INVALID, "the unpooled shape is out of range: axis %d is %lld", i,
                  static_cast<long long>(shape.inferred[i]));
  int64_t count = elementCount(x);
  if (int64_t all = elementCount(*y))
    memset(y->data, 0, size_t(firn_dtype_bytes(y->dtype, all)));
  for (int64_t e = 0; e < count; ++e) {
    int64_t index = getInt(*shape.indices, e), rest = index, to = 0, stride = 1;
    if (index < 0 || index >= total)
      return fail(call, FIRN_CALL_INVALID, "I is out of range at element %lld: expected 0 to %lld, found %lld",
                  static_cast<long long>(e), static_cast<long long>(total - 1), static_cast<long long>(index));
    for (int32_t i = x.rank - 1; i >= 0; --i) {
      int64_t at = rest % shape.inferred[i];
      rest /= shape.inferred[i];
      if (at >= shape.dims[i])
        return fail(call, FIRN_CALL_INVALID,
                    "I points outside of output_shape at element %lld: expected at most %lld along axis %d, found %lld",
                    static_cast<long long>(e), static_cast<long long>(shape.dims[i] - 1), i,
                    static_cast<long long>(at));
      to += at * stride;
      stride *= shape.dims[i];
    }
    copyElement(*y, to, x, e);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, MaxPool, "ai.onnx::MaxPool", inferMaxPool, runMaxPool)
FIRN_OPERATOR(ai_onnx, AveragePool, "ai.onnx::AveragePool", inferPool, runAveragePool)
FIRN_OPERATOR(ai_onnx, LpPool, "ai.onnx::LpPool", inferPool, runLpPool)
FIRN_OPERATOR(ai_onnx, GlobalAveragePool, "ai.onnx::GlobalAveragePool", inferGlobalPool, runGlobalAveragePool)
FIRN_OPERATOR(ai_onnx, GlobalMaxPool, "ai.onnx::GlobalMaxPool", inferGlobalPool, runGlobalMaxPool)
FIRN_OPERATOR(ai_onnx, GlobalLpPool, "ai.onnx::GlobalLpPool", inferGlobalPool, runGlobalLpPool)
FIRN_OPERATOR(ai_onnx, MaxUnpool, "ai.onnx::MaxUnpool", inferMaxUnpool, runMaxUnpool)

} // namespace firn::kernels
