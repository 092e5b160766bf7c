// Kinds of stores, for tests that run on several of them: a program links such tests, and files that register the stores.
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

// The place of one store, empty at first. What it needs (a folder, a server) lives as long as the place.
class StorePlace {
 public:
  virtual ~StorePlace() = default;

  // Opens the store there. Called again only after the store opened before is closed and destroyed.
  virtual absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) = 0;
};

// A kind of store to test, and what its places can do.
struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StorePlace>()> make;
  // Opening again finds what was there.
  bool keeps_content = false;
  // Open obeys the limits it is given. Otherwise they are the defaults.
  bool takes_limits = false;
  // Another kind is nearly the same: suites that take long leave this one out.
  bool like_another = false;
  // Its MutateTogether works.
  bool mutates_together = true;
  // The largest at which a cell can be set.
  uint64_t last_timestamp = Timestamp::Infinity().value() - 1;
  // Tests that it can't pass, by name, and why; they are skipped.
  std::map<std::string, std::string> cannot = {};
  // Not OK: what its places need is not on this machine, and all its tests are skipped.
  std::function<absl::Status()> ready = [] { return absl::OkStatus(); };
};

inline void PrintTo(const StoreKind& kind, std::ostream* os) { *os << kind.name; }

// Adds a kind of store to those that the program tests. To be called before main, by initialising a global.
bool RegisterStore(StoreKind kind);
// All that were added.
const std::vector<StoreKind>& StoresToTest();

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_STORE_KINDS_H_
