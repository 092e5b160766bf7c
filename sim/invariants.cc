// SPDX-License-Identifier: Apache-2.0

#include "sim/invariants.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "absl/strings/escaping.h"
#include "sim/trace.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator::sim {
namespace {

// A reader tries again every few milliseconds, and each try may lose all its messages, but not this many times in a
// row.
constexpr int kMetTooOften = 200;

std::string Name(const CellName& cell) {
  const bool reserved = IsReservedColumn(cell.column);
  const absl::string_view column(cell.column.data(), cell.column.size());
  return StrCat(cell.table, "/", cell.row, ":", reserved ? absl::CHexEscape(column) : cell.column);
}

bool IsVersion(const WriteRecord& record) {
  return record.kind == WriteKind::kPut || record.kind == WriteKind::kDelete;
}

// The newest put or delete at or before `ts`; null if there is none.
const std::pair<const Timestamp, WriteRecord>* NewestVersion(const std::map<Timestamp, WriteRecord>& records,
                                                             Timestamp ts) {
  for (auto it = records.upper_bound(ts); it != records.begin();) {
    --it;
    if (IsVersion(it->second)) return &*it;
  }
  return nullptr;
}

// Moves what is in the range from one map to another.
template <typename Value>
void MoveRange(const TimestampRange& range, std::map<Timestamp, Value>* from, std::map<Timestamp, Value>* to) {
  const auto first = from->lower_bound(range.from);
  const auto last = from->lower_bound(range.until);
  for (auto it = first; it != last; ++it) to->emplace(it->first, std::move(it->second));
  from->erase(first, last);
}

void MoveRange(const TimestampRange& range, std::set<Timestamp>* from, std::vector<Timestamp>* to) {
  const auto first = from->lower_bound(range.from);
  const auto last = from->lower_bound(range.until);
  to->insert(to->end(), first, last);
  from->erase(first, last);
}

// The record that a lock would become.
WriteRecord RecordOf(const Lock& lock, Timestamp start_ts) {
  return {.kind = lock.kind, .start_ts = start_ts, .verified = lock.verified, .value = lock.value};
}

// The timestamp in an acknowledgement. Zero: the observer has to run again. Absent: it is malformed.
std::optional<Timestamp> SeenBy(const WriteRecord& ack) {
  std::string_view bytes = ack.value.has_value() ? std::string_view(*ack.value) : std::string_view();
  uint64_t until = 0;
  if (!bytes.empty() && (!ConsumeFixed64(&bytes, &until) || !bytes.empty())) return std::nullopt;
  return Timestamp(until);
}

bool IsPendingMark(const Mutation& mutation) {
  return mutation.family == Family::kNotify && ColumnOfPending(mutation.column).has_value();
}

// A pending mark belongs to the cell whose lock it stands beside.
std::string ColumnShadowed(const Mutation& mutation) {
  return std::string(IsPendingMark(mutation) ? *ColumnOfPending(mutation.column) : std::string_view(mutation.column));
}

bool SameButRefreshed(Lock a, const Lock& b) {
  a.refreshed = b.refreshed;
  return a == b;
}

std::vector<Selector> AllFamilies() {
  std::vector<Selector> selectors;
  for (int family = 0; family < kFamilyCount; ++family) selectors.push_back({.family = static_cast<Family>(family)});
  return selectors;
}

}  // namespace

void Invariants::Violated(std::string_view checker, std::string_view text) {
  if (violation_.has_value()) return;
  violation_ = {std::string(checker), std::string(text)};
  if (change_ != nullptr) {
    char time[32];
    const int64_t micros = change_->time.count();
    std::snprintf(time, sizeof(time), "%" PRId64 ".%03" PRId64 "ms", micros / 1000, micros % 1000);
    violation_->text += StrCat("\n    by ", change_->origin.process->name(), " at ", time,
                               change_->origin.duplicate ? ", for the second time: " : ": ", Brief(change_->mutation));
  }
  stop_();
}

void Invariants::Broken(std::string_view checker, std::string_view text) {
  if (!silent_) Violated(checker, text);
}

// ----- The shadow

Invariants::RowDelta Invariants::Apply(const RowMutation& mutation) {
  RowDelta delta;
  RowShadow* row = &rows_[{mutation.table, mutation.row}];
  for (const Mutation& m : mutation.mutations) {
    if (m.kind == Mutation::Kind::kSet) {
      ApplySet(m, row, &delta);
    } else {
      ApplyErase(m, row, &delta);
    }
  }
  return delta;
}

