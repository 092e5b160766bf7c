// SPDX-License-Identifier: Apache-2.0

// Ordered strings: encodings have the order of the strings, and decode to them.
#include "src/base/coding.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  std::string_view in = ToText(data, size);
  for (std::string value; ConsumeOrderedString(&in, &value);) {
    std::string again;
    AppendOrderedString(&again, value);
    FUZZ_CHECK(ToText(data, size - in.size()).ends_with(again));
  }
  FuzzedDataProvider bytes(data, size);
  const std::string a = bytes.ConsumeRandomLengthString();
  const std::string b = bytes.ConsumeRemainingBytesAsString();
  std::string coded_a;
  std::string coded_b;
  AppendOrderedString(&coded_a, a);
  AppendOrderedString(&coded_b, b);
  FUZZ_CHECK((a < b) == (coded_a < coded_b));
  return 0;
}
