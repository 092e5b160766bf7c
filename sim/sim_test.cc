// SPDX-License-Identifier: Apache-2.0

// The world itself: it must fail in the documented ways, and in no others.

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/world.h"
#include "src/base/strings.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Ending = Scheduler::Ending;

constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

RowMutation SetCell(const std::string& row, uint64_t ts, const std::string& value, Family family = Family::kData) {
  return {"t", row, {}, {Mutation::Set(family, "c", Timestamp(ts), value)}};
}

RowRead ReadAll(const std::string& row, Family family = Family::kData) {
  return {"t", row, {{.family = family, .column = "c"}}};
}

// The cells of family data on the disk.
std::string OnDisk(World& world, const std::string& row) {
  return ToText(world.store_server().disk()->Read({ReadAll(row)}).value().front());
}

// A world with table t. Each forced fault is named by its client.
class SimTest : public ::testing::Test {
 protected:
  explicit SimTest(const Faults& faults = Faults::None()) { Begin(1, faults); }

  void Begin(uint64_t seed, const Faults& faults) {
    world_.emplace(seed, faults);
    ASSERT_THAT(world_->store_server().disk()->CreateTable({"t", ""}), IsOk());
    client_ = world_->NewClient();
  }

  void Force(Site site, uint64_t n = 0) { world_->chance().Force({client_->process().id(), site, n}); }
  void ForceAtStore(Site site, uint64_t n = 0) { world_->chance().Force({kStoreActor, site, n}); }

  // Runs the body in the client until no event is left.
  void Run(std::function<void()> body) {
    client_->process().Start(std::move(body));
    const Scheduler::Report report = world_->Run({.events = 1'000'000});
    EXPECT_EQ(report.ending, Ending::kDone) << report.waiting;
  }

  std::optional<World> world_;
  Client* client_ = nullptr;
};

// ----- Messages

TEST_F(SimTest, WithoutFaultsItBehavesAsAStore) {
  Run([&] {
    Store* const store = client_->store();
    EXPECT_THAT(store->CreateTable({"u", "schema"}), IsOk());
    EXPECT_EQ(store->ListTables().value().size(), 2U);
    EXPECT_THAT(store->Mutate({SetCell("a", 1, "v"), SetCell("b", 1, "w"), SetCell("a", 2, "x")}),
                ElementsAre(IsOk(), IsOk(), IsOk()));
    EXPECT_EQ(ToText(store->Read({ReadAll("b"), ReadAll("a")}).value()), "b{data:c@1=w} a{data:c@2=x data:c@1=v}");
    EXPECT_EQ(ToText(store->Scan({.table = "t", .selectors = {{.family = Family::kData, .newest = 1}}}).value().rows),
              "a{data:c@2=x} b{data:c@1=w}");
    EXPECT_THAT(store->Read({{"nowhere", "a", {}}}), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(store->RaiseSafePoint(Timestamp(5)), IsOk());
    EXPECT_EQ(store->SafePoint().value(), Timestamp(5));
    EXPECT_THAT(store->Mutate({SetCell("a", 5, "l", Family::kLock)}),
                ElementsAre(StatusIs(absl::StatusCode::kOutOfRange)));
    EXPECT_THAT(store->SampleRowKeys("t"), IsOk());
    EXPECT_THAT(store->DropTable("u"), IsOk());
    EXPECT_TRUE(store->Read({}).value().empty());
    EXPECT_THAT(store->Mutate({}), IsEmpty());
    EXPECT_THAT(store->Close(), IsOk());
    EXPECT_THAT(store->Read({ReadAll("a")}), StatusIs(absl::StatusCode::kFailedPrecondition));
  });
}

TEST_F(SimTest, ALostRequestWasNotServed) {
  Force(Site::kRequestLost);
  Run([&] {
    const Duration before = client_->process().Elapsed();
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable)));
    EXPECT_EQ(client_->process().Elapsed() - before, world_->faults().call_timeout);
  });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
}

TEST_F(SimTest, ALostReplyWasServed) {
  Force(Site::kReplyLost);
  Run([&] { EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable))); });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{data:c@1=v}");
}

TEST_F(SimTest, ASlowRequestArrivesAfterItsSenderHasGivenUp) {
  Faults faults;
  faults.latency_min = faults.latency_max = faults.call_timeout / 3;
  faults.slow_max = faults.call_timeout * 100'000;
  Begin(1, faults);
  Force(Site::kSlowRequest);
  Run([&] {
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable)));
    EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
  });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{data:c@1=v}");
}

TEST_F(SimTest, ADuplicateArrivesLate) {
  Force(Site::kDuplicate);
  Run([&] {
    std::vector<RowMutation> batch = {SetCell("a", 1, "v")};
    EXPECT_THAT(client_->store()->Mutate(batch), ElementsAre(IsOk()));
    batch.clear();  // the message must not depend on it
    const RowMutation erase{"t", "a", {}, {Mutation::Erase(Family::kData, "c", TimestampRange::All())}};
    EXPECT_THAT(client_->store()->Mutate({erase}), ElementsAre(IsOk()));
    EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
  });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{data:c@1=v}");
}

