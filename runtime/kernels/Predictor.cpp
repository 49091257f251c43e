#include "runtime/kernels/Predictor.h"

namespace firn::kernels {

int32_t postTransformOf(firn_call *call, PostTransform *transform) {
  static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  int32_t choice;
  FIRN_TRY(choiceAttribute(call, "post_transform", names, 5, 0, &choice));
  *transform = PostTransform(choice);
  return FIRN_CALL_OK;
}

namespace {

double logistic(double x) {
  double y = 1 / (1 + exp(-fabs(x)));
  return x < 0 ? 1 - y : y;
}

/// The inverse of the normal distribution by Winitzki's approximation of the inverse error function, which is what the
/// converters and other runtimes compute.
double probit(double p) {
  double x = 2 * p - 1, product = (1 - x) * (1 + x);
  if (product == 0)
    return 0;
  double logarithm = log(product), a = 2 / (M_PI * 0.147) + 0.5 * logarithm;
  double y = sqrt(-a + sqrt(a * a - logarithm / 0.147));
  return M_SQRT2 * (x < 0 ? -y : y);
}

} // namespace

void transformScores(PostTransform transform, double *scores, int64_t count) {
  double most = -INFINITY, sum = 0;
  switch (transform) {
  case PostTransform::None:
    return;
  case PostTransform::Logistic:
    for (int64_t i = 0; i < count; ++i)
      scores[i] = logistic(scores[i]);
    return;
  case PostTransform::Probit:
    for (int64_t i = 0; i < count; ++i)
      scores[i] = probit(scores[i]);
    return;
  case PostTransform::Softmax:
  case PostTransform::SoftmaxZero:
    break;
  }
  for (int64_t i = 0; i < count; ++i)
    most = scores[i] > most ? scores[i] : most;
  for (int64_t i = 0; i < count; ++i) {
    // SOFTMAX_ZERO leaves zeros alone.
    bool isZero = transform == PostTransform::SoftmaxZero && fabs(scores[i]) <= 1e-7;
    scores[i] = isZero ? scores[i] * exp(-most) : exp(scores[i] - most);
    sum += scores[i];
  }
  for (int64_t i = 0; i < count; ++i)
    scores[i] = sum == 0 ? 0.5 : scores[i] / sum;
}

int64_t bestOf(const double *scores, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    if (scores[i] > scores[best])
      best = i;
  return best;
}

int32_t rowsOf(firn_call *call, uint32_t dtypes, Rows *x) {
  FIRN_TRY(requireInput(call, 0, "X", dtypes, &x->view));
  FIRN_TRY(requireRank(call, "X", *x->view, 1, 2));
  x->rows = x->view->rank == 2 ? x->view->dims[0] : 1;
  x->features = x->view->dims[x->view->rank - 1];
  return FIRN_CALL_OK;
}

const float *floatsAttribute(const firn_call *call, const char *name, int64_t *count) {
  const firn_attribute *attribute = findAttribute(call, name);
  bool isGiven = attribute && attribute->kind == FIRN_ATTR_FLOATS;
  *count = isGiven ? attribute->count : 0;
  return isGiven ? static_cast<const float *>(attribute->data) : nullptr;
}

const firn_string *stringsAttribute(const firn_call *call, const char *name, int64_t *count) {
  const firn_attribute *attribute = findAttribute(call, name);
  bool isGiven = attribute && attribute->kind == FIRN_ATTR_STRINGS;
  *count = isGiven ? attribute->count : 0;
  return isGiven ? static_cast<const firn_string *>(attribute->data) : nullptr;
}

int32_t realsAttribute(firn_call *call, const char *name, const char *tensorName, const double **values,
                       int64_t *count) {
  const firn_attribute *tensor = tensorName ? findAttribute(call, tensorName) : nullptr;
  double *copy = nullptr;
  *values = nullptr;
  *count = 0;
  if (tensor && tensor->kind == FIRN_ATTR_TENSOR) {
    const firn_view &view = *static_cast<const firn_view *>(tensor->data);
    if (!(typeSet(view.dtype) & floatTypes))
      return fail(call, FIRN_CALL_INVALID, "attribute '%s' must hold real numbers, found %s", tensorName,
                  dtypeName(view.dtype));
    *count = elementCount(view);
    FIRN_TRY(copyOf(call, &view, &copy));
  } else if (const float *floats = floatsAttribute(call, name, count)) {
    FIRN_TRY(allocate(call, *count, &copy));
    for (int64_t i = 0; i < *count; ++i)
      copy[i] = double(floats[i]);
  }
  *values = copy;
  return FIRN_CALL_OK;
}

Labels labelsOf(const firn_call *call, const char *integersName) {
  Labels labels = {};
  labels.strings = stringsAttribute(call, "classlabels_strings", &labels.count);
  if (labels.count > 0)
    return labels;
  labels.strings = nullptr;
  labels.integers = intsAttribute(call, integersName, &labels.count);
  return labels;
}

void Labels::write(const firn_view &to, int64_t row, int64_t k) const {
  if (strings)
    static_cast<firn_string *>(to.data)[row] = k < count ? strings[k] : firn_string{"", 0};
  else
    static_cast<int64_t *>(to.data)[row] = k < count ? integers[k] : k;
}

int32_t setClassifierTypes(firn_call *call, const Rows &x, const Labels &labels, int64_t scores) {
  int64_t dims[2] = {x.rows, scores};
  FIRN_TRY(setChecked(call, 0, labels.dtype(), dims, 1));
  return setChecked(call, 1, FIRN_F32, dims, 2);
}

} // namespace firn::kernels
