#include "src/oracle/batching_oracle.h"

#include <utility>

#include "src/base/mutant.h"
#include "src/base/strings.h"

namespace percolator {

// All fields are guarded by the oracle's mutex.
struct BatchingOracle::Batch {
  explicit Batch(Runtime* runtime) : changed(runtime->NewWaitQueue()) {}

  uint32_t count = 0;  // timestamps asked for
  bool done = false;
  absl::StatusOr<Timestamp> first = absl::UnknownError("not answered yet");
  std::unique_ptr<WaitQueue> changed;  // it is done, or can be sent
};

BatchingOracle::BatchingOracle(Oracle* oracle, Runtime* runtime)
    : oracle_(oracle), runtime_(runtime), waiting_(std::make_shared<Batch>(runtime)) {}

absl::StatusOr<Timestamp> BatchingOracle::GetTimestamps(uint32_t count) {
  if (count == 0 || count > kMaxCount) {
    return absl::InvalidArgumentError(StrCat("asked for ", count, " timestamps; 1 to ", kMaxCount, " is possible"));
  }
  MutexLock lock(&mutex_);
  if (MutantOn(Mutant::kOraclePrefetches) && left_over_ >= count) {
    left_over_ -= count;
    return Timestamp(left_over_end_.value() - left_over_ - count);
  }
  // No place left in the one that waits: see it off first.
  while (waiting_->count > kMaxCount - count) SendOrWait(waiting_);
  const std::shared_ptr<Batch> batch = waiting_;
  const uint32_t offset = batch->count;
  batch->count += count;
  while (!batch->done) SendOrWait(batch);
  if (!batch->first.ok()) return batch->first.status();
  return Timestamp(batch->first->value() + offset);
}

// Whoever is woken must be ready to send, also one who only wants a place: nobody else may be awake to do it.
// NOLINTNEXTLINE(performance-unnecessary-value-param): a reference could be one to waiting_, which changes here.
void BatchingOracle::SendOrWait(std::shared_ptr<Batch> batch) {
  if (in_flight_) {
    batch->changed->Wait(&mutex_);
    return;
  }
  // Nothing is in flight, and the batch is not done: so it is the one that waits.
  waiting_ = std::make_shared<Batch>(runtime_);
  in_flight_ = true;
  const uint32_t more = MutantOn(Mutant::kOraclePrefetches) ? 4 : 0;
  mutex_.Unlock();
  absl::StatusOr<Timestamp> first = oracle_->GetTimestamps(batch->count + more);
  mutex_.Lock();
  if (MutantOn(Mutant::kOraclePrefetches) && first.ok()) {
    left_over_ = more;
    left_over_end_ = Timestamp(first->value() + batch->count + more);
  }
  in_flight_ = false;
  batch->first = std::move(first);
  batch->done = true;
  batch->changed->WakeAll();
  waiting_->changed->WakeOne();  // to send the next
}

}  // namespace percolator
