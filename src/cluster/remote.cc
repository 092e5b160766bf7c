// SPDX-License-Identifier: Apache-2.0

#include "src/cluster/remote.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "percolator/tls.h"
#include "src/base/strings.h"
#include "src/cluster/keeping.h"
#include "src/coord/etcd/etcd_coordinator.h"
#include "src/coord/remote/remote_coordinator.h"
#include "src/oracle/batching_oracle.h"
#include "src/oracle/remote/remote_oracle.h"
#include "src/store/batching_store.h"
#include "src/store/bigtable/bigtable_store.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

std::string Setting(const Address& address, const std::string& name) {
  const auto found = address.settings.find(name);
  return found == address.settings.end() ? std::string() : found->second;
}

TlsFiles TlsOf(const Address& address) {
  return {Setting(address, "ca"), Setting(address, "cert"), Setting(address, "key")};
}

// After this time without an answer, the next oracle is tried.
constexpr Duration kOracleTimeout = std::chrono::seconds(1);

// The timeout of one request. Requests that may be repeated are retried until call_timeout.
Duration RequestTimeout(const ClusterOptions& options) {
  return std::min<Duration>(options.call_timeout, std::chrono::seconds(10));
}

// Splits "a,b,c".
std::vector<std::string> Targets(std::string_view text) {
  std::vector<std::string> targets;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) targets.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return targets;
}

// Parses projects/P/instances/I.
absl::Status ReadInstance(std::string_view place, BigtableStoreOptions* bigtable) {
  std::string_view rest = place;
  const bool begins = ConsumePrefix(&rest, "projects/");
  const size_t middle = rest.find("/instances/");
  if (begins && middle != std::string_view::npos) {
    bigtable->project = rest.substr(0, middle);
    bigtable->instance = rest.substr(middle + std::string_view("/instances/").size());
  }
  if (bigtable->project.empty() || bigtable->instance.empty() || bigtable->instance.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        StrCat("invalid address \"bigtable:", place, "\": expected bigtable:projects/P/instances/I"));
  }
  return absl::OkStatus();
}

// Returns true if requests to `target` do not leave this machine.
bool IsNear(std::string_view target) {
  if (target.starts_with("unix:")) return true;
  std::string_view host = target.substr(0, target.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IsLoopback(host);
}

// Parses https://HOST:PORT, http://HOST:PORT or HOST:PORT. The last means http on this machine and is refused for others:
// like a server, a client uses plain text beyond its machine only if the operator asks for it.
absl::Status ReadEndpoint(const Address& address, BigtableStoreOptions* bigtable) {
  const std::string setting = Setting(address, "endpoint");
  std::string_view endpoint = setting;
  if (ConsumePrefix(&endpoint, "https://")) {
    bigtable->tls = TlsOf(address);
    if (bigtable->tls.ca.empty()) {
      return absl::InvalidArgumentError(
          StrCat("endpoint=", setting, " needs ca=FILE, the authority of the server's certificate"));
    }
  } else if (!ConsumePrefix(&endpoint, "http://") && !endpoint.empty() && !IsNear(endpoint)) {
    return absl::InvalidArgumentError(StrCat("refused to send plain text to endpoint=", endpoint,
                                             ": use endpoint=https://", endpoint,
                                             " with ca=FILE, or allow plain text with endpoint=http://", endpoint));
  }
  bigtable->endpoint = endpoint;
  return absl::OkStatus();
}

// Returns the likely cause of a connection error with that text. Empty if the text already states the cause.
std::string_view LikelyCause(std::string_view text, bool tls) {
  const auto contains = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (contains("wrong version number")) return "the server uses plain text; remove ?ca=FILE from the address";
  if (contains("certificate verify failed")) {
    return "the server's certificate has expired, or the authority in ?ca=FILE did not sign it";
  }
  if (!contains("Socket closed") && !contains("reset by peer") && !contains("Broken pipe")) return {};
  if (tls) return "the server may require a client certificate that it accepts; check ?cert=FILE&key=FILE";
  return "the server may require TLS; add ?ca=FILE to the address";
}

// A remote oracle behind a front, through which many threads share requests.
std::shared_ptr<Oracle> WithFront(std::unique_ptr<Oracle> far) {
  struct Both {
    explicit Both(std::unique_ptr<Oracle> oracle) : far(std::move(oracle)), front(far.get()) {}
    const std::unique_ptr<Oracle> far;
    BatchingOracle front;
  };
  const auto both = std::make_shared<Both>(std::move(far));
  return std::shared_ptr<Oracle>(both, &both->front);
}

}  // namespace

absl::StatusOr<Parts> OpenServer(const Address& address, const ClusterOptions& options) {
  const TlsFiles tls = TlsOf(address);
  const Duration timeout = RequestTimeout(options);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(address.place, tls));
  Parts parts{.runtime = Borrow(Runtime::Real())};
  parts.store =
      std::make_shared<BatchingStore>(std::make_unique<RemoteStore>(channel, timeout, RequestLimits(), address.place));
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<RemoteOracle> oracle, RemoteOracle::Open({address.place}, tls, timeout));
  parts.oracle = WithFront(std::move(oracle));
  parts.coordinator = std::make_shared<RemoteCoordinator>(channel, timeout);
  return parts;
}

absl::Status WithTlsHint(std::string_view address, const absl::Status& error) {
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  if (!absl::IsUnavailable(error) || !parsed.ok()) return error;
  const std::string text(error.message());
  const std::string_view cause = LikelyCause(text, !TlsOf(*parsed).empty());
  return cause.empty() ? error : absl::UnavailableError(StrCat(text, " (", cause, ")"));
}

absl::StatusOr<Parts> OpenBigtable(const Address& address, const ClusterOptions& options) {
  BigtableStoreOptions bigtable;
  PERCOLATOR_RETURN_IF_ERROR(ReadInstance(address.place, &bigtable));
  const std::vector<std::string> oracles = Targets(Setting(address, "oracle"));
  const std::vector<std::string> coordinators = Targets(Setting(address, "coord"));
  if (oracles.empty() || coordinators.empty()) {
    return absl::InvalidArgumentError(StrCat(
        "invalid address \"bigtable:", address.place,
        "\": it needs ?oracle=HOST:PORT&coord=HOST:PORT, the addresses of one or more `percolator oracle` and of "
        "one or more etcd, separated by commas"));
  }
  const TlsFiles tls = TlsOf(address);
  bigtable.app_profile = Setting(address, "app_profile");
  PERCOLATOR_RETURN_IF_ERROR(ReadEndpoint(address, &bigtable));
  bigtable.timeout = RequestTimeout(options);
  bigtable.limits = options.store.limits;
  Parts parts{.runtime = Borrow(Runtime::Real())};
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenBigtableStore(bigtable));
  parts.store = std::make_shared<BatchingStore>(std::move(store));
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<RemoteOracle> oracle, RemoteOracle::Open(oracles, tls, kOracleTimeout));
  parts.oracle = WithFront(std::move(oracle));
  EtcdOptions etcd;
  etcd.endpoints = coordinators;
  etcd.prefix = StrCat("percolator/", bigtable.project, "/", bigtable.instance, "/");
  etcd.tls = tls;
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator, OpenEtcdCoordinator(etcd, parts.oracle.get()));
  parts.coordinator = Keeping<Coordinator>(std::move(coordinator), parts.oracle);
  return parts;
}

}  // namespace percolator
