// SPDX-License-Identifier: Apache-2.0

// The batch program on folders so small that the answer is known.

#include "tests/webindex/batch.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/webindex/tables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace webindex {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Pages as the parser would return them.
class Pages {
 public:
  Pages& Add(const std::string& url, uint64_t content, const std::string& moved_to = "",
             const std::vector<std::pair<std::string, std::string>>& links = {}) {
    ParsedPage& page = input_.pages[url].parsed;
    page.identity.set_content_high(content);
    page.identity.set_content_low(0xAB);
    page.identity.set_moved_to(moved_to);
    for (const auto& [target, anchor] : links) {
      Link* link = page.links.add_links();
      link->set_target(target);
      link->set_anchor(anchor);
    }
    return *this;
  }
  ParsedPage& operator[](const std::string& url) { return input_.pages[url].parsed; }
  Pages& File(const std::string& path, uint64_t bytes, const std::string& excerpt) {
    input_.files[path].state.set_bytes(bytes);
    input_.files[path].state.set_excerpt(excerpt);
    return *this;
  }
  BatchIndex Compute() const { return ComputeBatch(input_); }

 private:
  BatchInput input_;
};

constexpr char kOne[] = "content:000000000000000100000000000000ab";
constexpr char kTwo[] = "content:000000000000000200000000000000ab";

TEST(BatchTest, PagesWithTheSameContentAreACluster) {
  const BatchIndex batch = Pages().Add("b", 1).Add("a", 1).Add("c", 2).Compute();
  EXPECT_THAT(batch.clusters, ElementsAre(Pair(kOne, ElementsAre("a", "b")), Pair(kTwo, ElementsAre("c"))));
  EXPECT_EQ(batch.pages.at("b").cluster, kOne);
  EXPECT_THAT(batch.pages.at("b").walk, IsEmpty());
}

TEST(BatchTest, AMovedPageIsInTheClusterOfItsTarget) {
  const BatchIndex batch = Pages().Add("a", 1, "b").Add("b", 2, "c").Add("c", 3).Add("d", 3).Compute();
  EXPECT_THAT(batch.clusters,
              ElementsAre(Pair(StartsWith("content:0000000000000003"), ElementsAre("a", "b", "c", "d"))));
  EXPECT_THAT(batch.pages.at("a").walk, UnorderedElementsAre("moved:b", "moved:c"));
  EXPECT_THAT(batch.pages.at("c").walk, IsEmpty());
}

TEST(BatchTest, PagesThatMovedToTheSameMissingPageAreACluster) {
  const BatchIndex batch = Pages().Add("a", 1, "gone").Add("b", 2, "gone").Compute();
  EXPECT_THAT(batch.clusters, ElementsAre(Pair("url:gone", ElementsAre("a", "b"))));
  EXPECT_THAT(batch.pages.at("a").walk, ElementsAre("moved:gone"));
}

TEST(BatchTest, ACycleIsNamedAfterItsSmallestPage) {
  // z leads into the cycle d -> c -> e -> d; no page of the cycle is larger. a is smaller, but not in the cycle.
  const BatchIndex batch =
      Pages().Add("z", 1, "d").Add("a", 1, "z").Add("d", 1, "c").Add("c", 1, "e").Add("e", 1, "d").Compute();
  EXPECT_THAT(batch.clusters, ElementsAre(Pair("url:c", ElementsAre("a", "c", "d", "e", "z"))));
  EXPECT_THAT(batch.pages.at("e").walk, UnorderedElementsAre("moved:c", "moved:d"));
}

TEST(BatchTest, APageThatMovedToItselfIsACycle) {
  EXPECT_THAT(Pages().Add("a", 1, "a").Compute().clusters, ElementsAre(Pair("url:a", ElementsAre("a"))));
}

TEST(BatchTest, ALongWayIsCut) {
  Pages pages;
  for (char c = 'a'; c < 'j'; ++c) pages.Add(std::string(1, c), 1, std::string(1, static_cast<char>(c + 1)));
  const BatchIndex batch = pages.Add("j", 2).Compute();
  EXPECT_EQ(batch.pages.at("a").cluster, "url:i");  // a to h are eight pages
  EXPECT_EQ(batch.pages.at("b").cluster, "url:j");
  EXPECT_EQ(batch.pages.at("c").cluster, kTwo);
  EXPECT_EQ(batch.pages.at("a").walk.size(), 7U);
}

TEST(BatchTest, CanonicalIsTheHighestRankThenTheSmallestUrl) {
  EXPECT_EQ(CanonicalOf({"a", "b", "c"}, {{"a", 1}, {"b", 5}, {"c", 5}}), "b");
  EXPECT_EQ(CanonicalOf({"c", "b"}, {{"b", 5}, {"c", 6}}), "c");
}

