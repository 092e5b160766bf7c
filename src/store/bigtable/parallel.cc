// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/parallel.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace percolator {

Parallel::Parallel(size_t threads)
    : max_threads_(threads), more_(Runtime::Real()->NewWaitQueue()), done_(Runtime::Real()->NewWaitQueue()) {}

Parallel::~Parallel() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    PERCOLATOR_DCHECK(batches_.empty());
    ending_ = true;
    more_->WakeAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void Parallel::ForEach(size_t count, const std::function<void(size_t)>& work) {
  if (count == 1) return work(0);
  if (count == 0) return;
  Batch batch{.work = &work, .count = count};
  MutexLock lock(&mutex_);
  batches_.push_back(&batch);
  const size_t missing = count - 1 - std::min(idle_, count - 1);
  for (size_t i = 0; i < missing && threads_.size() < max_threads_; ++i) threads_.emplace_back([this] { Work(); });
  more_->WakeAll();
  while (batch.next < batch.count) DoNext(&batch);
  while (batch.running > 0) done_->Wait(&mutex_);
}

void Parallel::DoNext(Batch* batch) {
  const size_t index = batch->next++;
  if (batch->next == batch->count) std::erase(batches_, batch);
  ++batch->running;
  mutex_.Unlock();
  (*batch->work)(index);
  mutex_.Lock();
  --batch->running;
  if (batch->running == 0 && batch->next == batch->count) done_->WakeAll();
}

void Parallel::Work() {
  MutexLock lock(&mutex_);
  while (!ending_) {
    if (!batches_.empty()) {
      DoNext(batches_.front());
      continue;
    }
    ++idle_;
    more_->Wait(&mutex_);
    --idle_;
  }
}

}  // namespace percolator
