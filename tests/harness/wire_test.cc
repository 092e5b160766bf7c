// SPDX-License-Identifier: Apache-2.0

// A test that cannot fail proves nothing: the wire makes the faults that it is asked for.

#include "tests/harness/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/test_oracle.h"
#include "tests/harness/virtual_runtime.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

using ::testing::Not;
using Kind = Fault::Kind;

class WireTest : public ::testing::Test {
 protected:
  WireTest() { EXPECT_THAT(store_->CreateTable({"t", ""}), IsOk()); }

  // Sets one cell of each row, without a condition. Returns the statuses of the answers.
  std::vector<absl::StatusOr<MutateResult>> Set(const std::vector<std::string>& rows, uint64_t ts) {
    std::vector<RowMutation> mutations;
    for (const std::string& row : rows) {
      mutations.push_back({"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(ts), "v")}});
    }
    return wire_.store()->Mutate(mutations);
  }
  std::string Content() {
    return ToText(store_->Scan({"t", RowRange::All(), {{Family::kData, std::nullopt, {}, 0}}}).value().rows);
  }

  VirtualRuntime runtime_;
  const std::unique_ptr<Store> store_ = NewMemoryStore();
  TestOracle oracle_;
  Wire wire_{store_.get(), &oracle_};
};

TEST_F(WireTest, WithoutFaultsCallsAreForwardedAndCounted) {
  EXPECT_THAT(Set({"a", "b"}, 1)[1], IsOk());
  EXPECT_EQ(wire_.oracle()->GetTimestamp().value(), Timestamp(1));
  EXPECT_THAT(wire_.store()->Read({}), IsOk());
  EXPECT_EQ(Content(), "a{data:c@1=v} b{data:c@1=v}");
  const std::vector<Wire::Call> calls = wire_.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].what, "mutate");
  EXPECT_EQ(calls[0].rows, 2u);
  EXPECT_EQ(calls[1].what, "timestamp");
  EXPECT_EQ(calls[2].what, "read");
  EXPECT_EQ(wire_.CountOf("read"), 1u);
}

TEST_F(WireTest, ALostRequestIsNotCarriedOut) {
  wire_.FailAt(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(Set({"a"}, 1)[0], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Content(), "");
  EXPECT_THAT(Set({"a"}, 2)[0], IsOk());
}

TEST_F(WireTest, ARequestWhoseReplyIsLostIsCarriedOut) {
  wire_.FailAt(1, {.kind = Kind::kLoseReply});
  EXPECT_THAT(Set({"a"}, 1)[0], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Content(), "a{data:c@1=v}");
}

TEST_F(WireTest, ABatchMayBeCarriedOutInPart) {
  wire_.FailAt(1, {.kind = Kind::kLoseReply, .rows = 0b101});
  const auto results = Set({"a", "b", "c"}, 1);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(results[2], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Content(), "a{data:c@1=v} c{data:c@1=v}");
}

TEST_F(WireTest, CallsOfADeadClientReachNothing) {
  wire_.FailAt(2, {.kind = Kind::kDieAfter});
  EXPECT_THAT(Set({"a"}, 1)[0], IsOk());
  EXPECT_FALSE(wire_.dead());
  EXPECT_THAT(Set({"b"}, 1)[0], Not(IsOk()));
  EXPECT_TRUE(wire_.dead());
  EXPECT_THAT(Set({"c"}, 1)[0], Not(IsOk()));
  EXPECT_THAT(wire_.oracle()->GetTimestamp(), Not(IsOk()));
  EXPECT_EQ(Content(), "a{data:c@1=v} b{data:c@1=v}");
}

TEST_F(WireTest, AClientThatDiesBeforeACallSendsNothing) {
  wire_.FailAt(1, {.kind = Kind::kDieBefore});
  EXPECT_THAT(Set({"a"}, 1)[0], Not(IsOk()));
  EXPECT_EQ(Content(), "");
}

TEST_F(WireTest, AnEchoArrivesLate) {
  wire_.FailAt(1, {.kind = Kind::kEchoLate});
  EXPECT_THAT(Set({"a"}, 1)[0], IsOk());
  store_->Mutate({{"t", "a", {}, {Mutation::Erase(Family::kData, "c", TimestampRange::All())}}});
  EXPECT_EQ(Content(), "");
  wire_.DeliverLate();
  EXPECT_EQ(Content(), "a{data:c@1=v}");
}

TEST_F(WireTest, ALateRequestArrivesAfterTheClientGaveItUp) {
  wire_.FailAt(1, {.kind = Kind::kLate});
  EXPECT_THAT(Set({"a"}, 1)[0], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Content(), "");
  wire_.DeliverLate();
  EXPECT_EQ(Content(), "a{data:c@1=v}");
}

TEST_F(WireTest, OfTwoAnswersTheClientGetsTheSecond) {
  wire_.FailAt(1, {.kind = Kind::kTwice});
  EXPECT_EQ(wire_.oracle()->GetTimestamp().value(), Timestamp(2));
}

TEST_F(WireTest, HooksRunOnceBeforeAndAfter) {
  std::vector<std::string> events;
  wire_.Before(1, [&] { events.push_back("before: " + Content()); });
  wire_.After(1, [&] { events.push_back("after: " + Content()); });
  EXPECT_THAT(Set({"a"}, 1)[0], IsOk());
  EXPECT_THAT(events, ::testing::ElementsAre("before: ", "after: a{data:c@1=v}"));
  wire_.CountFromHere();
  EXPECT_THAT(Set({"b"}, 1)[0], IsOk());
  EXPECT_EQ(events.size(), 2u);
}

TEST_F(WireTest, FailFromAffectsAllLaterCalls) {
  wire_.FailFrom(2, {.kind = Kind::kRefused, .error = absl::ResourceExhaustedError("full")});
  EXPECT_THAT(Set({"a"}, 1)[0], IsOk());
  EXPECT_THAT(Set({"b"}, 1)[0], StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Set({"c"}, 1)[0], StatusIs(absl::StatusCode::kResourceExhausted));
  wire_.ForgetFaults();
  EXPECT_THAT(Set({"d"}, 1)[0], IsOk());
}

}  // namespace
}  // namespace percolator
