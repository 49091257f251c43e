// Sampling an image at positions that a grid names, making such grids, and putting an image together from its blocks.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

// --- AffineGrid ------------------------------------------------------------------------------------------------------

int32_t inferAffineGrid(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, floatTypes));
  const firn_view &theta = call->inputs[0];
  if (theta.rank == 3 && (theta.dims[1] == 2 || theta.dims[1] == 3))
    setRank(call, 0, theta.dtype, int32_t(theta.dims[1]) + 2);
  FIRN_TRY(requireIntegers(call, 1, "size", typeSet(FIRN_I64)));
  const firn_view &size = call->inputs[1];
  int64_t axes = elementCount(size) - 2;
  if ((axes != 2 && axes != 3) || theta.rank != 3 || theta.dims[1] != axes || theta.dims[2] != axes + 1 ||
      theta.dims[0] != getInt(size, 0)) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID,
                "theta must have shape [n, 2, 3] for size [n, c, h, w] and [n, 3, 4] for size "
                "[n, c, d, h, w], found %s and %lld sizes",
                shapeText(theta, found, sizeof found), static_cast<long long>(axes + 2));
  }
  int64_t dims[5] = {theta.dims[0]};
  for (int64_t k = 0; k < axes; ++k)
    dims[1 + k] = getInt(size, 2 + k);
  dims[1 + axes] = axes;
  return setChecked(call, 0, theta.dtype, dims, int32_t(axes) + 2);
}

int32_t runAffineGrid(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  const firn_view &theta = call->inputs[0];
  bool align = intAttribute(call, "align_corners", 0) != 0;
  int32_t axes = y->rank - 2;
  int64_t index[FIRN_MAX_RANK] = {}, to = 0; // n and the position
  do {
    for (int32_t row = 0; row < axes; ++row) {
      int64_t from = (index[0] * axes + row) * (axes + 1);
      double sum = getDouble(theta, from + axes);
      for (int32_t k = 0; k < axes; ++k) { // the innermost axis comes first
        int64_t i = index[axes - k], n = y->dims[axes - k];
        double position =
            align ? (n > 1 ? 2.0 * double(i) / double(n - 1) - 1 : 0) : (2.0 * double(i) + 1) / double(n) - 1;
        sum += getDouble(theta, from + k) * position;
      }
      setDouble(*y, to++, sum);
    }
  } while (nextIndex(index, y->dims, axes + 1));
  return FIRN_CALL_OK;
}

// --- GridSample ------------------------------------------------------------------------------------------------------

enum class Padding { Zeros, Border, Reflection };
enum class Mode { Nearest, Linear, Cubic };

struct Sampling {
  Mode mode = Mode::Linear;
  Padding padding = Padding::Zeros;
  bool align = false;
};

