// SPDX-License-Identifier: Apache-2.0

// What the steps of the protocol work with. One per cluster; all parts are thread-safe.

#ifndef PERCOLATOR_TXN_ENVIRONMENT_H_
#define PERCOLATOR_TXN_ENVIRONMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "src/base/retry.h"
#include "src/txn/observed.h"
#include "src/txn/verdict.h"

namespace percolator {

// Counts for ClusterMetrics.
struct Counters {
  std::atomic<uint64_t> commits{0};
  std::atomic<uint64_t> conflicts{0};
  std::atomic<uint64_t> unknown_outcomes{0};
  std::atomic<uint64_t> store_reads{0};
  std::atomic<uint64_t> cells_prefetched{0};
  std::atomic<uint64_t> prefetched_cells_used{0};
  std::atomic<uint64_t> foreign_locks_found{0};
  std::atomic<uint64_t> rolled_forward{0};
  std::atomic<uint64_t> rolled_back{0};
  std::atomic<uint64_t> versions_collected{0};

  static void Add(std::atomic<uint64_t>* counter, uint64_t n = 1) {
    if (n != 0) counter->fetch_add(n, std::memory_order_relaxed);
  }
};

struct Environment {
  // Null once the cluster is closed.
  std::shared_ptr<Store> store;
  std::shared_ptr<Oracle> oracle;
  std::shared_ptr<Coordinator> coordinator;
  Runtime* runtime = nullptr;
  SessionId session = 0;
  ClusterOptions options;
  ObservedColumns observed;
  VerdictCache verdicts;
  Counters counters;
  // Commits that make marks: the number that have begun, and the number of these that have ended.
  std::atomic<uint64_t> marks_begun{0};
  std::atomic<uint64_t> marks_ended{0};
};

// Draws a fresh timestamp. If the first attempt fails, retries until `make_deadline()`; it does not read the clock
// before.
template <typename MakeDeadline>
absl::StatusOr<Timestamp> DrawTimestamp(Environment& env, const MakeDeadline& make_deadline) {
  absl::StatusOr<Timestamp> ts = env.oracle->GetTimestamp();
  if (ts.ok()) return ts;
  return RetryAfter(std::move(ts), make_deadline(), [&env] { return env.oracle->GetTimestamp(); });
}

// The same, until the call timeout.
inline absl::StatusOr<Timestamp> DrawForCall(Environment& env) {
  return DrawTimestamp(env, [&env] { return Deadline(env.runtime, env.options.call_timeout); });
}

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ENVIRONMENT_H_
