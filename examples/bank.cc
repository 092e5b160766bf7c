// A bank: transfers between accounts.
//
// Part one plays figure 4 of the paper: Bob gives Joe 7 dollars. The program is four lines of transaction; what you see is
// the store below it after each step, because the store prints itself: prewrite locks both accounts, the commit point is
// the moment when Bob's lock becomes a write record, and Joe's follows.
//
// Part two does it for real, in a folder on disk: many threads move money between many accounts, while others add all of
// it up in snapshots. Not a cent is ever missing, and the folder can be opened again at once.

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/inspect.h"

namespace {

using percolator::Cell;
using percolator::Cluster;
using percolator::ClusterOptions;
using percolator::ClusterStats;
using percolator::Coordinator;
using percolator::DescribeCell;
using percolator::Duration;
using percolator::Family;
using percolator::FamilyName;
using percolator::MutateResult;
using percolator::Mutation;
using percolator::NewLocalCoordinator;
using percolator::NewMemoryStore;
using percolator::Oracle;
using percolator::ReadWrite;
using percolator::Row;
using percolator::RowIterator;
using percolator::RowMutation;
using percolator::RowRange;
using percolator::RowRead;
using percolator::ScanPage;
using percolator::ScanRequest;
using percolator::Snapshot;
using percolator::Store;
using percolator::TableInfo;
using percolator::Timestamp;

constexpr char kTable[] = "accounts";
constexpr char kColumn[] = "bal";

[[noreturn]] void Die(const absl::Status& status) {
  std::cerr << "bank: " << status.message() << "\n";
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Die(result.status());
  return *std::move(result);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

// The whole of it: what a user of the library writes.
absl::StatusOr<Timestamp> Transfer(Cluster& bank, const std::string& from, const std::string& to, int amount) {
  return bank.Transact([&](ReadWrite& t) -> absl::Status {
    auto balances = t.Get({{kTable, from, kColumn}, {kTable, to, kColumn}});
    if (!balances.ok()) return balances.status();
    const int from_has = std::stoi((*balances)[0].value_or("0"));
    const int to_has = std::stoi((*balances)[1].value_or("0"));
    if (from_has < amount) return absl::FailedPreconditionError(from + " has not enough");
    if (absl::Status s = t.Set(kTable, from, kColumn, std::to_string(from_has - amount)); !s.ok()) return s;
    return t.Set(kTable, to, kColumn, std::to_string(to_has + amount));
  });
}

// --- Part one: a store that prints itself, and an oracle that counts, to see the figure's own timestamps.

class CountingOracle : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override { return Timestamp(next_.fetch_add(count)); }

 private:
  std::atomic<uint64_t> next_{4};  // 4 names the session of this process; the first transaction starts at 5
};

// Passes everything on, one row mutation at a time, and prints the rows after each.
class PrintingStore : public Store {
 public:
  explicit PrintingStore(Store* store) : store_(store) {}

  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    std::vector<absl::StatusOr<MutateResult>> results;
    for (const RowMutation& mutation : mutations) {
      results.push_back(store_->Mutate({mutation})[0]);
      Print(mutation);
    }
    return results;
  }

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override { return store_->Read(reads); }
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override { return store_->Scan(request); }
  absl::Status RaiseSafePoint(Timestamp ts) override { return store_->RaiseSafePoint(ts); }
  absl::StatusOr<Timestamp> SafePoint() override { return store_->SafePoint(); }
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& table) override {
    return store_->SampleRowKeys(table);
  }
  absl::Status CreateTable(const TableInfo& info) override { return store_->CreateTable(info); }
  absl::Status DropTable(const std::string& name) override { return store_->DropTable(name); }
  absl::StatusOr<std::vector<TableInfo>> ListTables() override { return store_->ListTables(); }
  absl::Status Close() override { return store_->Close(); }

 private:
  static std::string StepOf(const RowMutation& mutation) {
    for (const Mutation& m : mutation.mutations) {
      if (m.kind == Mutation::Kind::kSet && m.family == Family::kLock) return "prewrite " + mutation.row;
    }
    return "commit " + mutation.row;
  }

  void Print(const RowMutation& mutation) {
    const ScanPage page =
        Check(store_->Scan({kTable, RowRange::All(), {{Family::kData}, {Family::kLock}, {Family::kWrite}}}));
    std::cout << StepOf(mutation) << "\n";
    for (const Row& row : page.rows) {
      for (const Cell& cell : row.cells) {
        std::cout << "    " << std::left << std::setw(5) << row.key << " " << std::setw(10)
                  << cell.column + ":" + std::string(FamilyName(cell.family)) << " " << std::right << std::setw(2)
                  << cell.timestamp.value() << ": " << DescribeCell(cell) << "\n";
      }
    }
    std::cout << "\n";
  }

  Store* const store_;
};

