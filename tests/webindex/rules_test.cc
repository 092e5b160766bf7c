// The first rule of apps/webindex/pipeline.h: a run that leaves an output as it is keeps older runs from overwriting it.
//
// Each test has an input that changes and changes back. A run begins in between and is held up; another begins afterwards,
// finds the output right, and commits; the first must not commit any more.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/observer.h"
#include "percolator/transaction.h"
#include "tests/testing/status_matchers.h"

namespace webindex {
namespace {

using percolator::Cluster;
using percolator::CommitResult;
using percolator::IsOk;
using percolator::ReadWrite;
using percolator::Transaction;

class RulesTest : public testing::Test {
 protected:
  using Run = std::function<absl::Status(ReadWrite& t)>;

  RulesTest() {
    auto cluster = Cluster::Open("memory:");
    EXPECT_THAT(cluster.status(), IsOk());
    cluster_ = *std::move(cluster);
    EXPECT_THAT(CreateTables(*cluster_), IsOk());
  }

  void Write(std::string_view table, std::string_view row, std::string_view column, std::string_view value) {
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) { return t.Set(table, row, column, value); }).status(), IsOk());
  }

  std::string ReadCell(std::string_view table, std::string_view row, std::string_view column) {
    auto now = cluster_->Now();
    EXPECT_THAT(now.status(), IsOk());
    const auto value = now->Get(table, row, column);
    EXPECT_THAT(value.status(), IsOk());
    return value->value_or("(absent)");
  }

  void Commit(const Run& run) { EXPECT_THAT(cluster_->Transact(run).status(), IsOk()); }

  // `change` makes the input another one, `undo` what it was.
  void AnOlderRunLoses(const Run& run, const std::function<void()>& change, const std::function<void()>& undo,
                       std::string_view table, std::string_view row, std::string_view output) {
    Commit(run);
    const std::string right = ReadCell(table, row, output);
    change();
    Transaction older(cluster_.get());
    ASSERT_THAT(run(older), IsOk());
    undo();
    Commit(run);
    ASSERT_EQ(ReadCell(table, row, output), right);
    const CommitResult late = older.Commit();
    EXPECT_EQ(late.outcome, CommitResult::Outcome::kAborted) << late.status;
    EXPECT_EQ(ReadCell(table, row, output), right);
  }

  std::unique_ptr<Cluster> cluster_;
};

std::string TextOf(const std::string& body) {
  Text text;
  text.set_body(body);
  return text.SerializeAsString();
}

std::string IdentityOf(uint64_t content) {
  Identity identity;
  identity.set_content_low(content);
  return identity.SerializeAsString();
}

TEST_F(RulesTest, SummaryStays) {
  Write(kPages, "a.html", kText, TextOf("one"));
  AnOlderRunLoses([](ReadWrite& t) { return Summarize(t, "a.html"); },
                  [&] { Write(kPages, "a.html", kText, TextOf("two")); },
                  [&] { Write(kPages, "a.html", kText, TextOf("one")); }, kPages, "a.html", kSummary);
}

TEST_F(RulesTest, ClusterStays) {
  Write(kPages, "a.html", kIdentity, IdentityOf(1));
  AnOlderRunLoses([](ReadWrite& t) { return FindCluster(t, "a.html"); },
                  [&] { Write(kPages, "a.html", kIdentity, IdentityOf(2)); },
                  [&] { Write(kPages, "a.html", kIdentity, IdentityOf(1)); }, kPages, "a.html", kCluster);
}

TEST_F(RulesTest, ChoiceStays) {
  for (const char* url : {"a.html", "b.html"}) {
    Write(kMembers, PairRow("content:1", url), kMember, "1");
    Write(kPages, url, kRank, "100");
  }
  AnOlderRunLoses([](ReadWrite& t) { return ChooseCanonical(t, "content:1"); },
                  [&] { Write(kPages, "b.html", kRank, "200"); }, [&] { Write(kPages, "b.html", kRank, "100"); },
                  kClusters, "content:1", kChoice);
}

TEST_F(RulesTest, PostingsStay) {
  Write(kPages, "a.html", kIdentity, IdentityOf(1));
  Write(kPages, "a.html", kText, TextOf("one"));
  Commit([](ReadWrite& t) { return FindCluster(t, "a.html"); });
  const std::string key = ReadCell(kPages, "a.html", kCluster);
  Commit([&](ReadWrite& t) { return ChooseCanonical(t, key); });
  AnOlderRunLoses([](ReadWrite& t) { return IndexDocument(t, "a.html"); },
                  [&] { Write(kPages, "a.html", kText, TextOf("two")); },
                  [&] { Write(kPages, "a.html", kText, TextOf("one")); }, kPages, "a.html", kIndexed);
  EXPECT_EQ(ReadCell(kIndex, PairRow("two", "a.html"), kPosting), "(absent)");
}

