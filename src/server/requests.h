// Limits of requests that apply before a request is parsed.
//
// A message on the wire can be much smaller than what it becomes in memory: an empty message in a repeated field is two
// bytes on the wire and about a hundred in memory. So each method has a limit of bytes, and what a request will take in
// memory is estimated from its tags, which costs little. One that would take too much is refused with
// kResourceExhausted, and with kUnavailable if others take too much at the moment: it may be tried again.

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

// Bytes of memory that a message of this type takes once it is parsed, about. Stops to count at `limit`.
size_t EstimateParsedBytes(grpc_byte_buffer* bytes, const google::protobuf::Message& prototype, size_t limit);

// Memory that was used for something large: TrimMemory, called now and then, gives back to the system what became free.
void NoteLargeUse(size_t bytes);
void TrimMemory();

// What all requests of a server may take together.
class RequestMemory {
 public:
  // One request may take half of it.
  explicit RequestMemory(size_t bytes) : limit_(bytes) {}

  size_t one_request() const { return limit_ / 2; }

  // A part of it, given back at the end.
  class Share {
   public:
    Share() = default;
    Share(RequestMemory* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}
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
  // kUnavailable: there is not as much left.
  absl::Status Take(size_t bytes, Share* share);

  // The same for a read of a row by so many selectors: they may all select the same, and each of a scan needs an iterator.
  absl::Status TakeForSelectors(size_t selectors, Share* share);

  // The share of a request that a method of a service is called with: the method takes it over and keeps it as long as the
  // request. If it does not, the share ends when the method returns.
  Share TakeOf(grpc_call* call);
  // How a request is refused: the later, the larger it was. A client that goes on to send large requests that are refused would
  // otherwise keep the server busy with receiving them.
  struct Refusal {
    grpc::Status status;
    Duration delay{0};
  };
  Refusal RefusalOf(grpc_call* call);

 private:
  friend class LimitedHandler;

  // A request between its check and the method that takes it over.
  struct Arrived {
    Share share;
    Refusal refusal;
    uint64_t number = 0;  // of this alone: calls follow each other at the same address
  };

  void Add(grpc_call* call, Arrived arrived);
  // 0: there is none.
  uint64_t NumberOf(grpc_call* call);
  void Forget(grpc_call* call, uint64_t number);

  const size_t limit_;
  std::atomic<size_t> used_{0};
  std::atomic<size_t> waiting_{0};  // the size of arrived_, so that small requests need no lock
  Mutex mutex_;
  uint64_t numbers_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<grpc_call*, Arrived> arrived_ ABSL_GUARDED_BY(mutex_);
};

// The same for a request that was refused after `work`, the processor time that was spent on it, if the request is at fault.
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

// A handler of a method that looks at requests before another one parses them.
class LimitedHandler final : public grpc::internal::MethodHandler {
 public:
  // `refuse` handles the same method and answers with RefusalOf the call.
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

// A service whose methods have limits. Base is its CallbackService.
template <typename Base>
class LimitedService : public Base {
 protected:
  // `index` counts the methods in the order of the .proto file; `method` is called as Base would call it.
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
