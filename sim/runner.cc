// SPDX-License-Identifier: Apache-2.0

#include "sim/runner.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "percolator/spi/runtime.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

// A seed takes milliseconds. One that takes this long never yields, so the scheduler cannot count its events.
constexpr unsigned kSeedSeconds = 120;

// The max number of missing pairs that the summary lists.
constexpr size_t kMissingShown = 20;

// Failures that no checker reports.
constexpr std::string_view kCrash = "crash";
constexpr std::string_view kHang = "hang";
constexpr std::string_view kNondeterminism = "nondeterminism";

// From a child to its parent. Smaller than PIPE_BUF, so it arrives whole.
struct Message {
  bool is_result = false;  // otherwise it announces the start of the seed
  uint64_t seed = 0;
  uint64_t hash = 0;
  char checker[64] = {};
  RunCounts counts;
};
static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) <= 512);

void Send(int fd, const Message& message) {
  if (write(fd, &message, sizeof(message)) != static_cast<ssize_t>(sizeof(message))) std::_Exit(1);
}

RunResult RunIt(const Scenario& scenario, size_t trace_lines) {
  return RunPlan(
      scenario.plan,
      {.trace_lines = trace_lines, .suppressed = scenario.suppressed, .only_history = scenario.only_history});
}

SeedResult RunScenario(const Scenario& scenario, bool twice) {
  const RunResult result = RunIt(scenario, 0);
  SeedResult out{.seed = scenario.plan.seed, .hash = result.hash, .checker = {}, .counts = result.counts};
  if (result.failure.has_value()) out.checker = result.failure->checker;
  if (twice) {
    const RunResult again = RunIt(scenario, 0);
    if (again.hash != result.hash && out.checker.empty()) out.checker = kNondeterminism;
  }
  return out;
}

// Runs the seeds `from`, `from` + step and so on, below `end`.
[[noreturn]] void Child(int fd, const RunnerOptions& options, uint64_t from, uint64_t step, uint64_t end) {
  for (uint64_t seed = from; seed < end; seed += step) {
    Message message{.is_result = false, .seed = seed};
    Send(fd, message);
    alarm(kSeedSeconds);
    const SeedResult result = RunScenario(options.scenario(seed), options.twice);
    message.is_result = true;
    message.hash = result.hash;
    message.counts = result.counts;
    std::strncpy(message.checker, result.checker.c_str(), sizeof(message.checker) - 1);
    Send(fd, message);
  }
  std::fflush(nullptr);
  std::_Exit(0);
}

struct Worker {
  pid_t pid = 0;
  int fd = -1;
  uint64_t next = 0;     // the first seed that it has not begun
  bool in_seed = false;  // it has begun `next` - step
  std::string half;      // an incomplete message
};

std::string CommandOf(const Scenario& scenario, const std::string& program) {
  std::string command = StrCat(program, " --seed=", scenario.plan.seed, " --workload=", scenario.plan.workload);
  if (scenario.only_history) command += " --only-history";
  for (const std::string& change : scenario.changes) command += StrCat(" ", change);
  std::string list;
  for (const std::string& rate : scenario.rates_off) list += StrCat(list.empty() ? "" : ",", rate);
  if (!list.empty()) command += StrCat(" --off=", list);
  list.clear();
  for (const FaultId& fault : scenario.suppressed) list += StrCat(list.empty() ? "" : ",", ToText(fault));
  if (!list.empty()) command += StrCat(" --suppress=", list);
  return command;
}

class Runner {
 public:
  explicit Runner(const RunnerOptions& options)
      : options_(options), began_(Runtime::Real()->Elapsed()), workers_(std::max<size_t>(options.jobs, 1)) {}

  Summary Run() {
    for (size_t i = 0; i < workers_.size(); ++i) Start(&workers_[i], options_.first + i);
    while (AnyAtWork() && !Enough()) Listen();
    for (Worker& worker : workers_) Stop(&worker);
    summary_.took = Elapsed();
    return summary_;
  }

 private:
  uint64_t step() const { return workers_.size(); }
  // The first seed that is not run. A search for the smallest failing seed stops at one that failed.
  uint64_t end() const {
    if (options_.until_failure && summary_.first_failure.has_value()) return summary_.first_failure->seed;
    return options_.time > Duration(0) ? UINT64_MAX / 2 : options_.first + options_.seeds;
  }
  Duration Elapsed() const { return Runtime::Real()->Elapsed() - began_; }

