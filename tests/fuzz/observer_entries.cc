// SPDX-License-Identifier: Apache-2.0

// Observers and quarantine entries of the system table: an entry that is decoded encodes to the same bytes. The first
// byte chooses the kind.
#include "src/observe/quarantine.h"
#include "src/observe/registry.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  if (size == 0) return 0;
  const std::string_view bytes = ToText(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto observer = DecodeObserver("name", bytes);
    if (observer.ok()) FUZZ_CHECK(observer->name == "name" && EncodeObserver(*observer) == bytes);
  } else {
    const auto entry = DecodeQuarantined("name", bytes);
    if (entry.ok()) FUZZ_CHECK(entry->observer == "name" && EncodeQuarantined(*entry) == bytes);
  }
  return 0;
}
