// SPDX-License-Identifier: Apache-2.0

// percolator wait-idle: waits until the cluster has no notifications. Workers in other processes handle them.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Pauses between two polls.
constexpr milliseconds kFirstPause(10);
constexpr milliseconds kLastPause(500);
// A limit on the count, so that a poll is cheap whatever the backlog is.
constexpr size_t kMaxCounted = 100'000;

struct WaitIdleArguments {
  std::string timeout = "1m";
};

std::string Left(const Backlog& backlog) {
  return (backlog.cells == kMaxCounted ? "at least " : "") + std::to_string(backlog.cells) +
         (backlog.cells == 1 ? " cell waits" : " cells wait") + ", the oldest for " + AgeText(backlog.oldest);
}

// A line that is overwritten by the next one. Prints nothing if the standard error is not a terminal.
class Progress {
 public:
  void Show(const std::string& text) {
    if (!is_terminal_) return;
    std::cerr << "\r\x1b[K" << text << std::flush;
    shown_ = true;
  }
  ~Progress() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  const bool is_terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

// Returns the backlog when it is empty or the timeout has passed.
absl::StatusOr<Backlog> WaitFor(const Cluster& cluster, Duration timeout) {
  const auto end = steady_clock::now() + timeout;
  Progress progress;
  for (milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLastPause)) {
    absl::StatusOr<Backlog> backlog = cluster.CountNotifications(kMaxCounted);
    if (!backlog.ok() && !IsTransient(backlog.status())) return backlog.status();
    if (backlog.ok() && backlog->cells == 0) return backlog;
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left <= milliseconds(0)) return backlog;
    progress.Show(backlog.ok() ? Left(*backlog) : std::string(backlog.status().message()));
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

absl::StatusOr<Exit> WaitIdle(const Shell& shell, const WaitIdleArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Duration timeout, ParseDuration(arguments.timeout));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  // Bounded, so that it can be added to a time.
  const Duration limit = std::min<Duration>(timeout, std::chrono::hours(24 * 365));
  PERCOLATOR_ASSIGN_OR_RETURN(const Backlog left, WaitFor(cluster, limit));
  const bool idle = left.cells == 0;
  if (shell.json) {
    PrintJson(std::cout, {{"idle", idle}, {"cells", left.cells}, {"oldest_us", left.oldest.count()}});
  } else if (idle) {
    std::cout << "idle\n";
  } else {
    Note("not idle after " + AgeText(limit) + ": " + Left(left) +
         ".\nCheck that a worker is running. percolator notifications lists the cells");
  }
  return idle ? Exit::kDone : Exit::kNothing;
}

}  // namespace

void AddWaitIdle(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<WaitIdleArguments>();
  CLI::App* const command = app.add_subcommand("wait-idle", "Waits until no notification is left in the cluster");
  command->add_option("--timeout", arguments->timeout, "Give up after this time; 0s only checks")
      ->type_name("DURATION")
      ->capture_default_str();
  command->footer(R"(Examples:
  percolator wait-idle
  percolator wait-idle --timeout 10m && percolator scan counts
  percolator wait-idle --timeout 0s              only checks

It runs no observers: that is the task of workers. It does not wait for quarantined notifications. A rocksdb: folder is
open in one process at a time, so there the command only shows whether the last worker left notifications.
Exit code 1: notifications are left after the timeout.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return WaitIdle(shell, *arguments); }); });
}

}  // namespace percolator::cli
