// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/tables.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

using google::bigtable::admin::v2::ModifyColumnFamiliesRequest;
using Modification = ModifyColumnFamiliesRequest::Modification;

constexpr size_t kFamilyNameBytes = 64;
// Begins the schema of a foreign table. No schema of this library begins with FF (src/txn/tables.h).
constexpr std::string_view kSchemaMark =
    "\xff"
    "bigtable:";
constexpr size_t kMaxCachedTables = 100;
// The limit of a schema in memory, because nested empty rules are small on the wire.
constexpr size_t kSchemaMemory = size_t{256} << 10;

// The cell with the schema of a foreign table after its first change.
std::string SchemaRow() { return {'\0'}; }
std::string SchemaColumn() { return std::string("\0schema", 7); }

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

absl::Status CheckFamilyName(std::string_view name) {
  if (!name.empty() && name.size() <= kFamilyNameBytes && std::all_of(name.begin(), name.end(), IsWord)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("invalid name of a column family \"", name, "\": expected 1 to 64 of the characters -_.a-zA-Z0-9"));
}

absl::Status CheckSchema(const v1::BigtableSchema& schema) {
  constexpr size_t kLimit = StoreLimits().max_schema_bytes - kSchemaMark.size();
  if (const size_t bytes = schema.ByteSizeLong(); bytes > kLimit) {
    return absl::InvalidArgumentError(
        StrCat("the column families have ", bytes, " bytes when serialized; the limit is ", kLimit));
  }
  if (const size_t bytes = schema.SpaceUsedLong(); bytes > kSchemaMemory) {
    return absl::InvalidArgumentError(
        StrCat("the column families take ", bytes, " bytes of memory; the limit is ", kSchemaMemory));
  }
  return absl::OkStatus();
}

// Removes "NAME/VALUE" from the front, and the slash after it if there is one.
bool ConsumePart(std::string_view* in, std::string_view name) {
  if (!ConsumePrefix(in, name) || !ConsumePrefix(in, "/")) return false;
  const size_t end = std::min(in->find('/'), in->size());
  if (end == 0) return false;
  in->remove_prefix(end);
  ConsumePrefix(in, "/");
  return true;
}

v1::BigtableSchema NativeSchema() {
  v1::BigtableSchema schema;
  for (int i = 0; i < kFamilyCount; ++i) {
    (*schema.mutable_families())[std::string(FamilyName(static_cast<Family>(i)))];
  }
  return schema;
}

bool IsNative(const v1::BigtableSchema& schema) {
  if (schema.families_size() != kFamilyCount) return false;
  return std::all_of(schema.families().begin(), schema.families().end(),
                     [](const auto& family) { return NativeSchema().families().contains(family.first); });
}

std::optional<Family> NativeFamily(std::string_view name) {
  for (int i = 0; i < kFamilyCount; ++i) {
    if (FamilyName(static_cast<Family>(i)) == name) return static_cast<Family>(i);
  }
  return std::nullopt;
}

int64_t ToMicros(Timestamp ts) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max() / kMicrosPerTick;
  return static_cast<int64_t>(std::min(ts.value(), kMax)) * kMicrosPerTick;
}

bool InOrder(const BigtableCell& a, const BigtableCell& b) {
  if (a.family != b.family) return a.family < b.family;
  if (a.qualifier != b.qualifier) return a.qualifier < b.qualifier;
  return a.timestamp_micros > b.timestamp_micros;
}

absl::Status UnknownFamily(std::string_view table, std::string_view family) {
  return absl::NotFoundError(
      StrCat("Requested column family not found: table ", table, " has no family \"", family, "\""));
}

absl::Status ApplyModification(const std::string& table, const Modification& change, v1::BigtableSchema* schema) {
  auto& families = *schema->mutable_families();
  const bool there = families.contains(change.id());
  switch (change.mod_case()) {
    case Modification::kCreate:
      PERCOLATOR_RETURN_IF_ERROR(CheckFamilyName(change.id()));
      if (there)
        return absl::AlreadyExistsError(StrCat("table ", table, " already has a family \"", change.id(), "\""));
      families[change.id()] = change.create();
      return absl::OkStatus();
    case Modification::kUpdate:
      if (!there) return UnknownFamily(table, change.id());
      families[change.id()] = change.update();
      return absl::OkStatus();
    case Modification::kDrop:
      if (!there) return UnknownFamily(table, change.id());
      if (!change.drop()) return absl::InvalidArgumentError("Error in field 'drop': it must be true or absent");
      families.erase(change.id());
      schema->add_dropped(change.id());
      return absl::OkStatus();
    case Modification::MOD_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      StrCat("the modification of family \"", change.id(), "\" is neither create, update nor drop"));
}

