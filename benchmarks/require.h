// SPDX-License-Identifier: Apache-2.0

// Require: ends a benchmark that cannot go on.

#ifndef PERCOLATOR_BENCHMARKS_REQUIRE_H_
#define PERCOLATOR_BENCHMARKS_REQUIRE_H_

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"

namespace percolator {

// If not, says on standard error what failed, and exits.
inline void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: failed: %s\n", program_invocation_short_name, what);
  std::exit(1);
}

inline void Require(const absl::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, status.ToString().c_str());
  std::exit(1);
}

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_REQUIRE_H_
