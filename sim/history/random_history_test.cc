// SPDX-License-Identifier: Apache-2.0

// The checkers on random histories. They accept all correct ones. On histories with one random edit they agree with the
// reference checker, which tries every order.
//
// PERCOLATOR_HISTORY_SCALE=n does n times as much.

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/history/graph_checker.h"
#include "sim/history/reference_checker.h"
#include "sim/history/sweep_checker.h"
#include "sim/history/toy_store.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

uint64_t Scaled(uint64_t count) {
  const char* const text = std::getenv("PERCOLATOR_HISTORY_SCALE");
  return text == nullptr ? count : count * std::stoull(text);
}

TxnId LastOf(const History& history) { return static_cast<TxnId>(history.transactions.size() - 1); }

std::string Tell(const History& history) {
  std::string out;
  for (TxnId txn = 0; txn < history.transactions.size(); ++txn) {
    const TxnRecord& record = history.transactions[txn];
    const std::string over = record.complete == TxnRecord::kNever ? "?" : std::to_string(record.complete);
    out += StrCat(record.invoke, "-", over, record.as_of ? " as of " : " ", Describe(history, txn), "\n");
  }
  return out;
}

// From few keys and much concurrency to many keys and little.
ToyOptions RandomOptions(std::mt19937_64* random, bool lists) {
  ToyOptions options;
  options.lists = lists;
  options.transactions = 100;
  options.keys = static_cast<int>(1 + (*random)() % 10);
  options.processes = static_cast<int>(1 + (*random)() % 12);
  options.operations_max = static_cast<int>(1 + (*random)() % 6);
  options.appends_per_key = static_cast<int>(4 + (*random)() % 60);
  options.blind_percent = static_cast<int>((*random)() % 60);
  options.unknown_percent = static_cast<int>((*random)() % 30);
  options.verify_percent = static_cast<int>((*random)() % 30);
  return options;
}

