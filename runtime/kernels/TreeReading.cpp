// The attributes of tree ensembles as a Forest.
#include "runtime/kernels/Sort.h"
#include "runtime/kernels/Trees.h"

namespace firn::kernels {
namespace {

/// List attribute `name`, which must have `count` values; an absent one is NULL where it is optional.
int32_t requireList(firn_call *call, const char *name, int64_t count, bool isOptional, const int64_t **values) {
  int64_t given;
  *values = intsAttribute(call, name, &given);
  if ((given == count && (*values || count == 0)) || (isOptional && given == 0))
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute '%s' must have %lld values, found %lld", name,
              static_cast<long long>(count), static_cast<long long>(given));
}

int32_t requireReals(firn_call *call, const char *name, const char *tensorName, int64_t count, const double **values) {
  int64_t given;
  FIRN_TRY(realsAttribute(call, name, tensorName, values, &given));
  if (given == count)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute '%s' must have %lld values, found %lld", name,
              static_cast<long long>(count), static_cast<long long>(given));
}

int32_t outOfRange(firn_call *call, const char *name, int64_t i, int64_t value, int64_t end) {
  return fail(call, FIRN_CALL_INVALID, "%s[%lld] must lie between 0 and %lld, found %lld", name,
              static_cast<long long>(i), static_cast<long long>(end - 1), static_cast<long long>(value));
}

// --- the older forms: nodes by tree and number -----------------------------------------------------------------------

/// Nodes in the order of (tree, number), to find them by.
struct NodeIndex {
  const int64_t *trees, *numbers;
  int64_t *order;
  int64_t count;

  bool isBefore(int64_t i, int64_t tree, int64_t number) const {
    return trees[i] < tree || (trees[i] == tree && numbers[i] < number);
  }
  /// The node, -1 where there is none.
  int64_t find(int64_t tree, int64_t number) const {
    int64_t low = 0, high = count;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (isBefore(order[middle], tree, number))
        low = middle + 1;
      else
        high = middle;
    }
    bool isFound = low < count && trees[order[low]] == tree && numbers[order[low]] == number;
    return isFound ? order[low] : -1;
  }
};

int32_t indexNodes(firn_call *call, NodeIndex *index) {
  int64_t *space;
  FIRN_TRY(allocate(call, index->count, &index->order));
  FIRN_TRY(allocate(call, index->count, &space));
  for (int64_t i = 0; i < index->count; ++i)
    index->order[i] = i;
  mergeSort(index->order, space, index->count,
            [&](int64_t a, int64_t b) { return index->isBefore(a, index->trees[b], index->numbers[b]); });
  for (int64_t k = 1; k < index->count; ++k) {
    int64_t a = index->order[k - 1], b = index->order[k];
    if (index->trees[a] == index->trees[b] && index->numbers[a] == index->numbers[b])
      return fail(call, FIRN_CALL_INVALID, "tree %lld has two nodes with number %lld",
                  static_cast<long long>(index->trees[a]), static_cast<long long>(index->numbers[a]));
  }
  return FIRN_CALL_OK;
}

int32_t testOf(firn_call *call, const firn_string &mode, int64_t i, TreeTest *test) {
  static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
  for (int k = 0; k < 8; ++k)
    if (int64_t(strlen(names[k])) == mode.length && mode.length &&
        memcmp(names[k], mode.data, size_t(mode.length)) == 0) {
      *test = TreeTest(k);
      return FIRN_CALL_OK;
    }
  return fail(call, FIRN_CALL_INVALID,
              "nodes_modes[%lld] must be one of BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ "
              "and LEAF, found '%.*s'",
              static_cast<long long>(i), int(mode.length < 40 ? mode.length : 40), mode.data);
}

