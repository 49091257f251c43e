// MinCut: the cheapest split of a directed graph into a source side and a sink side.
#ifndef FIRN_PASSES_LAYOUT_MINCUT_H
#define FIRN_PASSES_LAYOUT_MINCUT_H

#include <cstdint>
#include <vector>

namespace firn {

class MinCut {
public:
  static constexpr int source = 0, sink = 1;
  static constexpr int64_t infinite = int64_t(1) << 60;

  MinCut() : adjacent(2) {}
  int addNode();
  /// `capacity` is paid where `from` is on the source side and `to` on the sink side.
  void addEdge(int from, int to, int64_t capacity);

  /// The cost of the cheapest split. Call once.
  int64_t solve();
  /// Whether a node is on the source side of the cheapest split that has the greatest source side.
  bool isOnSourceSide(int node) const { return !reachesSink[node]; }

private:
  struct Edge {
    int to;
    int64_t left; // capacity not used yet
  };
  bool findLevels();
  int64_t push(int node, int64_t most);

  std::vector<Edge> edges;                // edge i ^ 1 is the reverse of edge i
  std::vector<std::vector<int>> adjacent; // edges of each node
  std::vector<int> level, next;
  std::vector<bool> reachesSink;
};

} // namespace firn
#endif