int32_t samplingOf(firn_call *call, Sampling *sampling) {
  static const char modes[][8] = {"nearest", "linear", "cubic"}, paddings[][11] = {"zeros", "border", "reflection"};
  int32_t mode = -1, padding = -1;
  for (int32_t k = 0; k < 3; ++k) {
    if (stringAttributeIs(call, "mode", modes[k], "linear"))
      mode = k;
    if (stringAttributeIs(call, "padding_mode", paddings[k], "zeros"))
      padding = k;
  }
  if (mode < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute 'mode' must be nearest, linear or cubic");
  if (padding < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute 'padding_mode' must be zeros, border or reflection");
  *sampling = {Mode(mode), Padding(padding), intAttribute(call, "align_corners", 0) != 0};
  return FIRN_CALL_OK;
}

int32_t inferGridSample(firn_call *call) {
  setRankLike(call, 0, 0);
  FIRN_TRY(requireInput(call, 0, numericTypes | boolType));
  FIRN_TRY(requireInput(call, 1, floatTypes));
  Sampling sampling;
  FIRN_TRY(samplingOf(call, &sampling));
  const firn_view &x = call->inputs[0], &grid = call->inputs[1];
  if (x.rank < 3 || grid.rank != x.rank || grid.dims[0] != x.dims[0] || grid.dims[grid.rank - 1] != x.rank - 2) {
    char image[320], found[320];
    return fail(call, FIRN_CALL_INVALID,
                "grid must have shape [%lld, ..., %d] with as many axes as the input %s, found %s",
                static_cast<long long>(x.dims[0]), x.rank - 2, shapeText(x, image, sizeof image),
                shapeText(grid, found, sizeof found));
  }
  int64_t dims[FIRN_MAX_RANK] = {x.dims[0], x.dims[1]};
  for (int32_t k = 2; k < x.rank; ++k)
    dims[k] = grid.dims[k - 1];
  return setChecked(call, 0, x.dtype, dims, x.rank);
}

/// Brings a position back between the borders by mirroring it at them.
double reflect(double position, double low, double high) {
  double range = high - low;
  if (range <= 0)
    return low;
  double distance = fmod(fabs(position - low), 2 * range);
  return distance <= range ? low + distance : high - (distance - range);
}

/// The taps of one axis: elements (-1 stands for zero) and their weights.
struct Taps {
  int32_t count;
  int64_t element[4];
  double weight[4];
};

/// The element that a tap at whole position `i` reads.
int64_t elementAt(double i, int64_t n, const Sampling &sampling) {
  if (i >= 0 && i < double(n))
    return int64_t(i);
  if (sampling.padding == Padding::Zeros)
    return -1;
  if (sampling.padding == Padding::Reflection)
    i = sampling.align ? reflect(i, 0, double(n - 1)) : reflect(i, -0.5, double(n) - 0.5);
  return i > 0 ? (i < double(n) ? int64_t(i) : n - 1) : 0;
}

Taps tapsOf(double normalized, int64_t n, const Sampling &sampling) {
  double x = sampling.align ? (normalized + 1) / 2 * double(n - 1) : ((normalized + 1) * double(n) - 1) / 2;
  if (isnan(x))
    x = -1;
  x = x < -1e15 ? -1e15 : x > 1e15 ? 1e15 : x; // whole numbers stay exact
  if (sampling.mode == Mode::Nearest)
    return {1, {elementAt(rint(x), n, sampling)}, {1}};
  if (sampling.mode == Mode::Linear) {
    // The position itself goes back inside; cubic taps go back one by one.
    if (sampling.padding == Padding::Border)
      x = x < 0 ? 0 : x > double(n - 1) ? double(n - 1) : x;
    else if (sampling.padding == Padding::Reflection)
      x = sampling.align ? reflect(x, 0, double(n - 1)) : reflect(x, -0.5, double(n) - 0.5);
    double first = floor(x), t = x - first;
    return {2, {elementAt(first, n, sampling), elementAt(first + 1, n, sampling)}, {1 - t, t}};
  }
  const double a = -0.75;
  double first = floor(x), t = x - first;
  Taps taps = {4, {}, {}};
  for (int32_t k = 0; k < 4; ++k) {
    double distance = fabs(t - (k - 1));
    taps.element[k] = elementAt(first + k - 1, n, sampling);
    taps.weight[k] = distance <= 1 ? ((a + 2) * distance - (a + 3)) * distance * distance + 1
                                   : ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
  }
  return taps;
}

int32_t runGridSample(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0], &grid = call->inputs[1];
  Sampling sampling;
  FIRN_TRY(samplingOf(call, &sampling));
  int32_t axes = x.rank - 2;
  for (int32_t k = 0; k < axes; ++k)
    if (x.dims[2 + k] == 0)
      return fail(call, FIRN_CALL_INVALID, "axis %d of the input is empty: there is nothing to sample", 2 + k);
  int64_t image = extent(x, 2, x.rank), points = extent(*y, 2, y->rank), channels = x.dims[1];
  for (int64_t n = 0; n < x.dims[0]; ++n)
    for (int64_t p = 0; p < points; ++p) {
      Taps taps[FIRN_MAX_RANK];
      int64_t counts[FIRN_MAX_RANK];
      for (int32_t k = 0; k < axes; ++k) { // a position lists the innermost axis first
        taps[k] = tapsOf(getDouble(grid, (n * points + p) * axes + (axes - 1 - k)), x.dims[2 + k], sampling);
        counts[k] = taps[k].count;
      }
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        int64_t index[FIRN_MAX_RANK] = {};
        do {
          double weight = 1;
          int64_t element = 0;
          for (int32_t k = 0; k < axes; ++k) {
            int64_t chosen = taps[k].element[index[k]];
            weight = chosen < 0 ? 0 : weight * taps[k].weight[index[k]];
            element = element * x.dims[2 + k] + (chosen < 0 ? 0 : chosen);
          }
          if (weight != 0)
            sum += weight * getDouble(x, (n * channels + c) * image + element);
        } while (nextIndex(index, counts, axes));
        setDouble(*y, (n * channels + c) * points + p, sum);
      }
    }
  return FIRN_CALL_OK;
}

