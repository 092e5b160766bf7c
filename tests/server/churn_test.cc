// SPDX-License-Identifier: Apache-2.0

// A server whose clients come and go: clusters, workers, sessions, streams, tables and bare connections are opened and
// closed, left open, cancelled, or their process is killed in the middle. The server is a process of its own. After
// each round its clients are gone and its sockets closed; over the rounds its files, threads and memory do not grow. At
// the end it stops on request, with exit code 0: with AddressSanitizer this proves that nothing has leaked.
//
// The program is its own server and its own client: "serve DATA [CERT KEY]", "client HOST:PORT CA SEED".
//
// PERCOLATOR_CHURN_SECONDS: the duration for each mode, instead of a few rounds. PERCOLATOR_TEST_SEED: the seed of the
// clients' actions and kills.

#include <dirent.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/server.h"
#include "src/base/strings.h"
#include "src/wire/channel.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "tests/processes/certificates.h"
#include "tests/processes/child_process.h"
#include "tests/processes/raw_connection.h"
#include "tests/stress/chain.h"
#include "tests/stress/killing.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;
using std::chrono::steady_clock;

constexpr size_t kMiB = size_t{1} << 20;
constexpr std::chrono::seconds kTimeout(60);
constexpr std::chrono::seconds kPatience(120);  // anything that takes longer hangs
constexpr int kClients = 3;
constexpr int kLeastRounds = Amount(12, 3);
constexpr char kInstance[] = "projects/p/instances/i";
constexpr char kLeftTable[] = "left";  // the prefix of tables that clients may leave

// --- The server

int Serve(const std::string& data, const TlsFiles& tls) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // also for threads started later
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data = data;
  options.tls = tls;
  options.session_ttl = std::chrono::seconds(1);
  // Small caches and buffers, which are full soon, so that later growth is a leak.
  options.store.durability = Durability::kNoSync;
  options.store.block_cache_bytes = 4 * kMiB;
  options.store.version_cache_bytes = 4 * kMiB;
  options.store.write_buffer_bytes = kMiB;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) {
    std::cerr << server.status() << std::endl;
    return 1;
  }
  std::cout << (*server)->port() << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  const absl::Status stopped = (*server)->Stop();
  if (!stopped.ok()) std::cerr << stopped << std::endl;
  return stopped.ok() ? 0 : 1;
}

// --- Clients

ClusterOptions ForClients() {
  ClusterOptions options;
  options.lock_lease = std::chrono::seconds(1);
  options.gc_retention = std::chrono::seconds(2);
  options.gc_period = std::chrono::milliseconds(200);
  return options;
}

// Performs random actions that cost the server something, until it is killed.
class Client {
 public:
  Client(std::string target, TlsFiles tls, uint64_t seed)
      : target_(std::move(target)), tls_(std::move(tls)), random_(seed) {}

  static std::string AddressOf(const std::string& target, const TlsFiles& tls) {
    return StrCat("percolator://", target, tls.ca.empty() ? "" : "?ca=", tls.ca);
  }

  // Prints a line for each action. Returns if no action succeeds.
  int Run() {
    constexpr int kMaxFailures = 20;  // consecutive
    for (int failures = 0; failures < kMaxFailures;) {
      const absl::Status done = AnyThing();
      failures = done.ok() ? 0 : failures + 1;
      if (done.ok()) {
        std::cout << "done" << std::endl;
      } else {
        std::cerr << "client: " << done << std::endl;
      }
    }
    return 1;
  }

