// Windows, Fourier transforms and what audio models make of them.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

constexpr double pi = 3.14159265358979323846;

/// Input `i`, if present, as one integer whose value must be known.
int32_t scalarInput(firn_call *call, int32_t i, const char *name, int64_t fallback, int64_t *value) {
  *value = fallback;
  if (!input(call, i))
    return FIRN_CALL_OK;
  FIRN_TRY(requireInput(call, i, indexTypes));
  if (elementCount(call->inputs[i]) != 1)
    return fail(call, FIRN_CALL_INVALID, "%s must be one value, found %lld", name,
                static_cast<long long>(elementCount(call->inputs[i])));
  FIRN_TRY(requireValue(call, i));
  *value = getInt(call->inputs[i], 0);
  return FIRN_CALL_OK;
}

int32_t outputDatatype(firn_call *call, int32_t *dtype) {
  int64_t wanted = intAttribute(call, "output_datatype", FIRN_F32);
  if (wanted <= 0 || wanted >= FIRN_DTYPE_COUNT || !(numericTypes & typeSet(int32_t(wanted))))
    return fail(call, FIRN_CALL_INVALID, "attribute 'output_datatype' must be a numeric type, found %lld",
                static_cast<long long>(wanted));
  *dtype = int32_t(wanted);
  return FIRN_CALL_OK;
}

// --- windows ---------------------------------------------------------------------------------------------------------

int32_t inferWindow(firn_call *call) {
  int64_t length;
  int32_t dtype;
  FIRN_TRY(requireInput(call, 0, indexTypes));
  FIRN_TRY(outputDatatype(call, &dtype));
  setRank(call, 0, dtype, 1);
  FIRN_TRY(scalarInput(call, 0, "size", 0, &length));
  if (length < 0)
    return fail(call, FIRN_CALL_INVALID, "size must not be negative, found %lld", static_cast<long long>(length));
  return setChecked(call, 0, dtype, &length, 1);
}

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
int32_t cosineWindow(firn_call *call, double a0, double a1, double a2) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int64_t length = y->dims[0];
  double n = double(intAttribute(call, "periodic", 1) != 0 ? length : length - 1);
  for (int64_t i = 0; i < length; ++i) {
    double angle = n > 0 ? 2 * pi * double(i) / n : pi; // a symmetric window of one element is its peak
    setDouble(*y, i, a0 - a1 * cos(angle) + a2 * cos(2 * angle));
  }
  return FIRN_CALL_OK;
}

int32_t runHannWindow(firn_call *call) { return cosineWindow(call, 0.5, 0.5, 0); }
int32_t runHammingWindow(firn_call *call) { return cosineWindow(call, 25.0 / 46, 21.0 / 46, 0); }
int32_t runBlackmanWindow(firn_call *call) { return cosineWindow(call, 0.42, 0.5, 0.08); }

// --- MelWeightMatrix -------------------------------------------------------------------------------------------------

int32_t inferMelWeightMatrix(firn_call *call) {
  static const char names[][17] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"};
  int64_t values[3];
  int32_t dtype;
  FIRN_TRY(outputDatatype(call, &dtype));
  setRank(call, 0, dtype, 2);
  for (int32_t i = 0; i < 3; ++i) {
    FIRN_TRY(requireInput(call, i, indexTypes));
    FIRN_TRY(scalarInput(call, i, names[i], 0, &values[i]));
    if (values[i] < 1)
      return fail(call, FIRN_CALL_INVALID, "%s must be positive, found %lld", names[i],
                  static_cast<long long>(values[i]));
  }
  for (int32_t i = 3; i < 5; ++i) {
    FIRN_TRY(requireInput(call, i, floatTypes));
    if (elementCount(call->inputs[i]) != 1)
      return fail(call, FIRN_CALL_INVALID, "%s must be one value, found %lld", names[i],
                  static_cast<long long>(elementCount(call->inputs[i])));
  }
  int64_t dims[2] = {values[1] / 2 + 1, values[0]};
  return setChecked(call, 0, dtype, dims, 2);
}

/// The spectrogram bin of edge `i` of the triangles, which are equally wide on the mel scale.
double melEdge(firn_call *call, int64_t i) {
  auto melOf = [](double hertz) { return 2595 * log10(1 + hertz / 700); };
  double low = melOf(getDouble(call->inputs[3], 0)), high = melOf(getDouble(call->inputs[4], 0));
  double bins = double(getInt(call->inputs[0], 0)), length = double(getInt(call->inputs[1], 0));
  double mel = low + double(i) * (high - low) / (bins + 2);
  double hertz = 700 * (pow(10, mel / 2595) - 1);
  return floor((length + 1) * hertz / double(getInt(call->inputs[2], 0)));
}

