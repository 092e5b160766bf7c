// SPDX-License-Identifier: Apache-2.0

#include "src/etcd/etcd_client.h"

#include <algorithm>
#include <utility>

#include "percolator/status.h"
#include "percolator/status_macros.h"
#include "src/base/retry.h"
#include "src/base/strings.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

// The pauses between two attempts.
constexpr Duration kRetryPause = std::chrono::milliseconds(10);
constexpr Duration kWatchPause = std::chrono::milliseconds(100);

int64_t WholeSeconds(Duration duration) {
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(duration).count());
}

std::optional<etcd::KeyValue> FirstOf(etcd::RangeResponse* response) {
  if (response->kvs().empty()) return std::nullopt;
  return std::move(*response->mutable_kvs(0));
}

}  // namespace

std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // means "up to the last key"
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

etcd::Compare* EtcdTxn::AddCompare(std::string_view key, etcd::Compare::CompareTarget target) {
  etcd::Compare* compare = request_.add_compare();
  compare->set_key(std::string(key));
  compare->set_target(target);
  compare->set_result(etcd::Compare::EQUAL);
  return compare;
}

EtcdTxn& EtcdTxn::IfModRevision(std::string_view key, int64_t revision) {
  AddCompare(key, etcd::Compare::MOD)->set_mod_revision(revision);
  return *this;
}

EtcdTxn& EtcdTxn::IfExists(std::string_view key) {
  etcd::Compare* compare = AddCompare(key, etcd::Compare::MOD);
  compare->set_result(etcd::Compare::GREATER);
  compare->set_mod_revision(0);
  return *this;
}

EtcdTxn& EtcdTxn::IfValue(std::string_view key, std::string_view value) {
  AddCompare(key, etcd::Compare::VALUE)->set_value(std::string(value));
  return *this;
}

EtcdTxn& EtcdTxn::ThenPut(std::string_view key, std::string_view value, int64_t lease) {
  etcd::PutRequest* put = request_.add_success()->mutable_request_put();
  put->set_key(std::string(key));
  put->set_value(std::string(value));
  put->set_lease(lease);
  return *this;
}

EtcdTxn& EtcdTxn::ThenDelete(std::string_view key) {
  request_.add_success()->mutable_request_delete_range()->set_key(std::string(key));
  return *this;
}

EtcdTxn& EtcdTxn::OtherwiseGet(std::string_view key) {
  request_.add_failure()->mutable_request_range()->set_key(std::string(key));
  return *this;
}

struct EtcdClient::Endpoint {
  Endpoint(std::string host_port, std::shared_ptr<grpc::Channel> to)
      : address(std::move(host_port)),
        channel(std::move(to)),
        kv(etcd::KV::NewStub(channel)),
        lease(etcd::Lease::NewStub(channel)),
        watch(etcd::Watch::NewStub(channel)) {}

  const std::string address;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<etcd::KV::Stub> kv;
  const std::unique_ptr<etcd::Lease::Stub> lease;
  const std::unique_ptr<etcd::Watch::Stub> watch;
};

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Open(const std::vector<std::string>& endpoints,
                                                             const TlsFiles& tls) {
  if (endpoints.empty()) return absl::InvalidArgumentError("cannot connect to etcd: no endpoint is given");
  std::vector<std::unique_ptr<Endpoint>> opened;
  for (const std::string& endpoint : endpoints) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(endpoint, tls));
    opened.push_back(std::make_unique<Endpoint>(endpoint, channel));
  }
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(opened)));
}

EtcdClient::EtcdClient(std::vector<std::unique_ptr<Endpoint>> endpoints) : endpoints_(std::move(endpoints)) {}

EtcdClient::~EtcdClient() = default;

EtcdClient::Endpoint& EtcdClient::Current(size_t* which) {
  *which = current_.load();
  return *endpoints_[*which];
}

void EtcdClient::Leave(size_t which) { current_.compare_exchange_strong(which, (which + 1) % endpoints_.size()); }

absl::Status EtcdClient::Repeat(Duration timeout, const Attempt& attempt) {
  const Deadline deadline(Runtime::Real(), timeout);
  const Duration share = timeout / endpoints_.size();
  for (size_t tries = 1;; ++tries) {
    size_t which = 0;
    Endpoint& endpoint = Current(&which);
    absl::Status status = attempt(endpoint, std::min(deadline.left(), share));
    if (!IsTransient(status)) return status;
    Leave(which);
    if (deadline.left() <= 2 * kRetryPause) return status;
    const bool is_connected = WaitForConnection(*Current(&which).channel, kRetryPause);
    if (is_connected && tries % endpoints_.size() == 0) deadline.runtime()->Sleep(kRetryPause);  // all endpoints failed
  }
}

absl::StatusOr<std::optional<etcd::KeyValue>> EtcdClient::Get(std::string_view key, Duration timeout) {
  etcd::RangeRequest request;
  request.set_key(std::string(key));
  etcd::RangeResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.kv, &etcd::KV::Stub::Range, limit, request, &response);
  }));
  return FirstOf(&response);
}

