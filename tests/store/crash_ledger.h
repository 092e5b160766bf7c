// SPDX-License-Identifier: Apache-2.0

// CrashLedger: the results that the writers of the crash workload got, and a check that a store holds what they imply.
//
// The check does not rely on the store's evaluation: it evaluates conditions and mutations by a model of its own, a
// sorted map per row. A step without an answer, or with an error that leaves it open, doubles the possible states of
// its rows; each row must be in exactly one of them. So it finds a lost write, a half-applied one, one that was never
// sent, and a result that contradicts the row's history.
//
// THREADS  Sending and Done may be called from any thread; Check and Verify when no writer runs.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_LEDGER_H_
#define PERCOLATOR_TESTS_STORE_CRASH_LEDGER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "tests/store/crash_workload.h"

namespace percolator {

class CrashLedger {
 public:
  enum class Expect {
    kNothingLost,  // everything acknowledged is there
    kPrefix,       // the last writes may be missing, but none that was acknowledged before an existing one was
                   // sent
  };

  explicit CrashLedger(const CrashPlan& plan);

  const CrashPlan& plan() const { return plan_; }
  // The step with which `writer` continues. No number is ever reused.
  uint64_t NextStep(uint32_t writer) const;

  void Sending(uint32_t writer, uint64_t step);
  void Done(const CrashReport& report);

  // The number of mutations acknowledged as applied, and the number of those that were compared with a store so far.
  uint64_t acknowledged() const;
  uint64_t verified() const;

  // Reads everything in `store`. Returns one sentence for each error; empty if there is none.
  std::vector<std::string> Check(Store* store, Expect expect);
  // As Check, and begins the next round: the current content has to stay.
  std::vector<std::string> Verify(Store* store, Expect expect);

 private:
  using CellKey = std::tuple<Family, std::string, Timestamp>;
  using RowState = std::map<CellKey, std::string>;
  using RowKey = std::pair<std::string, std::string>;  // table, row
  using Contents = std::map<RowKey, RowState>;

  static constexpr uint64_t kNoAnswer = std::numeric_limits<uint64_t>::max();
  struct Record {
    CrashReport report;
    // Positions in the order of all events, of all writers.
    uint64_t sent = 0;
    uint64_t done = kNoAnswer;
  };
  // The attempts to increment one counter, by the value that they would have written.
  using CounterWriters = std::map<std::string, const Record*>;
  // The possible states of a row.
  using States = std::vector<RowState>;

  static bool Holds(const RowState& row, const Condition& condition);
  static void Apply(const RowMutation& mutation, RowState* row);
  static bool Replay(const RowMutation& mutation, CrashOutcome outcome, States* states);
  static std::string Difference(const RowState& expected, const RowState& found);
  static absl::StatusOr<Contents> ReadAll(Store* store);

  std::vector<std::string> CheckContents(const Contents& found, Expect expect);
  void ReplayStep(const Record& record, bool open, std::map<RowKey, States>* rows);
  uint64_t NewestStep(uint32_t writer, const Contents& found) const;
  void CheckWriter(uint32_t writer, const Contents& found, Expect expect);
  void CheckJoint(uint32_t writer, const Contents& found);
  void CheckOrder(const Contents& found);
  void CheckNothingForeign(const Contents& found);
  void CheckCounters(const Contents& found, Expect expect);
  void CheckCounter(const std::string& row, const CounterWriters& writers, const RowState& found, Expect expect);
  void CheckAcknowledgedIncrements(const std::string& row, const CounterWriters& writers, const RowState& found);
  static bool MayHaveWritten(const CounterWriters& writers, uint64_t version, const std::string& value);
  void Problem(std::string text) { problems_.push_back(std::move(text)); }

  const CrashPlan plan_;

  mutable Mutex mutex_;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> next_step_ ABSL_GUARDED_BY(mutex_);
  // Per writer, since the last Verify, in the order of their steps. Only Verify reads them, when no writer runs.
  std::vector<std::vector<Record>> records_;

  // The content of the store at the last Verify.
  Contents base_;
  uint64_t verified_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_LEDGER_H_
