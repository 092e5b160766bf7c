// SPDX-License-Identifier: Apache-2.0

// OwnObserver: an observer that this worker runs, its lane, and its counts.
//
// Not thread-safe: the mutex of dispatch guards it, unless stated otherwise.

#ifndef PERCOLATOR_OBSERVE_OWN_OBSERVER_H_
#define PERCOLATOR_OBSERVE_OWN_OBSERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "percolator/observer.h"
#include "src/observe/histogram.h"
#include "src/observe/lane.h"
#include "src/observe/run.h"

namespace percolator {

class OwnObserver {
 public:
  OwnObserver(ObserverSpec spec, int max_running, size_t max_pending);
  OwnObserver(const OwnObserver&) = delete;
  OwnObserver& operator=(const OwnObserver&) = delete;

  // Thread-safe.
  const ObserverSpec& spec() const { return spec_; }
  // The function of the observer; it counts its calls. Thread-safe.
  const ObserverFunction& run() const { return counted_run_; }
  Lane& lane() { return lane_; }

  void Count(const RunOutcome& outcome);
  void CountQuarantined() { ++quarantined_; }
  // `oldest` is the age of its oldest pending job.
  ObserverMetrics Metrics(Duration oldest) const;
  // The observed columns (table and column) that its runs were seen to change.
  const std::set<std::pair<std::string, std::string>>& triggered() const { return triggered_; }

 private:
  const ObserverSpec spec_;
  ObserverFunction counted_run_;
  Lane lane_;
  std::atomic<int64_t> runs_{0};
  int64_t commits_ = 0;
  int64_t conflicts_ = 0;
  int64_t failures_ = 0;
  int64_t transient_errors_ = 0;
  int64_t cycles_ = 0;
  int64_t quarantined_ = 0;
  Histogram latency_;
  std::set<std::pair<std::string, std::string>> triggered_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_OWN_OBSERVER_H_
