// SPDX-License-Identifier: Apache-2.0

#include "sim/history/history.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/history/findings.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(HistoryRecorderTest, RecordsOperationsAndOutcomes) {
  HistoryRecorder recorder;
  auto one = recorder.Begin(7);
  auto two = recorder.Begin(8);
  one.Started(Timestamp(3));
  one.Read("x", "10");
  one.Read("gone", std::nullopt);
  one.Write("x", "11");
  one.Delete("y");
  one.Append("z", 5);
  one.Verify("v");
  one.Finish(TxnOutcome::kOk, {}, Timestamp(9));
  two.Finish(TxnOutcome::kFail, Timestamp(4));

  const History history = recorder.Copy();
  ASSERT_EQ(history.transactions.size(), 2U);
  const TxnRecord& record = history.transactions[one.id()];
  EXPECT_EQ(record.process, 7);
  EXPECT_EQ(record.outcome, TxnOutcome::kOk);
  EXPECT_EQ(record.start_ts, Timestamp(3));
  EXPECT_EQ(record.commit_ts, Timestamp(9));
  EXPECT_LT(record.invoke, history.transactions[two.id()].invoke);
  EXPECT_LT(history.transactions[two.id()].invoke, record.complete);
  EXPECT_LT(record.complete, history.transactions[two.id()].complete);
  EXPECT_EQ(Describe(history, one.id()),
            "T0 (process 7, ok, start 3, commit 9): read x = \"10\", read gone = absent, write x = \"11\", delete y, "
            "append z 5, verify v");
  EXPECT_EQ(Describe(history, two.id()), "T1 (process 8, fail, start 4):");
}

TEST(HistoryRecorderTest, ATransactionThatNeverFinishesIsUnknown) {
  HistoryRecorder recorder;
  recorder.Begin(1).Write("x", "1");
  const History history = recorder.Take();
  EXPECT_EQ(history.transactions.at(0).outcome, TxnOutcome::kInfo);
  EXPECT_EQ(history.transactions.at(0).complete, TxnRecord::kNever);
  EXPECT_EQ(history.transactions.at(0).operations.size(), 1U);
  EXPECT_THAT(recorder.Take().transactions, IsEmpty());
}

TEST(HistoryRecorderTest, AResolvedTransactionIsNeverOver) {
  HistoryRecorder recorder;
  recorder.Begin(1).Finish(TxnOutcome::kInfo, Timestamp(1));
  History history = recorder.Take();
  history.transactions[0].Resolve(TxnOutcome::kOk, Timestamp(5));
  EXPECT_EQ(history.transactions[0].outcome, TxnOutcome::kOk);
  EXPECT_EQ(history.transactions[0].commit_ts, Timestamp(5));
  EXPECT_EQ(history.transactions[0].complete, TxnRecord::kNever);
}

TEST(HistoryRecorderTest, ManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  HistoryRecorder recorder;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&recorder, t] {
      for (int i = 0; i < kEach; ++i) {
        auto txn = recorder.Begin(t);
        txn.Read(StrCat("k", t), std::to_string(i));
        txn.Write(StrCat("k", t), std::to_string(i + 1));
        txn.Finish(TxnOutcome::kOk, Timestamp(1), Timestamp(2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const History history = recorder.Take();
  ASSERT_EQ(history.transactions.size(), static_cast<size_t>(kThreads * kEach));
  std::set<uint64_t> orders;
  for (const TxnRecord& txn : history.transactions) {
    EXPECT_LT(txn.invoke, txn.complete);
    orders.insert({txn.invoke, txn.complete});
    ASSERT_EQ(txn.operations.size(), 2U);
    EXPECT_EQ(txn.operations[0].key, StrCat("k", txn.process));
  }
  EXPECT_EQ(orders.size(), 2 * history.transactions.size());
}

TEST(ListTest, ReadsWhatItWrites) {
  EXPECT_EQ(FormatList({}), "");
  EXPECT_EQ(FormatList({1, 2, -5}), "1 2 -5");
  EXPECT_THAT(ParseList("1 2 -5"), Optional(ElementsAre(1, 2, -5)));
  EXPECT_THAT(ParseList(""), Optional(IsEmpty()));
  EXPECT_THAT(ParseList("7"), Optional(ElementsAre(7)));
}

TEST(ListTest, RefusesTextsThatAreNotLists) {
  for (const std::string_view text : {" ", "1 ", " 1", "1  2", "1,2", "01", "+1", "1 x", "x", "99999999999999999999"}) {
    EXPECT_EQ(ParseList(text), std::nullopt) << text;
  }
}

TEST(ListTest, WithoutEnd) {
  EXPECT_EQ(WithoutEnd("1 2 3", "2 3"), "1");
  EXPECT_EQ(WithoutEnd("1 2 3", "1 2 3"), "");
  EXPECT_EQ(WithoutEnd("1 2 3", ""), "1 2 3");
  EXPECT_EQ(WithoutEnd("1 23", "3"), std::nullopt);
  EXPECT_EQ(WithoutEnd("1 2", "3"), std::nullopt);
}

TEST(FindingsTest, KeepsTheFirstAndCountsTheRest) {
  Findings findings;
  EXPECT_TRUE(findings.ok());
  EXPECT_EQ(findings.ToString(), "no anomaly\n");
  for (TxnId i = 0; i < Findings::kKeptPerName + 3; ++i) {
    findings.Add("G0", {i}, [&] { return StrCat("at T", i); });
  }
  findings.Add("A", {}, [] { return std::string("other"); });
  EXPECT_FALSE(findings.ok());
  EXPECT_EQ(findings.Count("G0"), Findings::kKeptPerName + 3);
  EXPECT_EQ(findings.Count("none"), 0U);
  EXPECT_THAT(findings.Names(), ElementsAre("A", "G0"));
  EXPECT_EQ(findings.anomalies().size(), Findings::kKeptPerName + 1);
  EXPECT_THAT(findings.ToString(), HasSubstr("G0: at T0\n"));
  EXPECT_THAT(findings.ToString(), HasSubstr("G0: and 3 more\n"));
}

}  // namespace
}  // namespace percolator
