#include "tests/histories/virtual_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace percolator {

struct VirtualRuntime::Task {
  CondVar turn;
  std::thread thread;                     // none for the one that made the runtime
  Queue* queue = nullptr;                 // in which it waits
  std::optional<Timers::iterator> timer;  // at which it wakes
};

class VirtualRuntime::Queue final : public WaitQueue {
 public:
  explicit Queue(VirtualRuntime* runtime) : runtime_(runtime) {}

  void Wait(Mutex* mutex) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->Unlock();
    Block(std::nullopt);
    mutex->Lock();
  }

  void WaitFor(Mutex* mutex, Duration at_most) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->Unlock();
    Block(at_most);
    mutex->Lock();
  }

  void WakeOne() override {
    MutexLock lock(&runtime_->mutex_);
    if (!waiting_.empty()) runtime_->MakeReady(waiting_.front());
  }

  void WakeAll() override {
    MutexLock lock(&runtime_->mutex_);
    while (!waiting_.empty()) runtime_->MakeReady(waiting_.front());
  }

 private:
  friend class VirtualRuntime;

  void Block(std::optional<Duration> at_most) {
    MutexLock lock(&runtime_->mutex_);
    runtime_->Block(this, at_most.has_value() ? std::optional(runtime_->now_ + *at_most) : std::nullopt);
  }

  VirtualRuntime* const runtime_;
  std::deque<Task*> waiting_;  // guarded by the runtime's mutex
};

VirtualRuntime::VirtualRuntime() {
  MutexLock lock(&mutex_);
  current_ = tasks_.emplace_back(std::make_unique<Task>()).get();
}

VirtualRuntime::~VirtualRuntime() {
  Settle();
  std::vector<std::unique_ptr<Task>> tasks;
  {
    MutexLock lock(&mutex_);
    tasks.swap(tasks_);
  }
  for (const std::unique_ptr<Task>& task : tasks) {
    if (task->thread.joinable()) task->thread.join();
  }
}

Duration VirtualRuntime::Elapsed() {
  MutexLock lock(&mutex_);
  return now_;
}

void VirtualRuntime::Sleep(Duration duration) {
  MutexLock lock(&mutex_);
  Block(nullptr, now_ + std::max(duration, Duration(0)));
}

void VirtualRuntime::Start(std::function<void()> body) {
  MutexLock lock(&mutex_);
  Task* const task = tasks_.emplace_back(std::make_unique<Task>()).get();
  ready_.push_back(task);
  task->thread = std::thread([this, task, run = std::move(body)] {
    {
      MutexLock in_turn(&mutex_);
      AwaitTurn(task);
    }
    run();
    MutexLock in_turn(&mutex_);
    PassOn();
  });
}

std::unique_ptr<WaitQueue> VirtualRuntime::NewWaitQueue() { return std::make_unique<Queue>(this); }

void VirtualRuntime::Settle() {
  MutexLock lock(&mutex_);
  while (!ready_.empty()) {
    Task* const self = current_;
    ready_.push_back(self);
    PassOn();
    AwaitTurn(self);
  }
}

void VirtualRuntime::Block(Queue* queue, std::optional<Duration> wake_at) {
  Task* const self = current_;
  self->queue = queue;
  if (queue != nullptr) queue->waiting_.push_back(self);
  if (wake_at.has_value()) self->timer = timers_.emplace(std::pair(*wake_at, next_timer_++), self).first;
  PassOn();
  AwaitTurn(self);
}

void VirtualRuntime::PassOn() {
  if (ready_.empty()) {
    if (timers_.empty()) {
      std::fputs("every task waits for another one: the script can't go on\n", stderr);
      std::abort();
    }
    now_ = std::max(now_, timers_.begin()->first.first);
    MakeReady(timers_.begin()->second);
  }
  current_ = ready_.front();
  ready_.pop_front();
  current_->turn.NotifyOne();
}

void VirtualRuntime::AwaitTurn(Task* task) {
  while (current_ != task) task->turn.Wait(&mutex_);
}

void VirtualRuntime::MakeReady(Task* task) {
  if (task->timer.has_value()) timers_.erase(*task->timer);
  task->timer.reset();
  if (task->queue != nullptr) std::erase(task->queue->waiting_, task);
  task->queue = nullptr;
  ready_.push_back(task);
}

}  // namespace percolator
