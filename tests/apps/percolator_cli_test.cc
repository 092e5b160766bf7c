// SPDX-License-Identifier: Apache-2.0

// The command line `percolator`, run as a process on folders of its own.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/observer.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/txn/lock.h"
#include "src/txn/write_record.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The words as arguments of exec.
std::vector<char*> Pointers(Words* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Ran {
  int exit = -1;
  std::string out;
  std::string err;

  Json json() const { return Json::parse(out, nullptr, /*allow_exceptions=*/false); }
};

class CliTest : public ::testing::Test {
 protected:
  std::string Folder() const { return dir_.path() + "/store"; }
  std::string Address() const { return "rocksdb:" + Folder(); }

  // Runs a program with its output in files. If `address` is empty, its environment has no address.
  Ran RunProgram(const std::string& program, Words words, const std::string& address, const std::string& in = {}) {
    const std::string base = StrCat(dir_.path(), "/run", runs_++);
    std::ofstream(base + ".in", std::ios::binary) << in;
    words.insert(words.begin(), program);
    Words environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (!std::string_view(*entry).starts_with("PERCOLATOR_CLUSTER=")) environment.emplace_back(*entry);
    }
    if (!address.empty()) environment.push_back("PERCOLATOR_CLUSTER=" + address);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const int create = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, (base + ".in").c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, (base + ".out").c_str(), create, 0600);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, (base + ".err").c_str(), create, 0600);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, program.c_str(), &files, nullptr, Pointers(&words).data(), Pointers(&environment).data());
    posix_spawn_file_actions_destroy(&files);
    EXPECT_EQ(error, 0);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return {WEXITSTATUS(status), FileText(base + ".out"), FileText(base + ".err")};
  }
  Ran Run(Words words, const std::string& in = {}) { return RunProgram(PERCOLATOR, std::move(words), Address(), in); }
  // The same, but expects success. Returns the output.
  std::string Must(Words words, const std::string& in = {}) {
    const Ran ran = Run(std::move(words), in);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return ran.out;
  }
  Json MustJson(Words words) {
    words.emplace_back("--json");
    const Ran ran = Run(std::move(words));
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_FALSE(ran.json().is_discarded()) << ran.out;
    return ran.json();
  }
  void ExpectError(Words words, int exit, const std::string& text) {
    const Ran ran = Run(std::move(words));
    EXPECT_EQ(ran.exit, exit) << ran.out << ran.err;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, AllOf(StartsWith("percolator: "), HasSubstr(text)));
  }

  Cluster Open() {
    ClusterOptions options;
    options.store.durability = Durability::kNoSync;
    absl::StatusOr<Cluster> cluster = Cluster::Open(Address(), options);
    EXPECT_THAT(cluster, IsOk());
    return *std::move(cluster);
  }

  // The observer "parse" of accounts:bal, which fails for all rows, has quarantined this number of cells; `waiting`
  // others wait.
  void FailObserver(int quarantined, int waiting) {
    const Cluster cluster = Open();
    ASSERT_THAT(cluster.CreateTable("accounts"), IsOk());
    Worker worker(cluster);
    worker.Observe({.name = "parse",
                    .table = "accounts",
                    .column = "bal",
                    .run = [](ReadWrite&, const Notification&) { return absl::InternalError("does not parse"); },
                    .max_attempts = 1});
    ASSERT_THAT(worker.Start(), IsOk());
    const auto set = [&](const std::string& row) {
      ASSERT_THAT(cluster.Transact([&](ReadWrite& t) { t.Set({"accounts", row, "bal"}, "3"); }), IsOk());
    };
    for (int i = 0; i < quarantined; ++i) set(StrCat("bad", i));
    ASSERT_THAT(worker.WaitUntilIdle(std::chrono::seconds(120)), IsOk());
    EXPECT_THAT(worker.Stop(), IsOk());
    for (int i = 0; i < waiting; ++i) set(StrCat("waits", i));
    ASSERT_THAT(cluster.Close(), IsOk());
  }

  TempDir dir_;
  int runs_ = 0;
};

// --- Cells

TEST_F(CliTest, ACellThatWasSetIsRead) {
  EXPECT_THAT(Must({"tables", "create", "accounts"}), HasSubstr("created table accounts"));
  EXPECT_THAT(Must({"set", "accounts", "Bob", "bal", "10"}), HasSubstr("committed at"));
  EXPECT_EQ(Must({"get", "accounts", "Bob", "bal"}), "10\n");
  EXPECT_EQ(Must({"get", "accounts", "Bob", "bal", "--raw"}), "10");
  Must({"set", "accounts", "Bob", "bal", "--", "-7"});
  const Json got = MustJson({"get", "accounts", "Bob", "bal"});
  EXPECT_EQ(got["value"], "-7");
  EXPECT_EQ(got["row"], "Bob");
  EXPECT_EQ(got["found"], true);

  EXPECT_THAT(Must({"delete", "accounts", "Bob", "bal"}), HasSubstr("deleted accounts/Bob/bal"));
  ExpectError({"get", "accounts", "Bob", "bal"}, 1, "accounts/Bob/bal has no value");
  ExpectError({"delete", "accounts", "Bob", "bal"}, 1, "has no value");
  const Ran absent = Run({"get", "accounts", "Bob", "bal", "--json"});
  EXPECT_EQ(absent.exit, 1);
  EXPECT_EQ(absent.json()["found"], false);
}

