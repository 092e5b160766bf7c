// SPDX-License-Identifier: Apache-2.0

// The handles of a cluster: each of their calls after Close, during it, after the cluster's own handle was destroyed
// and after they were moved from, and every order of destruction.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/export_queue.h"
#include "percolator/inspect.h"
#include "percolator/loader.h"
#include "percolator/observer.h"
#ifdef PERCOLATOR_WITH_SERVER
#include "percolator/server.h"
#endif
#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "src/base/strings.h"
#include "src/txn/lock.h"
#include "tests/harness/eventually.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr auto kSoon = std::chrono::seconds(60);

constexpr Column<std::string> kText("t", "c");
constexpr Column<int64_t> kNumber("t", "c");
constexpr NotifyColumn kWork("t", "n");

CombineQueue<int64_t> Sums() { return {"sums", Sum}; }
ExportQueue Exports() { return ExportQueue("exports"); }

MATCHER(SaysClosed, negation ? "does not say that the cluster is closed" : "says that the cluster is closed") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return IsClosed(status) && absl::IsFailedPrecondition(status) && absl::StartsWith(status.message(), "the cluster ") &&
         absl::EndsWith(status.message(), " is closed");
}

// --- Scans

std::string KeyOf(const ScannedRow& row) { return row.key; }
template <typename T>
std::string KeyOf(const Entry<T>& entry) {
  return entry.row;
}

// Reads the elements from `at` on. Returns the error, which must be the last of them, or OK.
template <typename Iterator>
absl::Status ReadFrom(Iterator at) {
  for (; at != std::default_sentinel; ++at) {
    if (at->ok()) continue;
    absl::Status error = at->status();
    ++at;
    EXPECT_TRUE(at == std::default_sentinel) << "an element after " << error;
    return error;
  }
  return absl::OkStatus();
}

template <typename Scan>
absl::Status ReadAll(Scan scan) {
  return ReadFrom(scan.begin());
}

// A scan that has been read in part.
template <typename Scan>
class PartlyRead {
 public:
  template <typename Make>
  PartlyRead(const Make& make, int rows) : scan_(make()) {
    for (int i = 0; i < rows; ++i) Step();
    if (rows > 0) key_ = KeyOf(***at_);
  }

  // Reads the rest. The row that was read last must still exist.
  absl::Status ReadRest() {
    if (at_.has_value() && *at_ == std::default_sentinel) return absl::OkStatus();  // a second call
    if (at_.has_value()) {
      EXPECT_EQ(KeyOf(***at_), key_);
    }
    Step();
    return ReadFrom(*at_);
  }

 private:
  void Step() {
    if (at_.has_value()) {
      ++*at_;
    } else {
      at_ = scan_.begin();
    }
  }

  Scan scan_;
  std::optional<typename Scan::Iterator> at_;
  std::string key_;
};

// --- Reads and writes

struct Read {
  std::string name;
  std::function<absl::Status(const ReadView& view)> read;
};

std::vector<Read> Reads() {
  return {
      {"Get",
       [](const ReadView& view) {
         return view.Get({"t", "a", "c"}).status();
       }},
      {"typed Get", [](const ReadView& view) { return view.Get(kNumber, "a").status(); }},
      {"Get with a fallback", [](const ReadView& view) { return view.Get(kNumber, "x", 7).status(); }},
      {"GetColumns", [](const ReadView& view) { return view.GetColumns("a", kNumber, kText).status(); }},
      {"GetRows",
       [](const ReadView& view) {
         return view.GetRows(kNumber, {"a", "b"}).status();
       }},
      {"GetCells of views",
       [](const ReadView& view) {
         return view.GetCells(std::vector<CellView>{{"t", "a", "c"}, {"t", "b", "c"}}).status();
       }},
      {"GetCells of names",
       [](const ReadView& view) {
         return view.GetCells(std::vector<CellName>{{"t", "a", "c"}, {"t", "b", "c"}}).status();
       }},
      {"Scan", [](const ReadView& view) { return ReadAll(view.Scan("t")); }},
      {"Scan of keys", [](const ReadView& view) { return ReadAll(view.Scan("t", {.limit = 2, .keys_only = true})); }},
      {"Scan in reverse", [](const ReadView& view) { return ReadAll(view.Scan("t", {.reverse = true})); }},
      {"typed Scan", [](const ReadView& view) { return ReadAll(view.Scan(kNumber)); }},
      {"CombineQueue::Get", [](const ReadView& view) { return Sums().Get(view, "k").status(); }},
      {"CombineQueue::GetMany",
       [](const ReadView& view) {
         return Sums().GetMany(view, {"k", "l"}).status();
       }},
      {"CombineQueue::GetExact", [](const ReadView& view) { return Sums().GetExact(view, "k").status(); }},
      {"CombineQueue::ForEach",
       [](const ReadView& view) { return Sums().ForEach(view, [](std::string_view, int64_t) {}); }},
      {"ExportQueue::GetProgress", [](const ReadView& view) { return Exports().GetProgress(view, 0).status(); }},
  };
}

struct Write {
  std::string name;
  std::function<void(ReadWrite& t)> write;
};

std::vector<Write> Writes() {
  return {
      {"Set",
       [](ReadWrite& t) {
         t.Set({"t", "d", "c"}, "2");
       }},
      {"Delete",
       [](ReadWrite& t) {
         t.Delete({"t", "f", "c"});
       }},
      {"Verify",
       [](ReadWrite& t) {
         t.Verify({"t", "b", "c"});
       }},
      {"Notify",
       [](ReadWrite& t) {
         t.Notify({"t", "a", "n"});
       }},
      {"typed Set", [](ReadWrite& t) { t.Set(kNumber, "d", 2); }},
      {"typed Delete", [](ReadWrite& t) { t.Delete(kNumber, "f"); }},
      {"SetOrDelete", [](ReadWrite& t) { t.SetOrDelete(kNumber, "f", std::nullopt); }},
      {"typed Verify", [](ReadWrite& t) { t.Verify(kNumber, "b"); }},
      {"SetOrVerify", [](ReadWrite& t) { t.SetOrVerify(kNumber, "b", 1, 1); }},
      {"typed Notify", [](ReadWrite& t) { t.Notify(kWork, "a"); }},
      {"CombineQueue::Add", [](ReadWrite& t) { Sums().Add(t, "k", 1); }},
      {"ExportQueue::Add", [](ReadWrite& t) { Exports().Add(t, "k", "payload"); }},
  };
}

void SetOne(ReadWrite& t) { t.Set({"t", "e", "c"}, "1"); }

// --- Handles

