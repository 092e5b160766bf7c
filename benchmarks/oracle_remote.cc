// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/oracle_remote.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/require.h"
#include "percolator/server.h"
#include "src/oracle/batching_oracle.h"
#include "src/oracle/remote/remote_oracle.h"

namespace percolator {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

// --- The roles

int PlayServer() {
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start({.listen = "127.0.0.1:0"});
  Require(server.ok(), "starting the server");
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  for (;;) pause();
}

// Draws and counts until the time is over. Every call is timed, which costs nothing compared with a request.
struct Drawn {
  int64_t requests = 0;
  std::vector<float> micros;
};

Drawn Draw(Oracle* oracle, uint32_t count, steady_clock::time_point end) {
  Drawn drawn;
  Timestamp last;
  for (auto now = steady_clock::now(); now < end;) {
    const absl::StatusOr<Timestamp> first = oracle->GetTimestamps(count);
    Require(first.ok(), "drawing a timestamp");
    Require(*first > last, "drawing a timestamp greater than the one before");
    last = Timestamp(first->value() + count - 1);
    const auto then = steady_clock::now();
    drawn.micros.push_back(std::chrono::duration<float, std::micro>(then - now).count());
    now = then;
    ++drawn.requests;
  }
  return drawn;
}

int PlayClient(const RemoteRole& role) {
  const absl::StatusOr<std::unique_ptr<RemoteOracle>> remote =
      RemoteOracle::Open({"127.0.0.1:" + std::to_string(role.port)}, {}, std::chrono::seconds(10));
  Require(remote.ok() && (*remote)->GetTimestamp().ok(), "asking the server");
  BatchingOracle front(remote->get());
  Oracle* const oracle = role.role == "threads" ? static_cast<Oracle*>(&front) : remote->get();
  std::this_thread::sleep_until(system_clock::time_point(std::chrono::milliseconds(role.start_ms)));
  const auto end = steady_clock::now() + std::chrono::milliseconds(role.run_ms);
  std::vector<Drawn> drawn(static_cast<size_t>(role.threads));
  std::vector<std::thread> threads;
  for (Drawn& one : drawn) threads.emplace_back([&] { one = Draw(oracle, role.count, end); });
  for (std::thread& thread : threads) thread.join();
  int64_t requests = 0;
  std::vector<float> micros;
  for (const Drawn& one : drawn) {
    requests += one.requests;
    micros.insert(micros.end(), one.micros.begin(), one.micros.end());
  }
  const auto middle = micros.begin() + static_cast<int64_t>(micros.size() / 2);
  std::nth_element(micros.begin(), middle, micros.end());
  std::printf("%lld %.1f\n", static_cast<long long>(requests), static_cast<double>(*middle));
  return 0;
}

// --- The benchmark

struct Child {
  pid_t pid = -1;
  FILE* out = nullptr;
};

Child StartChild(const std::string& program, const std::vector<std::string>& arguments) {
  int fds[2];
  Require(pipe(fds) == 0, "making a pipe");
  Child child;
  child.pid = fork();
  if (child.pid == 0) {
    dup2(fds[1], STDOUT_FILENO);
    close(fds[0]);
    close(fds[1]);
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(fds[1]);
  child.out = fdopen(fds[0], "r");
  return child;
}

// The processor time of a process so far.
double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct Measured {
  double requests_per_s = 0;
  double p50_us = 0;     // the median of the clients' medians
  double server_us = 0;  // processor time of the server per request
};

template <typename Get>
double Median(std::vector<Measured> all, const Get& get) {
  std::sort(all.begin(), all.end(), [&](const Measured& a, const Measured& b) { return get(a) < get(b); });
  return get(all[all.size() / 2]);
}

class Remote {
 public:
  Remote(std::string program, int run_ms)
      : program_(std::move(program)), run_ms_(run_ms), server_(StartChild(program_, {"--role", "server"})) {
    Require(std::fscanf(server_.out, "%d", &port_) == 1, "starting the server");
  }
  ~Remote() {
    kill(server_.pid, SIGKILL);
    waitpid(server_.pid, nullptr, 0);
    std::fclose(server_.out);
  }

  Measured Measure(const std::string& role, int processes, int threads, uint32_t count) {
    const int64_t start_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                 system_clock::now().time_since_epoch() + std::chrono::milliseconds(500))
                                 .count();
    std::vector<Child> clients;
    for (int i = 0; i < processes; ++i) {
      clients.push_back(StartChild(program_, {"--role", role, "--port", std::to_string(port_), "--count",
                                              std::to_string(count), "--threads", std::to_string(threads), "--start-ms",
                                              std::to_string(start_ms), "--run-ms", std::to_string(run_ms_)}));
    }
    std::this_thread::sleep_until(system_clock::time_point(std::chrono::milliseconds(start_ms)));
    const double cpu = CpuSeconds(server_.pid);
    int64_t requests = 0;
    std::vector<double> p50;
    for (const Child& client : clients) {
      long long its = 0;
      double its_p50 = 0;
      Require(std::fscanf(client.out, "%lld %lf", &its, &its_p50) == 2, "running a client");
      requests += its;
      p50.push_back(its_p50);
      std::fclose(client.out);
      waitpid(client.pid, nullptr, 0);
    }
    std::sort(p50.begin(), p50.end());
    const double seconds = static_cast<double>(run_ms_) / 1000;
    return {static_cast<double>(requests) / seconds, p50[p50.size() / 2],
            (CpuSeconds(server_.pid) - cpu) * 1e6 / static_cast<double>(requests)};
  }

 private:
  const std::string program_;
  const int run_ms_;
  Child server_;
  int port_ = 0;
};

}  // namespace