TEST_F(CliTest, BytesThatAreNotPrintable) {
  Must({"tables", "create", "t"});
  Must({"set", "t", "a\\x00\\\\b", "c\\xff", "x\\ny"});
  EXPECT_EQ(Must({"get", "t", "a\\x00\\\\b", "c\\xff"}), "x\\ny\n");
  EXPECT_EQ(Must({"get", "t", "a\\x00\\\\b", "c\\xff", "--raw"}), "x\ny");
  EXPECT_EQ(Open().GetSnapshot()->Get({"t", std::string_view("a\0\\b", 4), "c\xff"}).value(), "x\ny");
  EXPECT_THAT(Must({"scan", "t"}), HasSubstr("a\\x00\\\\b  c\\xff   x\\ny"));
  EXPECT_THAT(Must({"scan", "t", "--prefix", "a\\x00"}), HasSubstr("x\\ny"));

  const std::string bytes("\0\xff\n", 3);
  Must({"set", "t", "r", "c", "--from", "-"}, bytes);
  EXPECT_EQ(Must({"get", "t", "r", "c", "--raw"}), bytes);
  EXPECT_EQ(MustJson({"get", "t", "r", "c"})["value_base64"], "AP8K");
  ExpectError({"get", "t", "a\\q", "c"}, 2, "invalid escape");
  ExpectError({"set", "t", "r", "c"}, 2, "--from");
  ExpectError({"set", "t", "r", "c", "v", "--from", "-"}, 2, "either");
  ExpectError({"set", "t", "r", "c", "--from", dir_.path() + "/nosuch"}, 2, "cannot read");
}

TEST_F(CliTest, AsOf) {
  Must({"tables", "create", "t"});
  const Json first = MustJson({"set", "t", "r", "c", "old"});
  Must({"set", "t", "r", "c", "new"});
  EXPECT_EQ(Must({"get", "t", "r", "c"}), "new\n");
  EXPECT_EQ(Must({"get", "t", "r", "c", "--as-of", first["commit_ts"].dump()}), "old\n");
  EXPECT_EQ(Must({"get", "t", "r", "c", "--as-of", first["commit_ts_time"]}), "old\n");
  EXPECT_THAT(Must({"scan", "t", "--as-of", first["commit_ts_time"]}), HasSubstr("old"));
  EXPECT_EQ(Run({"get", "t", "r", "c", "--as-of", "-10m"}).exit, 1);
  EXPECT_EQ(Run({"get", "t", "r", "c", "--as-of=-10m"}).exit, 1);
  ExpectError({"get", "t", "r", "c", "--as-of", "yesterday"}, 2, "2026-11-15T10:00:00Z");
  ExpectError({"get", "t", "r", "c", "--as-of", "2099-01-01T00:00:00Z"}, 2, "current timestamp");
}

TEST_F(CliTest, Scan) {
  Must({"tables", "create", "t"});
  for (const char* row : {"a1", "a2", "b1", "b2"}) {
    Must({"set", "t", row, "x", StrCat("x", row)});
    Must({"set", "t", row, "y", "y"});
  }
  EXPECT_THAT(Must({"scan", "t"}), StartsWith("ROW  COLUMN  VALUE\na1   x       xa1\na1   y       y\n"));
  EXPECT_EQ(MustJson({"scan", "t"}).size(), 8u);
  EXPECT_EQ(MustJson({"scan", "t", "--columns", "x"}).size(), 4u);
  EXPECT_EQ(MustJson({"scan", "--columns", "x,y", "t"}).size(), 8u);
  EXPECT_EQ(MustJson({"scan", "t", "--prefix", "b"})[0], Json({{"row", "b1"}, {"column", "x"}, {"value", "xb1"}}));
  EXPECT_EQ(MustJson({"scan", "t", "--start", "a2", "--end", "b2"}).size(), 4u);
  const Ran limited = Run({"scan", "t", "--limit", "1", "--json"});
  EXPECT_EQ(limited.json().size(), 2u);
  EXPECT_THAT(limited.err, HasSubstr("more rows"));
  EXPECT_EQ(Run({"scan", "t", "--prefix", "c", "--json"}).json(), Json::array());
  ExpectError({"scan", "t", "--prefix", "c"}, 1, "no such rows");
  ExpectError({"scan", "nosuch"}, 1, "there is no table");
  ExpectError({"scan", "t", "--prefix", "a", "--start", "b"}, 2, "--prefix");
  ExpectError({"scan", "t", "--limit", "many"}, 2, "many");

  Must({"set", "t", "long", "x", std::string(500, 'v')});
  EXPECT_THAT(Must({"scan", "t", "--prefix", "long"}), HasSubstr("... (500 bytes)"));
  EXPECT_THAT(Must({"scan", "t", "--prefix", "long", "--full"}), HasSubstr(std::string(500, 'v')));
}

