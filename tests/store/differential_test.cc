// SPDX-License-Identifier: Apache-2.0

// Random operations on a store in memory and one on RocksDB: every answer must be the same.
//
// Environment:
//   PERCOLATOR_DIFF_SEEDS=N   the number of seeds to run, from 1 on
//   PERCOLATOR_DIFF_SEED=S    run only the seed S, which a failure names

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr uint64_t kDefaultSeeds = Amount(40, 15);
constexpr int kOperations = 500;

// A cell that is read and written more often than others.
constexpr char kHotRow[] = "r";
constexpr char kHotColumn[] = "c";

// Small, so that random requests sometimes exceed each of them, and scans take many pages.
StoreLimits SmallLimits() {
  StoreLimits limits;
  limits.max_row_key_bytes = 6;
  limits.max_column_bytes = 5;
  limits.max_value_bytes = 30;
  limits.max_row_mutations = 8;
  limits.max_row_mutation_bytes = 80;
  limits.max_scan_bytes = 120;
  limits.max_scan_work = 25;
  return limits;
}

// Draws requests from a space so small that they collide, full of bytes and timestamps where encodings go wrong.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  std::string Table() { return OneIn(50) ? "nope" : KnownTable(); }
  std::string KnownTable() { return OneIn(4) ? "t-" : "t"; }
  std::string RowKey() { return OneIn(200) ? Bytes(7, 7) : OneIn(300) ? "" : SomeRow(); }
  std::string SomeRow() { return OneIn(3) ? kHotRow : Bytes(1, 3); }
  std::string ColumnName() { return OneIn(200) ? Bytes(6, 6) : OneIn(3) ? kHotColumn : Bytes(0, 2); }
  Family AnyFamily() { return static_cast<Family>(Below(kFamilyCount)); }

  TimestampRange Range() {
    switch (Below(4)) {
      case 0:
        return TimestampRange::All();
      case 1:
        return TimestampRange::Exactly(Time());
      default:
        return {Time(), OneIn(5) ? Timestamp::Infinity() : Time()};
    }
  }

  // The store on RocksDB caches this: so such reads are frequent, and many are of the same cells.
  Selector NewestWrite() {
    return {Family::kWrite, OneIn(2) ? kHotColumn : ColumnName(), OneIn(3) ? Range() : TimestampRange::All(), 1};
  }

  std::vector<Selector> Selectors() {
    std::vector<Selector> selectors;
    for (uint64_t n = Below(5); n > 0; --n) {
      if (OneIn(3)) {
        selectors.push_back(NewestWrite());
        continue;
      }
      Selector selector;
      selector.family = AnyFamily();
      if (!OneIn(2)) selector.column = ColumnName();
      selector.range = Range();
      selector.newest = static_cast<uint32_t>(Below(4));
      selectors.push_back(std::move(selector));
    }
    return selectors;
  }

  RowRange Rows() {
    switch (Below(6)) {
      case 0:
        return RowRange::Single(RowKey());
      case 1:
        return RowRange::Prefix(Bytes(0, 2));
      case 2:
        return RowRange::All().After(RowKey());
      case 3:
        return {Bytes(0, 3), Bytes(0, 3)};
      default:
        return RowRange::All();
    }
  }

  ScanRequest Scan() {
    return {.table = Table(),
            .rows = Rows(),
            .selectors = Selectors(),
            .row_limit = OneIn(100) ? 0 : 1 + Below(OneIn(2) ? 4 : 40),
            .reverse = OneIn(3)};
  }

  std::vector<RowRead> Reads() {
    std::vector<RowRead> reads;
    const uint64_t count = Below(5);
    // One bad entry decides the answer of the whole batch, so it has only one kind of bad entry.
    const std::string table = Table();
    for (uint64_t i = 0; i < count; ++i) reads.push_back({table, SomeRow(), Selectors()});
    if (table != "nope" && count > 0 && OneIn(20)) reads.push_back({table, OneIn(2) ? "" : Bytes(7, 7), Selectors()});
    return reads;
  }

  std::vector<RowMutation> Mutations() {
    std::vector<RowMutation> batch;
    for (uint64_t n = Below(6); n > 0; --n) {
      // If an entry has two errors, either may be returned.
      if (OneIn(30)) {
        batch.push_back({"nope", "r", {}, {}});
      } else {
        batch.push_back({KnownTable(), RowKey(), SomeCondition(), Effects()});
      }
    }
    return batch;
  }

  JointMutation Joint() {
    JointMutation mutation{OneIn(2) ? Time() : Timestamp(Below(6)), Mutations()};
    for (RowMutation& row : mutation.rows) {
      for (Mutation& m : row.mutations) {
        if (m.kind == Mutation::Kind::kSet && OneIn(2)) m.range = TimestampRange::Exactly(JointMutation::AtCommit());
      }
    }
    // Rows are distinct, mostly.
    const auto order = [](const RowMutation& a, const RowMutation& b) {
      return std::tie(a.table, a.row) < std::tie(b.table, b.row);
    };
    const auto same = [](const RowMutation& a, const RowMutation& b) { return a.table == b.table && a.row == b.row; };
    if (OneIn(20)) return mutation;
    std::sort(mutation.rows.begin(), mutation.rows.end(), order);
    mutation.rows.erase(std::unique(mutation.rows.begin(), mutation.rows.end(), same), mutation.rows.end());
    return mutation;
  }

 private:
  std::string Bytes(uint64_t least, uint64_t most) {
    static constexpr char kAlphabet[] = {'\x00', '\x01', 'a', '\xfe', '\xff'};
    std::string bytes;
    for (uint64_t n = least + Below(most - least + 1); n > 0; --n) bytes += kAlphabet[Below(sizeof(kAlphabet))];
    return bytes;
  }

  Timestamp Time() {
    static constexpr uint64_t kLast = Timestamp::Infinity().value() - 1;
    static constexpr uint64_t kTimes[] = {0, 1, 2, 3, 255, 256, 257, uint64_t{1} << 32, kLast - 1, kLast};
    return Timestamp(kTimes[Below(std::size(kTimes))]);
  }

  Condition SomeCondition() {
    Condition condition;
    condition.quantifier = static_cast<Condition::Quantifier>(Below(3));
    const uint64_t count = OneIn(100) ? 9 : OneIn(2) ? 0 : Below(4);
    for (uint64_t i = 0; i < count; ++i) condition.cells.push_back({AnyFamily(), ColumnName(), Range()});
    return condition;
  }

  std::vector<Mutation> Effects() {
    std::vector<Mutation> mutations;
    const uint64_t count = OneIn(100) ? 9 : Below(7);
    for (uint64_t i = 0; i < count; ++i) {
      if (OneIn(3)) {
        mutations.push_back(Mutation::Erase(AnyFamily(), ColumnName(), Range()));
      } else {
        const Timestamp ts = OneIn(200) ? Timestamp::Infinity() : Time();
        mutations.push_back(Mutation::Set(AnyFamily(), ColumnName(), ts, Value()));
      }
    }
    return mutations;
  }

  std::string Value() { return OneIn(30) ? std::string(25 + Below(7), 'v') : Bytes(0, 6); }

  std::mt19937_64 random_;
};

