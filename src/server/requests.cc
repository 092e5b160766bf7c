// SPDX-License-Identifier: Apache-2.0

#include "src/server/requests.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr Duration kRefusalDelayPerMiB = std::chrono::milliseconds(20);
constexpr Duration kMaxRefusalDelay = std::chrono::seconds(1);
// So a client that sends such requests in sequence uses at most a fifth of a processor.
constexpr int kRefusalDelayPerWork = 4;
constexpr Duration kShortWork = std::chrono::milliseconds(1);

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::internal::WireFormat;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Smaller requests are not checked, because they are small in memory too.
constexpr size_t kSmallRequest = 1 << 10;
// Estimates, including the cost of an allocation.
constexpr size_t kStringBytes = 48;
constexpr size_t kMessageOverhead = 32;
constexpr size_t kUnknownFieldBytes = 64;
constexpr int kDepth = 100;  // protobuf's own limit

// Reads a grpc_byte_buffer without copying it.
class ByteBufferStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ByteBufferStream(grpc_byte_buffer* bytes) : ok_(grpc_byte_buffer_reader_init(&reader_, bytes) != 0) {}
  ~ByteBufferStream() override {
    if (ok_) grpc_byte_buffer_reader_destroy(&reader_);
  }

  bool Next(const void** data, int* size) override {
    if (back_ == 0) {
      if (!ok_ || grpc_byte_buffer_reader_peek(&reader_, &slice_) == 0) return false;
      back_ = GRPC_SLICE_LENGTH(*slice_);
    }
    *data = GRPC_SLICE_END_PTR(*slice_) - back_;
    *size = static_cast<int>(back_);
    read_ += static_cast<int64_t>(back_);
    back_ = 0;
    return true;
  }
  void BackUp(int count) override {
    back_ = static_cast<size_t>(count);
    read_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return read_; }

 private:
  grpc_byte_buffer_reader reader_{};
  const bool ok_;
  grpc_slice* slice_ = nullptr;
  size_t back_ = 0;  // the bytes at the end of the slice that were returned by BackUp
  int64_t read_ = 0;
};

class Estimator {
 public:
  Estimator(CodedInputStream* in, size_t limit) : in_(in), limit_(limit) {}

  size_t bytes() const { return bytes_; }

  // Reads to the end of the message, or to the first malformed part, which the parser will refuse.
  void AddMessage(const Descriptor* type, int depth) {
    bytes_ += SizeOf(type);
    if (depth > kDepth) return;
    while (bytes_ < limit_) {
      const uint32_t tag = in_->ReadTag();
      if (tag == 0 || !AddField(type, tag, depth)) return;
    }
  }

 private:
  size_t SizeOf(const Descriptor* type) {
    if (const auto found = sizes_.find(type); found != sizes_.end()) return found->second;
    // The prototype of an entry of a map has no value: SpaceUsedLong would use a null pointer.
    const bool entry = type->options().map_entry();
    const size_t size =
        kMessageOverhead +
        (entry ? 2 * kStringBytes : MessageFactory::generated_factory()->GetPrototype(type)->SpaceUsedLong());
    sizes_.emplace(type, size);
    return size;
  }

  bool AddField(const Descriptor* type, uint32_t tag, int depth) {
    const FieldDescriptor* field = type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const WireFormatLite::WireType wire_type = WireFormatLite::GetTagWireType(tag);
    // The parser keeps a field of a wrong type as an unknown field. (No request has packed numbers.)
    if (field != nullptr && WireFormat::WireTypeForFieldType(field->type()) != wire_type) field = nullptr;
    if (field == nullptr) bytes_ += kUnknownFieldBytes;
    uint64_t number = 0;
    uint32_t short_number = 0;
    switch (wire_type) {
      case WireFormatLite::WIRETYPE_VARINT:
        return in_->ReadVarint64(&number);
      case WireFormatLite::WIRETYPE_FIXED64:
        return in_->ReadLittleEndian64(&number);
      case WireFormatLite::WIRETYPE_FIXED32:
        return in_->ReadLittleEndian32(&short_number);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return in_->ReadVarint32(&short_number) && AddBytes(field, short_number, depth);
      default:  // groups, which no request has
        return true;
    }
  }

  bool AddBytes(const FieldDescriptor* field, uint32_t size, int depth) {
    if (size > static_cast<uint32_t>(std::numeric_limits<int>::max())) return false;
    if (field == nullptr || field->type() != FieldDescriptor::TYPE_MESSAGE) {
      bytes_ += kStringBytes + size;
      return in_->Skip(static_cast<int>(size));
    }
    const CodedInputStream::Limit limit = in_->PushLimit(static_cast<int>(size));
    AddMessage(field->message_type(), depth + 1);
    const int left = in_->BytesUntilLimit();
    const bool skipped = left <= 0 || in_->Skip(left);
    in_->PopLimit(limit);
    return skipped;
  }

  CodedInputStream* const in_;
  const size_t limit_;
  size_t bytes_ = 0;
  absl::flat_hash_map<const Descriptor*, size_t> sizes_;
};

std::atomic<size_t> large_use{0};
constexpr size_t kTrimAfter = size_t{8} << 20;
// The number of calls of TrimMemory that trim after a large use, because the memory becomes free a little later.
constexpr int kTrims = 3;
// Every tenth call trims in any case, because gRPC's memory for incomplete calls and requests is not reported.
constexpr unsigned kTrimAlways = 10;

}  // namespace

size_t EstimateParsedBytes(grpc_byte_buffer* bytes, const Message& prototype, size_t limit) {
  ByteBufferStream stream(bytes);
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  Estimator estimator(&in, limit);
  estimator.AddMessage(prototype.GetDescriptor(), 0);
  return estimator.bytes();
}

