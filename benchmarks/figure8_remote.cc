// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/figure8_remote.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "benchmarks/duel.h"
#include "benchmarks/figure8_rows.h"
#include "benchmarks/require.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/assemble.h"
#include "percolator/status_macros.h"
#include "src/coord/remote/remote_coordinator.h"
#include "src/oracle/remote/remote_oracle.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;

constexpr char kInstance[] = "projects/p/instances/i";
constexpr char kColumn[] = "c";
constexpr std::chrono::seconds kTimeout(10);

// Requests, by purpose.
struct Requests {
  std::atomic<int> reads{0};
  std::atomic<int> mutations{0};
  std::atomic<int> timestamps{0};
  std::atomic<int> safe_points{0};
  std::atomic<int> claims{0};  // also the ends of claims
  std::atomic<int> hints{0};
};

class CountedStore final : public RemoteStore {
 public:
  CountedStore(const std::shared_ptr<grpc::Channel>& channel, Requests* requests)
      : RemoteStore(channel, kTimeout), requests_(requests) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override {
    ++requests_->reads;
    return RemoteStore::Read(reads);
  }
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    ++requests_->mutations;
    return RemoteStore::Mutate(mutations);
  }
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    ++requests_->mutations;
    return RemoteStore::MutateThenDraw(mutations);
  }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override {
    ++requests_->mutations;
    return RemoteStore::MutateTogether(mutation, oracle);
  }
  absl::StatusOr<Timestamp> SafePoint() override {
    ++requests_->safe_points;
    return RemoteStore::SafePoint();
  }

 private:
  Requests* const requests_;
};

class CountedOracle final : public Oracle {
 public:
  CountedOracle(Oracle* oracle, Requests* requests) : oracle_(oracle), requests_(requests) {}
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    ++requests_->timestamps;
    return oracle_->GetTimestamps(count);
  }

 private:
  Oracle* const oracle_;
  Requests* const requests_;
};

class CountedCoordinator final : public RemoteCoordinator {
 public:
  CountedCoordinator(const std::shared_ptr<grpc::Channel>& channel, Requests* requests)
      : RemoteCoordinator(channel, kTimeout), requests_(requests) {}

  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override {
    ++requests_->claims;
    return RemoteCoordinator::Claim(table, row, session);
  }
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override {
    ++requests_->claims;
    return RemoteCoordinator::Release(table, row, session);
  }
  void SendHint(const CellName& cell) override {
    ++requests_->hints;
    RemoteCoordinator::SendHint(cell);
  }

 private:
  Requests* const requests_;
};

// A cluster that counts its requests, without the fronts through which threads share requests.
struct Unbatched {
  Unbatched(const std::string& target, bool one_step) {
    const auto channel = OpenChannel(target, {});
    Require(channel.ok(), "opening a channel");
    store = std::make_shared<CountedStore>(*channel, &requests);
    auto remote = RemoteOracle::Open({target}, {}, kTimeout);
    Require(remote.ok(), "opening the oracle");
    far_oracle = *std::move(remote);
    ClusterOptions options;
    options.one_step_commit = one_step;
    auto assembled = Assemble({store, std::make_shared<CountedOracle>(far_oracle.get(), &requests),
                               std::make_shared<CountedCoordinator>(*channel, &requests)},
                              options);
    Require(assembled.ok(), "assembling a cluster");
    cluster.emplace(*assembled);
  }

  Requests requests;
  std::shared_ptr<RemoteStore> store;
  std::unique_ptr<Oracle> far_oracle;
  std::optional<Cluster> cluster;  // last: it uses the rest
};

