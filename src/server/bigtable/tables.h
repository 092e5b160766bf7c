// SPDX-License-Identifier: Apache-2.0

// The tables of a store as Bigtable clients see them: names, families and columns.
//
// NAMES     projects/P/instances/I/tables/T. A server is one instance, so P and I may be anything and do not select tables. T is
//           the name of the table in the store: [A-Za-z0-9_-]{1,64}. (Bigtable also allows '.'.)
//
// NATIVE    A table of Percolator. Its families are those of the store: data, lock, write and notify. Its timestamps are those of
//           the store, multiplied by 1000. Percolator creates native tables, and CreateTable does if the request has exactly
//           these four families. The families cannot be changed.
//
// FOREIGN   Any other table. All its cells are in the store's family data:
//
//               column    := family 00 qualifier      so that columns are sorted by family and qualifier
//               timestamp := Bigtable's / 1000        in milliseconds; Bigtable's is in microseconds, a multiple of 1000
//               schema    := FF "bigtable:" BigtableSchema      as created (bigtable_schema.proto)
//
//           After a change of families, the current BigtableSchema is in row 00, column 00 "schema", timestamp 0. The name of a
//           family is not empty, so no column of a client begins with 00. The names of a qualifier and its family together are
//           at least a byte shorter than the store's limit for a column.
//
// The server stores and returns rules of garbage collection, and does not apply them.
//
// THREADS   Thread-safe. A thread that writes cells holds a Writing from before it looks up the table until it has written.
//           So no cell is written to a dropped family or table.

#ifndef PERCOLATOR_SERVER_BIGTABLE_TABLES_H_
#define PERCOLATOR_SERVER_BIGTABLE_TABLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "src/server/bigtable/filter.h"
#include "src/wire/proto/bigtable_admin.pb.h"
#include "src/wire/proto/bigtable_schema.pb.h"

namespace percolator {

inline constexpr int64_t kMicrosPerTick = 1000;  // Bigtable's timestamp for a timestamp of 1 in the store

// Returns the table of a full name, or InvalidArgument if the name is malformed.
absl::StatusOr<std::string> TableIdOf(std::string_view table_name);
absl::Status CheckInstanceName(std::string_view instance_name);

class BigtableTable {
 public:
  BigtableTable(std::string id, bool native, v1::BigtableSchema schema, bool transactional = false)
      : id_(std::move(id)), native_(native), transactional_(transactional), schema_(std::move(schema)) {}

  const std::string& id() const { return id_; }
  bool native() const { return native_; }
  // Returns true if Cluster::CreateTable created the table: its cells follow the transaction protocol.
  bool transactional() const { return transactional_; }
  const v1::BigtableSchema& schema() const { return schema_; }

  bool HasFamily(std::string_view family) const;
  // Returns NotFound, with Bigtable's text, if the table does not have the family.
  absl::Status CheckFamily(std::string_view family) const;

  // The store's family and column of a client's column. REQUIRES: HasFamily(family).
  struct Place {
    Family family;
    std::string column;
  };
  Place PlaceOf(std::string_view family, std::string_view qualifier) const;

  // Returns the families of the store that contain cells of clients, in the order in which clients see them.
  const std::vector<Family>& families() const;

  // Returns the cells of a row as clients see them: in order, without those of dropped families. They point into the row.
  BigtableCells CellsOf(const Row& row) const;

 private:
  std::string id_;
  bool native_;
  bool transactional_;
  v1::BigtableSchema schema_;
};

class BigtableTables {
 public:
  // Bigtable clients may write tables of transactions only with `write_transactional`.
  explicit BigtableTables(Store* store, bool write_transactional = true)
      : store_(store), write_transactional_(write_transactional) {}

  // Returns NotFound if the table does not exist, and InvalidArgument if the name is malformed.
  absl::StatusOr<std::shared_ptr<const BigtableTable>> Find(std::string_view table_name);
  // The same for a request that changes or deletes cells. Returns PermissionDenied if clients may not write the table, because
  // it is a table of transactions.
  absl::StatusOr<std::shared_ptr<const BigtableTable>> FindToWrite(std::string_view table_name);
  // Calls `visit` for each table whose id is above `after`, in their order, until it returns false. One at a time: all
  // tables together may take much memory.
  absl::Status Visit(std::string_view after, const std::function<bool(const BigtableTable& table)>& visit);

  absl::StatusOr<std::shared_ptr<const BigtableTable>> Create(const std::string& id, const v1::BigtableSchema& schema);
  absl::Status Drop(std::string_view table_name);

  // Creates, changes and drops families, all or none. Returns FailedPrecondition if the table is native, and
  // ResourceExhausted if the schemas of all tables would exceed StoreLimits::max_total_schema_bytes.
  using Modifications =
      google::protobuf::RepeatedPtrField<google::bigtable::admin::v2::ModifyColumnFamiliesRequest::Modification>;
  absl::StatusOr<std::shared_ptr<const BigtableTable>> Modify(std::string_view table_name,
                                                              const Modifications& modifications);

  // Deletes the cells in the range for which `which` returns true. It works row by row, so readers may see intermediate states.
  absl::Status EraseRows(const BigtableTable& table, RowRange rows, const std::function<bool(const Cell& cell)>& which);

  // Returns the key of the first row, or an empty string if the table is empty.
  absl::StatusOr<std::string> FirstRow(const BigtableTable& table);

  // A shared lock of writers. A change of families waits for all of them to be released, and later ones wait for the change.
  class ABSL_SCOPED_LOCKABLE Writing {
   public:
    explicit Writing(BigtableTables* tables) ABSL_SHARED_LOCK_FUNCTION(tables->changing_) : tables_(tables) {
      const MutexLock gate(&tables->gate_);
      tables->changing_.LockShared();
    }
    ~Writing() ABSL_UNLOCK_FUNCTION() { tables_->changing_.UnlockShared(); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

   private:
    BigtableTables* const tables_;
  };

 private:
  absl::StatusOr<std::shared_ptr<const BigtableTable>> Load(const TableInfo& info);
  // Caches a table. Null removes it from the cache.
  void Cache(const std::string& id, std::shared_ptr<const BigtableTable> table);
  absl::Status WriteSchema(const BigtableTable& table);
  // Returns ResourceExhausted if the schemas of all tables would be too large with this one instead of that of `before`.
  absl::Status CheckTotal(const BigtableTable& before, const v1::BigtableSchema& schema);
  absl::Status EraseDropped(std::shared_ptr<const BigtableTable>* table);

  Store* const store_;
  const bool write_transactional_;
  Mutex administration_;  // held during a change of tables
  Mutex gate_;            // taken before `changing_`, because readers could otherwise starve a writer of a shared mutex
  SharedMutex changing_ ABSL_ACQUIRED_AFTER(gate_);
  Mutex mutex_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of calls of Cache
  // The cache of foreign tables. Only this object creates and changes them.
  std::map<std::string, std::shared_ptr<const BigtableTable>, std::less<>> cached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_TABLES_H_
