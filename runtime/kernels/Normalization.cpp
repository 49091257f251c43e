// Normalisation by mean and variance, by a norm, and across channels.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

struct Moments {
  double mean, variance; // of the population
};

/// In two passes: a mean far larger than the spread does not destroy the variance.
Moments momentsOf(const double *values, int64_t count) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += values[i];
  double mean = sum / double(count);
  for (int64_t i = 0; i < count; ++i)
    squares += (values[i] - mean) * (values[i] - mean);
  return {mean, squares / double(count)};
}

int32_t inferLikeFirst(firn_call *call) {
  const firn_view *x = input(call, 0);
  return setChecked(call, 0, x->dtype, x->dims, x->rank);
}

// --- BatchNormalization ----------------------------------------------------------------------------------------------

struct BatchNormOperands {
  const firn_view *x, *scale, *bias, *mean, *variance;
  int64_t batch, channels, inner; // X is [batch, channels, inner]
  bool isTraining;
};

int32_t batchNormOperands(firn_call *call, BatchNormOperands *o) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "scale", floatTypes, &o->scale));
  FIRN_TRY(requireInput(call, 2, "B", floatTypes, &o->bias));
  FIRN_TRY(requireInput(call, 3, "input_mean", floatTypes, &o->mean));
  FIRN_TRY(requireInput(call, 4, "input_var", floatTypes, &o->variance));
  FIRN_TRY(requireSameDtype(call, "B", o->bias, "scale", *o->scale));
  FIRN_TRY(requireSameDtype(call, "input_var", o->variance, "input_mean", *o->mean));
  const firn_view &x = *o->x;
  FIRN_TRY(requireRank(call, "X", x, 1, FIRN_MAX_RANK));
  o->isTraining = intAttribute(call, "training_mode", 0) != 0;
  o->batch = x.dims[0];
  o->channels = x.rank > 1 ? x.dims[1] : 1;
  o->inner = x.rank > 1 ? extent(x, 2, x.rank) : 1;
  FIRN_TRY(requireVector(call, "scale", o->scale, o->channels));
  FIRN_TRY(requireVector(call, "B", o->bias, o->channels));
  FIRN_TRY(requireVector(call, "input_mean", o->mean, o->channels));
  FIRN_TRY(requireVector(call, "input_var", o->variance, o->channels));
  if (!o->isTraining && (output(call, 1) || output(call, 2)))
    return fail(call, FIRN_CALL_INVALID, "outputs 1 and 2 exist with training_mode=1 only");
  return FIRN_CALL_OK;
}

int32_t inferBatchNorm(firn_call *call) {
  BatchNormOperands o;
  FIRN_TRY(batchNormOperands(call, &o));
  FIRN_TRY(inferLikeFirst(call));
  FIRN_TRY(setChecked(call, 1, o.mean->dtype, &o.channels, 1));
  return setChecked(call, 2, o.mean->dtype, &o.channels, 1);
}

int32_t runBatchNorm(firn_call *call) {
  BatchNormOperands o;
  FIRN_TRY(batchNormOperands(call, &o));
  firn_view *y = output(call, 0), *runningMean = output(call, 1), *runningVariance = output(call, 2);
  double epsilon = floatAttribute(call, "epsilon", 1e-5f), momentum = floatAttribute(call, "momentum", 0.9f);
  double *values;
  int64_t count = o.batch * o.inner;
  FIRN_TRY(allocate(call, count, &values));
  for (int64_t c = 0; c < o.channels; ++c) {
    for (int64_t n = 0; n < o.batch; ++n)
      loadDoubles(*o.x, (n * o.channels + c) * o.inner, 1, o.inner, values + n * o.inner);
    Moments moments = {getDouble(*o.mean, c), getDouble(*o.variance, c)};
    if (o.isTraining) {
      Moments current = momentsOf(values, count);
      if (runningMean)
        setDouble(*runningMean, c, moments.mean * momentum + current.mean * (1 - momentum));
      if (runningVariance)
        setDouble(*runningVariance, c, moments.variance * momentum + current.variance * (1 - momentum));
      moments = current;
    }
    double deviation = sqrt(moments.variance + epsilon);
    double scale = getDouble(*o.scale, c), bias = getDouble(*o.bias, c);
    for (int64_t i = 0; i < count; ++i)
      values[i] = (values[i] - moments.mean) / deviation * scale + bias;
    for (int64_t n = 0; n < o.batch && y; ++n)
      storeDoubles(*y, (n * o.channels + c) * o.inner, o.inner, values + n * o.inner);
  }
  return FIRN_CALL_OK;
}

