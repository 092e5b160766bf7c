// percolator: the command line of a cluster, for people who operate one or want to look into one; and its server.
//
//     percolator --cluster ADDRESS COMMAND ...        percolator --help, percolator COMMAND --help
//
// It is a user of the public headers like any other, runs no observers, and collects garbage only when told to.
//
// EXIT CODES  0 done; 1 what was asked for is not there; 2 the command line can't be understood; 3 the cluster can't be
//             reached, or another process is using it; 4 anything else. What went wrong goes to the standard error.

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

constexpr char kDescription[] = "Looks into a Percolator cluster, operates it, and serves it to many processes.";

constexpr char kFooter[] = R"(Begin with:
  export PERCOLATOR_CLUSTER=rocksdb:/var/lib/accounts     or percolator://HOST:PORT, of a `percolator serve`
  percolator tables create accounts
  percolator set accounts Bob bal 10
  percolator get accounts Bob bal
  percolator scan accounts --as-of -5m
  percolator cells accounts Bob         what the transactions left in the store

Names with bytes that are not printable are shown and typed as \x00; a backslash as \\.
Times are the number of a timestamp, 2026-11-15T10:00:00Z, or a duration ago: -5m.
Each command has examples: percolator COMMAND --help.

Exit codes: 0 done; 1 not found, or nothing to show; 2 bad usage;
3 the cluster can't be reached, or another process is using it; 4 failed otherwise.)";

// The help of a command also names the options that all have.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    std::string common;
    if (app->get_parent() != nullptr) {
      common =
          "With every command:\n"
          "  --cluster ADDRESS           Or set PERCOLATOR_CLUSTER\n"
          "  --json                      For programs\n\n";
    }
    return common + Formatter::make_footer(app);
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

// What CLI11 has to say, in the voice of the rest.
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
  // It misses a command, and does not see that there is a word that should be one.
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty()) {
    what = "there is no command " + unknown.front();
  }
  Note(what + "\nSee " + name + " --help");
  return Exit::kUsage;
}

// Memory or threads have run out in some thread: a message and a code, and no core file.
[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    std::fputs("percolator: ended by an error without a name\n", stderr);
  } catch (const std::bad_alloc&) {
    std::fputs("percolator: out of memory: allow it more (ulimit -v), or lower its caches and --threads\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "percolator: %s: too little memory, or too many threads or files? (ulimit -v, -u, -n)\n",
                 error.what());
  } catch (...) {
    std::fputs("percolator: ended by an error without a name\n", stderr);
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
  app.add_option("--cluster", shell.address, "Which cluster, for example rocksdb:/var/lib/accounts")
      ->envname("PERCOLATOR_CLUSTER")
      ->type_name("ADDRESS");
  app.add_flag("--json", shell.json, "Print JSON, for programs");
  app.fallthrough();  // both may also stand behind the command
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