class RemoteContest {
 public:
  RemoteContest(const RemoteSettings& settings, const std::string& target)
      : settings_(settings),
        value_(static_cast<size_t>(settings.value_bytes), 'v'),
        random_(64),
        one_step_(target, true),
        two_phase_(target, false) {
    for (size_t i = 0; i < random_.size(); ++i) random_[i].state = 0x9E3779B97F4A7C15 * (i + 1);
    auto batched = Cluster::Open(settings.cluster);
    Require(batched.ok(), "opening the cluster");
    batched_.emplace(*batched);
    const auto channel = OpenChannel(target, {});
    Require(channel.ok(), "opening a channel");
    data_ = bt::Bigtable::NewStub(*channel);
    admin_ = admin::BigtableTableAdmin::NewStub(*channel);
    table_ = "figure8-" + std::to_string(batched_->GetSnapshot()->timestamp().value());
    raw_ = "raw-" + table_;
    CreateTables();
    LoadTables();
  }
  ~RemoteContest() {
    batched_->DropTable(table_).IgnoreError();
    admin::DeleteTableRequest request;
    request.set_name(std::string(kInstance) + "/tables/" + raw_);
    google::protobuf::Empty response;
    grpc::ClientContext context;
    admin_->DeleteTable(&context, request, &response);
  }

  // The ratio of unbatched to raw.
  double Read(int threads) {
    Duel duel = MakeDuel("read one cell", threads);
    duel.Add("ReadRows", [&](int t) { ReadRaw(t); })
        .Add("Snapshot: Get, batched", [&](int t) { ReadSnapshot(*batched_, t); })
        .Add("Snapshot: Get, unbatched", [&](int t) { ReadSnapshot(*one_step_.cluster, t); })
        .Add("Get in one snapshot, unbatched", [&](int t) { ReadOften(t); });
    duel.Run();
    snapshots_.clear();
    return duel.ratios()[3];
  }

  // The ratios of unbatched, in two phases and in one step, to raw.
  std::pair<double, double> Write(int threads) {
    Duel duel = MakeDuel("write one cell", threads);
    duel.Add("MutateRow", [&](int t) { WriteRaw(t); })
        .Add("Transaction: one step, batched", [&](int t) { Commit(*batched_, t); })
        .Add("Transaction: two phases, unbatched", [&](int t) { Commit(*two_phase_.cluster, t); })
        .Add("Transaction: one step, unbatched", [&](int t) { Commit(*one_step_.cluster, t); })
        .Add("what they consist of: one timestamp", [&](int /*t*/) { DrawTimestamp(); })
        .Add("what they consist of: Store.Mutate", [&](int t) { MutateStore(t); });
    duel.Run();
    return {duel.ratios()[2], duel.ratios()[3]};
  }

  void CountRequests() {
    std::printf("requests of a transaction, of %d each\n", kCounted);
    std::printf("  %-46s %10s %10s %10s %10s %10s %10s\n", "", "read", "mutate", "timestamp", "safe point", "claim",
                "hint");
    Count(&one_step_, "a new snapshot, Get of one cell", [&] { ReadSnapshot(*one_step_.cluster, 0); });
    for (Unbatched* how : {&two_phase_, &one_step_}) {
      const std::string name = how == &two_phase_ ? "two phases" : "one step";
      Count(how, name + ", write one cell", [&] { Write(*how->cluster, 1, false); });
      Count(how, name + ", read and write one cell", [&] { Write(*how->cluster, 1, true); });
      Count(how, name + ", write 10 cells in 10 rows", [&] { Write(*how->cluster, 10, false); });
      CountObserver(how, name);
    }
  }

 private:
  static constexpr int kCounted = 100;
  // Waits until the work in the background is done: secondaries, observers.
  static constexpr std::chrono::milliseconds kRest{500};

  Duel MakeDuel(const std::string& title, int threads) const {
    return {title, threads, settings_.rounds, std::chrono::milliseconds(settings_.round_ms)};
  }

  void CreateTables() {
    Require(batched_->CreateTable(table_).ok(), "creating a table");
    admin::CreateTableRequest request;
    request.set_parent(kInstance);
    request.set_table_id(raw_);
    for (const char* family : {"data", "lock", "write", "notify"}) {
      (*request.mutable_table()->mutable_column_families())[family];
    }
    admin::Table response;
    grpc::ClientContext context;
    Require(admin_->CreateTable(&context, request, &response).ok(), "creating a table through Bigtable's API");
  }

