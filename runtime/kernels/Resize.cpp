// Resize. Interpolation is separable: one table of taps an axis, applied axis after axis on doubles. Nearest copies
// elements of any type.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

enum Mode { nearest, linear, cubic };
enum Transformation { halfPixel, halfPixelSymmetric, pytorchHalfPixel, alignCorners, asymmetric, tfCropAndResize };
enum NearestMode { roundPreferFloor, roundPreferCeil, roundFloor, roundCeil };

struct AxisResize {
  int64_t in, out;
  double scale;      // out / in, or what the caller gave, which out is rounded from
  bool isRatio;      // scale is out / in: coordinates are then computed without rounding it
  double start, end; // the region of interest in units of the axis
  bool isIdentity;
};

struct ResizeOperands {
  const firn_view *x, *roi, *scales, *sizes;
  int32_t mode, transformation, nearestMode;
  AxisResize axes[FIRN_MAX_RANK];
  int64_t dims[FIRN_MAX_RANK];
};

/// `view` where it has elements: files leave out an input by an empty tensor too.
const firn_view *nonEmpty(const firn_view *view) { return view && elementCount(*view) > 0 ? view : nullptr; }

/// The axes that roi, scales and sizes speak of.
int32_t readAxes(firn_call *call, const firn_view &x, int32_t *axes, int32_t *count) {
  int64_t given;
  const int64_t *list = intsAttribute(call, "axes", &given);
  bool seen[FIRN_MAX_RANK] = {false};
  *count = 0;
  if (!list) {
    for (; *count < x.rank; ++*count)
      axes[*count] = *count;
    return FIRN_CALL_OK;
  }
  for (int64_t i = 0; i < given; ++i) {
    int32_t axis = normalizeAxis(list[i], x.rank);
    if (axis < 0)
      return fail(call, FIRN_CALL_INVALID, "attribute axes is out of range: expected %d to %d, found %lld", -x.rank,
                  x.rank - 1, static_cast<long long>(list[i]));
    if (seen[axis])
      return fail(call, FIRN_CALL_INVALID, "attribute axes names axis %d twice", axis);
    seen[axis] = true;
    axes[(*count)++] = axis;
  }
  return FIRN_CALL_OK;
}

/// Extents by `scales`. They are computed in float32 as shape inference does: 10 * 0.7 is 7, which double would miss.
int32_t applyScales(firn_call *call, ResizeOperands *o, const int32_t *axes, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    AxisResize &axis = o->axes[axes[i]];
    float scale = float(getDouble(*o->scales, i));
    if (!(scale > 0) || isinf(scale))
      return fail(call, FIRN_CALL_INVALID, "scales must be positive and finite, found %g at position %d", double(scale),
                  i);
    float extent = float(axis.in);
    if (o->transformation == tfCropAndResize)
      extent *= float(axis.end - axis.start);
    extent = floorf(extent * scale);
    if (!(extent >= 0 && extent < 1e15f))
      return fail(call, FIRN_CALL_INVALID, "axis %d of the result is out of range: %g", axes[i], double(extent));
    axis.out = int64_t(extent);
    axis.scale = scale;
  }
  return FIRN_CALL_OK;
}

int32_t applySizes(firn_call *call, ResizeOperands *o, const int32_t *axes, int32_t count) {
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  int32_t policy;
  FIRN_TRY(choiceAttribute(call, "keep_aspect_ratio_policy", policies, 3, 0, &policy));
  double common = 0;
  for (int32_t i = 0; i < count; ++i) {
    AxisResize &axis = o->axes[axes[i]];
    axis.out = getInt(*o->sizes, i);
    if (axis.out < 0 || (axis.in == 0 && axis.out != 0))
      return fail(call, FIRN_CALL_INVALID, "sizes cannot make axis %d, which has %lld elements, %lld long", axes[i],
                  static_cast<long long>(axis.in), static_cast<long long>(axis.out));
    axis.scale = axis.in ? double(axis.out) / double(axis.in) : 1;
    axis.isRatio = true;
    if (i == 0 || (policy == 1 ? axis.scale < common : axis.scale > common))
      common = axis.scale;
  }
  for (int32_t i = 0; i < count && policy != 0; ++i) {
    AxisResize &axis = o->axes[axes[i]];
    axis.scale = common;
    axis.isRatio = false;
    axis.out = int64_t(floor(common * double(axis.in) + 0.5));
  }
  return FIRN_CALL_OK;
}

