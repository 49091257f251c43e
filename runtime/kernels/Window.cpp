#include "runtime/kernels/Window.h"

namespace firn::kernels {

// Keeps each product and sum of sizes below 2^63.
constexpr int64_t largestAttribute = INT32_MAX;
constexpr int64_t largestDimension = int64_t(1) << 48;

int32_t axisAttribute(firn_call *call, const char *name, int32_t rank, int64_t fallback, int64_t low, int64_t high,
                      int64_t *values) {
  int64_t count;
  const int64_t *list = intsAttribute(call, name, &count);
  if (count == 0) {
    for (int32_t i = 0; i < rank; ++i)
      values[i] = fallback;
    return FIRN_CALL_OK;
  }
  if (count != rank)
    return fail(call, FIRN_CALL_INVALID, "attribute %s has the wrong length: expected %d, found %lld", name, rank,
                static_cast<long long>(count));
  for (int32_t i = 0; i < rank; ++i) {
    values[i] = list[i];
    if (list[i] < low || list[i] > high)
      return fail(call, FIRN_CALL_INVALID,
                  "attribute %s is out of range at position %d: expected %lld to %lld, found %lld", name, i,
                  static_cast<long long>(low), static_cast<long long>(high), static_cast<long long>(list[i]));
  }
  return FIRN_CALL_OK;
}

int32_t requireKernelShape(firn_call *call, const int64_t *kernel, int32_t rank) {
  int64_t count;
  const int64_t *list = intsAttribute(call, "kernel_shape", &count);
  if (count == 0)
    return FIRN_CALL_OK;
  bool isEqual = count == rank;
  for (int32_t i = 0; i < rank && isEqual; ++i)
    isEqual = list[i] == kernel[i];
  if (isEqual)
    return FIRN_CALL_OK;
  ShapeText expected = describe(kernel, rank),
            found = describe(list, count < FIRN_MAX_RANK ? int32_t(count) : FIRN_MAX_RANK);
  return fail(call, FIRN_CALL_INVALID, "attribute kernel_shape disagrees with W: expected %s, found %s", expected.text,
              found.text);
}

int32_t countWindow(firn_call *call, Window *window) {
  window->inCount = window->tapCount = window->outCount = 1;
  for (int32_t i = 0; i < window->rank; ++i)
    if (__builtin_mul_overflow(window->inCount, window->in[i], &window->inCount) ||
        __builtin_mul_overflow(window->tapCount, window->kernel[i], &window->tapCount) ||
        __builtin_mul_overflow(window->outCount, window->out[i], &window->outCount))
      return fail(call, FIRN_CALL_INVALID, "the window or its result has more than 2^63 elements");
  return FIRN_CALL_OK;
}

int32_t readWindow(firn_call *call, const int64_t *in, const int64_t *kernel, int32_t rank, bool hasCeilMode,
                   Window *window) {
  static const char *const autoPads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  int64_t pads[2 * FIRN_MAX_RANK];
  int32_t autoPad;
  window->rank = rank;
  FIRN_TRY(axisAttribute(call, "strides", rank, 1, 1, largestAttribute, window->stride));
  FIRN_TRY(axisAttribute(call, "dilations", rank, 1, 1, largestAttribute, window->dilation));
  FIRN_TRY(axisAttribute(call, "pads", 2 * rank, 0, 0, largestAttribute, pads));
  FIRN_TRY(choiceAttribute(call, "auto_pad", autoPads, 4, 0, &autoPad));
  bool roundsUp = hasCeilMode && intAttribute(call, "ceil_mode", 0) != 0 && autoPad == 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (kernel[i] < 1 || kernel[i] > largestAttribute)
      return fail(call, FIRN_CALL_INVALID,
                  "the kernel's size along spatial axis %d is out of range: expected 1 to %lld, found %lld", i,
                  static_cast<long long>(largestAttribute), static_cast<long long>(kernel[i]));
    if (in[i] > largestDimension)
      return fail(call, FIRN_CALL_INVALID, "spatial axis %d is too long: %lld", i, static_cast<long long>(in[i]));
    window->in[i] = in[i];
    window->kernel[i] = kernel[i];
    int64_t stride = window->stride[i], reach = window->reach(i);
    int64_t before = 0, after = 0;
    if (autoPad == 0) {
      before = pads[i];
      after = pads[i + rank];
    } else if (autoPad != 3) {
      int64_t total = (divideUp(in[i], stride) - 1) * stride + reach - in[i];
      total = total > 0 ? total : 0;
      before = autoPad == 1 ? total / 2 : total - total / 2;
      after = total - before;
    }
    window->padBegin[i] = before;
    window->padEnd[i] = after;
    int64_t room = in[i] + before + after - reach;
    if (autoPad == 1 || autoPad == 2)
      window->out[i] = divideUp(in[i], stride);
    else if (room < 0)
      return fail(call, FIRN_CALL_INVALID,
                  "the kernel is larger than the padded input along spatial axis %d: expected at most %lld, found %lld",
                  i, static_cast<long long>(in[i] + before + after), static_cast<long long>(reach));
    else {
      window->out[i] = (roundsUp ? divideUp(room, stride) : room / stride) + 1;
      // A window that would start behind the input is dropped.
      if (roundsUp && (window->out[i] - 1) * stride >= in[i] + before)
        --window->out[i];
    }
  }
  return countWindow(call, window);
}

