// SPDX-License-Identifier: Apache-2.0

// The systematic part of the crash tests: a transaction over three rows, every call that it makes, and every fault of
// that call. Then other clients come, and in every case three things hold:
//
//   all or nothing   one snapshot sees all three new values or all three old ones, by Get and by Scan, now and as of
//                    the time before (T2, T3)
//   truth            the result that the client got is true, forever; an unknown outcome becomes known by Resolve (T10)
//   no traces        after a reader and a writer no lock is left, and the audit finds nothing (T1 to T6, T14)
//
// Requests that are still on their way arrive at different moments: before the others, after a reader, after a writer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "src/base/strings.h"
#include "tests/harness/raw_cells.h"
#include "tests/testing/amount.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

const char* const kRows[] = {"Ann", "Bob", "Joe"};

struct Mode {
  bool one_step = false;
  bool long_values = false;
};

void PrintTo(const Mode& mode, std::ostream* os) {
  *os << (mode.one_step ? "one step" : "two phases") << (mode.long_values ? ", long values" : ", short values");
}

// The moment when requests on their way arrive.
enum class Arrival { kBeforeOthers, kAfterReader, kAfterWriter };

// How other clients find that the client is dead, if it did not finish by itself.
enum class Judgement { kSession, kLease };

std::string Value(const Mode& mode, const std::string& word) {
  return mode.long_values ? word + std::string(300, '.') : word;
}

// One trial: a world, the client whose calls fail, and the others.
class Trial {
 public:
  Trial(const Mode& mode, Arrival arrival, Judgement judgement)
      : mode_(mode), arrival_(arrival), judgement_(judgement), others_(&world_, Options(mode)) {
    WriteByOthers("old");
    before_ = others_->GetSnapshot()->timestamp();
    client_ = std::make_unique<Process>(&world_, Options(mode));
    transaction_ = std::make_unique<Transaction>(**client_, TransactionOptions{.timeout = seconds(3)});
    for (const char* row : kRows) transaction_->Set({kTable, row, kColumn}, Value(mode_, "new"));
    EXPECT_THAT(transaction_->status(), IsOk());
    client_->wire().CountFromHere();
  }

  Wire& wire() { return client_->wire(); }

  // Runs the commit, with its secondaries, and then the others.
  void Go() {
    result_ = transaction_->Commit();
    world_.runtime.LetOthersRun();
    CheckAfterwards();
  }

  // The client stalls at this call, and the others run.
  void StallAt(size_t call, bool before) {
    const auto others_come = [this] {
      Judge();
      const std::string seen = ReadAll();
      EXPECT_TRUE(seen == "old" || seen == "new") << seen;
      WriteByOthers("between");
      between_ = true;
    };
    before ? wire().Before(call, others_come) : wire().After(call, others_come);
  }

 private:
  static ClusterOptions Options(const Mode& mode) {
    ClusterOptions options;
    options.one_step_commit = mode.one_step;
    options.gc_period = Duration(0);
    options.call_timeout = seconds(30);
    return options;
  }

  void Judge() {
    if (judgement_ == Judgement::kSession) {
      client_->LoseSession();
    } else {
      world_.oracle.Advance(11'000'000);
    }
  }

  void WriteByOthers(const std::string& word) {
    EXPECT_THAT(others_->Transact([&](ReadWrite& t) {
      for (const char* row : kRows) t.Set({kTable, row, kColumn}, Value(mode_, word));
    }),
                IsOk());
  }

  // The word that all rows of a view hold; spelled out if they differ.
  std::string Words(const ReadView& view) {
    std::vector<CellName> cells;
    for (const char* row : kRows) cells.push_back({kTable, row, kColumn});
    const auto values = view.GetCells(cells);
    EXPECT_THAT(values, IsOk());
    if (!values.ok()) return "error";
    std::string by_get;
    for (const auto& value : *values) by_get += Word(value.value_or("absent")) + " ";
    std::string by_scan;
    for (const absl::StatusOr<ScannedRow>& row : view.Scan(kTable)) {
      EXPECT_THAT(row, IsOk());
      by_scan += (row.ok() ? Word(row->columns[0].value) : "error") + " ";
    }
    EXPECT_EQ(by_get, by_scan);
    const std::string word = by_get.substr(0, by_get.find(' '));
    return by_get == StrCat(word, " ", word, " ", word, " ") ? word : by_get;
  }
  static std::string Word(const std::string& value) { return value.substr(0, value.find('.')); }

