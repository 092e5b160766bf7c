// SPDX-License-Identifier: Apache-2.0

// Reverse scans over the wire: servers that do not support them, answers that break off, and ReadRows of our own
// server.

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/server/bigtable/read.h"
#include "src/store/bigtable/bigtable_store.h"
#include "src/store/bigtable/row_parser.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"
#include "src/wire/convert.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "tests/store/fake_bigtable.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const grpc::Status kEndsWell;
const grpc::Status kBreaksOff(grpc::StatusCode::UNAVAILABLE, "connection lost");

bt::ReadRowsResponse Scanned(const std::string& key) {
  bt::ReadRowsResponse message;
  message.set_last_scanned_row_key(key);
  return message;
}

// --- The parser

absl::Status Parse(RowParser* parser, bt::ReadRowsResponse message) {
  std::vector<WireRow> rows;
  return parser->Consume(&message, &rows);
}

TEST(ReverseRowParserTest, KeysDescend) {
  RowParser parser(/*reverse=*/true);
  ASSERT_THAT(Parse(&parser, Message({WholeRow("d", "1")})), IsOk());
  EXPECT_EQ(parser.done(), "d");
  EXPECT_FALSE(parser.order_known());
  ASSERT_THAT(Parse(&parser, Message({WholeRow("c", "1"), WholeRow("b", "1")})), IsOk());
  EXPECT_TRUE(parser.order_known());
  ASSERT_THAT(Parse(&parser, Scanned("a")), IsOk());
  EXPECT_EQ(parser.done(), "a");
  EXPECT_THAT(parser.Finish(), IsOk());
}

TEST(ReverseRowParserTest, AscendingKeysMeanThatTheServerHasNoReverseScans) {
  const std::vector<std::vector<bt::ReadRowsResponse>> answers = {
      {Message({WholeRow("a", "1"), WholeRow("b", "1")})},
      {Message({WholeRow("a", "1")}), Message({WholeRow("b", "1")})},
      {Message({WholeRow("a", "1")}), Scanned("b")},
      {Scanned("a"), Message({WholeRow("b", "1")})},
      {Scanned("a"), Scanned("b")},
  };
  for (const auto& answer : answers) {
    RowParser parser(/*reverse=*/true);
    absl::Status status;
    for (const bt::ReadRowsResponse& message : answer) {
      ASSERT_THAT(status, IsOk());
      status = Parse(&parser, message);
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented));
    EXPECT_THAT(std::string(status.message()), HasSubstr("does not support reverse scans"));
  }
}

TEST(ReverseRowParserTest, KeysThatChangeDirectionOrRepeatAreMalformed) {
  RowParser turns(/*reverse=*/true);
  EXPECT_THAT(Parse(&turns, Message({WholeRow("c", "1"), WholeRow("a", "1"), WholeRow("b", "1")})),
              StatusIs(absl::StatusCode::kInternal));
  RowParser stays(/*reverse=*/true);
  EXPECT_THAT(Parse(&stays, Message({WholeRow("c", "1"), WholeRow("c", "1")})), StatusIs(absl::StatusCode::kInternal));
  RowParser forward;
  EXPECT_THAT(Parse(&forward, Message({WholeRow("b", "1"), WholeRow("a", "1")})),
              StatusIs(absl::StatusCode::kInternal));
}

// --- The store in Bigtable

class ReverseBigtableTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({}); }

  void Open(const StoreLimits& limits) {
    BigtableStoreOptions options;
    options.project = "p";
    options.instance = "i";
    options.endpoint = fake_.target();
    options.limits = limits;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenBigtableStore(options);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  absl::StatusOr<ScanPage> Scan(RowRange rows = RowRange::All(), size_t row_limit = 10) {
    return store_->Scan({"t", std::move(rows), {{Family::kData, "c"}}, row_limit, /*reverse=*/true});
  }

  FakeBigtable fake_;
  std::unique_ptr<Store> store_;
};

