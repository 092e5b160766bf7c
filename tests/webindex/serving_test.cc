// SPDX-License-Identifier: Apache-2.0

// The serving side alone: what Apply and Load make searchable, in which order, and how results are shown.

#include "apps/webindex/serving.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/snippet.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "tests/testing/status_matchers.h"

namespace webindex {
namespace {

using percolator::Cluster;
using percolator::Export;
using percolator::IsOk;
using percolator::ReadWrite;
using percolator::Snapshot;
using percolator::StatusIs;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct Source {
  std::string url;
  std::string title;
  std::string body;
  std::string anchors;
  std::vector<std::string> duplicates;
};

// The pipeline's output for a page.
Indexed IndexedOf(const Source& source) {
  Indexed indexed;
  indexed.set_url(source.url);
  indexed.set_title(source.title);
  indexed.set_body(source.body);
  indexed.add_members(source.url);
  for (const std::string& url : source.duplicates) indexed.add_members(url);
  indexed.set_near_key(NearKeyOf(TermsOf(source.body)));
  std::map<std::string, Posting> postings;
  uint32_t length = 0;
  for (const auto& [term, count] : CountTerms(source.body)) {
    postings[term].set_body(count);
    length += count;
  }
  for (const auto& [term, count] : CountTerms(source.title)) {
    postings[term].set_title(count);
    length += count;
  }
  for (const auto& [term, count] : CountTerms(source.anchors)) postings[term].set_anchors(count);
  indexed.set_length(length);
  for (const auto& [term, posting] : postings) {
    IndexedTerm* added = indexed.add_terms();
    added->set_term(term);
    *added->mutable_posting() = posting;
  }
  return indexed;
}

Export Changed(const Source& source, uint64_t version, int64_t loaded_micros = 0) {
  Change change;
  change.set_url(source.url);
  *change.mutable_document() = IndexedOf(source);
  change.set_version(version);
  change.set_loaded_micros(loaded_micros);
  return {.shard = 0, .sequence = version, .key = source.url, .payload = change.SerializeAsString()};
}

Export Gone(const std::string& url, uint64_t version) {
  Change change;
  change.set_url(url);
  change.set_version(version);
  return {.shard = 0, .sequence = version, .key = url, .payload = change.SerializeAsString()};
}

std::vector<std::string> Urls(const SearchResults& results) {
  std::vector<std::string> urls;
  for (const Hit& hit : results.hits) urls.push_back(hit.url);
  return urls;
}

std::vector<std::string> Found(const Serving& serving, std::string_view query) {
  return Urls(serving.Search(query, 0, 100, nullptr));
}

std::string TextOf(const std::vector<Hit::Piece>& pieces, bool brackets = true) {
  std::string text;
  for (const Hit::Piece& piece : pieces) {
    text += piece.marked && brackets ? "[" + piece.text + "]" : piece.text;
  }
  return text;
}

// Different words for each number, so that no two texts are nearly the same.
std::string Filler(int number, int words = 40) {
  std::string text;
  for (int i = 0; i < words; ++i) text += " w" + std::to_string(number) + "x" + std::to_string(i);
  return text;
}

TEST(ServingTest, FindsDocumentsWithAllTermsOrOtherwiseSome) {
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"a", "", "apple pear" + Filler(1)}, 1)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"b", "", "apple" + Filler(2)}, 2)), IsOk());
  EXPECT_THAT(Found(serving, "apple pear"), ElementsAre("a"));
  EXPECT_THAT(Found(serving, "APPLE"), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(Found(serving, "apple plum"), UnorderedElementsAre("a", "b"));
  EXPECT_FALSE(serving.Search("apple plum", 0, 10, nullptr).all_terms);
  EXPECT_TRUE(serving.Search("apple pear", 0, 10, nullptr).all_terms);
  EXPECT_THAT(Found(serving, "plum"), IsEmpty());
  EXPECT_THAT(Found(serving, ""), IsEmpty());
  EXPECT_THAT(Found(serving, "\xff\xfe ?!"), IsEmpty());
}

