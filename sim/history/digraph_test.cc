// SPDX-License-Identifier: Apache-2.0

#include "sim/history/digraph.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(DigraphTest, KeepsEdgesByNode) {
  const Digraph graph(3, {{2, 0, 7}, {0, 1, 8}, {2, 1, 9}});
  EXPECT_EQ(graph.size(), 3U);
  EXPECT_THAT(graph.Out(1), SizeIs(0));
  ASSERT_THAT(graph.Out(2), SizeIs(2));
  EXPECT_EQ(graph.Out(2)[0].label, 7U);
  EXPECT_EQ(graph.Out(2)[1].to, 1U);
}

TEST(DigraphTest, NoCycle) {
  EXPECT_THAT(CyclicComponents(Digraph(0, {})), IsEmpty());
  EXPECT_THAT(CyclicComponents(Digraph(4, {{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {2, 3, 0}})), IsEmpty());
  EXPECT_THAT(CyclicComponents(Digraph(1, {{0, 0, 0}})), IsEmpty()) << "an edge to itself is ignored";
}

TEST(DigraphTest, FindsEachComponent) {
  const Digraph graph(7, {{0, 1, 0}, {1, 2, 0}, {2, 0, 0}, {2, 3, 0}, {3, 4, 0}, {4, 5, 0}, {5, 4, 0}, {5, 6, 0}});
  EXPECT_THAT(CyclicComponents(graph), UnorderedElementsAre(UnorderedElementsAre(0, 1, 2), UnorderedElementsAre(4, 5)));
}

TEST(DigraphTest, FindsAShortestCycle) {
  // A ring of five with a chord that makes a ring of three.
  const Digraph graph(5, {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}, {4, 0, 5}, {2, 0, 6}});
  const std::vector<Component> components = CyclicComponents(graph);
  ASSERT_THAT(components, SizeIs(1));
  EXPECT_THAT(ShortCycle(graph, components[0]), UnorderedElementsAre(1, 2, 6));
}

TEST(DigraphTest, CycleIsInItsOrder) {
  const Digraph graph(3, {{1, 0, 10}, {0, 2, 20}, {2, 1, 30}});
  std::vector<Digraph::Label> cycle = ShortCycle(graph, CyclicComponents(graph).at(0));
  std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), 10), cycle.end());
  EXPECT_THAT(cycle, ElementsAre(10, 20, 30));
}

TEST(DigraphTest, LongPathsNeedNoStack) {
  constexpr Digraph::Node kNodes = 1'000'000;
  std::vector<Digraph::Edge> edges;
  for (Digraph::Node node = 0; node + 1 < kNodes; ++node) edges.push_back({node, node + 1, 0});
  EXPECT_THAT(CyclicComponents(Digraph(kNodes, edges)), IsEmpty());
  edges.push_back({kNodes - 1, 0, 0});
  EXPECT_THAT(CyclicComponents(Digraph(kNodes, edges)), ElementsAre(SizeIs(kNodes)));
}

// Two nodes are in one component if each is reachable from the other.
TEST(DigraphTest, AgreesWithReachability) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto nodes = static_cast<Digraph::Node>(2 + random() % 8);
    std::vector<Digraph::Edge> edges;
    std::vector<std::vector<bool>> reaches(nodes, std::vector<bool>(nodes, false));
    for (uint64_t i = random() % 16; i > 0; --i) {
      edges.push_back({static_cast<Digraph::Node>(random() % nodes), static_cast<Digraph::Node>(random() % nodes), 0});
      reaches[edges.back().from][edges.back().to] = true;
    }
    for (Digraph::Node via = 0; via < nodes; ++via) {
      for (Digraph::Node a = 0; a < nodes; ++a) {
        for (Digraph::Node b = 0; b < nodes; ++b) {
          if (reaches[a][via] && reaches[via][b]) reaches[a][b] = true;
        }
      }
    }
    std::vector<size_t> component_of(nodes, 0);
    const std::vector<Component> components = CyclicComponents(Digraph(nodes, edges));
    for (size_t i = 0; i < components.size(); ++i) {
      for (const Digraph::Node node : components[i]) component_of[node] = i + 1;
    }
    for (Digraph::Node a = 0; a < nodes; ++a) {
      for (Digraph::Node b = 0; b < nodes; ++b) {
        if (a == b) continue;
        const bool together = component_of[a] != 0 && component_of[a] == component_of[b];
        EXPECT_EQ(together, reaches[a][b] && reaches[b][a]) << a << " " << b << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace percolator
