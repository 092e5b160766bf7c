// SPDX-License-Identifier: Apache-2.0

// Tests dispatch with scripted runs: which observers run when, how often, and which marks stay. All of it runs in
// virtual time (tests/harness/virtual_runtime.h): one task runs at a time, so nothing here is guarded.

#include "src/observe/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/strings.h"
#include "tests/harness/virtual_runtime.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = RunOutcome::Kind;

class DispatchTest : public ::testing::Test {
 protected:
  using Script = std::function<RunOutcome(const RunRequest&)>;

  static ObserverSpec Spec(const std::string& name, const std::string& column) {
    return {.name = name, .table = "t", .column = column, .run = [](ReadWrite&, const Notification&) {
              return absl::OkStatus();
            }};
  }
  static ObserverInfo Info(const std::string& name, const std::string& column) {
    return {name, "t", column, NotificationKind::kStrong};
  }
  static CellName Cell(const std::string& row, const std::string& column) { return {"t", row, column}; }

  static WorkerOptions Options() {
    WorkerOptions options;
    options.threads = 2;
    options.min_retry_delay = milliseconds(2);
    options.max_retry_delay = milliseconds(8);
    options.scan_period = milliseconds(40);
    return options;
  }

  // Runs answer as `script_[observer]` says. Without a script they commit, and remove the marks if that is allowed.
  void Make(std::vector<ObserverSpec> own, const std::vector<ObserverInfo>& all,
            const WorkerOptions& options = Options()) {
    DispatchCallbacks callbacks;
    callbacks.run = [this](const RunRequest& request) { return Run(request); };
    callbacks.remove_marks = [this](const CellName& cell, Timestamp until) {
      removed_.push_back(StrCat(cell.row, "@", until.value()));
      return absl::OkStatus();
    };
    callbacks.quarantine = [this](const ObserverInfo& observer, const CellName& cell, Timestamp /*tried_at*/,
                                  int attempts, const absl::Status& error) -> absl::StatusOr<Timestamp> {
      if (quarantine_errors_-- > 0) return absl::UnavailableError("away");
      quarantined_.push_back(StrCat(observer.name, " ", cell.row, " ", attempts, " ", error.message()));
      return Timestamp(++clock_);
    };
    callbacks.claim = [this](const CellName& cell) {
      if (refuse_claims_) return false;
      ++claims_[cell.row];
      return true;
    };
    callbacks.release = [this](const CellName& cell) { --claims_[cell.row]; };
    dispatch_ = std::make_unique<Dispatch>(&runtime_, options, std::move(own), std::move(callbacks));
    dispatch_->SetObservers(all);
    dispatch_->Start();
  }

  RunOutcome Run(const RunRequest& request) {
    runs_.push_back(StrCat(request.observer->name, " ", request.cell.row));
    const Script script = script_[request.observer->name];  // a copy: Say may replace it during the run
    RunOutcome outcome = script == nullptr ? Answer(Kind::kCommitted) : script(request);
    if (outcome.kind == Kind::kCommitted || outcome.kind == Kind::kClean) {
      outcome.marks_removed = request.others_done_at.has_value();
    }
    return outcome;
  }
  RunOutcome Answer(Kind kind) {
    RunOutcome outcome;
    outcome.kind = kind;
    outcome.start_ts = Timestamp(++clock_);
    outcome.change_ts = Timestamp(1);
    outcome.commit_ts = Timestamp(++clock_);
    if (kind == Kind::kFailed) outcome.status = absl::InternalError("broken");
    return outcome;
  }
  void Say(const std::string& observer, Script script) { script_[observer] = std::move(script); }

