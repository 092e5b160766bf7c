// SPDX-License-Identifier: Apache-2.0

// A crash_child process: starts it, reads its reports, and kills it.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_PROCESS_H_
#define PERCOLATOR_TESTS_STORE_CRASH_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/store/crash_workload.h"

namespace percolator {

class CrashProcess {
 public:
  using Clock = std::chrono::steady_clock;
  using OnReport = std::function<void(const CrashReport&)>;

  // Starts `program` with `args` after its own name.
  CrashProcess(const std::string& program, const std::vector<std::string>& args);
  // Kills it if it still runs.
  ~CrashProcess();
  CrashProcess(const CrashProcess&) = delete;
  CrashProcess& operator=(const CrashProcess&) = delete;

  // Passes on reports until `deadline`, or the first one for which `until` returns true. Returns false if the process
  // closed its end before.
  bool Listen(Clock::time_point deadline, const OnReport& on_report,
              const std::function<bool(const CrashReport&)>& until = nullptr);

  // Kills it with SIGKILL, passes on the reports that it had still sent, and returns whether it was alive until then.
  bool Kill(const OnReport& on_report);

 private:
  pid_t pid_ = -1;
  int reports_ = -1;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_PROCESS_H_
