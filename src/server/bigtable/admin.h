// SPDX-License-Identifier: Apache-2.0

// Bigtable's administration of tables on a Store, and the requests with which clients identify the instance.
//
// CreateTable ignores initial splits, because the store divides its tables itself. Dropping a family or a range of rows deletes
// the cells row by row, and returns when all are deleted. There are no replicas, so tables are always consistent.

#ifndef PERCOLATOR_SERVER_BIGTABLE_ADMIN_H_
#define PERCOLATOR_SERVER_BIGTABLE_ADMIN_H_

#include "absl/status/status.h"
#include "src/server/bigtable/tables.h"
#include "src/wire/proto/bigtable_admin.pb.h"

namespace percolator {

// Thread-safe.
class BigtableAdmin {
 public:
  // REQUIRES: `tables` outlives this object.
  explicit BigtableAdmin(BigtableTables* tables) : tables_(tables) {}

  absl::Status CreateTable(const google::bigtable::admin::v2::CreateTableRequest& request,
                           google::bigtable::admin::v2::Table* response);
  absl::Status ListTables(const google::bigtable::admin::v2::ListTablesRequest& request,
                          google::bigtable::admin::v2::ListTablesResponse* response);
  absl::Status GetTable(const google::bigtable::admin::v2::GetTableRequest& request,
                        google::bigtable::admin::v2::Table* response);
  absl::Status DeleteTable(const google::bigtable::admin::v2::DeleteTableRequest& request,
                           google::protobuf::Empty* response);
  absl::Status ModifyColumnFamilies(const google::bigtable::admin::v2::ModifyColumnFamiliesRequest& request,
                                    google::bigtable::admin::v2::Table* response);
  absl::Status DropRowRange(const google::bigtable::admin::v2::DropRowRangeRequest& request,
                            google::protobuf::Empty* response);
  absl::Status GenerateConsistencyToken(const google::bigtable::admin::v2::GenerateConsistencyTokenRequest& request,
                                        google::bigtable::admin::v2::GenerateConsistencyTokenResponse* response);
  absl::Status CheckConsistency(const google::bigtable::admin::v2::CheckConsistencyRequest& request,
                                google::bigtable::admin::v2::CheckConsistencyResponse* response);

  static absl::Status GetInstance(const google::bigtable::admin::v2::GetInstanceRequest& request,
                                  google::bigtable::admin::v2::Instance* response);
  static absl::Status ListClusters(const google::bigtable::admin::v2::ListClustersRequest& request,
                                   google::bigtable::admin::v2::ListClustersResponse* response);

 private:
  BigtableTables* const tables_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_ADMIN_H_
