#include "apps/percolator/shell.h"

#include <chrono>
#include <iostream>
#include <utility>

#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

absl::Status NoAddress() {
  return absl::InvalidArgumentError(
      "which cluster? Say --cluster ADDRESS, or set PERCOLATOR_CLUSTER, for example\n"
      "    percolator --cluster rocksdb:/var/lib/accounts tables\n"
      "    export PERCOLATOR_CLUSTER=rocksdb:/var/lib/accounts");
}

// Whatever stands between a user and the cluster, but for an address that is none.
absl::Status CantOpen(const std::string& address, const absl::Status& why) {
  std::string text = "can't open " + Escaped(address) + ": " + std::string(why.message());
  if (absl::IsInvalidArgument(why)) return absl::InvalidArgumentError(text);
  if (absl::IsNotFound(why)) text += ". Is the address right? A new cluster begins with its first table: tables create";
  return absl::IsDataLoss(why) ? absl::DataLossError(text) : absl::UnavailableError(text);
}

}  // namespace

Exit ExitOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return Exit::kDone;
    case absl::StatusCode::kNotFound:
      return Exit::kNothing;
    case absl::StatusCode::kInvalidArgument:
      return Exit::kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Exit::kUnreachable;
    default:
      return Exit::kFailed;
  }
}

ClusterOptions CommandOptions() {
  ClusterOptions options;
  options.gc_period = Duration(0);
  options.oracle_window = std::chrono::milliseconds(20);
  return options;
}

absl::StatusOr<Cluster> Shell::Open(Missing missing, ClusterOptions options) const {
  if (address.empty()) return NoAddress();
  options.store.create_if_missing = missing == Missing::kIsMade;
  absl::StatusOr<Cluster> cluster = Cluster::Open(address, options);
  if (!cluster.ok()) return CantOpen(address, cluster.status());
  return cluster;
}

Exit Shell::Run() const {
  const absl::StatusOr<Exit> exit = command_();
  if (!exit.ok()) {
    Note(std::string(exit.status().message()));
    return ExitOf(exit.status());
  }
  if (!std::cout.flush()) {
    Note("can't write the output: is the disk full, or nobody listening?");
    return Exit::kFailed;
  }
  return *exit;
}

absl::StatusOr<Snapshot> SnapshotAt(const Cluster& cluster, const std::optional<std::string>& time) {
  absl::StatusOr<Snapshot> now = cluster.GetSnapshot();
  if (!now.ok() || !time.has_value()) return now;
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp ts, ParseTime(*time, now->timestamp()));
  absl::StatusOr<Snapshot> snapshot = cluster.GetSnapshotAt(ts);
  if (IsSnapshotTooOld(snapshot.status())) {
    return absl::OutOfRangeError(std::string(snapshot.status().message()) +
                                 ". What is that old is collected: `percolator stats` tells the safe point");
  }
  return snapshot;
}

absl::StatusOr<CellName> ParseCell(const std::string& table, const std::string& row, const std::string& column) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::string row_bytes, Unescaped(row));
  PERCOLATOR_ASSIGN_OR_RETURN(std::string column_bytes, Unescaped(column));
  return CellName{table, std::move(row_bytes), std::move(column_bytes)};
}

absl::StatusOr<Timestamp> Commit(const Cluster& cluster, const std::function<absl::Status(ReadWrite& t)>& fn) {
  CommitResult result;
  absl::Status status = cluster.Transact(fn, {}, &result);
  if (status.ok()) return result.commit_ts;
  const std::optional<CommitResult> unknown = GetUnknownCommit(status);
  if (!unknown.has_value()) return status;
  const absl::StatusOr<CommitResult> known = cluster.Resolve(*unknown);
  // An error that says why Resolve failed would hide that something may have been written.
  if (!known.ok()) return status;
  if (known->committed()) return known->commit_ts;
  return known->status;
}

absl::StatusOr<Exit> Finish(const Cluster& cluster, absl::StatusOr<Exit> exit) {
  const absl::Status closed = cluster.Close();
  if (exit.ok() && !closed.ok()) return closed;
  return exit;
}

void Note(const std::string& text) {
  std::cout.flush();
  std::cerr << "percolator: " << text << "\n";
}

}  // namespace percolator::cli