// Some handles of each kind, all of the same cluster.
struct Handles {
  explicit Handles(const std::string& address)
      : cluster(Cluster::Open(address, {.gc_period = Duration(0)}).value()), inspector(*cluster) {
    EXPECT_THAT(cluster->EnsureTable("t", {.notify_only_columns = {"n"}}), IsOk());
    EXPECT_THAT(Sums().EnsureTable(*cluster), IsOk());
    EXPECT_THAT(Exports().EnsureTable(*cluster), IsOk());
    EXPECT_THAT(cluster->Transact([](ReadWrite& t) {
      for (const char* row : {"a", "b", "c"}) t.Set(kNumber, row, 1);
    }),
                IsOk());
    snapshot.emplace(cluster->GetSnapshot().value());
    transaction = std::make_unique<Transaction>(*cluster);
    transaction->Set(kNumber, "d", 1);
    EXPECT_THAT(transaction->status(), IsOk());
    begun = std::make_unique<Transaction>(*cluster);
    EXPECT_THAT(begun->Get(kNumber, "a"), IsOk());
    for (size_t i = 0; i < Writes().size(); ++i) writers.push_back(std::make_unique<Transaction>(*cluster));
    AddScans<RowScan>("RowScan", [this] { return snapshot->Scan("t"); });
    AddScans<RowScan>("RowScan of a transaction", [this] { return begun->Scan("t"); });
    AddScans<ColumnScan<int64_t>>("ColumnScan", [this] { return snapshot->Scan(kNumber); });
    worker = std::make_unique<Worker>(*cluster);
    worker->Observe(kNumber, "o", [](ReadWrite&, const std::string&) {});
    EXPECT_THAT(worker->Start(), IsOk());
    unstarted = std::make_unique<Worker>(*cluster, WorkerOptions{.add_only = true});
    loader = std::make_unique<Loader>(*cluster);
  }

  template <typename Scan, typename Make>
  void AddScans(const std::string& name, const Make& make) {
    for (const auto& [where, rows] :
         {std::pair("at the beginning", 0), std::pair("in the middle", 1), std::pair("at the last row", 3)}) {
      const auto scan = std::make_shared<PartlyRead<Scan>>(make, rows);
      scans.push_back({StrCat(name, " ", where), [scan] { return scan->ReadRest(); }});
    }
  }

  void ResetTransactions() {
    transaction.reset();
    begun.reset();
    writers.clear();
  }

  void ResetWorkers() {
    worker.reset();
    unstarted.reset();
  }

  struct ScanHandle {
    std::string name;
    std::function<absl::Status()> read_rest;
  };

  std::optional<Cluster> cluster;
  std::optional<Snapshot> snapshot;
  std::unique_ptr<Transaction> transaction;  // not begun
  std::unique_ptr<Transaction> begun;
  std::vector<std::unique_ptr<Transaction>> writers;  // one for each of Writes
  std::vector<ScanHandle> scans;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Worker> unstarted;
  std::unique_ptr<Loader> loader;
  std::optional<Inspector> inspector;
};

struct Call {
  std::string name;
  std::function<absl::Status(Handles& h)> call;
  // Another error that it may return while the cluster is open: because others make the same calls, or because the
  // thing does not exist.
  absl::StatusCode unless = absl::StatusCode::kOk;
};

std::vector<Call> ClusterCalls() {
  return {
      {"CreateTable", [](Handles& h) { return h.cluster->CreateTable("u"); }, absl::StatusCode::kAlreadyExists},
      {"EnsureTable", [](Handles& h) { return h.cluster->EnsureTable("u"); }},
      {"DropTable", [](Handles& h) { return h.cluster->DropTable("u"); }, absl::StatusCode::kNotFound},
      {"ListTables", [](Handles& h) { return h.cluster->ListTables().status(); }},
      {"Transact", [](Handles& h) { return h.cluster->Transact(SetOne); }},
      {"Transact that returns a value",
       [](Handles& h) { return h.cluster->Transact([](ReadWrite& t) { return t.Get(kNumber, "a", 0); }).status(); }},
      {"Transact that does nothing", [](Handles& h) { return h.cluster->Transact([](ReadWrite&) {}); }},
      {"GetSnapshot", [](Handles& h) { return h.cluster->GetSnapshot().status(); }},
      {"GetSnapshotAt", [](Handles& h) { return h.cluster->GetSnapshotAt(h.snapshot->timestamp()).status(); }},
      {"Resolve",
       [](Handles& h) {
         return h.cluster->Resolve({.start_ts = h.snapshot->timestamp(), .primary = {"t", "a", "c"}}).status();
       }},
      {"CountNotifications", [](Handles& h) { return h.cluster->CountNotifications().status(); }},
      {"CollectGarbage", [](Handles& h) { return h.cluster->CollectGarbage().status(); }, absl::StatusCode::kNotFound},
      {"copy of a Cluster", [](Handles& h) { return Cluster(*h.cluster).ListTables().status(); }},
      {"CombineQueue::EnsureTable", [](Handles& h) { return Sums().EnsureTable(*h.cluster); }},
      {"ExportQueue::EnsureTable", [](Handles& h) { return Exports().EnsureTable(*h.cluster); }},
      {"new Transaction",
       [](Handles& h) {
         Transaction t(*h.cluster);
         SetOne(t);
         return t.status();
       }},
      {"new Worker",
       [](Handles& h) {
         Worker worker(*h.cluster, {.add_only = true});
         return worker.Start();
       }},
      {"new Loader",
       [](Handles& h) {
         Loader loader(*h.cluster);
         loader.Add(SetOne);
         return loader.Finish();
       }},
      {"new Inspector", [](Handles& h) { return Inspector(*h.cluster).ListTables().status(); }},
  };
}

