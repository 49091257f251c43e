// Tree ensembles of ai.onnx.ml in one form, whatever operator they come from.
#ifndef FIRN_KERNELS_TREES_H
#define FIRN_KERNELS_TREES_H

#include "runtime/kernels/Predictor.h"

namespace firn::kernels {

/// In the order of TreeEnsemble's nodes_modes; Leaf ends a path.
enum class TreeTest : int32_t { Leq, Lt, Gte, Gt, Eq, Neq, Member, Leaf };
/// In the order of TreeEnsemble's aggregate_function.
enum class Aggregate { Average, Sum, Min, Max };

struct TreeNode {
  double split;
  int64_t feature;
  int64_t onTrue, onFalse; // nodes
  int64_t begin, end;      // of a leaf: its votes; of a membership test: its members
  TreeTest test;
  bool missingIsTrue;
};

struct TreeVote {
  int64_t target;
  double weight;
};

struct Forest {
  TreeNode *nodes;
  int64_t nodeCount;
  const int64_t *roots;
  int64_t treeCount;
  TreeVote *votes;
  int64_t voteCount;
  const double *members; // of all membership tests
  const double *base;    // [baseCount]
  int64_t baseCount;
  int64_t targets;
  Aggregate aggregate;
  PostTransform transform;
};

/// The ensemble of a call in scratch memory: every node, leaf and target that is named exists.
int32_t forestOfEnsemble(firn_call *call, Forest *forest);   // TreeEnsemble
int32_t forestOfRegressor(firn_call *call, Forest *forest);  // TreeEnsembleRegressor
int32_t forestOfClassifier(firn_call *call, Forest *forest); // TreeEnsembleClassifier

/// How an ensemble whose leaves all vote for one of two classes reads its score: as a probability where no weight is
/// negative (and no transform makes one), else as a margin.
struct VotedPair {
  bool isPair, isProbability;
  int64_t voted; // the class that leaves vote for
};
VotedPair votedPairOf(const Forest &forest);

} // namespace firn::kernels
#endif