void Invariants::ApplySet(const Mutation& mutation, RowShadow* row, RowDelta* delta) {
  const Timestamp ts = mutation.range.from;
  if (mutation.family == Family::kWrite && mutation.column == RollbackColumn()) {
    if (row->markers.insert(ts).second) delta->marked.push_back(ts);
    return;
  }
  const std::string column = ColumnShadowed(mutation);
  CellShadow& cell = row->cells[column];
  CellDelta& changed = delta->cells[column];
  if (mutation.family == Family::kNotify) (IsPendingMark(mutation) ? cell.pending : cell.marks).insert(ts);
  if (mutation.family == Family::kData) cell.data.insert(ts);
  if (mutation.family == Family::kLock) {
    const absl::StatusOr<Lock> lock = DecodeLock(mutation.value);
    if (!lock.ok()) return Broken("T2", "a lock that cannot be read");
    const auto [it, is_new] = cell.locks.try_emplace(ts, *lock);
    if (is_new) changed.locked.push_back(ts);
    if (!is_new && !SameButRefreshed(it->second, *lock)) Broken("T4", "a lock is replaced by another one");
    it->second = *lock;
  }
  if (mutation.family == Family::kWrite) {
    const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(mutation.value);
    if (!record.ok()) return Broken("T2", "a record that cannot be read");
    const auto [it, is_new] = cell.records.try_emplace(ts, *record);
    if (is_new) changed.recorded.push_back(ts);
    if (!is_new && it->second != *record) Broken("T1", "a record is replaced by another one");
  }
}

void Invariants::ApplyErase(const Mutation& mutation, RowShadow* row, RowDelta* delta) {
  if (mutation.family == Family::kWrite && mutation.column == RollbackColumn()) {
    MoveRange(mutation.range, &row->markers, &delta->unmarked);
    return;
  }
  const std::string column = ColumnShadowed(mutation);
  CellShadow& cell = row->cells[column];
  CellDelta& changed = delta->cells[column];
  if (IsPendingMark(mutation)) {
    std::vector<Timestamp> gone;
    MoveRange(mutation.range, &cell.pending, &gone);
  } else if (mutation.family == Family::kNotify) {
    MoveRange(mutation.range, &cell.marks, &changed.marks_removed);
  }
  if (mutation.family == Family::kLock) {
    // A lock that comes and goes in one mutation never existed: only the store's rule about the safe point saw it (G4).
    std::erase_if(changed.locked,
                  [&](Timestamp ts) { return mutation.range.Contains(ts) && cell.locks.erase(ts) > 0; });
    MoveRange(mutation.range, &cell.locks, &changed.unlocked);
  }
  if (mutation.family == Family::kWrite) MoveRange(mutation.range, &cell.records, &changed.dropped);
  if (mutation.family == Family::kData) MoveRange(mutation.range, &cell.data, &changed.data_dropped);
}

// ----- Mutations

void Invariants::KeepTruth(const RowMutation& mutation) {
  for (const Mutation& m : mutation.mutations) {
    if (m.kind != Mutation::Kind::kSet || m.family != Family::kWrite || m.column == RollbackColumn()) continue;
    const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(m.value);
    if (!record.ok()) continue;
    transactions_[record->start_ts].commit_ts = m.range.from;
    if (!IsVersion(*record) || !observers_.contains({mutation.table, m.column})) continue;
    observed_[{mutation.table, mutation.row, m.column}].changes.insert(m.range.from);
  }
}

void Invariants::OnMutation(const RowChange& change) {
  if (violation_.has_value()) return;
  if (silent_) return KeepTruth(change.mutation);
  if (!owed_.empty() && owed_.front().time != change.time) CheckWeak();
  change_ = &change;
  ++order_;
  const RowName name(change.mutation.table, change.mutation.row);
  const RowDelta delta = Apply(change.mutation);
  const RowShadow& row = rows_[name];

  std::map<Timestamp, std::vector<NewRecord>> committed;  // by start timestamp
  for (const auto& [column, cell_delta] : delta.cells) {
    const CellName cell{name.first, name.second, column};
    const CellShadow& shadow = row.cells.at(column);
    for (const auto& [ts, lock] : cell_delta.unlocked) transactions_[ts].held.erase(cell);
    for (const Timestamp ts : cell_delta.locked) CheckLocked(cell, ts, row);
    for (const Timestamp ts : cell_delta.recorded) {
      CheckRecord(cell, ts, shadow);
      committed[shadow.records.at(ts).start_ts].push_back({cell, ts});
    }
  }
  for (const auto& [start_ts, records] : committed) CheckCommitted(start_ts, records, delta);
  for (const Timestamp ts : delta.marked) CheckMarked(name, ts, row);
  for (const auto& [column, cell_delta] : delta.cells) {
    const CellName cell{name.first, name.second, column};
    const CellShadow& shadow = row.cells.at(column);
    CheckUnlocked(cell, cell_delta, shadow, row);
    CheckDropped(cell, cell_delta, shadow);
    CheckData(cell, cell_delta, shadow);
    if (shadow.locks.size() > 1) Broken("T4", StrCat(Name(cell), " has two locks"));
  }
  for (const Timestamp ts : delta.unmarked) CheckUnmarked(name, ts);
  if (!acks_.empty()) CheckObserved(name, delta, row);
  if (!notified_.empty()) NoteWeak(name, delta, change.mutation);
  change_ = nullptr;
}