TEST_F(SimTest, RowsOfABatchAreLostOneByOneOrTogether) {
  for (const bool alone : {false, true}) {
    Faults faults;
    faults.rows_travel_alone = alone;
    Begin(1, faults);
    Force(Site::kRequestLost, alone ? 1 : 0);
    Run([&] {
      const auto results = client_->store()->Mutate({SetCell("a", 1, "v"), SetCell("b", 1, "w"), SetCell("a", 2, "x")});
      EXPECT_EQ(results[0].ok(), alone);
      EXPECT_THAT(results[1], StatusIs(kUnavailable));
      EXPECT_EQ(results[2].ok(),
                alone);  // travels with the first, which is of the same row
    });
    EXPECT_EQ(OnDisk(*world_, "a"), alone ? "a{data:c@2=x data:c@1=v}" : "a{}");
    EXPECT_EQ(OnDisk(*world_, "b"), "b{}");
  }
}

TEST_F(SimTest, RowsOfABatchAreReadAtDifferentMoments) {
  Faults faults;
  faults.spread_max = Duration(5'000);
  Begin(3, faults);
  Client* const writer = world_->NewClient();
  writer->process().Start([&] {
    // b is always written after a, so one read of both at one moment would never show more in b.
    for (int i = 1; i <= 200; ++i) {
      ASSERT_THAT(writer->store()->Mutate({SetCell("a", i, "")}), ElementsAre(IsOk()));
      ASSERT_THAT(writer->store()->Mutate({SetCell("b", i, "")}), ElementsAre(IsOk()));
    }
  });
  int torn = 0;
  Run([&] {
    for (int i = 0; i < 50; ++i) {
      const std::vector<Row> rows = client_->store()->Read({ReadAll("a"), ReadAll("b")}).value();
      torn += rows[1].cells.size() > rows[0].cells.size() ? 1 : 0;
    }
  });
  EXPECT_GT(torn, 0);
}

TEST_F(SimTest, AScanReturnsSmallPagesAndTimePassesBetweenRows) {
  Faults faults;
  faults.scan_step = 1;
  faults.limits.max_scan_work = 4;
  Begin(1, faults);
  for (const char* row : {"a", "b", "c", "d", "e"}) {
    ASSERT_THAT(world_->store_server().disk()->Mutate({SetCell(row, 1, row)}).front(), IsOk());
  }
  Run([&] {
    ScanRequest request{.table = "t", .selectors = {{.family = Family::kData}}, .row_limit = 2};
    std::string keys;
    size_t pages = 0;
    for (;;) {
      const Duration before = client_->process().Elapsed();
      const absl::StatusOr<ScanPage> page = client_->store()->Scan(request);
      ASSERT_THAT(page, IsOk());
      ++pages;
      EXPECT_LE(page->rows.size(), 2U);
      if (page->rows.size() == 2) {
        EXPECT_GT(client_->process().Elapsed() - before, Duration(0));
      }
      for (const Row& row : page->rows) keys += row.key;
      if (!page->resume.has_value()) break;
      request.rows.start = *page->resume;
    }
    EXPECT_EQ(keys, "abcde");
    EXPECT_GE(pages, 3U);
  });
}

// ----- Processes

TEST_F(SimTest, CallsOfADeadProcessReachNoServer) {
  Run([&] {
    Process& process = client_->process();
    const Duration deadline = process.Elapsed() + std::chrono::hours(1);
    process.Crash();
    EXPECT_TRUE(process.crashed());
    EXPECT_GT(process.Elapsed(), deadline);
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable)));
    EXPECT_THAT(client_->store()->Read({ReadAll("a")}), StatusIs(kUnavailable));
    EXPECT_THAT(client_->store()->Scan({.table = "t"}), StatusIs(kUnavailable));
    EXPECT_THAT(client_->store()->SafePoint(), StatusIs(kUnavailable));
    EXPECT_THAT(client_->oracle()->GetTimestamp(), StatusIs(kUnavailable));
    EXPECT_THAT(client_->coordinator()->IsAlive(1), StatusIs(kUnavailable));
    EXPECT_THAT(client_->coordinator()->OpenSession(), StatusIs(kUnavailable));
    const Duration before = world_->now();
    process.Sleep(std::chrono::hours(5));
    EXPECT_LT(world_->now() - before, std::chrono::seconds(1));
    // Deadlines that are set after its death pass too.
    const Duration late = process.Elapsed() + std::chrono::minutes(1);
    while (process.Elapsed() < late) process.Sleep(Duration(10));
    while (process.Elapsed() < late + std::chrono::minutes(1)) EXPECT_THAT(client_->store()->SafePoint(), Not(IsOk()));
  });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
  EXPECT_LT(world_->now(), std::chrono::seconds(1));
}

TEST_F(SimTest, AMessageSentBeforeTheCrashArrives) {
  Force(Site::kCrashAfterSend);
  Run([&] {
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable)));
    EXPECT_TRUE(client_->process().crashed());
    EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
  });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{data:c@1=v}");
}

