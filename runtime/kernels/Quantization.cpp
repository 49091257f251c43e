// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Products of quantised tensors: QuantizedProduct.cpp.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

constexpr uint32_t quantizedTypes = byteTypes | float8Types | typeSet(FIRN_I16) | typeSet(FIRN_U16) | typeSet(FIRN_I4) |
                                    typeSet(FIRN_U4) | typeSet(FIRN_I2) | typeSet(FIRN_U2) | typeSet(FIRN_F4E2M1);
constexpr uint32_t realTypes = typeSet(FIRN_F32) | typeSet(FIRN_F16) | typeSet(FIRN_BF16);

/// Which scale and zero point belong to which element: x is [outer, lines, inner], and its line i has those at
/// (outer * groups + i / block) * stride..., one an inner element where innerStride is 1.
struct Granularity {
  int64_t outer, lines, inner;
  int64_t outerStride, block, lineStride, innerStride;
};

int32_t granularityOf(firn_call *call, const firn_view &x, const firn_view &scale, const char *scaleName,
                      const firn_view *zero, const char *zeroName, Granularity *result) {
  ShapeText xText = describe(x), scaleText = describe(scale);
  int64_t count = elementCount(scale), axis = intAttribute(call, "axis", 1), blockSize;
  FIRN_TRY(boundedAttribute(call, "block_size", 0, 0, INT64_MAX, &blockSize));
  if (zero && !(count == 1 && elementCount(*zero) == 1))
    FIRN_TRY(requireShape(call, zeroName, zero, scale.dims, scale.rank));
  if (count == 1) {
    *result = {1, 1, elementCount(x), 0, 1, 0, 0};
    return FIRN_CALL_OK;
  }
  int32_t at = x.rank == 1 ? 0 : normalizeAxis(axis, x.rank); // one axis needs no attribute
  if (at < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute axis is out of range: expected %d to %d, found %lld", -x.rank,
                x.rank - 1, static_cast<long long>(axis));
  int64_t lines = x.dims[at], inner = extent(x, at + 1, x.rank), outer = extent(x, 0, at);
  if (blockSize == 0) {
    if (scale.rank != 1 || scale.dims[0] != lines)
      return fail(call, FIRN_CALL_INVALID, "%s has the wrong shape for axis %d of x %s: expected [%lld], found %s",
                  scaleName, at, xText.text, static_cast<long long>(lines), scaleText.text);
    *result = {outer, lines, inner, 0, 1, 1, 0};
    return FIRN_CALL_OK;
  }
  int64_t groups = lines / blockSize + (lines % blockSize != 0), expected[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k)
    expected[k] = k == at ? groups : x.dims[k];
  FIRN_TRY(requireShape(call, scaleName, &scale, expected, x.rank));
  *result = {outer, lines, inner, groups * inner, blockSize, inner, 1};
  return FIRN_CALL_OK;
}

constexpr int64_t pieceLength = 256;

/// Calls convert(first element, count, scales, zeros) for pieces of x that lie in one line.
template <typename Convert>
void forEachPiece(const Granularity &g, const firn_view &scale, const firn_view *zero, Convert convert) {
  double scales[pieceLength], zeros[pieceLength] = {0};
  for (int64_t o = 0; o < g.outer; ++o)
    for (int64_t i = 0; i < g.lines; ++i) {
      int64_t first = (o * g.lines + i) * g.inner;
      int64_t parameter = o * g.outerStride + i / g.block * g.lineStride;
      for (int64_t j = 0; j < g.inner; j += pieceLength) {
        int64_t count = g.inner - j < pieceLength ? g.inner - j : pieceLength;
        if (j == 0 || g.innerStride) {
          int64_t values = g.inner < pieceLength ? g.inner : pieceLength;
          values = g.innerStride ? count : values;
          loadDoubles(scale, parameter + j * g.innerStride, g.innerStride, values, scales);
          if (zero)
            loadDoubles(*zero, parameter + j * g.innerStride, g.innerStride, values, zeros);
        }
        convert(first + j, count, scales, zeros);
      }
    }
}

// --- QuantizeLinear --------------------------------------------------------------------------------------------------