int32_t runMelWeightMatrix(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int64_t rows = y->dims[0], bins = y->dims[1];
  for (int64_t bin = 0; bin < bins; ++bin) {
    double low = melEdge(call, bin), center = melEdge(call, bin + 1), high = melEdge(call, bin + 2);
    for (int64_t row = 0; row < rows; ++row) {
      double j = double(row), weight = 0;
      if (j == center)
        weight = 1;
      else if (j >= low && j < center)
        weight = (j - low) / (center - low);
      else if (j > center && j < high)
        weight = (high - j) / (high - center);
      setDouble(*y, row * bins + bin, weight);
    }
  }
  return FIRN_CALL_OK;
}

// --- Fourier transforms ----------------------------------------------------------------------------------------------

/// Scratch memory of a transform of `n` points: the signal and the roots of unity.
struct Transform {
  int64_t n;
  double *real, *imaginary, *cosine, *sine;

  int32_t prepare(firn_call *call, int64_t points, bool inverse) {
    n = points;
    real = scratch<double>(call, 4 * n + 1);
    if (!real)
      return fail(call, FIRN_CALL_NO_MEMORY, "no memory for a transform of %lld points", static_cast<long long>(n));
    imaginary = real + n;
    cosine = imaginary + n;
    sine = cosine + n;
    for (int64_t k = 0; k < n; ++k) {
      double angle = (inverse ? 2 : -2) * pi * double(k) / double(n);
      cosine[k] = cos(angle);
      sine[k] = sin(angle);
    }
    return FIRN_CALL_OK;
  }

  /// Value `k` of the transform, not normalised.
  void valueAt(int64_t k, double *realPart, double *imaginaryPart) const {
    *realPart = *imaginaryPart = 0;
    for (int64_t t = 0, root = 0; t < n; ++t, root = root + k < n ? root + k : root + k - n) {
      *realPart += real[t] * cosine[root] - imaginary[t] * sine[root];
      *imaginaryPart += real[t] * sine[root] + imaginary[t] * cosine[root];
    }
  }
};

struct DftShape {
  int32_t axis;
  int64_t length; // of the transform
  bool inverse, onesided;
};

int32_t dftShape(firn_call *call, DftShape *shape) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  const firn_view &x = call->inputs[0];
  shape->inverse = intAttribute(call, "inverse", 0) != 0;
  shape->onesided = intAttribute(call, "onesided", 0) != 0;
  int64_t axis;
  FIRN_TRY(scalarInput(call, 2, "axis", -2, &axis));
  if (x.rank < 2 || x.dims[x.rank - 1] < 1 || x.dims[x.rank - 1] > 2) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "the last axis of the input must have length 1 or 2, found shape %s",
                shapeText(x, found, sizeof found));
  }
  FIRN_TRY(checkAxis(call, axis, x.rank, &shape->axis));
  if (shape->axis == x.rank - 1)
    return fail(call, FIRN_CALL_INVALID, "axis must not be the last one, which holds real and imaginary parts");
  int64_t n = x.dims[shape->axis];
  bool fromHalf = shape->inverse && shape->onesided;
  FIRN_TRY(scalarInput(call, 1, "dft_length", fromHalf ? 2 * (n - 1) : n, &shape->length));
  if (shape->length < 1 || shape->length > int64_t(1) << 40)
    return fail(call, FIRN_CALL_INVALID, "dft_length must be positive, found %lld",
                static_cast<long long>(shape->length));
  if (shape->onesided && x.dims[x.rank - 1] != (shape->inverse ? 2 : 1))
    return fail(call, FIRN_CALL_INVALID, "a one-sided transform needs a last axis of length %d, found %lld",
                shape->inverse ? 2 : 1, static_cast<long long>(x.dims[x.rank - 1]));
  return FIRN_CALL_OK;
}

int32_t inferDFT(firn_call *call) {
  DftShape shape;
  FIRN_TRY(requireInput(call, 0, floatTypes));
  setRank(call, 0, call->inputs[0].dtype, call->inputs[0].rank);
  FIRN_TRY(dftShape(call, &shape));
  firn_view result = call->inputs[0];
  result.dims[shape.axis] = shape.onesided && !shape.inverse ? shape.length / 2 + 1 : shape.length;
  result.dims[result.rank - 1] = shape.onesided && shape.inverse ? 1 : 2;
  return setChecked(call, 0, result.dtype, result.dims, result.rank);
}

int32_t runDFT(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  DftShape shape;
  FIRN_TRY(dftShape(call, &shape));
  Transform transform;
  FIRN_TRY(transform.prepare(call, shape.length, shape.inverse));
  int64_t n = shape.length, parts = x.dims[x.rank - 1], resultParts = y->dims[y->rank - 1];
  int64_t outer = extent(x, 0, shape.axis), inner = extent(x, shape.axis + 1, x.rank - 1);
  int64_t given = x.dims[shape.axis], results = y->dims[shape.axis];
  bool fromHalf = shape.inverse && shape.onesided;
  int64_t used = fromHalf ? n / 2 + 1 : n; // beyond it the signal follows from symmetry
  double scale = shape.inverse ? 1 / double(n) : 1;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t t = 0; t < n; ++t) {
        int64_t source = t < used ? t : n - t; // the conjugate
        int64_t at = ((o * given + source) * inner + i) * parts;
        transform.real[t] = source < given ? getDouble(x, at) : 0;
        transform.imaginary[t] = source < given && parts == 2 ? getDouble(x, at + 1) : 0;
        if (t >= used)
          transform.imaginary[t] = -transform.imaginary[t];
        if (fromHalf && 2 * t % n == 0)
          transform.imaginary[t] = 0; // its own conjugate
      }
      for (int64_t k = 0; k < results; ++k) {
        double real, imaginary;
        transform.valueAt(k, &real, &imaginary);
        int64_t at = ((o * results + k) * inner + i) * resultParts;
        setDouble(*y, at, real * scale);
        if (resultParts == 2)
          setDouble(*y, at + 1, imaginary * scale);
      }
    }
  return FIRN_CALL_OK;
}