TEST_F(SimTest, ACrashEndsAllWaitsForOthersButNotThoseAmongItsOwnFibers) {
  Process& process = client_->process();
  Mutex mutex;
  const std::unique_ptr<WaitQueue> queue = process.NewWaitQueue();
  bool ready = false;
  std::set<std::string> over;
  process.Start("call", [&] {
    EXPECT_THAT(client_->store()->Read({ReadAll("a")}), StatusIs(kUnavailable));
    over.insert("call");
  });
  process.Start("sleep", [&] {
    process.Sleep(std::chrono::hours(1));
    over.insert("sleep");
  });
  process.Start("wait for", [&] {
    MutexLock lock(&mutex);
    queue->WaitFor(&mutex, std::chrono::hours(1));
    over.insert("wait for");
  });
  process.Start("wait", [&] {
    MutexLock lock(&mutex);
    while (!ready) queue->Wait(&mutex);
    over.insert("wait");
  });
  process.Start("wake", [&] {
    process.Sleep(std::chrono::hours(2));
    over.insert("wake");
    MutexLock lock(&mutex);
    ready = true;
    queue->WakeAll();
  });
  world_->scheduler().At(Duration(50), kWorldActor, "crash", [&] { process.Crash(); });
  EXPECT_EQ(world_->Run().ending, Ending::kDone);
  EXPECT_EQ(over.size(), 5U);
  EXPECT_LT(world_->now(), std::chrono::minutes(1));
}