 private:
  // A call of a stream that stays open.
  template <typename Response>
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<Response>> reader;
  };

  absl::Status AnyThing() {
    switch (random_() % 7) {
      case 0:
        return ReadAndWrite();
      case 1:
        return RunWorker();
      case 2:
        return MakeTable();
      case 3:
        return CancelRows();
      case 4:
        return LeaveRowsUnread();
      case 5:
        return OpenSessions();
      default:
        return CallWithoutPatience();
    }
  }

  absl::StatusOr<Cluster> Open() { return Cluster::Open(AddressOf(target_, tls_), ForClients()); }

  absl::Status ReadAndWrite() {
    const absl::StatusOr<Cluster> cluster = Open();
    if (!cluster.ok()) return cluster.status();
    for (int i = 0; i < 5; ++i) {
      if (absl::Status s = ChangeSources(*cluster, &random_); !s.ok()) return s;
    }
    absl::StatusOr<Snapshot> now = cluster->GetSnapshot();
    if (!now.ok()) return now.status();
    int left = 3;
    for (const absl::StatusOr<ScannedRow>& row : now->Scan("src")) {
      if (!row.ok()) return row.status();
      if (--left == 0) break;
    }
    return absl::OkStatus();
  }

  absl::Status RunWorker() {
    const absl::StatusOr<Cluster> cluster = Open();
    if (!cluster.ok()) return cluster.status();
    Worker worker(*cluster);
    ObserveChain(&worker);
    if (absl::Status s = worker.Start(); !s.ok()) return s;
    return ChangeSources(*cluster, &random_);
  }

  absl::Status MakeTable() {
    const absl::StatusOr<Cluster> cluster = Open();
    if (!cluster.ok()) return cluster.status();
    const std::string table = StrCat(kLeftTable, getpid(), "-", ++made_);
    if (absl::Status s = cluster->CreateTable(table); !s.ok()) return s;
    const absl::Status written = cluster->Transact([&](ReadWrite& t) {
      for (int row = 0; row < 20; ++row) t.Set({table, StrCat("row", row), "c"}, std::string(1000, 'v'));
    });
    if (!written.ok()) return written;
    return random_() % 2 == 0 ? cluster->DropTable(table) : absl::OkStatus();
  }

  // A connection of its own. Channels with the same arguments would share one.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() { return OpenChannel(target_, tls_); }

  static bt::ReadRowsRequest AllRows() {
    bt::ReadRowsRequest request;
    request.set_table_name(StrCat(kInstance, "/tables/big"));
    return request;
  }

  absl::Status CancelRows() {
    const auto channel = Connect();
    if (!channel.ok()) return channel.status();
    const auto stub = bt::Bigtable::NewStub(*channel);
    for (int i = 0; i < 5; ++i) {
      Stream<bt::ReadRowsResponse> rows;
      rows.reader = stub->ReadRows(&rows.context, AllRows());
      bt::ReadRowsResponse response;
      if (!rows.reader->Read(&response)) return FromGrpc(rows.reader->Finish());
      rows.context.TryCancel();
      while (rows.reader->Read(&response)) {
      }
      rows.reader->Finish();
    }
    return absl::OkStatus();
  }

  // The streams stay open until the process ends.
  absl::Status LeaveRowsUnread() {
    constexpr size_t kMax = 20;
    const auto channel = Connect();
    if (!channel.ok()) return channel.status();
    const auto stub = bt::Bigtable::NewStub(*channel);
    if (unread_.size() >= kMax) unread_.clear();
    auto rows = std::make_unique<Stream<bt::ReadRowsResponse>>();
    rows->reader = stub->ReadRows(&rows->context, AllRows());
    rows->reader->WaitForInitialMetadata();
    unread_.push_back(std::move(rows));
    return absl::OkStatus();
  }

  // Most of them are never ended.
  absl::Status OpenSessions() {
    const auto channel = Connect();
    if (!channel.ok()) return channel.status();
    const auto stub = v1::Coordination::NewStub(*channel);
    for (int i = 0; i < 10; ++i) {
      v1::OpenSessionResponse opened;
      absl::Status s = Call(*stub, &v1::Coordination::Stub::OpenSession, kTimeout, v1::OpenSessionRequest(), &opened);
      if (!s.ok()) return s;
      v1::ClaimRequest claim;
      claim.set_table("src");
      claim.set_row(StrCat("row", random_() % 1000));
      claim.set_session(opened.session());
      v1::ClaimResponse claimed;
      if (s = Call(*stub, &v1::Coordination::Stub::Claim, kTimeout, claim, &claimed); !s.ok()) return s;
      if (i > 0) continue;
      v1::EndSessionRequest end;
      end.set_session(opened.session());
      v1::EndSessionResponse ended;
      if (s = Call(*stub, &v1::Coordination::Stub::EndSession, kTimeout, end, &ended); !s.ok()) return s;
    }
    Stream<v1::Hints> hints;
    hints.reader = stub->Listen(&hints.context, v1::ListenRequest());
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 10));
    hints.context.TryCancel();
    hints.reader->Finish();
    return absl::OkStatus();
  }

  // Most answers come after its timeout.
  absl::Status CallWithoutPatience() {
    const auto channel = Connect();
    if (!channel.ok()) return channel.status();
    if (!WaitForConnection(**channel, kTimeout)) return absl::UnavailableError("no connection");
    const auto stub = v1::Store::NewStub(*channel);
    v1::ScanRequest request;
    request.set_table("big");
    request.add_selectors();
    for (int i = 0; i < 10; ++i) {
      v1::ScanResponse response;
      Call(*stub, &v1::Store::Stub::Scan, std::chrono::microseconds(random_() % 3000), request, &response)
          .IgnoreError();
    }
    return absl::OkStatus();
  }

  const std::string target_;
  const TlsFiles tls_;
  std::mt19937_64 random_;
  int made_ = 0;
  std::vector<std::unique_ptr<Stream<bt::ReadRowsResponse>>> unread_;
};

