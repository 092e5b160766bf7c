// SPDX-License-Identifier: Apache-2.0

// Nothing is lost, whichever process dies and when: one process does a part of a chain of observers. Every call that it
// makes to the store and the oracle fails in every way. Then another process finishes the work, as a worker does: it
// uses only what it finds in the family notify. In every case:
//
//   fixpoint    the cells that observers have derived follow from the sources (N1)
//   once        no observer has committed more often than its observed cells have changed (N2)
//   no traces   no marks and no locks are left, and the audit finds nothing (T1 to T6, N1, N2)
//
// The chain, in the table docs:
//
//     Bob/contents --copy--> Joe/middle --count--> Zoe/count
//                     \--> hot/touched --sum (weak)--> hot/sum
//
// Bob/copies counts the commits of "copy", Zoe/count those of "count".
//
// In the terms of docs/invariants.md, the calls of a writer of an observed cell are the crash points C1 to C9 (C5, C6
// and C8 with marks), and those of a run are W1, W2 and W3. Stalls with a newer write are W4, late and doubled requests
// W5, stalls during which another worker comes W6.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "percolator/cluster.h"
#include "src/base/strings.h"
#include "src/observe/quarantine.h"
#include "src/observe/registry.h"
#include "src/observe/run.h"
#include "src/txn/tables.h"
#include "src/txn/transaction_core.h"
#include "tests/harness/raw_cells.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using Kind = Fault::Kind;

constexpr char kDocs[] = "docs";
constexpr uint32_t kMaxChain = 10;

struct Mode {
  bool one_step = false;
};

void PrintTo(const Mode& mode, std::ostream* os) { *os << (mode.one_step ? "one step" : "two phases"); }

// The moment when requests on their way arrive, and how others find that a client is dead.
enum class Arrival { kBeforeOthers, kAfterOthers };
enum class Judgement { kSession, kLease };

Engine* EngineOf(Process& process) { return process->engine().get(); }

absl::Status Increment(ReadWrite& t, const char* row, const char* column) {
  const absl::StatusOr<std::optional<std::string>> old = t.Get({kDocs, row, column});
  if (!old.ok()) return old.status();
  t.Set({kDocs, row, column}, std::to_string(old->has_value() ? std::stoi(**old) + 1 : 1));
  return absl::OkStatus();
}

// The observers.
absl::Status Copy(ReadWrite& t, const Notification& n) {
  const absl::StatusOr<std::optional<std::string>> value = t.Get(n.cell);
  if (!value.ok()) return value.status();
  value->has_value() ? t.Set({kDocs, "Joe", "middle"}, **value) : t.Delete({kDocs, "Joe", "middle"});
  t.Notify({kDocs, "hot", "touched"});
  return Increment(t, "Bob", "copies");
}
absl::Status Count(ReadWrite& t, const Notification& /*n*/) { return Increment(t, "Zoe", "count"); }
// Idempotent over the state that it finds, as weak observers have to be.
absl::Status Sum(ReadWrite& t, const Notification& /*n*/) {
  const absl::StatusOr<std::optional<std::string>> middle = t.Get({kDocs, "Joe", "middle"});
  if (!middle.ok()) return middle.status();
  t.Set({kDocs, "hot", "sum"}, "sum of " + middle->value_or("nothing"));
  return absl::OkStatus();
}

struct TestObserver {
  ObserverInfo info;
  ObserverFunction run;
};

const std::vector<TestObserver>& Observers() {
  static const auto& observers = *new std::vector<TestObserver>{
      {{"copy", kDocs, "contents", NotificationKind::kStrong}, Copy},
      {{"count", kDocs, "middle", NotificationKind::kStrong}, Count},
      {{"sum", kDocs, "touched", NotificationKind::kWeak}, Sum},
  };
  return observers;
}

const TestObserver& ObserverOf(const std::string& column) {
  for (const TestObserver& observer : Observers()) {
    if (observer.info.column == column) return observer;
  }
  ADD_FAILURE() << "no observer of " << column;
  return Observers()[0];
}

RunOutcome RunFor(Process& process, const CellName& cell) {
  const TestObserver& observer = ObserverOf(cell.column);
  return RunObserver(EngineOf(process), {&observer.info, &observer.run, cell, Timestamp::Infinity(), kMaxChain});
}

