// SPDX-License-Identifier: Apache-2.0

// Three oracles on etcd, each a process, and clients that call them all the time, while the leader is killed, stands
// still and continues, has its clock set, and etcd is killed and stands still. Every answer is checked, across all
// clients:
//
//     - it is greater than every timestamp that any client had when the request was made (O1);
//     - no timestamp is handed out twice.
//
// Some clients call only one oracle, and wait long for its answer. So requests that were made when another oracle leads
// wait in the sockets of a process that stands still.
//
// The program is its own child: --oracle PORT ETCD NAME CLOCK_FILE is one oracle; the file has the error of its clock
// in microseconds. PERCOLATOR_STRESS_KILLS: the number of rounds. PERCOLATOR_TEST_SEED: the seed of their order and
// durations.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/strings.h"
#include "src/etcd/etcd_client.h"
#include "src/oracle/etcd/etcd_oracle.h"
#include "src/oracle/remote/remote_oracle.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/oracle_service.h"
#include "tests/processes/child_process.h"
#include "tests/processes/etcd_process.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLease(500);
constexpr std::chrono::seconds kPatience(60);  // anything that takes longer hangs
constexpr char kPrefix[] = "failover/";
constexpr int kOracles = 3;
constexpr int64_t kMinute = 60'000'000;

// --- The child

// The machine's clock, plus the error in a file.
class FileClock final : public Clock {
 public:
  explicit FileClock(std::string path) : path_(std::move(path)) {
    std::thread([this] { Follow(); }).detach();  // lives as long as the process
  }
  uint64_t WallMicros() override {
    return Clock::Real()->WallMicros() + static_cast<uint64_t>(ahead_.load());  // may wrap around: it may be behind
  }

