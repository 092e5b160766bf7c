// SPDX-License-Identifier: Apache-2.0

#include "src/store/batching_store.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <utility>

#include "percolator/spi/mutex.h"
#include "src/base/check.h"

namespace percolator {
namespace {

size_t SizeOf(const RowRead& read) {
  size_t bytes = read.table.size() + read.row.size();
  for (const Selector& selector : read.selectors) bytes += selector.column.has_value() ? selector.column->size() : 0;
  return bytes;
}

size_t SizeOf(const RowMutation& mutation) {
  size_t bytes = mutation.table.size() + mutation.row.size();
  for (const CellRange& cell : mutation.condition.cells) bytes += cell.column.size();
  for (const Mutation& m : mutation.mutations) bytes += m.column.size() + m.value.size();
  return bytes;
}

template <typename Entry>
size_t SizeOf(const std::vector<Entry>& entries) {
  size_t bytes = 0;
  for (const Entry& entry : entries) bytes += SizeOf(entry);
  return bytes;
}

}  // namespace

// Invariant: a batch gathers without permission to be sent only while the maximum number of requests is in flight. So
// when no batch is waiting for a permission that is returned, the next call may send.
template <typename Entry, typename Answer>
class BatchingStore::Lane {
 public:
  using Entries = std::vector<Entry>;
  using Answers = absl::StatusOr<std::vector<Answer>>;
  // Sends one request. Returns an answer for each entry, or an error for all.
  using Request = std::function<Answers(const Entries& entries)>;

  Lane(Request request, Runtime* runtime, const BatchingStoreOptions& options)
      : request_(std::move(request)), runtime_(runtime), options_(options) {}

  // Gets the entries answered, together with those of calls that gather in the same batch. Sets `shared`, unless it is
  // null, to whether there were any.
  Answers Do(const Entries& entries, bool* shared = nullptr) {
    Call call{&entries, absl::UnknownError("not answered yet")};
    const size_t bytes = SizeOf(entries);
    MutexLock lock(&mutex_);
    const std::shared_ptr<Batch> batch = Join(&call, bytes);
    while (batch->state != State::kDone) {
      if (batch->state == State::kMaySend) {
        Send(batch.get());
      } else {
        batch->changed->Wait(&mutex_);
      }
    }
    if (shared != nullptr) *shared = batch->calls.size() > 1;
    return std::move(call.answers);
  }

 private:
  // A waiting call, on its caller's stack. No other thread touches it once its batch is done.
  struct Call {
    const Entries* entries;
    Answers answers;
  };

  // The lane's mutex guards the fields, except the answers in the calls, which belong to the sender while it sends.
  struct Batch {
    explicit Batch(Runtime* runtime) : changed(runtime->NewWaitQueue()) {}

    enum class State : uint8_t {
      kGathering,  // takes calls
      kMaySend,    // takes calls, until the first of its callers to notice sends it
      kSent,
      kDone,
    };
    State state = State::kGathering;
    std::vector<Call*> calls;
    size_t entries = 0;
    size_t bytes = 0;
    std::unique_ptr<WaitQueue> changed;  // signals a change of the state
  };
  using State = typename Batch::State;

  std::shared_ptr<Batch> Join(Call* call, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (waiting_.empty() || !Fits(*call, bytes, *waiting_.back())) {
      waiting_.push_back(std::make_shared<Batch>(runtime_));
      if (in_flight_ < options_.in_flight) {
        ++in_flight_;
        waiting_.back()->state = State::kMaySend;
      }
    }
    std::shared_ptr<Batch> batch = waiting_.back();
    batch->calls.push_back(call);
    batch->entries += call->entries->size();
    batch->bytes += bytes;
    return batch;
  }

  bool Fits(const Call& call, size_t bytes, const Batch& batch) const {
    return batch.entries + call.entries->size() <= options_.entries && batch.bytes + bytes <= options_.bytes;
  }

  void Send(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    batch->state = State::kSent;
    std::erase_if(waiting_, [batch](const std::shared_ptr<Batch>& other) { return other.get() == batch; });
    mutex_.Unlock();
    Exchange(batch->calls);
    mutex_.Lock();
    batch->state = State::kDone;
    HandOn();
    batch->changed->WakeAll();
  }

  // Called when a request has been answered: lets the oldest waiting batch take its place.
  void HandOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const std::shared_ptr<Batch>& batch : waiting_) {
      if (batch->state != State::kGathering) continue;
      batch->state = State::kMaySend;
      batch->changed->WakeOne();
      return;
    }
    --in_flight_;
  }

  // Makes the request of a batch, and gives each call its part of the answer.
  void Exchange(const std::vector<Call*>& calls) {
    if (calls.size() == 1) {
      calls[0]->answers = request_(*calls[0]->entries);
      return;
    }
    Entries entries;
    for (const Call* call : calls) entries.insert(entries.end(), call->entries->begin(), call->entries->end());
    Answers answers = request_(entries);
    size_t next = 0;
    for (Call* call : calls) {
      if (!answers.ok()) {
        call->answers = answers.status();
        continue;
      }
      const auto first = answers->begin() + next;
      next += call->entries->size();
      call->answers.emplace(std::make_move_iterator(first), std::make_move_iterator(answers->begin() + next));
    }
  }

  const Request request_;
  Runtime* const runtime_;
  const BatchingStoreOptions options_;

  Mutex mutex_;
  // Requests in flight, or allowed to be sent.
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  // Batches not yet sent, in the order of their first calls. New calls join only the last.
  std::deque<std::shared_ptr<Batch>> waiting_ ABSL_GUARDED_BY(mutex_);
};

BatchingStore::BatchingStore(std::shared_ptr<Store> store, Runtime* runtime, const BatchingStoreOptions& options)
    : ForwardingStore(std::move(store)),
      reads_(std::make_unique<Lane<RowRead, Row>>([this](const auto& reads) { return ForwardingStore::Read(reads); },
                                                  runtime, options)),
      mutations_(std::make_unique<Lane<RowMutation, absl::StatusOr<MutateResult>>>(
          [this](const auto& mutations) { return ForwardingStore::Mutate(mutations); }, runtime, options)),
      drawing_(std::make_unique<Lane<RowMutation, DrawnResult>>(
          [this](const auto& mutations) { return ForwardingStore::MutateThenDraw(mutations); }, runtime, options)) {
  PERCOLATOR_DCHECK(options.in_flight >= 1);
}

BatchingStore::~BatchingStore() = default;

absl::StatusOr<std::vector<Row>> BatchingStore::Read(const std::vector<RowRead>& reads) {
  bool shared = false;
  absl::StatusOr<std::vector<Row>> rows = reads_->Do(reads, &shared);
  if (rows.ok() || !shared) return rows;
  return ForwardingStore::Read(reads);  // the error may belong to another call
}

std::vector<absl::StatusOr<MutateResult>> BatchingStore::Mutate(const std::vector<RowMutation>& mutations) {
  return *mutations_->Do(mutations);  // errors belong to single entries, never to the request
}

std::vector<DrawnResult> BatchingStore::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  return *drawing_->Do(mutations);
}

}  // namespace percolator
