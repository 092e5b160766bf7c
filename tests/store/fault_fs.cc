// SPDX-License-Identifier: Apache-2.0

#include "tests/store/fault_fs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace percolator {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSReadRequest;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

constexpr size_t kSectorBytes = 512;

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string DirectoryOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Under a new inode, so that handles still open on the old one cannot reach it.
void ReplaceAll(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

FaultFs::FileKind KindOf(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with(".log")) return FaultFs::FileKind::kWal;
  if (name.ends_with(".sst")) return FaultFs::FileKind::kTable;
  if (name.starts_with("MANIFEST-")) return FaultFs::FileKind::kManifest;
  return FaultFs::FileKind::kAny;
}

uint64_t UpTo(uint64_t limit, std::mt19937_64* random) {
  return std::uniform_int_distribution<uint64_t>(0, limit)(*random);
}

void Garble(std::string* bytes, size_t from, std::mt19937_64* random) {
  for (size_t start = from; start < bytes->size(); start += kSectorBytes) {
    const size_t end = std::min(bytes->size(), start + kSectorBytes);
    const uint64_t fate = UpTo(2, random);
    for (size_t i = start; i < end && fate != 0; ++i) {
      (*bytes)[i] = fate == 1 ? '\0' : static_cast<char>(UpTo(255, random));
    }
  }
}

IOStatus NotModelled(const char* what) { return IOStatus::NotSupported("FaultFs does not model", what); }

}  // namespace

class FaultFs::SequentialFile : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(FaultFs* fs, uint64_t epoch, std::string path, std::unique_ptr<FSSequentialFile> file)
      : FSSequentialFileOwnerWrapper(std::move(file)), fs_(fs), epoch_(epoch), path_(std::move(path)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    if (IOStatus status = Check(); !status.ok()) return status;
    return target()->Read(n, options, result, scratch, dbg);
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                          IODebugContext* dbg) override {
    if (IOStatus status = Check(); !status.ok()) return status;
    return target()->PositionedRead(offset, n, options, result, scratch, dbg);
  }

 private:
  IOStatus Check() {
    MutexLock lock(&fs_->mutex_);
    return fs_->Check(epoch_, Op::kRead, path_);
  }

  FaultFs* const fs_;
  const uint64_t epoch_;
  const std::string path_;
};

class FaultFs::RandomAccessFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(FaultFs* fs, uint64_t epoch, std::string path, std::unique_ptr<FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs), epoch_(epoch), path_(std::move(path)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    if (IOStatus status = Check(); !status.ok()) return status;
    return target()->Read(offset, n, options, result, scratch, dbg);
  }
  // One by one, so that each request meets the fault by itself.
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    // NOLINTNEXTLINE(bugprone-parent-virtual-call): the default, which calls Read; the wrapper would bypass this class.
    return FSRandomAccessFile::MultiRead(requests, count, options, dbg);
  }
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                     std::function<void(const FSReadRequest&, void*)> callback, void* argument, void** handle,
                     rocksdb::IOHandleDeleter* deleter, IODebugContext* dbg) override {
    // NOLINTNEXTLINE(bugprone-parent-virtual-call): likewise.
    return FSRandomAccessFile::ReadAsync(request, options, std::move(callback), argument, handle, deleter, dbg);
  }

 private:
  IOStatus Check() const {
    MutexLock lock(&fs_->mutex_);
    return fs_->Check(epoch_, Op::kRead, path_);
  }

  FaultFs* const fs_;
  const uint64_t epoch_;
  const std::string path_;
};

