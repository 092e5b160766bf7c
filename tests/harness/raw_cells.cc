// SPDX-License-Identifier: Apache-2.0

#include "tests/harness/raw_cells.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

std::string Text(const CellName& name) {
  return StrCat(name.table, "/", absl::CHexEscape(name.row), "/", absl::CHexEscape(name.column));
}

absl::Status Decode(RawCell* cell) {
  if (cell->family == Family::kLock) {
    absl::StatusOr<Lock> lock = DecodeLock(cell->value);
    if (!lock.ok()) return lock.status();
    cell->lock = *std::move(lock);
  } else if (cell->family == Family::kWrite) {
    absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell->value);
    if (!record.ok()) return record.status();
    cell->record = *std::move(record);
  } else if (cell->family == Family::kNotify) {
    absl::StatusOr<Mark> mark = DecodeMark(cell->value);
    if (!mark.ok()) return mark.status();
    cell->mark = *mark;
    if (const std::optional<std::string_view> column = ColumnOfPending(cell->name.column)) {
      cell->pending = true;
      cell->name.column = std::string(*column);
    }
  }
  return absl::OkStatus();
}

absl::Status AddTable(Store* store, const std::string& table, std::vector<RawCell>* cells) {
  ScanRequest request{table, RowRange::All(), {{Family::kData}, {Family::kLock}, {Family::kWrite}, {Family::kNotify}}};
  for (;;) {
    absl::StatusOr<ScanPage> page = store->Scan(request);
    if (!page.ok()) return page.status();
    for (Row& row : page->rows) {
      for (Cell& cell : row.cells) {
        RawCell raw{{table, row.key, cell.column}, cell.family, cell.timestamp, std::move(cell.value)};
        if (absl::Status s = Decode(&raw); !s.ok()) {
          return absl::DataLossError(StrCat("format: ", Text(raw.name), ": ", s.message()));
        }
        cells->push_back(std::move(raw));
      }
    }
    if (!page->resume.has_value()) return absl::OkStatus();
    request.rows.start = *std::move(page->resume);
  }
}

// What the cells of a transaction show about it.
struct Traces {
  std::set<std::pair<std::string, std::string>> marked;  // the rows, with their tables
  std::set<Timestamp> commits;
};

// The rules of a single cell: T2 for its data, T3 to T6, G5, N1.
class CellRules {
 public:
  explicit CellRules(const CellName& name) : name_(Text(name)) {}

  // `marked`: the row holds the rollback marker of the cell's transaction.
  void Add(const RawCell& cell, bool marked) {
    if (cell.mark.has_value()) {
      if (cell.pending) pending_.insert(cell.timestamp);
    } else if (cell.lock.has_value()) {
      ++locks_;
      if (cell.lock->observed) observed_locks_.insert(cell.timestamp);
      AddStart(cell.timestamp, HasOwnData(cell.lock->kind, cell.lock->value), marked);
    } else if (cell.record.has_value()) {
      spans_.emplace_back(cell.record->start_ts, cell.timestamp);
      AddStart(cell.record->start_ts, HasOwnData(cell.record->kind, cell.record->value), marked);
    } else {
      data_.insert(cell.timestamp);
    }
  }

  void Check(std::vector<std::string>* broken) {
    const auto find = [&](std::string_view what) { broken->push_back(StrCat(what, " in ", name_)); };
    if (marked_) find("T3: a lock or record beside the marker of its transaction");
    if (locks_ > 1) find("T4: more than one lock");
    if (twice_) find("T4: two locks or records of one transaction");
    if (!std::includes(data_.begin(), data_.end(), wanted_data_.begin(), wanted_data_.end())) {
      find("T2: a lock or record whose data is missing");
    }
    if (!std::includes(wanted_data_.begin(), wanted_data_.end(), data_.begin(), data_.end())) {
      find("G5: data without a lock or record that points to it");
    }
    if (pending_ != observed_locks_) find("N1: pending marks that differ from its locks");
    std::sort(spans_.begin(), spans_.end());
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (spans_[i].first >= spans_[i].second) find("T6: a commit before its start");
      if (i > 0 && spans_[i].first <= spans_[i - 1].second) find("T5: writers that overlap");
    }
  }

 private:
  static bool HasOwnData(WriteKind kind, const std::optional<std::string>& value) {
    return kind == WriteKind::kPut && !value.has_value();
  }

  void AddStart(Timestamp start_ts, bool has_data, bool marked) {
    marked_ |= marked;
    twice_ |= !starts_.insert(start_ts).second;
    if (has_data) wanted_data_.insert(start_ts);
  }

  const std::string name_;
  int locks_ = 0;
  bool marked_ = false;
  bool twice_ = false;
  std::set<Timestamp> starts_;
  std::set<Timestamp> data_;
  std::set<Timestamp> wanted_data_;
  std::set<Timestamp> observed_locks_;
  std::set<Timestamp> pending_;
  std::vector<std::pair<Timestamp, Timestamp>> spans_;
};

}  // namespace

