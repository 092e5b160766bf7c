// Errors on the wire. The codes of gRPC and of Abseil are the same; texts are kept.
//
// What a connection that breaks says (CANCELLED, UNKNOWN, INTERNAL), and ABORTED of a server that is asked to try again, is
// kUnavailable here: with us, kAborted is a conflict and kUnknown the outcome of a commit.
//
// For a mutation it matters which errors say that it was not applied (percolator/store.h): kNotFound, kAlreadyExists,
// kInvalidArgument, kFailedPrecondition and kOutOfRange. gRPC itself never makes one of these, so whoever receives one knows
// that it is the server's word.

#ifndef PERCOLATOR_RPC_STATUS_H_
#define PERCOLATOR_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace percolator {

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace percolator

#endif  // PERCOLATOR_RPC_STATUS_H_
