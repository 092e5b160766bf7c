// SPDX-License-Identifier: Apache-2.0

// Real processes under fire: servers, loaders and workers are killed with SIGKILL, or stopped with SIGSTOP for a while,
// at random. The cluster is served in two ways:
//
//   - by a server, which has the data, the oracle and coordination;
//   - as with Bigtable: a server that is used for its data only, through Bigtable's API; two oracles, one of which
//   leads; and etcd, which is under fire too.
//
// Then the fire ends, dead processes are started again, and the test checks:
//
//   - the sum of all accounts is the same in every snapshot, during the fire and after;
//   - both checkers accept the history of all transactions of all processes, in the observed order of their starts and
//   ends: acknowledged commits exist, and timestamps follow real time across processes;
//   - the derived cells follow from the sources;
//   - no lock is left.
//
// The test program is its own child: --child ROLE ARGUMENT DIR NUMBER. Children send their record through one socket
// that keeps whole messages and their order, so an event that is received later was not earlier.
//
// PERCOLATOR_FIRE_SECONDS: the duration for each mode. PERCOLATOR_TEST_SEED: the seed of the kills and stops.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/server.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "src/base/strings.h"
#include "tests/processes/etcd_process.h"
#include "tests/stress/chain.h"
#include "tests/stress/killing.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr int kRecordFd = 3;  // in a child
constexpr uint64_t kIdsPerLife = 1'000'000;
constexpr std::chrono::milliseconds kLease(500);
constexpr std::chrono::milliseconds kSessionTtl(500);
constexpr std::chrono::seconds kPatience(120);  // anything that takes longer hangs

std::string& Program() {
  static std::string* const program = new std::string;
  return *program;
}

std::chrono::milliseconds FireTime() {
  constexpr int kUsually = 40;
  const char* wanted = std::getenv("PERCOLATOR_FIRE_SECONDS");
  return std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : kUsually);
}

ClusterOptions OptionsFor(bool one_step) {
  ClusterOptions options = OptionsForKilling(one_step, /*lock_lease=*/kLease, /*gc_retention=*/std::chrono::seconds(4));
  options.gc_period = std::chrono::seconds(1);
  return options;
}

WorkerOptions ForWorker() {
  WorkerOptions options;
  options.threads = 2;
  options.scanners = 1;
  options.scan_period = std::chrono::milliseconds(200);
  options.min_retry_delay = std::chrono::milliseconds(1);
  return options;
}

// --- The children

int Complain(const absl::Status& status) {
  std::cerr << "child: " << status << "\n";
  return 2;
}

// Serves until it is killed. While it was dead, its port may have been used for another connection.
template <typename AnyServer, typename Options>
int Serve(const Options& options) {
  absl::StatusOr<std::unique_ptr<AnyServer>> server = AnyServer::Start(options);
  while (absl::IsUnavailable(server.status())) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server = AnyServer::Start(options);
  }
  if (!server.ok()) return Complain(server.status());
  for (;;) pause();
}

int RunServer(const std::string& listen, const std::string& dir) {
  ServerOptions options;
  options.listen = listen;
  options.data = dir;
  options.store = OptionsFor(true).store;
  options.session_ttl = kSessionTtl;
  return Serve<Server>(options);
}

// `argument`: the address to listen on, a space, etcd.
int RunOracle(const std::string& argument) {
  const size_t space = argument.find(' ');
  OracleServerOptions options;
  options.listen = argument.substr(0, space);
  options.etcd = {argument.substr(space + 1)};
  options.lease = kLease;
  return Serve<OracleServer>(options);
}

