// SPDX-License-Identifier: Apache-2.0

// The process that durability_test kills: opens a store and works on it until it dies.
//
//   crash_child open  DIR DURABILITY WRITE_BUFFER
//       opens and closes the store repeatedly
//   crash_child write DIR DURABILITY WRITE_BUFFER SEED VALUE_BYTES STEP...
//       runs one writer of the crash workload for each STEP, from that step on
//
// DURABILITY is sync or nosync. Reports go to file descriptor 3, one CrashReport each; the first, which belongs to no
// writer, when the store is open. Exits with 1 and a text on stderr on any error.

#include "tests/store/crash_child.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "percolator/spi/store.h"
#include "tests/store/crash_workload.h"

namespace percolator {
namespace {

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "crash_child: %s\n", text.c_str());
  std::_Exit(1);
}

void Send(const CrashReport& report) {
  if (write(kReportFd, &report, sizeof report) != sizeof report) Die("cannot report: the parent is gone");
}

std::unique_ptr<Store> OpenOrDie(const std::string& dir, const RocksOptions& options) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir, options);
  if (!store.ok()) Die("open: " + store.status().ToString());
  return *std::move(store);
}

[[noreturn]] void OpenForever(const std::string& dir, const RocksOptions& options) {
  for (;;) {
    std::unique_ptr<Store> store = OpenOrDie(dir, options);
    Send(CrashReport{.writer = kOpened});
    if (absl::Status status = CreateCrashTables(store.get()); !status.ok()) Die("create: " + status.ToString());
    if (absl::Status status = store->Close(); !status.ok()) Die("close: " + status.ToString());
  }
}

void WriteForever(const std::string& dir, const RocksOptions& options, CrashPlan plan,
                  const std::vector<uint64_t>& first_steps) {
  const std::unique_ptr<Store> store = OpenOrDie(dir, options);
  Send(CrashReport{.writer = kOpened});
  CrashListener listener;
  listener.sending = [](uint32_t, uint64_t) {};
  listener.done = [](const CrashReport& report, const absl::Status& error) {
    if (!error.ok()) Die("write: " + error.ToString());
    Send(report);
    return true;
  };
  std::vector<std::thread> writers;
  for (uint32_t i = 0; i < plan.writers; ++i) {
    writers.emplace_back([&, i] { RunCrashWriter(store.get(), plan, i, first_steps[i], listener); });
  }
  for (std::thread& writer : writers) writer.join();
}

int Main(const std::vector<std::string>& args) {
  if (args.size() < 5) Die("too few arguments");
  RocksOptions options;
  options.durability = args[3] == "sync" ? Durability::kSync : Durability::kNoSync;
  options.write_buffer_bytes = std::stoull(args[4]);
  options.block_cache_bytes = 8 << 20;
  if (args[1] == "open") OpenForever(args[2], options);
  if (args.size() < 8) Die("too few arguments");
  CrashPlan plan;
  plan.seed = std::stoull(args[5]);
  plan.value_bytes = std::stoull(args[6]);
  std::vector<uint64_t> first_steps;
  for (size_t i = 7; i < args.size(); ++i) first_steps.push_back(std::stoull(args[i]));
  plan.writers = static_cast<uint32_t>(first_steps.size());
  WriteForever(args[2], options, plan, first_steps);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main({argv, argv + argc}); }
