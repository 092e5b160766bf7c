// Calls of gRPC whose work is done by an Executor.

#ifndef PERCOLATOR_RPC_SERVER_CALLS_H_
#define PERCOLATOR_RPC_SERVER_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/rpc/server/executor.h"
#include "src/rpc/status.h"

namespace percolator {

// One request, one answer, at once.
inline grpc::ServerUnaryReactor* AnswerUnary(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

// One request, one answer, which `work` has written when it returns. UNAVAILABLE, if too many wait for their turn. If the
// client is gone when its turn comes, nothing is done: those who wait are many when the server is slow, and then many have
// given up.
template <typename Work>
grpc::ServerUnaryReactor* RunUnary(grpc::CallbackServerContext* context, Executor* executor, Work work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool taken = executor->TryRun([context, reactor, work = std::move(work)] {
    reactor->Finish(context->IsCancelled() ? grpc::Status::CANCELLED : ToGrpc(work()));
  });
  if (!taken) reactor->Finish(ToGrpc(executor->TooBusy()));
  return reactor;
}

// One request and a stream of answers, made page by page: the next page is made when the one before has been taken by the
// transport, so a client that does not read holds one page and no thread. It ends itself, also when the client goes away.
// UNAVAILABLE, if too many requests wait for their turn; once begun it is not refused.
template <typename Response>
class PagedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  struct Page {
    std::vector<Response> responses;
    bool last = false;
  };
  // Called by threads of the executor, never by two at once.
  using Next = std::function<absl::StatusOr<Page>()>;

  static grpc::ServerWriteReactor<Response>* Start(Executor* executor, Next next) {
    auto* const stream = new PagedStream(executor, std::move(next));
    const bool taken = executor->TryRun([stream] { stream->Produce(); });
    if (!taken) stream->Finish(ToGrpc(executor->TooBusy()));
    return stream;
  }

 private:
  PagedStream(Executor* executor, Next next) : executor_(executor), next_(std::move(next)) {}

  void Produce() {
    bool cancelled = false;
    {
      MutexLock lock(&mutex_);
      while (!cancelled_ && status_.ok() && !page_.last && sent_ == page_.responses.size()) MakePage();
      cancelled = cancelled_;
    }
    if (cancelled) return this->Finish(grpc::Status::CANCELLED);
    Send();
  }

  // Only one thread at a time is here, and no write is under way; the mutex says so to those who can't know it.
  void MakePage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mutex_.Unlock();
    absl::StatusOr<Page> page = next_();
    mutex_.Lock();
    sent_ = 0;
    page_.responses.clear();
    status_ = page.status();
    if (page.ok()) page_ = *std::move(page);
  }

  // Writes the next answer of the page, or ends the stream.
  void Send() {
    const Response* response = nullptr;
    bool last = false;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      status = status_;
      if (status.ok() && sent_ < page_.responses.size()) {
        response = &page_.responses[sent_++];
        last = page_.last && sent_ == page_.responses.size();
      }
    }
    if (response == nullptr) return this->Finish(ToGrpc(status));
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
      page_done = !ok || (!page_.last && sent_ == page_.responses.size());
    }
    if (page_done) {
      executor_->Run([this] { Produce(); });
    } else {
      Send();
    }
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  void OnDone() override {
    { MutexLock lock(&mutex_); }  // what was done under it is done
    delete this;
  }

  Executor* const executor_;
  const Next next_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Page page_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // of the page, counting the one under way
};

}  // namespace percolator

#endif  // PERCOLATOR_RPC_SERVER_CALLS_H_
