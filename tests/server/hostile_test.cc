// SPDX-License-Identifier: Apache-2.0

// A server with hostile or broken clients, or an odd network. Whatever they send, keep open or never read, the server
// continues to serve others, within its limits of memory, and stops on request.

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
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
#include "src/oracle/batching_oracle.h"
#include "src/server/coordination_service.h"
#include "src/server/executor.h"
#include "src/server/grpc_settings.h"
#include "src/server/oracle_service.h"
#include "src/server/requests.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "tests/processes/raw_connection.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kTimeout(60);
constexpr size_t kMiB = size_t{1} << 20;
constexpr char kTable[] = "projects/p/instances/i/tables/big";
constexpr int kBigRows = 48;

// The memory of this process, which contains clients and server.
size_t MemoryInUse() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() {
    options_.listen = "127.0.0.1:0";
    options_.store.durability = Durability::kNoSync;
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    channel_ = Connect();
  }

  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const {
    return *OpenChannel(StrCat("127.0.0.1:", server_->port()), TlsFiles());
  }

  // Expects that a well-behaved client is served, on a new connection.
  void ExpectServes() const {
    const absl::StatusOr<Cluster> cluster = Cluster::Open(server_->address());
    ASSERT_THAT(cluster, IsOk());
    if (const absl::Status created = cluster->CreateTable("good"); !absl::IsAlreadyExists(created)) {
      ASSERT_THAT(created, IsOk());
    }
    EXPECT_THAT(cluster->Transact([](ReadWrite& t) { t.Set({"good", "row", "column"}, "value"); }), IsOk());
  }

  // Expects that the server stops in spite of all open calls.
  void ExpectStops() {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(server_->Stop(std::chrono::milliseconds(500)), IsOk());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kTimeout);
  }

  // Calls a method by name with the given bytes.
  grpc::Status CallWith(const std::string& method, const std::string& bytes,
                        grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) const {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetTimeout(&context, kTimeout);
    context.set_compression_algorithm(compression);
    const grpc::Slice slice(bytes);
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

  // Makes a table with this number of rows of one MiB each, by Bigtable's API.
  void MakeBigTable(int rows) const {
    admin::CreateTableRequest create;
    create.set_parent("projects/p/instances/i");
    create.set_table_id("big");
    (*create.mutable_table()->mutable_column_families())["f"];
    admin::Table table;
    const auto tables = admin::BigtableTableAdmin::NewStub(channel_);
    ASSERT_THAT(Call(*tables, &admin::BigtableTableAdmin::Stub::CreateTable, kTimeout, create, &table), IsOk());
    const auto data = bt::Bigtable::NewStub(channel_);
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

  // Many clients ask for these rows and do not read them. Stops the server.
  void ExpectUnreadRowsAreBounded(const bt::ReadRowsRequest& request);

  TempDir dir_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// A stream of answers that is opened and never read.
template <typename Response>
struct Unread {
  std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
  std::unique_ptr<grpc::ClientReader<Response>> reader;

  Unread() = default;
  Unread(Unread&&) = default;
  ~Unread() {
    if (reader == nullptr) return;
    context->TryCancel();
    for (Response response; reader->Read(&response);) {
    }
    reader->Finish();
  }
};

std::string RandomBytes(size_t size, std::mt19937* random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// All methods of the server, as /package.Service/Method.
std::vector<std::string> AllMethods() {
  std::vector<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::ReadRequest::descriptor()->file(), bt::ReadRowsRequest::descriptor()->file(),
        admin::Table::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        methods.push_back(StrCat("/", service.full_name(), "/", service.method(m)->name()));
      }
    }
  }
  return methods;
}

// --- Requests

