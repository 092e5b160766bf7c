// SPDX-License-Identifier: Apache-2.0

// Addresses of clusters: any text is an address, or an error that names it.
#include "src/cluster/address.h"

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto address = percolator::ParseAddress(percolator::ToText(data, size));
  FUZZ_CHECK(address.ok() || absl::IsInvalidArgument(address.status()));
  return 0;
}