void Invariants::CheckLocked(const CellName& cell, Timestamp start_ts, const RowShadow& row) {
  const CellShadow& shadow = row.cells.at(cell.column);
  const Lock& lock = shadow.locks.at(start_ts);
  TransactionShadow& txn = transactions_[start_ts];
  const auto event = [&] { return StrCat(Name(cell), " is locked by the transaction of ", start_ts.ToString()); };
  if (start_ts <= safe_point_) Broken("G4", StrCat(event(), ", and the safe point is ", safe_point_.ToString()));
  if (txn.commit_ts.has_value()) {
    Broken("T11", StrCat(event(), ", which was committed at ", txn.commit_ts->ToString(), " before"));
  }
  if (row.markers.contains(start_ts)) Broken("T11", StrCat(event(), ", which was rolled back here before"));
  if (!txn.cells.insert(cell).second) Broken("T11", StrCat(event(), " again, after its lock was removed"));
  const CellName& primary = lock.primary.has_value() ? *lock.primary : cell;
  if (txn.primary.value_or(primary) != primary) {
    Broken("T13",
           StrCat(event(), ", whose primary is ", Name(primary), " here and ", Name(*txn.primary), " elsewhere"));
  }
  const auto newer = shadow.records.lower_bound(start_ts);
  if (newer != shadow.records.end()) {
    Broken("T5", StrCat(event(), ", though there is a record at ", newer->first.ToString()));
  }
  txn.primary = primary;
  txn.held.insert(cell);
  txn.last_lock = order_;
}

void Invariants::CheckMarked(const RowName& name, Timestamp start_ts, const RowShadow& row) {
  TransactionShadow& txn = transactions_[start_ts];
  const auto event = [&] {
    return StrCat("the transaction of ", start_ts.ToString(), " is marked as rolled back in ", name.first, "/",
                  name.second);
  };
  if (txn.commit_ts.has_value()) {
    Broken("T1", StrCat(event(), ", and was committed at ", txn.commit_ts->ToString()));
  }
  for (const auto& [column, shadow] : row.cells) {
    if (shadow.locks.contains(start_ts)) Broken("T4", StrCat(event(), ", where it still holds a lock"));
  }
  if (!txn.marked.has_value()) txn.marked = CellName{name.first, name.second, ""};
}

void Invariants::CheckCommitted(Timestamp start_ts, const std::vector<NewRecord>& records, const RowDelta& delta) {
  TransactionShadow& txn = transactions_[start_ts];
  if (!txn.commit_ts.has_value()) CheckVerdict(start_ts, txn, records);
  txn.commit_ts = txn.commit_ts.value_or(records.front().commit_ts);
  for (const NewRecord& record : records) {
    const auto event = [&] {
      return StrCat(Name(record.cell), " gets a record of the transaction of ", start_ts.ToString(), " at ",
                    record.commit_ts.ToString());
    };
    if (record.commit_ts != *txn.commit_ts) {
      Broken("T2", StrCat(event(), ", which was committed at ", txn.commit_ts->ToString()));
    }
    if (!txn.primary.has_value()) continue;  // committed in one step
    const std::map<Timestamp, Lock>& unlocked = delta.cells.at(record.cell.column).unlocked;
    const auto lock = unlocked.find(start_ts);
    if (lock == unlocked.end()) {
      Broken("T2", StrCat(event(), " without a lock that it replaces"));
      continue;
    }
    const RowShadow& row = rows_.at({record.cell.table, record.cell.row});
    if (row.cells.at(record.cell.column).records.at(record.commit_ts) != RecordOf(lock->second, start_ts)) {
      Broken("T2", StrCat(event(), ", which differs from the lock"));
    }
  }
}