 private:
  [[noreturn]] void Follow() {
    for (;;) {
      int64_t ahead = 0;
      if (std::ifstream(path_) >> ahead) ahead_ = ahead;
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  const std::string path_;
  std::atomic<int64_t> ahead_{0};
};

int RunOracle(const std::string& port, const std::string& etcd, const std::string& name, const std::string& clock) {
  sigset_t ends;  // blocked before any thread starts
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  EtcdOracleOptions options;
  options.etcd.endpoints = {etcd};
  options.etcd.prefix = kPrefix;
  options.name = name;
  options.lease = kLease;
  options.clock = new FileClock(clock);
  const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
  Executor executor(/*threads=*/1, /*max_waiting=*/1000);
  OracleService service(oracle.get(), &executor);
  const absl::StatusOr<Listening> listening = Listen({"127.0.0.1:" + port, TlsFiles()}, {&service});
  if (!listening.ok()) {
    std::cerr << listening.status() << "\n";
    return 1;
  }
  std::cout << "ready" << std::endl;
  int signal = 0;
  sigwait(&ends, &signal);
  listening->server->Shutdown();
  return 0;
}

// --- The test

class OracleProcess {
 public:
  OracleProcess(const EtcdProcess& etcd, std::string name) : etcd_(etcd), name_(std::move(name)), port_(FreePort()) {
    Start();
  }

  // Starts it again after a kill, on the same port.
  void Start() {
    process_ = std::make_unique<ChildProcess>(std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe"),
                                                                       "--oracle", std::to_string(port_),
                                                                       etcd_.endpoint(), name_, ClockFile()});
    std::string line;
    ASSERT_TRUE(process_->ReadLine(&line)) << name_ << " does not start";
  }
  void Signal(int signal) const { kill(process_->pid(), signal); }
  void Kill() { process_ = nullptr; }
  void Terminate() {
    Signal(SIGTERM);
    EXPECT_EQ(process_->Wait(), 0);
  }
  void StepClock(int64_t micros) {
    ahead_ += micros;
    const std::string next = ClockFile() + ".new";
    std::ofstream(next) << ahead_;
    std::filesystem::rename(next, ClockFile());
  }

  const std::string& name() const { return name_; }
  std::string target() const { return StrCat("127.0.0.1:", port_); }

 private:
  std::string ClockFile() const { return dir_.path() + "/clock"; }

  const EtcdProcess& etcd_;
  const TempDir dir_;
  const std::string name_;
  const int port_;
  int64_t ahead_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

// The common knowledge of all clients.
class Checker {
 public:
  // Makes one request and checks it. Returns whether it was answered.
  bool Ask(Oracle* oracle, uint32_t count) {
    const uint64_t before = largest_.load();
    const absl::StatusOr<Timestamp> first = oracle->GetTimestamps(count);
    EXPECT_FALSE(absl::IsDataLoss(first.status())) << first.status();  // detected by the client itself
    if (!first.ok()) return false;
    const uint64_t last = first->value() + count - 1;
    for (uint64_t seen = largest_.load(); seen < last && !largest_.compare_exchange_weak(seen, last);) {
    }
    MutexLock lock(&mutex_);
    if (first->value() <= before) {
      ADD_FAILURE() << "got " << *first << ", when " << before << " had been seen before the request was made";
    }
    answers_.emplace_back(first->value(), count);
    return true;
  }

  // Checks that no timestamp was handed out twice. Returns the number of answers.
  size_t CheckNoneTwice() {
    MutexLock lock(&mutex_);
    std::sort(answers_.begin(), answers_.end());
    for (size_t i = 1; i < answers_.size(); ++i) {
      const auto& [first, count] = answers_[i - 1];
      EXPECT_GE(answers_[i].first, first + count) << "handed out twice";
    }
    return answers_.size();
  }

 private:
  std::atomic<uint64_t> largest_{0};
  Mutex mutex_;
  std::vector<std::pair<uint64_t, uint32_t>> answers_ ABSL_GUARDED_BY(mutex_);
};

class FailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::WhyNot().empty()) GTEST_SKIP() << EtcdProcess::WhyNot();
    const char* seed = std::getenv("PERCOLATOR_TEST_SEED");
    const uint64_t number = seed != nullptr ? std::strtoull(seed, nullptr, 10) : std::random_device()();
    std::cout << "PERCOLATOR_TEST_SEED=" << number << "\n";
    random_.seed(number);
    etcd_ = std::make_unique<EtcdProcess>();
    client_ = EtcdClient::Open({etcd_->endpoint()}, TlsFiles()).value();
    for (int i = 0; i < kOracles; ++i) {
      oracles_.push_back(std::make_unique<OracleProcess>(*etcd_, "oracle" + std::to_string(i)));
      targets_.push_back(oracles_.back()->target());
    }
    all_ = RemoteOracle::Open(targets_, TlsFiles(), milliseconds(200)).value();
    ASSERT_LT(TimeToRecover(), kPatience);
    StartClients();
  }

  void TearDown() override {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  void StartClients() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { RunClient(targets_, milliseconds(200)); });
    for (const std::string& target : targets_) {
      threads_.emplace_back([this, target] { RunClient({target}, std::chrono::seconds(10)); });
    }
  }

  void RunClient(const std::vector<std::string>& targets, Duration timeout) {
    const std::unique_ptr<RemoteOracle> oracle = RemoteOracle::Open(targets, TlsFiles(), timeout).value();
    for (uint32_t i = 0; !stop_; ++i) {
      if (!checker_.Ask(oracle.get(), 1 + i % 50)) std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // The time until a request made after this call is answered.
  Duration TimeToRecover() {
    const auto begin = steady_clock::now();
    while (!checker_.Ask(all_.get(), 1)) {
      if (steady_clock::now() - begin > kPatience) break;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return std::chrono::duration_cast<Duration>(steady_clock::now() - begin);
  }

  OracleProcess& Leader() {
    const auto record = client_->Get(StrCat(kPrefix, "oracle"), kPatience);
    for (const auto& oracle : oracles_) {
      if (record.ok() && record->has_value() && (*record)->value().ends_with(oracle->name())) return *oracle;
    }
    return *oracles_.front();  // no oracle leads at the moment
  }

  Duration Between(Duration least, Duration most) {
    return Duration(std::uniform_int_distribution<int64_t>(least.count(), most.count())(random_));
  }

  // Each of these causes a failure, waits until timestamps are drawn again, and repairs. Returns the length of the
  // wait.
  Duration KillLeader() {
    OracleProcess& leader = Leader();
    leader.Kill();
    const Duration took = TimeToRecover();
    leader.Start();
    return took;
  }
  Duration EndLeader() {
    OracleProcess& leader = Leader();
    leader.Terminate();
    const Duration took = TimeToRecover();
    leader.Start();
    return took;
  }
  Duration StopLeader(Duration time) {
    OracleProcess& leader = Leader();
    const auto begin = steady_clock::now();
    leader.Signal(SIGSTOP);
    std::this_thread::sleep_for(milliseconds(20));  // until it continues
    const Duration took = TimeToRecover();
    std::this_thread::sleep_until(begin + time);
    leader.Signal(SIGCONT);
    return took;
  }
  Duration KillEtcd() {
    etcd_->Kill();
    std::this_thread::sleep_for(Between(Duration(0), 2 * kLease));
    etcd_->Start();
    return TimeToRecover();
  }
  Duration StopEtcd() {
    etcd_->Stop();
    std::this_thread::sleep_for(Between(kLease / 2, 2 * kLease));
    etcd_->Continue();
    return TimeToRecover();
  }
  Duration StepClock(int64_t micros) {
    Leader().StepClock(micros);
    std::this_thread::sleep_for(milliseconds(20));  // until it has noticed
    return TimeToRecover();
  }

  std::mt19937_64 random_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<EtcdClient> client_;
  std::vector<std::unique_ptr<OracleProcess>> oracles_;
  std::vector<std::string> targets_;
  std::unique_ptr<RemoteOracle> all_;
  Checker checker_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

int Rounds() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kUsually = 1;
#else
  constexpr int kUsually = 2;
#endif
  const char* wanted = std::getenv("PERCOLATOR_STRESS_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : kUsually;
}

TEST_F(FailoverTest, TimestampsGrowThroughAllFailures) {
  const std::map<std::string, std::function<Duration()>> disturbances = {
      {"leader killed", [&] { return KillLeader(); }},
      {"leader ended", [&] { return EndLeader(); }},
      {"leader stopped for long", [&] { return StopLeader(Between(3 * kLease, 5 * kLease)); }},
      {"leader stopped for about the lease", [&] { return StopLeader(Between(kLease / 2, 2 * kLease)); }},
      {"etcd killed", [&] { return KillEtcd(); }},
      {"etcd stopped", [&] { return StopEtcd(); }},
      {"clock set back", [&] { return StepClock(-10 * kMinute); }},
      {"clock set forward", [&] { return StepClock(kMinute); }},
  };
  std::map<std::string, Duration> longest;
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    std::vector<std::string> order;
    for (const auto& [name, unused] : disturbances) order.push_back(name);
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::string& name : order) {
      const Duration took = disturbances.at(name)();
      EXPECT_LT(took, kPatience) << "no timestamps after: " << name;
      longest[name] = std::max(longest[name], took);
      std::this_thread::sleep_for(Between(Duration(0), kLease));
    }
  }
  for (const auto& [name, took] : longest) std::printf("%s: back after %.0f ms\n", name.c_str(), took.count() / 1e3);
  std::printf("%zu answers checked\n", checker_.CheckNoneTwice());
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  if (argc == 6 && std::string(argv[1]) == "--oracle") return percolator::RunOracle(argv[2], argv[3], argv[4], argv[5]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
