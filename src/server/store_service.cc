// SPDX-License-Identifier: Apache-2.0

#include "src/server/store_service.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/server/bounded_read.h"
#include "src/server/calls.h"
#include "src/server/oracle_service.h"
#include "src/wire/convert.h"

namespace percolator {
namespace {

constexpr size_t kScanRequestBytes = size_t{16} << 20;
constexpr size_t kTableRequestBytes = size_t{128} << 10;

// Allows to move the contents out of a request. Nothing else uses it until it is answered.
template <typename Message>
Message* Mutable(const Message* request) {
  return const_cast<Message*>(request);
}

// G3: called after the rows were read.
template <typename Response>
absl::Status AddSafePoint(Store* store, Response* response) {
  const absl::StatusOr<Timestamp> safe_point = store->SafePoint();
  if (safe_point.ok()) response->set_safe_point(safe_point->value());
  return safe_point.status();
}

absl::Status CheckRows(int rows) {
  if (rows <= StoreService::kMaxRows) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the request has ", rows, " rows; the limit is ", StoreService::kMaxRows));
}

// Returns the size of the row in bytes.
size_t AddRow(Row row, v1::ReadResponse* response) {
  v1::Row* const message = response->add_rows();
  ToMessage(std::move(row), message);
  return message->ByteSizeLong();
}

absl::Status Read(Store* store, RequestMemory* memory, v1::ReadRequest* request, v1::ReadResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRows(request->reads_size()));
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<RowRead> reads, FromMessages<RowRead>(request->mutable_reads()));
  size_t bytes = 0;
  RequestMemory::Share of_row;
  for (auto next = reads.begin(); next != reads.end() && bytes < StoreService::kReadBytes; ++next) {
    RequestMemory::Share share;
    PERCOLATOR_RETURN_IF_ERROR(memory->TakeForSelectors(next->selectors.size(), &share));
    // One row at a time, because its size is unknown before it is read.
    PERCOLATOR_ASSIGN_OR_RETURN(Row row, ReadBounded(store, memory, std::move(*next), &of_row));
    bytes += AddRow(std::move(row), response);
  }
  return AddSafePoint(store, response);
}

absl::Status Scan(Store* store, RequestMemory* memory, v1::ScanRequest* request, v1::ScanResponse* response) {
  PERCOLATOR_ASSIGN_OR_RETURN(ScanRequest scan, FromMessage(request));
  RequestMemory::Share share;
  PERCOLATOR_RETURN_IF_ERROR(memory->TakeForSelectors(scan.selectors.size(), &share));
  const bool reverse = scan.reverse;
  RequestMemory::Share of_row;
  PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, ScanBounded(store, memory, std::move(scan), &of_row));
  for (Row& row : page.rows) ToMessage(std::move(row), response->add_rows());
  if (page.resume.has_value()) response->set_resume(*std::move(page.resume));
  response->set_reversed(reverse);
  return AddSafePoint(store, response);
}

absl::Status Mutate(Store* store, Oracle* oracle, v1::MutateRequest* request, v1::MutateResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRows(request->mutations_size()));
  constexpr int kMaxDrawn = OracleService::kMaxAtOnce;
  if (request->draw() && request->mutations_size() > kMaxDrawn) {
    return absl::InvalidArgumentError(
        StrCat("cannot draw timestamps for ", request->mutations_size(), " mutations; the limit is ", kMaxDrawn));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<RowMutation> mutations,
                              FromMessages<RowMutation>(request->mutable_mutations()));
  for (const absl::StatusOr<MutateResult>& result : store->Mutate(mutations)) {
    v1::MutateResponse::Result* const one = response->add_results();
    if (result.ok()) {
      one->set_applied(*result == MutateResult::kApplied);
    } else {
      one->set_code(static_cast<int>(result.status().code()));
      one->set_message(std::string(result.status().message()));
    }
  }
  if (!request->draw() || mutations.empty()) return absl::OkStatus();
  // T6: drawn after all mutations were applied. After an error the client asks the oracle.
  const absl::StatusOr<Timestamp> first = oracle->GetTimestamps(static_cast<uint32_t>(mutations.size()));
  if (first.ok()) response->set_first_drawn(first->value());
  return absl::OkStatus();
}

absl::Status MutateTogether(Store* store, Oracle* oracle, v1::MutateTogetherRequest* request,
                            v1::MutateTogetherResponse* response) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRows(request->rows_size()));
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<RowMutation> rows, FromMessages<RowMutation>(request->mutable_rows()));
  PERCOLATOR_ASSIGN_OR_RETURN(const JointResult result,
                              store->MutateTogether({Timestamp(request->start_ts()), std::move(rows)}, oracle));
  response->set_applied(result.applied);
  response->set_timestamp(result.timestamp.value());
  response->set_failed_row(result.failed_row);
  return absl::OkStatus();
}

