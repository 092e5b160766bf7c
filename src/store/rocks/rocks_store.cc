// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/rocks_store.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/clean_record.h"
#include "src/store/rocks/max_timestamp.h"
#include "src/store/rocks/no_perf_counters.h"
#include "src/store/rocks/rocks_options.h"
#include "src/store/rocks/rocks_status.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

// RocksDB's files as the store needs them.
//
// Without a lock file: the folder is locked already; and a database that failed is left open (see Close), which must
// not prevent the store from being opened again. And for their owner only: RocksDB creates files that all users may
// read.
class StoreFiles : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "percolator.StoreFiles"; }
  rocksdb::IOStatus LockFile(const std::string& /*name*/, const rocksdb::IOOptions& /*options*/,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* /*debug*/) override {
    *lock = nullptr;
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* /*lock*/, const rocksdb::IOOptions& /*options*/,
                               rocksdb::IODebugContext* /*debug*/) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, result, debug);
    // If that fails, as on a disk without modes, the folder's mode still protects the file.
    if (status.ok()) (void)chmod(path.c_str(), 0600);
    return status;
  }
};

// RocksDB reserves more space than a buffer for each log. On a small disk that may be all there is.
bool IsSmallDisk(const std::string& folder, size_t buffer_bytes) {
  constexpr uint64_t kBuffers = 32;
  struct statvfs disk;
  return statvfs(folder.c_str(), &disk) == 0 &&
         static_cast<uint64_t>(disk.f_blocks) * disk.f_frsize < kBuffers * buffer_bytes;
}

// The parts of a database that failed: kept until the process ends, so that they are not destroyed.
struct Abandoned {
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::DB* db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
};

void Abandon(Abandoned abandoned) {
  static Mutex mutex;
  static auto* const all = new std::vector<Abandoned>;
  MutexLock lock(&mutex);
  all->push_back(std::move(abandoned));
}

}  // namespace

class RocksStore::Listener : public rocksdb::EventListener {
 public:
  explicit Listener(RocksStore* store) : store_(store) {}
  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override { DropIdleIterators(); }
  void OnCompactionCompleted(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& /*info*/) override {
    DropIdleIterators();
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status* error) override {
    store_->Stop(FromRocks(*error, "writing"));
  }
  // A store that stopped stays stopped. RocksDB would go on at any time, from its own thread, even after the store was
  // closed and its folder opened again.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  // They hold on to the files that a flush or compaction has replaced.
  void DropIdleIterators() {
    for (IteratorPool& pool : store_->pools_) pool.DropIdle();
  }
  RocksStore* const store_;
};

absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& dir, const RocksOptions& options) {
  return OpenRocksStoreWithEnv(dir, options, rocksdb::Env::Default());
}

absl::StatusOr<std::unique_ptr<Store>> OpenRocksStoreWithEnv(const std::string& dir, const RocksOptions& options,
                                                             rocksdb::Env* env) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<RocksStore> store, RocksStore::Open(dir, options, env));
  return std::unique_ptr<Store>(std::move(store));
}

