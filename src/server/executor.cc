// SPDX-License-Identifier: Apache-2.0

#include "src/server/executor.h"

#include <utility>

#include "src/base/strings.h"

namespace percolator {

Executor::Executor(int threads, size_t max_waiting, const CallMemory& memory)
    : max_waiting_(max_waiting),
      memory_(memory),
      requests_(memory.requests),
      unsent_(memory.unsent, memory.unsent_of_connection),
      changed_(Runtime::Real()->NewWaitQueue()) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Executor::~Executor() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_->WakeAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::TryRun(Task task) {
  MutexLock lock(&mutex_);
  if (tasks_.size() >= max_waiting_) return false;
  tasks_.push_back(std::move(task));
  changed_->WakeOne();
  return true;
}

absl::Status Executor::TooBusy() const {
  return absl::UnavailableError(StrCat("the server is too busy: limit of ", max_waiting_, " waiting requests reached"));
}

void Executor::Run(Task task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  changed_->WakeOne();
}

void Executor::Work() {
  for (;;) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !ending_) changed_->Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace percolator