// --- Measurements

struct Footprint {
  size_t descriptors = 0;
  size_t sockets = 0;  // included in the descriptors
  size_t threads = 0;
  size_t memory = 0;  // MiB
};

// The number at the beginning of a line of /proc/PID/status.
size_t StatusOf(pid_t pid, std::string_view name) {
  std::ifstream file(StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::stoul(line.substr(name.size() + 1));
  }
  return 0;
}

Footprint FootprintOf(pid_t pid) {
  Footprint footprint{.threads = StatusOf(pid, "Threads"), .memory = StatusOf(pid, "VmRSS") >> 10};
  const std::string folder = StrCat("/proc/", pid, "/fd");
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return footprint;
  while (const dirent* entry = readdir(dir)) {
    char target[64];
    const ssize_t length = readlink(StrCat(folder, "/", entry->d_name).c_str(), target, sizeof(target));
    if (length <= 0) continue;  // "." and ".."
    ++footprint.descriptors;
    if (std::string_view(target, static_cast<size_t>(length)).starts_with("socket:")) ++footprint.sockets;
  }
  closedir(dir);
  return footprint;
}

// The amount by which the minimum of the last third of the values exceeds the maximum of the first third. Values that
// fluctuate within bounds give zero; a leak gives at least the growth of a third of the time.
size_t Growth(const std::vector<size_t>& values) {
  const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
  if (third == 0) return 0;
  const size_t before = *std::max_element(values.begin(), values.begin() + third);
  const size_t after = *std::min_element(values.end() - third, values.end());
  return after > before ? after - before : 0;
}

TEST(GrowthTest, ALeakGrowsAndAFluctuationDoesNot) {
  EXPECT_EQ(Growth({}), 0u);
  EXPECT_EQ(Growth({5, 9}), 0u);
  EXPECT_EQ(Growth({7, 7, 7, 7, 7, 7}), 0u);
  EXPECT_EQ(Growth({70, 90, 75, 99, 80, 95}), 0u);
  EXPECT_EQ(Growth({90, 80, 70, 60, 50, 40}), 0u);
  EXPECT_EQ(Growth({10, 20, 30, 40, 50, 60}), 30u);
  EXPECT_EQ(Growth({10, 25, 20, 45, 40, 65, 60, 85, 80}), 35u);
}

