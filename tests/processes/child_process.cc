// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace percolator {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> WithOwnEnvironment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** name = environ; *name != nullptr; ++name) all.emplace_back(*name);
  return all;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                           bool merge) {
  // Memory is allocated before the fork, because another thread may hold the allocator's lock at that moment.
  const std::vector<std::string> all = WithOwnEnvironment(environment);
  const std::vector<char*> arguments = Pointers(argv);
  const std::vector<char*> variables = Pointers(all);
  const pid_t parent = getpid();
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(fds[1], STDOUT_FILENO);
    if (merge) dup2(fds[1], STDERR_FILENO);
    execvpe(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(fds[1]);
  fd_ = fds[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(fd_);
}

bool ChildProcess::ReadLine(std::string* line) {
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      *line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return true;
    }
    char chunk[4096];
    const ssize_t got = read(fd_, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    read_.append(chunk, static_cast<size_t>(got));
  }
}

std::string ChildProcess::ReadAll() {
  std::string all;
  for (std::string line; ReadLine(&line);) all += line + "\n";
  return all + std::exchange(read_, "");
}

int ChildProcess::Wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace percolator