std::vector<Call> OtherCalls(const Handles& handles) {
  std::vector<Call> calls;
  for (size_t i = 0; i < handles.scans.size(); ++i) {
    calls.push_back({handles.scans[i].name, [i](Handles& h) { return h.scans[i].read_rest(); }});
  }
  for (const auto& [name, read] : Reads()) {
    calls.push_back({"Snapshot: " + name, [read = read](Handles& h) { return read(*h.snapshot); }});
    calls.push_back({"copy of a Snapshot: " + name, [read = read](Handles& h) { return read(Snapshot(*h.snapshot)); }});
    calls.push_back({"Transaction: " + name, [read = read](Handles& h) { return read(*h.transaction); }});
    calls.push_back({"Transaction that has begun: " + name, [read = read](Handles& h) { return read(*h.begun); }});
  }
  const std::vector<Write> writes = Writes();
  for (size_t i = 0; i < writes.size(); ++i) {
    calls.push_back({"Transaction: " + writes[i].name, [i, write = writes[i].write](Handles& h) {
                       write(*h.writers[i]);
                       return h.writers[i]->status();
                     }});
  }
  const Quarantined entry{.observer = "o", .cell = {"t", "a", "c"}};
  const BadCell bad{.cell = {"t", "a", "c"}};
  const std::vector<Call> rest = {
      {"CombineQueue::NotifyAll", [](Handles& h) { return Sums().NotifyAll(*h.transaction); }},
      {"ExportQueue::NotifyAll", [](Handles& h) { return Exports().NotifyAll(*h.transaction); }},
      {"Transaction::Start", [](Handles& h) { return h.transaction->Start().status(); }},
      {"Transaction::Commit", [](Handles& h) { return h.transaction->Commit().status; }},
      {"Transaction::Commit again", [](Handles& h) { return h.transaction->Commit().status; }},
      {"Worker::Start", [](Handles& h) { return h.unstarted->Start(); }},
      {"Worker::WaitUntilIdle", [](Handles& h) { return h.worker->WaitUntilIdle(kSoon); }},
      {"Worker::Backfill", [](Handles& h) { return h.worker->Backfill("o"); }},
      {"Worker::ListQuarantine", [](Handles& h) { return h.worker->ListQuarantine().status(); }},
      {"Worker::Replay", [entry](Handles& h) { return h.worker->Replay(entry); }, absl::StatusCode::kNotFound},
      {"Worker::Drop", [entry](Handles& h) { return h.worker->Drop(entry); }, absl::StatusCode::kNotFound},
      {"Inspector::ListTables", [](Handles& h) { return h.inspector->ListTables().status(); }},
      {"Inspector::ListObservers", [](Handles& h) { return h.inspector->ListObservers().status(); }},
      {"Inspector::ReadCells", [](Handles& h) { return h.inspector->ReadCells("t", "a").status(); }},
      {"Inspector::ListLocks", [](Handles& h) { return h.inspector->ListLocks().status(); }},
      {"Inspector::ResolveLocks", [](Handles& h) { return h.inspector->ResolveLocks().status(); }},
      {"Inspector::ListNotifications", [](Handles& h) { return h.inspector->ListNotifications().status(); }},
      {"Inspector::Check", [](Handles& h) { return h.inspector->Check("t", [](const BadCell&) {}).status(); }},
      {"Inspector::EraseBadCell", [bad](Handles& h) { return h.inspector->EraseBadCell(bad).status(); },
       absl::StatusCode::kNotFound},
      {"Inspector::ListQuarantine", [](Handles& h) { return h.inspector->ListQuarantine().status(); }},
      {"Inspector::Replay", [entry](Handles& h) { return h.inspector->Replay(entry); }, absl::StatusCode::kNotFound},
      {"Inspector::Drop", [entry](Handles& h) { return h.inspector->Drop(entry); }, absl::StatusCode::kNotFound},
      {"Inspector::SafePoint", [](Handles& h) { return h.inspector->SafePoint().status(); }},
      {"copy of an Inspector", [](Handles& h) { return Inspector(*h.inspector).SafePoint().status(); }},
      {"Loader",
       [](Handles& h) {
         h.loader->Add(SetOne);
         return h.loader->Finish();
       }},
  };
  calls.insert(calls.end(), rest.begin(), rest.end());
  return calls;
}

template <typename Matcher>
void ExpectEach(const std::vector<Call>& calls, Handles* h, const Matcher& matcher) {
  for (const Call& call : calls) EXPECT_THAT(call.call(*h), matcher) << call.name;
}

void ExpectThatEachWorks(const std::vector<Call>& calls, Handles* h) {
  for (const Call& call : calls) EXPECT_THAT(call.call(*h), AnyOf(IsOk(), StatusIs(call.unless))) << call.name;
}

