// Random numbers. A seed in the model gives the same numbers at every call; otherwise the caller's state moves on.
#include "runtime/kernels/Elementwise.h"

namespace firn::kernels {
namespace {

/// The Mersenne Twister MT19937, as numpy's RandomState uses it: ONNX's own seeded results come from there.
class Generator {
public:
  explicit Generator(uint32_t seed) {
    state[0] = seed;
    for (uint32_t i = 1; i < size; ++i)
      state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
  }

  /// Uniform in [0, 1), with 53 random bits.
  double uniform() {
    uint32_t high = next() >> 5, low = next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  /// Standard normal, by Box and Muller.
  double normal() {
    double radius = sqrt(-2 * log(1 - uniform()));
    return radius * cos(6.283185307179586 * uniform());
  }

private:
  static constexpr uint32_t size = 624, middle = 397;

  uint32_t next() {
    if (position == size)
      refill();
    uint32_t y = state[position++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  void refill() {
    for (uint32_t i = 0; i < size; ++i) {
      uint32_t y = (state[i] & 0x80000000u) | (state[(i + 1) % size] & 0x7fffffffu);
      state[i] = state[(i + middle) % size] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    position = 0;
  }

  uint32_t state[size];
  uint32_t position = size;
};

/// The model's seed, or one drawn from the caller's state (splitmix64).
uint32_t seedOf(firn_call *call) {
  if (const firn_attribute *seed = findAttribute(call, "seed")) {
    if (seed->kind == FIRN_ATTR_INT)
      return uint32_t(*static_cast<const int64_t *>(seed->data));
    if (seed->kind == FIRN_ATTR_FLOAT) {
      uint32_t bits;
      float value = *static_cast<const float *>(seed->data);
      if (value >= 0 && value < 4294967296.0f && value == floorf(value))
        return uint32_t(value);
      memcpy(&bits, &value, sizeof bits);
      return bits;
    }
  }
  uint64_t local = 0;
  uint64_t *state = call->random ? call->random : &local;
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return uint32_t(z ^ (z >> 32));
}

int32_t dtypeAttribute(firn_call *call, int64_t fallback, uint32_t allowed, int32_t *dtype) {
  int64_t wanted = intAttribute(call, "dtype", fallback);
  if (wanted <= 0 || wanted >= FIRN_DTYPE_COUNT || !(allowed & typeSet(int32_t(wanted))))
    return fail(call, FIRN_CALL_INVALID, "attribute 'dtype' is %lld, which this operator does not produce",
                static_cast<long long>(wanted));
  *dtype = int32_t(wanted);
  return FIRN_CALL_OK;
}

// --- RandomUniform, RandomNormal and their -Like forms ---------------------------------------------------------------

int32_t inferRandom(firn_call *call) {
  int32_t dtype;
  FIRN_TRY(dtypeAttribute(call, FIRN_F32, floatTypes, &dtype));
  int64_t rank;
  const int64_t *dims = intsAttribute(call, "shape", &rank);
  if (!findAttribute(call, "shape"))
    return fail(call, FIRN_CALL_INVALID, "attribute 'shape' is missing");
  return setChecked(call, 0, dtype, dims, rank > FIRN_MAX_RANK ? FIRN_MAX_RANK + 1 : int32_t(rank));
}

int32_t inferRandomLike(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  int32_t dtype;
  FIRN_TRY(dtypeAttribute(call, call->inputs[0].dtype, floatTypes, &dtype));
  return setChecked(call, 0, dtype, call->inputs[0].dims, call->inputs[0].rank);
}

template <typename Draw> int32_t fill(firn_call *call, Draw draw) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  Generator generator(seedOf(call));
  int64_t total = elementCount(*y);
  for (int64_t i = 0; i < total; ++i)
    setDouble(*y, i, draw(generator, i));
  return FIRN_CALL_OK;
}

int32_t runRandomUniform(firn_call *call) {
  double low = floatAttribute(call, "low", 0), high = floatAttribute(call, "high", 1);
  return fill(call, [=](Generator &generator, int64_t) { return low + (high - low) * generator.uniform(); });
}

int32_t runRandomNormal(firn_call *call) {
  double mean = floatAttribute(call, "mean", 0), scale = floatAttribute(call, "scale", 1);
  return fill(call, [=](Generator &generator, int64_t) { return mean + scale * generator.normal(); });
}

// --- Bernoulli, Multinomial ------------------------------------------------------------------------------------------

int32_t inferBernoulli(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  int32_t dtype;
  FIRN_TRY(dtypeAttribute(call, call->inputs[0].dtype, numericTypes | boolType, &dtype));
  return setChecked(call, 0, dtype, call->inputs[0].dims, call->inputs[0].rank);
}

int32_t runBernoulli(firn_call *call) {
  const firn_view &x = call->inputs[0];
  return fill(call, [&](Generator &generator, int64_t i) { return double(generator.uniform() < getDouble(x, i)); });
}

int32_t inferMultinomial(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  const firn_view &x = call->inputs[0];
  int32_t dtype;
  FIRN_TRY(dtypeAttribute(call, FIRN_I32, indexTypes, &dtype));
  if (x.rank != 2 || (x.dims[0] > 0 && x.dims[1] < 1)) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "input 0 must have shape [batch, classes] with a class to draw, found %s",
                shapeText(x, found, sizeof found));
  }
  int64_t dims[2] = {x.dims[0], intAttribute(call, "sample_size", 1)};
  return setChecked(call, 0, dtype, dims, 2);
}

/// Each row holds logarithms of weights. A draw is the first class at which the running weight passes the mark.
int32_t runMultinomial(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0];
  int64_t classes = x.dims[1], samples = y->dims[1];
  Generator generator(seedOf(call));
  for (int64_t b = 0; b < x.dims[0]; ++b) {
    double largest = -double(INFINITY), total = 0;
    for (int64_t c = 0; c < classes; ++c)
      largest = larger(largest, getDouble(x, b * classes + c));
    for (int64_t c = 0; c < classes; ++c)
      total += exp(getDouble(x, b * classes + c) - largest);
    for (int64_t s = 0; s < samples; ++s) {
      double mark = generator.uniform() * total, running = 0;
      int64_t chosen = 0;
      for (int64_t c = 0; c < classes; ++c) {
        double weight = exp(getDouble(x, b * classes + c) - largest);
        if (weight > 0)
          chosen = c; // where rounding leaves the mark unpassed, the last class that has a weight
        running += weight;
        if (running > mark)
          break;
      }
      setInt(*y, b * samples + s, chosen);
    }
  }
  return FIRN_CALL_OK;
}

// --- Dropout ---------------------------------------------------------------------------------------------------------

int32_t inferDropout(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes | float8Types));
  const firn_view &x = call->inputs[0];
  for (int32_t i = 1; i <= 2; ++i) {
    if (!input(call, i))
      continue;
    FIRN_TRY(requireInput(call, i, i == 1 ? floatTypes | float8Types : boolType));
    if (elementCount(call->inputs[i]) != 1)
      return fail(call, FIRN_CALL_INVALID, "%s must be one value, found %lld", i == 1 ? "ratio" : "training_mode",
                  static_cast<long long>(elementCount(call->inputs[i])));
  }
  FIRN_TRY(setChecked(call, 0, x.dtype, x.dims, x.rank));
  return setChecked(call, 1, FIRN_BOOL, x.dims, x.rank);
}

