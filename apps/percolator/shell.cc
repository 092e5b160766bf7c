// SPDX-License-Identifier: Apache-2.0

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
      "no cluster is named: use --cluster ADDRESS, or set PERCOLATOR_CLUSTER, for example\n"
      "    percolator --cluster rocksdb:/var/lib/accounts tables\n"
      "    export PERCOLATOR_CLUSTER=rocksdb:/var/lib/accounts");
}

// Every error of opening counts as Unavailable, except an invalid address and damaged data.
absl::Status CannotOpen(const std::string& address, const absl::Status& why) {
  std::string text = "cannot open " + Escaped(address) + ": " + std::string(why.message());
  if (absl::IsInvalidArgument(why)) return absl::InvalidArgumentError(text);
  if (absl::IsNotFound(why)) {
    text += "; check the address, or create the cluster with its first table: percolator tables create NAME";
  }
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
  if (!cluster.ok()) return CannotOpen(address, cluster.status());
  return cluster;
}

Exit Shell::Run() const {
  const absl::StatusOr<Exit> exit = command_();
  if (!exit.ok()) {
    Note(std::string(exit.status().message()));
    return ExitOf(exit.status());
  }
  if (!std::cout.flush()) {
    Note("cannot write the output: the disk is full, or the reader has closed the pipe");
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
                                 "; `percolator stats` shows the safe point, the oldest time that can be read");
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
  // The error of Resolve would hide that the transaction may have committed.
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