  bool AnyAtWork() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.pid != 0; });
  }
  bool Enough() const {
    if (options_.time > Duration(0) && Elapsed() >= options_.time) return true;
    return options_.until_failure && summary_.first_failure.has_value() && AllArePast(summary_.first_failure->seed);
  }
  // Whether all smaller seeds have been run.
  bool AllArePast(uint64_t seed) const {
    return std::all_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      const uint64_t unfinished = worker.in_seed ? worker.next - step() : worker.next;
      return worker.pid == 0 || unfinished > seed;
    });
  }

  void Start(Worker* worker, uint64_t from) {
    worker->next = from;
    worker->in_seed = false;
    worker->half.clear();
    if (from >= end()) return;
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) std::abort();
    if (pid == 0) {
      close(fds[0]);
      Child(fds[1], options_, from, step(), end());
    }
    close(fds[1]);
    worker->pid = pid;
    worker->fd = fds[0];
  }

  void Stop(Worker* worker) {
    if (worker->pid == 0) return;
    kill(worker->pid, SIGKILL);
    Reap(worker);
  }

  int Reap(Worker* worker) {
    int status = 0;
    waitpid(worker->pid, &status, 0);
    close(worker->fd);
    worker->pid = 0;
    worker->fd = -1;
    return status;
  }

  void Listen() {
    std::vector<pollfd> polls;
    for (const Worker& worker : workers_) polls.push_back({.fd = worker.fd, .events = POLLIN, .revents = 0});
    if (poll(polls.data(), polls.size(), 100) <= 0) return;
    for (size_t i = 0; i < polls.size(); ++i) {
      if ((polls[i].revents & (POLLIN | POLLHUP)) != 0) Hear(&workers_[i]);
    }
  }

  void Hear(Worker* worker) {
    char buffer[1 << 14];
    const ssize_t got = read(worker->fd, buffer, sizeof(buffer));
    if (got <= 0) {
      Ended(worker);
      return;
    }
    worker->half.append(buffer, static_cast<size_t>(got));
    while (worker->half.size() >= sizeof(Message)) {
      Message message;
      std::memcpy(&message, worker->half.data(), sizeof(message));
      worker->half.erase(0, sizeof(message));
      Handle(worker, message);
    }
  }

  void Handle(Worker* worker, const Message& message) {
    worker->in_seed = !message.is_result;
    if (!message.is_result) {
      worker->next = message.seed + step();
      return;
    }
    Count({.seed = message.seed, .hash = message.hash, .checker = message.checker, .counts = message.counts});
  }

  void Count(const SeedResult& result) {
    ++summary_.seeds;
    summary_.hash += Mix(result.seed, result.hash);
    summary_.counts.Add(result.counts);
    summary_.coverage.Add(result.counts.covered);
    if (result.checker.empty()) return;
    ++summary_.failures;
    if (!options_.until_failure) {
      const std::string about = options_.about == nullptr ? "" : StrCat("; ", options_.about(result.seed));
      const std::string line = StrCat("seed ", result.seed, " fails: ", result.checker, about, "\n");
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
      Record(line);
    }
    if (!summary_.first_failure.has_value() || result.seed < summary_.first_failure->seed) {
      summary_.first_failure = result;
    }
  }

  void Record(const std::string& line) {
    if (options_.record.empty()) return;
    std::FILE* const file = std::fopen(options_.record.c_str(), "a");
    const bool written = file != nullptr && std::fputs(line.c_str(), file) >= 0;
    const bool closed = file != nullptr && std::fclose(file) == 0;
    if (!written || !closed) std::fprintf(stderr, "percsim: cannot write to %s\n", options_.record.c_str());
  }

  // The worker ended by itself if all its seeds are done. Otherwise its current seed has killed it, and another worker
  // continues.
  void Ended(Worker* worker) {
    const int status = Reap(worker);
    if (!worker->in_seed && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    Count({.seed = worker->next - step(), .hash = 0, .checker = std::string(hung ? kHang : kCrash), .counts = {}});
    if (!Enough()) Start(worker, worker->next);
  }

  const RunnerOptions& options_;
  const Duration began_;
  std::vector<Worker> workers_;
  Summary summary_;
};

}  // namespace

std::string AboutScenario(const Scenario& scenario, const std::string& program) {
  return StrCat("workload ", scenario.plan.workload, "; again: ", CommandOf(scenario, program));
}