int32_t resizeOperands(firn_call *call, ResizeOperands *o) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const transformations[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                                "align_corners", "asymmetric",           "tf_crop_and_resize"};
  static const char *const nearestModes[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  constexpr uint32_t xTypes = numericTypes | boolType | stringType | typeSet(FIRN_C64) | typeSet(FIRN_C128);
  constexpr uint32_t roiTypes = typeSet(FIRN_F16) | typeSet(FIRN_F32) | typeSet(FIRN_F64);
  FIRN_TRY(requireInput(call, 0, "X", xTypes, &o->x));
  FIRN_TRY(optionalInput(call, 1, "roi", roiTypes, &o->roi));
  FIRN_TRY(optionalInput(call, 2, "scales", typeSet(FIRN_F32), &o->scales));
  FIRN_TRY(optionalInput(call, 3, "sizes", typeSet(FIRN_I64), &o->sizes));
  FIRN_TRY(choiceAttribute(call, "mode", modes, 3, 0, &o->mode));
  FIRN_TRY(choiceAttribute(call, "coordinate_transformation_mode", transformations, 6, 0, &o->transformation));
  FIRN_TRY(choiceAttribute(call, "nearest_mode", nearestModes, 4, 0, &o->nearestMode));
  const firn_view &x = *o->x;
  bool needsRoi = o->transformation == tfCropAndResize;
  o->roi = needsRoi ? nonEmpty(o->roi) : nullptr;
  o->scales = nonEmpty(o->scales);
  o->sizes = nonEmpty(o->sizes);
  int32_t axes[FIRN_MAX_RANK], count;
  FIRN_TRY(readAxes(call, x, axes, &count));
  if (count > 0 && !o->scales == !o->sizes)
    return fail(call, FIRN_CALL_INVALID, "exactly one of scales and sizes must be given, found %s",
                o->scales ? "both" : "neither");
  if (needsRoi && !o->roi)
    return fail(call, FIRN_CALL_INVALID, "roi is missing, which tf_crop_and_resize needs");
  if (x.dtype == FIRN_STRING && (o->mode != nearest || needsRoi))
    return fail(call, FIRN_CALL_INVALID, "strings can be resized with mode=nearest and without roi only");
  FIRN_TRY(requireVector(call, "roi", o->roi, 2 * count));
  FIRN_TRY(requireVector(call, "scales", o->scales, count));
  FIRN_TRY(requireVector(call, "sizes", o->sizes, count));
  if (o->roi)
    FIRN_TRY(requireValue(call, 1));
  if (o->scales)
    FIRN_TRY(requireValue(call, 2));
  if (o->sizes)
    FIRN_TRY(requireValue(call, 3));
  for (int32_t k = 0; k < x.rank; ++k)
    o->axes[k] = {x.dims[k], x.dims[k], 1, false, 0, 1, true};
  for (int32_t i = 0; i < count && o->roi; ++i) {
    o->axes[axes[i]].start = getDouble(*o->roi, i);
    o->axes[axes[i]].end = getDouble(*o->roi, count + i);
  }
  if (o->scales)
    FIRN_TRY(applyScales(call, o, axes, count));
  else if (o->sizes)
    FIRN_TRY(applySizes(call, o, axes, count));
  for (int32_t k = 0; k < x.rank; ++k) {
    AxisResize &axis = o->axes[k];
    axis.isIdentity = axis.scale == 1 && axis.in == axis.out && axis.start == 0 && axis.end == 1;
    o->dims[k] = axis.out;
  }
  return FIRN_CALL_OK;
}

int32_t inferResize(firn_call *call) {
  ResizeOperands o;
  FIRN_TRY(resizeOperands(call, &o));
  return setChecked(call, 0, o.x->dtype, o.dims, o.x->rank);
}

/// Where output `at` of an axis lies in the input's coordinates.
double sourceOf(const AxisResize &axis, int32_t transformation, int64_t at) {
  double x = double(at), in = double(axis.in), out = double(axis.out);
  auto unscale = [&](double value) { return axis.isRatio ? value * in / out : value / axis.scale; };
  switch (transformation) {
  case halfPixelSymmetric: {
    double adjustment = axis.isRatio ? 1 : out / (axis.scale * in);
    return in / 2 * (1 - adjustment) + unscale(x + 0.5) - 0.5;
  }
  case pytorchHalfPixel:
    return axis.out > 1 ? unscale(x + 0.5) - 0.5 : 0;
  case alignCorners: {
    double length = axis.isRatio ? out : axis.scale * in; // not rounded where scales are given
    return length == 1 ? 0 : x * (in - 1) / (length - 1);
  }
  case asymmetric:
    return unscale(x);
  case tfCropAndResize:
    return axis.out > 1 ? axis.start * (in - 1) + x * (axis.end - axis.start) * (in - 1) / (out - 1)
                        : 0.5 * (axis.start + axis.end) * (in - 1);
  default:
    return unscale(x + 0.5) - 0.5;
  }
}

