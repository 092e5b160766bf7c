// SPDX-License-Identifier: Apache-2.0

// Who goes first at a hot cell: src/txn/turns.h.

#include "src/txn/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "tests/harness/virtual_runtime.h"

namespace percolator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

const CellName kHot{"accounts", "Bob", "bal"};
const CellName kOther{"accounts", "Joe", "bal"};

class TurnsTest : public ::testing::Test {
 protected:
  static WriteBuffer::Cells Writes(const CellName& cell) { return {{cell, BufferedWrite{}}}; }
  Deadline In(Duration timeout) { return {&runtime_, timeout}; }

  // A transaction that waits for the turn at kHot, works for `work` and ends. Adds its name to `done_`.
  void StartTransaction(std::string name, Duration work) {
    runtime_.Start([this, name = std::move(name), work] {
      Turns::Turn turn(&turns_);
      turn.Wait(kHot, work, In(seconds(60)));
      EXPECT_TRUE(turn.granted());
      runtime_.Sleep(work);
      turns_.NoteCommit(Writes(kHot));
      done_.push_back(name);
    });
    runtime_.LetOthersRun();
  }

  VirtualRuntime runtime_;
  std::atomic<bool> closed_{false};
  Turns turns_{&runtime_, &closed_};
  std::vector<std::string> done_;
};

TEST_F(TurnsTest, ATurnThatNobodyHasIsGrantedAtOnce) {
  EXPECT_FALSE(turns_.busy());
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, microseconds(5), In(seconds(1)));
  EXPECT_TRUE(turn.granted());
  EXPECT_TRUE(turns_.busy());
  EXPECT_EQ(runtime_.Elapsed(), Duration(0));
  turn.End();
  EXPECT_FALSE(turn.granted());
  EXPECT_FALSE(turns_.busy());
}

TEST_F(TurnsTest, ATurnHoldsBackCommitsOfItsCellOnly) {
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, microseconds(5), In(seconds(1)));
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), kHot);
  EXPECT_EQ(turns_.FindTaken(Writes(kOther)), std::nullopt);
  WriteBuffer::Cells both = Writes(kHot);
  both.merge(Writes(kOther));
  EXPECT_EQ(turns_.FindTaken(both), kHot);
  turn.End();
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), std::nullopt);
}

TEST_F(TurnsTest, TurnsAreGrantedInTheOrderOfRequests) {
  for (const char* name : {"a", "b", "c", "d"}) StartTransaction(name, microseconds(10));
  runtime_.Sleep(seconds(1));
  EXPECT_THAT(done_, ElementsAre("a", "b", "c", "d"));
  EXPECT_FALSE(turns_.busy());
}

// Otherwise a stuck transaction would stop all others in its process.
TEST_F(TurnsTest, ATurnHoldsOthersBackForTwiceItsRunAtMost) {
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, milliseconds(20), In(seconds(1)));
  StartTransaction("next", microseconds(10));
  runtime_.Sleep(milliseconds(39));
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), kHot);
  EXPECT_THAT(done_, ElementsAre());
  runtime_.Sleep(milliseconds(2));
  EXPECT_THAT(done_, ElementsAre("next"));
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), std::nullopt);
  turn.End();
  EXPECT_FALSE(turns_.busy());
}

TEST_F(TurnsTest, ATurnHoldsOthersBackForALimitedTime) {
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, seconds(50), In(seconds(1)));
  runtime_.Sleep(Turns::kMaxTurn - milliseconds(1));
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), kHot);
  runtime_.Sleep(milliseconds(1));
  EXPECT_EQ(turns_.FindTaken(Writes(kHot)), std::nullopt);
}

// Threads that commit without having lost do so for a slice of time. Then the first that waits has its turn.
TEST_F(TurnsTest, WhileTheCellIsCommittedTheNextTurnComesAfterASlice) {
  StartTransaction("first", microseconds(10));
  StartTransaction("second", microseconds(10));
  while (done_.size() < 2 && runtime_.Elapsed() < seconds(1)) {
    if (!turns_.FindTaken(Writes(kHot)).has_value()) turns_.NoteCommit(Writes(kHot));
    runtime_.Sleep(microseconds(5));
  }
  EXPECT_THAT(done_, ElementsAre("first", "second"));
  EXPECT_GE(runtime_.Elapsed(), Turns::kSlice);
  EXPECT_LE(runtime_.Elapsed(), Turns::kSlice + milliseconds(1));
}

TEST_F(TurnsTest, WhenNothingIsCommittedTheNextTurnComesSoon) {
  StartTransaction("first", microseconds(10));
  StartTransaction("second", microseconds(10));
  while (done_.size() < 2 && runtime_.Elapsed() < seconds(1)) runtime_.Sleep(microseconds(5));
  EXPECT_LE(runtime_.Elapsed(), microseconds(200));
}

TEST_F(TurnsTest, AWaiterGivesUpAtItsDeadline) {
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, seconds(50), In(seconds(1)));
  Turns::Turn late(&turns_);
  late.Wait(kHot, seconds(50), In(milliseconds(10)));
  EXPECT_FALSE(late.granted());
  EXPECT_EQ(runtime_.Elapsed(), milliseconds(10));
}

TEST_F(TurnsTest, ClosingEndsAllWaiting) {
  Turns::Turn turn(&turns_);
  turn.Wait(kHot, seconds(50), In(seconds(1)));
  std::vector<bool> granted;
  for (int i = 0; i < 3; ++i) {
    runtime_.Start([&] {
      Turns::Turn late(&turns_);
      late.Wait(kHot, seconds(50), In(seconds(60)));
      granted.push_back(late.granted());
    });
  }
  runtime_.LetOthersRun();
  closed_ = true;
  runtime_.Sleep(milliseconds(99));
  turn.End();
  runtime_.Sleep(seconds(1));
  EXPECT_EQ(granted.size(), 3u);
}

}  // namespace
}  // namespace percolator