TEST_F(CliTest, CellsAreShownAsInFigure4) {
  Must({"tables", "create", "t"});
  Must({"set", "t", "Bob", "bal", "10"});
  Must({"set", "t", "Bob", "bal", "3"});
  Must({"set", "t", "Bob", "name", std::string(1000, 'B')});
  const std::string table = Must({"cells", "t", "Bob"});
  EXPECT_THAT(table, StartsWith("COLUMN"));
  EXPECT_THAT(table, ContainsRegex("bal .*put 3, started [0-9]+\nbal .*put 10, started [0-9]+\n"));
  EXPECT_THAT(table, ContainsRegex("name .*BBB[.]{3} \\(1000 bytes\\)"));
  const Json cells = MustJson({"cells", "t", "Bob"});
  EXPECT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0]["column"], "bal");
  EXPECT_EQ(cells[0]["family"], "write");
  EXPECT_EQ(cells[2]["family"], "data");
  ExpectError({"cells", "t", "Joe"}, 1, "has no cells");
  ExpectError({"cells", "nosuch", "Joe"}, 1, "nosuch");
}

// --- Tables

TEST_F(CliTest, Tables) {
  Must({"tables", "create", "t", "--notify-only", "touched", "seen\\x00"});
  EXPECT_EQ(
      MustJson({"tables"}),
      Json::array({{{"table", "t"}, {"notify_only_columns", {"touched", "seen\\x00"}}, {"observers", Json::array()}}}));
  EXPECT_EQ(MustJson({"tables", "list"}).size(), 1u);
  EXPECT_THAT(Must({"tables"}), HasSubstr("t      touched seen\\x00"));
  ExpectError({"set", "t", "r", "touched", "v"}, 2, "notify-only");
  ExpectError({"tables", "create", "t"}, 4, "t");
  ExpectError({"tables", "create", "no spaces"}, 2, "no spaces");
  ExpectError({"tables", "drop", "t"}, 2, "--yes");
  ExpectError({"tables", "drop", "nosuch", "--yes"}, 1, "nosuch");
  EXPECT_THAT(Must({"tables", "drop", "t", "--yes"}), HasSubstr("dropped table t"));
  ExpectError({"tables"}, 1, "there are no tables");
  EXPECT_EQ(Run({"tables", "--json"}).json(), Json::array());
}

// --- Waiting work

// Two transactions of a process that died: one that had not committed, and one that had, at its primary.
TEST_F(CliTest, LocksOfDeadProcessesAreListed) {
  Must({"tables", "create", "t"});
  {
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    const auto lock = [&](const std::string& row, uint64_t start, std::optional<std::string> primary) {
      Lock bytes{.session = 77, .refreshed = Timestamp(start), .value = "v" + row};
      if (primary.has_value()) bytes.primary = CellName{"t", *primary, "c"};
      const auto done =
          store->Mutate({{"t", row, {}, {Mutation::Set(Family::kLock, "c", Timestamp(start), EncodeLock(bytes))}}});
      ASSERT_THAT(done[0], IsOk());
    };
    lock("dead1", 100, std::nullopt);
    lock("dead2", 100, "dead1");
    lock("done2", 200, "done1");
    const std::string record =
        EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Timestamp(200), .verified = {}, .value = "v"});
    ASSERT_THAT(store->Mutate({{"t", "done1", {}, {Mutation::Set(Family::kWrite, "c", Timestamp(300), record)}}})[0],
                IsOk());
    ASSERT_THAT(store->Close(), IsOk());
  }
  EXPECT_THAT(Must({"locks"}), AllOf(ContainsRegex("t +dead1 +c +100 .* abandoned +77 +this"),
                                     ContainsRegex("t +dead2 +c +100 .* abandoned +77 +t/dead1/c"),
                                     ContainsRegex("t +done2 +c +200 .* committed +77 +t/done1/c")));
  const Json locks = MustJson({"locks", "--table", "t"});
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_EQ(locks[0]["is_primary"], true);
  EXPECT_EQ(locks[1]["primary"]["row"], "dead1");
  EXPECT_EQ(MustJson({"locks", "--limit", "1"}).size(), 1u);
  EXPECT_THAT(Must({"cells", "t", "dead1"}), HasSubstr("primary, put vdead1"));
  EXPECT_THAT(Must({"stats"}), HasSubstr("locks          3, 0 of running transactions"));
  ExpectError({"locks", "--table", "nosuch"}, 1, "nosuch");

  EXPECT_EQ(MustJson({"locks", "--resolve"}), Json({{"rolled_forward", 1}, {"rolled_back", 2}, {"alive", 0}}));
  ExpectError({"locks"}, 1, "there are no locks");
  EXPECT_EQ(Run({"locks", "--json"}).json(), Json::array());
  EXPECT_EQ(Must({"get", "t", "done2", "c"}), "vdone2\n");
  EXPECT_EQ(Run({"get", "t", "dead1", "c"}).exit, 1);
  EXPECT_THAT(Must({"cells", "t", "dead1"}), HasSubstr("[rolled back]"));
  EXPECT_THAT(Must({"locks", "--resolve"}), HasSubstr("0 rolled forward"));
}

