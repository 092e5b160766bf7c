// SPDX-License-Identifier: Apache-2.0

// The store of a server, `percolator serve`. Connection errors are Unavailable and DeadlineExceeded, which leave open
// whether a mutation was applied.
//
// A call is one request, or several in sequence if it or its answer is too large for one. After an error the rest is
// not sent, and has the same error. So mutations of one row stay in order, and the last timestamps that MutateThenDraw
// gets were drawn after all mutations of the call were applied (T6).
//
// A remote store can commit in one step, because the server holds all rows and the oracle: MutateTogether is one
// request, and the server draws the timestamp. In two phases, the commit timestamp comes with the answer to the locks:
// MutateThenDraw. So the cluster's oracle must be that of the same server.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_REMOTE_REMOTE_STORE_H_
#define PERCOLATOR_STORE_REMOTE_REMOTE_STORE_H_

#include <google/protobuf/repeated_field.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "src/wire/channel.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

// The limits of one request. A server accepts requests within them (ServerOptions::max_request_bytes).
struct RequestLimits {
  size_t entries = 10'000;
  // A request ends with the entry that reaches this. It is small enough even with the largest possible entry.
  size_t bytes = size_t{8} << 20;
  // A joint mutation cannot be divided: a larger one fails with InvalidArgument, like any that exceeds a limit of the
  // store.
  size_t joint_bytes = size_t{80} << 20;
  // Scans in flight; further scans wait for an answer. A page has up to 4 MiB, or one row, and the server has to refuse
  // answers for which the connection has no room (ServerOptions::max_unsent_bytes_per_connection).
  int scans = 8;
};

class RemoteStore : public Store {
 public:
  // `timeout` limits each request. `server` names the server in errors. REQUIRES: limits.entries and limits.scans >= 1.
  RemoteStore(std::shared_ptr<grpc::Channel> channel, Duration timeout, const RequestLimits& limits = {},
              std::string server = "the server");

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

  // Puts entries into a request, from `next` on, and moves `next` behind them.
  template <typename Entry, typename Message>
  void Fill(const std::vector<Entry>& entries, size_t* next,
            google::protobuf::RepeatedPtrField<Message>* request) const;

  // Calls `take` with each answer. Stops at an error.
  absl::Status SendMutate(const std::vector<RowMutation>& mutations, bool draw,
                          const std::function<void(const v1::MutateResponse&)>& take);

  // Records the safe point of an answer, before the caller gets the answer.
  void NoteSafePoint(uint64_t safe_point);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string server_;
  const std::unique_ptr<v1::Store::Stub> stub_;
  const Duration timeout_;
  const RequestLimits limits_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> safe_point_{0};  // the largest of all answers
  Mutex mutex_;
  CondVar scan_answered_;
  int scans_ ABSL_GUARDED_BY(mutex_) = 0;  // in flight
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_REMOTE_REMOTE_STORE_H_
