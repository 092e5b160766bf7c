// SPDX-License-Identifier: Apache-2.0

#include "src/txn/gc.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/txn/apply.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/record_coding.h"
#include "src/txn/resolve.h"
#include "src/txn/tables.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

// In one mutation of a row: far below StoreLimits::max_row_mutation_bytes, however long its column names are.
constexpr size_t kErasesAtOnce = 10'000;
constexpr size_t kEraseBytesAtOnce = 4 << 20;
constexpr Duration kStoreTimeout = std::chrono::seconds(10);  // for a store that cannot be reached

// Calls `handle` for every page of a scan. Returns Cancelled as soon as `stop` returns true.
absl::Status ForEachPage(Environment& env, ScanRequest request, const std::function<bool()>& stop,
                         const std::function<absl::Status(const ScanPage&)>& handle) {
  for (;;) {
    if (stop()) return absl::CancelledError("garbage collection was stopped");
    const Deadline deadline(env.runtime, kStoreTimeout);
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, RetryUntil(deadline, [&] { return env.store->Scan(request); }));
    PERCOLATOR_RETURN_IF_ERROR(handle(page));
    if (!page.resume.has_value()) return absl::OkStatus();
    request.ContinueAt(*std::move(page.resume));
  }
}

absl::Status Apply(Environment& env, std::vector<RowMutation> erases) {
  return ApplyInTime(env, std::move(erases), Deadline(env.runtime, kStoreTimeout));
}

// Turns NotFound into OK if this table was dropped. It must be this table: locks left unresolved because another one
// was dropped would lose their verdicts (G2).
absl::Status UnlessDropped(Environment& env, const std::string& table, absl::Status status) {
  if (!absl::IsNotFound(status)) return status;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, ListOwnTables(env.store.get()));
  for (const TableInfo& info : tables) {
    if (info.name == table) return status;
  }
  return absl::OkStatus();
}

// Collects the versions of one column, which come newest first, all at or below the safe point.
class ColumnCollector {
 public:
  // `notified`: observers have not yet seen all of the column.
  ColumnCollector(bool notified, std::vector<Mutation>* erases) : notified_(notified), erases_(erases) {}

  // Whether a version is left.
  bool keeps() const { return keeps_; }

  absl::Status Visit(const Cell& cell) {
    PERCOLATOR_ASSIGN_OR_RETURN(const WriteRecord record, DecodeWriteRecord(cell.value));
    const bool is_version = record.kind == WriteKind::kPut || record.kind == WriteKind::kDelete;
    if (is_version && !newest_seen_) {
      newest_seen_ = true;
      // G1: the newest stays, unless it is a delete, which means the same as no version; but not to an observer (N1).
      keeps_ = record.kind == WriteKind::kPut || notified_;
      if (keeps_) return absl::OkStatus();
    }
    Erase(cell, record);
    return absl::OkStatus();
  }

 private:
  void Erase(const Cell& cell, const WriteRecord& record) {
    erases_->push_back(Mutation::Erase(Family::kWrite, cell.column, TimestampRange::Exactly(cell.timestamp)));
    if (record.kind == WriteKind::kPut && !record.value.has_value()) {  // G5
      erases_->push_back(Mutation::Erase(Family::kData, cell.column, TimestampRange::Exactly(record.start_ts)));
    }
  }

  const bool notified_;
  std::vector<Mutation>* const erases_;
  bool newest_seen_ = false;
  bool keeps_ = false;
};

// Returns the columns with marks, pending ones too.
std::set<std::string_view> NotifiedColumns(const Row& row) {
  std::set<std::string_view> columns;
  for (const Cell& cell : row.cells) {
    if (cell.family == Family::kNotify) columns.insert(ColumnOfPending(cell.column).value_or(cell.column));
  }
  return columns;
}

// Returns the erases of a row, the oldest versions of each column first.
absl::StatusOr<std::deque<Mutation>> GarbageOf(const std::string& table, const Row& row) {
  const std::set<std::string_view> notified = NotifiedColumns(row);
  std::vector<Mutation> erases;
  std::set<std::string_view> kept;                 // columns that have a version left
  std::vector<std::pair<std::string, Cell>> acks;  // with the columns that they acknowledge
  for (size_t i = 0; i < row.cells.size();) {
    const std::string& column = row.cells[i].column;
    if (row.cells[i].family == Family::kNotify) {
      ++i;
      continue;
    }
    ColumnCollector collector(notified.contains(column), &erases);
    const std::optional<std::string> observed = ColumnOfAck(column);
    if (observed.has_value()) acks.emplace_back(*observed, row.cells[i]);
    for (; i < row.cells.size() && row.cells[i].column == column && row.cells[i].family == Family::kWrite; ++i) {
      if (absl::Status s = collector.Visit(row.cells[i]); !s.ok()) return AtCell(s, table, row.key, row.cells[i]);
    }
    if (collector.keeps()) kept.insert(column);
  }
  // An acknowledgement of a cell that is gone. Any later write is newer. So is what a collection with a later safe
  // point has left, if it removed what this one would have kept.
  for (const auto& [column, ack] : acks) {
    if (kept.contains(column) || notified.contains(column)) continue;
    erases.push_back(Mutation::Erase(Family::kWrite, ack.column, TimestampRange::Exactly(ack.timestamp)));
  }
  return std::deque<Mutation>(std::make_move_iterator(erases.rbegin()), std::make_move_iterator(erases.rend()));
}

