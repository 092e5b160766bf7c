// SPDX-License-Identifier: Apache-2.0

// The first rule of apps/webindex/pipeline.h: a run that leaves an output unchanged prevents older runs from
// overwriting it.
//
// Each test has an input that changes and changes back. A run begins in between and is held up; another begins
// afterwards, finds the output correct, and commits; then the first must not commit.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/transaction.h"
#include "tests/testing/status_matchers.h"

namespace webindex {
namespace {

using percolator::CellView;
using percolator::Cluster;
using percolator::CommitResult;
using percolator::IsOk;
using percolator::ReadWrite;
using percolator::Transaction;

class RulesTest : public testing::Test {
 protected:
  using Run = std::function<absl::Status(ReadWrite& t)>;

  RulesTest() { EXPECT_THAT(CreateTables(cluster_), IsOk()); }

  // Writes and reads bytes, so that the stored bytes do not depend on how columns are declared.
  void Write(CellView cell, std::string_view value) {
    EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { t.Set(cell, value); }), IsOk());
  }

  std::string ReadCell(CellView cell) {
    const auto now = cluster_.GetSnapshot();
    EXPECT_THAT(now.status(), IsOk());
    const auto value = now->Get(cell);
    EXPECT_THAT(value.status(), IsOk());
    return value->value_or("(absent)");
  }

  void Commit(const Run& run) { EXPECT_THAT(cluster_.Transact(run), IsOk()); }

  // `change` changes the input, `undo` restores it.
  void AnOlderRunLoses(const Run& run, const std::function<void()>& change, const std::function<void()>& undo,
                       CellView output) {
    Commit(run);
    const std::string right = ReadCell(output);
    change();
    Transaction older(cluster_);
    ASSERT_THAT(run(older), IsOk());
    ASSERT_THAT(older.status(), IsOk());
    undo();
    Commit(run);
    ASSERT_EQ(ReadCell(output), right);
    const CommitResult late = older.Commit();
    EXPECT_EQ(late.outcome, CommitResult::Outcome::kAborted) << late.status;
    EXPECT_EQ(ReadCell(output), right);
  }

