// Bigtable's administration of tables and, as far as clients ask for it, of the instance, on a Store.
//
// CreateTable's initial splits are taken and ignored: a store divides its tables as it likes. Dropping a family or a range of
// rows removes its cells one row after the other, and returns when they are gone. There are no replicas, so everything is
// always consistent.

#ifndef PERCOLATOR_SERVER_BIGTABLE_ADMIN_H_
#define PERCOLATOR_SERVER_BIGTABLE_ADMIN_H_

#include "absl/status/status.h"
#include "src/server/bigtable/tables.h"
#include "src/wire/proto/bigtable_admin.pb.h"

namespace percolator {

class BigtableAdmin {
 public:
  // It must outlive this.
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