TEST_F(ReverseBigtableTest, TheRequestIsForAReverseScan) {
  fake_.ScriptRead({{Message({WholeRow("c", "1"), WholeRow("b", "2")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan({"a", "x"}, 7);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "c{data:c@1=1} b{data:c@1=2}");
  EXPECT_FALSE(page->resume.has_value());
  ASSERT_THAT(fake_.reads(), SizeIs(1));
  EXPECT_TRUE(fake_.reads()[0].reversed());
  EXPECT_EQ(fake_.reads()[0].rows_limit(), 7);
  EXPECT_EQ(fake_.reads()[0].rows().row_ranges(0).start_key_closed(), "a");
  EXPECT_EQ(fake_.reads()[0].rows().row_ranges(0).end_key_open(), "x");
}

TEST_F(ReverseBigtableTest, APageOfOneRowAsksForTwo) {
  fake_.ScriptRead({{Message({WholeRow("c", "1"), WholeRow("b", "2")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan(RowRange::All(), 1);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "c{data:c@1=1}");
  EXPECT_EQ(page->resume, "c");
  EXPECT_EQ(fake_.reads().at(0).rows_limit(), 2);
}

TEST_F(ReverseBigtableTest, AFullPageContinuesBelowItsLastRow) {
  fake_.ScriptRead({{Message({WholeRow("c", "1"), WholeRow("b", "2")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan(RowRange::All(), 2);
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->rows, SizeIs(2));
  EXPECT_EQ(page->resume, "b");
}

TEST_F(ReverseBigtableTest, AServerWithoutReverseScansIsDetected) {
  for (const size_t row_limit : {1, 2, 10}) {
    for (const bool in_one_message : {true, false}) {
      FakeBigtable::ReadAnswer answer{{Message({WholeRow("a", "1"), WholeRow("b", "2")})}, kEndsWell};
      if (!in_one_message) answer.messages = {Message({WholeRow("a", "1")}), Message({WholeRow("b", "2")})};
      fake_.ScriptRead(answer);
      const absl::StatusOr<ScanPage> page = Scan(RowRange::All(), row_limit);
      EXPECT_THAT(page, StatusIs(absl::StatusCode::kUnimplemented)) << row_limit;
    }
  }
  EXPECT_THAT(fake_.reads(), SizeIs(6)) << "none was tried again";
}

// Also if its first row is so large that it fills the page.
TEST_F(ReverseBigtableTest, AServerWithoutReverseScansIsDetectedAfterALargeRow) {
  StoreLimits limits;
  limits.max_scan_bytes = 10;
  Open(limits);
  fake_.ScriptRead({{Message({WholeRow("a", "0123456789")}), Message({WholeRow("b", "2")})}, kEndsWell});
  EXPECT_THAT(Scan(), StatusIs(absl::StatusCode::kUnimplemented));
  fake_.ScriptRead({{Message({WholeRow("b", "0123456789")}), Message({WholeRow("a", "2")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "b{data:c@1=0123456789}");
  EXPECT_EQ(page->resume, "b");
}

TEST_F(ReverseBigtableTest, AnAnswerOfOneRowIsInEitherOrder) {
  fake_.ScriptRead({{Message({WholeRow("a", "1")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "a{data:c@1=1}");
  EXPECT_FALSE(page->resume.has_value());
}

TEST_F(ReverseBigtableTest, APageThatBreaksOffIsShort) {
  fake_.ScriptRead({{Message({WholeRow("c", "1"), WholeRow("b", "2")})}, kBreaksOff});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "c{data:c@1=1} b{data:c@1=2}");
  EXPECT_EQ(page->resume, "b");
  EXPECT_THAT(fake_.reads(), SizeIs(1));
}

TEST_F(ReverseBigtableTest, APageThatBreaksOffBeforeItsOrderIsKnownIsReadAgain) {
  fake_.ScriptRead({{Message({WholeRow("a", "1")})}, kBreaksOff});
  fake_.ScriptRead({{Scanned("m")}, kBreaksOff});
  fake_.ScriptRead({{Message({WholeRow("a", "1"), WholeRow("b", "2")})}, kEndsWell});
  EXPECT_THAT(Scan(), StatusIs(absl::StatusCode::kUnimplemented));
  fake_.ScriptRead({{Message({WholeRow("b", "1")})}, kBreaksOff});
  fake_.ScriptRead({{Message({WholeRow("b", "1"), WholeRow("a", "2")})}, kEndsWell});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "b{data:c@1=1} a{data:c@1=2}");
  ASSERT_THAT(fake_.reads(), SizeIs(5));
  EXPECT_FALSE(fake_.reads()[4].rows().row_ranges(0).has_end_key_open()) << "it reads the whole range";
}

TEST_F(ReverseBigtableTest, ScannedRowsCountAsProgress) {
  fake_.ScriptRead({{Scanned("m"), Scanned("k")}, kBreaksOff});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->rows, IsEmpty());
  EXPECT_EQ(page->resume, "k");
}

// --- Our own server's ReadRows

class ReverseRowReaderTest : public ::testing::Test {
 protected:
  ReverseRowReaderTest() : store_(NewMemoryStore({.max_scan_work = 10})), tables_(store_.get()) {
    v1::BigtableSchema schema;
    for (const char* family : {"data", "lock", "write", "notify"}) (*schema.mutable_families())[family];
    EXPECT_THAT(tables_.Create("t", schema), IsOk());
    request_.set_table_name("projects/p/instances/i/tables/t");
    for (int i = 0; i < 500; ++i) WriteRow(Key(), i % 50 == 0);
    WriteRow(std::string(4096, '\xff'), false);
    WriteRow(std::string(4096, 'k'), false);
    WriteRow(std::string(1, '\0'), false);
  }

  std::string Key() {
    static constexpr std::string_view kBytes(
        "\0\x01"
        "a\xfe\xff",
        5);
    std::string key(1, kBytes[1 + random_() % 4]);
    for (size_t length = random_() % 5; key.size() < length;) key.push_back(kBytes[random_() % 5]);
    return key;
  }

  void WriteRow(const std::string& key, bool matches) {
    const Family family = matches ? Family::kLock : Family::kData;
    ASSERT_THAT(store_->Mutate({{"t", key, {}, {Mutation::Set(family, "c", Timestamp(1), "v")}}}).front(), IsOk());
    if (matches) matching_.insert(key);
  }

  // The keys of the answer, in order. `without`: the number of messages without a row.
  std::vector<std::string> Read(int* without = nullptr) {
    const absl::StatusOr<std::unique_ptr<RowReader>> reader = RowReader::Open(store_.get(), &tables_, request_);
    EXPECT_THAT(reader, IsOk());
    RowParser parser(request_.reversed());
    std::vector<std::string> keys;
    while (!(*reader)->AtEnd()) {
      absl::StatusOr<std::vector<bt::ReadRowsResponse>> messages = (*reader)->Next();
      EXPECT_THAT(messages, IsOk());
      if (!messages.ok()) break;
      for (bt::ReadRowsResponse& message : *messages) {
        if (message.chunks().empty() && without != nullptr) ++*without;
        EXPECT_LE(message.last_scanned_row_key().size(), 4096u);
        std::vector<WireRow> rows;
        EXPECT_THAT(parser.Consume(&message, &rows), IsOk());
        for (const WireRow& row : rows) keys.push_back(row.key);
        if (check_done_) {
          EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()),
                    std::set<std::string>(matching_.lower_bound(parser.done()), matching_.end()));
        }
      }
    }
    return keys;
  }

  const std::unique_ptr<Store> store_;
  BigtableTables tables_;
  bt::ReadRowsRequest request_;
  std::set<std::string> matching_;
  // Whether to check after every message that exactly the rows that the client counts as done have arrived.
  bool check_done_ = false;
  std::mt19937_64 random_{13};
};

TEST_F(ReverseRowReaderTest, ProgressIsReportedWhereNothingMatches) {
  request_.set_reversed(true);
  check_done_ = true;
  for (const bool by_store : {true, false}) {
    request_.clear_filter();
    if (by_store) {
      request_.mutable_filter()->mutable_column_range_filter()->set_family_name("lock");
    } else {
      request_.mutable_filter()->set_family_name_regex_filter("lo.k");
    }
    int without = 0;
    EXPECT_EQ(Read(&without), std::vector<std::string>(matching_.rbegin(), matching_.rend()));
    EXPECT_GT(without, 5);
  }
}

TEST_F(ReverseRowReaderTest, RandomReverseReadsAgreeWithForwardOnes) {
  for (int i = 0; i < 300; ++i) {
    request_.clear_rows();
    for (size_t n = random_() % 5; n > 0; --n) request_.mutable_rows()->add_row_keys(Key());
    for (size_t n = random_() % 4; n > 0; --n) {
      bt::RowRange& range = *request_.mutable_rows()->add_row_ranges();
      std::string start = Key();
      std::string end = Key();
      if (end < start) std::swap(start, end);
      if (random_() % 3 == 0) {
        range.set_start_key_open(start);
      } else if (random_() % 2 == 0) {
        range.set_start_key_closed(start);
      }
      if (random_() % 3 == 0) {
        range.set_end_key_closed(end);
      } else if (random_() % 2 == 0) {
        range.set_end_key_open(end);
      }
    }
    request_.clear_filter();
    if (random_() % 4 == 0) request_.mutable_filter()->set_family_name_regex_filter("lo.k");
    request_.set_rows_limit(0);
    request_.set_reversed(false);
    std::vector<std::string> expected = Read();
    std::reverse(expected.begin(), expected.end());
    request_.set_reversed(true);
    ASSERT_EQ(Read(), expected) << request_.ShortDebugString();
    const size_t limit = 1 + random_() % 20;
    request_.set_rows_limit(static_cast<int64_t>(limit));
    expected.resize(std::min(expected.size(), limit));
    ASSERT_EQ(Read(), expected) << request_.ShortDebugString();
  }
}

TEST_F(ReverseRowReaderTest, ARangeThatHoldsNoKeyIsEmpty) {
  request_.mutable_rows()->add_row_ranges()->set_end_key_open(std::string(1, '\0'));
  for (const bool reversed : {false, true}) {
    request_.set_reversed(reversed);
    EXPECT_THAT(Read(), IsEmpty());
  }
}

// --- The store of a server

// Ignores the field, like a `percolator serve` without reverse scans; or supports it.
class ScanServer final : public v1::Store::Service {
 public:
  explicit ScanServer(bool knows) : knows_(knows) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScanServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Scan(grpc::ServerContext* /*context*/, const v1::ScanRequest* request,
                    v1::ScanResponse* response) override {
    const bool reverse = knows_ && request->reverse();
    for (const char* key : {reverse ? "b" : "a", reverse ? "a" : "b"}) response->add_rows()->set_key(key);
    response->set_reversed(reverse);
    return {};
  }

  absl::StatusOr<ScanPage> Ask(bool reverse) {
    RemoteStore store(OpenChannel(StrCat("127.0.0.1:", port_), {}).value(), std::chrono::seconds(60));
    return store.Scan({.table = "t", .reverse = reverse});
  }

 private:
  const bool knows_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::vector<std::string> KeysIn(const absl::StatusOr<ScanPage>& page) {
  EXPECT_THAT(page, IsOk());
  std::vector<std::string> keys;
  if (!page.ok()) return keys;
  for (const Row& row : page->rows) keys.push_back(row.key);
  return keys;
}

TEST(ReverseRemoteScanTest, AnOlderServerIsDetected) {
  ScanServer older(/*knows=*/false);
  EXPECT_THAT(older.Ask(/*reverse=*/true), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(KeysIn(older.Ask(/*reverse=*/false)), ElementsAre("a", "b"));
}

TEST(ReverseRemoteScanTest, AServerWithReverseScansReportsIt) {
  ScanServer server(/*knows=*/true);
  EXPECT_THAT(KeysIn(server.Ask(/*reverse=*/true)), ElementsAre("b", "a"));
  EXPECT_THAT(KeysIn(server.Ask(/*reverse=*/false)), ElementsAre("a", "b"));
}

TEST(ReverseRemoteScanTest, TheRequestArrives) {
  const ScanRequest request{"t", {"a", "b"}, {{Family::kLock}}, 7, /*reverse=*/true};
  v1::ScanRequest message;
  ToMessage(request, &message);
  const absl::StatusOr<ScanRequest> back = FromMessage(&message);
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(back->reverse);
  EXPECT_EQ(back->rows, request.rows);
  EXPECT_EQ(back->row_limit, 7u);
}

}  // namespace
}  // namespace percolator
