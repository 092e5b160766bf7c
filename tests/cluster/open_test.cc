// SPDX-License-Identifier: Apache-2.0

// Cluster::Open: addresses, options, and clusters in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status OpenStatus(const std::string& address, const ClusterOptions& options = {}) {
  return Cluster::Open(address, options).status();
}

TEST(OpenTest, InvalidAddressesAreRefused) {
  for (const std::string address : {"", "rocksdb:", "memory:x", "/var/lib/accounts", "oracle:localhost", "Memory:"}) {
    const absl::Status status = OpenStatus(address);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rocksdb:DIR")) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"" + address + "\""));
  }
}

TEST(OpenTest, AnImpossibleFolderIsRefused) {
  EXPECT_THAT(OpenStatus("rocksdb:/dev/null/x"), ::testing::Not(IsOk()));
  EXPECT_THAT(OpenStatus("rocksdb:/proc/percolator"), ::testing::Not(IsOk()));
}

TEST(OpenTest, InvalidOptionsAreRefused) {
  const auto with = [](auto change) {
    ClusterOptions options;
    change(options);
    return OpenStatus("memory:", options);
  };
  const auto expect = [](const absl::Status& status, const std::string& name) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  };
  expect(with([](ClusterOptions& o) { o.lock_lease = Duration(0); }), "lock_lease");
  expect(with([](ClusterOptions& o) { o.lock_lease = Duration(-1); }), "lock_lease");
  expect(with([](ClusterOptions& o) { o.call_timeout = Duration(0); }), "call_timeout");
  expect(with([](ClusterOptions& o) { o.oracle_window = Duration(-1); }), "oracle_window");
  expect(with([](ClusterOptions& o) { o.gc_period = Duration(-1); }), "gc_period");
  expect(with([](ClusterOptions& o) { o.gc_retention = o.lock_lease; }), "gc_retention");
  EXPECT_THAT(with([](ClusterOptions& o) { o.gc_period = Duration(0); }), IsOk());
  EXPECT_THAT(with([](ClusterOptions& o) { o.max_background_commits = 0; }), IsOk());
}

class MemoryClusterTest : public ::testing::Test {
 protected:
  MemoryClusterTest() : cluster_(Cluster::Open("memory:").value()) {
    EXPECT_THAT(cluster_.CreateTable("accounts"), IsOk());
  }

  const Cluster cluster_;
};

TEST_F(MemoryClusterTest, WorksLikeAnyOther) {
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) { t.Set({"accounts", "Bob", "bal"}, "3"); }), IsOk());
  EXPECT_EQ(cluster_.GetSnapshot()->Get({"accounts", "Bob", "bal"}).value(), "3");
  EXPECT_EQ(cluster_.metrics().commits, 1u);
}

TEST_F(MemoryClusterTest, EachMemoryClusterIsSeparate) {
  const Cluster other = Cluster::Open("memory:").value();
  EXPECT_THAT(other.ListTables().value(), IsEmpty());
  EXPECT_THAT(cluster_.ListTables().value(), ElementsAre("accounts"));
}

TEST_F(MemoryClusterTest, ClosesTwice) {
  EXPECT_THAT(cluster_.Close(), IsOk());
  EXPECT_THAT(cluster_.Close(), IsOk());
}

// Real threads, all on one row: every increment counts.
TEST_F(MemoryClusterTest, ThreadsIncrementOneCounter) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < kEach; ++n) {
        const absl::Status committed = cluster_.Transact(
            [](ReadWrite& t) -> absl::Status {
              const auto value = t.Get({"accounts", "counter", "n"});
              if (!value.ok()) return value.status();
              t.Set({"accounts", "counter", "n"}, std::to_string(std::stoi(value->value_or("0")) + 1));
              return absl::OkStatus();
            },
            {.max_attempts = 100'000});
        EXPECT_THAT(committed, IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cluster_.GetSnapshot()->Get({"accounts", "counter", "n"}).value(), std::to_string(kThreads * kEach));
}

// The caller may own the parts of a cluster.
TEST(AssembleTest, TwoClustersShareOneStore) {
  TestOracle oracle;
  const std::unique_ptr<Coordinator> coordinator = NewLocalCoordinator(&oracle);
  const Parts parts{.store = NewMemoryStore(), .oracle = Borrow(&oracle), .coordinator = Borrow(coordinator.get())};
  const Cluster one = Assemble(parts).value();
  const Cluster two = Assemble(parts).value();
  ASSERT_THAT(one.CreateTable("accounts"), IsOk());
  ASSERT_THAT(one.Transact([](ReadWrite& t) { t.Set({"accounts", "Bob", "bal"}, "3"); }), IsOk());
  EXPECT_EQ(two.GetSnapshot()->Get({"accounts", "Bob", "bal"}).value(), "3");
  EXPECT_THAT(Assemble(parts, {.lock_lease = Duration(0)}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(one.Close(), IsOk());
  // The cluster does not close a store that it does not own.
  EXPECT_EQ(two.GetSnapshot()->Get({"accounts", "Bob", "bal"}).value(), "3");
}

TEST(OpenTest, ATableThatIsEnsuredTwiceIsTheSame) {
  const Cluster cluster = Cluster::Open("memory:").value();
  EXPECT_THAT(cluster.EnsureTable("t", {.notify_only_columns = {"a", "b"}}), IsOk());
  EXPECT_THAT(cluster.EnsureTable("t", {.notify_only_columns = {"b", "a"}}), IsOk());
  EXPECT_THAT(cluster.EnsureTable("t"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("other notify-only columns")));
  EXPECT_THAT(cluster.EnsureTable("no name"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster.CreateTable("t"), StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace percolator
