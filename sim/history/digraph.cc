// SPDX-License-Identifier: Apache-2.0

#include "sim/history/digraph.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace percolator {
namespace {

using Node = Digraph::Node;
using Label = Digraph::Label;

// The max number of nodes of a component from which ShortCycle starts.
constexpr size_t kStarts = 64;

// Tarjan's algorithm, with an explicit call stack. A node's `low` is the least number of a node on the stack that is
// known to be reachable from it. If `low` is the node's own number, a component ends there.
class ComponentFinder {
 public:
  explicit ComponentFinder(const Digraph& graph) : graph_(graph), number_(graph.size(), kNew), low_(graph.size(), 0) {}

  std::vector<Component> Run() {
    for (Node node = 0; node < graph_.size(); ++node) {
      if (number_[node] == kNew) VisitFrom(node);
    }
    return std::move(components_);
  }

 private:
  static constexpr Node kNew = std::numeric_limits<Node>::max();
  static constexpr Node kDone = kNew - 1;

  struct Call {
    Node node;
    size_t next_arc;
  };

  void VisitFrom(Node root) {
    Enter(root);
    while (!calls_.empty()) {
      Call& call = calls_.back();
      const auto arcs = graph_.Out(call.node);
      if (call.next_arc == arcs.size()) {
        Leave();
        continue;
      }
      const Node to = arcs[call.next_arc++].to;
      if (number_[to] == kNew) {
        Enter(to);
      } else if (number_[to] != kDone) {
        low_[call.node] = std::min(low_[call.node], number_[to]);
      }
    }
  }

  void Enter(Node node) {
    number_[node] = low_[node] = next_number_++;
    stack_.push_back(node);
    calls_.push_back({node, 0});
  }

  void Leave() {
    const Node node = calls_.back().node;
    calls_.pop_back();
    if (!calls_.empty()) {
      Node& low_of_caller = low_[calls_.back().node];
      low_of_caller = std::min(low_of_caller, low_[node]);
    }
    if (low_[node] == number_[node]) EndComponent(node);
  }

  void EndComponent(Node root) {
    const auto begin = std::find(stack_.rbegin(), stack_.rend(), root).base() - 1;
    if (stack_.end() - begin > 1) components_.emplace_back(begin, stack_.end());
    std::for_each(begin, stack_.end(), [this](Node node) { number_[node] = kDone; });
    stack_.erase(begin, stack_.end());
  }

  const Digraph& graph_;
  std::vector<Node> number_;
  std::vector<Node> low_;
  Node next_number_ = 0;
  std::vector<Node> stack_;
  std::vector<Call> calls_;
  std::vector<Component> components_;
};

// The labels along a shortest way from `start` back to it, breadth first and without leaving `inside`.
std::vector<Label> ShortestWayBack(const Digraph& graph, Node start, const absl::flat_hash_set<Node>& inside) {
  struct Step {
    Node from;
    Label label;
  };
  absl::flat_hash_map<Node, Step> reached_by;
  std::vector<Node> queue = {start};
  for (size_t next = 0; next < queue.size() && !reached_by.contains(start); ++next) {
    const Node from = queue[next];
    for (const Digraph::Arc& arc : graph.Out(from)) {
      if (arc.to == from || !inside.contains(arc.to)) continue;
      if (reached_by.try_emplace(arc.to, Step{from, arc.label}).second) queue.push_back(arc.to);
    }
  }
  std::vector<Label> way;
  Node node = start;
  do {
    const Step& step = reached_by.at(node);
    way.push_back(step.label);
    node = step.from;
  } while (node != start);
  std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace

Digraph::Digraph(Node nodes, const std::vector<Edge>& edges) : begin_(size_t{nodes} + 1, 0), arcs_(edges.size()) {
  for (const Edge& edge : edges) ++begin_[edge.from + 1];
  for (size_t node = 0; node < nodes; ++node) begin_[node + 1] += begin_[node];
  std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
  for (const Edge& edge : edges) arcs_[next[edge.from]++] = {edge.to, edge.label};
}

std::vector<Component> CyclicComponents(const Digraph& graph) { return ComponentFinder(graph).Run(); }

std::vector<Label> ShortCycle(const Digraph& graph, const Component& component) {
  const absl::flat_hash_set<Node> inside(component.begin(), component.end());
  const size_t step = component.size() / kStarts + 1;
  std::vector<Label> shortest;
  for (size_t i = 0; i < component.size(); i += step) {
    std::vector<Label> cycle = ShortestWayBack(graph, component[i], inside);
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = std::move(cycle);
  }
  return shortest;
}

}  // namespace percolator
