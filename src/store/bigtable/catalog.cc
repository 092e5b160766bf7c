// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/stable_hash.h"
#include "src/base/strings.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

// No other table has this name: those end with a hyphen and a number.
constexpr char kCatalogTable[] = "percolator-catalog";
// No table name has a dot.
constexpr char kSafePointRow[] = ".safe-point";

constexpr char kSchema[] = "schema";
constexpr char kDropped[] = "dropped";
constexpr char kDelete[] = "delete";
constexpr char kTs[] = "ts";

constexpr size_t kLongestPlainName = 38;  // with a hyphen and a number it has at most Bigtable's 50 characters
constexpr size_t kKeptOfLongName = 21;

constexpr size_t kListedAtOnce = 1000;
constexpr size_t kListedBytes = 16 << 20;

Selector Everything() { return {Family::kData, std::nullopt, TimestampRange::All(), Selector::kAllVersions}; }

CellRange Any(const char* column, TimestampRange range) { return {Family::kData, column, range}; }

Mutation SetAt(const char* column, uint64_t generation, std::string value = {}) {
  return Mutation::Set(Family::kData, column, Timestamp(generation), std::move(value));
}

Mutation EraseAt(const char* column, uint64_t generation) {
  return Mutation::Erase(Family::kData, column, TimestampRange::Exactly(Timestamp(generation)));
}

absl::Status UnlessMissing(const absl::Status& status) { return absl::IsNotFound(status) ? absl::OkStatus() : status; }

}  // namespace

std::string BigtableTableId(const std::string& name, uint64_t generation) {
  if (name.size() <= kLongestPlainName && name.front() != '-') return StrCat(name, "-", generation);
  // Begins with a letter, because the table name may begin with a character that Bigtable does not allow there.
  return StrCat("x", name.substr(0, kKeptOfLongName), absl::StrFormat("%016x", StableHash(name)), "-", generation);
}

absl::StatusOr<std::string> BigtableCatalog::IdOf(const std::string& name) {
  {
    MutexLock lock(&mutex_);
    if (const auto it = ids_.find(name); it != ids_.end()) return it->second;
  }
  if (!ValidateTableName(name).ok()) return UnknownTable(name);
  PERCOLATOR_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(name));
  if (!entry.generation.has_value()) return UnknownTable(name);
  std::string id = BigtableTableId(name, *entry.generation);
  MutexLock lock(&mutex_);
  ids_.insert_or_assign(name, id);
  return id;
}

void BigtableCatalog::Forget(const std::string& name) {
  MutexLock lock(&mutex_);
  ids_.erase(name);
}

BigtableCatalog::Entry BigtableCatalog::EntryOf(const std::vector<Cell>& cells) {
  Entry entry;
  for (const Cell& cell : cells) {
    const uint64_t generation = cell.timestamp.value();
    if (cell.column == kSchema && !entry.generation.has_value()) {
      entry.generation = generation;
      entry.schema = cell.value;
    } else if (cell.column == kDropped) {
      entry.dropped = std::max(entry.dropped, generation);
    } else if (cell.column == kDelete) {
      entry.to_delete.push_back(generation);
    }
  }
  return entry;
}

absl::StatusOr<std::vector<Cell>> BigtableCatalog::ReadRow(const std::string& row) {
  absl::StatusOr<BigtableClient::Rows> rows = client_->Read(kCatalogTable, {row}, *FilterOf({Everything()}));
  if (absl::IsNotFound(rows.status())) return std::vector<Cell>();
  if (!rows.ok()) return rows.status();
  return rows->empty() ? std::vector<Cell>() : std::move(rows->begin()->second);
}

absl::StatusOr<BigtableCatalog::Entry> BigtableCatalog::ReadEntry(const std::string& name) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Cell> cells, ReadRow(name));
  return EntryOf(cells);
}

absl::StatusOr<MutateResult> BigtableCatalog::Mutate(const RowMutation& mutation) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Predicate predicate, PredicateOf(mutation.condition));
  const auto send = [&]() -> absl::StatusOr<MutateResult> {
    if (predicate.holds != Predicate::Holds::kAlways) return client_->MutateIf(kCatalogTable, mutation, predicate);
    PERCOLATOR_RETURN_IF_ERROR(client_->Mutate(kCatalogTable, {&mutation})[0]);
    return MutateResult::kApplied;
  };
  absl::StatusOr<MutateResult> result = send();
  if (!absl::IsNotFound(result.status())) return result;
  const absl::Status created = client_->CreateTable(kCatalogTable);
  if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  return send();
}

