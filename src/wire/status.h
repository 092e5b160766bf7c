// SPDX-License-Identifier: Apache-2.0

// Converts errors between gRPC and Abseil. Codes have the same numbers in both, and texts are kept.
//
// The codes of a broken connection (CANCELLED, UNKNOWN, INTERNAL), and ABORTED, with which a server asks for a retry, become
// Unavailable: in Percolator, Aborted means a conflict and Unknown an unknown outcome of a commit.
//
// Some errors of a mutation guarantee that it was not applied (percolator/spi/store.h): NotFound, AlreadyExists,
// InvalidArgument, FailedPrecondition, OutOfRange and Unimplemented. gRPC itself never generates the first five, so they come
// from the server. gRPC generates UNIMPLEMENTED in two cases: if the server does not know the method, which is as certain;
// and, in the client, if a call ended with OK but without an answer. A proxy may have dropped that answer, so this case
// becomes Unavailable.

#ifndef PERCOLATOR_WIRE_STATUS_H_
#define PERCOLATOR_WIRE_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace percolator {

// Thread-safe.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace percolator

#endif  // PERCOLATOR_WIRE_STATUS_H_
