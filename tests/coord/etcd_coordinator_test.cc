// SPDX-License-Identifier: Apache-2.0

// The coordinator on etcd beyond the conformance suite: sessions when processes and etcd stand still or die.
//
// The program is its own child: --session ETCD ID holds a session with that id, which leads, until it is killed.

#include "src/coord/etcd/etcd_coordinator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/strings.h"
#include "src/etcd/etcd_client.h"
#include "tests/harness/eventually.h"
#include "tests/harness/test_oracle.h"
#include "tests/processes/child_process.h"
#include "tests/processes/etcd_process.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience(60);  // anything that takes longer hangs
constexpr char kPrefix[] = "coordinator test/";
constexpr std::chrono::seconds kTtl(3);  // a process without processor time for that long counts as dead

EtcdOptions OptionsFor(const std::vector<std::string>& endpoints) {
  EtcdOptions options;
  options.endpoints = endpoints;
  options.prefix = kPrefix;
  options.session_ttl = kTtl;
  options.timeout = kPatience;
  return options;
}

int HoldSession(const std::string& endpoint, uint64_t id) {
  TestOracle oracle(id);
  const std::unique_ptr<Coordinator> coordinator = OpenEtcdCoordinator(OptionsFor({endpoint}), &oracle).value();
  const std::unique_ptr<Session> session = coordinator->OpenSession().value();
  std::cout << (coordinator->Campaign("role", *session).value() ? "leads" : "does not lead") << std::endl;
  for (;;) pause();
}

EtcdProcess& Etcd() {
  static EtcdProcess etcd;
  return etcd;
}

class EtcdCoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::WhyNot().empty()) GTEST_SKIP() << EtcdProcess::WhyNot();
    coordinator_ = OpenEtcdCoordinator(OptionsFor({Etcd().endpoint()}), &oracle_).value();
    session_ = coordinator_->OpenSession().value();
  }

  // False if the session is known to be dead, or the call fails.
  bool IsAlive(SessionId session) { return coordinator_->IsAlive(session).value_or(false); }
  bool IsGone(SessionId session) { return !coordinator_->IsAlive(session).value_or(true); }
  bool OldestIs(uint64_t ts) { return coordinator_->OldestSnapshot().value_or(Timestamp()) == Timestamp(ts); }

  static TestOracle oracle_;  // static, so that tests do not reuse ids
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Session> session_;
};

TestOracle EtcdCoordinatorTest::oracle_(1000);

TEST_F(EtcdCoordinatorTest, ASessionOutlivesARestartOfEtcd) {
  ASSERT_THAT(session_->ReportOldestSnapshot(Timestamp(77)), IsOk());
  Etcd().Kill();
  EXPECT_TRUE(Eventually([&] { return !session_->alive(); })) << "etcd may have ended it";
  Etcd().Start();
  EXPECT_TRUE(Eventually([&] { return session_->alive() && IsAlive(session_->id()); }));
  EXPECT_TRUE(Eventually([&] { return OldestIs(77); }));
}

TEST_F(EtcdCoordinatorTest, ASessionThatEtcdHasEndedRestartsWithTheSameId) {
  ASSERT_THAT(session_->ReportOldestSnapshot(Timestamp(78)), IsOk());
  ASSERT_TRUE(coordinator_->Campaign("lost", *session_).value());
  const std::unique_ptr<EtcdClient> client = EtcdClient::Open({Etcd().endpoint()}, TlsFiles()).value();
  ASSERT_THAT(client->Revoke(static_cast<int64_t>(session_->id()), kPatience), IsOk());
  EXPECT_TRUE(Eventually([&] { return IsAlive(session_->id()) && session_->alive(); }));
  EXPECT_TRUE(Eventually([&] { return OldestIs(78); }));
  const std::unique_ptr<Session> other = coordinator_->OpenSession().value();
  EXPECT_TRUE(coordinator_->Campaign("lost", *other).value()) << "it leads no longer";
}

TEST_F(EtcdCoordinatorTest, ASessionThatEtcdHasEndedCanReport) {
  const std::unique_ptr<EtcdClient> client = EtcdClient::Open({Etcd().endpoint()}, TlsFiles()).value();
  ASSERT_THAT(client->Revoke(static_cast<int64_t>(session_->id()), kPatience), IsOk());
  EXPECT_THAT(session_->ReportOldestSnapshot(Timestamp(79)), IsOk());
  EXPECT_TRUE(Eventually([&] { return OldestIs(79); }));
}

TEST_F(EtcdCoordinatorTest, ASessionIsNotAliveWhenEtcdStandsStill) {
  EXPECT_TRUE(Eventually([&] { return session_->alive(); }));
  Etcd().Stop();
  EXPECT_TRUE(Eventually([&] { return !session_->alive(); }));
  Etcd().Continue();
  EXPECT_TRUE(Eventually([&] { return session_->alive() && IsAlive(session_->id()); }));
}

