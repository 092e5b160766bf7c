// SPDX-License-Identifier: Apache-2.0

// The store in memory: ordered maps under one mutex.
//
// It is the executable specification of percolator/spi/store.h: other stores are compared with it, and the simulator
// runs on it. So it is written to be read, and its answers depend only on the calls.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "percolator/status_macros.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

constexpr size_t kSamplePieces = 16;

// No map holds an empty map: a row or column without versions does not exist. (A std::string orders by unsigned bytes.)
using Versions = std::map<Timestamp, std::string, std::greater<>>;
using Columns = std::map<std::string, Versions>;
using Families = std::array<Columns, kFamilyCount>;
using Rows = std::map<std::string, Families>;

struct Table {
  std::string schema;
  Rows rows;
};

Columns& In(Families& row, Family family) { return row[static_cast<size_t>(family)]; }
const Columns& In(const Families& row, Family family) { return row[static_cast<size_t>(family)]; }

// Returns the newest version in `range`. The others follow it, newest first, down to range.from.
Versions::const_iterator NewestIn(const Versions& versions, const TimestampRange& range) {
  return versions.upper_bound(range.until);
}

// Appends the versions of one column that `selector` selects, until they have too many bytes. Returns the number of
// versions that it read.
size_t SelectVersions(const std::string& column, const Versions& versions, const Selector& selector, RowBytes* bytes,
                      std::vector<Cell>* cells) {
  size_t taken = 0;
  for (auto it = NewestIn(versions, selector.range); it != versions.end(); ++it) {
    if (it->first < selector.range.from) break;
    if (selector.newest != Selector::kAllVersions && taken == selector.newest) break;
    if (!bytes->Add(column, it->second.size())) break;
    cells->push_back({selector.family, column, it->first, it->second});
    ++taken;
  }
  return taken;
}

// Appends the cells that `selectors` select. Returns the number of versions that it read. Returns ResourceExhausted if
// the cells are too large.
absl::StatusOr<size_t> SelectCells(const Families& row, const std::vector<Selector>& selectors, size_t max_bytes,
                                   const StoreLimits& limits, std::vector<Cell>* cells) {
  RowBytes bytes(selectors.size(), max_bytes, limits);
  size_t looked_at = 0;
  for (const Selector& selector : selectors) {
    const Columns& columns = In(row, selector.family);
    auto it = selector.column.has_value() ? columns.find(*selector.column) : columns.begin();
    for (; it != columns.end(); ++it) {
      looked_at += SelectVersions(it->first, it->second, selector, &bytes, cells);
      PERCOLATOR_RETURN_IF_ERROR(bytes.status());
      if (selector.column.has_value()) break;
    }
  }
  return looked_at;
}

bool Exists(const Families& row, const CellRange& cell) {
  const Columns& columns = In(row, cell.family);
  const auto column = columns.find(cell.column);
  if (column == columns.end()) return false;
  const auto newest = NewestIn(column->second, cell.range);
  return newest != column->second.end() && newest->first >= cell.range.from;
}

bool Holds(const Condition& condition, const Families& row) {
  if (condition.cells.empty()) return true;
  size_t existing = 0;
  for (const CellRange& cell : condition.cells) existing += Exists(row, cell) ? 1 : 0;
  switch (condition.quantifier) {
    case Condition::Quantifier::kNone:
      return existing == 0;
    case Condition::Quantifier::kAny:
      return existing > 0;
    case Condition::Quantifier::kAll:
      return existing == condition.cells.size();
  }
  return false;
}

void EraseVersions(const Mutation& erase, Columns* columns) {
  const auto column = columns->find(erase.column);
  if (column == columns->end()) return;
  std::erase_if(column->second, [&](const auto& version) { return erase.range.Contains(version.first); });
  if (column->second.empty()) columns->erase(column);
}

void Apply(const Mutation& mutation, Families* row) {
  Columns& columns = In(*row, mutation.family);
  if (mutation.kind == Mutation::Kind::kSet) {
    columns[mutation.column][mutation.range.from] = mutation.value;
  } else {
    EraseVersions(mutation, &columns);
  }
}

bool IsEmpty(const Families& row) {
  for (const Columns& columns : row) {
    if (!columns.empty()) return false;
  }
  return true;
}

