// SPDX-License-Identifier: Apache-2.0

// The oracle of a server, with server and clients on this machine: the part of oracle_bench behind --remote.

#ifndef PERCOLATOR_BENCHMARKS_ORACLE_REMOTE_H_
#define PERCOLATOR_BENCHMARKS_ORACLE_REMOTE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace percolator {

// The benchmark starts itself as a server and as clients, each a process. These are the options of such a process.
struct RemoteRole {
  std::string role;  // "server", "requests" or "threads"; empty: the benchmark itself
  int port = 0;
  uint32_t count = 1;
  int threads = 1;
  int64_t start_ms = 0;  // on the wall clock, so that all clients begin together
  int run_ms = 1000;
};

void AddRemoteRole(CLI::App* app, RemoteRole* role);
// Plays the role; returns the exit code of the process.
int PlayRemoteRole(const RemoteRole& role);

// Measures and prints. Starts `program`, which is this program, for each role.
int RunRemote(const std::string& program, int rounds, int run_ms);

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_ORACLE_REMOTE_H_