TEST(ServingTest, TitlesAndAnchorsCountForMoreThanTheBody) {
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"body", "Other", "vacuum" + Filler(1)}, 1)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"title", "Vacuum", "thing" + Filler(2)}, 2)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"anchor", "Another", "thing" + Filler(3), "vacuum vacuum"}, 3)), IsOk());
  EXPECT_THAT(Found(serving, "vacuum"), ElementsAre("title", "anchor", "body"));
}

TEST(ServingTest, RareTermsAndShortTextsCountForMore) {
  Serving serving;
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(serving.Apply(Changed({"common" + std::to_string(i), "", "select" + Filler(i)}, i + 1)), IsOk());
  }
  ASSERT_THAT(serving.Apply(Changed({"short", "", "lateral" + Filler(100, 10)}, 100)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"long", "", "lateral" + Filler(101, 400)}, 101)), IsOk());
  const std::vector<std::string> found = Found(serving, "select lateral");  // no page has both
  ASSERT_THAT(found, SizeIs(22));
  EXPECT_EQ(found[0], "short");
  EXPECT_THAT(Found(serving, "lateral"), ElementsAre("short", "long"));
}

TEST(ServingTest, TheRankDecidesBetweenEqualTexts) {
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"a", "", "index" + Filler(1)}, 1)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"b", "", "index" + Filler(2)}, 2)), IsOk());
  const auto ranks = [](const std::vector<std::string>& urls) {
    std::vector<double> result;
    for (const std::string& url : urls) result.push_back(url == "b" ? 8 : 0.15);
    return result;
  };
  const SearchResults results = serving.Search("index", 0, 10, ranks);
  EXPECT_THAT(Urls(results), ElementsAre("b", "a"));
  EXPECT_DOUBLE_EQ(results.hits[0].rank, 8);
  EXPECT_THAT(Found(serving, "index"), ElementsAre("a", "b"));  // without ranks, in order of urls
}

TEST(ServingTest, AnUpdateReplacesAndADeletionLeavesNothing) {
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"a", "One", "old words"}, 1)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"b", "Two", "old"}, 2)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"a", "Three", "new words"}, 3)), IsOk());
  EXPECT_THAT(Found(serving, "old"), ElementsAre("b"));
  EXPECT_THAT(Found(serving, "one"), IsEmpty());
  EXPECT_THAT(Found(serving, "words"), ElementsAre("a"));
  EXPECT_EQ(serving.documents(), 2U);
  ASSERT_THAT(serving.Apply(Gone("a", 4)), IsOk());
  EXPECT_THAT(Found(serving, "words"), IsEmpty());
  ASSERT_THAT(serving.Apply(Gone("b", 5)), IsOk());
  EXPECT_EQ(serving.documents(), 0U);
  EXPECT_EQ(serving.terms(), 0U);
  EXPECT_EQ(serving.postings(), 0U);
}

TEST(ServingTest, RepeatedAndLateChangesAreIgnored) {
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"a", "", "second"}, 7)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"a", "", "first"}, 6)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"a", "", "other"}, 7)), IsOk());
  EXPECT_THAT(Found(serving, "second"), ElementsAre("a"));
  EXPECT_THAT(Found(serving, "first other"), IsEmpty());
  ASSERT_THAT(serving.Apply(Gone("a", 9)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"a", "", "second"}, 8)), IsOk());
  EXPECT_EQ(serving.documents(), 0U);
  ASSERT_THAT(serving.Apply(Changed({"a", "", "third"}, 10)), IsOk());
  EXPECT_THAT(Found(serving, "third"), ElementsAre("a"));
}

