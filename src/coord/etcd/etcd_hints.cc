// SPDX-License-Identifier: Apache-2.0

#include "src/coord/etcd/etcd_hints.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "src/base/clock.h"
#include "src/base/coding.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

// The minimum pause between two puts, because each costs etcd a sync of its disk.
constexpr Duration kHintPause = std::chrono::milliseconds(5);
// The maximum size of the queue, and so of a value. A hint with the longest names fits.
constexpr size_t kMaxBytes = 32 << 10;
// The limit of one process. etcd keeps every put until it is compacted, and refuses all writes when it is full.
constexpr size_t kBytesPerSecond = 64 << 10;
constexpr Duration kTimeout = std::chrono::seconds(1);
// How long the last hints of a process stay in etcd after it has ended.
constexpr Duration kLease = std::chrono::seconds(30);

// Returns the pause after a put of `bytes` bytes.
Duration PauseAfter(size_t bytes) {
  const Duration worth(std::chrono::microseconds(std::chrono::seconds(1)).count() * static_cast<int64_t>(bytes) /
                       static_cast<int64_t>(kBytesPerSecond));
  return std::max(kHintPause, worth);
}

void AppendCell(std::string* out, const CellName& cell) {
  AppendOrderedString(out, cell.table);
  AppendOrderedString(out, cell.row);
  AppendOrderedString(out, cell.column);
}

bool ConsumeCell(std::string_view* in, CellName* cell) {
  return ConsumeOrderedString(in, &cell->table) && ConsumeOrderedString(in, &cell->row) &&
         ConsumeOrderedString(in, &cell->column);
}

}  // namespace

EtcdHints::EtcdHints(EtcdClient* client, const EtcdOptions& options)
    : client_(client),
      prefix_(StrCat(options.prefix, "hints/")),
      sender_((Runtime::Real()->Random() >> 1) | 1),
      key_(StrCat(prefix_, sender_)),
      listener_(Runtime::Real()),
      changed_(Runtime::Real()->NewWaitQueue()),
      thread_([this] { Run(); }) {}

EtcdHints::~EtcdHints() {
  {
    MutexLock lock(&watch_mutex_);
    watch_ = nullptr;
  }
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_->WakeAll();
  }
  thread_.join();
}

void EtcdHints::Send(const CellName& cell) {
  MutexLock lock(&mutex_);
  if (waiting_.size() + cell.table.size() + cell.row.size() + cell.column.size() > kMaxBytes) return;
  if (waiting_.empty()) changed_->WakeAll();
  AppendCell(&waiting_, cell);
}

void EtcdHints::Run() {
  for (Duration pause(0);;) {
    const std::string hints = TakeAfter(pause);
    if (hints.empty()) return;
    Put(hints);
    pause = PauseAfter(hints.size());
  }
}

std::string EtcdHints::TakeAfter(Duration pause) {
  Runtime* const runtime = Runtime::Real();
  const Duration end = runtime->Elapsed() + pause;
  MutexLock lock(&mutex_);
  while (!ending_) {
    const Duration left = end - runtime->Elapsed();
    if (left > Duration::zero()) {
      changed_->WaitFor(&mutex_, left);
    } else if (waiting_.empty()) {
      changed_->Wait(&mutex_);
    } else {
      return std::exchange(waiting_, std::string());
    }
  }
  return {};
}

// Instead of renewing the lease, grants it again when half of it has passed.
void EtcdHints::Put(const std::string& hints) {
  const auto lease = static_cast<int64_t>(sender_);
  const uint64_t now = Clock::Real()->BootMicros();
  if (now >= lease_until_) {
    const absl::StatusOr<Duration> ttl = client_->Grant(lease, kLease, kTimeout);
    if (!ttl.ok()) return;
    lease_until_ = now + static_cast<uint64_t>(ttl->count()) / 2;
  }
  const absl::Status status = client_->Put(key_, hints, lease, kTimeout);
  if (absl::IsNotFound(status)) lease_until_ = 0;  // the lease has expired
}

void EtcdHints::Listen(Coordinator::HintListener listener) {
  const bool listens = listener != nullptr;
  listener_.Set(std::move(listener));
  if (!listens) return;
  MutexLock lock(&watch_mutex_);
  if (watch_ != nullptr) return;
  watch_ = std::make_unique<EtcdWatch>(client_, prefix_, [this](const etcd::KeyValue& put) { Receive(put); });
}

void EtcdHints::Receive(const etcd::KeyValue& put) {
  if (put.key() == key_) return;
  std::string_view hints = put.value();
  for (CellName cell; ConsumeCell(&hints, &cell);) listener_.Tell(cell);
}

}  // namespace percolator
