// SPDX-License-Identifier: Apache-2.0

#include "src/txn/apply.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "percolator/status.h"
#include "src/base/retry.h"

namespace percolator {

absl::Status ApplyInTime(Environment& env, std::vector<RowMutation> mutations, const Deadline& deadline) {
  absl::Status lasting;
  for (Backoff backoff(env.runtime); !mutations.empty();) {
    const std::vector<absl::StatusOr<MutateResult>> results = env.store->Mutate(mutations);
    std::vector<RowMutation> again;
    absl::Status transient;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) continue;
      if (IsTransient(results[i].status())) {
        transient.Update(results[i].status());
        again.push_back(std::move(mutations[i]));
      } else {
        lasting.Update(results[i].status());
      }
    }
    mutations = std::move(again);
    if (!mutations.empty() && !WaitAndRetry(transient, deadline, &backoff)) return lasting.ok() ? transient : lasting;
  }
  return lasting;
}

}  // namespace percolator
