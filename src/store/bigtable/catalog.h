// BigtableCatalog: which tables of an instance are Percolator's, and the safe point, in a table of the instance.
//
//     row NAME          data:schema @ g     the table exists, with this schema, as NAME-g of the instance
//                       data:dropped @ g    so many were dropped before; the next has a larger number
//                       data:delete @ g     NAME-g of the instance is still to be deleted
//     row .safe-point   data:ts @ t         the safe point is t
//
// A table is created by making NAME-g and then setting data:schema @ g, if there is none and g was not dropped; and dropped by
// turning data:schema into the two others and then deleting NAME-g. Numbers are never used twice, so whoever deletes late
// deletes nothing that anybody needs, and a table is always empty when it appears. Whoever finds what a crash has left,
// goes on from there: NAME-g without data:schema is taken over by the next CreateTable, data:delete is carried out by the next
// CreateTable or DropTable of that name.

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

// The identifier in the instance of a table's generation: of at most 50 characters, as Bigtable wants it. Long names are
// shortened and told apart by a hash.
std::string BigtableTableId(const std::string& name, uint64_t generation);

class BigtableCatalog {
 public:
  explicit BigtableCatalog(BigtableClient* client) : client_(client) {}

  // The identifier of a table, from memory if it was asked for before. kNotFound: there is none.
  absl::StatusOr<std::string> IdOf(const std::string& name);
  // The table is not what it was: asks anew next time.
  void Forget(const std::string& name);

  // REQUIRES of both: the name is a valid one.
  absl::Status Create(const TableInfo& info);
  absl::Status Drop(const std::string& name);
  // By name.
  absl::StatusOr<std::vector<TableInfo>> List();

  // The safe point, asked for anew.
  absl::StatusOr<Timestamp> ReadSafePoint();
  absl::Status RaiseSafePoint(Timestamp ts);

 private:
  // What the row of a table says.
  struct Entry {
    std::optional<uint64_t> generation;  // there is a table
    std::string schema;
    uint64_t dropped = 0;  // the last that was; zero: none
    std::vector<uint64_t> to_delete;
  };

  static Entry EntryOf(const std::vector<Cell>& cells);
  absl::StatusOr<std::vector<Cell>> ReadRow(const std::string& row);
  absl::StatusOr<Entry> ReadEntry(const std::string& name);
  // Makes the catalog itself if it is missing.
  absl::StatusOr<MutateResult> Mutate(const RowMutation& mutation);
  absl::Status DeleteGeneration(const std::string& name, uint64_t generation);
  absl::Status CleanUp(const std::string& name, const Entry& entry);

  BigtableClient* const client_;
  Mutex mutex_;
  std::map<std::string, std::string> ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_CATALOG_H_
