// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/local_oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

class FakeClock : public Clock {
 public:
  uint64_t WallMicros() override { return now; }
  uint64_t BootMicros() override { return boot; }
  uint64_t now = 1'000'000;
  uint64_t boot = 77;
};

class LocalOracleTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_.path() + "/oracle"; }
  LocalOracleOptions Options() { return {.window_micros = 1000, .clock = &clock_}; }

  std::unique_ptr<LocalOracle> Create(Timestamp after = Timestamp()) {
    auto oracle = LocalOracle::Create(Path(), after, Options());
    EXPECT_THAT(oracle, IsOk());
    return *std::move(oracle);
  }
  std::unique_ptr<LocalOracle> Reopen() {
    auto oracle = LocalOracle::Open(Path(), Options());
    EXPECT_THAT(oracle, IsOk());
    return *std::move(oracle);
  }

  // The bound that a new oracle would find if this one died now.
  uint64_t DurableBound() const {
    const std::string copy = Path() + ".copy";
    std::filesystem::copy_file(Path(), copy, std::filesystem::copy_options::overwrite_existing);
    return BoundFile::Open(copy).value()->bound();
  }

  TempDir dir_;
  FakeClock clock_;
};

TEST_F(LocalOracleTest, FollowsTheClock) {
  auto oracle = Create();
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(1'000'000));
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(1'000'001));
  clock_.now += 500;
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(1'000'500));
}

TEST_F(LocalOracleTest, GrowsWhenTheClockIsSetBack) {
  auto oracle = Create();
  const Timestamp before = oracle->GetTimestamp().value();
  clock_.now = 0;
  EXPECT_EQ(oracle->GetTimestamp().value(), before.Next());
  oracle.reset();
  oracle = Reopen();
  EXPECT_GT(oracle->GetTimestamp().value(), before.Next());
}

// T14: locks and garbage must age, whatever happens to the clock.
TEST_F(LocalOracleTest, DoesNotStandStillWhenTheClockIsSetBack) {
  constexpr uint64_t kSecond = 1'000'000;
  constexpr uint64_t kHour = 3600 * kSecond;
  clock_.now = 2 * kHour;
  auto oracle = Create();
  const uint64_t before = oracle->GetTimestamp()->value();
  clock_.now = kHour;
  uint64_t last = oracle->GetTimestamp()->value();
  EXPECT_EQ(last, before + 1);
  for (int i = 0; i < 7200; ++i) {
    clock_.now += kSecond;
    clock_.boot += kSecond;
    const uint64_t ts = oracle->GetTimestamp()->value();
    EXPECT_GE(ts, last + 1);
    if (i < 7000) {
      EXPECT_NEAR(static_cast<double>(ts - last), kSecond / 2, 2) << i;
    }
    last = ts;
  }
  // The clock has caught up, and is followed again.
  clock_.now += kSecond;
  EXPECT_EQ(oracle->GetTimestamp()->value(), clock_.now);
}