// --- Col2Im ----------------------------------------------------------------------------------------------------------

/// The blocks of an image: for each spatial axis the sizes, and how many blocks fit.
struct Blocks {
  int32_t axes;
  int64_t image[FIRN_MAX_RANK], block[FIRN_MAX_RANK], stride[FIRN_MAX_RANK], dilation[FIRN_MAX_RANK],
      pad[FIRN_MAX_RANK], count[FIRN_MAX_RANK];
};

int32_t spatialAttribute(firn_call *call, const char *name, int64_t axes, int64_t low, int64_t fallback,
                         int64_t *values) {
  int64_t count;
  const int64_t *given = intsAttribute(call, name, &count);
  if (given && count != axes)
    return fail(call, FIRN_CALL_INVALID, "attribute '%s' must have %lld values, found %lld", name,
                static_cast<long long>(axes), static_cast<long long>(count));
  for (int64_t k = 0; k < axes; ++k) {
    values[k] = given ? given[k] : fallback;
    if (values[k] < low || values[k] > int64_t(1) << 40)
      return fail(call, FIRN_CALL_INVALID, "attribute '%s' must be at least %lld, found %lld", name,
                  static_cast<long long>(low), static_cast<long long>(values[k]));
  }
  return FIRN_CALL_OK;
}

int32_t blocksOf(firn_call *call, Blocks *blocks) {
  const firn_view &image = call->inputs[1], &block = call->inputs[2];
  int64_t axes = elementCount(image);
  if (axes < 1 || axes > FIRN_MAX_RANK - 2 || elementCount(block) != axes)
    return fail(call, FIRN_CALL_INVALID,
                "image_shape and block_shape must have the same length, up to %d: found %lld and "
                "%lld",
                FIRN_MAX_RANK - 2, static_cast<long long>(axes), static_cast<long long>(elementCount(block)));
  blocks->axes = int32_t(axes);
  int64_t pads[2 * FIRN_MAX_RANK];
  FIRN_TRY(spatialAttribute(call, "strides", axes, 1, 1, blocks->stride));
  FIRN_TRY(spatialAttribute(call, "dilations", axes, 1, 1, blocks->dilation));
  FIRN_TRY(spatialAttribute(call, "pads", 2 * axes, 0, 0, pads));
  int64_t product = 1, total = 1;
  for (int32_t k = 0; k < axes; ++k) {
    blocks->image[k] = getInt(image, k);
    blocks->block[k] = getInt(block, k);
    blocks->pad[k] = pads[k];
    const int64_t limit = int64_t(1) << 40;
    if (blocks->image[k] < 1 || blocks->image[k] > limit || blocks->block[k] < 1 || blocks->block[k] > 1 << 20)
      return fail(call, FIRN_CALL_INVALID,
                  "image_shape and block_shape must be positive, found %lld and %lld on axis %d",
                  static_cast<long long>(blocks->image[k]), static_cast<long long>(blocks->block[k]), k);
    int64_t span;
    if (__builtin_mul_overflow(blocks->dilation[k], blocks->block[k] - 1, &span))
      span = INT64_MAX / 2;
    int64_t room = blocks->image[k] + pads[k] + pads[axes + k] - span - 1;
    blocks->count[k] = room < 0 ? 0 : room / blocks->stride[k] + 1;
    if (__builtin_mul_overflow(product, blocks->block[k], &product) ||
        __builtin_mul_overflow(total, blocks->count[k], &total))
      return fail(call, FIRN_CALL_INVALID, "image_shape and block_shape are too large");
  }
  const firn_view &x = call->inputs[0];
  if (x.rank != 3 || x.dims[1] % product != 0 || x.dims[2] != total) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "input 0 must have shape [n, a multiple of %lld, %lld], found %s",
                static_cast<long long>(product), static_cast<long long>(total), shapeText(x, found, sizeof found));
  }
  return FIRN_CALL_OK;
}

