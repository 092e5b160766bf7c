// SPDX-License-Identifier: Apache-2.0

// Kinds of stores, for tests that run on several of them. A program links such tests, and the files that register the
// stores.
//
//     const bool kRegistered = RegisterStore({"remote", &StartServer, /*keeps_content=*/true, /*takes_limits=*/false});

#ifndef PERCOLATOR_TESTS_STORE_STORE_KINDS_H_
#define PERCOLATOR_TESTS_STORE_STORE_KINDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"

namespace percolator {

// The place of one store, empty at first. Its resources (a folder, a server) live as long as the place.
class StorePlace {
 public:
  virtual ~StorePlace() = default;

  // Opens the store there. Called again only after the previous store is closed and destroyed.
  virtual absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) = 0;
};

// A kind of store to test, and the features of its places.
struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StorePlace>()> make;
  // A store that is opened again finds its content.
  bool keeps_content = false;
  // Open obeys the given limits. Otherwise it uses the defaults.
  bool takes_limits = false;
  // Similar to another kind: long suites omit it.
  bool like_another = false;
  // Its MutateTogether works.
  bool mutates_together = true;
  // The largest timestamp at which a cell can be set.
  uint64_t last_timestamp = Timestamp::Infinity().value() - 1;
  // Tests that it cannot pass, by name, with the reason. They are skipped.
  std::map<std::string, std::string> cannot = {};
  // If not OK, something that its places need is missing on this machine, and all its tests are skipped.
  std::function<absl::Status()> ready = [] { return absl::OkStatus(); };
};

inline void PrintTo(const StoreKind& kind, std::ostream* os) { *os << kind.name; }

// Adds a kind of store to those that the program tests. Called before main, by initialising a global.
bool RegisterStore(StoreKind kind);
// All kinds that were added.
const std::vector<StoreKind>& StoresToTest();

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_STORE_KINDS_H_
