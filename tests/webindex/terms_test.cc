// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace webindex {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (const Term& term : TermsOf(text)) words.push_back(term.text);
  return words;
}

TEST(TermsTest, WordsOfAnyLanguage) {
  EXPECT_THAT(Words("The quick (\"brown\") fox can't jump 32.3 feet, right?"),
              ElementsAre("the", "quick", "brown", "fox", "can't", "jump", "32.3", "feet", "right"));
  EXPECT_THAT(Words("pg_dump --help; x=1,000; a.b.c ____ _"), ElementsAre("pg_dump", "help", "x", "1,000", "a.b.c"));
  EXPECT_THAT(Words("me@example.org a:b"), ElementsAre("me", "example.org", "a", "b"));
  EXPECT_THAT(Words("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440"),
              ElementsAre("\u043f\u0440\u0438\u0432\u0435\u0442", "\u043c\u0438\u0440"));
  EXPECT_GT(Words("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01").size(),
            1u);                                                  // Thai: no spaces
  EXPECT_GT(Words("\u6211\u662f\u4e2d\u56fd\u4eba").size(), 1u);  // Chinese: neither
  EXPECT_THAT(Words(""), IsEmpty());
  EXPECT_THAT(Words(" \t\n .,;- "), IsEmpty());
}

TEST(TermsTest, CaseAccentsAndCompatibilityFormsDoNotMatter) {
  EXPECT_THAT(Words("CAF\u00c9 cafe\u0301 Caf\u00e9"), ElementsAre("cafe", "cafe", "cafe"));
  EXPECT_THAT(Words("Stra\u00dfe STRASSE"), ElementsAre("strasse", "strasse"));
  EXPECT_THAT(Words("\uff26\uff35\uff2c\uff2c \ufb01ne"), ElementsAre("full", "fine"));
  EXPECT_NE(Words("\u304c"), Words("\u304b"));              // Japanese ga and ka
  EXPECT_NE(Words("\u0915\u093f"), Words("\u0915\u0941"));  // Hindi ki and ku
}

TEST(TermsTest, PositionsAreThoseOfTheText) {
  const std::string text = "\u00c4rger, na\u00efve x\u0301y!  plain \u4e2d Last";
  const std::vector<Term> terms = TermsOf(text);
  std::vector<std::string> written;
  for (const Term& term : terms) written.push_back(text.substr(term.begin, term.end - term.begin));
  EXPECT_THAT(written, ElementsAre("\u00c4rger", "na\u00efve", "x\u0301y", "plain", "\u4e2d", "Last"));
}

TEST(TermsTest, LongWordsAreCutAtACharacter) {
  EXPECT_THAT(Words(std::string(1000, 'A')), ElementsAre(std::string(kLongestTerm, 'a')));
  const std::string line = std::string(kLongestTerm, '_') + "n";  // its kept part is a line, with ICU too
  EXPECT_THAT(Words(line), IsEmpty());
  EXPECT_THAT(TermsWithoutShortCut(line), IsEmpty());
  std::string omegas;
  for (int i = 0; i < 5000; ++i) omegas += "\u03c9";
  const std::vector<Term> terms = TermsOf("x" + omegas + "\u00fc");
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0].text, "x" + omegas.substr(0, kLongestTerm - 2));
  EXPECT_EQ(terms[0].end, 10'003u);
}

TEST(TermsTest, TheFastPathAgreesWithTheSlowOne) {
  std::mt19937 random(7);
  const std::vector<std::string> other{"\u00e9", "\u0301", "\u4e2d",     "\u200d", "\u00a0",
                                       "\u05d0", "\u0e01", "\U0001f600", "\u00ad", "\u2019"};
  const std::string common = "aZ09_.',;:-@ \"";
  for (int i = 0; i < 60'000; ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) {
      const size_t dice = random() % 16;
      if (dice == 0 && i % 2 == 0) {
        text += other[random() % other.size()];
      } else if (dice < 3) {
        text += static_cast<char>(random() % 128);
      } else {
        text += common[random() % common.size()];
      }
    }
    const std::vector<Term> fast = TermsOf(text);
    const std::vector<Term> slow = TermsWithoutShortCut(text);
    ASSERT_EQ(fast.size(), slow.size()) << testing::PrintToString(text);
    for (size_t t = 0; t < fast.size(); ++t) {
      ASSERT_EQ(fast[t].text, slow[t].text) << testing::PrintToString(text);
      ASSERT_EQ(fast[t].begin, slow[t].begin) << testing::PrintToString(text);
      ASSERT_EQ(fast[t].end, slow[t].end) << testing::PrintToString(text);
    }
  }
}

