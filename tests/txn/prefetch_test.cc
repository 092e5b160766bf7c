// SPDX-License-Identifier: Apache-2.0

// Predictive prefetch (section 2.5 of the paper): transactions of one profile read alike, and after the first ones the store
// is asked once per row.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

class PrefetchTest : public ClusterTest {
 protected:
  PrefetchTest() {
    for (const std::string row : {"a", "b", "c", "d"}) {
      MustSet({Put(row, "1").Of("contents"), Put(row, "2").Of("rank"), Put(row, "3").Of("links"),
               Put(row, std::string(1000, 'x')).Of("long")});
    }
  }

  // A transaction that reads these columns of a row, one after the other. Returns the number of its requests to the
  // store.
  uint64_t ReadsOf(const std::string& profile, const std::string& row, const std::vector<std::string>& columns) {
    const uint64_t before = cluster_->metrics().store_reads;
    Transaction t(*cluster_, {.prefetch_profile = profile});
    for (const std::string& column : columns) EXPECT_TRUE(Get(t, row, column).has_value()) << column;
    return cluster_->metrics().store_reads - before;
  }
};

const std::vector<std::string> kThree = {"contents", "rank", "links"};

TEST_F(PrefetchTest, WithoutAProfileEveryColumnTakesARequest) {
  for (const std::string row : {"a", "b", "c"}) EXPECT_EQ(ReadsOf("", row, kThree), 3u);
  EXPECT_EQ(cluster_->metrics().cells_prefetched, 0u);
}

TEST_F(PrefetchTest, AfterTheFirstOfItsProfileOneRequestIsEnough) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  EXPECT_EQ(ReadsOf("parse", "b", kThree), 1u);
  EXPECT_EQ(ReadsOf("parse", "c", kThree), 1u);
  EXPECT_EQ(cluster_->metrics().cells_prefetched, 4u);
  EXPECT_EQ(cluster_->metrics().prefetched_cells_used, 4u);
}

TEST_F(PrefetchTest, ProfilesLearnForThemselves) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  EXPECT_EQ(ReadsOf("rank", "b", kThree), 3u);
}

TEST_F(PrefetchTest, SeveralRowsOfOneTransaction) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  const uint64_t before = cluster_->metrics().store_reads;
  Transaction t(*cluster_, {.prefetch_profile = "parse"});
  for (const std::string& column : kThree) {
    for (const std::string row : {"b", "c"}) EXPECT_TRUE(Get(t, row, column).has_value());
  }
  EXPECT_EQ(cluster_->metrics().store_reads - before, 2u);
}

// Cells that are predicted and not read are counted, and soon not predicted any more.
TEST_F(PrefetchTest, AWrongPredictionIsUnlearned) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  EXPECT_EQ(ReadsOf("parse", "b", {"contents"}), 1u);
  EXPECT_EQ(cluster_->metrics().cells_prefetched, 2u);
  EXPECT_EQ(cluster_->metrics().prefetched_cells_used, 0u);
  EXPECT_EQ(ReadsOf("parse", "c", {"contents"}), 1u);
  const uint64_t prefetched = cluster_->metrics().cells_prefetched;
  EXPECT_EQ(ReadsOf("parse", "d", {"contents"}), 1u);
  EXPECT_EQ(cluster_->metrics().cells_prefetched, prefetched);
}

// A prefetched cell belongs to the snapshot like any other read.
TEST_F(PrefetchTest, APrefetchedCellIsOfTheSameSnapshot) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  Transaction t(*cluster_, {.prefetch_profile = "parse"});
  EXPECT_EQ(Get(t, "b", "contents"), "1");
  MustSet({Put("b", "new").Of("rank")});
  EXPECT_EQ(Get(t, "b", "rank"), "2");
}

TEST_F(PrefetchTest, OwnWritesComeFirst) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  Transaction t(*cluster_, {.prefetch_profile = "parse"});
  Buffer(t, {Put("b", "own").Of("rank")});
  EXPECT_EQ(Get(t, "b", "contents"), "1");
  EXPECT_EQ(Get(t, "b", "rank"), "own");
  EXPECT_EQ(cluster_->metrics().cells_prefetched,
            1u);  // only links
}

// A long value is fetched only when it is read.
TEST_F(PrefetchTest, LongValuesAreLoadedWhenTheyAreRead) {
  EXPECT_EQ(ReadsOf("parse", "a", {"contents", "long"}), 3u);
  Transaction t(*cluster_, {.prefetch_profile = "parse"});
  EXPECT_EQ(Get(t, "b", "contents"), "1");
  EXPECT_EQ(Get(t, "b", "long"), std::string(1000, 'x'));
}

// A read does not wait for a lock on a cell that was only predicted.
TEST_F(PrefetchTest, ALockedCellIsNotPrefetched) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  Process holder(&world_, Options(false));
  Transaction held(*holder);
  Buffer(held, {Put("b", "new").Of("rank")});
  holder.wire().Before(kCommitsPrimary, [&] {
    Transaction t(*cluster_, {.prefetch_profile = "parse"});
    const int sleeps = world_.runtime.sleeps();
    EXPECT_EQ(Get(t, "b", "contents"), "1");
    EXPECT_EQ(Get(t, "b", "links"), "3");
    EXPECT_EQ(world_.runtime.sleeps(), sleeps);
  });
  ExpectOutcome(held.Commit(), CommitResult::Outcome::kCommitted);
}

TEST_F(PrefetchTest, TransactTakesAProfileToo) {
  for (const std::string row : {"a", "b"}) {
    ASSERT_THAT(cluster_->Transact(
                    [&](ReadWrite& t) {
                      for (const std::string& column : kThree) EXPECT_TRUE(Get(t, row, column).has_value());
                      return absl::OkStatus();
                    },
                    {.prefetch_profile = "parse"}),
                IsOk());
  }
  EXPECT_EQ(cluster_->metrics().prefetched_cells_used, 2u);
}

TEST_F(PrefetchTest, ABatchIsPredictedToo) {
  EXPECT_EQ(ReadsOf("parse", "a", kThree), 3u);
  const uint64_t before = cluster_->metrics().store_reads;
  Transaction t(*cluster_, {.prefetch_profile = "parse"});
  ASSERT_THAT(t.GetCells(std::vector<CellName>{{kTable, "b", "contents"}, {kTable, "c", "contents"}}), IsOk());
  EXPECT_EQ(Get(t, "b", "rank"), "2");
  EXPECT_EQ(Get(t, "c", "links"), "3");
  EXPECT_EQ(cluster_->metrics().store_reads - before, 1u);
}

}  // namespace
}  // namespace percolator
