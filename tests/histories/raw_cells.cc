#include "tests/histories/raw_cells.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

constexpr std::array<Family, 4> kFamilies = {Family::kData, Family::kLock, Family::kWrite, Family::kNotify};

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
  ScanRequest request{table, RowRange::All(), {}};
  for (const Family family : kFamilies) request.selectors.push_back({family, std::nullopt, TimestampRange::All()});
  for (;;) {
    absl::StatusOr<ScanPage> page = store->Scan(request);
    if (!page.ok()) return page.status();
    for (Row& row : page->rows) {
      for (Cell& cell : row.cells) {
        RawCell raw{{table, row.key, cell.column}, cell.family, cell.timestamp, std::move(cell.value)};
        if (absl::Status s = Decode(&raw); !s.ok()) return s;
        cells->push_back(std::move(raw));
      }
    }
    if (!page->resume.has_value()) return absl::OkStatus();
    request.rows.start = *std::move(page->resume);
  }
}

// The start of the run that an acknowledgement is of; zero: "run again".
Timestamp SeenBy(std::string_view ack) {
  uint64_t seen = 0;
  ConsumeFixed64(&ack, &seen);
  return Timestamp(seen);
}

// What a cell holds, for people.
std::optional<std::string> Legible(const CellName& name, const std::optional<std::string>& value,
                                   const Stamps& stamps) {
  if (!value.has_value() || !ColumnOfAck(name.column).has_value()) return value;
  return value->empty() ? "run again" : "seen " + stamps.Text(SeenBy(*value));
}

std::string KindText(WriteKind kind, const std::optional<std::string>& value) {
  std::string text(WriteKindName(kind));
  if (value.has_value()) text += " " + ValueText(*value);
  return text;
}

std::string VerifiedText(Timestamp verified, const Stamps& stamps) {
  return verified == Timestamp() ? " of nothing" : StrCat(" of ", stamps.NumberText(verified));
}

std::string LockText(const RawCell& cell, const CellMap& map, const Stamps& stamps) {
  const Lock& lock = *cell.lock;
  std::string text = KindText(lock.kind, Legible(cell.name, lock.value, stamps));
  if (lock.kind == WriteKind::kVerify) text += VerifiedText(lock.verified, stamps);
  text += lock.primary.has_value() ? StrCat(", primary ", map.NameOf(*lock.primary)) : ", primary";
  if (lock.refreshed > cell.timestamp) text += ", refreshed";
  return text;
}

std::string RecordText(const RawCell& cell, const Stamps& stamps) {
  const WriteRecord& record = *cell.record;
  if (record.kind == WriteKind::kRollback) return "rollback";
  std::string text = KindText(record.kind, Legible(cell.name, record.value, stamps));
  if (record.kind == WriteKind::kVerify) text += VerifiedText(record.verified, stamps);
  return StrCat(text, " ", stamps.Text(record.start_ts));
}

std::string ContentText(const RawCell& cell, const CellMap& map, const Stamps& stamps) {
  const std::string at = StrCat(stamps.NumberText(cell.timestamp), ": ");
  if (cell.lock.has_value()) return at + LockText(cell, map, stamps);
  if (cell.record.has_value()) return at + RecordText(cell, stamps);
  if (cell.mark.has_value()) {
    const std::string depth = cell.mark->depth == 0 ? "" : StrCat(", depth ", cell.mark->depth);
    return StrCat(at, cell.pending ? "pending" : "mark", depth);
  }
  return at + ValueText(cell.value);
}

// The lines of a cell: its versions in each family from the top, newest first, side by side.
using Line = std::array<std::string, 1 + kFamilies.size()>;

void AddLines(const std::string& name, const std::array<std::vector<std::string>, kFamilies.size()>& contents,
              std::vector<Line>* lines) {
  size_t height = 0;
  for (const auto& column : contents) height = std::max(height, column.size());
  for (size_t i = 0; i < height; ++i) {
    Line line{i == 0 ? name : ""};
    for (size_t f = 0; f < contents.size(); ++f) line[f + 1] = i < contents[f].size() ? contents[f][i] : "";
    lines->push_back(std::move(line));
  }
}