TEST(TermsTest, Counts) {
  EXPECT_THAT(CountTerms("to be or not to be"),
              ElementsAre(Pair("be", 2), Pair("not", 1), Pair("or", 1), Pair("to", 2)));
}

TEST(TermsTest, BytesThatAreNotUtf8AreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(ToValidUtf8("plain \u00e4 \U0001f600"), "plain \u00e4 \U0001f600");
  EXPECT_EQ(ToValidUtf8("a\xff\xfe"
                        "b"),
            "a" + bad + bad + "b");
  EXPECT_EQ(ToValidUtf8("\xc3"), bad);
  EXPECT_EQ(ToValidUtf8("\xed\xa0\x80"), bad + bad + bad);  // half of a surrogate pair
  EXPECT_EQ(ToValidUtf8("\xc0\xaf"), bad + bad);            // a slash, made too long
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (size_t n = random() % 50; n > 0; --n) bytes += static_cast<char>(random());
    const std::string valid = ToValidUtf8(bytes);
    ASSERT_EQ(ToValidUtf8(valid), valid);
  }
}

TEST(TermsTest, CutsBetweenCharacters) {
  EXPECT_EQ(CutAtCharacter("abc", 3), "abc");
  EXPECT_EQ(CutAtCharacter("abc", 2), "ab");
  EXPECT_EQ(CutAtCharacter("a\u00e4", 2), "a");
  EXPECT_EQ(CutAtCharacter("\U0001f600", 3), "");
}

// Tables store these values, so they must not change.
TEST(TermsTest, HashesAreTheSameForever) {
  EXPECT_EQ(HashOf(""), (Hash128{0xd8a77e5280806164, 0xd8802628f5da105c}));
  EXPECT_EQ(HashOf("percolator"), (Hash128{0x073f85b30da5a4c6, 0x22651a9aaa632210}));
}

TEST(TermsTest, HashesDoNotDependOnThePieces) {
  std::mt19937 random(9);
  for (int i = 0; i < 2000; ++i) {
    std::string all;
    Hasher hasher;
    for (size_t pieces = random() % 6; pieces > 0; --pieces) {
      std::string piece;
      for (size_t n = random() % 20; n > 0; --n) piece += static_cast<char>(random());
      hasher.Add(piece);
      all += piece;
    }
    ASSERT_EQ(hasher.Finish(), HashOf(all));
  }
}

TEST(TermsTest, HashesOfDifferentTextsDiffer) {
  std::set<uint64_t> high;
  std::set<uint64_t> low;
  std::string text(40, 'a');
  int bits = 0;
  const Hash128 first = HashOf(text);
  for (size_t i = 0; i < text.size() * 8; ++i) {
    std::string other = text;
    other[i / 8] = static_cast<char>(other[i / 8] ^ (1 << (i % 8)));
    high.insert(HashOf(other).high);
    low.insert(HashOf(other).low);
    bits += std::popcount(HashOf(other).high ^ first.high) + std::popcount(HashOf(other).low ^ first.low);
  }
  EXPECT_EQ(high.size(), 320u);
  EXPECT_EQ(low.size(), 320u);
  EXPECT_NEAR(bits / 320.0, 64, 3);  // half of them, on average
  EXPECT_FALSE(HashOf(std::string(8, '\0')) == HashOf(std::string(9, '\0')));
}

TEST(TermsTest, NearKeysOfSimilarTextsAreNear) {
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "word" + std::to_string(random() % 3000) + " ";
  const uint64_t key = NearKeyOf(TermsOf(text));
  EXPECT_LE(std::popcount(key ^ NearKeyOf(TermsOf(text + "and a few words more"))), 6);
  std::string other;
  for (int i = 0; i < 2000; ++i) other += "term" + std::to_string(random() % 3000) + " ";
  EXPECT_GE(std::popcount(key ^ NearKeyOf(TermsOf(other))), 16);
  EXPECT_EQ(NearKeyOf({}), 0u);
}

}  // namespace
}  // namespace webindex
