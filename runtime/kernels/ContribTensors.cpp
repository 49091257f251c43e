// com.microsoft: CropAndResize, Inverse, Rfft and Irfft.
#include "runtime/kernels/Compose.h"

FIRN_USES(DFT)
FIRN_USES(Squeeze)
FIRN_USES(Unsqueeze)

namespace firn::kernels {
namespace {

// --- CropAndResize ---------------------------------------------------------------------------------------------------

int32_t inferCropAndResize(firn_call *call) {
  static const char *const modes[] = {"bilinear", "nearest"};
  const firn_view *x, *rois, *batches, *size;
  int32_t mode;
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &x));
  FIRN_TRY(requireInput(call, 1, "rois", floatTypes, &rois));
  FIRN_TRY(requireInput(call, 2, "batch_indices", indexTypes, &batches));
  FIRN_TRY(requireInput(call, 3, "crop_size", indexTypes, &size));
  FIRN_TRY(choiceAttribute(call, "mode", modes, 2, 0, &mode));
  FIRN_TRY(requireRank(call, "X", *x, 4, 4));
  int64_t roiDims[2] = {rois->rank > 0 ? rois->dims[0] : 0, 4};
  FIRN_TRY(requireShape(call, "rois", rois, roiDims, 2));
  FIRN_TRY(requireVector(call, "batch_indices", batches, roiDims[0]));
  FIRN_TRY(requireVector(call, "crop_size", size, 2));
  setRank(call, 0, x->dtype, 4);
  FIRN_TRY(requireValue(call, 3));
  int64_t dims[4] = {roiDims[0], x->dims[1], getInt(*size, 0), getInt(*size, 1)};
  if (dims[2] < 1 || dims[3] < 1)
    return fail(call, FIRN_CALL_INVALID, "crop_size must be positive, found [%lld, %lld]",
                static_cast<long long>(dims[2]), static_cast<long long>(dims[3]));
  return setChecked(call, 0, x->dtype, dims, 4);
}

/// Where cell `i` of `count` lies between the normalised bounds `from` and `to` of an axis of `length` pixels.
double positionOf(double from, double to, int64_t i, int64_t count, int64_t length) {
  double span = double(length - 1);
  return count > 1 ? from * span + double(i) * ((to - from) * span / double(count - 1)) : 0.5 * (from + to) * span;
}

int32_t runCropAndResize(firn_call *call) {
  const firn_view &x = call->inputs[0], &rois = call->inputs[1], &batches = call->inputs[2], &y = call->outputs[0];
  bool isNearest = stringAttributeIs(call, "mode", "nearest", "bilinear");
  double outside = double(floatAttribute(call, "extrapolation_value", 0));
  int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3], rows = y.dims[2], columns = y.dims[3];
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    int64_t batch = getInt(batches, n);
    if (batch < 0 || batch >= x.dims[0])
      return fail(call, FIRN_CALL_INVALID, "batch_indices[%lld] must lie between 0 and %lld, found %lld",
                  static_cast<long long>(n), static_cast<long long>(x.dims[0] - 1), static_cast<long long>(batch));
    double bounds[4]; // y1, x1, y2, x2
    loadDoubles(rois, n * 4, 1, 4, bounds);
    for (int64_t i = 0; i < channels * rows * columns; ++i) {
      int64_t channel = i / (rows * columns), row = i / columns % rows, column = i % columns;
      double v = positionOf(bounds[0], bounds[2], row, rows, height);
      double h = positionOf(bounds[1], bounds[3], column, columns, width);
      double value = outside;
      if (v >= 0 && v <= double(height - 1) && h >= 0 && h <= double(width - 1)) {
        int64_t plane = (batch * channels + channel) * height;
        auto pixel = [&](double a, double b) { return getDouble(x, (plane + int64_t(a)) * width + int64_t(b)); };
        if (isNearest) {
          value = pixel(round(v), round(h));
        } else {
          double top = floor(v), left = floor(h), down = v - top, right = h - left;
          double upper = pixel(top, left) * (1 - right) + pixel(top, ceil(h)) * right;
          double lower = pixel(ceil(v), left) * (1 - right) + pixel(ceil(v), ceil(h)) * right;
          value = upper * (1 - down) + lower * down;
        }
      }
      setDouble(y, n * channels * rows * columns + i, value);
    }
  }
  return FIRN_CALL_OK;
}

// --- Inverse ---------------------------------------------------------------------------------------------------------