// One trial: a world, the client whose calls fail, and the others.
class Trial {
 public:
  Trial(const Mode& mode, Arrival arrival, Judgement judgement)
      : mode_(mode), arrival_(arrival), judgement_(judgement), others_((MakeTable(&world_), &world_), Options(mode)) {
    std::vector<ObserverInfo> infos;
    for (const TestObserver& observer : Observers()) infos.push_back(observer.info);
    EXPECT_THAT(StoreObservers(EngineOf(others_), infos, false), IsOk());
    WriteByOthers("old");
    Finish();
    client_ = std::make_unique<Process>(&world_, Options(mode));
  }

  Process& client() { return *client_; }
  Wire& wire() { return client_->wire(); }

  void WriteByOthers(const std::string& value) {
    EXPECT_THAT(others_->Transact([&](ReadWrite& t) { t.Set({kDocs, "Bob", "contents"}, value); }), IsOk());
  }
  void DeleteByOthers() {
    EXPECT_THAT(others_->Transact([](ReadWrite& t) { t.Delete({kDocs, "Bob", "contents"}); }), IsOk());
  }

  // Runs another worker until it finds no more work.
  void Finish() {
    AdvanceLease();
    for (int i = 0; i < 100; ++i) {
      const std::vector<FoundMark> marks = Marks();
      if (marks.empty()) return;
      for (const FoundMark& mark : marks) {
        if (mark.pending) {
          EXPECT_THAT(SettlePending(EngineOf(others_), mark), IsOk());
        } else {
          RunFor(others_, mark.cell);
        }
      }
    }
    ADD_FAILURE() << "it does not end";
  }

  std::vector<FoundMark> Marks() {
    std::vector<FoundMark> all;
    RowRange rows = RowRange::All();
    for (bool done = false; !done;) {
      const absl::StatusOr<std::vector<FoundMark>> page = ScanMarks(&EngineOf(others_)->env, kDocs, &rows, 10, &done);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return all;
      all.insert(all.end(), page->begin(), page->end());
    }
    return all;
  }

  // The client stalls at this call, so long that others continue without it.
  void StallAt(size_t call, bool before, const std::function<void()>& others_come) {
    const auto stall = [this, others_come] {
      Judge();
      others_come();
    };
    before ? wire().Before(call, stall) : wire().After(call, stall);
  }

  // Runs the client; then the others.
  void Go(const std::function<void(Trial&)>& deed) {
    wire().CountFromHere();
    deed(*this);
    world_.runtime.LetOthersRun();
    if (wire().dead()) Judge();
    wire().ForgetFaults();
    if (arrival_ == Arrival::kBeforeOthers) wire().DeliverLate();
    Finish();
    if (arrival_ == Arrival::kAfterOthers) {
      wire().DeliverLate();
      Finish();
    }
    CheckFixpoint();
    // A later change is observed as usual.
    WriteByOthers("last");
    Finish();
    CheckFixpoint();
  }

  std::string Get(const std::string& row, const std::string& column) {
    absl::StatusOr<Snapshot> snapshot = others_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    const absl::StatusOr<std::optional<std::string>> value = snapshot->Get({kDocs, row, column});
    EXPECT_THAT(value, IsOk());
    return value.ok() ? value->value_or("nothing") : "error";
  }

  // The number of changes of a cell.
  size_t Changes(const std::string& row, const std::string& column) {
    const absl::StatusOr<std::vector<Row>> rows =
        world_.store->Read({{kDocs, row, {{Family::kWrite, column, TimestampRange::All()}}}});
    EXPECT_THAT(rows, IsOk());
    return rows->front().cells.size();
  }

  Process& others() { return others_; }
  World& world() { return world_; }
  // Makes all pending marks old.
  void AdvanceLease() { world_.oracle.Advance(11'000'000); }

  static ClusterOptions Options(const Mode& mode) {
    ClusterOptions options;
    options.one_step_commit = mode.one_step;
    options.gc_period = Duration(0);
    options.call_timeout = seconds(3);
    return options;
  }

 private:
  static void MakeTable(World* world) {
    EXPECT_THAT(world->store->CreateTable({kDocs, EncodeSchema({.notify_only_columns = {"touched"}})}), IsOk());
  }

  void Judge() {
    if (judgement_ == Judgement::kSession) {
      client_->LoseSession();
    } else {
      AdvanceLease();
    }
  }

  void CheckFixpoint() {
    world_.runtime.LetOthersRun();  // commits the secondaries
    Get("Ann", "other");            // not observed: a lock there stays until a reader comes
    const std::string contents = Get("Bob", "contents");
    EXPECT_EQ(Get("Joe", "middle"), contents);
    EXPECT_EQ(Get("hot", "sum"), "sum of " + contents);
    const std::string copies = Get("Bob", "copies");
    const std::string counted = Get("Zoe", "count");
    EXPECT_EQ(copies, std::to_string(Changes("Joe", "middle")));
    EXPECT_EQ(counted, std::to_string(Changes("Zoe", "count")));
    EXPECT_LE(Changes("Joe", "middle"), Changes("Bob", "contents"));
    EXPECT_LE(Changes("Zoe", "count"), Changes("Joe", "middle"));
    EXPECT_THAT(Marks(), IsEmpty());
    EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
    EXPECT_THAT(Audit(world_.store.get()), IsEmpty());
  }