TEST(RandomHistoryTest, NoFalseAlarmOnLists) {
  size_t pivots = 0;
  size_t dependencies = 0;
  for (uint64_t seed = 0; seed < Scaled(600); ++seed) {
    std::mt19937_64 random(seed);
    const History history = RandomHistory(seed, RandomOptions(&random, /*lists=*/true));
    const GraphReport graph = CheckGraph(history, {.final_read = LastOf(history)});
    ASSERT_TRUE(graph.findings.ok()) << "seed " << seed << "\n" << graph.findings << Tell(history);
    const Findings sweep = CheckSweep(history);
    ASSERT_TRUE(sweep.ok()) << "seed " << seed << "\n" << sweep << Tell(history);
    pivots += graph.write_skew_pivots;
    dependencies += graph.dependencies;
  }
  EXPECT_GT(pivots, Scaled(100)) << "too tame: this says little";
  EXPECT_GT(dependencies, Scaled(60'000));
}

TEST(RandomHistoryTest, NoFalseAlarmOnValues) {
  for (uint64_t seed = 0; seed < Scaled(600); ++seed) {
    std::mt19937_64 random(seed);
    const History history = RandomHistory(seed, RandomOptions(&random, /*lists=*/false));
    const Findings sweep = CheckSweep(history);
    ASSERT_TRUE(sweep.ok()) << "seed " << seed << "\n" << sweep << Tell(history);
  }
}

// One random change to a history.
class Editor {
 public:
  Editor(uint64_t seed, History* history) : random_(seed), history_(*history) {}

  void EditRead() {
    TxnOperation* read = AnyOperation(TxnOperation::Kind::kRead);
    if (read == nullptr) return;
    std::vector<int64_t> list = ParseList(ListText(read->value)).value_or(std::vector<int64_t>());
    switch (Below(6)) {
      case 0:
        if (!list.empty()) list.pop_back();
        break;
      case 1:
        if (!list.empty()) list.erase(list.begin());
        break;
      case 2:
        if (list.size() > 1) std::swap(list[0], list[Below(list.size())]);
        break;
      case 3:
        list.push_back(static_cast<int64_t>(Below(20)));
        break;
      default:
        if (const TxnOperation* other = AnyOperation(TxnOperation::Kind::kRead); other->key == read->key) {
          read->value = other->value;
        }
        return;
    }
    read->value = list.empty() ? std::nullopt : std::optional(FormatList(list));
  }

  void EditWrite() {
    if (TxnOperation* write = AnyOperation(TxnOperation::Kind::kWrite)) write->value = std::to_string(Below(5));
  }

  void DropOperation() {
    std::vector<TxnOperation>& operations = AnyTransaction().operations;
    if (!operations.empty()) operations.erase(operations.begin() + static_cast<ptrdiff_t>(Below(operations.size())));
  }

  void EditOutcome(TxnOutcome outcome) { AnyTransaction().outcome = outcome; }

  // Exchanges two events in the order that clients see.
  void SwapOrder() {
    uint64_t* a = AnyOrder();
    uint64_t* b = AnyOrder();
    std::swap(*a, *b);
    const auto is_upside_down = [](const TxnRecord& txn) { return txn.invoke >= txn.complete; };
    if (std::any_of(history_.transactions.begin(), history_.transactions.end(), is_upside_down)) std::swap(*a, *b);
  }

  void SwapTimestamps() {
    Timestamp* a = AnyTimestamp();
    Timestamp* b = AnyTimestamp();
    if (*a != Timestamp() && *b != Timestamp()) std::swap(*a, *b);
  }

  void CopyTimestamp() {
    Timestamp* a = AnyTimestamp();
    const Timestamp* b = AnyTimestamp();
    if (*a != Timestamp() && *b != Timestamp()) *a = *b;
  }

  size_t Below(size_t n) { return random_() % n; }

 private:
  TxnRecord& AnyTransaction() { return history_.transactions[Below(history_.transactions.size())]; }
  uint64_t* AnyOrder() {
    TxnRecord& txn = AnyTransaction();
    return txn.complete != TxnRecord::kNever && Below(2) == 0 ? &txn.complete : &txn.invoke;
  }
  Timestamp* AnyTimestamp() {
    TxnRecord& txn = AnyTransaction();
    return Below(2) == 0 ? &txn.start_ts : &txn.commit_ts;
  }
  TxnOperation* AnyOperation(TxnOperation::Kind kind) {
    std::vector<TxnOperation*> found;
    for (TxnRecord& txn : history_.transactions) {
      for (TxnOperation& operation : txn.operations) {
        if (operation.kind == kind) found.push_back(&operation);
      }
    }
    return found.empty() ? nullptr : found[Below(found.size())];
  }

  std::mt19937_64 random_;
  History& history_;
};

struct NamedBug {
  ToyBug bug;
  const char* name;
};
constexpr NamedBug kBugs[] = {
    {ToyBug::kReadsNewest, "reads newest"},
    {ToyBug::kReadsBlink, "reads blink"},
    {ToyBug::kNoConflictCheck, "no conflict check"},
    {ToyBug::kFailureIsVisible, "failure is visible"},
    {ToyBug::kTornCommit, "torn commit"},
    {ToyBug::kOldSnapshots, "old snapshots"},
};

ToyOptions SmallOptions(uint64_t seed) {
  ToyOptions options;
  options.transactions = 4;
  options.processes = static_cast<int>(2 + seed % 3);
  options.keys = static_cast<int>(1 + seed % 3);
  options.operations_max = 3;
  options.blind_percent = 30;
  return options;
}

// The final read counts as such if it began after all others were over.
std::optional<TxnId> FinalRead(const History& history) {
  const TxnId last = LastOf(history);
  const uint64_t invoke = history.transactions[last].invoke;
  for (const TxnRecord& txn : history.transactions) {
    if (txn.outcome == TxnOutcome::kOk && txn.complete > invoke && &txn != &history.transactions[last]) return {};
  }
  return last;
}

TEST(RandomHistoryTest, GraphAgreesWithTheReferenceAfterOneEdit) {
  int harmful = 0;
  int harmless = 0;
  for (uint64_t seed = 0; seed < Scaled(6'000); ++seed) {
    const History before = RandomHistory(seed, SmallOptions(seed));
    History history = before;
    Editor editor(seed, &history);
    switch (editor.Below(8)) {
      case 0:
        editor.EditOutcome(TxnOutcome::kOk);
        break;
      case 1:
        editor.EditOutcome(TxnOutcome::kFail);
        break;
      case 2:
        editor.EditOutcome(TxnOutcome::kInfo);
        break;
      case 3:
        editor.DropOperation();
        break;
      case 4:
        editor.SwapOrder();
        break;
      default:
        editor.EditRead();
    }
    if (Tell(history) == Tell(before)) continue;
    const bool is_right = HasExplanation(history);
    const Findings findings = CheckGraph(history, {.final_read = FinalRead(history)}).findings;
    ASSERT_EQ(findings.ok(), is_right) << "seed " << seed << "\n" << findings << Tell(history);
    ++(is_right ? harmless : harmful);
  }
  std::cout << "one edit: " << harmful << " harmful, all detected; " << harmless << " harmless, none accused\n";
  EXPECT_GT(harmful, harmless / 10);
  EXPECT_GT(harmless, harmful / 10);
}

TEST(RandomHistoryTest, SweepAgreesWithTheReferenceAfterOneEdit) {
  int harmful = 0;
  int harmless = 0;
  int without_any_explanation = 0;
  for (uint64_t seed = 0; seed < Scaled(6'000); ++seed) {
    ToyOptions options = SmallOptions(seed);
    options.unknown_percent = 0;
    options.lists = seed % 2 == 0;
    const History before = RandomHistory(seed, options);
    History history = before;
    Editor editor(seed, &history);
    switch (editor.Below(8)) {
      case 0:
        editor.EditOutcome(TxnOutcome::kFail);
        break;
      case 1:
        editor.DropOperation();
        break;
      case 2:
        editor.SwapOrder();
        break;
      case 3:
        editor.SwapTimestamps();
        break;
      case 4:
        editor.CopyTimestamp();
        break;
      case 5:
        editor.EditWrite();
        break;
      default:
        editor.EditRead();
    }
    if (Tell(history) == Tell(before)) continue;
    const bool is_right = TimestampsExplain(history);
    const Findings findings = CheckSweep(history);
    ASSERT_EQ(findings.ok(), is_right) << "seed " << seed << "\n" << findings << Tell(history);
    ++(is_right ? harmless : harmful);
    if (HasExplanation(history)) continue;
    ASSERT_FALSE(findings.ok()) << "no assignment of timestamps explains seed " << seed << "\n" << Tell(history);
    ++without_any_explanation;
  }
  std::cout << "one edit: " << harmful << " harmful, all detected, " << without_any_explanation
            << " of them whatever the timestamps; " << harmless << " harmless, none accused\n";
  EXPECT_GT(without_any_explanation, harmful / 10);
  EXPECT_GT(harmless, harmful / 10);
}

TEST(RandomHistoryTest, AgreesWithTheReferenceOnStoresWithBugs) {
  for (const auto& [bug, name] : kBugs) {
    SCOPED_TRACE(name);
    int harmful = 0;
    const uint64_t seeds = Scaled(300);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      ToyOptions options = SmallOptions(seed);
      options.unknown_percent = 0;
      options.bug = bug;
      const History history = RandomHistory(seed, options);
      const Findings graph = CheckGraph(history, {.final_read = LastOf(history)}).findings;
      const Findings sweep = CheckSweep(history);
      ASSERT_EQ(graph.ok(), HasExplanation(history)) << "seed " << seed << "\n" << graph << Tell(history);
      ASSERT_EQ(sweep.ok(), TimestampsExplain(history)) << "seed " << seed << "\n" << sweep << Tell(history);
      harmful += graph.ok() ? 0 : 1;
    }
    std::cout << name << ": shows in " << harmful << " of " << seeds << " histories\n";
    EXPECT_GT(harmful, 0);
  }
}

TEST(RandomHistoryTest, EveryBugOfAStoreShowsInALargeHistory) {
  for (const auto& [bug, name] : kBugs) {
    for (uint64_t seed = 0; seed < Scaled(20); ++seed) {
      SCOPED_TRACE(StrCat(name, ", seed ", seed));
      ToyOptions options;
      options.bug = bug;
      const History history = RandomHistory(seed, options);
      EXPECT_FALSE(CheckGraph(history, {.final_read = LastOf(history)}).findings.ok());
      EXPECT_FALSE(CheckSweep(history).ok());
    }
  }
}

// In a large history a changed read always contradicts the timestamps; the graph checker detects most.
TEST(RandomHistoryTest, ChangedReadInALargeHistory) {
  int changed = 0;
  int seen_by_graph = 0;
  for (uint64_t seed = 0; seed < Scaled(200); ++seed) {
    ToyOptions options;
    options.unknown_percent = 0;
    const History before = RandomHistory(seed, options);
    History history = before;
    Editor(seed, &history).EditRead();
    if (Tell(history) == Tell(before)) continue;
    ++changed;
    ASSERT_FALSE(CheckSweep(history).ok()) << "seed " << seed;
    seen_by_graph += CheckGraph(history, {.final_read = LastOf(history)}).findings.ok() ? 0 : 1;
  }
  std::cout << "one read changed among 200 transactions: " << changed << " times, seen by the graph checker "
            << seen_by_graph << " times\n";
  EXPECT_GT(changed, static_cast<int>(Scaled(100)));
  EXPECT_GT(seen_by_graph, changed * 8 / 10);
}

// CPU time of this process, so that the load of the machine does not count.
template <typename Check>
double SecondsOf(const Check& check) {
  const std::clock_t begin = std::clock();
  check();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(RandomHistoryTest, Speed) {
  ToyOptions options;
  options.transactions = static_cast<int>(Scaled(100'000));
  options.processes = 16;
  options.keys = 50;
  options.appends_per_key = 256;
  const History history = RandomHistory(1, options);
  GraphReport graph;
  Findings sweep;
  const double graph_seconds = SecondsOf([&] { graph = CheckGraph(history, {.final_read = LastOf(history)}); });
  const double sweep_seconds = SecondsOf([&] { sweep = CheckSweep(history); });
  std::cout << history.transactions.size() << " transactions, " << graph.dependencies << " dependencies, "
            << graph.write_skew_pivots << " pivots: graph " << graph_seconds << " s, sweep " << sweep_seconds << " s\n";
  EXPECT_TRUE(graph.findings.ok());
  EXPECT_TRUE(sweep.ok());
}

}  // namespace
}  // namespace percolator