struct QuantizeOperands {
  const firn_view *x, *scale, *zero;
  Granularity granularity;
  int32_t dtype;     // of the result
  int32_t precision; // of the division
};

int32_t quantizeOperands(firn_call *call, QuantizeOperands *o) {
  constexpr uint32_t scaleTypes = realTypes | typeSet(FIRN_I32) | typeSet(FIRN_F8E8M0);
  FIRN_TRY(requireInput(call, 0, "x", realTypes | typeSet(FIRN_I32), &o->x));
  FIRN_TRY(requireInput(call, 1, "y_scale", scaleTypes, &o->scale));
  FIRN_TRY(optionalInput(call, 2, "y_zero_point", quantizedTypes, &o->zero));
  int64_t wanted = intAttribute(call, "output_dtype", 0);
  if (wanted != 0 && (wanted < 0 || wanted >= FIRN_DTYPE_COUNT || !(quantizedTypes & typeSet(int32_t(wanted)))))
    return fail(call, FIRN_CALL_INVALID, "attribute output_dtype is no quantised type: %lld",
                static_cast<long long>(wanted));
  o->dtype = o->zero ? o->zero->dtype : wanted ? int32_t(wanted) : FIRN_U8;
  if (wanted != 0 && wanted != o->dtype)
    return fail(call, FIRN_CALL_INVALID, "attribute output_dtype disagrees with y_zero_point: expected %s, found %s",
                dtypeName(o->dtype), dtypeName(int32_t(wanted)));
  int64_t precision = intAttribute(call, "precision", 0);
  if (precision != 0 && precision != FIRN_F32 && precision != FIRN_F16 && precision != FIRN_BF16)
    return fail(call, FIRN_CALL_INVALID, "attribute precision must be 1, 10 or 16, found %lld",
                static_cast<long long>(precision));
  bool isReal = (realTypes & typeSet(o->scale->dtype)) != 0;
  o->precision = precision ? int32_t(precision) : isReal ? o->scale->dtype : FIRN_F32;
  return granularityOf(call, *o->x, *o->scale, "y_scale", o->zero, "y_zero_point", &o->granularity);
}

int32_t inferQuantize(firn_call *call) {
  QuantizeOperands o;
  FIRN_TRY(quantizeOperands(call, &o));
  return setChecked(call, 0, o.dtype, o.x->dims, o.x->rank);
}

/// `value` rounded to float32, float16 or bfloat16.
double roundTo(int32_t precision, double value) {
  if (precision == FIRN_F32)
    return float(value);
  return precision == FIRN_F16 ? f16ToFloat(doubleToF16(value)) : bf16ToFloat(doubleToBf16(value));
}

