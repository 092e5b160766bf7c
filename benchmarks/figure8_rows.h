// SPDX-License-Identifier: Apache-2.0

// The rows of figure8, and how its threads choose among them.

#ifndef PERCOLATOR_BENCHMARKS_FIGURE8_ROWS_H_
#define PERCOLATOR_BENCHMARKS_FIGURE8_ROWS_H_

#include <cstdint>
#include <cstdio>
#include <string>

namespace percolator {

inline std::string RowName(uint64_t i) {
  char name[32];
  std::snprintf(name, sizeof(name), "user%012llu", static_cast<unsigned long long>(i));
  return name;
}

// One cheap generator for each thread, a cache line apart.
struct alignas(64) Random {
  uint64_t state = 1;
  uint64_t Below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
  }
};

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_FIGURE8_ROWS_H_
