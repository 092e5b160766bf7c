// Registers BatchingStore for the conformance suite, with one request in flight, so that the suite's few threads share.

#include <memory>
#include <utility>

#include "percolator/spi/store.h"
#include "src/store/batching_store.h"
#include "tests/store/conformance.h"

namespace percolator {
namespace {

// The first base, before BatchingStore, so that the store behind is created first and destroyed last.
struct StoreOwner {
  explicit StoreOwner(std::unique_ptr<Store> store) : owned(std::move(store)) {}
  const std::unique_ptr<Store> owned;
};

class OwningBatchingStore final : private StoreOwner, public BatchingStore {
 public:
  explicit OwningBatchingStore(std::unique_ptr<Store> store)
      : StoreOwner(std::move(store)), BatchingStore(owned.get(), Runtime::Real(), {.in_flight = 1, .entries = 16}) {}
};

class BatchingPlace final : public StorePlace {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override {
    return std::make_unique<OwningBatchingStore>(NewMemoryStore(limits));
  }
};

const bool kBatchingRegistered = RegisterStore({"batching", [] { return std::make_unique<BatchingPlace>(); },
                                                /*keeps_content=*/false, /*takes_limits=*/true});

}  // namespace
}  // namespace percolator
