// SPDX-License-Identifier: Apache-2.0

// A server and its clusters.

#include "percolator/server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/status.h"
#include "src/base/strings.h"
#include "src/coord/remote/remote_coordinator.h"
#include "src/oracle/remote/remote_oracle.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/store_service.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"
#include "src/wire/convert.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "tests/harness/eventually.h"
#include "tests/harness/hooked_store.h"
#include "tests/harness/test_oracle.h"
#include "tests/harness/wrong_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kSoon(60);

constexpr Column<int64_t> kCount("t", "n");

class ServerTest : public ::testing::Test {
 protected:
  ServerOptions Options(const std::string& listen = "127.0.0.1:0") const {
    ServerOptions options;
    options.listen = listen;
    options.data = dir_.path() + "/data";
    options.store.durability = Durability::kNoSync;
    options.session_ttl = session_ttl_;
    return options;
  }

  void Start(const std::string& listen = "127.0.0.1:0") {
    absl::StatusOr<std::unique_ptr<Server>> server;
    Eventually([&] {  // while the server was down, its port may have been used for another connection
      server = Server::Start(Options(listen));
      return !absl::IsUnavailable(server.status());
    });
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  // Starts again, at the same address.
  void Restart() {
    const std::string listen = StrCat("127.0.0.1:", server_->port());
    ASSERT_THAT(server_->Stop(), IsOk());
    server_.reset();
    Start(listen);
  }

  Cluster Open(const ClusterOptions& options = {}) {
    absl::StatusOr<Cluster> cluster;
    Eventually([&] { return (cluster = Cluster::Open(server_->address(), options)).ok(); });
    EXPECT_THAT(cluster, IsOk());
    return cluster.value();
  }

  TempDir dir_;
  std::chrono::milliseconds session_ttl_{500};
  std::unique_ptr<Server> server_;
};

absl::Status Add(const Cluster& cluster, const std::string& row, int64_t amount) {
  return cluster.Transact([&](ReadWrite& t) -> absl::Status {
    const absl::StatusOr<int64_t> old = t.Get(kCount, row, 0);
    if (!old.ok()) return old.status();
    t.Set(kCount, row, *old + amount);
    return absl::OkStatus();
  });
}

int64_t Read(const Cluster& cluster, const std::string& row) {
  absl::StatusOr<Snapshot> view = cluster.GetSnapshot();
  EXPECT_THAT(view, IsOk());
  if (!view.ok()) return -1;
  const absl::StatusOr<int64_t> value = view->Get(kCount, row, -1);
  EXPECT_THAT(value, IsOk());
  return value.value_or(-1);
}

TEST_F(ServerTest, ClustersOfManyProcessesShareOneServer) {
  Start();
  const Cluster a = Open();
  const Cluster b = Open({.one_step_commit = false});
  ASSERT_THAT(a.CreateTable("t"), IsOk());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) EXPECT_THAT(Add(i % 2 == 0 ? a : b, "r", 1), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read(a, "r"), 160);
  EXPECT_EQ(Read(b, "r"), 160);
}

TEST_F(ServerTest, AServedFolderCanBeOpenedInProcessAndViceVersa) {
  const std::string embedded = "rocksdb:" + dir_.path() + "/data";
  {
    const auto cluster = Cluster::Open(embedded);
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(cluster->CreateTable("t"), IsOk());
    ASSERT_THAT(Add(*cluster, "r", 1), IsOk());
  }
  Start();
  {
    const Cluster cluster = Open();
    ASSERT_THAT(Add(cluster, "r", 1), IsOk());
  }
  ASSERT_THAT(server_->Stop(), IsOk());
  server_.reset();
  const auto cluster = Cluster::Open(embedded);
  ASSERT_THAT(cluster, IsOk());
  EXPECT_EQ(Read(*cluster, "r"), 2);
}

