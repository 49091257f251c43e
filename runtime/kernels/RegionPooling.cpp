// MaxRoiPool and RoiAlign: pooling over regions of interest of an image.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

// --- MaxRoiPool ------------------------------------------------------------------------------------------------------

struct RegionOperands {
  const firn_view *x, *regions, *images;
  int64_t count, channels, height, width;
  int64_t dims[4];
  double scale;
};

int32_t maxRoiOperands(firn_call *call, RegionOperands *o) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "rois", floatTypes, &o->regions));
  FIRN_TRY(requireSameDtype(call, "rois", o->regions, "X", *o->x));
  FIRN_TRY(requireRank(call, "X", *o->x, 4, 4));
  FIRN_TRY(requireRank(call, "rois", *o->regions, 2, 2));
  int64_t pooledCount, expected[2] = {o->regions->dims[0], 5};
  FIRN_TRY(requireShape(call, "rois", o->regions, expected, 2));
  const int64_t *pooled = intsAttribute(call, "pooled_shape", &pooledCount);
  if (pooledCount != 2 || pooled[0] < 1 || pooled[1] < 1 || pooled[0] > INT32_MAX || pooled[1] > INT32_MAX)
    return fail(call, FIRN_CALL_INVALID, "attribute pooled_shape must hold two positive sizes");
  o->scale = floatAttribute(call, "spatial_scale", 1);
  o->channels = o->x->dims[1];
  o->height = o->x->dims[2];
  o->width = o->x->dims[3];
  o->dims[0] = o->count = o->regions->dims[0];
  o->dims[1] = o->channels;
  o->dims[2] = pooled[0];
  o->dims[3] = pooled[1];
  return FIRN_CALL_OK;
}

int32_t inferMaxRoiPool(firn_call *call) {
  setRankLike(call, 0, 0, 4);
  RegionOperands o;
  FIRN_TRY(maxRoiOperands(call, &o));
  return setChecked(call, 0, o.x->dtype, o.dims, 4);
}

/// The cells [*first, *last) of one bin along an axis of `size` cells.
void binCells(double start, double extent, int64_t bin, int64_t bins, int64_t size, int64_t *first, int64_t *last) {
  double low = floor(double(bin) * extent / double(bins)) + start, limit = double(size);
  double high = ceil(double(bin + 1) * extent / double(bins)) + start;
  *first = low > 0 ? (low < limit ? int64_t(low) : size) : 0;
  *last = high < limit ? (high > 0 ? int64_t(high) : 0) : size;
}

/// Corners are rounded to cells; a bin without cells yields zero.
int32_t runMaxRoiPool(firn_call *call) {
  RegionOperands o;
  FIRN_TRY(maxRoiOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int64_t to = 0;
  for (int64_t r = 0; r < o.count; ++r) {
    double region[5];
    loadDoubles(*o.regions, r * 5, 1, 5, region);
    if (!(region[0] >= 0 && region[0] < double(o.x->dims[0])))
      return fail(call, FIRN_CALL_INVALID,
                  "rois[%lld] names an image that does not exist: expected 0 to %lld, found %g",
                  static_cast<long long>(r), static_cast<long long>(o.x->dims[0] - 1), region[0]);
    double left = round(region[1] * o.scale), top = round(region[2] * o.scale);
    double width = fmax(round(region[3] * o.scale) - left + 1, 1),
           height = fmax(round(region[4] * o.scale) - top + 1, 1);
    for (int64_t c = 0; c < o.channels; ++c)
      for (int64_t i = 0; i < o.dims[2]; ++i)
        for (int64_t j = 0; j < o.dims[3]; ++j) {
          int64_t firstRow, lastRow, firstColumn, lastColumn;
          binCells(top, height, i, o.dims[2], o.height, &firstRow, &lastRow);
          binCells(left, width, j, o.dims[3], o.width, &firstColumn, &lastColumn);
          double largest = firstRow < lastRow && firstColumn < lastColumn ? -double(INFINITY) : 0;
          int64_t plane = (int64_t(region[0]) * o.channels + c) * o.height;
          for (int64_t row = firstRow; row < lastRow; ++row)
            for (int64_t column = firstColumn; column < lastColumn; ++column) {
              double value = getDouble(*o.x, (plane + row) * o.width + column);
              largest = value > largest || isnan(value) ? value : largest;
            }
          setDouble(*y, to++, largest);
        }
  }
  return FIRN_CALL_OK;
}

// --- RoiAlign --------------------------------------------------------------------------------------------------------

int32_t roiAlignOperands(firn_call *call, RegionOperands *o, int32_t *mode, int32_t *transformation,
                         int64_t *samplingRatio) {
  static const char *const modes[] = {"avg", "max"};
  static const char *const transformations[] = {"half_pixel", "output_half_pixel"};
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "rois", floatTypes, &o->regions));
  FIRN_TRY(requireInput(call, 2, "batch_indices", typeSet(FIRN_I64), &o->images));
  FIRN_TRY(requireSameDtype(call, "rois", o->regions, "X", *o->x));
  FIRN_TRY(requireRank(call, "X", *o->x, 4, 4));
  FIRN_TRY(requireRank(call, "rois", *o->regions, 2, 2));
  int64_t expected[2] = {o->regions->dims[0], 4};
  FIRN_TRY(requireShape(call, "rois", o->regions, expected, 2));
  FIRN_TRY(requireVector(call, "batch_indices", o->images, expected[0]));
  FIRN_TRY(choiceAttribute(call, "mode", modes, 2, 0, mode));
  FIRN_TRY(choiceAttribute(call, "coordinate_transformation_mode", transformations, 2, 0, transformation));
  FIRN_TRY(boundedAttribute(call, "sampling_ratio", 0, 0, INT32_MAX, samplingRatio));
  FIRN_TRY(boundedAttribute(call, "output_height", 1, 1, INT32_MAX, &o->dims[2]));
  FIRN_TRY(boundedAttribute(call, "output_width", 1, 1, INT32_MAX, &o->dims[3]));
  o->scale = floatAttribute(call, "spatial_scale", 1);
  o->channels = o->x->dims[1];
  o->height = o->x->dims[2];
  o->width = o->x->dims[3];
  o->dims[0] = o->count = expected[0];
  o->dims[1] = o->channels;
  return FIRN_CALL_OK;
}

