// Lets any number of threads share one request to an oracle: the paper's way to make a distant oracle cheap.
//
// At most one request is in flight. Those who ask meanwhile wait together, and when it is answered the first of them sends
// the next request, for all. The busier it is, the more share.
//
// What it costs then is to wake the others, and no lock is taken for that: each goes on as soon as the answer is there.
//
// SIZE  A request is for at most kMaxShared timestamps, which a server answers (docs/serving.md); one caller that wants more
//       goes alone.
// O5  A timestamp comes from a request that was sent after its caller asked: a batch takes no more callers once it is
//     sent, and nothing is kept for later. Else a caller could get a timestamp smaller than one it has already seen.

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

  // Both must outlive this.
  explicit BatchingOracle(Oracle* oracle, Runtime* runtime = Runtime::Real());

  // An error of a request is an error for all who share it.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

 private:
  struct Batch;
  // A place in a batch.
  struct Place {
    std::shared_ptr<Batch> batch;
    uint32_t offset;    // zero: this caller is the first, who sends
    bool may_send_now;  // to send it at once
  };

  // Finds a place in the batch that waits, for so many.
  Place Join(uint32_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // For the first of a batch that has leave: gets it answered.
  void Send(const std::shared_ptr<Batch>& batch) ABSL_LOCKS_EXCLUDED(mutex_);

  Oracle* const oracle_;
  Runtime* const runtime_;

  Mutex mutex_;
  // Or somebody has leave to send one.
  bool in_flight_ ABSL_GUARDED_BY(mutex_) = false;
  // The one that may be joined.
  std::shared_ptr<Batch> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_BATCHING_ORACLE_H_
