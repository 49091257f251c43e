// ZipMap and DictVectorizer: between tensors and maps.
#include "runtime/kernels/Predictor.h"

namespace firn::kernels {
namespace {

// --- ZipMap ----------------------------------------------------------------------------------------------------------

struct Zip {
  Rows x;
  Labels labels;
};

int32_t zipOf(firn_call *call, Zip *zip) {
  FIRN_TRY(rowsOf(call, typeSet(FIRN_F32), &zip->x));
  zip->labels = labelsOf(call, "classlabels_int64s");
  if (zip->labels.count == 0)
    return fail(call, FIRN_CALL_INVALID,
                "one of the attributes 'classlabels_strings' and 'classlabels_int64s' must be given");
  if (zip->labels.count != zip->x.features)
    return fail(call, FIRN_CALL_INVALID, "X must have a column for each of %lld labels, found %lld",
                static_cast<long long>(zip->labels.count), static_cast<long long>(zip->x.features));
  return FIRN_CALL_OK;
}

int32_t inferZipMap(firn_call *call) {
  Zip zip;
  FIRN_TRY(zipOf(call, &zip));
  if (firn_view *out = output(call, 0)) {
    const int64_t list[] = {-1, FIRN_FORM_SEQUENCE_OF_MAPS, FIRN_F32, zip.labels.dtype(), 1};
    out->dtype = FIRN_LIST;
    out->rank = 1;
    memcpy(out->dims, list, sizeof list);
  }
  return FIRN_CALL_OK;
}

/// A map from the labels to the scores for each row.
int32_t runZipMap(firn_call *call) {
  Zip zip;
  FIRN_TRY(zipOf(call, &zip));
  int64_t count = zip.labels.count;
  for (int64_t row = 0; row < zip.x.rows; ++row) {
    const firn_view *keys = call->append(call, &call->outputs[0], zip.labels.dtype(), &count, 1);
    if (!keys)
      return FIRN_CALL_NO_MEMORY;
    for (int64_t k = 0; k < count; ++k)
      zip.labels.write(*keys, k, k);
    const firn_view *values = call->append(call, &call->outputs[0], FIRN_F32, &count, 1);
    if (!values)
      return FIRN_CALL_NO_MEMORY;
    copyElements(*values, 0, *zip.x.view, row * count, count);
  }
  return FIRN_CALL_OK;
}

// --- DictVectorizer --------------------------------------------------------------------------------------------------

struct Vocabulary {
  Labels words;
  int32_t valueType;
};

int32_t vocabularyOf(firn_call *call, Vocabulary *vocabulary) {
  const firn_view *map = input(call, 0);
  if (!map || map->dtype != FIRN_LIST || map->dims[FIRN_LIST_FORM] != FIRN_FORM_MAP)
    return fail(call, FIRN_CALL_INVALID, "input 0 must be a map");
  Labels &words = vocabulary->words;
  words = {};
  words.strings = stringsAttribute(call, "string_vocabulary", &words.count);
  if (words.count == 0) {
    words.strings = nullptr;
    words.integers = intsAttribute(call, "int64_vocabulary", &words.count);
  }
  if (words.count == 0)
    return fail(call, FIRN_CALL_INVALID,
                "one of the attributes 'string_vocabulary' and 'int64_vocabulary' must be given");
  vocabulary->valueType = int32_t(map->dims[FIRN_LIST_DTYPE]);
  int64_t key = map->dims[FIRN_LIST_KEY];
  if (key != FIRN_DTYPE_NONE && key != words.dtype())
    return fail(call, FIRN_CALL_INVALID, "the map's keys must be of the vocabulary's type %s, found %s",
                dtypeName(words.dtype()), dtypeName(int32_t(key)));
  return FIRN_CALL_OK;
}

int32_t inferDictVectorizer(firn_call *call) {
  Vocabulary vocabulary;
  FIRN_TRY(vocabularyOf(call, &vocabulary));
  if (vocabulary.valueType == FIRN_DTYPE_NONE)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the type of the map's values is not known");
  int64_t dims[2] = {1, vocabulary.words.count};
  return setChecked(call, 0, vocabulary.valueType, dims, 2);
}

/// The value of each word of the vocabulary, 0 (an empty string) for one that is no key.
int32_t runDictVectorizer(firn_call *call) {
  Vocabulary vocabulary;
  FIRN_TRY(vocabularyOf(call, &vocabulary));
  const Labels &words = vocabulary.words;
  const firn_view *keys = call->item(call, &call->inputs[0], 0), *values = call->item(call, &call->inputs[0], 1);
  const firn_view &y = call->outputs[0];
  if (!keys || !values || keys->dtype != words.dtype() || values->dtype != y.dtype ||
      elementCount(*keys) != elementCount(*values))
    return fail(call, FIRN_CALL_INVALID, "the map must have as many values as keys, of its own types");
  for (int64_t i = 0; i < words.count; ++i) {
    int64_t k = elementCount(*keys) - 1;
    while (k >= 0 && !(words.strings ? isSame(words.strings[i], static_cast<const firn_string *>(keys->data)[k])
                                     : words.integers[i] == static_cast<const int64_t *>(keys->data)[k]))
      --k;
    if (k >= 0)
      copyElement(y, i, *values, k);
    else if (y.dtype == FIRN_STRING)
      static_cast<firn_string *>(y.data)[i] = {"", 0};
    else
      setDouble(y, i, 0);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx_ml, DictVectorizer, "ai.onnx.ml::DictVectorizer", inferDictVectorizer, runDictVectorizer)
FIRN_OPERATOR(ai_onnx_ml, ZipMap, "ai.onnx.ml::ZipMap", inferZipMap, runZipMap)

} // namespace firn::kernels