TEST_F(CliTest, WaitingNotificationsAreListed) {
  FailObserver(0, 2);
  EXPECT_EQ(Must({"notifications", "count"}), "2\n");
  EXPECT_EQ(MustJson({"notifications", "count"})["cells"], 2);
  EXPECT_THAT(Must({"notifications"}), ContainsRegex("accounts +waits0 +bal .* waiting\naccounts +waits1 +bal"));
  EXPECT_EQ(MustJson({"notifications", "list", "--limit", "1"}).size(), 1u);
  EXPECT_EQ(MustJson({"notifications", "list", "--table", "accounts"}).size(), 2u);
  const Json oldest = MustJson({"notifications", "oldest"});
  ASSERT_EQ(oldest.size(), 1u);
  EXPECT_EQ(oldest[0]["row"], "waits0");
  EXPECT_THAT(Must({"cells", "accounts", "waits0"}), HasSubstr("changed"));
  EXPECT_THAT(Must({"tables"}), HasSubstr("parse(bal)"));

  const Ran waited = Run({"wait-idle", "--timeout", "50ms"});
  EXPECT_EQ(waited.exit, 1);
  EXPECT_THAT(waited.err, AllOf(HasSubstr("2 cells wait"), HasSubstr("worker")));
  EXPECT_EQ(Run({"wait-idle", "--timeout", "0s", "--json"}).json()["cells"], 2);
  ExpectError({"wait-idle", "--timeout", "soon"}, 2, "duration");
  // The program writes like any other: its write is observed.
  Must({"set", "accounts", "another", "bal", "3"});
  EXPECT_EQ(Must({"notifications", "count"}), "3\n");
}

TEST_F(CliTest, NothingIsListedWhenNothingWaits) {
  Must({"tables", "create", "t"});
  EXPECT_EQ(Must({"notifications", "count"}), "0\n");
  ExpectError({"notifications"}, 1, "no notifications");
  ExpectError({"notifications", "oldest"}, 1, "no notifications");
  ExpectError({"quarantine", "list"}, 1, "nothing is in quarantine");
  EXPECT_EQ(Run({"quarantine", "--json"}).json(), Json::array());
  EXPECT_EQ(Must({"wait-idle"}), "idle\n");
  EXPECT_EQ(MustJson({"wait-idle"})["idle"], true);
}

TEST_F(CliTest, Quarantine) {
  FailObserver(3, 0);
  EXPECT_THAT(Must({"quarantine"}), ContainsRegex("parse +accounts +bad0 +bal +1 .*does not parse"));
  EXPECT_EQ(MustJson({"quarantine", "list"}).size(), 3u);
  EXPECT_EQ(MustJson({"stats"})["quarantined"], 3);
  ExpectError({"quarantine", "replay", "parse"}, 2, "--all");
  ExpectError({"quarantine", "replay"}, 2, "--all");
  ExpectError({"quarantine", "drop", "--all", "parse", "accounts", "bad0", "bal"}, 2, "--all");
  ExpectError({"quarantine", "replay", "parse", "accounts", "good", "bal"}, 1, "not in quarantine");

  EXPECT_EQ(MustJson({"quarantine", "replay", "parse", "accounts", "bad0", "bal"})["replayed"], 1);
  EXPECT_EQ(Must({"notifications", "count"}), "1\n");  // for the next worker: none has run here
  EXPECT_THAT(Must({"quarantine", "drop", "parse", "accounts", "bad1", "bal"}), HasSubstr("dropped 1"));
  EXPECT_EQ(MustJson({"quarantine"}).size(), 1u);
  EXPECT_EQ(Run({"quarantine", "drop", "--all", "other"}).exit, 1);
  EXPECT_THAT(Must({"quarantine", "replay", "--all", "parse"}), HasSubstr("replayed 1"));
  EXPECT_EQ(Run({"quarantine", "drop", "--all"}).exit, 1);
  EXPECT_EQ(Must({"notifications", "count"}), "2\n");
}

