// SPDX-License-Identifier: Apache-2.0

// Pages of HTML: any bytes have a result, the same each time, within its limits.
#include "apps/webindex/parse.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace webindex;
  const auto page = [&] { return ParsePage("https://e.org/", "a/b.html", percolator::ToText(data, size)); };
  const ParsedPage once = page();
  FUZZ_CHECK(once.text.SerializeAsString() == page().text.SerializeAsString());
  FUZZ_CHECK(once.text.title().size() <= kLongestTitle);
  return 0;
}
