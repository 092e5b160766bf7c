// SPDX-License-Identifier: Apache-2.0

// OracleServer, as a program uses it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "percolator/server.h"
#include "src/oracle/remote/remote_oracle.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/oracle_service.h"
#include "tests/harness/test_oracle.h"
#include "tests/processes/etcd_process.h"
#include "tests/processes/raw_connection.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

// Waits until the oracle answers.
Timestamp Get(Oracle* oracle, uint32_t count = 1) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const absl::StatusOr<Timestamp> answer = oracle->GetTimestamps(count);
    if (answer.ok()) return *answer;
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << answer.status();
      return Timestamp();
    }
  }
}

class OracleServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::WhyNot().empty()) GTEST_SKIP() << EtcdProcess::WhyNot();
    etcd_ = std::make_unique<EtcdProcess>();
    options_.listen = "127.0.0.1:0";
    options_.etcd = {etcd_->endpoint()};
  }

  std::unique_ptr<EtcdProcess> etcd_;
  OracleServerOptions options_;
};

TEST_F(OracleServerTest, WhenOneStopsAnotherTakesOver) {
  const std::unique_ptr<OracleServer> first = OracleServer::Start(options_).value();
  const std::unique_ptr<OracleServer> second = OracleServer::Start(options_).value();
  EXPECT_EQ(first->address(), "127.0.0.1:" + std::to_string(first->port()));
  const std::unique_ptr<RemoteOracle> both =
      RemoteOracle::Open({first->address(), second->address()}, TlsFiles()).value();
  const std::unique_ptr<RemoteOracle> one = RemoteOracle::Open({first->address()}, TlsFiles()).value();
  Timestamp last = Get(both.get());
  OracleServer* leader = one->GetTimestamp().ok() ? first.get() : second.get();
  for (int i = 0; i < 100; ++i) {
    if (i == 50) leader->Stop();
    const Timestamp next = Get(both.get());
    EXPECT_GT(next, last);
    last = next;
  }
}

// A call without a message has no end, and no answer. It must not make a leader continue to lead.
TEST_F(OracleServerTest, AHalfOpenCallDoesNotKeepTheLead) {
  options_.lease = std::chrono::seconds(30);  // so that no other server takes over from a silent leader
  const std::unique_ptr<OracleServer> first = OracleServer::Start(options_).value();
  const std::unique_ptr<RemoteOracle> one = RemoteOracle::Open({first->address()}, TlsFiles()).value();
  const Timestamp before = Get(one.get());
  const std::unique_ptr<OracleServer> second = OracleServer::Start(options_).value();
  const std::unique_ptr<RemoteOracle> other = RemoteOracle::Open({second->address()}, TlsFiles()).value();
  RawConnection connection(first->port());
  ASSERT_TRUE(connection.connected());
  connection.Send(Http2Begin() + Http2Call(1, "/percolator.v1.Oracle/GetTimestamps"));
  ASSERT_TRUE(connection.WaitUntilHeard(std::chrono::seconds(60)));
  const auto begin = std::chrono::steady_clock::now();
  first->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20))
      << "one second if the machine is not busy";
  EXPECT_GT(Get(other.get()), before);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, options_.lease);
}

TEST_F(OracleServerTest, MayBeStoppedAgainAndByAnyThread) {
  const std::unique_ptr<OracleServer> server = OracleServer::Start(options_).value();
  const std::unique_ptr<RemoteOracle> client = RemoteOracle::Open({server->address()}, TlsFiles()).value();
  Get(client.get());
  const std::string address = server->address();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      server->Stop();
      EXPECT_EQ(server->address(), address);
    });
  }
  for (std::thread& thread : threads) thread.join();
  server->Stop();
  EXPECT_EQ(server->address(), address);
}

TEST_F(OracleServerTest, MayBeDestroyedWhileAClientUsesIt) {
  std::unique_ptr<OracleServer> server = OracleServer::Start(options_).value();
  const std::unique_ptr<RemoteOracle> client =
      RemoteOracle::Open({server->address()}, TlsFiles(), std::chrono::seconds(1)).value();
  Get(client.get());
  std::atomic<bool> asked{false};
  std::thread asking([&] {
    for (bool ok = true; ok; asked = true) ok = client->GetTimestamp().ok();
  });
  while (!asked) std::this_thread::yield();
  server.reset();
  asking.join();
  EXPECT_FALSE(client->GetTimestamp().ok());
}

// A child of fork() has none of its threads, and would resign for its parent.
TEST_F(OracleServerTest, AForkedProcessLeavesItAlone) {
  std::unique_ptr<OracleServer> server = OracleServer::Start(options_).value();
  const std::unique_ptr<RemoteOracle> oracle = RemoteOracle::Open({server->address()}, TlsFiles()).value();
  const Timestamp before = Get(oracle.get());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    server->Stop();
    server.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child did not end by itself";
  EXPECT_GT(Get(oracle.get()), before);
}

TEST_F(OracleServerTest, OptionsThatContradictEachOtherAreRefused) {
  OracleServerOptions options = options_;
  options.listen = "0.0.0.0:0";
  EXPECT_THAT(OracleServer::Start(options), StatusIs(absl::StatusCode::kInvalidArgument))
      << "plain text on every address";
  options = options_;
  options.etcd.clear();
  EXPECT_THAT(OracleServer::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = options_;
  options.tls.cert = "/no such file";
  EXPECT_THAT(OracleServer::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(OracleServerTest, AnAddressInUseIsReported) {
  const std::unique_ptr<OracleServer> first = OracleServer::Start(options_).value();
  options_.listen = first->address();
  EXPECT_THAT(OracleServer::Start(options_), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RemoteOracleTest, AnOracleThatWentBackIsNotTrusted) {
  TestOracle behind(1000);  // its bound was lost
  Executor executor(1, 10);
  OracleService service(&behind, &executor);
  const Listening listening = Listen({.address = "127.0.0.1:0"}, {&service}).value();
  const std::unique_ptr<RemoteOracle> oracle =
      RemoteOracle::Open({"127.0.0.1:" + std::to_string(listening.port)}, TlsFiles(), std::chrono::seconds(60)).value();
  EXPECT_EQ(Timestamp(1000), Get(oracle.get(), 10));
  EXPECT_EQ(Timestamp(1010), Get(oracle.get()));
  behind.SetNext(1010);
  EXPECT_THAT(oracle->GetTimestamp(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Timestamp(1011), Get(oracle.get())) << "above what was seen";
  listening.server->Shutdown();
}

}  // namespace
}  // namespace percolator
