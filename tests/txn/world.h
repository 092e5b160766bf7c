// SPDX-License-Identifier: Apache-2.0

// The world of these tests: a store in memory, an oracle and a coordinator under the control of the test, and virtual
// time; and the vocabulary for tests of the protocol's steps, after figure 4 of the paper:
//
//     const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
//     MustPrewrite(t);
//     EXPECT_EQ(Cells("Joe"), "lock@7 put 9 of Bob");
//     MustCommitPrimary(t, 8);
//     MustRead("Joe", 9, "9");                           // another client rolls Joe forward
//     EXPECT_EQ(Cells("Joe"), "write@8 put 9 from 7");
//
// The default column is "bal" of the table "accounts".

#ifndef PERCOLATOR_TESTS_TXN_WORLD_H_
#define PERCOLATOR_TESTS_TXN_WORLD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/conflict.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"
#include "src/txn/lock.h"
#include "src/txn/resolve.h"
#include "src/txn/writes.h"
#include "tests/harness/hooked_store.h"
#include "tests/harness/test_coordinator.h"
#include "tests/harness/test_oracle.h"
#include "tests/harness/virtual_runtime.h"
#include "tests/harness/wire.h"
#include "tests/testing/status_matchers.h"

namespace percolator {

inline constexpr char kTable[] = "accounts";
inline constexpr char kColumn[] = "bal";

// The calls of a commit in two phases without obstacles, as a Wire counts them.
inline const Wire::Place kPrewrites("mutate", 1);
inline const Wire::Place kDrawsCommitTimestamp("timestamp",
                                               2);  // the first is the start timestamp
inline const Wire::Place kCommitsPrimary("mutate", 2);
inline const Wire::Place kCommitsSecondaries("mutate", 3);
// The call of a commit in one step.
inline const Wire::Place kCommitsTogether("together", 1);

struct World {
  explicit World(const StoreLimits& limits = {});

  VirtualRuntime runtime;
  const std::unique_ptr<HookedStore> store;
  TestOracle oracle;
  TestOracle session_ids;  // separate, so that all timestamps are drawn by the test
  TestCoordinator coordinator{&session_ids, &runtime};
};

// A process that calls the steps of the protocol directly.
class Client {
 public:
  Client(World* world, const ClusterOptions& options);

  Environment& env() { return env_; }
  Wire& wire() { return wire_; }
  SessionId session() const { return session_->id(); }
  Deadline deadline() { return {env_.runtime, env_.options.call_timeout}; }

  // From now on its requests reach nothing. `session_ends`: its session ends at once.
  void Die(bool session_ends = true);

 private:
  World* const world_;
  Wire wire_;
  const std::unique_ptr<Session> session_;
  Environment env_;
};

// A process that has a Cluster.
class Process {
 public:
  Process(World* world, const ClusterOptions& options);

  Cluster& operator*() { return *cluster_; }
  Cluster* operator->() { return &*cluster_; }
  Cluster* get() { return &*cluster_; }
  Wire& wire() { return wire_; }
  // See Client.
  void Die(bool session_ends = true);
  // L1: its session is declared dead, though it lives.
  void LoseSession();

 private:
  World* const world_;
  Wire wire_;
  SessionId session_ = 0;
  std::optional<Cluster> cluster_;
};

// --- The writes of a transaction.

struct PlannedWrite {
  std::string row;
  WriteKind kind = WriteKind::kPut;
  std::string value;
  Timestamp verified;
  std::string column = kColumn;
  std::string table = kTable;

  PlannedWrite In(std::string other_table) const;
  PlannedWrite Of(std::string other_column) const;
};
PlannedWrite Put(std::string row, std::string value);
PlannedWrite Del(std::string row);
PlannedWrite Relied(std::string row,
                    uint64_t verified);  // a verify of the version committed then

// --- The content of the store, as text.

// The row's cells, separated by " | ": locks, then records and markers, then data, by column and newest first. For
// example "lock@7 put 3 primary", "lock@7 delete of Bob", "write@8 put 3 from 7", "write@8 verify 6 from 7",
// "rollback@7", "data@7 (300 bytes)"; those of another column as "lock x@7 ...".
std::string CellsOf(Store* store, const std::string& row, const std::string& table = kTable);
// All locks in all tables: "accounts/Bob/bal@7".
std::vector<std::string> AllLocks(Store* store);

// --- Matchers and small checks.

// Expects a conflict with this evidence. Zero: any timestamp.
void ExpectConflict(const absl::Status& status, Conflict::Kind kind, const std::string& row, uint64_t other_start = 0,
                    uint64_t other_commit = 0);
void ExpectOutcome(const CommitResult& result, CommitResult::Outcome outcome);

// --- Fixtures.

// Steps called one by one, by `me_`; `other_` is another client. Leases are short, 100 microseconds, so that timestamps
// are small numbers.
class StepsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kLease = 100;
  static ClusterOptions Options();

