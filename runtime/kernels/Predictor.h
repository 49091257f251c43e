// What the classifiers and regressors of ai.onnx.ml share: rows of features, class labels, transforms of scores.
#ifndef FIRN_KERNELS_PREDICTOR_H
#define FIRN_KERNELS_PREDICTOR_H

#include "runtime/kernels/Require.h"

namespace firn::kernels {

/// The types of features: float, double, int64, int32 (and float16 where a newer operator takes it).
constexpr uint32_t featureTypes = typeSet(FIRN_F32) | typeSet(FIRN_F64) | typeSet(FIRN_I64) | typeSet(FIRN_I32);

/// In the order of TreeEnsemble's post_transform.
enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

/// Attribute post_transform, one of the five names.
int32_t postTransformOf(firn_call *call, PostTransform *transform);
/// Applies the transform to a row of scores.
void transformScores(PostTransform transform, double *scores, int64_t count);
/// The position of the greatest score, the first of equal ones; NaN is never greater.
int64_t bestOf(const double *scores, int64_t count);

/// Input 0 as rows of features: [N, F], or [F], which is one row.
struct Rows {
  const firn_view *view;
  int64_t rows, features;
};
int32_t rowsOf(firn_call *call, uint32_t dtypes, Rows *x);

/// A list of floats, NULL and 0 where it is absent.
const float *floatsAttribute(const firn_call *call, const char *name, int64_t *count);
const firn_string *stringsAttribute(const firn_call *call, const char *name, int64_t *count);
/// A list of floats as doubles: attribute `name`, or tensor attribute `tensorName` of real numbers where that is given
/// (NULL: there is no such form); NULL and 0 where neither is.
int32_t realsAttribute(firn_call *call, const char *name, const char *tensorName, const double **values,
                       int64_t *count);

inline bool isSame(const firn_string &a, const firn_string &b) {
  return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, size_t(a.length)) == 0);
}

/// The class labels: strings or integers, `count` of them; where a model has none they are 0, 1, ...
struct Labels {
  const firn_string *strings;
  const int64_t *integers;
  int64_t count;

  int32_t dtype() const { return strings ? FIRN_STRING : FIRN_I64; }
  /// Writes label `k` (beyond the last one: its number, or the empty string).
  void write(const firn_view &to, int64_t row, int64_t k) const;
};
Labels labelsOf(const firn_call *call, const char *integersName);
/// The types of a classifier's outputs: a label a row, and `scores` scores.
int32_t setClassifierTypes(firn_call *call, const Rows &x, const Labels &labels, int64_t scores);

} // namespace firn::kernels
#endif
