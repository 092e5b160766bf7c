// SPDX-License-Identifier: Apache-2.0

// Registers the stores in this process for the conformance suite.

#include <memory>
#include <string>

#include "percolator/spi/store.h"
#include "tests/store/conformance.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

class MemoryPlace final : public StorePlace {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override { return NewMemoryStore(limits); }
};

class RocksPlace final : public StorePlace {
 public:
  explicit RocksPlace(Durability durability) : durability_(durability) {}

  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override {
    RocksOptions options;
    options.durability = durability_;
    options.block_cache_bytes = 1 << 20;
    options.limits = limits;
    return OpenRocksStore(dir_.path() + "/store", options);
  }

 private:
  const Durability durability_;
  TempDir dir_;
};

template <Durability durability>
std::unique_ptr<StorePlace> MakeRocks() {
  return std::make_unique<RocksPlace>(durability);
}

const bool kRegistered =
    RegisterStore({"memory", [] { return std::make_unique<MemoryPlace>(); }, /*keeps_content=*/false,
                   /*takes_limits=*/true}) &&
    RegisterStore({"rocksdb_sync", &MakeRocks<Durability::kSync>, /*keeps_content=*/true, /*takes_limits=*/true}) &&
    RegisterStore({"rocksdb_nosync", &MakeRocks<Durability::kNoSync>, /*keeps_content=*/true,
                   /*takes_limits=*/true});

}  // namespace
}  // namespace percolator
