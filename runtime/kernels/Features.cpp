// Preparation of features in ai.onnx.ml: scaling, choosing, joining, encoding.
#include "runtime/kernels/PredictorExpansion.h"

FIRN_USES(Abs)
FIRN_USES(Div)
FIRN_USES(Equal)
FIRN_USES(Greater)
FIRN_USES(Mul)
FIRN_USES(ReduceMax)
FIRN_USES(ReduceSum)
FIRN_USES(Sqrt)
FIRN_USES(Sub)
FIRN_USES(Where)

namespace firn::kernels {
namespace {

constexpr uint32_t anyFeatureTypes = featureTypes | stringType;

/// Calls body(column, values, count) on blocks of each row of input 0, as doubles, and stores what it leaves in output
/// 0.
template <typename Body> int32_t mapRows(firn_call *call, Body body) {
  const firn_view &x = call->inputs[0], &y = call->outputs[0];
  int64_t total = elementCount(x), width = x.rank ? x.dims[x.rank - 1] : 1;
  double block[256];
  for (int64_t row = 0; row < total; row += width)
    for (int64_t i = 0; i < width; i += 256) {
      int64_t count = width - i < 256 ? width - i : 256;
      loadDoubles(x, row + i, 1, count, block);
      body(i, block, count);
      storeDoubles(y, row + i, count, block);
    }
  return FIRN_CALL_OK;
}

/// A list that holds one value for all features or one for each; nothing where it is empty.
int32_t requirePerFeature(firn_call *call, const char *name, int64_t count, const firn_view &x) {
  int64_t features = x.rank ? x.dims[x.rank - 1] : 1;
  if (count == 0 || count == 1 || count == features)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute '%s' must have 1 value, or one for each of %lld features: found %lld",
              name, static_cast<long long>(features), static_cast<long long>(count));
}

// --- Scaler ----------------------------------------------------------------------------------------------------------

int32_t scalerOf(firn_call *call, const double **offset, int64_t *offsets, const double **scale, int64_t *scales) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "X", featureTypes, &x));
  FIRN_TRY(realsAttribute(call, "offset", nullptr, offset, offsets));
  FIRN_TRY(realsAttribute(call, "scale", nullptr, scale, scales));
  FIRN_TRY(requirePerFeature(call, "offset", *offsets, *x));
  return requirePerFeature(call, "scale", *scales, *x);
}

int32_t inferScaler(firn_call *call) {
  const double *offset, *scale;
  int64_t offsets, scales;
  FIRN_TRY(scalerOf(call, &offset, &offsets, &scale, &scales));
  return setChecked(call, 0, FIRN_F32, call->inputs[0].dims, call->inputs[0].rank);
}

int32_t runScaler(firn_call *call) {
  const double *offset, *scale;
  int64_t offsets, scales;
  FIRN_TRY(scalerOf(call, &offset, &offsets, &scale, &scales));
  return mapRows(call, [&](int64_t column, double *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] -= offsets == 0 ? 0 : offset[offsets == 1 ? 0 : column + i];
      values[i] *= scales == 0 ? 1 : scale[scales == 1 ? 0 : column + i];
    }
  });
}

// --- Normalizer ------------------------------------------------------------------------------------------------------

int32_t inferNormalizer(firn_call *call) {
  static const char *const norms[] = {"MAX", "L1", "L2"};
  Rows x;
  int32_t norm;
  FIRN_TRY(rowsOf(call, featureTypes, &x));
  FIRN_TRY(choiceAttribute(call, "norm", norms, 3, 0, &norm));
  return setChecked(call, 0, FIRN_F32, x.view->dims, x.view->rank);
}

/// The norm MAX is that of magnitudes, as scikit-learn and ONNX's own evaluator have it.
int32_t runNormalizer(firn_call *call) {
  Rows x;
  FIRN_TRY(rowsOf(call, featureTypes, &x));
  bool isL1 = stringAttributeIs(call, "norm", "L1", "MAX"), isL2 = stringAttributeIs(call, "norm", "L2", "MAX");
  for (int64_t row = 0; row < x.rows; ++row) {
    double norm = 0;
    for (int64_t i = 0; i < x.features; ++i) {
      double value = fabs(getDouble(*x.view, row * x.features + i));
      norm = isL1 ? norm + value : isL2 ? norm + value * value : fmax(norm, value);
    }
    norm = isL2 ? sqrt(norm) : norm;
    for (int64_t i = 0; i < x.features; ++i) {
      double value = getDouble(*x.view, row * x.features + i);
      setDouble(call->outputs[0], row * x.features + i, norm == 0 ? value : value / norm);
    }
  }
  return FIRN_CALL_OK;
}

