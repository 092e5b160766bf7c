// SPDX-License-Identifier: Apache-2.0

// A recorded load on a cluster: list appends and money transfers by many threads.
//
// The record goes to a Recorder: one that keeps it as histories for the checkers of sim/history, or one that writes it
// to a pipe, for a process that will be killed.

#ifndef PERCOLATOR_TESTS_STRESS_LOAD_H_
#define PERCOLATOR_TESTS_STRESS_LOAD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/spi/mutex.h"
#include "sim/history/history.h"

namespace percolator {

// Each of the two kinds of transactions has a history of its own: the graph checker accepts only lists.
enum class LoadKind : uint8_t { kLists, kBank };

class Recorder {
 public:
  virtual ~Recorder() = default;

  // A transaction begins: called before the first request to the cluster.
  virtual void Begin(LoadKind kind, uint64_t id, int process) = 0;
  // The transaction has done this, and is about to commit.
  virtual void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) = 0;
  // The transaction has this outcome.
  virtual void Ended(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) = 0;
};

// Keeps histories. The caller chooses the ids, and never reuses one.
class HistoryKeeper : public Recorder {
 public:
  void Begin(LoadKind kind, uint64_t id, int process) override;
  void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) override;
  void Ended(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) override;

  History Copy(LoadKind kind) const;
  // The place of a transaction in its history.
  TxnId Place(LoadKind kind, uint64_t id) const;

 private:
  mutable Mutex mutex_;
  uint64_t order_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<LoadKind, History> histories_ ABSL_GUARDED_BY(mutex_);
  std::map<LoadKind, std::map<uint64_t, TxnId>> places_ ABSL_GUARDED_BY(mutex_);
};

// Writes each event as a line to a file descriptor, in order; and parses such lines.
class PipeRecorder : public Recorder {
 public:
  explicit PipeRecorder(int fd) : fd_(fd) {}
  void Begin(LoadKind kind, uint64_t id, int process) override;
  void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) override;
  void Ended(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) override;

  // Passes the event of a line, without its end, to `recorder`. Returns false if the line is malformed.
  static bool Replay(const std::string& line, Recorder* recorder);

 private:
  void WriteLine(const std::string& line);

  const int fd_;
  Mutex mutex_;
};

struct LoadSettings {
  int threads = 8;
  uint64_t seed = 1;
  uint64_t first_id = 1;  // of transactions; a run uses less than a million
  int process = 0;        // the first thread's, in the histories
  // If true, a transient error (the cluster cannot be reached, a snapshot lasted too long, an outcome is unknown) ends
  // a transaction but not the load.
  bool patient = false;
};

inline constexpr int kAccounts = 16;
inline constexpr int kOpeningBalance = 100;

// Creates tables and accounts, in a recorded transaction with this id.
absl::Status SetUpLoad(const Cluster& cluster, Recorder* recorder, uint64_t id);

// Runs the load until `stop`. An error other than a conflict ends it and is returned, unless `patient` allows it.
absl::Status RunLoad(const Cluster& cluster, Recorder* recorder, const LoadSettings& settings,
                     const std::atomic<bool>& stop);

// The money in a snapshot.
absl::StatusOr<int64_t> CountMoney(const ReadView& view);

// Reads everything in one transaction of each kind, recorded under this id. Returns the money.
absl::StatusOr<int64_t> ReadEverything(const Cluster& cluster, Recorder* recorder, uint64_t id);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STRESS_LOAD_H_