void ApplyTo(const std::string& key, const std::vector<Mutation>& mutations, Rows* rows) {
  const auto row = rows->try_emplace(key).first;
  for (const Mutation& m : mutations) Apply(m, &row->second);
  if (IsEmpty(row->second)) rows->erase(row);
}

size_t BytesOf(const Row& row) {
  size_t bytes = row.key.size();
  for (const Cell& cell : row.cells) bytes += cell.column.size() + cell.value.size();
  return bytes;
}

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const StoreLimits& limits) : limits_(limits) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  bool CanMutateTogether() const override { return true; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;
  absl::StatusOr<TableInfo> GetTable(const std::string& name) override;
  absl::Status Close() override;

 private:
  absl::StatusOr<Row> ReadRow(const RowRead& read) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<MutateResult> MutateRow(const RowMutation& mutation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> HoldsIn(const Rows& rows, const RowMutation& mutation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Iterator>
  absl::StatusOr<ScanPage> ScanRows(Iterator it, Iterator end, const ScanRequest& request) const;
  absl::StatusOr<Table*> FindTable(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<TableInfo> TableInfos() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StoreLimits limits_;

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Table> tables_ ABSL_GUARDED_BY(mutex_);
  Timestamp safe_point_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<Table*> MemoryStore::FindTable(const std::string& name) {
  const auto it = tables_.find(name);
  if (it == tables_.end()) return UnknownTable(name);
  return &it->second;
}

absl::StatusOr<std::vector<Row>> MemoryStore::Read(const std::vector<RowRead>& reads) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  std::vector<Row> rows;
  rows.reserve(reads.size());
  for (const RowRead& read : reads) {
    PERCOLATOR_ASSIGN_OR_RETURN(Row row, ReadRow(read));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<Row> MemoryStore::ReadRow(const RowRead& read) {
  PERCOLATOR_RETURN_IF_ERROR(ValidateRead(read, limits_));
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(read.table));
  Row row{read.row, {}};
  const auto it = table->rows.find(read.row);
  if (it == table->rows.end()) return row;
  PERCOLATOR_RETURN_IF_ERROR(SelectCells(it->second, read.selectors, read.max_bytes, limits_, &row.cells).status());
  return row;
}

absl::StatusOr<ScanPage> MemoryStore::Scan(const ScanRequest& request) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_RETURN_IF_ERROR(ValidateScan(request, limits_));
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(request.table));
  const std::optional<std::string>& limit = request.rows.limit;
  if (limit.has_value() && *limit <= request.rows.start) return ScanPage();
  const Rows& rows = table->rows;
  const auto begin = rows.lower_bound(request.rows.start);
  const auto end = limit.has_value() ? rows.lower_bound(*limit) : rows.end();
  if (!request.reverse) return ScanRows(begin, end, request);
  return ScanRows(std::make_reverse_iterator(end), std::make_reverse_iterator(begin), request);
}

// Reads the rows from `it` on, in its direction.
template <typename Iterator>
absl::StatusOr<ScanPage> MemoryStore::ScanRows(Iterator it, Iterator end, const ScanRequest& request) const {
  ScanPage page;
  size_t bytes = 0;
  size_t work = 0;
  for (; it != end; ++it) {
    const bool full =
        page.rows.size() >= request.row_limit || bytes >= limits_.max_scan_bytes || work >= limits_.max_scan_work;
    Row row{it->first, {}};
    absl::StatusOr<size_t> looked_at = 0;
    const bool ends = full && work > 0;
    if (!ends) looked_at = SelectCells(it->second, request.selectors, request.max_row_bytes, limits_, &row.cells);
    if (ends || (!looked_at.ok() && !page.rows.empty())) {
      page.resume =
          request.reverse ? it->first + '\0' : it->first;  // the next page begins with this row in either direction
      break;
    }
    PERCOLATOR_RETURN_IF_ERROR(looked_at.status());
    work += 1 + *looked_at;  // a row counts as work even if nothing in it is selected
    if (row.cells.empty()) continue;
    bytes += BytesOf(row);
    page.rows.push_back(std::move(row));
  }
  return page;
}

std::vector<absl::StatusOr<MutateResult>> MemoryStore::Mutate(const std::vector<RowMutation>& mutations) {
  MutexLock lock(&mutex_);
  std::vector<absl::StatusOr<MutateResult>> results;
  results.reserve(mutations.size());
  for (const RowMutation& mutation : mutations) results.push_back(MutateRow(mutation));
  return results;
}

absl::StatusOr<MutateResult> MemoryStore::MutateRow(const RowMutation& mutation) {
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_RETURN_IF_ERROR(ValidateMutation(mutation, limits_));
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(mutation.table));
  PERCOLATOR_ASSIGN_OR_RETURN(const bool holds, HoldsIn(table->rows, mutation));
  if (!holds) return MutateResult::kConditionFailed;
  ApplyTo(mutation.row, mutation.mutations, &table->rows);
  return MutateResult::kApplied;
}

absl::StatusOr<bool> MemoryStore::HoldsIn(const Rows& rows, const RowMutation& mutation) {
  PERCOLATOR_RETURN_IF_ERROR(CheckSafePoint(mutation, safe_point_));
  static const Families kNoCells;
  const auto row = rows.find(mutation.row);
  return Holds(mutation.condition, row == rows.end() ? kNoCells : row->second);
}

// The mutex stays locked while the timestamp is drawn: so every row is closed.
absl::StatusOr<JointResult> MemoryStore::MutateTogether(const JointMutation& mutation, Oracle* oracle) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_RETURN_IF_ERROR(ValidateJointMutation(mutation, limits_));
  std::vector<Table*> tables;
  for (const RowMutation& row : mutation.rows) {
    PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(row.table));
    tables.push_back(table);
  }
  PERCOLATOR_RETURN_IF_ERROR(CheckSafePoint(mutation, safe_point_));
  for (size_t i = 0; i < mutation.rows.size(); ++i) {
    PERCOLATOR_ASSIGN_OR_RETURN(const bool holds, HoldsIn(tables[i]->rows, mutation.rows[i]));
    if (!holds) return JointResult{.failed_row = i};
  }
  const absl::StatusOr<Timestamp> drawn = oracle->GetTimestamp();
  if (!drawn.ok()) return NoTimestampDrawn(drawn.status());
  for (size_t i = 0; i < mutation.rows.size(); ++i) {
    std::vector<Mutation> mutations = mutation.rows[i].mutations;
    for (Mutation& m : mutations) SetDrawnTimestamp(*drawn, &m);
    ApplyTo(mutation.rows[i].row, mutations, &tables[i]->rows);
  }
  return JointResult{.applied = true, .timestamp = *drawn};
}