// Calls that do not need a cluster, and always work.
void UseWhatIsLeft(Handles* h) {
  h->worker->Pause();
  h->worker->Resume();
  EXPECT_EQ(h->worker->metrics().size(), 1U);
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

TEST_P(LifetimeTest, AfterCloseEveryCallReportsIt) {
  Handles h(Address());
  EXPECT_THAT(h.cluster->Close(), IsOk());
  ExpectEach(ClusterCalls(), &h, SaysClosed());
  ExpectEach(OtherCalls(h), &h, SaysClosed());
  EXPECT_EQ(h.transaction->Commit().outcome, CommitResult::Outcome::kAborted);
  for (const std::unique_ptr<Transaction>& writer : h.writers) {
    EXPECT_THAT(writer->Get(kNumber, "a"), SaysClosed());
    EXPECT_THAT(writer->Commit().status, SaysClosed());
    EXPECT_EQ(writer->Commit().outcome, CommitResult::Outcome::kAborted);
  }
  EXPECT_THAT(h.worker->Stop(), IsOk());
  EXPECT_THAT(h.cluster->Close(), IsOk());
  EXPECT_GT(h.cluster->metrics().commits, 0U);
  UseWhatIsLeft(&h);
}

TEST_P(LifetimeTest, OtherHandlesWorkWithoutTheClustersHandle) {
  Handles h(Address());
  h.cluster.reset();
  ExpectThatEachWorks(OtherCalls(h), &h);
  UseWhatIsLeft(&h);
}

TEST_P(LifetimeTest, ACopyOfAClusterIsTheSameCluster) {
  Handles h(Address());
  const Cluster copy = *h.cluster;
  h.cluster.reset();
  h.cluster.emplace(copy);
  ExpectEach(ClusterCalls(), &h, IsOk());
  EXPECT_THAT(copy.Close(), IsOk());
  EXPECT_EQ(h.cluster->metrics().commits, copy.metrics().commits);
  ExpectEach(ClusterCalls(), &h, SaysClosed());
  ExpectEach(OtherCalls(h), &h, SaysClosed());
  const Cluster late = copy;
  EXPECT_THAT(late.ListTables(), SaysClosed());
  EXPECT_THAT(late.Close(), IsOk());
}

// It works as before.
TEST_P(LifetimeTest, AHandleThatWasMovedFromStillWorks) {
  Handles h(Address());
  const Cluster cluster = std::move(*h.cluster);
  const Snapshot snapshot = std::move(*h.snapshot);
  Inspector inspector = std::move(*h.inspector);
  EXPECT_THAT(cluster.ListTables(), IsOk());
  EXPECT_THAT(snapshot.Get(kNumber, "a"), IsOk());
  EXPECT_THAT(inspector.ListTables(), IsOk());
  ExpectEach(ClusterCalls(), &h, IsOk());
  ExpectThatEachWorks(OtherCalls(h), &h);
  EXPECT_THAT(h.cluster->Close(), IsOk());
  EXPECT_THAT(cluster.ListTables(), SaysClosed());
  EXPECT_THAT(snapshot.Get(kNumber, "a"), SaysClosed());
  EXPECT_THAT(inspector.ListTables(), SaysClosed());
}

// Close begins at each call in turn, while three more threads call.
TEST_P(LifetimeTest, DuringCloseACallSucceedsOrReportsTheClose) {
  constexpr size_t kMoments = 8;
  const std::string address = Address();
  for (size_t moment = 0; moment < kMoments; ++moment) {
    Handles h(address);
    const auto expect_either = [&h](const Call& call) {
      const absl::Status status = call.call(h);
      EXPECT_THAT(status, AnyOf(IsOk(), SaysClosed(), StatusIs(call.unless))) << call.name;
      return IsClosed(status);
    };
    const std::vector<Call> others = OtherCalls(h);
    std::atomic<int> running{0};
    std::atomic<size_t> called{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        ++running;
        for (bool closed = false; !closed;) {
          for (const Call& call : ClusterCalls()) closed = expect_either(call) || closed;
        }
      });
    }
    threads.emplace_back([&] {
      for (const Call& call : others) {
        ++called;
        expect_either(call);
      }
    });
    while (running < 3 || called <= moment * others.size() / kMoments) std::this_thread::yield();
    EXPECT_THAT(h.cluster->Close(), IsOk());
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(LifetimeTest, DuringCloseEachHandleMayBeDestroyedOnAThreadOfItsOwn) {
  const std::string address = Address();
  for (int i = 0; i < 10; ++i) {
    Handles h(address);
    const Cluster copy = *h.cluster;
    std::optional<Inspector> other_inspector = h.inspector;
    std::optional<Snapshot> other_snapshot = h.snapshot;
    const std::vector<std::function<void()>> destroy = {
        [&] { h.cluster.reset(); },     [&] { h.snapshot.reset(); },  [&] { other_snapshot.reset(); },
        [&] { h.transaction.reset(); }, [&] { h.begun.reset(); },     [&] { h.writers.clear(); },
        [&] { h.scans.clear(); },       [&] { h.worker.reset(); },    [&] { h.unstarted.reset(); },
        [&] { h.loader.reset(); },      [&] { h.inspector.reset(); }, [&] { other_inspector.reset(); }};
    h.loader->Add(SetOne);
    std::atomic<bool> begin{false};
    std::vector<std::thread> threads;
    for (const std::function<void()>& fn : destroy) {
      threads.emplace_back([&begin, &fn] {
        while (!begin) std::this_thread::yield();
        fn();
      });
    }
    begin = true;
    EXPECT_THAT(copy.Close(), IsOk());
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(copy.ListTables(), SaysClosed());
  }
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
        if (which == 2) h.ResetTransactions();
        if (which == 3) h.scans.clear();
        if (which == 4) h.ResetWorkers();
      }
    }
    if (GetParam() != "memory") std::reverse(order.begin() + 1, order.end());  // 5 of the 120, because they take longer
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(LifetimeTest, AScanMayOutliveItsView) {
  Handles h(Address());
  RowScan rows = h.cluster->GetSnapshot()->Scan("t");
  ColumnScan<int64_t> numbers = h.cluster->GetSnapshot()->Scan(kNumber);
  auto row = rows.begin();
  auto number = numbers.begin();
  ASSERT_THAT(*row, IsOk());
  ASSERT_THAT(*number, IsOk());
  h.cluster.reset();
  ++row;
  ++number;
  ASSERT_THAT(*row, IsOk());
  ASSERT_THAT(*number, IsOk());
  EXPECT_EQ((*row)->key, "b");
  EXPECT_EQ((*number)->row, "b");
  EXPECT_EQ((*number)->value, 1);
}

// The element that was read last does not change, and a scan that has ended does not begin again.
TEST_P(LifetimeTest, CloseChangesNothingThatAScanHasRead) {
  Handles h(Address());
  RowScan rows = h.snapshot->Scan("t");
  ColumnScan<int64_t> numbers = h.snapshot->Scan(kNumber);
  RowScan ended = h.snapshot->Scan("t");
  auto row = rows.begin();
  auto number = numbers.begin();
  auto end = ended.begin();
  while (end != std::default_sentinel) ++end;
  EXPECT_THAT(h.cluster->Close(), IsOk());
  ASSERT_THAT(*row, IsOk());
  ASSERT_THAT(*number, IsOk());
  EXPECT_EQ((*row)->key, "a");
  EXPECT_THAT((*row)->Get(kNumber), IsOkAndHolds(Optional(1)));
  EXPECT_EQ((*number)->row, "a");
  EXPECT_EQ((*number)->value, 1);
  EXPECT_TRUE(end == std::default_sentinel);
}

TEST_P(LifetimeTest, TwoCallsOfCloseGetTheSameResult) {
  Handles h(Address());
  absl::Status other = absl::UnknownError("");
  std::thread thread([&other, copy = *h.cluster] { other = copy.Close(); });
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
  options.on_commit = [&, cluster = *h.cluster](std::string_view observer, const Notification&, Timestamp) {
    if (observer == "closer") closed_after_commit = cluster.Close();
  };
  Worker worker(*h.cluster, options);
  constexpr Column<std::string> kX("t", "x");
  worker.Observe(kX, "closer", [&, cluster = *h.cluster](ReadWrite&, const std::string&) {
    closed = cluster.Close();
    stopped = worker.Stop();
  });
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(h.cluster->Transact([&](ReadWrite& t) { t.Set(kX, "a", "1"); }), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kSoon), IsOk());
  EXPECT_THAT(closed, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("from an observer")));
  EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("from an observer")));
  EXPECT_THAT(worker.Stop(), IsOk());  // the callback after the commit has returned
  EXPECT_THAT(closed_after_commit, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(h.cluster->GetSnapshot(), IsOk());
}

TEST(CloseTest, ALoadFunctionCannotCloseItsCluster) {
  Handles h("memory:");
  absl::Status closed;
  absl::Status finished;
  h.loader->Add([&](ReadWrite&) {
    closed = h.cluster->Close();
    finished = h.loader->Finish();
  });
  EXPECT_THAT(h.loader->Finish(), IsOk());
  EXPECT_THAT(closed, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("load function")));
  EXPECT_THAT(finished, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("load function")));
}