// --- InstanceNormalization, GroupNormalization -----------------------------------------------------------------------

struct GroupNormOperands {
  const firn_view *x, *scale, *bias;
  int64_t batch, channels, inner, groups;
};

int32_t groupNormOperands(firn_call *call, bool isInstance, GroupNormOperands *o) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "scale", floatTypes, &o->scale));
  FIRN_TRY(requireInput(call, 2, "bias", floatTypes, &o->bias));
  const firn_view &x = *o->x;
  FIRN_TRY(requireSameDtype(call, "scale", o->scale, "X", x));
  FIRN_TRY(requireSameDtype(call, "bias", o->bias, "X", x));
  FIRN_TRY(requireRank(call, "X", x, 2, FIRN_MAX_RANK));
  o->batch = x.dims[0];
  o->channels = x.dims[1];
  o->inner = extent(x, 2, x.rank);
  o->groups = o->channels;
  FIRN_TRY(requireVector(call, "scale", o->scale, o->channels));
  FIRN_TRY(requireVector(call, "bias", o->bias, o->channels));
  if (isInstance)
    return FIRN_CALL_OK;
  if (!findAttribute(call, "num_groups"))
    return fail(call, FIRN_CALL_INVALID, "attribute num_groups is missing");
  FIRN_TRY(boundedAttribute(call, "num_groups", 1, 1, INT64_MAX, &o->groups));
  if (o->channels % o->groups != 0)
    return fail(call, FIRN_CALL_INVALID, "the number of channels must be a multiple of num_groups=%lld, found %lld",
                static_cast<long long>(o->groups), static_cast<long long>(o->channels));
  return FIRN_CALL_OK;
}

template <bool isInstance> int32_t inferGroupNorm(firn_call *call) {
  GroupNormOperands o;
  FIRN_TRY(groupNormOperands(call, isInstance, &o));
  return inferLikeFirst(call);
}

template <bool isInstance> int32_t runGroupNorm(firn_call *call) {
  GroupNormOperands o;
  FIRN_TRY(groupNormOperands(call, isInstance, &o));
  firn_view *y = output(call, 0);
  if (!y || o.channels == 0)
    return FIRN_CALL_OK;
  double epsilon = floatAttribute(call, "epsilon", 1e-5f);
  int64_t groupChannels = o.channels / o.groups, count = groupChannels * o.inner;
  double *values;
  FIRN_TRY(allocate(call, count, &values));
  for (int64_t group = 0; group < o.batch * o.groups; ++group) {
    loadDoubles(*o.x, group * count, 1, count, values);
    Moments moments = momentsOf(values, count);
    double deviation = sqrt(moments.variance + epsilon);
    for (int64_t k = 0; k < groupChannels; ++k) {
      int64_t channel = group % o.groups * groupChannels + k;
      double scale = getDouble(*o.scale, channel), bias = getDouble(*o.bias, channel);
      for (int64_t i = k * o.inner; i < (k + 1) * o.inner; ++i)
        values[i] = (values[i] - moments.mean) / deviation * scale + bias;
    }
    storeDoubles(*y, group * count, count, values);
  }
  return FIRN_CALL_OK;
}

// --- LayerNormalization, RMSNormalization ----------------------------------------------------------------------------

struct RowNormOperands {
  const firn_view *x, *scale, *bias;
  int32_t axis;
  int64_t rows, count; // X is [rows, count]
  double epsilon;
};