TEST_F(ServerTest, AClusterContinuesWhenTheServerComesBack) {
  Start();
  const Cluster cluster = Open();
  ASSERT_THAT(cluster.CreateTable("t"), IsOk());
  std::atomic<bool> stop = false;
  std::atomic<int> done = 0;
  std::thread adder([&] {
    while (!stop) {
      const absl::Status added = Add(cluster, "r", 1);
      EXPECT_THAT(added, IsOk());
      if (added.ok()) ++done;
    }
  });
  for (int i = 0; i < 3; ++i) {
    const int before = done;
    EXPECT_TRUE(Eventually([&] { return done > before + 20; }));
    Restart();
  }
  const int before = done;
  EXPECT_TRUE(Eventually([&] { return done > before + 20; }));
  stop = true;
  adder.join();
  EXPECT_EQ(Read(cluster, "r"), done);
}

// A client that calls occasionally, and gets an error each time, is connected soon after the server is back.
TEST_F(ServerTest, AServerThatWasLongAwayIsFoundSoon) {
  Start();
  const Cluster cluster = Open({.call_timeout = std::chrono::seconds(1)});
  const std::string listen = StrCat("127.0.0.1:", server_->port());
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 3; ++round) {  // the machine may be busy for a while
    ASSERT_THAT(server_->Stop(), IsOk());
    server_.reset();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(IsTransient(cluster.GetSnapshot().status()));
    Start(listen);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(Eventually([&] { return cluster.GetSnapshot().ok(); }));
    quickest = std::min(quickest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(quickest, std::chrono::seconds(5));
}

TEST_F(ServerTest, ObserversRunInAnyProcess) {
  Start();
  const Cluster here = Open();
  const Cluster there = Open();
  ASSERT_THAT(here.CreateTable("t"), IsOk());
  WorkerOptions options;
  options.scan_period = std::chrono::seconds(3600);  // only hints
  Worker worker(there, options);
  worker.Observe(kCount, "copy", [](ReadWrite& t, const std::string& row) {
    const auto value = t.Get({"t", row, "n"});
    if (!value.ok()) return value.status();
    t.Set({"t", row, "copy"}, value->value_or(""));
    return absl::OkStatus();
  });
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_TRUE(Eventually([&] {  // repeatedly: the observer has to become known here, and a hint may be lost
    if (!Add(here, "r", 1).ok()) return false;
    absl::StatusOr<Snapshot> view = here.GetSnapshot();
    return view.ok() && view->Get({"t", "r", "copy"}).value_or(std::nullopt).has_value();
  }));
  EXPECT_THAT(worker.Stop(), IsOk());
}

TEST_F(ServerTest, ASilentSessionIsDeadUntilItIsRenewed) {
  session_ttl_ = std::chrono::seconds(3);  // a process without processor time for that long counts as dead
  Start();
  const auto channel = OpenChannel(StrCat("127.0.0.1:", server_->port()), {});
  ASSERT_THAT(channel, IsOk());
  RemoteCoordinator here(*channel, std::chrono::seconds(5));
  const auto session = here.OpenSession();
  ASSERT_THAT(session, IsOk());
  ASSERT_THAT(here.Campaign("role", **session), IsOkAndHolds(true));
  std::this_thread::sleep_for(session_ttl_ * 4 / 3);
  EXPECT_TRUE((*session)->alive());
  EXPECT_THAT(here.IsAlive((*session)->id()), IsOkAndHolds(true)) << "kept alive";
  const std::string listen = StrCat("127.0.0.1:", server_->port());
  ASSERT_THAT(server_->Stop(), IsOk());
  server_.reset();
  EXPECT_TRUE(Eventually([&] { return !(*session)->alive(); })) << "its renewals are lost";
  Start(listen);
  EXPECT_TRUE(Eventually([&] { return here.IsAlive((*session)->id()).value_or(false); })) << "the same id";
  EXPECT_TRUE(Eventually([&] { return (*session)->alive(); }));
  EXPECT_THAT(here.Campaign("role", **session), IsOkAndHolds(true));
}

TEST_F(ServerTest, TimestampsGrowOverARestart) {
  Start();
  const auto oracle = RemoteOracle::Open({StrCat("127.0.0.1:", server_->port())}, {});
  ASSERT_THAT(oracle, IsOk());
  const absl::StatusOr<Timestamp> before = (*oracle)->GetTimestamps(1000);
  ASSERT_THAT(before, IsOk());
  Restart();
  absl::StatusOr<Timestamp> after;
  ASSERT_TRUE(Eventually([&] { return (after = (*oracle)->GetTimestamp()).ok(); }));
  EXPECT_GE(after->value(), before->value() + 1000);
  EXPECT_THAT((*oracle)->GetTimestamps(0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*oracle)->GetTimestamps(Oracle::kMaxCount), StatusIs(absl::StatusCode::kInvalidArgument));
}

// T6: each is later than all timestamps drawn before its mutation, and unique.
TEST_F(ServerTest, AMutationReturnsATimestampOnRequest) {
  Start();
  const std::string target = StrCat("127.0.0.1:", server_->port());
  const auto channel = OpenChannel(target, {});
  ASSERT_THAT(channel, IsOk());
  RemoteStore store(*channel, std::chrono::seconds(60));
  const auto oracle = RemoteOracle::Open({target}, {}, std::chrono::seconds(60));
  ASSERT_THAT(oracle, IsOk());
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  const auto set = [](const char* row, Condition::Quantifier quantifier) {
    return RowMutation{"t",
                       row,
                       {quantifier, {{Family::kData, "c", TimestampRange::All()}}},
                       {Mutation::Set(Family::kData, "c", Timestamp(1), "")}};
  };
  const Timestamp before = (*oracle)->GetTimestamp().value();
  const std::vector<DrawnResult> results =
      store.MutateThenDraw({set("a", Condition::Quantifier::kNone), set("a", Condition::Quantifier::kNone),
                            set("b", Condition::Quantifier::kNone)});
  const Timestamp after = (*oracle)->GetTimestamp().value();
  ASSERT_EQ(results.size(), 3u);
  ASSERT_TRUE(results[0].drawn.has_value() && results[2].drawn.has_value());
  EXPECT_EQ(results[1].drawn, std::nullopt) << "it was not applied";
  EXPECT_LT(before, *results[0].drawn);
  EXPECT_LT(*results[0].drawn, *results[2].drawn);
  EXPECT_LT(*results[2].drawn, after);
}

// A call that is too large for one request becomes several, one after another: all is applied in order, and T6 holds.
TEST_F(ServerTest, ALargeCallTakesSeveralRequests) {
  Start();
  const std::string target = StrCat("127.0.0.1:", server_->port());
  const auto channel = OpenChannel(target, {});
  ASSERT_THAT(channel, IsOk());
  for (const RequestLimits limits :
       {RequestLimits{.entries = 3}, RequestLimits{.bytes = 1000}, RequestLimits{.bytes = 1}}) {
    RemoteStore store(*channel, std::chrono::seconds(60), limits);
    const std::string table = StrCat("t", limits.entries, "-", limits.bytes);
    ASSERT_THAT(store.CreateTable({table, ""}), IsOk());
    constexpr size_t kRows = 20;
    std::vector<RowMutation> mutations;
    std::vector<RowRead> reads;
    for (size_t i = 0; i < kRows; ++i) {
      const std::string row = StrCat("r", i % (kRows / 2));  // each row twice
      mutations.push_back(
          {table, row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), std::string(100 + i, 'v'))}});
      reads.push_back({table, row, {{.family = Family::kData}}});
    }
    for (const absl::StatusOr<MutateResult>& result : store.Mutate(mutations)) {
      EXPECT_THAT(result, IsOkAndHolds(MutateResult::kApplied));
    }
    mutations[7].condition = {Condition::Quantifier::kNone, {{Family::kData, "c", TimestampRange::All()}}};
    const std::vector<DrawnResult> drawn = store.MutateThenDraw(mutations);
    ASSERT_EQ(drawn.size(), kRows);
    std::optional<Timestamp> last;
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_THAT(drawn[i].result, IsOkAndHolds(i == 7 ? MutateResult::kConditionFailed : MutateResult::kApplied));
      EXPECT_EQ(drawn[i].drawn.has_value(), i != 7);
      if (i == 7) continue;
      EXPECT_GT(drawn[i].drawn, last);
      last = drawn[i].drawn;
    }
    const absl::StatusOr<std::vector<Row>> rows = store.Read(reads);
    ASSERT_THAT(rows, IsOk());
    ASSERT_EQ(rows->size(), kRows);
    for (size_t i = 0; i < kRows; ++i) {
      ASSERT_EQ((*rows)[i].cells.size(), 1u);
      EXPECT_EQ((*rows)[i].cells[0].value.size(), 100 + kRows / 2 + i % (kRows / 2));
    }
    EXPECT_THAT(store.Mutate({}), ::testing::IsEmpty());
    EXPECT_THAT(store.Read({}), IsOkAndHolds(std::vector<Row>()));
  }
}

