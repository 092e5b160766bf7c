// SPDX-License-Identifier: Apache-2.0

// Locks as an Inspector sees them, of transactions in every state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "percolator/inspect.h"
#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = LockInfo::State;

class InspectTest : public ClusterTest {
 protected:
  // A client that commits in two phases leaves these locks and dies, before or after the commit point.
  void Strand(const std::vector<PlannedWrite>& planned, bool committed) {
    Process dying(&world_, Options(false));
    Transaction t(*dying);
    Buffer(t, planned);
    const auto when = committed ? Fault::Kind::kDieAfter : Fault::Kind::kDieBefore;
    dying.wire().FailAt(kCommitsPrimary, {.kind = when});
    (void)t.Commit();
    EXPECT_TRUE(dying.wire().dead());
    dying.Die();
  }
  // "Bob alive, Joe committed of Bob"
  std::string Listed() {
    Inspector inspector(*cluster_);
    const absl::StatusOr<std::vector<LockInfo>> locks = inspector.ListLocks();
    EXPECT_THAT(locks, IsOk());
    std::string text;
    for (const LockInfo& lock : *locks) {
      static constexpr const char* kNames[] = {"alive", "abandoned", "committed", "rolled back"};
      text += StrCat(text.empty() ? "" : ", ", lock.cell.row, " ", kNames[static_cast<int>(lock.state)],
                     lock.primary == lock.cell ? "" : StrCat(" of ", lock.primary.row));
    }
    return text;
  }
};

TEST_F(InspectTest, LocksOfAClientThatDiedBeforeItsCommit) {
  Strand({Put("Bob", "3"), Put("Joe", "9")}, false);
  EXPECT_EQ(Listed(), "Bob abandoned, Joe abandoned of Bob");
  EXPECT_EQ(Listed(), "Bob abandoned, Joe abandoned of Bob");  // inspection changes nothing
  const auto resolved = Inspector(*cluster_).ResolveLocks();
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->rolled_back, 2u);
  EXPECT_EQ(resolved->rolled_forward + resolved->alive, 0u);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

TEST_F(InspectTest, LocksOfAClientThatDiedAfterItsCommit) {
  Strand({Put("Bob", "3"), Put("Joe", "9")}, true);
  EXPECT_EQ(Listed(), "Joe committed of Bob");
  const auto resolved = Inspector(*cluster_).ResolveLocks(kTable);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->rolled_forward, 1u);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(Now("Joe"), "9");
}

TEST_F(InspectTest, LocksOfALiveClient) {
  Process slow(&world_, Options(false));
  Transaction t(*slow);
  Buffer(t, {Put("Bob", "3"), Put("Joe", "9")});
  slow.wire().Before(kCommitsPrimary, [&] {
    EXPECT_EQ(Listed(), "Bob alive, Joe alive of Bob");
    const auto resolved = Inspector(*cluster_).ResolveLocks();
    ASSERT_THAT(resolved, IsOk());
    EXPECT_EQ(resolved->alive, 2u);
    EXPECT_EQ(resolved->rolled_back + resolved->rolled_forward, 0u);
  });
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("Joe"), "9");
}

TEST_F(InspectTest, TheNumberOfLocksIsLimited) {
  Strand({Put("Ann", "1"), Put("Bob", "3"), Put("Joe", "9")}, false);
  Inspector inspector(*cluster_);
  EXPECT_EQ(inspector.ListLocks(kTable, 2)->size(), 2u);
  EXPECT_EQ(inspector.ListLocks({}, 0)->size(), 0u);
  EXPECT_THAT(inspector.ListLocks("nosuch"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(inspector.ResolveLocks("nosuch"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(InspectTest, ColumnsInWords) {
  EXPECT_EQ(DescribeColumn("bal"), "bal");
  EXPECT_EQ(DescribeColumn("a\x01"), "a\\x01");
  EXPECT_EQ(DescribeColumn(std::string_view("\0rollback", 9)), "[rolled back]");
  EXPECT_EQ(DescribeColumn(std::string_view("\0pbal", 5)), "[bal pending]");
}

TEST_F(InspectTest, CellsByColumnThenFamily) {
  MustSet({Put("Bob", "3"), Put("Bob", std::string(1000, 'x')).Of("a")});
  const std::vector<Cell> cells = Inspector(*cluster_).ReadCells(kTable, "Bob").value();
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(StrCat(cells[0].column, ":", FamilyName(cells[0].family)), "a:data");
  EXPECT_EQ(StrCat(cells[1].column, ":", FamilyName(cells[1].family)), "a:write");
  EXPECT_EQ(StrCat(cells[2].column, ":", FamilyName(cells[2].family)), "bal:write");
  EXPECT_THAT(Inspector(*cluster_).ReadCells(kTable, "nobody").value(), IsEmpty());
  EXPECT_THAT(Inspector(*cluster_).ReadCells("nosuch", "Bob"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace percolator