// Two runs that have something for the same page, from different epochs: what the one has given to it the other must not
// overlook.
TEST_F(RulesTest, RanksAreSpreadByOneRunAtATime) {
  Links links;
  Link* link = links.add_links();
  link->set_target("b.html");
  Write(kPages, "a.html", kLinks, links.SerializeAsString());
  const auto note = [&](const std::string& epoch, int64_t received, bool new_links) {
    RankChanges changes;
    RankChange* change = changes.add_changes();
    change->set_url("a.html");
    change->set_received(received);
    change->set_new_links(new_links);
    Write(kRankChanges, epoch + "/0", kChanges, changes.SerializeAsString());
  };
  note("00/1", 0, true);
  note("00/2", kRankUnit, false);
  Transaction older(cluster_.get());
  ASSERT_THAT(SpreadRanks(older, "00/1"), IsOk());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/2"); });
  EXPECT_EQ(older.Commit().outcome, CommitResult::Outcome::kAborted);
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  EXPECT_EQ(ReadCell(kPages, "a.html", kRank), std::to_string(static_cast<int64_t>(1.15 * kRankUnit)));
}

// Pages of a shard that together link to more than a transaction can write: a site with a table of contents on every page.
TEST_F(RulesTest, RanksOfPagesWithManyLinksFitIntoATransaction) {
  constexpr int kMany = 1200;
  Links links;
  for (int i = 0; i < 1000; ++i) links.add_links()->set_target(std::string(30, 'x') + std::to_string(10'000 + i));
  const std::string bytes = links.SerializeAsString();
  ASSERT_GT(kMany * bytes.size(), percolator::TransactionLimits().total_bytes);
  RankChanges changes;
  for (int i = 0; i < kMany; ++i) {
    const std::string url = std::to_string(i) + ".html";
    Write(kPages, url, kLinks, bytes);
    RankChange* change = changes.add_changes();
    change->set_url(url);
    change->set_new_links(true);
  }
  Write(kRankChanges, "00/1/0", kChanges, changes.SerializeAsString());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  EXPECT_NE(ReadCell(kPages, "0.html", kShares), "(absent)");
}

// Pages of words that nobody else has, all as links to one page: that page keeps as many as fit, and others get theirs.
TEST_F(RulesTest, WordsOfLinksAreBounded) {
  percolator::Worker worker(cluster_.get());
  worker.Observe(AnchorWordsQueue().Observer());
  ASSERT_THAT(worker.Start(), IsOk());
  const auto link = [&](const std::string& from, const std::string& to, const std::string& words) {
    Links links;
    for (size_t at = 0; at < words.size(); at += 250) {
      links.add_links()->set_target(to);
      links.mutable_links(links.links_size() - 1)->set_anchor(words.substr(at, 250));
    }
    Write(kPages, from, kLinks, links.SerializeAsString());
    Commit([&](ReadWrite& t) { return InvertLinks(t, from); });
  };
  const auto unlink = [&](const std::string& from) {
    Write(kPages, from, kLinks, "");
    Commit([&](ReadWrite& t) { return InvertLinks(t, from); });
  };
  const auto words_of = [&](const std::string& url) {
    AnchorWords words;
    const std::string bytes = ReadCell(kAnchorWords, percolator::CombineQueue::ValueRow(url), "value");
    EXPECT_TRUE(bytes == "(absent)" || words.ParseFromString(bytes));
    EXPECT_LE(bytes.size(), 2 * kMostAnchorWordsBytes);
    return words;
  };
  constexpr int kFrom = 5;
  for (int page = 0; page < kFrom; ++page) {
    std::string words;
    for (int i = 0; i < 50'000; ++i) words += "w" + std::to_string(page * 100'000 + i) + std::string(20, 'x') + " ";
    link(std::to_string(page), "victim", words);
    link(std::to_string(page), "victim", words + " again");
    link("n" + std::to_string(page), "neighbour", "one");
  }
  ASSERT_THAT(worker.WaitUntilIdle(std::chrono::minutes(5)), IsOk());
  EXPECT_TRUE(worker.ListQuarantine()->empty());
  EXPECT_GT(words_of("victim").terms_size(), static_cast<int>(kMostAnchorTerms));
  ASSERT_EQ(words_of("neighbour").terms_size(), 1);
  EXPECT_EQ(words_of("neighbour").terms(0).count(), kFrom);
  for (int page = 0; page < kFrom; ++page) unlink(std::to_string(page));
  ASSERT_THAT(worker.WaitUntilIdle(std::chrono::minutes(5)), IsOk());
  const AnchorWords left = words_of("victim");
  for (const TermCount& term : left.terms()) EXPECT_LT(term.count(), 0) << term.term();
}

// One page that gives to very many: what it gives to a shard is written down in cells that can be worked on one by one.
TEST_F(RulesTest, ManyChangesAreWrittenDownInSeveralCells) {
  Links links;
  for (int i = 0; i < 60'000; ++i) links.add_links()->set_target(std::to_string(100'000 + i));
  Write(kPages, "a.html", kLinks, links.SerializeAsString());
  RankChanges changes;
  changes.add_changes()->set_url("a.html");
  changes.mutable_changes(0)->set_new_links(true);
  Write(kRankChanges, "00/1/0", kChanges, changes.SerializeAsString());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  auto now = cluster_->Now();
  ASSERT_THAT(now.status(), IsOk());
  int given = 0;
  const auto rows = now->Scan({.table = std::string(kRankChanges), .columns = {std::string(kChanges)}});
  while (rows->Next()) {
    ASSERT_TRUE(changes.ParseFromString(rows->row().columns[0].value));
    EXPECT_LE(changes.changes_size(), 2000);
    given += changes.changes_size();
  }
  EXPECT_THAT(rows->status(), IsOk());
  EXPECT_EQ(given, 60'000);
}

}  // namespace
}  // namespace webindex