// Checks the first records of a transaction, which commit it.
void Invariants::CheckVerdict(Timestamp start_ts, const TransactionShadow& txn, const std::vector<NewRecord>& records) {
  const Timestamp commit_ts = records.front().commit_ts;
  const auto event = [&] {
    return StrCat("the transaction of ", start_ts.ToString(), " commits at ", commit_ts.ToString());
  };
  if (txn.marked.has_value()) {
    Broken("T1", StrCat(event(), ", and was rolled back in ", txn.marked->table, "/", txn.marked->row));
  }
  if (txn.reported_aborted) Broken("T10", StrCat(event(), ", but its client learned that it is aborted"));
  const std::optional<Order> drawn = DrawnAt(commit_ts);
  if (!drawn.has_value()) Broken("T6", StrCat(event(), ", a timestamp that was never drawn"));
  if (!txn.primary.has_value()) return;  // in one step
  const auto is_primary = [&](const NewRecord& record) { return record.cell == *txn.primary; };
  if (std::none_of(records.begin(), records.end(), is_primary)) {
    Broken("T1", StrCat(event(), " in ", Name(records.front().cell), ", before its primary ", Name(*txn.primary)));
  }
  for (const CellName& cell : txn.cells) {
    const auto is_here = [&](const NewRecord& record) { return record.cell == cell; };
    if (!txn.held.contains(cell) && std::none_of(records.begin(), records.end(), is_here)) {
      Broken("T2", StrCat(event(), ", but has lost its lock in ", Name(cell)));
    }
  }
  if (drawn.has_value() && *drawn < txn.last_lock) {
    Broken("T6", StrCat(event(), ", a timestamp that was drawn before all its cells were locked"));
  }
}

void Invariants::CheckRecord(const CellName& cell, Timestamp commit_ts, const CellShadow& shadow) {
  const WriteRecord& record = shadow.records.at(commit_ts);
  const auto event = [&] {
    return StrCat(Name(cell), " gets a record of the transaction of ", record.start_ts.ToString(), " at ",
                  commit_ts.ToString());
  };
  if (record.start_ts >= commit_ts) Broken("T6", StrCat(event(), ", not after its start"));
  if (shadow.locks.contains(record.start_ts)) Broken("T4", StrCat(event(), ", and keeps the lock"));
  if (record.kind == WriteKind::kPut && !record.value.has_value() && !shadow.data.contains(record.start_ts)) {
    Broken("G5", StrCat(event(), ", but its data is not there"));
  }
  const Timestamp read = reads_.ReadFrom(cell, commit_ts);
  if (read != Timestamp()) Broken("T8", StrCat(event(), ", which was read at ", read.ToString(), " before"));
  CheckPlaceInTime(cell, commit_ts, shadow);
}

void Invariants::CheckPlaceInTime(const CellName& cell, Timestamp commit_ts, const CellShadow& shadow) {
  const auto it = shadow.records.find(commit_ts);
  const WriteRecord& record = it->second;
  const auto overlap = [&](Timestamp other_start, Timestamp other_commit) {
    Broken("T5", StrCat(Name(cell), " has records of ", record.start_ts.ToString(), " to ", commit_ts.ToString(),
                        " and of ", other_start.ToString(), " to ", other_commit.ToString(), ", which overlap"));
  };
  if (it != shadow.records.begin()) {
    const auto older = std::prev(it);
    if (older->first >= record.start_ts) overlap(older->second.start_ts, older->first);
  }
  if (const auto newer = std::next(it); newer != shadow.records.end() && newer->second.start_ts <= commit_ts) {
    overlap(newer->second.start_ts, newer->first);
  }
  if (record.kind != WriteKind::kVerify) return;
  // A delete may have been collected meanwhile. Then no version exists, and the record may name the collected one.
  const auto* version = NewestVersion(shadow.records, Timestamp(commit_ts.value() - 1));
  if (version != nullptr && version->first != record.verified) {
    Broken("T7", StrCat(Name(cell), " gets a record that verifies ", record.verified.ToString(), ", but ",
                        version->first.ToString(), " is the newest there"));
  }
}

void Invariants::CheckUnlocked(const CellName& cell, const CellDelta& delta, const CellShadow& shadow,
                               const RowShadow& row) {
  for (const auto& unlocked : delta.unlocked) {
    const Timestamp start_ts = unlocked.first;
    const auto replaces = [&](Timestamp ts) { return shadow.records.at(ts).start_ts == start_ts; };
    if (std::any_of(delta.recorded.begin(), delta.recorded.end(), replaces)) continue;
    const auto event = [&] {
      return StrCat(Name(cell), " loses the lock of the transaction of ", start_ts.ToString());
    };
    const TransactionShadow& txn = transactions_[start_ts];
    if (txn.commit_ts.has_value()) {
      Broken("T2", StrCat(event(), ", which was committed at ", txn.commit_ts->ToString(), ", and gets no record"));
    }
    if (!row.markers.contains(start_ts)) Broken("T3", StrCat(event(), " and gets neither a record nor a marker"));
  }
}

