// SPDX-License-Identifier: Apache-2.0

#include "src/server/executor.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr int kHeavyNiceness = 15;  // added to that of the process

int HeavyThreads() { return static_cast<int>(std::max(2U, std::thread::hardware_concurrency())); }

}  // namespace

Executor::Executor(int threads, size_t max_waiting, const CallMemory& memory)
    : max_waiting_(max_waiting),
      memory_(memory),
      requests_(memory.requests),
      unsent_(memory.unsent, memory.unsent_of_connection) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(kLight); });
  for (int i = 0; i < HeavyThreads(); ++i) threads_.emplace_back([this] { Work(kHeavy); });
}

Executor::~Executor() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    for (Queue& queue : queues_) queue.changed->WakeAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::TryRun(Task task, Lane lane) {
  const MutexLock lock(&mutex_);
  Queue& queue = queues_[lane];
  if (queue.tasks.size() >= max_waiting_) return false;
  queue.tasks.push_back(std::move(task));
  queue.changed->WakeOne();
  return true;
}

absl::Status Executor::TooBusy() const {
  return absl::UnavailableError(StrCat("the server is too busy: limit of ", max_waiting_, " waiting requests reached"));
}

void Executor::Run(Task task, Lane lane) {
  const MutexLock lock(&mutex_);
  queues_[lane].tasks.push_back(std::move(task));
  queues_[lane].changed->WakeOne();
}

void Executor::Work(Lane lane) {
  // On Linux a thread has its own priority. If it cannot be lowered, the threads are still few.
  if (lane == kHeavy) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kHeavyNiceness);
  for (;;) {
    Task task;
    {
      const MutexLock lock(&mutex_);
      Queue& queue = queues_[lane];
      while (queue.tasks.empty() && !ending_) queue.changed->Wait(&mutex_);
      if (queue.tasks.empty()) return;
      task = std::move(queue.tasks.front());
      queue.tasks.pop_front();
    }
    task();
  }
}

}  // namespace percolator
