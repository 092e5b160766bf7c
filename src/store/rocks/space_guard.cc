// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/space_guard.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr int64_t kBytesBetweenLooks = 1 << 20;
constexpr int64_t kSmallWriteBytes = kBytesBetweenLooks / 256;
constexpr uint64_t kSmallDiskShare = 20;
constexpr uint64_t kUnflushedTimes = 2;

uint64_t ReserveOn(const std::string& folder, uint64_t wanted) {
  struct statvfs disk;
  if (wanted == 0 || statvfs(folder.c_str(), &disk) != 0) return wanted;
  return std::min<uint64_t>(wanted, static_cast<uint64_t>(disk.f_blocks) * disk.f_frsize / kSmallDiskShare);
}

}  // namespace

SpaceGuard::SpaceGuard(std::shared_ptr<rocksdb::FileSystem> files, std::string folder, uint64_t reserve_bytes)
    : files_(std::move(files)), folder_(std::move(folder)), reserve_(ReserveOn(folder_, reserve_bytes)) {}

void SpaceGuard::CountUnflushed(std::function<uint64_t()> unflushed_bytes, std::function<void()> flush) {
  PERCOLATOR_DCHECK(until_look_.load() == 0);
  unflushed_bytes_ = std::move(unflushed_bytes);
  flush_ = std::move(flush);
}

bool SpaceGuard::OnlyAdds(const RowMutation& mutation) {
  return std::all_of(mutation.mutations.begin(), mutation.mutations.end(),
                     [](const Mutation& m) { return m.kind == Mutation::Kind::kSet; });
}

absl::Status SpaceGuard::Take(size_t bytes) {
  if (reserve_ == 0) return absl::OkStatus();
  const int64_t taken = std::max(static_cast<int64_t>(bytes), kSmallWriteBytes);
  const bool look = until_look_.fetch_sub(taken, std::memory_order_relaxed) < taken;
  return look || full_.load(std::memory_order_relaxed) ? Look() : absl::OkStatus();
}

absl::Status SpaceGuard::Look() {
  until_look_.store(kBytesBetweenLooks, std::memory_order_relaxed);
  uint64_t free = 0;
  // A file system that does not report free space has no guard: its writes fail when the disk is full.
  if (!files_->GetFreeSpace(folder_, rocksdb::IOOptions(), &free, nullptr).ok()) return absl::OkStatus();
  const uint64_t unflushed = unflushed_bytes_();
  const uint64_t needed = std::max(reserve_, kUnflushedTimes * unflushed);
  const bool was_full = full_.exchange(free < needed, std::memory_order_relaxed);
  if (free >= needed) return absl::OkStatus();
  if (!was_full && free >= reserve_ && free >= unflushed) flush_();
  return absl::ResourceExhaustedError(StrCat("the disk of ", folder_, " has ", free >> 20,
                                             " MiB free, less than the reserve of ", needed >> 20,
                                             " MiB: nothing was written; make space, and writes resume"));
}

}  // namespace percolator
