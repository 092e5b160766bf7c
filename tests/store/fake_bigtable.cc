// SPDX-License-Identifier: Apache-2.0

#include "tests/store/fake_bigtable.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>
#include <thread>

#include "src/base/strings.h"

namespace percolator {
namespace {

namespace pb = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;

bool IsCatalog(const std::string& table) { return table.ends_with("/percolator-catalog"); }

// The next answer of a script, or the default if there is none.
template <typename T>
T Next(std::deque<T>* script, T otherwise = {}) {
  if (script->empty()) return otherwise;
  T next = std::move(script->front());
  script->pop_front();
  return next;
}

}  // namespace

pb::ReadRowsResponse::CellChunk WholeRow(const std::string& key, const std::string& value) {
  pb::ReadRowsResponse::CellChunk chunk;
  chunk.set_row_key(key);
  chunk.mutable_family_name()->set_value("data");
  chunk.mutable_qualifier()->set_value("c");
  chunk.set_timestamp_micros(1000);
  chunk.set_value(value);
  chunk.set_commit_row(true);
  return chunk;
}

pb::ReadRowsResponse Message(const std::vector<pb::ReadRowsResponse::CellChunk>& chunks) {
  pb::ReadRowsResponse message;
  for (const auto& chunk : chunks) *message.add_chunks() = chunk;
  return message;
}

struct FakeBigtable::State {
  struct CheckAnswer {
    grpc::Status status;
    bool matched = false;
  };
  struct BatchAnswer {
    std::vector<grpc::Status> entries;
    grpc::Status status;
  };

  mutable Mutex mutex;
  int generation ABSL_GUARDED_BY(mutex) = 1;
  std::deque<ReadAnswer> read_script ABSL_GUARDED_BY(mutex);
  std::deque<grpc::Status> mutate_script ABSL_GUARDED_BY(mutex);
  std::deque<BatchAnswer> batch_script ABSL_GUARDED_BY(mutex);
  std::deque<CheckAnswer> check_script ABSL_GUARDED_BY(mutex);
  std::vector<ReadRowsRequest> reads ABSL_GUARDED_BY(mutex);
  std::vector<MutateRowRequest> mutations ABSL_GUARDED_BY(mutex);
  std::vector<MutateRowsRequest> batches ABSL_GUARDED_BY(mutex);
  std::vector<CheckAndMutateRowRequest> checks ABSL_GUARDED_BY(mutex);
  std::vector<std::string> routes ABSL_GUARDED_BY(mutex);

  void Remember(const std::string& rpc, const grpc::ServerContext& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto it = context.client_metadata().find("x-goog-request-params");
    routes.push_back(StrCat(rpc, " ",
                            it == context.client_metadata().end() ? std::string("none")
                                                                  : std::string(it->second.data(), it->second.size())));
  }
};

class FakeBigtable::Data final : public pb::Bigtable::Service {
 public:
  explicit Data(State* state) : state_(state) {}

