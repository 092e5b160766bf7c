// SPDX-License-Identifier: Apache-2.0

// A process that indexes a site is killed repeatedly with SIGKILL while the site changes: while it crawls, while its
// observers run, while it opens the index of its predecessor. After every few kills the index is opened again, its work
// finished, and the result compared with that of a batch program on the folder.
//
// The program is its own child: with --child it crawls and observes until it is killed. It writes a dot to standard
// output when it has begun, and after every crawl that found a change. PERCOLATOR_STRESS_KILLS: the number of kills for
// each mode.

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/webindex/index.h"
#include "gtest/gtest.h"
#include "tests/stress/killing.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/webindex/batch.h"
#include "tests/webindex/site.h"

namespace webindex {
namespace {

using percolator::Child;
using percolator::IsOk;
using percolator::TempDir;
using std::chrono::milliseconds;

constexpr int kKillsBetweenLooks = 3;
constexpr std::chrono::seconds kPatience(120);

WebIndexOptions OptionsFor(const std::string& dir, bool one_step) {
  WebIndexOptions options;
  options.address = "rocksdb:" + dir + "/data";
  options.cluster = percolator::OptionsForKilling(one_step, milliseconds(200), milliseconds(1000));
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
  std::cout << "." << std::flush;
  for (;;) {
    const absl::StatusOr<CrawlResult> updated = (*index)->Update();
    if (!updated.ok()) {
      std::cerr << "child: " << updated.status() << "\n";
      return 2;
    }
    if (updated->loaded + updated->deleted > 0) std::cout << "." << std::flush;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// Whether the child writes a dot, or ends, within that time. Consumes all available dots.
bool SaysSomething(const Child& child, milliseconds time) {
  pollfd waiting{.fd = child.fd(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, static_cast<int>(time.count())) <= 0) return false;
  char dots[64];
  (void)!read(child.fd(), dots, sizeof(dots));
  return true;
}

class KillWebIndexTest : public ::testing::TestWithParam<bool> {
 protected:
  // The moment at which the child is killed.
  enum class Moment { kOpening, kAnyTime, kChangesAreLoaded };

  Moment AnyMoment() {
    if (random_() % 8 == 0) return Moment::kOpening;
    return random_() % 2 == 0 ? Moment::kAnyTime : Moment::kChangesAreLoaded;
  }

  // The child lives for a while, in which the site changes.
  void LiveAndDie(const std::string& dir, Site* site, Moment moment) {
    Child child(dir, GetParam(), 0);
    if (moment != Moment::kOpening) {
      EXPECT_TRUE(SaysSomething(child, kPatience)) << "the child does not begin";
    }
    const auto end =
        std::chrono::steady_clock::now() + milliseconds(1 + random_() % (moment == Moment::kOpening ? 40 : 200));
    while (std::chrono::steady_clock::now() < end) {
      if (random_() % 3 == 0) site->Change();
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4000));
    }
    if (moment == Moment::kChangesAreLoaded) ChangeUntilLoaded(child, site);
    child.Kill();
    ASSERT_TRUE(child.WaitForEnd()) << "the child ended by itself";
  }

  // Returns just after the child has loaded changes: its observers have begun, and have not finished.
  void ChangeUntilLoaded(const Child& child, Site* site) {
    (void)SaysSomething(child, milliseconds(0));  // discards dots for earlier changes
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
      site->Change();  // may change nothing
    } while (!SaysSomething(child, milliseconds(500)) && std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
  }

  // The number of cells that wait to be observed.
  size_t Waiting(const WebIndexOptions& options) {
    const auto cluster = percolator::Cluster::Open(options.address, options.cluster);
    EXPECT_THAT(cluster, IsOk());
    if (!cluster.ok()) return 0;
    const absl::StatusOr<percolator::Backlog> backlog = cluster->CountNotifications();
    EXPECT_THAT(backlog, IsOk());
    return backlog.ok() ? backlog->cells : 0;
  }

  void FinishAndCompare(const std::string& dir) {
    const absl::StatusOr<std::unique_ptr<WebIndex>> index = WebIndex::Open(OptionsFor(dir, GetParam()));
    ASSERT_THAT(index, IsOk());
    ASSERT_THAT((*index)->Update(), IsOk());
    ASSERT_THAT((*index)->WaitUntilIdle(kPatience), IsOk());
    const auto quarantined = (*index)->worker().ListQuarantine();
    ASSERT_THAT(quarantined, IsOk());
    EXPECT_TRUE(quarantined->empty());
    {
      const absl::StatusOr<percolator::Snapshot> now = (*index)->cluster().GetSnapshot();
      ASSERT_THAT(now, IsOk());
      const BatchIndex batch = ComputeBatch(dir + "/site", kSiteBase);
      for (const std::string& difference : Differences(batch, *now, (*index)->serving())) ADD_FAILURE() << difference;
    }
    ASSERT_THAT((*index)->Close(), IsOk());
  }

  std::mt19937_64 random_;
};

TEST_P(KillWebIndexTest, TheIndexEqualsTheBatchAfterKills) {
  const uint64_t seed = percolator::TestSeed();
  random_.seed(seed);
  const TempDir dir;
  Site site(dir.path() + "/site", seed);
  site.AddPages(40);
  int looks = 0;
  int in_the_middle = 0;
  const int kills = percolator::Kills(45, 6);
  for (int kill = 1; kill <= kills; ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill));
    const bool look = kill % kKillsBetweenLooks == 0;
    const Moment moment = look ? Moment::kChangesAreLoaded : AnyMoment();
    ASSERT_NO_FATAL_FAILURE(LiveAndDie(dir.path(), &site, moment));
    for (uint64_t changes = random_() % 5; changes > 0; --changes) site.Change();
    if (!look) continue;
    ++looks;
    // The machine decides how soon observers finish, so the child is killed again until they had not.
    size_t waiting = Waiting(OptionsFor(dir.path(), GetParam()));
    for (int again = 0; waiting == 0 && again < 10; ++again) {
      ASSERT_NO_FATAL_FAILURE(LiveAndDie(dir.path(), &site, moment));
      waiting = Waiting(OptionsFor(dir.path(), GetParam()));
    }
    if (waiting > 0) ++in_the_middle;
    FinishAndCompare(dir.path());
    if (HasFailure()) return;
  }
  std::cout << kills << " kills; at " << in_the_middle << " of " << looks << " checks observers had been interrupted\n";
  EXPECT_GE(2 * in_the_middle, looks);
}

INSTANTIATE_TEST_SUITE_P(Modes, KillWebIndexTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace webindex

int main(int argc, char** argv) {
  return percolator::KillTestMain(argc, argv, [](const std::string& dir, bool one_step, uint64_t /*number*/) {
    return webindex::RunChild(dir, one_step);
  });
}