  const Mode mode_;
  const Arrival arrival_;
  const Judgement judgement_;
  World world_;
  Process others_;
  std::unique_ptr<Process> client_;
};

// The work of the client.
using Deed = std::function<void(Trial&)>;

// Commits the writes of `fill`.
void CommitBy(Trial& trial, const std::function<void(ReadWrite& t)>& fill) {
  Transaction t(*trial.client(), {.timeout = seconds(3)});
  fill(t);
  static_cast<void>(t.Commit());
}

// Writes an observed cell that is not in the primary's row.
void Write(Trial& trial) {
  CommitBy(trial, [](ReadWrite& t) {
    t.Set({kDocs, "Ann", "other"}, "new");
    t.Set({kDocs, "Bob", "contents"}, "new");
  });
}
// Writes an observed cell that is the primary, and notifies.
void WriteAndNotify(Trial& trial) {
  CommitBy(trial, [](ReadWrite& t) {
    t.Set({kDocs, "Bob", "contents"}, "new");
    t.Notify({kDocs, "hot", "touched"});
  });
}
void Delete(Trial& trial) {
  CommitBy(trial, [](ReadWrite& t) {
    t.Delete({kDocs, "Bob", "contents"});
    t.Set({kDocs, "Ann", "other"}, "new");
  });
}
// Run an observer, for a change that others have made: in the middle of the chain, at its end, the weak one.
void RunCopy(Trial& trial) { RunFor(trial.client(), {kDocs, "Bob", "contents"}); }
void RunCount(Trial& trial) { RunFor(trial.client(), {kDocs, "Joe", "middle"}); }
void RunSum(Trial& trial) { RunFor(trial.client(), {kDocs, "hot", "touched"}); }

struct Part {
  std::string name;
  std::function<void(Trial&)> prepare;
  Deed deed;
};

void PrintTo(const Part& part, std::ostream* os) { *os << part.name; }

void Nothing(Trial& /*trial*/) {}
void Change(Trial& trial) { trial.WriteByOthers("changed"); }
void ChangeAndCopy(Trial& trial) {
  trial.WriteByOthers("changed");
  RunFor(trial.others(), {kDocs, "Bob", "contents"});
  trial.world().runtime.LetOthersRun();
}

class ObserverCrashPoints : public ::testing::TestWithParam<std::tuple<Mode, Part>> {
 protected:
  Mode mode() const { return std::get<0>(GetParam()); }
  const Part& part() const { return std::get<1>(GetParam()); }

  // The calls of the deed without faults.
  std::vector<Wire::Call> Calls() {
    Trial trial(mode(), Arrival::kBeforeOthers, Judgement::kSession);
    part().prepare(trial);
    trial.Go(part().deed);
    std::vector<Wire::Call> calls = trial.wire().calls();
    EXPECT_GE(calls.size(), 2U);
    return calls;
  }

  // Runs with both judgements and both arrivals, unless no request can be late. Stops at the first failure.
  void TryAll(const std::string& what, const std::function<void(Trial&)>& fault, bool late = true) {
    for (const Arrival arrival : {Arrival::kBeforeOthers, Arrival::kAfterOthers}) {
      if (arrival == Arrival::kAfterOthers && !late) return;
      for (const Judgement judgement : {Judgement::kSession, Judgement::kLease}) {
        SCOPED_TRACE(
            StrCat(what, ", arrival ", static_cast<int>(arrival), ", judgement ", static_cast<int>(judgement)));
        Trial trial(mode(), arrival, judgement);
        part().prepare(trial);
        trial.wire().CountFromHere();
        fault(trial);
        trial.Go(part().deed);
        ++runs_;
        if (HasFailure()) return;
      }
    }
  }

  static bool IsLate(Kind kind) { return kind == Kind::kEchoLate || kind == Kind::kLate; }

  void StallEverywhere(const std::string& what, const std::function<void(Trial&)>& others_come) {
    const std::vector<Wire::Call> calls = Calls();
    for (size_t k = 1; k <= calls.size(); ++k) {
      for (const bool before : {true, false}) {
        TryAll(
            StrCat(what, before ? " before" : " after", " call ", k, " (", calls[k - 1].what, ")"),
            [&](Trial& trial) { trial.StallAt(k, before, [&] { others_come(trial); }); },
            /*late=*/false);
        if (HasFailure()) return;
      }
    }
  }

