// SPDX-License-Identifier: Apache-2.0

// Text typed at the command line: escapes, times, durations.
#include "apps/percolator/text.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  const std::string_view text = ToText(data, size);
  FUZZ_CHECK(*cli::Unescaped(cli::Escaped(text)) == text);
  FUZZ_CHECK(cli::IsUtf8(cli::Escaped(text)));
  (void)cli::EscapedShort(text, 10);
  (void)cli::Unescaped(text);
  (void)cli::ParseDuration(text);
  const Timestamp now(uint64_t{60} * 1'000'000'000'000);
  if (const auto time = cli::ParseTime(text, now); time.ok()) (void)cli::TimeText(*time);
  return 0;
}