TEST(BatchTest, RanksOfThreePages) {
  // a -> b, c; b -> c; c -> a:  a = .15 + .85 c;  b = .15 + .425 a;  c = .15 + .425 a + .85 b
  const BatchIndex batch = Pages()
                               .Add("a", 1, "", {{"b", ""}, {"c", ""}})
                               .Add("b", 2, "", {{"c", ""}})
                               .Add("c", 3, "", {{"a", ""}})
                               .Compute();
  const double a = (0.15 + 0.85 * 0.15 + 0.85 * 0.85 * 0.15) / (1 - 0.85 * 0.425 - 0.85 * 0.85 * 0.425);
  EXPECT_NEAR(batch.pages.at("a").rank, a, 1e-11);
  EXPECT_NEAR(batch.pages.at("b").rank, 0.15 + 0.425 * a, 1e-11);
  EXPECT_NEAR(batch.pages.at("c").rank, (a - 0.15) / 0.85, 1e-11);
}

TEST(BatchTest, RankGivenToMissingPagesIsLost) {
  // Two links to one target count once. A target that does not exist still has its share.
  const BatchIndex batch = Pages().Add("a", 1, "", {{"b", "x"}, {"b", "y"}, {"gone", ""}}).Add("b", 2).Compute();
  EXPECT_NEAR(batch.pages.at("a").rank, 0.15, 1e-12);
  EXPECT_NEAR(batch.pages.at("b").rank, 0.15 + 0.85 * 0.15 / 2, 1e-12);
}

TEST(BatchTest, LinksAreInverted) {
  const BatchIndex batch = Pages()
                               .Add("a", 1, "", {{"b", "one two"}, {"b", "two"}, {"gone", "three"}})
                               .Add("b", 2, "", {{"gone", "three"}})
                               .Compute();
  EXPECT_THAT(batch.inlinks, ElementsAre(Pair(Pair("b", "a"), "one two\ntwo"), Pair(Pair("gone", "a"), "three"),
                                         Pair(Pair("gone", "b"), "three")));
  EXPECT_THAT(batch.anchor_words, ElementsAre(Pair("b", ElementsAre(Pair("one", 1), Pair("two", 2))),
                                              Pair("gone", ElementsAre(Pair("three", 2)))));
}

TEST(BatchTest, ADocumentHasTheTextOfOneAndTheAnchorsOfAll) {
  Pages pages;
  pages.Add("a", 1).Add("b", 1).Add("c", 2, "", {{"a", "red"}, {"b", "red blue"}});
  pages["a"].text.set_title("Blue");
  pages["a"].text.set_body("green blue green");
  const BatchIndex batch = pages.Compute();
  const Indexed document = DocumentOf(batch, batch.clusters.at(kOne), "a");
  EXPECT_EQ(document.url(), "a");
  EXPECT_THAT(document.members(), ElementsAre("a", "b"));
  EXPECT_EQ(document.length(), 4U);
  std::vector<std::string> terms;
  for (const IndexedTerm& term : document.terms()) {
    const Posting& p = term.posting();
    terms.push_back(term.term() + " " + std::to_string(p.body()) + std::to_string(p.title()) +
                    std::to_string(p.anchors()));
  }
  EXPECT_THAT(terms, ElementsAre("blue 111", "green 200", "red 002"));
}

TEST(BatchTest, ASummaryCoversThePageAndItsFiles) {
  Pages pages;
  pages.Add("a", 1).File("x.inc", 30, "included words").File("y.png", 12, "");
  for (const char* path : {"gone.css", "x.inc", "y.png"}) pages["a"].resources.add_paths(path);
  pages["a"].text.set_body(std::string(199, 'x') + "é and more");
  const BatchIndex batch = pages.Compute();
  const Summary& summary = batch.pages.at("a").summary;
  EXPECT_EQ(summary.description(), std::string(199, 'x'));
  EXPECT_THAT(summary.included(), ElementsAre("included words"));
  EXPECT_EQ(summary.resources(), 3U);
  EXPECT_EQ(summary.missing(), 1U);
  EXPECT_EQ(summary.bytes(), 42U);
  EXPECT_THAT(batch.pages.at("a").depends, UnorderedElementsAre("file:gone.css", "file:x.inc", "file:y.png"));
}

TEST(BatchTest, AFolderIsRead) {
  const percolator::TempDir dir;
  std::filesystem::create_directory(dir.path() + "/sub");
  const auto write = [&](const std::string& path, const std::string& text) {
    std::ofstream(dir.path() + "/" + path) << text;
  };
  write("a.html", "<title>One</title><p>words <a href='sub/b.html'>anchor</a>");
  write("sub/b.html", "<title>One</title><p>words anchor");
  write("sub/c.html", "<link rel=canonical href='b.html'><p>other");
  write("sub/style.css", "p {}");
  const BatchIndex batch = ComputeBatch(dir.path(), "https://example.org/");
  EXPECT_THAT(batch.clusters,
              ElementsAre(Pair(StartsWith("content:"), ElementsAre("a.html", "sub/b.html", "sub/c.html"))));
  EXPECT_THAT(batch.inlinks, ElementsAre(Pair(Pair("sub/b.html", "a.html"), "anchor")));
  EXPECT_EQ(batch.input.files.at("sub/style.css").state.bytes(), 4U);
}

}  // namespace
}  // namespace webindex