TEST(ServingTest, AMalformedChangeIsAnError) {
  Serving serving;
  EXPECT_THAT(serving.Apply({.payload = "\xff\xff"}), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ServingTest, LoadsTheTablesAndKeepsAppliedChanges) {
  const auto cluster = Cluster::Open("memory:");
  ASSERT_THAT(cluster, IsOk());
  ASSERT_THAT(CreateTables(*cluster), IsOk());
  ASSERT_THAT(cluster->Transact([](ReadWrite& t) {
    for (const char* url : {"a", "b", "c"}) t.Set(kIndexed, url, IndexedOf({url, "", "stored"}));
    t.Set(kStat.At("d"), "not indexed yet");
  }),
              IsOk());
  Serving serving;
  ASSERT_THAT(serving.Apply(Changed({"a", "", "applied"}, 5)), IsOk());
  ASSERT_THAT(serving.Apply(Gone("b", 6)), IsOk());
  const absl::StatusOr<Snapshot> now = cluster->GetSnapshot();
  ASSERT_THAT(now, IsOk());
  ASSERT_THAT(serving.Load(*now), IsOk());
  EXPECT_THAT(Found(serving, "applied"), ElementsAre("a"));
  EXPECT_THAT(Found(serving, "stored"), ElementsAre("c"));
  ASSERT_THAT(serving.Apply(Changed({"c", "", "changed"}, 1)), IsOk());  // it was on its way during the load
  EXPECT_THAT(Found(serving, "changed"), ElementsAre("c"));
}

TEST(ServingTest, FoldsNearDuplicatesAndNamesThem) {
  Serving serving;
  const std::string text = "manual of the storage engine" + Filler(1, 300);
  ASSERT_THAT(serving.Apply(Changed({"v1", "Manual", text, "", {"copy-of-v1"}}, 1)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"v2", "Manual", text + " more"}, 2)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"far", "", "manual" + Filler(2, 300)}, 3)), IsOk());
  const SearchResults results = serving.Search("manual", 0, 10, nullptr);
  EXPECT_EQ(results.matches, 3U);
  EXPECT_EQ(results.total, 2U);
  ASSERT_THAT(Urls(results), ElementsAre("v1", "far"));
  EXPECT_THAT(results.hits[0].similar, ElementsAre("v2"));
  EXPECT_THAT(results.hits[0].duplicates, ElementsAre("copy-of-v1"));
}

TEST(ServingTest, PagesOfResultsDoNotOverlapAndMissNone) {
  Serving serving;
  constexpr int kDocuments = 900;  // more than are sorted by rank
  for (int i = 0; i < kDocuments; ++i) {
    ASSERT_THAT(serving.Apply(Changed({"u" + std::to_string(i), "", "common" + Filler(i, 3 + i % 7)}, i + 1)), IsOk());
  }
  const auto ranks = [](const std::vector<std::string>& urls) {
    std::vector<double> result;
    for (const std::string& url : urls) result.push_back(static_cast<double>(url.size() + url.back()) / 10);
    return result;
  };
  std::set<std::string> seen;
  size_t total = 0;
  for (size_t offset = 0;; offset += 50) {
    const SearchResults results = serving.Search("common", offset, 50, ranks);
    if (results.hits.empty()) break;
    total = results.total;
    for (const Hit& hit : results.hits) {
      EXPECT_TRUE(seen.insert(hit.url).second) << hit.url;
      seen.insert(hit.similar.begin(), hit.similar.end());
    }
  }
  EXPECT_THAT(seen, SizeIs(kDocuments));
  EXPECT_THAT(total, Gt(0U));
  EXPECT_THAT(serving.Search("common", static_cast<size_t>(-1), 10, ranks).hits, IsEmpty());
}

TEST(ServingTest, ReportsTheTimeUntilSearchable) {
  Serving serving;
  const int64_t now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  ASSERT_THAT(serving.Apply(Changed({"a", "", "x"}, 1, now - 5000)), IsOk());
  ASSERT_THAT(serving.Apply(Changed({"a", "", "x"}, 1, now - 5000)), IsOk());
  const std::vector<Serving::Latency> latencies = serving.Latencies();
  ASSERT_THAT(latencies, SizeIs(1));
  EXPECT_GE(latencies[0].micros, 5000);
  EXPECT_GE(latencies[0].at_micros, now);
}

