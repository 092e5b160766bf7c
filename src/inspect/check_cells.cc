// SPDX-License-Identifier: Apache-2.0

#include "src/inspect/check_cells.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/retry.h"
#include "src/base/strings.h"
#include "src/txn/apply.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/resolve.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

using Kind = BadCell::Kind;

constexpr size_t kAckBytes = 8;

struct Complaint {
  Kind kind;
  std::string why;
};
using MaybeComplaint = std::optional<Complaint>;

Complaint Undecodable(const absl::Status& error) {
  return {absl::IsFailedPrecondition(error) ? Kind::kNewerFormat : Kind::kDamaged, std::string(error.message())};
}

// Returns whether Percolator has such a column in the family. Users' columns are in all of them.
bool BelongsIn(Family family, std::string_view column) {
  if (!IsReservedColumn(column)) return true;
  if (column == RollbackColumn()) return family == Family::kWrite;
  if (ColumnOfPending(column).has_value()) return family == Family::kNotify;
  return ColumnOfAck(column).has_value() && (family == Family::kLock || family == Family::kWrite);
}

class RowJudge {
 public:
  explicit RowJudge(const Row& row) {
    for (const Cell& cell : row.cells) {
      if (cell.family == Family::kData) data_.emplace(cell.column, cell.timestamp);
    }
  }

  MaybeComplaint Judge(const Cell& cell) const {
    if (!BelongsIn(cell.family, cell.column)) {
      return Complaint{Kind::kMisplaced, "the column is reserved, and Percolator has no such column in this family"};
    }
    switch (cell.family) {
      case Family::kLock:
        return JudgeLock(cell);
      case Family::kWrite:
        return JudgeRecord(cell);
      case Family::kNotify:
        return JudgeMark(cell);
      case Family::kData:
        break;
    }
    return std::nullopt;
  }

 private:
  MaybeComplaint JudgeLock(const Cell& cell) const {
    const absl::StatusOr<Lock> lock = DecodeLock(cell.value);
    if (!lock.ok()) return Undecodable(lock.status());
    return JudgeValue(cell, lock->kind, lock->value, cell.timestamp);
  }

  MaybeComplaint JudgeRecord(const Cell& cell) const {
    const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
    if (!record.ok()) return Undecodable(record.status());
    const bool is_marker = record->kind == WriteKind::kRollback;
    if (is_marker != (cell.column == RollbackColumn())) {
      return Complaint{Kind::kMisplaced, StrCat("a ", WriteKindName(record->kind), " record cannot be in this column")};
    }
    if (is_marker) return std::nullopt;
    if (record->start_ts >= cell.timestamp) {  // T6
      return Complaint{Kind::kImpossible, StrCat("the record's transaction started at ", record->start_ts.ToString(),
                                                 ", not before its commit")};
    }
    return JudgeValue(cell, record->kind, record->value, record->start_ts);
  }

  MaybeComplaint JudgeValue(const Cell& cell, WriteKind kind, const std::optional<std::string>& value,
                            Timestamp start_ts) const {
    if (kind != WriteKind::kPut) return std::nullopt;
    if (ColumnOfAck(cell.column).has_value()) {
      if (value.has_value() && (value->empty() || value->size() == kAckBytes)) return std::nullopt;
      return Complaint{Kind::kDamaged, "invalid acknowledgement: its bytes are damaged"};
    }
    if (value.has_value() || data_.contains(std::pair(std::string_view(cell.column), start_ts))) return std::nullopt;
    return Complaint{Kind::kMissingData, StrCat("its value is missing in the family data at ", start_ts.ToString())};
  }

  static MaybeComplaint JudgeMark(const Cell& cell) {
    const absl::StatusOr<Mark> mark = DecodeMark(cell.value);
    if (!mark.ok()) return Undecodable(mark.status());
    return std::nullopt;
  }

  std::set<std::pair<std::string_view, Timestamp>> data_;
};

std::vector<Selector> Everything() { return {{Family::kData}, {Family::kLock}, {Family::kWrite}, {Family::kNotify}}; }

BadCell BadCellOf(const std::string& table, const std::string& row, const Cell& cell, Complaint complaint) {
  return {complaint.kind, {table, row, cell.column}, cell.family, cell.timestamp, cell.value, std::move(complaint.why)};
}

// Returns whether the version still exists with these bytes.
absl::StatusOr<bool> IsStillThere(Environment& env, const BadCell& bad) {
  PERCOLATOR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      env.store->Read(
          {{bad.cell.table, bad.cell.row, {{bad.family, bad.cell.column, TimestampRange::Exactly(bad.timestamp)}}}}));
  const std::vector<Cell>& cells = rows.front().cells;
  return !cells.empty() && cells.front().value == bad.value;
}

// Checks one table, page by page.
class TableCheck {
 public:
  TableCheck(Environment& env, const std::string& table, const std::function<void(const BadCell&)>& found,
             CheckCounts* counts)
      : env_(env), table_(table), found_(found), counts_(*counts) {}

  absl::Status CheckPage(const ScanPage& page) {
    for (const Row& row : page.rows) {
      ++counts_.rows;
      counts_.cells += row.cells.size();
      const std::vector<BadCell> bad = CheckRow(table_, row);
      if (!bad.empty()) {
        PERCOLATOR_RETURN_IF_ERROR(Confirm(row.key));
      }
      std::set<std::tuple<Family, std::string_view, Timestamp>> reported;
      for (const BadCell& one : bad) reported.emplace(one.family, one.cell.column, one.timestamp);
      for (const Cell& cell : row.cells) {
        if (reported.contains({cell.family, cell.column, cell.timestamp})) continue;
        PERCOLATOR_RETURN_IF_ERROR(LookBeyondTheRow(row.key, cell));
      }
    }
    return absl::OkStatus();
  }

