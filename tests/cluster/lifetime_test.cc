// The handles of a cluster: each of their calls after Close, during it and when the cluster's own handle is gone, and
// every order in which they can be destroyed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/loader.h"
#ifdef PERCOLATOR_WITH_SERVER
#include "percolator/server.h"
#endif
#include "src/base/strings.h"
#include "src/txn/engine.h"
#include "src/txn/lock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto kSoon = std::chrono::seconds(60);

bool IsClosed(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && status.message() == "the cluster is closed";
}

// One of each, all of the same cluster.
struct Handles {
  explicit Handles(const std::string& address) {
    absl::StatusOr<std::unique_ptr<Cluster>> opened = Cluster::Open(address, {.gc_period = Duration(0)});
    EXPECT_THAT(opened, IsOk());
    cluster = *std::move(opened);
    EXPECT_THAT(cluster->EnsureTable("t", {.notify_only_columns = {"n"}}), IsOk());
    EXPECT_THAT(cluster->Transact([](ReadWrite& t) -> absl::Status {
      for (const char* row : {"a", "b", "c"}) {
        if (absl::Status s = t.Set("t", row, "c", "1"); !s.ok()) return s;
      }
      return absl::OkStatus();
    }),
                IsOk());
    snapshot.emplace(cluster->Now().value());
    transaction = std::make_unique<Transaction>(cluster.get());
    EXPECT_THAT(transaction->Set("t", "d", "c", "1"), IsOk());
    rows = snapshot->Scan({.table = "t"});
    EXPECT_TRUE(rows->Next());
    worker = std::make_unique<Worker>(cluster.get());
    worker->Observe({.name = "o", .table = "t", .column = "c", .run = [](ReadWrite&, const Notification&) {
                       return absl::OkStatus();
                     }});
    EXPECT_THAT(worker->Start(), IsOk());
    loader = std::make_unique<Loader>(cluster.get());
    inspector.emplace(cluster.get());
  }

  std::unique_ptr<Cluster> cluster;
  std::optional<Snapshot> snapshot;
  std::unique_ptr<Transaction> transaction;
  std::unique_ptr<RowIterator> rows;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Loader> loader;
  std::optional<Inspector> inspector;
};

struct Call {
  const char* name;
  std::function<absl::Status(Handles& h)> call;
};

absl::Status ReadAll(RowIterator* rows) {
  while (rows->Next()) continue;
  return rows->status();
}

absl::Status SetOne(ReadWrite& t) { return t.Set("t", "e", "c", "1"); }

std::vector<Call> ClusterCalls() {
  return {
      {"CreateTable", [](Handles& h) { return h.cluster->CreateTable("u"); }},
      {"EnsureTable", [](Handles& h) { return h.cluster->EnsureTable("u"); }},
      {"DropTable", [](Handles& h) { return h.cluster->DropTable("u"); }},
      {"ListTables", [](Handles& h) { return h.cluster->ListTables().status(); }},
      {"Transact", [](Handles& h) { return h.cluster->Transact(SetOne).status(); }},
      {"Now", [](Handles& h) { return h.cluster->Now().status(); }},
      {"AsOf", [](Handles& h) { return h.cluster->AsOf(h.snapshot->timestamp()).status(); }},
      {"Resolve",
       [](Handles& h) {
         return h.cluster->Resolve({.start_ts = h.snapshot->timestamp(), .primary = {"t", "a", "c"}}).status();
       }},
      {"NotificationBacklog", [](Handles& h) { return h.cluster->NotificationBacklog().status(); }},
      {"CollectGarbage", [](Handles& h) { return h.cluster->CollectGarbage().status(); }},
      {"new Transaction", [](Handles& h) { return SetOne(*std::make_unique<Transaction>(h.cluster.get())); }},
      {"new Worker",
       [](Handles& h) {
         Worker worker(h.cluster.get(), {.add_only = true});
         return worker.Start();
       }},
      {"new Loader",
       [](Handles& h) {
         Loader loader(h.cluster.get());
         loader.Add(SetOne);
         return loader.Finish();
       }},
      {"new Inspector", [](Handles& h) { return Inspector(h.cluster.get()).ListTables().status(); }},
  };
}

