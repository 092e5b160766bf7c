// SPDX-License-Identifier: Apache-2.0

// The common part of tests that repeatedly kill a process with a cluster in it.
//
// The test program is its own child: run with --child ADDRESS ONE_STEP NUMBER it opens the cluster, works until it is
// killed, and writes its report to standard output.
//
// PERCOLATOR_STRESS_KILLS: the number of kills for each mode. PERCOLATOR_TEST_SEED: the seed of their times.

#ifndef PERCOLATOR_TESTS_STRESS_KILLING_H_
#define PERCOLATOR_TESTS_STRESS_KILLING_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "percolator/cluster.h"

namespace percolator {

// The work of a child. Returns only if something is wrong.
using ChildFunction = std::function<int(const std::string& address, bool one_step, uint64_t number)>;

// The main function of such a test.
int KillTestMain(int argc, char** argv, const ChildFunction& run_child);

// Small buffers, so that files are written while the process lives.
ClusterOptions OptionsForKilling(bool one_step, std::chrono::milliseconds lock_lease,
                                 std::chrono::milliseconds gc_retention);

// The number of kills for each mode, unless the environment sets it. With a sanitizer everything takes several times as
// long.
int Kills(int usually = 30, int with_sanitizer = 5);

// From the environment or new. Prints it.
uint64_t TestSeed();

// One life of the child.
class Child {
 public:
  Child(const std::string& address, bool one_step, uint64_t number);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its standard output.
  int fd() const { return fd_; }
  void Kill();
  // Waits for its end. Returns false if it was not killed.
  bool WaitForEnd();

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STRESS_KILLING_H_