TEST_F(LocalOracleTest, ManyTimestampsAreConsecutive) {
  auto oracle = Create();
  const Timestamp first = oracle->GetTimestamps(100).value();
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(first.value() + 100));
  EXPECT_THAT(oracle->GetTimestamps(0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(oracle->GetTimestamps(Oracle::kMaxCount + 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(oracle->GetTimestamps(Oracle::kMaxCount), IsOk());
}

TEST_F(LocalOracleTest, TryGetTimestampsFailsWhenTheBoundHasToBeRaised) {
  auto oracle = Create();
  EXPECT_FALSE(oracle->TryGetTimestamps(1).has_value()) << "the first raises it";
  const Timestamp first = oracle->GetTimestamp().value();
  ASSERT_TRUE(oracle->TryGetTimestamps(10).has_value());
  const auto second = oracle->TryGetTimestamps(1);
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(*second, IsOkAndHolds(Timestamp(first.value() + 11)));
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(first.value() + 12));
  clock_.now = DurableBound();
  EXPECT_FALSE(oracle->TryGetTimestamps(1).has_value());
  EXPECT_THAT(oracle->TryGetTimestamps(0).value(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(LocalOracleTest, BeginsAboveTheGivenTimestamp) {
  EXPECT_EQ(Create(Timestamp(5'000'000))->GetTimestamp().value(), Timestamp(5'000'001));
}

// O1c: the oracle dies before the new bound is on disk. (A limit on the size of files makes the write fail.)
TEST_F(LocalOracleTest, O1c_NothingIsHandedOutWhenTheBoundCannotBeRaised) {
  auto oracle = Create();
  const Timestamp last = oracle->GetTimestamp().value();
  const uint64_t bound = DurableBound();
  clock_.now = bound + 5;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status refused = oracle->GetTimestamp().status();
  const absl::Status again = oracle->GetTimestamp().status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(again, StatusIs(absl::StatusCode::kFailedPrecondition));
  oracle.reset();
  clock_.now = 0;
  oracle = Reopen();
  EXPECT_GE(oracle->GetTimestamp().value(), Timestamp(bound));
  EXPECT_GT(Timestamp(bound), last);
}

// O2c: the oracle dies after the new bound is on disk, before it has answered. The range is lost, and never handed out
// twice.
TEST_F(LocalOracleTest, O2c_ARangeWithoutAnAnswerIsSkipped) {
  auto oracle = Create();
  const Timestamp last = oracle->GetTimestamp().value();
  oracle.reset();
  const uint64_t raised = last.value() + 5000;
  ASSERT_THAT(BoundFile::Open(Path()).value()->Raise(raised), IsOk());
  oracle = Reopen();
  EXPECT_EQ(oracle->GetTimestamp().value(), Timestamp(raised));
}

// O1c, O2c: handed-out timestamps are below the bound on disk at every moment, wherever the oracle dies.
TEST_F(LocalOracleTest, O1c_O2c_NothingIsHandedOutAboveTheDurableBound) {
  std::mt19937_64 random(7);
  auto oracle = Create();
  Timestamp last;
  for (int i = 0; i < 2000; ++i) {
    clock_.now = random() % 2 == 0 ? clock_.now + random() % 700 : random() % 2'000'000;
    const uint32_t count = 1 + random() % 5;
    const Timestamp first = oracle->GetTimestamps(count).value();
    ASSERT_GT(first, last);
    last = Timestamp(first.value() + count - 1);
    ASSERT_LT(last.value(), DurableBound());
    if (random() % 50 == 0) {
      oracle.reset();
      oracle = Reopen();
    }
  }
}

TEST_F(LocalOracleTest, EndsWithAClearErrorAtTheLastTimestamp) {
  clock_.now = LocalOracle::kLast - 3;
  auto oracle = Create();
  EXPECT_THAT(oracle->GetTimestamp(), IsOk());
  EXPECT_THAT(oracle->GetTimestamps(10), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(oracle->GetTimestamp(), IsOk());
  clock_.now = ~uint64_t{0};
  EXPECT_THAT(oracle->GetTimestamp(), StatusIs(absl::StatusCode::kOutOfRange));
}

// O1, with real threads and the real clock.
TEST_F(LocalOracleTest, ThreadsGetDistinctGrowingTimestamps) {
  auto oracle = LocalOracle::Create(Path(), Timestamp(), {.window_micros = 20'000}).value();
  constexpr int kThreads = 8;
  std::vector<std::vector<Timestamp>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) drawn[t].push_back(oracle->GetTimestamp().value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Timestamp> all;
  for (const std::vector<Timestamp>& one : drawn) {
    EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
    all.insert(all.end(), one.begin(), one.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

// Draws timestamps and writes each to the pipe, until it is killed.
[[noreturn]] void DrawUntilKilled(const std::string& path, int pipe) {
  auto oracle = LocalOracle::Open(path, {.window_micros = 500});
  if (!oracle.ok()) _exit(1);
  while (true) {
    const absl::StatusOr<Timestamp> ts = (*oracle)->GetTimestamp();
    const uint64_t value = ts.ok() ? ts->value() : 0;
    if (write(pipe, &value, sizeof(value)) != sizeof(value)) _exit(2);
  }
}

TEST_F(LocalOracleTest, NoTimestampComesTwiceAfterAKill) {
  { auto oracle = LocalOracle::Create(Path(), Timestamp()); }
  std::mt19937_64 random(11);
  uint64_t last = 0;
  size_t drawn = 0;
  for (int cycle = 0; cycle < 20; ++cycle) {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(fds[0]);
      DrawUntilKilled(Path(), fds[1]);
    }
    close(fds[1]);
    const size_t until = 1 + random() % 300;
    uint64_t value = 0;
    for (size_t n = 0; read(fds[0], &value, sizeof(value)) == sizeof(value);) {
      ASSERT_GT(value, last) << "in cycle " << cycle;
      last = value;
      ++drawn;
      if (++n == until) kill(child, SIGKILL);
    }
    close(fds[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself, status " << status;
  }
  EXPECT_GT(drawn, 500u);
}

}  // namespace
}  // namespace percolator
