#include "src/rpc/server/executor.h"

#include <utility>

namespace percolator {

Executor::Executor(int threads) : changed_(Runtime::Real()->NewWaitQueue()) {
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
