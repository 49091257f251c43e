// Reductions over axes, the positions of extremes, and running sums and products.
#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

/// Which axes a Reduce* operator reduces: a flag for each axis of input 0.
int32_t reducedAxes(firn_call *call, bool *reduced) {
  const firn_view &x = call->inputs[0];
  const firn_view *axes = input(call, 1);
  int64_t count = axes ? elementCount(*axes) : 0;
  bool all = count == 0 && intAttribute(call, "noop_with_empty_axes", 0) == 0;
  for (int32_t k = 0; k < x.rank; ++k)
    reduced[k] = all;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = getInt(*axes, i);
    int32_t normal = normalizeAxis(axis, x.rank);
    if (normal < 0)
      return fail(call, FIRN_CALL_INVALID, "axis %lld is out of range: expected [%d, %d)", static_cast<long long>(axis),
                  -x.rank, x.rank);
    reduced[normal] = true;
  }
  return FIRN_CALL_OK;
}

/// The output's type: reduced axes become 1, or go.
int32_t setReduced(firn_call *call, int32_t dtype, const bool *reduced) {
  const firn_view &x = call->inputs[0];
  bool keep = intAttribute(call, "keepdims", 1) != 0;
  int64_t dims[FIRN_MAX_RANK];
  int32_t rank = 0;
  for (int32_t k = 0; k < x.rank; ++k)
    if (!reduced[k] || keep)
      dims[rank++] = reduced[k] ? 1 : x.dims[k];
  return setChecked(call, 0, dtype, dims, rank);
}

template <uint32_t dtypes> int32_t inferReduce(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, dtypes));
  if (input(call, 1)) {
    FIRN_TRY(requireInput(call, 1, indexTypes));
    FIRN_TRY(requireValue(call, 1));
  }
  bool reduced[FIRN_MAX_RANK];
  FIRN_TRY(reducedAxes(call, reduced));
  return setReduced(call, call->inputs[0].dtype, reduced);
}

/// Dimensions and element strides of some axes of a tensor; neighbours that make one run are merged.
struct AxisSet {
  int64_t dims[FIRN_MAX_RANK];
  int64_t strides[FIRN_MAX_RANK];
  int32_t rank = 0;

  void add(int64_t dim, int64_t stride) {
    if (rank > 0 && strides[rank - 1] == dim * stride) {
      dims[rank - 1] *= dim;
      strides[rank - 1] = stride;
      return;
    }
    dims[rank] = dim;
    strides[rank++] = stride;
  }

  int64_t count() const {
    int64_t result = 1;
    for (int32_t k = 0; k < rank; ++k)
      result *= dims[k];
    return result;
  }

  int64_t offset(const int64_t *index) const {
    int64_t result = 0;
    for (int32_t k = 0; k < rank; ++k)
      result += index[k] * strides[k];
    return result;
  }
};

/// The elements that one result reduces, in index order.
template <typename T> struct Elements {
  const firn_view &x;
  const AxisSet &axes;
  int64_t first;

  template <typename Body> void forEach(Body body) const {
    int32_t outer = axes.rank > 0 ? axes.rank - 1 : 0;
    int64_t length = axes.rank > 0 ? axes.dims[outer] : 1, stride = axes.rank > 0 ? axes.strides[outer] : 1;
    int64_t index[FIRN_MAX_RANK] = {};
    T block[blockSize];
    do {
      int64_t row = first;
      for (int32_t k = 0; k < outer; ++k)
        row += index[k] * axes.strides[k];
      for (int64_t done = 0; done < length; done += blockSize) {
        int64_t count = length - done < blockSize ? length - done : blockSize;
        load(x, row + done * stride, stride, count, block);
        for (int64_t i = 0; i < count; ++i)
          body(block[i]);
      }
    } while (nextIndex(index, axes.dims, outer));
  }
};

