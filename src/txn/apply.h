// SPDX-License-Identifier: Apache-2.0

// Applies mutations that are harmless to repeat, in spite of transient errors: erasing garbage, setting marks, rolling
// back, committing secondaries.

#ifndef PERCOLATOR_TXN_APPLY_H_
#define PERCOLATOR_TXN_APPLY_H_

#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"

namespace percolator {

// Applies the mutations. Retries each that fails with a transient error until the deadline, independently of the
// others. A condition that does not hold is not a failure. After an error, at least one mutation was not applied, or
// its outcome is unknown. Returns a permanent error rather than a transient one.
absl::Status ApplyInTime(Environment& env, std::vector<RowMutation> mutations, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_APPLY_H_