// Returns one mutation for each column with a matching cell, which deletes all its versions.
std::vector<Mutation> EraseAll(const Row& row, const std::function<bool(const Cell& cell)>& which) {
  std::vector<Mutation> erases;
  for (const Cell& cell : row.cells) {
    if (!which(cell)) continue;
    if (!erases.empty() && erases.back().family == cell.family && erases.back().column == cell.column) continue;
    erases.push_back(Mutation::Erase(cell.family, cell.column, TimestampRange::All()));
  }
  return erases;
}

}  // namespace

absl::StatusOr<std::string> TableIdOf(std::string_view table_name) {
  std::string_view rest = table_name;
  if (!ConsumePart(&rest, "projects") || !ConsumePart(&rest, "instances") || !ConsumePrefix(&rest, "tables/")) {
    return absl::InvalidArgumentError(
        StrCat("invalid table name \"", table_name, "\": expected projects/PROJECT/instances/INSTANCE/tables/TABLE"));
  }
  std::string id(rest);
  PERCOLATOR_RETURN_IF_ERROR(ValidateTableName(id));
  return id;
}

absl::Status CheckInstanceName(std::string_view instance_name) {
  std::string_view rest = instance_name;
  if (ConsumePart(&rest, "projects") && ConsumePart(&rest, "instances") && rest.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("invalid instance name \"", instance_name, "\": expected projects/PROJECT/instances/INSTANCE"));
}

// --- BigtableTable

bool BigtableTable::HasFamily(std::string_view family) const {
  return schema_.families().contains(std::string(family));
}

absl::Status BigtableTable::CheckFamily(std::string_view family) const {
  return HasFamily(family) ? absl::OkStatus() : UnknownFamily(id_, family);
}

BigtableTable::Place BigtableTable::PlaceOf(std::string_view family, std::string_view qualifier) const {
  PERCOLATOR_DCHECK(HasFamily(family));
  if (native_) return {*NativeFamily(family), std::string(qualifier)};
  std::string column(family);
  column.push_back('\0');
  column.append(qualifier);
  return {Family::kData, std::move(column)};
}

const std::vector<Family>& BigtableTable::families() const {
  static const auto* const kForeign = new std::vector<Family>{Family::kData};
  // Sorted by name.
  static const auto* const kNative =
      new std::vector<Family>{Family::kData, Family::kLock, Family::kNotify, Family::kWrite};
  return native_ ? *kNative : *kForeign;
}

BigtableCells BigtableTable::CellsOf(const Row& row) const {
  BigtableCells cells;
  cells.reserve(row.cells.size());
  std::string_view last;  // adjacent cells usually have the same family
  bool last_exists = false;
  for (const Cell& cell : row.cells) {
    BigtableCell out{FamilyName(cell.family), cell.column, ToMicros(cell.timestamp), cell.value, {}, 0};
    if (!native_) {
      const size_t end = cell.column.find('\0');
      out.family = std::string_view(cell.column).substr(0, end);
      out.qualifier = std::string_view(cell.column).substr(end + 1);
      if (out.family != last || last.empty()) last_exists = HasFamily(out.family);
      last = out.family;
      if (!last_exists) continue;
    }
    cells.push_back(out);
  }
  if (!std::is_sorted(cells.begin(), cells.end(), InOrder)) std::stable_sort(cells.begin(), cells.end(), InOrder);
  for (size_t i = 0; i < cells.size(); ++i) cells[i].position = i;
  return cells;
}

// --- BigtableTables

absl::StatusOr<std::shared_ptr<const BigtableTable>> BigtableTables::Load(const TableInfo& info) {
  if (!info.schema.starts_with(kSchemaMark)) {
    static const auto* const kNative = new v1::BigtableSchema(NativeSchema());
    // A table with Percolator's families that a Bigtable client created has an empty schema.
    return std::make_shared<const BigtableTable>(info.name, true, *kNative, !info.schema.empty());
  }
  uint64_t changes = 0;
  {
    MutexLock lock(&mutex_);
    if (const auto it = cached_.find(info.name); it != cached_.end()) return it->second;
    changes = changes_;
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                              store_->Read({{info.name, SchemaRow(), {{Family::kData, SchemaColumn()}}}}));
  const std::vector<Cell>& cells = rows.front().cells;
  v1::BigtableSchema schema;
  if (!schema.ParseFromString(cells.empty() ? info.schema.substr(kSchemaMark.size()) : cells.front().value)) {
    return absl::DataLossError(StrCat("cannot parse the column families of table ", info.name));
  }
  auto table = std::make_shared<const BigtableTable>(info.name, false, std::move(schema));
  MutexLock lock(&mutex_);
  if (cached_.size() >= kMaxCachedTables) cached_.clear();
  // After a change the schema that was read may be old, so the next caller reads it again.
  if (changes == changes_) cached_[info.name] = table;
  return table;
}

