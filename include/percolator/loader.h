// SPDX-License-Identifier: Apache-2.0

// Loader: many load transactions, run by many threads.
//
//     Loader loader(cluster, {.threads = 8, .expected = files.size(), .on_progress = Print});
//     for (const File& file : files) {
//       loader.Add([&file](ReadWrite& t) { t.Set(kContents, file.url, file.text); });
//     }
//     PERCOLATOR_RETURN_IF_ERROR(loader.Finish());
//
// Add waits while the queue is full. No load transaction begins while the observers are behind:
// while more than max_backlog notifications wait in the cluster, or the oldest of them is older
// than max_backlog_age. So loading is as fast as the slowest part of the pipeline. The loader reads
// the backlog from the cluster, so the workers may run in other processes. If none runs, the
// backlog of an observed table only grows, and a loader with these bounds waits for a worker to
// start.
//
// A load function runs again on a conflict, as in Cluster::Transact. An error of a load function,
// returned or thrown, does not stop the others. Finish returns the first error.

#ifndef PERCOLATOR_LOADER_H_
#define PERCOLATOR_LOADER_H_

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "percolator/options.h"
#include "percolator/transaction.h"

namespace percolator {

class Cluster;
namespace internal {
class Engine;
class LoaderCore;
}  // namespace internal

struct LoadProgress {
  uint64_t done = 0;       // load transactions that have ended
  uint64_t failed = 0;     // load transactions that ended with an error
  uint64_t expected = 0;   // LoaderOptions::expected
  double per_second = 0;   // during the last seconds
  Duration elapsed{0};     // since the loader was constructed
  Duration remaining{0};   // at this rate; zero: unknown
  size_t backlog = 0;      // notifications waiting in the cluster when it was last read
  bool throttled = false;  // waiting for observers
};
// Returns "12,000 of 50,000 (24 %), 3,400/s, 11 s left, backlog 250".
std::string ToString(const LoadProgress& progress);

struct LoaderOptions {
  int threads = 8;
  // Maximum number of functions waiting for a thread.
  size_t max_queued = 1000;
  // Maximum number of cells with notifications in the cluster; zero: no limit.
  size_t max_backlog = 10'000;
  // Maximum age of the oldest notification; zero: no limit.
  Duration max_backlog_age = std::chrono::seconds(10);
  // With at most this many notifications in the cluster their age is ignored. So an observer that
  // keeps failing for a few cells does not stop the loader.
  size_t max_stuck_cells = 100;
  // How each load transaction runs.
  TransactionOptions transaction = {};
  // How many functions will be added; for LoadProgress. Zero: unknown.
  uint64_t expected = 0;
  // Called about once a second and at the end, by one thread at a time. Must not call Add or
  // Finish. An exception that it throws counts as an error of a load function.
  std::function<void(const LoadProgress&)> on_progress = nullptr;
};

// Runs load transactions. Thread-safe. Cluster::Close stops it; it may be destroyed before or after
// that.
class Loader {
 public:
  using Function = std::function<absl::Status(ReadWrite& t)>;

  // If an option is out of range, no function runs and Finish returns InvalidArgument.
  explicit Loader(const Cluster& cluster, LoaderOptions options = {});
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  // Finishes, if Finish was not called. In a load function, an observer or another callback of this
  // cluster it does not wait: the added functions still run, and Cluster::Close waits for those
  // that have begun.
  ~Loader();

  // Queues a transaction function that returns void or absl::Status, as for Cluster::Transact.
  // Waits while the queue is full. After Finish the function does not run: that counts as an error,
  // FailedPrecondition, which Finish returns if it is called again and there was none before.
  template <std::invocable<ReadWrite&> Fn>
  void Add(Fn load) {
    if constexpr (std::is_same_v<Fn, Function> ||
                  !std::is_void_v<std::invoke_result_t<Fn&, ReadWrite&>>) {
      Push(std::move(load));
    } else {
      Push([load = std::move(load)](ReadWrite& t) mutable {
        return load(t), internal::FirstReadError(t);
      });
    }
  }
  // Waits until every added function has ended. Returns the first error. A function that had not
  // begun when the cluster was closed does not run, which is an error. Returns FailedPrecondition,
  // and does nothing, if called by a load function, an observer or another callback of this
  // cluster.
  absl::Status Finish();

  LoadProgress progress() const;

 private:
  void Push(Function load);

  std::shared_ptr<internal::Engine> engine_;
  // The engine refers to it weakly, to stop it on Close.
  std::shared_ptr<internal::LoaderCore> core_;
};

}  // namespace percolator

#endif  // PERCOLATOR_LOADER_H_
