// SPDX-License-Identifier: Apache-2.0

#include "src/base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace percolator {
namespace {

// Runs `child` in a forked process; returns its exit code.
template <typename Child>
int ExitCodeOf(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkTest, OnlyTheChildIsForked) {
  const ForkWatch before;
  EXPECT_FALSE(before.forked());
  EXPECT_EQ(ExitCodeOf([&] {
              const ForkWatch after;
              return before.forked() && !after.forked() ? 7 : 1;
            }),
            7);
  EXPECT_FALSE(before.forked());
}

}  // namespace
}  // namespace percolator