TEST_F(SimTest, APauseStopsAllFibersAndNothingElse) {
  Process& process = client_->process();
  Duration served{0};
  Duration heard{0};
  Duration slept{0};
  process.Start("call", [&] {
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(IsOk()));
    heard = world_->now();
  });
  process.Start("sleep", [&] {
    process.Sleep(Duration(10));
    slept = world_->now();
  });
  world_->scheduler().At(Duration(5), kWorldActor, "pause", [&] { process.Pause(Duration(100'000)); });
  world_->scheduler().At(Duration(90'000), kWorldActor, "look", [&] {
    if (OnDisk(*world_, "a") == "a{data:c@1=v}") served = world_->now();
  });
  EXPECT_EQ(world_->Run().ending, Ending::kDone);
  EXPECT_EQ(served, Duration(90'000));
  EXPECT_EQ(heard, Duration(100'005));  // the answer has waited
  EXPECT_EQ(slept, Duration(100'005));
}

TEST_F(SimTest, AProcessIsPausedInItsCalls) {
  Faults faults;
  faults.pause_max = std::chrono::seconds(100);
  Begin(1, faults);
  Force(Site::kPause, 1);
  Run([&] {
    const Duration begin = world_->now();
    ASSERT_THAT(client_->store()->Read({ReadAll("a")}), IsOk());
    EXPECT_LT(world_->now() - begin, std::chrono::milliseconds(10));
    ASSERT_THAT(client_->store()->Read({ReadAll("a")}), IsOk());
    EXPECT_GT(world_->now() - begin, std::chrono::seconds(1));
    EXPECT_EQ(client_->process().pauses(), 1U);
  });
}

TEST_F(SimTest, WaitQueuesWakeOneOrAllOrByTime) {
  Process& process = client_->process();
  Mutex mutex;
  const std::unique_ptr<WaitQueue> queue = process.NewWaitQueue();
  int awake = 0;
  for (int i = 0; i < 3; ++i) {
    process.Start([&] {
      MutexLock lock(&mutex);
      queue->Wait(&mutex);
      ++awake;
    });
  }
  Run([&] {
    process.Sleep(Duration(10));
    const Duration before = process.Elapsed();
    {
      MutexLock lock(&mutex);
      queue->WaitFor(&mutex, Duration(500));
    }
    EXPECT_EQ(process.Elapsed() - before, Duration(500));
    EXPECT_EQ(awake, 0);
    queue->WakeOne();
    process.Sleep(Duration(10));
    EXPECT_EQ(awake, 1);
    queue->WakeAll();
    process.Sleep(Duration(10));
    EXPECT_EQ(awake, 3);
  });
}

TEST_F(SimTest, ARunThatIsStuckNamesItsFibers) {
  Process& process = client_->process();
  Mutex mutex;
  const std::unique_ptr<WaitQueue> queue = process.NewWaitQueue();
  process.Start("forever", [&] {
    MutexLock lock(&mutex);
    queue->Wait(&mutex);
  });
  const Scheduler::Report report = world_->Run();
  EXPECT_EQ(report.ending, Ending::kStuck);
  EXPECT_THAT(report.waiting, HasSubstr("p1/forever1: WaitQueue::Wait"));
  queue->WakeAll();
  EXPECT_EQ(world_->Run().ending, Ending::kDone);
}

// ----- The store restarts

TEST_F(SimTest, AcknowledgedDataOutlivesARestart) {
  ForceAtStore(Site::kRestartAfter, 0);
  ForceAtStore(Site::kReplyDies, 0);
  Run([&] {
    // The first is applied, but its answer is lost with the server. The second finds the server down.
    EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable)));
    while (!client_->store()->Mutate({SetCell("b", 1, "w")}).front().ok()) {
    }
  });
  EXPECT_EQ(world_->store_server().epoch(), 1U);
  EXPECT_EQ(OnDisk(*world_, "a"), "a{data:c@1=v}");
  EXPECT_EQ(OnDisk(*world_, "b"), "b{data:c@1=w}");
}

TEST_F(SimTest, AServerThatIsDownServesNothing) {
  world_->store_server().Restart(std::chrono::seconds(10));
  Run([&] { EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(StatusIs(kUnavailable))); });
  EXPECT_EQ(OnDisk(*world_, "a"), "a{}");
  world_->Heal();
  Run([&] { EXPECT_THAT(client_->store()->Mutate({SetCell("a", 1, "v")}), ElementsAre(IsOk())); });
}

// ----- Commits in one step

class OneStepTest : public SimTest {
 protected:
  OneStepTest() : SimTest(Slow()) {}

  // A step takes long, a message hardly any time.
  static Faults Slow() {
    Faults faults;
    faults.one_step = true;
    faults.one_step_max = Duration(10'000);
    faults.latency_min = faults.latency_max = Duration(10);
    faults.call_timeout = std::chrono::seconds(1);
    return faults;
  }

  static JointMutation Commit(const std::vector<std::string>& rows) {
    JointMutation joint{.start_ts = Timestamp(5)};
    for (const std::string& row : rows) {
      joint.rows.push_back({"t", row, {}, {Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), row)}});
    }
    return joint;
  }
};

TEST_F(OneStepTest, CommitsAllRowsAtOneTimestamp) {
  Run([&] {
    const Timestamp before = client_->oracle()->GetTimestamp().value();
    const absl::StatusOr<JointResult> result = client_->store()->MutateTogether(Commit({"a", "b"}), client_->oracle());
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->applied);
    EXPECT_GT(result->timestamp, before);
    for (const char* row : {"a", "b"}) {
      const Row read = client_->store()->Read({ReadAll(row, Family::kWrite)}).value().front();
      EXPECT_THAT(read.cells, ElementsAre(Cell{Family::kWrite, "c", result->timestamp, row}));
    }
    JointMutation refused = Commit({"c", "a"});
    refused.rows[1].condition.cells = {{Family::kWrite, "c", TimestampRange::All()}};  // none exists
    const absl::StatusOr<JointResult> second = client_->store()->MutateTogether(refused, client_->oracle());
    ASSERT_THAT(second, IsOk());
    EXPECT_FALSE(second->applied);
    EXPECT_EQ(second->failed_row, 1U);
    EXPECT_THAT(client_->store()->Read({ReadAll("c", Family::kWrite)}).value().front().cells, IsEmpty());
    EXPECT_THAT(client_->store()->RaiseSafePoint(Timestamp(5)), IsOk());
    EXPECT_THAT(client_->store()->MutateTogether(Commit({"d"}), client_->oracle()),
                StatusIs(absl::StatusCode::kOutOfRange));
    EXPECT_FALSE(world_->store_server().any_closed());
  });
}

TEST_F(OneStepTest, CallsOnClosedRowsWait) {
  const auto applied = [&] {
    return !world_->store_server().disk()->Read({ReadAll("a", Family::kWrite)}).value().front().cells.empty();
  };
  client_->process().Start("commit", [&] {
    EXPECT_THAT(client_->store()->MutateTogether(Commit({"a", "b"}), client_->oracle()), IsOk());
  });
  std::map<std::string, bool> waited;  // by call: whether it returned only after the commit
  const auto start = [&](const std::string& name, std::function<absl::Status()> call) {
    client_->process().Start(name, [&, name, call = std::move(call)] {
      while (!world_->store_server().any_closed()) client_->process().Sleep(Duration(5));
      EXPECT_FALSE(applied());
      EXPECT_THAT(call(), IsOk());
      waited[name] = applied();
    });
  };
  Store* const store = client_->store();
  start("read", [&] { return store->Read({ReadAll("a")}).status(); });
  start("mutate", [&] { return store->Mutate({SetCell("b", 1, "")})[0].status(); });
  start("scan", [&] { return store->Scan({.table = "t"}).status(); });
  start("commit", [&] { return store->MutateTogether(Commit({"b", "c"}), client_->oracle()).status(); });
  start("read of another", [&] { return store->Read({ReadAll("z")}).status(); });
  start("mutate of another", [&] { return store->Mutate({SetCell("z", 1, "")})[0].status(); });
  const Scheduler::Report report = world_->Run();
  EXPECT_EQ(report.ending, Ending::kDone) << report.waiting;
  EXPECT_THAT(waited,
              UnorderedElementsAre(Pair("read", true), Pair("mutate", true), Pair("scan", true), Pair("commit", true),
                                   Pair("read of another", false), Pair("mutate of another", false)));
}

// T8, with commits in one step: a commit that a read at R has not seen must not appear at or below R later. Returns the
// number of reads for which it did.
int ReadsThatMissedACommit(uint64_t seed) {
  Faults faults;
  faults.one_step = true;
  World world(seed, faults);
  if (!world.store_server().disk()->CreateTable({"t", ""}).ok()) return -1;
  std::map<Timestamp, size_t> seen;  // by the timestamp of the read
  for (int i = 0; i < 4; ++i) {
    Client* const client = world.NewClient();
    client->process().Start([client, i] {
      for (int n = 0; n < 20; ++n) {
        JointMutation joint{.start_ts = Timestamp(5)};
        joint.rows.push_back(
            {"t", "a", {}, {Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), StrCat(i))}});
        if (!client->store()->MutateTogether(joint, client->oracle()).ok()) return;
      }
    });
    client->process().Start([client, &seen] {
      for (int n = 0; n < 40; ++n) {
        const absl::StatusOr<Timestamp> now = client->oracle()->GetTimestamp();
        if (!now.ok()) return;
        const Selector up_to{.family = Family::kWrite, .column = "c", .range = TimestampRange::UpTo(*now)};
        const absl::StatusOr<std::vector<Row>> rows = client->store()->Read({{"t", "a", {up_to}}});
        if (rows.ok()) seen[*now] = rows->front().cells.size();
      }
    });
  }
  if (world.Run().ending != Ending::kDone) return -1;
  int missed = 0;
  for (const auto& [ts, count] : seen) {
    const Selector up_to{.family = Family::kWrite, .column = "c", .range = TimestampRange::UpTo(ts)};
    const Row now = world.store_server().disk()->Read({{"t", "a", {up_to}}}).value().front();
    if (now.cells.size() != count) ++missed;
  }
  return missed;
}

TEST(OneStep, NoReadMissesACommit) {
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(ReadsThatMissedACommit(seed), 0) << seed;
}

TEST_F(OneStepTest, ARestartLosesTheCommitOrAppliesAllOfIt) {
  std::set<std::string> ends;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Begin(seed, Slow());
    bool acknowledged = false;
    client_->process().Start([&] {
      acknowledged = client_->store()->MutateTogether(Commit({"a", "b"}), client_->oracle()).ok();
    });
    world_->scheduler().At(Duration(7'000), kWorldActor, "restart",
                           [&] { world_->store_server().Restart(Duration(100)); });
    const Scheduler::Report report = world_->Run();
    ASSERT_EQ(report.ending, Ending::kDone) << report.waiting;
    std::string found;
    for (const char* row : {"a", "b"}) {
      const Row read = world_->store_server().disk()->Read({ReadAll(row, Family::kWrite)}).value().front();
      found += read.cells.empty() ? "" : row;
    }
    if (acknowledged) {
      EXPECT_EQ(found, "ab");
    } else {
      ends.insert(found);
    }
    EXPECT_FALSE(world_->store_server().any_closed());
  }
  EXPECT_THAT(ends, ElementsAre("", "ab"));
}

TEST_F(OneStepTest, MutateTogetherIsRefusedWhereItIsNotSupported) {
  Begin(1, Faults::None());
  EXPECT_FALSE(client_->store()->CanMutateTogether());
  Run([&] {
    EXPECT_THAT(client_->store()->MutateTogether(Commit({"a"}), client_->oracle()),
                StatusIs(absl::StatusCode::kUnimplemented));
  });
}

// ----- The oracle

// Whether timestamps, in the order they were drawn, always grew.
class Growing : public OracleWatcher {
 public:
  void OnTimestamps(Duration /*time*/, Timestamp first, uint32_t count) override {
    if (first <= last_ && draws_ > 0) ++steps_back_;
    last_ = Timestamp(first.value() + count - 1);
    ++draws_;
  }
  int draws() const { return draws_; }
  int steps_back() const { return steps_back_; }

 private:
  Timestamp last_;
  int draws_ = 0;
  int steps_back_ = 0;
};

Growing DrawThroughRestarts(uint64_t seed) {
  Faults faults;
  faults.rates.oracle_restart = 0.05;
  faults.rates.clock_step = 0.5;
  faults.rates.duplicate = 0.1;
  faults.batching_oracle = seed % 2 == 0;
  World world(seed, faults);
  Growing growing;
  world.oracle_server().SetWatcher(&growing);
  for (int i = 0; i < 3; ++i) {
    Client* const client = world.NewClient();
    client->process().Start([client] {
      Timestamp last;
      for (int n = 0; n < 100; ++n) {
        const absl::StatusOr<Timestamp> next = client->oracle()->GetTimestamps(3);
        if (!next.ok()) continue;
        EXPECT_GT(*next, last);
        last = *next;
      }
    });
  }
  EXPECT_EQ(world.Run().ending, Ending::kDone);
  EXPECT_GT(world.oracle_server().epoch(), 0U);
  return growing;
}

TEST(SimOracle, NeverGoesBackThroughRestartsAndWrongClocks) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Growing growing = DrawThroughRestarts(seed);
    EXPECT_GT(growing.draws(), 50);
    EXPECT_EQ(growing.steps_back(), 0) << seed;
  }
}

