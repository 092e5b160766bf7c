// SPDX-License-Identifier: Apache-2.0

// FaultFs: a file system for RocksDB that loses power and fails on demand.
//
// It forwards everything to the real file system and models what a disk would hold if the power failed now.
//
// WHAT IS DURABLE
//   bytes  of a file: up to the size it had when its last successful Sync or Fsync began. RangeSync and Close make
//          nothing durable: sync_file_range neither waits for metadata nor flushes the disk's own cache.
//   names  in a directory (creations, deletions, renames): at the next successful sync of that directory.
// A failed sync is final, as on Linux: the dirty pages count as clean afterwards, so a later successful sync does not
// make those bytes durable.
//
// WHAT PowerLoss DOES to the real folder: bytes and names that are not durable are lost, by one of three modes. Names
// are lost in reverse order, so that a prefix of the directory's history survives, as with a journal.
//
// WHAT IS NOT MODELLED
//   - directories: they exist durably once created;
//   - files that are not opened through FaultFs (RocksDB's text log, LOG, and others): they are durable;
//   - truncating an existing file, by opening it for writing or by Truncate: durable at once;
//   - writes into the middle of a file, hard links, recycled log files: refused as NotSupported. The store uses none.
// Sync does not sync the real file, which costs milliseconds and adds nothing; it waits for SyncDelay instead, so that
// writers form groups as on a real disk.
//
// Thread-safe.

#ifndef PERCOLATOR_TESTS_STORE_FAULT_FS_H_
#define PERCOLATOR_TESTS_STORE_FAULT_FS_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "percolator/spi/mutex.h"
#include "rocksdb/file_system.h"

namespace percolator {

class FaultFs : public rocksdb::FileSystemWrapper {
 public:
  // The fate of bytes and names that are not durable.
  enum class Loss {
    kAll,      // all of them are gone
    kCut,      // a random part at their end is gone
    kGarbage,  // as kCut, and the remaining bytes are partly zeros or noise, by sectors of 512 bytes
  };

  enum class FileKind { kAny, kWal, kTable, kManifest };

  struct Fault {
    enum class Kind {
      kNoSpace,     // append (half of it is written), create, rename: the disk is full
      kWriteError,  // append, create, rename: input/output error, nothing is written
      kSyncError,   // sync of a file or a directory
      kReadError,   // read
      kPowerCut,    // append, create, rename, sync: the power fails just before it, as by CutPower
    };
    static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

    Kind kind = Kind::kWriteError;
    // The first operation to fail, counted from 1 among those that `kind` and `files` select. kNever only counts.
    uint64_t nth = 1;
    // Every later one fails too, until Heal.
    bool persistent = false;
    // Directory syncs belong to kAny only.
    FileKind files = FileKind::kAny;
  };

  FaultFs();
  ~FaultFs() override;

  const char* Name() const override { return "FaultFs"; }

  void SyncDelay(std::chrono::microseconds delay);

  // Arms `fault` in place of an earlier one and starts its count.
  void Inject(const Fault& fault);
  // Ends the fault. Operations that failed stay failed.
  void Heal();
  // Sets the result of GetFreeSpace; absent: the real free space. Writes still succeed.
  void SetFreeSpace(std::optional<uint64_t> bytes);
  // The number of operations that the last fault selected, and the number that it failed.
  uint64_t Selected() const;
  uint64_t Failed() const;

  // Fails every operation until PowerOn. The folder stays as it is.
  void CutPower();
  // Calls CutPower, then gives the real folder the content that the disk would hold.
  void PowerLoss(Loss loss, uint64_t seed);
  // Makes everything in the folder durable. Files opened before stay dead.
  void PowerOn();

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result, rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus Truncate(const std::string& path, size_t size, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options, uint64_t* free,
                                 rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* dbg) override;

  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* dbg) override;

 private:
  class SequentialFile;
  class RandomAccessFile;
  class WritableFile;
  class Directory;

  enum class Op { kAppend, kSync, kCreate, kRename, kRead };

  // The bytes of a file that is or was open for writing, under any name.
  struct FileState {
    uint64_t size = 0;
    uint64_t durable = 0;
    bool sync_failed = false;
  };
  // A file that was deleted or overwritten, to restore it.
  struct Image {
    std::string bytes;
    std::shared_ptr<FileState> state;
  };
  // One change of names that is not durable: a creation has no `removed`, a deletion no `created`, a rename has both.
  struct NameChange {
    std::string created;
    std::string removed;
    std::optional<Image> saved;  // the file that was deleted, or overwritten by the rename
  };

  // The start of every operation: whether the handle's power is still on, and whether the fault hits.
  rocksdb::IOStatus Check(uint64_t epoch, Op op, const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rocksdb::IOStatus CheckPower(uint64_t epoch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FaultSelects(Op op, const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FaultActive() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Image TakeImage(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutImage(const std::string& path, const Image& image) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Undo(const NameChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveState(const std::string& from, const std::string& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseNames(Loss loss, std::mt19937_64* random) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseBytes(Loss loss, std::mt19937_64* random) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::chrono::microseconds sync_delay_ ABSL_GUARDED_BY(mutex_){0};

  bool power_on_ ABSL_GUARDED_BY(mutex_) = true;
  // Counts PowerOn. A handle works only in the epoch in which it was opened.
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;

  std::map<std::string, std::shared_ptr<FileState>> files_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<NameChange>> name_changes_ ABSL_GUARDED_BY(mutex_);  // by directory

  std::optional<Fault> fault_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> free_space_ ABSL_GUARDED_BY(mutex_);
  uint64_t selected_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_FAULT_FS_H_