TEST_F(CliTest, AnEntryOfARemovedObserverCanOnlyBeDropped) {
  FailObserver(1, 0);
  {
    const Cluster cluster = Open();
    Worker worker(cluster);
    ASSERT_THAT(worker.Start(), IsOk());
  }
  ExpectError({"quarantine", "replay", "parse", "accounts", "bad0", "bal"}, 4, "start a worker that has it");
  EXPECT_EQ(MustJson({"quarantine", "drop", "--all"})["dropped"], 1);
}

// --- Damage

// Bytes that are not records, as another program may write them, in the families of table t.
void WriteGarbage(Store* store) {
  const std::string reserved("\0mine", 5);
  const std::string long_value = EncodeWriteRecord({WriteKind::kPut, Timestamp(5), {}, {}});
  ASSERT_THAT(store->Mutate({{"t",
                              "bad",
                              {},
                              {Mutation::Set(Family::kLock, "c", Timestamp(7), "garbage"),
                               Mutation::Set(Family::kWrite, "c", Timestamp(8), "\x01"),
                               Mutation::Set(Family::kWrite, "d", Timestamp(9), long_value),
                               Mutation::Set(Family::kNotify, "c", Timestamp(10), "garbage"),
                               Mutation::Set(Family::kData, reserved, Timestamp(11), "v")}}})[0],
              IsOk());
  ASSERT_THAT(store->Close(), IsOk());
}

TEST_F(CliTest, CheckFindsBadCellsAndRepairRemovesThem) {
  Must({"tables", "create", "t"});
  Must({"set", "t", "bad", "name", "Bob"});
  Must({"set", "t", "good", "long", std::string(1000, 'v')});
  EXPECT_THAT(Must({"check"}), HasSubstr("0 problems"));
  WriteGarbage(OpenRocksStore(Folder()).value().get());

  ExpectError({"scan", "t"}, 4, "row \"bad\", column \"c\", family lock, timestamp 7); `percolator check`");
  const Ran check = Run({"check"});
  EXPECT_EQ(check.exit, 1) << check.err;
  EXPECT_THAT(check.out, AllOf(ContainsRegex("t +bad +lock +c +7 +damaged "), ContainsRegex("write +c +8 +damaged "),
                               ContainsRegex("write +d +9 +missing-data "), ContainsRegex("notify +c +10 +damaged "),
                               ContainsRegex("data +.x00mine +11 +misplaced "), HasSubstr("5 problems")));
  const Json found = Run({"check", "--table", "t", "--json"}).json();
  ASSERT_EQ(found.size(), 5u);

  const std::string saved = dir_.path() + "/saved.jsonl";
  const Ran dry = Run({"repair", "--save", saved});
  EXPECT_EQ(dry.exit, 1);
  EXPECT_THAT(dry.out, AllOf(ContainsRegex("lock +c +7 +damaged "), HasSubstr("would erase 5 cells: --yes")));
  EXPECT_FALSE(std::filesystem::exists(saved));
  EXPECT_EQ(Run({"check"}).exit, 1);

  std::ofstream(saved) << "precious";
  ExpectError({"repair", "--yes", "--save", saved}, 2, "not overwritten");
  EXPECT_EQ(FileText(saved), "precious");
  EXPECT_EQ(Run({"check"}).exit, 1);

  std::filesystem::remove(saved);
  EXPECT_THAT(Must({"repair", "--yes", "--save", saved}), HasSubstr("0 problems"));
  const Json first = Json::parse(FileText(saved).substr(0, FileText(saved).find('\n')));
  EXPECT_EQ(first, found[0]);
  EXPECT_THAT(Must({"check"}), HasSubstr("0 problems"));
  EXPECT_EQ(MustJson({"scan", "t"}).size(), 2u);
  EXPECT_THAT(Must({"repair"}), HasSubstr("would erase 0 cells"));
  ExpectError({"check", "--table", "nosuch"}, 2, "nosuch");
}

// The observers of a cluster are read when it is opened. Damage there does not prevent repair from opening it.
TEST_F(CliTest, RepairRemovesDamageOfTheObservers) {
  Must({"tables", "create", "t"});
  {
    const Cluster cluster = Cluster::Open("rocksdb:" + Folder()).value();
    Worker worker(cluster);
    worker.Observe({.name = "o", .table = "t", .column = "c", .run = [](ReadWrite&, const Notification&) {
                      return absl::OkStatus();
                    }});
    ASSERT_THAT(worker.Start(), IsOk());
    ASSERT_THAT(cluster.Close(), IsOk());
  }
  {
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    const Mutation garbage = Mutation::Set(Family::kLock, "o", Timestamp(7), "garbage");
    ASSERT_THAT(store->Mutate({{"_percolator", "observers", {}, {garbage}}})[0], IsOk());
    ASSERT_THAT(store->Close(), IsOk());
  }
  ExpectError({"scan", "t"}, 4, "percolator check");
  EXPECT_THAT(Run({"check"}).out,
              AllOf(ContainsRegex("_percolator +observers +lock +o +7 +damaged "), HasSubstr("1 problem")));
  {
    const auto cluster = Cluster::Open("rocksdb:" + Folder(), {.for_repair = true}).value();
    EXPECT_THAT(cluster.Transact([](ReadWrite& t) {
      t.Set({"t", "r", "c"}, "1");
    }),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("opened for repair")));
  }
  EXPECT_EQ(Run({"repair", "--yes", "--save", dir_.path() + "/saved.jsonl"}).exit, 0);
  Must({"set", "t", "r", "c", "1"});
}