TEST_F(ServerTest, ALargeAnswerTakesSeveralRequests) {
  Start();
  const auto channel = OpenChannel(StrCat("127.0.0.1:", server_->port()), {});
  ASSERT_THAT(channel, IsOk());
  RemoteStore store(*channel, std::chrono::seconds(60));
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  const std::string value(size_t{4} << 20, 'v');
  ASSERT_THAT(store.Mutate({{"t", "r", {}, {Mutation::Set(Family::kData, "c", Timestamp(1), value)}}}).front(), IsOk());
  const RowRead read{"t", "r", {{.family = Family::kData}}};

  v1::ReadRequest request;
  constexpr int kReads = 1000;
  for (int i = 0; i < kReads; ++i) ToMessage(read, request.add_reads());
  v1::ReadResponse response;
  ASSERT_THAT(Call(*v1::Store::NewStub(*channel), &v1::Store::Stub::Read, kSoon, request, &response), IsOk());
  EXPECT_GE(response.rows_size(), 1);
  EXPECT_LE(response.rows_size(), 24) << "4 GB would be too much";

  const absl::StatusOr<std::vector<Row>> rows = store.Read(std::vector<RowRead>(50, read));
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->size(), 50u);
  for (const Row& row : *rows) EXPECT_TRUE(row.cells.size() == 1 && row.cells[0].value == value);
}

