#include "tests/txn/baton_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace percolator {

// Who waits in a queue is kept in the order in which they came; waking makes them ready, and so does their time.
class BatonRuntime::Queue final : public WaitQueue {
 public:
  explicit Queue(BatonRuntime* runtime) : runtime_(runtime) {}

  void Wait(Mutex* mutex) override { WaitUntil(mutex, std::nullopt); }
  void WaitFor(Mutex* mutex, Duration at_most) override { WaitUntil(mutex, at_most); }

  void WakeOne() override {
    MutexLock lock(&runtime_->mutex_);
    if (waiting_.empty()) return;
    runtime_->MakeReady(waiting_.front());
    waiting_.pop_front();
  }

  void WakeAll() override {
    MutexLock lock(&runtime_->mutex_);
    for (Task* task : waiting_) runtime_->MakeReady(task);
    waiting_.clear();
  }

 private:
  // Between the two mutexes nobody comes in: the baton is still ours.
  void WaitUntil(Mutex* mutex, std::optional<Duration> at_most) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex->Unlock();
    {
      MutexLock lock(&runtime_->mutex_);
      Task* const task = runtime_->Current();
      waiting_.push_back(task);
      if (at_most.has_value()) {
        task->waits_for_time = true;
        task->wake_at = runtime_->now_ + *at_most;
      }
      runtime_->Park(task);
      std::erase(waiting_, task);  // if it was time that woke it
    }
    mutex->Lock();
  }

  BatonRuntime* const runtime_;
  std::deque<Task*> waiting_;  // guarded by runtime_->mutex_
};

BatonRuntime::BatonRuntime() {
  MutexLock lock(&mutex_);
  holder_ = &tasks_.emplace_back();
  by_thread_[std::this_thread::get_id()] = holder_;
}

BatonRuntime::~BatonRuntime() {
  LetOthersRun();
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    for (Task& task : tasks_) {
      if (&task == holder_) continue;
      if (!task.ended) {
        std::fprintf(stderr, "BatonRuntime: a task has not ended\n");
        std::abort();
      }
      threads.push_back(std::move(task.thread));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

Duration BatonRuntime::Elapsed() {
  MutexLock lock(&mutex_);
  return now_;
}

int BatonRuntime::sleeps() const {
  MutexLock lock(&mutex_);
  return sleeps_;
}

Duration BatonRuntime::slept() const {
  MutexLock lock(&mutex_);
  return slept_;
}

void BatonRuntime::Sleep(Duration duration) {
  MutexLock lock(&mutex_);
  Task* const task = Current();
  task->waits_for_time = true;
  task->wake_at = now_ + duration;
  ++sleeps_;
  slept_ += duration;
  Park(task);
}

// A sequence of Marsaglia's: always the same.
uint64_t BatonRuntime::Random() {
  MutexLock lock(&mutex_);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void BatonRuntime::Start(std::function<void()> run) {
  MutexLock lock(&mutex_);
  Task* const task = &tasks_.emplace_back();
  MakeReady(task);
  task->thread = std::thread([this, task, run = std::move(run)] { Run(task, run); });
}

void BatonRuntime::Run(Task* task, const std::function<void()>& run) {
  {
    MutexLock lock(&mutex_);
    by_thread_[std::this_thread::get_id()] = task;
    while (holder_ != task) task->given.Wait(&mutex_);
  }
  run();
  MutexLock lock(&mutex_);
  task->ended = true;
  by_thread_.erase(std::this_thread::get_id());
  GiveToNext();
}

std::unique_ptr<WaitQueue> BatonRuntime::NewWaitQueue() { return std::make_unique<Queue>(this); }

void BatonRuntime::LetOthersRun() {
  MutexLock lock(&mutex_);
  Task* const task = Current();
  while (!ready_.empty()) {
    MakeReady(task);  // behind all that are ready now; what they wake comes behind us, so look again
    Park(task);
  }
}

BatonRuntime::Task* BatonRuntime::Current() {
  const auto it = by_thread_.find(std::this_thread::get_id());
  if (it == by_thread_.end() || it->second != holder_) {
    std::fprintf(stderr, "BatonRuntime: used by a thread that has not the baton\n");
    std::abort();
  }
  return holder_;
}

void BatonRuntime::MakeReady(Task* task) {
  task->waits_for_time = false;
  ready_.push_back(task);
}

void BatonRuntime::Park(Task* task) {
  GiveToNext();
  while (holder_ != task) task->given.Wait(&mutex_);
}

void BatonRuntime::GiveToNext() {
  if (ready_.empty()) {
    Task* first = nullptr;
    for (Task& task : tasks_) {
      if (task.waits_for_time && (first == nullptr || task.wake_at < first->wake_at)) first = &task;
    }
    if (first == nullptr) {
      std::fprintf(stderr, "BatonRuntime: stuck, everybody waits for somebody\n");
      std::abort();
    }
    now_ = std::max(now_, first->wake_at);
    MakeReady(first);
  }
  holder_ = ready_.front();
  ready_.pop_front();
  holder_->given.NotifyAll();
}

}  // namespace percolator
