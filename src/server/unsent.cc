// SPDX-License-Identifier: Apache-2.0

#include "src/server/unsent.h"

#include <algorithm>
#include <utility>

#include "src/base/strings.h"
#include "src/server/requests.h"

namespace percolator {

struct UnsentAnswers::Call::Entry {
  // Held while `context` is used. Recursive, because the call may end within TryCancel on the same thread.
  std::recursive_mutex alive;
  grpc::CallbackServerContext* context = nullptr;  // null after the call has ended

  std::map<std::string, Connection>::iterator connection;
  Entries::iterator place;
  size_t bytes = 0;
  Duration progress{};         // the time of the last progress
  std::function<void()> task;  // set while the call waits for room
  Entries::iterator waits;
};

void UnsentAnswers::Call::Register() {
  if (entry_ != nullptr) return;
  entry_ = std::make_shared<Entry>();
  entry_->context = context_;
  std::string peer = context_->peer();
  const MutexLock lock(&unsent_->mutex_);
  entry_->connection = unsent_->connections_.try_emplace(std::move(peer)).first;
  ++entry_->connection->second.calls;
  entry_->progress = Runtime::Real()->Elapsed();
  entry_->place = unsent_->entries_.insert(unsent_->entries_.end(), entry_);
}

absl::Status UnsentAnswers::Call::TryAdd(size_t bytes) {
  if (bytes <= kNotCounted) return absl::OkStatus();
  Register();
  const MutexLock lock(&unsent_->mutex_);
  const size_t limit = unsent_->limit_ + (bytes <= kSmall ? unsent_->limit_ / 4 : 0);
  const size_t of_connection = entry_->connection->second.bytes;
  // A single answer may exceed the limit if no other is unread.
  if (of_connection > 0 && of_connection + bytes > unsent_->connection_limit_) {
    return absl::UnavailableError(StrCat("the server is too busy: this connection has ", of_connection >> 20,
                                         " MiB of unread answers, the limit is ", unsent_->connection_limit_ >> 20,
                                         " MiB; read them first"));
  }
  if (unsent_->bytes_ > 0 && unsent_->bytes_ + bytes > limit) {
    unsent_->full_ = true;
    return absl::UnavailableError(StrCat("the server is too busy: all connections have ", unsent_->bytes_ >> 20,
                                         " MiB of unread answers, the limit is ", limit >> 20, " MiB"));
  }
  unsent_->AddLocked(entry_.get(), bytes);
  return absl::OkStatus();
}

void UnsentAnswers::Call::Add(size_t bytes) {
  Register();
  const MutexLock lock(&unsent_->mutex_);
  unsent_->AddLocked(entry_.get(), bytes);
}

void UnsentAnswers::Call::Sent(size_t bytes) {
  if (entry_ == nullptr) return;
  std::function<void()> task;
  {
    const MutexLock lock(&unsent_->mutex_);
    unsent_->SubtractLocked(entry_.get(), bytes);
    task = unsent_->NextTask();
  }
  if (task) task();
}

void UnsentAnswers::Call::End() {
  if (entry_ == nullptr) return;
  {
    const std::lock_guard<std::recursive_mutex> alive(entry_->alive);
    entry_->context = nullptr;
  }
  StopWaiting();
  std::function<void()> task;
  {
    const MutexLock lock(&unsent_->mutex_);
    unsent_->SubtractLocked(entry_.get(), entry_->bytes);
    if (--entry_->connection->second.calls == 0) unsent_->connections_.erase(entry_->connection);
    unsent_->entries_.erase(entry_->place);
    task = unsent_->NextTask();
  }
  entry_.reset();
  if (task) task();
}

bool UnsentAnswers::Call::WaitForRoom(std::function<void()> task) {
  Register();
  const MutexLock lock(&unsent_->mutex_);
  if (unsent_->HasRoom(*entry_)) return false;
  unsent_->full_ = true;
  entry_->task = std::move(task);
  entry_->waits = unsent_->waiting_.insert(unsent_->waiting_.end(), entry_);
  return true;
}

bool UnsentAnswers::Call::StopWaiting() {
  if (entry_ == nullptr) return false;
  const MutexLock lock(&unsent_->mutex_);
  if (!entry_->task) return false;
  entry_->task = nullptr;
  unsent_->waiting_.erase(entry_->waits);
  return true;
}

void UnsentAnswers::AddLocked(Call::Entry* entry, size_t bytes) {
  entry->bytes += bytes;
  entry->connection->second.bytes += bytes;
  bytes_ += bytes;
  entry->progress = Runtime::Real()->Elapsed();
  entries_.splice(entries_.end(), entries_, entry->place);
  NoteLargeUse(bytes);
}

void UnsentAnswers::SubtractLocked(Call::Entry* entry, size_t bytes) {
  bytes = std::min(bytes, entry->bytes);
  entry->bytes -= bytes;
  entry->connection->second.bytes -= bytes;
  bytes_ -= bytes;
  entry->progress = Runtime::Real()->Elapsed();
  entries_.splice(entries_.end(), entries_, entry->place);
}

bool UnsentAnswers::HasRoom(const Call::Entry& entry) const {
  return bytes_ < limit_ && entry.connection->second.bytes < connection_limit_;
}

std::function<void()> UnsentAnswers::NextTask() {
  if (bytes_ >= limit_) return nullptr;
  for (const std::shared_ptr<Call::Entry>& entry : waiting_) {
    if (!HasRoom(*entry)) continue;
    std::function<void()> task = std::exchange(entry->task, nullptr);
    waiting_.erase(entry->waits);
    return task;
  }
  return nullptr;
}

void UnsentAnswers::CancelStalled() {
  std::vector<std::shared_ptr<Call::Entry>> stalled;
  std::function<void()> task;
  {
    const MutexLock lock(&mutex_);
    task = NextTask();
    if (std::exchange(full_, !waiting_.empty()) && bytes_ >= limit_ - limit_ / 8) {
      for (const std::shared_ptr<Call::Entry>& entry : entries_) {
        if (Runtime::Real()->Elapsed() - entry->progress < kStall) break;
        if (entry->bytes > 0) stalled.push_back(entry);
      }
    }
  }
  for (const std::shared_ptr<Call::Entry>& entry : stalled) {
    const std::lock_guard<std::recursive_mutex> alive(entry->alive);
    if (entry->context != nullptr) entry->context->TryCancel();
  }
  if (task) task();
}

}  // namespace percolator
