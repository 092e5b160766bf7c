#include "src/rpc/server/oracle_service.h"

#include "src/base/strings.h"
#include "src/rpc/status.h"

namespace percolator {
namespace {

absl::StatusOr<Timestamp> Draw(Oracle* oracle, uint32_t count) {
  if (count == 0 || count > OracleService::kMostAtOnce) {
    return absl::InvalidArgumentError(
        StrCat("asked for ", count, " timestamps; 1 to ", OracleService::kMostAtOnce, " is possible in one request"));
  }
  return oracle->GetTimestamps(count);
}

}  // namespace

grpc::ServerUnaryReactor* OracleService::GetTimestamps(grpc::CallbackServerContext* context,
                                                       const v1::GetTimestampsRequest* request,
                                                       v1::GetTimestampsResponse* response) {
  const absl::StatusOr<Timestamp> first = Draw(oracle_, request->count());
  if (first.ok()) response->set_first(first->value());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(first.status()));
  return reactor;
}

}  // namespace percolator