absl::Status BigtableCatalog::DeleteGeneration(const std::string& name, uint64_t generation) {
  PERCOLATOR_RETURN_IF_ERROR(UnlessMissing(client_->DeleteTable(BigtableTableId(name, generation))));
  return Mutate({kCatalogTable, name, {}, {EraseAt(kDelete, generation)}}).status();
}

absl::Status BigtableCatalog::CleanUp(const std::string& name, const Entry& entry) {
  for (const uint64_t generation : entry.to_delete) {
    PERCOLATOR_RETURN_IF_ERROR(DeleteGeneration(name, generation));
  }
  return absl::OkStatus();
}

absl::Status BigtableCatalog::Create(const TableInfo& info) {
  PERCOLATOR_DCHECK(ValidateTableName(info.name).ok());
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(info.name));
    if (entry.generation.has_value()) return TableExists(info.name);
    PERCOLATOR_RETURN_IF_ERROR(CleanUp(info.name, entry));
    const uint64_t generation = entry.dropped + 1;
    const std::string id = BigtableTableId(info.name, generation);
    // An existing table was left by a crash, or another client is creating it: it has no cells yet.
    absl::Status created = client_->CreateTable(id);
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
    const TimestampRange not_before = TimestampRange::From(Timestamp(generation));
    const Condition unused{Condition::Quantifier::kNone,
                           {Any(kSchema, TimestampRange::All()), Any(kDropped, not_before)}};
    PERCOLATOR_ASSIGN_OR_RETURN(const MutateResult result,
                                Mutate({kCatalogTable, info.name, unused, {SetAt(kSchema, generation, info.schema)}}));
    if (result == MutateResult::kApplied) return absl::OkStatus();
    // Another client was faster. If its table was dropped since, this call may create it again.
    PERCOLATOR_ASSIGN_OR_RETURN(const Entry now, ReadEntry(info.name));
    if (now.dropped >= generation) {
      PERCOLATOR_RETURN_IF_ERROR(UnlessMissing(client_->DeleteTable(id)));
    }
  }
}

absl::Status BigtableCatalog::Drop(const std::string& name) {
  PERCOLATOR_DCHECK(ValidateTableName(name).ok());
  PERCOLATOR_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(name));
  PERCOLATOR_RETURN_IF_ERROR(CleanUp(name, entry));
  if (!entry.generation.has_value()) return UnknownTable(name);
  const uint64_t generation = *entry.generation;
  const Condition exists{Condition::Quantifier::kAll, {Any(kSchema, TimestampRange::Exactly(Timestamp(generation)))}};
  const absl::StatusOr<MutateResult> result =
      Mutate({kCatalogTable,
              name,
              exists,
              {EraseAt(kSchema, generation),
               Mutation::Erase(Family::kData, kDropped, TimestampRange::UpTo(Timestamp(generation))),
               SetAt(kDropped, generation), SetAt(kDelete, generation)}});
  Forget(name);
  if (!result.ok()) return result.status();
  if (*result != MutateResult::kApplied) return UnknownTable(name);  // another client was faster
  return DeleteGeneration(name, generation);
}

absl::StatusOr<std::vector<TableInfo>> BigtableCatalog::List() {
  std::vector<TableInfo> tables;
  ScanRequest request{kCatalogTable,
                      RowRange::All(),
                      {{Family::kData, kSchema, TimestampRange::All(), Selector::kAllVersions}},
                      kListedAtOnce};
  const google::bigtable::v2::RowFilter filter = *FilterOf(request.selectors);
  for (;;) {
    absl::StatusOr<ScanPage> page = client_->Scan(kCatalogTable, request, filter, kListedBytes);
    if (absl::IsNotFound(page.status())) return tables;
    if (!page.ok()) return page.status();
    for (Row& row : page->rows) tables.push_back({std::move(row.key), std::move(row.cells[0].value)});
    if (!page->resume.has_value()) return tables;
    request.ContinueAt(*std::move(page->resume));
  }
}

absl::StatusOr<Timestamp> BigtableCatalog::ReadSafePoint() {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Cell> cells, ReadRow(kSafePointRow));
  return cells.empty() ? Timestamp() : cells.front().timestamp;
}

absl::Status BigtableCatalog::RaiseSafePoint(Timestamp ts) {
  if (ts == Timestamp()) return absl::OkStatus();
  const Condition lower{Condition::Quantifier::kNone, {Any(kTs, TimestampRange::From(ts))}};
  const RowMutation raise{
      kCatalogTable,
      kSafePointRow,
      lower,
      {Mutation::Erase(Family::kData, kTs, {Timestamp(), ts}), Mutation::Set(Family::kData, kTs, ts, {})}};
  PERCOLATOR_RETURN_IF_ERROR(CheckTimestamps(raise));
  return Mutate(raise).status();
}

}  // namespace percolator
