// A load on a cluster that is recorded as it goes: list appends and money transfers by many threads.
//
// The record goes to a Recorder: one that keeps it as histories for the checkers of sim/history, or one that writes it to
// a pipe, for a process that is going to be killed.

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

// The two kinds of transactions have a history each: the graph checker takes lists only.
enum class LoadKind : uint8_t { kLists, kBank };

class Recorder {
 public:
  virtual ~Recorder() = default;

  // A transaction begins: before anything is asked of the cluster.
  virtual void Begin(LoadKind kind, uint64_t id, int process) = 0;
  // It has done this, and is about to commit.
  virtual void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) = 0;
  // And is told the outcome.
  virtual void Told(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) = 0;
};

// Keeps histories. Ids are the caller's own, and never used twice.
class HistoryKeeper : public Recorder {
 public:
  void Begin(LoadKind kind, uint64_t id, int process) override;
  void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) override;
  void Told(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) override;

  History Copy(LoadKind kind) const;
  // Where a transaction is in its history.
  TxnId Place(LoadKind kind, uint64_t id) const;

 private:
  mutable Mutex mutex_;
  uint64_t order_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<LoadKind, History> histories_ ABSL_GUARDED_BY(mutex_);
  std::map<LoadKind, std::map<uint64_t, TxnId>> places_ ABSL_GUARDED_BY(mutex_);
};

// Writes each event as a line to a file descriptor, whole lines in their order; and how to read a line.
class PipeRecorder : public Recorder {
 public:
  explicit PipeRecorder(int fd) : fd_(fd) {}
  void Begin(LoadKind kind, uint64_t id, int process) override;
  void Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) override;
  void Told(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) override;

  // Passes the event on a line, without its end, to `recorder`. False: it is none.
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
  // Errors that pass (the cluster can't be reached, a snapshot lasted too long, an outcome is not known) end a transaction
  // and not the load.
  bool patient = false;
};

inline constexpr int kAccounts = 16;
inline constexpr int kOpeningBalance = 100;

// Tables and accounts. The opening is a recorded transaction with this id.
absl::Status SetUpLoad(const Cluster& cluster, Recorder* recorder, uint64_t id);

// Runs the load until `stop`. An error other than a conflict ends it, and is returned, unless it is patient.
absl::Status RunLoad(const Cluster& cluster, Recorder* recorder, const LoadSettings& settings,
                     const std::atomic<bool>& stop);

// The money in a snapshot.
absl::StatusOr<int64_t> CountMoney(const ReadView& view);

// Reads everything in one transaction of each kind, recorded under this id, and says what money there is.
absl::StatusOr<int64_t> ReadEverything(const Cluster& cluster, Recorder* recorder, uint64_t id);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STRESS_LOAD_H_
