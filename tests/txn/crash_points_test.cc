// SPDX-License-Identifier: Apache-2.0

// The crash points of docs/invariants.md, by name: the point where a client or a cleaner dies or stalls, the state that
// it leaves, and the required result.
//
//   C0        before or after the start
//   C1        the prewrite's answer is lost
//   C2, C3    after the primary's lock, after some of the secondaries'
//   C4, C5    all locked, before and after the commit timestamp is drawn
//   C7        the commit's answer is lost
//   C8, C9    after the commit point, after some of the secondaries
//   C10       the client stalls for longer than its lease, and resumes
//   C11       a request arrives twice, or late
//   C12       the client dies while it rolls itself back
//   K1 to K3  the cleaner dies, races, remembers
//
// (C6 is about notifications.) CrashState is a table of the states that a client can leave, combined with the clients
// that come then. What depends on the order of events has tests of its own. crash_everywhere_test.cc goes through all
// calls and faults.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "src/txn/commit.h"
#include "src/txn/gc.h"
#include "src/txn/one_step.h"
#include "src/txn/outcome.h"
#include "src/txn/prewrite.h"
#include "tests/harness/raw_cells.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

// The event that allows others to clean up the locks of an owner.
enum class Death {
  kSessionEnds,  // the owner dies, and its session ends at once
  kLeasePasses,  // the owner's session lives on, but its lock grows old
};

void PrintTo(Death death, std::ostream* os) {
  *os << (death == Death::kSessionEnds ? "the session ends" : "the lease passes");
}

// Steps of the protocol: `me_` dies, `other_` comes later.
class CrashTest : public StepsTest {
 protected:
  // Bob is the primary; all three rows have an old value.
  explicit CrashTest(Death death) : death_(death) {
    MustCommit(Begin(3, {Put("Bob", "old"), Put("Joe", "old"), Put("Ann", "old")}), 4);
    me_.wire().CountFromHere();
  }
  ~CrashTest() override { EXPECT_THAT(Audit(world_.store.get()), IsEmpty()); }

  Writes Transfer() { return Begin(7, {Put("Bob", "new"), Put("Joe", "new"), Put("Ann", std::string(300, 'n'))}); }

  void Die() {
    me_.Die(death_ == Death::kSessionEnds);
    if (death_ == Death::kLeasePasses) PassLease();
  }
  // Others may treat it as dead, but it continues.
  void Stall() {
    if (death_ == Death::kSessionEnds) {
      world_.coordinator.EndSession(me_.session());
    } else {
      PassLease();
    }
  }

  uint64_t Later() { return world_.oracle.GetTimestamp()->value(); }

  // Every reader must see this in all rows, whichever row it reads first.
  void MustBeRolledBack() {
    for (const char* row : {"Ann", "Joe", "Bob"}) MustRead(row, Later(), "old");
    EXPECT_THAT(Locks(), IsEmpty());
    EXPECT_THAT(Cells("Bob"), ::testing::HasSubstr("rollback@7"));
  }
  void MustBeCommitted() {
    MustRead("Ann", Later(), std::string(300, 'n'));
    for (const char* row : {"Joe", "Bob"}) MustRead(row, Later(), "new");
    EXPECT_THAT(Locks(), IsEmpty());
  }
  // A writer comes first, and succeeds.
  void MustLetAWriterPass() {
    for (const char* row : {"Ann", "Joe", "Bob"}) {
      const uint64_t start = Later();
      MustWrite(row, "later", start, Later());
      MustRead(row, Later(), "later");
    }
    EXPECT_THAT(Locks(), IsEmpty());
  }

 private:
  const Death death_;
};

std::string NameOf(Death death) { return death == Death::kSessionEnds ? "SessionEnds" : "LeasePasses"; }
const auto kDeaths = ::testing::Values(Death::kSessionEnds, Death::kLeasePasses);  // NOLINT(cert-err58-cpp)

// --- C2 to C5, C8, C9: all states when the client dies or stalls, and all clients that may come then.

struct State {
  std::string name;
  std::vector<const char*> locked;     // the rows whose prewrite has arrived
  bool drawn = false;                  // whether the commit timestamp is drawn
  std::vector<const char*> committed;  // the rows whose commit has arrived
};

void PrintTo(const State& state, std::ostream* os) { *os << state.name; }