/// `view` must broadcast to the shape of X.
int32_t requireBroadcastTo(firn_call *call, const char *name, const firn_view *view, const firn_view &x) {
  if (!view)
    return FIRN_CALL_OK;
  bool fits = view->rank <= x.rank;
  for (int32_t k = 1; fits && k <= view->rank; ++k)
    fits = view->dims[view->rank - k] == 1 || view->dims[view->rank - k] == x.dims[x.rank - k];
  if (fits)
    return FIRN_CALL_OK;
  ShapeText expected = describe(x), found = describe(*view);
  return fail(call, FIRN_CALL_INVALID, "%s must broadcast to X: expected a shape that broadcasts to %s, found %s", name,
              expected.text, found.text);
}

int32_t rowNormOperands(firn_call *call, RowNormOperands *o) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "Scale", floatTypes, &o->scale));
  FIRN_TRY(optionalInput(call, 2, "B", floatTypes, &o->bias));
  const firn_view &x = *o->x;
  FIRN_TRY(requireRank(call, "X", x, 1, FIRN_MAX_RANK));
  int64_t axis = intAttribute(call, "axis", -1);
  o->axis = normalizeAxis(axis, x.rank);
  if (o->axis < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute axis is out of range: expected %d to %d, found %lld", -x.rank,
                x.rank - 1, static_cast<long long>(axis));
  FIRN_TRY(requireBroadcastTo(call, "Scale", o->scale, x));
  FIRN_TRY(requireBroadcastTo(call, "B", o->bias, x));
  o->rows = extent(x, 0, o->axis);
  o->count = extent(x, o->axis, x.rank);
  o->epsilon = floatAttribute(call, "epsilon", 1e-5f);
  return FIRN_CALL_OK;
}

/// Rows of a tensor that is broadcast to the shape of X.
struct BroadcastRows {
  const firn_view *view; // may be NULL
  int64_t strides[FIRN_MAX_RANK];
  bool isSame;       // all rows are the same
  bool isContiguous; // a row lies in memory as it is
};

BroadcastRows broadcastRows(const firn_view *view, const RowNormOperands &o) {
  BroadcastRows result = {view, {0}, true, true};
  if (!view)
    return result;
  broadcastStrides(*view, o.x->dims, o.x->rank, result.strides);
  int64_t dense = 1;
  for (int32_t k = o.x->rank - 1; k >= 0; --k) {
    if (k < o.axis)
      result.isSame &= result.strides[k] == 0;
    else
      result.isContiguous &= result.strides[k] == dense || o.x->dims[k] == 1;
    dense *= o.x->dims[k];
  }
  return result;
}

/// Row `row` (whose index along the leading axes is `index`) in `to`; keeps what is there if it is the same.
void loadRow(const BroadcastRows &rows, const RowNormOperands &o, int64_t row, const int64_t *index, double *to) {
  if (!rows.view || (rows.isSame && row > 0))
    return;
  int64_t first = 0;
  for (int32_t k = 0; k < o.axis; ++k)
    first += index[k] * rows.strides[k];
  if (rows.isContiguous)
    return loadDoubles(*rows.view, first, 1, o.count, to);
  int64_t inner[FIRN_MAX_RANK] = {0};
  do {
    int64_t at = first;
    for (int32_t k = o.axis; k < o.x->rank; ++k)
      at += inner[k - o.axis] * rows.strides[k];
    *to++ = getDouble(*rows.view, at);
  } while (nextIndex(inner, o.x->dims + o.axis, o.x->rank - o.axis));
}

