// HOST:PORT, as addresses and options have it.

#ifndef PERCOLATOR_BASE_HOST_PORT_H_
#define PERCOLATOR_BASE_HOST_PORT_H_

#include <optional>
#include <string>
#include <string_view>

namespace percolator {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;
};

// Returns nothing if `text` is not HOST:PORT with a decimal port from 0 to 65535.
std::optional<HostPort> ParseHostPort(std::string_view text);

// Whether a client can connect to it: HOST:PORT with a port from 1 on, or the unix:PATH of gRPC.
bool IsEndpoint(std::string_view text);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_HOST_PORT_H_