// --- The test

class ChurnTest : public ::testing::Test {
 protected:
  void Start(const TlsFiles& tls = {}, const std::string& ca = {}) {
    tls_.ca = ca;
    std::vector<std::string> argv = {"/proc/self/exe", "serve", dir_.path() + "/data"};
    if (!tls.empty()) argv.insert(argv.end(), {tls.cert, tls.key});
    server_ = std::make_unique<ChildProcess>(argv, std::vector<std::string>{"GRPC_VERBOSITY=NONE"});
    std::string port;
    ASSERT_TRUE(server_->ReadLine(&port));
    port_ = std::stoi(port);
    before_ = FootprintOf(server_->pid());
    ASSERT_GT(before_.sockets, 0u);
    MakeTables();
  }

  std::string Target() const { return StrCat("127.0.0.1:", port_); }
  absl::StatusOr<Cluster> Open() const { return Cluster::Open(Client::AddressOf(Target(), tls_), ForClients()); }

  void MakeTables() const {
    const auto channel = OpenChannel(Target(), tls_);
    ASSERT_THAT(channel, IsOk());
    admin::CreateTableRequest create;
    create.set_parent(kInstance);
    create.set_table_id("big");
    (*create.mutable_table()->mutable_column_families())["f"];
    admin::Table table;
    const auto tables = admin::BigtableTableAdmin::NewStub(*channel);
    ASSERT_THAT(Call(*tables, &admin::BigtableTableAdmin::Stub::CreateTable, kTimeout, create, &table), IsOk());
    const auto data = bt::Bigtable::NewStub(*channel);
    for (int row = 0; row < 16; ++row) {
      bt::MutateRowRequest request;
      request.set_table_name(StrCat(kInstance, "/tables/big"));
      request.set_row_key(StrCat("row", row));
      bt::Mutation::SetCell* const set = request.add_mutations()->mutable_set_cell();
      set->set_family_name("f");
      set->set_column_qualifier("q");
      set->set_timestamp_micros(1000);
      set->set_value(std::string(kMiB / 4, 'v'));
      bt::MutateRowResponse response;
      ASSERT_THAT(Call(*data, &bt::Bigtable::Stub::MutateRow, kTimeout, request, &response), IsOk());
    }
    const absl::StatusOr<Cluster> cluster = Open();
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(SetUpChain(*cluster), IsOk());
  }

  // Connections that send nothing, garbage, or the beginning of a call, and are dropped.
  void DropConnections() {
    const std::string half =
        Http2Begin() + Http2Call(1, "/percolator.v1.Store/Mutate") + Http2Frame(kHttp2Data, 0, 1, std::string(2, '\0'));
    const std::string listen = Http2Begin() + Http2Call(1, "/percolator.v1.Coordination/Listen");
    const std::string_view said[] = {"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", kHttp2Preface, half, listen};
    for (int i = 0; i < 30; ++i) {
      RawConnection connection(port_);
      connection.Send(said[random_() % std::size(said)]);
    }
  }

