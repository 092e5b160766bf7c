// The oracle of a server: `percolator serve`, or one of several `percolator oracle` of which one leads.
//
// A server answers for at most 16,384 timestamps at once; more is kInvalidArgument.
// O5  is kept by the BatchingOracle in front, which Cluster::Open puts there: one request in flight per process.

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

  // Asks the one that answered last, then the others in turn, each once, and returns the first answer; else the last error.
  // An oracle that does not lead, or does not answer in time, is passed over. Timestamps of requests that were given up are
  // lost, which does no harm. kDataLoss: the answer is not above what was answered here before the request was made (O1), so
  // whoever keeps the bound has lost it. Nothing but refusing to go on keeps the data whole then.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

 private:
  struct Target {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::Oracle::Stub> stub;
  };

  RemoteOracle(std::vector<Target> targets, Duration timeout);
  // The answer to a request that was made when `before` was the largest known.
  absl::StatusOr<Timestamp> Checked(Timestamp first, uint32_t count, uint64_t before);

  const std::vector<Target> targets_;
  const Duration timeout_;
  std::atomic<size_t> last_{0};
  std::atomic<uint64_t> largest_{0};  // timestamp that was ever answered
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_REMOTE_REMOTE_ORACLE_H_
