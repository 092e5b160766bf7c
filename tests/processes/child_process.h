// ChildProcess: another program, run by a test and ended with it.

#ifndef PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_
#define PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace percolator {

class ChildProcess {
 public:
  // Runs argv[0], looked for in PATH, with `environment` ("NAME=value") added to that of the test. What it writes on
  // standard output can be read; standard error is that of the test, or with `merge` goes to standard output as well.
  // The kernel kills it when the test dies.
  explicit ChildProcess(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {},
                        bool merge = false);
  // Kills it, if it has not ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The next line it writes, without its end. False: it has closed its output.
  bool ReadLine(std::string* line);
  // All it still writes.
  std::string ReadAll();
  // Waits for its end. The exit code; -1 if it was killed, 127 if it could not be started.
  int Wait();

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string read_;  // of its output, not yet asked for
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_CHILD_PROCESS_H_