void Figure4() {
  std::cout << "Figure 4 of the paper: Bob gives Joe 7 dollars. The raw cells of the store after each step:\n\n";
  const std::unique_ptr<Store> memory = NewMemoryStore();
  PrintingStore store(memory.get());
  CountingOracle oracle;
  const std::unique_ptr<Coordinator> coordinator = NewLocalCoordinator(&oracle);
  ClusterOptions options;
  options.commit_in_one_step = false;  // the two phases are what we want to see
  options.background_commits = 0;      // and in their order: Commit itself commits Joe's row, too
  options.gc_period = Duration(0);
  const auto bank = Check(Cluster::Assemble({&store, &oracle, coordinator.get()}, options));
  Check(bank->CreateTable(kTable));

  std::cout << "--- Bob gets 10 dollars and Joe 2: a transaction from 5 to 6\n\n";
  const Timestamp before = Check(bank->Transact([](ReadWrite& t) -> absl::Status {
    if (absl::Status s = t.Set(kTable, "Bob", kColumn, "10"); !s.ok()) return s;
    return t.Set(kTable, "Joe", kColumn, "2");
  }));
  std::cout
      << "--- The transfer: a transaction from 7 to 8. The commit of Bob's row, the primary's, is the commit point\n\n";
  Check(Transfer(*bank, "Bob", "Joe", 7));

  Snapshot now = Check(bank->Now());
  Snapshot then = Check(bank->AsOf(before));
  std::cout << "Bob has " << *Check(now.Get(kTable, "Bob", kColumn)) << " and Joe has "
            << *Check(now.Get(kTable, "Joe", kColumn)) << "; as of timestamp " << before << " they had "
            << *Check(then.Get(kTable, "Bob", kColumn)) << " and " << *Check(then.Get(kTable, "Joe", kColumn))
            << ".\n\n";
}

// --- Part two

struct Settings {
  std::string cluster;
  int accounts = 1000;
  int threads = 8;
  int seconds = 3;
};
constexpr int kOpeningBalance = 100;

std::string Account(int i) { return "account" + std::to_string(i); }

// Everything, in one snapshot.
int64_t Total(Cluster& bank) {
  Snapshot now = Check(bank.Now());
  int64_t total = 0;
  const std::unique_ptr<RowIterator> rows = now.Scan({.table = kTable});
  while (rows->Next()) total += std::stoll(rows->row().columns[0].value);
  Check(rows->status());
  return total;
}

// Opens the accounts, unless an earlier run has.
void OpenAccounts(Cluster& bank, int accounts) {
  const absl::Status created = bank.CreateTable(kTable);
  if (absl::IsAlreadyExists(created)) return;
  Check(created);
  Check(bank.Transact([&](ReadWrite& t) {
    for (int i = 0; i < accounts; ++i) {
      if (absl::Status s = t.Set(kTable, Account(i), kColumn, std::to_string(kOpeningBalance)); !s.ok()) return s;
    }
    return absl::OkStatus();
  }));
}

void ManyTransfers(const Settings& settings) {
  const auto bank = Check(Cluster::Open(settings.cluster));
  OpenAccounts(*bank, settings.accounts);
  const int64_t expected = Total(*bank);
  std::cout << settings.threads << " threads transfer money for " << settings.seconds << " seconds, in "
            << settings.cluster << ", which holds " << expected << " dollars:\n";

  std::atomic<bool> stop{false};
  std::atomic<int64_t> transfers{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < settings.threads; ++n) {
    threads.emplace_back([&, n] {
      std::mt19937 random(n);
      std::uniform_int_distribution<int> any(0, settings.accounts - 1);
      while (!stop) {
        const int from = any(random);
        const int to = any(random);
        if (from == to) continue;
        const auto done = Transfer(*bank, Account(from), Account(to), 1 + any(random) % 20);
        if (done.ok()) {
          ++transfers;
        } else if (!absl::IsFailedPrecondition(done.status())) {
          Die(done.status());
        }
      }
    });
  }
  for (int second = 1; second <= settings.seconds; ++second) {
    const int64_t before = transfers;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const int64_t total = Total(*bank);
    std::cout << "  " << transfers - before << " transfers/s, total " << total << (total == expected ? "" : "  WRONG")
              << std::endl;
    if (total != expected) Die(absl::DataLossError("money was lost or made"));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const ClusterStats stats = bank->stats();
  std::cout << "  " << stats.commits << " commits, " << stats.conflicts << " conflicts, which were run again.\n";
  Check(bank->Close());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A bank on Percolator: figure 4 of the paper step by step, then many transfers at once on disk.");
  Settings settings;
  bool figure_only = false;
  app.add_option("--cluster", settings.cluster, "Address, such as rocksdb:FOLDER (default: a temporary folder)");
  app.add_option("--accounts", settings.accounts)->capture_default_str()->check(CLI::Range(2, 10'000));
  app.add_option("--threads", settings.threads)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--seconds", settings.seconds)->capture_default_str()->check(CLI::Range(1, 3600));
  app.add_flag("--figure-only", figure_only, "Only figure 4");
  CLI11_PARSE(app, argc, argv);

  Figure4();
  if (figure_only) return 0;
  std::string temporary;
  if (settings.cluster.empty()) {
    temporary = (std::filesystem::temp_directory_path() / "percolator-bank-XXXXXX").string();
    if (mkdtemp(temporary.data()) == nullptr) Die(absl::InternalError("can't create a temporary folder " + temporary));
    settings.cluster = "rocksdb:" + temporary;
  }
  ManyTransfers(settings);
  if (!temporary.empty()) std::filesystem::remove_all(temporary);
  return 0;
}