#ifdef PERCOLATOR_WITH_SERVER
class ServerLifetimeTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Server>> TryStart() const {
    return Server::Start({.listen = "127.0.0.1:0", .data = StrCat(dir_.path(), "/data")});
  }

  const TempDir dir_;
};

TEST_F(ServerLifetimeTest, MayBeStoppedAgainAndByAnyThread) {
  const std::unique_ptr<Server> server = TryStart().value();
  const std::string address = server->address();
  const int port = server->port();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_THAT(server->Stop(), IsOk());
      EXPECT_EQ(server->address(), address);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(server->Stop(), IsOk());
  EXPECT_EQ(server->address(), address);
  EXPECT_EQ(server->port(), port);
}

TEST_F(ServerLifetimeTest, MayBeDestroyedWhileAClusterUsesIt) {
  std::unique_ptr<Server> server = TryStart().value();
  ClusterOptions options;
  options.call_timeout = std::chrono::seconds(2);
  options.gc_period = Duration(0);
  std::optional<Cluster> cluster = Cluster::Open(server->address(), options).value();
  ASSERT_THAT(cluster->CreateTable("t"), IsOk());
  std::optional<Snapshot> snapshot = cluster->GetSnapshot().value();
  Worker worker(*cluster);
  worker.Observe(kNumber, "o", [](ReadWrite&, const std::string&) {});
  ASSERT_THAT(worker.Start(), IsOk());
  const auto write = [&] { return cluster->Transact([](ReadWrite& t) { t.Set(kNumber, "a", 1); }); };
  ASSERT_THAT(write(), IsOk());
  std::atomic<bool> writing{false};
  std::thread writer([&] {
    for (bool ok = true; ok; writing = true) ok = write().ok();
  });
  while (!writing) std::this_thread::yield();
  server.reset();
  writer.join();
  EXPECT_FALSE(snapshot->Get(kNumber, "a").ok());
  cluster->Close().IgnoreError();  // its session cannot be ended at the server
  EXPECT_THAT(cluster->GetSnapshot(), SaysClosed());
  server = TryStart().value();
  cluster = Cluster::Open(server->address()).value();
  EXPECT_THAT(cluster->GetSnapshot()->Get(kNumber, "a"), IsOkAndHolds(Optional(1)));
}
#endif

// If a function has destroyed handles of its cluster, the cluster still closes, and its folder can be opened again.
class DestroyedWithinTest : public ::testing::Test {
 protected:
  DestroyedWithinTest() : cluster_(Open()) { EXPECT_THAT(cluster_->EnsureTable("t"), IsOk()); }

  absl::StatusOr<Cluster> TryOpen() const { return Cluster::Open(StrCat("rocksdb:", dir_.path(), "/store")); }
  Cluster Open() const { return TryOpen().value(); }
  bool WasSet(std::string_view row) const {
    const absl::StatusOr<std::optional<int64_t>> value = cluster_->GetSnapshot()->Get(kNumber, row);
    return value.ok() && value->has_value();
  }
  void Set(std::string_view row) const {
    EXPECT_THAT(cluster_->Transact([row](ReadWrite& t) { t.Set(kNumber, row, 1); }), IsOk());
  }

  const TempDir dir_;
  std::optional<Cluster> cluster_;
};

TEST_F(DestroyedWithinTest, AnObserverMayDestroyItsWorker) {
  constexpr Column<int64_t> kX("t", "x");
  for (const bool after_commit : {false, true}) {
    WorkerOptions options;
    std::unique_ptr<Worker> worker;
    if (after_commit) options.on_commit = [&](std::string_view, const Notification&, Timestamp) { worker.reset(); };
    worker = std::make_unique<Worker>(*cluster_, options);
    const std::string row = after_commit ? "after" : "before";
    worker->Observe(kX, "o", [&, mine = std::string(100, 'm')](ReadWrite& t, const std::string&) {
      if (!after_commit) worker.reset();
      t.Set(kNumber, row, static_cast<int64_t>(mine.size()));
    });
    ASSERT_THAT(worker->Start(), IsOk());
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { t.Set(kX, row, 1); }), IsOk());
    EXPECT_TRUE(Eventually([&] { return WasSet(row); }));
    if (!after_commit) {
      EXPECT_EQ(worker, nullptr);
      continue;
    }
    EXPECT_THAT(cluster_->Close(), IsOk());  // waits for the function on_commit
    EXPECT_EQ(worker, nullptr);
  }
}

TEST_F(DestroyedWithinTest, AnObserverMayDestroyTheLastHandles) {
  std::unique_ptr<Worker> worker = std::make_unique<Worker>(*cluster_);
  std::atomic<bool> destroyed{false};
  worker->Observe(kNumber, "o", [&](ReadWrite&, const std::string&) {
    cluster_.reset();
    worker.reset();
    destroyed = true;
  });
  ASSERT_THAT(worker->Start(), IsOk());
  {
    Transaction t(*cluster_);
    t.Set(kNumber, "a", 1);
    ASSERT_THAT(t.Commit().status, IsOk());
  }
  EXPECT_TRUE(Eventually([&] { return destroyed.load(); }));
  EXPECT_TRUE(Eventually([&] { return TryOpen().ok(); }));
}

TEST_F(DestroyedWithinTest, ALoadFunctionMayDestroyItsLoader) {
  std::unique_ptr<Loader> loader = std::make_unique<Loader>(*cluster_, LoaderOptions{.threads = 2});
  for (const char* row : {"a", "b", "c", "d"}) {
    loader->Add([&loader, row](ReadWrite& t) {
      if (row == std::string_view("d")) loader.reset();
      t.Set(kNumber, row, 1);
    });
  }
  for (const char* row : {"a", "b", "c", "d"}) EXPECT_TRUE(Eventually([&] { return WasSet(row); }));
  EXPECT_THAT(cluster_->Close(), IsOk());
  EXPECT_EQ(loader, nullptr);
}

TEST_F(DestroyedWithinTest, ALoadFunctionMayHoldTheLastHandles) {
  {
    const auto loader = std::make_shared<Loader>(*cluster_);
    for (const char* row : {"a", "b"}) {
      loader->Add([loader, row](ReadWrite& t) { t.Set(kNumber, row, 1); });
    }
    cluster_.reset();
  }
  EXPECT_TRUE(Eventually([&] {
    absl::StatusOr<Cluster> again = TryOpen();
    if (again.ok()) cluster_ = *std::move(again);
    return cluster_.has_value();
  }));
  EXPECT_TRUE(WasSet("a"));
  EXPECT_TRUE(WasSet("b"));
}

