// SPDX-License-Identifier: Apache-2.0

// Registers the store in Bigtable for the suites that run on any store, on Google's emulators and on our own server of
// Bigtable's API.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "src/base/strings.h"
#include "src/store/bigtable/bigtable_store.h"
#include "tests/processes/emulator.h"
#include "tests/server/bigtable_server.h"
#include "tests/store/store_kinds.h"

namespace percolator {
namespace {

constexpr uint64_t kLast = 9'223'372'036'854'775;

using EmulatorOr = absl::StatusOr<std::unique_ptr<Emulator>>;

// One emulator of each kind for the whole program, started on first use and ended with the program.
const EmulatorOr& Built() {
  static const EmulatorOr emulator = Emulator::Start();
  return emulator;
}

const EmulatorOr& Packaged() {
  static const EmulatorOr emulator = Emulator::StartPackaged();
  return emulator;
}

// Every place has an instance of its own.
class BigtablePlace final : public StorePlace {
 public:
  explicit BigtablePlace(std::string target) : target_(std::move(target)) {
    static std::atomic<int> next = 0;
    instance_ = StrCat("place-", next++);
  }

  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override {
    BigtableStoreOptions options;
    options.project = "test";
    options.instance = instance_;
    options.endpoint = target_;
    options.safe_point_age = std::chrono::milliseconds(50);
    options.timeout = std::chrono::seconds(60);
    options.limits = limits;
    return OpenBigtableStore(options);
  }

 private:
  const std::string target_;
  std::string instance_;
};

// A server of its own, which is one instance.
class ServePlace final : public StorePlace {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override { return place_.Open(limits); }

 private:
  const std::unique_ptr<Store> behind_ = NewMemoryStore();
  const BigtableServer server_{behind_.get()};
  BigtablePlace place_{server_.target()};
};

// The tests that fail because Bigtable does not offer the feature, or because of a fault of the emulators.
std::map<std::string, std::string> Cannot() {
  return {{"APageEndsAfterBoundedWorkEvenIfNothingMatches",
           "Bigtable does not report its work, so StoreLimits::scan_work has no effect"},
          {"ARequestLimitsTheBytesOfARow", "the limit is for stores in this process"}};
}

StoreKind Kind(std::string name, const EmulatorOr& (*emulator)(), uint64_t last_timestamp, bool like_another) {
  return {.name = std::move(name),
          .make = [emulator] { return std::make_unique<BigtablePlace>((*emulator())->target()); },
          .keeps_content = true,
          .takes_limits = true,
          .like_another = like_another,
          .mutates_together = false,
          .last_timestamp = last_timestamp,
          .cannot = Cannot(),
          .ready = [emulator] { return emulator().status(); }};
}

// The built emulator is older and accepts no time after the year 9999, less one for the end of a range.
StoreKind Serve() {
  return {.name = "serve",
          .make = [] { return std::make_unique<ServePlace>(); },
          .keeps_content = true,
          .takes_limits = true,
          .mutates_together = false,
          .last_timestamp = kLast,
          .cannot = Cannot()};
}

const bool kBigtableRegistered =
    RegisterStore(Serve()) &&
    RegisterStore(Kind("emulator_debian", &Built, 253'402'300'799'999, /*like_another=*/false)) &&
    RegisterStore(Kind("emulator_packaged", &Packaged, kLast, /*like_another=*/true));

}  // namespace
}  // namespace percolator