  std::string ReadAll() {
    absl::StatusOr<Snapshot> snapshot = others_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    return Words(*snapshot);
  }
  std::string ReadAllAsOf(Timestamp ts) {
    absl::StatusOr<Snapshot> snapshot = others_->GetSnapshotAt(ts);
    EXPECT_THAT(snapshot, IsOk());
    return Words(*snapshot);
  }

  void CheckAfterwards() {
    if (client_->wire().dead()) Judge();
    client_->wire().ForgetFaults();
    if (arrival_ == Arrival::kBeforeOthers) client_->wire().DeliverLate();
    const std::string seen = ReadAll();
    if (between_) {
      EXPECT_TRUE(seen == "between" || seen == "new") << seen;
    } else {
      EXPECT_TRUE(seen == "old" || seen == "new") << seen;
    }
    CheckTruth(seen);
    if (arrival_ == Arrival::kAfterReader) client_->wire().DeliverLate();
    // In one step, the request of a dead client may commit when it arrives: no client has learned another outcome.
    const bool still_open = mode_.one_step && client_->wire().dead() && seen == "old";
    const std::string again = ReadAll();
    EXPECT_TRUE(again == seen || (still_open && again == "new")) << seen << ", then " << again;
    WriteByOthers("last");
    if (arrival_ == Arrival::kAfterWriter) client_->wire().DeliverLate();
    EXPECT_EQ(ReadAll(), "last");
    EXPECT_EQ(ReadAllAsOf(before_), "old");
    world_.runtime.LetOthersRun();
    EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
    EXPECT_THAT(Audit(world_.store.get()), IsEmpty());
  }

  // T10. The result that a dead client got is unknown.
  void CheckTruth(const std::string& seen) {
    if (client_->wire().dead()) return;
    CommitResult result = result_;
    if (result.outcome == Outcome::kUnknown) {
      const absl::StatusOr<CommitResult> resolved = others_->Resolve(result);
      ASSERT_THAT(resolved, IsOk());
      result = *resolved;
    }
    ASSERT_NE(static_cast<int>(result.outcome), static_cast<int>(Outcome::kUnknown));
    if (result.committed()) {
      EXPECT_EQ(ReadAllAsOf(result.commit_ts), "new");
      EXPECT_NE(ReadAllAsOf(Timestamp(result.commit_ts.value() - 1)), "new");
      EXPECT_TRUE(seen == "new" || between_) << seen;
    } else {
      EXPECT_NE(seen, "new");
    }
  }

  const Mode mode_;
  const Arrival arrival_;
  const Judgement judgement_;
  World world_;
  Process others_;
  std::unique_ptr<Process> client_;
  std::unique_ptr<Transaction> transaction_;
  CommitResult result_;
  Timestamp before_;
  bool between_ = false;  // others have written while the client stalled
};

class CrashEverywhere : public ::testing::TestWithParam<Mode> {
 protected:
  // The calls of a commit without faults, up to the last secondary.
  std::vector<Wire::Call> Calls() {
    Trial trial(GetParam(), Arrival::kBeforeOthers, Judgement::kSession);
    trial.Go();
    std::vector<Wire::Call> calls = trial.wire().calls();
    EXPECT_GE(calls.size(), GetParam().one_step ? 2u : 5u);
    return calls;
  }

  // Runs with these faults, for every moment of arrival and both judgements. Stops at the first failure.
  void TryAll(const std::string& what, const std::function<void(Trial&)>& prepare) {
    for (const Arrival arrival : {Arrival::kBeforeOthers, Arrival::kAfterReader, Arrival::kAfterWriter}) {
      for (const Judgement judgement : {Judgement::kSession, Judgement::kLease}) {
        SCOPED_TRACE(
            StrCat(what, ", arrival ", static_cast<int>(arrival), ", judgement ", static_cast<int>(judgement)));
        Trial trial(GetParam(), arrival, judgement);
        prepare(trial);
        trial.Go();
        ++runs_;
        if (HasFailure()) return;
      }
    }
  }

  int runs_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Modes, CrashEverywhere,
                         ::testing::Values(Mode{false, false}, Mode{false, true}, Mode{true, false}, Mode{true, true}),
                         [](const auto& test) {
                           return StrCat(test.param.one_step ? "OneStep" : "TwoPhases",
                                         test.param.long_values ? "LongValues" : "ShortValues");
                         });