/// `kind`: "target" or "class", the beginning of the names of the votes' attributes.
int32_t readNumbered(firn_call *call, const char *kind, Forest *f) {
  NodeIndex index;
  int64_t modeCount;
  const firn_string *modes = stringsAttribute(call, "nodes_modes", &modeCount);
  const int64_t *features, *onTrue, *onFalse, *missing;
  const double *splits;
  f->nodeCount = index.count = modeCount;
  FIRN_TRY(requireList(call, "nodes_treeids", modeCount, false, &index.trees));
  FIRN_TRY(requireList(call, "nodes_nodeids", modeCount, false, &index.numbers));
  FIRN_TRY(requireList(call, "nodes_featureids", modeCount, false, &features));
  FIRN_TRY(requireList(call, "nodes_truenodeids", modeCount, false, &onTrue));
  FIRN_TRY(requireList(call, "nodes_falsenodeids", modeCount, false, &onFalse));
  FIRN_TRY(requireList(call, "nodes_missing_value_tracks_true", modeCount, true, &missing));
  FIRN_TRY(requireReals(call, "nodes_values", "nodes_values_as_tensor", modeCount, &splits));
  FIRN_TRY(indexNodes(call, &index));
  FIRN_TRY(allocate(call, modeCount, &f->nodes));
  for (int64_t i = 0; i < modeCount; ++i) {
    TreeNode &node = f->nodes[i] = {};
    FIRN_TRY(testOf(call, modes[i], i, &node.test));
    node.split = splits[i];
    node.feature = features[i];
    node.missingIsTrue = missing && missing[i] != 0;
    if (node.test == TreeTest::Leaf)
      continue;
    node.onTrue = index.find(index.trees[i], onTrue[i]);
    node.onFalse = index.find(index.trees[i], onFalse[i]);
    if (node.onTrue < 0 || node.onFalse < 0)
      return fail(call, FIRN_CALL_INVALID, "node %lld of tree %lld goes on to node %lld, which the tree does not have",
                  static_cast<long long>(index.numbers[i]), static_cast<long long>(index.trees[i]),
                  static_cast<long long>(node.onTrue < 0 ? onTrue[i] : onFalse[i]));
  }
  // A tree begins with the first of its nodes that the file lists.
  int64_t *roots, trees = 0;
  FIRN_TRY(allocate(call, modeCount, &roots));
  for (int64_t k = 0; k < modeCount; ++k) {
    int64_t node = index.order[k];
    if (k > 0 && index.trees[node] == index.trees[index.order[k - 1]])
      roots[trees - 1] = node < roots[trees - 1] ? node : roots[trees - 1];
    else
      roots[trees++] = node;
  }
  f->roots = roots;
  f->treeCount = trees;

  char names[5][40];
  const char *const ends[] = {"ids", "nodeids", "treeids", "weights", "weights_as_tensor"};
  for (int i = 0; i < 5; ++i)
    snprintf(names[i], sizeof names[i], "%s_%s", kind, ends[i]);
  int64_t count;
  const int64_t *targets = intsAttribute(call, names[0], &count), *voters, *voterTrees;
  const double *weights;
  FIRN_TRY(requireList(call, names[1], count, false, &voters));
  FIRN_TRY(requireList(call, names[2], count, false, &voterTrees));
  FIRN_TRY(requireReals(call, names[3], names[4], count, &weights));
  // Votes of one leaf lie side by side, in the order of the file.
  int64_t *leaves, *order, *space;
  FIRN_TRY(allocate(call, count, &leaves));
  FIRN_TRY(allocate(call, count, &order));
  FIRN_TRY(allocate(call, count, &space));
  FIRN_TRY(allocate(call, count, &f->votes));
  f->voteCount = count;
  for (int64_t i = 0; i < count; ++i) {
    order[i] = i;
    leaves[i] = index.find(voterTrees[i], voters[i]);
    if (leaves[i] < 0)
      return fail(call, FIRN_CALL_INVALID, "%s[%lld] names node %lld of tree %lld, which does not exist", names[1],
                  static_cast<long long>(i), static_cast<long long>(voters[i]), static_cast<long long>(voterTrees[i]));
    if (targets[i] < 0 || targets[i] >= f->targets)
      return outOfRange(call, names[0], i, targets[i], f->targets);
  }
  mergeSort(order, space, count, [&](int64_t a, int64_t b) { return leaves[a] < leaves[b]; });
  for (int64_t k = 0; k < count; ++k) {
    f->votes[k] = {targets[order[k]], weights[order[k]]};
    TreeNode &leaf = f->nodes[leaves[order[k]]];
    if (leaf.test != TreeTest::Leaf)
      continue; // never reached as a leaf
    if (leaf.end == 0)
      leaf.begin = k;
    leaf.end = k + 1;
  }
  return realsAttribute(call, "base_values", "base_values_as_tensor", &f->base, &f->baseCount);
}