// Until the oracle passes the safe point, all transactions would fail, and a safe point cannot be lowered.
absl::Status RaiseSafePoint(Store* store, Oracle* oracle, Timestamp ts) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, oracle->GetTimestamp());
  if (ts >= now) {
    return absl::InvalidArgumentError(
        StrCat("cannot raise the safe point to ", ts.ToString(), ": the oracle is at ", now.ToString()));
  }
  return store->RaiseSafePoint(ts);
}

}  // namespace

StoreService::StoreService(Store* store, Oracle* oracle, Executor* executor)
    : store_(store), oracle_(oracle), executor_(executor) {
  const size_t large = executor->request_bytes();
  RequestMemory* const memory = executor->requests();
  LimitUnary(0, large, memory, &StoreService::Read);
  LimitUnary(1, std::min(kScanRequestBytes, large), memory, &StoreService::Scan);
  LimitUnary(2, large, memory, &StoreService::Mutate);
  LimitUnary(3, large, memory, &StoreService::MutateTogether);
  LimitUnary(4, kSmallRequestBytes, memory, &StoreService::RaiseSafePoint);
  LimitUnary(5, kSmallRequestBytes, memory, &StoreService::GetSafePoint);
  LimitUnary(6, kSmallRequestBytes, memory, &StoreService::SampleRowKeys);
  LimitUnary(7, kTableRequestBytes, memory, &StoreService::CreateTable);
  LimitUnary(8, kSmallRequestBytes, memory, &StoreService::DropTable);
  LimitUnary(9, kSmallRequestBytes, memory, &StoreService::ListTables);
}

StoreService::Reactor* StoreService::Read(Context* context, const v1::ReadRequest* request,
                                          v1::ReadResponse* response) {
  return RunUnary(context, executor_, response,
                  [=, this] { return percolator::Read(store_, executor_->requests(), Mutable(request), response); });
}

StoreService::Reactor* StoreService::Scan(Context* context, const v1::ScanRequest* request,
                                          v1::ScanResponse* response) {
  return RunUnary(context, executor_, response,
                  [=, this] { return percolator::Scan(store_, executor_->requests(), Mutable(request), response); });
}

StoreService::Reactor* StoreService::Mutate(Context* context, const v1::MutateRequest* request,
                                            v1::MutateResponse* response) {
  return RunUnary(context, executor_, response,
                  [=, this] { return percolator::Mutate(store_, oracle_, Mutable(request), response); });
}

StoreService::Reactor* StoreService::MutateTogether(Context* context, const v1::MutateTogetherRequest* request,
                                                    v1::MutateTogetherResponse* response) {
  return RunUnary(context, executor_, response,
                  [=, this] { return percolator::MutateTogether(store_, oracle_, Mutable(request), response); });
}

StoreService::Reactor* StoreService::RaiseSafePoint(Context* context, const v1::RaiseSafePointRequest* request,
                                                    v1::RaiseSafePointResponse* response) {
  return RunUnary(context, executor_, response,
                  [=, this] { return percolator::RaiseSafePoint(store_, oracle_, Timestamp(request->timestamp())); });
}

StoreService::Reactor* StoreService::GetSafePoint(Context* context, const v1::GetSafePointRequest* /*request*/,
                                                  v1::GetSafePointResponse* response) {
  return RunUnary(context, executor_, response, [=, this] {
    const absl::StatusOr<Timestamp> safe_point = store_->SafePoint();
    if (safe_point.ok()) response->set_timestamp(safe_point->value());
    return safe_point.status();
  });
}

StoreService::Reactor* StoreService::SampleRowKeys(Context* context, const v1::SampleRowKeysRequest* request,
                                                   v1::SampleRowKeysResponse* response) {
  return RunUnary(context, executor_, response, [=, this] {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> keys, store_->SampleRowKeys(request->table()));
    for (const std::string& key : keys) response->add_keys(key);
    return absl::OkStatus();
  });
}

StoreService::Reactor* StoreService::CreateTable(Context* context, const v1::CreateTableRequest* request,
                                                 v1::CreateTableResponse* response) {
  return RunUnary(context, executor_, response, [=, this] {
    return store_->CreateTable({request->table().name(), request->table().schema()});
  });
}

StoreService::Reactor* StoreService::DropTable(Context* context, const v1::DropTableRequest* request,
                                               v1::DropTableResponse* response) {
  return RunUnary(context, executor_, response, [=, this] { return store_->DropTable(request->name()); });
}

StoreService::Reactor* StoreService::ListTables(Context* context, const v1::ListTablesRequest* /*request*/,
                                                v1::ListTablesResponse* response) {
  return RunUnary(context, executor_, response, [=, this] {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, store_->ListTables());
    for (const TableInfo& table : tables) {
      v1::TableInfo* const one = response->add_tables();
      one->set_name(table.name);
      one->set_schema(table.schema);
    }
    return absl::OkStatus();
  });
}

}  // namespace percolator
