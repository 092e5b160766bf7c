// SPDX-License-Identifier: Apache-2.0

// The cost of one call by one thread: a read, and a one-step commit of one cell.
//
// Prints nanoseconds for each call. Instructions do not depend on the load of the machine. To count them, run
//
//     valgrind --tool=callgrind --toggle-collect='*Loop*' build/release/benchmarks/calls_bench --count 1000 get
//
// and divide the total by the count.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "percolator/cluster.h"
#include "percolator/status_macros.h"

namespace percolator {
namespace {

constexpr Column<std::string> kText("cells", "text");
constexpr Column<int64_t> kNumber("cells", "number");
constexpr char kRow[] = "row";
constexpr char kNumberRow[] = "row of a number";  // apart from kRow in RocksDB's memtable

using Call = std::function<absl::Status()>;

// Not inlined, so that a profiler can count what happens in it.
[[gnu::noinline]] absl::Status Loop(int count, const Call& call) {
  for (int i = 0; i < count; ++i) PERCOLATOR_RETURN_IF_ERROR(call());
  return absl::OkStatus();
}

absl::Status Run(const std::string& address, const std::string& name, int count) {
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;
  options.gc_period = Duration(0);
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address, options));
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("cells"));
  const auto write = [&](ReadWrite& t) {
    t.Set(kText, kRow, "some text of a common length");
    t.Set(kNumber, kNumberRow, 7);
  };
  PERCOLATOR_RETURN_IF_ERROR(cluster.Transact(write));
  PERCOLATOR_ASSIGN_OR_RETURN(Snapshot snapshot, cluster.GetSnapshot());
  const std::map<std::string, Call> calls = {
      {"get",
       [&] {
         return snapshot.Get({"cells", kRow, "text"}).status();
       }},
      {"get-text", [&] { return snapshot.Get(kText, kRow).status(); }},
      {"get-number", [&] { return snapshot.Get(kNumber, kNumberRow).status(); }},
      {"get-in-transaction",
       [&] {
         return Transaction(cluster).Get({"cells", kRow, "text"}).status();
       }},
      {"get-in-snapshot",
       [&] {
         return cluster.GetSnapshot()->Get({"cells", kRow, "text"}).status();
       }},
      {"snapshot", [&] { return cluster.GetSnapshot().status(); }},
      {"commit", [&] { return cluster.Transact([](ReadWrite& t) {
                         t.Set({"cells", kRow, "text"}, "other text");
                       }); }},
      {"commit-rows",
       [&] {
         return cluster.Transact([](ReadWrite& t) {
           t.Set({"cells", "row 1", "number"}, "1");
           t.Set({"cells", "row 1", "text"}, "text 1");
           t.Set({"cells", "row 2", "text"}, "text 2");
         });
       }},
      {"commit-number", [&] { return cluster.Transact([](ReadWrite& t) { t.Set(kNumber, kNumberRow, 8); }); }},
  };
  const auto call = calls.find(name);
  if (call == calls.end()) return absl::InvalidArgumentError("no such call: " + name);
  PERCOLATOR_RETURN_IF_ERROR(call->second());  // work that is done only once
  const auto begin = std::chrono::steady_clock::now();
  PERCOLATOR_RETURN_IF_ERROR(Loop(count, call->second));
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  std::cout << name << ": " << taken.count() / count << " ns\n";
  return cluster.Close();
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  CLI::App app("The cost of one call.");
  std::string address = "memory:";
  std::string call = "get";
  int count = 100'000;
  app.add_option("--cluster", address, "Address")->capture_default_str();
  app.add_option("--count", count, "Number of calls")->capture_default_str()->check(CLI::Range(1, 1'000'000'000));
  app.add_option("call", call,
                 "get, get-text, get-number, get-in-transaction, get-in-snapshot, snapshot, commit, commit-number or "
                 "commit-rows")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = percolator::Run(address, call, count);
  if (!status.ok()) std::cerr << "calls_bench: " << status << "\n";
  return status.ok() ? 0 : 1;
}
