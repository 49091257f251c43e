// TreeEnsemble and its older forms: rows find a leaf in each tree, the leaves' weights are brought together.
#include "runtime/kernels/Trees.h"

namespace firn::kernels {
namespace {

constexpr uint32_t ensembleTypes = typeSet(FIRN_F16) | typeSet(FIRN_F32) | typeSet(FIRN_F64);

bool passes(const Forest &f, const TreeNode &node, double x) {
  if (isnan(x))
    return node.missingIsTrue || node.test == TreeTest::Neq;
  switch (node.test) {
  case TreeTest::Leq:
    return x <= node.split;
  case TreeTest::Lt:
    return x < node.split;
  case TreeTest::Gte:
    return x >= node.split;
  case TreeTest::Gt:
    return x > node.split;
  case TreeTest::Eq:
    return x == node.split;
  case TreeTest::Neq:
    return x != node.split;
  case TreeTest::Member:
    for (int64_t i = node.begin; i < node.end; ++i)
      if (x == f.members[i])
        return true;
    return false;
  case TreeTest::Leaf:
    break;
  }
  return false;
}

int32_t checkFeatures(firn_call *call, const Forest &f, const Rows &x) {
  for (int64_t i = 0; i < f.nodeCount; ++i)
    if (f.nodes[i].test != TreeTest::Leaf && (f.nodes[i].feature < 0 || f.nodes[i].feature >= x.features))
      return fail(call, FIRN_CALL_INVALID, "a node tests feature %lld: X has %lld features",
                  static_cast<long long>(f.nodes[i].feature), static_cast<long long>(x.features));
  return FIRN_CALL_OK;
}

/// What the trees say of a row, per target, without base values. `hits`: how many leaves voted.
int32_t addTrees(firn_call *call, const Forest &f, const Rows &x, int64_t row, double *scores, int64_t *hits) {
  for (int64_t k = 0; k < f.targets; ++k) {
    scores[k] = 0;
    hits[k] = 0;
  }
  for (int64_t t = 0; t < f.treeCount; ++t) {
    const TreeNode *node = f.nodes + f.roots[t];
    for (int64_t steps = 0; node->test != TreeTest::Leaf; ++steps) {
      if (steps == f.nodeCount)
        return fail(call, FIRN_CALL_INVALID, "tree %lld leads back to a node above", static_cast<long long>(t));
      double value = getDouble(*x.view, row * x.features + node->feature);
      node = f.nodes + (passes(f, *node, value) ? node->onTrue : node->onFalse);
    }
    for (int64_t i = node->begin; i < node->end; ++i) {
      const TreeVote &vote = f.votes[i];
      double &score = scores[vote.target];
      if (hits[vote.target]++ == 0)
        score = vote.weight;
      else if (f.aggregate == Aggregate::Min)
        score = fmin(score, vote.weight);
      else if (f.aggregate == Aggregate::Max)
        score = fmax(score, vote.weight);
      else
        score += vote.weight;
    }
  }
  if (f.aggregate == Aggregate::Average)
    for (int64_t k = 0; k < f.targets; ++k)
      scores[k] /= double(f.treeCount);
  return FIRN_CALL_OK;
}

// --- TreeEnsemble, TreeEnsembleRegressor -----------------------------------------------------------------------------

template <uint32_t types, bool keepsType> int32_t inferRegressor(firn_call *call) {
  Rows x;
  int64_t targets;
  FIRN_TRY(rowsOf(call, types, &x));
  FIRN_TRY(boundedAttribute(call, "n_targets", 1, 1, int64_t(1) << 31, &targets));
  int64_t dims[2] = {x.rows, targets};
  return setChecked(call, 0, keepsType ? x.view->dtype : FIRN_F32, dims, 2);
}

template <int32_t (*read)(firn_call *, Forest *), uint32_t types> int32_t runRegressor(firn_call *call) {
  Rows x;
  Forest f;
  double *scores;
  int64_t *hits;
  FIRN_TRY(rowsOf(call, types, &x));
  FIRN_TRY(read(call, &f));
  FIRN_TRY(checkFeatures(call, f, x));
  FIRN_TRY(allocate(call, f.targets, &scores));
  FIRN_TRY(allocate(call, f.targets, &hits));
  for (int64_t row = 0; row < x.rows; ++row) {
    FIRN_TRY(addTrees(call, f, x, row, scores, hits));
    for (int64_t k = 0; k < f.baseCount; ++k)
      scores[k] += f.base[k];
    transformScores(f.transform, scores, f.targets);
    storeDoubles(call->outputs[0], row * f.targets, f.targets, scores);
  }
  return FIRN_CALL_OK;
}

// --- TreeEnsembleClassifier ------------------------------------------------------------------------------------------

int32_t inferClassifier(firn_call *call) {
  Rows x;
  FIRN_TRY(rowsOf(call, featureTypes, &x));
  Labels labels = labelsOf(call, "classlabels_int64s");
  return setClassifierTypes(call, x, labels, labels.count ? labels.count : 1);
}

/// Writes both scores of a pair and returns the class.
int64_t splitScore(const Forest &f, const VotedPair &pair, double *scores) {
  double score = double(float(scores[pair.voted] + (f.baseCount ? f.base[f.baseCount - 1] : 0)));
  scores[0] = pair.isProbability ? 1 - score : -score;
  scores[1] = score;
  return score > (pair.isProbability ? 0.5 : 0) ? 1 : 0;
}

/// Labels go by scores as they are written, in single precision: votes of 0.1 that tie do not quite in double.
int32_t runClassifier(firn_call *call) {
  Rows x;
  Forest f;
  double *scores;
  int64_t *hits;
  FIRN_TRY(rowsOf(call, featureTypes, &x));
  FIRN_TRY(forestOfClassifier(call, &f));
  FIRN_TRY(checkFeatures(call, f, x));
  FIRN_TRY(allocate(call, f.targets, &scores));
  FIRN_TRY(allocate(call, f.targets, &hits));
  Labels labels = labelsOf(call, "classlabels_int64s");
  VotedPair pair = votedPairOf(f);
  for (int64_t row = 0; row < x.rows; ++row) {
    FIRN_TRY(addTrees(call, f, x, row, scores, hits));
    int64_t best;
    if (pair.isPair) {
      best = splitScore(f, pair, scores);
    } else {
      for (int64_t k = 0; k < f.targets; ++k)
        scores[k] = double(float(scores[k] + (f.baseCount ? f.base[f.baseCount == f.targets ? k : 0] : 0)));
      best = bestOf(scores, f.targets);
    }
    if (const firn_view *label = output(call, 0)) {
      if (f.targets > 1)
        labels.write(*label, row, best);
      else if (bool isOne = scores[0] > (pair.isProbability ? 0.5 : 0);
               isOne || labels.strings) // the only class, or none
        labels.write(*label, row, isOne ? 0 : 1);
      else
        Labels{}.write(*label, row, 0);
    }
    transformScores(f.transform, scores, f.targets);
    if (const firn_view *z = output(call, 1))
      storeDoubles(*z, row * f.targets, f.targets, scores);
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx_ml, TreeEnsemble, "ai.onnx.ml::TreeEnsemble", (inferRegressor<ensembleTypes, true>),
              (runRegressor<forestOfEnsemble, ensembleTypes>))
FIRN_OPERATOR(ai_onnx_ml, TreeEnsembleRegressor, "ai.onnx.ml::TreeEnsembleRegressor",
              (inferRegressor<featureTypes, false>), (runRegressor<forestOfRegressor, featureTypes>))
FIRN_OPERATOR(ai_onnx_ml, TreeEnsembleClassifier, "ai.onnx.ml::TreeEnsembleClassifier", inferClassifier, runClassifier)

} // namespace firn::kernels
