// SPDX-License-Identifier: Apache-2.0

// The gRPC service percolator.v1.Oracle.

#ifndef PERCOLATOR_SERVER_ORACLE_SERVICE_H_
#define PERCOLATOR_SERVER_ORACLE_SERVICE_H_

#include "percolator/spi/oracle.h"
#include "src/server/executor.h"
#include "src/server/requests.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

// If the oracle can answer from memory, answers on gRPC's own thread: another thread would double the cost of a timestamp.
// Otherwise (LocalOracle has to raise its bound, once per three seconds or three million timestamps) the executor answers, so
// that gRPC's few threads never wait for a disk.
class OracleService final : public LimitedService<v1::Oracle::CallbackService> {
 public:
  // The maximum count of a request. Timestamps are microseconds: a client that draws many moves them ahead of the clock, and
  // leases measured in timestamps expire early. So the limit is the largest request of a BatchingOracle.
  static constexpr uint32_t kMaxAtOnce = 16'384;
  static constexpr size_t kRequestBytes = 1 << 10;

  // REQUIRES: both outlive this object.
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
