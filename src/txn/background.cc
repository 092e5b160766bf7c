// SPDX-License-Identifier: Apache-2.0

#include "src/txn/background.h"

#include <utility>

#include "src/base/check.h"
#include "src/txn/apply.h"

namespace percolator {
namespace {

// Row mutations in one batch.
constexpr size_t kBatch = 256;
// How long the queue tries secondaries that the store does not accept, before it leaves them to readers.
constexpr Duration kSecondaryTimeout = std::chrono::seconds(5);

}  // namespace

SecondaryQueue::SecondaryQueue(Environment* env, size_t capacity)
    : env_(env), capacity_(capacity), changed_(env->runtime->NewWaitQueue()) {}

SecondaryQueue::~SecondaryQueue() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  drain_by_.emplace(env_->runtime, kSecondaryTimeout);
  changed_->WakeAll();
  while (started_ && !ended_) changed_->Wait(&mutex_);
}

bool SecondaryQueue::Add(std::vector<RowMutation>* mutations) {
  MutexLock lock(&mutex_);
  if (waiting_.size() + mutations->size() > capacity_) return false;
  added_ += mutations->size();
  for (RowMutation& mutation : *mutations) waiting_.push_back(std::move(mutation));
  if (!started_) {
    started_ = true;
    env_->runtime->Start([this] { Loop(); });
  } else if (!busy_) {
    changed_->WakeAll();
  }
  return true;
}

void SecondaryQueue::Drain() {
  MutexLock lock(&mutex_);
  for (const uint64_t target = added_; done_ < target;) changed_->Wait(&mutex_);
}

void SecondaryQueue::Loop() {
  mutex_.Lock();
  while (!stopping_ || !waiting_.empty()) {
    if (waiting_.empty()) {
      changed_->Wait(&mutex_);
      continue;
    }
    if (stopping_ && drain_by_->passed()) {
      done_ += waiting_.size();
      waiting_.clear();
      continue;
    }
    std::vector<RowMutation> batch;
    for (; batch.size() < kBatch && !waiting_.empty(); waiting_.pop_front()) {
      batch.push_back(std::move(waiting_.front()));
    }
    busy_ = true;
    const size_t count = batch.size();
    const Deadline deadline = drain_by_.value_or(Deadline(env_->runtime, kSecondaryTimeout));
    mutex_.Unlock();
    ApplyInTime(*env_, std::move(batch), deadline).IgnoreError();
    mutex_.Lock();
    busy_ = false;
    done_ += count;
    changed_->WakeAll();
  }
  ended_ = true;
  changed_->WakeAll();
  mutex_.Unlock();
}

void SecondaryQueue::Apply(Environment* env, std::vector<RowMutation> mutations) {
  ApplyInTime(*env, std::move(mutations), Deadline(env->runtime, kSecondaryTimeout)).IgnoreError();
}

LockKeeper::LockKeeper(Environment* env)
    : env_(env), task_(env->runtime, env->options.lock_lease / 4, [this] { Refresh(); }) {}

LockKeeper::Membership::Membership(LockKeeper* keeper, const Writes& writes)
    : keeper_(keeper), start_ts_(writes.start_ts) {
  PERCOLATOR_DCHECK(writes.has_primary());
  MutexLock lock(&keeper_->mutex_);
  keeper_->members_[start_ts_] = {&writes, keeper_->env_->runtime->Elapsed()};
}

LockKeeper::Membership::~Membership() {
  MutexLock lock(&keeper_->mutex_);
  keeper_->members_.erase(start_ts_);
}

// Conditional on the lock: one that is gone, by commit or rollback, stays gone (T11). It does not ask the oracle for
// the time: it adds the time since the commit joined to the time in the lock.
void LockKeeper::Refresh() {
  std::vector<RowMutation> mutations;
  {
    MutexLock lock(&mutex_);
    const Duration now = env_->runtime->Elapsed();
    for (const auto& [start_ts, member] : members_) {
      if (now - member.joined < env_->options.lock_lease / 4) continue;
      const RowWrites& row = member.writes->rows[0];
      Lock refreshed = row.cells[0].lock;
      refreshed.refreshed =
          Timestamp(refreshed.refreshed.value() + static_cast<uint64_t>((now - member.joined).count()));
      RowMutation mutation{row.table, row.row, {}, {}};
      mutation.condition = {Condition::Quantifier::kAll,
                            {{Family::kLock, row.cells[0].column, TimestampRange::Exactly(start_ts)}}};
      mutation.mutations.push_back(Mutation::Set(Family::kLock, row.cells[0].column, start_ts, EncodeLock(refreshed)));
      mutations.push_back(std::move(mutation));
    }
  }
  if (!mutations.empty()) env_->store->Mutate(mutations);  // failures are retried at the next turn
}

}  // namespace percolator