std::vector<Call> OtherCalls() {
  const Quarantined entry{.observer = "o", .cell = {"t", "a", "c"}};
  const BadCell bad{.cell = {"t", "a", "c"}};
  return {
      {"Snapshot::Get", [](Handles& h) { return h.snapshot->Get("t", "a", "c").status(); }},
      {"Snapshot::Get many",
       [](Handles& h) {
         return h.snapshot->Get({{"t", "a", "c"}, {"t", "b", "c"}}).status();
       }},
      {"Snapshot::Scan", [](Handles& h) { return ReadAll(h.snapshot->Scan({.table = "t"}).get()); }},
      {"copy of a Snapshot", [](Handles& h) { return Snapshot(*h.snapshot).Get("t", "a", "c").status(); }},
      {"RowIterator::Next", [](Handles& h) { return ReadAll(h.rows.get()); }},
      {"Transaction::Get", [](Handles& h) { return h.transaction->Get("t", "a", "c").status(); }},
      {"Transaction::Get many",
       [](Handles& h) {
         return h.transaction->Get({{"t", "a", "c"}}).status();
       }},
      {"Transaction::Scan", [](Handles& h) { return ReadAll(h.transaction->Scan({.table = "t"}).get()); }},
      {"Transaction::Set", [](Handles& h) { return h.transaction->Set("t", "d", "c", "2"); }},
      {"Transaction::Delete", [](Handles& h) { return h.transaction->Delete("t", "f", "c"); }},
      {"Transaction::Verify", [](Handles& h) { return h.transaction->Verify("t", "b", "c"); }},
      {"Transaction::Notify", [](Handles& h) { return h.transaction->Notify("t", "a", "n"); }},
      {"Transaction::Start", [](Handles& h) { return h.transaction->Start().status(); }},
      {"Transaction::Commit", [](Handles& h) { return h.transaction->Commit().status; }},
      {"Transaction::Commit again", [](Handles& h) { return h.transaction->Commit().status; }},
      {"Worker::WaitUntilIdle", [](Handles& h) { return h.worker->WaitUntilIdle(kSoon); }},
      {"Worker::Backfill", [](Handles& h) { return h.worker->Backfill("o"); }},
      {"Worker::ListQuarantine", [](Handles& h) { return h.worker->ListQuarantine().status(); }},
      {"Worker::Replay", [entry](Handles& h) { return h.worker->Replay(entry); }},
      {"Worker::Drop", [entry](Handles& h) { return h.worker->Drop(entry); }},
      {"Inspector::ListTables", [](Handles& h) { return h.inspector->ListTables().status(); }},
      {"Inspector::ListObservers", [](Handles& h) { return h.inspector->ListObservers().status(); }},
      {"Inspector::ReadCells", [](Handles& h) { return h.inspector->ReadCells("t", "a").status(); }},
      {"Inspector::ListLocks", [](Handles& h) { return h.inspector->ListLocks().status(); }},
      {"Inspector::ResolveLocks", [](Handles& h) { return h.inspector->ResolveLocks().status(); }},
      {"Inspector::ListNotifications", [](Handles& h) { return h.inspector->ListNotifications().status(); }},
      {"Inspector::Check", [](Handles& h) { return h.inspector->Check("t", [](const BadCell&) {}).status(); }},
      {"Inspector::EraseBadCell", [bad](Handles& h) { return h.inspector->EraseBadCell(bad).status(); }},
      {"Inspector::ListQuarantine", [](Handles& h) { return h.inspector->ListQuarantine().status(); }},
      {"Inspector::Replay", [entry](Handles& h) { return h.inspector->Replay(entry); }},
      {"Inspector::Drop", [entry](Handles& h) { return h.inspector->Drop(entry); }},
      {"Inspector::SafePoint", [](Handles& h) { return h.inspector->SafePoint().status(); }},
      {"Loader",
       [](Handles& h) {
         h.loader->Add(SetOne);
         return h.loader->Finish();
       }},
  };
}