absl::Status MemoryStore::RaiseSafePoint(Timestamp ts) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  safe_point_ = std::max(safe_point_, ts);
  return absl::OkStatus();
}

absl::StatusOr<Timestamp> MemoryStore::SafePoint() {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  return safe_point_;
}

absl::StatusOr<std::vector<std::string>> MemoryStore::SampleRowKeys(const std::string& name) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(name));
  const size_t piece = (table->rows.size() + kSamplePieces - 1) / kSamplePieces;
  std::vector<std::string> keys;
  size_t position = 0;
  for (const auto& [key, row] : table->rows) {
    if (position > 0 && position % piece == 0) keys.push_back(key);
    ++position;
  }
  return keys;
}

absl::Status MemoryStore::CreateTable(const TableInfo& info) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_RETURN_IF_ERROR(ValidateTable(info, limits_));
  if (tables_.contains(info.name)) return TableExists(info.name);
  PERCOLATOR_RETURN_IF_ERROR(CheckRoomForTable(info, TableInfos(), limits_));
  tables_.try_emplace(info.name, Table{info.schema, {}});
  return absl::OkStatus();
}

absl::Status MemoryStore::DropTable(const std::string& name) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  return tables_.erase(name) > 0 ? absl::OkStatus() : UnknownTable(name);
}

absl::StatusOr<std::vector<TableInfo>> MemoryStore::ListTables() {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  return TableInfos();
}

std::vector<TableInfo> MemoryStore::TableInfos() const {
  std::vector<TableInfo> infos;
  for (const auto& [name, table] : tables_) infos.push_back({name, table.schema});
  return infos;
}

absl::StatusOr<TableInfo> MemoryStore::GetTable(const std::string& name) {
  MutexLock lock(&mutex_);
  if (closed_) return StoreClosed("memory store");
  PERCOLATOR_ASSIGN_OR_RETURN(const Table* table, FindTable(name));
  return TableInfo{name, table->schema};
}

absl::Status MemoryStore::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  tables_.clear();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Store> NewMemoryStore(const StoreLimits& limits) { return std::make_unique<MemoryStore>(limits); }

}  // namespace percolator
