// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/terms.h"
#include "apps/webindex/tree.h"
#include "apps/webindex/url.h"
#include "tests/testing/amount.h"

namespace webindex {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kBase = "https://docs.example.org/";
constexpr std::string_view kUrl = "a/b.html";

ParsedPage Parse(std::string_view html) { return ParsePage(kBase, kUrl, html); }
std::string Body(std::string_view html) { return Parse(html).text.body(); }
std::string Title(std::string_view html) { return Parse(html).text.title(); }
std::string MovedTo(std::string_view html) { return Parse(html).identity.moved_to(); }

std::vector<std::pair<std::string, std::string>> LinksIn(std::string_view html) {
  std::vector<std::pair<std::string, std::string>> links;
  const ParsedPage page = Parse(html);
  for (const Link& link : page.links.links()) links.emplace_back(link.target(), link.anchor());
  return links;
}

std::vector<std::string> ResourcesIn(std::string_view html) {
  const ParsedPage page = Parse(html);
  return {page.resources.paths().begin(), page.resources.paths().end()};
}

std::string Repeat(std::string_view piece, size_t bytes) {
  std::string text;
  text.reserve(bytes + piece.size());
  while (text.size() < bytes) text += piece;
  return text;
}

TEST(ParseTest, Text) {
  EXPECT_EQ(Body("<p>Hello, <b>wor</b>ld!<p>Next"), "Hello, world! Next");
  EXPECT_EQ(Body("<table><tr><td>a<td>b<tr><td>c</table>"), "a b c");
  EXPECT_EQ(Body("one<br>two<hr>three<li>four"), "one two three four");
  EXPECT_EQ(Body("  a \n\t b&nbsp;&nbsp;c \u2003 d "), "a b c d");
  EXPECT_EQ(Body("caf&eacute; &lt;tag&gt; &#228;&#x4e2d; &amp;amp;"), "caf\u00e9 <tag> \u00e4\u4e2d &amp;");
  EXPECT_EQ(Body("a<script>var x = '<p>no</p>';</script><style>p {}</style>b"), "a b");
  EXPECT_EQ(Body("a<noscript>no</noscript><template><p>no</template><iframe>no</iframe>b"), "a b");
  EXPECT_EQ(Body("a<!-- no -->b<svg><text>c</text><style>no</style></svg>"), "ab c");
  EXPECT_EQ(Body("<textarea>yes <b></textarea>"), "yes <b>");
  EXPECT_EQ(Body("not html at all"), "not html at all");
  EXPECT_EQ(Body(""), "");
}

TEST(ParseTest, Title) {
  EXPECT_EQ(Title("<title> The\n <b>title</b> &amp; more </title><body>x"), "The <b>title</b> & more");
  EXPECT_EQ(Title("<title></title><title>second</title><title>third</title>"), "second");
  EXPECT_EQ(Title("<svg><title>no</title></svg>"), "");
  EXPECT_EQ(Title("<title>" + std::string(5000, 'x') + "</title>"), std::string(kLongestTitle, 'x'));
  EXPECT_EQ(Body("<title>not in the body</title>x"), "x");
}

TEST(ParseTest, Description) {
  EXPECT_EQ(Parse("<meta name=Description content=' of\nthe page '>").text.description(), "of the page");
  EXPECT_EQ(Parse("<meta name=keywords content=no>").text.description(), "");
}

TEST(ParseTest, LinksInTheOrderOfTargetsThenAnchors) {
  EXPECT_THAT(LinksIn("<a href=d.html>to <b>d</b></a> <a href='../c.html#x'> c </a> <a href=d.html>again</a>"),
              ElementsAre(Pair("a/d.html", "again"), Pair("a/d.html", "to d"), Pair("c.html", "c")));
  EXPECT_THAT(LinksIn("<a href=d.html><img alt=' the  picture '></a>"), ElementsAre(Pair("a/d.html", "the picture")));
  EXPECT_THAT(LinksIn("<a href=d.html><img alt=picture>text</a>"), ElementsAre(Pair("a/d.html", "text")));
  EXPECT_THAT(LinksIn("<map><area href=d.html alt=area></map>"), ElementsAre(Pair("a/d.html", "area")));
  EXPECT_THAT(LinksIn("<a href=d.html>one<a href=e.html>two"),
              ElementsAre(Pair("a/d.html", "one"), Pair("a/e.html", "two")));
  EXPECT_THAT(LinksIn("<a href=d.html>" + std::string(kLongestAnchor - 1, 'x') + "\u00e4</a>"),
              ElementsAre(Pair("a/d.html", std::string(kLongestAnchor - 1, 'x'))));
  EXPECT_THAT(LinksIn("<a href='d.html'><script>no</script><b onclick=x>&lt;script></b></a>"),
              ElementsAre(Pair("a/d.html", "<script>")));
}

TEST(ParseTest, OtherReferencesAreNotLinks) {
  EXPECT_THAT(
      LinksIn("<a href=b.html>self</a><a href=#x>self</a><a href=''>self</a><a name=x>y</a><a href=x.png>file</a>"
              "<a href='javascript:x.html'>no</a><a href=file:///etc/x.html>no</a><a href=../../x.html>no</a>"
              "<a href=https://elsewhere.org/x.html>no</a><noscript><a href=c.html>hidden</a></noscript>"),
      IsEmpty());
}

TEST(ParseTest, LinksAreResolvedAgainstTheBaseOfThePage) {
  EXPECT_THAT(LinksIn("<base href='/x/y/'><a href=d.html>d</a>"), ElementsAre(Pair("x/y/d.html", "d")));
  EXPECT_THAT(LinksIn("<base href='../x'><a href=d.html>d</a>"), ElementsAre(Pair("d.html", "d")));
  EXPECT_THAT(
      LinksIn("<base href='https://elsewhere.org/'><a href=d.html>d</a><a href=https://docs.example.org/e.html>e</a>"),
      ElementsAre(Pair("e.html", "e")));
}

TEST(ParseTest, MovedTo) {
  EXPECT_EQ(MovedTo("<link rel=canonical href=c.html>"), "a/c.html");
  EXPECT_EQ(MovedTo("<link rel='x Canonical' href='https://docs.example.org/c.html'>"), "c.html");
  EXPECT_EQ(MovedTo("<meta http-equiv=Refresh content=\"0; URL='c.html'\">"), "a/c.html");
  EXPECT_EQ(MovedTo("<meta http-equiv=refresh content='0;url=c.html'>"), "a/c.html");
  EXPECT_EQ(MovedTo("<meta http-equiv=refresh content='0;url=c.html'><link rel=canonical href=d.html>"), "a/d.html");
  EXPECT_EQ(MovedTo("<meta http-equiv=refresh content='600;url=c.html'>"), "");
  EXPECT_EQ(MovedTo("<meta http-equiv=refresh content='5'>"), "");
  EXPECT_EQ(MovedTo("<link rel=canonical href=b.html>"), "");
  EXPECT_EQ(MovedTo("<link rel=canonical href=https://elsewhere.org/c.html>"), "");
  EXPECT_EQ(MovedTo("<link rel=canonical href=c.png>"), "");
  EXPECT_EQ(MovedTo("<link rel=next href=c.html>"), "");
}

TEST(ParseTest, Resources) {
  EXPECT_THAT(
      ResourcesIn("<link rel=stylesheet href=s.css><link rel='shortcut icon' href=/i.ico><script src=s.js></script>"
                  "<img src=p.png><img src=p.png><iframe src=f.html></iframe><embed src=e><object data=o></object>"
                  "<video src=v poster=t><source src=w></video><input type=image src=n><a href=no.png>x</a>"
                  "<img src='data:x'><img src=https://elsewhere.org/p.png>"),
      ElementsAre("a/e", "a/f.html", "a/n", "a/o", "a/p.png", "a/s.css", "a/s.js", "a/t", "a/v", "a/w", "i.ico"));
  EXPECT_THAT(ResourcesIn("<base href=/x/><!--#include file=\"m.inc\" --><p><!-- #include virtual='/n.inc'-->"
                          "<!--#echo var=\"x\" -->"),
              ElementsAre("a/m.inc", "n.inc"));
}

TEST(ParseTest, EqualTextsAreEqualWhateverTheMarkup) {
  const Identity one = Parse("<title>t</title><p>Some   text").identity;
  const Identity two =
      Parse("<html><head><title>t</title></head><body><div>Some <i>text</i></div></body></html>").identity;
  const Identity other = Parse("<title>t</title><p>Some texts").identity;
  EXPECT_EQ(one.content_high(), two.content_high());
  EXPECT_EQ(one.content_low(), two.content_low());
  EXPECT_NE(one.content_low(), other.content_low());
  EXPECT_NE(Parse("<title>a</title>b").identity.content_low(), Parse("<title>ab</title>").identity.content_low());
}

TEST(ParseTest, Encodings) {
  EXPECT_EQ(Body("\xef\xbb\xbf"
                 "caf\xc3\xa9"),
            "caf\u00e9");
  EXPECT_EQ(Body("<meta charset=iso-8859-1>caf\xe9 \x93x\x94"), "caf\u00e9 \u201cx\u201d");
  EXPECT_EQ(Body("<meta http-equiv=Content-Type content='text/html; charset=ISO-8859-15'>\xa4"), "\u20ac");
  EXPECT_EQ(Body("<?xml version='1.0' encoding='koi8-r'?><p>\xd0"), "\u043f");
  EXPECT_EQ(Body(std::string("\xff\xfe"
                             "c\0\xe9\0",
                             6)),
            "c\u00e9");
  EXPECT_EQ(Body(std::string("\xfe\xff"
                             "\0c\0\xe9",
                             6)),
            "c\u00e9");
  EXPECT_EQ(Body("<meta charset=utf-16>caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(Body("<meta charset=no-such-thing>caf\u00e9 \xff"), "caf\u00e9 \ufffd");
}

// --- Hostile pages: bounded, whatever they are -----------------------------------------------------------------------------

// Seconds of processor time, with a sanitizer. Quadratic behaviour takes hours.
constexpr double kLongest = 40;

double SecondsOfThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Two sizes: far more bytes than are parsed, and about as many. Smaller with a sanitizer.
constexpr size_t kHuge = percolator::Amount(50 << 20, 2 << 20);
constexpr size_t kLarge = percolator::Amount(4 << 20, 1 << 20);

void CheckBounded(std::string_view what, std::string_view html) {
  const double begin = SecondsOfThread();
  const ParsedPage page = Parse(html);
  const double taken = SecondsOfThread() - begin;
  EXPECT_LT(taken, kLongest) << what;
  EXPECT_LE(page.text.body().size(), kLargestPage) << what;
  EXPECT_EQ(ToValidUtf8(page.text.body()), page.text.body()) << what;
  EXPECT_EQ(ToValidUtf8(page.text.title()), page.text.title()) << what;
  EXPECT_LE(static_cast<size_t>(page.links.links_size()), kMaxLinks) << what;
  EXPECT_LE(static_cast<size_t>(page.resources.paths_size()), kMaxResources) << what;
  std::cout << "  " << what << ": " << taken << " s\n";
}

TEST(HostilePageTest, FiftyMegabytesOfOneTagAreBounded) {
  for (const std::string_view tag :
       {"<b>", "<div>", "<p>", "<a href=x.html>", "<table>", "<td>", "<span>", "<svg>", "</p>", "</b>", "<br>", "<",
        "&", "<!--", "<x ", "<select>", "<template>", "<title>", "<li><ul>"}) {
    CheckBounded(tag, Repeat(tag, kHuge));
  }
}

TEST(HostilePageTest, OpenFormattingElements) {
  std::string fonts;
  for (int i = 0; i < 1'000'000; ++i) fonts += "<font size=" + std::to_string(i) + ">";
  CheckBounded("different fonts", fonts);
  std::string reopened;
  for (int i = 0; i < 2000; ++i) reopened += "<b id=" + std::to_string(i) + ">";
  CheckBounded("reopened", reopened + Repeat("<p>x</p>", kLarge));
  CheckBounded("reopened, ended", "<p>" + reopened + "</p>" + Repeat("<p>x", kLarge));
  CheckBounded("a large one", "<p><b x='" + std::string(1 << 20, 'x') + "'></p>" + Repeat("<p>x</p>", 3 << 20));
  CheckBounded("wrongly nested", Repeat("<b><i><p></b></i>", kLarge));
  CheckBounded("wrongly nested in cells", Repeat("<b><table><td></b></table>", kLarge));
  CheckBounded("spans with paragraphs", Repeat("<span><p></span>", kLarge));
}

// Cases that could mislead the scan before the parser about what is a tag.
TEST(HostilePageTest, HiddenNesting) {
  CheckBounded("in titles of drawings", "<svg><title>" + Repeat("<b>", kLarge));
  CheckBounded("in titles of selections", "<select><title>" + Repeat("<div>", kLarge));
  CheckBounded("after a drawing", "<svg><p></p>" + Repeat("<g/>", kLarge));
  CheckBounded("beside a drawing", Repeat("<svg><p><g/></p></svg>", kLarge));
  CheckBounded("in scripts", Repeat("<div><script><!--<script></script></div></script>", kLarge));
  CheckBounded("in comments", Repeat("<div><!--></div>--><!--!></div>-->", kLarge));
  CheckBounded("in CDATA", Repeat("<svg><![CDATA[></svg>]]>", kLarge));
  CheckBounded("in raw text", Repeat("<div><xmp></div></xmp><textarea></div></textarea>", kLarge));
  CheckBounded("closed in cells", Repeat("<table><td><div></td></table>", kLarge));
  CheckBounded("forms", Repeat("<form><div></form>", kLarge));
  CheckBounded("frames", "<frameset>" + Repeat("<div><frame>", kLarge));
  CheckBounded("headings", Repeat("<h1><h2></h1>", kLarge));
  CheckBounded("buttons", Repeat("<button><p></button>", kLarge));
  CheckBounded("templates", Repeat("<template><tr></template><table><template>", kLarge));
  CheckBounded("fostered", "<table>" + Repeat("<b>x<tr>", kLarge));
  CheckBounded("options", "<select>" + Repeat("<optgroup><option>", kLarge));
  CheckBounded("ruby", Repeat("<ruby><rt><rp>", kLarge));
}

TEST(HostilePageTest, Attributes) {
  std::string attributes;
  std::string bodies;
  for (int i = 0; i < 400'000; ++i) {
    attributes += " a" + std::to_string(i);
    bodies += "<body a" + std::to_string(i) + "><html b" + std::to_string(i) + ">";
  }
  CheckBounded("many", "<p" + attributes + ">");
  CheckBounded("of bodies", bodies);
  CheckBounded("an open quote", "<a href=\"" + Repeat("<p>x", kHuge));
  CheckBounded("open quotes", Repeat("<a href='", kHuge) + "\"");
  CheckBounded("a long link", "<a href='" + Repeat("../", kLarge) + "'>x</a>");
  CheckBounded("a long anchor", "<a href=x.html>" + Repeat("word ", kLarge));
  CheckBounded("nested anchors", Repeat("<a href=x.html><table><td>word", kLarge));
}

TEST(HostilePageTest, ManyLinksResourcesAndWords) {
  std::string links;
  std::string words;
  for (int i = 0; i < 60'000; ++i) {
    links += "<a href=" + std::to_string(i) + ".html>x</a><img src=" + std::to_string(i) + ".png>";
    words += "w" + std::to_string(i) + " ";
  }
  CheckBounded("links", links);
  const ParsedPage page = Parse(links);
  EXPECT_EQ(static_cast<size_t>(page.links.links_size()), kMaxLinks);
  EXPECT_THAT(page.text.notes(), ElementsAre("too many links", "too many resources"));
  CheckBounded("words", words);
  EXPECT_EQ(CountTerms(Parse(words).text.body()).size(), kMaxTerms);
  CheckBounded("a word", std::string(kLarge, 'x'));
  CheckBounded("Thai", Repeat("\u0e2a\u0e27\u0e31", kLarge));
  CheckBounded("Chinese", Repeat("\u6211\u662f\u4e2d", kLarge));
  CheckBounded("marks", "x" + Repeat("\u0301", kLarge));
  CheckBounded("flags", Repeat("\U0001f1e6", kLarge));
}

TEST(HostilePageTest, AnyBytes) {
  std::mt19937 random(11);
  CheckBounded("zeros", std::string(5 << 20, '\0'));
  CheckBounded("zeros in tags", Repeat(std::string_view("<a\0 href=\0x.html\0>\0</a>", 23), 1 << 20));
  CheckBounded("0xff", std::string(5 << 20, '\xff'));
  std::string bytes;
  for (size_t i = 0; i < kLarge; ++i) bytes += static_cast<char>(random());
  CheckBounded("random", bytes);
  CheckBounded("random UTF-16", "\xff\xfe" + bytes);
  for (const char* encoding : {"iso-2022-jp", "gb18030", "shift_jis", "hz-gb-2312", "utf-7", "scsu", "ibm-37"}) {
    CheckBounded(encoding, "<meta charset=" + std::string(encoding) + ">" + bytes.substr(0, 1 << 18));
  }
  const std::vector<std::string> pieces{
      "<",         ">",   "</",        "/>",       "<!--",     "-->",       "b",       "p",
      "table",     "td",  "svg",       "math",     "a href=",  "\"",        "'",       " ",
      "=",         "&",   ";",         "#",        "<script>", "</script>", "<title>", "select",
      "<![CDATA[", "]]>", "<!doctype", "template", "frameset", "x",         "\xc3",    std::string(1, '\0')};
  for (int i = 0; i < 300; ++i) {
    std::string page;
    for (size_t n = random() % 2000; n > 0; --n) page += pieces[random() % pieces.size()];
    const Text text = Parse(page).text;
    ASSERT_EQ(ToValidUtf8(text.body()), text.body());
  }
}

TEST(HostilePageTest, ModerateNestingIsReadAsATree) {
  EXPECT_THAT(Parse(Repeat("<div>", 1000) + "x").text.notes(), IsEmpty());
  EXPECT_THAT(Parse(Repeat("<p><b>x", 700)).text.notes(), IsEmpty());
  const Text deep = Parse("<title>t &amp; u</title>" + Repeat("<div>", 1 << 20) + "<a href=c.html>x &lt; y").text;
  EXPECT_THAT(deep.notes(), ElementsAre(HasSubstr("nested too deeply")));
  EXPECT_EQ(deep.title(), "t & u");
  EXPECT_EQ(deep.body(), "x < y");
}

// --- Real pages ------------------------------------------------------------------------------------------------------------

std::vector<std::string> RealPages(size_t most) {
  std::vector<std::string> pages;
  std::error_code error;
  for (const char* folder : {"/usr/share/doc/postgresql-doc-15/html", "/usr/share/doc/git/html"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (pages.size() >= most) break;
      if (!IsPage(entry.path().string())) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      pages.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return pages;
}

TEST(RealPagesTest, BothParsersAgree) {
  const std::vector<std::string> pages = RealPages(percolator::Amount(300, 60));
  if (pages.empty()) GTEST_SKIP() << "THERE ARE NO REAL PAGES HERE: install postgresql-doc-15 or git-doc";
  for (const std::string& page : pages) {
    const ParsedPage parsed = Parse(page);
    EXPECT_THAT(parsed.text.notes(), IsEmpty());
    EXPECT_FALSE(parsed.text.title().empty());
    // Deeper than a tree may be, but in an element without words.
    const ParsedPage flat = Parse(page + Repeat("<div>", 4 * page.size() + 100'000));
    EXPECT_THAT(flat.text.notes(), ElementsAre(HasSubstr("nested too deeply")));
    EXPECT_EQ(flat.text.title(), parsed.text.title());
    EXPECT_EQ(flat.links.SerializeAsString(), parsed.links.SerializeAsString());
    EXPECT_EQ(flat.resources.SerializeAsString(), parsed.resources.SerializeAsString());
    EXPECT_EQ(flat.text.body(), parsed.text.body());
  }
}

TEST(RealPagesTest, MutatedPagesAreRead) {
  const std::vector<std::string> pages = RealPages(40);
  if (pages.empty()) GTEST_SKIP() << "THERE ARE NO REAL PAGES HERE: install postgresql-doc-15 or git-doc";
  std::mt19937 random(13);
  for (int i = 0; i < 400; ++i) {
    std::string page = pages[random() % pages.size()].substr(0, 30'000);
    for (size_t n = random() % 40; n > 0 && !page.empty(); --n) {
      const size_t at = random() % page.size();
      const size_t length = random() % 200;
      switch (random() % 4) {
        case 0:
          page[at] = static_cast<char>(random());
          break;
        case 1:
          page.erase(at, length);
          break;
        case 2:
          page.insert(at, page.substr(random() % page.size(), length));
          break;
        default:
          page.insert(at, 1, "<>\"'&/="[random() % 7]);
          break;
      }
    }
    const ParsedPage parsed = Parse(page);
    ASSERT_EQ(ToValidUtf8(parsed.text.body()), parsed.text.body());
    ASSERT_EQ(Parse(page).text.SerializeAsString(), parsed.text.SerializeAsString());
  }
}

}  // namespace
}  // namespace webindex
