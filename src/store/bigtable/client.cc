// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/client.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "percolator/spi/runtime.h"
#include "percolator/status.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/retry.h"
#include "src/base/strings.h"
#include "src/wire/channel.h"
#include "src/wire/status.h"

namespace percolator {
namespace {

namespace pb = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;

constexpr char kCloudData[] = "bigtable.googleapis.com";
constexpr char kCloudAdmin[] = "bigtableadmin.googleapis.com";

// Cloud Bigtable takes long to create a table.
constexpr Duration kAdminTimeout = std::chrono::minutes(1);

constexpr int kMaxAttempts = 5;  // in a row, without progress
constexpr Duration kFirstWait = std::chrono::milliseconds(20);
constexpr Duration kLongestWait = std::chrono::milliseconds(160);

// A google.bigtable.v2.FeatureFlags with `bool reverse_scans = 1` set, in base64. Cloud Bigtable refuses `reversed`
// without it.
constexpr char kReverseScans[] = "CAE=";

std::string UrlEncoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out.push_back(c);
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

absl::Status ExplainFailedPrecondition(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  if (ToPiece(status.message()).find("ingle-row transactions") == std::string_view::npos) return status;
  return absl::FailedPreconditionError(
      StrCat(status.message(),
             " (the app profile must route to a single cluster and allow single-row transactions; name such a "
             "profile in the address, or change the default one)"));
}

size_t BytesOf(const std::string& key, const std::vector<Cell>& cells) {
  size_t bytes = key.size();
  for (const Cell& cell : cells) bytes += cell.column.size() + cell.value.size();
  return bytes;
}

// Returns whether `key` is the first key after another one, which is then left in it.
bool ConsumeSuccessor(std::string* key) {
  if (key->size() < 2 || key->back() != '\0') return false;
  key->pop_back();
  return true;
}

// Returns whether each has an effect, and no two are of the same row.
[[maybe_unused]] bool EachHasEffectOnItsRow(const std::vector<const RowMutation*>& mutations) {
  std::set<std::string_view> rows;
  return std::all_of(mutations.begin(), mutations.end(), [&rows](const RowMutation* mutation) {
    return HasEffect(*mutation) && rows.insert(mutation->row).second;
  });
}

// A border may be no longer than a key. So the first key after the longest key is named by that key, exclusive.
pb::RowRange WireRows(RowRange range) {
  pb::RowRange wire;
  if (ConsumeSuccessor(&range.start)) {
    wire.set_start_key_open(std::move(range.start));
  } else if (!range.start.empty()) {
    wire.set_start_key_closed(std::move(range.start));
  }
  if (!range.limit.has_value()) return wire;
  if (ConsumeSuccessor(&*range.limit)) {
    wire.set_end_key_closed(*std::move(range.limit));
  } else {
    wire.set_end_key_open(*std::move(range.limit));
  }
  return wire;
}

}  // namespace

absl::Status StoreStatusOf(const grpc::Status& status) {
  // A quota, which is available again later. To the Store, ResourceExhausted would mean a full disk.
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
    return absl::UnavailableError(status.error_message());
  return FromGrpc(status);
}

// A call ends when its time has passed, or after kMaxAttempts attempts in a row without progress.
class BigtableClient::Attempts {
 public:
  Attempts(grpc::Channel* channel, Duration timeout)
      : channel_(channel), deadline_(Runtime::Real(), timeout), backoff_(Runtime::Real(), kFirstWait, kLongestWait) {}

  bool first() const { return sent_ == 0; }

  // The time left, for the next request.
  gpr_timespec TimeLeft() const { return gpr_time_from_micros(deadline_.left().count(), GPR_TIMESPAN); }

  // Called after a request. Returns whether to send another, and if so waits a moment before.
  bool Again(const absl::Status& status, bool progress) {
    ++sent_;
    in_vain_ = progress ? 0 : in_vain_ + 1;
    if (progress) backoff_.Reset();
    if (!IsTransient(status) || in_vain_ >= kMaxAttempts) return false;
    const Duration wait = backoff_.Next();
    if (wait >= deadline_.left()) return false;
    const Deadline until = deadline_.AtMost(wait);
    WaitForConnection(*channel_, wait);
    deadline_.runtime()->Sleep(until.left());
    return true;
  }