// --- Imputer ---------------------------------------------------------------------------------------------------------

int32_t inferImputer(firn_call *call) {
  const firn_view *x;
  int64_t floats, integers;
  FIRN_TRY(requireInput(call, 0, "X", featureTypes, &x));
  floatsAttribute(call, "imputed_value_floats", &floats);
  intsAttribute(call, "imputed_value_int64s", &integers);
  if ((floats == 0) == (integers == 0))
    return fail(call, FIRN_CALL_INVALID,
                "one of the attributes 'imputed_value_floats' and 'imputed_value_int64s' must be given: found %s",
                floats ? "both" : "neither");
  if (!isFloat(x->dtype) && floats)
    return fail(call, FIRN_CALL_INVALID, "an input of integers needs attribute 'imputed_value_int64s'");
  FIRN_TRY(requirePerFeature(call, "imputed_value_*", floats + integers, *x));
  return setChecked(call, 0, x->dtype, x->dims, x->rank);
}

int32_t runImputer(firn_call *call) {
  const firn_view &x = call->inputs[0];
  int64_t floats, integers, width = x.rank ? x.dims[x.rank - 1] : 1, total = elementCount(x);
  const float *imputed = floatsAttribute(call, "imputed_value_floats", &floats);
  const int64_t *imputedInts = intsAttribute(call, "imputed_value_int64s", &integers);
  // As the features' own type sees it: 0.1f is no double 0.1, which is what the converters rely on too.
  double replaced = floats ? double(floatAttribute(call, "replaced_value_float", 0))
                           : double(intAttribute(call, "replaced_value_int64", 0));
  int64_t replacedInt = intAttribute(call, "replaced_value_int64", 0);
  for (int64_t i = 0; i < total; ++i) {
    int64_t column = floats + integers == 1 ? 0 : i % width;
    if (isFloat(x.dtype)) {
      double value = getDouble(x, i);
      bool isReplaced = value == replaced || (isnan(value) && isnan(replaced));
      setDouble(call->outputs[0], i,
                !isReplaced ? value
                : floats    ? double(imputed[column])
                            : double(imputedInts[column]));
    } else {
      int64_t value = getInt(x, i);
      setInt(call->outputs[0], i, value == replacedInt ? imputedInts[column] : value);
    }
  }
  return FIRN_CALL_OK;
}

// --- Binarizer -------------------------------------------------------------------------------------------------------

int32_t inferBinarizer(firn_call *call) {
  const firn_view *x;
  FIRN_TRY(requireInput(call, 0, "X", featureTypes, &x));
  return setChecked(call, 0, x->dtype, x->dims, x->rank);
}

int32_t runBinarizer(firn_call *call) {
  double threshold = double(floatAttribute(call, "threshold", 0));
  const firn_view &x = call->inputs[0];
  for (int64_t i = 0; i < elementCount(x); ++i)
    setInt(call->outputs[0], i, getDouble(x, i) > threshold);
  return FIRN_CALL_OK;
}

// --- ArrayFeatureExtractor -------------------------------------------------------------------------------------------

int32_t inferArrayFeatureExtractor(firn_call *call) {
  const firn_view *x, *y;
  FIRN_TRY(requireInput(call, 0, "X", anyFeatureTypes, &x));
  FIRN_TRY(requireInput(call, 1, "Y", typeSet(FIRN_I64), &y));
  FIRN_TRY(requireRank(call, "X", *x, 1, FIRN_MAX_RANK));
  int64_t dims[FIRN_MAX_RANK] = {1, elementCount(*y)}; // a vector gives one row
  for (int32_t i = 0; x->rank > 1 && i < x->rank; ++i)
    dims[i] = i == x->rank - 1 ? elementCount(*y) : x->dims[i];
  return setChecked(call, 0, x->dtype, dims, x->rank > 1 ? x->rank : 2);
}

int32_t runArrayFeatureExtractor(firn_call *call) {
  const firn_view &x = call->inputs[0], &y = call->inputs[1];
  int64_t width = x.dims[x.rank - 1], chosen = elementCount(y);
  for (int64_t k = 0; k < chosen; ++k)
    if (int64_t index = getInt(y, k); index < 0 || index >= width)
      return fail(call, FIRN_CALL_INVALID, "Y[%lld] must lie between 0 and %lld, found %lld", static_cast<long long>(k),
                  static_cast<long long>(width - 1), static_cast<long long>(index));
  for (int64_t row = 0; row < elementCount(call->outputs[0]) / (chosen ? chosen : 1); ++row)
    for (int64_t k = 0; k < chosen; ++k)
      copyElement(call->outputs[0], row * chosen + k, x, row * width + getInt(y, k));
  return FIRN_CALL_OK;
}