TEST_F(ServerTest, ATransactionMayBeLargerThanARequest) {
  ServerOptions small = Options();
  small.max_request_bytes = size_t{12} << 20;
  server_ = Server::Start(small).value();
  const Cluster cluster = Open({.one_step_commit = false});
  ASSERT_THAT(cluster.CreateTable("t"), IsOk());
  const std::string value(size_t{3} << 20, 'v');
  const std::vector<std::string> rows = {"a", "b", "c", "d", "e", "f"};
  ASSERT_THAT(cluster.Transact([&](ReadWrite& t) {
    for (const std::string& row : rows) t.Set({"t", row, "c"}, value);
  }),
              IsOk());
  absl::StatusOr<Snapshot> view = cluster.GetSnapshot();
  ASSERT_THAT(view, IsOk());
  for (const std::string& row : rows) EXPECT_TRUE(view->Get({"t", row, "c"}).value() == value) << row;
}

TEST_F(ServerTest, AJointMutationThatIsTooLargeIsRefused) {
  Start();
  const auto channel = OpenChannel(StrCat("127.0.0.1:", server_->port()), {});
  ASSERT_THAT(channel, IsOk());
  RemoteStore store(*channel, std::chrono::seconds(60), {.joint_bytes = 1000});
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  const auto change = [&](size_t bytes) {
    return store.MutateTogether(
        {Timestamp(1), {{"t", "r", {}, {Mutation::Set(Family::kData, "c", Timestamp(1), std::string(bytes, 'v'))}}}},
        nullptr);
  };
  EXPECT_THAT(change(1000), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit of 1000")));
  EXPECT_THAT(change(900), IsOk());
}

TEST(ExecutorTest, ExcessRequestsAreRefusedAndAcceptedOnesFinish) {
  constexpr size_t kWaiting = 3;
  std::promise<void> busy;
  std::promise<void> go;
  std::atomic<size_t> done = 0;
  {
    Executor executor(/*threads=*/1, kWaiting);
    ASSERT_TRUE(executor.TryRun([&] {
      busy.set_value();
      go.get_future().wait();
    }));
    busy.get_future().wait();
    for (size_t i = 0; i < kWaiting; ++i) EXPECT_TRUE(executor.TryRun([&] { ++done; }));
    EXPECT_FALSE(executor.TryRun([&] { ++done; }));
    executor.Run([&] { ++done; });
    EXPECT_THAT(executor.TooBusy(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("limit of 3 waiting requests")));
    go.set_value();
  }
  EXPECT_EQ(done, kWaiting + 1);
}

TEST(StoreServiceTest, RequestsOfAClientThatIsGoneAreNotServed) {
  HookedStore store(NewMemoryStore());
  TestOracle oracle;
  Executor executor(/*threads=*/1, /*max_waiting=*/100);
  StoreService service(&store, &oracle, &executor);
  const absl::StatusOr<Listening> listening = Listen({.address = "127.0.0.1:0"}, {&service});
  ASSERT_THAT(listening, IsOk());
  const auto channel = OpenChannel(StrCat("127.0.0.1:", listening->port), {});
  ASSERT_THAT(channel, IsOk());
  RemoteStore patient(*channel, kSoon);
  RemoteStore hasty(*channel, std::chrono::milliseconds(100));
  ASSERT_THAT(patient.CreateTable({"t", ""}), IsOk());
  const auto write = [](RemoteStore* to, const char* row) {
    return to->Mutate({{"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), "")}}}).front();
  };
  std::promise<void> busy;
  std::promise<void> go;
  store.before_mutate = [&](const std::vector<RowMutation>& mutations) {
    if (mutations.front().row != "slow") return;
    busy.set_value();
    go.get_future().wait();
  };
  std::thread slow([&] { EXPECT_THAT(write(&patient, "slow"), IsOk()); });
  busy.get_future().wait();
  EXPECT_THAT(write(&hasty, "hasty"), StatusIs(absl::StatusCode::kDeadlineExceeded));
  std::this_thread::sleep_for(std::chrono::seconds(3));  // so that the server knows it too
  go.set_value();
  slow.join();
  EXPECT_THAT(write(&patient, "after"), IsOk());
  const absl::StatusOr<std::vector<Row>> rows = patient.Read({{"t", "hasty", {{.family = Family::kData}}}});
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->front().cells, ::testing::IsEmpty());
  listening->server->Shutdown();
  listening->server->Wait();
}

TEST_F(ServerTest, ASessionIsNotAliveAfterTheMachineHasSlept) {
  WrongClock clock;
  session_ttl_ = std::chrono::hours(1);  // no renewal during the test
  Start();
  const auto channel = OpenChannel(StrCat("127.0.0.1:", server_->port()), {});
  ASSERT_THAT(channel, IsOk());
  RemoteCoordinator coordinator(*channel, kSoon, &clock);
  const std::unique_ptr<Session> session = coordinator.OpenSession().value();
  EXPECT_TRUE(session->alive());
  clock.boot_ahead = 3'600'000'000;
  EXPECT_FALSE(session->alive());
  EXPECT_THAT(session->ReportOldestSnapshot(Timestamp(1)), IsOk());
  EXPECT_TRUE(session->alive()) << "it was renewed";
}

// A slow server whose sessions are so long that no call of theirs reaches its deadline: the server may continue with a
// call that its client has given up.
class SlowCoordination final : public v1::Coordination::Service {
 public:
  grpc::Status OpenSession(grpc::ServerContext*, const v1::OpenSessionRequest*,
                           v1::OpenSessionResponse* response) override {
    response->set_session(1);
    response->set_ttl_ms(3'600'000);
    return grpc::Status::OK;
  }
  grpc::Status KeepAlive(grpc::ServerContext*, const v1::KeepAliveRequest* request,
                         v1::KeepAliveResponse* response) override {
    if (++at_once_ > 1) overlapped = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    oldest = request->oldest_snapshot();
    --at_once_;
    response->set_ttl_ms(3'600'000);
    return grpc::Status::OK;
  }

  std::atomic<uint64_t> oldest{0};
  std::atomic<bool> overlapped{false};

 private:
  std::atomic<int> at_once_{0};
};

TEST(RemoteSessionTest, ReportsArriveInTheirOrder) {
  SlowCoordination service;
  const Listening listening = Listen({.address = "127.0.0.1:0"}, {&service}).value();
  {
    RemoteCoordinator coordinator(OpenChannel(StrCat("127.0.0.1:", listening.port), {}).value(), kSoon);
    const std::unique_ptr<Session> session = coordinator.OpenSession().value();
    const auto report = [&] {
      for (uint64_t i = 1; i <= 100; ++i) EXPECT_THAT(session->ReportOldestSnapshot(Timestamp(i)), IsOk());
    };
    std::thread other(report);
    report();
    other.join();
    EXPECT_EQ(service.oldest, 100);
  }
  EXPECT_FALSE(service.overlapped);
  listening.server->Shutdown();
}

// A server that accepts every call and answers none.
TEST(DeadlineTest, ATimeoutNamesTheCallTheServerAndTheTime) {
  grpc::AsyncGenericService silent;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&silent);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::string address = StrCat("127.0.0.1:", port);
  {
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    ASSERT_TRUE(WaitForConnection(*channel, kSoon));
    const auto stub = v1::Store::NewStub(channel);
    v1::ReadResponse response;
    const absl::Status status =
        Call(*stub, &v1::Store::Stub::Read, std::chrono::seconds(1), v1::ReadRequest(), &response);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(StrCat("ReadRequest: no answer from ", address, " within 1000 ms")));
  }
  server->Shutdown(std::chrono::system_clock::now());
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

TEST_F(ServerTest, AnErrorSaysWhyAServerCannotStart) {
  Start();
  ServerOptions options = Options(StrCat("127.0.0.1:", server_->port()));
  options.data = dir_.path() + "/other";
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("address is in use")));
  options.listen = "127.0.0.1:0";
  options.data = dir_.path() + "/data";
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kFailedPrecondition)) << "its data is in use";
  options.data = "";
  for (const char* reached_by_others : {"0.0.0.0:0", "127.example.org:0"}) {
    options.listen = reached_by_others;
    EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")));
  }
  options.listen = "0.0.0.0:0";
  options.allow_plaintext = true;
  EXPECT_THAT(Server::Start(options), IsOk());
  options.listen = "nonsense";
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
  options.listen = "127.0.0.1:0";
  options.threads = 0;
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.threads = 1;
  options.max_waiting_requests = 0;
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.max_waiting_requests = 1;
  for (const size_t bytes : {size_t{0}, size_t{2} << 30, size_t{4} << 30}) {
    options.max_request_bytes = bytes;
    EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_bytes")));
  }
  options.max_request_bytes = ServerOptions().max_request_bytes;
  options.tls.cert = "/nowhere/cert";
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.tls.key = "/nowhere/key";
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nowhere/cert")));
}

TEST_F(ServerTest, ACallWithoutAServerFailsInTime) {
  Start();
  const std::string address = server_->address();
  ASSERT_THAT(server_->Stop(), IsOk());
  EXPECT_TRUE(Eventually([&] {  // a busy machine may need more than one attempt
    return absl::IsUnavailable(Cluster::Open(address, {.call_timeout = std::chrono::seconds(1)}).status());
  }));
}

}  // namespace
}  // namespace percolator
