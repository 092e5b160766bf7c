// SPDX-License-Identifier: Apache-2.0

// BigtableCatalog: Percolator's tables in an instance, and the safe point. It is itself a table of the instance.
//
//     row NAME          data:schema @ g     the table exists, with this schema, as NAME-g of the instance
//                       data:dropped @ g    generation g was dropped; the next has a larger number
//                       data:delete @ g     NAME-g of the instance is still to be deleted
//     row .safe-point   data:ts @ t         the safe point is t
//
// Creating a table makes NAME-g and then sets data:schema @ g, if there is none and g was not dropped. Dropping it
// replaces data:schema by the two others and then deletes NAME-g. Numbers are never used twice, so a late delete does
// not hit a table in use, and a table is always empty when it appears. After a crash, the next call goes on:
// CreateTable takes over a NAME-g without data:schema, and CreateTable or DropTable of that name carries out
// data:delete.

#ifndef PERCOLATOR_STORE_BIGTABLE_CATALOG_H_
#define PERCOLATOR_STORE_BIGTABLE_CATALOG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "src/store/bigtable/client.h"

namespace percolator {

// The identifier of a table's generation in the instance: at most 50 characters, as Bigtable requires. Long names are
// shortened and made distinct by a hash.
std::string BigtableTableId(const std::string& name, uint64_t generation);

class BigtableCatalog {
 public:
  explicit BigtableCatalog(BigtableClient* client) : client_(client) {}

  // Returns the identifier of a table, from memory if it was looked up before. Returns NotFound if there is none.
  absl::StatusOr<std::string> IdOf(const std::string& name);
  // The table has changed: the next IdOf reads the catalog again.
  void Forget(const std::string& name);

  // REQUIRES of both: the name is valid.
  absl::Status Create(const TableInfo& info);
  absl::Status Drop(const std::string& name);
  // By name.
  absl::StatusOr<std::vector<TableInfo>> List();

  // Reads the safe point from Bigtable.
  absl::StatusOr<Timestamp> ReadSafePoint();
  absl::Status RaiseSafePoint(Timestamp ts);

 private:
  // The contents of a table's row.
  struct Entry {
    std::optional<uint64_t> generation;  // absent: there is no table
    std::string schema;
    uint64_t dropped = 0;  // the last one dropped; zero: none
    std::vector<uint64_t> to_delete;
  };

  static Entry EntryOf(const std::vector<Cell>& cells);
  absl::StatusOr<std::vector<Cell>> ReadRow(const std::string& row);
  absl::StatusOr<Entry> ReadEntry(const std::string& name);
  // Creates the catalog's table if it is missing.
  absl::StatusOr<MutateResult> Mutate(const RowMutation& mutation);
  absl::Status DeleteGeneration(const std::string& name, uint64_t generation);
  absl::Status CleanUp(const std::string& name, const Entry& entry);

  BigtableClient* const client_;
  Mutex mutex_;
  std::map<std::string, std::string> ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_CATALOG_H_
