// A process that indexes a site is killed with SIGKILL, again and again, while the site changes: as it crawls, as its
// observers run, as it opens what the one before has left. Every few deaths the index is opened once more, made to finish,
// and compared with what a batch program makes of the folder.
//
// The program is its own child: with --child it crawls and observes until it is killed, and says on standard output when it
// has begun. PERCOLATOR_STRESS_KILLS: how often, for each mode.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/webindex/index.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/webindex/batch.h"
#include "tests/webindex/site.h"

namespace webindex {
namespace {

using percolator::IsOk;
using percolator::TempDir;
using std::chrono::milliseconds;

std::string g_program;

constexpr int kKillsBetweenLooks = 3;

WebIndexOptions OptionsFor(const std::string& dir, bool one_step) {
  WebIndexOptions options;
  options.address = "rocksdb:" + dir + "/data";
  options.cluster.store.durability = percolator::Durability::kNoSync;  // which survives the death of the process
  options.cluster.store.write_buffer_bytes = 1 << 20;                  // so that files are written while it lives
  options.cluster.commit_in_one_step = one_step;
  options.cluster.lock_lease = milliseconds(200);
  options.cluster.gc_retention = std::chrono::seconds(1);
  options.cluster.gc_period = milliseconds(100);
  options.worker.threads = 3;
  options.worker.scanners = 2;
  options.worker.scan_period = milliseconds(50);
  options.crawl.folder = dir + "/site";
  options.crawl.base = std::string(kSiteBase);
  options.crawl.threads = 2;
  return options;
}

int RunChild(const std::string& dir, bool one_step) {
  absl::StatusOr<std::unique_ptr<WebIndex>> index = WebIndex::Open(OptionsFor(dir, one_step));
  if (!index.ok()) {
    std::cerr << "child: " << index.status() << "\n";
    return 2;
  }
  std::cout << "begun" << std::endl;
  for (;;) {
    if (const auto updated = (*index)->Update(); !updated.ok()) {
      std::cerr << "child: " << updated.status() << "\n";
      return 2;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// A life of the child.
class Child {
 public:
  Child(const std::string& dir, bool one_step) {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], STDOUT_FILENO);
      close(fds[0]);
      close(fds[1]);
      execl(g_program.c_str(), g_program.c_str(), "--child", dir.c_str(), one_step ? "1" : "0", nullptr);
      _exit(127);
    }
    close(fds[1]);
    fd_ = fds[0];
  }

  // Returns when it has opened the index, or has ended.
  void WaitUntilBegun() const {
    char chunk[64];
    (void)!read(fd_, chunk, sizeof(chunk));
  }

  // False: it had ended by itself.
  bool Kill() {
    kill(pid_, SIGKILL);
    close(fd_);
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

// For each mode. With a sanitizer everything takes several times as long.
int Kills() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kDefault = 6;
#else
  constexpr int kDefault = 45;
#endif
  const char* wanted = std::getenv("PERCOLATOR_STRESS_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : kDefault;
}

class KillWebIndexTest : public ::testing::TestWithParam<bool> {
 protected:
  // The child lives for a while, in which the site changes.
  void LiveAndDie(const std::string& dir, Site* site) {
    Child child(dir, GetParam());
    const bool while_opening = random_() % 8 == 0;
    if (!while_opening) child.WaitUntilBegun();
    const auto end = std::chrono::steady_clock::now() + milliseconds(1 + random_() % (while_opening ? 40 : 200));
    while (std::chrono::steady_clock::now() < end) {
      if (random_() % 3 == 0) site->Change();
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4000));
    }
    ASSERT_TRUE(child.Kill()) << "the child ended by itself";
  }

  // How many cells wait to be observed.
  size_t Waiting(const WebIndexOptions& options) {
    auto cluster = percolator::Cluster::Open(options.address, options.cluster);
    EXPECT_THAT(cluster, IsOk());
    if (!cluster.ok()) return 0;
    const absl::StatusOr<percolator::Backlog> backlog = (*cluster)->NotificationBacklog();
    EXPECT_THAT(backlog, IsOk());
    return backlog.ok() ? backlog->cells : 0;
  }

  void FinishAndCompare(const std::string& dir) {
    const absl::StatusOr<std::unique_ptr<WebIndex>> index = WebIndex::Open(OptionsFor(dir, GetParam()));
    ASSERT_THAT(index, IsOk());
    ASSERT_THAT((*index)->Update(), IsOk());
    ASSERT_THAT((*index)->WaitUntilIdle(std::chrono::seconds(60)), IsOk());
    const auto quarantined = (*index)->worker().ListQuarantine();
    ASSERT_THAT(quarantined, IsOk());
    EXPECT_TRUE(quarantined->empty());
    {
      absl::StatusOr<percolator::Snapshot> now = (*index)->cluster().Now();
      ASSERT_THAT(now, IsOk());
      const BatchIndex batch = ComputeBatch(dir + "/site", kSiteBase);
      for (const std::string& difference : Differences(batch, *now, (*index)->serving())) ADD_FAILURE() << difference;
    }
    ASSERT_THAT((*index)->Close(), IsOk());
  }

  std::mt19937_64 random_;
};

TEST_P(KillWebIndexTest, TheIndexIsThatOfTheFolder) {
  const char* given = std::getenv("PERCOLATOR_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "PERCOLATOR_TEST_SEED=" << seed << "\n";
  random_.seed(seed);
  const TempDir dir;
  Site site(dir.path() + "/site", seed);
  site.AddPages(40);
  int looks = 0;
  int in_the_middle = 0;
  for (int kill = 1; kill <= Kills(); ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill));
    ASSERT_NO_FATAL_FAILURE(LiveAndDie(dir.path(), &site));
    for (uint64_t changes = random_() % 5; changes > 0; --changes) site.Change();
    if (kill % kKillsBetweenLooks != 0) continue;
    ++looks;
    if (Waiting(OptionsFor(dir.path(), GetParam())) > 0) ++in_the_middle;
    FinishAndCompare(dir.path());
    if (HasFailure()) return;
  }
  std::cout << Kills() << " kills; at " << in_the_middle << " of " << looks << " looks observers had been at work\n";
  EXPECT_GT(2 * in_the_middle, looks);
}

INSTANTIATE_TEST_SUITE_P(Modes, KillWebIndexTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace webindex

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--child") return webindex::RunChild(argv[2], std::string(argv[3]) == "1");
  webindex::g_program = argv[0];
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
