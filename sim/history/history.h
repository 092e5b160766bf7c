// The record of a run: which transactions there were, what each read and wrote, and what became of it.
//
// A history is kept outside of the system it tells of, by those who use it. The checkers beside it (graph_checker.h,
// sweep_checker.h) judge from a history alone whether the system kept its promise, snapshot isolation with real time:
//
//     HistoryRecorder recorder;
//     auto txn = recorder.Begin(process);              // before anything is asked of the system
//     txn.Read("x", value);                            // what came back
//     txn.Write("x", "11");
//     txn.Finish(TxnOutcome::kOk, start_ts, commit_ts);  // when the answer is there
//     ...
//     Findings findings = CheckSweep(recorder.Take());
//
// What belongs into it, so that silence means something:
//   - everything that was ever there: the data a run begins with is written by a recorded transaction;
//   - a scan as a read of every key in its range, also of those that were absent;
//   - a transaction that gets no answer stays kInfo. It may have happened, may still happen, or never will. Who can find
//     out later, may say so with TxnRecord::Resolve;
//   - each try of a transaction that is run again as a transaction of its own.
//
// Reads count whatever becomes of their transaction: one that fails to commit has still read a snapshot (T3, T7, T9).

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

// A transaction is named by its place in the history: T0, T1, ...
using TxnId = uint32_t;

struct TxnOperation {
  enum class Kind : uint8_t {
    kRead,    // `value` came back
    kWrite,   // `value` was written; none: the key was deleted
    kAppend,  // `element` was put at the end of the list that is the key's value
    kVerify,  // the key was held against writers (ReadWrite::Verify)
  };
  Kind kind = Kind::kRead;
  std::string key;
  std::optional<std::string> value;  // none: absent
  int64_t element = 0;               // unique among all that are ever appended to this key
};

enum class TxnOutcome : uint8_t {
  kOk,    // committed, and said so
  kFail,  // did not happen, and never will
  kInfo,  // nobody knows: the client died, or was told that the outcome is unknown
};

struct TxnRecord {
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  int process = 0;
  // Places in the order of all events that clients see: before anything was asked, after the answer was there.
  uint64_t invoke = 0;
  uint64_t complete = kNever;
  TxnOutcome outcome = TxnOutcome::kInfo;
  std::vector<TxnOperation> operations;  // in their order
  // What the client was told. Zero: nothing, or there is none (a transaction without writes has no commit timestamp).
  Timestamp start_ts;
  Timestamp commit_ts;
  // A snapshot as of a time that the reader chose: it need not see what was committed before it was invoked.
  bool as_of = false;

  // Says what became of a transaction that was kInfo. Its effect may have come at any time, also after its client was
  // gone, so it still counts as never completed: no transaction has to see it because it came later.
  void Resolve(TxnOutcome resolved, Timestamp resolved_commit_ts);
};

struct History {
  std::vector<TxnRecord> transactions;  // TxnId is the index
};

// One line: T3 (process 1, ok, start 5, commit 9): read x = "10", append x 11
std::string Describe(const History& history, TxnId txn);

// Keeps a history while it happens. A transaction is in it from Begin on; a client that dies just leaves it as kInfo.
//
// THREADS  Safe. One handle is used by one thread at a time, and may be copied.
class HistoryRecorder {
 public:
  class Handle {
   public:
    void Read(std::string_view key, std::optional<std::string> value);
    void Write(std::string_view key, std::string_view value);
    void Delete(std::string_view key);
    void Append(std::string_view key, int64_t element);
    void Verify(std::string_view key);
    // As soon as it is known, so that the reads of a client that dies can still be judged.
    void Started(Timestamp start_ts);
    // Zero timestamps change nothing. Not called by who gets no answer.
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
  // The record. The recorder is empty afterwards, and its handles must not be used any more.
  History Take();

 private:
  mutable Mutex mutex_;
  History history_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_order_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lists as values: whole numbers, each separated from the next by a blank, "1 2 5". Absent is the empty list.
// None: the text is not such a list, to the letter.
std::optional<std::vector<int64_t>> ParseList(std::string_view text);
std::string FormatList(const std::vector<int64_t>& list);
void AppendToList(std::string* list, int64_t element);
inline std::string_view ListText(const std::optional<std::string>& value) {
  return value.has_value() ? std::string_view(*value) : std::string_view();
}

// The list without the elements at its end that `end` is made of; none if it does not end so.
std::optional<std::string_view> WithoutEnd(std::string_view list, std::string_view end);

// For messages: "10" with quotes, or the word absent.
std::string QuoteValue(const std::optional<std::string_view>& value);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_HISTORY_H_