// Moves the first erases of a row, as many as one mutation may have, out of `erases`.
std::vector<Mutation> TakeStep(std::deque<Mutation>* erases) {
  PERCOLATOR_DCHECK(!erases->empty());
  std::vector<Mutation> step;
  for (size_t bytes = 0; !erases->empty() && step.size() < kErasesAtOnce && bytes < kEraseBytesAtOnce;) {
    bytes += erases->front().column.size();
    step.push_back(std::move(erases->front()));
    erases->pop_front();
  }
  return step;
}

// Drops the garbage of one page. If a row has very much of it, all but its last step is applied at once, separately:
// the oldest versions first, because removing a delete before the put below it would bring the put back. A row whose
// records cannot be decoded is skipped, and reported at the end.
absl::Status DropPage(Environment& env, const std::string& table, const ScanPage& page, absl::Status* bad_row) {
  std::vector<RowMutation> mutations;
  uint64_t versions = 0;
  for (const Row& row : page.rows) {
    absl::StatusOr<std::deque<Mutation>> erases = GarbageOf(table, row);
    if (!erases.ok()) {
      bad_row->Update(erases.status());
      continue;
    }
    versions += erases->size();
    while (!erases->empty()) {
      RowMutation mutation{table, row.key, {}, TakeStep(&*erases)};
      if (erases->empty()) {
        mutations.push_back(std::move(mutation));
      } else if (absl::Status s = Apply(env, {std::move(mutation)}); !s.ok()) {
        return s;
      }
    }
  }
  PERCOLATOR_RETURN_IF_ERROR(Apply(env, std::move(mutations)));
  Counters::Add(&env.counters.versions_collected, versions);
  return absl::OkStatus();
}

// Step 4. A record at or below the safe point is never added again: its transaction would have had to start there. So
// the row is changed without a condition.
absl::Status DropVersions(Environment& env, const std::string& table, Timestamp safe_point,
                          const std::function<bool()>& stop) {
  ScanRequest request{table,
                      RowRange::All(),
                      {{Family::kWrite, std::nullopt, TimestampRange::UpTo(safe_point)},
                       {Family::kNotify, std::nullopt, TimestampRange::All(), 1}}};
  absl::Status bad_row;
  const absl::Status scanned = ForEachPage(env, std::move(request), stop,
                                           [&](const ScanPage& page) { return DropPage(env, table, page, &bad_row); });
  return scanned.ok() ? bad_row : scanned;
}

}  // namespace

absl::StatusOr<Timestamp> ChooseSafePoint(Environment& env) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, env.oracle->GetTimestamp());
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp oldest, env.coordinator->OldestSnapshot());
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp last, env.store->SafePoint());
  const auto retention = static_cast<uint64_t>(env.options.gc_retention.count());
  const Timestamp by_age(now.value() > retention ? now.value() - retention : 0);
  // Below the oldest, not at it: a transaction that starts at the safe point may read but not write.
  const Timestamp below_oldest(oldest.value() > 0 ? oldest.value() - 1 : 0);
  const Timestamp chosen = std::max(last, std::min(by_age, below_oldest));
  PERCOLATOR_DCHECK(chosen == last || chosen < oldest);  // G2
  return chosen;
}

absl::Status ResolveAllLocks(Environment& env, const std::string& table, Timestamp ts,
                             const std::function<bool(const FoundLock&)>& which, const std::function<bool()>& stop) {
  ScanRequest request{table, RowRange::All(), {{Family::kLock, std::nullopt, TimestampRange::UpTo(ts)}}};
  return ForEachPage(env, std::move(request), stop, [&](const ScanPage& page) {
    std::vector<FoundLock> locks;
    for (const Row& row : page.rows) {
      for (const Cell& cell : row.cells) {
        absl::StatusOr<Lock> lock = DecodeLock(cell.value);
        if (!lock.ok()) return AtCell(lock.status(), table, row.key, cell);
        FoundLock met{{table, row.key, cell.column}, cell.timestamp, *std::move(lock)};
        if (which(met)) locks.push_back(std::move(met));
      }
    }
    if (locks.empty()) return absl::OkStatus();
    const Deadline deadline(env.runtime, kStoreTimeout);
    return RetryUntil(deadline, [&] { return ResolveLocks(env, locks, LiveLocks::kRollBack); }).status();
  });
}

absl::Status CollectGarbage(Environment& env, Timestamp safe_point, const std::function<bool()>& stop) {
  PERCOLATOR_RETURN_IF_ERROR(env.store->RaiseSafePoint(safe_point));
  // Listed after the publication: a table that is made later cannot have an old lock.
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, ListOwnTables(env.store.get()));
  const auto any = [](const FoundLock& /*met*/) { return true; };
  for (const TableInfo& table : tables) {
    PERCOLATOR_RETURN_IF_ERROR(UnlessDropped(env, table.name, ResolveAllLocks(env, table.name, safe_point, any, stop)));
  }
  for (const TableInfo& table : tables) {
    PERCOLATOR_RETURN_IF_ERROR(UnlessDropped(env, table.name, DropVersions(env, table.name, safe_point, stop)));
  }
  return absl::OkStatus();
}

}  // namespace percolator
