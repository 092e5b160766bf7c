// SPDX-License-Identifier: Apache-2.0

#include "sim/answered_reads.h"

#include <algorithm>
#include <utility>

namespace percolator::sim {
namespace {

// The snapshot timestamp of a selector that reads a snapshot; zero if it reads something else.
Timestamp SnapshotOf(const Selector& selector) {
  const TimestampRange& range = selector.range;
  const bool is_snapshot = selector.family == Family::kWrite && selector.newest == 1 && range.from == Timestamp() &&
                           range.until != Timestamp::Infinity() && !range.empty();
  return is_snapshot ? Timestamp(range.until.value() - 1) : Timestamp();
}

// Row and column of each lock in the rows.
std::set<std::pair<std::string, std::string>> LocksIn(const std::vector<Row>& rows) {
  std::set<std::pair<std::string, std::string>> locks;
  for (const Row& row : rows) {
    for (const Cell& cell : row.cells) {
      if (cell.family == Family::kLock) locks.emplace(row.key, cell.column);
    }
  }
  return locks;
}

}  // namespace

void AnsweredReads::Add(const RowRead& read, const Row& row) {
  const std::set<std::pair<std::string, std::string>> locks = LocksIn({row});
  for (const Selector& selector : read.selectors) {
    const Timestamp ts = SnapshotOf(selector);
    if (ts == Timestamp()) continue;
    if (!selector.column.has_value()) {
      AddRange(&whole_[read.table], {ts, read.row, read.row + '\0', locks});
    } else if (!locks.contains({read.row, *selector.column})) {
      Timestamp& latest = cells_[{read.table, read.row, *selector.column}];
      latest = std::max(latest, ts);
    }
  }
}

void AnsweredReads::Add(const ScanRequest& request, const std::optional<std::string>& end,
                        const std::vector<Row>& rows) {
  const std::set<std::pair<std::string, std::string>> locks = LocksIn(rows);
  for (const Selector& selector : request.selectors) {
    const Timestamp ts = SnapshotOf(selector);
    if (ts == Timestamp()) continue;
    Ranges* ranges =
        selector.column.has_value() ? &by_column_[{request.table, *selector.column}] : &whole_[request.table];
    const bool forward = !request.reverse;
    AddRange(ranges, {ts, end.has_value() && !forward ? *end : request.rows.start,
                      end.has_value() && forward ? end : request.rows.limit, locks});
  }
}

void AnsweredReads::AddRange(Ranges* ranges, Range range) {
  ranges->latest = std::max(ranges->latest, range.ts);
  ranges->all.push_back(std::move(range));
}

Timestamp AnsweredReads::AnyOf(const Ranges& ranges, const CellName& cell, Timestamp from) {
  if (ranges.latest < from) return {};
  for (const Range& range : ranges.all) {
    const bool covers =
        range.ts >= from && cell.row >= range.start && (!range.limit.has_value() || cell.row < *range.limit);
    if (covers && !range.locked.contains({cell.row, cell.column})) return range.ts;
  }
  return {};
}

Timestamp AnsweredReads::ReadFrom(const CellName& cell, Timestamp from) const {
  if (const auto it = cells_.find(cell); it != cells_.end() && it->second >= from) return it->second;
  if (const auto it = whole_.find(cell.table); it != whole_.end()) {
    if (const Timestamp ts = AnyOf(it->second, cell, from); ts != Timestamp()) return ts;
  }
  const auto it = by_column_.find({cell.table, cell.column});
  return it == by_column_.end() ? Timestamp() : AnyOf(it->second, cell, from);
}

}  // namespace percolator::sim
