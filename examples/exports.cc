// The way out: an outside system that is kept up to date, each change once and in order, though it fails now and then.
//
//     accounts    row: name    balance
//     exports                  an export queue: each new balance, for the outside system
//
// The transaction that changes a balance adds it to the queue: if it commits, it will be delivered. The outside system here
// is a class that refuses some deliveries, and does others but loses its answer. It keeps the largest number it has seen of
// each shard, and ignores what is not larger. That is all it needs: at the end it holds what the cluster holds, and has
// seen every balance once, in order.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/export_queue.h"
#include "percolator/observer.h"

namespace {

using percolator::Cluster;
using percolator::Export;
using percolator::ExportQueue;
using percolator::ObserverSpec;
using percolator::ReadWrite;
using percolator::RowIterator;
using percolator::Snapshot;
using percolator::Worker;

[[noreturn]] void Die(const absl::Status& status) {
  std::cerr << "exports: " << status.message() << "\n";
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Die(result.status());
  return *std::move(result);
}

// It keeps numbers and balances in memory; a real one keeps them on its own disk, both in one transaction of its own.
class OutsideSystem {
 public:
  absl::Status Receive(const Export& entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++requests_;
    if (requests_ % 10 == 3) return absl::UnavailableError("busy");
    uint64_t& largest = largest_[entry.shard];
    if (entry.sequence > largest) {
      largest = entry.sequence;
      if (std::stoi(entry.payload) != balances_[entry.key] + 1) ++out_of_order_;
      balances_[entry.key] = std::stoi(entry.payload);
      ++received_;
    }
    if (requests_ % 10 == 7) return absl::UnavailableError("done, but the answer is lost");
    return absl::OkStatus();
  }

  std::map<std::string, int> balances() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return balances_;
  }
  int received() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return received_;
  }
  int requests() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }
  int out_of_order() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return out_of_order_;
  }

 private:
  mutable std::mutex mutex_;
  int requests_ = 0;
  int received_ = 0;
  int out_of_order_ = 0;
  std::map<uint32_t, uint64_t> largest_;
  std::map<std::string, int> balances_;
};

// The change and its export are one transaction.
absl::Status Deposit(ReadWrite& t, const ExportQueue& exports, const std::string& account) {
  const auto balance = t.Get("accounts", account, "balance");
  if (!balance.ok()) return balance.status();
  const std::string next = std::to_string(std::stoi(balance->value_or("0")) + 1);
  if (absl::Status s = t.Set("accounts", account, "balance", next); !s.ok()) return s;
  return exports.Add(t, account, next);
}

void ManyDeposits(Cluster& cluster, const ExportQueue& exports, int threads, int deposits) {
  std::vector<std::thread> clients;
  for (int n = 0; n < threads; ++n) {
    clients.emplace_back([&, n] {
      for (int i = 0; i < deposits; ++i) {
        const std::string account = "account" + std::to_string((n + i) % 10);
        Check(cluster.Transact([&](ReadWrite& t) { return Deposit(t, exports, account); }).status());
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

std::map<std::string, int> Balances(Cluster& cluster) {
  Snapshot now = Check(cluster.Now());
  std::map<std::string, int> balances;
  const std::unique_ptr<RowIterator> rows = now.Scan({.table = "accounts"});
  while (rows->Next()) balances[rows->row().key] = std::stoi(rows->row().columns[0].value);
  Check(rows->status());
  return balances;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Keeps an outside system up to date through an export queue.");
  std::string address = "memory:";
  int threads = 4;
  int deposits = 500;
  app.add_option("--threads", threads)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--deposits", deposits, "Of each thread")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  app.add_option("--cluster", address, "Address of an empty cluster, such as percolator://HOST:PORT")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  // The outside system of this example is in memory and begins with nothing, so the cluster has to begin with nothing, too.
  const auto cluster = Check(Cluster::Open(address));
  const ExportQueue exports("exports", {.shards = 4, .batch = 20});
  Check(cluster->CreateTable("accounts"));
  Check(cluster->CreateTable("exports", ExportQueue::Schema()));
  OutsideSystem outside;
  {
    Worker worker(cluster.get());
    for (ObserverSpec& observer : exports.Observers([&](const Export& entry) { return outside.Receive(entry); })) {
      worker.Observe(std::move(observer));
    }
    Check(worker.Start());
    ManyDeposits(*cluster, exports, threads, deposits);
    Check(worker.WaitUntilIdle(std::chrono::minutes(10)));
  }
  std::cout << threads * deposits << " deposits; the outside system got " << outside.requests()
            << " requests, of which " << outside.received() << " were new to it, and " << outside.out_of_order()
            << " out of order.\n";
  if (outside.out_of_order() != 0 || outside.received() != threads * deposits ||
      outside.balances() != Balances(*cluster)) {
    Die(absl::DataLossError("the outside system does not hold what the cluster holds"));
  }
  std::cout << "It holds what the cluster holds.\n";
  Check(cluster->Close());
  return 0;
}
