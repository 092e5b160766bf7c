// SPDX-License-Identifier: Apache-2.0

// The way out: an outside system that is kept up to date, each change once and in order, though it fails now and then.
//
//     accounts    row: name    balance
//     exports                  an export queue: each new balance, for the outside system
//
// The transaction that changes a balance adds it to the queue. If it commits, the balance will be delivered. The outside
// system of this example is a class that refuses some deliveries, and does others but loses its answer. It keeps the
// largest number it has seen of each shard, and ignores deliveries with a number that is not larger. This is all it needs: at
// the end it holds what the cluster holds, and has seen every balance once, in order.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <mutex>
#include <string>

#include "percolator/cluster.h"
#include "percolator/export_queue.h"
#include "percolator/loader.h"
#include "percolator/observer.h"
#include "percolator/status_macros.h"

namespace {

using percolator::Cluster;
using percolator::Column;
using percolator::Export;
using percolator::ExportQueue;
using percolator::Loader;
using percolator::ReadWrite;
using percolator::Snapshot;
using percolator::Worker;

constexpr Column<int64_t> kBalance("accounts", "balance");
using Balances = std::map<std::string, int64_t>;

// Keeps numbers and balances in memory. A real one keeps both on its own disk, and changes them in one transaction.
class OutsideSystem {
 public:
  struct State {
    Balances balances = {};
    int requests = 0;
    int received = 0;  // requests that were new
    int out_of_order = 0;
  };

  absl::Status Receive(const Export& entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int request = ++state_.requests % 10;
    if (request == 3) return absl::UnavailableError("busy");
    uint64_t& largest = largest_[entry.shard];
    if (entry.sequence > largest) {
      largest = entry.sequence;
      const int64_t balance = std::stoll(entry.payload);
      if (balance != state_.balances[entry.key] + 1) ++state_.out_of_order;
      state_.balances[entry.key] = balance;
      ++state_.received;
    }
    if (request == 7) return absl::UnavailableError("done, but the answer is lost");
    return absl::OkStatus();
  }

  State state() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, uint64_t> largest_;  // by shard
  State state_;
};

// Changes a balance and exports it, in one transaction.
absl::Status Deposit(ReadWrite& t, const ExportQueue& exports, const std::string& account) {
  PERCOLATOR_ASSIGN_OR_RETURN(int64_t balance, t.Get(kBalance, account, 0));
  t.Set(kBalance, account, balance + 1);
  exports.Add(t, account, std::to_string(balance + 1));
  return absl::OkStatus();
}

absl::StatusOr<Balances> ReadBalances(const Cluster& cluster) {
  PERCOLATOR_ASSIGN_OR_RETURN(Snapshot now, cluster.GetSnapshot());
  Balances balances;
  for (const auto& account : now.Scan(kBalance)) {
    PERCOLATOR_RETURN_IF_ERROR(account.status());
    balances[account->row] = account->value;
  }
  return balances;
}

absl::Status Run(const std::string& address) {
  constexpr int kDeposits = 1000;
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address));
  const ExportQueue exports("exports", {.shards = 4, .batch = 20});
  // Not EnsureTable: the outside system of this example begins with nothing, so the cluster has to begin with nothing, too.
  PERCOLATOR_RETURN_IF_ERROR(cluster.CreateTable("accounts"));
  PERCOLATOR_RETURN_IF_ERROR(exports.EnsureTable(cluster));

  OutsideSystem outside;
  Worker worker(cluster);
  exports.Attach(worker, [&outside](const Export& entry) { return outside.Receive(entry); });
  PERCOLATOR_RETURN_IF_ERROR(worker.Start());
  Loader loader(cluster);
  for (int i = 0; i < kDeposits; ++i) {
    loader.Add([&exports, account = "account" + std::to_string(i % 10)](ReadWrite& t) {
      return Deposit(t, exports, account);
    });
  }
  PERCOLATOR_RETURN_IF_ERROR(loader.Finish());
  PERCOLATOR_RETURN_IF_ERROR(worker.WaitUntilIdle(std::chrono::minutes(10)));

  const OutsideSystem::State state = outside.state();
  std::cout << kDeposits << " deposits; the outside system got " << state.requests << " requests, of which "
            << state.received << " were new to it, and " << state.out_of_order << " out of order.\n";
  PERCOLATOR_ASSIGN_OR_RETURN(const Balances balances, ReadBalances(cluster));
  if (state.out_of_order != 0 || state.received != kDeposits || state.balances != balances) {
    return absl::DataLossError("the outside system and the cluster have different balances");
  }
  std::cout << "It has the same balances as the cluster.\n";
  return cluster.Close();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "memory:");
  if (!status.ok()) std::cerr << "exports: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
