// What all commands have in common: the options --cluster and --json, the way to a cluster, and exit codes.
//
// A command adds itself to the command line (commands.h), and there says what is to be done if it is chosen. Main then does
// it. So parsing has no effects, and the whole command line can also be looked at, as completion.cc does.

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
  kNothing = 1,      // what was asked for does not exist
  kUsage = 2,        // the command line can't be understood
  kUnreachable = 3,  // the cluster can't be reached, or another process is using it
  kFailed = 4,       // anything else
};

// An error counts by its code: kNotFound as kNothing, kInvalidArgument as kUsage, kUnavailable and kDeadlineExceeded as
// kUnreachable, all others as kFailed. Its text is what the user is told.
using Command = std::function<absl::StatusOr<Exit>()>;
Exit ExitOf(const absl::Status& status);

// For a command that takes a moment: it collects no garbage, because what is kept and for how long is for the programs to
// decide whose data it is; and timestamps do not run ahead of the clock when commands follow each other quickly.
ClusterOptions CommandOptions();

enum class Missing { kIsAnError, kIsMade };

class Shell {
 public:
  std::string address;  // --cluster
  bool json = false;    // --json

  // Opens the cluster, or says why not: kInvalidArgument for an address that can't be understood, kDataLoss if what is stored
  // can't be read, kUnavailable for anything else.
  absl::StatusOr<Cluster> Open(Missing missing = Missing::kIsAnError, ClusterOptions options = CommandOptions()) const;

  void Choose(Command command) { command_ = std::move(command); }
  // Does what was chosen, and tells of errors.
  Exit Run() const;

 private:
  Command command_;
};

// A snapshot as of a time as text.h reads it; absent: now.
absl::StatusOr<Snapshot> SnapshotAt(const Cluster& cluster, const std::optional<std::string>& time);

// A cell by names as they are typed.
absl::StatusOr<CellName> ParseCell(const std::string& table, const std::string& row, const std::string& column);

// Runs a transaction. If its outcome is not known at first, asks for it with Cluster::Resolve. kUnknown: that did not tell
// either, so the transaction may have committed.
absl::StatusOr<Timestamp> Commit(const Cluster& cluster, const std::function<absl::Status(ReadWrite& t)>& fn);

// Closes, and says what came out: an error of `exit`, or of closing.
absl::StatusOr<Exit> Finish(const Cluster& cluster, absl::StatusOr<Exit> exit);

// Something for people, beside what is printed for programs.
void Note(const std::string& text);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_SHELL_H_