 private:
  void Report(const BadCell& bad) {
    ++(bad.kind == Kind::kAbandoned ? counts_.notes : counts_.problems);
    found_(bad);
  }

  // The row is read again: garbage collection may have been halfway through it.
  absl::Status Confirm(const std::string& key) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Row> rows, env_.store->Read({{table_, key, Everything()}}));
    for (const BadCell& bad : CheckRow(table_, rows.front())) Report(bad);
    return absl::OkStatus();
  }

  absl::Status LookBeyondTheRow(const std::string& key, const Cell& cell) {
    MaybeComplaint complaint;
    if (cell.family != Family::kData && cell.timestamp > now_) {
      PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, DrawForCall(env_));
      now_ = now;
      if (cell.timestamp > now_) {
        complaint = {Kind::kFuture, StrCat("its timestamp is later than the oracle's, ", now_.ToString())};
      }
    }
    if (cell.family == Family::kLock && !complaint.has_value()) {
      PERCOLATOR_ASSIGN_OR_RETURN(Lock lock, DecodeLock(cell.value));
      PERCOLATOR_ASSIGN_OR_RETURN(MaybeComplaint of_lock,
                                  LookAtPrimary({{table_, key, cell.column}, cell.timestamp, lock}));
      complaint = std::move(of_lock);
    }
    if (!complaint.has_value()) return absl::OkStatus();
    const BadCell bad = BadCellOf(table_, key, cell, *std::move(complaint));
    PERCOLATOR_ASSIGN_OR_RETURN(const bool still_there, IsStillThere(env_, bad));
    if (still_there) Report(bad);
    return absl::OkStatus();
  }

  absl::StatusOr<MaybeComplaint> LookAtPrimary(const FoundLock& met) {
    if (!met.lock.primary.has_value()) return MaybeComplaint();
    const CellName& primary = *met.lock.primary;
    const auto escaped = [](const std::string& bytes) { return absl::CHexEscape(bytes); };
    const std::string name = StrCat(escaped(primary.table), "/", escaped(primary.row), "/", escaped(primary.column));
    const absl::StatusOr<std::vector<Row>> rows =
        env_.store->Read({{primary.table,
                           primary.row,
                           {{Family::kLock, primary.column, TimestampRange::Exactly(met.start_ts)},
                            {Family::kWrite, primary.column, TimestampRange::From(met.start_ts)},
                            {Family::kWrite, RollbackColumn(), TimestampRange::Exactly(met.start_ts)}}}});
    if (absl::IsNotFound(rows.status())) return MaybeComplaint();  // its table is dropped: the lock will be rolled back
    if (absl::IsInvalidArgument(rows.status())) {
      return Complaint{Kind::kImpossible, StrCat("its primary, ", name, ", is not valid: ", rows.status().message())};
    }
    if (!rows.ok()) return rows.status();
    for (const Cell& cell : rows->front().cells) {
      if (cell.family == Family::kLock) {
        const absl::StatusOr<Lock> lock = DecodeLock(cell.value);
        if (!lock.ok() || !lock->primary.has_value()) return MaybeComplaint();  // bad, and found in its own row
        return Complaint{Kind::kImpossible, StrCat("its primary, ", name, ", has a lock that names another primary")};
      }
      if (cell.column == RollbackColumn()) return MaybeComplaint();
      const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
      if (!record.ok() || record->start_ts == met.start_ts) return MaybeComplaint();
    }
    PERCOLATOR_ASSIGN_OR_RETURN(const LockStatus status, InspectLock(env_, met));
    if (status.verdict.has_value() || status.alive) return MaybeComplaint();
    return Complaint{Kind::kAbandoned, StrCat("its primary ", name,
                                              " has neither lock nor record nor marker, and its "
                                              "owner is gone; `percolator locks --resolve` rolls it back")};
  }

  Environment& env_;
  const std::string& table_;
  const std::function<void(const BadCell&)>& found_;
  CheckCounts& counts_;
  Timestamp now_;  // of the oracle, when it was last read
};

}  // namespace

std::vector<BadCell> CheckRow(const std::string& table, const Row& row) {
  std::vector<BadCell> bad;
  const RowJudge judge(row);
  for (const Cell& cell : row.cells) {
    if (MaybeComplaint complaint = judge.Judge(cell)) {
      bad.push_back(BadCellOf(table, row.key, cell, *std::move(complaint)));
    }
  }
  return bad;
}

absl::Status CheckTable(Environment& env, const std::string& table, const std::function<void(const BadCell&)>& found,
                        const std::function<void(const CheckCounts&)>& progress, CheckCounts* counts) {
  TableCheck check(env, table, found, counts);
  ScanRequest request{table, RowRange::All(), Everything()};
  for (;;) {
    const Deadline deadline(env.runtime, env.options.call_timeout);
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, RetryUntil(deadline, [&] { return env.store->Scan(request); }));
    PERCOLATOR_RETURN_IF_ERROR(check.CheckPage(page));
    if (progress != nullptr) progress(*counts);
    if (!page.resume.has_value()) return absl::OkStatus();
    request.ContinueAt(*std::move(page.resume));
  }
}

absl::StatusOr<bool> EraseBadCell(Environment& env, const BadCell& bad) {
  absl::StatusOr<bool> still_there = IsStillThere(env, bad);
  if (!still_there.ok() || !*still_there) return still_there;
  const TimestampRange then = TimestampRange::Exactly(bad.timestamp);
  PERCOLATOR_RETURN_IF_ERROR(
      ApplyInTime(env, {{bad.cell.table, bad.cell.row, {}, {Mutation::Erase(bad.family, bad.cell.column, then)}}},
                  Deadline(env.runtime, env.options.call_timeout)));
  return true;
}

}  // namespace percolator