 private:
  grpc::Channel* const channel_;
  const Deadline deadline_;
  Backoff backoff_;
  int sent_ = 0;
  int in_vain_ = 0;
};

namespace {

struct Channels {
  std::shared_ptr<grpc::Channel> data;
  std::shared_ptr<grpc::Channel> admin;
};

absl::StatusOr<Channels> OpenChannels(const BigtableStoreOptions& options) {
  const char* emulator = std::getenv("BIGTABLE_EMULATOR_HOST");
  const bool use_emulator = options.endpoint.empty() && emulator != nullptr && *emulator != '\0';
  if (!options.endpoint.empty() || use_emulator) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                                use_emulator ? OpenChannel(emulator, {}) : OpenChannel(options.endpoint, options.tls));
    return Channels{channel, channel};
  }
  const std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::GoogleDefaultCredentials();
  if (credentials == nullptr) {
    return absl::FailedPreconditionError("no default credentials for Cloud Bigtable; see docs/bigtable.md");
  }
  return Channels{OpenChannelWith(kCloudData, credentials), OpenChannelWith(kCloudAdmin, credentials)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BigtableClient>> BigtableClient::Open(const BigtableStoreOptions& options) {
  if (options.project.empty() || options.instance.empty()) {
    return absl::InvalidArgumentError("the address of a Bigtable store must name a project and an instance");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(Channels channels, OpenChannels(options));
  return std::unique_ptr<BigtableClient>(new BigtableClient(options, channels.data, channels.admin));
}

BigtableClient::BigtableClient(const BigtableStoreOptions& options, std::shared_ptr<grpc::Channel> data,
                               std::shared_ptr<grpc::Channel> admin)
    : instance_name_(StrCat("projects/", options.project, "/instances/", options.instance)),
      app_profile_(options.app_profile),
      timeout_(options.timeout),
      data_channel_(std::move(data)),
      admin_channel_(std::move(admin)),
      data_(pb::Bigtable::NewStub(data_channel_)),
      admin_(admin::BigtableTableAdmin::NewStub(admin_channel_)) {}

std::string BigtableClient::TableName(const std::string& table) const {
  return StrCat(instance_name_, "/tables/", table);
}

void BigtableClient::PrepareData(Rpc rpc, const std::string& table, const Attempts& attempts,
                                 grpc::ClientContext* context) {
  sent_[static_cast<int>(rpc)].fetch_add(1, std::memory_order_relaxed);
  if (!attempts.first()) repeated_.fetch_add(1, std::memory_order_relaxed);
  context->set_deadline(attempts.TimeLeft());
  std::string route = StrCat("table_name=", UrlEncoded(TableName(table)));
  if (!app_profile_.empty()) route += StrCat("&app_profile_id=", UrlEncoded(app_profile_));
  context->AddMetadata("x-goog-request-params", route);
}

void BigtableClient::PrepareAdmin(std::string_view field, std::string_view resource, const Attempts& attempts,
                                  grpc::ClientContext* context) {
  sent_[static_cast<int>(Rpc::kAdmin)].fetch_add(1, std::memory_order_relaxed);
  if (!attempts.first()) repeated_.fetch_add(1, std::memory_order_relaxed);
  context->set_deadline(attempts.TimeLeft());
  context->AddMetadata("x-goog-request-params", StrCat(field, "=", UrlEncoded(resource)));
}

absl::Status BigtableClient::Stream(const pb::ReadRowsRequest& request, const std::string& table,
                                    const Attempts& attempts,
                                    const std::function<bool(std::string key, std::vector<Cell>)>& on_row,
                                    RowParser* parser) {
  grpc::ClientContext context;
  PrepareData(Rpc::kReadRows, table, attempts, &context);
  if (request.reversed()) context.AddMetadata("bigtable-features", kReverseScans);
  const std::unique_ptr<grpc::ClientReader<pb::ReadRowsResponse>> reader = data_->ReadRows(&context, request);
  pb::ReadRowsResponse response;
  absl::Status mine;  // of the rows received
  bool wanted = true;
  while (wanted && reader->Read(&response)) {
    std::vector<WireRow> rows;
    mine = parser->Consume(&response, &rows);
    for (auto row = rows.begin(); wanted && mine.ok() && row != rows.end(); ++row) {
      std::string key = row->key;
      absl::StatusOr<std::vector<Cell>> cells = CellsOf(std::move(*row));
      if (cells.ok()) {
        wanted = on_row(std::move(key), *std::move(cells));
      } else {
        mine = cells.status();
      }
    }
    wanted = wanted && mine.ok();
  }
  if (!wanted) context.TryCancel();
  const absl::Status theirs = WithReason(StoreStatusOf(reader->Finish()), request.GetTypeName(), context, timeout_);
  if (!mine.ok() || !wanted) return mine;
  return theirs.ok() ? parser->Finish() : theirs;
}

absl::StatusOr<BigtableClient::Rows> BigtableClient::Read(const std::string& table, std::vector<std::string> keys,
                                                          const pb::RowFilter& filter) {
  PERCOLATOR_DCHECK(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end());
  Rows rows;
  pb::ReadRowsRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  *request.mutable_filter() = filter;
  for (Attempts attempts(data_channel_.get(), timeout_);;) {
    request.mutable_rows()->clear_row_keys();
    for (const std::string& key : keys) request.mutable_rows()->add_row_keys(key);
    RowParser parser;
    const absl::Status status = Stream(
        request, table, attempts,
        [&rows](std::string key, std::vector<Cell> cells) {
          rows.insert_or_assign(std::move(key), std::move(cells));
          return true;
        },
        &parser);
    if (status.ok()) return rows;
    keys.erase(keys.begin(), std::upper_bound(keys.begin(), keys.end(), parser.done()));
    if (keys.empty() && IsTransient(status)) return rows;
    if (!attempts.Again(status, /*progress=*/!parser.done().empty())) return status;
  }
}

absl::StatusOr<ScanPage> BigtableClient::Scan(const std::string& table, const ScanRequest& scan,
                                              const pb::RowFilter& filter, size_t bytes) {
  PERCOLATOR_DCHECK(!scan.rows.limit.has_value() || scan.rows.start < *scan.rows.limit);
  // A server that does not support `reversed` sends rows in ascending order, which only the second row shows.
  const size_t least = scan.reverse ? 2 : 1;
  pb::ReadRowsRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  *request.mutable_filter() = filter;
  request.set_rows_limit(static_cast<int64_t>(std::max(scan.row_limit, least)));
  request.set_reversed(scan.reverse);
  *request.mutable_rows()->add_row_ranges() = WireRows(scan.rows);
  for (Attempts attempts(data_channel_.get(), timeout_);;) {
    ScanPage page;
    size_t page_bytes = 0;
    size_t seen = 0;
    const auto full = [&] { return page.rows.size() >= scan.row_limit || page_bytes >= bytes; };
    RowParser parser(scan.reverse);
    const absl::Status status = Stream(
        request, table, attempts,
        [&](std::string key, std::vector<Cell> cells) {
          ++seen;
          if (!full()) {
            page_bytes += BytesOf(key, cells);
            page.rows.push_back({std::move(key), std::move(cells)});
          }
          return !full() || seen < least;
        },
        &parser);
    if (status.ok() && !full()) return page;
    // A page that broke off is short. The parser's done() may be beyond the last row of the page.
    const std::string done = page.rows.empty() ? parser.done() : page.rows.back().key;
    const bool in_order = !scan.reverse || status.ok() || parser.order_known();
    if (in_order && (full() || (IsTransient(status) && !done.empty()))) {
      page.resume = scan.reverse ? done : RowRange::All().After(done).start;
      return page;
    }
    if (!attempts.Again(status, /*progress=*/false)) return status;
  }
}

absl::Status BigtableClient::MutateOne(const std::string& table, const RowMutation& mutation) {
  pb::MutateRowRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  request.set_row_key(mutation.row);
  AppendMutations(mutation.mutations, request.mutable_mutations());
  for (Attempts attempts(data_channel_.get(), timeout_);;) {
    grpc::ClientContext context;
    PrepareData(Rpc::kMutateRow, table, attempts, &context);
    pb::MutateRowResponse response;
    absl::Status status = WithReason(StoreStatusOf(data_->MutateRow(&context, request, &response)),
                                     request.GetTypeName(), context, timeout_);
    if (!attempts.Again(status, /*progress=*/false)) return status;
  }
}

void BigtableClient::MutateMany(const std::string& table, const std::vector<const RowMutation*>& mutations,
                                const std::vector<size_t>& which, const Attempts& attempts,
                                std::vector<absl::Status>* results) {
  pb::MutateRowsRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  for (const size_t i : which) {
    pb::MutateRowsRequest::Entry* entry = request.add_entries();
    entry->set_row_key(mutations[i]->row);
    AppendMutations(mutations[i]->mutations, entry->mutable_mutations());
  }
  grpc::ClientContext context;
  PrepareData(Rpc::kMutateRows, table, attempts, &context);
  const std::unique_ptr<grpc::ClientReader<pb::MutateRowsResponse>> reader = data_->MutateRows(&context, request);
  std::vector<std::optional<absl::Status>> answers(which.size());
  pb::MutateRowsResponse response;
  while (reader->Read(&response)) {
    for (const pb::MutateRowsResponse::Entry& entry : response.entries()) {
      if (entry.index() < 0 || static_cast<size_t>(entry.index()) >= which.size()) continue;
      answers[static_cast<size_t>(entry.index())] =
          StoreStatusOf(grpc::Status(static_cast<grpc::StatusCode>(entry.status().code()), entry.status().message()));
    }
  }
  absl::Status rest = WithReason(StoreStatusOf(reader->Finish()), request.GetTypeName(), context, timeout_);
  if (rest.ok()) rest = absl::UnavailableError("Bigtable did not report the result of a mutation");
  for (size_t i = 0; i < which.size(); ++i) (*results)[which[i]] = answers[i].value_or(rest);
}

std::vector<absl::Status> BigtableClient::Mutate(const std::string& table,
                                                 const std::vector<const RowMutation*>& mutations) {
  PERCOLATOR_DCHECK(EachHasEffectOnItsRow(mutations));
  if (mutations.size() == 1) return {MutateOne(table, *mutations[0])};
  std::vector<absl::Status> results(mutations.size());
  std::vector<size_t> pending(mutations.size());
  for (size_t i = 0; i < pending.size(); ++i) pending[i] = i;
  for (Attempts attempts(data_channel_.get(), timeout_);;) {
    MutateMany(table, mutations, pending, attempts, &results);
    const size_t before = pending.size();
    std::erase_if(pending, [&results](size_t i) { return !IsTransient(results[i]); });
    if (pending.empty() || !attempts.Again(results[pending[0]], /*progress=*/pending.size() < before)) return results;
  }
}

absl::StatusOr<MutateResult> BigtableClient::MutateIf(const std::string& table, const RowMutation& mutation,
                                                      const Predicate& predicate) {
  PERCOLATOR_DCHECK(predicate.holds == Predicate::Holds::kIfMatched ||
                    predicate.holds == Predicate::Holds::kUnlessMatched);
  PERCOLATOR_DCHECK(HasEffect(mutation));
  const bool if_matched = predicate.holds == Predicate::Holds::kIfMatched;
  pb::CheckAndMutateRowRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  request.set_row_key(mutation.row);
  *request.mutable_predicate_filter() = predicate.filter;
  AppendMutations(mutation.mutations,
                  if_matched ? request.mutable_true_mutations() : request.mutable_false_mutations());
  grpc::ClientContext context;
  PrepareData(Rpc::kCheckAndMutateRow, table, Attempts(data_channel_.get(), timeout_), &context);
  pb::CheckAndMutateRowResponse response;
  const absl::Status status = WithReason(StoreStatusOf(data_->CheckAndMutateRow(&context, request, &response)),
                                         request.GetTypeName(), context, timeout_);
  if (!status.ok()) return ExplainFailedPrecondition(status);
  return response.predicate_matched() == if_matched ? MutateResult::kApplied : MutateResult::kConditionFailed;
}

absl::StatusOr<std::vector<std::string>> BigtableClient::SampleRowKeys(const std::string& table) {
  pb::SampleRowKeysRequest request;
  request.set_table_name(TableName(table));
  request.set_app_profile_id(app_profile_);
  for (Attempts attempts(data_channel_.get(), timeout_);;) {
    grpc::ClientContext context;
    PrepareData(Rpc::kSampleRowKeys, table, attempts, &context);
    const std::unique_ptr<grpc::ClientReader<pb::SampleRowKeysResponse>> reader =
        data_->SampleRowKeys(&context, request);
    std::vector<std::string> keys;
    pb::SampleRowKeysResponse response;
    while (reader->Read(&response)) {
      if (!response.row_key().empty())
        keys.push_back(response.row_key());  // an empty key stands for the end of the table
    }
    const absl::Status status = WithReason(StoreStatusOf(reader->Finish()), request.GetTypeName(), context, timeout_);
    if (status.ok()) {
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      return keys;
    }
    if (!attempts.Again(status, /*progress=*/false)) return status;
  }
}

absl::Status BigtableClient::CreateTable(const std::string& table) {
  admin::CreateTableRequest request;
  request.set_parent(instance_name_);
  request.set_table_id(table);
  for (int i = 0; i < kFamilyCount; ++i) {
    (*request.mutable_table()->mutable_column_families())[std::string(FamilyName(static_cast<Family>(i)))];
  }
  for (Attempts attempts(admin_channel_.get(), std::max(timeout_, kAdminTimeout));;) {
    grpc::ClientContext context;
    PrepareAdmin("parent", instance_name_, attempts, &context);
    admin::Table response;
    absl::Status status = WithReason(StoreStatusOf(admin_->CreateTable(&context, request, &response)),
                                     request.GetTypeName(), context, timeout_);
    if (absl::IsNotFound(status)) {
      return absl::FailedPreconditionError(
          StrCat("there is no Bigtable instance ", instance_name_, ": ", status.message()));
    }
    if (!attempts.Again(status, /*progress=*/false)) return status;
  }
}

absl::Status BigtableClient::DeleteTable(const std::string& table) {
  admin::DeleteTableRequest request;
  request.set_name(TableName(table));
  for (Attempts attempts(admin_channel_.get(), std::max(timeout_, kAdminTimeout));;) {
    grpc::ClientContext context;
    PrepareAdmin("name", request.name(), attempts, &context);
    google::protobuf::Empty response;
    absl::Status status = WithReason(StoreStatusOf(admin_->DeleteTable(&context, request, &response)),
                                     request.GetTypeName(), context, timeout_);
    if (!attempts.Again(status, /*progress=*/false)) return status;
  }
}

BigtableRpcs BigtableClient::rpcs() const {
  const auto sent = [this](Rpc rpc) { return sent_[static_cast<int>(rpc)].load(std::memory_order_relaxed); };
  return {.read_rows = sent(Rpc::kReadRows),
          .mutate_row = sent(Rpc::kMutateRow),
          .mutate_rows = sent(Rpc::kMutateRows),
          .check_and_mutate_row = sent(Rpc::kCheckAndMutateRow),
          .sample_row_keys = sent(Rpc::kSampleRowKeys),
          .admin = sent(Rpc::kAdmin),
          .repeated = repeated_.load(std::memory_order_relaxed)};
}

}  // namespace percolator
