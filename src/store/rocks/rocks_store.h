// SPDX-License-Identifier: Apache-2.0

// The store on RocksDB. Users open it with OpenRocksStore of percolator/spi/store.h. This header is for its parts, and
// for tests that make its files fail.
//
//   rocks_store.cc    open, close, tables, and the stop after a failed write
//   rocks_read.cc     Read: pooled iterators, checked by the latches' counts; otherwise a snapshot
//   rocks_scan.cc     Scan: one cursor per selector on one snapshot, merged by row
//   rocks_mutate.cc   Mutate: latch, check, write one batch
//   rocks_together.cc MutateTogether: the same for the rows of a transaction in one step, with a timestamp drawn in it
//
// State of a row outside RocksDB: locks_ (a copy of the lock family), sketch_ (a bound on the newest timestamps, and a
// count of changes) and versions_ (newest versions read lately). The first two change only under the row's latch, and
// are rebuilt from RocksDB on open. Reads fill the third.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_ROCKS_ROCKS_STORE_H_
#define PERCOLATOR_STORE_ROCKS_ROCKS_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/write_batch.h"
#include "src/base/fork.h"
#include "src/store/rocks/catalog.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/folder.h"
#include "src/store/rocks/joint_queue.h"
#include "src/store/rocks/latch_table.h"
#include "src/store/rocks/lock_table.h"
#include "src/store/rocks/newest_sketch.h"
#include "src/store/rocks/point_reader.h"
#include "src/store/rocks/scan_cursor.h"
#include "src/store/rocks/space_guard.h"
#include "src/store/rocks/version_cache.h"

