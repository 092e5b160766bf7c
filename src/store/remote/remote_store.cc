// SPDX-License-Identifier: Apache-2.0

#include "src/store/remote/remote_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/validate.h"
#include "src/wire/convert.h"

namespace percolator {
namespace {

using StoreStub = v1::Store::Stub;

constexpr Duration kConnectPause = std::chrono::milliseconds(20);

// A server that gives another number of answers than there were questions cannot be trusted with any of them.
absl::Status WrongCount(std::string_view server, int answers, int questions) {
  return absl::DataLossError(
      StrCat("invalid response from ", server, ": ", answers, " results for ", questions, " entries"));
}

absl::StatusOr<MutateResult> ResultOf(const v1::MutateResponse::Result& result) {
  if (result.code() != 0) return absl::Status(static_cast<absl::StatusCode>(result.code()), result.message());
  return result.applied() ? MutateResult::kApplied : MutateResult::kConditionFailed;
}

}  // namespace

RemoteStore::RemoteStore(std::shared_ptr<grpc::Channel> channel, Duration timeout, const RequestLimits& limits,
                         std::string server)
    : channel_(std::move(channel)),
      server_(std::move(server)),
      stub_(v1::Store::NewStub(channel_)),
      timeout_(timeout),
      limits_(limits) {
  PERCOLATOR_DCHECK(limits.entries >= 1 && limits.scans >= 1);
}

template <typename Request, typename Response>
absl::Status RemoteStore::Send(grpc::Status (StoreStub::*method)(grpc::ClientContext*, const Request&, Response*),
                               const Request& request, Response* response) {
  if (closed_) return StoreClosed(StrCat("store of ", server_));
  absl::Status status = Call(*stub_, method, timeout_, request, response);
  // Callers retry after a delay. Waiting here has gRPC connect again, if it can.
  if (absl::IsUnavailable(status)) WaitForConnection(*channel_, kConnectPause);
  return status;
}

void RemoteStore::NoteSafePoint(uint64_t safe_point) {
  uint64_t known = safe_point_.load();
  while (known < safe_point && !safe_point_.compare_exchange_weak(known, safe_point)) {
  }
}

template <typename Entry, typename Message>
void RemoteStore::Fill(const std::vector<Entry>& entries, size_t* next,
                       google::protobuf::RepeatedPtrField<Message>* request) const {
  const size_t limit = std::min(entries.size() - *next, limits_.entries);
  size_t bytes = 0;
  for (size_t i = 0; i < limit && bytes < limits_.bytes; ++i) {
    Message* const message = request->Add();
    ToMessage(entries[(*next)++], message);
    if (limit > 1) bytes += message->ByteSizeLong();
  }
}

absl::StatusOr<std::vector<Row>> RemoteStore::Read(const std::vector<RowRead>& reads) {
  std::vector<Row> rows;
  rows.reserve(reads.size());
  do {
    v1::ReadRequest request;
    size_t next = rows.size();
    Fill(reads, &next, request.mutable_reads());
    v1::ReadResponse response;
    PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::Read, request, &response));
    NoteSafePoint(response.safe_point());
    const bool nothing = response.rows_size() == 0 && request.reads_size() > 0;
    if (nothing || response.rows_size() > request.reads_size()) {
      return WrongCount(server_, response.rows_size(), request.reads_size());
    }
    for (v1::Row& message : *response.mutable_rows()) {
      PERCOLATOR_ASSIGN_OR_RETURN(Row row, FromMessage(&message));
      rows.push_back(std::move(row));
    }
  } while (rows.size() < reads.size());
  return rows;
}

absl::StatusOr<ScanPage> RemoteStore::Scan(const ScanRequest& request) {
  v1::ScanRequest message;
  ToMessage(request, &message);
  v1::ScanResponse response;
  {
    const MutexLock lock(&mutex_);
    while (scans_ >= limits_.scans) scan_answered_.Wait(&mutex_);
    ++scans_;
  }
  const absl::Status status = Send(&StoreStub::Scan, message, &response);
  {
    const MutexLock lock(&mutex_);
    --scans_;
    scan_answered_.NotifyOne();
  }
  if (!status.ok()) return status;
  if (request.reverse && !response.reversed()) {
    return absl::UnimplementedError(
        StrCat(server_, " does not support reverse scans: it runs an older version of Percolator"));
  }
  NoteSafePoint(response.safe_point());
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, FromMessages<Row>(response.mutable_rows()));
  ScanPage page{std::move(rows), {}};
  if (response.has_resume()) page.resume = std::move(*response.mutable_resume());
  return page;
}

