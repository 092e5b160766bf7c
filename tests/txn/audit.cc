#include "tests/txn/audit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

class Auditor {
 public:
  explicit Auditor(Store* store) : store_(store) {}

  std::vector<std::string> Run() {
    const absl::StatusOr<std::vector<TableInfo>> tables = store_->ListTables();
    if (!tables.ok()) return {tables.status().ToString()};
    for (const TableInfo& table : *tables) AuditTable(table.name);
    AuditVerdicts();
    return std::move(findings_);
  }

 private:
  struct Record {
    Timestamp commit_ts;
    WriteRecord record;
  };
  // What a row says of one column.
  struct Column {
    std::map<Timestamp, Lock> locks;
    std::vector<Record> records;  // newest first
    std::set<Timestamp> data;
    std::set<Timestamp> pending;  // marks
  };

  void Find(std::string_view invariant, const CellName& cell, std::string_view what) {
    findings_.push_back(StrCat(invariant, " ", cell.table, "/", absl::CHexEscape(cell.row), "/",
                               absl::CHexEscape(cell.column), ": ", what));
  }

  void AuditTable(const std::string& table) {
    ScanRequest request{
        table, RowRange::All(), {{Family::kLock}, {Family::kWrite}, {Family::kData}, {Family::kNotify}}};
    for (bool more = true; more;) {
      const absl::StatusOr<ScanPage> page = store_->Scan(request);
      if (!page.ok()) {
        findings_.push_back(page.status().ToString());
        return;
      }
      for (const Row& row : page->rows) AuditRow(table, row);
      more = page->resume.has_value();
      if (more) request.rows.start = *page->resume;
    }
  }

  void AuditRow(const std::string& table, const Row& row) {
    std::map<std::string, Column> columns;
    std::set<Timestamp> markers;
    for (const Cell& cell : row.cells) {
      const CellName name{table, row.key, cell.column};
      if (cell.family == Family::kData) {
        columns[cell.column].data.insert(cell.timestamp);
      } else if (cell.family == Family::kNotify) {
        const absl::StatusOr<Mark> mark = DecodeMark(cell.value);
        if (!mark.ok()) return Find("format", name, mark.status().ToString());
        const std::optional<std::string_view> of = ColumnOfPending(cell.column);
        if (of.has_value()) columns[std::string(*of)].pending.insert(cell.timestamp);
      } else if (cell.family == Family::kLock) {
        const absl::StatusOr<Lock> lock = DecodeLock(cell.value);
        if (!lock.ok()) return Find("format", name, lock.status().ToString());
        columns[cell.column].locks[cell.timestamp] = *lock;
        if (lock->primary.has_value()) primaries_[cell.timestamp] = *lock->primary;
      } else {
        const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
        if (!record.ok()) return Find("format", name, record.status().ToString());
        if (cell.column == RollbackColumn()) {
          markers.insert(cell.timestamp);
        } else {
          columns[cell.column].records.push_back({cell.timestamp, *record});
        }
      }
    }
    for (const auto& [column, state] : columns) {
      AuditColumn({table, row.key, column}, state, markers);
      const std::optional<std::string> observed = ColumnOfAck(column);
      if (!observed.has_value()) continue;
      const auto changes = columns.find(*observed);
      AuditAcks({table, row.key, column}, state.records,
                changes == columns.end() ? std::vector<Record>() : changes->second.records);
    }
    for (const Timestamp start : markers) markers_.emplace(start, std::pair(table, row.key));
  }

  // Both newest first.
  void AuditAcks(const CellName& ack, const std::vector<Record>& acks, const std::vector<Record>& changes) {
    std::optional<Timestamp> later;  // the start of the run that acknowledged after the one at hand
    for (const Record& record : acks) {
      std::string_view bytes;
      if (record.record.value.has_value()) bytes = *record.record.value;
      uint64_t start = 0;
      const bool is_run = ConsumeFixed64(&bytes, &start);  // else: somebody asked for a run whatever was seen
      if (is_run && later.has_value() && !ChangedBetween(changes, Timestamp(start), *later)) {
        Find("N2", ack, StrCat("runs of starts ", start, " and ", later->ToString(), " have seen the same"));
      }
      later = is_run ? std::optional(Timestamp(start)) : std::nullopt;
    }
  }