/// The outputs along `axis` whose tap `k` reads inside the input: [*first, *last).
static void outputsInside(const Window &window, int32_t axis, int64_t k, int64_t *first, int64_t *last) {
  int64_t shift = window.padBegin[axis] - k * window.dilation[axis], stride = window.stride[axis];
  *first = shift > 0 ? divideUp(shift, stride) : 0;
  *last = divideUp(window.in[axis] + shift, stride);
  *last = *last < window.out[axis] ? *last : window.out[axis];
}

int32_t tapRows(firn_call *call, const Window &window, const TapRow **rows, int64_t *count) {
  int32_t last = window.rank - 1;
  int64_t lines = 1, capacity;
  for (int32_t i = 0; i < last; ++i)
    lines *= window.out[i];
  *count = 0;
  *rows = nullptr;
  if (window.outCount == 0 || window.inCount == 0)
    return FIRN_CALL_OK;
  if (__builtin_mul_overflow(lines, window.tapCount, &capacity))
    return outOfMemory(call, lines, window.tapCount);
  TapRow *list;
  FIRN_TRY(allocate(call, capacity, &list));
  *rows = list;
  int64_t tapIndex[FIRN_MAX_RANK] = {0};
  int64_t tap = 0;
  do {
    int64_t first, end;
    outputsInside(window, last, tapIndex[last], &first, &end);
    int64_t index[FIRN_MAX_RANK] = {0};
    int64_t line = 0;
    if (first < end)
      do {
        int64_t in = 0;
        bool isInside = true;
        for (int32_t i = 0; i < last; ++i) {
          int64_t at = index[i] * window.stride[i] - window.padBegin[i] + tapIndex[i] * window.dilation[i];
          isInside &= at >= 0 && at < window.in[i];
          in = in * window.in[i] + at;
        }
        in = in * window.in[last] + first * window.stride[last] - window.padBegin[last] +
             tapIndex[last] * window.dilation[last];
        if (!isInside)
          continue;
        TapRow row = {tap, line * window.out[last] + first, in, end - first};
        TapRow *previous = *count ? &list[*count - 1] : nullptr;
        if (previous && previous->tap == tap && window.stride[last] == 1 &&
            previous->out + previous->count == row.out && previous->in + previous->count == row.in)
          previous->count += row.count; // whole lines follow each other, as in a 1x1 kernel
        else
          list[(*count)++] = row;
      } while (++line, nextIndex(index, window.out, last));
    ++tap;
  } while (nextIndex(tapIndex, window.kernel, window.rank));
  return FIRN_CALL_OK;
}

} // namespace firn::kernels