int32_t inferRoiAlign(firn_call *call) {
  setRankLike(call, 0, 0, 4);
  RegionOperands o;
  int32_t mode, transformation;
  int64_t samplingRatio;
  FIRN_TRY(roiAlignOperands(call, &o, &mode, &transformation, &samplingRatio));
  return setChecked(call, 0, o.x->dtype, o.dims, 4);
}

/// The four neighbours of a sample and their weights; no neighbours (weights 0) far outside.
struct Sample {
  int64_t at[4];
  double weight[4];
};

/// `low`, `high` and the share of `high` along an axis; false outside of [-1, size].
bool neighbours(double position, int64_t size, int64_t *low, int64_t *high, double *share) {
  if (!(position >= -1 && position <= double(size)))
    return false;
  position = position > 0 ? position : 0;
  *low = int64_t(position);
  *share = position - double(*low);
  *high = *low + 1;
  if (*low >= size - 1) {
    *low = *high = size - 1;
    *share = 0;
  }
  return true;
}

Sample sampleAt(const RegionOperands &o, double y, double x) {
  int64_t top, bottom, left, right;
  double down, across;
  Sample result = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if (!neighbours(y, o.height, &top, &bottom, &down) || !neighbours(x, o.width, &left, &right, &across))
    return result;
  int64_t at[4] = {top * o.width + left, top * o.width + right, bottom * o.width + left, bottom * o.width + right};
  double weight[4] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
  memcpy(result.at, at, sizeof at);
  memcpy(result.weight, weight, sizeof weight);
  return result;
}

int32_t runRoiAlign(firn_call *call) {
  RegionOperands o;
  int32_t mode, transformation;
  int64_t samplingRatio;
  FIRN_TRY(roiAlignOperands(call, &o, &mode, &transformation, &samplingRatio));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  double *plane;
  int64_t planeSize = o.height * o.width, to = 0;
  FIRN_TRY(allocate(call, planeSize, &plane));
  for (int64_t r = 0; r < o.count; ++r) {
    double region[4], shift = transformation == 0 ? 0.5 : 0;
    int64_t image = getInt(*o.images, r);
    if (image < 0 || image >= o.x->dims[0])
      return fail(call, FIRN_CALL_INVALID,
                  "batch_indices is out of range at position %lld: expected 0 to %lld, found %lld",
                  static_cast<long long>(r), static_cast<long long>(o.x->dims[0] - 1), static_cast<long long>(image));
    loadDoubles(*o.regions, r * 4, 1, 4, region);
    for (double &corner : region)
      corner = corner * o.scale - shift;
    double width = region[2] - region[0], height = region[3] - region[1];
    if (transformation == 1) { // a malformed region becomes one cell
      width = width > 1 ? width : 1;
      height = height > 1 ? height : 1;
    }
    double binHeight = height / double(o.dims[2]), binWidth = width / double(o.dims[3]);
    double rows = samplingRatio ? double(samplingRatio) : ceil(binHeight);
    double columns = samplingRatio ? double(samplingRatio) : ceil(binWidth);
    if (!(rows * columns < 1e9))
      return fail(call, FIRN_CALL_INVALID, "rois[%lld] is too large to sample: [%g, %g, %g, %g] after scaling",
                  static_cast<long long>(r), region[0], region[1], region[2], region[3]);
    int64_t gridRows = rows > 0 ? int64_t(rows) : 0, gridColumns = columns > 0 ? int64_t(columns) : 0;
    double count = gridRows * gridColumns > 0 ? double(gridRows * gridColumns) : 1;
    for (int64_t c = 0; c < o.channels; ++c) {
      loadDoubles(*o.x, (image * o.channels + c) * planeSize, 1, planeSize, plane);
      for (int64_t i = 0; i < o.dims[2]; ++i)
        for (int64_t j = 0; j < o.dims[3]; ++j) {
          double sum = 0, largest = 0;
          for (int64_t p = 0; p < gridRows; ++p)
            for (int64_t q = 0; q < gridColumns; ++q) {
              Sample s = sampleAt(o, region[1] + (double(i) + (double(p) + 0.5) / rows) * binHeight,
                                  region[0] + (double(j) + (double(q) + 0.5) / columns) * binWidth);
              for (int32_t k = 0; k < 4 && planeSize > 0; ++k) {
                // The maximum is over weighted neighbours, not over interpolated samples: so the operator has it.
                double value = s.weight[k] * plane[s.at[k]];
                sum += value;
                largest = (p | q | k) == 0 || value > largest ? value : largest;
              }
            }
          setDouble(*y, to++, mode == 0 ? sum / count : largest);
        }
    }
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, MaxRoiPool, "ai.onnx::MaxRoiPool", inferMaxRoiPool, runMaxRoiPool)
FIRN_OPERATOR(ai_onnx, RoiAlign, "ai.onnx::RoiAlign", inferRoiAlign, runRoiAlign)

} // namespace firn::kernels