  static bool ChangedBetween(const std::vector<Record>& changes, Timestamp after, Timestamp until) {
    return std::any_of(changes.begin(), changes.end(), [&](const Record& change) {
      const bool is_version = change.record.kind == WriteKind::kPut || change.record.kind == WriteKind::kDelete;
      return is_version && change.commit_ts > after && change.commit_ts <= until;
    });
  }

  void AuditColumn(const CellName& cell, const Column& column, const std::set<Timestamp>& markers) {
    if (column.locks.size() > 1) Find("T4", cell, "two locks");
    std::set<Timestamp> starts;
    std::set<Timestamp> points_to_data;
    std::set<Timestamp> observed;
    for (const auto& [start, lock] : column.locks) {
      if (lock.observed) observed.insert(start);
      if (lock.kind == WriteKind::kPut && !lock.value.has_value()) points_to_data.insert(start);
      if (markers.contains(start)) Find("T3", cell, StrCat("a lock at ", start.ToString(), " beside its marker"));
    }
    if (observed != column.pending) Find("N1", cell, "the pending marks are not those of its locks");
    std::optional<Record> newer;
    for (const Record& record : column.records) {
      const Timestamp start = record.record.start_ts;
      if (!starts.insert(start).second) Find("T4", cell, StrCat("two records of start ", start.ToString()));
      if (column.locks.contains(start)) Find("T4", cell, StrCat("lock and record of start ", start.ToString()));
      if (markers.contains(start))
        Find("T3", cell, StrCat("a record of start ", start.ToString(), " beside its marker"));
      if (record.commit_ts <= start)
        Find("T6", cell, StrCat("commit ", record.commit_ts.ToString(), " not after its start"));
      if (newer.has_value() && newer->record.start_ts <= record.commit_ts) {
        Find("T5", cell,
             StrCat("the transactions of starts ", start.ToString(), " and ", newer->record.start_ts.ToString(),
                    " overlap"));
      }
      newer = record;
      if (record.record.kind == WriteKind::kPut && !record.record.value.has_value()) {
        points_to_data.insert(start);
        if (!column.data.contains(start)) Find("T2", cell, StrCat("no data at ", start.ToString()));
      }
      const auto [it, is_new] = commits_.emplace(start, record.commit_ts);
      if (!is_new && it->second != record.commit_ts) {
        Find("T2", cell,
             StrCat("start ", start.ToString(), " committed at ", record.commit_ts.ToString(), " and at ",
                    it->second.ToString()));
      }
    }
    for (const Timestamp start : column.data) {
      if (!points_to_data.contains(start)) Find("G5", cell, StrCat("data at ", start.ToString(), " of nobody"));
    }
  }

  // Across rows: a marker in the primary's row is a verdict, and no record may contradict it. Where the primary is, only
  // locks tell; where there is none left, the first row that has a marker stands for it.
  void AuditVerdicts() {
    for (const auto& [start, row] : markers_) {
      if (!commits_.contains(start)) continue;
      const auto primary = primaries_.find(start);
      const bool is_primary =
          primary == primaries_.end() || (primary->second.table == row.first && primary->second.row == row.second);
      if (is_primary) {
        Find("T1", {row.first, row.second, ""}, StrCat("start ", start.ToString(), " is rolled back and committed"));
      }
    }
  }

  Store* const store_;
  std::vector<std::string> findings_;
  std::map<Timestamp, Timestamp> commits_;                                 // by start
  std::multimap<Timestamp, std::pair<std::string, std::string>> markers_;  // by start: where
  std::map<Timestamp, CellName> primaries_;                                // by start
};

}  // namespace

std::vector<std::string> Audit(Store* store) { return Auditor(store).Run(); }

}  // namespace percolator
