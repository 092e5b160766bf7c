// SPDX-License-Identifier: Apache-2.0

// percolator: the command line for operating and inspecting a cluster, and its server.
//
//     percolator --cluster ADDRESS COMMAND ...        percolator --help, percolator COMMAND --help
//
// It uses only the public headers, runs no observers, and collects garbage only in `percolator gc`. shell.h defines the exit
// codes. Errors go to the standard error.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/shell.h"

namespace percolator::cli {
namespace {

constexpr char kDescription[] = "Inspects, operates and serves a Percolator cluster.";

constexpr char kFooter[] = R"(Begin with:
  export PERCOLATOR_CLUSTER=rocksdb:/var/lib/accounts     or percolator://HOST:PORT, of a `percolator serve`
  percolator tables create accounts
  percolator set accounts Bob bal 10
  percolator get accounts Bob bal
  percolator scan accounts --as-of -5m
  percolator cells accounts Bob         shows the raw cells, as in figure 4 of the paper

Rows, columns and values: a byte that is not printable UTF-8 is \xHH, a backslash is \\, and \n \r \t work as usual.
TIME: a timestamp, a date such as 2026-11-15T10:00:00Z, or a duration before now: -5m.
DURATION: numbers with units (us ms s m h d): 500ms, 1h30m.
Each command has examples: percolator COMMAND --help.

Exit codes: 0 done; 1 not found, or nothing to show; 2 bad usage;
3 the cluster is unreachable, or another process has it open; 4 any other failure.)";

// The help of a command also lists the options and exit codes that all commands have.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    std::string own = Formatter::make_footer(app);
    if (app->get_parent() == nullptr) return own;
    const std::string options =
        "Options of every command:\n"
        "  --cluster ADDRESS           Address of the cluster; default: PERCOLATOR_CLUSTER\n"
        "  --json                      Print JSON\n\n";
    const bool explains_1 = own.find("Exit code 1:") != std::string::npos;
    return options + own + (explains_1 ? "Other exit codes: 0 done; " : "\nExit codes: 0 done; 1 not found; ") +
           "2 bad usage; 3 cluster unreachable or in use; 4 other failure\n";
  }
};

void AddCommands(CLI::App& app, Shell& shell) {
  AddGet(app, shell);
  AddSet(app, shell);
  AddDelete(app, shell);
  AddScan(app, shell);
  AddCells(app, shell);
  AddTables(app, shell);
  AddLocks(app, shell);
  AddNotifications(app, shell);
  AddQuarantine(app, shell);
  AddCheck(app, shell);
  AddRepair(app, shell);
  AddWaitIdle(app, shell);
  AddGc(app, shell);
  AddStats(app, shell);
  AddBench(app, shell);
  AddServe(app, shell);
  AddOracle(app, shell);
  AddCompletion(app, shell);
}

// Prints the help, the version, or an error of CLI11 in the form of the other errors.
Exit Explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app.exit(error);
    return Exit::kDone;
  }
  std::string name = app.get_name();
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    name += " " + chosen->get_name();
  }
  std::string what = error.what();
  // CLI11 reports a missing command although there is a word in its place.
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty()) {
    what = "there is no command " + unknown.front();
  }
  Note(what + "\nSee " + name + " --help");
  return Exit::kUsage;
}

// If memory or threads run out in any thread, prints a message and exits without a core file.
[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    std::fputs("percolator: terminated by an exception of unknown type\n", stderr);
  } catch (const std::bad_alloc&) {
    std::fputs("percolator: out of memory: raise the limit (ulimit -v), or lower --threads\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "percolator: %s: check the limits of memory, threads and files (ulimit -v, -u, -n)\n",
                 error.what());
  } catch (...) {
    std::fputs("percolator: terminated by an exception of unknown type\n", stderr);
  }
  std::_Exit(static_cast<int>(Exit::kFailed));
}

Exit Main(int argc, char** argv) {
  std::set_terminate(OnTerminate);
  Shell shell;
  CLI::App app(kDescription, "percolator");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kFooter);
  app.set_version_flag("--version", PERCOLATOR_VERSION);
  app.add_option("--cluster", shell.address,
                 "Address of the cluster, such as rocksdb:/var/lib/accounts or percolator://HOST:PORT")
      ->envname("PERCOLATOR_CLUSTER")
      ->type_name("ADDRESS");
  app.add_flag("--json", shell.json, "Print JSON");
  app.fallthrough();  // both may also follow the command
  app.require_subcommand(1);
  AddCommands(app, shell);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Explain(app, error);
  }
  return shell.Run();
}

}  // namespace
}  // namespace percolator::cli

int main(int argc, char** argv) { return static_cast<int>(percolator::cli::Main(argc, argv)); }