class CrashState : public CrashTest, public ::testing::WithParamInterface<std::tuple<State, Death>> {
 protected:
  CrashState() : CrashTest(std::get<Death>(GetParam())) {
    for (const char* row : state().locked) EXPECT_TRUE(ArrivePrewrite(t_, row));
    if (state().drawn) commit_ts_ = Later();
    for (const char* row : state().committed) EXPECT_TRUE(ArriveCommit(t_, row, commit_ts_));
  }
  const State& state() const { return std::get<State>(GetParam()); }
  bool is_committed() const { return !state().committed.empty(); }

  void MustBeDecided() { is_committed() ? MustBeCommitted() : MustBeRolledBack(); }
  // All requests of the client arrive, sent before or not. None is applied.
  void LateRequestsAreRefused() {
    for (const char* row : {"Bob", "Joe", "Ann"}) {
      EXPECT_FALSE(ArrivePrewrite(t_, row)) << row;
      EXPECT_FALSE(ArriveCommit(t_, row, is_committed() ? commit_ts_ : Later())) << row;
    }
  }

  const Writes t_ = Transfer();
  uint64_t commit_ts_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Points, CrashState,
    ::testing::Combine(::testing::Values(State{"C2", {"Bob"}}, State{"C3_BobJoe", {"Bob", "Joe"}},
                                         State{"C3_BobAnn", {"Bob", "Ann"}}, State{"C3_Joe", {"Joe"}},
                                         State{"C3_Ann", {"Ann"}}, State{"C3_JoeAnn", {"Joe", "Ann"}},
                                         State{"C4", {"Bob", "Joe", "Ann"}}, State{"C5", {"Bob", "Joe", "Ann"}, true},
                                         State{"C8", {"Bob", "Joe", "Ann"}, true, {"Bob"}},
                                         State{"C9_Joe", {"Bob", "Joe", "Ann"}, true, {"Bob", "Joe"}},
                                         State{"C9_Ann", {"Bob", "Joe", "Ann"}, true, {"Bob", "Ann"}},
                                         State{"C9_All", {"Bob", "Joe", "Ann"}, true, {"Bob", "Joe", "Ann"}}),
                       kDeaths),
    [](const auto& test) { return std::get<State>(test.param).name + "_" + NameOf(std::get<Death>(test.param)); });

TEST_P(CrashState, AReaderDecidesIt) {
  Die();
  MustBeDecided();
}

TEST_P(CrashState, AWriterPasses) {
  Die();
  MustLetAWriterPass();
  if (is_committed()) MustRead("Joe", commit_ts_,
                               "new");  // it exists below the newer write
}

TEST_P(CrashState, GarbageCollectionDecidesIt) {
  Die();
  ASSERT_THAT(CollectGarbage(other_.env(), Timestamp(Later()), [] { return false; }), IsOk());
  EXPECT_THAT(Locks(), IsEmpty());
  MustRead("Joe", Later(), is_committed() ? "new" : "old");
}

// C10, C11. An unsent request leaves at most an orphan, which the primary's marker condemns.
TEST_P(CrashState, TheClientContinuesAfterAReader) {
  Stall();
  MustBeDecided();
  if (!is_committed()) {
    EXPECT_FALSE(ArrivePrewrite(t_, "Bob"));
    ArrivePrewrite(t_, "Joe");
    ArrivePrewrite(t_, "Ann");
    MustBeDecided();
  }
  LateRequestsAreRefused();
  MustBeDecided();
}

TEST_P(CrashState, TheClientContinuesAfterAWriter) {
  Stall();
  MustLetAWriterPass();
  LateRequestsAreRefused();
  for (const char* row : {"Ann", "Joe", "Bob"}) MustRead(row, Later(), "later");
  EXPECT_THAT(Locks(), IsEmpty());
}

// --- Cases that need a test of their own.