// Calls that need no cluster, and work always.
void UseWhatIsLeft(Handles* h) {
  h->worker->Pause();
  h->worker->Resume();
  EXPECT_EQ(h->worker->Metrics().size(), 1U);
  EXPECT_THAT(h->worker->DescribeGraph(), HasSubstr("o observes"));
  EXPECT_NE(h->snapshot->timestamp(), Timestamp());
  h->loader->progress();
}

class LifetimeTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string Address() {
    if (GetParam() == "rocksdb") return StrCat("rocksdb:", dir_.path(), "/store");
#ifdef PERCOLATOR_WITH_SERVER
    if (GetParam() == "server") {
      server_ = Server::Start({.listen = "127.0.0.1:0"}).value();
      return server_->address();
    }
#endif
    return "memory:";
  }

  TempDir dir_;
#ifdef PERCOLATOR_WITH_SERVER
  std::unique_ptr<Server> server_;
#endif
};

TEST_P(LifetimeTest, AfterCloseEveryCallSaysSo) {
  Handles h(Address());
  EXPECT_THAT(h.cluster->Close(), IsOk());
  for (const std::vector<Call>& calls : {ClusterCalls(), OtherCalls()}) {
    for (const Call& call : calls) {
      const absl::Status status = call.call(h);
      EXPECT_TRUE(IsClosed(status)) << call.name << ": " << status;
    }
  }
  EXPECT_EQ(h.transaction->Commit().outcome, CommitResult::Outcome::kAborted);
  EXPECT_THAT(h.worker->Stop(), IsOk());
  EXPECT_THAT(h.cluster->Close(), IsOk());
  EXPECT_GT(h.cluster->stats().commits, 0U);
  UseWhatIsLeft(&h);
}

TEST_P(LifetimeTest, WithoutTheClustersHandleTheOthersWork) {
  Handles h(Address());
  h.cluster.reset();
  for (const Call& call : OtherCalls()) {
    const absl::Status status = call.call(h);
    // No such entry is in quarantine, and the cell is not bad.
    EXPECT_THAT(status, AnyOf(IsOk(), StatusIs(absl::StatusCode::kNotFound))) << call.name;
  }
  UseWhatIsLeft(&h);
}

TEST_P(LifetimeTest, DuringCloseACallSucceedsOrSaysThatItIsClosed) {
  Handles h(Address());
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&h, &begun, i] {
      for (bool closed = false; !closed;) {
        ++begun;
        for (const Call& call : ClusterCalls()) {
          const absl::Status status = call.call(h);
          closed = closed || IsClosed(status);
          // The others create and drop the same table, and start workers with other observers.
          EXPECT_FALSE(absl::IsInternal(status) || absl::IsDataLoss(status)) << call.name << status << i;
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (bool closed = false; !closed;) {
      ++begun;
      for (const Call& call : OtherCalls()) closed = IsClosed(call.call(h)) || closed;
    }
  });
  while (begun < 4) std::this_thread::yield();
  EXPECT_THAT(h.cluster->Close(), IsOk());
  for (std::thread& thread : threads) thread.join();
}

