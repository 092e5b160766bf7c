// Connections to servers.

#ifndef PERCOLATOR_WIRE_CHANNEL_H_
#define PERCOLATOR_WIRE_CHANNEL_H_

#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/tls.h"
#include "src/wire/status.h"

namespace percolator {

// The contents of the files; empty for those that are not named. kInvalidArgument: one can't be read.
struct PemContents {
  std::string ca;
  std::string cert;
  std::string key;
};
absl::StatusOr<PemContents> ReadPemFiles(const TlsFiles& files);

// Whether what is sent to this host, without a port or brackets, stays on this machine.
bool IsLoopback(std::string_view host);
// HOST:PORT, with brackets around a host that has colons itself (IPv6).
std::string HostAndPort(const std::string& host, int port);

// A connection that is made when it is first used, and again, soon, whenever it breaks. Messages may have any size: what is
// too large is the server's to say. kInvalidArgument: a file of `tls` can't be read. With an empty TlsFiles it is plain
// text.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& target, const TlsFiles& tls);
// The same with other credentials.
std::shared_ptr<grpc::Channel> OpenChannelWith(const std::string& target,
                                               const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// So long from now, by a clock that nobody can set: a deadline as gRPC wants it.
gpr_timespec DeadlineIn(Duration timeout);
void SetTimeout(grpc::ClientContext* context, Duration timeout);

// Waits until there is a connection, for this long at most. Whoever tries again should wait with this, not sleep: gRPC makes
// connections only while some thread waits for it, and a call that fails at once does not.
bool WaitForConnection(grpc::Channel& channel, Duration timeout);

// Returns the status. Instead of the bare "Deadline Exceeded" of gRPC it says what was waited for (a name such as
// percolator.v1.ReadRequest), where, and how long, if that is known.
absl::Status WithReason(const absl::Status& status, std::string_view request, const grpc::ClientContext& context,
                        std::optional<Duration> timeout = std::nullopt);

// One request and its answer, which blocks. `method` is that of the generated stub:
//
//     Call(*stub, &v1::Oracle::Stub::GetTimestamps, timeout, request, &response)
//
// A server that can't be reached is kUnavailable at once.
template <typename Stub, typename Request, typename Response>
absl::Status Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  Duration timeout, const Request& request, Response* response) {
  grpc::ClientContext context;
  SetTimeout(&context, timeout);
  return WithReason(FromGrpc((stub.*method)(&context, request, response)), request.GetTypeName(), context, timeout);
}

}  // namespace percolator

#endif  // PERCOLATOR_WIRE_CHANNEL_H_
