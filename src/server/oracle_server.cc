// SPDX-License-Identifier: Apache-2.0

#include <mutex>
#include <utility>

#include "percolator/server.h"
#include "percolator/status_macros.h"
#include "src/base/fork.h"
#include "src/base/host_port.h"
#include "src/base/strings.h"
#include "src/oracle/etcd/etcd_oracle.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/oracle_service.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

// Requests and answers contain one number.
constexpr size_t kMessageBytes = 64 << 10;
// For requests that the oracle does not answer at once. An oracle on etcd always does.
constexpr int kThreads = 1;
constexpr size_t kWaiting = 1000;
// For requests in progress when the server stops. Complete requests are answered at once.
constexpr Duration kGrace = std::chrono::seconds(1);

EtcdOracleOptions OracleOptions(const OracleServerOptions& options) {
  EtcdOracleOptions oracle;
  oracle.etcd.endpoints = options.etcd;
  oracle.etcd.prefix = options.prefix;
  oracle.etcd.tls = options.etcd_tls;
  oracle.name = options.name.empty() ? options.listen : options.name;
  oracle.lease = options.lease;
  oracle.window = options.window;
  oracle.on_leader = options.on_leader;
  return oracle;
}

}  // namespace

class OracleServer::Impl {
 public:
  explicit Impl(std::unique_ptr<ElectedOracle> oracle)
      : oracle_(std::move(oracle)), executor_(kThreads, kWaiting), service_(oracle_.get(), &executor_) {}

  absl::Status Start(const OracleServerOptions& options) {
    PERCOLATOR_ASSIGN_OR_RETURN(
        Listening listening,
        Listen({options.listen, options.tls, options.allow_plaintext, kMessageBytes, kMessageBytes}, {&service_}));
    listening_ = std::move(listening);
    return absl::OkStatus();
  }

  const Listening& listening() const { return listening_; }

  bool forked() const { return forks_.forked(); }

  // One call stops, and the others wait for it. Resigns first, so that another oracle leads at once, even if clients keep
  // connections open.
  void Stop() {
    std::call_once(stop_, [this] {
      oracle_->Resign();
      listening_.Stop(kGrace);
    });
  }

 private:
  const ForkWatch forks_;
  const std::unique_ptr<ElectedOracle> oracle_;
  Executor executor_;
  OracleService service_;
  Listening listening_;
  std::once_flag stop_;
};

OracleServer::OracleServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

OracleServer::~OracleServer() {
  if (impl_->forked()) {
    KeepUntilExit(std::move(impl_));
  } else {
    Stop();
  }
}

absl::StatusOr<std::unique_ptr<OracleServer>> OracleServer::Start(const OracleServerOptions& options) {
  for (const std::string& endpoint : options.etcd) {
    if (IsEndpoint(endpoint)) continue;
    return absl::InvalidArgumentError(
        StrCat("invalid endpoint of etcd \"", endpoint, "\": expected HOST:PORT with a port from 1 to 65535"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<ElectedOracle> oracle, OpenEtcdOracle(OracleOptions(options)));
  auto impl = std::make_unique<Impl>(std::move(oracle));
  PERCOLATOR_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<OracleServer>(new OracleServer(std::move(impl)));
}

std::string OracleServer::address() const { return HostAndPort(impl_->listening().host, port()); }

int OracleServer::port() const { return impl_->listening().port; }

void OracleServer::Stop() {
  if (!impl_->forked()) impl_->Stop();
}

}  // namespace percolator
