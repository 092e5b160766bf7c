// SPDX-License-Identifier: Apache-2.0

#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace percolator::internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace percolator::internal
