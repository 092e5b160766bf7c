// SPDX-License-Identifier: Apache-2.0

// A server under attack: attackers send, keep open and never read what costs the most, each way alone and all at once,
// while a client works. The server is a process of its own that may open 1,024 files. It survives with less than 1 GB
// of memory, gives the memory back, and the client continues to work.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/server.h"
#include "src/base/strings.h"
#include "src/wire/channel.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "tests/processes/child_process.h"
#include "tests/processes/raw_connection.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;
using std::chrono::steady_clock;

constexpr rlim_t kFiles = 1024;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMemory = 1000 * kMiB;
constexpr size_t kKept = 250 * kMiB;  // the max growth by an attack, for caches and the buffers of the store
constexpr std::chrono::seconds kLongestWait(5);
// The max factor by which an attack may slow the good client down, compared with right before it.
constexpr double kSlower = 3;
constexpr int kTries = 3;  // because other load may disturb one of them
constexpr std::chrono::milliseconds kBaseline(700);
constexpr std::chrono::milliseconds kAttack(1500);
constexpr std::chrono::seconds kTimeout(20);
constexpr char kTable[] = "projects/p/instances/i/tables/big";

// The process under attack. Prints its address, and ends with the test.
int Serve(const std::string& data) {
  const rlimit files{kFiles, kFiles};
  setrlimit(RLIMIT_NOFILE, &files);
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data = data;
  options.store.durability = Durability::kNoSync;
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) {
    std::cerr << server.status() << std::endl;
    return 1;
  }
  std::cout << (*server)->port() << std::endl;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// A client that works until stopped: transactions that write a cell and read it.
class GoodClient {
 public:
  explicit GoodClient(const Cluster& cluster) : cluster_(cluster), thread_([this] { Work(); }) {}
  ~GoodClient() {
    stop_ = true;
    thread_.join();
  }

  // The number of transactions in a second.
  double RateDuring(const std::function<void()>& what) {
    const int before = done_;
    const auto begin = steady_clock::now();
    what();
    const std::chrono::duration<double> took = steady_clock::now() - begin;
    return (done_ - before) / took.count();
  }

  std::chrono::milliseconds longest() const { return std::chrono::milliseconds(longest_ms_); }
  int failed() const { return failed_; }

 private:
  void Work() {
    for (int i = 0; !stop_; ++i) {
      const auto begin = steady_clock::now();
      const std::string row = StrCat("row", i % 100);
      const absl::Status written = cluster_.Transact([&](ReadWrite& t) {
        const auto value = t.Get({"good", row, "column"});
        if (!value.ok()) return value.status();
        t.Set({"good", row, "column"}, StrCat(i));
        return absl::OkStatus();
      });
      if (!written.ok()) {
        ++failed_;
        std::cerr << "the good client: " << written << std::endl;
      }
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin).count();
      longest_ms_ = std::max<int64_t>(longest_ms_, took);
      ++done_;
    }
  }

  const Cluster cluster_;
  std::atomic<bool> stop_{false};
  std::atomic<int> done_{0};
  std::atomic<int> failed_{0};
  std::atomic<int64_t> longest_ms_{0};
  std::thread thread_;
};

std::shared_ptr<grpc::Channel> Connect(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments);
}

// Attacks, each without end.
class Attacker {
 public:
  explicit Attacker(int port) : port_(port) {}

  void Run(const std::string& name) const {
    if (name == "idle") IdleConnections();
    if (name == "empties") Empties("/percolator.v1.Store/Read", GRPC_COMPRESS_NONE);
    if (name == "oracle") Empties("/percolator.v1.Oracle/GetTimestamps", GRPC_COMPRESS_NONE);
    if (name == "packed") Empties("/percolator.v1.Store/Read", GRPC_COMPRESS_GZIP);
    if (name == "filters") Interleave();
    if (name == "selectors") SelectorsOfOneColumn();
    if (name == "unread") UnreadStreams();
    if (name == "schemas") Schemas();
    if (name == "half") HalfRequests();
    if (name == "calls") CallsWithoutRequests();
  }