class CrashPoint : public CrashTest, public ::testing::WithParamInterface<Death> {
 protected:
  CrashPoint() : CrashTest(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Deaths, CrashPoint, kDeaths, [](const auto& test) { return NameOf(test.param); });

// --- C1: prewrite(primary) sent, reply lost.

TEST_P(CrashPoint, C1_TheAnswerOfThePrewriteIsLost) {
  for (const uint64_t rows : {0b000, 0b001, 0b110, 0b111}) {
    SCOPED_TRACE(rows);
    const uint64_t start = Later();
    const Writes t = Begin(start, {Put("x1", "1"), Put("x2", "2"), Put("x3", "3")});
    me_.wire().CountFromHere();
    me_.wire().FailAt(1, {.kind = Kind::kLoseReply, .rows = rows});
    MustPrewrite(t);
    EXPECT_THAT(Locks(), SizeIs(3));
    RollBack(t);
  }
}

// A cleaner has decided meanwhile: the repeated prewrite gets the decision.
TEST_P(CrashPoint, C1_TheAnswerIsLostAndACleanerWasFaster) {
  const Writes t = Transfer();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().After(1, [&] {
    Stall();
    MustRead("Joe", Later(), "old");
  });
  ExpectConflict(TryPrewrite(t), Conflict::Kind::kRolledBack, "Bob");
  RollBack(t);
  MustBeRolledBack();
}

// --- C2: after the primary's lock, before the secondaries'.

// The secondary's prewrite was on its way all the time. It leaves an orphan, which the primary's marker condemns.
TEST_P(CrashPoint, C2_ASecondaryArrivesLate) {
  const Writes t = Transfer();
  ASSERT_TRUE(ArrivePrewrite(t, "Bob"));
  Die();
  EXPECT_EQ(Cells("Bob"), "lock@7 put new primary | write@4 put old from 3");
  MustRead("Bob", Later(), "old");
  EXPECT_EQ(Cells("Bob"), "rollback@7 | write@4 put old from 3");
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  EXPECT_EQ(Cells("Joe"), "lock@7 put new of Bob | write@4 put old from 3");
  MustBeRolledBack();
  EXPECT_EQ(Cells("Joe"), "rollback@7 | write@4 put old from 3");
}

// --- C4: all locked, before the commit timestamp. C5: after it was drawn.

TEST_P(CrashPoint, C4_TheClientResumes) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  MustRead("Ann", Later(), "old");
  const CommitResult result = TryCommitPrimary(t, Later());
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kRolledBack, "Bob");
  RollBack(t);
  MustBeRolledBack();
}

// T6, T8: a reader between the drawn timestamp and the commit must not miss the commit. The lock stops it.
TEST_P(CrashPoint, C5_AReaderLaterThanTheTimestampFindsTheLock) {
  const Writes t = Transfer();
  MustPrewrite(t);
  const uint64_t commit_ts = me_.env().oracle->GetTimestamp()->value();
  const uint64_t reader = Later();
  world_.runtime.Start([&] {
    world_.runtime.Sleep(Duration(30));
    MustCommitPrimary(t, commit_ts);
  });
  MustRead("Joe", reader, "new");
  MustBeCommitted();
}

// --- C7: commit(primary) sent, reply lost.

TEST_P(CrashPoint, C7_TheCommitWasApplied) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  const uint64_t commit_ts = Later();
  MustCommitPrimary(t, commit_ts);
  MustBeCommitted();
}

TEST_P(CrashPoint, C7_TheCommitWasNotApplied) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  MustCommitPrimary(t, Later());
  MustBeCommitted();
}

// Applied, rolled forward by others, and overwritten: the answer is the same.
TEST_P(CrashPoint, C7_TheCommitWasAppliedAndOthersContinued) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().After(1, [&] {
    MustBeCommitted();
    MustLetAWriterPass();
  });
  MustCommitPrimary(t, Later());
}

// Not applied, and a cleaner came: aborted. The first copy of the request arrives later, and finds no lock.
TEST_P(CrashPoint, C7_TheCommitWasLateAndACleanerFaster) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLate});
  me_.wire().After(1, [&] {
    Stall();
    MustRead("Joe", Later(), "old");
  });
  ExpectOutcome(TryCommitPrimary(t, Later()), Outcome::kAborted);
  me_.wire().DeliverLate();
  MustBeRolledBack();
}

