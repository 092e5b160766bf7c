// SPDX-License-Identifier: Apache-2.0

// A plain client of Bigtable's API for tests: each call blocks, and answers are text.
//
//     row    key{family:qualifier@timestamp=value#label ...}
//
// Families are sorted, because servers return them in any order; cells within a family keep their order.

#ifndef PERCOLATOR_TESTS_SERVER_BIGTABLE_TESTER_H_
#define PERCOLATOR_TESTS_SERVER_BIGTABLE_TESTER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"

namespace percolator {

inline constexpr char kTestInstance[] = "projects/p/instances/i";
std::string TestTable(std::string_view id);

class BigtableTester {
 public:
  explicit BigtableTester(const std::string& target);

  absl::Status CreateTable(std::string_view id, const std::vector<std::string>& families);
  // Changes of families, as a message in protobuf's text format.
  absl::StatusOr<google::bigtable::admin::v2::Table> ModifyFamilies(std::string_view id, const std::string& text);

  // Requests in protobuf's text format. The default table is "t".
  absl::Status Mutate(const std::string& text);
  absl::StatusOr<bool> CheckAndMutate(const std::string& text);
  absl::StatusOr<std::string> ReadModifyWrite(const std::string& text);
  absl::StatusOr<std::string> Read(const std::string& text);

  absl::Status Mutate(const google::bigtable::v2::MutateRowRequest& request);
  absl::StatusOr<std::vector<absl::Status>> MutateRows(const google::bigtable::v2::MutateRowsRequest& request);
  absl::StatusOr<bool> CheckAndMutate(const google::bigtable::v2::CheckAndMutateRowRequest& request);
  absl::StatusOr<std::string> ReadModifyWrite(const google::bigtable::v2::ReadModifyWriteRowRequest& request);
  absl::StatusOr<std::string> Read(const google::bigtable::v2::ReadRowsRequest& request);
  absl::StatusOr<std::vector<std::string>> Sample(std::string_view id);

  google::bigtable::v2::Bigtable::Stub& data() { return *data_; }
  google::bigtable::admin::v2::BigtableTableAdmin::Stub& admin() { return *admin_; }
  google::bigtable::admin::v2::BigtableInstanceAdmin::Stub& instance() { return *instance_; }

 private:
  std::unique_ptr<google::bigtable::v2::Bigtable::Stub> data_;
  std::unique_ptr<google::bigtable::admin::v2::BigtableTableAdmin::Stub> admin_;
  std::unique_ptr<google::bigtable::admin::v2::BigtableInstanceAdmin::Stub> instance_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_SERVER_BIGTABLE_TESTER_H_
