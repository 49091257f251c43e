#include "runtime/kernels/PackedForest.h"

#include <float.h>

#include "runtime/kernels/Sort.h"

extern "C" __attribute__((visibility("hidden"))) const firn_operator firn_op_firn_Forest;

namespace firn::kernels {
namespace {

constexpr int64_t groupSize = 8;  // trees that are walked side by side
constexpr int64_t mostWidth = 64; // targets that one tree votes for

struct Node {
  float threshold;
  int64_t feature, child;
  bool missingIsSecond;
};

/// What shall stand at a place: a node of the forest, or the second comparison of its test for equality.
struct Waiting {
  const TreeNode *node; // NULL: it stands there
  bool isSecond;
};

/// Lays the trees out, breadth first, so that the children of a node lie side by side.
class Packer {
public:
  Packer(Composer &composer, const Forest &packed) : c(composer), forest(packed) {}

  bool pack(bool isDouble);
  Composer::Value compose(Composer::Value x);

private:
  bool refuse(const char *why) {
    c.refuse(FIRN_CALL_UNSUPPORTED, why);
    return false;
  }
  template <typename T> bool take(T **to, int64_t count) {
    if (!c.isFailed())
      c.status = allocate(c.call, count, to);
    return !c.isFailed();
  }
  bool packTrees(int64_t theWidth, bool isDouble);
  bool packTree(int64_t root, bool isDouble);
  bool place(const Waiting &next, int64_t at, bool isDouble);
  bool placeEquality(const Waiting &next, int64_t at, bool isDouble);
  bool placeLeaf(const TreeNode &leaf, int64_t at);
  bool split(Node &packed, const TreeNode &node, bool isDouble);
  /// A place for two nodes of the tree in hand.
  int64_t pair(const Waiting &first, const Waiting &second);
  void padWithLeaf();

