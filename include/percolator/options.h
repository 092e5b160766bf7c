// SPDX-License-Identifier: Apache-2.0

// Options. The defaults suit a first program.

#ifndef PERCOLATOR_OPTIONS_H_
#define PERCOLATOR_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "percolator/types.h"

namespace percolator {

// Limits of a transaction. A write that exceeds one fails with InvalidArgument.
struct TransactionLimits {
  size_t max_row_key_bytes = 4 << 10;
  size_t max_column_bytes = 8 << 10;
  size_t max_value_bytes = 16 << 20;
  size_t max_cells = 32'768;          // written or verified; also the limit for notified cells
  size_t max_total_bytes = 32 << 20;  // values and names; a column name counts four times
};

// Limits of a store (percolator/spi/store.h).
struct StoreLimits {
  size_t max_row_key_bytes = 4 << 10;  // Bigtable's own limit
  size_t max_column_bytes = 16 << 10;  // Bigtable's own limit
  size_t max_value_bytes = 16 << 20;
  size_t max_row_selectors = 100'000;  // selectors in a RowRead or a scan
  // Mutations in a RowMutation; also the limit for the cells of its condition.
  size_t max_row_mutations = 100'000;
  size_t max_row_mutation_bytes = 64 << 20;  // row key, columns and values in a RowMutation
  // Cells that more than unlimited_selectors selectors return of one row, repeats included.
  size_t max_row_read_bytes = 64 << 20;
  size_t unlimited_selectors = 4;      // the number of families
  size_t max_schema_bytes = 64 << 10;  // schema of a table
  size_t max_tables = 1'000;           // CreateTable fails above this; existing tables stay
  // Schemas of all tables; CreateTable fails above this; existing tables stay.
  size_t max_total_schema_bytes = 4 << 20;
  size_t max_scan_bytes = 4 << 20;  // a page ends with the first row that reaches this
  size_t max_scan_work = 100'000;   // versions that the store examines for one page
};

// When a write is acknowledged.
enum class Durability : uint8_t {
  kSync,  // when it is on disk: it survives a power failure; concurrent writers share an fsync
  // When the operating system has it: it survives the death of the process; a power failure may
  // lose the last writes.
  kNoSync,
};

// The store of `rocksdb:` addresses and of `percolator serve`.
struct RocksOptions {
  Durability durability = Durability::kSync;
  // Memory for blocks read from disk.
  size_t block_cache_bytes = size_t{256} << 20;
  // Memory for the newest versions of recently read cells. Zero: no cache.
  size_t version_cache_bytes = size_t{64} << 20;
  // Memory for writes that are not in table files yet, per large family.
  size_t write_buffer_bytes = size_t{64} << 20;
  // Disk space to keep free; at most a twentieth of the disk. If less is free, or less than twice
  // what is to be flushed, mutations that add data fail with ResourceExhausted and are not applied,
  // until there is space again. Zero: no reserve.
  uint64_t reserve_bytes = uint64_t{256} << 20;
  StoreLimits limits = {};
  // Create the directory if it is missing or empty. Otherwise that is NotFound.
  bool create_if_missing = true;
};

struct ClusterOptions {
  // The store of `rocksdb:` addresses.
  RocksOptions store = {};

  TransactionLimits limits = {};

  // Maximum duration of one call: a Get, a page of a scan, a Commit. Calls take long if they wait
  // for another transaction's lock or for a store that cannot be reached.
  Duration call_timeout = std::chrono::seconds(30);

  // Commit in one step instead of two phases if the store supports it: `rocksdb:`, `memory:` and
  // `percolator://` do. Turn it off to measure, or to test how a program behaves with other stores.
  bool one_step_commit = true;

  // Other processes may clean up a lock that its owner has not refreshed for this long. Owners
  // refresh their locks.
  Duration lock_lease = std::chrono::seconds(10);

  // Garbage collection removes versions older than this, except the newest of each cell and those
  // that open snapshots can see.
  Duration gc_retention = std::chrono::hours(1);
  // Interval of garbage collection in the background. Zero: only Cluster::CollectGarbage collects.
  Duration gc_period = std::chrono::minutes(1);

  // Maximum number of secondaries that wait to be committed in the background. Above it, Commit
  // commits its own secondaries.
  size_t max_background_commits = 10'000;

  // Open the cluster to find and erase bad cells (Inspector::Check), even if the list of observers,
  // which Open reads, contains some. Commits fail, because they could not notify observers.
  bool for_repair = false;

  // How far ahead the `rocksdb:` oracle reserves timestamps on disk. After a restart, timestamps
  // are ahead of the clock by up to this much.
  Duration oracle_window = std::chrono::seconds(3);
};

struct TransactionOptions {
  // From construction, or the first attempt of Transact, to the end of Commit. After the timeout,
  // nothing is retried.
  Duration timeout = std::chrono::seconds(60);
  // Transact and Loader: how often the function runs before a conflict is returned.
  int max_attempts = 100;
  // Transactions with the same non-empty profile learn which cells they read together, and prefetch
  // them.
  std::string prefetch_profile = {};
};

}  // namespace percolator

#endif  // PERCOLATOR_OPTIONS_H_
