// Tree ensembles as tables, and what follows the trees as operations: scores, labels.
#include "runtime/kernels/PackedForest.h"
#include "runtime/kernels/PredictorExpansion.h"

FIRN_USES(Add)
FIRN_USES(Concat)
FIRN_USES(Div)
FIRN_USES(Gather)
FIRN_USES(Greater)
FIRN_USES(Neg)
FIRN_USES(Sub)

namespace firn::kernels {
namespace {

using Value = Composer::Value;

/// What the trees say, with averages taken and base values added. `read` gives the forest.
Value scoresOf(Composer &c, int32_t (*read)(firn_call *, Forest *), Forest &f) {
  Value x = c.need(0, "X", featureTypes, 2, 2);
  if (!c.isFailed())
    c.status = read(c.call, &f);
  if (c.isFailed())
    return Composer::absent;
  bool isDouble = c.dtype(x) != FIRN_F32;
  if (c.dtype(x) == FIRN_I32 || c.dtype(x) == FIRN_I64)
    x = c.cast(x, FIRN_F64);
  Value y = composeForest(c, f, x, isDouble);
  if (f.aggregate == Aggregate::Average)
    y = c.op(firn_op_ai_onnx_Div, {y, c.scalar(FIRN_F32, double(f.treeCount))});
  return y;
}

Value withBase(Composer &c, const Forest &f, Value y, int64_t first, int64_t count) {
  if (f.baseCount == 0)
    return y;
  return c.op(firn_op_ai_onnx_Add,
              {y, floatConstant(c, f.base + (f.baseCount == 1 ? 0 : first), 1, f.baseCount == 1 ? 1 : count)});
}

template <int32_t (*read)(firn_call *, Forest *), bool keepsType> void expandRegressor(Composer &c) {
  if (keepsType && c.call->inputs[0].dtype != FIRN_F32)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "results of another type than float");
  Forest f;
  Value y = scoresOf(c, read, f);
  c.result(0, transformed(c, f.transform, withBase(c, f, y, 0, f.targets)));
}

void expandClassifier(Composer &c) {
  Forest f;
  Value y = scoresOf(c, forestOfClassifier, f), best;
  if (c.isFailed())
    return;
  if (f.targets < 2)
    return c.refuse(FIRN_CALL_UNSUPPORTED, "a single class");
  VotedPair pair = votedPairOf(f);
  if (pair.isPair) {
    AttributeList columns;
    columns.integer("axis", 1);
    Value score =
        withBase(c, f, c.op(firn_op_ai_onnx_Gather, {y, c.integers({pair.voted})}, columns), f.baseCount - 1, 1);
    Value other = pair.isProbability ? c.op(firn_op_ai_onnx_Sub, {c.scalar(FIRN_F32, 1), score})
                                     : c.op(firn_op_ai_onnx_Neg, {score});
    y = c.op(firn_op_ai_onnx_Concat, {other, score}, columns);
    best = c.op(firn_op_ai_onnx_Greater, {score, c.scalar(FIRN_F32, pair.isProbability ? 0.5 : 0)});
    best = c.reshape(c.cast(best, FIRN_I64), {-1});
  } else {
    y = withBase(c, f, y, 0, f.targets);
    best = bestColumn(c, y);
  }
  c.result(1, transformed(c, f.transform, y));
  if (c.wants(0))
    c.result(0, labelled(c, labelsOf(c.call, "classlabels_int64s"), best));
}

} // namespace

FIRN_EXPANSION(ai_onnx_ml, TreeEnsemble, "ai.onnx.ml::TreeEnsemble", (expandRegressor<forestOfEnsemble, true>))
FIRN_EXPANSION(ai_onnx_ml, TreeEnsembleClassifier, "ai.onnx.ml::TreeEnsembleClassifier", expandClassifier)
FIRN_EXPANSION(ai_onnx_ml, TreeEnsembleRegressor, "ai.onnx.ml::TreeEnsembleRegressor",
               (expandRegressor<forestOfRegressor, false>))

} // namespace firn::kernels