  int runs_ = 0;
};

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Mode, Part>>& test) {
  return StrCat(std::get<1>(test.param).name, std::get<0>(test.param).one_step ? "InOneStep" : "InTwoPhases");
}

INSTANTIATE_TEST_SUITE_P(
    Parts, ObserverCrashPoints,
    ::testing::Combine(::testing::Values(Mode{false}, Mode{true}),
                       ::testing::Values(Part{"Writer", Nothing, Write}, Part{"Notifier", Nothing, WriteAndNotify},
                                         Part{"Deleter", Nothing, Delete}, Part{"FirstRun", Change, RunCopy},
                                         Part{"SecondRun", ChangeAndCopy, RunCount},
                                         Part{"WeakRun", ChangeAndCopy, RunSum})),
    NameOf);

// C1 to C9, W1 to W3, W5.
TEST_P(ObserverCrashPoints, OneFaultAtEveryCall) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const Fault& fault : FaultsOf(calls[k - 1])) {
      TryAll(
          StrCat("call ", k, " (", calls[k - 1].what, "): ", FaultName(fault.kind), ", rows ", fault.rows),
          [&](Trial& trial) { trial.wire().FailAt(k, fault); }, IsLate(fault.kind));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(runs_, 20);
}

// W6: another worker does everything while this one stalls.
TEST_P(ObserverCrashPoints, AnotherWorkerComesAtEveryCall) {
  StallEverywhere("another worker comes", [](Trial& trial) { trial.Finish(); });
}

// W4: the cell changes meanwhile. No worker runs, or another one does.
TEST_P(ObserverCrashPoints, ANewerWriteAtEveryCall) {
  StallEverywhere("a newer write", [](Trial& trial) { trial.WriteByOthers("between"); });
  StallEverywhere("a newer write and its run", [](Trial& trial) {
    trial.WriteByOthers("between");
    trial.Finish();
  });
}

// The cell is deleted meanwhile.
TEST_P(ObserverCrashPoints, ADeletionAtEveryCall) {
  StallEverywhere("a deletion", [](Trial& trial) { trial.DeleteByOthers(); });
}

// A stall, and then the request of the stalled call is lost, doubled or late, or the client dies.
TEST_P(ObserverCrashPoints, AStallAndAFaultAtEveryCall) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const Kind kind : {Kind::kLoseRequest, Kind::kLoseReply, Kind::kTwice, Kind::kEchoLate, Kind::kLate,
                            Kind::kDieBefore, Kind::kDieAfter}) {
      TryAll(
          StrCat("another worker comes before call ", k, " (", calls[k - 1].what, ") and ", FaultName(kind)),
          [&](Trial& trial) {
            trial.StallAt(k, true, [&trial] {
              trial.WriteByOthers("between");
              trial.Finish();
            });
            trial.wire().FailAt(k, {.kind = kind});
          },
          IsLate(kind));
      if (HasFailure()) return;
    }
  }
}

// The store becomes unreachable at some call, and stays so until the client gives up.
TEST_P(ObserverCrashPoints, TheStoreBecomesUnreachable) {
  const std::vector<Wire::Call> calls = Calls();
  for (size_t k = 1; k <= calls.size(); ++k) {
    for (const bool applied : {false, true}) {
      TryAll(
          StrCat("from call ", k, " (", calls[k - 1].what, ") on", applied ? ", that one applied" : ""),
          [&](Trial& trial) {
            trial.wire().FailFrom(k, {.kind = Kind::kLoseRequest});
            if (applied) trial.wire().FailAt(k, {.kind = Kind::kLoseReply});
          },
          /*late=*/false);
      if (HasFailure()) return;
    }
  }
}

// --- Settling pending marks, quarantine and replay: at every call the process dies, or the reply is lost.

