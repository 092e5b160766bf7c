// SPDX-License-Identifier: Apache-2.0

// A store in Bigtable: Cloud Bigtable, Google's emulator, or any server with version 2 of its API.
//
// A row mutation with a condition is one CheckAndMutateRow. Those without go together in one MutateRows, or as
// MutateRow if there is only one. Reads of the same selectors go together in one ReadRows; a scan's page is one.
// Requests that cannot be combined are sent in parallel. docs/bigtable.md counts them for whole transactions, and says
// how to set up an instance.
//
// ERRORS     Requests that are safe to repeat are repeated until `timeout`: ReadRows, where it goes on after the last row that
//            came, and mutations without a condition, because they name their timestamps. A CheckAndMutateRow is never
//            repeated: after Unavailable and DeadlineExceeded its outcome is open, and the caller reads.
// TIME       Timestamps end at 9'223'372'036'854'775, in the year 2317; setting a cell later fails with InvalidArgument.
// SIZE       The condition of one row mutation must fit into a filter of 20 KiB (src/store/bigtable/filters.h): a prewrite of
//            1000 columns of one row, with names of 15 bytes, fits; a larger one fails with InvalidArgument.
//            StoreLimits::max_scan_work is ignored: Bigtable does not report how many versions it read.
// TABLES     Each is a table of the instance, named NAME-GENERATION, with the families data, lock, write and notify and
//            without rules for garbage collection: with such a rule Bigtable would delete cells that Percolator needs. The
//            table percolator-catalog lists them, with their schemas and the safe point. Other tables of the instance are
//            not touched.
// SAFE POINT Bigtable cannot refuse a lock because of another row, so the store checks before it sends. It knows the safe point
//            as it was at most `safe_point_age` ago. RaiseSafePoint waits for that long, and for this process's mutations
//            under way, before it returns. One case remains: a lock that passed the check, was delayed on its way to
//            Bigtable for longer, and whose transaction had begun before the safe point. Garbage collection keeps versions
//            for gc_retention (an hour, by default) because of it.
//
// Thread-safe.

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
  // HOST:PORT of an emulator or another server, in plain text unless `tls` is set. Empty: the value of
  // BIGTABLE_EMULATOR_HOST, in plain text; without that, Cloud Bigtable, with TLS and the default credentials of the
  // machine.
  std::string endpoint;
  TlsFiles tls;
  // Limits one call with its repetitions. Creating or dropping a table may take a minute.
  Duration timeout = std::chrono::seconds(10);
  Duration safe_point_age = std::chrono::seconds(1);
  Clock* clock = Clock::Real();
  StoreLimits limits;
};

// Does not connect yet: the first call fails if the server cannot be reached.
absl::StatusOr<std::unique_ptr<Store>> OpenBigtableStore(const BigtableStoreOptions& options);

// Requests sent since the store was opened.
struct BigtableRpcs {
  uint64_t read_rows = 0;
  uint64_t mutate_row = 0;
  uint64_t mutate_rows = 0;
  uint64_t check_and_mutate_row = 0;
  uint64_t sample_row_keys = 0;
  uint64_t admin = 0;
  uint64_t repeated = 0;  // requests above that repeat one after an error

  uint64_t data() const { return read_rows + mutate_row + mutate_rows + check_and_mutate_row + sample_row_keys; }
};
// REQUIRES: OpenBigtableStore returned `store`.
BigtableRpcs RpcsOf(const Store& store);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_BIGTABLE_STORE_H_
