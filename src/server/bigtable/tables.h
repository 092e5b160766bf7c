// The tables of a store as Bigtable's clients see them: their names, families and columns.
//
// NAMES     projects/P/instances/I/tables/T. A server is one instance, so P and I may be anything and always name the same
//           tables. T is the store's own name for it: [A-Za-z0-9_-]{1,64}. (Bigtable would also allow '.'.)
//
// NATIVE    A table of Percolator: its families are data, lock, write and notify, those of the store, and its timestamps are
//           the store's, times 1000. Such a table is made by Percolator itself, or by CreateTable with exactly these four
//           families. Its families can't be changed.
//
// FOREIGN   Any other table. All its cells are in the store's family data:
//
//               column    := family 00 qualifier      so columns of one family stand together, ordered by qualifier
//               timestamp := Bigtable's / 1000        which counts microseconds, of which only whole milliseconds are allowed
//               schema    := FF "bigtable:" BigtableSchema      (bigtable_schema.proto), as it was created
//
//           and, once families were changed, row 00, column 00 "schema", timestamp 0 has the BigtableSchema that counts. No
//           family has an empty name, so no column of a client begins with 00. A qualifier and its family's name together
//           have a byte less than the store allows for a column.
//
// Rules for garbage collection are kept and given back. Nothing is collected by them.
//
// THREADS   All may be called from any number of threads. Whoever writes cells holds a Writing from before it asks for the
//           table until it has written: so no cell is written into a family or a table that is no more.

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

inline constexpr int64_t kMicrosPerTick = 1000;  // of a timestamp of the store

// The parts of a name. kInvalidArgument: it is none.
absl::StatusOr<std::string> TableIdOf(std::string_view table_name);
absl::Status CheckInstanceName(std::string_view instance_name);

class BigtableTable {
 public:
  BigtableTable(std::string id, bool native, v1::BigtableSchema schema, bool transactional = false)
      : id_(std::move(id)), native_(native), transactional_(transactional), schema_(std::move(schema)) {}

  const std::string& id() const { return id_; }
  bool native() const { return native_; }
  // Percolator made it (Cluster::CreateTable), and its cells obey the protocol of transactions.
  bool transactional() const { return transactional_; }
  const v1::BigtableSchema& schema() const { return schema_; }

  bool HasFamily(std::string_view family) const;
  // kNotFound, as Bigtable says it.
  absl::Status CheckFamily(std::string_view family) const;

  // Where a column of a client is kept. REQUIRES: HasFamily(family).
  struct Place {
    Family family;
    std::string column;
  };
  Place PlaceOf(std::string_view family, std::string_view qualifier) const;

  // The families of the store that have cells of clients, in the order in which clients get them.
  const std::vector<Family>& families() const;

  // The cells of a row that was read, as clients see them: in order, without those of dropped families. They point into
  // the row.
  BigtableCells CellsOf(const Row& row) const;

 private:
  std::string id_;
  bool native_;
  bool transactional_;
  v1::BigtableSchema schema_;
};

class BigtableTables {
 public:
  // `write_transactional`: clients of Bigtable may write tables of transactions.
  explicit BigtableTables(Store* store, bool write_transactional = true)
      : store_(store), write_transactional_(write_transactional) {}

  // kNotFound, kInvalidArgument.
  absl::StatusOr<std::shared_ptr<const BigtableTable>> Find(std::string_view table_name);
  // The same for a request that changes or drops cells. kPermissionDenied: the table is one of transactions, and clients of
  // Bigtable may not write these.
  absl::StatusOr<std::shared_ptr<const BigtableTable>> FindToWrite(std::string_view table_name);
  absl::StatusOr<std::vector<std::shared_ptr<const BigtableTable>>> List();

  absl::StatusOr<std::shared_ptr<const BigtableTable>> Create(const std::string& id, const v1::BigtableSchema& schema);
  absl::Status Drop(std::string_view table_name);

  // Makes, changes and drops families, all or none of it. kFailedPrecondition: the table is native.
  using Modifications =
      google::protobuf::RepeatedPtrField<google::bigtable::admin::v2::ModifyColumnFamiliesRequest::Modification>;
  absl::StatusOr<std::shared_ptr<const BigtableTable>> Modify(std::string_view table_name,
                                                              const Modifications& modifications);

  // Removes every cell of the rows in the range for which `which` says so. Row by row: others see it under way.
  absl::Status EraseRows(const BigtableTable& table, RowRange rows, const std::function<bool(const Cell& cell)>& which);

  // The key of the first row; empty: there is none.
  absl::StatusOr<std::string> FirstRow(const BigtableTable& table);

  // Many may hold one; a change of families waits until nobody does, and those who come later wait for the change.
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
  // From now on this is known of a table; null: nothing.
  void Know(const std::string& id, std::shared_ptr<const BigtableTable> table);
  absl::Status Keep(const BigtableTable& table);
  absl::Status EraseDropped(std::shared_ptr<const BigtableTable>* table);

  Store* const store_;
  const bool write_transactional_;
  Mutex administration_;  // one change of tables at a time
  Mutex gate_;            // passed by all who want changing_: a shared mutex alone may let readers pass forever
  SharedMutex changing_ ABSL_ACQUIRED_AFTER(gate_);
  Mutex mutex_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // counts calls of Know
  // The foreign tables that were asked for. Only this makes and changes them.
  std::map<std::string, std::shared_ptr<const BigtableTable>, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_TABLES_H_