/// Each result is reduce(elements, count) of the elements that it covers.
template <typename T, typename Reduce> int32_t reduceAs(firn_call *call, Reduce reduce) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  bool reduced[FIRN_MAX_RANK];
  FIRN_TRY(reducedAxes(call, reduced));
  AxisSet inside, outside;
  int64_t count = 1;
  for (int32_t k = 0; k < x.rank; ++k) {
    (reduced[k] ? inside : outside).add(x.dims[k], extent(x, k + 1, x.rank));
    count *= reduced[k] ? x.dims[k] : 1;
  }
  int64_t index[FIRN_MAX_RANK] = {}, position = 0;
  do {
    Elements<T> elements = {x, inside, outside.offset(index)};
    T result = count ? reduce(elements, count) : reduce(Elements<T>{x, AxisSet{{0}, {1}, 1}, 0}, count);
    store(*y, position++, 1, &result);
  } while (nextIndex(index, outside.dims, outside.rank));
  return FIRN_CALL_OK;
}

/// Over double, int64_t or uint64_t, whichever holds the elements exactly.
template <typename Reduce> int32_t reduceNumeric(firn_call *call, Reduce reduce) {
  if (isFloat(call->inputs[0].dtype))
    return reduceAs<double>(call, reduce);
  if (call->inputs[0].dtype == FIRN_U64)
    return reduceAs<uint64_t>(call, reduce);
  return reduceAs<int64_t>(call, reduce);
}

template <typename T> T zeroOf(const Elements<T> &) { return 0; }

double average(double sum, int64_t count) { return sum / double(count); }
int64_t average(int64_t sum, int64_t count) { return count ? sum / count : 0; }
uint64_t average(uint64_t sum, int64_t count) { return count ? sum / uint64_t(count) : 0; }

int32_t runReduceSum(firn_call *call) {
  return reduceNumeric(call, [](const auto &elements, int64_t) {
    auto sum = zeroOf(elements);
    elements.forEach([&](auto x) { sum += x; });
    return sum;
  });
}

int32_t runReduceMean(firn_call *call) {
  return reduceNumeric(call, [](const auto &elements, int64_t count) {
    auto sum = zeroOf(elements);
    elements.forEach([&](auto x) { sum += x; });
    return average(sum, count);
  });
}

int32_t runReduceProd(firn_call *call) {
  return reduceNumeric(call, [](const auto &elements, int64_t) {
    auto product = zeroOf(elements) + 1;
    elements.forEach([&](auto x) { product *= x; });
    return product;
  });
}

int32_t runReduceSumSquare(firn_call *call) {
  return reduceNumeric(call, [](const auto &elements, int64_t) {
    auto sum = zeroOf(elements);
    elements.forEach([&](auto x) { sum += x * x; });
    return sum;
  });
}

int32_t runReduceL1(firn_call *call) {
  return reduceNumeric(call, [](const auto &elements, int64_t) {
    auto sum = zeroOf(elements);
    elements.forEach([&](auto x) { sum += x < 0 ? -x : x; });
    return sum;
  });
}

int32_t runReduceL2(firn_call *call) {
  return reduceAs<double>(call, [](const Elements<double> &elements, int64_t) {
    double sum = 0;
    elements.forEach([&](double x) { sum += x * x; });
    return sqrt(sum);
  });
}

int32_t runReduceLogSum(firn_call *call) {
  return reduceAs<double>(call, [](const Elements<double> &elements, int64_t) {
    double sum = 0;
    elements.forEach([&](double x) { sum += x; });
    return log(sum);
  });
}

/// log(sum(exp(x))) as m + log(sum(exp(x - m))) with the largest m, which cannot overflow.
int32_t runReduceLogSumExp(firn_call *call) {
  return reduceAs<double>(call, [](const Elements<double> &elements, int64_t) {
    double largest = -double(INFINITY), sum = 0;
    elements.forEach([&](double x) { largest = larger(largest, x); });
    if (isinf(largest)) // nothing but -inf, or an inf: differences would be NaN
      return largest;
    elements.forEach([&](double x) { sum += exp(x - largest); });
    return largest + log(sum);
  });
}

