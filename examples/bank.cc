// SPDX-License-Identifier: Apache-2.0

// A bank. Part one is figure 4 of the paper: Bob gives Joe 7 dollars, and the store prints its cells after each step.
// Part two has many accounts: threads move money, while snapshots add all of it up. Not a cent is ever missing.
// `bank rocksdb:DIR` keeps this bank in a folder, and continues with it in the next run.

#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/status_macros.h"

namespace {

using percolator::Cluster;
using percolator::Family;
using percolator::ReadWrite;
using percolator::RowMutation;
using percolator::Timestamp;

constexpr percolator::Column<int64_t> kBalance("accounts", "bal");

// Returns the new balance of `from`.
absl::StatusOr<int64_t> Transfer(const Cluster& bank, const std::string& from, const std::string& to, int64_t amount) {
  return bank.Transact([&](ReadWrite& t) -> absl::StatusOr<int64_t> {  // retried on conflict
    PERCOLATOR_ASSIGN_OR_RETURN(const auto balances, t.GetRows(kBalance, {from, to}));
    const int64_t left = balances[0].value_or(0) - amount;
    if (left < 0) return absl::FailedPreconditionError(from + " has insufficient funds");
    t.Set(kBalance, from, left);
    t.Set(kBalance, to, balances[1].value_or(0) + amount);
    return left;
  });
}

// Part one: a store that changes one row at a time, and prints all rows after each.
class PrintingStore : public percolator::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::vector<absl::StatusOr<percolator::MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    std::vector<absl::StatusOr<percolator::MutateResult>> results;
    for (const RowMutation& mutation : mutations) {
      results.push_back(store()->Mutate({mutation})[0]);
      const bool prewrite = mutation.condition.quantifier == percolator::Condition::Quantifier::kNone;
      std::cout << "\n" << (prewrite ? "prewrite " : "commit ") << mutation.row << "\n";
      const percolator::ScanRequest all{"accounts", {}, {{Family::kData}, {Family::kLock}, {Family::kWrite}}};
      const percolator::ScanPage page = store()->Scan(all).value_or(percolator::ScanPage());
      for (const auto& row : page.rows) {
        for (const auto& cell : row.cells) {
          std::cout << "    " << row.key << "\t" << cell.column << ":" << FamilyName(cell.family) << "\t"
                    << cell.timestamp << ": " << DescribeCell(cell) << "\n";
        }
      }
    }
    return results;
  }
  std::vector<percolator::DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    return Store::MutateThenDraw(mutations);  // NOLINT(bugprone-parent-virtual-call): calls Mutate
  }
};

struct CountingOracle : percolator::Oracle {
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override { return Timestamp(next.fetch_add(count)); }
  std::atomic<uint64_t> next{1};
};

absl::Status Figure4() {
  const auto store = std::make_shared<PrintingStore>(percolator::NewMemoryStore());
  const auto oracle = std::make_shared<CountingOracle>();
  const percolator::Parts parts{store, oracle, percolator::NewLocalCoordinator(oracle.get())};
  // In two phases, and in their order: Commit itself commits Joe's row, too.
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster bank, Assemble(parts, {.one_step_commit = false, .max_background_commits = 0}));
  PERCOLATOR_RETURN_IF_ERROR(bank.EnsureTable("accounts"));
  oracle->next = 5;  // as in the figure
  std::cout << "Bob gets 10 dollars and Joe 2: a transaction from 5 to 6.\n";
  percolator::CommitResult funded;
  const auto fund = [](ReadWrite& t) {
    t.Set(kBalance, "Bob", 10);
    t.Set(kBalance, "Joe", 2);
  };
  PERCOLATOR_RETURN_IF_ERROR(bank.Transact(fund, {}, &funded));
  std::cout << "\nBob gives Joe 7: a transaction from 7 to 8. Its commit point is the commit of Bob's row.\n";
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t left, Transfer(bank, "Bob", "Joe", 7));
  PERCOLATOR_ASSIGN_OR_RETURN(percolator::Snapshot then, bank.GetSnapshotAt(funded.commit_ts));
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t had, then.Get(kBalance, "Bob", 0));
  std::cout << "\nBob has " << left << " dollars; at timestamp " << funded.commit_ts << " he had " << had << ".\n\n";
  return bank.Close();
}

// Part two: in the beginning, each account has 100 dollars.
constexpr int kAccounts = 1000;
std::string Account(uint64_t i) { return "account" + std::to_string(i % kAccounts); }

absl::Status TransferAtRandom(const Cluster& bank, int seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t from = random();
    const uint64_t to = from + 1 + random() % (kAccounts - 1);
    absl::Status done = Transfer(bank, Account(from), Account(to), random() % 20).status();
    if (!done.ok() && !absl::IsFailedPrecondition(done)) return done;
  }
  return absl::OkStatus();
}

absl::Status CheckTotal(const Cluster& bank) {
  PERCOLATOR_ASSIGN_OR_RETURN(percolator::Snapshot now, bank.GetSnapshot());  // takes no locks
  int64_t total = 0;
  for (const auto& account : now.Scan(kBalance)) {
    PERCOLATOR_RETURN_IF_ERROR(account.status());
    total += account->value;
  }
  return total == kAccounts * 100 ? absl::OkStatus() : absl::DataLossError("the total is " + std::to_string(total));
}

absl::Status Run(const std::string& address) {
  PERCOLATOR_RETURN_IF_ERROR(Figure4());
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster bank, Cluster::Open(address));
  PERCOLATOR_RETURN_IF_ERROR(bank.EnsureTable("accounts"));
  PERCOLATOR_RETURN_IF_ERROR(bank.Transact([](ReadWrite& t) -> absl::Status {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto first, t.Get(kBalance, Account(0)));
    for (int i = 0; i < kAccounts && !first.has_value(); ++i) t.Set(kBalance, Account(i), 100);
    return absl::OkStatus();
  }));
  std::vector<std::future<absl::Status>> clients;
  for (int n = 0; n < 8; ++n) clients.push_back(std::async(std::launch::async, TransferAtRandom, bank, n));
  int checks = 0;
  for (; clients[0].wait_for(std::chrono::seconds(0)) == std::future_status::timeout; ++checks) {
    PERCOLATOR_RETURN_IF_ERROR(CheckTotal(bank));
  }
  for (auto& client : clients) PERCOLATOR_RETURN_IF_ERROR(client.get());
  PERCOLATOR_RETURN_IF_ERROR(CheckTotal(bank));
  std::cout << "The total was right " << checks << " times, during " << bank.metrics().commits << " commits.\n";
  return bank.Close();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "memory:");
  if (!status.ok()) std::cerr << "bank: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
