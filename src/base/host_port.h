// SPDX-License-Identifier: Apache-2.0

// HOST:PORT in addresses and options.

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

// Returns nullopt if `text` is not HOST:PORT with a decimal port from 0 to 65535.
std::optional<HostPort> ParseHostPort(std::string_view text);

// Returns true if a client can connect to `text`: HOST:PORT with a port of at least 1, or the unix:PATH of gRPC.
bool IsEndpoint(std::string_view text);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_HOST_PORT_H_