TEST_F(DestroyedWithinTest, CloseDropsLoadFunctionsThatHoldTheLastHandleOfTheirLoader) {
  std::atomic<bool> running{false};
  {
    const auto loader = std::make_shared<Loader>(*cluster_, LoaderOptions{.threads = 1});
    loader->Add([&running, loader = loader.get()](ReadWrite&) {
      running = true;
      while (loader->progress().done < 3) std::this_thread::yield();  // until Close has dropped the others
    });
    for (int i = 0; i < 3; ++i) loader->Add([loader](ReadWrite&) { ADD_FAILURE() << "was not dropped"; });
  }
  while (!running) std::this_thread::yield();
  EXPECT_THAT(cluster_->Close(), IsOk());
}

TEST_F(DestroyedWithinTest, TheLastReportOfProgressMayDestroyTheLoader) {
  std::unique_ptr<Loader> loader;
  LoaderOptions options;
  options.on_progress = [&](const LoadProgress& progress) {
    if (progress.done == 1) loader.reset();
  };
  loader = std::make_unique<Loader>(*cluster_, options);
  loader->Add([](ReadWrite& t) { t.Set(kNumber, "a", 1); });
  EXPECT_THAT(loader->Finish(), IsOk());
  EXPECT_EQ(loader, nullptr);
  EXPECT_TRUE(WasSet("a"));
}

TEST_F(DestroyedWithinTest, AnInspectorsFunctionMayDestroyTheLastHandles) {
  Set("a");
  std::optional<Inspector> inspector(*cluster_);
  const absl::StatusOr<CheckCounts> counts = inspector->Check(
      "t", [](const BadCell&) {},
      [&](const CheckCounts&) {
        cluster_.reset();
        inspector.reset();
      });
  ASSERT_THAT(counts, IsOk());
  EXPECT_EQ(counts->rows, 1U);
  EXPECT_THAT(TryOpen(), IsOk());
}

TEST(CloseTest, CloseWaitsForRunningLoadFunctionsAndDropsTheOthers) {
  Handles h("memory:");
  std::atomic<bool> running{false};
  std::atomic<int> runs{0};
  Loader loader(*h.cluster, {.threads = 1});
  for (int i = 0; i < 100; ++i) {
    loader.Add([&](ReadWrite& t) {
      ++runs;
      running = true;
      while (loader.progress().done < 99) std::this_thread::yield();  // until Close has dropped the others
      SetOne(t);
    });
  }
  while (!running) std::this_thread::yield();
  EXPECT_THAT(h.cluster->Close(), IsOk());
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(loader.Finish(), SaysClosed());
  EXPECT_EQ(loader.progress().done, 100U);
  EXPECT_EQ(loader.progress().failed, 99U);
}

TEST(CloseTest, AClosedClusterRefusesEverything) {
  const Cluster cluster = Cluster::Open("memory:").value();
  ASSERT_THAT(cluster.CreateTable("t"), IsOk());
  EXPECT_THAT(cluster.Close(), IsOk());
  EXPECT_THAT(cluster.Close(), IsOk());
  EXPECT_TRUE(IsClosed(cluster.Transact([](ReadWrite& t) { t.Set({"t", "r", "c"}, "v"); })));
  EXPECT_TRUE(IsClosed(cluster.GetSnapshot().status()));
  EXPECT_TRUE(IsClosed(cluster.CollectGarbage().status()));
  EXPECT_TRUE(IsClosed(cluster.CreateTable("u")));
  EXPECT_EQ(cluster.metrics().commits, 0U);
  Transaction t(cluster);
  EXPECT_TRUE(IsClosed(t.Get({"t", "r", "c"}).status()));
  t.Set({"t", "r", "c"}, "v");
  EXPECT_TRUE(IsClosed(t.status()));
  EXPECT_EQ(t.Commit().outcome, CommitResult::Outcome::kAborted);
}

TEST(CloseTest, ATransactFunctionMayCloseItsCluster) {
  Handles h("memory:");
  int runs = 0;
  const absl::Status status = h.cluster->Transact([&](ReadWrite& t) {
    ++runs;
    EXPECT_THAT(h.cluster->Close(), IsOk());
    SetOne(t);
    EXPECT_THAT(t.status(), SaysClosed());
  });
  EXPECT_THAT(status, SaysClosed());
  EXPECT_EQ(runs, 1);
}

TEST(CloseTest, AFolderCanBeOpenedAgainWhileASnapshotOfTheOldClusterLives) {
  const TempDir dir;
  Handles h(StrCat("rocksdb:", dir.path(), "/store"));
  EXPECT_THAT(h.cluster->Close(), IsOk());
  Handles again(StrCat("rocksdb:", dir.path(), "/store"));
  EXPECT_THAT(h.snapshot->Get({"t", "a", "c"}), SaysClosed());
  EXPECT_THAT(again.snapshot->Get({"t", "a", "c"}), IsOk());
}