// --- TreeEnsemble: nodes and leaves by position ----------------------------------------------------------------------

int32_t byteList(firn_call *call, const char *name, int64_t count, const firn_view **view) {
  const firn_attribute *attribute = findAttribute(call, name);
  *view = attribute && attribute->kind == FIRN_ATTR_TENSOR ? static_cast<const firn_view *>(attribute->data) : nullptr;
  if (*view && elementCount(**view) == count && (typeSet((*view)->dtype) & integerTypes))
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute '%s' must be a tensor of %lld uint8 values", name,
              static_cast<long long>(count));
}

/// The members of the next set, which a NaN ends. Sets come in the order in which a walk from the roots, true branches
/// first, meets their nodes; so this is that walk.
int32_t assignMembers(firn_call *call, Forest *f, int64_t memberCount) {
  int64_t *stack, depth = 0, next = 0;
  bool *isSeen;
  FIRN_TRY(allocate(call, 2 * f->nodeCount + f->treeCount + 1, &stack));
  FIRN_TRY(allocate(call, f->nodeCount, &isSeen));
  memset(isSeen, 0, size_t(f->nodeCount));
  for (int64_t t = f->treeCount - 1; t >= 0; --t)
    stack[depth++] = f->roots[t];
  while (depth > 0) {
    int64_t i = stack[--depth];
    TreeNode &node = f->nodes[i];
    if (node.test == TreeTest::Leaf || isSeen[i])
      continue;
    isSeen[i] = true;
    stack[depth++] = node.onFalse;
    stack[depth++] = node.onTrue;
    if (node.test != TreeTest::Member)
      continue;
    node.begin = next;
    while (next < memberCount && !isnan(f->members[next]))
      ++next;
    node.end = next;
    if (next++ == memberCount && node.begin == node.end)
      return fail(call, FIRN_CALL_INVALID, "attribute 'membership_values' has too few sets: each ends with a NaN");
  }
  return FIRN_CALL_OK;
}

} // namespace