absl::StatusOr<std::vector<RawCell>> ReadRawCells(Store* store) {
  const absl::StatusOr<std::vector<TableInfo>> tables = store->ListTables();
  if (!tables.ok()) return tables.status();
  std::vector<RawCell> cells;
  for (const TableInfo& table : *tables) {
    if (absl::Status s = AddTable(store, table.name, &cells); !s.ok()) return s;
  }
  // The scan returns each row family by family. Within a family, cells stay newest first.
  std::stable_sort(cells.begin(), cells.end(), [](const RawCell& a, const RawCell& b) { return a.name < b.name; });
  return cells;
}

Timestamp SeenBy(std::string_view ack) {
  uint64_t seen = 0;
  ConsumeFixed64(&ack, &seen);
  return Timestamp(seen);
}

std::vector<std::string> BrokenRules(const std::vector<RawCell>& cells) {
  std::vector<std::string> broken;
  std::map<Timestamp, Traces> transactions;  // by start
  for (const RawCell& cell : cells) {
    if (cell.is_marker()) {
      transactions[cell.timestamp].marked.emplace(cell.name.table, cell.name.row);
    } else if (cell.record.has_value()) {
      transactions[cell.record->start_ts].commits.insert(cell.timestamp);
    }
  }
  for (size_t i = 0; i < cells.size();) {
    const CellName& name = cells[i].name;
    CellRules rules(name);
    for (; i < cells.size() && cells[i].name == name; ++i) {
      if (cells[i].is_marker()) continue;
      const Timestamp start_ts = cells[i].record.has_value() ? cells[i].record->start_ts : cells[i].timestamp;
      const auto traces = transactions.find(start_ts);
      rules.Add(cells[i], traces != transactions.end() && traces->second.marked.contains({name.table, name.row}));
    }
    rules.Check(&broken);
  }
  for (const auto& [start_ts, traces] : transactions) {
    const std::string name = StrCat("the transaction that started at ", start_ts.ToString());
    const bool both = !traces.marked.empty() && !traces.commits.empty();
    if (both) broken.push_back(StrCat("T1: ", name, " both is and is not committed"));
    if (traces.commits.size() > 1) broken.push_back(StrCat("T2: ", name, " has several commit timestamps"));
  }
  return broken;
}

std::vector<std::string> LostChanges(const std::vector<RawCell>& cells, const std::string& observer,
                                     const CellName& observed) {
  Timestamp changed;
  Timestamp marked;
  Timestamp seen;
  Timestamp acknowledged;
  const CellName ack{observed.table, observed.row, AckColumn(observed.column, observer)};
  for (const RawCell& cell : cells) {
    if (cell.name == observed) {
      if (cell.is_change()) changed = std::max(changed, cell.timestamp);
      if (cell.mark.has_value() && !cell.pending) marked = std::max(marked, cell.timestamp);
    } else if (cell.name == ack && cell.record.has_value() && cell.timestamp > acknowledged) {
      acknowledged = cell.timestamp;
      seen = SeenBy(cell.record->value.value_or(""));
    }
  }
  if (changed <= seen || marked >= changed) return {};
  return {StrCat("N1: ", observed.column, " has changed, ", observer, " has not seen it, and no mark leads to it")};
}

std::vector<std::string> RepeatedRuns(const std::vector<RawCell>& cells) {
  std::map<CellName, std::vector<Timestamp>> changes;  // of a cell, newest first
  for (const RawCell& cell : cells) {
    if (cell.is_change()) changes[cell.name].push_back(cell.timestamp);
  }
  std::vector<std::string> repeated;
  const RawCell* later = nullptr;  // the acknowledgement after the current one
  for (const RawCell& cell : cells) {
    const std::optional<std::string> observed = ColumnOfAck(cell.name.column);
    if (!observed.has_value() || !cell.record.has_value()) continue;
    const Timestamp start = SeenBy(cell.record->value.value_or(""));
    if (later != nullptr && later->name == cell.name && start != Timestamp()) {
      const Timestamp next_start = SeenBy(later->record->value.value_or(""));
      const std::vector<Timestamp>& of_cell = changes[{cell.name.table, cell.name.row, *observed}];
      const bool changed = std::any_of(of_cell.begin(), of_cell.end(),
                                       [&](Timestamp change) { return change > start && change <= next_start; });
      if (next_start != Timestamp() && !changed) {
        repeated.push_back(StrCat("N2: runs of starts ", start.ToString(), " and ", next_start.ToString(),
                                  " saw the same change in ", Text(cell.name)));
      }
    }
    later = &cell;
  }
  return repeated;
}

std::vector<std::string> Audit(Store* store) {
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store);
  if (!cells.ok()) return {std::string(cells.status().message())};
  std::vector<std::string> findings = BrokenRules(*cells);
  for (std::string& repeated : RepeatedRuns(*cells)) findings.push_back(std::move(repeated));
  return findings;
}

}  // namespace percolator
