// MinCut: Dinic's algorithm (shortest augmenting paths in levels).
#include "passes/layout/MinCut.h"

#include <algorithm>

namespace firn {

int MinCut::addNode() {
  adjacent.emplace_back();
  return int(adjacent.size()) - 1;
}

void MinCut::addEdge(int from, int to, int64_t capacity) {
  adjacent[from].push_back(int(edges.size()));
  edges.push_back({to, capacity});
  adjacent[to].push_back(int(edges.size()));
  edges.push_back({from, 0});
}

bool MinCut::findLevels() {
  level.assign(adjacent.size(), -1);
  level[source] = 0;
  std::vector<int> queue{source};
  for (size_t at = 0; at < queue.size(); ++at)
    for (int edge : adjacent[queue[at]])
      if (edges[edge].left > 0 && level[edges[edge].to] < 0) {
        level[edges[edge].to] = level[queue[at]] + 1;
        queue.push_back(edges[edge].to);
      }
  return level[sink] >= 0;
}

/// One augmenting path along rising levels, iterative: graphs may be deep.
int64_t MinCut::push(int node, int64_t most) {
  std::vector<int> path;
  while (node != sink) {
    bool isStuck = true;
    for (int &i = next[node]; i < int(adjacent[node].size()); ++i) {
      int edge = adjacent[node][i];
      if (edges[edge].left > 0 && level[edges[edge].to] == level[node] + 1) {
        path.push_back(edge);
        node = edges[edge].to;
        isStuck = false;
        break;
      }
    }
    if (!isStuck)
      continue;
    if (path.empty())
      return 0;
    node = edges[path.back() ^ 1].to;
    ++next[node];
    path.pop_back();
  }
  for (int edge : path)
    most = std::min(most, edges[edge].left);
  for (int edge : path) {
    edges[edge].left -= most;
    edges[edge ^ 1].left += most;
  }
  return most;
}

int64_t MinCut::solve() {
  int64_t flow = 0;
  while (findLevels()) {
    next.assign(adjacent.size(), 0);
    while (int64_t pushed = push(source, infinite))
      flow += pushed;
  }
  reachesSink.assign(adjacent.size(), false);
  reachesSink[sink] = true;
  std::vector<int> queue{sink};
  for (size_t at = 0; at < queue.size(); ++at)
    for (int edge : adjacent[queue[at]]) {
      int from = edges[edge].to; // the reverse edge leads to where this one comes from
      if (edges[edge ^ 1].left > 0 && !reachesSink[from]) {
        reachesSink[from] = true;
        queue.push_back(from);
      }
    }
  return flow;
}

} // namespace firn
