// SPDX-License-Identifier: Apache-2.0

// The record of a run: its transactions, what each read and wrote, and its outcome.
//
// A history is recorded by the clients of a system, outside of it. The checkers (graph_checker.h, sweep_checker.h)
// judge from a history alone whether the system kept its promise, snapshot isolation with real time:
//
//     HistoryRecorder recorder;
//     auto txn = recorder.Begin(process);                // before the first request
//     txn.Read("x", value);                              // the value that was returned
//     txn.Write("x", "11");
//     txn.Finish(TxnOutcome::kOk, start_ts, commit_ts);  // after the answer
//     ...
//     Findings findings = CheckSweep(recorder.Take());
//
// For a check without findings to mean anything, the history must hold:
// - all data that ever existed: the initial data of a run is written by a recorded transaction;
// - a scan as a read of every key in its range, including absent ones;
// - a transaction that gets no answer as kInfo: it may have happened, may still happen, or never will. A client that
//   finds out later may record it with TxnRecord::Resolve;
// - each attempt of a transaction that is run again as a transaction of its own.
//
// Reads count whatever the outcome of their transaction: one that fails to commit has still read a snapshot (T3, T7,
// T9).

#ifndef PERCOLATOR_SIM_HISTORY_HISTORY_H_
#define PERCOLATOR_SIM_HISTORY_HISTORY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "percolator/spi/mutex.h"
#include "percolator/timestamp.h"

namespace percolator {

// A transaction is named by its index in the history: T0, T1, ...
using TxnId = uint32_t;

struct TxnOperation {
  enum class Kind : uint8_t {
    kRead,    // `value` came back
    kWrite,   // `value` was written; absent: the key was deleted
    kAppend,  // `element` was appended to the list that is the key's value
    kVerify,  // the key was protected from other writers (ReadWrite::Verify)
  };
  Kind kind = Kind::kRead;
  std::string key;
  std::optional<std::string> value;  // absent: the key has no value
  int64_t element = 0;               // unique among all elements appended to this key
};

enum class TxnOutcome : uint8_t {
  kOk,    // reported as committed
  kFail,  // did not happen, and never will
  kInfo,  // unknown: the client died, or its commit returned an unknown outcome
};

struct TxnRecord {
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  int process = 0;
  // Positions in the order of all events that clients see: before the first request, and after the last answer.
  uint64_t invoke = 0;
  uint64_t complete = kNever;
  TxnOutcome outcome = TxnOutcome::kInfo;
  std::vector<TxnOperation> operations;  // in their order
  // The timestamps that the client received. Zero: none was received, or none exists (a transaction without writes has
  // no commit timestamp).
  Timestamp start_ts;
  Timestamp commit_ts;
  // A snapshot as of a time that the reader chose. It need not see commits from before it was invoked.
  bool as_of = false;

  // Sets the outcome of a transaction that was kInfo. Its effect may have come at any time, even after its client was
  // gone, so it still counts as never completed: no later transaction has to see it.
  void Resolve(TxnOutcome resolved, Timestamp resolved_commit_ts);
};

struct History {
  std::vector<TxnRecord> transactions;  // TxnId is the index
};

// One line: T3 (process 1, ok, start 5, commit 9): read x = "10", append x 11
std::string Describe(const History& history, TxnId txn);

// Records a history while it happens. A transaction is in it from Begin on; a client that dies leaves it as kInfo.
//
// Thread-safe. A handle may be copied, and is used by one thread at a time.
class HistoryRecorder {
 public:
  class Handle {
   public:
    void Read(std::string_view key, std::optional<std::string> value);
    void Write(std::string_view key, std::string_view value);
    void Delete(std::string_view key);
    void Append(std::string_view key, int64_t element);
    void Verify(std::string_view key);
    // Called as soon as the timestamp is known, so that the reads of a client that dies can still be judged.
    void Started(Timestamp start_ts);
    // Zero timestamps change nothing. Not called for a transaction without an answer.
    void Finish(TxnOutcome outcome, Timestamp start_ts = {}, Timestamp commit_ts = {});

    TxnId id() const { return id_; }

   private:
    friend class HistoryRecorder;
    Handle(HistoryRecorder* recorder, TxnId id) : recorder_(recorder), id_(id) {}
    void Add(TxnOperation operation);

    HistoryRecorder* recorder_;
    TxnId id_;
  };

  Handle Begin(int process);

  // A copy of the record so far.
  History Copy() const;
  // The record. Empties the recorder; its handles must not be used afterwards.
  History Take();

 private:
  mutable Mutex mutex_;
  History history_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_order_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lists as values: whole numbers separated by single blanks, "1 2 5". An absent value is the empty list. Returns
// nullopt if the text is not exactly such a list.
std::optional<std::vector<int64_t>> ParseList(std::string_view text);
std::string FormatList(const std::vector<int64_t>& list);
void AppendToList(std::string* list, int64_t element);
inline std::string_view ListText(const std::optional<std::string>& value) {
  return value.has_value() ? std::string_view(*value) : std::string_view();
}

// The list without the elements of `end` at its end; nullopt if it does not end with them.
std::optional<std::string_view> WithoutEnd(std::string_view list, std::string_view end);

// For messages: "10" with quotes, or the word absent.
std::string QuoteValue(const std::optional<std::string_view>& value);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_HISTORY_H_
