// SPDX-License-Identifier: Apache-2.0

#include "src/wire/status.h"

#include <string>

namespace percolator {
namespace {

// The text in grpcpp/impl/client_unary_call.h.
constexpr char kNoAnswer[] = "No message returned for unary request";

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::ABORTED:
      return absl::UnavailableError(status.error_message());
    case grpc::StatusCode::UNIMPLEMENTED:
      if (status.error_message() == kNoAnswer) return absl::UnavailableError(status.error_message());
      break;
    default:
      break;
  }
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace percolator
