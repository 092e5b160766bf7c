// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "percolator/status_macros.h"
#include "src/server/bigtable/admin.h"
#include "src/server/bigtable/mutate.h"
#include "src/server/bigtable/read.h"
#include "src/server/bigtable/tables.h"
#include "src/server/calls.h"
#include "src/server/requests.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"

namespace percolator {
namespace {

namespace admin = google::bigtable::admin::v2;
namespace bt = google::bigtable::v2;

using Context = grpc::CallbackServerContext;

// The limit of requests with a schema or the initial splits of a table.
constexpr size_t kSchemaRequestBytes = size_t{1} << 20;

// Shared by the three services.
struct Parts {
  Parts(Store* on, Executor* by, bool write_transactional)
      : store(on),
        executor(by),
        tables(on, write_transactional),
        mutator(on, &tables, by->requests()),
        administrator(&tables) {}

  Store* const store;
  Executor* const executor;
  BigtableTables tables;
  BigtableMutator mutator;
  BigtableAdmin administrator;
};

class DataService final : public LimitedService<bt::Bigtable::CallbackService> {
 public:
  explicit DataService(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {
    const size_t large = parts_->executor->request_bytes();
    RequestMemory* const memory = parts_->executor->requests();
    LimitStream(0, large, memory, &DataService::ReadRows);
    LimitStream(1, kSmallRequestBytes, memory, &DataService::SampleRowKeys);
    LimitUnary(2, large, memory, &DataService::MutateRow);
    LimitStream(3, large, memory, &DataService::MutateRows);
    LimitUnary(4, large, memory, &DataService::CheckAndMutateRow);
    LimitUnary(5, kSmallRequestBytes, memory, &DataService::PingAndWarm);
    LimitUnary(6, large, memory, &DataService::ReadModifyWriteRow);
  }

  grpc::ServerWriteReactor<bt::ReadRowsResponse>* ReadRows(Context* context,
                                                           const bt::ReadRowsRequest* request) override {
    using Stream = PagedStream<bt::ReadRowsResponse>;
    return Stream::Start(
        context, parts_->executor,
        [this, context, request, reader = std::shared_ptr<RowReader>()]() mutable -> absl::StatusOr<Stream::Page> {
          if (reader == nullptr) {
            PERCOLATOR_ASSIGN_OR_RETURN(
                auto opened, RowReader::Open(parts_->store, &parts_->tables, *request, parts_->executor->requests()));
            reader = std::move(opened);
          }
          RequestMemory::Share share;
          PERCOLATOR_RETURN_IF_ERROR(parts_->executor->requests()->TakeForSelectors(reader->selectors(), &share));
          Stream::Page page;
          if (!reader->AtEnd()) {
            PERCOLATOR_ASSIGN_OR_RETURN(auto responses, reader->Next([context] { return context->IsCancelled(); }));
            page.responses = std::move(responses);
          }
          page.last = reader->AtEnd();
          return page;
        });
  }

  grpc::ServerWriteReactor<bt::SampleRowKeysResponse>* SampleRowKeys(Context* context,
                                                                     const bt::SampleRowKeysRequest* request) override {
    return PagedStream<bt::SampleRowKeysResponse>::Start(context, parts_->executor,
                                                         [this, request] { return Sample(*request); });
  }

  grpc::ServerWriteReactor<bt::MutateRowsResponse>* MutateRows(Context* context,
                                                               const bt::MutateRowsRequest* request) override {
    using Stream = PagedStream<bt::MutateRowsResponse>;
    return Stream::Start(context, parts_->executor, [this, request]() -> absl::StatusOr<Stream::Page> {
      PERCOLATOR_ASSIGN_OR_RETURN(bt::MutateRowsResponse response, parts_->mutator.MutateRows(*request));
      return Stream::Page{{std::move(response)}, true};
    });
  }

  grpc::ServerUnaryReactor* MutateRow(Context* context, const bt::MutateRowRequest* request,
                                      bt::MutateRowResponse* response) override {
    return RunUnary(context, parts_->executor, response,
                    [this, request] { return parts_->mutator.MutateRow(*request); });
  }

  grpc::ServerUnaryReactor* CheckAndMutateRow(Context* context, const bt::CheckAndMutateRowRequest* request,
                                              bt::CheckAndMutateRowResponse* response) override {
    return RunUnary(context, parts_->executor, response,
                    [=, this] { return parts_->mutator.CheckAndMutateRow(*request, response); });
  }

  grpc::ServerUnaryReactor* ReadModifyWriteRow(Context* context, const bt::ReadModifyWriteRowRequest* request,
                                               bt::ReadModifyWriteRowResponse* response) override {
    return RunUnary(context, parts_->executor, response,
                    [=, this] { return parts_->mutator.ReadModifyWriteRow(*request, response); });
  }

  grpc::ServerUnaryReactor* PingAndWarm(Context* context, const bt::PingAndWarmRequest* request,
                                        bt::PingAndWarmResponse* /*response*/) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(CheckInstanceName(request->name())));
    return reactor;
  }

