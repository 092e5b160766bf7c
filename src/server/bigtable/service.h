// SPDX-License-Identifier: Apache-2.0

// Bigtable's API, version 2, on a Store, for Google's clients.
//
//   Bigtable               ReadRows, SampleRowKeys, MutateRow, MutateRows, CheckAndMutateRow, ReadModifyWriteRow, PingAndWarm
//   BigtableTableAdmin     CreateTable, ListTables, GetTable, DeleteTable, ModifyColumnFamilies, DropRowRange,
//                          GenerateConsistencyToken, CheckConsistency
//   BigtableInstanceAdmin  GetInstance, ListClusters
//
// The details are in tables.h (names, the two kinds of tables, storage), read.h, filter.h, mutate.h and admin.h. Other methods
// return Unimplemented.
//
// LIMITS     As in Bigtable: 4 KiB for a row key; 16 KiB for a qualifier (in a foreign table less the name of the family); 100000
//            mutations, entries, or row keys and ranges in a request; 20480 bytes and a depth of 20 for a filter. The store
//            limits values and the bytes of a change.
// IDENTITY   App profiles and credentials in requests are ignored. The server decides which clients may connect.

#ifndef PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_
#define PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "percolator/spi/store.h"
#include "src/server/executor.h"

namespace percolator {

// Returns the services Bigtable, BigtableTableAdmin and BigtableInstanceAdmin. Clients may write tables of transactions only with
// `write_transactional`. REQUIRES: both outlive the services; `store` has one set of services at a time.
std::vector<std::unique_ptr<grpc::Service>> NewBigtableServices(Store* store, Executor* executor,
                                                                bool write_transactional = true);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_SERVICE_H_