void AddRemoteRole(CLI::App* app, RemoteRole* role) {
  app->add_option("--role", role->role)->group("");
  app->add_option("--port", role->port)->group("");
  app->add_option("--count", role->count)->group("");
  app->add_option("--threads", role->threads)->group("");
  app->add_option("--start-ms", role->start_ms)->group("");
  app->add_option("--run-ms", role->run_ms)->group("");
}

int PlayRemoteRole(const RemoteRole& role) { return role.role == "server" ? PlayServer() : PlayClient(role); }

int RunRemote(const std::string& program, int rounds, int run_ms) {
  constexpr std::array<uint32_t, 5> kCounts = {1, 16, 64, 256, 1024};
  constexpr int kProcesses = 4;
  constexpr int kManyProcesses = 8;
  constexpr int kManyThreads = 64;
  Remote remote(program, run_ms);
  std::array<std::vector<Measured>, kCounts.size()> shared;
  std::vector<Measured> many, lone;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < kCounts.size(); ++i) {
      shared[i].push_back(remote.Measure("requests", kProcesses, 1, kCounts[i]));
    }
    many.push_back(remote.Measure("threads", kManyProcesses, kManyThreads, 1));
    lone.push_back(remote.Measure("requests", 1, 1, 1));
  }
  const auto rate = [](const Measured& m) { return m.requests_per_s; };
  const auto p50 = [](const Measured& m) { return m.p50_us; };
  const auto cpu = [](const Measured& m) { return m.server_us; };
  std::printf("%d processes, each with one request in flight, medians of %d rounds:\n", kProcesses, rounds);
  std::printf("  %14s %14s %14s %10s %20s\n", "in a request", "timestamps/s", "requests/s", "p50 us",
              "server us/request");
  double at_256 = 0;
  for (size_t i = 0; i < kCounts.size(); ++i) {
    const double requests = Median(shared[i], rate);
    if (kCounts[i] == 256) at_256 = requests * 256;
    std::printf("  %14u %14.0f %14.0f %10.1f %20.1f\n", kCounts[i], requests * kCounts[i], requests,
                Median(shared[i], p50), Median(shared[i], cpu));
  }
  std::printf("%d processes with %d threads each, one timestamp at a time: %.0f timestamps/s, p50 %.0f us\n",
              kManyProcesses, kManyThreads, Median(many, rate), Median(many, p50));
  std::printf("one process with one thread: p50 %.0f us, server %.1f us of processor time\n", Median(lone, p50),
              Median(lone, cpu));
  std::printf("oracle remote_per_s=%.0f threads_per_s=%.0f lone_p50_us=%.0f\n", at_256, Median(many, rate),
              Median(lone, p50));
  return 0;
}

}  // namespace percolator
