// SPDX-License-Identifier: Apache-2.0

// The bytes of percolator.v1, as docs/format.md specifies them, and invalid messages of other programs.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "src/wire/channel.h"
#include "src/wire/convert.h"
#include "src/wire/proto/percolator.grpc.pb.h"
#include "src/wire/status.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

template <typename Message>
std::string Hex(const Message& message) {
  return absl::BytesToHexString(message.SerializeAsString());
}

template <typename Type, typename Message>
std::string HexOf(const Type& value) {
  Message message;
  ToMessage(value, &message);
  return Hex(message);
}

const RowRead& SomeRead() {
  static const RowRead* const read = new RowRead{
      "t", "r", {{Family::kLock, "c", {Timestamp(0), Timestamp(8)}, 1}, {Family::kWrite, std::nullopt, {}, 0}}};
  return *read;
}

const RowMutation& SomeMutation() {
  static const RowMutation* const mutation =
      new RowMutation{"t",
                      "r",
                      {Condition::Quantifier::kAll, {{Family::kLock, "c", TimestampRange::Exactly(Timestamp(7))}}},
                      {Mutation::Set(Family::kWrite, "c", Timestamp(9), "v"),
                       Mutation::Set(Family::kNotify, "c", JointMutation::AtCommit(), ""),
                       Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(Timestamp(7)))}};
  return *mutation;
}

TEST(WireFormatTest, Read) {
  EXPECT_EQ((HexOf<RowRead, v1::RowRead>(SomeRead())),
            "0a0174120172"                // table, row
            "1a0b08011201631a0210082001"  // lock:c below 8, the newest
            "1a0408021a00");              // all of write
}

TEST(WireFormatTest, Mutation) {
  EXPECT_EQ((HexOf<RowMutation, v1::RowMutation>(SomeMutation())),
            "0a0174120172"                        // table, row
            "1a0f0802120b08011201631a0408071008"  // all of: the lock at 7
            "220c0a0a08021201631809220176"        // set write at 9
            "22070a050803120163"                  // set notify at the commit
            "220d120b08011201631a0408071008");    // erase the lock
}

TEST(WireFormatTest, Row) {
  EXPECT_EQ((HexOf<Row, v1::Row>({"r", {{Family::kData, "c", Timestamp(300), "v"}}})), "0a0172120912016318ac02220176");
}

TEST(WireFormatTest, Oracle) {
  v1::GetTimestampsRequest request;
  request.set_count(256);
  EXPECT_EQ(Hex(request), "088002");
  v1::GetTimestampsResponse response;
  response.set_first(5);
  EXPECT_EQ(Hex(response), "0805");
}

TEST(WireFormatTest, TimestampsWithMutations) {
  v1::MutateRequest request;
  request.set_draw(true);
  EXPECT_EQ(Hex(request), "1001");
  v1::MutateResponse response;
  response.add_results()->set_applied(true);
  response.set_first_drawn(5);
  EXPECT_EQ(Hex(response), "0a0218011005");
}

TEST(WireFormatTest, EveryRequestConvertsBackToItself) {
  v1::RowRead read;
  ToMessage(SomeRead(), &read);
  const absl::StatusOr<RowRead> read_back = FromMessage(&read);
  ASSERT_THAT(read_back, IsOk());
  EXPECT_EQ((HexOf<RowRead, v1::RowRead>(*read_back)), (HexOf<RowRead, v1::RowRead>(SomeRead())));
  v1::RowMutation mutation;
  ToMessage(SomeMutation(), &mutation);
  const absl::StatusOr<RowMutation> mutation_back = FromMessage(&mutation);
  ASSERT_THAT(mutation_back, IsOk());
  EXPECT_EQ(mutation_back->mutations[1].range.from, JointMutation::AtCommit());
  EXPECT_EQ((HexOf<RowMutation, v1::RowMutation>(*mutation_back)),
            (HexOf<RowMutation, v1::RowMutation>(SomeMutation())));
  const Row row{std::string("\0r", 2), {{Family::kNotify, "", Timestamp(1), std::string("\xff\0", 2)}}};
  v1::Row row_message;
  ToMessage(row, &row_message);
  EXPECT_EQ(FromMessage(&row_message).value(), row);
}

TEST(WireFormatTest, InvalidMessagesAreRefused) {
  v1::RowRead read;
  read.add_selectors()->set_family(static_cast<v1::Family>(7));
  EXPECT_THAT(FromMessage(&read), StatusIs(absl::StatusCode::kInvalidArgument));
  v1::RowMutation mutation;
  mutation.add_mutations();
  EXPECT_THAT(FromMessage(&mutation), StatusIs(absl::StatusCode::kInvalidArgument)) << "neither sets nor erases";
  mutation.Clear();
  mutation.mutable_condition()->set_quantifier(static_cast<v1::Condition::Quantifier>(9));
  EXPECT_THAT(FromMessage(&mutation), StatusIs(absl::StatusCode::kInvalidArgument));
  mutation.Clear();
  mutation.add_mutations()->mutable_erase()->set_family(static_cast<v1::Family>(-1));
  EXPECT_THAT(FromMessage(&mutation), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireFormatTest, TransportErrorsAreNotErrorsOfTheServer) {
  using grpc::StatusCode;
  for (const StatusCode code : {StatusCode::CANCELLED, StatusCode::UNKNOWN, StatusCode::INTERNAL, StatusCode::ABORTED,
                                StatusCode::UNAVAILABLE}) {
    EXPECT_THAT(FromGrpc(grpc::Status(code, "")), StatusIs(absl::StatusCode::kUnavailable)) << code;
  }
  for (const absl::StatusCode code : {absl::StatusCode::kNotFound, absl::StatusCode::kOutOfRange,
                                      absl::StatusCode::kFailedPrecondition, absl::StatusCode::kDeadlineExceeded}) {
    const absl::Status status(code, "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(WireFormatTest, ACallWithoutAnAnswerHasAnUnknownOutcome) {
  // A server that ends every call with OK, without an answer.
  class Silence final : public grpc::ServerGenericBidiReactor {
   public:
    Silence() { Finish(grpc::Status::OK); }
    void OnDone() override { delete this; }
  };
  class Silent final : public grpc::CallbackGenericService {
   public:
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* /*context*/) override {
      return new Silence;
    }
  } silent;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&silent);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::Oracle::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port), {}).value());
  v1::GetTimestampsResponse response;
  EXPECT_THAT(
      Call(*stub, &v1::Oracle::Stub::GetTimestamps, std::chrono::seconds(60), v1::GetTimestampsRequest(), &response),
      StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(FromGrpc({grpc::StatusCode::UNIMPLEMENTED, ""}), StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace percolator