  grpc::Status ReadRows(grpc::ServerContext* context, const ReadRowsRequest* request,
                        grpc::ServerWriter<ReadRowsResponse>* writer) override {
    ReadAnswer answer;
    {
      MutexLock lock(&state_->mutex);
      state_->Remember("ReadRows", *context);
      if (IsCatalog(request->table_name())) {
        answer = CatalogAnswer(*request);
      } else {
        state_->reads.push_back(*request);
        answer = Next(&state_->read_script);
      }
    }
    for (const ReadRowsResponse& message : answer.messages) writer->Write(message);
    while (answer.hangs && !context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return answer.status;
  }

  grpc::Status MutateRow(grpc::ServerContext* context, const MutateRowRequest* request,
                         pb::MutateRowResponse* /*response*/) override {
    MutexLock lock(&state_->mutex);
    state_->Remember("MutateRow", *context);
    if (IsCatalog(request->table_name())) return {};
    state_->mutations.push_back(*request);
    return Next(&state_->mutate_script);
  }

  grpc::Status MutateRows(grpc::ServerContext* context, const MutateRowsRequest* request,
                          grpc::ServerWriter<MutateRowsResponse>* writer) override {
    State::BatchAnswer answer;
    {
      MutexLock lock(&state_->mutex);
      state_->Remember("MutateRows", *context);
      state_->batches.push_back(*request);
      const std::vector<grpc::Status> fine(static_cast<size_t>(request->entries_size()));
      answer = Next(&state_->batch_script, {fine, {}});
    }
    // One message each, the last first, because any order is allowed.
    for (size_t i = answer.entries.size(); i-- > 0;) {
      MutateRowsResponse response;
      MutateRowsResponse::Entry* entry = response.add_entries();
      entry->set_index(static_cast<int64_t>(i));
      entry->mutable_status()->set_code(answer.entries[i].error_code());
      entry->mutable_status()->set_message(answer.entries[i].error_message());
      writer->Write(response);
    }
    return answer.status;
  }

  grpc::Status CheckAndMutateRow(grpc::ServerContext* context, const CheckAndMutateRowRequest* request,
                                 pb::CheckAndMutateRowResponse* response) override {
    MutexLock lock(&state_->mutex);
    state_->Remember("CheckAndMutateRow", *context);
    if (IsCatalog(request->table_name())) {
      response->set_predicate_matched(request->true_mutations_size() > 0);
      return {};
    }
    state_->checks.push_back(*request);
    const State::CheckAnswer answer = Next(&state_->check_script);
    response->set_predicate_matched(answer.matched);
    return answer.status;
  }

  grpc::Status SampleRowKeys(grpc::ServerContext* context, const pb::SampleRowKeysRequest* /*request*/,
                             grpc::ServerWriter<pb::SampleRowKeysResponse>* writer) override {
    {
      MutexLock lock(&state_->mutex);
      state_->Remember("SampleRowKeys", *context);
    }
    for (const char* key : {"k", "m", ""}) {
      pb::SampleRowKeysResponse response;
      response.set_row_key(key);
      writer->Write(response);
    }
    return {};
  }

 private:
  ReadAnswer CatalogAnswer(const ReadRowsRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    const bool of_t = request.rows().row_keys_size() == 1 && request.rows().row_keys(0) == "t";
    if (!of_t || state_->generation == 0) return {};
    ReadRowsResponse::CellChunk chunk = WholeRow("t", "");
    chunk.mutable_qualifier()->set_value("schema");
    chunk.set_timestamp_micros(state_->generation * 1000);
    return {{Message({chunk})}, {}};
  }

  State* const state_;
};

class FakeBigtable::Admin final : public admin::BigtableTableAdmin::Service {
 public:
  explicit Admin(State* state) : state_(state) {}

  grpc::Status CreateTable(grpc::ServerContext* context, const admin::CreateTableRequest* /*request*/,
                           admin::Table* /*response*/) override {
    MutexLock lock(&state_->mutex);
    state_->Remember("CreateTable", *context);
    return {};
  }

  grpc::Status DeleteTable(grpc::ServerContext* context, const admin::DeleteTableRequest* /*request*/,
                           google::protobuf::Empty* /*response*/) override {
    MutexLock lock(&state_->mutex);
    state_->Remember("DeleteTable", *context);
    return {};
  }

 private:
  State* const state_;
};

FakeBigtable::FakeBigtable()
    : state_(std::make_unique<State>()),
      data_(std::make_unique<Data>(state_.get())),
      admin_(std::make_unique<Admin>(state_.get())) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(data_.get());
  builder.RegisterService(admin_.get());
  server_ = builder.BuildAndStart();
  target_ = StrCat("127.0.0.1:", port);
}

FakeBigtable::~FakeBigtable() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeBigtable::ScriptRead(ReadAnswer answer) {
  MutexLock lock(&state_->mutex);
  state_->read_script.push_back(std::move(answer));
}

void FakeBigtable::ScriptMutateRow(grpc::Status status) {
  MutexLock lock(&state_->mutex);
  state_->mutate_script.push_back(std::move(status));
}

void FakeBigtable::ScriptMutateRows(std::vector<grpc::Status> entries, grpc::Status status) {
  MutexLock lock(&state_->mutex);
  state_->batch_script.push_back({std::move(entries), std::move(status)});
}

void FakeBigtable::ScriptCheck(grpc::Status status, bool matched) {
  MutexLock lock(&state_->mutex);
  state_->check_script.push_back({std::move(status), matched});
}

void FakeBigtable::SetGeneration(int generation) {
  MutexLock lock(&state_->mutex);
  state_->generation = generation;
}

std::vector<FakeBigtable::ReadRowsRequest> FakeBigtable::reads() const {
  MutexLock lock(&state_->mutex);
  return state_->reads;
}

std::vector<FakeBigtable::MutateRowRequest> FakeBigtable::mutations() const {
  MutexLock lock(&state_->mutex);
  return state_->mutations;
}

std::vector<FakeBigtable::MutateRowsRequest> FakeBigtable::batches() const {
  MutexLock lock(&state_->mutex);
  return state_->batches;
}

std::vector<FakeBigtable::CheckAndMutateRowRequest> FakeBigtable::checks() const {
  MutexLock lock(&state_->mutex);
  return state_->checks;
}

std::vector<std::string> FakeBigtable::routes() const {
  MutexLock lock(&state_->mutex);
  return state_->routes;
}

}  // namespace percolator
