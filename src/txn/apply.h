// Mutations that are harmless to repeat, applied in spite of passing trouble: erasing what nobody needs, setting
// marks, rolling back.

#ifndef PERCOLATOR_TXN_APPLY_H_
#define PERCOLATOR_TXN_APPLY_H_

#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"

namespace percolator {

// Applies the mutations; those that fail for a passing reason again and again, until the deadline. A condition that does
// not hold is no failure. An error: at least one is not applied, or it is not known whether it is.
absl::Status ApplyInTime(Environment& env, std::vector<RowMutation> mutations, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_APPLY_H_
