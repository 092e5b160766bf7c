// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace webindex {

struct Interrupt::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool requested = false;  // protected by mutex
};

namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::Interrupt() : state_(std::make_shared<State>()) {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by all threads, so that only one gets them
  std::thread([state = state_, signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    {
      const std::scoped_lock lock(state->mutex);
      state->requested = true;
    }
    state->changed.notify_all();
    sigwait(&signals, &signal);
    _exit(128 + signal);
  }).detach();
}

bool Interrupt::requested() { return WaitFor(std::chrono::milliseconds(0)); }

bool Interrupt::WaitFor(std::chrono::milliseconds time) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, time, [this] { return state_->requested; });
}

void Interrupt::Wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->requested; });
}

}  // namespace webindex