TEST_F(CliTest, RepairThroughAServer) {
  Must({"tables", "create", "t"});
  WriteGarbage(OpenRocksStore(Folder()).value().get());
  const std::string base = dir_.path() + "/server";
  const std::string script =
      StrCat(PERCOLATOR, " serve --listen 127.0.0.1:0 --data ", Folder(), " > ", base, ".out & server=$!; ",
             "for i in $(seq 300); do at=$(grep -o 'percolator://[^ ]*' ", base, ".out) && break; sleep 0.1; done; ",
             PERCOLATOR, " --cluster $at repair --yes --save ", base, ".jsonl; code=$?; kill $server; wait $server; ",
             "exit $code");
  const Ran ran = RunProgram("bash", {"-c", script}, "");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("0 problems"));
  EXPECT_THAT(Must({"check"}), HasSubstr("0 problems"));
}

// A lock whose primary cannot be read, or is not a primary, also stops readers, though its own bytes are valid.
TEST_F(CliTest, CheckFollowsLocksToTheirPrimaries) {
  Must({"tables", "create", "t"});
  {
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    const auto lock = [&](const std::string& row, const std::string& primary) {
      const Lock bytes{.primary = CellName{"t", primary, "c"}, .session = 7, .refreshed = Timestamp(5), .value = "v"};
      const auto done =
          store->Mutate({{"t", row, {}, {Mutation::Set(Family::kLock, "c", Timestamp(5), EncodeLock(bytes))}}});
      ASSERT_THAT(done[0], IsOk());
    };
    lock("a", "");
    lock("b", "a");
    ASSERT_THAT(store->Close(), IsOk());
  }
  EXPECT_EQ(Run({"scan", "t"}).exit, 2);
  const Ran check = Run({"check"});
  EXPECT_EQ(check.exit, 1);
  EXPECT_THAT(check.out, AllOf(ContainsRegex("t +a +lock +c +5 +impossible "), ContainsRegex("t +b +lock +c +5 +imp"),
                               HasSubstr("2 problems")));
  EXPECT_EQ(Run({"repair", "--yes", "--save", dir_.path() + "/saved.jsonl"}).exit, 0);
  ExpectError({"scan", "t"}, 1, "no such rows");
}

TEST_F(CliTest, RepairLeavesCellsThatMayBeGood) {
  Must({"tables", "create", "t"});
  const std::string far = EncodeWriteRecord({WriteKind::kPut, Timestamp(5), {}, "v"});
  {
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    const Timestamp future(uint64_t{1} << 62);
    const Lock lock{.primary = CellName{"t", "nowhere", "c"}, .session = 77, .refreshed = Timestamp(5), .value = "v"};
    ASSERT_THAT(store->Mutate({{"t",
                                "r",
                                {},
                                {Mutation::Set(Family::kWrite, "newer", Timestamp(6), "\x02"),
                                 Mutation::Set(Family::kWrite, "future", future, far),
                                 Mutation::Set(Family::kLock, "abandoned", Timestamp(5), EncodeLock(lock))}}})[0],
                IsOk());
    ASSERT_THAT(store->Close(), IsOk());
  }
  const std::string saved = dir_.path() + "/saved.jsonl";
  const Ran repair = Run({"repair", "--yes", "--save", saved});
  EXPECT_EQ(repair.exit, 1);
  EXPECT_THAT(repair.out, AllOf(ContainsRegex("newer +6 +newer-format "), ContainsRegex("future +[0-9]+ +future "),
                                ContainsRegex("abandoned +5 +abandoned "), HasSubstr("2 problems, 1 notes")));
  EXPECT_FALSE(std::filesystem::exists(saved));
  EXPECT_EQ(Run({"repair", "--yes", "--newer-format", "--save", saved}).exit, 1);  // leaves the one in the future
  EXPECT_THAT(FileText(saved), HasSubstr("\"kind\":\"newer-format\""));
  EXPECT_EQ(Run({"check", "--json"}).json().size(), 2u);
}

// The cells of observers, quarantine and Percolator's own table are not problems.
TEST_F(CliTest, CheckFindsNoProblemsInCellsOfWorkers) {
  FailObserver(2, 2);
  Must({"delete", "accounts", "bad0", "bal"});
  EXPECT_THAT(Must({"check"}), HasSubstr("0 problems, 0 notes"));
  EXPECT_EQ(MustJson({"check"}), Json::array());
}

// --- Operation

