// SPDX-License-Identifier: Apache-2.0

// Shares one request to an oracle among any number of threads, as in the paper.
//
// At most one request is in flight. Callers that arrive in the meantime form a batch. After the answer, the first of them
// sends one request for the whole batch. Under load, batches grow.
//
// Waking the callers of a batch takes no lock: each continues as soon as the answer is there.
//
// SIZE  A batch asks for at most kMaxShared timestamps, the limit of a server (docs/serving.md). A caller that wants more
//       sends its own request.
// O5  A timestamp comes from a request that was sent after its caller asked: a batch admits no callers once it is sent, and
//     no timestamp is kept for later. Otherwise a caller could get a timestamp smaller than one it has already seen.

#ifndef PERCOLATOR_ORACLE_BATCHING_ORACLE_H_
#define PERCOLATOR_ORACLE_BATCHING_ORACLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class BatchingOracle : public Oracle {
 public:
  static constexpr uint32_t kMaxShared = 16'384;

  // REQUIRES: both outlive this object.
  explicit BatchingOracle(Oracle* oracle, Runtime* runtime = Runtime::Real());

  // If a request fails, all callers that share it get its error. Thread-safe.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

 private:
  struct Batch;
  // A place in a batch.
  struct Place {
    std::shared_ptr<Batch> batch;
    uint32_t offset;    // Zero for the first caller, which sends the batch.
    bool may_send_now;  // The batch need not wait.
  };

  // Reserves `count` timestamps in the waiting batch.
  Place Join(uint32_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the batch and publishes its answer. REQUIRES: the caller is the first of the batch, and no request is in flight.
  void Send(const std::shared_ptr<Batch>& batch) ABSL_LOCKS_EXCLUDED(mutex_);

  Oracle* const oracle_;
  Runtime* const runtime_;

  Mutex mutex_;
  // A request is in flight, or its sender has been chosen.
  bool in_flight_ ABSL_GUARDED_BY(mutex_) = false;
  // The batch that admits callers.
  std::shared_ptr<Batch> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_BATCHING_ORACLE_H_