/// Normalises each row to (x - mean) / sqrt(variance + epsilon) * scale + bias, where `subtractsMean`, or else to
/// x / sqrt(mean of squares + epsilon) * scale.
int32_t runRowNorm(firn_call *call, const RowNormOperands &o, bool subtractsMean, firn_view *mean, firn_view *inverse) {
  firn_view *y = output(call, 0);
  double *values, *scale, *bias;
  FIRN_TRY(allocate(call, o.count, &values));
  FIRN_TRY(allocate(call, o.count, &scale));
  FIRN_TRY(allocate(call, o.count, &bias));
  if (o.rows == 0)
    return FIRN_CALL_OK;
  BroadcastRows scaleRows = broadcastRows(o.scale, o), biasRows = broadcastRows(o.bias, o);
  int64_t index[FIRN_MAX_RANK] = {0}, row = 0;
  do {
    loadDoubles(*o.x, row * o.count, 1, o.count, values);
    if (o.count > 0) {
      loadRow(scaleRows, o, row, index, scale);
      loadRow(biasRows, o, row, index, bias);
    }
    Moments moments = {0, 0};
    if (subtractsMean)
      moments = momentsOf(values, o.count);
    else {
      for (int64_t i = 0; i < o.count; ++i)
        moments.variance += values[i] * values[i];
      moments.variance /= double(o.count);
    }
    double deviation = sqrt(moments.variance + o.epsilon);
    for (int64_t i = 0; i < o.count; ++i)
      values[i] = (values[i] - moments.mean) / deviation * scale[i] + (o.bias ? bias[i] : -0.0);
    if (y)
      storeDoubles(*y, row * o.count, o.count, values);
    if (mean)
      setDouble(*mean, row, moments.mean);
    if (inverse)
      setDouble(*inverse, row, 1 / deviation);
    ++row;
  } while (nextIndex(index, o.x->dims, o.axis));
  return FIRN_CALL_OK;
}

int32_t layerNormOperands(firn_call *call, RowNormOperands *o, int64_t *stashType) {
  FIRN_TRY(rowNormOperands(call, o));
  FIRN_TRY(requireSameDtype(call, "Scale", o->scale, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "B", o->bias, "X", *o->x));
  *stashType = intAttribute(call, "stash_type", FIRN_F32);
  if (*stashType != FIRN_F32 && *stashType != FIRN_BF16 && *stashType != FIRN_F16 && *stashType != FIRN_F64)
    return fail(call, FIRN_CALL_INVALID,
                "attribute stash_type must be a float type: expected 1, 10, 11 or 16, found %lld",
                static_cast<long long>(*stashType));
  return FIRN_CALL_OK;
}

int32_t inferLayerNorm(firn_call *call) {
  RowNormOperands o;
  int64_t stashType, dims[FIRN_MAX_RANK];
  FIRN_TRY(layerNormOperands(call, &o, &stashType));
  for (int32_t k = 0; k < o.x->rank; ++k)
    dims[k] = k < o.axis ? o.x->dims[k] : 1;
  FIRN_TRY(inferLikeFirst(call));
  FIRN_TRY(setChecked(call, 1, int32_t(stashType), dims, o.x->rank));
  return setChecked(call, 2, int32_t(stashType), dims, o.x->rank);
}

int32_t runLayerNorm(firn_call *call) {
  RowNormOperands o;
  int64_t stashType;
  FIRN_TRY(layerNormOperands(call, &o, &stashType));
  return runRowNorm(call, o, true, output(call, 1), output(call, 2));
}

int32_t inferRmsNorm(firn_call *call) {
  RowNormOperands o;
  FIRN_TRY(rowNormOperands(call, &o));
  return setChecked(call, 0, o.scale->dtype, o.x->dims, o.x->rank);
}

int32_t runRmsNorm(firn_call *call) {
  RowNormOperands o;
  FIRN_TRY(rowNormOperands(call, &o));
  return runRowNorm(call, o, false, nullptr, nullptr);
}

// --- LpNormalization -------------------------------------------------------------------------------------------------

struct LpNormOperands {
  const firn_view *x;
  int32_t axis;
  int64_t p;
};