TEST_P(LifetimeTest, HandlesMayBeDestroyedInAnyOrder) {
  const std::string address = Address();
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    for (const bool close : {false, true}) {
      Handles h(address);
      h.loader.reset();
      h.inspector.reset();
      if (close) {
        EXPECT_THAT(h.cluster->Close(), IsOk());
      }
      for (const int which : order) {
        if (which == 0) h.cluster.reset();
        if (which == 1) h.snapshot.reset();
        if (which == 2) h.transaction.reset();
        if (which == 3) h.rows.reset();
        if (which == 4) h.worker.reset();
      }
    }
    if (GetParam() != "memory") std::reverse(order.begin() + 1, order.end());  // 5 of the 120: they take longer
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(LifetimeTest, AScanMayOutliveItsView) {
  Handles h(Address());
  std::unique_ptr<RowIterator> rows = Snapshot(h.cluster->Now().value()).Scan({.table = "t"});
  EXPECT_TRUE(rows->Next());
  h.cluster.reset();
  EXPECT_TRUE(rows->Next());
  EXPECT_EQ(rows->row().key, "b");
}

TEST_P(LifetimeTest, TwoWhoCloseGetTheSameAnswer) {
  Handles h(Address());
  absl::Status other = absl::UnknownError("");
  std::thread thread([&] { other = h.cluster->Close(); });
  EXPECT_THAT(h.cluster->Close(), IsOk());
  thread.join();
  EXPECT_THAT(other, IsOk());
}

INSTANTIATE_TEST_SUITE_P(Addresses, LifetimeTest,
                         ::testing::Values("memory", "rocksdb"
#ifdef PERCOLATOR_WITH_SERVER
                                           ,
                                           "server"
#endif
                                           ),
                         [](const auto& test) { return test.param; });

TEST(CloseTest, AnObserverCannotCloseItsCluster) {
  Handles h("memory:");
  absl::Status closed;
  absl::Status stopped;
  absl::Status closed_after_commit;
  WorkerOptions options;
  options.add_only = true;
  options.on_commit = [&](std::string_view observer, const Notification&, Timestamp) {
    if (observer == "closer") closed_after_commit = h.cluster->Close();
  };
  Worker worker(h.cluster.get(), options);
  worker.Observe({.name = "closer", .table = "t", .column = "x", .run = [&](ReadWrite&, const Notification&) {
                    closed = h.cluster->Close();
                    stopped = worker.Stop();
                    return absl::OkStatus();
                  }});
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(h.cluster->Transact([](ReadWrite& t) { return t.Set("t", "a", "x", "1"); }), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kSoon), IsOk());
  EXPECT_THAT(closed, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("called by an observer")));
  EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("called by an observer")));
  EXPECT_THAT(worker.Stop(), IsOk());  // the callback after the commit has returned
  EXPECT_THAT(closed_after_commit, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(h.cluster->Now(), IsOk());
}

TEST(CloseTest, ALoadFunctionCannotCloseItsCluster) {
  Handles h("memory:");
  absl::Status closed;
  absl::Status finished;
  h.loader->Add([&](ReadWrite&) {
    closed = h.cluster->Close();
    finished = h.loader->Finish();
    return absl::OkStatus();
  });
  EXPECT_THAT(h.loader->Finish(), IsOk());
  EXPECT_THAT(closed, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("load function")));
  EXPECT_THAT(finished, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("load function")));
}

TEST(CloseTest, WaitsForLoadFunctionsThatRunAndDropsTheOthers) {
  Handles h("memory:");
  std::atomic<bool> running{false};
  std::atomic<int> runs{0};
  Loader loader(h.cluster.get(), {.threads = 1});
  for (int i = 0; i < 100; ++i) {
    loader.Add([&](ReadWrite& t) {
      ++runs;
      running = true;
      while (loader.progress().done < 99) std::this_thread::yield();  // until Close has dropped the others
      return SetOne(t);
    });
  }
  while (!running) std::this_thread::yield();
  EXPECT_THAT(h.cluster->Close(), IsOk());
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(IsClosed(loader.Finish()));
  EXPECT_EQ(loader.progress().done, 100U);
  EXPECT_EQ(loader.progress().failed, 99U);
}

