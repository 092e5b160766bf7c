// What LocalCoordinator promises beyond the conformance suite.

#include "src/coord/local_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

class CountingOracle final : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    if (failing) return absl::UnavailableError("nobody there");
    const Timestamp first(next);
    next += count;
    return first;
  }

  uint64_t next = 7;
  bool failing = false;
};

TEST(LocalCoordinatorTest, TheIdOfASessionIsATimestamp) {
  CountingOracle oracle;
  LocalCoordinator coordinator(&oracle);
  const std::unique_ptr<Session> first = coordinator.OpenSession().value();
  const std::unique_ptr<Session> second = coordinator.OpenSession().value();
  EXPECT_EQ(first->id(), 7);
  EXPECT_EQ(second->id(), 8);
  EXPECT_EQ(oracle.next, 9);
}

TEST(LocalCoordinatorTest, WithoutATimestampThereIsNoSession) {
  CountingOracle oracle;
  oracle.failing = true;
  LocalCoordinator coordinator(&oracle);
  EXPECT_THAT(coordinator.OpenSession(), StatusIs(absl::StatusCode::kUnavailable));
  oracle.failing = false;
  EXPECT_THAT(coordinator.OpenSession(), IsOk());
}

TEST(LocalCoordinatorTest, AHintIsHeardBeforeSendHintReturns) {
  CountingOracle oracle;
  LocalCoordinator coordinator(&oracle);
  std::vector<CellName> heard;
  coordinator.SetHintListener([&](const CellName& cell) { heard.push_back(cell); });
  coordinator.SendHint({"t", "r", "c"});
  coordinator.SendHint({"t", "r", "d"});
  EXPECT_THAT(heard, ElementsAre(CellName{"t", "r", "c"}, CellName{"t", "r", "d"}));
}

}  // namespace
}  // namespace percolator