int32_t forestOfEnsemble(firn_call *call, Forest *f) {
  *f = {};
  int64_t nodes, roots, leaves, members, choice;
  const int64_t *features = intsAttribute(call, "nodes_featureids", &nodes);
  const int64_t *onTrue, *onFalse, *trueLeaf, *falseLeaf, *missing;
  const int64_t *targets = intsAttribute(call, "leaf_targetids", &leaves);
  const double *splits, *weights;
  const firn_view *modes;
  f->roots = intsAttribute(call, "tree_roots", &roots);
  f->treeCount = roots;
  FIRN_TRY(requireList(call, "nodes_truenodeids", nodes, false, &onTrue));
  FIRN_TRY(requireList(call, "nodes_falsenodeids", nodes, false, &onFalse));
  FIRN_TRY(requireList(call, "nodes_trueleafs", nodes, false, &trueLeaf));
  FIRN_TRY(requireList(call, "nodes_falseleafs", nodes, false, &falseLeaf));
  FIRN_TRY(requireList(call, "nodes_missing_value_tracks_true", nodes, true, &missing));
  FIRN_TRY(requireReals(call, "nodes_splits", "nodes_splits", nodes, &splits));
  FIRN_TRY(requireReals(call, "leaf_weights", "leaf_weights", leaves, &weights));
  FIRN_TRY(byteList(call, "nodes_modes", nodes, &modes));
  FIRN_TRY(realsAttribute(call, "membership_values", "membership_values", &f->members, &members));
  FIRN_TRY(boundedAttribute(call, "n_targets", 1, 1, int64_t(1) << 31, &f->targets));
  FIRN_TRY(boundedAttribute(call, "aggregate_function", 1, 0, 3, &choice));
  f->aggregate = Aggregate(choice);
  FIRN_TRY(boundedAttribute(call, "post_transform", 0, 0, 4, &choice));
  f->transform = PostTransform(choice);

  // Leaves follow the nodes.
  f->nodeCount = nodes + leaves;
  f->voteCount = leaves;
  FIRN_TRY(allocate(call, f->nodeCount, &f->nodes));
  FIRN_TRY(allocate(call, leaves, &f->votes));
  for (int64_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= f->targets)
      return outOfRange(call, "leaf_targetids", i, targets[i], f->targets);
    f->votes[i] = {targets[i], weights[i]};
    f->nodes[nodes + i] = {};
    f->nodes[nodes + i].test = TreeTest::Leaf;
    f->nodes[nodes + i].begin = i;
    f->nodes[nodes + i].end = i + 1;
  }
  for (int64_t i = 0; i < nodes; ++i) {
    TreeNode &node = f->nodes[i] = {};
    int64_t mode = getInt(*modes, i);
    if (mode < 0 || mode > 6)
      return outOfRange(call, "nodes_modes", i, mode, 7);
    if (onTrue[i] < 0 || onTrue[i] >= (trueLeaf[i] ? leaves : nodes))
      return outOfRange(call, "nodes_truenodeids", i, onTrue[i], trueLeaf[i] ? leaves : nodes);
    if (onFalse[i] < 0 || onFalse[i] >= (falseLeaf[i] ? leaves : nodes))
      return outOfRange(call, "nodes_falsenodeids", i, onFalse[i], falseLeaf[i] ? leaves : nodes);
    node.test = TreeTest(mode);
    node.split = splits[i];
    node.feature = features[i];
    node.onTrue = onTrue[i] + (trueLeaf[i] ? nodes : 0);
    node.onFalse = onFalse[i] + (falseLeaf[i] ? nodes : 0);
    node.missingIsTrue = missing && missing[i] != 0;
  }
  for (int64_t t = 0; t < roots; ++t)
    if (f->roots[t] < 0 || f->roots[t] >= nodes)
      return outOfRange(call, "tree_roots", t, f->roots[t], nodes);
  return assignMembers(call, f, members);
}

int32_t forestOfRegressor(firn_call *call, Forest *f) {
  static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  *f = {};
  int32_t choice;
  FIRN_TRY(boundedAttribute(call, "n_targets", 1, 1, int64_t(1) << 31, &f->targets));
  FIRN_TRY(choiceAttribute(call, "aggregate_function", names, 4, 1, &choice));
  f->aggregate = Aggregate(choice);
  FIRN_TRY(postTransformOf(call, &f->transform));
  FIRN_TRY(readNumbered(call, "target", f));
  if (f->baseCount == 0 || f->baseCount == f->targets)
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute 'base_values' must have %lld values, found %lld",
              static_cast<long long>(f->targets), static_cast<long long>(f->baseCount));
}

int32_t forestOfClassifier(firn_call *call, Forest *f) {
  *f = {};
  int64_t labels = labelsOf(call, "classlabels_int64s").count;
  f->targets = labels > 0 ? labels : 1;
  f->aggregate = Aggregate::Sum;
  FIRN_TRY(postTransformOf(call, &f->transform));
  FIRN_TRY(readNumbered(call, "class", f));
  // Two classes may share one base value.
  if (f->baseCount == 0 || f->baseCount == f->targets || (f->baseCount == 1 && f->targets == 2))
    return FIRN_CALL_OK;
  return fail(call, FIRN_CALL_INVALID, "attribute 'base_values' must have %lld values, found %lld",
              static_cast<long long>(f->targets), static_cast<long long>(f->baseCount));
}

VotedPair votedPairOf(const Forest &f) {
  VotedPair pair = {f.targets == 2 && f.voteCount > 0, true, f.voteCount > 0 ? f.votes[0].target : 0};
  for (int64_t i = 0; i < f.voteCount; ++i) {
    pair.isPair &= f.votes[i].target == pair.voted;
    pair.isProbability &= f.votes[i].weight >= 0;
  }
  pair.isProbability &= f.transform == PostTransform::None || f.transform == PostTransform::Probit;
  return pair;
}

} // namespace firn::kernels
