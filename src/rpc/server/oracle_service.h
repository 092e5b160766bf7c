// The oracle on the wire.

#ifndef PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_
#define PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_

#include "percolator/oracle.h"
#include "src/rpc/proto/percolator.grpc.pb.h"

namespace percolator {

// Answers at once, on gRPC's own thread: the oracle must not be one that waits for others.
class OracleService final : public v1::Oracle::CallbackService {
 public:
  // It must outlive this.
  explicit OracleService(Oracle* oracle) : oracle_(oracle) {}

  grpc::ServerUnaryReactor* GetTimestamps(grpc::CallbackServerContext* context, const v1::GetTimestampsRequest* request,
                                          v1::GetTimestampsResponse* response) override;

 private:
  Oracle* const oracle_;
};

}  // namespace percolator

#endif  // PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_