// Tries until the server answers, because it may be dead at this moment.
std::optional<Cluster> OpenPatiently(const std::string& address, const ClusterOptions& options) {
  for (;;) {
    absl::StatusOr<Cluster> cluster = Cluster::Open(address, options);
    if (cluster.ok()) return *std::move(cluster);
    if (!IsTransient(cluster.status())) {
      Complain(cluster.status());
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

int RunLoader(const Cluster& cluster, uint64_t life) {
  PipeRecorder recorder(kRecordFd);
  const std::atomic<bool> never{false};
  const LoadSettings settings{.threads = 3,
                              .seed = life,
                              .first_id = life * kIdsPerLife,
                              .process = static_cast<int>(life * 10),
                              .patient = true};
  return Complain(RunLoad(cluster, &recorder, settings, never));
}

int RunSources(const Cluster& cluster, uint64_t life) {
  std::mt19937_64 random(life);
  for (;;) {
    ChangeSources(cluster, &random).IgnoreError();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::Status StartPatiently(Worker* worker) {
  absl::Status started = worker->Start();
  while (IsTransient(started)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    started = worker->Start();
  }
  return started;
}

int RunWorker(const Cluster& cluster) {
  Worker worker(cluster, ForWorker());
  ObserveChain(&worker);
  if (const absl::Status started = StartPatiently(&worker); !started.ok()) return Complain(started);
  for (;;) pause();
}

int RunChild(const std::string& role, const std::string& argument, const std::string& dir, uint64_t life) {
  if (role == "server") return RunServer(argument, dir);
  if (role == "oracle") return RunOracle(argument);
  const bool one_step = life % 2 == 0;
  const std::optional<Cluster> cluster = OpenPatiently(argument, OptionsFor(one_step));
  if (!cluster.has_value()) return 2;
  if (role == "load") return RunLoader(*cluster, life);
  if (role == "sources") return RunSources(*cluster, life);
  return RunWorker(*cluster);
}

// --- The processes

struct Process {
  std::string role;
  std::string argument;
  pid_t pid = -1;

  bool serves() const { return role == "server" || role == "oracle"; }
};

class FireTest : public ::testing::Test {
 protected:
  FireTest() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    record_in_ = fds[0];
    record_out_ = fds[1];
    const int size = 4 << 20;
    setsockopt(record_out_, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }
  ~FireTest() override {
    for (const Process& process : processes_) End(process);
    close(record_in_);
    if (record_out_ >= 0) close(record_out_);
  }

  // Starts the processes that serve a cluster, and sets its address.
  void PlaceAtServer() {
    const std::string server = AnyAddress();
    processes_.push_back({"server", server});
    address_ = "percolator://" + server;
  }
  void PlaceAsInBigtable() {
    etcd_ = std::make_unique<EtcdProcess>();
    const std::string server = AnyAddress();
    processes_.push_back({"server", server});
    std::string oracles;
    for (int i = 0; i < 2; ++i) {
      const std::string oracle = AnyAddress();
      processes_.push_back({"oracle", StrCat(oracle, " ", etcd_->endpoint())});
      oracles += (i > 0 ? "," : "") + oracle;
    }
    address_ =
        StrCat("bigtable:projects/p/instances/i?oracle=", oracles, "&coord=", etcd_->endpoint(), "&endpoint=", server);
  }

  static std::string AnyAddress() { return StrCat("127.0.0.1:", FreePort()); }

  void Start(Process* process) {
    const uint64_t life = ++lives_;
    process->pid = fork();
    if (process->pid != 0) return;
    dup2(record_out_, kRecordFd);
    execl(Program().c_str(), Program().c_str(), "--child", process->role.c_str(), process->argument.c_str(),
          (dir_.path() + "/data").c_str(), std::to_string(life).c_str(), nullptr);
    _exit(127);
  }

  static void End(const Process& process) {
    if (process.pid <= 0) return;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }

  // Whether it has ended by itself, which is a failure.
  static bool HasEnded(const Process& process) {
    int status = 0;
    return waitpid(process.pid, &status, WNOHANG) == process.pid;
  }

  // Receives the record of the children until all have ended.
  void HearRecord() {
    std::vector<char> message(1 << 20);
    for (ssize_t n = 0; (n = read(record_in_, message.data(), message.size())) > 0;) {
      const std::string line(message.data(), static_cast<size_t>(n) - 1);  // without the end of the line
      EXPECT_TRUE(PipeRecorder::Replay(line, &keeper_)) << line;
      ++events_;
    }
  }

  // The whole test, on a cluster that was placed.
  void Run();
  void Fire(std::mt19937_64* random);
  void StopOrKill(Process* process, std::mt19937_64* random);
  void StopOrKillEtcd(std::mt19937_64* random);
  void Audit(const std::atomic<bool>& stop);
  void LookAtEverything();

  TempDir dir_;
  std::string address_;
  std::unique_ptr<EtcdProcess> etcd_;
  int record_in_ = -1;
  int record_out_ = -1;
  uint64_t lives_ = 0;
  std::vector<Process> processes_;
  HistoryKeeper keeper_;
  int events_ = 0;
  int kills_ = 0;
  int pauses_ = 0;
  std::atomic<int> audits_ = 0;
};

void FireTest::StopOrKill(Process* process, std::mt19937_64* random) {
  ASSERT_FALSE(HasEnded(*process)) << process->role << " ended by itself";
  if ((*random)() % 2 == 0) {
    kill(process->pid, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + (*random)() % 1200));
    kill(process->pid, SIGCONT);
    ++pauses_;
    return;
  }
  End(*process);
  std::this_thread::sleep_for(std::chrono::milliseconds((*random)() % 100));
  Start(process);
  ++kills_;
}

void FireTest::StopOrKillEtcd(std::mt19937_64* random) {
  if ((*random)() % 2 == 0) {
    etcd_->Stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + (*random)() % 1200));
    etcd_->Continue();
    ++pauses_;
  } else {
    etcd_->Kill();
    etcd_->Start();
    ++kills_;
  }
}

void FireTest::Fire(std::mt19937_64* random) {
  const auto end = std::chrono::steady_clock::now() + FireTime();
  while ((std::chrono::steady_clock::now() < end || audits_ == 0) && !HasFatalFailure()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + (*random)() % 500));
    const size_t victim = (*random)() % (processes_.size() + (etcd_ != nullptr ? 1 : 0));
    if (victim < processes_.size()) {
      StopOrKill(&processes_[victim], random);
    } else {
      StopOrKillEtcd(random);
    }
  }
}

