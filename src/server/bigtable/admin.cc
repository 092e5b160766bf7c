// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/admin.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/server/bigtable/read.h"

namespace percolator {
namespace {

namespace admin = google::bigtable::admin::v2;

constexpr std::string_view kToken = "consistent";
// A page of ListTables ends with the table that reaches this size in memory, where a schema may be far larger than on the wire.
constexpr size_t kPageMemory = size_t{1} << 20;

void Describe(const BigtableTable& table, const std::string& name, admin::Table* out) {
  out->set_name(name);
  *out->mutable_column_families() = table.schema().families();
  out->set_granularity(admin::Table::MILLIS);
}

}  // namespace

absl::Status BigtableAdmin::CreateTable(const admin::CreateTableRequest& request, admin::Table* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckInstanceName(request.parent()));
  const std::string name = StrCat(request.parent(), "/tables/", request.table_id());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string id, TableIdOf(name));
  v1::BigtableSchema schema;
  *schema.mutable_families() = request.table().column_families();
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table, tables_->Create(id, schema));
  Describe(*table, name, response);
  return absl::OkStatus();
}

absl::Status BigtableAdmin::ListTables(const admin::ListTablesRequest& request, admin::ListTablesResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckInstanceName(request.parent()));
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError("Error in field 'page_size': it must not be negative");
  }
  const bool schema = request.view() == admin::Table::SCHEMA_VIEW || request.view() == admin::Table::FULL;
  size_t bytes = 0;
  std::string last;  // the token is the last table of the previous page
  return tables_->Visit(request.page_token(), [&](const BigtableTable& table) {
    const bool full =
        bytes >= kPageMemory || (request.page_size() > 0 && response->tables_size() == request.page_size());
    if (full) {
      response->set_next_page_token(last);
      return false;
    }
    admin::Table* const out = response->add_tables();
    const std::string name = StrCat(request.parent(), "/tables/", table.id());
    out->set_name(name);
    if (schema) Describe(table, name, out);
    bytes += out->SpaceUsedLong();
    last = table.id();
    return true;
  });
}

absl::Status BigtableAdmin::GetTable(const admin::GetTableRequest& request, admin::Table* response) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table, tables_->Find(request.name()));
  response->set_name(request.name());
  if (request.view() != admin::Table::NAME_ONLY) Describe(*table, request.name(), response);
  return absl::OkStatus();
}

absl::Status BigtableAdmin::DeleteTable(const admin::DeleteTableRequest& request,
                                        google::protobuf::Empty* /*response*/) {
  return tables_->Drop(request.name());
}

absl::Status BigtableAdmin::ModifyColumnFamilies(const admin::ModifyColumnFamiliesRequest& request,
                                                 admin::Table* response) {
  if (request.modifications().empty()) return absl::InvalidArgumentError("No modifications provided");
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                              tables_->Modify(request.name(), request.modifications()));
  Describe(*table, request.name(), response);
  return absl::OkStatus();
}

absl::Status BigtableAdmin::DropRowRange(const admin::DropRowRangeRequest& request,
                                         google::protobuf::Empty* /*response*/) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table, tables_->FindToWrite(request.name()));
  RowRange rows;
  if (!request.delete_all_data_from_table()) {
    if (request.target_case() != admin::DropRowRangeRequest::kRowKeyPrefix) {
      return absl::InvalidArgumentError(StrCat("cannot drop rows of ", request.name(),
                                               ": neither row_key_prefix nor delete_all_data_from_table is given"));
    }
    PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(request.row_key_prefix()));
    rows = RowRange::Prefix(request.row_key_prefix());
  }
  return tables_->EraseRows(*table, std::move(rows), [](const Cell& /*cell*/) { return true; });
}

absl::Status BigtableAdmin::GenerateConsistencyToken(const admin::GenerateConsistencyTokenRequest& request,
                                                     admin::GenerateConsistencyTokenResponse* response) {
  response->set_consistency_token(std::string(kToken));
  return tables_->Find(request.name()).status();
}

absl::Status BigtableAdmin::CheckConsistency(const admin::CheckConsistencyRequest& request,
                                             admin::CheckConsistencyResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(tables_->Find(request.name()).status());
  if (request.consistency_token() != kToken) return absl::InvalidArgumentError("invalid consistency token");
  response->set_consistent(true);
  return absl::OkStatus();
}

absl::Status BigtableAdmin::GetInstance(const admin::GetInstanceRequest& request, admin::Instance* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckInstanceName(request.name()));
  response->set_name(request.name());
  response->set_display_name(request.name().substr(request.name().find_last_of('/') + 1));
  response->set_state(admin::Instance::READY);
  response->set_type(admin::Instance::PRODUCTION);
  return absl::OkStatus();
}

absl::Status BigtableAdmin::ListClusters(const admin::ListClustersRequest& request,
                                         admin::ListClustersResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckInstanceName(request.parent()));
  response->add_clusters()->set_name(StrCat(request.parent(), "/clusters/percolator"));
  return absl::OkStatus();
}

}  // namespace percolator