/// What an empty maximum gives, or an empty minimum: the last resort of the dtype.
void setBound(int32_t dtype, bool lowest, double *bound) {
  (void)dtype;
  *bound = lowest ? -double(INFINITY) : double(INFINITY);
}
void setBound(int32_t, bool lowest, uint64_t *bound) { *bound = lowest ? 0 : UINT64_MAX; }
void setBound(int32_t dtype, bool lowest, int64_t *bound) {
  int32_t bits = dtype == FIRN_BOOL ? 1 : firn_dtype_bits(dtype);
  if (isSigned(dtype)) {
    int64_t high = int64_t((uint64_t(1) << (bits - 1)) - 1);
    *bound = lowest ? -high - 1 : high;
  } else {
    *bound = lowest ? 0 : int64_t((uint64_t(1) << bits) - 1);
  }
}

int32_t runReduceMax(firn_call *call) {
  int32_t dtype = call->inputs[0].dtype;
  return reduceNumeric(call, [=](const auto &elements, int64_t) {
    auto largest = zeroOf(elements);
    setBound(dtype, true, &largest);
    elements.forEach([&](auto x) { largest = larger(largest, x); });
    return largest;
  });
}

int32_t runReduceMin(firn_call *call) {
  int32_t dtype = call->inputs[0].dtype;
  return reduceNumeric(call, [=](const auto &elements, int64_t) {
    auto smallest = zeroOf(elements);
    setBound(dtype, false, &smallest);
    elements.forEach([&](auto x) { smallest = smaller(smallest, x); });
    return smallest;
  });
}

// --- positions of extremes -------------------------------------------------------------------------------------------

int32_t axisOf(firn_call *call, int64_t axis, int32_t *normal) {
  int32_t rank = call->inputs[0].rank;
  *normal = normalizeAxis(axis, rank);
  if (*normal >= 0)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "axis %lld is out of range: expected [%d, %d)", static_cast<long long>(axis),
              -rank, rank);
}

int32_t inferArg(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  const firn_view &x = call->inputs[0];
  int32_t axis;
  FIRN_TRY(axisOf(call, intAttribute(call, "axis", 0), &axis));
  if (x.dims[axis] == 0)
    return fail(call, FIRN_CALL_INVALID, "axis %d must not be empty: there is no element to point at", axis);
  bool reduced[FIRN_MAX_RANK] = {};
  reduced[axis] = true;
  return setReduced(call, FIRN_I64, reduced);
}

template <typename T> int32_t argAs(firn_call *call, bool largest) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  bool last = intAttribute(call, "select_last_index", 0) != 0;
  int32_t axis;
  FIRN_TRY(axisOf(call, intAttribute(call, "axis", 0), &axis));
  int64_t outer = extent(x, 0, axis), n = x.dims[axis], inner = extent(x, axis + 1, x.rank);
  int64_t *to = static_cast<int64_t *>(y->data);
  T block[blockSize];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      T best = 0;
      int64_t position = -1;
      for (int64_t done = 0; done < n; done += blockSize) {
        int64_t count = n - done < blockSize ? n - done : blockSize;
        load(x, (o * n + done) * inner + i, inner, count, block);
        for (int64_t k = 0; k < count; ++k)
          if (position < 0 || isBeyond(block[k], best, largest) || (last && !isBeyond(best, block[k], largest))) {
            best = block[k];
            position = done + k;
          }
      }
      *to++ = position;
    }
  return FIRN_CALL_OK;
}

int32_t argNumeric(firn_call *call, bool largest) {
  if (isFloat(call->inputs[0].dtype))
    return argAs<double>(call, largest);
  if (call->inputs[0].dtype == FIRN_U64)
    return argAs<uint64_t>(call, largest);
  return argAs<int64_t>(call, largest);
}

int32_t runArgMax(firn_call *call) { return argNumeric(call, true); }
int32_t runArgMin(firn_call *call) { return argNumeric(call, false); }

// --- running sums and products ---------------------------------------------------------------------------------------

constexpr uint32_t reduceTypes = floatTypes | indexTypes | typeSet(FIRN_U32) | typeSet(FIRN_U64);