int32_t inferInverse(firn_call *call) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &x));
  FIRN_TRY(requireRank(call, "X", *x, 2, FIRN_MAX_RANK));
  if (x->dims[x->rank - 1] != x->dims[x->rank - 2]) {
    ShapeText found = describe(*x);
    return fail(call, FIRN_CALL_INVALID, "X must hold square matrices, found %s", found.text);
  }
  return setChecked(call, 0, x->dtype, x->dims, x->rank);
}

/// Gauss and Jordan's elimination of [A | I], rows exchanged for the greatest pivot.
int32_t runInverse(firn_call *call) {
  const firn_view &x = call->inputs[0];
  int64_t n = x.dims[x.rank - 1], width = 2 * n, total = elementCount(x);
  double *m;
  FIRN_TRY(allocate(call, n * width, &m));
  for (int64_t first = 0; first < total; first += n * n) {
    for (int64_t i = 0; i < n; ++i) {
      loadDoubles(x, first + i * n, 1, n, m + i * width);
      for (int64_t j = 0; j < n; ++j)
        m[i * width + n + j] = i == j;
    }
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i)
        if (fabs(m[i * width + k]) > fabs(m[pivot * width + k]))
          pivot = i;
      for (int64_t j = 0; j < width && pivot != k; ++j) {
        double kept = m[k * width + j];
        m[k * width + j] = m[pivot * width + j];
        m[pivot * width + j] = kept;
      }
      double scale = 1 / m[k * width + k]; // infinite for a singular matrix
      for (int64_t j = 0; j < width; ++j)
        m[k * width + j] *= scale;
      for (int64_t i = 0; i < n; ++i) {
        double factor = i == k ? 0 : m[i * width + k];
        for (int64_t j = 0; j < width && factor != 0; ++j)
          m[i * width + j] -= factor * m[k * width + j];
      }
    }
    for (int64_t i = 0; i < n; ++i)
      storeDoubles(call->outputs[0], first + i * n, n, m + i * width + n);
  }
  return FIRN_CALL_OK;
}

// --- Rfft, Irfft -----------------------------------------------------------------------------------------------------

using Value = Composer::Value;

Value transform(Composer &c, Value x, int64_t axis, bool isInverse, bool isHalf) {
  AttributeList attributes;
  attributes.integer("inverse", isInverse).integer("onesided", isHalf);
  return c.op(firn_op_ai_onnx_DFT, {x, Composer::absent, c.scalar(FIRN_I64, double(axis))}, attributes);
}

/// How many trailing axes the signal has; the attributes allow one-sided, unscaled transforms only.
int64_t signalAxes(Composer &c) {
  if (intAttribute(c.call, "normalized", 0) != 0 || intAttribute(c.call, "onesided", 1) != 1)
    c.refuse(FIRN_CALL_UNSUPPORTED, "attributes must be normalized=0 and onesided=1");
  int64_t axes = intAttribute(c.call, "signal_ndim", 1);
  if (axes >= 1 && axes <= 3)
    return axes;
  c.refuse(FIRN_CALL_INVALID, "attribute 'signal_ndim' must be 1, 2 or 3");
  return 1;
}

/// Real along the last axis, complex along those before. A last axis holds real and imaginary parts.
void rfft(Composer &c) {
  Value x = c.need(0, "X", floatTypes, 1);
  int64_t axes = signalAxes(c);
  x = transform(c, c.op(firn_op_ai_onnx_Unsqueeze, {x, c.integers({-1})}), -2, false, true);
  for (int64_t i = 1; i < axes; ++i)
    x = transform(c, x, -2 - i, false, false);
  c.result(0, x);
}

void irfft(Composer &c) {
  Value x = c.need(0, "X", floatTypes, 2);
  for (int64_t i = signalAxes(c) - 1; i > 0; --i)
    x = transform(c, x, -2 - i, true, false);
  x = transform(c, x, -2, true, true);
  c.result(0, c.op(firn_op_ai_onnx_Squeeze, {x, c.integers({-1})}));
}

} // namespace

FIRN_OPERATOR(com_microsoft, CropAndResize, "com.microsoft::CropAndResize", inferCropAndResize, runCropAndResize)
FIRN_OPERATOR(com_microsoft, Inverse, "com.microsoft::Inverse", inferInverse, runInverse)
FIRN_COMPOSITE(com_microsoft, Irfft, "com.microsoft::Irfft", irfft)
FIRN_COMPOSITE(com_microsoft, Rfft, "com.microsoft::Rfft", rfft)

} // namespace firn::kernels
