// SPDX-License-Identifier: Apache-2.0

// Periodic: runs a function in regular intervals.

#ifndef PERCOLATOR_BASE_PERIODIC_H_
#define PERCOLATOR_BASE_PERIODIC_H_

#include <functional>
#include <memory>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/types.h"

namespace percolator {

// Runs a function in its own task, `period` after its start and after the end of each run.
class Periodic {
 public:
  Periodic(Runtime* runtime, Duration period, std::function<void()> run);
  // Waits for a run in progress to finish.
  ~Periodic();

 private:
  void Loop();

  Runtime* const runtime_;
  const Duration period_;
  const std::function<void()> run_;
  const std::unique_ptr<WaitQueue> changed_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_PERIODIC_H_