absl::Status RemoteStore::SendMutate(const std::vector<RowMutation>& mutations, bool draw,
                                     const std::function<void(const v1::MutateResponse&)>& take) {
  for (size_t next = 0; next < mutations.size();) {
    v1::MutateRequest request;
    Fill(mutations, &next, request.mutable_mutations());
    request.set_draw(draw);
    v1::MutateResponse response;
    PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::Mutate, request, &response));
    if (response.results_size() != request.mutations_size()) {
      return WrongCount(server_, response.results_size(), request.mutations_size());
    }
    take(response);
  }
  return absl::OkStatus();
}

std::vector<absl::StatusOr<MutateResult>> RemoteStore::Mutate(const std::vector<RowMutation>& mutations) {
  std::vector<absl::StatusOr<MutateResult>> results;
  results.reserve(mutations.size());
  const absl::Status status = SendMutate(mutations, false, [&](const v1::MutateResponse& response) {
    for (const v1::MutateResponse::Result& result : response.results()) results.push_back(ResultOf(result));
  });
  if (!status.ok()) results.resize(mutations.size(), status);
  return results;
}

std::vector<DrawnResult> RemoteStore::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  std::vector<DrawnResult> results;
  results.reserve(mutations.size());
  const absl::Status status = SendMutate(mutations, true, [&](const v1::MutateResponse& response) {
    Timestamp drawn(response.first_drawn());
    for (const v1::MutateResponse::Result& result : response.results()) {
      results.push_back({ResultOf(result), std::nullopt});
      if (result.applied() && response.first_drawn() != 0) results.back().drawn = drawn;
      drawn = drawn.Next();
    }
  });
  if (!status.ok()) results.resize(mutations.size(), {status, std::nullopt});
  return results;
}

absl::StatusOr<JointResult> RemoteStore::MutateTogether(const JointMutation& mutation, Oracle* /*oracle*/) {
  v1::MutateTogetherRequest request;
  request.set_start_ts(mutation.start_ts.value());
  for (const RowMutation& row : mutation.rows) ToMessage(row, request.add_rows());
  if (const size_t bytes = request.ByteSizeLong(); bytes > limits_.joint_bytes) {
    return absl::InvalidArgumentError(
        StrCat("joint mutation has ", bytes, " bytes, more than the limit of ", limits_.joint_bytes));
  }
  v1::MutateTogetherResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::MutateTogether, request, &response));
  if (!response.applied() && response.failed_row() >= mutation.rows.size()) {
    return absl::DataLossError(StrCat("invalid response from ", server_, ": failed row ", response.failed_row(), " of ",
                                      mutation.rows.size()));
  }
  return JointResult{response.applied(), Timestamp(response.timestamp()), response.failed_row()};
}

absl::Status RemoteStore::RaiseSafePoint(Timestamp ts) {
  v1::RaiseSafePointRequest request;
  request.set_timestamp(ts.value());
  v1::RaiseSafePointResponse response;
  return Send(&StoreStub::RaiseSafePoint, request, &response);
}

absl::StatusOr<Timestamp> RemoteStore::SafePoint() {
  v1::GetSafePointResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::GetSafePoint, v1::GetSafePointRequest(), &response));
  return Timestamp(response.timestamp());
}

absl::StatusOr<std::vector<std::string>> RemoteStore::SampleRowKeys(const std::string& name) {
  v1::SampleRowKeysRequest request;
  request.set_table(name);
  v1::SampleRowKeysResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::SampleRowKeys, request, &response));
  return std::vector<std::string>(response.keys().begin(), response.keys().end());
}

absl::Status RemoteStore::CreateTable(const TableInfo& info) {
  v1::CreateTableRequest request;
  request.mutable_table()->set_name(info.name);
  request.mutable_table()->set_schema(info.schema);
  v1::CreateTableResponse response;
  return Send(&StoreStub::CreateTable, request, &response);
}

absl::Status RemoteStore::DropTable(const std::string& name) {
  v1::DropTableRequest request;
  request.set_name(name);
  v1::DropTableResponse response;
  return Send(&StoreStub::DropTable, request, &response);
}

absl::StatusOr<std::vector<TableInfo>> RemoteStore::ListTables() {
  v1::ListTablesResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Send(&StoreStub::ListTables, v1::ListTablesRequest(), &response));
  std::vector<TableInfo> tables;
  for (v1::TableInfo& table : *response.mutable_tables()) {
    tables.push_back({std::move(*table.mutable_name()), std::move(*table.mutable_schema())});
  }
  return tables;
}

// The server owns the data: nothing to wait for.
absl::Status RemoteStore::Close() {
  closed_ = true;
  return absl::OkStatus();
}

}  // namespace percolator