class FaultFs::WritableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(FaultFs* fs, uint64_t epoch, std::string path, std::shared_ptr<FileState> state,
               std::unique_ptr<FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)),
        fs_(fs),
        epoch_(epoch),
        path_(std::move(path)),
        state_(std::move(state)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    MutexLock lock(&fs_->mutex_);
    IOStatus fault = fs_->Check(epoch_, Op::kAppend, path_);
    if (!fault.ok() && !fault.IsNoSpace()) return fault;
    const Slice written(data.data(), fault.ok() ? data.size() : data.size() / 2);
    IOStatus status = target()->Append(written, options, dbg);
    if (status.ok()) state_->size += written.size();
    return fault.ok() ? status : fault;
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice&, uint64_t, const IOOptions&, IODebugContext*) override {
    return NotModelled("PositionedAppend");
  }
  IOStatus PositionedAppend(const Slice&, uint64_t, const IOOptions&, const rocksdb::DataVerificationInfo&,
                            IODebugContext*) override {
    return NotModelled("PositionedAppend");
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    MutexLock lock(&fs_->mutex_);
    if (IOStatus status = fs_->CheckPower(epoch_); !status.ok()) return status;
    IOStatus status = target()->Truncate(size, options, dbg);
    if (status.ok()) {
      state_->size = size;
      state_->durable = std::min(state_->durable, size);
    }
    return status;
  }

  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    uint64_t size = 0;
    std::chrono::microseconds delay{0};
    {
      MutexLock lock(&fs_->mutex_);
      if (IOStatus fault = fs_->Check(epoch_, Op::kSync, path_); !fault.ok()) {
        state_->sync_failed = true;
        return fault;
      }
      size = state_->size;
      delay = fs_->sync_delay_;
    }
    std::this_thread::sleep_for(delay);
    MutexLock lock(&fs_->mutex_);
    if (IOStatus status = fs_->CheckPower(epoch_); !status.ok()) return status;
    if (!state_->sync_failed) state_->durable = std::max(state_->durable, size);
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override { return Sync(options, dbg); }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

  // Without preallocation the real file always has the modelled size.
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  FaultFs* const fs_;
  const uint64_t epoch_;
  const std::string path_;
  const std::shared_ptr<FileState> state_;
};

class FaultFs::Directory : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(FaultFs* fs, uint64_t epoch, std::string path, std::unique_ptr<FSDirectory> directory)
      : FSDirectoryWrapper(std::move(directory)), fs_(fs), epoch_(epoch), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&fs_->mutex_);
    if (IOStatus fault = fs_->Check(epoch_, Op::kSync, path_); !fault.ok()) return fault;
    fs_->name_changes_.erase(path_);
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, dbg);
  }

 private:
  FaultFs* const fs_;
  const uint64_t epoch_;
  const std::string path_;
};

FaultFs::FaultFs() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
FaultFs::~FaultFs() = default;

void FaultFs::SyncDelay(std::chrono::microseconds delay) {
  MutexLock lock(&mutex_);
  sync_delay_ = delay;
}

void FaultFs::Inject(const Fault& fault) {
  MutexLock lock(&mutex_);
  fault_ = fault;
  selected_ = 0;
  failed_ = 0;
}

void FaultFs::Heal() {
  MutexLock lock(&mutex_);
  fault_.reset();
}

void FaultFs::SetFreeSpace(std::optional<uint64_t> bytes) {
  MutexLock lock(&mutex_);
  free_space_ = bytes;
}

uint64_t FaultFs::Selected() const {
  MutexLock lock(&mutex_);
  return selected_;
}

uint64_t FaultFs::Failed() const {
  MutexLock lock(&mutex_);
  return failed_;
}

void FaultFs::CutPower() {
  MutexLock lock(&mutex_);
  power_on_ = false;
}

void FaultFs::PowerLoss(Loss loss, uint64_t seed) {
  MutexLock lock(&mutex_);
  power_on_ = false;
  std::mt19937_64 random(seed);
  LoseNames(loss, &random);
  LoseBytes(loss, &random);
}

void FaultFs::PowerOn() {
  MutexLock lock(&mutex_);
  power_on_ = true;
  ++epoch_;
  files_.clear();
  name_changes_.clear();
}

IOStatus FaultFs::CheckPower(uint64_t epoch) const {
  if (!power_on_ || epoch != epoch_) return IOStatus::IOError("FaultFs: the power is off");
  return IOStatus::OK();
}

bool FaultFs::FaultSelects(Op op, const std::string& path) const {
  if (!fault_) return false;
  if (fault_->files != FileKind::kAny && fault_->files != KindOf(path)) return false;
  switch (fault_->kind) {
    case Fault::Kind::kNoSpace:
    case Fault::Kind::kWriteError:
      return op == Op::kAppend || op == Op::kCreate || op == Op::kRename;
    case Fault::Kind::kSyncError:
      return op == Op::kSync;
    case Fault::Kind::kReadError:
      return op == Op::kRead;
    case Fault::Kind::kPowerCut:
      return op != Op::kRead;
  }
  return false;
}

bool FaultFs::FaultActive() const {
  return fault_ && (fault_->persistent ? selected_ >= fault_->nth : selected_ == fault_->nth);
}

