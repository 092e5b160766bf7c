// SPDX-License-Identifier: Apache-2.0

// BigtableClient: sends Bigtable's requests, each with its deadline, routing header and app profile; repeats those that
// are safe to repeat; and returns errors as percolator/spi/store.h defines them.
//
// Tables are named by their identifiers in the instance. Nothing is validated: callers do that.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_BIGTABLE_CLIENT_H_
#define PERCOLATOR_STORE_BIGTABLE_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/store.h"
#include "src/store/bigtable/bigtable_store.h"
#include "src/store/bigtable/filters.h"
#include "src/store/bigtable/row_parser.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"

namespace percolator {

// Translates a status of gRPC or a server into one of Store. No other code becomes one that promises that a mutation was
// not applied. It never returns Unknown or Aborted, which mean something else to transactions (src/wire/status.h).
absl::Status StoreStatusOf(const grpc::Status& status);

class BigtableClient {
 public:
  // Returns FailedPrecondition if the machine has no credentials for Cloud Bigtable. Returns InvalidArgument if project
  // or instance is missing, or a certificate cannot be read.
  static absl::StatusOr<std::unique_ptr<BigtableClient>> Open(const BigtableStoreOptions& options);

  // The cells of rows, as CellsOf returns them, by key, without empty rows. REQUIRES of Read: keys ascend and are
  // distinct.
  using Rows = std::map<std::string, std::vector<Cell>>;
  absl::StatusOr<Rows> Read(const std::string& table, std::vector<std::string> keys,
                            const google::bigtable::v2::RowFilter& filter);

  // Returns a page of the rows of `scan`, with all cells that the filter passes; it ignores the selectors of `scan`.
  // The page ends with the row that makes it `bytes` or larger. Returns Unimplemented if the server does not support
  // reverse scans. REQUIRES: the range is not empty.
  absl::StatusOr<ScanPage> Scan(const std::string& table, const ScanRequest& scan,
                                const google::bigtable::v2::RowFilter& filter, size_t bytes);

  // Applies mutations without conditions. REQUIRES: each has an effect; no two are of the same row.
  std::vector<absl::Status> Mutate(const std::string& table, const std::vector<const RowMutation*>& mutations);

  // Applies a mutation if its condition holds. REQUIRES: the predicate has a filter; the mutation has an effect.
  absl::StatusOr<MutateResult> MutateIf(const std::string& table, const RowMutation& mutation,
                                        const Predicate& predicate);

  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& table);

  // Creates it with the families of this store. Returns AlreadyExists if there is a table with that identifier.
  absl::Status CreateTable(const std::string& table);
  absl::Status DeleteTable(const std::string& table);

  BigtableRpcs rpcs() const;

 private:
  using DataStub = google::bigtable::v2::Bigtable::Stub;
  using AdminStub = google::bigtable::admin::v2::BigtableTableAdmin::Stub;

  enum class Rpc : uint8_t { kReadRows, kMutateRow, kMutateRows, kCheckAndMutateRow, kSampleRowKeys, kAdmin, kCount };

  // One call with its repetitions.
  class Attempts;

  BigtableClient(const BigtableStoreOptions& options, std::shared_ptr<grpc::Channel> data,
                 std::shared_ptr<grpc::Channel> admin);

  std::string TableName(const std::string& table) const;
  // Called before a request is sent: counts it, and sets its deadline and routing header.
  void PrepareData(Rpc rpc, const std::string& table, const Attempts& attempts, grpc::ClientContext* context);
  void PrepareAdmin(std::string_view field, std::string_view resource, const Attempts& attempts,
                    grpc::ClientContext* context);

  // Reads a stream of ReadRows with a new parser, until it ends or `on_row` returns false, which is not an error.
  absl::Status Stream(const google::bigtable::v2::ReadRowsRequest& request, const std::string& table,
                      const Attempts& attempts, const std::function<bool(std::string key, std::vector<Cell>)>& on_row,
                      RowParser* parser);
  // Sends the mutations that `which` names.
  absl::Status MutateOne(const std::string& table, const RowMutation& mutation);
  void MutateMany(const std::string& table, const std::vector<const RowMutation*>& mutations,
                  const std::vector<size_t>& which, const Attempts& attempts, std::vector<absl::Status>* results);

  const std::string instance_name_;
  const std::string app_profile_;
  const Duration timeout_;
  const std::shared_ptr<grpc::Channel> data_channel_;
  const std::shared_ptr<grpc::Channel> admin_channel_;
  const std::unique_ptr<DataStub> data_;
  const std::unique_ptr<AdminStub> admin_;
  std::atomic<uint64_t> sent_[static_cast<int>(Rpc::kCount)] = {};
  std::atomic<uint64_t> repeated_{0};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_CLIENT_H_
