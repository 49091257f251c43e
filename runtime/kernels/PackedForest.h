// Tree ensembles as tables that code walks without branches: operator firn::Forest, which TreeEnsemble and its older
// forms become when a model is compiled.
//
// Inputs: X [N, F] of float or double; nodes; weights [nodes * width] of float; trees [T, 3] of int64: first node,
// depth, target. T is a multiple of 8; trees of like depth are neighbours. A node has four fields: a threshold (float),
// a feature, the first of its two children counted from the tree's first node, and nothing. They take 8 bytes (nodes:
// uint16, the threshold two of them) or 16 (nodes: int32). From node 1 of a tree a row goes `depth` times from a node
// to child + (x[feature] > threshold). Leaves lead to themselves. What a NaN does: attribute missing is FIRST (it goes
// to the first child), SECOND, or MARKED: the highest bit of the feature's field sends it to the second. width is 1
// where each tree votes for one target, that of its entry, else the number of targets. Attributes: targets, width,
// aggregate (SUM, MIN, MAX), missing.
#ifndef FIRN_KERNELS_PACKEDFOREST_H
#define FIRN_KERNELS_PACKEDFOREST_H

#include "runtime/kernels/Compose.h"
#include "runtime/kernels/Trees.h"

namespace firn::kernels {

/// The sums (or extremes) of the trees as [N, targets] of float; fails where the tables cannot say what a tree does.
/// `isDouble`: X is of double.
Composer::Value composeForest(Composer &c, const Forest &forest, Composer::Value x, bool isDouble);

} // namespace firn::kernels
#endif
