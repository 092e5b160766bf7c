#include "src/rpc/server/oracle_service.h"

#include "src/rpc/status.h"

namespace percolator {

grpc::ServerUnaryReactor* OracleService::GetTimestamps(grpc::CallbackServerContext* context,
                                                       const v1::GetTimestampsRequest* request,
                                                       v1::GetTimestampsResponse* response) {
  const absl::StatusOr<Timestamp> first = oracle_->GetTimestamps(request->count());
  if (first.ok()) response->set_first(first->value());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(first.status()));
  return reactor;
}

}  // namespace percolator
