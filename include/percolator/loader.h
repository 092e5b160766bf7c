// Loader: many load transactions, run by many threads.
//
//     Loader loader(cluster.get(), {.threads = 8, .expected = files.size(), .on_progress = Print});
//     for (const File& file : files) {
//       loader.Add([&file](ReadWrite& t) { return t.Set("documents", file.url, "contents", file.text); });
//     }
//     absl::Status status = loader.Finish();
//
// Add waits when the queue is full, and when observers fall behind: while more notifications than max_backlog wait in the
// cluster, or more than a few and the oldest of them is older than max_age, no load transaction begins. So loading goes as
// fast as the slowest part of the pipeline, and not faster. (The loader looks at the cluster itself; the workers may be anywhere. While
// none runs, what observers of the cluster have to do only grows, and a loader with these bounds waits for one.)
//
// A load function is run again on a conflict, as by Cluster::Transact. An error of one, returned or thrown, does not stop
// the others; Finish returns the first.

#ifndef PERCOLATOR_LOADER_H_
#define PERCOLATOR_LOADER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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
  uint64_t done = 0;      // load transactions that have ended, whatever their end
  uint64_t failed = 0;    // of these, with an error
  uint64_t expected = 0;  // as the options say; zero: not known
  double per_second = 0;  // over the last seconds
  Duration elapsed{0};
  Duration remaining{0};   // at this rate; zero: not known
  size_t backlog = 0;      // notifications that wait in the cluster, as seen last
  bool held_back = false;  // waiting for observers
};
// "12,000 of 50,000 (24 %), 3,400/s, 11 s left, backlog 250"
std::string ToText(const LoadProgress& progress);

struct LoaderOptions {
  int threads = 8;
  size_t queue = 1000;                          // functions that wait for a thread
  size_t max_backlog = 10'000;                  // cells with notifications; zero: no bound
  Duration max_age = std::chrono::seconds(10);  // of the oldest; zero: no bound
  size_t few =
      100;  // cells, whose age does not matter: some observer may keep failing for them, which must not stop the rest
  TransactOptions transact;  // how each is run
  uint64_t expected = 0;     // how many will be added, for the progress
  // Called about once a second, and at the end, by one thread at a time. Must not call Add or Finish. What it throws is an
  // error like that of a load function.
  std::function<void(const LoadProgress&)> on_progress;
};

// Thread-safe. Cluster::Close stops it too; it may be destroyed before or after.
class Loader {
 public:
  using Function = std::function<absl::Status(ReadWrite& t)>;

  // With options that can't be, threads or queue less than one or a negative max_age, nothing is run, and Finish says
  // kInvalidArgument.
  explicit Loader(Cluster* cluster, LoaderOptions options = {});
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  // Finishes, if Finish was not called.
  ~Loader();

  // Takes a function to be run soon; waits for room. REQUIRES: Finish was not called.
  void Add(Function load);
  // Waits until all that was added has ended. The first error, if there was one. If the cluster was closed before a function
  // had begun, it is not run, and that is an error. Returns kFailedPrecondition, and does nothing, if called by a load function.
  absl::Status Finish();

  LoadProgress progress() const;

 private:
  std::shared_ptr<internal::Engine> engine_;
  std::shared_ptr<internal::LoaderCore> core_;  // the engine refers to it weakly, to stop it on Close
};

}  // namespace percolator

#endif  // PERCOLATOR_LOADER_H_
