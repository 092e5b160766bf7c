// SPDX-License-Identifier: Apache-2.0

#include "tests/store/crash_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/store/crash_child.h"

namespace percolator {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

CrashProcess::CrashProcess(const std::string& program, const std::vector<std::string>& args) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("pipe");
  // dup2 onto itself would keep close-on-exec, so the writing end must not have the target number.
  const int writing = fcntl(ends[1], F_DUPFD_CLOEXEC, kReportFd + 1);
  if (writing < 0) Fail("dup");
  close(ends[1]);
  reports_ = ends[0];

  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing, kReportFd);
  const int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(writing);
  if (error != 0) {
    errno = error;
    Fail(program.c_str());
  }
}

CrashProcess::~CrashProcess() {
  Kill([](const CrashReport&) {});
}

bool CrashProcess::Listen(Clock::time_point deadline, const OnReport& on_report,
                          const std::function<bool(const CrashReport&)>& until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return true;
    pollfd event{.fd = reports_, .events = POLLIN, .revents = 0};
    if (poll(&event, 1, static_cast<int>(left)) <= 0) continue;
    CrashReport report;
    if (read(reports_, &report, sizeof report) != sizeof report) return false;
    on_report(report);
    if (until && until(report)) return true;
  }
}

bool CrashProcess::Kill(const OnReport& on_report) {
  if (pid_ < 0) return false;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  CrashReport report;
  while (read(reports_, &report, sizeof report) == sizeof report) on_report(report);
  close(reports_);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace percolator
