// Bigtable's API, version 2, on a Store: what Google's clients speak.
//
//   Bigtable               ReadRows, SampleRowKeys, MutateRow, MutateRows, CheckAndMutateRow, ReadModifyWriteRow, PingAndWarm
//   BigtableTableAdmin     CreateTable, ListTables, GetTable, DeleteTable, ModifyColumnFamilies, DropRowRange,
//                          GenerateConsistencyToken, CheckConsistency
//   BigtableInstanceAdmin  GetInstance, ListClusters
//
// The manual is in the headers beside this one: tables.h (names, the two kinds of tables, how they are kept),
// read.h and filter.h, mutate.h, admin.h. Everything else of the API is kUnimplemented.
//
// LIMITS     As Bigtable's: row key 4 KiB, qualifier 16 KiB (in a foreign table less the family's name), 100000 mutations or
//            entries in a request, or row keys and ranges, filter 20480 bytes and 20 deep. Values and the bytes of one change are limited by the store.
// APP PROFILES are ignored, and so is whose request it is: who may connect is the server's matter.

#ifndef PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_
#define PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "percolator/spi/store.h"
#include "src/server/executor.h"

namespace percolator {

// The services Bigtable, BigtableTableAdmin and BigtableInstanceAdmin. Both must outlive them. A store may have them once at
// a time.
std::vector<std::unique_ptr<grpc::Service>> NewBigtableServices(Store* store, Executor* executor,
                                                                bool write_transactional = true);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_