Summary RunSeeds(const RunnerOptions& options) { return Runner(options).Run(); }

void ExplainResult(const Scenario& scenario, const SeedResult& result, const std::string& program) {
  if (result.checker != kCrash && result.checker != kHang) {
    Explain(scenario, program, kTraceLines);
    return;
  }
  std::printf("seed %" PRIu64 " ends in a %s\n  plan: %s\n  again: %s\n\n", result.seed, result.checker.c_str(),
              ToText(scenario.plan).c_str(), CommandOf(scenario, program).c_str());
}

bool Explain(const Scenario& scenario, const std::string& program, size_t trace_lines) {
  const RunResult result = RunIt(scenario, trace_lines);
  if (!result.failure.has_value()) {
    std::printf("%sseed %" PRIu64 ": ok, %" PRIu64 " events, hash %016" PRIx64 "\n", result.trace.c_str(),
                scenario.plan.seed, result.counts.events, result.hash);
    return false;
  }
  std::printf("%s\nseed %" PRIu64 " fails: %s: %s\n  plan: %s\n  faults: %s\n  again: %s --trace\n\n",
              result.trace.c_str(), scenario.plan.seed, result.failure->checker.c_str(), result.failure->text.c_str(),
              ToText(scenario.plan).c_str(), ToText(scenario.plan.faults).c_str(),
              CommandOf(scenario, program).c_str());
  return true;
}

void ShrinkAndExplain(const Scenario& scenario, const std::string& program) {
  const RunResult first = RunIt(scenario, 0);
  if (!first.failure.has_value()) {
    std::printf("seed %" PRIu64 " does not fail\n", scenario.plan.seed);
    return;
  }
  size_t runs = 0;
  const Attempt attempt = [&](const Scenario& candidate) -> std::optional<std::vector<FaultId>> {
    ++runs;
    RunResult result = RunIt(candidate, 0);
    const bool alike = result.failure.has_value() && result.failure->checker == first.failure->checker;
    return alike ? std::optional(std::move(result.happened)) : std::nullopt;
  };
  const Scenario smaller = Shrink(scenario, attempt);
  std::printf("shrunk in %zu runs\n", runs);
  Explain(smaller, program, kTraceLines);
}

void Print(const Summary& summary, bool table) {
  if (table) summary.coverage.Print();
  const RunCounts& c = summary.counts;
  const double minutes = static_cast<double>(summary.took.count()) / 60e6;
  std::printf("transactions %" PRIu64 ": %" PRIu64 " committed, %" PRIu64 " failed, %" PRIu64
              " of unknown outcome; %" PRIu64 " cycles of write skew\n",
              c.transactions, c.committed, c.failed, c.unknown, c.write_skews);
  std::printf("events %" PRIu64 ", faults %" PRIu64 ", processes %" PRIu64 "\n", c.events, c.faults, c.processes);
  std::printf("locks met %" PRIu64 ", rolled forward %" PRIu64 ", rolled back %" PRIu64 "; versions collected %" PRIu64
              "; cells prefetched %" PRIu64 ", used %" PRIu64 "\n",
              c.cluster.foreign_locks_found, c.cluster.rolled_forward, c.cluster.rolled_back,
              c.cluster.versions_collected, c.cluster.cells_prefetched, c.cluster.prefetched_cells_used);
  const std::vector<std::pair<Step, Mishap>> missing = summary.coverage.Missing();
  const size_t pairs = summary.coverage.possible();
  std::string list;
  for (size_t i = 0; i < std::min(missing.size(), kMissingShown); ++i) {
    list += StrCat(i == 0 ? "; missing: " : ", ", StepName(missing[i].first), "*", MishapName(missing[i].second));
  }
  if (missing.size() > kMissingShown) list += StrCat(" and ", missing.size() - kMissingShown, " more");
  std::printf("coverage pairs=%zu of %zu%s\n", pairs - missing.size(), pairs, list.c_str());
  std::printf("sim seeds=%" PRIu64 " failures=%" PRIu64 " per_minute=%.0f transactions=%" PRIu64
              " coverage=%zu/%zu hash=%016" PRIx64 "\n",
              summary.seeds, summary.failures, minutes > 0 ? static_cast<double>(summary.seeds) / minutes : 0,
              c.transactions, pairs - missing.size(), pairs, summary.hash);
}

}  // namespace percolator::sim