void NoteLargeUse(size_t bytes) { large_use += bytes; }

void TrimMemory() {
  static std::atomic<int> trims{0};
  static std::atomic<unsigned> calls{0};
  if (large_use > kTrimAfter) {
    large_use = 0;
    trims = kTrims;
  }
  if (++calls % kTrimAlways == 0) trims = std::max<int>(trims, 1);
  if (trims <= 0) return;
  --trims;
  malloc_trim(0);
}

RequestMemory::Refusal RefuseAfter(const absl::Status& status, Duration work) {
  RequestMemory::Refusal refusal{ToGrpc(status)};
  if (status.code() != absl::StatusCode::kResourceExhausted && status.code() != absl::StatusCode::kInvalidArgument) {
    return refusal;
  }
  if (work >= kShortWork) refusal.delay = std::min(kMaxRefusalDelay, kRefusalDelayPerWork * work);
  return refusal;
}

Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(time.tv_sec) +
                                              std::chrono::nanoseconds(time.tv_nsec));
}

// --- RequestMemory

absl::Status RequestMemory::Take(size_t bytes, Share* share) {
  size_t used = used_.load();
  while (used + bytes <= limit_) {
    if (!used_.compare_exchange_weak(used, used + bytes)) continue;
    *share = Share(this, bytes);
    return absl::OkStatus();
  }
  return absl::UnavailableError(StrCat("the server is too busy: requests use ", used >> 20,
                                       " MiB of memory, the limit is ", limit_ >> 20, " MiB"));
}

absl::Status RequestMemory::TakeForSelectors(size_t selectors, Share* share) {
  constexpr size_t kFew = 32;
  constexpr size_t kBytesEach = 64 << 10;
  if (selectors <= kFew) return absl::OkStatus();
  return Take(std::min(selectors * kBytesEach, limit_ / 4 * 3), share);
}

void RequestMemory::Add(grpc_call* call, Arrived arrived) {
  const MutexLock lock(&mutex_);
  arrived.number = ++numbers_;
  arrived_.insert_or_assign(call, std::move(arrived));
  waiting_ = arrived_.size();
}

uint64_t RequestMemory::NumberOf(grpc_call* call) {
  if (waiting_ == 0) return 0;
  const MutexLock lock(&mutex_);
  const auto found = arrived_.find(call);
  return found == arrived_.end() ? 0 : found->second.number;
}

void RequestMemory::Forget(grpc_call* call, uint64_t number) {
  const MutexLock lock(&mutex_);
  const auto found = arrived_.find(call);
  if (found == arrived_.end() || found->second.number != number) return;
  arrived_.erase(found);
  waiting_ = arrived_.size();
}

RequestMemory::Share RequestMemory::TakeOf(grpc_call* call) {
  if (waiting_ == 0) return Share();
  const MutexLock lock(&mutex_);
  const auto found = arrived_.find(call);
  return found == arrived_.end() ? Share() : std::move(found->second.share);
}

RequestMemory::Refusal RequestMemory::RefusalOf(grpc_call* call) {
  const MutexLock lock(&mutex_);
  const auto found = arrived_.find(call);
  return found == arrived_.end() ? Refusal{grpc::Status::CANCELLED} : found->second.refusal;
}

// --- LimitedHandler

absl::Status LimitedHandler::Check(grpc_byte_buffer* bytes, RequestMemory::Share* share) {
  const size_t size = grpc_byte_buffer_length(bytes);
  if (size > request_bytes_) {
    return absl::ResourceExhaustedError(
        StrCat("the request has ", size, " bytes; the limit for this method is ", request_bytes_));
  }
  const size_t limit = memory_->one_request();
  const size_t estimate = EstimateParsedBytes(bytes, *prototype_, limit + 1);
  if (estimate > limit) {
    return absl::ResourceExhaustedError(StrCat("the request of ", size, " bytes would take more than the limit of ",
                                               limit >> 20, " MiB of memory; divide it"));
  }
  return memory_->Take(estimate, share);
}

void* LimitedHandler::Deserialize(grpc_call* call, grpc_byte_buffer* bytes, grpc::Status* status, void** handler_data) {
  // `bytes` is null if the client disconnected before the request was received.
  const size_t size = bytes == nullptr ? 0 : grpc_byte_buffer_length(bytes);
  if (size < kSmallRequest) return handle_->Deserialize(call, bytes, status, handler_data);
  NoteLargeUse(size);
  RequestMemory::Arrived arrived;
  arrived.refusal = {ToGrpc(Check(bytes, &arrived.share)),
                     std::min(kMaxRefusalDelay, kRefusalDelayPerMiB * static_cast<int64_t>(size >> 20))};
  if (arrived.refusal.status.ok()) {
    memory_->Add(call, std::move(arrived));
    return handle_->Deserialize(call, bytes, status, handler_data);
  }
  grpc_byte_buffer_destroy(bytes);
  grpc_byte_buffer* const nothing = grpc_raw_byte_buffer_create(nullptr, 0);
  void* const request = refuse_->Deserialize(call, nothing, status, handler_data);
  *status = arrived.refusal.status;
  memory_->Add(call, std::move(arrived));
  return request;
}

void LimitedHandler::RunHandler(const HandlerParameter& param) {
  grpc_call* const call = param.call->call();
  const uint64_t number = memory_->NumberOf(call);
  // `refuse_` answers a request that cannot be parsed.
  if (param.status.ok() || param.request == nullptr) {
    handle_->RunHandler(param);
  } else {
    refuse_->RunHandler(HandlerParameter(param.call, param.server_context, param.request, grpc::Status::OK,
                                         param.internal_data, param.call_requester));
  }
  if (number != 0) memory_->Forget(call, number);
}

}  // namespace percolator
