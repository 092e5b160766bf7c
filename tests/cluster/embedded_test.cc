// SPDX-License-Identifier: Apache-2.0

// The embedded cluster: everything in one process, data in a folder.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Column<int64_t> kBalance("accounts", "bal");

class EmbeddedTest : public ::testing::Test {
 protected:
  std::string Folder() const { return dir_.path() + "/store"; }
  std::string Address() const { return "rocksdb:" + Folder(); }

  static ClusterOptions Options(bool one_step = true) {
    ClusterOptions options;
    options.store.durability = Durability::kNoSync;  // enough when a process dies, not the machine
    options.one_step_commit = one_step;
    return options;
  }

  Cluster Open(const ClusterOptions& options = Options()) { return Cluster::Open(Address(), options).value(); }
  static void MustSet(const Cluster& cluster, const std::string& row, const std::string& value) {
    ASSERT_THAT(cluster.Transact([&](ReadWrite& t) { t.Set({"accounts", row, "bal"}, value); }), IsOk());
  }
  static std::optional<std::string> Get(const Cluster& cluster, const std::string& row) {
    absl::StatusOr<Snapshot> snapshot = cluster.GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    const auto value = snapshot->Get({"accounts", row, "bal"});
    EXPECT_THAT(value, IsOk());
    return value.ok() ? *value : std::nullopt;
  }
  // The number of locks in the folder, counted without a cluster.
  size_t LocksLeft() const {
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    size_t locks = 0;
    const std::vector<TableInfo> tables = store->ListTables().value();
    for (const TableInfo& table : tables) {
      const ScanPage page = store->Scan({table.name, RowRange::All(), {{Family::kLock}}, 100'000}).value();
      EXPECT_FALSE(page.resume.has_value());
      for (const Row& row : page.rows) locks += row.cells.size();
    }
    EXPECT_THAT(store->Close(), IsOk());
    return locks;
  }

  TempDir dir_;
};

TEST_F(EmbeddedTest, CommittedWritesSurviveARestart) {
  Timestamp committed;
  {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts", {.notify_only_columns = {"hot"}}), IsOk());
    MustSet(cluster, "Bob", "10");
    committed = cluster.GetSnapshot()->timestamp();
    MustSet(cluster, "Bob", "3");
    MustSet(cluster, "Joe", std::string(100'000, 'j'));
    EXPECT_THAT(cluster.Close(), IsOk());
  }
  const Cluster cluster = Open();
  EXPECT_THAT(cluster.ListTables().value(), ElementsAre("accounts"));
  EXPECT_EQ(Get(cluster, "Bob"), "3");
  EXPECT_EQ(Get(cluster, "Joe"), std::string(100'000, 'j'));
  EXPECT_EQ(cluster.GetSnapshotAt(committed)->Get({"accounts", "Bob", "bal"}).value(), "10");
  Transaction t(cluster);
  t.Set({"accounts", "Bob", "hot"}, "x");
  EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(t.Get({"accounts", "Bob", "bal"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(t.Commit().status, StatusIs(absl::StatusCode::kInvalidArgument));
}

// O1, O3: timestamps do not go back after a restart, however quick.
TEST_F(EmbeddedTest, TimestampsGrowOverRestarts) {
  Timestamp last;
  for (int i = 0; i < 5; ++i) {
    const Cluster cluster = Open();
    const Timestamp now = cluster.GetSnapshot()->timestamp();
    EXPECT_GT(now, last);
    last = cluster.GetSnapshot()->timestamp();
  }
}

// Many short programs on one folder do not run ahead of the clock, if they use this option.
TEST_F(EmbeddedTest, AShortOracleWindowKeepsToTheClock) {
  ClusterOptions options = Options();
  const auto skipped = [&] {
    const Timestamp first = Open(options).GetSnapshot()->timestamp();
    Timestamp last;
    for (int i = 0; i < 3; ++i) last = Open(options).GetSnapshot()->timestamp();
    return Duration(last.value() - first.value());
  };
  options.oracle_window = std::chrono::seconds(100);
  EXPECT_GE(skipped(), std::chrono::seconds(250));
  options.oracle_window = std::chrono::milliseconds(1);
  EXPECT_LT(skipped(), std::chrono::seconds(60));
}

TEST_F(EmbeddedTest, AStoreIsCreatedOnlyOnRequest) {
  ClusterOptions options = Options();
  options.store.create_if_missing = false;
  EXPECT_THAT(Cluster::Open(Address(), options), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(std::filesystem::exists(Folder()));
  std::filesystem::create_directories(Folder());
  EXPECT_THAT(Cluster::Open(Address(), options), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(std::filesystem::is_empty(Folder()));
  EXPECT_THAT(Open().Close(), IsOk());
  EXPECT_THAT(Cluster::Open(Address(), options), IsOk());
}

TEST_F(EmbeddedTest, WithoutCloseTheDestructorCloses) {
  {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    MustSet(cluster, "Bob", "3");
  }
  const Cluster cluster = Open();
  EXPECT_EQ(Get(cluster, "Bob"), "3");
}

TEST_F(EmbeddedTest, CloseMayBeCalledTwice) {
  const Cluster cluster = Open();
  ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
  EXPECT_THAT(cluster.Close(), IsOk());
  EXPECT_THAT(cluster.Close(), IsOk());
  EXPECT_EQ(Get(Open(), "Bob"), std::nullopt);
}

TEST_F(EmbeddedTest, ASecondClusterInTheSameFolderIsRefused) {
  const Cluster cluster = Open();
  const absl::Status status = Cluster::Open(Address(), Options()).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
  MustSet(cluster, "Bob", "3");  // the first still works
  EXPECT_EQ(Get(cluster, "Bob"), "3");
}

TEST_F(EmbeddedTest, AFolderWithForeignFilesIsRefused) {
  std::filesystem::create_directories(Folder());
  std::ofstream(Folder() + "/photos.zip") << "not a store";
  EXPECT_THAT(Cluster::Open(Address(), Options()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(std::filesystem::exists(Folder() + "/photos.zip"));
}

// Until it is closed, a small cluster exists only in the log.
TEST_F(EmbeddedTest, DamageAfterACloseIsNeverSilent) {
  {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    MustSet(cluster, "Bob", "3");
    EXPECT_THAT(cluster.Close(), IsOk());
  }
  for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/rocksdb")) {
    if (entry.path().extension() == ".log") std::filesystem::remove(entry);
  }
  EXPECT_EQ(Get(Open(), "Bob"), "3");
  for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/rocksdb")) std::filesystem::remove(entry);
  const absl::Status status = Cluster::Open(Address(), Options()).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore the folder from a backup"));
}

TEST_F(EmbeddedTest, FilesAreAccessibleToTheOwnerOnly) {
  using std::filesystem::perms;
  const Cluster cluster = Open();
  ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
  MustSet(cluster, "Bob", "3");
  EXPECT_THAT(cluster.Close(), IsOk());
  EXPECT_EQ(std::filesystem::status(Folder()).permissions(), perms(0700));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Folder())) {
    EXPECT_EQ(entry.status().permissions(), entry.is_directory() ? perms(0700) : perms(0600)) << entry;
  }
}

// Without the oracle's file timestamps could be handed out twice.
TEST_F(EmbeddedTest, AMissingOracleFileIsRefusedWhereThereIsData) {
  {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    MustSet(cluster, "Bob", "3");
  }
  ASSERT_TRUE(std::filesystem::exists(Folder() + "/oracle"));
  std::filesystem::rename(Folder() + "/oracle", dir_.path() + "/taken-away");
  const absl::Status status = Cluster::Open(Address(), Options()).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Folder() + "/oracle"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
  EXPECT_FALSE(std::filesystem::exists(Folder() + "/oracle"));  // it was not made again
  std::filesystem::rename(dir_.path() + "/taken-away", Folder() + "/oracle");
  EXPECT_EQ(Get(Open(), "Bob"), "3");
}

TEST_F(EmbeddedTest, ADamagedOracleFileIsRefused) {
  {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
  }
  std::ofstream(Folder() + "/oracle", std::ios::trunc) << "garbage";
  EXPECT_THAT(Cluster::Open(Address(), Options()), StatusIs(absl::StatusCode::kDataLoss));
}

// If a process dies between making the store and making the oracle's file, nothing is lost.
TEST_F(EmbeddedTest, AMissingOracleFileIsMadeWhereThereIsNoData) {
  { ASSERT_THAT(OpenRocksStore(Folder()).value()->Close(), IsOk()); }
  const absl::StatusOr<Cluster> cluster = Cluster::Open(Address(), Options());
  ASSERT_THAT(cluster, IsOk());
  EXPECT_THAT(cluster->CreateTable("accounts"), IsOk());
}

TEST_F(EmbeddedTest, CloseFinishesTheSecondaries) {
  {
    const Cluster cluster = Open(Options(false));
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    for (int i = 0; i < 50; ++i) {
      ASSERT_THAT(cluster.Transact([&](ReadWrite& t) {
        for (int row = 0; row < 20; ++row) t.Set(kBalance, StrCat("row", row), i);
      }),
                  IsOk());
    }
    EXPECT_THAT(cluster.Close(), IsOk());
  }
  EXPECT_EQ(LocksLeft(), 0u);
  const Cluster cluster = Open();
  for (int row = 0; row < 20; ++row) EXPECT_EQ(Get(cluster, StrCat("row", row)), "49");
}

TEST_F(EmbeddedTest, TheSafePointSurvives) {
  ClusterOptions options = Options();
  options.lock_lease = std::chrono::milliseconds(20);
  options.gc_retention = std::chrono::milliseconds(50);
  options.gc_period = Duration(0);
  Timestamp before;
  Timestamp safe_point;
  {
    const Cluster cluster = Open(options);
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    MustSet(cluster, "Bob", "1");
    before = cluster.GetSnapshot()->timestamp();
    MustSet(cluster, "Bob", "2");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    safe_point = cluster.CollectGarbage().value();
    ASSERT_GT(safe_point, before);
    EXPECT_EQ(cluster.metrics().versions_collected, 1u);
  }
  const Cluster cluster = Open(options);
  EXPECT_THAT(cluster.GetSnapshotAt(before), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(Get(cluster, "Bob"), "2");
}

// Threads that commit in both ways at once, on the same rows: the sum does not change.
TEST_F(EmbeddedTest, TransfersKeepTheSum) {
  constexpr int kAccounts = 5;
  const Cluster cluster = Open(Options());
  ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
  for (int i = 0; i < kAccounts; ++i) MustSet(cluster, StrCat("a", i), "100");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const std::string from = StrCat("a", (thread + i) % kAccounts);
        const std::string to = StrCat("a", (thread + 2 * i + 1) % kAccounts);
        if (from == to) continue;
        const absl::Status committed = cluster.Transact(
            [&](ReadWrite& t) -> absl::Status {
              const auto balances = t.GetRows(kBalance, {from, to});
              if (!balances.ok()) return balances.status();
              t.Set(kBalance, from, *(*balances)[0] - 1);
              t.Set(kBalance, to, *(*balances)[1] + 1);
              return absl::OkStatus();
            },
            {.max_attempts = 100'000});
        EXPECT_THAT(committed, IsOk());
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    absl::StatusOr<Snapshot> snapshot = cluster.GetSnapshot();
    ASSERT_THAT(snapshot, IsOk());
    int64_t sum = 0;
    for (const auto& account : snapshot->Scan(kBalance)) {
      EXPECT_THAT(account.status(), IsOk());
      if (account.ok()) sum += account->value;
    }
    EXPECT_EQ(sum, 100 * kAccounts);
  }
  for (std::thread& thread : threads) thread.join();
}

// --- A process that is killed

// Runs kill_child.cc until it has committed this number of transactions. Returns the number of the last one that it
// reported.
uint64_t RunAndKill(const std::string& address, bool one_step, uint64_t until) {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  std::string program = KILL_CHILD;
  std::string where = address;
  std::string mode = one_step ? "one-step" : "two-phases";
  char* const argv[] = {program.data(), where.data(), mode.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  uint64_t told = 0;
  for (uint64_t i = 0; read(fds[0], &i, sizeof(i)) == sizeof(i); told = i) {
    if (i == until) kill(child, SIGKILL);
  }
  close(fds[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself, status " << status;
  return told;
}

// T10, T15: acknowledged writes exist, both rows always agree, and locks of the dead process stop no other.
TEST_F(EmbeddedTest, NothingIsLostWhenTheProcessIsKilled) {
  for (const bool one_step : {true, false}) {
    SCOPED_TRACE(one_step);
    std::filesystem::remove_all(Folder());
    {
      const Cluster cluster = Open(Options(one_step));
      ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    }
    for (uint64_t cycle = 0; cycle < 3; ++cycle) {
      const uint64_t acknowledged = RunAndKill(Address(), one_step, 20 + 13 * cycle);
      ASSERT_GE(acknowledged, 20u);
      const Cluster cluster = Open(Options(one_step));
      const std::optional<std::string> bob = Get(cluster, "Bob");
      ASSERT_TRUE(bob.has_value());
      EXPECT_EQ(Get(cluster, "Joe"), bob);
      EXPECT_GE(std::stoull(*bob), acknowledged);
      MustSet(cluster, "Bob", *bob);  // at once, because the session of a dead process is dead
      EXPECT_THAT(cluster.Close(), IsOk());
    }
    EXPECT_EQ(LocksLeft(), 0u);
  }
}

}  // namespace
}  // namespace percolator
