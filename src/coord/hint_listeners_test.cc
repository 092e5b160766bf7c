// SPDX-License-Identifier: Apache-2.0

#include "src/coord/hint_listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "percolator/spi/forwarding.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps its listener for the test to call.
class ListeningCoordinator final : public ForwardingCoordinator {
 public:
  ListeningCoordinator() : ForwardingCoordinator(nullptr) {}  // no other function is called

  void SendHint(const CellName& cell) override { sent.push_back(cell.row); }
  void SetHintListener(HintListener to) override { listener = std::move(to); }

  HintListener listener;
  std::vector<std::string> sent;
};

TEST(HintListenersTest, EveryListenerGetsHintsUntilItIsRemoved) {
  ListeningCoordinator coordinator;
  HintListeners fan(&coordinator);
  EXPECT_EQ(coordinator.listener, nullptr);  // no listener was added yet
  std::vector<std::string> a;
  std::vector<std::string> b;
  const uint64_t first = fan.Add([&](const CellName& cell) { a.push_back(cell.row); });
  fan.Add([&](const CellName& cell) { b.push_back(cell.row); });
  coordinator.listener({"t", "r1", "c"});
  fan.Remove(first);
  coordinator.listener({"t", "r2", "c"});
  fan.Remove(first);  // no harm
  EXPECT_THAT(a, ElementsAre("r1"));
  EXPECT_THAT(b, ElementsAre("r1", "r2"));
}

TEST(HintListenersTest, TellReachesLocalListenersAndTheCoordinator) {
  ListeningCoordinator coordinator;
  HintListeners fan(&coordinator);
  std::vector<std::string> heard;
  fan.Add([&](const CellName& cell) { heard.push_back(cell.row); });
  fan.Tell({"t", "r", "c"});
  EXPECT_THAT(heard, ElementsAre("r"));
  EXPECT_THAT(coordinator.sent, ElementsAre("r"));
}

TEST(HintListenersTest, ALateCallReachesNoListener) {
  ListeningCoordinator coordinator;
  std::vector<std::string> heard;
  Coordinator::HintListener late;
  {
    HintListeners fan(&coordinator);
    const uint64_t listener = fan.Add([&](const CellName& cell) { heard.push_back(cell.row); });
    late = coordinator.listener;
    fan.Remove(listener);
  }
  EXPECT_EQ(coordinator.listener, nullptr);
  late({"t", "r", "c"});
  EXPECT_THAT(heard, IsEmpty());
}

}  // namespace
}  // namespace percolator
