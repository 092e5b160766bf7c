#include "src/txn/apply.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace percolator {

absl::Status ApplyInTime(Environment& env, std::vector<RowMutation> mutations, const Deadline& deadline) {
  for (Backoff backoff(env.runtime); !mutations.empty();) {
    const std::vector<absl::StatusOr<MutateResult>> results = env.store->Mutate(mutations);
    std::vector<RowMutation> again;
    absl::Status error;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) continue;
      error = results[i].status();
      again.push_back(std::move(mutations[i]));
    }
    mutations = std::move(again);
    if (!mutations.empty() && !WaitAndRetry(error, deadline, &backoff)) return error;
  }
  return absl::OkStatus();
}

}  // namespace percolator
