#include "src/oracle/batching_oracle.h"

#include <utility>

#include "src/base/strings.h"

namespace percolator {

struct BatchingOracle::Batch {
  explicit Batch(Runtime* runtime) : may_be_sent(runtime->NewEvent()), done(runtime->NewEvent()) {}

  uint32_t count = 0;  // timestamps asked for; guarded by the oracle's mutex until it is sent, then it does not change
  const std::unique_ptr<Event> may_be_sent;
  // Before `done` the sender's, then everybody's to read.
  absl::StatusOr<Timestamp> first = absl::UnknownError("not answered yet");
  const std::unique_ptr<Event> done;
};

BatchingOracle::BatchingOracle(Oracle* oracle, Runtime* runtime)
    : oracle_(oracle), runtime_(runtime), waiting_(std::make_shared<Batch>(runtime)) {}

absl::StatusOr<Timestamp> BatchingOracle::GetTimestamps(uint32_t count) {
  if (count == 0 || count > kMaxCount) {
    return absl::InvalidArgumentError(StrCat("asked for ", count, " timestamps; 1 to ", kMaxCount, " is possible"));
  }
  const Place place = Join(count);
  if (place.offset > 0) {
    place.batch->done->Wait();
  } else {
    if (!place.may_send_now) {
      place.batch->may_be_sent->Wait();
      // Those who were answered just now were woken too, and are likely to ask again: they come along.
      runtime_->Yield();
    }
    Send(place.batch);
  }
  const absl::StatusOr<Timestamp>& first = place.batch->first;
  if (!first.ok()) return first.status();
  return Timestamp(first->value() + place.offset);
}

BatchingOracle::Place BatchingOracle::Join(uint32_t count) {
  for (;;) {
    std::shared_ptr<Batch> batch;
    {
      MutexLock lock(&mutex_);
      batch = waiting_;
      if (batch->count == 0 || batch->count + count <= kMaxShared) {
        const uint32_t offset = batch->count;
        batch->count += count;
        // With nothing in flight it was empty.
        return {std::move(batch), offset, !std::exchange(in_flight_, true)};
      }
    }
    batch->done->Wait();  // no place left: there is one in the next
  }
}

void BatchingOracle::Send(const std::shared_ptr<Batch>& batch) {
  {
    MutexLock lock(&mutex_);
    waiting_ = std::make_shared<Batch>(runtime_);  // O5: nobody joins any more
  }
  batch->first = oracle_->GetTimestamps(batch->count);
  std::shared_ptr<Batch> next;
  {
    MutexLock lock(&mutex_);
    if (waiting_->count > 0) next = waiting_;
    in_flight_ = next != nullptr;
  }
  // In this order: those who are woken first ask again first.
  batch->done->Set();
  if (next != nullptr) next->may_be_sent->Set();
}

}  // namespace percolator