// The client cannot ask any more; any other client that asks gets the true outcome.
TEST_P(CrashPoint, C7_TheClientDiesInDoubt) {
  for (const bool applied : {true, false}) {
    const std::string value = applied ? "doubt" : "never";
    const uint64_t start = Later();
    const Writes t = Begin(start, {Put("Bob", value), Put("Joe", value)});
    MustPrewrite(t);
    if (applied) {
      ASSERT_TRUE(ArriveCommit(t, "Bob", Later()));
    }
    Stall();
    const CommitResult resolved = ResolveOutcome(other_.env(), t.primary(), t.start_ts, other_.deadline());
    ExpectOutcome(resolved, applied ? Outcome::kCommitted : Outcome::kAborted);
    MustRead("Joe", Later(), "doubt");
    if (!applied) {
      EXPECT_FALSE(ArriveCommit(t, "Bob", Later()));
    }
  }
}

// --- C8: after the commit point. C9: after some of the secondaries.

// Whatever a resolver believes about the owner, rolling back is impossible now.
TEST_P(CrashPoint, C8_ACommittedTransactionCannotBeRolledBack) {
  const Writes t = Transfer();
  MustPrewrite(t);
  MustCommitPrimary(t, Later());
  Die();
  EXPECT_TRUE(ResolveLocks(other_.env(), {Met("Joe", 7), Met("Ann", 7)}, LiveLocks::kRollBack).value());
  ExpectOutcome(ResolveOutcome(other_.env(), t.primary(), t.start_ts, other_.deadline()), Outcome::kCommitted);
  MustBeCommitted();
}

// The client's own commits of the secondaries arrive late: after readers, after a writer, after a new lock.
TEST_P(CrashPoint, C9_TheClientsOwnCommitsComeLate) {
  const Writes t = Transfer();
  MustPrewrite(t);
  const uint64_t commit_ts = Later();
  MustCommitPrimary(t, commit_ts);
  MustRead("Joe", Later(), "new");
  EXPECT_FALSE(ArriveCommit(t, "Joe", commit_ts));
  EXPECT_TRUE(ArriveCommit(t, "Ann", commit_ts));
  EXPECT_FALSE(ArriveCommit(t, "Ann", commit_ts));
  MustLetAWriterPass();
  const uint64_t start = Later();
  MustPrewriteBy(other_, BeginBy(other_, start, {Put("Joe", "locked")}));
  EXPECT_FALSE(ArriveCommit(t, "Joe", commit_ts));
  EXPECT_THAT(Locks(), SizeIs(1));
}

// --- C10: the client stalls for longer than its lease, and resumes.

TEST_P(CrashPoint, C10_BeforeThePrewrite) {
  const Writes t = Transfer();
  me_.wire().Before(1, [&] {
    Stall();
    MustLetAWriterPass();  // nothing was locked, so this is an ordinary conflict
  });
  ExpectConflict(TryPrewrite(t), Conflict::Kind::kNewerWrite, "Bob");
  RollBack(t);
  MustRead("Joe", Later(), "later");
}

TEST_P(CrashPoint, C10_AfterThePrewriteAndAWriterHasCommitted) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  MustLetAWriterPass();
  ExpectOutcome(TryCommitPrimary(t, Later()), Outcome::kAborted);
  RollBack(t);
  for (const char* row : {"Ann", "Joe", "Bob"}) MustRead(row, Later(), "later");
}

// A writer holds the locks when the client resumes: they are not the client's.
TEST_P(CrashPoint, C10_AfterThePrewriteAndAWriterHoldsTheLocks) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  const Writes next = BeginBy(other_, Later(), {Put("Bob", "next"), Put("Joe", "next")});
  MustPrewriteBy(other_, next);
  ExpectOutcome(TryCommitPrimary(t, Later()), Outcome::kAborted);
  RollBack(t);
  EXPECT_THAT(Locks(), SizeIs(2));
  ExpectOutcome(CommitPrimary(other_.env(), next, Timestamp(Later()), other_.deadline()), Outcome::kCommitted);
  MustRead("Joe", Later(), "next");
}

TEST_P(CrashPoint, C10_AfterTheCommitPoint) {
  const Writes t = Transfer();
  MustPrewrite(t);
  const uint64_t commit_ts = Later();
  MustCommitPrimary(t, commit_ts);
  Stall();
  MustBeCommitted();
  MustLetAWriterPass();
  MustCommitSecondaries(t, commit_ts);
  MustRead("Joe", Later(), "later");
}

// --- C11: requests that arrive twice, or late.