class ObserverSteps : public ::testing::TestWithParam<Mode> {
 protected:
  // Runs `deed` without faults to learn its calls, then with each fault at each of them. `check` runs before the
  // fixpoint is checked.
  void Everywhere(const std::function<void(Trial&)>& prepare, const Deed& deed,
                  const std::function<void(Trial&)>& check) {
    size_t calls = 0;
    {
      Trial trial(GetParam(), Arrival::kBeforeOthers, Judgement::kSession);
      prepare(trial);
      trial.wire().CountFromHere();
      deed(trial);
      calls = trial.wire().calls().size();
      ASSERT_GE(calls, 2U);
    }
    for (size_t k = 1; k <= calls; ++k) {
      for (const Kind kind : {Kind::kDieBefore, Kind::kDieAfter, Kind::kLoseReply, Kind::kTwice}) {
        SCOPED_TRACE(StrCat("call ", k, ": ", FaultName(kind)));
        Trial trial(GetParam(), Arrival::kBeforeOthers, Judgement::kSession);
        prepare(trial);
        trial.wire().CountFromHere();
        trial.wire().FailAt(k, {.kind = kind});
        trial.Go([&](Trial& t) {
          deed(t);
          if (t.wire().dead()) t.client().LoseSession();
          t.wire().ForgetFaults();
          check(t);
        });
        if (HasFailure()) return;
      }
    }
  }

  static size_t Quarantined(Trial& trial) {
    const auto entries = ListQuarantined(EngineOf(trial.others()));
    EXPECT_THAT(entries, IsOk());
    return entries->size();
  }
  static void ReplayAll(Trial& trial) {
    const auto entries = ListQuarantined(EngineOf(trial.others()));
    ASSERT_THAT(entries, IsOk());
    for (const auto& entry : *entries) {
      EXPECT_THAT(ReplayQuarantined(EngineOf(trial.others()), ObserverOf("contents").info, entry), IsOk());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, ObserverSteps, ::testing::Values(Mode{false}, Mode{true}),
                         [](const auto& test) { return test.param.one_step ? "InOneStep" : "InTwoPhases"; });

// A dead writer's pending mark, at a lock whose primary is committed.
TEST_P(ObserverSteps, SettlingAtEveryCall) {
  const auto prepare = [](Trial& trial) {
    Process writer(&trial.world(), Trial::Options({.one_step = false}));
    writer.wire().FailAt(kCommitsPrimary, {.kind = Kind::kDieAfter});
    Transaction t(*writer);
    t.Set({kDocs, "Ann", "other"}, "new");
    t.Set({kDocs, "Bob", "contents"}, "new");
    EXPECT_THAT(t.status(), IsOk());
    static_cast<void>(t.Commit());
    writer.Die();
  };
  const auto settle = [](Trial& trial) {
    trial.AdvanceLease();
    for (const FoundMark& mark : trial.Marks()) {
      if (mark.pending) SettlePending(EngineOf(trial.client()), mark).IgnoreError();
    }
  };
  Everywhere(prepare, settle, [](Trial& trial) {
    EXPECT_THAT(trial.Marks(), ::testing::Not(IsEmpty()));  // N1: pending or final, but always one
    trial.Finish();
    EXPECT_EQ(trial.Get("Joe", "middle"), "new");
  });
}

// Either the entry exists and the cell is clean, or the observer still runs.
TEST_P(ObserverSteps, QuarantineAtEveryCall) {
  const CellName cell{kDocs, "Bob", "contents"};
  const auto quarantine = [&](Trial& trial) {
    Quarantine(EngineOf(trial.client()), ObserverOf("contents").info, cell, Timestamp::Infinity(), 3,
               absl::InternalError("broken"))
        .status()
        .IgnoreError();
  };
  Everywhere(Change, quarantine, [](Trial& trial) {
    trial.Finish();
    EXPECT_EQ(trial.Get("Joe", "middle"), Quarantined(trial) == 1 ? "old" : "changed");
    ReplayAll(trial);  // the fixpoint is checked afterwards
  });
}

// Either the entry still exists, or the observer runs.
TEST_P(ObserverSteps, ReplayAtEveryCall) {
  const CellName cell{kDocs, "Bob", "contents"};
  const auto prepare = [&](Trial& trial) {
    Change(trial);
    EXPECT_THAT(Quarantine(EngineOf(trial.others()), ObserverOf("contents").info, cell, Timestamp::Infinity(), 3,
                           absl::InternalError("no")),
                IsOk());
    trial.Finish();
    EXPECT_EQ(Quarantined(trial), 1U);
    EXPECT_EQ(trial.Get("Joe", "middle"), "old");
  };
  const auto replay = [&](Trial& trial) {
    ReplayQuarantined(EngineOf(trial.client()), ObserverOf("contents").info, {.observer = "copy", .cell = cell})
        .IgnoreError();
  };
  Everywhere(prepare, replay, [](Trial& trial) {
    trial.Finish();
    EXPECT_EQ(trial.Get("Joe", "middle"), Quarantined(trial) == 1 ? "old" : "changed");
    ReplayAll(trial);
  });
}

}  // namespace
}  // namespace percolator