int32_t inferScan(firn_call *call) {
  FIRN_TRY(requireInput(call, 1, indexTypes));
  if (elementCount(call->inputs[1]) != 1)
    return fail(call, FIRN_CALL_INVALID, "axis must be one value, found %lld",
                static_cast<long long>(elementCount(call->inputs[1])));
  int32_t axis;
  if (call->inputs[1].data && call->inputs[0].rank >= 0)
    FIRN_TRY(axisOf(call, getInt(call->inputs[1], 0), &axis));
  return inferSame<reduceTypes>(call);
}

template <typename T, typename Combine> int32_t scanAs(firn_call *call, T start, Combine combine) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  int32_t axis;
  FIRN_TRY(axisOf(call, getInt(call->inputs[1], 0), &axis));
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  bool reverse = intAttribute(call, "reverse", 0) != 0, exclusive = intAttribute(call, "exclusive", 0) != 0;
  int64_t outer = extent(x, 0, axis), n = x.dims[axis], inner = extent(x, axis + 1, x.rank);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      T running = start;
      for (int64_t k = 0; k < n; ++k) {
        int64_t position = (o * n + (reverse ? n - 1 - k : k)) * inner + i;
        T element;
        load(x, position, 1, 1, &element);
        T including = combine(running, element);
        store(*y, position, 1, exclusive ? &running : &including);
        running = including;
      }
    }
  return FIRN_CALL_OK;
}

int32_t runCumSum(firn_call *call) {
  auto add = [](auto a, auto b) { return a + b; };
  return isFloat(call->inputs[0].dtype) ? scanAs<double>(call, 0, add) : scanAs<int64_t>(call, 0, add);
}

int32_t runCumProd(firn_call *call) {
  auto multiply = [](auto a, auto b) { return a * b; };
  return isFloat(call->inputs[0].dtype) ? scanAs<double>(call, 1, multiply) : scanAs<int64_t>(call, 1, multiply);
}

constexpr uint32_t extremeTypes = reduceTypes | typeSet(FIRN_I8) | typeSet(FIRN_U8) | boolType;

} // namespace

FIRN_OPERATOR(ai_onnx, ReduceSum, "ai.onnx::ReduceSum", inferReduce<reduceTypes>, runReduceSum)
FIRN_OPERATOR(ai_onnx, ReduceMean, "ai.onnx::ReduceMean", inferReduce<reduceTypes>, runReduceMean)
FIRN_OPERATOR(ai_onnx, ReduceProd, "ai.onnx::ReduceProd", inferReduce<reduceTypes>, runReduceProd)
FIRN_OPERATOR(ai_onnx, ReduceSumSquare, "ai.onnx::ReduceSumSquare", inferReduce<reduceTypes>, runReduceSumSquare)
FIRN_OPERATOR(ai_onnx, ReduceL1, "ai.onnx::ReduceL1", inferReduce<reduceTypes>, runReduceL1)
FIRN_OPERATOR(ai_onnx, ReduceL2, "ai.onnx::ReduceL2", inferReduce<reduceTypes>, runReduceL2)
FIRN_OPERATOR(ai_onnx, ReduceLogSum, "ai.onnx::ReduceLogSum", inferReduce<reduceTypes>, runReduceLogSum)
FIRN_OPERATOR(ai_onnx, ReduceLogSumExp, "ai.onnx::ReduceLogSumExp", inferReduce<reduceTypes>, runReduceLogSumExp)
FIRN_OPERATOR(ai_onnx, ReduceMax, "ai.onnx::ReduceMax", inferReduce<extremeTypes>, runReduceMax)
FIRN_OPERATOR(ai_onnx, ReduceMin, "ai.onnx::ReduceMin", inferReduce<extremeTypes>, runReduceMin)
FIRN_OPERATOR(ai_onnx, ArgMax, "ai.onnx::ArgMax", inferArg, runArgMax)
FIRN_OPERATOR(ai_onnx, ArgMin, "ai.onnx::ArgMin", inferArg, runArgMin)
FIRN_OPERATOR(ai_onnx, CumSum, "ai.onnx::CumSum", inferScan, runCumSum)
FIRN_OPERATOR(ai_onnx, CumProd, "ai.onnx::CumProd", inferScan, runCumProd)

} // namespace firn::kernels