// G4: also after the marker and the record were collected.
TEST_P(CrashPoint, C11_PrewriteAfterGarbageCollection) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  MustBeRolledBack();
  ASSERT_THAT(CollectGarbage(other_.env(), Timestamp(Later()), [] { return false; }), IsOk());
  EXPECT_EQ(Cells("Bob"), "write@4 put old from 3");
  EXPECT_THAT(TryPrewrite(t), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Locks(), IsEmpty());
}

// A resolver's mutation arrives late, when another client has locked the cell.
TEST_P(CrashPoint, C11_ALateUnlockLeavesTheLockOfAnother) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  const FoundLock met = Met("Joe", 7);
  other_.wire().CountFromHere();
  other_.wire().FailAt({"mutate", 2}, {.kind = Kind::kEchoLate});  // 1 decides at Bob, 2 settles Joe
  ASSERT_TRUE(ResolveLocks(other_.env(), {met}, LiveLocks::kKeep).value());
  const uint64_t start = Later();
  MustPrewriteBy(other_, BeginBy(other_, start, {Put("Joe", "locked")}));
  const std::string before = Cells("Joe");
  other_.wire().DeliverLate();
  EXPECT_EQ(Cells("Joe"), before);
}

TEST_P(CrashPoint, C11_TheDecisionAtThePrimaryTwice) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  other_.wire().CountFromHere();
  other_.wire().FailAt({"mutate", 1}, {.kind = Kind::kEchoLate});
  MustRead("Joe", Later(), "old");
  const uint64_t start = Later();
  MustPrewriteBy(other_, BeginBy(other_, start, {Put("Bob", "locked")}));
  const std::string before = Cells("Bob");
  other_.wire().DeliverLate();
  EXPECT_EQ(Cells("Bob"), before);
}

// The marker of a missing primary arrives late: the primary has been locked, or committed, meanwhile.
TEST_P(CrashPoint, C11_TheMarkerOfAMissingPrimaryComesLate) {
  const Writes t = Transfer();
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  Stall();
  other_.wire().CountFromHere();
  other_.wire().FailAt({"mutate", 1}, {.kind = Kind::kLate});
  EXPECT_FALSE(Decide(other_.env(), Met("Joe", 7), LiveLocks::kKeep).ok());
  ASSERT_TRUE(ArrivePrewrite(t, "Bob"));
  ASSERT_TRUE(ArrivePrewrite(t, "Ann"));
  MustCommitPrimary(t, Later());
  other_.wire().DeliverLate();
  MustBeCommitted();
}

// The client's own rollback arrives late: by then it changes only its own marks.
TEST_P(CrashPoint, C11_TheOwnRollbackTwice) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kEchoLate});
  RollBack(t);
  MustLetAWriterPass();
  const uint64_t start = Later();
  MustPrewriteBy(other_, BeginBy(other_, start, {Put("Joe", "locked")}));
  const std::string before = Cells("Joe");
  me_.wire().DeliverLate();
  EXPECT_EQ(Cells("Joe"), before);
}

// --- C12: the client dies while it rolls itself back.

TEST_P(CrashPoint, C12_OnlyThePrimaryIsRolledBack) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kDieAfter, .rows = 0b001});
  RollBack(t);
  EXPECT_TRUE(me_.wire().dead());
  EXPECT_THAT(Locks(), SizeIs(2));
  // Readers need not wait for the lease: the verdict exists.
  MustRead("Joe", Later(), "old");
  MustBeRolledBack();
}

TEST_P(CrashPoint, C12_OnlySecondariesAreRolledBack) {
  const Writes t = Transfer();
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kDieAfter, .rows = 0b110});
  RollBack(t);
  EXPECT_THAT(Locks(), SizeIs(1));
  Stall();
  MustBeRolledBack();
}

// --- K1: the cleaner dies after it decided at the primary, before it cleaned its own cell.

TEST_P(CrashPoint, K1_TheCleanerDiesAfterDeciding) {
  MustPrewrite(Transfer());
  Die();
  Client cleaner(&world_, Options());
  cleaner.wire().FailAt({"mutate", 1}, {.kind = Kind::kDieAfter});
  EXPECT_FALSE(Read(cleaner, Cell("Joe"), Later()).ok());
  EXPECT_EQ(Cells("Bob"), "rollback@7 | write@4 put old from 3");
  EXPECT_THAT(Locks(), SizeIs(2));
  MustBeRolledBack();
}

