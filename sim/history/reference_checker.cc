// SPDX-License-Identifier: Apache-2.0

#include "sim/history/reference_checker.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace percolator {
namespace {

using Values = std::map<std::string, std::optional<std::string>>;

struct Progress {
  bool started = false;
  bool committed = false;
  size_t start = 0;
  Values writes;
  std::set<std::string> verified;
};

// A database that holds one value per key, on which transactions start and commit one at a time.
class Replay {
 public:
  explicit Replay(const History& history) : history_(&history), progress_(history.transactions.size()) {}

  // Runs the transaction on the current data. Returns false if its reads differ.
  bool Start(TxnId txn);
  // Returns false if another transaction has meanwhile written a cell that this one wrote.
  bool Commit(TxnId txn);

  bool Started(TxnId txn) const { return progress_[txn].started; }
  bool Committed(TxnId txn) const { return progress_[txn].committed; }

 private:
  static bool IsAfter(const std::map<std::string, size_t>& times, const std::string& key, size_t start) {
    const auto it = times.find(key);
    return it != times.end() && it->second > start;
  }

  const History* history_;
  size_t now_ = 0;
  Values values_;
  std::map<std::string, size_t> written_at_;
  std::map<std::string, size_t> verified_at_;
  std::vector<Progress> progress_;
};

bool Replay::Start(TxnId txn) {
  Progress& progress = progress_[txn];
  progress.started = true;
  progress.start = ++now_;
  for (const TxnOperation& operation : history_->transactions[txn].operations) {
    const auto own = progress.writes.find(operation.key);
    const auto there = values_.find(operation.key);
    const std::optional<std::string> value = own != progress.writes.end() ? own->second
                                             : there != values_.end()     ? there->second
                                                                          : std::nullopt;
    switch (operation.kind) {
      case TxnOperation::Kind::kRead:
        if (operation.value != value) return false;
        break;
      case TxnOperation::Kind::kWrite:
        progress.writes[operation.key] = operation.value;
        break;
      case TxnOperation::Kind::kAppend: {
        std::string list = value.value_or("");
        AppendToList(&list, operation.element);
        progress.writes[operation.key] = list;
        break;
      }
      case TxnOperation::Kind::kVerify:
        progress.verified.insert(operation.key);
        break;
    }
  }
  return true;
}

bool Replay::Commit(TxnId txn) {
  Progress& progress = progress_[txn];
  progress.committed = true;
  ++now_;
  for (const auto& [key, value] : progress.writes) {
    if (IsAfter(written_at_, key, progress.start) || IsAfter(verified_at_, key, progress.start)) return false;
  }
  for (const std::string& key : progress.verified) {
    if (IsAfter(written_at_, key, progress.start)) return false;
  }
  for (const auto& [key, value] : progress.writes) {
    values_[key] = value;
    written_at_[key] = now_;
  }
  for (const std::string& key : progress.verified) verified_at_[key] = now_;
  return true;
}

// Returns true if a was over before b began, and neither reads the past.
bool IsBefore(const TxnRecord& a, const TxnRecord& b) {
  return a.outcome != TxnOutcome::kInfo && !a.as_of && !b.as_of && a.complete < b.invoke;
}

bool MayStart(const History& history, const Replay& replay, TxnId txn) {
  for (TxnId other = 0; other < history.transactions.size(); ++other) {
    const TxnRecord& record = history.transactions[other];
    if (!IsBefore(record, history.transactions[txn])) continue;
    const bool over = record.outcome == TxnOutcome::kOk ? replay.Committed(other) : replay.Started(other);
    if (!over) return false;
  }
  return true;
}

// Whether the remaining starts and commits are possible in some order.
bool CanFinish(const History& history, const Replay& replay) {
  bool done = true;
  for (TxnId txn = 0; txn < history.transactions.size(); ++txn) {
    const TxnOutcome outcome = history.transactions[txn].outcome;
    if (!replay.Started(txn)) {
      done = false;
      Replay next = replay;
      if (MayStart(history, replay, txn) && next.Start(txn) && CanFinish(history, next)) return true;
    } else if (!replay.Committed(txn) && outcome != TxnOutcome::kFail) {
      if (outcome == TxnOutcome::kOk) done = false;
      Replay next = replay;
      if (next.Commit(txn) && CanFinish(history, next)) return true;
    }
  }
  return done;
}

}  // namespace

bool HasExplanation(const History& history) { return CanFinish(history, Replay(history)); }

bool TimestampsExplain(const History& history) {
  struct Event {
    Timestamp ts;
    bool is_start;
    TxnId txn;
  };
  std::vector<Event> events;
  std::set<Timestamp> drawn;
  for (TxnId txn = 0; txn < history.transactions.size(); ++txn) {
    const TxnRecord& record = history.transactions[txn];
    events.push_back({record.start_ts, true, txn});
    if (!record.as_of && !drawn.insert(record.start_ts).second) return false;
    if (record.commit_ts == Timestamp()) continue;
    if (record.commit_ts <= record.start_ts || !drawn.insert(record.commit_ts).second) return false;
    if (record.outcome == TxnOutcome::kOk) events.push_back({record.commit_ts, false, txn});
  }
  for (const TxnRecord& a : history.transactions) {
    for (const TxnRecord& b : history.transactions) {
      if (IsBefore(a, b) && std::max(a.start_ts, a.commit_ts) >= b.start_ts) return false;
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.ts, a.is_start, a.txn) < std::tuple(b.ts, b.is_start, b.txn);
  });
  Replay replay(history);
  return std::all_of(events.begin(), events.end(), [&](const Event& event) {
    return event.is_start ? replay.Start(event.txn) : replay.Commit(event.txn);
  });
}

}  // namespace percolator