  size_t RunsOf(const std::string& run) const {
    return static_cast<size_t>(std::count(runs_.begin(), runs_.end(), run));
  }
  // Returns the claims of all rows together.
  int Claims() const {
    int sum = 0;
    for (const auto& [row, count] : claims_) sum += count;
    return sum;
  }
  ObserverMetrics MetricsOf(size_t i) { return dispatch_->metrics()[i]; }
  // Lets time pass until the condition is true. Returns false if that takes longer than a minute.
  bool Becomes(const std::function<bool()>& condition) {
    const Duration end = runtime_.Elapsed() + std::chrono::minutes(1);
    for (runtime_.LetOthersRun(); !condition(); runtime_.Sleep(milliseconds(1))) {
      if (runtime_.Elapsed() >= end) return false;
    }
    return true;
  }
  bool Ends(const CellName& cell) {
    return Becomes([&] { return !dispatch_->Has(cell) && dispatch_->running() == 0; });
  }

  VirtualRuntime runtime_;
  uint64_t clock_ = 100;
  std::vector<std::string> runs_;
  std::vector<std::string> removed_;
  std::vector<std::string> quarantined_;
  std::map<std::string, int> claims_;
  bool refuse_claims_ = false;
  int quarantine_errors_ = 0;
  std::map<std::string, Script> script_;
  std::unique_ptr<Dispatch> dispatch_;  // destroyed first
};

// Holds runs until Open.
class Gate {
 public:
  explicit Gate(Runtime* runtime) : opened_(runtime->NewEvent()) {}

  void Pass() {
    max_inside_ = std::max(max_inside_, ++inside_);
    opened_->Wait();
    --inside_;
  }
  void Open() { opened_->Set(); }
  int inside() const { return inside_; }
  int max_inside() const { return max_inside_; }

 private:
  const std::unique_ptr<Event> opened_;
  int inside_ = 0;
  int max_inside_ = 0;
};

TEST_F(DispatchTest, AHintRunsTheObserverOnceAndReleasesTheClaim) {
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(runs_, ElementsAre("a r"));
  EXPECT_THAT(removed_, IsEmpty());  // the run removed them
  EXPECT_TRUE(Becomes([&] { return Claims() == 0; }));
  EXPECT_EQ(MetricsOf(0).commits, 1);
  EXPECT_EQ(MetricsOf(0).latency.size(), 1U);
}

TEST_F(DispatchTest, CellsWithoutAnOwnObserverAreNotTakenUp) {
  Make({Spec("a", "c")}, {Info("a", "c"), Info("foreign", "d")});
  dispatch_->Hint(Cell("r", "x"));
  dispatch_->Hint(Cell("r", "d"));
  EXPECT_FALSE(dispatch_->Offer(Cell("r", "d"), false));
  EXPECT_FALSE(dispatch_->Has(Cell("r", "x")));
  EXPECT_EQ(dispatch_->InterestIn("t", "x"), Dispatch::Interest::kNone);
  EXPECT_EQ(dispatch_->InterestIn("t", "d"), Dispatch::Interest::kOthers);
  EXPECT_EQ(dispatch_->InterestIn("t", "c"), Dispatch::Interest::kOurs);
}

// N4: the last of several observers removes the marks; if none could, dispatch does, up to the smallest S.
TEST_F(DispatchTest, MarksAreRemovedWhenAllObserversAreDone) {
  Gate gate(&runtime_);
  std::vector<std::optional<Timestamp>> allowed;
  const Script both_at_once = [&](const RunRequest& request) {
    allowed.push_back(request.others_done_at);
    gate.Pass();
    return Answer(Kind::kCommitted);
  };
  Say("a", both_at_once);
  Say("b", both_at_once);
  Make({Spec("a", "c"), Spec("b", "c")}, {Info("a", "c"), Info("b", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 2; }));
  gate.Open();
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(allowed, ElementsAre(std::nullopt, std::nullopt));
  EXPECT_THAT(removed_, ElementsAre("r@101"));
}