/// `isOutside`, one flag an output along the axis: it lies outside of the input and becomes extrapolation_value.
void markOutside(const ResizeOperands &o, const AxisResize &axis, bool *isOutside) {
  for (int64_t at = 0; at < axis.out; ++at) {
    double source = sourceOf(axis, o.transformation, at);
    isOutside[at] =
        o.transformation == tfCropAndResize && !axis.isIdentity && !(source >= 0 && source <= double(axis.in - 1));
  }
}

// --- nearest ---------------------------------------------------------------------------------------------------------

int64_t nearestIndex(const AxisResize &axis, int32_t nearestMode, double source) {
  double rounded = nearestMode == roundPreferFloor  ? ceil(source - 0.5)
                   : nearestMode == roundPreferCeil ? floor(source + 0.5)
                   : nearestMode == roundFloor      ? floor(source)
                                                    : ceil(source);
  return rounded >= double(axis.in - 1) ? axis.in - 1 : rounded > 0 ? int64_t(rounded) : 0;
}

struct Wide { // 16 bytes: complex128 or a string
  uint64_t words[2];
};

template <typename T>
void gather(const firn_view &x, int64_t from, const int64_t *offsets, const firn_view &y, int64_t to, int64_t count) {
  const T *source = static_cast<const T *>(x.data) + from;
  T *target = static_cast<T *>(y.data) + to;
  for (int64_t i = 0; i < count; ++i)
    target[i] = source[offsets[i]];
}

int32_t resizeNearest(firn_call *call, const ResizeOperands &o, const firn_view &y) {
  const firn_view &x = *o.x;
  int64_t *offsets[FIRN_MAX_RANK]; // of the chosen input along each axis
  for (int32_t k = 0; k < x.rank; ++k) {
    const AxisResize &axis = o.axes[k];
    FIRN_TRY(allocate(call, axis.out, &offsets[k]));
    int64_t stride = extent(x, k + 1, x.rank);
    for (int64_t at = 0; at < axis.out; ++at)
      offsets[k][at] =
          stride * (axis.isIdentity ? at : nearestIndex(axis, o.nearestMode, sourceOf(axis, o.transformation, at)));
  }
  int32_t last = x.rank - 1;
  int64_t index[FIRN_MAX_RANK] = {0}, to = 0, count = last >= 0 ? o.dims[last] : 1;
  const int64_t scalar = 0;
  do {
    int64_t from = 0;
    for (int32_t k = 0; k < last; ++k)
      from += offsets[k][index[k]];
    const int64_t *row = last >= 0 ? offsets[last] : &scalar;
    switch (firn_dtype_bits(x.dtype)) {
    case 8:
      gather<uint8_t>(x, from, row, y, to, count);
      break;
    case 16:
      gather<uint16_t>(x, from, row, y, to, count);
      break;
    case 32:
      gather<uint32_t>(x, from, row, y, to, count);
      break;
    case 64:
      gather<uint64_t>(x, from, row, y, to, count);
      break;
    default:
      gather<Wide>(x, from, row, y, to, count);
    }
    to += count;
  } while (nextIndex(index, o.dims, last));
  return FIRN_CALL_OK;
}

// --- linear and cubic ------------------------------------------------------------------------------------------------

/// The taps of one axis: output `at` is the sum of weights[at * count + k] * input[clamped(first[at] + k)].
struct Taps {
  int64_t count;
  int64_t *first;
  double *weights;
};

