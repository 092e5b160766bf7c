// SPDX-License-Identifier: Apache-2.0

// Cluster::Transact: runs a function until it commits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/status_macros.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using Kind = Fault::Kind;

class TransactTest : public ClusterTest {
 protected:
  // Another transaction writes the row.
  void Disturb(const std::string& row) { MustSet({Put(row, "disturbed")}); }
};

TEST_F(TransactTest, RunsAndCommits) {
  CommitResult result;
  ASSERT_THAT(cluster_->Transact(
                  [](ReadWrite& t) {
                    EXPECT_EQ(Get(t, "Bob"), std::nullopt);
                    t.Set({kTable, "Bob", kColumn}, "3");
                  },
                  {}, &result),
              IsOk());
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  EXPECT_GT(result.commit_ts, Timestamp());
  EXPECT_EQ(Now("Bob"), "3");
  EXPECT_EQ(cluster_->GetSnapshotAt(result.commit_ts)->Get({kTable, "Bob", kColumn}).value(), "3");
}

TEST_F(TransactTest, WithoutWritesThereIsNoCommitTimestamp) {
  CommitResult result;
  ASSERT_THAT(cluster_->Transact([](ReadWrite& t) { EXPECT_EQ(Get(t, "Bob"), std::nullopt); }, {}, &result), IsOk());
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp());
}

// T12: the function reads again; no old write is kept.
TEST_F(TransactTest, OnAConflictTheFunctionIsRunAgain) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  int runs = 0;
  std::vector<Timestamp> starts;
  const absl::Status status = cluster_->Transact([&](ReadWrite& t) {
    const std::string bob = *Get(t, "Bob");
    starts.push_back(t.timestamp());
    if (++runs == 1) {
      t.Set({kTable, "OnlyInTheFirst", kColumn}, "x");
      Disturb("Bob");
    }
    t.Set({kTable, "Bob", kColumn}, bob + "+");
  });
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(runs, 2);
  EXPECT_LT(starts[0], starts[1]);
  EXPECT_EQ(Now("Bob"), "disturbed+");
  EXPECT_EQ(Now("OnlyInTheFirst"), std::nullopt);
  EXPECT_EQ(cluster_->metrics().conflicts, 1u);
}

TEST_F(TransactTest, TheWaitBetweenAttemptsGrows) {
  std::vector<Duration> times;
  EXPECT_THAT(cluster_->Transact(
                  [&](ReadWrite& t) {
                    times.push_back(world_.runtime.Elapsed());
                    EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
                    Disturb("Bob");
                    t.Set({kTable, "Bob", kColumn}, "x");
                  },
                  {.max_attempts = 15}),
              StatusIs(absl::StatusCode::kAborted));
  ASSERT_EQ(times.size(), 15u);
  EXPECT_EQ(times[1], times[0]);
  EXPECT_LT(times[2] - times[1], std::chrono::milliseconds(1));
  for (size_t i = 2; i < times.size(); ++i) {
    EXPECT_GT(times[i], times[i - 1]);
    EXPECT_LE(times[i] - times[i - 1], std::chrono::milliseconds(200));
  }
  EXPECT_GT(times[14] - times[13], std::chrono::milliseconds(20));
}

// A transaction that lost goes first: the next one that wants the cell is held back until it has committed.
TEST_F(TransactTest, ATransactionThatLostGoesBeforeOneThatDidNot) {
  std::vector<std::string> committed;
  int runs = 0;
  const auto add = [&](const char* name, Duration work) {
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::Status {
      if (work != Duration(0)) ++runs;
      PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> bob, t.Get({kTable, "Bob", kColumn}));
      world_.runtime.Sleep(work);
      t.Set({kTable, "Bob", kColumn}, bob.value_or("") + name);
      return absl::OkStatus();
    }),
                IsOk());
    committed.emplace_back(name);
  };
  world_.runtime.Start([&] { add("slow ", std::chrono::milliseconds(10)); });
  for (int i = 0; i < 50; ++i) {
    world_.runtime.Sleep(std::chrono::milliseconds(1));
    add("quick ", Duration(0));
  }
  world_.runtime.Sleep(seconds(1));
  ASSERT_EQ(committed.size(), 51u);
  // Without turns the slow one would lose to every tenth of the quick ones until they end.
  EXPECT_EQ(runs, 2);
  const auto slow = std::find(committed.begin(), committed.end(), "slow ");
  EXPECT_LE(slow - committed.begin(), 11);
}

