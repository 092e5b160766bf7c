// Options, all with defaults that suit a first program.

#ifndef PERCOLATOR_OPTIONS_H_
#define PERCOLATOR_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "percolator/store.h"
#include "percolator/timestamp.h"

namespace percolator {

using Duration = std::chrono::microseconds;

// Limits of a transaction. Exceeding one makes Set, Delete, Verify or Notify return kInvalidArgument.
struct TransactionLimits {
  size_t row_key_bytes = 4 << 10;
  size_t column_bytes = 8 << 10;
  size_t value_bytes = 16 << 20;
  size_t cells = 32'768;          // written or verified; and as many notified
  size_t total_bytes = 32 << 20;  // of values and names, the name of a column counted four times
};

// Certificates and keys, as files in PEM format. None: plain text.
struct TlsFiles {
  // CA to trust: for a client, the server's; for a server, its clients', which must then present a certificate.
  std::string ca;
  std::string cert;  // one's own certificate
  std::string key;   // and its key

  bool empty() const { return ca.empty() && cert.empty() && key.empty(); }
};

struct ClusterOptions {
  // The store of `rocksdb:` addresses.
  RocksStoreOptions store;

  TransactionLimits limits;

  // How long one call may take at most: a Get, a page of a Scan, a Commit. Mostly that is waiting for locks of others, or
  // for a store that can't be reached.
  Duration call_timeout = std::chrono::seconds(30);

  // Commit a transaction in one step where the store can (embedded and `percolator://` can, Bigtable cannot), instead of two
  // phases with locks. Off: for measuring, and for trying out what happens in other deployments.
  bool commit_in_one_step = true;

  // A lock whose owner has not refreshed it for this long may be cleaned up. Live transactions refresh theirs.
  Duration lock_lease = std::chrono::seconds(10);

  // Versions older than this are collected, except the newest of each cell, and what open snapshots can see.
  Duration gc_retention = std::chrono::hours(1);
  // How often garbage is collected in the background; zero: only when asked.
  Duration gc_period = std::chrono::minutes(1);

  // Secondaries waiting to be committed in the background; when this many wait, Commit does its own.
  size_t background_commits = 10'000;

  // Open the cluster to look for bad cells and erase them (Inspector::Check), also if some are among the observers of the
  // cluster, which are read when it is opened. Commits are refused: they could not be notified.
  bool for_repair = false;

  // The `rocksdb:` oracle reserves timestamps on disk this far ahead. After a restart, timestamps run ahead of the clock by
  // up to this much.
  Duration oracle_window = std::chrono::seconds(3);
};

struct TransactionOptions {
  // From its construction to the end of Commit. Once it has passed, nothing is waited for or tried again any more.
  Duration deadline = std::chrono::seconds(60);
  // Transactions of one kind read alike: what they read together is fetched together. Any name; empty: no prediction.
  std::string kind;
};

struct TransactOptions {
  // How often the function is run at most.
  int attempts = 100;
  // For everything together: all attempts and the waiting between them.
  Duration deadline = std::chrono::seconds(60);
  // See TransactionOptions.
  std::string kind;
};

struct ScanOptions {
  std::string table;
  RowRange rows;
  // Only these columns; empty: all.
  std::vector<std::string> columns;
};

// A table's columns. A table takes any column that is not declared, too; declaring one gives it a property.
struct TableSchema {
  // Can't be written, only notified: for weak notifications (percolator/observer.h).
  std::vector<std::string> notify_only_columns;
};

}  // namespace percolator

#endif  // PERCOLATOR_OPTIONS_H_
