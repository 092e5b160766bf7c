// SPDX-License-Identifier: Apache-2.0

// TestOracle: an oracle that counts, and that a test controls. HeldOracle: an oracle whose answers a test releases.

#ifndef PERCOLATOR_TESTS_HARNESS_TEST_ORACLE_H_
#define PERCOLATOR_TESTS_HARNESS_TEST_ORACLE_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class TestOracle final : public Oracle {
 public:
  // Hands out `next` and the numbers after it. With a runtime, no timestamp is less than the microseconds that have passed on
  // it, as with a real oracle.
  explicit TestOracle(uint64_t next = 1, Runtime* runtime = nullptr) : runtime_(runtime), next_(next) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    MutexLock lock(&mutex_);
    if (!error_.ok()) return error_;
    if (failures_left_ > 0) {
      --failures_left_;
      return absl::UnavailableError("the oracle does not answer");
    }
    if (runtime_ != nullptr) next_ = std::max(next_, static_cast<uint64_t>(runtime_->Elapsed().count()));
    const Timestamp first(next_);
    next_ += count;
    return first;
  }

  // Makes this the next timestamp, even if it was handed out before.
  void SetNext(uint64_t ts) {
    MutexLock lock(&mutex_);
    next_ = ts;
  }
  // Skips this many timestamps, as if as many microseconds had passed for the oracle alone.
  void Advance(uint64_t micros) {
    MutexLock lock(&mutex_);
    next_ += micros;
  }
  Timestamp next() const {
    MutexLock lock(&mutex_);
    return Timestamp(next_);
  }
  // The newest timestamp that was handed out.
  Timestamp last() const { return Timestamp(next().value() - 1); }
  // Every call gets this answer from now on. OK: the oracle works again.
  void AnswerWith(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }
  // The next calls fail with Unavailable.
  void FailNext(int calls) {
    MutexLock lock(&mutex_);
    failures_left_ = calls;
  }
  int failures_left() const {
    MutexLock lock(&mutex_);
    return failures_left_;
  }

 private:
  Runtime* const runtime_;
  mutable Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  int failures_left_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Draws a timestamp when asked, and holds the answer until Answer is called.
class HeldOracle : public Oracle {
 public:
  explicit HeldOracle(Oracle* oracle) : oracle_(oracle) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    absl::StatusOr<Timestamp> drawn = oracle_->GetTimestamps(count);
    MutexLock lock(&mutex_);
    asked_ = true;
    changed_.NotifyAll();
    while (!answers_) changed_.Wait(&mutex_);
    return drawn;
  }

  // Waits until a caller has asked.
  void WaitUntilAsked() {
    MutexLock lock(&mutex_);
    while (!asked_) changed_.Wait(&mutex_);
  }
  // Answers all callers, present and future.
  void Answer() {
    MutexLock lock(&mutex_);
    answers_ = true;
    changed_.NotifyAll();
  }

 private:
  Oracle* const oracle_;
  Mutex mutex_;
  CondVar changed_;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool answers_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_TEST_ORACLE_H_
