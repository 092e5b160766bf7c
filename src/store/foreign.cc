#include "src/store/foreign.h"

namespace percolator {

absl::StatusOr<std::vector<TableInfo>> ListOwnTables(Store* store) {
  absl::StatusOr<std::vector<TableInfo>> tables = store->ListTables();
  if (tables.ok()) std::erase_if(*tables, [](const TableInfo& table) { return IsForeignSchema(table.schema); });
  return tables;
}

}  // namespace percolator
