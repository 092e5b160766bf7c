// SPDX-License-Identifier: Apache-2.0

#include "src/base/fork.h"

#include <pthread.h>

#include <utility>
#include <vector>

#include "percolator/spi/mutex.h"

namespace percolator {

std::atomic<uint64_t> ForkWatch::forks_{0};

ForkWatch::ForkWatch() : made_(0) {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  made_ = forks_.load(std::memory_order_relaxed);
}

void KeepUntilExit(std::shared_ptr<void> object) {
  static auto* const mutex = new Mutex();
  static auto* const kept = new std::vector<std::shared_ptr<void>>();
  MutexLock lock(mutex);
  kept->push_back(std::move(object));
}

}  // namespace percolator
