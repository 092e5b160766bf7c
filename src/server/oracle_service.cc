// SPDX-License-Identifier: Apache-2.0

#include "src/server/oracle_service.h"

#include <optional>

#include "src/base/strings.h"
#include "src/server/calls.h"
#include "src/wire/status.h"

namespace percolator {
namespace {

absl::Status CheckDrawn(uint32_t count) {
  if (count > 0 && count <= OracleService::kMaxAtOnce) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("cannot issue ", count, " timestamps: a request is for 1 to ", OracleService::kMaxAtOnce));
}

absl::Status SetFirst(const absl::StatusOr<Timestamp>& first, v1::GetTimestampsResponse* response) {
  if (first.ok()) response->set_first(first->value());
  return first.status();
}

}  // namespace

grpc::ServerUnaryReactor* OracleService::GetTimestamps(grpc::CallbackServerContext* context,
                                                       const v1::GetTimestampsRequest* request,
                                                       v1::GetTimestampsResponse* response) {
  const uint32_t count = request->count();
  if (absl::Status s = CheckDrawn(count); !s.ok()) return AnswerUnary(context, s);
  const std::optional<absl::StatusOr<Timestamp>> first = oracle_->TryGetTimestamps(count);
  if (first.has_value()) return AnswerUnary(context, SetFirst(*first, response));
  return RunUnary(context, executor_, response,
                  [=, this] { return SetFirst(oracle_->GetTimestamps(count), response); });
}

}  // namespace percolator
