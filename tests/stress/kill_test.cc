// A process that runs a load on the embedded cluster is killed with SIGKILL, again and again; each time the cluster is
// opened anew, everything is read, and the money counted. At the end the history of all lives is judged by both checkers.
//
// The program is its own child: with --child it runs the load, and writes its record to standard output.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "src/base/strings.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

std::string g_program;

constexpr uint64_t kIdsPerLife = 1'000'000;

ClusterOptions OptionsFor(bool one_step) {
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;  // which survives the death of the process
  options.store.write_buffer_bytes = 1 << 20;      // so that files are written while it lives
  options.commit_in_one_step = one_step;
  options.lock_lease = std::chrono::milliseconds(300);
  options.gc_retention = std::chrono::seconds(2);
  options.gc_period = std::chrono::milliseconds(100);
  return options;
}

int RunChild(const std::string& address, bool one_step, uint64_t life) {
  absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
  if (!cluster.ok()) {
    std::cerr << "child: " << cluster.status() << "\n";
    return 2;
  }
  PipeRecorder recorder(STDOUT_FILENO);
  const std::atomic<bool> never{false};
  const LoadSettings settings{
      .threads = 6, .seed = life, .first_id = life * kIdsPerLife, .process = static_cast<int>(life * 10)};
  const absl::Status status = RunLoad(cluster->get(), &recorder, settings, never);
  std::cerr << "child: " << status << "\n";
  return 2;
}

// A life of the child: until it is killed. Its record goes to the keeper.
class Child {
 public:
  Child(const std::string& address, bool one_step, uint64_t life) {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], STDOUT_FILENO);
      close(fds[0]);
      close(fds[1]);
      execl(g_program.c_str(), g_program.c_str(), "--child", address.c_str(), one_step ? "1" : "0",
            std::to_string(life).c_str(), nullptr);
      _exit(127);
    }
    close(fds[1]);
    fd_ = fds[0];
  }

  // Reads `lines` lines, kills it, and reads what it had still written. False: it ended by itself.
  bool RunAndKill(int lines, HistoryKeeper* keeper, int* events) {
    std::string buffered;
    bool killed = false;
    char chunk[65536];
    for (ssize_t n = 0; (n = read(fd_, chunk, sizeof(chunk))) > 0;) {
      buffered.append(chunk, static_cast<size_t>(n));
      size_t start = 0;
      for (size_t end = 0; (end = buffered.find('\n', start)) != std::string::npos; start = end + 1) {
        EXPECT_TRUE(PipeRecorder::Replay(buffered.substr(start, end - start), keeper));
        ++*events;
        if (--lines == 0) {
          kill(pid_, SIGKILL);
          killed = true;
        }
      }
      buffered.erase(0, start);
    }
    close(fd_);
    int status = 0;
    waitpid(pid_, &status, 0);
    return killed && WIFSIGNALED(status);
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

// For each mode. With a sanitizer everything takes several times as long.
int Cycles() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kDefault = 5;
#else
  constexpr int kDefault = 30;
#endif
  const char* wanted = std::getenv("PERCOLATOR_STRESS_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : kDefault;
}

class KillTest : public ::testing::TestWithParam<bool> {};

TEST_P(KillTest, NothingIsLostAndNothingIsHalf) {
  const bool one_step = GetParam();
  TempDir dir;
  const std::string address = "rocksdb:" + dir.path() + "/c";
  HistoryKeeper keeper;
  {
    absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(SetUpLoad(cluster->get(), &keeper, 1), IsOk());
    ASSERT_THAT((*cluster)->Close(), IsOk());
  }
  const char* given = std::getenv("PERCOLATOR_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "PERCOLATOR_TEST_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  int events = 0;
  uint64_t locks = 0;
  uint64_t last_read = 0;
  for (int life = 1; life <= Cycles(); ++life) {
    Child child(address, one_step, static_cast<uint64_t>(life));
    ASSERT_TRUE(child.RunAndKill(1 + static_cast<int>(random() % 800), &keeper, &events))
        << "the child ended by itself";
    absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    last_read = static_cast<uint64_t>(life) * kIdsPerLife + kIdsPerLife - 1;
    const absl::StatusOr<int64_t> total = ReadEverything(cluster->get(), &keeper, last_read);
    ASSERT_THAT(total, IsOk());
    ASSERT_EQ(*total, kAccounts * kOpeningBalance) << "after kill " << life;
    locks += (*cluster)->stats().locks_met;
    ASSERT_THAT((*cluster)->Close(), IsOk());
  }
  const History lists = keeper.Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper.Place(LoadKind::kLists, last_read)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper.Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;
  std::cout << Cycles() << " kills, " << events << " events, " << lists.transactions.size()
            << " transactions on lists, " << locks << " locks of dead processes met\n";
  EXPECT_GT(events, 20 * Cycles());
}

INSTANTIATE_TEST_SUITE_P(Modes, KillTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--child") {
    return percolator::RunChild(argv[2], std::string(argv[3]) == "1", std::strtoull(argv[4], nullptr, 10));
  }
  percolator::g_program = argv[0];
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
