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

// An oracle that does not answer for this long is passed over for the next.
constexpr Duration kOracleTimeout = std::chrono::seconds(1);

// Of one request. It is repeated for as long as the call may take, where it may be.
Duration RequestTimeout(const ClusterOptions& options) {
  return std::min<Duration>(options.call_timeout, std::chrono::seconds(10));
}

// The parts of "a,b,c".
std::vector<std::string> Targets(std::string_view text) {
  std::vector<std::string> targets;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) targets.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return targets;
}

// projects/P/instances/I
absl::Status ReadInstance(std::string_view place, BigtableStoreOptions* bigtable) {
  std::string_view rest = place;
  const bool begins = ConsumePrefix(&rest, "projects/");
  const size_t middle = rest.find("/instances/");
  if (begins && middle != std::string_view::npos) {
    bigtable->project = rest.substr(0, middle);
    bigtable->instance = rest.substr(middle + std::string_view("/instances/").size());
  }
  if (bigtable->project.empty() || bigtable->instance.empty() || bigtable->instance.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(StrCat("\"", place, "\" is not projects/P/instances/I"));
  }
  return absl::OkStatus();
}

// Whether what is sent there stays on this machine.
bool IsNear(std::string_view target) {
  if (target.starts_with("unix:")) return true;
  std::string_view host = target.substr(0, target.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IsLoopback(host);
}

// https://HOST:PORT, http://HOST:PORT, or HOST:PORT, which is the same as the latter on this machine and refused elsewhere: as a
// server, a client speaks plain text beyond its machine only if it is told to.
absl::Status ReadEndpoint(const Address& address, BigtableStoreOptions* bigtable) {
  const std::string setting = Setting(address, "endpoint");
  std::string_view endpoint = setting;
  if (ConsumePrefix(&endpoint, "https://")) {
    bigtable->tls = TlsOf(address);
    if (bigtable->tls.ca.empty()) {
      return absl::InvalidArgumentError("endpoint=https://HOST:PORT needs ca=FILE, the authority of its certificate");
    }
  } else if (!ConsumePrefix(&endpoint, "http://") && !endpoint.empty() && !IsNear(endpoint)) {
    return absl::InvalidArgumentError(
        StrCat("what is sent to ", endpoint,
               " would be plain text that others can hear: it is endpoint=https://HOST:PORT with ca=FILE, or, if that "
               "is wanted, endpoint=http://HOST:PORT"));
  }
  bigtable->endpoint = endpoint;
  return absl::OkStatus();
}

// What may be the matter with a connection that was refused with that text; empty: the text says it.
std::string_view Guess(std::string_view text, bool tls) {
  const auto says = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (says("wrong version number")) return "the server speaks plain text: it is reached without ?ca=FILE";
  if (says("certificate verify failed")) {
    return "the server's certificate is not of the authority in ?ca=FILE, or no longer valid";
  }
  if (!says("Socket closed") && !says("reset by peer") && !says("Broken pipe")) return {};
  if (tls) return "the server may want another certificate of the client than that of ?cert=FILE&key=FILE, or want one";
  return "the server may speak TLS: then it is reached with ?ca=FILE";
}

// A front, through which many threads share requests, and what is far away behind it.
template <typename Front, typename Part>
std::shared_ptr<Part> WithFront(std::unique_ptr<Part> far) {
  struct Both {
    explicit Both(std::unique_ptr<Part> part) : far(std::move(part)), front(far.get()) {}
    const std::unique_ptr<Part> far;
    Front front;
  };
  const auto both = std::make_shared<Both>(std::move(far));
  return std::shared_ptr<Part>(both, &both->front);
}

}  // namespace

absl::StatusOr<Parts> OpenServer(const Address& address, const ClusterOptions& options) {
  const TlsFiles tls = TlsOf(address);
  const Duration timeout = RequestTimeout(options);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(address.place, tls));
  Parts parts{.runtime = Borrow(Runtime::Real())};
  parts.store =
      WithFront<BatchingStore, Store>(std::make_unique<RemoteStore>(channel, timeout, RequestLimits(), address.place));
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<RemoteOracle> oracle, RemoteOracle::Open({address.place}, tls, timeout));
  parts.oracle = WithFront<BatchingOracle, Oracle>(std::move(oracle));
  parts.coordinator = std::make_shared<RemoteCoordinator>(channel, timeout);
  return parts;
}

absl::Status CantReach(std::string_view address, const absl::Status& why) {
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  if (!absl::IsUnavailable(why) || !parsed.ok()) return why;
  const std::string text(why.message());
  const std::string_view guess = Guess(text, !TlsOf(*parsed).empty());
  return guess.empty() ? why : absl::UnavailableError(StrCat(text, " (", guess, ")"));
}

absl::StatusOr<Parts> OpenBigtable(const Address& address, const ClusterOptions& options) {
  BigtableStoreOptions bigtable;
  PERCOLATOR_RETURN_IF_ERROR(ReadInstance(address.place, &bigtable));
  const std::vector<std::string> oracles = Targets(Setting(address, "oracle"));
  const std::vector<std::string> coordinators = Targets(Setting(address, "coord"));
  if (oracles.empty() || coordinators.empty()) {
    return absl::InvalidArgumentError(
        "an address in Bigtable needs ?oracle=HOST:PORT&coord=HOST:PORT: one or more `percolator oracle`, with commas "
        "between them, and one or more etcd");
  }
  const TlsFiles tls = TlsOf(address);
  bigtable.app_profile = Setting(address, "app_profile");
  PERCOLATOR_RETURN_IF_ERROR(ReadEndpoint(address, &bigtable));
  bigtable.timeout = RequestTimeout(options);
  bigtable.limits = options.store.limits;
  Parts parts{.runtime = Borrow(Runtime::Real())};
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenBigtableStore(bigtable));
  parts.store = WithFront<BatchingStore, Store>(std::move(store));
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<RemoteOracle> oracle, RemoteOracle::Open(oracles, tls, kOracleTimeout));
  parts.oracle = WithFront<BatchingOracle, Oracle>(std::move(oracle));
  EtcdOptions etcd;
  etcd.endpoints = coordinators;
  etcd.prefix = StrCat("percolator/", bigtable.project, "/", bigtable.instance, "/");
  etcd.tls = tls;
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator, OpenEtcdCoordinator(etcd, parts.oracle.get()));
  parts.coordinator = Keeping<Coordinator>(std::move(coordinator), parts.oracle);
  return parts;
}

}  // namespace percolator
