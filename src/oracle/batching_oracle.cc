// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/batching_oracle.h"

#include <utility>

#include "src/base/strings.h"

namespace percolator {

struct BatchingOracle::Batch {
  explicit Batch(Runtime* runtime) : may_be_sent(runtime->NewEvent()), done(runtime->NewEvent()) {}

  uint32_t count = 0;  // Requested timestamps. Guarded by the oracle's mutex until the batch is sent, then constant.
  const std::unique_ptr<Event> may_be_sent;
  // Written by the sender before `done`, and read by all callers after it.
  absl::StatusOr<Timestamp> first = absl::UnknownError("not answered yet");
  const std::unique_ptr<Event> done;
};

BatchingOracle::BatchingOracle(Oracle* oracle, Runtime* runtime)
    : oracle_(oracle), runtime_(runtime), waiting_(std::make_shared<Batch>(runtime)) {}

absl::StatusOr<Timestamp> BatchingOracle::GetTimestamps(uint32_t count) {
  if (count == 0 || count > kMaxCount) {
    return absl::InvalidArgumentError(StrCat("cannot issue ", count, " timestamps: a request is for 1 to ", kMaxCount));
  }
  const Place place = Join(count);
  if (place.offset > 0) {
    place.batch->done->Wait();
  } else {
    if (!place.may_send_now) {
      place.batch->may_be_sent->Wait();
      // Lets the callers that were answered just now join this batch: they are likely to ask again.
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
        // If no request was in flight, the batch was empty and this caller is its first.
        return {std::move(batch), offset, !std::exchange(in_flight_, true)};
      }
    }
    batch->done->Wait();  // the batch is full: joins the next one
  }
}

void BatchingOracle::Send(const std::shared_ptr<Batch>& batch) {
  {
    MutexLock lock(&mutex_);
    waiting_ = std::make_shared<Batch>(runtime_);  // O5: no caller joins after this
  }
  batch->first = oracle_->GetTimestamps(batch->count);
  std::shared_ptr<Batch> next;
  {
    MutexLock lock(&mutex_);
    if (waiting_->count > 0) next = waiting_;
    in_flight_ = next != nullptr;
  }
  // In this order, so that the callers just answered can join the next batch.
  batch->done->Set();
  if (next != nullptr) next->may_be_sent->Set();
}

}  // namespace percolator
