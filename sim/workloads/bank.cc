// SPDX-License-Identifier: Apache-2.0

// Accounts, and transfers between them: the sum of all balances is the same in every snapshot.

#include <charconv>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr int64_t kOpening = 100;

int64_t BalanceOf(const std::optional<std::string>& value) {
  int64_t balance = 0;
  if (value.has_value()) std::from_chars(value->data(), value->data() + value->size(), balance);
  return balance;
}

class Bank final : public Workload {
 public:
  void SetUp(Actor& actor) override {
    actor.ByHand([](Recorded& t) {
      for (const CellName& account : t.actor().scene().cells) {
        t.Set(account, t.actor().Value(std::to_string(kOpening)));
      }
      return absl::OkStatus();
    });
  }

  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(10);
    if (what < 6) {
      actor.Transact([](Recorded& t) { return Transfer(t); });
    } else if (what < 8) {
      actor.Look([](Recorded& t) { return Audit(t); });
    } else if (what < 9) {
      actor.LookBack([](Recorded& t) { return Audit(t); });
    } else {
      actor.Transact([](Recorded& t) { return Audit(t); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Audit(t); });
  }

 private:
  // Moves money from some accounts to the next ones. An empty account is sometimes closed.
  static absl::Status Transfer(Recorded& t) {
    const std::vector<CellName> accounts = t.actor().SomeCells();
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> values, t.Get(accounts));
    std::vector<int64_t> balances;
    for (const std::optional<std::string>& value : values) balances.push_back(BalanceOf(value));
    for (size_t i = 0; i < balances.size(); ++i) {
      const bool all = t.actor().Percent(20);
      const int64_t amount = all ? balances[i] : static_cast<int64_t>(t.actor().Draw(20));
      balances[i] -= amount;
      balances[(i + 1) % balances.size()] += amount;
    }
    for (size_t i = 0; i < accounts.size(); ++i) {
      const bool close = balances[i] == 0 && t.actor().Percent(50);
      if (close) {
        t.Delete(accounts[i]);
      } else {
        t.Set(accounts[i], t.actor().Value(std::to_string(balances[i])));
      }
    }
    return t.actor().Percent(10) ? Audit(t) : absl::OkStatus();
  }

  // The sum of all accounts, read one by one, all together or by scans.
  static absl::Status Audit(Recorded& t) {
    const std::vector<CellName>& accounts = t.actor().scene().cells;
    int64_t sum = 0;
    const uint64_t how = t.actor().Draw(3);
    if (how == 0) {
      for (const CellName& account : accounts) {
        PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, t.Get(account));
        sum += BalanceOf(value);
      }
    } else if (how == 1) {
      PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> values, t.Get(accounts));
      for (const std::optional<std::string>& value : values) sum += BalanceOf(value);
    } else {
      for (const std::string& table : Plan::Tables()) {
        PERCOLATOR_ASSIGN_OR_RETURN(const auto found, t.Scan(table));
        for (const auto& [cell, value] : found) sum += BalanceOf(value);
      }
    }
    const int64_t expected = kOpening * static_cast<int64_t>(accounts.size());
    if (sum != expected) {
      t.actor().scene().Fail("bank",
                             StrCat("T", t.id(), " sees a sum of ", sum, " in all accounts, expected ", expected));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewBank() { return std::make_unique<Bank>(); }

}  // namespace percolator::sim