TEST_F(CliTest, GarbageIsCollectedOnRequest) {
  Must({"tables", "create", "t"});
  Must({"set", "t", "r", "c", "old"});
  Must({"set", "t", "r", "c", "new"});
  EXPECT_THAT(Must({"gc"}), AllOf(HasSubstr("safe point"), HasSubstr("0 collected")));
  const Json gc = MustJson({"gc", "--keep", "1d"});  // the safe point never goes back
  EXPECT_EQ(gc["versions_collected"], 0);
  EXPECT_EQ(MustJson({"stats"})["safe_point"], gc["safe_point"]);
  EXPECT_EQ(MustJson({"cells", "t", "r"}).size(), 2u);
  ExpectError({"get", "t", "r", "c", "--as-of", "-2h"}, 4, "safe point");
  ExpectError({"gc", "--keep", "1s"}, 2, "--keep");
  ExpectError({"gc", "--keep", "long"}, 2, "duration");
}

TEST_F(CliTest, OldVersionsAreCollected) {
  {  // an hour ago
    const std::unique_ptr<Store> store = OpenRocksStore(Folder()).value();
    ASSERT_THAT(store->CreateTable({"t", ""}), IsOk());
    for (const uint64_t ts : {100, 200, 300}) {
      const std::string record =
          EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Timestamp(ts - 1), .verified = {}, .value = "v"});
      ASSERT_THAT(store->Mutate({{"t", "r", {}, {Mutation::Set(Family::kWrite, "c", Timestamp(ts), record)}}})[0],
                  IsOk());
    }
    ASSERT_THAT(store->Close(), IsOk());
  }
  {  // the oracle's file, which belongs to the data
    const std::string other = dir_.path() + "/other";
    ASSERT_EQ(RunProgram(PERCOLATOR, {"tables", "create", "x"}, "rocksdb:" + other).exit, 0);
    std::filesystem::copy_file(other + "/oracle", Folder() + "/oracle");
  }
  EXPECT_EQ(MustJson({"gc"})["versions_collected"], 2);
  EXPECT_EQ(MustJson({"cells", "t", "r"}).size(), 1u);
  EXPECT_EQ(Must({"get", "t", "r", "c"}), "v\n");
}

TEST_F(CliTest, Stats) {
  FailObserver(1, 2);
  Must({"set", "accounts", "Bob", "name", "Bobby"});
  const Json stats = MustJson({"stats", "--count"});
  EXPECT_EQ(stats["cluster"], Address());
  EXPECT_EQ(stats["notifications"]["cells"], 2);
  EXPECT_EQ(stats["observers"][0]["name"], "parse");
  EXPECT_EQ(stats["tables"], Json::array({{{"name", "accounts"}, {"rows", 4}, {"cells", 4}, {"bytes", 8}}}));
  EXPECT_THAT(Must({"stats"}), AllOf(HasSubstr("parse of accounts:bal"), HasSubstr("quarantine     1")));
}

TEST_F(CliTest, BenchLeavesNothing) {
  Must({"tables", "create", "t"});
  const Json measured = MustJson({"bench", "--time", "20ms", "--rows", "100", "--threads", "2"});
  ASSERT_EQ(measured.size(), 4u);
  // On a busy machine one of them, on a fast one the other may be zero when rounded.
  for (const Json& one : measured) EXPECT_GT(one["per_second"].get<double>() + one["p99_us"].get<double>(), 0) << one;
  EXPECT_EQ(MustJson({"tables"}).size(), 1u);
  const Ran in_memory = RunProgram(PERCOLATOR, {"bench", "--time", "20ms", "--rows", "100"}, "memory:");
  EXPECT_EQ(in_memory.exit, 0) << in_memory.err;
  EXPECT_THAT(in_memory.out, HasSubstr("transactions/s"));
}

// Commands in quick succession do not make timestamps run ahead of the clock.
TEST_F(CliTest, TimestampsKeepToTheClock) {
  Must({"tables", "create", "t"});
  const Json first = MustJson({"set", "t", "r", "c", "v"});
  for (int i = 0; i < 5; ++i) Must({"get", "t", "r", "c"});
  const Json last = MustJson({"set", "t", "r", "c", "v"});
  EXPECT_GT(last["commit_ts"], first["commit_ts"]);
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  EXPECT_LT(last["commit_ts"].get<uint64_t>(), Timestamp::At(now).value() + 2'000'000);
}

// --- The command line itself

TEST_F(CliTest, WithoutAClusterTheErrorNamesBothWays) {
  const Ran ran = RunProgram(PERCOLATOR, {"tables"}, "");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--cluster"), HasSubstr("PERCOLATOR_CLUSTER")));
}