void Invariants::CheckDropped(const CellName& cell, const CellDelta& delta, const CellShadow& shadow) {
  if (delta.dropped.empty()) return;
  for (const auto& dropped : delta.dropped) {
    const Timestamp commit_ts = dropped.first;
    const auto event = [&] { return StrCat(Name(cell), " loses its record at ", commit_ts.ToString()); };
    if (commit_ts > safe_point_) Broken("G1", StrCat(event(), ", and the safe point is ", safe_point_.ToString()));
    const TransactionShadow& txn = transactions_[dropped.second.start_ts];
    if (txn.primary == cell && !txn.held.empty()) {
      Broken("G2", StrCat(event(), ", the verdict on ", Name(*txn.held.begin()), ", which is still locked"));
    }
  }
  const auto* now = NewestVersion(shadow.records, safe_point_);
  const auto* gone = NewestVersion(delta.dropped, safe_point_);
  if (gone == nullptr || (now != nullptr && now->first > gone->first)) return;
  if (acks_.contains({cell.table, cell.column})) return CheckAckDropped(cell, gone->second);
  if (gone->second.kind == WriteKind::kPut) {
    Broken("G1", StrCat(Name(cell), " loses its record at ", gone->first.ToString(), ", the newest at the safe point ",
                        safe_point_.ToString()));
  } else if (now != nullptr && now->second.kind == WriteKind::kPut) {
    Broken("G1", StrCat(Name(cell), " loses its record at ", gone->first.ToString(),
                        ", a delete that hides the one at ", now->first.ToString()));
  }
}

// Without the acknowledgement the cell must look the same to the observer: what it has seen is gone, or has changed
// since. (Two collectors with different safe points may remove first the one, then the other.)
void Invariants::CheckAckDropped(const CellName& ack, const WriteRecord& record) {
  const RowShadow& row = rows_.at({ack.table, ack.row});
  const auto observed = row.cells.find(acks_.at({ack.table, ack.column}).column);
  if (observed == row.cells.end()) return;
  const Timestamp seen = SeenBy(record).value_or(Timestamp());
  const auto* version = NewestVersion(observed->second.records, safe_point_);
  const std::set<Timestamp>& marks = observed->second.marks;
  const bool hides = version != nullptr && version->first <= seen;
  const bool asks_for_a_run = seen == Timestamp() && !marks.empty() && *marks.begin() <= safe_point_;
  if (hides || asks_for_a_run) Broken("G6", StrCat(Name(ack), " is collected, an acknowledgement that is needed"));
}

void Invariants::CheckUnmarked(const RowName& name, Timestamp start_ts) {
  const auto event = [&] {
    return StrCat(name.first, "/", name.second, " loses the marker of the transaction of ", start_ts.ToString());
  };
  if (start_ts > safe_point_) Broken("G1", StrCat(event(), ", and the safe point is ", safe_point_.ToString()));
  const TransactionShadow& txn = transactions_[start_ts];
  const bool is_verdict = txn.primary.has_value() && RowName(txn.primary->table, txn.primary->row) == name;
  if (is_verdict && !txn.held.empty()) {
    Broken("G2", StrCat(event(), ", the verdict on ", Name(*txn.held.begin()), ", which is still locked"));
  }
}

void Invariants::CheckData(const CellName& cell, const CellDelta& delta, const CellShadow& shadow) {
  for (const Timestamp ts : delta.data_dropped) {
    const auto refers = [ts](const auto& entry) { return entry.second.start_ts == ts; };
    if (shadow.locks.contains(ts) || std::any_of(shadow.records.begin(), shadow.records.end(), refers)) {
      Broken("G5", StrCat(Name(cell), " loses its data of ", ts.ToString(), ", but not what refers to it"));
    }
  }
}

// ----- Observers

void Invariants::Observe(const std::vector<ObserverInfo>& observers) {
  for (const ObserverInfo& info : observers) {
    if (info.kind == NotificationKind::kWeak) continue;
    observers_[{info.table, info.column}].push_back(info.name);
    acks_[{info.table, AckColumn(info.column, info.name)}] = {info.column, info.name};
  }
}

size_t Invariants::ChangesOf(const CellName& cell) const {
  const auto it = observed_.find(cell);
  return it == observed_.end() ? 0 : it->second.changes.size();
}