/// The division rounds to its own precision before the quotient is rounded to an integer: ties depend on it.
int32_t runQuantize(firn_call *call) {
  QuantizeOperands o;
  FIRN_TRY(quantizeOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  if (firn_dtype_bits(o.dtype) < 8 && elementCount(*y) > 0) // defines the bits behind the last element
    memset(y->data, 0, size_t(firn_dtype_bytes(o.dtype, elementCount(*y))));
  bool saturates = intAttribute(call, "saturate", 1) != 0;
  bool isInteger = !isFloat(o.dtype), isFloat8 = (float8Types & typeSet(o.dtype)) != 0;
  forEachPiece(o.granularity, *o.scale, o.zero,
               [&](int64_t first, int64_t count, const double *scales, const double *zeros) {
                 double values[pieceLength];
                 loadDoubles(*o.x, first, 1, count, values);
                 for (int64_t i = 0; i < count; ++i) {
                   double quotient = roundTo(o.precision, values[i]) / roundTo(o.precision, scales[i]);
                   quotient = roundTo(o.precision, quotient);
                   values[i] = (isInteger ? rint(quotient) : quotient) + zeros[i];
                 }
                 if (isFloat8 && !saturates)
                   for (int64_t i = 0; i < count; ++i)
                     static_cast<uint8_t *>(y->data)[first + i] = uint8_t(encodeFloat(o.dtype, values[i], false, 0));
                 else
                   storeDoubles(*y, first, count, values);
               });
  return FIRN_CALL_OK;
}

// --- DequantizeLinear ------------------------------------------------------------------------------------------------

struct DequantizeOperands {
  const firn_view *x, *scale, *zero;
  Granularity granularity;
  int32_t dtype;
};

int32_t dequantizeOperands(firn_call *call, DequantizeOperands *o) {
  FIRN_TRY(requireInput(call, 0, "x", quantizedTypes | typeSet(FIRN_I32), &o->x));
  FIRN_TRY(requireInput(call, 1, "x_scale", realTypes | typeSet(FIRN_F8E8M0), &o->scale));
  FIRN_TRY(optionalInput(call, 2, "x_zero_point", quantizedTypes | typeSet(FIRN_I32), &o->zero));
  FIRN_TRY(requireSameDtype(call, "x_zero_point", o->zero, "x", *o->x));
  int64_t wanted = intAttribute(call, "output_dtype", 0);
  if (wanted == 0)
    wanted = o->scale->dtype;
  if (wanted < 0 || wanted >= FIRN_DTYPE_COUNT || !(realTypes & typeSet(int32_t(wanted))))
    return fail(call, FIRN_CALL_INVALID, "the output's type must be float32, float16 or bfloat16, found %s",
                dtypeName(int32_t(wanted)));
  o->dtype = int32_t(wanted);
  return granularityOf(call, *o->x, *o->scale, "x_scale", o->zero, "x_zero_point", &o->granularity);
}

int32_t inferDequantize(firn_call *call) {
  DequantizeOperands o;
  FIRN_TRY(dequantizeOperands(call, &o));
  return setChecked(call, 0, o.dtype, o.x->dims, o.x->rank);
}

int32_t runDequantize(firn_call *call) {
  DequantizeOperands o;
  FIRN_TRY(dequantizeOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  forEachPiece(o.granularity, *o.scale, o.zero,
               [&](int64_t first, int64_t count, const double *scales, const double *zeros) {
                 double values[pieceLength];
                 loadDoubles(*o.x, first, 1, count, values);
                 for (int64_t i = 0; i < count; ++i)
                   values[i] = (values[i] - zeros[i]) * scales[i];
                 storeDoubles(*y, first, count, values);
               });
  return FIRN_CALL_OK;
}

// --- DynamicQuantizeLinear -------------------------------------------------------------------------------------------

int32_t inferDynamicQuantize(firn_call *call) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "x", typeSet(FIRN_F32), &x));
  FIRN_TRY(setChecked(call, 0, FIRN_U8, x->dims, x->rank));
  FIRN_TRY(setChecked(call, 1, FIRN_F32, nullptr, 0));
  return setChecked(call, 2, FIRN_U8, nullptr, 0);
}

/// The range always includes zero; a tensor of zeros gets the scale of the range [0, 1]. All steps in float32, as the
/// operator's definition as a function has them.
int32_t runDynamicQuantize(firn_call *call) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "x", typeSet(FIRN_F32), &x));
  firn_view *y = output(call, 0), *scaleOutput = output(call, 1), *zeroOutput = output(call, 2);
  const float *values = static_cast<const float *>(x->data);
  int64_t count = elementCount(*x);
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = values[i] < low ? values[i] : low;
    high = values[i] > high ? values[i] : high;
  }
  float scale = (high == low ? 1.0f : high - low) / 255.0f;
  float zero = rintf(fminf(fmaxf(0.0f - low / scale, 0.0f), 255.0f));
  for (int64_t i = 0; i < count && y; ++i)
    setDouble(*y, i, double(rintf(values[i] / scale) + zero));
  if (scaleOutput)
    setDouble(*scaleOutput, 0, scale);
  if (zeroOutput)
    setDouble(*zeroOutput, 0, zero);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, DequantizeLinear, "ai.onnx::DequantizeLinear", inferDequantize, runDequantize)
FIRN_OPERATOR(ai_onnx, DynamicQuantizeLinear, "ai.onnx::DynamicQuantizeLinear", inferDynamicQuantize,
              runDynamicQuantize)
FIRN_OPERATOR(ai_onnx, QuantizeLinear, "ai.onnx::QuantizeLinear", inferQuantize, runQuantize)

} // namespace firn::kernels
