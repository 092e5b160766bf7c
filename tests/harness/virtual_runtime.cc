// SPDX-License-Identifier: Apache-2.0

#include "tests/harness/virtual_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace percolator {
namespace {

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "VirtualRuntime: %s\n", why);
  std::abort();
}

}  // namespace

struct VirtualRuntime::Task {
  std::thread thread;  // unset for the thread that made the runtime
  std::thread::id id;
  CondVar turn;
  Queue* queue = nullptr;                 // the queue in which it waits
  std::optional<Timers::iterator> timer;  // the timer that wakes it
  bool ended = false;
};

class VirtualRuntime::Queue final : public WaitQueue {
 public:
  explicit Queue(VirtualRuntime* runtime) : runtime_(runtime) {}

  void Wait(Mutex* mutex) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->Unlock();  // no other task takes it before this one blocks
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

VirtualRuntime::VirtualRuntime(uint64_t seed) : random_(seed) {
  MutexLock lock(&mutex_);
  current_ = tasks_.emplace_back(std::make_unique<Task>()).get();
  current_->id = std::this_thread::get_id();
}

VirtualRuntime::~VirtualRuntime() {
  LetOthersRun();
  std::vector<std::unique_ptr<Task>> tasks;
  {
    MutexLock lock(&mutex_);
    for (const std::unique_ptr<Task>& task : tasks_) {
      if (task.get() != current_ && !task->ended) Fail("destroyed before a task has ended");
    }
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

int VirtualRuntime::sleeps() const {
  MutexLock lock(&mutex_);
  return sleeps_;
}

Duration VirtualRuntime::slept() const {
  MutexLock lock(&mutex_);
  return slept_;
}

void VirtualRuntime::Sleep(Duration duration) {
  MutexLock lock(&mutex_);
  ++sleeps_;
  slept_ += duration;
  Block(nullptr, now_ + std::max(duration, Duration(0)));
}

// Marsaglia's xorshift: 0 stays 0.
uint64_t VirtualRuntime::Random() {
  MutexLock lock(&mutex_);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void VirtualRuntime::Start(std::function<void()> body) {
  MutexLock lock(&mutex_);
  Task* const task = tasks_.emplace_back(std::make_unique<Task>()).get();
  ready_.push_back(task);
  task->thread = std::thread([this, task, run = std::move(body)] { Run(task, run); });
}

void VirtualRuntime::Run(Task* task, const std::function<void()>& body) {
  {
    MutexLock lock(&mutex_);
    task->id = std::this_thread::get_id();
    AwaitTurn(task);
  }
  body();
  MutexLock lock(&mutex_);
  task->ended = true;
  PassOn();
}

std::unique_ptr<WaitQueue> VirtualRuntime::NewWaitQueue() { return std::make_unique<Queue>(this); }

void VirtualRuntime::LetOthersRun() {
  MutexLock lock(&mutex_);
  CheckTurn();
  Task* const self = current_;
  while (!ready_.empty()) {
    ready_.push_back(self);  // the tasks ahead may wake others, hence the loop
    PassOn();
    AwaitTurn(self);
  }
}

void VirtualRuntime::CheckTurn() const {
  if (current_->id != std::this_thread::get_id()) Fail("used by a thread that does not have the turn");
}

void VirtualRuntime::Block(Queue* queue, std::optional<Duration> wake_at) {
  CheckTurn();
  Task* const self = current_;
  self->queue = queue;
  if (queue != nullptr) queue->waiting_.push_back(self);
  if (wake_at.has_value()) self->timer = timers_.emplace(std::pair(*wake_at, next_timer_++), self).first;
  PassOn();
  AwaitTurn(self);
}

void VirtualRuntime::PassOn() {
  if (ready_.empty()) {
    if (timers_.empty()) Fail("stuck: every task waits for another one");
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