  StepsTest();

  // Counts a timestamp that a test names as handed out: the oracle continues after it, unless it is already further.
  void PassTimestamp(uint64_t ts);

  Writes Begin(uint64_t start_ts, const std::vector<PlannedWrite>& writes) { return BeginBy(me_, start_ts, writes); }
  Writes BeginBy(Client& client, uint64_t start_ts, const std::vector<PlannedWrite>& planned);

  void MustPrewrite(const Writes& writes) { MustPrewriteBy(me_, writes); }
  void MustPrewriteBy(Client& client, const Writes& writes);
  absl::Status TryPrewrite(const Writes& writes) { return TryPrewriteBy(me_, writes); }
  absl::Status TryPrewriteBy(Client& client, const Writes& writes);
  // The request for this row alone arrives at the store, from any sender. Returns whether it is applied.
  bool ArrivePrewrite(const Writes& writes, const std::string& row);
  bool ArriveCommit(const Writes& writes, const std::string& row, uint64_t commit_ts);

  void MustCommitPrimary(const Writes& writes, uint64_t commit_ts);
  CommitResult TryCommitPrimary(const Writes& writes, uint64_t commit_ts);
  void MustCommitSecondaries(const Writes& writes, uint64_t commit_ts);
  // Prewrite and both parts of the commit.
  void MustCommit(const Writes& writes, uint64_t commit_ts);
  void MustCommitOneStep(const Writes& writes, uint64_t commit_ts);
  void RollBack(const Writes& writes);

  // Expects that `other_` reads this. It resolves locks or waits for them.
  void MustRead(const std::string& row, uint64_t at, const std::string& value);
  void MustReadNothing(const std::string& row, uint64_t at);
  absl::StatusOr<std::optional<std::string>> Read(Client& client, const CellName& cell, uint64_t at);
  // A write to the row by `other_`, as a whole transaction.
  void MustWrite(const std::string& row, const std::string& value, uint64_t start_ts, uint64_t commit_ts);

  std::string Cells(const std::string& row, const std::string& table = kTable) {
    return CellsOf(world_.store.get(), row, table);
  }
  std::vector<std::string> Locks() { return AllLocks(world_.store.get()); }
  // The lock in a cell, as a reader meets it.
  FoundLock Met(const std::string& row, uint64_t start_ts, const std::string& table = kTable);
  static CellName Cell(const std::string& row) { return {kTable, row, kColumn}; }

  // Makes all locks too old.
  void PassLease() { world_.oracle.Advance(kLease + 1); }

  World world_;
  Client me_;
  Client other_;
};

// Whole transactions on a Cluster, with virtual time. Options are the defaults, but garbage is collected only on
// request.
class ClusterTest : public ::testing::Test {
 protected:
  static ClusterOptions Options(bool one_step = true);

  explicit ClusterTest(const ClusterOptions& options = Options(), const StoreLimits& limits = {});

  // Sets cells in one transaction.
  Timestamp MustSet(const std::vector<PlannedWrite>& writes);
  // The value in a new snapshot of `cluster_`.
  std::optional<std::string> Now(const std::string& row, const std::string& column = kColumn);
  // Buffers writes, and expects success.
  static void Buffer(ReadWrite& t, const std::vector<PlannedWrite>& writes);
  static std::optional<std::string> Get(const ReadView& view, const std::string& row,
                                        const std::string& column = kColumn);
  // The rows of a scan: "Bob{bal=3 name=Bob} Joe{bal=9}".
  static std::string Scanned(const ReadView& view, const ScanOptions& options = {}, std::string_view table = kTable);

  World world_;
  Process cluster_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TXN_WORLD_H_