TEST(CloseTest, TheLastCopyOfAClusterClosesIt) {
  const TempDir dir;
  const std::string address = StrCat("rocksdb:", dir.path(), "/store");
  std::optional<Cluster> cluster = Cluster::Open(address).value();
  std::optional<Cluster> copy = cluster;
  cluster.reset();
  EXPECT_THAT(Cluster::Open(address), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(copy->CreateTable("t"), IsOk());
  copy.reset();
  EXPECT_THAT(Cluster::Open(address)->ListTables(), IsOkAndHolds(ElementsAre("t")));
}

TEST(CloseTest, AScanThatIsTheLastHandleClosesTheCluster) {
  const TempDir dir;
  const std::string address = StrCat("rocksdb:", dir.path(), "/store");
  {
    std::optional<Handles> h(std::in_place, address);
    const ColumnScan<int64_t> numbers = h->snapshot->Scan(kNumber);
    h.reset();
    EXPECT_THAT(Cluster::Open(address), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(Cluster::Open(address), IsOk());
}

// The lock of a transaction that stays alive.
TEST(CloseTest, CloseEndsAReadThatWaitsForALock) {
  ClusterOptions options;
  options.lock_lease = std::chrono::hours(1);
  options.call_timeout = std::chrono::hours(1);
  options.gc_retention = std::chrono::hours(9);
  options.gc_period = Duration(0);
  for (const auto& [name, read] : Reads()) {
    if (absl::StrContains(name, "Queue")) continue;  // other tables
    SCOPED_TRACE(name);
    const Parts parts = OpenParts("memory:", options).value();
    const Cluster cluster = Assemble(parts, options).value();
    ASSERT_THAT(cluster.CreateTable("t"), IsOk());
    const std::unique_ptr<Session> owner = parts.coordinator->OpenSession().value();
    const Timestamp start_ts = parts.oracle->GetTimestamp().value();
    const Lock lock{.kind = WriteKind::kPut, .session = owner->id(), .refreshed = start_ts, .value = "1"};
    for (const char* row : {"a", "x"}) {  // every read includes one of these
      const Mutation set = Mutation::Set(Family::kLock, "c", start_ts, EncodeLock(lock));
      ASSERT_THAT(parts.store->Mutate({{"t", row, {}, {set}}}).front(), IsOk());
    }
    const Snapshot snapshot = cluster.GetSnapshot().value();
    std::thread reader([&] { EXPECT_THAT(read(snapshot), SaysClosed()); });
    while (cluster.metrics().foreign_locks_found == 0) std::this_thread::yield();
    EXPECT_THAT(cluster.Close(), IsOk());
    reader.join();
  }
}

// Holds calls that concern the row "x". Others, such as those of background tasks, continue.
class HoldingStore final : public ForwardingStore {
 public:
  HoldingStore(std::shared_ptr<Store> store, bool together) : ForwardingStore(std::move(store)), together_(together) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override {
    const Held held(IsAboutX(reads) ? this : nullptr, &reading);
    return ForwardingStore::Read(reads);
  }
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    const Held held(IsAboutX(mutations) ? this : nullptr, &writing);
    return ForwardingStore::Mutate(mutations);
  }
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    const Held held(IsAboutX(mutations) ? this : nullptr, &writing);
    return ForwardingStore::MutateThenDraw(mutations);
  }
  bool CanMutateTogether() const override { return together_; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override {
    const Held held(IsAboutX(mutation.rows) ? this : nullptr, &writing);
    return ForwardingStore::MutateTogether(mutation, oracle);
  }

  std::atomic<bool> holds{false};
  std::atomic<int> reading{0};
  std::atomic<int> writing{0};

 private:
  template <typename Row>
  static bool IsAboutX(const std::vector<Row>& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.row == "x"; });
  }
  class Held {
   public:
    Held(HoldingStore* store, std::atomic<int>* calls) : calls_(store != nullptr ? calls : nullptr) {
      if (calls_ == nullptr) return;
      ++*calls_;
      while (store->holds) std::this_thread::yield();
    }
    ~Held() {
      if (calls_ != nullptr) --*calls_;
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    std::atomic<int>* const calls_;
  };

  const bool together_;
};

TEST(CloseTest, CloseWaitsForACommitAndAReadInTheStore) {
  ClusterOptions options;
  options.gc_period = Duration(0);
  for (const bool together : {false, true}) {
    SCOPED_TRACE(together ? "in one step" : "in two phases");
    Parts parts = OpenParts("memory:", options).value();
    const auto store = std::make_shared<HoldingStore>(parts.store, together);
    parts.store = store;
    const Cluster cluster = Assemble(parts, options).value();
    ASSERT_THAT(cluster.CreateTable("t"), IsOk());
    ASSERT_THAT(cluster.Transact([](ReadWrite& t) { t.Set(kNumber, "x", 1); }), IsOk());
    const Snapshot snapshot = cluster.GetSnapshot().value();
    Transaction t(cluster);
    t.Set(kNumber, "x", 2);
    t.Set(kNumber, "y", 2);
    ASSERT_THAT(t.Start(), IsOk());

    store->holds = true;
    std::thread reader([&] { EXPECT_THAT(snapshot.Get(kNumber, "x"), IsOkAndHolds(Optional(1))); });
    std::thread writer([&] {
      const CommitResult result = t.Commit();
      EXPECT_EQ(result.outcome, CommitResult::Outcome::kCommitted) << result.status;
      EXPECT_THAT(result.status, IsOk());
    });
    while (store->reading == 0 || store->writing == 0) std::this_thread::yield();
    std::atomic<bool> closed{false};
    std::thread closer([&] {
      EXPECT_THAT(cluster.Close(), IsOk());
      EXPECT_EQ(store->reading, 0);
      EXPECT_EQ(store->writing, 0);
      closed = true;
    });
    while (!IsClosed(cluster.GetSnapshot().status())) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time for a Close that does not wait
    EXPECT_FALSE(closed);
    store->holds = false;
    reader.join();
    writer.join();
    closer.join();
    EXPECT_THAT(Assemble(parts, options)->GetSnapshot()->Get(kNumber, "y"), IsOkAndHolds(Optional(2)));
  }
}

TEST(CloseTest, CloseEndsAReadThatWaitsForItsTimestamp) {
  ClusterOptions options;
  options.call_timeout = std::chrono::hours(1);
  options.gc_period = Duration(0);
  for (const auto& [name, read] : Reads()) {
    SCOPED_TRACE(name);
    Parts parts = OpenParts("memory:", options).value();
    const auto oracle = std::make_shared<TestOracle>();
    parts.oracle = oracle;
    const Cluster cluster = Assemble(parts, options).value();
    const Transaction t(cluster, {.timeout = std::chrono::hours(1)});
    constexpr int kAlways = std::numeric_limits<int>::max();
    oracle->FailNext(kAlways);
    std::thread reader([&] { EXPECT_THAT(read(t), SaysClosed()); });
    while (oracle->failures_left() == kAlways) std::this_thread::yield();
    EXPECT_THAT(cluster.Close(), IsOk());
    reader.join();
  }
}

// --- In a child of fork(): threads do not survive there, and files would have two writers

class ForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Another thread may hold a lock of the sanitizer's allocator at the fork. The C library releases its own in the
    // child.
    if (kSanitized) GTEST_SKIP() << "a child of a process with threads may hang in the sanitizer's allocator";
  }

  // Runs `fn` in a child of fork(). Returns its result, or -1 if the child did not end by itself.
  template <typename Fn>
  static int InChild(const Fn& fn) {
    constexpr int kSeconds = 120;
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSeconds);  // ends a child that hangs
      _exit(fn());
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }
};

using ForkedClusterTest = ForkTest;

