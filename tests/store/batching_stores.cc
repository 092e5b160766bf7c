// SPDX-License-Identifier: Apache-2.0

// Registers BatchingStore for the conformance suite, with one request in flight, so that the suite's few threads share.

#include <memory>
#include <utility>

#include "percolator/spi/store.h"
#include "src/store/batching_store.h"
#include "tests/store/conformance.h"

namespace percolator {
namespace {

class BatchingPlace final : public StorePlace {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override {
    return std::make_unique<BatchingStore>(NewMemoryStore(limits), Runtime::Real(),
                                           BatchingStoreOptions{.in_flight = 1, .entries = 16});
  }
};

const bool kBatchingRegistered = RegisterStore({"batching", [] { return std::make_unique<BatchingPlace>(); },
                                                /*keeps_content=*/false, /*takes_limits=*/true});

}  // namespace
}  // namespace percolator