// Only the first `columns` of them.
std::string Aligned(const std::vector<Line>& lines, size_t columns) {
  std::array<size_t, std::tuple_size_v<Line>> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    for (size_t i = 0; i < columns; ++i) {
      out += (i == 0 ? "" : " | ") + line[i] + std::string(widths[i] - line[i].size(), ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

// What is known of a transaction from all its cells.
struct Traces {
  bool marked = false;
  std::set<Timestamp> commits;
};

// The rules of a single cell: T4, T5, T6, G5.
class CellRules {
 public:
  explicit CellRules(const CellName& name) : name_(StrCat(name.table, "/", name.row, "/", name.column)) {}

  void Add(const RawCell& cell) {
    if (cell.mark.has_value()) {
      if (cell.pending) pending_.insert(cell.timestamp);
    } else if (cell.lock.has_value()) {
      ++locks_;
      if (cell.lock->observed) observed_locks_.insert(cell.timestamp);
      AddStart(cell.timestamp, HasOwnData(cell.lock->kind, cell.lock->value));
    } else if (cell.record.has_value()) {
      spans_.emplace_back(cell.record->start_ts, cell.timestamp);
      AddStart(cell.record->start_ts, HasOwnData(cell.record->kind, cell.record->value));
    } else {
      data_.insert(cell.timestamp);
    }
  }

  void Check(std::vector<std::string>* broken) {
    if (locks_ > 1) broken->push_back("T4: more than one lock in " + name_);
    if (twice_) broken->push_back("T4: two locks or records of one transaction in " + name_);
    if (data_ != wanted_data_) broken->push_back("G5: the data does not belong to the locks and records of " + name_);
    if (pending_ != observed_locks_) broken->push_back("N1: the pending marks are not those of the locks of " + name_);
    std::sort(spans_.begin(), spans_.end());
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (spans_[i].first >= spans_[i].second) broken->push_back("T6: a commit before its start in " + name_);
      if (i > 0 && spans_[i].first < spans_[i - 1].second) broken->push_back("T5: writers overlap in " + name_);
    }
  }

 private:
  static bool HasOwnData(WriteKind kind, const std::optional<std::string>& value) {
    return kind == WriteKind::kPut && !value.has_value();
  }

  void AddStart(Timestamp start_ts, bool has_data) {
    twice_ |= !starts_.insert(start_ts).second;
    if (has_data) wanted_data_.insert(start_ts);
  }

  const std::string name_;
  int locks_ = 0;
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
  // The scan gives each row family by family. Within a family, cells stay newest first.
  std::stable_sort(cells.begin(), cells.end(), [](const RawCell& a, const RawCell& b) { return a.name < b.name; });
  return cells;
}

std::string ValueText(const std::string& value) {
  const bool uniform = value.find_first_not_of(value.empty() ? '\0' : value[0]) == std::string::npos;
  if (value.size() > 20 && uniform) return StrCat(value.size(), "*", std::string(1, value[0]));
  return value.empty() ? "\"\"" : value;
}

std::string DumpText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  const bool has_marks = std::any_of(cells.begin(), cells.end(), [](const RawCell& c) { return c.mark.has_value(); });
  std::vector<Line> lines = {{"", "data", "lock", "write", "notify"}};
  for (size_t i = 0; i < cells.size();) {
    const CellName& name = cells[i].name;
    const bool markers = name.column == RollbackColumn();
    std::array<std::vector<std::string>, kFamilies.size()> contents;
    for (; i < cells.size() && cells[i].name == name; ++i) {
      contents[static_cast<size_t>(cells[i].family)].push_back(ContentText(cells[i], map, stamps));
    }
    if (name.table == kSystemTable) continue;
    AddLines(markers ? CellMap::NameOfRow(name.table, name.row) : map.NameOf(name), contents, &lines);
  }
  return Aligned(lines, has_marks ? kFamilies.size() + 1 : kFamilies.size());
}

std::string LocksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  std::string text;
  for (const RawCell& cell : cells) {
    if (!cell.lock.has_value()) continue;
    text += StrCat(text.empty() ? "" : ", ", map.NameOf(cell.name), " by ", stamps.TransactionName(cell.timestamp));
  }
  return text.empty() ? "none" : text;
}

std::string MarksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  std::string text;
  for (const RawCell& cell : cells) {
    if (!cell.mark.has_value()) continue;
    text += StrCat(text.empty() ? "" : ", ", map.NameOf(cell.name), cell.pending ? " pending " : " ",
                   stamps.Text(cell.timestamp));
  }
  return text.empty() ? "none" : text;
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
      const bool is_version =
          cell.record.has_value() && (cell.record->kind == WriteKind::kPut || cell.record->kind == WriteKind::kDelete);
      if (is_version) changed = std::max(changed, cell.timestamp);
      if (cell.mark.has_value() && !cell.pending) marked = std::max(marked, cell.timestamp);
    } else if (cell.name == ack && cell.record.has_value() && cell.timestamp > acknowledged) {
      acknowledged = cell.timestamp;
      seen = SeenBy(cell.record->value.value_or(""));
    }
  }
  if (changed <= seen || marked >= changed) return {};
  return {StrCat("N1: ", observed.column, " has changed, ", observer, " has not seen it, and nobody will find it")};
}

std::vector<std::string> BrokenRules(const std::vector<RawCell>& cells) {
  std::vector<std::string> broken;
  std::map<Timestamp, Traces> transactions;
  for (size_t i = 0; i < cells.size();) {
    const CellName& name = cells[i].name;
    CellRules rules(name);
    for (; i < cells.size() && cells[i].name == name; ++i) {
      const RawCell& cell = cells[i];
      if (cell.is_marker()) {
        transactions[cell.timestamp].marked = true;
        continue;
      }
      if (cell.record.has_value()) transactions[cell.record->start_ts].commits.insert(cell.timestamp);
      rules.Add(cell);
    }
    rules.Check(&broken);
  }
  for (const auto& [start_ts, traces] : transactions) {
    const std::string who = StrCat("the transaction that started at ", start_ts.ToString());
    if (traces.marked && !traces.commits.empty())
      broken.push_back(StrCat("T1: ", who, " both is and is not committed"));
    if (traces.commits.size() > 1) broken.push_back(StrCat("T2: ", who, " has several commit timestamps"));
  }
  return broken;
}

}  // namespace percolator
