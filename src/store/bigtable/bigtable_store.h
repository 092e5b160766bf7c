// A store in Bigtable: Cloud Bigtable, Google's emulator, or any server that speaks its API, version 2.
//
// A row mutation with a condition is one CheckAndMutateRow; those without go together in MutateRows, or as a MutateRow if
// there is one. Reads of the same selectors go together in one ReadRows, a scan's page is one. Requests that do not fit
// together are sent side by side. docs/bigtable.md counts them for whole transactions, and says how to set up an
// instance.
//
// ERRORS     What can be repeated without harm is, for as long as `timeout` allows: ReadRows, where it goes on after the last
//            row that came, and mutations without a condition, because they name their timestamps. A CheckAndMutateRow is
//            never repeated: kUnavailable and kDeadlineExceeded say that its outcome is open, and the caller reads.
// TIME       Timestamps end at 9'223'372'036'854'775, in the year 2317; to set a cell later is kInvalidArgument.
// SIZE       The condition of one row mutation has to fit into a filter of 20 KiB (src/store/bigtable/filters.h): to prewrite
//            1000 columns of one row, with names of 15 bytes, is possible; more is kInvalidArgument. StoreLimits::scan_work
//            does not count: Bigtable gives no account of what it looked at.
// TABLES     Each is a table of the instance, named NAME-GENERATION, with the families data, lock, write and notify and
//            without rules for garbage collection: with such a rule Bigtable would take cells that Percolator needs. The table
//            percolator-catalog says which there are, and holds their schemas and the safe point. Whatever else is in the
//            instance is not touched.
// SAFE POINT Bigtable can't refuse a lock by what another row says, so the store looks before it sends. It knows the safe point
//            as it was at most `safe_point_age` ago; RaiseSafePoint waits for as long, and for what this process has under way,
//            before it returns. What remains is a lock that was looked at, then delayed on its way to Bigtable for longer than
//            that, and whose transaction had begun before the safe point: garbage collection keeps gc_retention (an hour,
//            by default) for it.

#ifndef PERCOLATOR_STORE_BIGTABLE_BIGTABLE_STORE_H_
#define PERCOLATOR_STORE_BIGTABLE_BIGTABLE_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/store.h"
#include "percolator/tls.h"
#include "src/base/clock.h"

namespace percolator {

struct BigtableStoreOptions {
  std::string project;
  std::string instance;
  // It must allow single-row transactions and route to one cluster. Empty: the instance's default.
  std::string app_profile;
  // HOST:PORT of an emulator or another server, in plain text unless `tls` says otherwise. Empty: that of the environment's
  // BIGTABLE_EMULATOR_HOST, in plain text; without it Cloud Bigtable, with TLS and the default credentials of the machine.
  std::string endpoint;
  TlsFiles tls;
  // Of one call with its repetitions; creating or dropping a table may take a minute.
  Duration timeout = std::chrono::seconds(10);
  Duration safe_point_age = std::chrono::seconds(1);
  Clock* clock = Clock::Real();
  StoreLimits limits;
};

// Does not connect yet: whether the server can be reached, the first call will say.
absl::StatusOr<std::unique_ptr<Store>> OpenBigtableStore(const BigtableStoreOptions& options);

// Requests sent since the store was opened.
struct BigtableRpcs {
  uint64_t read_rows = 0;
  uint64_t mutate_row = 0;
  uint64_t mutate_rows = 0;
  uint64_t check_and_mutate_row = 0;
  uint64_t sample_row_keys = 0;
  uint64_t admin = 0;
  uint64_t repeated = 0;  // of those above, because of an error

  uint64_t data() const { return read_rows + mutate_row + mutate_rows + check_and_mutate_row + sample_row_keys; }
};
// REQUIRES: the store is one of OpenBigtableStore.
BigtableRpcs RpcsOf(const Store& store);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_BIGTABLE_STORE_H_