int32_t lpNormOperands(firn_call *call, LpNormOperands *o) {
  FIRN_TRY(requireInput(call, 0, "input", floatTypes, &o->x));
  FIRN_TRY(requireRank(call, "input", *o->x, 1, FIRN_MAX_RANK));
  int64_t axis = intAttribute(call, "axis", -1);
  o->axis = normalizeAxis(axis, o->x->rank);
  if (o->axis < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute axis is out of range: expected %d to %d, found %lld", -o->x->rank,
                o->x->rank - 1, static_cast<long long>(axis));
  return boundedAttribute(call, "p", 2, 1, 2, &o->p);
}

int32_t inferLpNorm(firn_call *call) {
  LpNormOperands o;
  FIRN_TRY(lpNormOperands(call, &o));
  return inferLikeFirst(call);
}

int32_t runLpNorm(firn_call *call) {
  LpNormOperands o;
  FIRN_TRY(lpNormOperands(call, &o));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  int64_t outer = extent(*o.x, 0, o.axis), count = o.x->dims[o.axis], inner = extent(*o.x, o.axis + 1, o.x->rank);
  double *values;
  FIRN_TRY(allocate(call, count, &values));
  for (int64_t line = 0; line < outer * inner; ++line) {
    int64_t first = line / inner * count * inner + line % inner;
    loadDoubles(*o.x, first, inner, count, values);
    double norm = 0;
    for (int64_t i = 0; i < count; ++i)
      norm += o.p == 1 ? fabs(values[i]) : values[i] * values[i];
    norm = o.p == 1 ? norm : sqrt(norm);
    for (int64_t i = 0; i < count; ++i)
      setDouble(*y, first + i * inner, norm == 0 ? 0 : values[i] / norm);
  }
  return FIRN_CALL_OK;
}

// --- LRN -------------------------------------------------------------------------------------------------------------

int32_t lrnOperands(firn_call *call, const firn_view **x, int64_t *size) {
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, x));
  FIRN_TRY(requireRank(call, "X", **x, 2, FIRN_MAX_RANK));
  if (!findAttribute(call, "size"))
    return fail(call, FIRN_CALL_INVALID, "attribute size is missing");
  return boundedAttribute(call, "size", 1, 1, INT64_MAX, size);
}

int32_t inferLrn(firn_call *call) {
  const firn_view *x;
  int64_t size;
  FIRN_TRY(lrnOperands(call, &x, &size));
  return inferLikeFirst(call);
}

/// An even size looks one channel further ahead than back.
int32_t runLrn(firn_call *call) {
  const firn_view *x;
  int64_t size;
  FIRN_TRY(lrnOperands(call, &x, &size));
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  double alpha = floatAttribute(call, "alpha", 1e-4f), beta = floatAttribute(call, "beta", 0.75f);
  double bias = floatAttribute(call, "bias", 1);
  int64_t channels = x->dims[1], inner = extent(*x, 2, x->rank), back = (size - 1) / 2, ahead = size / 2;
  double *values, *sums;
  FIRN_TRY(allocate(call, channels * inner, &values));
  FIRN_TRY(allocate(call, inner, &sums));
  for (int64_t n = 0; n < x->dims[0]; ++n) {
    loadDoubles(*x, n * channels * inner, 1, channels * inner, values);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i)
        sums[i] = 0;
      int64_t last = ahead < channels - 1 - c ? c + ahead : channels - 1;
      for (int64_t k = c > back ? c - back : 0; k <= last; ++k)
        for (int64_t i = 0; i < inner; ++i)
          sums[i] += values[k * inner + i] * values[k * inner + i];
      for (int64_t i = 0; i < inner; ++i)
        sums[i] = values[c * inner + i] / pow(bias + alpha / double(size) * sums[i], beta);
      storeDoubles(*y, (n * channels + c) * inner, inner, sums);
    }
  }
  return FIRN_CALL_OK;
}

// --- MeanVarianceNormalization ---------------------------------------------------------------------------------------