absl::StatusOr<std::unique_ptr<RocksStore>> RocksStore::Open(const std::string& dir, const RocksOptions& options,
                                                             rocksdb::Env* env) {
  // RocksDB's records cannot hold more.
  constexpr size_t kMaxBytes = size_t{1} << 30;
  if (options.limits.max_value_bytes > kMaxBytes || options.limits.max_row_mutation_bytes > kMaxBytes) {
    return absl::InvalidArgumentError(StrCat("limits too large: ", options.limits.max_value_bytes,
                                             " bytes for a value, ", options.limits.max_row_mutation_bytes,
                                             " for a row mutation; the maximum is ", kMaxBytes, " bytes"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<StoreFolder> folder, StoreFolder::Open(dir, options.create_if_missing));
  std::unique_ptr<RocksStore> store(new RocksStore(options, std::move(folder)));
  PERCOLATOR_RETURN_IF_ERROR(store->OpenDatabase(env));
  PERCOLATOR_RETURN_IF_ERROR(store->catalog_.Load(store->db_.get()));
  PERCOLATOR_RETURN_IF_ERROR(store->LoadLocks());
  PERCOLATOR_ASSIGN_OR_RETURN(Timestamp newest, store->NewestTimestamp());
  store->sketch_.emplace(newest);
  return store;
}

RocksStore::RocksStore(const RocksOptions& options, std::unique_ptr<StoreFolder> folder)
    : options_(options),
      dir_(folder->dir()),
      folder_(std::move(folder)),
      versions_(options.version_cache_bytes),
      joints_([this](const JointQueue::Group& group) { ApplyTogether(group); }) {}

RocksStore::~RocksStore() { Close().IgnoreError(); }

void RocksStore::operator delete(RocksStore* store, std::destroying_delete_t) {
  if (store->forks_.forked()) return KeepUntilExit(std::shared_ptr<void>(store, [](void*) {}));
  store->~RocksStore();
  operator delete(static_cast<void*>(store));
}

// Neither is inline: GCC would compare the body of one with the other, and warn that they do not match.
[[gnu::noinline]] void RocksStore::operator delete(void* memory) {
  ::operator delete(memory, std::align_val_t(alignof(RocksStore)));
}

[[gnu::noinline]] void* RocksStore::operator new(size_t bytes) {
  return ::operator new(bytes, std::align_val_t(alignof(RocksStore)));
}

absl::Status RocksStore::MayNotUse() const {
  if (!forks_.forked()) return StoreClosed(StrCat("store in ", dir_));
  return absl::FailedPreconditionError(
      StrCat("the store in ", dir_, " was opened by the process that forked this one; fork before opening it"));
}

absl::Status RocksStore::OpenDatabase(rocksdb::Env* env) {
  env_ = rocksdb::NewCompositeEnv(std::make_shared<StoreFiles>(env->GetFileSystem()));
  space_.emplace(env->GetFileSystem(), folder_->dir(), options_.reserve_bytes);
  PERCOLATOR_ASSIGN_OR_RETURN(uint64_t closed_at, TakeCleanRecord(*folder_, env_.get()));
  closed_at_ = closed_at;
  rocksdb::DBOptions db_options = MakeDbOptions(options_, folder_->message_log_path(), env_.get());
  db_options.listeners.push_back(std::make_shared<Listener>(this));
  db_options.allow_fallocate = !IsSmallDisk(folder_->dir(), options_.write_buffer_bytes);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, folder_->rocksdb_dir(), MakeColumnFamilies(options_), &handles_, &db);
  if (!status.ok()) return FromRocks(status, StrCat("opening the store in ", folder_->dir()));
  db_.reset(db);
  space_->CountUnflushed([this] { return UnflushedBytes(); }, [this] { FlushFamilies(/*wait=*/false).IgnoreError(); });
  for (int i = 0; i < kFamilyCount; ++i) pools_[i].Start(db, family(static_cast<Family>(i)));
  if (db_->GetLatestSequenceNumber() < closed_at_) {
    return absl::DataLossError(StrCat("the store in ", folder_->dir(), " ends with write ",
                                      db_->GetLatestSequenceNumber(), ", but was closed after write ", closed_at_,
                                      "; restore the folder from a backup. To open it as it is, delete ",
                                      folder_->clean_record_path()));
  }
  return absl::OkStatus();
}

absl::Status RocksStore::LoadLocks() {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, family(Family::kLock)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    locks_.Set(CellPrefixOf(key), TimestampOf(key), std::string_view(it->value().data(), it->value().size()));
  }
  return FromRocks(it->status(), "reading the store's locks");
}

