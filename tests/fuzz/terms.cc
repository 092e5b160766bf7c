// SPDX-License-Identifier: Apache-2.0

// Words of texts and queries: the fast path finds the same words as the slow one.
#include "apps/webindex/terms.h"

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace webindex;
  const std::string text = ToValidUtf8(percolator::ToText(data, size));
  FUZZ_CHECK(ToValidUtf8(text) == text);
  const std::vector<Term> terms = TermsOf(text);
  const std::vector<Term> slowly = TermsWithoutShortCut(text);
  FUZZ_CHECK(terms.size() == slowly.size());
  for (size_t i = 0; i < terms.size(); ++i) {
    FUZZ_CHECK(terms[i].text == slowly[i].text && terms[i].begin == slowly[i].begin && terms[i].end == slowly[i].end);
    FUZZ_CHECK(terms[i].text.size() <= kLongestTerm && terms[i].begin < terms[i].end && terms[i].end <= text.size());
  }
  (void)NearKeyOf(terms);
  Hasher hasher;
  hasher.Add(std::string_view(text).substr(0, text.size() / 3));
  hasher.Add(std::string_view(text).substr(text.size() / 3));
  FUZZ_CHECK(hasher.Finish() == HashOf(text));
  return 0;
}