// A cell, its marks and its acknowledgements are in one row, so the invariants must hold after each mutation.
void Invariants::CheckObserved(const RowName& name, const RowDelta& delta, const RowShadow& row) {
  std::set<std::string> columns;
  for (const auto& [column, cell_delta] : delta.cells) {
    if (!observers_.contains({name.first, column})) continue;
    columns.insert(column);
    ObservedShadow& observed = observed_[{name.first, name.second, column}];
    for (const Timestamp ts : cell_delta.recorded) {
      if (IsVersion(row.cells.at(column).records.at(ts))) observed.changes.insert(ts);
    }
  }
  for (const auto& [column, cell_delta] : delta.cells) {
    const auto ack = acks_.find({name.first, column});
    if (ack == acks_.end()) continue;
    columns.insert(ack->second.column);
    for (const Timestamp ts : cell_delta.recorded) {
      NoteAck({name.first, name.second, ack->second.column}, ack->second.observer, row.cells.at(column).records.at(ts));
    }
  }
  for (const std::string& column : columns) {
    const CellName cell{name.first, name.second, column};
    const auto shadow = row.cells.find(column);
    if (shadow == row.cells.end()) continue;
    const ObservedShadow& observed = observed_[cell];
    CheckPending(cell, shadow->second);
    const auto changed = delta.cells.find(column);
    if (changed != delta.cells.end()) CheckMarksRemoved(cell, changed->second.marks_removed, observed);
    CheckMarks(cell, shadow->second, observed);
  }
}

void Invariants::NoteAck(const CellName& cell, const std::string& observer, const WriteRecord& record) {
  ObservedShadow& observed = observed_[cell];
  Timestamp& seen = observed.seen[observer];
  const std::optional<Timestamp> until = SeenBy(record);
  if (!until.has_value()) return Broken("N2", "an acknowledgement that cannot be read");
  const Timestamp before = std::exchange(seen, *until);
  Timestamp& done = observed.done[observer];
  done = std::max(done, seen);
  if (seen == Timestamp()) return;  // the observer has to run again
  const auto change = observed.changes.upper_bound(before);
  if (change == observed.changes.end() || *change > seen) {
    Broken("N2", StrCat(Name(cell), " is acknowledged by ", observer, " up to ", seen.ToString(), " and before up to ",
                        before.ToString(), ", and has not changed in between"));
  }
}

void Invariants::CheckPending(const CellName& cell, const CellShadow& shadow) {
  for (const auto& [start_ts, lock] : shadow.locks) {
    const bool changes = lock.kind == WriteKind::kPut || lock.kind == WriteKind::kDelete;
    if (changes && !shadow.pending.contains(start_ts)) {
      Broken("N1", StrCat(Name(cell), " is locked by the transaction of ", start_ts.ToString(), " without a mark"));
    }
  }
  for (const Timestamp start_ts : shadow.pending) {
    if (shadow.locks.contains(start_ts)) continue;
    Broken("N6", StrCat(Name(cell), " has a pending mark of ", start_ts.ToString(), ", and no lock"));
  }
}

void Invariants::CheckMarks(const CellName& cell, const CellShadow& shadow, const ObservedShadow& observed) {
  if (observed.changes.empty()) return;
  const Timestamp change = *observed.changes.rbegin();
  if (!shadow.marks.empty() && *shadow.marks.rbegin() >= change) return;
  for (const std::string& observer : observers_.at({cell.table, cell.column})) {
    const auto seen = observed.seen.find(observer);
    if (seen != observed.seen.end() && seen->second >= change) continue;
    Broken("N1", StrCat(Name(cell), " was changed at ", change.ToString(), " without a mark, and ", observer,
                        " has not seen the change"));
  }
}

void Invariants::CheckMarksRemoved(const CellName& cell, const std::vector<Timestamp>& removed,
                                   const ObservedShadow& observed) {
  for (const Timestamp mark : removed) {
    for (const std::string& observer : observers_.at({cell.table, cell.column})) {
      const auto done = observed.done.find(observer);
      const auto change = observed.changes.upper_bound(done == observed.done.end() ? Timestamp() : done->second);
      if (change == observed.changes.end() || *change > mark) continue;
      Broken("N4", StrCat(Name(cell), " loses its mark at ", mark.ToString(), ", but ", observer,
                          " has not seen the change at ", change->ToString()));
    }
  }
}

void Invariants::ExpectNotified(const std::string& table, const std::string& column, const CellName& cell) {
  notified_[{table, column}] = cell;
}

