// The oracle on the wire.

#ifndef PERCOLATOR_SERVER_ORACLE_SERVICE_H_
#define PERCOLATOR_SERVER_ORACLE_SERVICE_H_

#include "percolator/spi/oracle.h"
#include "src/server/executor.h"
#include "src/server/requests.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

// Answers on gRPC's own thread, without a hop to another, which would double what a timestamp costs, if the oracle can answer
// from memory. If it can't (LocalOracle has to raise its bound, once in three seconds or three million timestamps), the
// executor does it: gRPC's few threads never wait for a disk.
class OracleService final : public LimitedService<v1::Oracle::CallbackService> {
 public:
  // What one request may ask for. Timestamps are microseconds: who draws many moves time ahead, and what is measured in
  // them, such as the lease of a lock, passes early. So nobody gets more than processes ask for whose threads share
  // requests (BatchingOracle).
  static constexpr uint32_t kMaxAtOnce = 16'384;
  static constexpr size_t kRequestBytes = 1 << 10;

  // Both must outlive this.
  OracleService(Oracle* oracle, Executor* executor) : oracle_(oracle), executor_(executor) {
    LimitUnary(0, kRequestBytes, executor->requests(), &OracleService::GetTimestamps);
  }

  grpc::ServerUnaryReactor* GetTimestamps(grpc::CallbackServerContext* context, const v1::GetTimestampsRequest* request,
                                          v1::GetTimestampsResponse* response) override;

 private:
  Oracle* const oracle_;
  Executor* const executor_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_ORACLE_SERVICE_H_
