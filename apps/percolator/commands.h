// SPDX-License-Identifier: Apache-2.0

// The commands. Each file defines the arguments of its command and runs it.

#ifndef PERCOLATOR_APPS_PERCOLATOR_COMMANDS_H_
#define PERCOLATOR_APPS_PERCOLATOR_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "apps/percolator/shell.h"
#include "percolator/tls.h"

namespace percolator::cli {

// Each adds its command to `app`. The shell must outlive the app.
void AddGet(CLI::App& app, Shell& shell);
void AddSet(CLI::App& app, Shell& shell);
void AddDelete(CLI::App& app, Shell& shell);
void AddScan(CLI::App& app, Shell& shell);
void AddCells(CLI::App& app, Shell& shell);
void AddTables(CLI::App& app, Shell& shell);
void AddLocks(CLI::App& app, Shell& shell);
void AddNotifications(CLI::App& app, Shell& shell);
void AddQuarantine(CLI::App& app, Shell& shell);
void AddCheck(CLI::App& app, Shell& shell);
void AddRepair(CLI::App& app, Shell& shell);
void AddWaitIdle(CLI::App& app, Shell& shell);
void AddGc(CLI::App& app, Shell& shell);
void AddStats(CLI::App& app, Shell& shell);
void AddBench(CLI::App& app, Shell& shell);
void AddServe(CLI::App& app, Shell& shell);
void AddOracle(CLI::App& app, Shell& shell);
// The completion covers the commands that were added before.
void AddCompletion(CLI::App& app, Shell& shell);

// Adds the options --tls-... and --plaintext, which all servers have.
void AddTlsOptions(CLI::App& command, TlsFiles* tls, bool* allow_plaintext);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_COMMANDS_H_
