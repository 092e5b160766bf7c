// SPDX-License-Identifier: Apache-2.0

// ChildProcess: another program, which a test runs and ends.

#ifndef PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_
#define PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace percolator {

class ChildProcess {
 public:
  // Runs argv[0], searched in PATH, with `environment` ("NAME=value") added to that of the test. Its standard output
  // can be read; its standard error is that of the test, or with `merge` is part of standard output. The kernel kills
  // it when the test dies.
  explicit ChildProcess(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {},
                        bool merge = false);
  // Kills it, if it has not ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The next line of its output, without the line end. Returns false if it has closed its output.
  bool ReadLine(std::string* line);
  // The rest of its output.
  std::string ReadAll();
  // Waits for its end. Returns the exit code; -1 if it was killed, 127 if it could not be started.
  int Wait();

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string read_;  // output that was read but not yet returned
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_
