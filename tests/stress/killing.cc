// SPDX-License-Identifier: Apache-2.0

#include "tests/stress/killing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>

#include "gtest/gtest.h"
#include "tests/testing/amount.h"

namespace percolator {
namespace {

std::string& Program() {
  static std::string* const program = new std::string;
  return *program;
}

}  // namespace

int KillTestMain(int argc, char** argv, const ChildFunction& run_child) {
  if (argc == 5 && std::string(argv[1]) == "--child") {
    return run_child(argv[2], std::string(argv[3]) == "1", std::strtoull(argv[4], nullptr, 10));
  }
  Program() = argv[0];
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

ClusterOptions OptionsForKilling(bool one_step, std::chrono::milliseconds lock_lease,
                                 std::chrono::milliseconds gc_retention) {
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;  // enough when only the process dies
  options.store.write_buffer_bytes = 1 << 20;
  options.one_step_commit = one_step;
  options.lock_lease = lock_lease;
  options.gc_retention = gc_retention;
  options.gc_period = std::chrono::milliseconds(100);
  return options;
}

int Kills(int usually, int with_sanitizer) {
  const char* wanted = std::getenv("PERCOLATOR_STRESS_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : Amount(usually, with_sanitizer);
}

uint64_t TestSeed() {
  const char* given = std::getenv("PERCOLATOR_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "PERCOLATOR_TEST_SEED=" << seed << "\n";
  return seed;
}

Child::Child(const std::string& address, bool one_step, uint64_t number) {
  int fds[2];
  if (pipe(fds) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(fds[1], STDOUT_FILENO);
    close(fds[0]);
    close(fds[1]);
    execl(Program().c_str(), Program().c_str(), "--child", address.c_str(), one_step ? "1" : "0",
          std::to_string(number).c_str(), nullptr);
    _exit(127);
  }
  close(fds[1]);
  fd_ = fds[0];
}

void Child::Kill() { kill(pid_, SIGKILL); }

bool Child::WaitForEnd() {
  close(fd_);
  int status = 0;
  waitpid(pid_, &status, 0);
  return WIFSIGNALED(status);
}

}  // namespace percolator