// --- FeatureVectorizer -----------------------------------------------------------------------------------------------

/// The columns of input `i`: all but the first axis of it, 1 of a vector.
int64_t columnsOf(const firn_view &x) { return x.rank < 2 ? 1 : extent(x, 1, x.rank); }

/// How many columns input `i` takes of the output.
int64_t columnsTaken(const firn_call *call, int32_t i) {
  int64_t count;
  const int64_t *widths = intsAttribute(call, "inputdimensions", &count);
  return i < count ? widths[i] : columnsOf(call->inputs[i]);
}

int32_t inferFeatureVectorizer(firn_call *call) {
  int64_t rows = -1, total = 0;
  for (int32_t i = 0; i < call->input_count; ++i) {
    const firn_view *x;
    FIRN_TRY(requireInput(call, i, "X", featureTypes, &x));
    FIRN_TRY(requireRank(call, "X", *x, 1, FIRN_MAX_RANK));
    int64_t width = columnsTaken(call, i);
    if (width < 0 || __builtin_add_overflow(total, width, &total))
      return fail(call, FIRN_CALL_INVALID, "inputdimensions[%d] must not be negative, found %lld", i,
                  static_cast<long long>(width));
    if (rows >= 0 && rows != x->dims[0])
      return fail(call, FIRN_CALL_INVALID, "all inputs must have the same number of rows: found %lld and %lld",
                  static_cast<long long>(rows), static_cast<long long>(x->dims[0]));
    rows = x->dims[0];
  }
  int64_t dims[2] = {rows < 0 ? 0 : rows, total};
  return setChecked(call, 0, FIRN_F32, dims, 2);
}

/// An input narrower than its share is filled up with zeros, a wider one is cut.
int32_t runFeatureVectorizer(firn_call *call) {
  const firn_view &y = call->outputs[0];
  int64_t column = 0, total = y.dims[1];
  for (int32_t i = 0; i < call->input_count; ++i) {
    const firn_view &x = call->inputs[i];
    int64_t width = columnsTaken(call, i), given = columnsOf(x);
    for (int64_t row = 0; row < y.dims[0]; ++row)
      for (int64_t k = 0; k < width; ++k)
        setDouble(y, row * total + column + k, k < given ? getDouble(x, row * given + k) : 0);
    column += width;
  }
  return FIRN_CALL_OK;
}

// --- OneHotEncoder ---------------------------------------------------------------------------------------------------

int32_t inferOneHotEncoder(firn_call *call) {
  const firn_view *x;
  int64_t strings, integers;
  FIRN_TRY(requireInput(call, 0, "X", anyFeatureTypes, &x));
  stringsAttribute(call, "cats_strings", &strings);
  intsAttribute(call, "cats_int64s", &integers);
  if ((x->dtype == FIRN_STRING ? strings : integers) == 0)
    return fail(call, FIRN_CALL_INVALID, "an input of %s needs attribute '%s'", dtypeName(x->dtype),
                x->dtype == FIRN_STRING ? "cats_strings" : "cats_int64s");
  if (x->rank >= FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %d axes: at most %d are supported", x->rank + 1,
                FIRN_MAX_RANK);
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t i = 0; i < x->rank; ++i)
    dims[i] = x->dims[i];
  dims[x->rank] = x->dtype == FIRN_STRING ? strings : integers;
  return setChecked(call, 0, FIRN_F32, dims, x->rank + 1);
}

int32_t runOneHotEncoder(firn_call *call) {
  const firn_view &x = call->inputs[0], &y = call->outputs[0];
  int64_t strings, integers;
  const firn_string *texts = stringsAttribute(call, "cats_strings", &strings);
  const int64_t *numbers = intsAttribute(call, "cats_int64s", &integers);
  bool mayMiss = intAttribute(call, "zeros", 1) != 0, isText = x.dtype == FIRN_STRING;
  int64_t categories = isText ? strings : integers;
  for (int64_t i = 0; i < elementCount(x); ++i) {
    int64_t found = categories;
    // Of equal categories the last one counts.
    for (int64_t k = categories - 1; k >= 0 && found == categories; --k)
      if (isText ? isSame(static_cast<const firn_string *>(x.data)[i], texts[k]) : getInt(x, i) == numbers[k])
        found = k;
    if (found == categories && !mayMiss)
      return fail(call, FIRN_CALL_INVALID, "element %lld of the input is none of the categories, and 'zeros' is 0",
                  static_cast<long long>(i));
    for (int64_t k = 0; k < categories; ++k)
      setDouble(y, i * categories + k, k == found);
  }
  return FIRN_CALL_OK;
}

