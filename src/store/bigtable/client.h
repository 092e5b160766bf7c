// BigtableClient: Bigtable's requests, each with its deadline, routing header and app profile, repeated where that does no
// harm, and errors in the words of percolator/spi/store.h.
//
// Tables are named here by their identifiers in the instance. Nothing is validated: what comes here is right.

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

// What gRPC or a server says, as the Store says it. Of the codes that promise that a mutation was not applied, none is made
// of another; kUnknown and kAborted, which mean something else to transactions, do not come out (src/wire/status.h).
absl::Status StoreStatusOf(const grpc::Status& status);

class BigtableClient {
 public:
  // kFailedPrecondition: the machine has no credentials for Cloud Bigtable. kInvalidArgument: no project or instance, or
  // certificates that can't be read.
  static absl::StatusOr<std::unique_ptr<BigtableClient>> Open(const BigtableStoreOptions& options);

  // The cells of rows, as from CellsOf, by key. Rows without any are not there. REQUIRES: keys ascend and are distinct.
  using Rows = std::map<std::string, std::vector<Cell>>;
  absl::StatusOr<Rows> Read(const std::string& table, std::vector<std::string> keys,
                            const google::bigtable::v2::RowFilter& filter);

  // A page of the rows that `scan` is about, with all cells that the filter lets pass; the selectors of `scan` are not
  // looked at. The row that makes the page `bytes` or more ends it. kUnimplemented: the server does not support reverse
  // scans. REQUIRES: the range is not empty.
  absl::StatusOr<ScanPage> Scan(const std::string& table, const ScanRequest& scan,
                                const google::bigtable::v2::RowFilter& filter, size_t bytes);

  // Applies mutations without condition. REQUIRES: each has an effect; no two are of the same row.
  std::vector<absl::Status> Mutate(const std::string& table, const std::vector<const RowMutation*>& mutations);

  // Applies a mutation if its condition holds. REQUIRES: the predicate is one by a filter; the mutation has an effect.
  absl::StatusOr<MutateResult> MutateIf(const std::string& table, const RowMutation& mutation,
                                        const Predicate& predicate);

  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& table);

  // With the families of this store. kAlreadyExists: there is a table with that identifier.
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
  // Before a request is sent: counts it, and tells the server whom it is for.
  void PrepareData(Rpc rpc, const std::string& table, const Attempts& attempts, grpc::ClientContext* context);
  void PrepareAdmin(std::string_view field, std::string_view resource, const Attempts& attempts,
                    grpc::ClientContext* context);

  // Reads a stream of ReadRows with a new parser, until `on_row` says false, which is no error.
  absl::Status Stream(const google::bigtable::v2::ReadRowsRequest& request, const std::string& table,
                      const Attempts& attempts, const std::function<bool(std::string key, std::vector<Cell>)>& on_row,
                      RowParser* parser);
  // Sends those mutations whose status is not final.
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