TEST_F(CliTest, TheClusterIsNamedBeforeOrAfterTheCommand) {
  Must({"tables", "create", "t"});
  EXPECT_EQ(RunProgram(PERCOLATOR, {"--cluster", Address(), "tables"}, "").exit, 0);
  EXPECT_EQ(RunProgram(PERCOLATOR, {"tables", "list", "--cluster", Address()}, "").exit, 0);
  // The option takes precedence over the environment.
  EXPECT_EQ(RunProgram(PERCOLATOR, {"tables", "--cluster", Address()}, "rocksdb:/nosuch").exit, 0);
}

TEST_F(CliTest, AWrongAddressCreatesNothing) {
  ExpectError({"tables"}, 3, "there is no store in " + Folder());
  EXPECT_FALSE(std::filesystem::exists(Folder()));
  ExpectError({"get", "t", "r", "c", "--cluster", "bogus"}, 2, "rocksdb:DIR");
  std::filesystem::create_directories(Folder());
  std::ofstream(Folder() + "/photo.jpg") << "not ours";
  ExpectError({"tables"}, 3, "there is no store");
  ExpectError({"tables", "create", "t"}, 3, "has files but is not a Percolator store");
}

TEST_F(CliTest, AFolderOpenInAnotherProcessIsRefused) {
  Must({"tables", "create", "t"});
  const Cluster cluster = Open();
  for (const Words& words : std::vector<Words>{{"tables"}, {"get", "t", "r", "c"}, {"stats"}, {"gc"}, {"bench"}}) {
    ExpectError(words, 3, "is open already");
  }
}

TEST_F(CliTest, BadUsage) {
  ExpectError({}, 2, "percolator --help");
  ExpectError({"frobnicate"}, 2, "there is no command frobnicate");
  ExpectError({"get", "t"}, 2, "percolator get --help");
  ExpectError({"get", "t", "r", "c", "d"}, 2, "d");
  ExpectError({"get", "t", "r", "c", "--nosuch"}, 2, "--nosuch");
  ExpectError({"tables", "frobnicate"}, 2, "frobnicate");
  ExpectError({"bench", "--threads", "0"}, 2, "--threads");
}

TEST_F(CliTest, EveryCommandHasExamples) {
  const std::vector<Words> commands = {{},        {"get"},           {"set"},        {"delete"},
                                       {"scan"},  {"cells"},         {"tables"},     {"tables", "create"},
                                       {"locks"}, {"notifications"}, {"quarantine"}, {"quarantine", "replay"},
                                       {"check"}, {"repair"},        {"wait-idle"},  {"gc"},
                                       {"stats"}, {"bench"},         {"completion"}};
  for (Words words : commands) {
    words.emplace_back("--help");
    const std::string help = Must(words);
    EXPECT_THAT(help, AllOf(HasSubstr("Usage: percolator"), HasSubstr("\n  percolator "), HasSubstr("--cluster")))
        << words[0];
  }
  EXPECT_THAT(Must({"--help"}), HasSubstr("Exit codes: 0 done; 1"));
  EXPECT_THAT(Must({"--version"}), ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+\n$"));
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAnError) {
  Must({"tables", "create", "t"});
  const Ran ran = RunProgram("bash", {"-c", StrCat(PERCOLATOR, " tables > /dev/full")}, Address());
  EXPECT_EQ(ran.exit, 4);
  EXPECT_THAT(ran.err, HasSubstr("cannot write the output"));
}

// The completions of bash after these words.
TEST_F(CliTest, CompletionInBash) {
  const std::string script = dir_.path() + "/completion.bash";
  std::ofstream(script) << Must({"completion", "bash"});
  const auto complete = [&](const std::string& words, int at) {
    const std::string program =
        StrCat("source ", script, "; COMP_WORDS=(", words, "); COMP_CWORD=", at, "; _percolator; echo ${COMPREPLY[@]}");
    return RunProgram("bash", {"-c", program}, "").out;
  };
  EXPECT_EQ(complete("percolator qua", 1), "quarantine\n");
  EXPECT_EQ(complete("percolator quarantine ''", 2), "--cluster --help --json --version drop list replay\n");
  EXPECT_EQ(complete("percolator quarantine replay --a", 3), "--all\n");
  EXPECT_EQ(complete("percolator --cluster rocksdb:x scan t --as", 5), "--as-of\n");
  EXPECT_EQ(complete("percolator get tables --r", 3), "--raw\n");  // a table of that name is not a command
  EXPECT_EQ(complete("percolator completion ''", 2), "--cluster --help --json --version bash fish zsh\n");
}

// The other shells may not be installed, but the list of commands can be checked without them.
TEST_F(CliTest, CompletionInOtherShells) {
  EXPECT_THAT(Must({"completion", "zsh"}), AllOf(StartsWith("#compdef percolator"), HasSubstr("'wait-idle:Waits until"),
                                                 HasSubstr("'tables create')")));
  EXPECT_THAT(Must({"completion", "fish"}), AllOf(HasSubstr("-a 'wait-idle'"), HasSubstr("-l as-of -r")));
}

}  // namespace
}  // namespace percolator
