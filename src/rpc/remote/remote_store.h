// The store of a server: `percolator serve`. Each call is one request; errors of the way there are kUnavailable and
// kDeadlineExceeded, which leave open whether a mutation was applied.
//
// A remote store can commit in one step, because the server holds all rows and the oracle: MutateTogether is one request,
// and the server draws the timestamp. In two phases the commit timestamp comes with the answer to the locks: MutateThenDraw. So
// the cluster's oracle must be that of the same server.

#ifndef PERCOLATOR_RPC_REMOTE_REMOTE_STORE_H_
#define PERCOLATOR_RPC_REMOTE_REMOTE_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/store.h"
#include "src/rpc/channel.h"
#include "src/rpc/proto/percolator.grpc.pb.h"

namespace percolator {

class RemoteStore : public Store {
 public:
  // `timeout` is that of one request.
  RemoteStore(std::shared_ptr<grpc::Channel> channel, Duration timeout);

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override;
  bool CanMutateTogether() const override { return true; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<Timestamp> SafePointOfReads() override { return Timestamp(safe_point_.load()); }
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;
  absl::Status Close() override;

 private:
  template <typename Request, typename Response>
  absl::Status Send(grpc::Status (v1::Store::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response);

  absl::Status SendMutate(const std::vector<RowMutation>& mutations, bool draw, v1::MutateResponse* response);

  // Notes what came with an answer, before the answer is given to the caller.
  void NoteSafePoint(uint64_t safe_point);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Store::Stub> stub_;
  const Duration timeout_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> safe_point_{0};  // the largest that came with an answer
};

}  // namespace percolator

#endif  // PERCOLATOR_RPC_REMOTE_REMOTE_STORE_H_