void Invariants::NoteWeak(const RowName& name, const RowDelta& delta, const RowMutation& mutation) {
  for (const auto& [column, cell_delta] : delta.cells) {
    const auto notified = notified_.find({name.first, column});
    if (notified == notified_.end()) continue;
    for (const Timestamp ts : cell_delta.recorded) owed_.push_back({change_->time, notified->second, ts});
  }
  for (const Mutation& m : mutation.mutations) {
    if (m.family != Family::kNotify || m.kind == Mutation::Kind::kSet) continue;
    Timestamp& removed = weak_removed_[{name.first, name.second, m.column}];
    removed = std::max(removed, m.range.until);
  }
}

void Invariants::CheckWeak() {
  for (const Owed& owed : std::exchange(owed_, {})) {
    if (weak_removed_[owed.cell] > owed.commit_ts) continue;
    const std::set<Timestamp>& marks = rows_[{owed.cell.table, owed.cell.row}].cells[owed.cell.column].marks;
    if (!marks.empty() && *marks.rbegin() >= owed.commit_ts) continue;
    Broken("N9",
           StrCat(Name(owed.cell), " has no mark of the notification by a commit at ", owed.commit_ts.ToString()));
  }
}

void Invariants::CheckNothingToObserve() {
  CheckWeak();
  for (const auto& [name, row] : rows_) {
    for (const auto& [column, cell] : row.cells) {
      if (cell.marks.empty() && cell.pending.empty()) continue;
      Broken("N1", StrCat(Name({name.first, name.second, column}), " still has a mark"));
    }
  }
  for (const auto& [cell, observed] : observed_) {
    for (const std::string& observer : observers_.at({cell.table, cell.column})) {
      const auto seen = observed.seen.find(observer);
      if (observed.changes.empty()) continue;
      if (seen != observed.seen.end() && seen->second >= *observed.changes.rbegin()) continue;
      Broken("N1", StrCat(Name(cell), " has a change that ", observer, " never saw"));
    }
  }
}

// ----- Reads

void Invariants::OnRead(const ServedRead& read) {
  if (silent_) return;
  reads_.Add(read.read, read.row);
}

void Invariants::OnScan(const ServedScan& scan) {
  if (silent_) return;
  reads_.Add(scan.request, scan.end, scan.rows);
}

// Counts only the reads of snapshots: those of a resolver see the lock too.
void Invariants::OnHeard(const Process& process, const std::vector<Selector>& selectors, const Row& row) {
  if (silent_) return;
  const auto is_of_snapshot = [](const Selector& selector) {
    return selector.family == Family::kLock && selector.range.from == Timestamp() && selector.newest == 1 &&
           selector.range.until != Timestamp::Infinity();
  };
  if (std::none_of(selectors.begin(), selectors.end(), is_of_snapshot)) return;
  for (const Cell& cell : row.cells) {
    if (cell.family != Family::kLock) continue;
    const absl::StatusOr<Lock> lock = DecodeLock(cell.value);
    if (!lock.ok() || !IsOver({{}, cell.timestamp, *lock})) continue;
    if (++met_[{&process, cell.timestamp}] == kMetTooOften) {
      Broken("T14", StrCat(process.name(), " has met the lock of the transaction of ", cell.timestamp.ToString(),
                           " for the ", kMetTooOften, "th time, and does not resolve it"));
    }
  }
}

// Whether the lock can be resolved: the verdict exists, or the owner's lease has passed.
bool Invariants::IsOver(const FoundLock& met) const {
  const auto it = transactions_.find(met.start_ts);
  if (it == transactions_.end() || it->second.commit_ts.has_value() || it->second.marked.has_value()) return true;
  Timestamp refreshed = met.lock.refreshed;
  const std::optional<CellName>& primary = it->second.primary;
  if (primary.has_value() && it->second.held.contains(*primary)) {
    refreshed = rows_.at({primary->table, primary->row}).cells.at(primary->column).locks.at(met.start_ts).refreshed;
  }
  return next_.value() > refreshed.value() + static_cast<uint64_t>(lease_.count());
}

// ----- Timestamps and the safe point

void Invariants::OnTimestamps(Duration /*time*/, Timestamp first, uint32_t count) {
  if (first < next_) {
    Broken("O1", StrCat("the oracle hands out ", first.ToString(), ", though it had reached ", next_.ToString()));
  }
  drawn_[first] = {count, ++order_};
  next_ = std::max(next_, Timestamp(first.value() + count));
}

std::optional<Invariants::Order> Invariants::DrawnAt(Timestamp ts) const {
  auto it = drawn_.upper_bound(ts);
  if (it == drawn_.begin()) return std::nullopt;
  --it;
  if (ts.value() - it->first.value() >= it->second.count) return std::nullopt;
  return it->second.order;
}