TEST_F(DispatchTest, TheLastRunMayRemoveTheMarks) {
  WorkerOptions options = Options();
  options.threads = 1;
  Make({Spec("a", "c"), Spec("b", "c")}, {Info("a", "c"), Info("b", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(runs_, UnorderedElementsAre("a r", "b r"));
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(DispatchTest, MarksStayForAForeignObserver) {
  Say("foreign", [&](const RunRequest& request) {
    EXPECT_EQ(request.run, nullptr);
    return Answer(Kind::kDirty);
  });
  // The cell rests: a scan does not bring it back, a change does, and so does time.
  WorkerOptions options = Options();
  options.scan_period = std::chrono::hours(1);
  Make({Spec("a", "c")}, {Info("a", "c"), Info("foreign", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("foreign r") == 1 && dispatch_->running() == 0; }));
  EXPECT_FALSE(dispatch_->Offer(Cell("r", "c"), false));
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("foreign r") == 2 && dispatch_->running() == 0; }));
  Make({Spec("a", "c")}, {Info("a", "c"), Info("foreign", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("foreign r") == 3 && dispatch_->running() == 0; }));
  ASSERT_TRUE(Becomes([&] { return dispatch_->Offer(Cell("r", "c"), false); }));
  ASSERT_TRUE(Becomes([&] { return RunsOf("foreign r") == 4; }));
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(DispatchTest, MarksAreRemovedIfAForeignObserverIsDone) {
  Say("foreign", [&](const RunRequest&) { return Answer(Kind::kClean); });
  WorkerOptions options = Options();
  options.threads = 1;
  std::optional<Timestamp> allowed;
  Say("a", [&](const RunRequest& request) {
    allowed = request.others_done_at;
    return RunOutcome{.kind = Kind::kCommitted, .start_ts = Timestamp(50)};
  });
  Make({Spec("a", "c")}, {Info("a", "c"), Info("foreign", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  // Whichever observer came first, the second was allowed to remove the marks.
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(DispatchTest, AHintDuringARunCausesAnotherRunAndAScanDoesNot) {
  Gate gate(&runtime_);
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->Hint(Cell("hinted", "c"));
  ASSERT_TRUE(dispatch_->Offer(Cell("scanned", "c"), false));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 2; }));
  dispatch_->Hint(Cell("hinted", "c"));
  dispatch_->Hint(Cell("hinted", "c"));
  EXPECT_FALSE(dispatch_->Offer(Cell("scanned", "c"), false));
  gate.Open();
  ASSERT_TRUE(Ends(Cell("hinted", "c")));
  ASSERT_TRUE(Ends(Cell("scanned", "c")));
  EXPECT_EQ(RunsOf("a hinted"), 2U);
  EXPECT_EQ(RunsOf("a scanned"), 1U);
}

TEST_F(DispatchTest, AHintBeforeTheRunCausesNoSecondRun) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.threads = 1;
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("a", "c")}, {Info("a", "c")}, options);
  dispatch_->Hint(Cell("r1", "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 1; }));
  dispatch_->Hint(Cell("r2", "c"));
  dispatch_->Hint(Cell("r2", "c"));
  gate.Open();
  ASSERT_TRUE(Ends(Cell("r2", "c")));
  EXPECT_EQ(RunsOf("a r2"), 1U);
}

// N11, on one cell: the other observer sees every change, though this one has not succeeded with the first.
TEST_F(DispatchTest, AFailingObserverDoesNotDelayAnotherOfTheSameCell) {
  WorkerOptions options = Options();
  options.min_retry_delay = options.max_retry_delay = std::chrono::hours(1);
  Say("bad", [&](const RunRequest&) { return Answer(Kind::kFailed); });
  Make({Spec("bad", "c"), Spec("good", "c")}, {Info("bad", "c"), Info("good", "c")}, options);
  for (size_t i = 1; i <= 3; ++i) {
    dispatch_->Hint(Cell("r", "c"));
    ASSERT_TRUE(Becomes([&] { return RunsOf("good r") == i && dispatch_->running() == 0; }));
  }
  EXPECT_EQ(RunsOf("bad r"), 1U);
  EXPECT_EQ(MetricsOf(0).pending, 1);
  EXPECT_EQ(MetricsOf(1).pending, 0);
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(DispatchTest, TheLastFailureIsQuarantined) {
  Say("bad", [&](const RunRequest&) { return Answer(Kind::kFailed); });
  ObserverSpec bad = Spec("bad", "c");
  bad.max_attempts = 3;
  Make({bad}, {Info("bad", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(RunsOf("bad r"), 3U);
  EXPECT_THAT(quarantined_, ElementsAre("bad r 3 broken"));
  EXPECT_EQ(removed_.size(), 1U);  // the observer counts as done
  EXPECT_EQ(MetricsOf(0).failures, 3);
  EXPECT_EQ(MetricsOf(0).quarantined, 1);
}

TEST_F(DispatchTest, AFailedQuarantineIsRetried) {
  Say("bad", [&](const RunRequest&) { return Answer(Kind::kFailed); });
  quarantine_errors_ = 2;
  ObserverSpec bad = Spec("bad", "c");
  bad.max_attempts = 1;
  Make({bad}, {Info("bad", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(quarantined_.size(), 1U);
}

TEST_F(DispatchTest, ACycleIsQuarantinedAtOnce) {
  Say("a", [&](const RunRequest& request) {
    EXPECT_EQ(request.max_chain, 1000U);
    return Answer(Kind::kCycle);
  });
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(RunsOf("a r"), 1U);
  EXPECT_EQ(quarantined_.size(), 1U);
  EXPECT_EQ(MetricsOf(0).cycles, 1);
  EXPECT_EQ(MetricsOf(0).failures, 0);
}

TEST_F(DispatchTest, ConflictsAndTransientErrorsAreNotFailures) {
  int left = 40;
  Say("a", [&](const RunRequest&) {
    const bool conflict = --left % 2 == 0;
    return Answer(left > 0 ? (conflict ? Kind::kConflict : Kind::kTrouble) : Kind::kCommitted);
  });
  ObserverSpec a = Spec("a", "c");
  a.max_attempts = 2;
  Make({a}, {Info("a", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(RunsOf("a r"), 40U);
  EXPECT_THAT(quarantined_, IsEmpty());
  EXPECT_EQ(MetricsOf(0).failures, 0);
  EXPECT_EQ(MetricsOf(0).conflicts, 19);
  EXPECT_EQ(MetricsOf(0).transient_errors, 20);
}

TEST_F(DispatchTest, WithoutAMarkNoOtherObserverLooks) {
  WorkerOptions options = Options();
  options.threads = 1;
  Say("a", [&](const RunRequest&) { return Answer(Kind::kNoMark); });
  Say("b", [&](const RunRequest&) { return Answer(Kind::kNoMark); });
  Make({Spec("a", "c"), Spec("b", "c")}, {Info("a", "c"), Info("b", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(runs_.size(), 1U);
  EXPECT_THAT(removed_, IsEmpty());
}

// N11, on lanes: a slow observer with a long queue takes its turns, and no more.
TEST_F(DispatchTest, LanesTakeTurns) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.threads = 1;
  Say("slow", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("slow", "c"), Spec("quick", "d")}, {Info("slow", "c"), Info("quick", "d")}, options);
  for (int i = 0; i < 50; ++i) dispatch_->Hint(Cell(StrCat("r", i), "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 1; }));
  dispatch_->Hint(Cell("x", "d"));
  dispatch_->Hint(Cell("y", "d"));
  gate.Open();
  ASSERT_TRUE(Becomes([&] { return RunsOf("quick y") == 1; }));
  const auto at = std::find(runs_.begin(), runs_.end(), "quick y") - runs_.begin();
  EXPECT_LE(at, 4);  // slow, quick x, slow, quick y
}

TEST_F(DispatchTest, RunsOfAnObserverAreLimited) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.threads = 4;
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  ObserverSpec a = Spec("a", "c");
  a.max_concurrency = 2;
  Make({a, Spec("b", "d")}, {Info("a", "c"), Info("b", "d")}, options);
  for (int i = 0; i < 20; ++i) dispatch_->Hint(Cell(StrCat("r", i), "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 2; }));
  dispatch_->Hint(Cell("r", "d"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("b r") == 1; }));
  gate.Open();
  ASSERT_TRUE(Becomes([&] { return MetricsOf(0).commits == 20; }));
  EXPECT_EQ(gate.max_inside(), 2);
}

// A full lane takes no room from another, and its further cells are left to a scanner.
TEST_F(DispatchTest, QueuesAreBounded) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.max_queued_cells = 20;
  Say("slow", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  ObserverSpec slow = Spec("slow", "c");
  slow.max_concurrency = 1;
  Make({slow, Spec("quick", "d")}, {Info("slow", "c"), Info("quick", "d")}, options);
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += dispatch_->Offer(Cell(StrCat("r", i), "c"), false) ? 1 : 0;
  EXPECT_EQ(taken, 10);
  EXPECT_EQ(MetricsOf(0).pending, 10);
  EXPECT_TRUE(dispatch_->HasRoom());
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Becomes([&] { return dispatch_->Offer(Cell(StrCat("q", i), "d"), false); }));
  }
  gate.Open();
  EXPECT_TRUE(Becomes([&] { return MetricsOf(0).commits == 10 && MetricsOf(1).commits == 10; }));
}

// There is never room for both observers of the cell at once: the work of one is remembered until the other can run.
TEST_F(DispatchTest, ACellEndsThoughItsObserversNeverHaveRoomTogether) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.max_queued_cells = 2;  // one for each
  options.threads = 3;
  Say("b", [&](const RunRequest& request) {
    if (request.cell.row == "other") gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("a", "c"), Spec("b", "c")}, {Info("a", "c"), Info("b", "c")}, options);
  ASSERT_TRUE(dispatch_->Offer(Cell("other", "c"), false));
  ASSERT_TRUE(Becomes([&] { return RunsOf("a other") == 1 && MetricsOf(0).pending == 0; }));
  ASSERT_TRUE(Becomes([&] { return dispatch_->Offer(Cell("r", "c"), false); }));
  ASSERT_TRUE(Becomes([&] { return RunsOf("a r") == 1 && MetricsOf(0).pending == 0; }));
  EXPECT_THAT(removed_, IsEmpty());
  // "a" is done with it, and for "b" there is no room: taking it up would be useless.
  runtime_.Sleep(options.scan_period);
  EXPECT_FALSE(dispatch_->Offer(Cell("r", "c"), false));
  gate.Open();
  ASSERT_TRUE(Becomes([&] { return dispatch_->Offer(Cell("r", "c"), false); }));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_EQ(RunsOf("a r"), 1U);
  EXPECT_EQ(RunsOf("b r"), 1U);
}

TEST_F(DispatchTest, ARowClaimedByAnotherWorkerIsLeftToIt) {
  refuse_claims_ = true;
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(runs_, IsEmpty());
  refuse_claims_ = false;
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("a r") == 1; }));
}

TEST_F(DispatchTest, WithTheOptionClaimsOffNoRowIsClaimed) {
  refuse_claims_ = true;
  WorkerOptions options = Options();
  options.claims = false;
  Make({Spec("a", "c")}, {Info("a", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("a r") == 1; }));
}

TEST_F(DispatchTest, PauseDropsJobsThatDoNotRun) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.threads = 1;
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("a", "c")}, {Info("a", "c")}, options);
  dispatch_->Hint(Cell("r1", "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 1; }));
  ++claims_["r2"];
  ASSERT_TRUE(dispatch_->Offer(Cell("r2", "c"), true));
  dispatch_->Hint(Cell("r1", "c"));
  dispatch_->Pause();
  EXPECT_EQ(Claims(), 1);  // of r1, which runs
  dispatch_->Hint(Cell("r3", "c"));
  EXPECT_FALSE(dispatch_->Offer(Cell("r4", "c"), false));
  gate.Open();
  ASSERT_TRUE(Ends(Cell("r1", "c")));
  EXPECT_THAT(runs_, ElementsAre("a r1"));
  EXPECT_EQ(MetricsOf(0).pending, 0);
  dispatch_->Resume();
  dispatch_->Hint(Cell("r2", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("a r2") == 1; }));
}

TEST_F(DispatchTest, StopFinishesRunningJobsAndDropsTheRest) {
  Gate gate(&runtime_);
  WorkerOptions options = Options();
  options.threads = 1;
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    return Answer(Kind::kCommitted);
  });
  Make({Spec("a", "c")}, {Info("a", "c")}, options);
  for (int i = 0; i < 5; ++i) dispatch_->Hint(Cell(StrCat("r", i), "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 1; }));
  runtime_.Start([&] {
    EXPECT_EQ(MetricsOf(0).pending, 1);  // the rest is dropped
    gate.Open();
  });
  dispatch_->Stop();
  EXPECT_EQ(runs_.size(), 1U);
  EXPECT_EQ(MetricsOf(0).commits, 1);
  EXPECT_EQ(Claims(), 0);
  EXPECT_FALSE(dispatch_->Offer(Cell("r", "c"), false));
}

TEST_F(DispatchTest, StopDoesNotWaitForRetries) {
  WorkerOptions options = Options();
  options.min_retry_delay = options.max_retry_delay = std::chrono::hours(1);
  Say("bad", [&](const RunRequest&) { return Answer(Kind::kFailed); });
  Make({Spec("bad", "c")}, {Info("bad", "c")}, options);
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return RunsOf("bad r") == 1 && dispatch_->running() == 0; }));
  dispatch_->Stop();
  EXPECT_EQ(Claims(), 0);
}

// N1: an observer that was added during a run has not seen the change.
TEST_F(DispatchTest, AChangeOfObserversKeepsTheMarks) {
  Gate gate(&runtime_);
  Say("a", [&](const RunRequest&) {
    gate.Pass();
    RunOutcome outcome = Answer(Kind::kCommitted);
    return outcome;
  });
  Make({Spec("a", "c"), Spec("b", "c")}, {Info("a", "c"), Info("b", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Becomes([&] { return gate.inside() == 1 && RunsOf("b r") == 1; }));
  dispatch_->SetObservers({Info("a", "c"), Info("b", "c"), Info("new", "c")});
  gate.Open();
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(removed_, IsEmpty());
  // While the observers may have changed, no run may remove marks.
  dispatch_->RecheckObservers();
  std::optional<Timestamp> allowed = Timestamp(1);
  Say("new", [&](const RunRequest&) { return Answer(Kind::kClean); });
  Say("a", [&](const RunRequest& request) {
    allowed = request.others_done_at;
    return RunOutcome{.kind = Kind::kCommitted, .start_ts = Timestamp(900)};
  });
  dispatch_->Hint(Cell("r2", "c"));
  ASSERT_TRUE(Ends(Cell("r2", "c")));
  EXPECT_EQ(allowed, std::nullopt);
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(DispatchTest, AnObserverThatTheClusterNoLongerHasIsNotRun) {
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->SetObservers({});
  dispatch_->Hint(Cell("r", "c"));
  EXPECT_FALSE(dispatch_->Has(Cell("r", "c")));
  EXPECT_EQ(dispatch_->InterestIn("t", "c"), Dispatch::Interest::kNone);
}

TEST_F(DispatchTest, TriggeredReturnsTheColumnsThatRunsChanged) {
  Say("a", [&](const RunRequest&) {
    RunOutcome outcome = Answer(Kind::kCommitted);
    outcome.triggered = {{"t", "d"}};
    return outcome;
  });
  Make({Spec("a", "c")}, {Info("a", "c")});
  dispatch_->Hint(Cell("r", "c"));
  ASSERT_TRUE(Ends(Cell("r", "c")));
  EXPECT_THAT(dispatch_->triggered().at("a"), ElementsAre(std::make_pair("t", "d")));
}

}  // namespace
}  // namespace percolator
