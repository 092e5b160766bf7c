// Errors on the wire. The codes of gRPC and of Abseil are the same; texts are kept.
//
// What a connection that breaks says (CANCELLED, UNKNOWN, INTERNAL), and ABORTED of a server that is asked to try again, is
// kUnavailable here: with us, kAborted is a conflict and kUnknown the outcome of a commit.
//
// For a mutation it matters which errors say that it was not applied (percolator/spi/store.h): kNotFound, kAlreadyExists,
// kInvalidArgument, kFailedPrecondition, kOutOfRange and kUnimplemented. gRPC itself never makes one of the first five, so
// whoever receives one knows that it is the server's word. UNIMPLEMENTED it does make: of a server that does not know the
// method, which is as certain; and, on this side, of a call that ended well but without an answer, which something between
// us and the server may have kept. That one is kUnavailable.

#ifndef PERCOLATOR_WIRE_STATUS_H_
#define PERCOLATOR_WIRE_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace percolator {

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace percolator

#endif  // PERCOLATOR_WIRE_STATUS_H_