  Composer &c;
  const Forest &forest;
  int64_t width = 1;
  // The tree in hand.
  Waiting *waiting = nullptr;
  int64_t base = 0, size = 0, limit = 0, target = 0;
  // All trees.
  Node *nodes = nullptr;
  float *weights = nullptr;
  int64_t *trees = nullptr;
  int64_t nodeCount = 0, treeCount = 0, mostNodes = 0, largestTree = 0, largestFeature = 0;
  bool hasFirst = false, hasSecond = false; // where NaNs go
  bool isMixed = false;                     // a tree votes for several targets
};

bool Packer::pack(bool isDouble) {
  if (forest.treeCount < 1 || forest.treeCount > 1 << 20)
    return refuse("there are no trees, or more than a million");
  bool isExtreme = forest.aggregate == Aggregate::Min || forest.aggregate == Aggregate::Max;
  if (isExtreme && forest.targets != 1)
    return refuse("the least or greatest of several targets");
  if (forest.targets > mostWidth * 1024)
    return refuse("so many targets");
  limit = 2 * forest.nodeCount + 64;
  mostNodes = 3 * forest.nodeCount + 4 * (forest.treeCount + groupSize);
  // Boosted trees vote for one target each, bagged ones for all.
  return packTrees(1, isDouble) || (isMixed && packTrees(forest.targets, isDouble));
}

bool Packer::packTrees(int64_t theWidth, bool isDouble) {
  width = theWidth;
  isMixed = hasFirst = hasSecond = false;
  nodeCount = treeCount = largestTree = largestFeature = 0;
  int64_t rounded = (forest.treeCount + groupSize - 1) / groupSize * groupSize;
  if (width > mostWidth || mostNodes > int64_t(1) << 26 || mostNodes * width > int64_t(1) << 26)
    return refuse("the tables would be too large");
  if (!take(&nodes, mostNodes) || !take(&weights, mostNodes * width) || !take(&waiting, limit + 2) ||
      !take(&trees, 3 * rounded))
    return false;
  for (int64_t t = 0; t < forest.treeCount; ++t)
    if (!packTree(forest.roots[t], isDouble))
      return false;
  while (treeCount < rounded)
    padWithLeaf();
  return true;
}

bool Packer::packTree(int64_t root, bool isDouble) {
  base = nodeCount;
  size = 2;
  target = -1;
  // Place 0 stays free, so that pairs begin at even places and a leaf may point to the place before its own.
  waiting[0] = {nullptr, false};
  waiting[1] = {forest.nodes + root, false};
  if (base + size > mostNodes)
    return refuse("trees share their nodes");
  nodes[base] = {INFINITY, 0, 0, false};
  for (int64_t k = 0; k < width; ++k)
    weights[base * width + k] = weights[(base + 1) * width + k] = 0;
  int64_t depth = 0;
  for (int64_t levelEnd = 2, at = 1; at < size; ++at) {
    if (at == levelEnd) {
      levelEnd = size;
      ++depth;
    }
    if (waiting[at].node && !place(waiting[at], at, isDouble))
      return false;
  }
  nodeCount = base + size;
  largestTree = size > largestTree ? size : largestTree;
  int64_t *entry = trees + 3 * treeCount++;
  entry[0] = base;
  entry[1] = depth;
  entry[2] = target < 0 ? 0 : target;
  return true;
}

int64_t Packer::pair(const Waiting &first, const Waiting &second) {
  if (size + 2 > limit || base + size + 2 > mostNodes) {
    refuse("trees share their nodes, or lead back to a node above");
    return 0;
  }
  waiting[size] = first;
  waiting[size + 1] = second;
  for (int64_t i = 0; i < 2 * width; ++i)
    weights[(base + size) * width + i] = 0;
  size += 2;
  return size - 2;
}

/// The test as x > threshold.
bool Packer::split(Node &packed, const TreeNode &node, bool isDouble) {
  float threshold = float(node.split);
  if (isnan(threshold) || isinf(threshold))
    return refuse("a threshold is not finite");
  bool isExact = double(threshold) == node.split;
  if (double(threshold) > node.split)
    threshold = nextafterf(threshold, -INFINITY); // the greatest float that is not greater
  bool isStrict = node.test == TreeTest::Lt || node.test == TreeTest::Gte;
  if (isDouble && (isStrict || !isExact))
    return refuse("double inputs with thresholds that no float is");
  if (isStrict && isExact)
    threshold = nextafterf(threshold, -INFINITY); // x < t is x <= the float before t
  bool isUpper = node.test == TreeTest::Gt || node.test == TreeTest::Gte;
  const TreeNode *passed = forest.nodes + node.onTrue, *failed = forest.nodes + node.onFalse;
  packed.threshold = threshold;
  packed.feature = node.feature;
  packed.child = isUpper ? pair({failed, false}, {passed, false}) : pair({passed, false}, {failed, false});
  packed.missingIsSecond = node.missingIsTrue == isUpper;
  return true;
}

bool Packer::place(const Waiting &next, int64_t at, bool isDouble) {
  const TreeNode &node = *next.node;
  Node &packed = nodes[base + at];
  if (node.test == TreeTest::Leaf)
    return placeLeaf(node, at);
  if (node.feature < 0 || node.feature >= int64_t(1) << 31)
    return refuse("a feature that does not exist");
  largestFeature = node.feature > largestFeature ? node.feature : largestFeature;
  if (node.test == TreeTest::Member)
    return refuse("tests for membership");
  if (node.test == TreeTest::Eq || node.test == TreeTest::Neq ? !placeEquality(next, at, isDouble)
                                                              : !split(packed, node, isDouble))
    return false;
  (packed.missingIsSecond ? hasSecond : hasFirst) = true;
  return !c.isFailed();
}

/// x == t in two steps: what is greater leaves at the first one, what is not greater than the float before t at the
/// second. Both ways lead to the branch for other numbers; the first by a node that only leads on.
bool Packer::placeEquality(const Waiting &next, int64_t at, bool isDouble) {
  const TreeNode &node = *next.node;
  float threshold = float(node.split);
  if (isDouble || double(threshold) != node.split || isinf(threshold))
    return refuse("equality with what is no finite float, or in double");
  Node &packed = nodes[base + at];
  packed.feature = node.feature;
  packed.missingIsSecond = false;
  if (!next.isSecond) {
    packed.threshold = threshold;
    packed.child = pair({&node, true}, {nullptr, false});
    return true;
  }
  bool isEq = node.test == TreeTest::Eq;
  const TreeNode *equal = forest.nodes + (isEq ? node.onTrue : node.onFalse);
  const TreeNode *other = forest.nodes + (isEq ? node.onFalse : node.onTrue);
  packed.threshold = nextafterf(threshold, -INFINITY);
  packed.child = pair({other, false}, {equal, false});
  packed.missingIsSecond = isEq && node.missingIsTrue; // NaN differs from every number
  nodes[base + at + 1] = {NAN, -1, packed.child, false};
  return true;
}

bool Packer::placeLeaf(const TreeNode &leaf, int64_t at) {
  nodes[base + at] = {NAN, -1, at, false}; // feature -1: compose() makes it lead to `child`, here itself
  bool isSum = forest.aggregate == Aggregate::Sum || forest.aggregate == Aggregate::Average;
  if (!isSum && leaf.end - leaf.begin != 1)
    return refuse("leaves without one vote each");
  double sums[mostWidth] = {};
  for (int64_t i = leaf.begin; i < leaf.end; ++i) {
    const TreeVote &vote = forest.votes[i];
    sums[width == 1 ? 0 : vote.target] += vote.weight;
    if (width == 1 && target >= 0 && target != vote.target) {
      isMixed = true;
      return false;
    }
    target = vote.target;
  }
  for (int64_t k = 0; k < width; ++k)
    weights[(base + at) * width + k] = float(sums[k]);
  return true;
}

/// A tree that changes nothing: it adds 0, or is the last tree once more.
void Packer::padWithLeaf() {
  int64_t *entry = trees + 3 * treeCount++;
  if (forest.aggregate == Aggregate::Min || forest.aggregate == Aggregate::Max) {
    memcpy(entry, entry - 3, 3 * sizeof *entry);
    return;
  }
  for (int64_t i = 0; i < 2; ++i) {
    nodes[nodeCount + i] = {NAN, -1, i, false};
    for (int64_t k = 0; k < width; ++k)
      weights[(nodeCount + i) * width + k] = 0;
  }
  entry[0] = nodeCount;
  entry[1] = entry[2] = 0;
  nodeCount += 2;
}

Composer::Value Packer::compose(Composer::Value x) {
  const char *missing = !hasSecond ? "FIRST" : !hasFirst ? "SECOND" : "MARKED";
  bool isMarked = hasFirst && hasSecond, isSecond = hasSecond && !hasFirst;
  bool isSmall = largestTree < 1 << 16 && largestFeature < (isMarked ? 1 << 15 : 1 << 16);
  char *table;
  if (!take(&table, nodeCount * (isSmall ? 8 : 16)))
    return Composer::absent;
  for (int64_t i = 0; i < nodeCount; ++i) {
    Node node = nodes[i];
    if (node.feature < 0) {
      // Where NaNs go second every comparison with NaN holds, so a leaf points to the place before it.
      node.threshold = isSecond ? NAN : INFINITY;
      node.child -= isSecond;
      node.child = node.child < 0 ? 0 : node.child;
      node.feature = 0;
    }
    uint32_t mark = isMarked && node.missingIsSecond ? 1 : 0;
    if (isSmall) {
      uint16_t fields[2] = {uint16_t(uint32_t(node.feature) | mark << 15), uint16_t(node.child)};
      memcpy(table + i * 8, &node.threshold, 4);
      memcpy(table + i * 8 + 4, fields, 4);
    } else {
      uint32_t fields[3] = {uint32_t(node.feature) | mark << 31, uint32_t(node.child), 0};
      memcpy(table + i * 16, &node.threshold, 4);
      memcpy(table + i * 16 + 4, fields, 12);
    }
  }
  // Trees of like depth side by side, else as they come, so that sums have one order.
  int64_t *order, *space, *sorted;
  if (!take(&order, treeCount) || !take(&space, treeCount) || !take(&sorted, 3 * treeCount))
    return Composer::absent;
  for (int64_t t = 0; t < treeCount; ++t)
    order[t] = t;
  mergeSort(order, space, treeCount, [&](int64_t a, int64_t b) { return trees[3 * a + 1] > trees[3 * b + 1]; });
  for (int64_t t = 0; t < treeCount; ++t)
    memcpy(sorted + 3 * t, trees + 3 * order[t], 3 * sizeof *sorted);

  auto constant = [&](int32_t dtype, void *data, int64_t first, int64_t second) {
    firn_view view = {};
    view.data = data;
    view.dtype = dtype;
    view.dims[0] = first;
    view.dims[1] = second;
    view.rank = second ? 2 : 1;
    return c.given(view);
  };
  AttributeList attributes;
  const char *aggregate = forest.aggregate == Aggregate::Min   ? "MIN"
                          : forest.aggregate == Aggregate::Max ? "MAX"
                                                               : "SUM";
  attributes.integer("targets", forest.targets)
      .integer("width", width)
      .text("aggregate", aggregate)
      .text("missing", missing);
  return c.op(firn_op_firn_Forest,
              {x, constant(isSmall ? FIRN_U16 : FIRN_I32, table, nodeCount * 4, 0),
               constant(FIRN_F32, weights, nodeCount * width, 0), constant(FIRN_I64, sorted, treeCount, 3)},
              attributes);
}

// --- firn::Forest ----------------------------------------------------------------------------------------------------

int32_t inferForest(firn_call *call) {
  const firn_view *x;
  int64_t targets;
  FIRN_TRY(requireInput(call, 0, "X", typeSet(FIRN_F32) | typeSet(FIRN_F64), &x));
  FIRN_TRY(requireRank(call, "X", *x, 2, 2));
  FIRN_TRY(boundedAttribute(call, "targets", 1, 1, int64_t(1) << 31, &targets));
  int64_t dims[2] = {x->dims[0], targets};
  return setChecked(call, 0, FIRN_F32, dims, 2);
}

int32_t runForest(firn_call *call) {
  const firn_view &x = call->inputs[0], &nodes = call->inputs[1], &y = call->outputs[0];
  const float *weights = static_cast<const float *>(call->inputs[2].data);
  const int64_t *trees = static_cast<const int64_t *>(call->inputs[3].data);
  int64_t targets = y.dims[1], width = intAttribute(call, "width", 1), features = x.dims[1];
  bool isMin = stringAttributeIs(call, "aggregate", "MIN", "SUM"),
       isMax = stringAttributeIs(call, "aggregate", "MAX", "SUM");
  bool isSecond = stringAttributeIs(call, "missing", "SECOND", "FIRST");
  bool isMarked = stringAttributeIs(call, "missing", "MARKED", "FIRST");
  bool isSmall = nodes.dtype == FIRN_U16;
  double *sums;
  FIRN_TRY(allocate(call, targets, &sums));
  for (int64_t row = 0; row < x.dims[0]; ++row) {
    for (int64_t k = 0; k < targets; ++k)
      sums[k] = isMin ? INFINITY : isMax ? -INFINITY : 0;
    for (int64_t t = 0; t < call->inputs[3].dims[0]; ++t, trees += 3) {
      int64_t node = 1;
      for (int64_t level = 0; level < trees[1]; ++level) {
        const char *at = static_cast<const char *>(nodes.data) + (trees[0] + node) * (isSmall ? 8 : 16);
        float threshold;
        memcpy(&threshold, at, 4);
        int64_t field = getInt(nodes, (trees[0] + node) * 4 + (isSmall ? 2 : 1));
        int64_t child = getInt(nodes, (trees[0] + node) * 4 + (isSmall ? 3 : 2));
        int64_t mark = isSmall ? 1 << 15 : int64_t(1) << 31,
                feature = (field & (2 * mark - 1)) & ~(isMarked ? mark : 0);
        double value = feature < features ? getDouble(x, row * features + feature) : 0;
        bool isMissing = isnan(value) || isnan(threshold);
        node = child + (value > double(threshold) || (isMissing && (isSecond || (isMarked && (field & mark)))));
      }
      for (int64_t k = 0; k < width; ++k) {
        double &sum = sums[width == 1 ? trees[2] : k];
        double weight = double(weights[(trees[0] + node) * width + k]);
        sum = isMin ? fmin(sum, weight) : isMax ? fmax(sum, weight) : sum + weight;
      }
    }
    trees -= 3 * call->inputs[3].dims[0];
    storeDoubles(y, row * targets, targets, sums);
  }
  return FIRN_CALL_OK;
}

} // namespace

Composer::Value composeForest(Composer &c, const Forest &forest, Composer::Value x, bool isDouble) {
  Packer packer(c, forest);
  if (c.isFailed() || !packer.pack(isDouble))
    return Composer::absent;
  return packer.compose(x);
}

FIRN_OPERATOR(firn, Forest, "firn::Forest", inferForest, runForest)
} // namespace firn::kernels
