// SPDX-License-Identifier: Apache-2.0

#include "percolator/server.h"

#include <chrono>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/fork.h"
#include "src/base/strings.h"
#include "src/cluster/embedded.h"
#include "src/server/bigtable/service.h"
#include "src/server/coordination_service.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/oracle_service.h"
#include "src/server/store_service.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

absl::StatusOr<Parts> OpenParts(const ServerOptions& options) {
  if (options.data.empty()) return OpenInMemory();
  ClusterOptions embedded;
  embedded.store = options.store;
  embedded.oracle_window = options.oracle_window;
  return OpenEmbedded(options.data, embedded);
}

CallMemory MemoryOf(const ServerOptions& options) {
  return {options.max_request_bytes, options.max_requests_memory, options.max_unsent_bytes,
          options.max_unsent_bytes_per_connection};
}

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(StrCat("invalid option threads = ", options.threads, ": the minimum is 1"));
  }
  if (options.max_waiting_requests < 1) {
    return absl::InvalidArgumentError("invalid option max_waiting_requests = 0: the minimum is 1");
  }
  if (options.session_ttl < std::chrono::milliseconds(10)) {
    return absl::InvalidArgumentError(
        StrCat("invalid option session_ttl = ", options.session_ttl.count(), " us: the minimum is 10 ms"));
  }
  for (const size_t bytes : {options.max_request_bytes, options.max_response_bytes}) {
    if (bytes >= 1 && bytes <= std::numeric_limits<int>::max()) continue;  // an int in gRPC
    return absl::InvalidArgumentError(StrCat("invalid option max_request_bytes or max_response_bytes = ", bytes,
                                             ": it must be at least 1 and less than 2 GiB"));
  }
  if (options.max_connections < 1) {
    return absl::InvalidArgumentError("invalid option max_connections = 0: the minimum is 1");
  }
  if (options.max_requests_memory / 2 < options.max_request_bytes) {
    return absl::InvalidArgumentError(StrCat("invalid option max_requests_memory = ", options.max_requests_memory,
                                             ": the minimum is twice max_request_bytes = ", options.max_request_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Parts parts)
      : parts_(std::move(parts)),
        executor_(std::make_unique<Executor>(options.threads, options.max_waiting_requests, MemoryOf(options))),
        store_(parts_.store.get(), parts_.oracle.get(), executor_.get()),
        oracle_(parts_.oracle.get(), executor_.get()),
        coordination_(parts_.oracle.get(), executor_.get(), options.session_ttl, options.max_sessions),
        bigtable_(NewBigtableServices(parts_.store.get(), executor_.get(), options.bigtable_writes_all)) {}

  absl::Status Start(const ServerOptions& options) {
    std::vector<grpc::Service*> services = {&store_, &oracle_, &coordination_};
    for (const std::unique_ptr<grpc::Service>& service : bigtable_) services.push_back(service.get());
    PERCOLATOR_ASSIGN_OR_RETURN(
        Listening listening,
        Listen({options.listen, options.tls, options.allow_plaintext, options.max_request_bytes,
                options.max_response_bytes, options.max_connections, options.max_receive_bytes, executor_->unsent()},
               services));
    listening_ = std::move(listening);
    return absl::OkStatus();
  }

  const Listening& listening() const { return listening_; }
  bool forked() const { return forks_.forked(); }

  // One call stops, and the others wait for it.
  absl::Status Stop(Duration grace) {
    std::call_once(stop_, [&] { stopped_ = StopParts(grace); });
    return stopped_;
  }

 private:
  absl::Status StopParts(Duration grace) {
    coordination_.StopListening();
    listening_.Stop(grace);
    executor_.reset();  // every request has been answered
    return parts_.store->Close();
  }

  const ForkWatch forks_;
  Parts parts_;
  std::unique_ptr<Executor> executor_;
  StoreService store_;
  OracleService oracle_;
  CoordinationService coordination_;
  std::vector<std::unique_ptr<grpc::Service>> bigtable_;
  Listening listening_;
  std::once_flag stop_;
  absl::Status stopped_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  if (impl_->forked()) {
    KeepUntilExit(std::move(impl_));
  } else {
    Stop().IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  PERCOLATOR_RETURN_IF_ERROR(CheckOptions(options));
  PERCOLATOR_ASSIGN_OR_RETURN(Parts parts, OpenParts(options));
  auto impl = std::make_unique<Impl>(options, std::move(parts));
  PERCOLATOR_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::string Server::address() const { return StrCat("percolator://", HostAndPort(impl_->listening().host, port())); }

int Server::port() const { return impl_->listening().port; }

absl::Status Server::Stop(Duration grace) {
  if (impl_->forked()) {
    return absl::FailedPreconditionError(
        "cannot stop the server: it was started by the process that forked this one; stop it there");
  }
  return impl_->Stop(grace);
}

}  // namespace percolator