void Invariants::OnOldestSnapshot(SessionId session, Timestamp oldest) {
  std::vector<Report>& reports = reports_[session];
  if (reports.empty() || reports.back().oldest != oldest) reports.push_back({++order_, oldest});
}

// G2. By age alone, P is a timestamp that was drawn less the retention. So P must respect each session that before that
// draw reported that it needs a snapshot below P, and has not reported otherwise until now.
void Invariants::OnSafePoint(Duration /*time*/, Timestamp safe_point) {
  if (safe_point <= safe_point_) return;
  safe_point_ = safe_point;
  const std::optional<Order> chosen =
      DrawnAt(Timestamp(safe_point.value() + static_cast<uint64_t>(retention_.count())));
  if (!chosen.has_value()) return;
  for (const auto& [session, reports] : reports_) {
    const auto is_below = [&](const Report& report) {
      return report.oldest != Timestamp() && report.oldest < safe_point;
    };
    Order since = order_ + 1;
    for (auto it = reports.rbegin(); it != reports.rend() && is_below(*it); ++it) since = it->order;
    if (since <= *chosen) {
      Broken("G2", StrCat("the safe point becomes ", safe_point.ToString(), ", but session ", session,
                          " has reported a snapshot at ", reports.back().oldest.ToString()));
    }
  }
}

// ----- The results that clients get, and the end

std::optional<Timestamp> Invariants::CommitOf(Timestamp start_ts) const {
  const auto it = transactions_.find(start_ts);
  return it == transactions_.end() ? std::nullopt : it->second.commit_ts;
}

void Invariants::OnCommitted(Timestamp start_ts, Timestamp commit_ts) {
  if (commit_ts == Timestamp()) return;
  const std::optional<Timestamp> truth = CommitOf(start_ts);
  if (truth == commit_ts) return;
  Broken("T10", StrCat("a client learned that the transaction of ", start_ts.ToString(), " is committed at ",
                       commit_ts.ToString(), ", but it is ",
                       truth.has_value() ? StrCat("at ", truth->ToString()) : "not committed"));
}

void Invariants::OnAborted(Timestamp start_ts) {
  if (start_ts == Timestamp()) return;
  TransactionShadow& txn = transactions_[start_ts];
  txn.reported_aborted = true;
  if (!txn.commit_ts.has_value()) return;
  Broken("T10", StrCat("a client learned that the transaction of ", start_ts.ToString(),
                       " is aborted, but it is committed at ", txn.commit_ts->ToString()));
}

void Invariants::CheckEnd(Store* disk) {
  if (silent_) return;
  for (const auto& [name, row] : rows_) {
    for (const auto& [column, cell] : row.cells) {
      const CellName cell_name{name.first, name.second, column};
      for (const auto& [start_ts, lock] : cell.locks) {
        Broken("T14", StrCat(Name(cell_name), " is still locked by the transaction of ", start_ts.ToString()));
      }
      for (const Timestamp ts : cell.data) {
        const auto refers = [ts](const auto& entry) { return entry.second.start_ts == ts; };
        if (std::any_of(cell.records.begin(), cell.records.end(), refers)) continue;
        Broken("G5", StrCat(Name(cell_name), " has data of ", ts.ToString(), " that no record refers to"));
      }
    }
  }
  CheckNothingToObserve();
  CheckAgainstDisk(disk);
}

void Invariants::CheckAgainstDisk(Store* disk) {
  std::map<RowName, size_t> versions;
  for (const auto& [name, row] : rows_) {
    size_t& count = versions[name] = row.markers.size();
    for (const auto& [column, cell] : row.cells) {
      count += cell.locks.size() + cell.records.size() + cell.data.size() + cell.marks.size() + cell.pending.size();
    }
  }
  const absl::StatusOr<std::vector<TableInfo>> tables = disk->ListTables();
  for (const TableInfo& table : *tables) {
    ScanRequest request{table.name, RowRange::All(), AllFamilies()};
    for (bool more = true; more;) {
      const absl::StatusOr<ScanPage> page = disk->Scan(request);
      for (const Row& row : page->rows) {
        size_t& count = versions[{table.name, row.key}];
        if (count != row.cells.size()) {
          Broken("T15", StrCat(table.name, "/", row.key, " has ", row.cells.size(), " versions, and ", count,
                               " were written"));
        }
        count = 0;
      }
      more = page->resume.has_value();
      if (more) request.rows.start = *page->resume;
    }
  }
  for (const auto& [name, count] : versions) {
    if (count != 0) Broken("T15", StrCat(name.first, "/", name.second, " is gone"));
  }
}

}  // namespace percolator::sim