TEST_P(CrashPoint, K1_TheCleanerDiesRollingForward) {
  const Writes t = Transfer();
  MustPrewrite(t);
  MustCommitPrimary(t, Later());
  Die();
  Client cleaner(&world_, Options());
  cleaner.wire().FailAt({"mutate", 1}, {.kind = Kind::kDieBefore});
  EXPECT_FALSE(Read(cleaner, Cell("Joe"), Later()).ok());
  MustBeCommitted();
}

// --- K2: races. The row of the primary picks one winner; the loser reads it again.

// A cleaner against the committer, at each step of the cleaner.
TEST_P(CrashPoint, K2_TheCommitterIsFaster) {
  for (size_t call = 1; call <= 4; ++call) {
    SCOPED_TRACE(call);
    const uint64_t start = Later();
    const Writes t = Begin(start, {Put("Bob", "raced"), Put("Joe", "raced")});
    MustPrewrite(t);
    Stall();
    Client cleaner(&world_, Options());
    bool committed = false;
    cleaner.wire().Before(call, [&] { committed = TryCommitPrimary(t, Later()).committed(); });
    const auto read = Read(cleaner, Cell("Joe"), Later() + 1000);  // later than the commit
    ASSERT_THAT(read, IsOk());
    if (call == 1) {
      EXPECT_TRUE(committed);
    }
    EXPECT_EQ(*read == "raced", committed);
    PassTimestamp(Later() + 1000);
    MustRead("Bob", Later(), committed ? "raced" : "old");
    const Writes again = Begin(Later(), {Put("Bob", "old"), Put("Joe", "old")});
    MustCommit(again, Later());
  }
}

TEST_P(CrashPoint, K2_TwoCleaners) {
  for (size_t call = 1; call <= 6; ++call) {
    SCOPED_TRACE(call);
    const uint64_t start = Later();
    const Writes t = Begin(start, {Put("Bob", "raced"), Put("Joe", "raced")});
    MustPrewrite(t);
    Stall();
    Client one(&world_, Options());
    one.wire().Before(call, [&] { MustRead("Joe", Later(), "old"); });
    EXPECT_EQ(Read(one, Cell("Joe"), Later()).value(), "old");
    EXPECT_EQ(Read(one, Cell("Bob"), Later()).value(), "old");
    EXPECT_THAT(Locks(), IsEmpty());
  }
}

// --- K3: only definite verdicts are cached.

TEST_P(CrashPoint, K3_APendingVerdictIsReadAgain) {
  const Writes t = Transfer();
  MustPrewrite(t);
  EXPECT_EQ(Decide(other_.env(), Met("Joe", 7), LiveLocks::kKeep).value(), Verdict::Pending());
  MustCommitPrimary(t, Later());
  MustBeCommitted();
}

TEST_P(CrashPoint, K3_ADefiniteVerdictServesTheOtherLocks) {
  const Writes t = Transfer();
  MustPrewrite(t);
  Stall();
  MustRead("Joe", Later(), "old");
  ASSERT_EQ(other_.env().verdicts.Find(Timestamp(7)), Verdict::RolledBack());
  MustRead("Ann", Later(), "old");
  MustBeRolledBack();
}

// A lock that arrives late, of a transaction whose verdict is cached.
TEST_P(CrashPoint, K3_ARememberedVerdictServesALateLock) {
  const Writes t = Transfer();
  ASSERT_TRUE(ArrivePrewrite(t, "Bob"));
  Stall();
  MustRead("Bob", Later(), "old");
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  MustRead("Joe", Later(), "old");
  MustBeRolledBack();
}

// --- Whole processes: C0, and the crash points of the commit in one step.

class ProcessCrash : public ::testing::Test {
 protected:
  ProcessCrash() { Set({Put("Ann", "old"), Put("Bob", "old"), Put("Joe", "old")}); }
  ~ProcessCrash() override {
    world_.runtime.LetOthersRun();
    EXPECT_THAT(Audit(world_.store.get()), IsEmpty());
  }