namespace percolator {

class RocksStore : public Store {
 public:
  static absl::StatusOr<std::unique_ptr<RocksStore>> Open(const std::string& dir, const RocksOptions& options,
                                                          rocksdb::Env* env);
  ~RocksStore() override;
  // In a child of fork() nothing is destroyed: threads of the parent may have been within any part of it, and the files
  // and the folder's lock are the parent's.
  static void operator delete(RocksStore* store, std::destroying_delete_t);
  static void operator delete(void* memory);
  static void* operator new(size_t bytes);

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  bool CanMutateTogether() const override { return true; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;
  absl::StatusOr<TableInfo> GetTable(const std::string& name) override;
  absl::Status Close() override;

  // For the benchmark that compares with plain RocksDB on the same files.
  rocksdb::DB* db() { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(Family family) { return handles_[1 + static_cast<int>(family)]; }

 private:
  class Listener;  // receives RocksDB's events; rocks_store.cc

  // A row mutation in progress.
  struct Entry {
    Entry(const RowMutation& row, const Table& its_table)
        : mutation(&row),
          table(&its_table),
          keys(its_table.id, row.row),
          stripe(LatchTable::StripeOf(keys.row_prefix())) {}

    const RowMutation* mutation;
    const Table* table;
    RowKeys keys;
    uint32_t stripe;
    absl::StatusOr<MutateResult>* result = nullptr;  // of Mutate
    bool staged = false;
  };
  using Entries = absl::InlinedVector<Entry, 1>;
  struct Joint;  // a joint mutation in progress; rocks_together.cc
  using Joints = absl::InlinedVector<Joint*, 8>;

  RocksStore(const RocksOptions& options, std::unique_ptr<StoreFolder> folder);

  absl::Status OpenDatabase(rocksdb::Env* env);
  absl::Status LoadLocks();
  absl::StatusOr<Timestamp> NewestTimestamp();
  // Writes all data into table files.
  absl::Status Flush();
  absl::Status FlushFamilies(bool wait);
  uint64_t UnflushedBytes();
  // REQUIRES: no write has failed.
  absl::Status CloseDatabase();

  // Returns OK unless the store is closed or this process is a child of the one that opened it.
  absl::Status MayUse() const {
    if (closed_.load(std::memory_order_relaxed) || forks_.forked()) [[unlikely]]
      return MayNotUse();
    return absl::OkStatus();
  }
  absl::Status MayNotUse() const;
  // Returns NotFound if there is no such table. REQUIRES: MayUse.
  absl::StatusOr<Table*> FindTable(const std::string& name) const;

  // rocks_read.cc
  absl::Status ReadRow(const Table& table, const RowRead& read, PointReader* reader, Row* out);
  absl::Status ReadPoints(RowKeys* keys, const RowRead& read, PointReader* reader, Row* out);
  absl::Status ReadNewestWrite(RowKeys* keys, const Selector& selector, PointReader* reader, size_t max_bytes,
                               Row* out);
  // Stops at the version that exceeds max_bytes.
  absl::Status ReadVersions(RowKeys* keys, const Selector& selector, PointReader* reader, size_t max_bytes, Row* out);
  absl::StatusOr<bool> GetLikelyNewest(RowKeys* keys, const Selector& selector, Row* out);
  absl::Status ReadRowAtSnapshot(std::string_view row_prefix, const RowRead& read, Row* out);

  // rocks_scan.cc
  std::vector<std::unique_ptr<ScanCursor>> OpenCursors(const rocksdb::Snapshot* snapshot,
                                                       const std::vector<Selector>& selectors,
                                                       const ScanCursor::Range& range, bool reverse,
                                                       ScanCursor::Budget* budget);

  // rocks_mutate.cc
  absl::Status AddEntry(const RowMutation& mutation, Entries* entries) const;
  void ApplyGroup(absl::Span<Entry> group, size_t bytes);
  absl::StatusOr<bool> Holds(Entry* entry, PointReader* reader) const;
  bool FailsAlready(Entry* entry, PointReader* reader) const;
  absl::StatusOr<bool> Exists(const CellRange& cell, RowKeys* keys, PointReader* reader) const;
  absl::Status Stage(absl::Span<Entry> rows, Timestamp at_commit, PointReader* reader, rocksdb::WriteBatch* batch);
  absl::Status StageRow(Entry* entry, Timestamp at_commit, PointReader* reader, rocksdb::WriteBatch* batch);
  absl::StatusOr<std::vector<Timestamp>> VersionsInRange(const Mutation& erase, RowKeys* keys,
                                                         PointReader* reader) const;
  // Updates the state in memory after a write. REQUIRES: the latch's count says that the write is under way.
  void UpdateMemory(Entry* entry, Timestamp at_commit);

  // rocks_together.cc
  absl::Status MakeJoint(const JointMutation& mutation, Oracle* oracle, Joint* joint) const;
  void ApplyTogether(const JointQueue::Group& group);
  bool HoldTogether(Joint* joint);
  bool DrawAndStage(const Joints& joints);
  absl::Status WriteStaged();
  void Finish(const absl::Status& written, Joint* joint);
  // Waits until the row is open. Returns an error if it stays closed.
  absl::Status WaitUntilOpen(std::string_view row_prefix, uint32_t stripe);
  // The same for all rows from `start_key` up to `limit_key`.
  absl::Status WaitUntilOpen(const ScanCursor::Range& range);
  absl::Status StaysClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(stop_mutex_);

  // Returns OK, or why no write may be tried.
  absl::Status MayWrite();
  // Returns why the store has stopped, and what to do: "since ...; ..., then open the store again".
  std::string StopText() ABSL_EXCLUSIVE_LOCKS_REQUIRED(stop_mutex_);
  // Makes MayWrite fail from now on, because of `reason`.
  void Stop(const absl::Status& reason);
  // Writes the batch. A failure stops the store.
  absl::Status Write(rocksdb::WriteBatch* batch, bool sync);

  // Constant after Open.
  const ForkWatch forks_;
  const RocksOptions options_;
  const std::string dir_;
  std::unique_ptr<StoreFolder> folder_;  // null after Close
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // default, then one per Family
  std::optional<NewestSketch> sketch_;
  std::optional<SpaceGuard> space_;
  // The last sequence number when the store was closed cleanly; 0 if it was not.
  uint64_t closed_at_ = 0;

  RocksCatalog catalog_;
  LatchTable latches_;
  LockTable locks_;
  VersionCache versions_;
  IteratorPools pools_;
  JointQueue joints_;
  // Used by the leader of the queue.
  rocksdb::WriteBatch joint_batch_;
  std::atomic<bool> closed_{false};

  Mutex admin_mutex_;  // held while tables are created or dropped and while the safe point is raised

  std::atomic<bool> stopped_{false};  // read without the mutex; stop_reason_ decides
  Mutex stop_mutex_;
  absl::Status stop_reason_ ABSL_GUARDED_BY(stop_mutex_);
  // The prefixes of rows that a failed joint mutation may have written.
  std::set<std::string, std::less<>> rows_closed_ ABSL_GUARDED_BY(stop_mutex_);
};

// OpenRocksStore, with all of RocksDB's file access going through `env`, for tests that make files fail. `env` must
// outlive the store.
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStoreWithEnv(const std::string& dir, const RocksOptions& options,
                                                             rocksdb::Env* env);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_ROCKS_STORE_H_