int32_t inferCol2Im(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  FIRN_TRY(requireInput(call, 1, typeSet(FIRN_I64)));
  if (int64_t axes = elementCount(call->inputs[1]); axes + 2 <= FIRN_MAX_RANK)
    setRank(call, 0, call->inputs[0].dtype, int32_t(axes) + 2);
  FIRN_TRY(requireIntegers(call, 1, "image_shape", typeSet(FIRN_I64)));
  FIRN_TRY(requireIntegers(call, 2, "block_shape", typeSet(FIRN_I64)));
  Blocks blocks;
  FIRN_TRY(blocksOf(call, &blocks));
  int64_t dims[FIRN_MAX_RANK] = {call->inputs[0].dims[0], call->inputs[0].dims[1]};
  for (int32_t k = 0; k < blocks.axes; ++k) {
    dims[1] /= blocks.block[k];
    dims[2 + k] = blocks.image[k];
  }
  return setChecked(call, 0, call->inputs[0].dtype, dims, blocks.axes + 2);
}

/// Each pixel is the sum over the positions within a block of the block that has the pixel there, if there is one.
template <typename T> void gatherBlocks(const firn_view &x, const firn_view &y, const Blocks &blocks) {
  int64_t positions = 1, total = x.dims[2];
  for (int32_t k = 0; k < blocks.axes; ++k)
    positions *= blocks.block[k];
  int64_t index[FIRN_MAX_RANK] = {}, to = 0; // n, channel, pixel
  do {
    T sum = 0;
    int64_t within[FIRN_MAX_RANK] = {}, position = 0;
    do {
      int64_t column = 0;
      bool covered = true;
      for (int32_t k = 0; k < blocks.axes && covered; ++k) {
        int64_t start = index[2 + k] + blocks.pad[k] - within[k] * blocks.dilation[k];
        covered = start >= 0 && start % blocks.stride[k] == 0 && start / blocks.stride[k] < blocks.count[k];
        column = column * blocks.count[k] + start / blocks.stride[k];
      }
      if (covered) {
        T element;
        load(x, ((index[0] * y.dims[1] + index[1]) * positions + position) * total + column, 1, 1, &element);
        sum += element;
      }
      ++position;
    } while (nextIndex(within, blocks.block, blocks.axes));
    store(y, to++, 1, &sum);
  } while (nextIndex(index, y.dims, y.rank));
}

int32_t runCol2Im(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  Blocks blocks;
  FIRN_TRY(blocksOf(call, &blocks));
  if (isFloat(y->dtype))
    gatherBlocks<double>(call->inputs[0], *y, blocks);
  else
    gatherBlocks<int64_t>(call->inputs[0], *y, blocks);
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, AffineGrid, "ai.onnx::AffineGrid", inferAffineGrid, runAffineGrid)
FIRN_OPERATOR(ai_onnx, GridSample, "ai.onnx::GridSample", inferGridSample, runGridSample)
FIRN_OPERATOR(ai_onnx, Col2Im, "ai.onnx::Col2Im", inferCol2Im, runCol2Im)

} // namespace firn::kernels