  static ClusterOptions Options(bool one_step) {
    ClusterOptions options;
    options.one_step_commit = one_step;
    options.gc_period = Duration(0);
    options.gc_retention = seconds(20);
    return options;
  }
  static void Buffer(Transaction& t, const std::vector<PlannedWrite>& planned) {
    for (const PlannedWrite& write : planned) t.Set({kTable, write.row, kColumn}, write.value);
    ASSERT_THAT(t.status(), IsOk());
  }
  void Set(const std::vector<PlannedWrite>& planned) {
    Transaction t(*others_);
    Buffer(t, planned);
    ExpectOutcome(t.Commit(), Outcome::kCommitted);
  }
  // All three rows, in one snapshot: "old old old".
  std::string All() {
    absl::StatusOr<Snapshot> snapshot = others_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    const auto values = snapshot->GetCells(
        std::vector<CellName>{{kTable, "Ann", kColumn}, {kTable, "Bob", kColumn}, {kTable, "Joe", kColumn}});
    EXPECT_THAT(values, IsOk());
    std::string text;
    for (const std::optional<std::string>& value : *values) text += (text.empty() ? "" : " ") + value.value_or("-");
    return text;
  }
  static std::vector<PlannedWrite> New() { return {Put("Ann", "new"), Put("Bob", "new"), Put("Joe", "new")}; }

  World world_;
  Process others_{&world_, Options(true)};
};

TEST_F(ProcessCrash, C0_BeforeTheBeginning) {
  Process client(&world_, Options(true));
  {
    Transaction t(*client);
    Buffer(t, New());
    client.Die();
    EXPECT_FALSE(t.Commit().committed());
  }
  EXPECT_EQ(All(), "old old old");
}

// Its start holds back garbage collection until its session ends.
TEST_F(ProcessCrash, C0_AfterTheBeginning) {
  Process client(&world_, Options(true));
  Transaction t(*client);
  ASSERT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
  Buffer(t, New());
  world_.runtime.Sleep(seconds(30));  // its process has reported its snapshot
  Set({Put("Bob", "newer")});
  const Timestamp held_back = others_->CollectGarbage().value();
  EXPECT_LE(held_back, t.timestamp());
  client.Die();
  world_.runtime.Sleep(seconds(30));
  EXPECT_GT(others_->CollectGarbage().value(), t.timestamp());
  EXPECT_EQ(All(), "old newer old");
}

TEST_F(ProcessCrash, OneStep_DiesBeforeTheCommit) {
  Process client(&world_, Options(true));
  Transaction t(*client);
  Buffer(t, New());
  client.wire().FailAt(kCommitsTogether, {.kind = Kind::kDieBefore});
  (void)t.Commit();
  client.Die();
  EXPECT_EQ(All(), "old old old");
}

// C8 in one step: nothing is left to be done.
TEST_F(ProcessCrash, OneStep_C8_DiesAfterTheCommit) {
  Process client(&world_, Options(true));
  Transaction t(*client);
  Buffer(t, New());
  client.wire().FailAt(kCommitsTogether, {.kind = Kind::kDieAfter});
  (void)t.Commit();
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(All(), "new new new");
}

TEST_F(ProcessCrash, OneStep_C7_TheAnswerIsLost) {
  for (const Kind kind : {Kind::kLoseReply, Kind::kLoseRequest, Kind::kLate}) {
    SCOPED_TRACE(FaultName(kind));
    Set({Put("Ann", "old"), Put("Bob", "old"), Put("Joe", "old")});
    Process client(&world_, Options(true));
    Transaction t(*client);
    Buffer(t, New());
    client.wire().FailAt(kCommitsTogether, {.kind = kind});
    const CommitResult result = t.Commit();
    ExpectOutcome(result, kind == Kind::kLoseReply ? Outcome::kCommitted : Outcome::kAborted);
    client.wire().DeliverLate();
    EXPECT_EQ(All(), result.committed() ? "new new new" : "old old old");
  }
}