TEST_F(SimTest, TimestampsFollowVirtualTime) {
  Run([&] {
    const Timestamp first = client_->oracle()->GetTimestamp().value();
    client_->process().Sleep(std::chrono::seconds(5));
    const Timestamp second = client_->oracle()->GetTimestamp().value();
    EXPECT_GE(second.value() - first.value(), 5'000'000U);
    EXPECT_LT(second.value() - first.value(), 5'100'000U);
  });
}

// ----- The coordinator

TEST_F(SimTest, ASessionEndsWithItsProcessAfterTheLease) {
  Client* const other = world_->NewClient();
  std::unique_ptr<Session> session;
  other->process().Start([&] { session = other->coordinator()->OpenSession().value(); });
  const Duration lease = world_->faults().lease;
  Run([&] {
    client_->process().Sleep(lease * 5);
    const SessionId id = session->id();
    EXPECT_TRUE(session->alive());
    EXPECT_TRUE(client_->coordinator()->IsAlive(id).value());
    other->process().Crash();
    EXPECT_FALSE(session->alive());  // it has no information any more
    client_->process().Sleep(lease / 2);
    EXPECT_TRUE(client_->coordinator()->IsAlive(id).value());
    client_->process().Sleep(lease);
    EXPECT_FALSE(client_->coordinator()->IsAlive(id).value());
  });
}