template <typename T>
std::string TextOfAll(const std::vector<T>& things) {
  return absl::StrJoin(things, "\n  ", [](std::string* out, const T& thing) { *out += ToText(thing); });
}

// Answers as text. Only the code of an error is specified.
std::string ErrorText(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

std::string AnswerOf(Store* store, const std::vector<RowRead>& reads) {
  absl::StatusOr<std::vector<Row>> rows = store->Read(reads);
  return rows.ok() ? ToText(*rows) : ErrorText(rows.status());
}

std::string AnswerOf(Store* store, const std::vector<RowMutation>& mutations) {
  std::vector<std::string> answers;
  for (const absl::StatusOr<MutateResult>& result : store->Mutate(mutations)) {
    answers.push_back(!result.ok()                        ? ErrorText(result.status())
                      : *result == MutateResult::kApplied ? "applied"
                                                          : "condition failed");
  }
  return absl::StrJoin(answers, " ");
}

std::string AnswerOf(Store* store, Oracle* oracle, const JointMutation& mutation) {
  const absl::StatusOr<JointResult> result = store->MutateTogether(mutation, oracle);
  if (!result.ok()) return ErrorText(result.status());
  return result->applied ? absl::StrCat("applied at ", result->timestamp.value())
                         : absl::StrCat("condition failed of row ", result->failed_row);
}

// All pages joined, because each store decides where a page ends.
std::string AnswerOf(Store* store, ScanRequest request) {
  std::vector<Row> rows;
  for (int pages = 0; pages < 10'000; ++pages) {
    absl::StatusOr<ScanPage> page = store->Scan(request);
    if (!page.ok()) return ErrorText(page.status());
    if (page->rows.size() > request.row_limit) return absl::StrCat("page of ", page->rows.size(), " rows");
    rows.insert(rows.end(), page->rows.begin(), page->rows.end());
    if (!page->resume.has_value()) return ToText(rows);
    const bool moves_on = request.reverse ? !request.rows.limit.has_value() || *page->resume < *request.rows.limit
                                          : *page->resume > request.rows.start;
    if (!moves_on) return "the scan makes no progress";
    request.ContinueAt(*page->resume);
  }
  return "the scan does not end";
}

std::string TablesOf(Store* store) {
  absl::StatusOr<std::vector<TableInfo>> tables = store->ListTables();
  if (!tables.ok()) return ErrorText(tables.status());
  return absl::StrJoin(
      *tables, " ", [](std::string* out, const TableInfo& info) { absl::StrAppend(out, info.name, "=", info.schema); });
}

// The two stores, and the comparison of their answers.
class Pair {
 public:
  Pair() : memory_(NewMemoryStore(SmallLimits())) { Reopen(); }

  void Reopen() {
    if (rocks_ != nullptr) {
      ASSERT_THAT(rocks_->Close(), IsOk());
    }
    rocks_ = nullptr;
    RocksOptions options;
    options.durability = Durability::kNoSync;
    options.block_cache_bytes = 1 << 20;
    options.version_cache_bytes = 32 << 10;  // for one or two cells in each of its parts
    options.limits = SmallLimits();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir_.path() + "/store", options);
    ASSERT_THAT(store, IsOk());
    rocks_ = *std::move(store);
  }

  template <typename Request>
  void Compare(const Request& request, const std::string& text) {
    ASSERT_EQ(AnswerOf(memory_.get(), request), AnswerOf(rocks_.get(), request)) << text;
  }

  void CompareTogether(const JointMutation& mutation) {
    ASSERT_EQ(AnswerOf(memory_.get(), &memory_oracle_, mutation), AnswerOf(rocks_.get(), &rocks_oracle_, mutation))
        << "started at " << mutation.start_ts << "\n  " << TextOfAll(mutation.rows);
  }

  void RaiseSafePoint(Timestamp ts) {
    ASSERT_EQ(ErrorText(memory_->RaiseSafePoint(ts)), ErrorText(rocks_->RaiseSafePoint(ts)));
    ASSERT_EQ(memory_->SafePoint().value(), rocks_->SafePoint().value());
  }

  void Create(const std::string& table, const std::string& schema) {
    ASSERT_EQ(ErrorText(memory_->CreateTable({table, schema})), ErrorText(rocks_->CreateTable({table, schema})));
  }

  void Drop(const std::string& table) {
    ASSERT_EQ(ErrorText(memory_->DropTable(table)), ErrorText(rocks_->DropTable(table)));
  }

  void CompareTables() { ASSERT_EQ(TablesOf(memory_.get()), TablesOf(rocks_.get())); }

  // All content of every table.
  void CompareContent() {
    CompareTables();
    for (const char* table : {"t", "t-"}) {
      ScanRequest all = {table, RowRange::All(), {}, 1000};
      for (int family = 0; family < kFamilyCount; ++family) {
        all.selectors.push_back({static_cast<Family>(family), std::nullopt, {}, Selector::kAllVersions});
      }
      Compare(all, ToText(all));
    }
  }

 private:
  TempDir dir_;
  std::unique_ptr<Store> memory_;
  std::unique_ptr<Store> rocks_;
  // Start among the timestamps that requests use.
  TestOracle memory_oracle_{201};
  TestOracle rocks_oracle_{201};
};

