// SPDX-License-Identifier: Apache-2.0

// Google's emulator of Bigtable, for tests:
//
//     auto emulator = Emulator::Start();
//     if (!emulator.ok()) GTEST_SKIP() << emulator.status();
//     ... OpenChannel((*emulator)->target(), {}) ...
//
// The built one is emulator/main.go with the package of Debian's golang-google-cloud-dev. It is built at its first use
// (ten seconds) and kept in the build folder. The packaged one is the program of Google's own package. Both keep their
// data in memory.

#ifndef PERCOLATOR_TESTS_PROCESSES_EMULATOR_H_
#define PERCOLATOR_TESTS_PROCESSES_EMULATOR_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/processes/child_process.h"

namespace percolator {

// Builds a Go program with Debian's Go packages, by `go` with these arguments and "-o FILE", unless it exists already.
// `command` is such as {"build", "main.go"} or {"test", "-c", "package"}. Returns the file. Concurrent callers wait for
// each other. Returns Unavailable, with the missing package, if something is not installed.
absl::StatusOr<std::string> BuildGoProgram(std::string_view name, const std::vector<std::string>& command);

class Emulator {
 public:
  // Returns Unavailable if it cannot be built on this machine.
  static absl::StatusOr<std::unique_ptr<Emulator>> Start();
  // Returns Unavailable if it is not installed.
  static absl::StatusOr<std::unique_ptr<Emulator>> StartPackaged();

  // Its address, host:port.
  const std::string& target() const { return target_; }

 private:
  explicit Emulator(const std::vector<std::string>& argv) : child_(argv, {}, /*merge=*/true) {}

  ChildProcess child_;
  std::string target_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_EMULATOR_H_