void BigtableTables::Cache(const std::string& id, std::shared_ptr<const BigtableTable> table) {
  MutexLock lock(&mutex_);
  ++changes_;
  if (table == nullptr) {
    cached_.erase(id);
  } else {
    cached_[id] = std::move(table);
  }
}

absl::StatusOr<std::shared_ptr<const BigtableTable>> BigtableTables::Find(std::string_view table_name) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string id, TableIdOf(table_name));
  const absl::StatusOr<TableInfo> info = store_->GetTable(id);
  if (absl::IsNotFound(info.status())) return absl::NotFoundError(StrCat("table \"", table_name, "\" not found"));
  if (!info.ok()) return info.status();
  return Load(*info);
}

absl::StatusOr<std::shared_ptr<const BigtableTable>> BigtableTables::FindToWrite(std::string_view table_name) {
  absl::StatusOr<std::shared_ptr<const BigtableTable>> table = Find(table_name);
  if (!table.ok() || !(*table)->transactional() || write_transactional_) return table;
  return absl::PermissionDeniedError(
      StrCat("cannot write table \"", (*table)->id(),
             "\": it belongs to Percolator's transactions, and a write outside of their ",
             "protocol would damage it; use a Percolator client, or start the server with --bigtable-writes-all"));
}

absl::Status BigtableTables::Visit(std::string_view after,
                                   const std::function<bool(const BigtableTable& table)>& visit) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, store_->ListTables());
  for (const TableInfo& info : infos) {
    if (info.name <= after) continue;
    const absl::StatusOr<std::shared_ptr<const BigtableTable>> table = Load(info);
    if (absl::IsNotFound(table.status())) continue;  // the table was dropped after the list was read
    if (!table.ok()) return table.status();
    if (!visit(**table)) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const BigtableTable>> BigtableTables::Create(const std::string& id,
                                                                            const v1::BigtableSchema& schema) {
  PERCOLATOR_RETURN_IF_ERROR(ValidateTableName(id));
  for (const auto& [name, family] : schema.families()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckFamilyName(name));
  }
  PERCOLATOR_RETURN_IF_ERROR(CheckSchema(schema));
  const MutexLock administration(&administration_);
  const bool native = IsNative(schema);
  TableInfo info{id, native ? "" : StrCat(kSchemaMark, schema.SerializeAsString())};
  Cache(id, nullptr);
  PERCOLATOR_RETURN_IF_ERROR(store_->CreateTable(info));
  return Load(info);
}

absl::Status BigtableTables::Drop(std::string_view table_name) {
  const MutexLock administration(&administration_);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table, FindToWrite(table_name));
  // Excludes writers, which could otherwise write to a new table of this name.
  const MutexLock gate(&gate_);
  const WriterLock changing(&changing_);
  absl::Status status = store_->DropTable(table->id());
  Cache(table->id(), nullptr);
  return status;
}

absl::Status BigtableTables::WriteSchema(const BigtableTable& table) {
  RowMutation mutation{table.id(), SchemaRow(), {}, {}};
  mutation.mutations.push_back(
      Mutation::Set(Family::kData, SchemaColumn(), Timestamp(), table.schema().SerializeAsString()));
  return store_->Mutate({mutation}).front().status();
}

absl::Status BigtableTables::CheckTotal(const BigtableTable& before, const v1::BigtableSchema& schema) {
  constexpr size_t kLimit = StoreLimits().max_total_schema_bytes;
  size_t bytes = schema.ByteSizeLong();
  if (bytes <= before.schema().ByteSizeLong()) return absl::OkStatus();
  PERCOLATOR_RETURN_IF_ERROR(Visit("", [&](const BigtableTable& table) {
    if (!table.native() && table.id() != before.id()) bytes += table.schema().ByteSizeLong();
    return true;
  }));
  if (bytes <= kLimit) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat("with the changes of table ", before.id(),
                                             " the families of all tables would have ", bytes,
                                             " bytes, more than the limit of ", kLimit));
}