// After many changes of many documents the index is the same as after only the last change of each.
TEST(ServingTest, ManyChangesLeaveTheSameIndexAsTheLast) {
  Serving changed;
  Serving fresh;
  uint64_t version = 0;
  unsigned random = 1;
  const auto next = [&random](unsigned below) {
    random = random * 1103515245 + 12345;
    return (random >> 16) % below;
  };
  std::map<std::string, std::optional<Source>> last;
  for (int i = 0; i < 2000; ++i) {
    const std::string url = "u" + std::to_string(next(40));
    if (next(4) == 0) {
      last[url] = std::nullopt;
      ASSERT_THAT(changed.Apply(Gone(url, ++version)), IsOk());
      continue;
    }
    Source source{url, "t" + std::to_string(next(5)), Filler(static_cast<int>(i), 5)};
    for (unsigned w = next(6); w > 0; --w) source.body += " shared" + std::to_string(next(9));
    last[url] = source;
    ASSERT_THAT(changed.Apply(Changed(source, ++version)), IsOk());
  }
  for (const auto& [url, source] : last) {
    if (!source.has_value()) continue;
    ASSERT_THAT(fresh.Apply(Changed(*source, ++version)), IsOk());
  }
  EXPECT_EQ(changed.documents(), fresh.documents());
  EXPECT_EQ(changed.terms(), fresh.terms());
  EXPECT_EQ(changed.postings(), fresh.postings());
  for (const char* query : {"shared1", "shared2 shared3", "t1", "t2 shared4"}) {
    EXPECT_EQ(Found(changed, query), Found(fresh, query)) << query;
  }
}

TEST(ServingTest, MayBeSearchedWhileItChanges) {
  Serving serving;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&serving, writer] {
      for (uint64_t i = 1; i <= 300; ++i) {
        const std::string url = "u" + std::to_string(writer) + std::to_string(i % 10);
        const Export entry =
            i % 5 == 0 ? Gone(url, i) : Changed({url, "", "shared" + Filler(static_cast<int>(i), 5)}, i);
        EXPECT_THAT(serving.Apply(entry), IsOk());
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      for (const Hit& hit : serving.Search("shared", 0, 20, nullptr).hits) EXPECT_FALSE(hit.url.empty());
      EXPECT_LE(serving.Latencies().size() + serving.documents(), 20U);
    }
  });
  threads[0].join();
  threads[1].join();
  done = true;
  threads[2].join();
}

TEST(SnippetTest, ShowsWhereTheTermsAreCloseTogether) {
  const std::string body = "alpha" + Filler(1, 100) + " here alpha meets Beta at last" + Filler(2, 100) + " beta";
  const std::string snippet = TextOf(SnippetOf(body, "", {"alpha", "beta"}));
  EXPECT_THAT(snippet, HasSubstr("here [alpha] meets [Beta] at last"));
  EXPECT_THAT(snippet, ::testing::StartsWith("…"));
  EXPECT_THAT(snippet, ::testing::EndsWith("…"));
  EXPECT_THAT(snippet.size(), Lt(kSnippetBytes + 20));
}

TEST(SnippetTest, TheSnippetOfAShortTextIsTheWholeText) {
  EXPECT_EQ(TextOf(SnippetOf("(One two)", "", {"two"})), "(One [two])");
  EXPECT_EQ(TextOf(SnippetOf("One two", "", {"three"})), "One two");
  EXPECT_EQ(TextOf(SnippetOf("One two", "A description", {"three"})), "A description");
  EXPECT_THAT(SnippetOf("", "", {"three"}), IsEmpty());
}

TEST(SnippetTest, IsCutBetweenCharacters) {
  std::string body;
  for (int i = 0; i < 200; ++i) body += "żółć日本語 𝒳";
  for (const char* term : {"żolc", "日本", "nowhere"}) {
    std::vector<std::string> terms = {TermsOf(term).at(0).text};
    for (const Hit::Piece& piece : SnippetOf(body, "", terms)) EXPECT_EQ(ToValidUtf8(piece.text), piece.text);
  }
  for (size_t most = 0; most < 20; ++most) {
    const std::string cut(CutAtCharacter(body, most));
    EXPECT_EQ(ToValidUtf8(cut), cut);
    EXPECT_THAT(most - cut.size(), Lt(4U));
  }
}

TEST(SnippetTest, TheSnippetOfAHugeTextIsSmall) {
  const std::string word(1 << 20, 'a');
  const std::vector<std::string> terms = {TermsOf(word).at(0).text};
  EXPECT_THAT(TextOf(SnippetOf(word, "", terms)).size(), Lt(1000U));
  const std::string signs = std::string(1 << 17, '-') + " word " + std::string(1 << 20, '-');
  EXPECT_THAT(TextOf(SnippetOf(signs, "", {"word"})).size(), Lt(1000U));
}

}  // namespace
}  // namespace webindex
