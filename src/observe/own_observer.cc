// SPDX-License-Identifier: Apache-2.0

#include "src/observe/own_observer.h"

#include <vector>

namespace percolator {

OwnObserver::OwnObserver(ObserverSpec spec, int max_running, size_t max_pending)
    : spec_(std::move(spec)), lane_(max_running, max_pending) {
  counted_run_ = [this](ReadWrite& t, const Notification& notification) {
    runs_.fetch_add(1, std::memory_order_relaxed);
    return spec_.run(t, notification);
  };
}

void OwnObserver::Count(const RunOutcome& outcome) {
  switch (outcome.kind) {
    case RunOutcome::Kind::kCommitted:
      ++commits_;
      triggered_.insert(outcome.triggered.begin(), outcome.triggered.end());
      if (outcome.change_ts != Timestamp() && outcome.commit_ts > outcome.change_ts) {
        latency_.Record(Duration(outcome.commit_ts.value() - outcome.change_ts.value()));
      }
      break;
    case RunOutcome::Kind::kConflict:
      ++conflicts_;
      break;
    case RunOutcome::Kind::kFailed:
      ++failures_;
      break;
    case RunOutcome::Kind::kCycle:
      ++cycles_;
      break;
    case RunOutcome::Kind::kTrouble:
      ++transient_errors_;
      break;
    case RunOutcome::Kind::kNoMark:
    case RunOutcome::Kind::kClean:
    case RunOutcome::Kind::kDirty:
      break;
  }
}

ObserverMetrics OwnObserver::Metrics(Duration oldest) const {
  const std::vector<Histogram::Bucket> latency = latency_.Buckets();
  ObserverMetrics metrics{.name = spec_.name,
                          .runs = runs_.load(std::memory_order_relaxed),
                          .commits = commits_,
                          .conflicts = conflicts_,
                          .failures = failures_,
                          .transient_errors = transient_errors_,
                          .cycles = cycles_,
                          .quarantined = quarantined_,
                          .pending = static_cast<int64_t>(lane_.pending()),
                          .oldest = oldest,
                          .latency_p50 = Histogram::Percentile(latency, 0.5),
                          .latency_p99 = Histogram::Percentile(latency, 0.99),
                          .latency = {}};
  for (const Histogram::Bucket& bucket : latency) metrics.latency.push_back({bucket.up_to, bucket.count});
  return metrics;
}

}  // namespace percolator