  // Clients work, and are killed in the middle of an action.
  void LetClientsLiveAndDie() {
    std::vector<std::unique_ptr<ChildProcess>> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{"/proc/self/exe", "client", Target(), tls_.ca, StrCat(random_())}));
    }
    DropConnections();
    for (const auto& client : clients) {
      for (uint64_t things = 2 + random_() % 6; things > 0; --things) {
        std::string line;
        ASSERT_TRUE(client->ReadLine(&line)) << "a client has ended by itself";
        ++done_;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20'000));
      kill(client->pid(), SIGKILL);
      ++kills_;
    }
  }

  // Removes what clients have left in the store, which would grow.
  void TidyUp() {
    const absl::StatusOr<Cluster> cluster = Open();
    ASSERT_THAT(cluster, IsOk());
    const absl::StatusOr<std::vector<std::string>> tables = cluster->ListTables();
    ASSERT_THAT(tables, IsOk());
    for (const std::string& table : *tables) {
      if (!table.starts_with(kLeftTable)) continue;
      // The server may still be dropping it for a dead client.
      const absl::Status dropped = cluster->DropTable(table);
      ASSERT_TRUE(dropped.ok() || absl::IsNotFound(dropped)) << dropped;
    }
    ASSERT_THAT(cluster->CollectGarbage(), IsOk());
  }

  // Waits until the server has noticed that its clients are gone.
  void WaitUntilAlone() {
    const auto end = steady_clock::now() + kPatience;
    Footprint now = FootprintOf(server_->pid());
    while (now.sockets > before_.sockets && steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      now = FootprintOf(server_->pid());
    }
    ASSERT_LE(now.sockets, before_.sockets) << "connections of dead clients stay open";
    ASSERT_GT(now.sockets, 0u) << "the server is gone";
  }

  void Run() {
    const char* const wanted = std::getenv("PERCOLATOR_CHURN_SECONDS");
    const auto end = steady_clock::now() + std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 0);
    std::vector<size_t> descriptors;
    std::vector<size_t> threads;
    std::vector<size_t> memory;
    for (int round = 0; round < kLeastRounds || steady_clock::now() < end; ++round) {
      ASSERT_NO_FATAL_FAILURE(LetClientsLiveAndDie());
      ASSERT_NO_FATAL_FAILURE(TidyUp());
      ASSERT_NO_FATAL_FAILURE(WaitUntilAlone());
      const Footprint now = FootprintOf(server_->pid());
      descriptors.push_back(now.descriptors);
      threads.push_back(now.threads);
      memory.push_back(now.memory);
      std::cout << "round " << round << ": " << now.descriptors << " descriptors, " << now.threads << " threads, "
                << now.memory << " MiB" << std::endl;
    }
    std::cout << kills_ << " kills in " << memory.size() << " rounds, " << done_ << " actions; memory "
              << before_.memory << " MiB before, " << memory.front() << " to " << memory.back() << std::endl;
    // The numbers of files of the store and of threads of gRPC vary too.
    EXPECT_LE(Growth(descriptors), 30u);
    EXPECT_LE(Growth(threads), 20u);
    if (!kSanitized) {
      EXPECT_LE(Growth(memory), 16u) << "MiB";
    }
    kill(server_->pid(), SIGTERM);
    EXPECT_EQ(server_->Wait(), 0) << "the server leaks, or does not stop";
  }

  TempDir dir_;
  TlsFiles tls_;  // of clients
  std::mt19937_64 random_{TestSeed()};
  std::unique_ptr<ChildProcess> server_;
  int port_ = 0;
  Footprint before_;
  int done_ = 0;
  int kills_ = 0;
};

TEST_F(ChurnTest, NothingIsLeftOfDeadClients) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Run();
}

TEST_F(ChurnTest, NothingIsLeftOfClientsWithTls) {
  if (!Certificates::Available()) GTEST_SKIP() << "no command openssl";
  Certificates certificates(dir_.path());
  ASSERT_TRUE(certificates.MakeAuthority("ca"));
  ASSERT_TRUE(certificates.Make("server", "ca"));
  ASSERT_NO_FATAL_FAILURE(Start({.ca = {}, .cert = certificates.Cert("server"), .key = certificates.Key("server")},
                                certificates.Cert("ca")));
  Run();
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if ((argc == 3 || argc == 5) && arguments[0] == "serve") {
    percolator::TlsFiles tls;
    if (argc == 5) tls = {.ca = {}, .cert = arguments[2], .key = arguments[3]};
    return percolator::Serve(arguments[1], tls);
  }
  if (argc == 5 && arguments[0] == "client") {
    const percolator::TlsFiles tls{.ca = arguments[2], .cert = {}, .key = {}};
    return percolator::Client(arguments[1], tls, std::stoull(arguments[3])).Run();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
