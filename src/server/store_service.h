// SPDX-License-Identifier: Apache-2.0

// The gRPC service percolator.v1.Store.

#ifndef PERCOLATOR_SERVER_STORE_SERVICE_H_
#define PERCOLATOR_SERVER_STORE_SERVICE_H_

#include <cstddef>

#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "src/server/executor.h"
#include "src/server/requests.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

// Each request is one call of the store on the executor. MutateTogether, and Mutate with `draw`, draw timestamps from `oracle`,
// so clients must use the same oracle. A safe point must be below a timestamp of that oracle.
class StoreService final : public LimitedService<v1::Store::CallbackService> {
 public:
  // The maximum number of rows that a request reads or changes. Without this limit a small message could name very many empty
  // rows.
  static constexpr int kMaxRows = 100'000;
  // An answer to Read ends with the row that reaches this size; the client requests the rest. So the server holds at most this
  // size and one row.
  static constexpr size_t kReadBytes = size_t{4} << 20;

  // REQUIRES: all outlive this object.
  StoreService(Store* store, Oracle* oracle, Executor* executor);

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Read(Context* context, const v1::ReadRequest* request, v1::ReadResponse* response) override;
  Reactor* Scan(Context* context, const v1::ScanRequest* request, v1::ScanResponse* response) override;
  Reactor* Mutate(Context* context, const v1::MutateRequest* request, v1::MutateResponse* response) override;
  Reactor* MutateTogether(Context* context, const v1::MutateTogetherRequest* request,
                          v1::MutateTogetherResponse* response) override;
  Reactor* RaiseSafePoint(Context* context, const v1::RaiseSafePointRequest* request,
                          v1::RaiseSafePointResponse* response) override;
  Reactor* GetSafePoint(Context* context, const v1::GetSafePointRequest* request,
                        v1::GetSafePointResponse* response) override;
  Reactor* SampleRowKeys(Context* context, const v1::SampleRowKeysRequest* request,
                         v1::SampleRowKeysResponse* response) override;
  Reactor* CreateTable(Context* context, const v1::CreateTableRequest* request,
                       v1::CreateTableResponse* response) override;
  Reactor* DropTable(Context* context, const v1::DropTableRequest* request, v1::DropTableResponse* response) override;
  Reactor* ListTables(Context* context, const v1::ListTablesRequest* request,
                      v1::ListTablesResponse* response) override;

 private:
  Store* const store_;
  Oracle* const oracle_;
  Executor* const executor_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_STORE_SERVICE_H_
