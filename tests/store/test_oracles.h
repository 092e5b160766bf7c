// Oracles for tests.

#ifndef PERCOLATOR_TESTS_STORE_TEST_ORACLES_H_
#define PERCOLATOR_TESTS_STORE_TEST_ORACLES_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"

namespace percolator {

// Hands out 1001, 1002, ...
class CountingOracle : public Oracle {
 public:
  explicit CountingOracle(uint64_t last = 1000) : last_(last) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override { return Timestamp(last_.fetch_add(count) + 1); }

  Timestamp last() const { return Timestamp(last_); }

 private:
  std::atomic<uint64_t> last_;
};

class FailingOracle : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t /*count*/) override {
    return absl::UnavailableError("no oracle answers");
  }
};

// Takes its time: draws a timestamp when asked, and hands it out when told.
class SlowOracle : public Oracle {
 public:
  explicit SlowOracle(Oracle* oracle) : oracle_(oracle) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    absl::StatusOr<Timestamp> drawn = oracle_->GetTimestamps(count);
    MutexLock lock(&mutex_);
    asked_ = true;
    changed_.NotifyAll();
    while (!answers_) changed_.Wait(&mutex_);
    return drawn;
  }

  // Waits until somebody has asked.
  void WaitUntilAsked() {
    MutexLock lock(&mutex_);
    while (!asked_) changed_.Wait(&mutex_);
  }
  // Answers everybody, also those who ask later.
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

#endif  // PERCOLATOR_TESTS_STORE_TEST_ORACLES_H_