  void LoadTables() {
    for (int first = 0; first < settings_.rows; first += 1000) {
      const int end = std::min(first + 1000, settings_.rows);
      const auto done = batched_->Transact([&](ReadWrite& t) {
        for (int i = first; i < end; ++i) {
          t.Set({table_, RowName(static_cast<uint64_t>(i)), kColumn}, value_);
        }
      });
      Require(done.ok(), "loading");
      for (int i = first; i < end; ++i) WriteRawRow(static_cast<uint64_t>(i));
    }
  }

  void ReadRaw(int thread) {
    bt::ReadRowsRequest request;
    request.set_table_name(std::string(kInstance) + "/tables/" + raw_);
    request.mutable_rows()->add_row_keys(RowName(Pick(thread)));
    request.set_rows_limit(1);
    auto* const chain = request.mutable_filter()->mutable_chain();
    auto* const range = chain->add_filters()->mutable_column_range_filter();
    range->set_family_name("write");
    range->set_start_qualifier_closed(kColumn);
    range->set_end_qualifier_closed(kColumn);
    chain->add_filters()->set_cells_per_column_limit_filter(1);
    grpc::ClientContext context;
    const auto reader = data_->ReadRows(&context, request);
    bt::ReadRowsResponse response;
    int cells = 0;
    while (reader->Read(&response)) cells += response.chunks_size();
    Require(reader->Finish().ok() && cells == 1, "ReadRows");
  }

  void WriteRaw(int thread) { WriteRawRow(Pick(thread)); }

  void WriteRawRow(uint64_t row) {
    bt::MutateRowRequest request;
    request.set_table_name(std::string(kInstance) + "/tables/" + raw_);
    request.set_row_key(RowName(row));
    auto* const set = request.add_mutations()->mutable_set_cell();
    set->set_family_name("write");
    set->set_column_qualifier(kColumn);
    set->set_timestamp_micros(static_cast<int64_t>(++last_) * 1000);
    set->set_value(value_);
    grpc::ClientContext context;
    bt::MutateRowResponse response;
    Require(data_->MutateRow(&context, request, &response).ok(), "MutateRow");
  }

  void ReadSnapshot(const Cluster& cluster, int thread) {
    const absl::StatusOr<Snapshot> now = cluster.GetSnapshot();
    Require(now.ok(), "GetSnapshot");
    const auto value = now->Get({table_, RowName(Pick(thread)), kColumn});
    Require(value.ok() && value->has_value(), "Get");
  }

  // Many Gets with one timestamp, as in a transaction that reads much.
  void ReadOften(int thread) {
    std::unique_ptr<Snapshot>& snapshot = SnapshotOf(thread);
    const auto value = snapshot->Get({table_, RowName(Pick(thread)), kColumn});
    Require(value.ok() && value->has_value(), "Get");
  }

  std::unique_ptr<Snapshot>& SnapshotOf(int thread) {
    {
      const std::scoped_lock lock(mutex_);
      if (snapshots_.empty()) snapshots_.resize(64);
    }
    std::unique_ptr<Snapshot>& snapshot = snapshots_[static_cast<size_t>(thread)];
    if (snapshot == nullptr) {
      absl::StatusOr<Snapshot> now = one_step_.cluster->GetSnapshot();
      Require(now.ok(), "GetSnapshot");
      snapshot = std::make_unique<Snapshot>(*std::move(now));
    }
    return snapshot;
  }

  void Commit(const Cluster& cluster, int thread) {
    for (;;) {
      Transaction t(cluster);
      t.Set({table_, RowName(Pick(thread)), kColumn}, value_);
      const CommitResult result = t.Commit();
      if (result.committed()) return;
      Require(IsConflict(result.status), "Commit");
    }
  }

  void DrawTimestamp() { Require(two_phase_.far_oracle->GetTimestamp().ok(), "GetTimestamp"); }

  // Writes one cell without a condition, as MutateRow does, in Percolator's own protocol. No transaction reads the column.
  void MutateStore(int thread) {
    const std::vector<RowMutation> mutations = {
        {table_, RowName(Pick(thread)), {}, {Mutation::Set(Family::kWrite, "raw", Timestamp(++last_), value_)}}};
    const absl::StatusOr<MutateResult> result = two_phase_.store->Mutate(mutations).front();
    Require(result.ok() && *result == MutateResult::kApplied, "Mutate");
  }

