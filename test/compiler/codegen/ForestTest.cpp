// Kernels of kind "forest" against the reference kernel of firn::Forest.
#include "test/compiler/codegen/ContractionHarness.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace firn::test;

namespace {

struct Ensemble {
  int trees = 16, features = 5, targets = 1, width = 1;
  bool isSmall = true; // nodes of 8 bytes
  std::string aggregate = "SUM", missing = "FIRST";
};

/// Full trees of 3, 2, 1 and 0 levels in turn of groups, as tables (runtime/kernels/PackedForest.h).
FusedCase forest(const Ensemble &e, Dim rows, const std::string &element = "f32") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<double> nodes, weights, trees;
  auto node = [&](float threshold, uint32_t feature, bool isMarked, uint32_t child) {
    uint32_t bits;
    std::memcpy(&bits, &threshold, 4);
    if (e.isSmall) {
      for (uint32_t field : {bits & 0xffff, bits >> 16, feature | uint32_t(isMarked) << 15, child})
        nodes.push_back(field);
    } else {
      for (uint32_t field : {bits, feature | uint32_t(isMarked) << 31, child, 0u})
        nodes.push_back(int32_t(field));
    }
    for (int k = 0; k < e.width; ++k)
      weights.push_back(double(uniform(random)));
  };
  bool isSecond = e.missing == "SECOND";
  float leaf = isSecond ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  for (int t = 0; t < e.trees; ++t) {
    uint32_t levels = uint32_t(std::max(0, 3 - t / 8)), inner = (1u << levels) - 1, total = 2 * inner + 1;
    trees.insert(trees.end(), {double(nodes.size() / 4), double(levels), double(t % e.targets)});
    node(leaf, 0, false, 0);
    for (uint32_t at = 1; at <= total; ++at) // breadth first, the root at 1: children of `at` are 2 at and 2 at + 1
      if (at <= inner)
        node(uniform(random), uint32_t(random() % unsigned(e.features)), e.missing == "MARKED" && random() % 2, 2 * at);
      else
        node(leaf, 0, false, isSecond ? at - 1 : at);
  }
  FusedCase c;
  c.kind = "forest";
  Shape nodeShape{int64_t(nodes.size())}, weightShape{int64_t(weights.size())}, treeShape{e.trees, 3};
  std::string nodeType = e.isSmall ? "ui16" : "i32";
  c.inputs = {{{rows, e.features}, element, false, -1, 1},
              {nodeShape, nodeType, false, 0, 0, nodes},
              {weightShape, "f32", false, 0, 0, weights},
              {treeShape, "i64", false, 0, 0, trees}};
  c.result = {rows, e.targets};
  std::string type = typeText(c.result);
  c.body = "%r = firn.call \"firn::Forest\"(%0, %1, %2, %3) {targets = " + std::to_string(e.targets) +
           " : i64, width = " + std::to_string(e.width) + " : i64, aggregate = \"" + e.aggregate + "\", missing = \"" +
           e.missing + "\"} : (" + typeText({rows, e.features}, element) + ", " + typeText(nodeShape, nodeType) + ", " +
           typeText(weightShape) + ", " + typeText(treeShape, "i64") + ") -> " + type + "\nfirn.yield %r : " + type;
  return c;
}

} // namespace

TEST_CASE("forest_rows_left_over_from_eight_and_from_tiles_agree") {
  FusedCase c = forest({}, "n");
  for (int64_t n : {0, 1, 7, 8, 9, 64, 257, 600}) {
    c.sizes = {{"n", n}};
    CAPTURE(n);
    CHECK(check(c) == "");
  }
}

TEST_CASE("forest_trees_of_unlike_depth_agree") {
  Ensemble e;
  e.trees = 32;
  CHECK(check(forest(e, 21)) == "");
}

TEST_CASE("forest_targets_by_tree_and_by_leaf_agree") {
  for (int width : {1, 3}) {
    Ensemble e;
    e.targets = 3;
    e.width = width;
    CHECK(check(forest(e, 19)) == "");
  }
}

TEST_CASE("forest_missing_values_go_where_the_table_says") {
  for (const char *missing : {"FIRST", "SECOND", "MARKED"})
    for (bool isSmall : {true, false}) {
      Ensemble e;
      e.missing = missing;
      e.isSmall = isSmall;
      FusedCase c = forest(e, 17);
      for (int i = 0; i < 17 * e.features; ++i)
        c.inputs[0].values.push_back(i % 3 ? std::sin(i) : std::numeric_limits<double>::quiet_NaN());
      CAPTURE(missing, isSmall);
      CHECK(check(c) == "");
    }
}

TEST_CASE("forest_extremes_and_double_features_agree") {
  for (const char *aggregate : {"SUM", "MIN", "MAX"})
    for (const char *element : {"f32", "f64"}) {
      Ensemble e;
      e.aggregate = aggregate;
      CHECK(check(forest(e, 11, element)) == "");
    }
}