absl::StatusOr<std::vector<etcd::KeyValue>> EtcdClient::List(std::string_view prefix, Duration timeout) {
  etcd::RangeRequest request;
  request.set_key(std::string(prefix));
  request.set_range_end(EndOfPrefix(std::string(prefix)));
  etcd::RangeResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.kv, &etcd::KV::Stub::Range, limit, request, &response);
  }));
  return std::vector<etcd::KeyValue>(response.kvs().begin(), response.kvs().end());
}

absl::Status EtcdClient::Put(std::string_view key, std::string_view value, int64_t lease, Duration timeout) {
  etcd::PutRequest request;
  request.set_key(std::string(key));
  request.set_value(std::string(value));
  request.set_lease(lease);
  etcd::PutResponse response;
  return Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.kv, &etcd::KV::Stub::Put, limit, request, &response);
  });
}

absl::StatusOr<EtcdClient::TxnResult> EtcdClient::Commit(const EtcdTxn& txn, Duration timeout) {
  etcd::TxnResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.kv, &etcd::KV::Stub::Txn, limit, txn.request(), &response);
  }));
  TxnResult result;
  result.succeeded = response.succeeded();
  result.revision = response.header().revision();
  if (result.succeeded) return result;
  for (etcd::ResponseOp& op : *response.mutable_responses()) {
    result.otherwise.push_back(FirstOf(op.mutable_response_range()));
  }
  return result;
}

absl::Status EtcdClient::Compact(int64_t revision, Duration timeout) {
  etcd::CompactionRequest request;
  request.set_revision(revision);
  etcd::CompactionResponse response;
  absl::Status status = Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.kv, &etcd::KV::Stub::Compact, limit, request, &response);
  });
  return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
}

absl::StatusOr<Duration> EtcdClient::Grant(int64_t lease, Duration ttl, Duration timeout) {
  etcd::LeaseGrantRequest request;
  request.set_id(lease);
  request.set_ttl(WholeSeconds(ttl));
  etcd::LeaseGrantResponse response;
  absl::Status status = Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.lease, &etcd::Lease::Stub::LeaseGrant, limit, request, &response);
  });
  if (absl::IsFailedPrecondition(status)) return KeepAlive(lease, timeout);  // the lease exists
  if (!status.ok()) return status;
  return std::chrono::seconds(response.ttl());
}

absl::StatusOr<Duration> EtcdClient::KeepAlive(int64_t lease, Duration timeout) {
  etcd::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcd::LeaseKeepAliveResponse response;
  absl::Status status = Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    grpc::ClientContext context;
    SetTimeout(&context, limit);
    const auto stream = endpoint.lease->LeaseKeepAlive(&context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    if (answered) context.TryCancel();  // otherwise etcd would wait for more requests
    absl::Status end = WithReason(FromGrpc(stream->Finish()), request.GetTypeName(), context, limit);
    if (answered) return absl::OkStatus();
    if (!end.ok()) return end;
    return absl::UnavailableError(
        StrCat("cannot renew the lease ", lease, ": no answer from etcd at ", endpoint.address));
  });
  if (!status.ok()) return status;
  if (response.ttl() <= 0) return absl::NotFoundError(StrCat("the lease ", lease, " has expired in etcd"));
  return std::chrono::seconds(response.ttl());
}

absl::Status EtcdClient::Revoke(int64_t lease, Duration timeout) {
  etcd::LeaseRevokeRequest request;
  request.set_id(lease);
  etcd::LeaseRevokeResponse response;
  absl::Status status = Repeat(timeout, [&](Endpoint& endpoint, Duration limit) {
    return Call(*endpoint.lease, &etcd::Lease::Stub::LeaseRevoke, limit, request, &response);
  });
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

EtcdWatch::EtcdWatch(EtcdClient* client, std::string prefix, Changed changed)
    : client_(client),
      prefix_(std::move(prefix)),
      changed_(std::move(changed)),
      ended_(Runtime::Real()->NewWaitQueue()),
      thread_([this] { Run(); }) {}

EtcdWatch::~EtcdWatch() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    if (context_ != nullptr) context_->TryCancel();
    ended_->WakeAll();
  }
  thread_.join();
}

void EtcdWatch::Run() {
  while (WatchOnce()) {
    size_t which = 0;
    WaitForConnection(*client_->Current(&which).channel, kWatchPause);
    MutexLock lock(&mutex_);
    if (!ending_) ended_->WaitFor(&mutex_, kRetryPause);
  }
}

bool EtcdWatch::WatchOnce() {
  grpc::ClientContext* context = nullptr;
  {
    MutexLock lock(&mutex_);
    if (ending_) return false;
    context_ = std::make_unique<grpc::ClientContext>();
    context = context_.get();
  }
  size_t which = 0;
  const auto stream = client_->Current(&which).watch->Watch(context);
  etcd::WatchRequest request;
  request.mutable_create_request()->set_key(prefix_);
  request.mutable_create_request()->set_range_end(EndOfPrefix(prefix_));
  etcd::WatchResponse response;
  for (bool going = stream->Write(request); going && stream->Read(&response) && !response.canceled();) {
    for (const etcd::Event& event : response.events()) {
      if (event.type() == etcd::Event::PUT) changed_(event.kv());
    }
  }
  context->TryCancel();
  stream->Finish();
  client_->Leave(which);
  return true;
}

}  // namespace percolator
