// SPDX-License-Identifier: Apache-2.0

// Directed graphs, and the cycles in them.
//
// Nodes are 0 .. n-1. Each edge carries a label, a number with a meaning for the caller; two nodes may have several
// edges between them. Every function takes time in proportion to nodes and edges, and does not recurse: a graph may be
// a path of a million nodes.

#ifndef PERCOLATOR_SIM_HISTORY_DIGRAPH_H_
#define PERCOLATOR_SIM_HISTORY_DIGRAPH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace percolator {

class Digraph {
 public:
  using Node = uint32_t;
  using Label = uint32_t;

  struct Edge {
    Node from;
    Node to;
    Label label;
  };
  struct Arc {
    Node to;
    Label label;
  };

  Digraph(Node nodes, const std::vector<Edge>& edges);

  Node size() const { return static_cast<Node>(begin_.size() - 1); }
  std::span<const Arc> Out(Node node) const { return {arcs_.data() + begin_[node], arcs_.data() + begin_[node + 1]}; }

 private:
  std::vector<size_t> begin_;  // where the arcs of each node begin, and one past the last
  std::vector<Arc> arcs_;
};

using Component = std::vector<Digraph::Node>;

// The strongly connected components that hold a cycle, that is, those of more than one node. Edges from a node to
// itself are ignored.
std::vector<Component> CyclicComponents(const Digraph& graph);

// The labels along a shortest cycle in such a component. In a large component it considers only cycles through some of
// the nodes.
std::vector<Digraph::Label> ShortCycle(const Digraph& graph, const Component& component);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_DIGRAPH_H_
