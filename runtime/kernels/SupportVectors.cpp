// Support vector machines of ai.onnx.ml.
#include "runtime/kernels/Predictor.h"

namespace firn::kernels {
namespace {

enum class Kernel { Linear, Poly, Rbf, Sigmoid };

struct Machine {
  Rows x;
  Kernel kernel;
  double gamma, offset, degree;
  const double *coefficients, *vectors, *rho;
  int64_t coefficientCount, vectorValues, rhoCount;
  int64_t vectorCount; // 0: the coefficients are those of linear models
  PostTransform transform;
};

int32_t machineOf(firn_call *call, int64_t vectorCount, Machine *m) {
  static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  int32_t kernel;
  int64_t parameterCount;
  const double *parameters;
  FIRN_TRY(rowsOf(call, featureTypes, &m->x));
  FIRN_TRY(choiceAttribute(call, "kernel_type", kernels, 4, 0, &kernel));
  FIRN_TRY(realsAttribute(call, "kernel_params", nullptr, &parameters, &parameterCount));
  FIRN_TRY(realsAttribute(call, "coefficients", nullptr, &m->coefficients, &m->coefficientCount));
  FIRN_TRY(realsAttribute(call, "support_vectors", nullptr, &m->vectors, &m->vectorValues));
  FIRN_TRY(realsAttribute(call, "rho", nullptr, &m->rho, &m->rhoCount));
  FIRN_TRY(postTransformOf(call, &m->transform));
  if (parameterCount != 0 && parameterCount != 3)
    return fail(call, FIRN_CALL_INVALID, "attribute 'kernel_params' must have 3 values, found %lld",
                static_cast<long long>(parameterCount));
  m->gamma = parameterCount ? parameters[0] : 0;
  m->offset = parameterCount ? parameters[1] : 0;
  m->degree = parameterCount ? parameters[2] : 0;
  m->vectorCount = vectorCount;
  m->kernel = vectorCount ? Kernel(kernel) : Kernel::Linear;
  int64_t expected;
  if (vectorCount < 0 || __builtin_mul_overflow(vectorCount, m->x.features, &expected) || m->vectorValues < expected ||
      (vectorCount && m->vectorValues != expected))
    return fail(call, FIRN_CALL_INVALID,
                "attribute 'support_vectors' must have %lld vectors of the input's %lld features, found %lld values",
                static_cast<long long>(vectorCount), static_cast<long long>(m->x.features),
                static_cast<long long>(m->vectorValues));
  if (m->rhoCount < 1)
    return fail(call, FIRN_CALL_INVALID, "attribute 'rho' must have at least one value");
  return FIRN_CALL_OK;
}

double apply(const Machine &m, int64_t row, const double *vector) {
  double dot = 0;
  for (int64_t i = 0; i < m.x.features; ++i) {
    double x = getDouble(*m.x.view, row * m.x.features + i);
    dot += m.kernel == Kernel::Rbf ? (x - vector[i]) * (x - vector[i]) : x * vector[i];
  }
  switch (m.kernel) {
  case Kernel::Linear:
    return dot;
  case Kernel::Poly:
    return pow(dot * m.gamma + m.offset, m.degree);
  case Kernel::Rbf:
    return exp(-m.gamma * dot);
  case Kernel::Sigmoid:
    return tanh(dot * m.gamma + m.offset);
  }
  return 0;
}

// --- SVMRegressor ----------------------------------------------------------------------------------------------------

int32_t regressorOf(firn_call *call, Machine *m) {
  FIRN_TRY(machineOf(call, intAttribute(call, "n_supports", 0), m));
  int64_t expected = m->vectorCount ? m->vectorCount : m->x.features;
  if (m->coefficientCount != expected)
    return fail(call, FIRN_CALL_INVALID, "attribute 'coefficients' must have %lld values, found %lld",
                static_cast<long long>(expected), static_cast<long long>(m->coefficientCount));
  return FIRN_CALL_OK;
}

int32_t inferSVMRegressor(firn_call *call) {
  Machine m;
  FIRN_TRY(regressorOf(call, &m));
  int64_t dims[2] = {m.x.rows, 1};
  return setChecked(call, 0, FIRN_F32, dims, 2);
}

int32_t runSVMRegressor(firn_call *call) {
  Machine m;
  FIRN_TRY(regressorOf(call, &m));
  bool isOneClass = intAttribute(call, "one_class", 0) != 0;
  for (int64_t row = 0; row < m.x.rows; ++row) {
    double sum = 0;
    if (m.vectorCount == 0)
      sum = apply(m, row, m.coefficients);
    for (int64_t j = 0; j < m.vectorCount; ++j)
      sum += m.coefficients[j] * apply(m, row, m.vectors + j * m.x.features);
    sum += m.rho[0];
    if (isOneClass)
      sum = sum > 0 ? 1 : -1;
    transformScores(m.transform, &sum, 1);
    setDouble(call->outputs[0], row, sum);
  }
  return FIRN_CALL_OK;
}

// --- SVMClassifier ---------------------------------------------------------------------------------------------------

struct Classifier {
  Machine machine;
  Labels labels;
  int64_t classes, pairs, scores; // columns of the output
  const int64_t *perClass;        // vectors of each class
  const double *probA, *probB;
  bool hasProbabilities, isPositive;
};

int32_t classifierOf(firn_call *call, Classifier *c) {
  c->labels = labelsOf(call, "classlabels_ints");
  c->classes = c->labels.count ? c->labels.count : 1;
  int64_t perClassCount, aCount, bCount, vectors = 0;
  c->perClass = intsAttribute(call, "vectors_per_class", &perClassCount);
  FIRN_TRY(realsAttribute(call, "prob_a", nullptr, &c->probA, &aCount));
  FIRN_TRY(realsAttribute(call, "prob_b", nullptr, &c->probB, &bCount));
  for (int64_t i = 0; i < perClassCount; ++i)
    if (c->perClass[i] < 0 || __builtin_add_overflow(vectors, c->perClass[i], &vectors))
      return fail(call, FIRN_CALL_INVALID, "vectors_per_class[%lld] must not be negative, found %lld",
                  static_cast<long long>(i), static_cast<long long>(c->perClass[i]));
  Machine &m = c->machine;
  FIRN_TRY(machineOf(call, vectors, &m));
  if (c->classes > 1 << 15)
    return fail(call, FIRN_CALL_UNSUPPORTED, "a machine of more than 32768 classes is not supported");
  c->pairs = c->classes * (c->classes - 1) / 2;
  if (vectors && perClassCount != c->classes)
    return fail(call, FIRN_CALL_INVALID,
                "attribute 'vectors_per_class' must have one value for each of %lld classes, "
                "found %lld",
                static_cast<long long>(c->classes), static_cast<long long>(perClassCount));
  int64_t expected = vectors ? (c->classes - 1) * vectors : c->classes * m.x.features;
  if (m.coefficientCount != expected)
    return fail(call, FIRN_CALL_INVALID, "attribute 'coefficients' must have %lld values, found %lld",
                static_cast<long long>(expected), static_cast<long long>(m.coefficientCount));
  c->hasProbabilities = vectors && aCount > 0;
  if (vectors && m.rhoCount != c->pairs)
    return fail(call, FIRN_CALL_INVALID,
                "attribute 'rho' must have a value for each of %lld pairs of classes, found %lld",
                static_cast<long long>(c->pairs), static_cast<long long>(m.rhoCount));
  if (c->hasProbabilities && (aCount != c->pairs || bCount != c->pairs))
    return fail(call, FIRN_CALL_INVALID,
                "attributes 'prob_a' and 'prob_b' must have a value for each of %lld pairs of classes, found %lld and "
                "%lld",
                static_cast<long long>(c->pairs), static_cast<long long>(aCount), static_cast<long long>(bCount));
  int64_t raw = !vectors || c->hasProbabilities ? c->classes : c->pairs;
  // A single score of two classes becomes that of each.
  c->scores = raw == 1 && c->classes == 2 ? 2 : raw;
  c->isPositive = true;
  for (int64_t i = 0; i < m.coefficientCount; ++i)
    c->isPositive &= m.coefficients[i] >= 0;
  return FIRN_CALL_OK;
}

/// A score for each pair of classes, and how many of them each class wins.
void decide(const Classifier &c, const double *kernels, double *scores, double *votes) {
  const Machine &m = c.machine;
  int64_t pair = 0, startI = 0;
  for (int64_t i = 0; i < c.classes; ++i)
    votes[i] = 0;
  for (int64_t i = 0; i < c.classes; startI += c.perClass[i], ++i)
    for (int64_t j = i + 1, startJ = startI + c.perClass[i]; j < c.classes; startJ += c.perClass[j], ++j, ++pair) {
      double sum = m.rho[pair];
      for (int64_t v = startI; v < startI + c.perClass[i]; ++v)
        sum += m.coefficients[(j - 1) * m.vectorCount + v] * kernels[v];
      for (int64_t v = startJ; v < startJ + c.perClass[j]; ++v)
        sum += m.coefficients[i * m.vectorCount + v] * kernels[v];
      scores[pair] = sum;
      votes[sum > 0 ? i : j] += 1;
    }
}

/// Probabilities of the classes from those of pairs: Wu, Lin and Weng (2004), method 2, as libsvm iterates it. `space`
/// holds 2 * classes * (classes + 1) values.
void couple(const Classifier &c, const double *pairScores, double *p, double *space) {
  int64_t k = c.classes;
  double *r = space, *q = r + k * k, *qp = q + k * k;
  int64_t pair = 0;
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      double z = pairScores[pair] * c.probA[pair] + c.probB[pair];
      double value = z >= 0 ? exp(-z) / (1 + exp(-z)) : 1 / (1 + exp(z));
      value = value < 1e-7 ? 1e-7 : value > 1 - 1e-7 ? 1 - 1e-7 : value;
      r[i * k + j] = value;
      r[j * k + i] = 1 - value;
    }
  for (int64_t t = 0; t < k; ++t) {
    p[t] = 1 / double(k);
    q[t * k + t] = 0;
    for (int64_t j = 0; j < k; ++j)
      if (j != t) {
        q[t * k + t] += r[j * k + t] * r[j * k + t];
        q[t * k + j] = -r[j * k + t] * r[t * k + j];
      }
  }
  for (int64_t iteration = 0; iteration < (k > 100 ? k : 100); ++iteration) {
    double pqp = 0, error = 0;
    for (int64_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (int64_t j = 0; j < k; ++j)
        qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (int64_t t = 0; t < k; ++t)
      error = fmax(error, fabs(qp[t] - pqp));
    if (error < 0.005 / double(k))
      return;
    for (int64_t t = 0; t < k; ++t) {
      double diff = (-qp[t] + pqp) / q[t * k + t];
      p[t] += diff;
      pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
      for (int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
        p[j] /= 1 + diff;
      }
    }
  }
}

/// Writes the scores of a row after the transform. A single score of two classes: that of the second one and its
/// opposite.
void writeScores(const Classifier &c, double *scores, int64_t raw, const firn_view &z, int64_t row) {
  if (raw == 1 && c.scores == 2) {
    scores[1] = scores[0];
    scores[0] = -scores[1];
  }
  if (raw > 1 || c.scores == 2 || c.machine.transform == PostTransform::Probit)
    transformScores(c.machine.transform, scores, c.scores);
  storeDoubles(z, row * c.scores, c.scores, scores);
}

int32_t inferSVMClassifier(firn_call *call) {
  Classifier c;
  FIRN_TRY(classifierOf(call, &c));
  return setClassifierTypes(call, c.machine.x, c.labels, c.scores);
}

int32_t runSVMClassifier(firn_call *call) {
  Classifier c;
  FIRN_TRY(classifierOf(call, &c));
  const Machine &m = c.machine;
  double *kernels, *pairs, *votes, *scores, *space;
  FIRN_TRY(allocate(call, m.vectorCount, &kernels));
  FIRN_TRY(allocate(call, c.pairs + 2, &pairs));
  FIRN_TRY(allocate(call, c.classes, &votes));
  FIRN_TRY(allocate(call, c.classes + 2, &scores));
  FIRN_TRY(allocate(call, 2 * c.classes * (c.classes + 1), &space));
  const firn_view *label = output(call, 0), *z = output(call, 1);
  for (int64_t row = 0; row < m.x.rows; ++row) {
    int64_t best, raw = c.classes;
    double most;
    double *written = scores;
    if (m.vectorCount == 0) {
      for (int64_t j = 0; j < c.classes; ++j)
        scores[j] = m.rho[0] + apply(m, row, m.coefficients + j * m.x.features);
      best = bestOf(scores, c.classes);
      most = scores[best];
    } else {
      for (int64_t j = 0; j < m.vectorCount; ++j)
        kernels[j] = apply(m, row, m.vectors + j * m.x.features);
      decide(c, kernels, pairs, votes);
      best = bestOf(votes, c.classes);
      most = votes[best];
      if (c.hasProbabilities) {
        couple(c, pairs, scores, space);
      } else {
        written = pairs;
        raw = c.pairs;
      }
    }
    if (m.rhoCount == 1 && c.classes == 2 && !c.hasProbabilities && c.isPositive && most >= 0.5)
      best = 1;
    if (label) {
      if (c.classes > 1)
        c.labels.write(*label, row, best);
      else if (c.labels.strings) // the only class, or none
        c.labels.write(*label, row, most > 0 ? 0 : 1);
      else
        Labels{}.write(*label, row, most > 0 ? 1 : 0);
    }
    if (z)
      writeScores(c, written, raw, *z, row);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx_ml, SVMRegressor, "ai.onnx.ml::SVMRegressor", inferSVMRegressor, runSVMRegressor)
FIRN_OPERATOR(ai_onnx_ml, SVMClassifier, "ai.onnx.ml::SVMClassifier", inferSVMClassifier, runSVMClassifier)

} // namespace firn::kernels