absl::StatusOr<Timestamp> RocksStore::NewestTimestamp() {
  Timestamp newest;
  for (int i = 0; i < kFamilyCount; ++i) {
    PERCOLATOR_ASSIGN_OR_RETURN(Timestamp in_family, MaxTimestampInFiles(db_.get(), family(static_cast<Family>(i))));
    newest = std::max(newest, in_family);
  }
  return newest;
}

absl::StatusOr<Table*> RocksStore::FindTable(const std::string& name) const {
  Table* table = catalog_.Find(name);
  if (table == nullptr) return UnknownTable(name);
  return table;
}

absl::Status RocksStore::CreateTable(const TableInfo& info) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  PERCOLATOR_RETURN_IF_ERROR(ValidateTable(info, options_.limits));
  MutexLock lock(&admin_mutex_);
  if (catalog_.Find(info.name) != nullptr) return TableExists(info.name);
  PERCOLATOR_RETURN_IF_ERROR(CheckRoomForTable(info, catalog_.List(), options_.limits));
  if (catalog_.Full())
    return absl::ResourceExhaustedError(StrCat("cannot create table ", info.name, ": every table id has been used"));
  PERCOLATOR_RETURN_IF_ERROR(MayWrite());
  PERCOLATOR_RETURN_IF_ERROR(space_->Take(info.schema.size()));
  rocksdb::WriteBatch batch;
  std::unique_ptr<Table> table = catalog_.StageCreate(info, &batch);
  PERCOLATOR_RETURN_IF_ERROR(Write(&batch, /*sync=*/true));
  catalog_.Add(std::move(table));
  return absl::OkStatus();
}

absl::Status RocksStore::DropTable(const std::string& name) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  MutexLock lock(&admin_mutex_);
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(name));
  LatchTable::Guard guard(&latches_, LatchTable::EveryStripe());
  PERCOLATOR_RETURN_IF_ERROR(MayWrite());
  rocksdb::WriteBatch batch;
  RocksCatalog::StageDrop(*table, &batch);
  for (int i = 0; i < kFamilyCount; ++i) {
    batch.DeleteRange(family(static_cast<Family>(i)), TablePrefix(table->id), TablePrefix(table->id + 1));
  }
  // From here on rows may disappear one by one: a reader checks `dropped` again before it answers.
  table->dropped = true;
  guard.BeginWrite();
  absl::Status written = Write(&batch, /*sync=*/true);
  if (written.ok()) {
    catalog_.Remove(name);
    locks_.EraseTable(TablePrefix(table->id));
  } else {
    table->dropped = false;
  }
  guard.EndWrite();
  return written;
}

absl::StatusOr<std::vector<TableInfo>> RocksStore::ListTables() {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  return catalog_.List();
}

absl::StatusOr<TableInfo> RocksStore::GetTable(const std::string& name) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  PERCOLATOR_ASSIGN_OR_RETURN(const Table* table, FindTable(name));
  return table->info;
}

// G4: makes the safe point durable, then visible, then waits for every mutation that has not seen it. A mutation reads
// the safe point under its latches, so one that saw the old value has ended when all latches have been passed through.
absl::Status RocksStore::RaiseSafePoint(Timestamp ts) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  MutexLock lock(&admin_mutex_);
  if (ts <= catalog_.safe_point()) return absl::OkStatus();
  PERCOLATOR_RETURN_IF_ERROR(MayWrite());
  rocksdb::WriteBatch batch;
  RocksCatalog::StageSafePoint(ts, &batch);
  PERCOLATOR_RETURN_IF_ERROR(Write(&batch, /*sync=*/true));
  catalog_.SetSafePoint(ts);
  latches_.PassThrough();
  return absl::OkStatus();
}

absl::StatusOr<Timestamp> RocksStore::SafePoint() {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  return catalog_.safe_point();
}

