// Mutations that are harmless to repeat, applied in spite of transient errors: erasing garbage, setting marks,
// rolling back, committing secondaries.

#ifndef PERCOLATOR_TXN_APPLY_H_
#define PERCOLATOR_TXN_APPLY_H_

#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"

namespace percolator {

// Applies the mutations. Each that fails for a transient reason is tried again until the deadline, whatever becomes of the
// others; one that fails for good is not. A condition that does not hold is no failure. An error: at least one is not
// applied, or it is not known whether it is. Returns an error that lasts rather than a transient one.
absl::Status ApplyInTime(Environment& env, std::vector<RowMutation> mutations, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_APPLY_H_
