// SPDX-License-Identifier: Apache-2.0

#include "src/txn/tables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

constexpr uint8_t kSchemaVersion = 1;
constexpr char kOthersMark = '\xff';

bool IsOwn(std::string_view schema) { return !schema.starts_with(kOthersMark); }

}  // namespace

std::string EncodeSchema(const TableSchema& schema) {
  std::string out(1, static_cast<char>(kSchemaVersion));
  for (const std::string& column : schema.notify_only_columns) AppendOrderedString(&out, column);
  return out;
}

absl::StatusOr<TableSchema> DecodeSchema(std::string_view table, std::string_view bytes) {
  TableSchema schema;
  if (bytes.empty()) return schema;
  if (!IsOwn(bytes)) {
    return absl::FailedPreconditionError(StrCat("schema of table ", Quoted(table), " was not written by this library"));
  }
  const auto version = static_cast<uint8_t>(bytes.front());
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(StrCat("schema of table ", Quoted(table), " has the newer format ", version,
                                                "; this version reads formats up to ", kSchemaVersion));
  }
  const absl::Status damaged = absl::DataLossError(StrCat("schema of table ", Quoted(table), " is damaged"));
  if (version != kSchemaVersion) return damaged;
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    if (!ConsumeOrderedString(&bytes, &schema.notify_only_columns.emplace_back())) return damaged;
  }
  return schema;
}

absl::StatusOr<std::vector<TableInfo>> ListOwnTables(Store* store) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<TableInfo> tables, store->ListTables());
  std::erase_if(tables, [](const TableInfo& table) { return !IsOwn(table.schema); });
  return tables;
}

absl::Status CheckSchema(Store* store, std::string_view table, const TableSchema& schema) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, store->ListTables());
  const auto info = std::find_if(infos.begin(), infos.end(), [&](const TableInfo& i) { return i.name == table; });
  if (info == infos.end()) return absl::NotFoundError(StrCat("there is no table ", Quoted(table)));
  if (!IsOwn(info->schema)) {
    return absl::FailedPreconditionError(
        StrCat("table ", Quoted(table), ": its schema was not written by this library; use another name"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(TableSchema found, DecodeSchema(info->name, info->schema));
  std::vector<std::string> wanted = schema.notify_only_columns;
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.notify_only_columns.begin(), found.notify_only_columns.end());
  if (wanted == found.notify_only_columns) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("table ", Quoted(table), " exists with other notify-only columns (TableSchema)"));
}

absl::StatusOr<bool> Tables::Load(Schemas* schemas) {
  uint64_t generation = 0;
  {
    ReaderLock lock(&mutex_);
    generation = generation_;
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(store_));
  schemas->clear();
  for (const TableInfo& info : infos) {
    PERCOLATOR_ASSIGN_OR_RETURN(TableSchema schema, DecodeSchema(info.name, info.schema));
    schemas->emplace(info.name, std::move(schema));
  }
  WriterLock lock(&mutex_);
  // A list that was read before a Forget may be out of date.
  if (generation_ != generation) return false;
  schemas_ = *schemas;
  return true;
}

absl::StatusOr<bool> Tables::IsNotifyOnly(std::string_view table, std::string_view column) {
  if (IsReservedColumn(column)) {
    return absl::InvalidArgumentError(
        StrCat("column ", Quoted(column), " begins with a zero byte, which is reserved for Percolator"));
  }
  const auto is_declared = [column](const TableSchema& schema) {
    const std::vector<std::string>& columns = schema.notify_only_columns;
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  };
  {
    ReaderLock lock(&mutex_);
    const auto it = schemas_.find(table);
    if (it != schemas_.end()) return is_declared(it->second);
  }
  constexpr int kTries =
      3;  // after that, the last list is used, though other tables may be made or dropped during its read
  Schemas schemas;
  bool current = false;
  for (int i = 0; i < kTries && !current; ++i) {
    PERCOLATOR_ASSIGN_OR_RETURN(current, Load(&schemas));
  }
  const auto it = schemas.find(table);
  if (it != schemas.end()) return is_declared(it->second);
  return absl::NotFoundError(StrCat("there is no table ", Quoted(table), "; create it with Cluster::CreateTable"));
}

absl::Status Tables::CheckWritable(std::string_view table, std::string_view column) {
  const absl::StatusOr<bool> notify_only = IsNotifyOnly(table, column);
  if (!notify_only.ok() || !*notify_only) return notify_only.status();
  return absl::InvalidArgumentError(
      StrCat("column ", Quoted(column), " of table ", table, " is declared notify-only and cannot be written"));
}

absl::Status Tables::CheckNotifiable(std::string_view table, std::string_view column) {
  const absl::StatusOr<bool> notify_only = IsNotifyOnly(table, column);
  if (!notify_only.ok() || *notify_only) return notify_only.status();
  return absl::InvalidArgumentError(StrCat("column ", Quoted(column), " of table ", table,
                                           " is not declared notify-only (TableSchema) and cannot be notified"));
}

void Tables::Forget() {
  WriterLock lock(&mutex_);
  ++generation_;
  schemas_.clear();
}

}  // namespace percolator
