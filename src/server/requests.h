// SPDX-License-Identifier: Apache-2.0

// Limits that the server checks before it parses a request.
//
// A message can take much more space in memory than on the wire: an empty message in a repeated field takes two bytes on the
// wire and about a hundred in memory. So each method has a limit of bytes, and the server estimates the memory of a request
// from its tags, which costs little. A request that would take too much fails with ResourceExhausted. If other requests take
// too much memory at the moment, it fails with Unavailable and may be retried.

#ifndef PERCOLATOR_SERVER_REQUESTS_H_
#define PERCOLATOR_SERVER_REQUESTS_H_

#include <google/protobuf/message.h>
#include <grpc/byte_buffer.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "percolator/spi/mutex.h"
#include "percolator/types.h"
#include "src/wire/status.h"

namespace percolator {

// The limit of requests that carry a few names and numbers.
inline constexpr size_t kSmallRequestBytes = size_t{64} << 10;

// Estimates the memory of a message of this type after parsing, in bytes. Stops counting at `limit`.
size_t EstimateParsedBytes(grpc_byte_buffer* bytes, const google::protobuf::Message& prototype, size_t limit);

// NoteLargeUse reports a large allocation. TrimMemory, which is called about once a second, returns free memory to the system
// after such reports. Thread-safe.
void NoteLargeUse(size_t bytes);
void TrimMemory();

// The memory for all requests of a server. Thread-safe.
class RequestMemory {
 public:
  // One request may take at most half of `bytes`.
  explicit RequestMemory(size_t bytes) : limit_(bytes) {}

  size_t one_request() const { return limit_ / 2; }

  // A part of the memory, which the destructor returns.
  class Share {
   public:
    Share() = default;
    Share(RequestMemory* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}
    size_t bytes() const { return memory_ == nullptr ? 0 : bytes_; }
    Share(Share&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (memory_ != nullptr) memory_->used_ -= bytes_;
    }

   private:
    RequestMemory* memory_ = nullptr;
    size_t bytes_ = 0;
  };
  // Returns Unavailable if less than `bytes` is left.
  absl::Status Take(size_t bytes, Share* share);

  // Takes memory for a read of a row with that many selectors. They may all select the same cells, and each selector of a scan
  // needs an iterator.
  absl::Status TakeForSelectors(size_t selectors, Share* share);

  // Returns the share of the request of `call`. A method of a service takes it and keeps it as long as the request; otherwise
  // the share ends when the method returns.
  Share TakeOf(grpc_call* call);
  // How to refuse a request. The delay grows with the size of the request: without it, a client that keeps sending large
  // requests would keep the server busy receiving them.
  struct Refusal {
    grpc::Status status;
    Duration delay{0};
  };
  Refusal RefusalOf(grpc_call* call);

 private:
  friend class LimitedHandler;

  // A request between its check and the method that takes its share.
  struct Arrived {
    Share share;
    Refusal refusal;
    uint64_t number = 0;  // unique, because a later call may have the same address
  };

  void Add(grpc_call* call, Arrived arrived);
  // Returns the number of the request of `call`, or 0 if there is none.
  uint64_t NumberOf(grpc_call* call);
  void Forget(grpc_call* call, uint64_t number);

  const size_t limit_;
  std::atomic<size_t> used_{0};
  std::atomic<size_t> waiting_{0};  // the size of `arrived_`, which small requests read without a lock
  Mutex mutex_;
  uint64_t numbers_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<grpc_call*, Arrived> arrived_ ABSL_GUARDED_BY(mutex_);
};

// Returns how to refuse a request with `status` after `work`, the processor time spent on it. The delay is zero unless the
// request is at fault (ResourceExhausted or InvalidArgument).
RequestMemory::Refusal RefuseAfter(const absl::Status& status, Duration work);

// Returns the processor time that the calling thread has used.
Duration ThreadTime();

// Finishes a call after the delay of its refusal.
template <typename Reactor>
void FinishAfter(const RequestMemory::Refusal& refusal, Reactor* reactor) {
  if (refusal.delay == Duration(0)) return reactor->Finish(refusal.status);
  auto* const alarm = new grpc::Alarm;
  const gpr_timespec when =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(refusal.delay.count(), GPR_TIMESPAN));
  alarm->Set(when, [alarm, reactor, status = refusal.status](bool) {
    reactor->Finish(status);
    delete alarm;
  });
}

// A handler of a method that checks requests before another handler parses them.
class LimitedHandler final : public grpc::internal::MethodHandler {
 public:
  // `refuse` handles refused requests: it answers with RefusalOf the call.
  LimitedHandler(const google::protobuf::Message* prototype, size_t request_bytes, RequestMemory* memory,
                 std::unique_ptr<MethodHandler> handle, std::unique_ptr<MethodHandler> refuse)
      : prototype_(prototype),
        request_bytes_(request_bytes),
        memory_(memory),
        handle_(std::move(handle)),
        refuse_(std::move(refuse)) {}

  void RunHandler(const HandlerParameter& param) override;
  void* Deserialize(grpc_call* call, grpc_byte_buffer* bytes, grpc::Status* status, void** handler_data) override;

 private:
  absl::Status Check(grpc_byte_buffer* bytes, RequestMemory::Share* share);

  const google::protobuf::Message* const prototype_;
  const size_t request_bytes_;
  RequestMemory* const memory_;
  const std::unique_ptr<MethodHandler> handle_;
  const std::unique_ptr<MethodHandler> refuse_;
};

// A service whose methods have limits. Base is the generated CallbackService.
template <typename Base>
class LimitedService : public Base {
 protected:
  // Limits the method with that index, in the order of the .proto file. gRPC then calls `method` for it.
  template <typename Service, typename Request, typename Response>
  void LimitUnary(int index, size_t request_bytes, RequestMemory* memory,
                  grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*, const Request*,
                                                               Response*)) {
    using Handler = grpc::internal::CallbackUnaryHandler<Request, Response>;
    this->MarkMethodCallback(
        index, new LimitedHandler(
                   &Request::default_instance(), request_bytes, memory,
                   std::make_unique<Handler>([this, method](grpc::CallbackServerContext* context,
                                                            const Request* request, Response* response) {
                     return (static_cast<Service*>(this)->*method)(context, request, response);
                   }),
                   std::make_unique<Handler>([memory](grpc::CallbackServerContext* context, const Request*, Response*) {
                     grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
                     FinishAfter(memory->RefusalOf(context->c_call()), reactor);
                     return reactor;
                   })));
  }

  template <typename Service, typename Request, typename Response>
  void LimitStream(int index, size_t request_bytes, RequestMemory* memory,
                   grpc::ServerWriteReactor<Response>* (Service::*method)(grpc::CallbackServerContext*,
                                                                          const Request*)) {
    using Handler = grpc::internal::CallbackServerStreamingHandler<Request, Response>;
    class Refused final : public grpc::ServerWriteReactor<Response> {
     public:
      explicit Refused(const RequestMemory::Refusal& refusal) { FinishAfter(refusal, this); }
      void OnDone() override { delete this; }
    };
    this->MarkMethodCallback(
        index,
        new LimitedHandler(
            &Request::default_instance(), request_bytes, memory,
            std::make_unique<Handler>([this, method](grpc::CallbackServerContext* context, const Request* request) {
              return (static_cast<Service*>(this)->*method)(context, request);
            }),
            std::make_unique<Handler>([memory](grpc::CallbackServerContext* context, const Request*) {
              return new Refused(memory->RefusalOf(context->c_call()));
            })));
  }
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_REQUESTS_H_