// The client does not know, and dies, and the request is still on its way: the next client that asks decides.
TEST_F(ProcessCrash, OneStep_C7_DiesInDoubt) {
  for (const bool arrives_first : {true, false}) {
    Process client(&world_, Options(true));
    Transaction t(*client, {.timeout = seconds(1)});
    Buffer(t, {Put("Ann", "doubt"), Put("Bob", "doubt"), Put("Joe", "doubt")});
    client.wire().FailAt(kCommitsTogether, {.kind = Kind::kLate});
    client.wire().After(kCommitsTogether, [&] { client.wire().FailFrom(1, {.kind = Kind::kLoseRequest}); });
    const CommitResult unknown = t.Commit();
    ExpectOutcome(unknown, Outcome::kUnknown);
    client.Die();
    const std::string before = All();
    if (arrives_first) client.wire().DeliverLate();
    const absl::StatusOr<CommitResult> resolved = others_->Resolve(unknown);
    ASSERT_THAT(resolved, IsOk());
    ExpectOutcome(*resolved, arrives_first ? Outcome::kCommitted : Outcome::kAborted);
    client.wire().DeliverLate();
    EXPECT_EQ(All(), arrives_first ? "doubt doubt doubt" : before);
  }
}

TEST_F(ProcessCrash, OneStep_C10_StallsBeforeTheCommit) {
  Process client(&world_, Options(true));
  Transaction t(*client);
  ASSERT_THAT(t.Get({kTable, "Bob", kColumn}), IsOk());
  Buffer(t, New());
  client.wire().Before(kCommitsTogether, [&] {
    client.LoseSession();
    Set({Put("Joe", "later")});
  });
  const CommitResult result = t.Commit();
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kNewerWrite, "Joe");
  EXPECT_EQ(All(), "old old later");
}

// Without locks no resolver can treat it as dead: it commits, however long it stalled.
TEST_F(ProcessCrash, OneStep_C10_StallsAndNoOtherWrote) {
  Process client(&world_, Options(true));
  Transaction t(*client);
  Buffer(t, New());
  client.wire().Before(kCommitsTogether, [&] {
    client.LoseSession();
    world_.runtime.Sleep(seconds(15));
    EXPECT_EQ(All(), "old old old");
  });
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  EXPECT_EQ(All(), "new new new");
}

TEST_F(ProcessCrash, OneStep_C11_TheRequestTwice) {
  for (const Kind kind : {Kind::kTwice, Kind::kEchoLate}) {
    SCOPED_TRACE(FaultName(kind));
    Process client(&world_, Options(true));
    Transaction t(*client);
    Buffer(t, New());
    client.wire().FailAt(kCommitsTogether, {.kind = kind});
    ExpectOutcome(t.Commit(), Outcome::kCommitted);
    Set({Put("Bob", "later")});
    client.wire().DeliverLate();
    EXPECT_EQ(All(), "new later new");
  }
}

// C11 in one step, after an abort: a copy of the request arrives when the obstacle is gone.
TEST_F(ProcessCrash, OneStep_C11_TheRequestAfterAnAbort) {
  Process holder(&world_, Options(false));
  Transaction held(*holder);
  Buffer(held, {Put("Joe", "held")});
  CommitResult result;
  Process client(&world_, Options(true));
  holder.wire().Before(kCommitsPrimary, [&] {
    Transaction t(*client);
    Buffer(t, New());
    client.wire().FailAt(kCommitsTogether, {.kind = Kind::kEchoLate});
    result = t.Commit();
    ExpectOutcome(result, Outcome::kAborted);
    ExpectConflict(result.status, Conflict::Kind::kLocked, "Joe");
    holder.wire().Die();
  });
  (void)held.Commit();
  holder.Die();
  EXPECT_EQ(All(), "old old old");
  client.wire().DeliverLate();
  EXPECT_EQ(All(), "old old old");
}

// The refresh of a lock arrives late: after the commit, after a rollback (T14).
TEST_F(ProcessCrash, C11_ALateRefresh) {
  for (const bool commits : {true, false}) {
    SCOPED_TRACE(commits);
    Process client(&world_, Options(false));
    Transaction t(*client);
    Buffer(t, {Put("Bob", "kept")});
    const std::string before = All();
    client.wire().FailAt({"mutate", 2}, {.kind = Kind::kEchoLate});  // the refresh
    client.wire().Before(kDrawsCommitTimestamp, [&] {
      world_.runtime.Sleep(seconds(4));
      if (commits) return;
      client.LoseSession();
      EXPECT_EQ(All(), before);
    });
    ExpectOutcome(t.Commit(), commits ? Outcome::kCommitted : Outcome::kAborted);
    const std::string after = All();
    client.wire().DeliverLate();
    EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
    EXPECT_EQ(All(), after);
  }
}

}  // namespace
}  // namespace percolator