// Counts the money repeatedly. A snapshot that could not be read does not count.
void FireTest::Audit(const std::atomic<bool>& stop) {
  const std::optional<Cluster> cluster = OpenPatiently(address_, OptionsFor(true));
  ASSERT_TRUE(cluster.has_value());
  while (!stop) {
    absl::StatusOr<Snapshot> view = cluster->GetSnapshot();
    if (!view.ok()) continue;
    const absl::StatusOr<int64_t> money = CountMoney(*view);
    if (!money.ok()) continue;
    ASSERT_EQ(*money, kAccounts * kOpeningBalance);
    ++audits_;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Calls until the result is not a transient error. An oracle without processor time for its lease loses the lead, even
// if it is not killed.
template <typename Function>
auto Patiently(const Function& function) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  auto answer = function();
  while (IsTransient(answer.status()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    answer = function();
  }
  return answer;
}

void FireTest::LookAtEverything() {
  const std::optional<Cluster> cluster = OpenPatiently(address_, OptionsFor(true));
  ASSERT_TRUE(cluster.has_value());
  const uint64_t last_read = (lives_ + 1) * kIdsPerLife;
  const absl::StatusOr<int64_t> money = ReadEverything(*cluster, &keeper_, last_read);
  ASSERT_THAT(money, IsOk());
  EXPECT_EQ(*money, kAccounts * kOpeningBalance);
  const History lists = keeper_.Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper_.Place(LoadKind::kLists, last_read)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper_.Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;

  Worker worker(*cluster, ForWorker());
  ObserveChain(&worker);
  ASSERT_THAT(StartPatiently(&worker), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kPatience), IsOk());
  ChainCounts chain;
  CheckChain(*cluster, &chain);
  EXPECT_GT(chain.runs, 0);
  const auto quarantined = Patiently([&] { return worker.ListQuarantine(); });
  ASSERT_THAT(quarantined, IsOk());
  EXPECT_TRUE(quarantined->empty());
  EXPECT_THAT(worker.Stop(), IsOk());

  // Locks of dead processes are settled when they are met; garbage collection meets all.
  std::this_thread::sleep_for(OptionsFor(true).gc_retention + kLease);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  size_t locks = 1;
  while (locks > 0 && std::chrono::steady_clock::now() < end) {
    ASSERT_THAT(Patiently([&] { return cluster->CollectGarbage(); }), IsOk());
    const auto left = Patiently([&] { return Inspector(*cluster).ListLocks(); });
    ASSERT_THAT(left, IsOk());
    locks = left->size();
  }
  EXPECT_EQ(locks, 0u);
  std::cout << kills_ << " kills and " << pauses_ << " pauses; " << events_ << " events, " << lists.transactions.size()
            << " transactions on lists; " << audits_ << " audits; " << chain.changes << " changes, " << chain.runs
            << " runs of the first observer\n";
}

void FireTest::Run() {
  std::mt19937_64 random(TestSeed());
  for (Process& process : processes_) Start(&process);
  {
    const std::optional<Cluster> cluster = OpenPatiently(address_, OptionsFor(true));
    ASSERT_TRUE(cluster.has_value());
    ASSERT_THAT(SetUpLoad(*cluster, &keeper_, 1), IsOk());
    ASSERT_THAT(SetUpChain(*cluster), IsOk());
  }
  std::thread hearing([this] { HearRecord(); });
  std::atomic<bool> stop = false;
  std::thread auditing([&] { Audit(stop); });
  for (const char* role : {"load", "load", "sources", "worker", "worker", "worker", "worker"}) {
    processes_.push_back({role, address_});
    Start(&processes_.back());
  }
  Fire(&random);
  stop = true;
  for (Process& process : processes_) {
    if (process.serves()) continue;
    End(process);
    process.pid = -1;
  }
  auditing.join();
  shutdown(record_out_, SHUT_RDWR);
  hearing.join();
  if (!HasFatalFailure()) LookAtEverything();
  EXPECT_GT(audits_, 0);
}

TEST_F(FireTest, AtAServerNothingIsLostAndHistoriesHaveAnExplanation) {
  PlaceAtServer();
  Run();
}

TEST_F(FireTest, InBigtableNothingIsLostAndHistoriesHaveAnExplanation) {
  if (const std::string why = EtcdProcess::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  PlaceAsInBigtable();
  Run();
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  if (argc == 6 && std::string(argv[1]) == "--child") {
    return percolator::RunChild(argv[2], argv[3], argv[4], std::strtoull(argv[5], nullptr, 10));
  }
  percolator::Program() = argv[0];
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
