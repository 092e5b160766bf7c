// SPDX-License-Identifier: Apache-2.0

// What gRPC assumes of a connection whose client has not acknowledged the server's settings.
//
// HTTP/2 lets a client go by the protocol's own defaults until it has acknowledged the settings of the server. gRPC 1.51
// applies its defaults until then, 2^32 calls on a connection and 16 MiB of headers for each, and has no option for them. A
// client that never acknowledges could make it take any amount of memory. grpc_settings.cc defines gRPC's table of defaults
// anew, with small limits, and the dynamic linker gives that one to gRPC (docs/decisions/0021-grpc-defaults.md).

#ifndef PERCOLATOR_SERVER_GRPC_SETTINGS_H_
#define PERCOLATOR_SERVER_GRPC_SETTINGS_H_

namespace percolator {

// Returns whether gRPC uses the table with small limits, and its own table has what this one assumes.
bool HasSmallGrpcDefaults();

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_GRPC_SETTINGS_H_
