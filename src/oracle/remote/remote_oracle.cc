// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/remote/remote_oracle.h"

#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(2);

void RaiseTo(std::atomic<uint64_t>* largest, uint64_t value) {
  uint64_t seen = largest->load();
  while (seen < value && !largest->compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteOracle>> RemoteOracle::Open(const std::vector<std::string>& targets,
                                                                 const TlsFiles& tls, Duration timeout) {
  if (targets.empty()) return absl::InvalidArgumentError("cannot connect to an oracle: no address is given");
  std::vector<Target> opened;
  for (const std::string& target : targets) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(target, tls));
    opened.push_back({target, channel, v1::Oracle::NewStub(channel)});
  }
  return std::unique_ptr<RemoteOracle>(new RemoteOracle(std::move(opened), timeout));
}

RemoteOracle::RemoteOracle(std::vector<Target> targets, Duration timeout)
    : targets_(std::move(targets)), timeout_(timeout) {}

absl::StatusOr<Timestamp> RemoteOracle::GetTimestamps(uint32_t count) {
  const uint64_t before = largest_.load();
  v1::GetTimestampsRequest request;
  request.set_count(count);
  absl::Status status;
  const size_t begin = last_.load();
  for (size_t i = 0; i < targets_.size(); ++i) {
    const size_t which = (begin + i) % targets_.size();
    v1::GetTimestampsResponse response;
    status = Call(*targets_[which].stub, &v1::Oracle::Stub::GetTimestamps, timeout_, request, &response);
    if (status.ok()) {
      if (i > 0) last_.store(which);
      return Checked(targets_[which], Timestamp(response.first()), count, before);
    }
    if (absl::IsInvalidArgument(status)) return status;  // the other oracles would return the same
  }
  // Lets gRPC connect before the caller retries.
  WaitForConnection(*targets_[begin].channel, kPause);
  return status;
}

absl::StatusOr<Timestamp> RemoteOracle::Checked(const Target& from, Timestamp first, uint32_t count, uint64_t before) {
  if (first.value() <= before) {
    return absl::DataLossError(StrCat("the oracle at ", from.address, " went back: it issued ", first.value(),
                                      " after ", before, "; its bound was lost or replaced by an older one"));
  }
  RaiseTo(&largest_, first.value() + count - 1);
  return first;
}

}  // namespace percolator