absl::StatusOr<std::shared_ptr<const BigtableTable>> BigtableTables::Modify(std::string_view table_name,
                                                                            const Modifications& modifications) {
  const MutexLock administration(&administration_);
  PERCOLATOR_ASSIGN_OR_RETURN(std::shared_ptr<const BigtableTable> found, Find(table_name));
  std::shared_ptr<const BigtableTable> table = std::move(found);
  if (table->native()) {
    return absl::FailedPreconditionError(
        StrCat("cannot change the families of table ", table->id(), ": it is a table of Percolator"));
  }
  // Finishes earlier drops first, before a family of the same name is created.
  PERCOLATOR_RETURN_IF_ERROR(EraseDropped(&table));
  v1::BigtableSchema schema = table->schema();
  for (const Modification& modification : modifications) {
    PERCOLATOR_RETURN_IF_ERROR(ApplyModification(table->id(), modification, &schema));
  }
  for (const std::string& dropped : schema.dropped()) {
    if (schema.families().contains(dropped)) {
      return absl::InvalidArgumentError(StrCat("cannot drop and create family \"", dropped, "\" in one request"));
    }
  }
  PERCOLATOR_RETURN_IF_ERROR(CheckSchema(schema));
  PERCOLATOR_RETURN_IF_ERROR(CheckTotal(*table, schema));
  auto changed = std::make_shared<const BigtableTable>(table->id(), false, std::move(schema));
  {
    const MutexLock gate(&gate_);
    const WriterLock changing(&changing_);
    PERCOLATOR_RETURN_IF_ERROR(WriteSchema(*changed));
    Cache(table->id(), changed);
  }
  table = std::move(changed);
  PERCOLATOR_RETURN_IF_ERROR(EraseDropped(&table));
  return table;
}

// Deletes the cells of dropped families, and then their names in the schema. After a crash in between, the next change of
// families repeats this.
absl::Status BigtableTables::EraseDropped(std::shared_ptr<const BigtableTable>* table) {
  const auto& names = (*table)->schema().dropped();
  if (names.empty()) return absl::OkStatus();
  const std::set<std::string, std::less<>> dropped(names.begin(), names.end());
  PERCOLATOR_RETURN_IF_ERROR(EraseRows(**table, RowRange::All(), [&](const Cell& cell) {
    return dropped.contains(std::string_view(cell.column).substr(0, cell.column.find('\0')));
  }));
  v1::BigtableSchema schema = (*table)->schema();
  schema.clear_dropped();
  auto changed = std::make_shared<const BigtableTable>((*table)->id(), false, std::move(schema));
  PERCOLATOR_RETURN_IF_ERROR(WriteSchema(*changed));
  Cache(changed->id(), changed);
  *table = std::move(changed);
  return absl::OkStatus();
}

absl::Status BigtableTables::EraseRows(const BigtableTable& table, RowRange rows,
                                       const std::function<bool(const Cell& cell)>& which) {
  constexpr size_t kPageRows = 100;
  constexpr ptrdiff_t kMaxErases = 10'000;  // per mutation
  ScanRequest request{table.id(), std::move(rows), {}, kPageRows};
  for (const Family family : table.families()) request.selectors.push_back({.family = family});
  const auto of_clients = [&](const Cell& cell) {
    return (table.native() || !cell.column.starts_with('\0')) && which(cell);
  };
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, store_->Scan(request));
    std::vector<RowMutation> mutations;
    for (const Row& row : page.rows) {
      std::vector<Mutation> erases = EraseAll(row, of_clients);
      for (ptrdiff_t i = 0; i < std::ssize(erases); i += kMaxErases) {
        const auto end = erases.begin() + std::min(i + kMaxErases, std::ssize(erases));
        mutations.push_back({table.id(), row.key, {}, {erases.begin() + i, end}});
      }
    }
    for (const absl::StatusOr<MutateResult>& result : store_->Mutate(mutations)) {
      if (!result.ok()) return result.status();
    }
    if (!page.resume.has_value()) return absl::OkStatus();
    request.ContinueAt(*std::move(page.resume));
  }
}

absl::StatusOr<std::string> BigtableTables::FirstRow(const BigtableTable& table) {
  ScanRequest request{table.id(), RowRange::All(), {}, 1};
  if (!table.native()) request.rows = RowRange::All().After(SchemaRow());
  for (const Family family : table.families()) request.selectors.push_back({.family = family, .newest = 1});
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, store_->Scan(request));
    if (!page.rows.empty()) return std::move(page.rows.front().key);
    if (!page.resume.has_value()) return std::string();
    request.ContinueAt(*std::move(page.resume));
  }
}

}  // namespace percolator