TEST_F(TransactTest, TheLastConflictIsReportedWhenTheAttemptsAreUsedUp) {
  int runs = 0;
  const absl::Status status = cluster_->Transact(
      [&](ReadWrite& t) {
        ++runs;
        EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
        Disturb("Bob");
        t.Set({kTable, "Bob", kColumn}, "x");
      },
      {.max_attempts = 3});
  EXPECT_EQ(runs, 3);
  ExpectConflict(status, Conflict::Kind::kNewerWrite, "Bob");
  EXPECT_EQ(Now("Bob"), "disturbed");
}

TEST_F(TransactTest, WithOneAttemptTheFunctionRunsOnce) {
  int runs = 0;
  EXPECT_THAT(cluster_->Transact(
                  [&](ReadWrite& t) {
                    ++runs;
                    EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
                    Disturb("Bob");
                    t.Set({kTable, "Bob", kColumn}, "x");
                  },
                  {.max_attempts = 1}),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(cluster_->Transact([](ReadWrite& /*t*/) { return absl::OkStatus(); }, {.max_attempts = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TransactTest, TheTimeoutIsForAllAttempts) {
  int runs = 0;
  const Duration begun = world_.runtime.Elapsed();
  EXPECT_THAT(cluster_->Transact(
                  [&](ReadWrite& t) {
                    ++runs;
                    EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
                    Disturb("Bob");
                    t.Set({kTable, "Bob", kColumn}, "x");
                  },
                  {.timeout = seconds(2), .max_attempts = 1'000'000}),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_GT(runs, 10);
  EXPECT_GE(world_.runtime.Elapsed() - begun, seconds(2));
  EXPECT_LT(world_.runtime.Elapsed() - begun, seconds(3));
}

TEST_F(TransactTest, TheLongestTimeoutMeansNoDeadline) {
  world_.runtime.Sleep(seconds(1));
  int runs = 0;
  EXPECT_THAT(cluster_->Transact(
                  [&](ReadWrite& t) {
                    EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
                    if (++runs == 1) Disturb("Bob");
                    t.Set({kTable, "Bob", kColumn}, "x");
                  },
                  {.timeout = Duration::max()}),
              IsOk());
  EXPECT_EQ(runs, 2);
}

// --- The function's own errors.

TEST_F(TransactTest, EndlessDurationsDoNotOverflow) {
  ClusterOptions options = Options();
  options.gc_period = options.gc_retention = options.call_timeout = Duration::max();
  Process process(&world_, options);
  int runs = 0;
  const absl::Status done = process->Transact(
      [&](ReadWrite& t) -> absl::Status {
        if (++runs < 3) return absl::AbortedError("again");
        t.Set({kTable, "Bob", kColumn}, "3");
        return absl::OkStatus();
      },
      {.timeout = Duration::max()});
  EXPECT_THAT(done, IsOk());
  EXPECT_EQ(runs, 3);
}

// One missing timestamp does not end Transact.
TEST_F(TransactTest, ContinuesAfterAMissingTimestamp) {
  int runs = 0;
  const absl::Status done = cluster_->Transact([&](ReadWrite& t) {
    if (absl::Status s = t.Get({kTable, "Bob", kColumn}).status(); !s.ok()) return s;
    world_.oracle.FailNext(runs++ == 0 ? 1 : 0);
    t.Set({kTable, "Bob", kColumn}, "3");
    return absl::OkStatus();
  });
  EXPECT_THAT(done, IsOk());
  EXPECT_EQ(runs, 2);
}

TEST_F(TransactTest, AnErrorOfTheFunctionEndsTransactAndNothingIsCommitted) {
  int runs = 0;
  const absl::Status status = cluster_->Transact([&](ReadWrite& t) {
    ++runs;
    t.Set({kTable, "Bob", kColumn}, "x");
    EXPECT_THAT(t.status(), IsOk());
    return absl::PermissionDeniedError("no money");
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(std::string(status.message()), "no money");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

TEST_F(TransactTest, TheFunctionMayAskToBeRunAgain) {
  int runs = 0;
  EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::Status {
    if (++runs < 4) return absl::AbortedError("not yet");
    t.Set({kTable, "Bob", kColumn}, "x");
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_EQ(runs, 4);
}

// The function returns an error of a read. An error of a write is returned without its help.
TEST_F(TransactTest, AnErrorOfACallIsReturned) {
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) {
    return t.Get({"nowhere", "Bob", kColumn}).status();
  }),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) {
    t.Set({"nowhere", "Bob", kColumn}, "x");
  }),
              StatusIs(absl::StatusCode::kNotFound));
}

// --- Outcomes.

// It may have committed, so running it again could apply it twice. The error contains enough to call Resolve.
TEST_F(TransactTest, AnUnknownOutcomeIsNotTriedAgainAndCanBeResolved) {
  for (const bool one_step : {true, false}) {
    SCOPED_TRACE(one_step);
    ClusterOptions options = Options(one_step);
    options.call_timeout = seconds(1);
    Process process(&world_, options);
    const Wire::Place place = one_step ? kCommitsTogether : kCommitsPrimary;
    process.wire().FailAt(place, {.kind = Kind::kLoseReply});
    process.wire().After(place, [&] { process.wire().FailFrom(1, {.kind = Kind::kLoseRequest}); });
    int runs = 0;
    CommitResult result;
    const absl::Status status = process->Transact(
        [&](ReadWrite& t) {
          ++runs;
          t.Set({kTable, one_step ? "Bob" : "Joe", kColumn}, "once");
        },
        {}, &result);
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
    ExpectOutcome(result, CommitResult::Outcome::kUnknown);
    const std::optional<CommitResult> unknown = GetUnknownCommit(status);
    ASSERT_TRUE(unknown.has_value()) << status;
    EXPECT_EQ(runs, 1);
    const absl::StatusOr<CommitResult> resolved = cluster_->Resolve(*unknown);
    ASSERT_THAT(resolved, IsOk());
    ExpectOutcome(*resolved, CommitResult::Outcome::kCommitted);
    EXPECT_EQ(Now(one_step ? "Bob" : "Joe"), "once");
  }
}

// A lost answer whose outcome is found out is not an unknown outcome.
TEST_F(TransactTest, ALostAnswerIsFoundOut) {
  for (const bool one_step : {true, false}) {
    SCOPED_TRACE(one_step);
    Process process(&world_, Options(one_step));
    process.wire().FailAt(one_step ? kCommitsTogether : kCommitsPrimary, {.kind = Kind::kLoseReply});
    int runs = 0;
    EXPECT_THAT(process->Transact([&](ReadWrite& t) {
      ++runs;
      t.Set({kTable, "Bob", kColumn}, "once");
    }),
                IsOk());
    EXPECT_EQ(runs, 1);
  }
}

// A resolver treated it as dead, so it is run again.
TEST_F(TransactTest, ALostSessionCostsAnAttempt) {
  Process process(&world_, Options(false));
  int runs = 0;
  const absl::Status status = process->Transact([&](ReadWrite& t) {
    if (++runs == 1) {
      process.wire().Before(kCommitsPrimary, [&] {
        process.LoseSession();
        EXPECT_EQ(Now("Bob"), std::nullopt);  // rolls it back
      });
    }
    t.Set({kTable, "Bob", kColumn}, "x");
  });
  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Now("Bob"), "x");
}

// Many tasks add to one counter, and no addition is lost.
TEST_F(TransactTest, ManyTasksIncrementOneCounter) {
  for (const bool one_step : {true, false}) {
    SCOPED_TRACE(one_step);
    const std::string row = one_step ? "one" : "two";
    Process process(&world_, Options(one_step));
    int done = 0;
    for (int task = 0; task < 10; ++task) {
      world_.runtime.Start([&] {
        for (int i = 0; i < 10; ++i) {
          const absl::Status status = process->Transact([&](ReadWrite& t) {
            const std::optional<std::string> value = Get(t, row);
            world_.runtime.Sleep(std::chrono::microseconds(50));  // so that others run in between
            t.Set({kTable, row, kColumn}, std::to_string(std::stoi(value.value_or("0")) + 1));
          });
          EXPECT_THAT(status, IsOk());
        }
        ++done;
      });
    }
    while (done < 10) world_.runtime.Sleep(seconds(1));
    EXPECT_EQ(Now(row), "100");
    EXPECT_GT(process->metrics().conflicts, 0u);
    EXPECT_EQ(process->metrics().commits, 100u);
  }
}

}  // namespace
}  // namespace percolator