TEST_F(EtcdCoordinatorTest, AProcessThatStandsStillCountsAsDeadUntilItContinues) {
  const uint64_t id = oracle_.GetTimestamps(1).value().value();
  ChildProcess child(
      {std::filesystem::read_symlink("/proc/self/exe"), "--session", Etcd().endpoint(), std::to_string(id)});
  std::string line;
  ASSERT_TRUE(child.ReadLine(&line));
  EXPECT_EQ(line, "leads");
  EXPECT_TRUE(IsAlive(id));
  std::this_thread::sleep_for(kTtl * 4 / 3);  // it is renewed meanwhile
  EXPECT_TRUE(IsAlive(id));
  EXPECT_FALSE(coordinator_->Campaign("role", *session_).value());

  kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(Eventually([&] { return IsGone(id); }));
  EXPECT_TRUE(coordinator_->Campaign("role", *session_).value());
  kill(child.pid(), SIGCONT);
  EXPECT_TRUE(Eventually([&] { return IsAlive(id); }));
  EXPECT_TRUE(coordinator_->Campaign("role", *session_).value()) << "another leads now";

  kill(child.pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return IsGone(id); }));
}

TEST_F(EtcdCoordinatorTest, AMissingEndpointIsSkipped) {
  const std::string nobody = StrCat("127.0.0.1:", FreePort());
  const std::unique_ptr<Coordinator> coordinator =
      OpenEtcdCoordinator(OptionsFor({nobody, Etcd().endpoint(), nobody}), &oracle_).value();
  const std::unique_ptr<Session> session = coordinator->OpenSession().value();
  EXPECT_TRUE(IsAlive(session->id()));
  EXPECT_TRUE(coordinator->IsAlive(session_->id()).value());
}

TEST_F(EtcdCoordinatorTest, WithoutEtcdCallsFailInTimeAndSayWhy) {
  EtcdOptions options = OptionsFor({StrCat("127.0.0.1:", FreePort())});
  options.timeout = std::chrono::seconds(1);
  const std::unique_ptr<Coordinator> coordinator = OpenEtcdCoordinator(options, &oracle_).value();
  EXPECT_TRUE(Eventually([&] {  // a busy machine may need more than one attempt
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status opened = coordinator->OpenSession().status();
    const absl::Status asked = coordinator->IsAlive(1).status();
    const absl::Status oldest = coordinator->OldestSnapshot().status();
    coordinator->SendHint({"t", "r", "c"});  // lost
    return absl::IsUnavailable(opened) && absl::IsUnavailable(asked) && absl::IsUnavailable(oldest) &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(10);
  }));
}

TEST_F(EtcdCoordinatorTest, HintsArriveAgainAfterARestartOfEtcd) {
  const std::unique_ptr<Coordinator> there = OpenEtcdCoordinator(OptionsFor({Etcd().endpoint()}), &oracle_).value();
  std::atomic<int> heard = 0;
  there->SetHintListener([&](const CellName&) { ++heard; });
  const auto sent_is_heard = [&] {
    coordinator_->SendHint({"t", "r", "c"});
    return heard > 0;
  };
  ASSERT_TRUE(Eventually(sent_is_heard));
  Etcd().Kill();
  std::this_thread::sleep_for(milliseconds(50));
  heard = 0;
  Etcd().Start();
  EXPECT_TRUE(Eventually(sent_is_heard));
  there->SetHintListener(nullptr);
}

TEST_F(EtcdCoordinatorTest, HintsTakeABoundedSpaceInEtcd) {
  const std::unique_ptr<EtcdClient> client = EtcdClient::Open({Etcd().endpoint()}, TlsFiles()).value();
  std::atomic<size_t> bytes = 0;
  const EtcdWatch watch(client.get(), StrCat(kPrefix, "hints/"),
                        [&](const etcd::KeyValue& put) { bytes += put.value().size(); });
  ASSERT_TRUE(Eventually([&] {
    coordinator_->SendHint({"t", "r", "c"});
    return bytes > 0;
  }));
  constexpr std::chrono::seconds kTime(2);
  constexpr size_t kLeast = 1 << 10;
  const auto begin = std::chrono::steady_clock::now();
  const auto goes_on = [&] {
    const auto passed = std::chrono::steady_clock::now() - begin;
    return passed < kTime || (bytes <= kLeast && passed < kPatience);
  };
  while (goes_on()) {
    for (int i = 0; i < 100; ++i) coordinator_->SendHint({"table", std::string(100, 'r'), "column"});
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GT(bytes, kLeast);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(static_cast<double>(bytes), (took.count() + 1) * (64 << 10));
}

TEST(EndOfPrefixTest, IsTheFirstKeyAfterAllWithThePrefix) {
  EXPECT_EQ(EndOfPrefix("a/"), "a0");
  EXPECT_EQ(EndOfPrefix("a\xff"), "b");
  EXPECT_EQ(EndOfPrefix("\xff\xff"), std::string(1, '\0')) << "etcd's notation for no end";
  EXPECT_EQ(EndOfPrefix(""), std::string(1, '\0'));
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--session") {
    return percolator::HoldSession(argv[2], std::strtoull(argv[3], nullptr, 10));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