TEST_P(CrashEverywhere, OneFaultAtEveryCall) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const Fault& fault : FaultsOf(calls[k - 1])) {
      TryAll(StrCat("call ", k, " (", calls[k - 1].what, "): ", FaultName(fault.kind), ", rows ", fault.rows),
             [&](Trial& trial) { trial.wire().FailAt(k, fault); });
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(runs_, GetParam().one_step ? 50 : 200);
}

// C10: a stall past the lease, before and after every call, during which others decide.
TEST_P(CrashEverywhere, AStallAtEveryCall) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const bool before : {true, false}) {
      TryAll(StrCat("stall ", before ? "before" : "after", " call ", k, " (", calls[k - 1].what, ")"),
             [&](Trial& trial) { trial.StallAt(k, before); });
      if (HasFailure()) return;
    }
  }
}

// A stall and a fault: the request of the stalled call is also lost, doubled or late.
TEST_P(CrashEverywhere, AStallAndAFaultAtEveryCall) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const Kind kind : {Kind::kLoseRequest, Kind::kLoseReply, Kind::kTwice, Kind::kEchoLate, Kind::kLate}) {
      for (const bool before : {true, false}) {
        TryAll(StrCat("stall ", before ? "before" : "after", " call ", k, " (", calls[k - 1].what, ") and ",
                      FaultName(kind)),
               [&](Trial& trial) {
                 trial.StallAt(k, before);
                 trial.wire().FailAt(k, {.kind = kind});
               });
        if (HasFailure()) return;
      }
    }
  }
}

// Every PERCOLATOR_CRASH_STRIDE-th of all pairs of faults; 1 for all. After a fault the calls differ, so there are a
// few more places than calls.
TEST_P(CrashEverywhere, TwoFaults) {
  const char* const asked = std::getenv("PERCOLATOR_CRASH_STRIDE");
  constexpr int kUsually = Amount(7, 28);
  const auto stride = static_cast<size_t>(asked != nullptr ? std::max(std::atoi(asked), 1) : kUsually);
  size_t pair = 0;
  const size_t places = Calls().size() + 3;
  const std::vector<Kind> first = {Kind::kLoseRequest, Kind::kLoseReply, Kind::kTwice, Kind::kEchoLate, Kind::kLate};
  const std::vector<Kind> second = {Kind::kLoseRequest, Kind::kLoseReply, Kind::kTwice,   Kind::kEchoLate,
                                    Kind::kLate,        Kind::kDieBefore, Kind::kDieAfter};
  for (size_t k = 1; k <= places; ++k) {
    for (size_t j = k + 1; j <= places; ++j) {
      for (const Kind one : first) {
        for (const Kind two : second) {
          if (pair++ % stride != 0) continue;
          TryAll(StrCat("call ", k, ": ", FaultName(one), "; call ", j, ": ", FaultName(two)), [&](Trial& trial) {
            trial.wire().FailAt(k, {.kind = one});
            trial.wire().FailAt(j, {.kind = two});
          });
          if (HasFailure()) return;
        }
      }
    }
  }
}

// The store becomes unreachable at some call, and stays so until the client gives up.
TEST_P(CrashEverywhere, TheStoreBecomesUnreachable) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const bool applied : {false, true}) {
      TryAll(StrCat("from call ", k, " (", calls[k - 1].what, ") on", applied ? ", that one applied" : ""),
             [&](Trial& trial) {
               trial.wire().FailFrom(k, {.kind = Kind::kLoseRequest});
               if (applied) trial.wire().FailAt(k, {.kind = Kind::kLoseReply});
             });
      if (HasFailure()) return;
    }
  }
}

// The store refuses for good: the disk is full, or it has stopped. Each error at each call; with a sanitizer one of
// them.
TEST_P(CrashEverywhere, TheStoreRefuses) {
  const std::vector<Wire::Call> calls = Calls();
  size_t place = 0;
  for (const absl::Status& error : {absl::ResourceExhaustedError("full"), absl::DataLossError("I/O error"),
                                    absl::FailedPreconditionError("stopped")}) {
    for (size_t k = 1; k <= calls.size(); ++k) {
      if (++place % Amount<size_t>(1, 3) != 0) continue;
      for (const bool lasting : {false, true}) {
        TryAll(StrCat("call ", k, " (", calls[k - 1].what, "): ", error.message(), lasting ? " for good" : " once"),
               [&](Trial& trial) {
                 const Fault fault{.kind = Kind::kRefused, .error = error};
                 lasting ? trial.wire().FailFrom(k, fault) : trial.wire().FailAt(k, fault);
               });
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace percolator