/// The interpolation kernel at distance `x`.
double weightAt(int32_t mode, double a, double x) {
  x = fabs(x);
  if (mode == linear)
    return x < 1 ? 1 - x : 0;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int32_t makeTaps(firn_call *call, const ResizeOperands &o, const AxisResize &axis, Taps *taps) {
  bool antialias = intAttribute(call, "antialias", 0) != 0, excludes = intAttribute(call, "exclude_outside", 0) != 0;
  double a = floatAttribute(call, "cubic_coeff_a", -0.75f);
  // Antialiasing stretches the kernel by 1 / scale when the axis shrinks.
  double stretch = antialias && axis.scale < 1 ? axis.scale : 1, radius = (o.mode == linear ? 1 : 2) / stretch;
  if (!(radius < 1e12))
    return fail(call, FIRN_CALL_INVALID, "a scale of %g is too small for antialiasing", axis.scale);
  int64_t before = int64_t(ceil(radius)) - 1; // taps left of the one at floor(source)
  taps->count = 2 * before + 2;
  FIRN_TRY(allocate(call, axis.out, &taps->first));
  int64_t total;
  if (__builtin_mul_overflow(axis.out, taps->count, &total))
    return outOfMemory(call, axis.out, taps->count);
  FIRN_TRY(allocate(call, total, &taps->weights));
  for (int64_t at = 0; at < axis.out; ++at) {
    double source = sourceOf(axis, o.transformation, at);
    // Far outside every tap reads the edge; this also keeps the conversion to an integer in range.
    double reach = double(axis.in + taps->count);
    source = source > reach ? reach : source >= -reach ? source : -reach;
    double base = floor(source), sum = 0;
    taps->first[at] = int64_t(base) - before;
    double *weights = taps->weights + at * taps->count;
    for (int64_t k = 0; k < taps->count; ++k) {
      int64_t position = taps->first[at] + k;
      weights[k] = weightAt(o.mode, a, stretch * (double(k - before) - (source - base)));
      if (excludes && (position < 0 || position >= axis.in))
        weights[k] = 0;
      sum += weights[k];
    }
    if ((antialias || excludes) && sum != 0)
      for (int64_t k = 0; k < taps->count; ++k)
        weights[k] /= sum;
  }
  return FIRN_CALL_OK;
}

/// from [outer, axis.in, inner] to [outer, axis.out, inner]
void applyTaps(const Taps &taps, const AxisResize &axis, int64_t outer, int64_t inner, const double *from, double *to) {
  for (int64_t block = 0; block < outer; ++block, from += axis.in * inner)
    for (int64_t at = 0; at < axis.out; ++at, to += inner) {
      for (int64_t i = 0; i < inner; ++i)
        to[i] = 0;
      for (int64_t k = 0; k < taps.count; ++k) {
        double weight = taps.weights[at * taps.count + k];
        if (weight == 0)
          continue; // a NaN out of reach stays out
        int64_t position = taps.first[at] + k;
        position = position < 0 ? 0 : position >= axis.in ? axis.in - 1 : position;
        const double *row = from + position * inner;
        for (int64_t i = 0; i < inner; ++i)
          to[i] += weight * row[i];
      }
    }
}

int32_t resizeByTaps(firn_call *call, const ResizeOperands &o, const firn_view &y) {
  // Complex numbers are pairs along one more axis.
  firn_view x = *o.x, real = y;
  int64_t pair = x.dtype == FIRN_C64 || x.dtype == FIRN_C128 ? 2 : 1;
  if (pair == 2)
    x.dtype = real.dtype = x.dtype == FIRN_C64 ? FIRN_F32 : FIRN_F64;
  int64_t total = elementCount(x) * pair;
  double *values;
  FIRN_TRY(allocate(call, total, &values));
  loadDoubles(x, 0, 1, total, values);
  int64_t outer = 1;
  for (int32_t k = 0; k < x.rank; ++k) {
    const AxisResize &axis = o.axes[k];
    int64_t inner = extent(x, k + 1, x.rank) * pair;
    if (!axis.isIdentity) {
      Taps taps;
      double *next;
      int64_t count;
      FIRN_TRY(makeTaps(call, o, axis, &taps));
      if (__builtin_mul_overflow(outer * axis.out, inner, &count))
        return outOfMemory(call, outer * axis.out, inner);
      FIRN_TRY(allocate(call, count, &next));
      applyTaps(taps, axis, outer, inner, values, next);
      values = next;
    }
    outer *= axis.out;
  }
  total = outer * pair;
  if (!isFloat(real.dtype) && real.dtype != FIRN_BOOL)
    for (int64_t i = 0; i < total; ++i)
      values[i] = rint(values[i]);
  storeDoubles(real, 0, total, values);
  return FIRN_CALL_OK;
}

int32_t extrapolate(firn_call *call, const ResizeOperands &o, const firn_view &y) {
  bool *isOutside[FIRN_MAX_RANK];
  for (int32_t k = 0; k < y.rank; ++k) {
    FIRN_TRY(allocate(call, o.dims[k], &isOutside[k]));
    markOutside(o, o.axes[k], isOutside[k]);
  }
  double value = floatAttribute(call, "extrapolation_value", 0);
  int64_t index[FIRN_MAX_RANK] = {0}, at = 0;
  do {
    bool any = false;
    for (int32_t k = 0; k < y.rank; ++k)
      any |= isOutside[k][index[k]];
    if (any)
      setDouble(y, at, value);
    ++at;
  } while (nextIndex(index, o.dims, y.rank));
  return FIRN_CALL_OK;
}

int32_t runResize(firn_call *call) {
  ResizeOperands o;
  FIRN_TRY(resizeOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  FIRN_TRY(o.mode == nearest ? resizeNearest(call, o, *y) : resizeByTaps(call, o, *y));
  return o.transformation == tfCropAndResize ? extrapolate(call, o, *y) : FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, Resize, "ai.onnx::Resize", inferResize, runResize)

} // namespace firn::kernels
