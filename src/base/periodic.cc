// SPDX-License-Identifier: Apache-2.0

#include "src/base/periodic.h"

#include <algorithm>
#include <utility>

#include "src/base/retry.h"

namespace percolator {

Periodic::Periodic(Runtime* runtime, Duration period, std::function<void()> run)
    : runtime_(runtime), period_(std::min(period, kForever)), run_(std::move(run)), changed_(runtime->NewWaitQueue()) {
  runtime_->Start([this] { Loop(); });
}

Periodic::~Periodic() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_->WakeAll();
  while (!ended_) changed_->Wait(&mutex_);
}

void Periodic::Loop() {
  Duration next = runtime_->Elapsed() + period_;
  mutex_.Lock();
  while (!stopping_) {
    const Duration now = runtime_->Elapsed();
    if (now < next) {
      changed_->WaitFor(&mutex_, next - now);
      continue;
    }
    mutex_.Unlock();
    run_();
    next = runtime_->Elapsed() + period_;
    mutex_.Lock();
  }
  ended_ = true;
  changed_->WakeAll();
  mutex_.Unlock();
}

}  // namespace percolator