  void Write(const Cluster& cluster, int rows, bool read) {
    Transaction t(cluster);
    for (int i = 0; i < rows; ++i) {
      const std::string row = RowName(next_row_++ % static_cast<uint64_t>(settings_.rows));
      if (read) Require(t.Get({table_, row, kColumn}).ok(), "Get");
      t.Set({table_, row, kColumn}, value_);
    }
    Require(t.Commit().committed(), "Commit");
  }

  // The cost of a write and its observer, which reads the cell that changed and writes another one.
  void CountObserver(Unbatched* how, const std::string& name) {
    WorkerOptions options;
    options.scan_period = std::chrono::hours(1);  // hints announce all changes; scans would be counted as well
    Worker worker(*how->cluster, options);
    const auto copy = [](ReadWrite& t, const Notification& changed) -> absl::Status {
      const CellName& cell = changed.cell;
      PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(cell));
      t.Set({cell.table, cell.row, "copy"}, value.value_or(""));
      return absl::OkStatus();
    };
    worker.Observe(
        {.name = how == &two_phase_ ? "copy2" : "copy1", .table = table_, .column = "observed", .run = copy});
    Require(worker.Start().ok(), "starting a worker");
    Count(how, name + ", write one cell; observer copies it", [&] {
      const absl::Status written = how->cluster->Transact([&](ReadWrite& t) {
        t.Set({table_, RowName(next_row_++), "observed"}, value_);
      });
      Require(written.ok(), "Transact");
    });
    Require(worker.WaitUntilIdle(kTimeout).ok(), "waiting for the worker");
    worker.Stop().IgnoreError();
  }

  template <typename Run>
  void Count(Unbatched* how, const std::string& name, const Run& run) {
    Requests& requests = how->requests;
    const auto all = {&requests.reads,       &requests.mutations, &requests.timestamps,
                      &requests.safe_points, &requests.claims,    &requests.hints};
    run();  // requests that are sent only once
    std::this_thread::sleep_for(kRest);
    for (std::atomic<int>* count : all) *count = 0;
    for (int i = 0; i < kCounted; ++i) run();
    std::this_thread::sleep_for(kRest);
    std::printf("  %-46s", name.c_str());
    for (const std::atomic<int>* count : all) std::printf(" %10.2f", static_cast<double>(*count) / kCounted);
    std::printf("\n");
  }

  uint64_t Pick(int thread) {
    return random_[static_cast<size_t>(thread)].Below(static_cast<uint64_t>(settings_.rows));
  }

  const RemoteSettings settings_;
  const std::string value_;
  std::vector<Random> random_;
  Unbatched one_step_;
  Unbatched two_phase_;
  std::optional<Cluster> batched_;
  std::unique_ptr<bt::Bigtable::Stub> data_;
  std::unique_ptr<admin::BigtableTableAdmin::Stub> admin_;
  std::string table_;
  std::string raw_;
  std::atomic<uint64_t> last_{0};
  uint64_t next_row_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Snapshot>> snapshots_;
};

}  // namespace

int RunFigure8Remote(const RemoteSettings& settings) {
  constexpr std::string_view kScheme = "percolator://";
  if (!settings.cluster.starts_with(kScheme)) {
    std::fprintf(stderr, "figure8: --cluster is percolator://HOST:PORT, of a `percolator serve`\n");
    return 2;
  }
  RemoteContest contest(settings, settings.cluster.substr(kScheme.size()));
  double read = 0;
  double two_phase = 0;
  double one_step = 0;
  for (const int threads : settings.threads) {
    const double ratio = contest.Read(threads);
    if (threads == settings.threads.front()) read = ratio;
  }
  for (const int threads : settings.threads) {
    const auto [two, one] = contest.Write(threads);
    if (threads != settings.threads.front()) continue;
    two_phase = two;
    one_step = one;
  }
  contest.CountRequests();
  std::printf("figure8 remote_read_ratio=%.2f remote_write_ratio_2pc=%.2f remote_write_ratio_onestep=%.2f\n", read,
              two_phase, one_step);
  return 0;
}

}  // namespace percolator