 private:
  static void Forever() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }

  // Expects that the server refuses the request. A failure printed here is an error of the test.
  static void ExpectRefused(std::string_view what, bool ok) {
    if (ok) std::cout << what << " was answered" << std::endl;
  }

  grpc::Status CallWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                        const std::string& bytes, grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) const {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    SetTimeout(&context, kTimeout);
    context.set_compression_algorithm(compression);
    const grpc::Slice slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  void IdleConnections() const {
    std::vector<RawConnection> connections;
    for (int i = 0; i < 1500; ++i) {
      connections.emplace_back(port_);
      if (i % 3 == 1) connections.back().Send(kHttp2Preface);
      if (i % 3 == 2) connections.back().Send(Http2Begin());
    }
    Forever();
  }

  // Empty messages in a repeated field, as many as the max size of a request allows.
  void Empties(const std::string& method, grpc_compression_algorithm compression) const {
    std::string empties(79 * kMiB, '\0');
    for (size_t i = 0; i < empties.size(); i += 2) empties[i] = '\x0a';
    const auto channel = Connect(port_);
    for (;;) ExpectRefused(method, CallWith(channel, method, empties, compression).ok());
  }

  void Interleave() const {
    bt::ReadRowsRequest request;
    request.set_table_name(kTable);
    for (int i = 0; i < 2000; ++i)
      request.mutable_filter()->mutable_interleave()->add_filters()->set_pass_all_filter(true);
    const auto stub = bt::Bigtable::NewStub(Connect(port_));
    for (;;) {
      grpc::ClientContext context;
      SetTimeout(&context, kTimeout);
      const auto reader = stub->ReadRows(&context, request);
      bt::ReadRowsResponse response;
      while (reader->Read(&response)) {
      }
      ExpectRefused("a filter", reader->Finish().ok());
    }
  }

  void SelectorsOfOneColumn() const {
    v1::ReadRequest request;
    v1::RowRead* const read = request.add_reads();
    read->set_table("big");
    read->set_row("row1");
    for (int i = 0; i < 2000; ++i) read->add_selectors()->set_column(std::string("f\0q", 3));
    const auto stub = v1::Store::NewStub(Connect(port_));
    for (;;) {
      v1::ReadResponse response;
      ExpectRefused("a request", Call(*stub, &v1::Store::Stub::Read, kTimeout, request, &response).ok());
    }
  }

  void UnreadStreams() const {
    struct Stream {
      grpc::ClientContext context;
      std::unique_ptr<grpc::ClientReader<bt::ReadRowsResponse>> reader;
    };
    bt::ReadRowsRequest request;
    request.set_table_name(kTable);
    std::vector<std::unique_ptr<bt::Bigtable::Stub>> stubs;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < 1000; ++i) {
      if (i % 100 == 0) stubs.push_back(bt::Bigtable::NewStub(Connect(port_)));
      Stream& stream = *streams.emplace_back(std::make_unique<Stream>());
      stream.reader = stubs.back()->ReadRows(&stream.context, request);
    }
    Forever();
  }

  void Schemas() const {
    const auto stub = v1::Store::NewStub(Connect(port_));
    v1::CreateTableRequest request;
    request.mutable_table()->set_schema(std::string(60 * kMiB, 's'));
    for (int i = 0;; ++i) {
      request.mutable_table()->set_name(StrCat("schema", i));
      v1::CreateTableResponse response;
      ExpectRefused("a request", Call(*stub, &v1::Store::Stub::CreateTable, kTimeout, request, &response).ok());
    }
  }

  // Requests whose last bytes never come.
  void HalfRequests() const {
    const std::string head("\0\x04\xff\xff\xff", 5);  // announces 80 MiB
    const std::string part = Http2Frame(kHttp2Data, 0, 1, std::string(16'000, 'x'));
    std::vector<RawConnection> connections;
    for (int i = 0; i < 10; ++i) {
      RawConnection& connection = connections.emplace_back(port_);
      connection.Send(Http2Begin());
      connection.Send(Http2Call(1, "/percolator.v1.Store/Mutate"));
      connection.Send(Http2Frame(kHttp2Data, 0, 1, head));
      for (int n = 0; n < 4; ++n) connection.Send(part);  // as much as the server allows before it accepts a request
    }
    Forever();
  }

  // As many calls on each connection as allowed, whose requests never come.
  void CallsWithoutRequests() const {
    constexpr uint8_t kAcknowledge = 1;
    std::string calls = Http2Begin() + Http2Frame(kHttp2Settings, kAcknowledge, 0, "");
    for (uint32_t i = 0; i < 100; ++i) calls += Http2Call(2 * i + 1, "/percolator.v1.Store/Mutate");
    std::vector<RawConnection> connections;
    for (int i = 0; i < 400; ++i) connections.emplace_back(port_).Send(calls);
    Forever();
  }

  const int port_;
};

// A process of attackers, with low priority, because real attackers have machines of their own.
int RunAttacks(int port, const std::vector<std::string>& names) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  setpriority(PRIO_PROCESS, 0, 19);
  const Attacker attacker(port);
  std::vector<std::thread> threads;
  for (const std::string& name : names) threads.emplace_back([&attacker, &name] { attacker.Run(name); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

class AttackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ =
        std::make_unique<ChildProcess>(std::vector<std::string>{"/proc/self/exe", "serve", dir_.path() + "/data"});
    std::string port;
    ASSERT_TRUE(server_->ReadLine(&port));
    port_ = std::stoi(port);
    ASSERT_NO_FATAL_FAILURE(MakeBigTable(48));
    absl::StatusOr<Cluster> cluster = Open();
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(cluster->CreateTable("good"), IsOk());
    good_ = std::make_unique<GoodClient>(*cluster);
  }

  absl::StatusOr<Cluster> Open() const { return Cluster::Open(StrCat("percolator://127.0.0.1:", port_)); }

  // A new client may have to try again while every connection of the server is younger than a second.
  bool CanOpen() const {
    const auto end = steady_clock::now() + kLongestWait;
    while (!Open().ok()) {
      if (steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  void MakeBigTable(int rows) const {
    admin::CreateTableRequest create;
    create.set_parent("projects/p/instances/i");
    create.set_table_id("big");
    (*create.mutable_table()->mutable_column_families())["f"];
    admin::Table table;
    const auto channel = Connect(port_);
    const auto tables = admin::BigtableTableAdmin::NewStub(channel);
    ASSERT_THAT(Call(*tables, &admin::BigtableTableAdmin::Stub::CreateTable, kTimeout, create, &table), IsOk());
    const auto data = bt::Bigtable::NewStub(channel);
    for (int row = 0; row < rows; ++row) {
      bt::MutateRowRequest request;
      request.set_table_name(kTable);
      request.set_row_key(StrCat("row", row));
      bt::Mutation::SetCell* const set = request.add_mutations()->mutable_set_cell();
      set->set_family_name("f");
      set->set_column_qualifier("q");
      set->set_timestamp_micros(1000);
      set->set_value(std::string(kMiB, 'v'));
      bt::MutateRowResponse response;
      ASSERT_THAT(Call(*data, &bt::Bigtable::Stub::MutateRow, kTimeout, request, &response), IsOk());
    }
  }

  // In bytes, from /proc.
  size_t Memory(std::string_view which) const {
    std::ifstream file(StrCat("/proc/", server_->pid(), "/status"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(which)) return std::stoul(line.substr(which.size() + 1)) << 10;
    }
    return 0;
  }

  void ForgetPeak() const { std::ofstream(StrCat("/proc/", server_->pid(), "/clear_refs")) << "5"; }

  // Runs attacks together for a while, and checks the server and the good client.
  void Expect(const std::string& name, const std::vector<std::string>& attacks) {
    double kept = Attack(name, attacks);
    for (int tries = 1; kept < 1 / kSlower && !kSanitized && tries < kTries; ++tries) kept = Attack(name, attacks);
    EXPECT_TRUE(kept >= 1 / kSlower || kSanitized) << name << ": the good client kept only " << kept << " of its rate";
  }

  // Returns the fraction of its rate that the good client kept. Checks everything else.
  double Attack(const std::string& name, const std::vector<std::string>& attacks) {
    const double usual = good_->RateDuring([] { std::this_thread::sleep_for(kBaseline); });
    const size_t before = Memory("VmRSS");
    ForgetPeak();
    std::vector<std::string> argv = {"/proc/self/exe", "attack", StrCat(port_)};
    argv.insert(argv.end(), attacks.begin(), attacks.end());
    ChildProcess attackers(argv);
    const double rate = good_->RateDuring([] { std::this_thread::sleep_for(kAttack); });
    EXPECT_TRUE(CanOpen()) << name << ": a new client";
    kill(attackers.pid(), SIGKILL);
    EXPECT_EQ(attackers.ReadAll(), "") << name;
    const size_t peak = Memory("VmHWM");
    size_t after = Memory("VmRSS");
    for (int i = 0; i < 150 && after > before + kKept; ++i) {  // the server frees memory every ten seconds
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      after = Memory("VmRSS");
    }
    std::cout << name << ": memory " << before / kMiB << " MiB, peak " << peak / kMiB << ", after " << after / kMiB
              << "; the good client " << static_cast<int>(rate) << "/s, before it " << static_cast<int>(usual)
              << ", longest wait " << good_->longest().count() << " ms" << std::endl;
    EXPECT_GT(peak, 0U) << name << ": the server is gone";
    if (!kSanitized) {
      EXPECT_LT(peak, kMemory) << name;
      EXPECT_LT(after, before + kKept) << name;
    }
    EXPECT_LT(good_->longest(), kLongestWait) << name;
    EXPECT_EQ(good_->failed(), 0) << name;
    return rate / usual;
  }

  TempDir dir_;
  std::unique_ptr<ChildProcess> server_;
  int port_ = 0;
  std::unique_ptr<GoodClient> good_;
};

TEST_F(AttackTest, AServerSurvivesEachAttackAndAllTogether) {
  Expect("idle connections", {"idle"});
  Expect("empty messages", {"empties", "empties", "empties"});
  Expect("empty messages for the oracle", {"oracle"});
  Expect("compressed requests", {"packed", "packed"});
  Expect("filters that multiply", {"filters", "filters"});
  Expect("selectors of one column", {"selectors", "selectors"});
  Expect("unread streams", {"unread"});
  Expect("large schemas", {"schemas", "schemas"});
  Expect("half requests", {"half"});
  Expect("all together", {"idle", "empties", "packed", "filters", "selectors", "unread", "schemas", "half"});
  Expect("calls without requests", {"calls"});
  EXPECT_THAT(Open(), IsOk());
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "serve") == 0) return percolator::Serve(argv[2]);
  if (argc >= 3 && std::strcmp(argv[1], "attack") == 0) {
    return percolator::RunAttacks(std::stoi(argv[2]), {argv + 3, argv + argc});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