TEST_F(HostileTest, BytesOfAnotherProtocolAreRefused) {
  Start();
  std::mt19937 random(1);
  std::vector<std::string> garbage = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", std::string(100'000, '\0'),
                                      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\r\n\r\n\r\n\r\n"};
  for (int i = 0; i < 20; ++i) {
    garbage.push_back(RandomBytes(50'000, &random));
    garbage.push_back(std::string(kHttp2Preface) + RandomBytes(50'000, &random));
  }
  for (const std::string& bytes : garbage) {
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.connected());
    connection.Send(bytes);
    EXPECT_TRUE(connection.WaitForClose(kTimeout)) << bytes.substr(0, 30);
  }
  ExpectServes();
}

TEST_F(HostileTest, ConnectionsThatEndInTheMiddleAreClosed) {
  Start();
  const std::string half_headers("\0\x40\0\x01\x04\0\0\0\x01\x82\x84", 11);  // announces 16 KiB, and has two bytes
  const std::string all = StrCat(kHttp2Preface, Http2Frame(kHttp2Settings, 0, 0, ""), half_headers);
  for (size_t size = 1; size <= all.size(); ++size) {
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.connected());
    connection.Send(all.substr(0, size));
  }
  ExpectServes();
}

TEST_F(HostileTest, MalformedMessagesAreRefused) {
  Start();
  const std::vector<std::string> methods = AllMethods();
  ASSERT_GT(methods.size(), 35U);
  for (const std::string& method : methods) {
    for (const std::string& bytes : {std::string(100, '\xff'), std::string("\x0a\x7f"), std::string(1, '\x07')}) {
      const grpc::Status status = CallWith(method, bytes);
      EXPECT_FALSE(status.ok()) << method;
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << method;
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method << ": " << status.error_message();
    }
  }
  ExpectServes();
}

// Each field of each request may be absent, or have another type.
TEST_F(HostileTest, MessagesWithWrongFieldsAreRefused) {
  Start();
  std::mt19937 random(2);
  for (const std::string& method : AllMethods()) {
    if (method.ends_with("/Listen")) continue;  // it does not end
    for (int i = 0; i < 10; ++i) {
      std::string bytes;
      for (int field = 1; i > 0 && field <= 6; ++field) {
        if (random() % 2 == 0) continue;
        const std::string content =
            random() % 2 == 0 ? "" : std::string("\x08\x63");  // a number that is not in any enum
        bytes += static_cast<char>(field << 3 | 2);
        bytes += static_cast<char>(content.size());
        bytes += content;
      }
      const grpc::Status status = CallWith(method, bytes);
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << method;
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method << ": " << status.error_message();
    }
  }
  ExpectServes();
}

TEST_F(HostileTest, UnknownMethodsAreRefused) {
  Start();
  for (const char* const method : {"/percolator.v1.Store/Nothing", "/nobody.Nothing/Nothing", "/", "/a/b/c/d"}) {
    EXPECT_EQ(CallWith(method, "").error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
  }
  ExpectServes();
}

TEST_F(HostileTest, InvalidNumbersAndNamesAreRefused) {
  Start();
  const auto stub = v1::Store::NewStub(channel_);
  v1::ReadRequest read;
  v1::RowRead* const row = read.add_reads();
  row->set_row("r");
  v1::ReadResponse read_response;
  EXPECT_THAT(Call(*stub, &v1::Store::Stub::Read, kTimeout, read, &read_response),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("table")));
  row->add_selectors()->set_family(static_cast<v1::Family>(77));
  EXPECT_THAT(Call(*stub, &v1::Store::Stub::Read, kTimeout, read, &read_response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("77")));
  v1::CreateTableResponse create_response;
  EXPECT_THAT(Call(*stub, &v1::Store::Stub::CreateTable, kTimeout, v1::CreateTableRequest(), &create_response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table name is empty")));
  v1::MutateRequest mutate;
  v1::MutateResponse mutate_response;
  mutate.add_mutations()->mutable_condition()->set_quantifier(static_cast<v1::Condition::Quantifier>(9));
  EXPECT_THAT(Call(*stub, &v1::Store::Stub::Mutate, kTimeout, mutate, &mutate_response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("9")));
  mutate.mutable_mutations(0)->clear_condition();
  mutate.mutable_mutations(0)->add_mutations();
  EXPECT_THAT(Call(*stub, &v1::Store::Stub::Mutate, kTimeout, mutate, &mutate_response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("neither")));
  ExpectServes();
}

// Timestamps are microseconds: a client that draws a million at once would skip ten seconds with ten requests.
TEST_F(HostileTest, TooManyTimestampsAreRefused) {
  static_assert(BatchingOracle::kMaxShared <= OracleService::kMaxAtOnce,
                "a request shared by all threads of a process is served");
  Start();
  const auto stub = v1::Oracle::NewStub(channel_);
  const auto draw = [&](uint32_t count) {
    v1::GetTimestampsRequest request;
    request.set_count(count);
    v1::GetTimestampsResponse response;
    return Call(*stub, &v1::Oracle::Stub::GetTimestamps, kTimeout, request, &response);
  };
  EXPECT_THAT(draw(OracleService::kMaxAtOnce), IsOk());
  for (const uint32_t count : {uint32_t{0}, OracleService::kMaxAtOnce + 1, Oracle::kMaxCount, UINT32_MAX}) {
    EXPECT_THAT(draw(count), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("16384"))) << count;
  }
  v1::MutateRequest mutate;
  mutate.set_draw(true);
  for (uint32_t i = 0; i <= OracleService::kMaxAtOnce; ++i) mutate.add_mutations();
  v1::MutateResponse response;
  EXPECT_THAT(Call(*v1::Store::NewStub(channel_), &v1::Store::Stub::Mutate, kTimeout, mutate, &response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("16384")));
  ExpectServes();
}

// It would end all transactions forever: each would start below the safe point.
TEST_F(HostileTest, ASafePointInTheFutureIsRefused) {
  Start();
  ExpectServes();
  const absl::StatusOr<Cluster> cluster = Cluster::Open(server_->address());
  ASSERT_THAT(cluster, IsOk());
  const Timestamp now = cluster->GetSnapshot()->timestamp();
  RemoteStore store(channel_, kTimeout);
  for (const Timestamp ts : {Timestamp::Infinity(), Timestamp(Timestamp::Infinity().value() - 1),
                             Timestamp(now.value() + uint64_t{3'600'000'000})}) {
    EXPECT_THAT(store.RaiseSafePoint(ts), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the oracle is at")));
  }
  EXPECT_THAT(store.SafePoint(), IsOkAndHolds(Timestamp()));
  EXPECT_THAT(cluster->GetSnapshot()->Get({"good", "row", "column"}),
              IsOkAndHolds(std::optional<std::string>("value")));
  ExpectServes();
  EXPECT_THAT(store.RaiseSafePoint(now), IsOk());
  ExpectServes();
}

TEST_F(HostileTest, MessagesThatAreTooLargeAreRefused) {
  options_.max_request_bytes = kMiB;
  options_.max_response_bytes = kMiB;
  Start();
  RemoteStore store(channel_, kTimeout);
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  const auto set = [&](const std::string& column, size_t size) {
    return store.Mutate({{"t", "r", {}, {Mutation::Set(Family::kData, column, Timestamp(1), std::string(size, 'v'))}}})
        .front();
  };
  EXPECT_THAT(set("a", 2 * kMiB), StatusIs(absl::StatusCode::kResourceExhausted)) << "the request";
  EXPECT_THAT(set("a", kMiB / 2), IsOk()) << "the connection is still usable";
  EXPECT_THAT(set("b", kMiB * 3 / 4), IsOk());
  EXPECT_THAT(store.Read({{"t", "r", {{.family = Family::kData}}}}), StatusIs(absl::StatusCode::kResourceExhausted))
      << "the answer";
  EXPECT_EQ(channel_->GetState(false), GRPC_CHANNEL_READY);
  ExpectServes();
}

// A message of a few megabytes can name millions of rows.
TEST_F(HostileTest, TooManyRowsInARequestAreRefused) {
  constexpr int kRows = 1'000'000;
  Start();
  ASSERT_NO_FATAL_FAILURE(MakeBigTable(0));
  const auto many = [](const std::string& entry) {
    std::string bytes;
    for (int i = 0; i < kRows; ++i) bytes += entry;
    return bytes;
  };
  const std::string first = many(std::string("\x0a\0", 2));   // field 1, of no bytes
  const std::string second = many(std::string("\x12\0", 2));  // field 2
  bt::MutateRowsRequest entries;
  entries.set_table_name(kTable);
  bt::ReadRowsRequest keys;
  keys.set_table_name(kTable);
  for (int i = 0; i < kRows; ++i) keys.mutable_rows()->add_row_keys("k");
  for (const auto& [method, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"/percolator.v1.Store/Read", first},
           {"/percolator.v1.Store/Mutate", first},
           {"/percolator.v1.Store/MutateTogether", second},
           {"/google.bigtable.v2.Bigtable/MutateRows", entries.SerializeAsString() + second},
           {"/google.bigtable.v2.Bigtable/ReadRows", keys.SerializeAsString()}}) {
    const grpc::Status status = CallWith(method, bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("the limit is 100000")) << method;
  }
  ExpectServes();
}

// Two bytes of an empty message become a hundred when they are parsed.
TEST_F(HostileTest, RequestsThatGrowInMemoryAreRefused) {
  Start();
  ExpectServes();
  std::string empties;
  while (empties.size() < 20 * kMiB) empties.append("\x0a\0", 2);
  const size_t before = MemoryInUse();
  const grpc::Status many = CallWith("/percolator.v1.Store/Read", empties);
  EXPECT_EQ(many.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << many.error_message();
  EXPECT_THAT(many.error_message(), HasSubstr("128 MiB of memory"));
  // A known field with the bytes of another type, a number or the start and end of a group, is kept as an unknown one.
  for (const std::string_view other : {std::string_view("\x08\0", 2), std::string_view("\x0b\x0c", 2)}) {
    std::string fields;
    while (fields.size() < 20 * kMiB) fields.append(other);
    EXPECT_EQ(CallWith("/percolator.v1.Store/Read", fields).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    EXPECT_EQ(CallWith("/percolator.v1.Store/Read", empties, algorithm).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
  EXPECT_LT(MemoryInUse(), before + 200 * kMiB);
  ExpectServes();
}

// Requests of 1 KiB and more are estimated before they are parsed, with their maps.
TEST_F(HostileTest, ATableOfManyFamiliesIsCreated) {
  Start();
  admin::CreateTableRequest request;
  request.set_parent("projects/p/instances/i");
  request.set_table_id("many");
  for (int i = 0; i < 40; ++i) {
    auto& family = (*request.mutable_table()->mutable_column_families())[StrCat("a-family-with-a-long-name-", i)];
    family.mutable_gc_rule()->set_max_num_versions(3);
  }
  ASSERT_GT(request.ByteSizeLong(), size_t{1} << 10);
  admin::Table table;
  const auto stub = admin::BigtableTableAdmin::NewStub(channel_);
  EXPECT_THAT(Call(*stub, &admin::BigtableTableAdmin::Stub::CreateTable, kTimeout, request, &table), IsOk());
  EXPECT_EQ(table.column_families_size(), 40);
  ExpectServes();
}

TEST_F(HostileTest, EachMethodLimitsTheSizeOfItsRequests) {
  Start();
  for (const auto& [method, bytes] : std::vector<std::pair<std::string, size_t>>{
           {"/percolator.v1.Oracle/GetTimestamps", 2'000},
           {"/percolator.v1.Coordination/KeepAlive", 2'000},
           {"/percolator.v1.Coordination/Listen", 2'000},
           {"/percolator.v1.Coordination/Claim", 200'000},
           {"/percolator.v1.Store/CreateTable", 200'000},
           {"/google.bigtable.v2.Bigtable/SampleRowKeys", 200'000},
           {"/google.bigtable.admin.v2.BigtableTableAdmin/CreateTable", 2'000'000},
           {"/google.bigtable.admin.v2.BigtableInstanceAdmin/GetInstance", 200'000}}) {
    const grpc::Status status = CallWith(method, std::string(bytes, '\x7a'));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("the limit for this method")) << method;
  }
  ExpectServes();
}

TEST_F(HostileTest, TablesAndSchemasAreLimited) {
  Start();
  RemoteStore store(channel_, kTimeout);
  EXPECT_THAT(store.CreateTable({"t", std::string(StoreLimits().max_schema_bytes + 1, 's')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than the limit of 65536")));
  absl::Status status;
  for (size_t i = 0; status.ok() && i <= StoreLimits().max_tables; ++i)
    status = store.CreateTable({StrCat("t", i), ""});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000 tables")));
  const std::string large(StoreLimits().max_schema_bytes, 's');
  status = absl::OkStatus();
  for (size_t i = 0; status.ok() && i <= StoreLimits().max_total_schema_bytes / large.size(); ++i) {
    ASSERT_THAT(store.DropTable(StrCat("t", i)), IsOk());
    status = store.CreateTable({StrCat("large", i), large});
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the schemas of all tables")));
  EXPECT_EQ(store.ListTables()->size(), StoreLimits().max_tables - 1);
}

// More requests than can wait: some are refused, so that their clients try again, and the others are answered.
TEST_F(HostileTest, WaitingRequestsAreLimited) {
  constexpr int kThreads = 32;
  options_.threads = 1;
  options_.max_waiting_requests = 4;
  Start();
  RemoteStore store(channel_, kTimeout);
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  ASSERT_THAT(
      store.Mutate({{"t", "r", {}, {Mutation::Set(Family::kData, "c", Timestamp(1), std::string(4 * kMiB, 'v'))}}})
          .front(),
      IsOk());
  std::atomic<int> served = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        const absl::Status status = store.Read({{"t", "r", {{.family = Family::kData}}}}).status();
        EXPECT_THAT(status, AnyOf(IsOk(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("too busy"))));
        ++(status.ok() ? served : refused);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(served, 0);
  EXPECT_GT(refused, 0);
  ExpectServes();
}

// A program with many threads that read large rows over one connection has no more scans in progress than fit.
TEST_F(HostileTest, ManyThreadsScanLargeRowsOverOneConnection) {
  constexpr int kThreads = 64;
  constexpr size_t kRowBytes = 4 * kMiB;
  options_.max_unsent_bytes_per_connection = 100 * kMiB;
  Start();
  RemoteStore store(channel_, kTimeout);
  ASSERT_THAT(store.CreateTable({"t", ""}), IsOk());
  const Mutation set = Mutation::Set(Family::kData, "c", Timestamp(1), std::string(kRowBytes, 'v'));
  ASSERT_THAT(store.Mutate({{"t", "r", {}, {set}}}).front(), IsOk());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const absl::StatusOr<ScanPage> page = store.Scan({"t", {}, {{.family = Family::kData}}, 1});
      ASSERT_THAT(page, IsOk());
      EXPECT_EQ(page->rows.size(), 1U);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// --- Open connections and calls

TEST_F(HostileTest, AThousandIdleConnectionsDoNoHarm) {
  constexpr size_t kConnections = 1000;
  constexpr size_t kBytesEach = 200'000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kFiles = 2 * kConnections + 200;  // this process has both ends
  if (limit.rlim_max < kFiles) GTEST_SKIP() << "a process may have only " << limit.rlim_max << " files here";
  if (limit.rlim_cur < kFiles) {
    limit.rlim_cur = kFiles;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  Start();
  ExpectServes();
  const size_t before = MemoryInUse();
  std::vector<RawConnection> connections;
  for (size_t i = 0; i < kConnections; ++i) {
    connections.emplace_back(server_->port());
    ASSERT_TRUE(connections.back().connected()) << i;
    if (i % 3 == 1) connections.back().Send(kHttp2Preface);
    if (i % 3 == 2) connections.back().Send(kHttp2Preface.substr(0, 10));
    if (i % 200 == 0) ExpectServes();
  }
  ExpectServes();
  EXPECT_LT(MemoryInUse(), before + kConnections * kBytesEach);
  ExpectStops();
}

// The limits of calls and headers hold for a client that never acknowledges the settings that contain them.
TEST_F(HostileTest, LimitsHoldForClientsThatAcknowledgeNothing) {
  Start();
  RawConnection calls(server_->port());
  calls.Send(Http2Begin());
  for (uint32_t i = 0; i < 900; ++i) calls.Send(Http2Call(2 * i + 1, "/percolator.v1.Store/Mutate"));
  EXPECT_TRUE(calls.WaitForClose(kTimeout));

  constexpr uint8_t kHeaders = 1;
  constexpr uint8_t kContinuation = 9;
  const size_t before = MemoryInUse();
  RawConnection headers(server_->port());
  headers.Send(Http2Begin());
  headers.Send(Http2Frame(kHeaders, 0, 1, std::string("\x40\x01x\x00", 4)));
  // One byte each, of the header that is defined above.
  for (int i = 0; i < 200; ++i) headers.Send(Http2Frame(kContinuation, 0, 1, std::string(16'000, '\xbe')));
  ExpectServes();
  EXPECT_LT(MemoryInUse(), before + 64 * kMiB);
}

// Calls that begin and never end: without a message, with half of one, or with one that announces the max size.
TEST_F(HostileTest, HalfOpenCallsDoNoHarm) {
  constexpr uint32_t kCalls = 100;  // per connection, as many as allowed
  constexpr size_t kBytesEach = 20'000;
  Start();
  ExpectServes();
  const size_t before = MemoryInUse();
  const std::vector<std::string> methods = AllMethods();
  std::vector<RawConnection> connections;
  for (const std::string& message : {std::string(), std::string("\0\0", 2), std::string("\0\x04\0\0\0\x0a", 6)}) {
    RawConnection& connection = connections.emplace_back(server_->port());
    ASSERT_TRUE(connection.connected());
    connection.Send(Http2Begin());
    for (uint32_t call = 0; call < kCalls; ++call) {
      const uint32_t stream = 2 * call + 1;
      connection.Send(Http2Call(stream, methods[call % methods.size()]));
      if (!message.empty()) connection.Send(Http2Frame(kHttp2Data, 0, stream, message));
    }
    EXPECT_TRUE(connection.WaitUntilHeard(kTimeout));
  }
  ExpectServes();
  EXPECT_LT(MemoryInUse(), before + connections.size() * kCalls * kBytesEach);
  ExpectStops();
}

TEST_F(HostileTest, SessionsAndListenersAreLimited) {
  constexpr size_t kMax = 5;
  options_.max_sessions = kMax;
  options_.session_ttl = std::chrono::minutes(2);
  Start();
  const auto stub = v1::Coordination::NewStub(channel_);
  v1::OpenSessionResponse opened;
  const auto open = [&] {
    return Call(*stub, &v1::Coordination::Stub::OpenSession, kTimeout, v1::OpenSessionRequest(), &opened);
  };
  const auto keep_alive = [&](uint64_t session) {
    v1::KeepAliveRequest request;
    request.set_session(session);
    v1::KeepAliveResponse response;
    return Call(*stub, &v1::Coordination::Stub::KeepAlive, kTimeout, request, &response);
  };
  for (size_t i = 0; i < kMax; ++i) EXPECT_THAT(open(), IsOk());
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(open(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("5 sessions")));
    EXPECT_THAT(keep_alive(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("5 sessions"))) << "a new one";
  }
  EXPECT_THAT(keep_alive(opened.session()), IsOk()) << "an existing session";
  v1::EndSessionRequest end;
  end.set_session(opened.session());
  v1::EndSessionResponse ended;
  EXPECT_THAT(Call(*stub, &v1::Coordination::Stub::EndSession, kTimeout, end, &ended), IsOk());
  ExpectServes();

  std::vector<Unread<v1::Hints>> listeners;
  v1::Hints hints;
  for (size_t i = 0; i < kMax; ++i) {
    Unread<v1::Hints>& listener = listeners.emplace_back();
    listener.reader = stub->Listen(listener.context.get(), v1::ListenRequest());
    ASSERT_TRUE(listener.reader->Read(&hints));
  }
  grpc::ClientContext context;
  SetTimeout(&context, kTimeout);
  const auto reader = stub->Listen(&context, v1::ListenRequest());
  while (reader->Read(&hints)) {
  }
  EXPECT_THAT(FromGrpc(reader->Finish()), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("5 listeners")));
  ExpectServes();
  ExpectStops();
}

TEST_F(HostileTest, NamesAndHintsAreLimited) {
  Start();
  const auto stub = v1::Coordination::NewStub(channel_);
  v1::OpenSessionResponse session;
  ASSERT_THAT(Call(*stub, &v1::Coordination::Stub::OpenSession, kTimeout, v1::OpenSessionRequest(), &session), IsOk());
  const std::string long_name(CoordinationService::kMaxNameBytes + 1, 'n');
  v1::CampaignRequest campaign;
  campaign.set_session(session.session());
  campaign.set_role(long_name);
  v1::CampaignResponse leads;
  EXPECT_THAT(Call(*stub, &v1::Coordination::Stub::Campaign, kTimeout, campaign, &leads),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
  v1::ClaimRequest claim;
  claim.set_session(session.session());
  claim.set_row(long_name);
  v1::ClaimResponse granted;
  EXPECT_THAT(Call(*stub, &v1::Coordination::Stub::Claim, kTimeout, claim, &granted),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
  v1::SendHintsRequest hints;
  for (int i = 0; i <= CoordinationService::kMaxHints; ++i) hints.add_cells();
  v1::SendHintsResponse sent;
  EXPECT_THAT(Call(*stub, &v1::Coordination::Stub::SendHints, kTimeout, hints, &sent),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
  ExpectServes();
}

// Many listeners that do not read: the total size of their queues is limited too.
TEST_F(HostileTest, UnreadHintsOfManyListenersAreLimited) {
  constexpr int kListeners = 300;
  constexpr int kStreams = 75;  // per connection, which may have 100
  // The limit itself, the same again on its way through gRPC, and as much to spare. Without a limit it would be three
  // times a MiB for each listener.
  constexpr size_t kBound = 3 * CoordinationService::kMaxHintBytes;
  Start();
  // The client's end is in this process too, so it must not accept more than 64 KiB of each stream.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own for each channel
  std::vector<std::unique_ptr<v1::Coordination::Stub>> stubs;
  std::vector<Unread<v1::Hints>> listeners;
  for (int i = 0; i < kListeners; ++i) {
    if (i % kStreams == 0) {
      stubs.push_back(v1::Coordination::NewStub(grpc::CreateCustomChannel(
          StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials(), arguments)));
    }
    Unread<v1::Hints>& listener = listeners.emplace_back();
    listener.reader = stubs.back()->Listen(listener.context.get(), v1::ListenRequest());
    v1::Hints first;
    ASSERT_TRUE(listener.reader->Read(&first));
  }
  v1::SendHintsRequest hints;
  hints.set_sender(1);
  for (int i = 0; i < 90; ++i) hints.add_cells()->set_row(std::string(10'000, 'r'));
  const auto sender = v1::Coordination::NewStub(channel_);
  const size_t before = MemoryInUse();
  size_t most = 0;
  for (int i = 0; i < 10; ++i) {
    v1::SendHintsResponse response;
    ASSERT_THAT(Call(*sender, &v1::Coordination::Stub::SendHints, kTimeout, hints, &response), IsOk());
    most = std::max(most, MemoryInUse());
  }
  EXPECT_LT(most, before + kBound);
  ExpectServes();
  ExpectStops();
}

// A listener that does not read: the size of its queue is limited, however large the hints.
TEST_F(HostileTest, UnreadHintsOfAListenerAreLimited) {
  constexpr int kListeners = 8;
  constexpr size_t kBound = 250 * kMiB;  // without a limit, 10,000 hints of 10 kB for each, or the 400 MB sent
  Start();
  std::vector<std::unique_ptr<v1::Coordination::Stub>> stubs;
  std::vector<Unread<v1::Hints>> listeners;
  v1::SendHintsRequest hints;
  for (int i = 0; i < 100; ++i) hints.add_cells()->set_row(std::string(10'000, 'r'));
  for (int i = 0; i < kListeners; ++i) {
    stubs.push_back(v1::Coordination::NewStub(Connect()));
    Unread<v1::Hints>& listener = listeners.emplace_back();
    listener.reader = stubs.back()->Listen(listener.context.get(), v1::ListenRequest());
    v1::Hints first;
    ASSERT_TRUE(listener.reader->Read(&first));
  }
  const auto sender = v1::Coordination::NewStub(channel_);
  const size_t before = MemoryInUse();
  hints.set_sender(1);
  size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    v1::SendHintsResponse response;
    ASSERT_THAT(Call(*sender, &v1::Coordination::Stub::SendHints, kTimeout, hints, &response), IsOk());
    most = std::max(most, MemoryInUse());
  }
  EXPECT_LT(most, before + kBound);
  ExpectServes();
  ExpectStops();
}

// Hints are advice: one request cannot make the server write any number of them.
TEST_F(HostileTest, HintsOfARequestToManyListenersAreLimited) {
  constexpr size_t kListeners = 40;
  constexpr size_t kEach = CoordinationService::kMaxHintsPassed / kListeners;
  Start();
  const auto stub = v1::Coordination::NewStub(channel_);
  std::vector<Unread<v1::Hints>> listeners;
  v1::Hints message;
  for (size_t i = 0; i < kListeners; ++i) {
    Unread<v1::Hints>& listener = listeners.emplace_back();
    listener.reader = stub->Listen(listener.context.get(), v1::ListenRequest());
    ASSERT_TRUE(listener.reader->Read(&message));
  }
  v1::SendHintsRequest hints;
  hints.set_sender(1);
  for (int i = 0; i < CoordinationService::kMaxHints; ++i) hints.add_cells()->set_row(StrCat(i));
  v1::SendHintsResponse sent;
  ASSERT_THAT(Call(*stub, &v1::Coordination::Stub::SendHints, kTimeout, hints, &sent), IsOk());
  for (const Unread<v1::Hints>& listener : listeners) {
    ASSERT_TRUE(listener.reader->Read(&message));
    EXPECT_EQ(static_cast<size_t>(message.cells_size()), kEach);
    EXPECT_EQ(message.cells(0).row(), "0");
  }
  ExpectStops();
}

TEST_F(HostileTest, ListenersThatComeAndGoWhileHintsAreSent) {
  Start();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto stub = v1::Coordination::NewStub(Connect());
      v1::SendHintsRequest hints;
      hints.set_sender(1);
      hints.add_cells()->set_row("r");
      v1::SendHintsResponse response;
      while (!stop) EXPECT_THAT(Call(*stub, &v1::Coordination::Stub::SendHints, kTimeout, hints, &response), IsOk());
    });
  }
  std::atomic<int> heard = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto stub = v1::Coordination::NewStub(Connect());
      for (int n = 0; !stop; ++n) {
        Unread<v1::Hints> listener;
        listener.reader = stub->Listen(listener.context.get(), v1::ListenRequest());
        if ((n + i) % 3 == 0) continue;  // cancelled at once
        v1::Hints hints;
        if (!listener.reader->Read(&hints)) continue;
        EXPECT_EQ(hints.cells_size(), 0) << "the first message only says that the listener is registered";
        ++heard;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  for (int i = 0; heard == 0 && i < 60'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ExpectServes();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(heard, 0);
  ExpectStops();
}

void HostileTest::ExpectUnreadRowsAreBounded(const bt::ReadRowsRequest& request) {
  constexpr int kReaders = 24;
  constexpr size_t kBound = kReaders * 16 * kMiB;  // each a page and what is on its way; all rows would be 48 MiB each
  const size_t before = MemoryInUse();
  std::vector<std::unique_ptr<bt::Bigtable::Stub>> stubs;
  std::vector<Unread<bt::ReadRowsResponse>> readers;
  for (int i = 0; i < kReaders; ++i) {
    stubs.push_back(bt::Bigtable::NewStub(Connect()));
    Unread<bt::ReadRowsResponse>& reader = readers.emplace_back();
    reader.reader = stubs.back()->ReadRows(reader.context.get(), request);
    bt::ReadRowsResponse first;
    ASSERT_TRUE(reader.reader->Read(&first));
  }
  ExpectServes();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // time for a server that reads ahead
  EXPECT_LT(MemoryInUse(), before + kBound);
  readers.resize(0);
  ExpectServes();
  for (int i = 0; i < kReaders; ++i) {
    Unread<bt::ReadRowsResponse>& reader = readers.emplace_back();
    reader.reader = stubs[static_cast<size_t>(i)]->ReadRows(reader.context.get(), request);
  }
  ExpectStops();
}

// A row is gathered as a whole, so a larger one cannot be read.
TEST_F(HostileTest, RowsAreReadUpToALimit) {
  constexpr int kCells = 5;
  Start();
  ASSERT_NO_FATAL_FAILURE(MakeBigTable(1));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto channel =
      grpc::CreateCustomChannel(StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials(), arguments);
  const auto stub = bt::Bigtable::NewStub(channel);
  for (int i = 0; i < kCells; ++i) {
    bt::MutateRowRequest write;
    write.set_table_name(kTable);
    write.set_row_key("huge");
    bt::Mutation::SetCell* const set = write.add_mutations()->mutable_set_cell();
    set->set_family_name("f");
    set->set_column_qualifier(StrCat("q", i));
    set->set_timestamp_micros(1000);
    set->set_value(std::string(15 * kMiB, 'v'));
    bt::MutateRowResponse written;
    ASSERT_THAT(Call(*stub, &bt::Bigtable::Stub::MutateRow, kTimeout, write, &written), IsOk());
    for (const bool by_key : {false, true}) {
      bt::ReadRowsRequest request;
      request.set_table_name(kTable);
      if (by_key) request.mutable_rows()->add_row_keys("huge");
      grpc::ClientContext context;
      SetTimeout(&context, kTimeout);
      const auto reader = stub->ReadRows(&context, request);
      bt::ReadRowsResponse response;
      size_t bytes = 0;
      while (reader->Read(&response)) {
        for (const auto& chunk : response.chunks()) bytes += chunk.value().size();
      }
      const absl::Status status = FromGrpc(reader->Finish());
      if (i + 1 < kCells) {
        EXPECT_THAT(status, IsOk()) << i;
        EXPECT_GE(bytes, (i + 1) * 15 * kMiB);
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("select fewer columns")));
      }
    }
  }
  v1::ReadRequest read;
  read.add_reads()->set_table("big");
  read.mutable_reads(0)->set_row("huge");
  read.mutable_reads(0)->add_selectors();
  v1::ReadResponse response;
  EXPECT_THAT(Call(*v1::Store::NewStub(channel), &v1::Store::Stub::Read, kTimeout, read, &response),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ExpectServes();
}

TEST_F(HostileTest, UnreadRowsAreLimited) {
  Start();
  ASSERT_NO_FATAL_FAILURE(MakeBigTable(kBigRows));
  bt::ReadRowsRequest request;
  request.set_table_name(kTable);
  ExpectUnreadRowsAreBounded(request);
}

TEST_F(HostileTest, UnreadRowsReadByKeyAreLimited) {
  Start();
  ASSERT_NO_FATAL_FAILURE(MakeBigTable(kBigRows));
  bt::ReadRowsRequest request;
  request.set_table_name(kTable);
  for (int row = 0; row < kBigRows; ++row) request.mutable_rows()->add_row_keys(StrCat("row", row));
  ExpectUnreadRowsAreBounded(request);
}

// --- Shutdown

// Many clients write while the server is stopped: each write is acknowledged, and then it exists, or fails with
// Unavailable.
TEST_F(HostileTest, WritesDuringAStopAreAcknowledgedOrUnavailable) {
  constexpr int kThreads = 64;
  options_.data = dir_.path() + "/data";
  Start();
  const auto store = std::make_unique<RemoteStore>(channel_, kTimeout);
  ASSERT_THAT(store->CreateTable({"t", ""}), IsOk());
  std::atomic<int> written = 0;
  std::vector<std::vector<std::string>> acknowledged(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0;; ++n) {
        const std::string row = StrCat("row", i, "-", n);
        const auto result = store->Mutate({{"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), "v")}}});
        if (!result.front().ok()) {
          EXPECT_THAT(result.front(), StatusIs(absl::StatusCode::kUnavailable));
          return;
        }
        acknowledged[i].push_back(row);
        ++written;
      }
    });
  }
  for (int i = 0; written < 2000 && (written == 0 || i < 5000) && i < 60'000; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(server_->Stop(), IsOk());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kTimeout);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(written, 0);
  server_.reset();
  Start();
  RemoteStore after(channel_, kTimeout);
  for (const std::vector<std::string>& rows : acknowledged) {
    std::vector<RowRead> reads;
    for (const std::string& row : rows) reads.push_back({"t", row, {{.family = Family::kData}}});
    const absl::StatusOr<std::vector<Row>> found = after.Read(reads);
    ASSERT_THAT(found, IsOk());
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ((*found)[i].cells.size(), 1U) << rows[i];
  }
}

TEST(GrpcSettingsTest, GrpcHasSmallDefaultsBeforeAClientAcknowledgesOurs) { EXPECT_TRUE(HasSmallGrpcDefaults()); }

TEST(ExecutorTest, HeavyWorkDoesNotKeepLightWorkWaiting) {
  constexpr int kTasks = 1000;
  std::atomic<bool> end{false};
  std::atomic<int> niceness{-100};
  std::atomic<int> light{0};
  Executor executor(1, kTasks);
  for (int i = 0; i < 2 * kTasks; ++i) {
    executor.Run(
        [&] {
          niceness = getpriority(PRIO_PROCESS, 0);
          while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        Executor::kHeavy);
  }
  EXPECT_FALSE(executor.TryRun([] {}, Executor::kHeavy)) << "more than may wait";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(executor.TryRun([&] { ++light; }));
  const auto limit = std::chrono::steady_clock::now() + kTimeout;
  while ((light < 10 || niceness == -100) && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(light, 10);
  EXPECT_EQ(niceness, std::min(19, getpriority(PRIO_PROCESS, 0) + 15)) << "compared with this thread";
  end = true;
}

// The answer to a bad request is delayed in proportion to the work that the request caused, by at most a second.
TEST(RefusalTest, ADelayFollowsTheWorkOfABadRequest) {
  using std::chrono::milliseconds;
  const absl::Status too_much = absl::ResourceExhaustedError("too much");
  EXPECT_EQ(RefuseAfter(too_much, milliseconds(0)).delay, milliseconds(0));
  EXPECT_EQ(RefuseAfter(too_much, milliseconds(5)).delay, milliseconds(20));
  EXPECT_EQ(RefuseAfter(absl::InvalidArgumentError("bad"), milliseconds(5)).delay, milliseconds(20));
  EXPECT_EQ(RefuseAfter(too_much, std::chrono::hours(1)).delay, milliseconds(1000));
  EXPECT_EQ(RefuseAfter(absl::OkStatus(), milliseconds(5)).delay, milliseconds(0));
  EXPECT_EQ(RefuseAfter(absl::UnavailableError("later"), milliseconds(5)).delay, milliseconds(0));
}

}  // namespace
}  // namespace percolator
