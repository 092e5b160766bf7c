// SPDX-License-Identifier: Apache-2.0

// gRPC calls whose work is done by an Executor.

#ifndef PERCOLATOR_SERVER_CALLS_H_
#define PERCOLATOR_SERVER_CALLS_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "src/server/executor.h"
#include "src/server/requests.h"
#include "src/server/unsent.h"
#include "src/wire/status.h"

namespace percolator {

// Answers a unary call at once, with the status and the response that gRPC holds.
inline grpc::ServerUnaryReactor* AnswerUnary(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

// A unary call that holds the memory of its request and its answer. Deletes itself.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(grpc::CallbackServerContext* context, Executor* executor)
      : context_(context),
        request_(executor->requests()->TakeOf(context->c_call())),
        answer_(executor->unsent(), context) {}

  // Finishes the call: with the answer if the status is OK and the client reads its answers, otherwise with an error. `work` is
  // the processor time spent on it.
  void Answer(const absl::Status& status, const google::protobuf::Message& response, Duration work) {
    if (!status.ok()) return FinishAfter(RefuseAfter(status, work), this);
    // The answer exists twice: as a message, and in gRPC's buffers.
    Finish(ToGrpc(answer_.TryAdd(2 * response.ByteSizeLong())));
  }

  bool cancelled() const { return context_->IsCancelled(); }
  Executor::Lane lane() const { return request_.bytes() > kHeavyRequest ? Executor::kHeavy : Executor::kLight; }

 private:
  static constexpr size_t kHeavyRequest = 16 << 10;  // in memory

  void OnDone() override { delete this; }
  // OnDone does not wait, so it needs no thread of its own.
  bool InternalInlineable() override { return true; }

  grpc::CallbackServerContext* const context_;
  const RequestMemory::Share request_;
  UnsentAnswers::Call answer_;
};

// Runs `work`, which writes the response, on the executor, and answers the call. Answers UNAVAILABLE if too many requests are
// waiting or the client does not read its answers. If the client has cancelled the call in the meantime, `work` is not run:
// when the server is slow, many requests wait, and many clients have given up.
template <typename Response, typename Work>
grpc::ServerUnaryReactor* RunUnary(grpc::CallbackServerContext* context, Executor* executor, Response* response,
                                   Work work, Executor::Lane lane = Executor::kLight) {
  auto* const call = new UnaryCall(context, executor);
  const bool taken = executor->TryRun(
      [call, response, work = std::move(work)] {
        if (call->cancelled()) return call->Finish(grpc::Status::CANCELLED);
        const Duration begin = ThreadTime();
        const absl::Status status = work();
        call->Answer(status, *response, ThreadTime() - begin);
      },
      std::max(lane, call->lane()));
  if (!taken) call->Finish(ToGrpc(executor->TooBusy()));
  return call;
}

// A call with a stream of answers, made page by page. The next page is made after the transport has taken the one before, so a
// client that does not read holds one page and no thread. While clients hold too many unread answers, the stream waits before
// it makes the next page (unsent.h). Answers UNAVAILABLE if too many requests are waiting when it starts, and not later.
// Deletes itself, also if the client disconnects.
template <typename Response>
class PagedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  struct Page {
    std::vector<Response> responses;
    bool last = false;
  };
  // Called by threads of the executor, one at a time.
  using Next = std::function<absl::StatusOr<Page>()>;

  static grpc::ServerWriteReactor<Response>* Start(grpc::CallbackServerContext* context, Executor* executor,
                                                   Next next) {
    auto* const stream = new PagedStream(context, executor, std::move(next));
    const bool taken = executor->TryRun([stream] { stream->Produce(); }, Executor::kHeavy);
    if (!taken) stream->Finish(ToGrpc(executor->TooBusy()));
    return stream;
  }

 private:
  PagedStream(grpc::CallbackServerContext* context, Executor* executor, Next next)
      : executor_(executor),
        next_(std::move(next)),
        request_(executor->requests()->TakeOf(context->c_call())),
        unsent_(executor->unsent(), context) {}

  void ProduceLater() {
    executor_->Run([this] { Produce(); }, Executor::kHeavy);
  }

  void Produce() {
    bool cancelled = false;
    {
      MutexLock lock(&mutex_);
      while (!cancelled_ && status_.ok() && !page_.last && sent_ == page_.responses.size()) {
        if (unsent_.WaitForRoom([this] { ProduceLater(); })) return;
        MakePage();
      }
      cancelled = cancelled_;
    }
    if (cancelled) return this->Finish(grpc::Status::CANCELLED);
    Send();
  }

  // Only one thread is here at a time, and no write is in progress. The mutex is for the sanitizers and the analysis, which
  // cannot know that.
  void MakePage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mutex_.Unlock();
    const Duration begin = ThreadTime();
    absl::StatusOr<Page> page = next_();
    const Duration work = ThreadTime() - begin;
    mutex_.Lock();
    work_ += work;
    sent_ = 0;
    page_.responses.clear();
    status_ = page.status();
    if (!page.ok()) return;
    page_ = *std::move(page);
    size_t bytes = 0;
    for (const Response& response : page_.responses) bytes += response.ByteSizeLong();
    unsent_.Add(bytes);
  }

  // Writes the next answer of the page, or ends the stream.
  void Send() {
    const Response* response = nullptr;
    bool last = false;
    absl::Status status;
    Duration work{0};
    {
      MutexLock lock(&mutex_);
      status = status_;
      work = work_;
      if (status.ok() && sent_ < page_.responses.size()) {
        response = &page_.responses[sent_++];
        last = page_.last && sent_ == page_.responses.size();
      }
    }
    if (response == nullptr) return FinishAfter(RefuseAfter(status, work), this);
    if (last) {
      this->StartWriteAndFinish(response, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      this->StartWrite(response);
    }
  }

  void OnWriteDone(bool ok) override {
    bool page_done = false;
    {
      MutexLock lock(&mutex_);
      if (!ok) cancelled_ = true;
      Response taken;  // frees the memory of this answer before the others of the page are written
      if (sent_ > 0) taken.Swap(&page_.responses[sent_ - 1]);
      unsent_.Sent(taken.ByteSizeLong());
      page_done = !ok || (!page_.last && sent_ == page_.responses.size());
    }
    if (page_done) {
      ProduceLater();
    } else {
      Send();
    }
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    if (unsent_.StopWaiting()) ProduceLater();
  }
  void OnDone() override {
    { MutexLock lock(&mutex_); }  // waits for threads that hold the mutex
    delete this;
  }

  Executor* const executor_;
  const Next next_;
  const RequestMemory::Share request_;
  Mutex mutex_;
  UnsentAnswers::Call unsent_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Duration work_ ABSL_GUARDED_BY(mutex_){0};  // the processor time spent on pages
  Page page_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // the answers of the page that were written, including the one in progress
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_CALLS_H_