// --- spelt out -------------------------------------------------------------------------------------------------------

void expandScaler(Composer &c) {
  Composer::Value x = c.need(0, "X", typeSet(FIRN_F32), 1);
  const double *offset, *scale;
  int64_t offsets, scales;
  if (!c.isFailed() && c.type(x).dims[c.rank(x) - 1] < 0)
    c.refuse(FIRN_CALL_UNSUPPORTED, "the number of features is not known");
  if (!c.isFailed())
    c.status = scalerOf(c.call, &offset, &offsets, &scale, &scales);
  if (c.isFailed() || offsets + scales == 0)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "a scaler that changes nothing");
  if (offsets)
    x = c.op(firn_op_ai_onnx_Sub, {x, floatConstant(c, offset, 1, offsets)});
  c.result(0, scales ? c.op(firn_op_ai_onnx_Mul, {x, floatConstant(c, scale, 1, scales)}) : x);
}

void expandNormalizer(Composer &c) {
  Composer::Value x = c.need(0, "X", typeSet(FIRN_F32), 1, 2);
  bool isL1 = stringAttributeIs(c.call, "norm", "L1", "MAX"), isL2 = stringAttributeIs(c.call, "norm", "L2", "MAX");
  Composer::Value size = isL2 ? c.op(firn_op_ai_onnx_Mul, {x, x}) : c.op(firn_op_ai_onnx_Abs, {x});
  size = c.op(isL1 || isL2 ? firn_op_ai_onnx_ReduceSum : firn_op_ai_onnx_ReduceMax, {size, c.integers({-1})});
  if (isL2)
    size = c.op(firn_op_ai_onnx_Sqrt, {size});
  Composer::Value isZero = c.op(firn_op_ai_onnx_Equal, {size, c.scalar(FIRN_F32, 0)});
  size = c.op(firn_op_ai_onnx_Where, {isZero, c.scalar(FIRN_F32, 1), size});
  c.result(0, c.op(firn_op_ai_onnx_Div, {x, size}));
}

void expandBinarizer(Composer &c) {
  Composer::Value x = c.need(0, "X", typeSet(FIRN_F32) | typeSet(FIRN_F64));
  if (c.isFailed())
    return;
  double threshold = double(floatAttribute(c.call, "threshold", 0));
  Composer::Value isAbove = c.op(firn_op_ai_onnx_Greater, {x, c.scalar(c.dtype(x), threshold)});
  c.result(0, c.cast(isAbove, c.dtype(x)));
}

} // namespace

FIRN_EXPANSION(ai_onnx_ml, Binarizer, "ai.onnx.ml::Binarizer", expandBinarizer)
FIRN_EXPANSION(ai_onnx_ml, Normalizer, "ai.onnx.ml::Normalizer", expandNormalizer)
FIRN_EXPANSION(ai_onnx_ml, Scaler, "ai.onnx.ml::Scaler", expandScaler)
FIRN_OPERATOR(ai_onnx_ml, ArrayFeatureExtractor, "ai.onnx.ml::ArrayFeatureExtractor", inferArrayFeatureExtractor,
              runArrayFeatureExtractor)
FIRN_OPERATOR(ai_onnx_ml, Binarizer, "ai.onnx.ml::Binarizer", inferBinarizer, runBinarizer)
FIRN_OPERATOR(ai_onnx_ml, FeatureVectorizer, "ai.onnx.ml::FeatureVectorizer", inferFeatureVectorizer,
              runFeatureVectorizer)
FIRN_OPERATOR(ai_onnx_ml, Imputer, "ai.onnx.ml::Imputer", inferImputer, runImputer)
FIRN_OPERATOR(ai_onnx_ml, Normalizer, "ai.onnx.ml::Normalizer", inferNormalizer, runNormalizer)
FIRN_OPERATOR(ai_onnx_ml, OneHotEncoder, "ai.onnx.ml::OneHotEncoder", inferOneHotEncoder, runOneHotEncoder)
FIRN_OPERATOR(ai_onnx_ml, Scaler, "ai.onnx.ml::Scaler", inferScaler, runScaler)

} // namespace firn::kernels
