// Counting n-grams of a sequence.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

/// The attributes of TfIdfVectorizer.
struct Vectorizer {
  const int64_t *counts, *indexes, *integers;
  const firn_string *strings;
  const float *weights;
  int64_t countCount, indexCount, poolCount;
  int64_t shortest, longest, mostSkipped;
  bool cuts, weighs; // IDF counts at most one; IDF and TFIDF weigh
  int64_t width;     // of a row of the output
};

int32_t vectorizerOf(firn_call *call, Vectorizer *v) {
  bool isTf = stringAttributeIs(call, "mode", "TF", ""), isIdf = stringAttributeIs(call, "mode", "IDF", "");
  if (!isTf && !isIdf && !stringAttributeIs(call, "mode", "TFIDF", ""))
    return fail(call, FIRN_CALL_INVALID, "attribute 'mode' must be TF, IDF or TFIDF");
  const firn_attribute *strings = findAttribute(call, "pool_strings"), *weights = findAttribute(call, "weights");
  v->cuts = isIdf;
  v->weighs = !isTf && weights && weights->kind == FIRN_ATTR_FLOATS;
  v->weights = v->weighs ? static_cast<const float *>(weights->data) : nullptr;
  v->counts = intsAttribute(call, "ngram_counts", &v->countCount);
  v->indexes = intsAttribute(call, "ngram_indexes", &v->indexCount);
  v->integers = intsAttribute(call, "pool_int64s", &v->poolCount);
  v->strings = nullptr;
  if (strings && strings->kind == FIRN_ATTR_STRINGS) {
    v->strings = static_cast<const firn_string *>(strings->data);
    v->poolCount = strings->count;
  }
  if ((v->strings != nullptr) != (call->inputs[0].dtype == FIRN_STRING) || (!v->strings && !v->integers))
    return fail(call, FIRN_CALL_INVALID,
                "the input needs a pool of its own type: pool_strings for strings, pool_int64s for "
                "integers");
  v->shortest = intAttribute(call, "min_gram_length", 1);
  v->longest = intAttribute(call, "max_gram_length", 1);
  v->mostSkipped = intAttribute(call, "max_skip_count", 0);
  if (v->shortest < 1 || v->longest < v->shortest || v->longest > v->countCount || v->mostSkipped < 0)
    return fail(call, FIRN_CALL_INVALID,
                "gram lengths must satisfy 1 <= min <= max <= %lld, the length of ngram_counts, and "
                "max_skip_count must not be negative: found %lld, %lld and %lld",
                static_cast<long long>(v->countCount), static_cast<long long>(v->shortest),
                static_cast<long long>(v->longest), static_cast<long long>(v->mostSkipped));
  // The pool holds all 1-grams, then all 2-grams and so on; each has an index, and perhaps a weight.
  int64_t grams = 0;
  for (int64_t n = 1; n <= v->countCount; ++n) {
    int64_t begin = v->counts[n - 1], end = n < v->countCount ? v->counts[n] : v->poolCount;
    if (begin < 0 || end < begin || end > v->poolCount || (end - begin) % n != 0)
      return fail(call, FIRN_CALL_INVALID, "ngram_counts[%lld] does not start whole %lld-grams of the pool: found %lld",
                  static_cast<long long>(n - 1), static_cast<long long>(n), static_cast<long long>(begin));
    grams += (end - begin) / n;
  }
  if (v->indexCount != grams || (v->weighs && weights->count != grams))
    return fail(call, FIRN_CALL_INVALID,
                "ngram_indexes and weights must have one value for each of the pool's %lld n-grams: "
                "found %lld",
                static_cast<long long>(grams), static_cast<long long>(v->indexCount));
  v->width = 0;
  for (int64_t i = 0; i < v->indexCount; ++i) {
    if (v->indexes[i] < 0 || v->indexes[i] >= int64_t(1) << 40)
      return fail(call, FIRN_CALL_INVALID, "ngram_indexes[%lld] must not be negative, found %lld",
                  static_cast<long long>(i), static_cast<long long>(v->indexes[i]));
    v->width = larger(v->width, v->indexes[i] + 1);
  }
  return FIRN_CALL_OK;
}

int32_t inferTfIdfVectorizer(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, indexTypes | stringType));
  const firn_view &x = call->inputs[0];
  if (x.rank < 1 || x.rank > 2)
    return fail(call, FIRN_CALL_INVALID, "input 0 must have 1 or 2 axes, found %d", x.rank);
  Vectorizer v;
  FIRN_TRY(vectorizerOf(call, &v));
  int64_t dims[2] = {x.dims[0], v.width};
  return setChecked(call, 0, FIRN_F32, x.rank == 2 ? dims : dims + 1, x.rank);
}

bool isPoolEntry(const Vectorizer &v, int64_t entry, const firn_view &x, int64_t i) {
  if (!v.strings)
    return v.integers[entry] == getInt(x, i);
  const firn_string &a = v.strings[entry], &b = static_cast<const firn_string *>(x.data)[i];
  return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, size_t(a.length)) == 0);
}

/// How often the n-gram at `entry` of the pool stands in the row, its items `step` apart.
int64_t occurrences(const Vectorizer &v, int64_t entry, int64_t n, int64_t step, const firn_view &x, int64_t row,
                    int64_t length) {
  int64_t found = 0;
  for (int64_t start = 0; start + (n - 1) * step < length; ++start) {
    int64_t k = 0;
    while (k < n && isPoolEntry(v, entry + k, x, row + start + k * step))
      ++k;
    found += k == n;
  }
  return found;
}

int32_t runTfIdfVectorizer(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  Vectorizer v;
  FIRN_TRY(vectorizerOf(call, &v));
  float *to = static_cast<float *>(y->data);
  memset(to, 0, size_t(elementCount(*y)) * sizeof(float));
  int64_t length = x.dims[x.rank - 1], rows = elementCount(*y) / v.width;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 1, gram = 0; n <= v.countCount; ++n) {
      int64_t end = n < v.countCount ? v.counts[n] : v.poolCount;
      for (int64_t entry = v.counts[n - 1]; entry < end; entry += n, ++gram) {
        if (n < v.shortest || n > v.longest)
          continue;
        int64_t found = 0;
        // Steps wider than the row find nothing; skipping changes nothing for single items.
        for (int64_t skip = 0; skip <= (n == 1 ? 0 : v.mostSkipped) && skip < length; ++skip)
          found += occurrences(v, entry, n, skip + 1, x, row * length, length);
        float count = float(v.cuts && found > 1 ? 1 : found);
        to[row * v.width + v.indexes[gram]] = v.weighs ? count * v.weights[gram] : count;
      }
    }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, TfIdfVectorizer, "ai.onnx::TfIdfVectorizer", inferTfIdfVectorizer, runTfIdfVectorizer)

} // namespace firn::kernels