TEST_F(SimTest, APauseLongerThanTheLeaseEndsASession) {
  Client* const other = world_->NewClient();
  std::unique_ptr<Session> session;
  other->process().Start([&] { session = other->coordinator()->OpenSession().value(); });
  const Duration lease = world_->faults().lease;
  Run([&] {
    client_->process().Sleep(lease);
    const SessionId id = session->id();
    other->process().Pause(lease / 2);
    client_->process().Sleep(lease * 3);
    EXPECT_TRUE(session->alive());
    other->process().Pause(lease * 2);
    client_->process().Sleep(lease * 3);
    EXPECT_FALSE(session->alive());
    EXPECT_FALSE(client_->coordinator()->IsAlive(id).value());
    session.reset();
  });
}

TEST_F(SimTest, SessionIdsAreUniqueAndSessionsEndWhenDestroyed) {
  Run([&] {
    SessionId first = 0;
    {
      const std::unique_ptr<Session> session = client_->coordinator()->OpenSession().value();
      first = session->id();
    }
    const std::unique_ptr<Session> session = client_->coordinator()->OpenSession().value();
    EXPECT_NE(session->id(), first);
    client_->process().Sleep(Duration(10'000));
    EXPECT_FALSE(client_->coordinator()->IsAlive(first).value());
    EXPECT_TRUE(client_->coordinator()->IsAlive(session->id()).value());
  });
}

TEST_F(SimTest, AWrongAnswerAboutASessionIsGivenOnce) {
  Force(Site::kFalseDead, 0);
  Force(Site::kFalseAlive, 0);
  Run([&] {
    std::unique_ptr<Session> session = client_->coordinator()->OpenSession().value();
    const SessionId id = session->id();
    EXPECT_FALSE(client_->coordinator()->IsAlive(id).value());
    EXPECT_TRUE(client_->coordinator()->IsAlive(id).value());
    session.reset();
    client_->process().Sleep(Duration(10'000));
    EXPECT_TRUE(client_->coordinator()->IsAlive(id).value());
    EXPECT_FALSE(client_->coordinator()->IsAlive(id).value());
  });
}

TEST_F(SimTest, ASessionMayGetLostThoughItsProcessLives) {
  Force(Site::kSessionLost, 1);
  Run([&] {
    const std::unique_ptr<Session> session = client_->coordinator()->OpenSession().value();
    EXPECT_TRUE(session->alive());
    EXPECT_THAT(client_->store()->SafePoint(), IsOk());
    EXPECT_FALSE(session->alive());
    EXPECT_FALSE(client_->coordinator()->IsAlive(session->id()).value());
  });
}

TEST_F(SimTest, ASessionWhoseOpeningWasLostExpires) {
  Force(Site::kReplyLost);
  Run([&] {
    EXPECT_THAT(client_->coordinator()->OpenSession(), StatusIs(kUnavailable));
    EXPECT_TRUE(world_->coordinator_server().IsAlive(1));
  });
  EXPECT_FALSE(world_->coordinator_server().IsAlive(1));
}

TEST_F(SimTest, SessionsLeadClaimAndHoldSnapshots) {
  Run([&] {
    Coordinator* const coordinator = client_->coordinator();
    std::unique_ptr<Session> a = coordinator->OpenSession().value();
    const std::unique_ptr<Session> b = coordinator->OpenSession().value();
    EXPECT_TRUE(coordinator->Campaign("gc", *a).value());
    EXPECT_TRUE(coordinator->Campaign("gc", *a).value());
    EXPECT_FALSE(coordinator->Campaign("gc", *b).value());
    EXPECT_TRUE(coordinator->Claim("t", "r", *a).value());
    EXPECT_FALSE(coordinator->Claim("t", "r", *b).value());
    EXPECT_THAT(coordinator->Release("t", "r", *b),
                IsOk());  // not the owner
    EXPECT_FALSE(coordinator->Claim("t", "r", *b).value());
    EXPECT_THAT(coordinator->Release("t", "r", *a), IsOk());
    EXPECT_TRUE(coordinator->Claim("t", "r", *b).value());
    EXPECT_TRUE(coordinator->Claim("t", "s", *a).value());
    EXPECT_EQ(coordinator->OldestSnapshot().value(), Timestamp::Infinity());
    EXPECT_THAT(a->ReportOldestSnapshot(Timestamp(7)), IsOk());
    EXPECT_THAT(b->ReportOldestSnapshot(Timestamp(9)), IsOk());
    EXPECT_EQ(coordinator->OldestSnapshot().value(), Timestamp(7));
    a.reset();
    client_->process().Sleep(Duration(10'000));
    EXPECT_EQ(coordinator->OldestSnapshot().value(), Timestamp(9));
    EXPECT_THAT(b->ReportOldestSnapshot(Timestamp()), IsOk());
    EXPECT_EQ(coordinator->OldestSnapshot().value(), Timestamp::Infinity());
    EXPECT_TRUE(coordinator->Campaign("gc", *b).value());
    EXPECT_TRUE(coordinator->Claim("t", "s", *b).value());
  });
}

TEST_F(SimTest, HintsReachOtherProcesses) {
  Client* const other = world_->NewClient();
  std::vector<std::string> heard;
  client_->coordinator()->SetHintListener([&](const CellName& cell) { heard.push_back("self " + cell.row); });
  other->coordinator()->SetHintListener([&](const CellName& cell) {
    other->process().Sleep(Duration(1));  // a listener may wait
    heard.push_back(cell.row);
  });
  Force(Site::kHintLost, 1);
  Force(Site::kHintTwice, 1);
  Run([&] {
    for (const char* row : {"a", "b", "c"}) {
      client_->coordinator()->SendHint({"t", row, "c"});
      client_->process().Sleep(Duration(10'000));
    }
    other->coordinator()->SetHintListener(nullptr);
    client_->coordinator()->SendHint({"t", "d", "c"});
  });
  EXPECT_THAT(heard, ElementsAre("a", "c", "c"));
}

// ----- Whole runs

// Counts what it sees, and checks that rows change only as reported.
class Shadow : public StoreWatcher {
 public:
  void OnMutation(const RowChange& change) override {
    ++mutations_;
    std::vector<Cell>& row = rows_[change.mutation.row];
    EXPECT_EQ(row, change.before);
    row = change.after;
  }
  void OnRead(const ServedRead& read) override { reads_ += read.row.key == read.read.row ? 1 : 0; }
  void OnScan(const ServedScan& /*scan*/) override { ++scans_; }
  void OnSafePoint(Duration /*time*/, Timestamp ts) override { safe_point_ = ts; }

  int mutations_ = 0;
  int reads_ = 0;
  int scans_ = 0;
  Timestamp safe_point_;
  std::map<std::string, std::vector<Cell>> rows_;
};

// Clients that use all calls, and are replaced when they die.
class BusyClients : public ProcessListener {
 public:
  explicit BusyClients(World* world) : world_(world) {
    EXPECT_THAT(world->store_server().disk()->CreateTable({"t", ""}), IsOk());
  }

  void Start(int calls) {
    Client* const client = world_->NewClient();
    client->process().AddListener(this);
    for (int i = 0; i < 2; ++i) {
      client->process().Start([this, client, calls] { Work(client, calls); });
    }
  }

  void OnCrash(Process* /*process*/) override {
    if (++crashes_ <= 5) Start(20);
  }

  int crashes_ = 0;

 private:
  void Work(Client* client, int calls) {
    const absl::StatusOr<std::unique_ptr<Session>> session = client->coordinator()->OpenSession();
    for (int i = 0; i < calls; ++i) {
      const std::string row = StrCat("r", world_->Draw(client->process(), 5));
      const std::string other = StrCat("s", world_->Draw(client->process(), 5));
      const Timestamp ts = client->oracle()->GetTimestamp().value_or(Timestamp(1));
      client->store()->Mutate({SetCell(row, ts.value(), "value"), SetCell(other, ts.value(), "other")});
      (void)client->store()->Read({ReadAll(row), ReadAll(other)});
      (void)client->store()->Scan({.table = "t", .selectors = {{.family = Family::kData}}, .row_limit = 3});
      if (client->store()->CanMutateTogether()) {
        const RowMutation set{"t", row, {}, {Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), "")}};
        (void)client->store()->MutateTogether({ts, {set}}, client->oracle());
      }
      if (session.ok()) (void)client->coordinator()->IsAlive((*session)->id());
      client->process().Sleep(Duration(client->process().Random() % 1000));
    }
  }

  World* const world_;
};

struct BusyRun {
  Ending ending = Ending::kStuck;
  uint64_t hash = 0;
  size_t faults = 0;
  std::string waiting;
};

BusyRun RunBusy(uint64_t seed, const Faults& faults) {
  World world(seed, faults);
  Shadow shadow;
  world.store_server().SetWatcher(&shadow);
  BusyClients clients(&world);
  for (int i = 0; i < 3; ++i) clients.Start(20);
  const Scheduler::Report report = world.Run({.events = 1'000'000});
  return {report.ending, world.hash(), world.chance().happened().size(), report.waiting};
}

TEST(World, OneSeedIsOneRun) {
  std::set<uint64_t> hashes;
  size_t faults = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const BusyRun first = RunBusy(seed, Faults::Swarm(seed));
    EXPECT_EQ(first.ending, Ending::kDone) << seed << "\n" << first.waiting;
    EXPECT_EQ(first.hash, RunBusy(seed, Faults::Swarm(seed)).hash) << seed;
    hashes.insert(first.hash);
    faults += first.faults;
  }
  EXPECT_EQ(hashes.size(), 16U);
  EXPECT_GT(faults, 500U);
}

TEST(World, SuppressedFaultsDoNotHappen) {
  Faults faults;
  faults.rates.reply_lost = 0.05;
  std::vector<FaultId> happened;
  for (int run = 0; run < 2; ++run) {
    World world(8, faults);
    for (const FaultId& fault : happened) world.chance().Suppress(fault);
    BusyClients clients(&world);
    clients.Start(20);
    EXPECT_EQ(world.Run().ending, Ending::kDone);
    if (run == 0) {
      happened = world.chance().happened();
      EXPECT_GT(happened.size(), 3U);
    } else {
      EXPECT_TRUE(world.chance().happened().empty());
    }
  }
}

TEST(World, AHealedWorldHasNoFaults) {
  Faults faults;
  for (const RateField& field : RateFields()) faults.rates.*field.rate = 0.05;
  faults.rates.crash = faults.rates.crash_after_send = 0.001;
  World world(4, faults);
  BusyClients clients(&world);
  for (int i = 0; i < 3; ++i) clients.Start(20);
  world.Run({.until = std::chrono::seconds(2)});
  world.Heal();
  const size_t before = world.chance().happened().size();
  EXPECT_GT(before, 20U);
  Client* const client = world.NewClient();
  client->process().Start([&] {
    for (int i = 0; i < 200; ++i) {
      EXPECT_THAT(client->store()->Mutate({SetCell("a", i + 1, "")}), ElementsAre(IsOk()));
      EXPECT_THAT(client->oracle()->GetTimestamp(), IsOk());
    }
  });
  EXPECT_EQ(world.Run({.events = 1'000'000}).ending, Ending::kDone);
  // Messages sent before may still reach servers that restarted before.
  EXPECT_LE(world.chance().happened().size(), before + 10);
}

TEST(World, TheWatcherSeesEverything) {
  Faults faults;
  faults.one_step = true;
  World world(2, faults);
  Shadow shadow;
  world.store_server().SetWatcher(&shadow);
  BusyClients clients(&world);
  clients.Start(10);
  Client* const client = world.NewClient();
  client->process().Start([&] {
    EXPECT_THAT(client->store()->RaiseSafePoint(Timestamp(3)), IsOk());
    EXPECT_THAT(client->store()->RaiseSafePoint(Timestamp(2)), IsOk());
  });
  EXPECT_EQ(world.Run().ending, Ending::kDone);
  EXPECT_EQ(shadow.mutations_, 60);  // 2 fibers, 10 rounds, 2 rows and one step
  EXPECT_EQ(shadow.reads_, 40);
  EXPECT_GE(shadow.scans_, 20);
  EXPECT_EQ(shadow.safe_point_, Timestamp(3));
}

TEST(World, TheTraceShowsEvents) {
  World world(1, Faults::None());
  ASSERT_THAT(world.store_server().disk()->CreateTable({"t", ""}), IsOk());
  world.trace().Keep(Trace::kEverything);
  Client* const client = world.NewClient();
  world.chance().Force({client->process().id(), Site::kReplyLost, 1});
  client->process().Start([&] {
    client->store()->Mutate({SetCell("a", 7, "a value that is much too long")});
    (void)client->store()->Read({ReadAll("a")});
    client->process().Crash();
  });
  EXPECT_EQ(world.Run().ending, Ending::kDone);
  const std::string text = world.trace().Text();
  EXPECT_THAT(text, HasSubstr("p1       mutate t/a set data:c@7=a value that is .. -> applied\n"));
  EXPECT_THAT(text, HasSubstr("p1       read t/a data:c -> {data:c@7=a value that is ..}\n"));
  EXPECT_THAT(text, HasSubstr("p1       ! Store::Read: reply lost\n"));
  EXPECT_THAT(text, HasSubstr("p1       ! dies\n"));
}

TEST(World, TheTraceCanKeepOnlyTheLastLines) {
  Trace trace;
  trace.Line(Duration(0), "x", "off");
  EXPECT_EQ(trace.Text(), "");
  trace.Keep(2);
  for (const char* line : {"one", "two", "three"}) trace.Line(Duration(1'234'567), "x", line);
  EXPECT_EQ(trace.Text(), "(1 lines before)\n  1234.567ms  x        two\n  1234.567ms  x        three\n");
}

TEST(Faults, ASwarmDiffersFromSeedToSeed) {
  std::set<std::string> texts;
  for (const RateField& field : RateFields()) {
    int on = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) on += Faults::Swarm(seed).rates.*field.rate > 0 ? 1 : 0;
    EXPECT_GT(on, 60) << field.name;
    EXPECT_LT(on, 260) << field.name;
  }
  for (uint64_t seed = 0; seed < 100; ++seed) texts.insert(ToText(Faults::Swarm(seed)));
  EXPECT_EQ(texts.size(), 100U);
  EXPECT_EQ(ToText(Faults::None()), "");
}

// Prints the speed of the world, without asserting it.
TEST(World, ReportsItsSpeed) {
  constexpr int kClients = 8;
  constexpr int kCalls = 2'000;
  World world(1, Faults::None());
  ASSERT_THAT(world.store_server().disk()->CreateTable({"t", ""}), IsOk());
  for (int i = 0; i < kClients; ++i) {
    Client* const client = world.NewClient();
    client->process().Start([client] {
      for (int n = 0; n < kCalls / 2; ++n) {
        const std::string row = StrCat("row", n % 50);
        client->store()->Mutate({SetCell(row, 1 + n % 10, "some value")});
        (void)client->store()->Read({ReadAll(row)});
      }
    });
  }
  const auto begin = std::chrono::steady_clock::now();
  const Scheduler::Report report = world.Run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(report.ending, Ending::kDone);
  std::cout << static_cast<int>(kClients * kCalls / took.count()) << " store calls per second, "
            << static_cast<int>(static_cast<double>(report.events) / took.count()) << " events per second\n";
}

}  // namespace
}  // namespace percolator::sim
