// SPDX-License-Identifier: Apache-2.0

// Shared by all commands: the options --cluster and --json, opening the cluster, and exit codes.
//
// A command adds itself to the command line (commands.h). If the command line names it, its callback calls Shell::Choose, and
// main then calls Shell::Run. So parsing has no effects, and completion.cc can read the whole command line.

#ifndef PERCOLATOR_APPS_PERCOLATOR_SHELL_H_
#define PERCOLATOR_APPS_PERCOLATOR_SHELL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"

namespace percolator::cli {

enum class Exit : int {
  kDone = 0,
  kNothing = 1,      // not found, or nothing to show
  kUsage = 2,        // the command line is invalid
  kUnreachable = 3,  // the cluster is unreachable, or another process has it open
  kFailed = 4,       // any other failure
};

// Runs a command. The code of an error gives the exit code: NotFound kNothing, InvalidArgument kUsage, Unavailable and
// DeadlineExceeded kUnreachable, all others kFailed. The text of the error is printed.
using Command = std::function<absl::StatusOr<Exit>()>;
Exit ExitOf(const absl::Status& status);

// Options for a short command. It collects no garbage, because the programs that own the data decide what to keep. Its oracle
// window is small, so that timestamps do not run ahead of the clock when commands follow each other quickly.
ClusterOptions CommandOptions();

enum class Missing { kIsAnError, kIsMade };

class Shell {
 public:
  std::string address;  // --cluster
  bool json = false;    // --json

  // Opens the cluster. Returns InvalidArgument if the address is invalid, DataLoss if stored data cannot be read, and
  // Unavailable for any other error.
  absl::StatusOr<Cluster> Open(Missing missing = Missing::kIsAnError, ClusterOptions options = CommandOptions()) const;

  void Choose(Command command) { command_ = std::move(command); }
  // Runs the chosen command, and prints its error.
  Exit Run() const;

 private:
  Command command_;
};

// A snapshot of the given time, in the form that text.h defines. If absent, of now.
absl::StatusOr<Snapshot> SnapshotAt(const Cluster& cluster, const std::optional<std::string>& time);

// Unescapes the names of a cell.
absl::StatusOr<CellName> ParseCell(const std::string& table, const std::string& row, const std::string& column);

// Runs a transaction. If its outcome is unknown, asks Cluster::Resolve. Returns Unknown if that fails too: the transaction may
// have committed.
absl::StatusOr<Timestamp> Commit(const Cluster& cluster, const std::function<absl::Status(ReadWrite& t)>& fn);

// Closes the cluster. Returns `exit`, or the error of Close if `exit` is not an error.
absl::StatusOr<Exit> Finish(const Cluster& cluster, absl::StatusOr<Exit> exit);

// Prints a line for people to the standard error.
void Note(const std::string& text);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_SHELL_H_