TEST(CloseTest, ATransactFunctionMayCloseItsCluster) {
  Handles h("memory:");
  int runs = 0;
  const absl::Status status = h.cluster
                                  ->Transact([&](ReadWrite& t) {
                                    ++runs;
                                    EXPECT_THAT(h.cluster->Close(), IsOk());
                                    return SetOne(t);
                                  })
                                  .status();
  EXPECT_TRUE(IsClosed(status)) << status;
  EXPECT_EQ(runs, 1);
}

TEST(CloseTest, AFolderCanBeOpenedAgainWhileASnapshotOfTheOldClusterLives) {
  const TempDir dir;
  Handles h(StrCat("rocksdb:", dir.path(), "/store"));
  EXPECT_THAT(h.cluster->Close(), IsOk());
  Handles again(StrCat("rocksdb:", dir.path(), "/store"));
  EXPECT_TRUE(IsClosed(h.snapshot->Get("t", "a", "c").status()));
  EXPECT_THAT(again.snapshot->Get("t", "a", "c"), IsOk());
}

// The lock of a transaction that is alive, and stays so.
TEST(CloseTest, EndsAReadThatWaitsForALock) {
  const std::unique_ptr<Store> store = NewMemoryStore();
  const std::unique_ptr<Cluster> first = Cluster::Open("memory:").value();
  Oracle* const oracle = first->engine()->env.oracle;
  Coordinator* const coordinator = first->engine()->env.coordinator;
  ClusterOptions options;
  options.lock_lease = std::chrono::hours(1);
  options.call_timeout = std::chrono::hours(1);
  options.gc_retention = std::chrono::hours(9);
  options.gc_period = Duration(0);
  const auto cluster = Cluster::Assemble({store.get(), oracle, coordinator}, options).value();
  ASSERT_THAT(cluster->CreateTable("t"), IsOk());
  const std::unique_ptr<Session> owner = coordinator->OpenSession().value();
  const Timestamp start_ts = oracle->GetTimestamp().value();
  const Lock lock{.kind = WriteKind::kPut, .session = owner->id(), .refreshed = start_ts, .value = "1"};
  ASSERT_THAT(store->Mutate({{"t", "a", {}, {Mutation::Set(Family::kLock, "c", start_ts, EncodeLock(lock))}}}).front(),
              IsOk());
  Snapshot snapshot = cluster->Now().value();
  std::atomic<bool> reading{false};
  std::thread reader([&] {
    reading = true;
    EXPECT_TRUE(IsClosed(snapshot.Get("t", "a", "c").status()));
  });
  while (!reading || cluster->stats().locks_met == 0) std::this_thread::yield();
  EXPECT_THAT(cluster->Close(), IsOk());
  reader.join();
}

// Threads do not survive a fork, and files would have two writers.
TEST(ForkedClusterTest, AChildCanUseNothingAndTheParentLosesNothing) {
  const TempDir dir;
  const std::string address = StrCat("rocksdb:", dir.path(), "/store");
  Handles h(address);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    for (const std::vector<Call>& calls : {ClusterCalls(), OtherCalls()}) {
      for (const Call& call : calls) {
        const absl::Status status = call.call(h);
        const bool says_so = absl::IsFailedPrecondition(status) &&
                             absl::StrContains(status.message(), "the process that forked this one");
        if (!says_so) ++wrong;
        if (!says_so) fprintf(stderr, "%s: %s\n", call.name, status.ToString().c_str());
      }
    }
    if (h.cluster->Close().ok()) ++wrong;
    { const Handles destroyed = std::move(h); }
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "calls that did not say so";
  ASSERT_THAT(h.cluster->Transact([](ReadWrite& t) { return t.Set("t", "a", "c", "2"); }), IsOk());
  ASSERT_THAT(h.cluster->Close(), IsOk());
  const std::unique_ptr<Cluster> again = Cluster::Open(address).value();
  EXPECT_EQ(again->Now()->Get("t", "a", "c").value(), "2");
}

}  // namespace
}  // namespace percolator
