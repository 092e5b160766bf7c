// SPDX-License-Identifier: Apache-2.0

// The tables and their schemas, as the transactions of a process know them.
//
//   schema := version column*      version 01; an ordered string for each notify-only column. Empty: no such columns
//
// A schema that begins with FF is another program's (docs/format.md): for transactions its table does not exist.

#ifndef PERCOLATOR_TXN_TABLES_H_
#define PERCOLATOR_TXN_TABLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"

namespace percolator {

std::string EncodeSchema(const TableSchema& schema);
// Returns DataLoss if `bytes` are not a schema, and FailedPrecondition if they are of a newer format or were not written by
// this library. `table` is for errors.
absl::StatusOr<TableSchema> DecodeSchema(std::string_view table, std::string_view bytes);

// Returns the tables whose schema was written by this library, by name.
absl::StatusOr<std::vector<TableInfo>> ListOwnTables(Store* store);

// Returns OK if the table exists with this schema, NotFound if it does not exist, and FailedPrecondition if it has
// another schema or one that was not written by this library.
absl::Status CheckSchema(Store* store, std::string_view table, const TableSchema& schema);

class Tables {
 public:
  explicit Tables(Store* store) : store_(store) {}

  // Returns OK if a column of the table may be written, NotFound if there is no such table, and InvalidArgument if the
  // column may not be written.
  absl::Status CheckWritable(std::string_view table, std::string_view column);

  // Returns OK if a column of the table may be notified: it must be declared notify-only. Errors as above.
  absl::Status CheckNotifiable(std::string_view table, std::string_view column);

  // Drops the known schemas.
  void Forget();

 private:
  using Schemas = std::map<std::string, TableSchema, std::less<>>;  // by table

  // Reads all schemas. Returns false if Forget was called during the read: then they may be out of date and are not
  // kept.
  absl::StatusOr<bool> Load(Schemas* schemas);
  absl::StatusOr<bool> IsNotifyOnly(std::string_view table, std::string_view column);

  Store* const store_;
  SharedMutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // counts calls of Forget
  Schemas schemas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TABLES_H_
