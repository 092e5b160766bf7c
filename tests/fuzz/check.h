// SPDX-License-Identifier: Apache-2.0

// Common parts of the fuzz targets.

#ifndef PERCOLATOR_TESTS_FUZZ_CHECK_H_
#define PERCOLATOR_TESTS_FUZZ_CHECK_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// Ends the program, which libFuzzer counts as a finding, if the condition does not hold.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace percolator {

inline std::string_view ToText(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_FUZZ_CHECK_H_