  const Cluster cluster_ = Cluster::Open("memory:").value();
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

TEST_F(RulesTest, AnUnchangedSummaryStays) {
  Write(kText.At("a.html"), TextOf("one"));
  AnOlderRunLoses([](ReadWrite& t) { return Summarize(t, "a.html"); },
                  [&] { Write(kText.At("a.html"), TextOf("two")); }, [&] { Write(kText.At("a.html"), TextOf("one")); },
                  kSummary.At("a.html"));
}

TEST_F(RulesTest, AnUnchangedClusterStays) {
  Write(kIdentity.At("a.html"), IdentityOf(1));
  AnOlderRunLoses([](ReadWrite& t) { return FindCluster(t, "a.html"); },
                  [&] { Write(kIdentity.At("a.html"), IdentityOf(2)); },
                  [&] { Write(kIdentity.At("a.html"), IdentityOf(1)); }, kCluster.At("a.html"));
}

TEST_F(RulesTest, AnUnchangedChoiceStays) {
  for (const char* url : {"a.html", "b.html"}) {
    Write(kMember.At(PairRow("content:1", url)), "1");
    Write(kRank.At(url), "100");
  }
  AnOlderRunLoses([](ReadWrite& t) { return ChooseCanonical(t, "content:1"); },
                  [&] { Write(kRank.At("b.html"), "200"); }, [&] { Write(kRank.At("b.html"), "100"); },
                  kChoice.At("content:1"));
}

TEST_F(RulesTest, UnchangedPostingsStay) {
  Write(kIdentity.At("a.html"), IdentityOf(1));
  Write(kText.At("a.html"), TextOf("one"));
  Commit([](ReadWrite& t) { return FindCluster(t, "a.html"); });
  const std::string key = ReadCell(kCluster.At("a.html"));
  Commit([&](ReadWrite& t) { return ChooseCanonical(t, key); });
  AnOlderRunLoses([](ReadWrite& t) { return IndexDocument(t, "a.html"); },
                  [&] { Write(kText.At("a.html"), TextOf("two")); }, [&] { Write(kText.At("a.html"), TextOf("one")); },
                  kIndexed.At("a.html"));
  EXPECT_EQ(ReadCell(kPosting.At(PairRow("two", "a.html"))), "(absent)");
}

// Two runs give to the same page in different epochs. Neither may overlook what the other has given.
TEST_F(RulesTest, RanksAreSpreadByOneRunAtATime) {
  Links links;
  Link* link = links.add_links();
  link->set_target("b.html");
  Write(kLinks.At("a.html"), links.SerializeAsString());
  const auto note = [&](const std::string& epoch, int64_t received, bool new_links) {
    RankChanges changes;
    RankChange* change = changes.add_changes();
    change->set_url("a.html");
    change->set_received(received);
    change->set_new_links(new_links);
    Write(kChanges.At(epoch + "/0"), changes.SerializeAsString());
  };
  note("00/1", 0, true);
  note("00/2", kRankUnit, false);
  Transaction older(cluster_);
  ASSERT_THAT(SpreadRanks(older, "00/1"), IsOk());
  ASSERT_THAT(older.status(), IsOk());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/2"); });
  EXPECT_EQ(older.Commit().outcome, CommitResult::Outcome::kAborted);
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  EXPECT_EQ(ReadCell(kRank.At("a.html")), std::to_string(static_cast<int64_t>(1.15 * kRankUnit)));
}

// Pages of a shard that together link to more than a transaction can write: a site with a table of contents on every
// page.
TEST_F(RulesTest, RanksOfPagesWithManyLinksFitIntoATransaction) {
  constexpr int kMany = 1200;
  Links links;
  for (int i = 0; i < 1000; ++i) links.add_links()->set_target(std::string(30, 'x') + std::to_string(10'000 + i));
  const std::string bytes = links.SerializeAsString();
  ASSERT_GT(kMany * bytes.size(), percolator::TransactionLimits().max_total_bytes);
  RankChanges changes;
  for (int i = 0; i < kMany; ++i) {
    const std::string url = std::to_string(i) + ".html";
    Write(kLinks.At(url), bytes);
    RankChange* change = changes.add_changes();
    change->set_url(url);
    change->set_new_links(true);
  }
  Write(kChanges.At("00/1/0"), changes.SerializeAsString());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  EXPECT_NE(ReadCell(kShares.At("0.html")), "(absent)");
}

// Pages of unique words, all as links to one page: that page keeps as many as fit, and the words of other links are
// kept too.
TEST_F(RulesTest, WordsOfLinksAreLimited) {
  percolator::Worker worker(cluster_);
  AnchorWordsQueue().Attach(worker);
  ASSERT_THAT(worker.Start(), IsOk());
  const auto link = [&](const std::string& from, const std::string& to, const std::string& words) {
    Links links;
    for (size_t at = 0; at < words.size(); at += 250) {
      links.add_links()->set_target(to);
      links.mutable_links(links.links_size() - 1)->set_anchor(words.substr(at, 250));
    }
    Write(kLinks.At(from), links.SerializeAsString());
    Commit([&](ReadWrite& t) { return InvertLinks(t, from); });
  };
  const auto unlink = [&](const std::string& from) {
    Write(kLinks.At(from), "");
    Commit([&](ReadWrite& t) { return InvertLinks(t, from); });
  };
  const auto words_of = [&](const std::string& url) {
    const auto now = cluster_.GetSnapshot();
    EXPECT_THAT(now.status(), IsOk());
    const auto value = AnchorWordsQueue().Get(*now, url);
    EXPECT_THAT(value.status(), IsOk());
    AnchorWords words = value->value_or(AnchorWords());
    EXPECT_LE(words.ByteSizeLong(), 2 * kMaxAnchorWordsBytes);
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
  EXPECT_GT(words_of("victim").terms_size(), static_cast<int>(kMaxAnchorTerms));
  ASSERT_EQ(words_of("neighbour").terms_size(), 1);
  EXPECT_EQ(words_of("neighbour").terms(0).count(), kFrom);
  for (int page = 0; page < kFrom; ++page) unlink(std::to_string(page));
  ASSERT_THAT(worker.WaitUntilIdle(std::chrono::minutes(5)), IsOk());
  const AnchorWords left = words_of("victim");
  for (const TermCount& term : left.terms()) EXPECT_LT(term.count(), 0) << term.term();
}

// One page that gives to very many: what it gives to a shard is written to several cells, which can be processed one by
// one.
TEST_F(RulesTest, ManyChangesAreWrittenToSeveralCells) {
  Links links;
  for (int i = 0; i < 60'000; ++i) links.add_links()->set_target(std::to_string(100'000 + i));
  Write(kLinks.At("a.html"), links.SerializeAsString());
  RankChanges changes;
  changes.add_changes()->set_url("a.html");
  changes.mutable_changes(0)->set_new_links(true);
  Write(kChanges.At("00/1/0"), changes.SerializeAsString());
  Commit([](ReadWrite& t) { return SpreadRanks(t, "00/1"); });
  const auto now = cluster_.GetSnapshot();
  ASSERT_THAT(now.status(), IsOk());
  int given = 0;
  for (const auto& row : now->Scan(kChanges)) {
    ASSERT_THAT(row, IsOk());
    EXPECT_LE(row->value.changes_size(), 2000);
    given += row->value.changes_size();
  }
  EXPECT_EQ(given, 60'000);
}

// Existing indexes hold these bytes.
TEST(TablesTest, TheFormatOfValuesDoesNotChange) {
  EXPECT_EQ(kRank.Encode(1'150'000'000), "1150000000");
  EXPECT_EQ(kRank.Decode("a.html", "1150000000").value(), 1'150'000'000);
  EXPECT_EQ(kReceived.Encode(-5), "-5");
  EXPECT_EQ(kReceived.Decode("a.html", "-5").value(), -5);
  EXPECT_EQ(kMember.Encode(true), "1");
  EXPECT_EQ(kSince.Encode(true), "1");
  EXPECT_EQ(kWalk.Encode({"moved:b", "moved:a"}), "moved:a\nmoved:b");
  EXPECT_EQ(kWalk.Decode("a.html", "moved:a\nmoved:b").value(), (Topics{"moved:a", "moved:b"}));
  EXPECT_EQ(kDepends.Encode({"file:a"}), "file:a");
  Identity identity;
  identity.set_moved_to("b.html");
  EXPECT_EQ(kIdentity.Encode(identity), identity.SerializeAsString());
  EXPECT_EQ(kEncoded<kIdentity>.At("a.html").table, "pages");
  EXPECT_EQ(kEncoded<kIdentity>.At("a.html").column, "identity");
}

}  // namespace
}  // namespace webindex