TEST_F(ForkedClusterTest, AChildCanUseNothingAndTheParentLosesNothing) {
  const TempDir dir;
  const std::string address = StrCat("rocksdb:", dir.path(), "/store");
  std::optional<Handles> h(std::in_place, address);
  const auto use_everything = [&h] {
    int wrong = 0;
    for (const std::vector<Call>& calls : {ClusterCalls(), OtherCalls(*h)}) {
      for (const Call& call : calls) {
        const absl::Status status = call.call(*h);
        const bool says_so = IsClosed(status) && absl::IsFailedPrecondition(status) &&
                             absl::StrContains(status.message(), "the process that forked this one");
        if (!says_so) ++wrong;
        if (!says_so) fprintf(stderr, "%s: %s\n", call.name.c_str(), status.ToString().c_str());
      }
    }
    if (h->cluster->Close().ok()) ++wrong;
    h.reset();
    return wrong;
  };
  EXPECT_EQ(InChild(use_everything), 0) << "calls without that error";
  ASSERT_THAT(h->cluster->Transact([](ReadWrite& t) { t.Set(kNumber, "a", 2); }), IsOk());
  ASSERT_THAT(h->cluster->Close(), IsOk());
  const Cluster again = Cluster::Open(address).value();
  EXPECT_THAT(again.GetSnapshot()->Get(kNumber, "a"), IsOkAndHolds(Optional(2)));
}

// --- The same below a cluster

// Returns 0 if the status is the error of a child, and 1, with a message, if it is not.
int IsNotOfAChild(const char* name, const absl::Status& status) {
  if (absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "the process that forked this one")) {
    return 0;
  }
  fprintf(stderr, "%s: %s\n", name, status.ToString().c_str());
  return 1;
}

// Makes each call to a store. Returns the number of calls whose error does not say that this process is a child.
int UseInChild(Store* store, Oracle* oracle) {
  const RowRead read{"t", "a", {{.family = Family::kData, .column = "c"}}};
  const RowMutation set{"t", "a", {}, {Mutation::Set(Family::kData, "c", Timestamp(7), "of the child")}};
  return IsNotOfAChild("Read", store->Read({read}).status()) +
         IsNotOfAChild("Scan", store->Scan({.table = "t", .rows = {}, .selectors = read.selectors}).status()) +
         IsNotOfAChild("Mutate", store->Mutate({set}).front().status()) +
         IsNotOfAChild("MutateThenDraw", store->MutateThenDraw({set}).front().result.status()) +
         IsNotOfAChild("MutateTogether", store->MutateTogether({Timestamp(6), {set}}, oracle).status()) +
         IsNotOfAChild("RaiseSafePoint", store->RaiseSafePoint(Timestamp(8))) +
         IsNotOfAChild("SafePoint", store->SafePoint().status()) +
         IsNotOfAChild("SafePointOfReads", store->SafePointOfReads().status()) +
         IsNotOfAChild("SampleRowKeys", store->SampleRowKeys("t").status()) +
         IsNotOfAChild("CreateTable", store->CreateTable({"u", ""})) +
         IsNotOfAChild("DropTable", store->DropTable("t")) + IsNotOfAChild("ListTables", store->ListTables().status()) +
         IsNotOfAChild("GetTable", store->GetTable("t").status()) + IsNotOfAChild("Close", store->Close());
}

class ForkedPartsTest : public ForkTest {
 protected:
  absl::Status Set(Store* store, const std::string& row) {
    return store->Mutate({{"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(5), row)}}}).front().status();
  }
  // The rows of the folder, while it is not open.
  std::vector<std::string> Rows() {
    const std::unique_ptr<Store> store = OpenRocksStore(folder_).value();
    std::vector<std::string> keys;
    const ScanPage page = store->Scan({.table = "t", .rows = {}, .selectors = {{.family = Family::kData}}}).value();
    for (const Row& row : page.rows) keys.push_back(row.key);
    return keys;
  }

  const TempDir dir_;
  const std::string folder_ = StrCat(dir_.path(), "/store");
};

TEST_F(ForkedPartsTest, AChildCannotUseAStoreAndTheParentLosesNothing) {
  std::unique_ptr<Store> store = OpenRocksStore(folder_).value();
  const Parts parts = OpenParts("memory:").value();
  ASSERT_THAT(store->CreateTable({"t", ""}), IsOk());
  ASSERT_THAT(Set(store.get(), "a"), IsOk());
  EXPECT_EQ(InChild([&] {
              const int wrong = UseInChild(store.get(), parts.oracle.get());
              store.reset();
              return wrong;
            }),
            0);
  ASSERT_THAT(Set(store.get(), "b"), IsOk());
  EXPECT_THAT(OpenRocksStore(folder_), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("open already")));
  EXPECT_THAT(store->Close(), IsOk());
  EXPECT_THAT(Rows(), ElementsAre("a", "b"));
}

TEST_F(ForkedPartsTest, AChildCannotUsePartsAndTheParentLosesNothing) {
  const std::string address = StrCat("rocksdb:", folder_);
  ClusterOptions options;
  options.oracle_window = Duration(1);  // each draw writes the oracle's file
  Parts parts = OpenParts(address, options).value();
  ASSERT_THAT(parts.store->CreateTable({"t", ""}), IsOk());
  ASSERT_THAT(Set(parts.store.get(), "a"), IsOk());
  EXPECT_EQ(InChild([&] {
              int wrong = UseInChild(parts.store.get(), parts.oracle.get());
              for (int i = 0; i < 3; ++i) wrong += IsNotOfAChild("GetTimestamp", parts.oracle->GetTimestamp().status());
              if (parts.oracle->TryGetTimestamps(1).has_value()) ++wrong;
              wrong += IsNotOfAChild("OpenSession", parts.coordinator->OpenSession().status());
              wrong += IsNotOfAChild("Assemble", Assemble(parts, options).status());
              parts = Parts();
              return wrong;
            }),
            0);
  ASSERT_THAT(Set(parts.store.get(), "b"), IsOk());
  const Timestamp last = parts.oracle->GetTimestamp().value();
  EXPECT_THAT(parts.store->Close(), IsOk());
  parts = Parts();
  EXPECT_THAT(Rows(), ElementsAre("a", "b"));
  EXPECT_GT(OpenParts(address, options)->oracle->GetTimestamp().value(), last);
}

#ifdef PERCOLATOR_WITH_SERVER
TEST_F(ForkedPartsTest, AChildCannotStopAServerAndTheParentLosesNothing) {
  std::unique_ptr<Server> server = Server::Start({.listen = "127.0.0.1:0", .data = folder_}).value();
  const Parts client = OpenParts(server->address()).value();
  ASSERT_THAT(client.store->CreateTable({"t", ""}), IsOk());
  ASSERT_THAT(Set(client.store.get(), "a"), IsOk());
  EXPECT_EQ(InChild([&] {
              const int wrong = IsNotOfAChild("Stop", server->Stop());
              server.reset();
              return wrong;
            }),
            0);
  ASSERT_THAT(Set(client.store.get(), "b"), IsOk());
  EXPECT_THAT(server->Stop(), IsOk());
  EXPECT_THAT(Rows(), ElementsAre("a", "b"));
}
#endif

}  // namespace
}  // namespace percolator