void RunOperation(Generator* random, Pair* stores) {
  const uint64_t kind = random->Below(1000);
  if (kind < 100) {
    stores->CompareTogether(random->Joint());
  } else if (kind < 105) {
    stores->RaiseSafePoint(Timestamp(random->Below(3)));
  } else if (kind < 500) {
    const std::vector<RowMutation> batch = random->Mutations();
    stores->Compare(batch, TextOfAll(batch));
  } else if (kind < 750) {
    const std::vector<RowRead> reads = random->Reads();
    stores->Compare(reads, TextOfAll(reads));
  } else if (kind < 970) {
    ScanRequest request = random->Scan();
    // If a request has two errors, either may be returned.
    if (request.row_limit == 0) request.table = "t";
    stores->Compare(request, ToText(request));
  } else if (kind < 980) {
    stores->Create(random->OneIn(5) ? "not a name!" : random->KnownTable(), std::to_string(random->Below(10)));
  } else if (kind < 985) {
    stores->Drop(random->Table());
  } else if (kind < 995) {
    stores->CompareTables();
  } else {
    stores->Reopen();
    stores->CompareContent();
  }
}

void RunSeed(uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("replay with PERCOLATOR_DIFF_SEED=", seed));
  Generator random(seed);
  Pair stores;
  if (::testing::Test::HasFatalFailure()) return;
  stores.Create("t", "");
  stores.Create("t-", "");
  for (int i = 0; i < kOperations; ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i));
    RunOperation(&random, &stores);
    if (::testing::Test::HasFatalFailure()) return;
  }
  stores.CompareContent();
  stores.Reopen();
  stores.CompareContent();
}

// The number in an environment variable. Ends the program if it is malformed, instead of testing something else.
std::optional<uint64_t> NumberFrom(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    ADD_FAILURE() << variable << " is not a number: " << text;
    std::abort();
  }
  return number;
}

TEST(StoreDifferentialTest, RocksDbGivesTheSameAnswersAsMemory) {
  if (const std::optional<uint64_t> seed = NumberFrom("PERCOLATOR_DIFF_SEED"); seed.has_value()) {
    RunSeed(*seed);
    return;
  }
  const uint64_t seeds = NumberFrom("PERCOLATOR_DIFF_SEEDS").value_or(kDefaultSeeds);
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) RunSeed(seed);
}

}  // namespace
}  // namespace percolator