struct StftShape {
  int64_t step, length, frames, bins;
};

int32_t stftShape(firn_call *call, StftShape *shape) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  FIRN_TRY(requireInput(call, 1, indexTypes));
  const firn_view &x = call->inputs[0], *window = input(call, 2);
  if (x.rank != 3 || x.dims[2] < 1 || x.dims[2] > 2) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "signal must have shape [batch, length, 1 or 2], found %s",
                shapeText(x, found, sizeof found));
  }
  if (window) {
    FIRN_TRY(requireSameType(call, 0, 2));
    if (window->rank != 1)
      return fail(call, FIRN_CALL_INVALID, "window must have one axis, found %d", window->rank);
  }
  FIRN_TRY(scalarInput(call, 1, "frame_step", 0, &shape->step));
  FIRN_TRY(scalarInput(call, 3, "frame_length", window ? window->dims[0] : x.dims[1], &shape->length));
  if (shape->step < 1)
    return fail(call, FIRN_CALL_INVALID, "frame_step must be positive, found %lld",
                static_cast<long long>(shape->step));
  if (shape->length < 1 || shape->length > x.dims[1] || (window && window->dims[0] != shape->length))
    return fail(call, FIRN_CALL_INVALID,
                "frame_length must lie in [1, %lld], the length of the signal, and be that of the "
                "window (%lld): found %lld",
                static_cast<long long>(x.dims[1]), static_cast<long long>(window ? window->dims[0] : shape->length),
                static_cast<long long>(shape->length));
  bool onesided = intAttribute(call, "onesided", 1) != 0;
  if (onesided && x.dims[2] == 2)
    return fail(call, FIRN_CALL_INVALID, "a complex signal has no one-sided transform");
  shape->frames = (x.dims[1] - shape->length) / shape->step + 1;
  shape->bins = onesided ? shape->length / 2 + 1 : shape->length;
  return FIRN_CALL_OK;
}

int32_t inferSTFT(firn_call *call) {
  StftShape shape;
  FIRN_TRY(requireInput(call, 0, floatTypes));
  setRank(call, 0, call->inputs[0].dtype, 4);
  FIRN_TRY(stftShape(call, &shape));
  int64_t dims[4] = {call->inputs[0].dims[0], shape.frames, shape.bins, 2};
  return setChecked(call, 0, call->inputs[0].dtype, dims, 4);
}

int32_t runSTFT(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0], *window = input(call, 2);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  StftShape shape;
  FIRN_TRY(stftShape(call, &shape));
  Transform transform;
  FIRN_TRY(transform.prepare(call, shape.length, false));
  int64_t parts = x.dims[2], to = 0;
  for (int64_t b = 0; b < x.dims[0]; ++b)
    for (int64_t frame = 0; frame < shape.frames; ++frame) {
      for (int64_t t = 0; t < shape.length; ++t) {
        int64_t at = (b * x.dims[1] + frame * shape.step + t) * parts;
        double weight = window ? getDouble(*window, t) : 1;
        transform.real[t] = weight * getDouble(x, at);
        transform.imaginary[t] = parts == 2 ? weight * getDouble(x, at + 1) : 0;
      }
      for (int64_t k = 0; k < shape.bins; ++k) {
        double real, imaginary;
        transform.valueAt(k, &real, &imaginary);
        setDouble(*y, to++, real);
        setDouble(*y, to++, imaginary);
      }
    }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, HannWindow, "ai.onnx::HannWindow", inferWindow, runHannWindow)
FIRN_OPERATOR(ai_onnx, HammingWindow, "ai.onnx::HammingWindow", inferWindow, runHammingWindow)
FIRN_OPERATOR(ai_onnx, BlackmanWindow, "ai.onnx::BlackmanWindow", inferWindow, runBlackmanWindow)
FIRN_OPERATOR(ai_onnx, MelWeightMatrix, "ai.onnx::MelWeightMatrix", inferMelWeightMatrix, runMelWeightMatrix)
FIRN_OPERATOR(ai_onnx, DFT, "ai.onnx::DFT", inferDFT, runDFT)
FIRN_OPERATOR(ai_onnx, STFT, "ai.onnx::STFT", inferSTFT, runSTFT)

} // namespace firn::kernels