int32_t runDropout(firn_call *call) {
  const firn_view &x = call->inputs[0];
  const firn_view *y = output(call, 0), *mask = output(call, 1);
  int64_t total = elementCount(x);
  bool training = input(call, 2) && getInt(call->inputs[2], 0) != 0;
  double ratio = !training ? 0 : input(call, 1) ? getDouble(call->inputs[1], 0) : 0.5;
  if (!(ratio >= 0 && ratio < 1))
    return fail(call, FIRN_CALL_INVALID, "ratio must lie in [0, 1), found %g", ratio);
  if (ratio == 0) {
    if (y && total)
      copyElements(*y, 0, x, 0, total);
    if (mask && total)
      memset(mask->data, 1, size_t(total));
    return FIRN_CALL_OK;
  }
  Generator generator(seedOf(call));
  for (int64_t i = 0; i < total; ++i) {
    bool kept = generator.uniform() >= ratio;
    if (y)
      setDouble(*y, i, kept ? getDouble(x, i) / (1 - ratio) : 0);
    if (mask)
      setInt(*mask, i, kept);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, RandomUniform, "ai.onnx::RandomUniform", inferRandom, runRandomUniform)
FIRN_OPERATOR(ai_onnx, RandomUniformLike, "ai.onnx::RandomUniformLike", inferRandomLike, runRandomUniform)
FIRN_OPERATOR(ai_onnx, RandomNormal, "ai.onnx::RandomNormal", inferRandom, runRandomNormal)
FIRN_OPERATOR(ai_onnx, RandomNormalLike, "ai.onnx::RandomNormalLike", inferRandomLike, runRandomNormal)
FIRN_OPERATOR(ai_onnx, Bernoulli, "ai.onnx::Bernoulli", inferBernoulli, runBernoulli)
FIRN_OPERATOR(ai_onnx, Multinomial, "ai.onnx::Multinomial", inferMultinomial, runMultinomial)
FIRN_OPERATOR(ai_onnx, Dropout, "ai.onnx::Dropout", inferDropout, runDropout)

} // namespace firn::kernels