IOStatus FaultFs::Check(uint64_t epoch, Op op, const std::string& path) {
  if (IOStatus status = CheckPower(epoch); !status.ok()) return status;
  if (!FaultSelects(op, path)) return IOStatus::OK();
  ++selected_;
  if (!FaultActive()) return IOStatus::OK();
  ++failed_;
  if (fault_->kind == Fault::Kind::kPowerCut) {
    power_on_ = false;
    return CheckPower(epoch);
  }
  if (fault_->kind != Fault::Kind::kNoSpace) return IOStatus::IOError("FaultFs: injected error", path);
  IOStatus full = IOStatus::NoSpace("FaultFs: injected full disk", path);
  full.SetRetryable(true);  // as RocksDB's own file system does for ENOSPC
  return full;
}

IOStatus FaultFs::NewSequentialFile(const std::string& path, const FileOptions& options,
                                    std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  std::unique_ptr<FSSequentialFile> file;
  IOStatus status = target()->NewSequentialFile(path, options, &file, dbg);
  if (status.ok()) *result = std::make_unique<SequentialFile>(this, epoch_, Normal(path), std::move(file));
  return status;
}

IOStatus FaultFs::NewRandomAccessFile(const std::string& path, const FileOptions& options,
                                      std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus status = target()->NewRandomAccessFile(path, options, &file, dbg);
  if (status.ok()) *result = std::make_unique<RandomAccessFile>(this, epoch_, Normal(path), std::move(file));
  return status;
}

IOStatus FaultFs::NewWritableFile(const std::string& raw_path, const FileOptions& options,
                                  std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  const std::string path = Normal(raw_path);
  MutexLock lock(&mutex_);
  if (IOStatus fault = Check(epoch_, Op::kCreate, path); !fault.ok()) return fault;
  const bool existed = std::filesystem::exists(path);
  std::unique_ptr<FSWritableFile> file;
  IOStatus status = target()->NewWritableFile(path, options, &file, dbg);
  if (!status.ok()) return status;
  auto state = std::make_shared<FileState>();
  files_[path] = state;
  if (!existed) name_changes_[DirectoryOf(path)].push_back({path, {}, {}});
  *result = std::make_unique<WritableFile>(this, epoch_, path, std::move(state), std::move(file));
  return status;
}

IOStatus FaultFs::ReopenWritableFile(const std::string& raw_path, const FileOptions& options,
                                     std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  const std::string path = Normal(raw_path);
  MutexLock lock(&mutex_);
  if (IOStatus fault = Check(epoch_, Op::kCreate, path); !fault.ok()) return fault;
  const bool existed = std::filesystem::exists(path);
  std::unique_ptr<FSWritableFile> file;
  IOStatus status = target()->ReopenWritableFile(path, options, &file, dbg);
  if (!status.ok()) return status;
  std::shared_ptr<FileState>& state = files_[path];
  if (state == nullptr) {
    const uint64_t size = std::filesystem::file_size(path);
    state = std::make_shared<FileState>(FileState{size, size});
  }
  if (!existed) name_changes_[DirectoryOf(path)].push_back({path, {}, {}});
  *result = std::make_unique<WritableFile>(this, epoch_, path, state, std::move(file));
  return status;
}

IOStatus FaultFs::NewDirectory(const std::string& path, const IOOptions& options, std::unique_ptr<FSDirectory>* result,
                               IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  std::unique_ptr<FSDirectory> directory;
  IOStatus status = target()->NewDirectory(path, options, &directory, dbg);
  if (status.ok()) *result = std::make_unique<Directory>(this, epoch_, Normal(path), std::move(directory));
  return status;
}

IOStatus FaultFs::DeleteFile(const std::string& raw_path, const IOOptions& options, IODebugContext* dbg) {
  const std::string path = Normal(raw_path);
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  Image image = TakeImage(path);
  IOStatus status = target()->DeleteFile(path, options, dbg);
  if (!status.ok()) return status;
  files_.erase(path);
  name_changes_[DirectoryOf(path)].push_back({{}, path, std::move(image)});
  return status;
}

IOStatus FaultFs::RenameFile(const std::string& raw_from, const std::string& raw_to, const IOOptions& options,
                             IODebugContext* dbg) {
  const std::string from = Normal(raw_from);
  const std::string to = Normal(raw_to);
  MutexLock lock(&mutex_);
  if (IOStatus fault = Check(epoch_, Op::kRename, from); !fault.ok()) return fault;
  std::optional<Image> overwritten;
  if (std::filesystem::exists(to)) overwritten = TakeImage(to);
  IOStatus status = target()->RenameFile(from, to, options, dbg);
  if (!status.ok()) return status;
  MoveState(from, to);
  name_changes_[DirectoryOf(to)].push_back({to, from, std::move(overwritten)});
  return status;
}

