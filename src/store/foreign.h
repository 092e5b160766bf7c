// Foreign tables: clients of Bigtable keep them in the same store. Their schema begins with a mark that no schema of
// Percolator (src/txn/tables.h) begins with. To Percolator they do not exist.

#ifndef PERCOLATOR_STORE_FOREIGN_H_
#define PERCOLATOR_STORE_FOREIGN_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/spi/store.h"

namespace percolator {

inline constexpr std::string_view kForeignSchemaMark =
    "\xff"
    "bigtable:";

inline bool IsForeignSchema(std::string_view schema) { return schema.starts_with(kForeignSchemaMark); }

// Returns all tables but the foreign ones, by name.
absl::StatusOr<std::vector<TableInfo>> ListOwnTables(Store* store);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_FOREIGN_H_