 private:
  // The last key is empty, which means the end of the table. Some clients drop it, and treat a table without other keys as
  // unreadable. So the key of the first row is added if the store returns no keys.
  absl::StatusOr<PagedStream<bt::SampleRowKeysResponse>::Page> Sample(const bt::SampleRowKeysRequest& request) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                                parts_->tables.Find(request.table_name()));
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<std::string> keys, parts_->store->SampleRowKeys(table->id()));
    if (keys.empty()) {
      PERCOLATOR_ASSIGN_OR_RETURN(std::string first, parts_->tables.FirstRow(*table));
      if (!first.empty()) keys.push_back(std::move(first));
    }
    keys.emplace_back();
    PagedStream<bt::SampleRowKeysResponse>::Page page{{}, true};
    for (std::string& key : keys) page.responses.emplace_back().set_row_key(std::move(key));
    return page;
  }

  const std::shared_ptr<Parts> parts_;
};

class TableAdminService final : public LimitedService<admin::BigtableTableAdmin::CallbackService> {
 public:
  explicit TableAdminService(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {
    RequestMemory* const memory = parts_->executor->requests();
    LimitUnary(0, kSchemaRequestBytes, memory, &TableAdminService::CreateTable);
    LimitUnary(1, kSmallRequestBytes, memory, &TableAdminService::ListTables);
    LimitUnary(2, kSmallRequestBytes, memory, &TableAdminService::GetTable);
    LimitUnary(3, kSmallRequestBytes, memory, &TableAdminService::DeleteTable);
    LimitUnary(4, kSchemaRequestBytes, memory, &TableAdminService::ModifyColumnFamilies);
    LimitUnary(5, kSmallRequestBytes, memory, &TableAdminService::DropRowRange);
    LimitUnary(6, kSmallRequestBytes, memory, &TableAdminService::GenerateConsistencyToken);
    LimitUnary(7, kSmallRequestBytes, memory, &TableAdminService::CheckConsistency);
  }

  grpc::ServerUnaryReactor* CreateTable(Context* context, const admin::CreateTableRequest* request,
                                        admin::Table* response) override {
    return Run(context, &BigtableAdmin::CreateTable, request, response);
  }
  grpc::ServerUnaryReactor* ListTables(Context* context, const admin::ListTablesRequest* request,
                                       admin::ListTablesResponse* response) override {
    return Run(context, &BigtableAdmin::ListTables, request, response);
  }
  grpc::ServerUnaryReactor* GetTable(Context* context, const admin::GetTableRequest* request,
                                     admin::Table* response) override {
    return Run(context, &BigtableAdmin::GetTable, request, response);
  }
  grpc::ServerUnaryReactor* DeleteTable(Context* context, const admin::DeleteTableRequest* request,
                                        google::protobuf::Empty* response) override {
    return Run(context, &BigtableAdmin::DeleteTable, request, response);
  }
  grpc::ServerUnaryReactor* ModifyColumnFamilies(Context* context, const admin::ModifyColumnFamiliesRequest* request,
                                                 admin::Table* response) override {
    return Run(context, &BigtableAdmin::ModifyColumnFamilies, request, response);
  }
  grpc::ServerUnaryReactor* DropRowRange(Context* context, const admin::DropRowRangeRequest* request,
                                         google::protobuf::Empty* response) override {
    return Run(context, &BigtableAdmin::DropRowRange, request, response);
  }
  grpc::ServerUnaryReactor* GenerateConsistencyToken(Context* context,
                                                     const admin::GenerateConsistencyTokenRequest* request,
                                                     admin::GenerateConsistencyTokenResponse* response) override {
    return Run(context, &BigtableAdmin::GenerateConsistencyToken, request, response);
  }
  grpc::ServerUnaryReactor* CheckConsistency(Context* context, const admin::CheckConsistencyRequest* request,
                                             admin::CheckConsistencyResponse* response) override {
    return Run(context, &BigtableAdmin::CheckConsistency, request, response);
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Run(Context* context, absl::Status (BigtableAdmin::*method)(const Request&, Response*),
                                const Request* request, Response* response) {
    return RunUnary(
        context, parts_->executor, response, [=, this] { return (parts_->administrator.*method)(*request, response); },
        Executor::kHeavy);
  }

  const std::shared_ptr<Parts> parts_;
};

class InstanceAdminService final : public LimitedService<admin::BigtableInstanceAdmin::CallbackService> {
 public:
  explicit InstanceAdminService(RequestMemory* memory) {
    LimitUnary(0, kSmallRequestBytes, memory, &InstanceAdminService::GetInstance);
    LimitUnary(1, kSmallRequestBytes, memory, &InstanceAdminService::ListClusters);
  }

  grpc::ServerUnaryReactor* GetInstance(Context* context, const admin::GetInstanceRequest* request,
                                        admin::Instance* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(BigtableAdmin::GetInstance(*request, response)));
    return reactor;
  }
  grpc::ServerUnaryReactor* ListClusters(Context* context, const admin::ListClustersRequest* request,
                                         admin::ListClustersResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(BigtableAdmin::ListClusters(*request, response)));
    return reactor;
  }
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> NewBigtableServices(Store* store, Executor* executor,
                                                                bool write_transactional) {
  auto parts = std::make_shared<Parts>(store, executor, write_transactional);
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<DataService>(parts));
  services.push_back(std::make_unique<TableAdminService>(std::move(parts)));
  services.push_back(std::make_unique<InstanceAdminService>(executor->requests()));
  return services;
}

}  // namespace percolator