IOStatus FaultFs::Truncate(const std::string& raw_path, size_t size, const IOOptions& options, IODebugContext* dbg) {
  const std::string path = Normal(raw_path);
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  IOStatus status = target()->Truncate(path, size, options, dbg);
  if (const auto file = files_.find(path); status.ok() && file != files_.end()) {
    file->second->size = size;
    file->second->durable = std::min<uint64_t>(file->second->durable, size);
  }
  return status;
}

IOStatus FaultFs::GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* free, IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  if (FaultActive() && fault_->persistent && fault_->kind == Fault::Kind::kNoSpace) {
    *free = 0;
    return IOStatus::OK();
  }
  if (free_space_.has_value()) {
    *free = *free_space_;
    return IOStatus::OK();
  }
  return target()->GetFreeSpace(path, options, free, dbg);
}

IOStatus FaultFs::CreateDir(const std::string& path, const IOOptions& options, IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (IOStatus fault = Check(epoch_, Op::kCreate, Normal(path)); !fault.ok()) return fault;
  return target()->CreateDir(path, options, dbg);
}

IOStatus FaultFs::CreateDirIfMissing(const std::string& path, const IOOptions& options, IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (std::filesystem::exists(path)) {
    if (IOStatus status = CheckPower(epoch_); !status.ok()) return status;
  } else if (IOStatus fault = Check(epoch_, Op::kCreate, Normal(path)); !fault.ok()) {
    return fault;
  }
  return target()->CreateDirIfMissing(path, options, dbg);
}

IOStatus FaultFs::ReuseWritableFile(const std::string&, const std::string&, const FileOptions&,
                                    std::unique_ptr<FSWritableFile>*, IODebugContext*) {
  return NotModelled("ReuseWritableFile");
}

IOStatus FaultFs::NewRandomRWFile(const std::string&, const FileOptions&, std::unique_ptr<rocksdb::FSRandomRWFile>*,
                                  IODebugContext*) {
  return NotModelled("NewRandomRWFile");
}

IOStatus FaultFs::LinkFile(const std::string&, const std::string&, const IOOptions&, IODebugContext*) {
  return NotModelled("LinkFile");
}

FaultFs::Image FaultFs::TakeImage(const std::string& path) {
  Image image;
  image.bytes = ReadAll(path);
  const auto file = files_.find(path);
  image.state = file != files_.end() ? file->second
                                     : std::make_shared<FileState>(FileState{image.bytes.size(), image.bytes.size()});
  return image;
}

void FaultFs::PutImage(const std::string& path, const Image& image) {
  ReplaceAll(path, image.bytes);
  files_[path] = image.state;
}

void FaultFs::MoveState(const std::string& from, const std::string& to) {
  files_.erase(to);
  if (auto node = files_.extract(from); !node.empty()) {
    node.key() = to;
    files_.insert(std::move(node));
  }
}

void FaultFs::Undo(const NameChange& change) {
  if (change.created.empty()) return PutImage(change.removed, *change.saved);
  if (change.removed.empty()) {
    std::filesystem::remove(change.created);
    files_.erase(change.created);
    return;
  }
  std::filesystem::rename(change.created, change.removed);
  MoveState(change.created, change.removed);
  if (change.saved) PutImage(change.created, *change.saved);
}

void FaultFs::LoseNames(Loss loss, std::mt19937_64* random) {
  for (auto& [directory, changes] : name_changes_) {
    const size_t kept = loss == Loss::kAll ? 0 : UpTo(changes.size(), random);
    for (; changes.size() > kept; changes.pop_back()) Undo(changes.back());
  }
}

void FaultFs::LoseBytes(Loss loss, std::mt19937_64* random) {
  for (const auto& [path, state] : files_) {
    if (state->size <= state->durable || !std::filesystem::exists(path)) continue;
    std::string bytes = ReadAll(path);
    const uint64_t unsynced = bytes.size() - std::min<uint64_t>(bytes.size(), state->durable);
    const uint64_t kept = loss == Loss::kAll ? 0 : UpTo(unsynced, random);
    bytes.resize(bytes.size() - unsynced + kept);
    if (loss == Loss::kGarbage) Garble(&bytes, bytes.size() - kept, random);
    ReplaceAll(path, bytes);
  }
}

}  // namespace percolator