int32_t mvnOperands(firn_call *call, const firn_view **x, bool *isReduced) {
  static const int64_t defaults[] = {0, 2, 3};
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, x));
  int64_t count;
  const int64_t *axes = intsAttribute(call, "axes", &count);
  if (!axes) {
    axes = defaults;
    count = 3;
  }
  for (int32_t k = 0; k < FIRN_MAX_RANK; ++k)
    isReduced[k] = false;
  for (int64_t i = 0; i < count; ++i) {
    int32_t axis = normalizeAxis(axes[i], (*x)->rank);
    if (axis < 0)
      return fail(call, FIRN_CALL_INVALID, "attribute axes is out of range: expected %d to %d, found %lld", -(*x)->rank,
                  (*x)->rank - 1, static_cast<long long>(axes[i]));
    isReduced[axis] = true;
  }
  return FIRN_CALL_OK;
}

int32_t inferMvn(firn_call *call) {
  const firn_view *x;
  bool isReduced[FIRN_MAX_RANK];
  FIRN_TRY(mvnOperands(call, &x, isReduced));
  return inferLikeFirst(call);
}

int32_t runMvn(firn_call *call) {
  const firn_view *x;
  bool isReduced[FIRN_MAX_RANK];
  FIRN_TRY(mvnOperands(call, &x, isReduced));
  firn_view *y = output(call, 0);
  if (!y || elementCount(*x) == 0)
    return FIRN_CALL_OK;
  int64_t keptDims[FIRN_MAX_RANK], keptStrides[FIRN_MAX_RANK], innerDims[FIRN_MAX_RANK], innerStrides[FIRN_MAX_RANK];
  int32_t kept = 0, inner = 0;
  int64_t count = 1;
  for (int32_t k = 0; k < x->rank; ++k) {
    int64_t stride = extent(*x, k + 1, x->rank);
    if (isReduced[k]) {
      innerDims[inner] = x->dims[k];
      innerStrides[inner++] = stride;
      count *= x->dims[k];
    } else {
      keptDims[kept] = x->dims[k];
      keptStrides[kept++] = stride;
    }
  }
  double *values;
  int64_t *at, index[FIRN_MAX_RANK] = {0};
  FIRN_TRY(allocate(call, count, &values));
  FIRN_TRY(allocate(call, count, &at));
  do {
    int64_t first = 0, innerIndex[FIRN_MAX_RANK] = {0}, i = 0;
    for (int32_t k = 0; k < kept; ++k)
      first += index[k] * keptStrides[k];
    do {
      at[i] = first;
      for (int32_t k = 0; k < inner; ++k)
        at[i] += innerIndex[k] * innerStrides[k];
      values[i] = getDouble(*x, at[i]);
      ++i;
    } while (nextIndex(innerIndex, innerDims, inner));
    Moments moments = momentsOf(values, count);
    double deviation = sqrt(moments.variance) + 1e-9; // as the operator's definition as a function has it
    for (i = 0; i < count; ++i)
      setDouble(*y, at[i], (values[i] - moments.mean) / deviation);
  } while (nextIndex(index, keptDims, kept));
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, BatchNormalization, "ai.onnx::BatchNormalization", inferBatchNorm, runBatchNorm)
FIRN_OPERATOR(ai_onnx, GroupNormalization, "ai.onnx::GroupNormalization", inferGroupNorm<false>, runGroupNorm<false>)
FIRN_OPERATOR(ai_onnx, InstanceNormalization, "ai.onnx::InstanceNormalization", inferGroupNorm<true>,
              runGroupNorm<true>)
FIRN_OPERATOR(ai_onnx, LRN, "ai.onnx::LRN", inferLrn, runLrn)
FIRN_OPERATOR(ai_onnx, LayerNormalization, "ai.onnx::LayerNormalization", inferLayerNorm, runLayerNorm)
FIRN_OPERATOR(ai_onnx, LpNormalization, "ai.onnx::LpNormalization", inferLpNorm, runLpNorm)
FIRN_OPERATOR(ai_onnx, MeanVarianceNormalization, "ai.onnx::MeanVarianceNormalization", inferMvn, runMvn)
FIRN_OPERATOR(ai_onnx, RMSNormalization, "ai.onnx::RMSNormalization", inferRmsNorm, runRmsNorm)

} // namespace firn::kernels
