// SPDX-License-Identifier: Apache-2.0

#include "src/cluster/embedded.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/clock.h"
#include "src/base/strings.h"
#include "src/cluster/keeping.h"
#include "src/coord/local_coordinator.h"
#include "src/oracle/local_oracle.h"

namespace percolator {
namespace {

constexpr char kOracleFile[] = "oracle";

// The oracle of a store in memory.
class MemoryOracle final : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    if (count == 0 || count > kMaxCount) {
      return absl::InvalidArgumentError(
          StrCat("cannot issue ", count, " timestamps: a request is for 1 to ", kMaxCount));
    }
    uint64_t next = next_.load();
    uint64_t first = 0;
    do {
      first = std::max(next, Clock::Real()->WallMicros());
    } while (!next_.compare_exchange_weak(next, first + count));
    return Timestamp(first);
  }
  std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t count) override { return GetTimestamps(count); }

 private:
  std::atomic<uint64_t> next_{1};
};

// Creates the file together with the store. If the store has data and the file is missing, it was removed; a new one could
// issue timestamps a second time.
absl::StatusOr<std::unique_ptr<LocalOracle>> OpenOracle(const std::string& path, Store* store,
                                                        const LocalOracleOptions& options) {
  absl::StatusOr<std::unique_ptr<LocalOracle>> oracle = LocalOracle::Open(path, options);
  if (!absl::IsNotFound(oracle.status())) return oracle;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, store->ListTables());
  if (!tables.empty()) {
    return absl::FailedPreconditionError(
        StrCat("cannot open the oracle: the file ", path,
               " is missing, and the store has data: without the file, timestamps could be issued twice; restore the "
               "file and the data from the same backup"));
  }
  return LocalOracle::Create(path, Timestamp(), options);
}

}  // namespace

absl::StatusOr<Parts> OpenEmbedded(const std::string& dir, const ClusterOptions& options) {
  Parts parts{.runtime = Borrow(Runtime::Real())};
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenRocksStore(dir, options.store));
  parts.store = std::move(store);
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<LocalOracle> oracle,
                              OpenOracle(StrCat(dir, "/", kOracleFile), parts.store.get(),
                                         {.window_micros = static_cast<uint64_t>(options.oracle_window.count())}));
  parts.oracle = std::move(oracle);
  parts.coordinator = Keeping<Coordinator>(NewLocalCoordinator(parts.oracle.get()), parts.oracle);
  return parts;
}

absl::StatusOr<Parts> OpenInMemory() {
  Parts parts{.runtime = Borrow(Runtime::Real())};
  parts.store = NewMemoryStore();
  parts.oracle = std::make_shared<MemoryOracle>();
  parts.coordinator = Keeping<Coordinator>(NewLocalCoordinator(parts.oracle.get()), parts.oracle);
  return parts;
}

}  // namespace percolator
