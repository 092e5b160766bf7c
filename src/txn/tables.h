// The tables and their schemas, as the transactions of a process know them.
//
//   schema := version column*      version 01; an ordered string for each notify-only column. Empty: no such columns

#ifndef PERCOLATOR_TXN_TABLES_H_
#define PERCOLATOR_TXN_TABLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"

namespace percolator {

std::string EncodeSchema(const TableSchema& schema);
// kDataLoss: no schema. kFailedPrecondition: of a newer format.
absl::StatusOr<TableSchema> DecodeSchema(std::string_view bytes);

// Whether the table exists with this schema. kNotFound: it does not. kFailedPrecondition: with another one, or it is a table
// of Bigtable's clients.
absl::Status CheckSchema(Store* store, std::string_view table, const TableSchema& schema);

class Tables {
 public:
  explicit Tables(Store* store) : store_(store) {}

  // Whether a column of the table may be written. kNotFound: no such table. kInvalidArgument: not that column; the text
  // says why.
  absl::Status CheckWritable(std::string_view table, std::string_view column);

  // Whether a column of the table may be notified: it has to be declared notify-only. Errors as above.
  absl::Status CheckNotifiable(std::string_view table, std::string_view column);

  // What is known is known no longer.
  void Forget();

 private:
  using Schemas = std::map<std::string, TableSchema, std::less<>>;  // by table

  // Reads all schemas. Returns false if Forget was called during the read: then they may be out of date and are not kept.
  absl::StatusOr<bool> Load(Schemas* schemas);
  absl::StatusOr<bool> IsNotifyOnly(std::string_view table, std::string_view column);

  Store* const store_;
  SharedMutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // counts calls of Forget
  Schemas schemas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TABLES_H_
