// The oracle on the wire.

#ifndef PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_
#define PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_

#include "percolator/oracle.h"
#include "src/rpc/proto/percolator.grpc.pb.h"

namespace percolator {

// Answers on gRPC's own thread, without a hop to another, which would double what a timestamp costs. So the oracle must be one
// that answers from memory: never one that waits for others or for a network. What may wait for the disk there is
// LocalOracle, when it raises its bound: two syncs of one block, once in three seconds or three million timestamps, for which
// everybody who wants a timestamp has to wait anyway.
class OracleService final : public v1::Oracle::CallbackService {
 public:
  // What one request may ask for. Timestamps are microseconds: who draws many moves time ahead, and what is measured in
  // them, such as the lease of a lock, passes early. So nobody gets more than processes ask for whose threads share
  // requests (BatchingOracle).
  static constexpr uint32_t kMostAtOnce = 16'384;

  // It must outlive this.
  explicit OracleService(Oracle* oracle) : oracle_(oracle) {}

  grpc::ServerUnaryReactor* GetTimestamps(grpc::CallbackServerContext* context, const v1::GetTimestampsRequest* request,
                                          v1::GetTimestampsResponse* response) override;

 private:
  Oracle* const oracle_;
};

}  // namespace percolator

#endif  // PERCOLATOR_RPC_SERVER_ORACLE_SERVICE_H_
