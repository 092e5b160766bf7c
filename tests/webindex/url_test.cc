// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/url.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace webindex {
namespace {

constexpr std::string_view kManual = "https://docs.example.org/manual/";

struct Case {
  std::string_view page;
  std::string_view link;
  std::string_view target;  // empty: outside of the folder
};

void Check(std::string_view base, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.page) + " -> " + std::string(c.link));
    EXPECT_EQ(ResolveLink(base, c.page, c.link).value_or(""), c.target);
  }
}

TEST(UrlTest, RelativeLinksAreResolvedAgainstTheFolderOfThePage) {
  Check(kManual, {
                     {"a/b.html", "c.html", "a/c.html"},
                     {"a/b.html", "./c.html", "a/c.html"},
                     {"a/b.html", "../c.html", "c.html"},
                     {"a/b.html", "x/y/../z.html", "a/x/z.html"},
                     {"a/b.html", "x//y.html", "a/x/y.html"},
                     {"a/b.html", "x/", "a/x/index.html"},
                     {"a/b.html", ".", "a/index.html"},
                     {"a/b.html", "..", "index.html"},
                     {"a/b.html", "c.html#part", "a/c.html"},
                     {"a/b.html", "#part", "a/b.html"},
                     {"a/b.html", "", "a/b.html"},
                     {"a/b.html", "c.html?page=2#x", "a/c.html?page=2"},
                     {"a/b.html", "?page=2", "a/b.html?page=2"},
                     {"a/b.html?page=1", "?page=2", "a/b.html?page=2"},
                     {"a/b.html?page=1", "c.html", "a/c.html"},
                     {"a/b.html", "c.html?from=/x/y", "a/c.html?from=%2Fx%2Fy"},
                     {"a/b.html", "  c.html\n", "a/c.html"},
                     {"a/b.html", "c\n\t.html", "a/c.html"},
                     {"a/b.html", "x\\c.html", "a/x/c.html"},
                 });
}

TEST(UrlTest, EscapesAreDecoded) {
  Check(kManual, {
                     {"a.html", "%62.html", "b.html"},
                     {"a.html", "two%20words.html", "two words.html"},
                     {"a.html", "%C3%A4.html", "\xc3\xa4.html"},
                     {"a.html", "100%25.html", "100%.html"},
                     {"a.html", "100%.html", "100%.html"},
                     {"a.html", "b.html%3Fx=1", "b.html?x=1"},
                     {"a.html", "b%23c.html", "b#c.html"},
                     {"100%41.html", "#x", "100%41.html"},
                 });
}

TEST(UrlTest, AbsoluteLinksLeadInsideUnderTheBase) {
  Check(kManual, {
                     {"a/b.html", "https://docs.example.org/manual/c.html", "c.html"},
                     {"a/b.html", "HTTPS://Docs.Example.ORG/manual/c.html", "c.html"},
                     {"a/b.html", "//docs.example.org/manual/c.html", "c.html"},
                     {"a/b.html", "/manual/c.html", "c.html"},
                     {"a/b.html", "https://docs.example.org/manual/", "index.html"},
                     {"a/b.html", "../../manual/c.html", "c.html"},
                 });
  Check("https://h.org", {{"a.html", "https://h.org", "index.html"}, {"a.html", "https://h.org?q", "index.html?q"}});
  Check("", {{"a/b.html", "/c.html", "c.html"}, {"a/b.html", "c.html", "a/c.html"}});
}

TEST(UrlTest, LinksToTheOutsideHaveNoTarget) {
  for (const std::string_view link : {"http://docs.example.org/manual/c.html",
                                      "https://example.org/manual/c.html",
                                      "https://docs.example.org.evil.org/manual/c.html",
                                      "https://x@docs.example.org/manual/c.html",
                                      "https://docs.example.org/manual2/c.html",
                                      "https://docs.example.org",
                                      "https://docs.example.org?manual/c.html",
                                      "/c.html",
                                      "../../c.html",
                                      "../../../../etc/passwd.html",
                                      "..\\..\\c.html",
                                      "%2e%2e/%2E%2e/c.html",
                                      "..%2f..%2fc.html",
                                      "a%2Fb.html",
                                      "javascript:alert(1)//.html",
                                      "java\nscript:x.html",
                                      " javascript:x.html",
                                      "file:///etc/passwd.html",
                                      "mailto:x@y.html",
                                      "data:text/html,x.html",
                                      "https:c.html",
                                      "//other.org/c.html",
                                      "\\\\other.org\\c.html",
                                      "c%00.html",
                                      "c%0A.html",
                                      "%FF.html",
                                      "%C3.html",
                                      "%ED%A0%80.html"}) {
    EXPECT_EQ(ResolveLink(kManual, "a/b.html", link), std::nullopt) << link;
  }
  EXPECT_EQ(ResolveLink("", "a.html", "file:///b.html"), std::nullopt);
  EXPECT_EQ(ResolveLink("", "a.html", "//b.html/c.html"), std::nullopt);
  EXPECT_EQ(ResolveLink(kManual, "a.html", std::string(kLongestUrl + 1, 'x')), std::nullopt);
  EXPECT_EQ(ResolveLink(kManual, "a.html", std::string(1 << 20, '/') + "x"), std::nullopt);
  EXPECT_TRUE(ResolveLink(kManual, "a.html", std::string(kLongestUrl, 'x')).has_value());
}

TEST(UrlTest, EveryTargetIsAPathBelowTheFolder) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces{"..", ".",  "/",    "\\", "%2e", "%2f", "a",  "b.html", "?",     "#",    "%",
                                        ":",  "//", "http", "\n", "%0a", "%5c", "\t", "manual", "https", "\xc3", " "};
  for (int i = 0; i < 200'000; ++i) {
    std::string link;
    for (size_t n = random() % 10; n > 0; --n) link += pieces[random() % pieces.size()];
    const auto target = ResolveLink(i % 2 == 0 ? kManual : "", "x/y.html", link);
    if (!target.has_value()) continue;
    const std::string framed = "/" + *target + "/";
    ASSERT_EQ(framed.find("//"), framed.npos) << link << " -> " << *target;
    ASSERT_EQ(framed.find("/../"), framed.npos) << link << " -> " << *target;
    ASSERT_EQ(framed.find("/./"), framed.npos) << link << " -> " << *target;
    ASSERT_TRUE(UrlOfFile(*target).has_value()) << link;
  }
}

TEST(UrlTest, FilesWithValidNamesHaveUrls) {
  EXPECT_EQ(UrlOfFile("a/\xc3\xa4 b.html"), "a/\xc3\xa4 b.html");
  EXPECT_EQ(UrlOfFile("a/\xff.html"), std::nullopt);
  EXPECT_EQ(UrlOfFile("a\nb.html"), std::nullopt);
  EXPECT_EQ(UrlOfFile(std::string_view("a\0b.html", 8)), std::nullopt);
  EXPECT_EQ(UrlOfFile(std::string(kLongestUrl + 1, 'a')), std::nullopt);
  EXPECT_EQ(UrlOfFile(""), std::nullopt);
}

TEST(UrlTest, PagesAreFilesOfHtml) {
  for (const std::string_view url : {"a/b.html", "b.htm", "b.XHTML", "b.shtml", "b.html?x=1", "b?x=1.html"}) {
    EXPECT_TRUE(IsPage(url)) << url;
  }
  for (const std::string_view url : {"", "a", "b.png", "b.html/c", "html", "b.html.gz", "b.html?x/y"}) {
    EXPECT_FALSE(IsPage(url)) << url;
  }
}

}  // namespace
}  // namespace webindex
