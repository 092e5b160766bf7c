// SPDX-License-Identifier: Apache-2.0

// A client of the oracle in `percolator serve`, or of several `percolator oracle`, one of which leads.
//
// Returns InvalidArgument for more than 16,384 timestamps at once, the limit of a server.
// O5  The BatchingOracle in front, which Cluster::Open adds, has one request in flight per process.

#ifndef PERCOLATOR_ORACLE_REMOTE_REMOTE_ORACLE_H_
#define PERCOLATOR_ORACLE_REMOTE_REMOTE_ORACLE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/oracle.h"
#include "percolator/tls.h"
#include "src/wire/channel.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

class RemoteOracle final : public Oracle {
 public:
  static absl::StatusOr<std::unique_ptr<RemoteOracle>> Open(const std::vector<std::string>& targets,
                                                            const TlsFiles& tls,
                                                            Duration timeout = std::chrono::seconds(1));

  // Asks the oracle that answered last, then each of the others once, until one that leads answers in time. Otherwise returns
  // the last error. Timestamps of abandoned requests are lost, which does no harm. Returns DataLoss if the timestamp is not
  // above those that this object returned before the request (O1): the oracle has lost its bound, and only refusing its
  // timestamps protects the data. Thread-safe.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

 private:
  struct Target {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::Oracle::Stub> stub;
  };

  RemoteOracle(std::vector<Target> targets, Duration timeout);
  // Checks the answer to a request that was sent when `before` was the largest known timestamp.
  absl::StatusOr<Timestamp> Checked(const Target& from, Timestamp first, uint32_t count, uint64_t before);

  const std::vector<Target> targets_;
  const Duration timeout_;
  std::atomic<size_t> last_{0};
  std::atomic<uint64_t> largest_{0};  // the largest timestamp that was returned
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_REMOTE_REMOTE_ORACLE_H_