// Files are about equal in size, so the rows at which they begin divide the table about equally.
absl::StatusOr<std::vector<std::string>> RocksStore::SampleRowKeys(const std::string& name) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(name));
  std::vector<std::string> rows;
  for (const Family f : {Family::kWrite, Family::kData}) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(family(f), &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        ParsedKey key;
        if (ParseCellKey(file.smallestkey, &key) && key.table == table->id) rows.push_back(std::move(key.row));
      }
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// After a failed write, the contents of the disk are unknown, so nothing more is written: the store stops. Opening it
// again finds out.
absl::Status RocksStore::MayWrite() {
  if (!stopped_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(&stop_mutex_);
  return absl::FailedPreconditionError(StrCat("the store in ", dir_, " takes no more writes ", StopText()));
}

std::string RocksStore::StopText() {
  const std::string_view advice = absl::IsResourceExhausted(stop_reason_) ? "make space" : "check the disk";
  return StrCat("since ", stop_reason_.message(), "; ", advice, ", then open the store again");
}

void RocksStore::Stop(const absl::Status& reason) {
  MutexLock lock(&stop_mutex_);
  if (stop_reason_.ok()) stop_reason_ = reason;
  stopped_.store(true, std::memory_order_release);
}

absl::Status RocksStore::Write(rocksdb::WriteBatch* batch, bool sync) {
  const NoPerfCounters no_counters;
  rocksdb::WriteOptions options;
  options.sync = sync;
  absl::Status status = FromRocks(db_->Write(options, batch), "writing");
  if (!status.ok()) Stop(status);
  return status;
}

uint64_t RocksStore::UnflushedBytes() {
  uint64_t bytes = 0;
  return db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes) ? bytes : 0;
}

absl::Status RocksStore::FlushFamilies(bool wait) {
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;
  options.wait = wait;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    PERCOLATOR_RETURN_IF_ERROR(FromRocks(db_->Flush(options, handle), "flushing"));
  }
  return absl::OkStatus();
}

absl::Status RocksStore::Flush() {
  // Small families wait for the disk together.
  PERCOLATOR_RETURN_IF_ERROR(FlushFamilies(/*wait=*/false));
  return FlushFamilies(/*wait=*/true);
}

absl::Status RocksStore::CloseDatabase() {
  PERCOLATOR_DCHECK(!stopped_);
  // From here on the files do not change.
  rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);
  std::vector<std::string> files;
  uint64_t manifest_bytes = 0;
  const bool listed = db_->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/false).ok();
  // A number that was too low on open stays too low until the operator has removed the record.
  const uint64_t sequence = std::max<uint64_t>(db_->GetLatestSequenceNumber(), closed_at_);
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  absl::Status status = FromRocks(db_->Close(), "closing the store");
  db_.reset();
  if (!status.ok() || !listed) return status;
  // Without the record the store is as after a crash: nothing is lost, but less is checked.
  WriteCleanRecord(*folder_, sequence, files, env_.get()).IgnoreError();
  return absl::OkStatus();
}

absl::Status RocksStore::Close() {
  if (forks_.forked()) return MayNotUse();
  if (db_ == nullptr || closed_.exchange(true)) return absl::OkStatus();
  absl::Status status;
  if (options_.durability == Durability::kNoSync) {
    // A stopped store cannot make anything durable.
    status = stopped_ ? MayWrite() : FromRocks(db_->SyncWAL(), "syncing the log on close");
  }
  if (status.ok() && !stopped_) {
    if (absl::Status flushed = Flush(); !flushed.ok()) Stop(flushed);
  }
  for (IteratorPool& pool : pools_) pool.DropIdle();
  if (status.ok() && !stopped_) {
    status = CloseDatabase();
  } else {
    // After an error, RocksDB may have lost count of references to itself, and then ends the process when it is
    // destroyed (Debian builds it with assertions). Every acknowledged write is in its log, so it is left as after a
    // crash: stopped, but not destroyed.
    rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);
    Abandon({std::move(env_), db_.release(), std::move(handles_)});
  }
  handles_.clear();
  folder_.reset();
  return status;
}

}  // namespace percolator
