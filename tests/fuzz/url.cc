// SPDX-License-Identifier: Apache-2.0

// Links: a link that leads to a page leads to a path below the base, within its limit.
#include "apps/webindex/url.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace webindex;
  FuzzedDataProvider bytes(data, size);
  // REQUIRES of ResolveLink: `page` is a valid name of a page.
  const std::string page = ResolveLink("", "index.html", bytes.ConsumeRandomLengthString(64)).value_or("a/b.html");
  const std::string link = bytes.ConsumeRemainingBytesAsString();
  for (const char* base : {"", "https://e.org/d/"}) {
    const auto url = ResolveLink(base, page, link);
    if (!url.has_value()) continue;
    FUZZ_CHECK(url->size() <= kLongestUrl);
    FUZZ_CHECK(!url->starts_with("/") && !url->starts_with("../"));
    (void)IsPage(*url);
  }
  if (const auto url = UrlOfFile(link); url.has_value()) FUZZ_CHECK(url->size() <= kLongestUrl);
  return 0;
}
