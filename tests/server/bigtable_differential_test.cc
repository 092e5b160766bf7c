// SPDX-License-Identifier: Apache-2.0

// Our server and Google's emulator get the same random requests, and must give the same answers.
//
// The requests avoid cases where the emulator is known to be wrong, or Bigtable leaves the answer open:
//
//   REGEX         bytes from 0x80 up: its regular expressions do not match them
//   SINGLE        chains and interleaves of one filter: it accepts them, production does not
//   CELL COUNTS   cells_per_row_offset and _limit over several families: it visits these in any order, so each stands
//                 behind
//                 a filter that leaves one family
//   EMPTY MATCH   a row that an offset, a limit of zero or a pass leaves empty counts as a match in conditions, chains
//                 and
//                 limits of rows: so an offset or a row limit is not the last of a chain, and not in a predicate or row
//                 limit
//   SINK, SAMPLE  it does not know sink, and a sample is random
//   LABEL         it forgets a label when it strips the value
//   COPIES        the order of the copies that an interleave makes of a cell is open: so copies are alike, and values
//                 are
//                 stripped at the very end only
//   ERRORS        it returns UNKNOWN or INTERNAL, and leaves half of a row changed: only good requests are sent
//   APPEND        appended values share memory in it, so that a value may change later: they are only read in the
//                 answer,
//                 and removed
//
// PERCOLATOR_TEST_SEED: the seed.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "tests/processes/emulator.h"
#include "tests/server/bigtable_server.h"
#include "tests/server/bigtable_tester.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

constexpr int kRequests = 4000;

uint64_t Seed() {
  const char* given = std::getenv("PERCOLATOR_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "PERCOLATOR_TEST_SEED=" << seed << "\n";
  return seed;
}

// Random requests about a few rows, families and columns, so that they collide.
class Requests {
 public:
  explicit Requests(uint64_t seed) : random_(seed) {}

  size_t Pick(size_t of) { return random_() % of; }

  bt::MutateRowRequest Mutate() {
    bt::MutateRowRequest request;
    request.set_table_name(TestTable("t"));
    request.set_row_key(Key());
    AddMutations(request.mutable_mutations());
    return request;
  }

  bt::MutateRowsRequest MutateRows() {
    bt::MutateRowsRequest request;
    request.set_table_name(TestTable("t"));
    for (size_t i = 1 + Pick(4); i > 0; --i) {
      bt::MutateRowsRequest::Entry* const entry = request.add_entries();
      entry->set_row_key(Key());
      AddMutations(entry->mutable_mutations());
    }
    return request;
  }

  bt::CheckAndMutateRowRequest CheckAndMutate() {
    bt::CheckAndMutateRowRequest request;
    request.set_table_name(TestTable("t"));
    request.set_row_key(Key());
    if (Pick(5) != 0) *request.mutable_predicate_filter() = Filter(2, /*counts=*/false);
    AddMutations(request.mutable_true_mutations());
    if (Pick(2) == 0) AddMutations(request.mutable_false_mutations());
    return request;
  }

  bt::ReadModifyWriteRowRequest ReadModifyWrite() {
    bt::ReadModifyWriteRowRequest request;
    request.set_table_name(TestTable("t"));
    request.set_row_key(Key());
    for (size_t i = 1 + Pick(3); i > 0; --i) {
      bt::ReadModifyWriteRule* const rule = request.add_rules();
      rule->set_family_name("counters");
      rule->set_column_qualifier(Pick(2) == 0 ? "appended" : "added");
      if (rule->column_qualifier() == "added") {
        rule->set_increment_amount(static_cast<int64_t>(random_()));
      } else {
        rule->set_append_value(Value());
      }
    }
    return request;
  }

  bt::ReadRowsRequest Read() {
    bt::ReadRowsRequest request;
    request.set_table_name(TestTable("t"));
    if (Pick(3) != 0) AddRows(request.mutable_rows());
    const bool limited = Pick(3) == 0;
    if (limited) request.set_rows_limit(static_cast<int64_t>(1 + Pick(4)));
    if (Pick(5) == 0) return request;
    bt::RowFilter filter = Filter(3, !limited);
    if (Pick(6) != 0) {
      *request.mutable_filter() = filter;
    } else {
      *request.mutable_filter()->mutable_chain()->add_filters() = filter;
      request.mutable_filter()->mutable_chain()->add_filters()->set_strip_value_transformer(true);
    }
    return request;
  }

 private:
  std::string Key() {
    static const auto* const kKeys = new std::vector<std::string>{
        "a", "ab", "abc", "b", "ba", "c", std::string("\0", 1), std::string("a\0", 2), "\xff", "\xff\xff", "zz"};
    return (*kKeys)[Pick(kKeys->size())];
  }
  std::string Qualifier() {
    static const auto* const kQualifiers =
        new std::vector<std::string>{"", "q", "qq", "r", std::string("q\0", 2), "\xff", "0", "x.y"};
    return (*kQualifiers)[Pick(kQualifiers->size())];
  }
  std::string PickFamily() { return std::string(1, static_cast<char>('f' + Pick(3))); }
  std::string Value() { return Pick(6) == 0 ? "" : std::string(1 + Pick(3), static_cast<char>('u' + Pick(4))); }
  int64_t Time() { return static_cast<int64_t>(Pick(6) * 1000); }

  template <typename Mutations>
  void AddMutations(Mutations* mutations) {
    for (size_t i = 1 + Pick(4); i > 0; --i) AddMutation(mutations->Add());
  }

  void AddMutation(bt::Mutation* mutation) {
    const size_t kind = Pick(20);
    if (kind == 0) {
      mutation->mutable_delete_from_row();
    } else if (kind == 1) {
      mutation->mutable_delete_from_family()->set_family_name(PickFamily());
    } else if (kind < 5) {
      bt::Mutation::DeleteFromColumn* const erase = mutation->mutable_delete_from_column();
      erase->set_family_name(PickFamily());
      erase->set_column_qualifier(Qualifier());
      if (Pick(2) == 0) {
        erase->mutable_time_range()->set_start_timestamp_micros(Time());
        const int64_t later = erase->time_range().start_timestamp_micros() + 1000 + Time();
        erase->mutable_time_range()->set_end_timestamp_micros(Pick(3) == 0 ? 0 : later);
      }
    } else {
      bt::Mutation::SetCell* const set = mutation->mutable_set_cell();
      set->set_family_name(PickFamily());
      set->set_column_qualifier(Qualifier());
      set->set_timestamp_micros(Time());
      set->set_value(Value());
    }
  }

  void AddRows(bt::RowSet* rows) {
    for (size_t i = Pick(4); i > 0; --i) rows->add_row_keys(Key());
    for (size_t i = Pick(3); i > 0; --i) AddRange(rows->add_row_ranges());
  }

  void AddRange(bt::RowRange* range) {
    std::string start = Key();
    std::string end = Key();
    if (start > end) std::swap(start, end);
    const size_t starts = Pick(3);
    if (starts == 0) range->set_start_key_closed(start);
    if (starts == 1) range->set_start_key_open(start);
    const size_t ends = Pick(3);
    if (ends == 0 && end > start) range->set_end_key_open(end);
    if (ends == 1 && end > start) range->set_end_key_closed(end);
  }

  bt::RowFilter Filter(int depth, bool counts) {
    bt::RowFilter filter;
    const size_t kind = depth > 1 ? Pick(8) : 7;
    if (kind < 2) {
      for (size_t i = 2 + Pick(2); i > 0; --i) *filter.mutable_chain()->add_filters() = Filter(depth - 1, counts);
    } else if (kind < 4) {
      for (size_t i = 2 + Pick(2); i > 0; --i) *filter.mutable_interleave()->add_filters() = Filter(depth - 1, counts);
    } else if (kind == 4) {
      *filter.mutable_condition()->mutable_predicate_filter() = Filter(depth - 1, false);
      if (Pick(4) != 0) *filter.mutable_condition()->mutable_true_filter() = Filter(depth - 1, counts);
      if (Pick(4) != 0) *filter.mutable_condition()->mutable_false_filter() = Filter(depth - 1, counts);
    } else if (kind == 5 && counts) {
      AddCount(filter.mutable_chain());
    } else {
      AddLeaf(&filter);
    }
    return filter;
  }

  // Counts cells within one family, and puts a filter of single cells last.
  void AddCount(bt::RowFilter::Chain* chain) {
    chain->add_filters()->set_family_name_regex_filter(PickFamily());
    if (Pick(2) == 0) {
      chain->add_filters()->set_cells_per_row_offset_filter(static_cast<int>(Pick(4)));
    } else {
      chain->add_filters()->set_cells_per_row_limit_filter(static_cast<int>(1 + Pick(4)));
    }
    chain->add_filters()->set_family_name_regex_filter("[fgh]");
  }

  void AddLeaf(bt::RowFilter* filter) {
    static const auto* const kPatterns =
        new std::vector<std::string>{"a.*",     ".*",    "q+",     "[a-c]*", "q|r",  "u+",    "",   ".",
                                     "(u|v)w*", "\\x00", "q\\x00", "x\\.y",  "\\C*", "[^q]*", "f|g"};
    const std::string& pattern = (*kPatterns)[Pick(kPatterns->size())];
    switch (Pick(10)) {
      case 0:
        return filter->set_row_key_regex_filter(pattern);
      case 1:
        return filter->set_family_name_regex_filter(pattern);
      case 2:
        return filter->set_column_qualifier_regex_filter(pattern);
      case 3:
        return filter->set_value_regex_filter(pattern);
      case 4:
        return AddColumnRange(filter->mutable_column_range_filter());
      case 5:
        filter->mutable_timestamp_range_filter()->set_start_timestamp_micros(Time());
        return filter->mutable_timestamp_range_filter()->set_end_timestamp_micros(Time());
      case 6:
        return AddValueRange(filter->mutable_value_range_filter());
      case 7:
        return filter->set_cells_per_column_limit_filter(static_cast<int>(1 + Pick(3)));
      case 8:
        return filter->set_pass_all_filter(true);
      default:
        return filter->set_block_all_filter(true);
    }
  }

  void AddColumnRange(bt::ColumnRange* range) {
    range->set_family_name(PickFamily());
    const size_t kind = Pick(4);
    const std::string start = Qualifier();
    if (kind == 0) range->set_start_qualifier_open(start);
    if (kind == 1 || kind == 3) range->set_start_qualifier_closed(start);
    if (kind == 3) return range->set_end_qualifier_closed(start);
    const std::string end = Qualifier();
    if (Pick(3) == 0) range->set_end_qualifier_open(end);
    if (Pick(3) == 0) range->set_end_qualifier_closed(end);
  }

  void AddValueRange(bt::ValueRange* range) {
    const size_t kind = Pick(3);
    if (kind == 0) range->set_start_value_open(Value());
    if (kind == 1) range->set_start_value_closed(Value());
    if (Pick(2) == 0) range->set_end_value_open(Value() + "v");
    if (Pick(3) == 0) range->set_end_value_closed(Value() + "v");
  }

  std::mt19937_64 random_;
};

// An answer, for comparison.
template <typename T>
std::string Text(const absl::StatusOr<T>& answer) {
  if (!answer.ok()) return answer.status().ToString();
  if constexpr (std::is_same_v<T, bool>) return *answer ? "matched" : "not matched";
  if constexpr (std::is_same_v<T, std::string>) return *answer;
  if constexpr (std::is_same_v<T, std::vector<absl::Status>>) {
    std::string text;
    for (const absl::Status& status : *answer) text += status.ToString() + " ";
    return text;
  }
}
std::string Text(const absl::Status& status) { return status.ToString(); }

TEST(BigtableDifferentialTest, TheServerGivesTheSameAnswersAsTheEmulator) {
  const auto emulator = Emulator::Start();
  if (absl::IsUnavailable(emulator.status())) GTEST_SKIP() << emulator.status();
  ASSERT_THAT(emulator, IsOk());
  const std::unique_ptr<Store> store = NewMemoryStore();
  const BigtableServer server(store.get());
  BigtableTester ours(server.target());
  BigtableTester theirs((*emulator)->target());
  for (BigtableTester* client : {&ours, &theirs}) {
    ASSERT_THAT(client->CreateTable("t", {"f", "g", "h", "counters"}), IsOk());
  }
  Requests requests(Seed());
  int rows_read = 0;
  for (int i = 0; i < kRequests; ++i) {
    const auto expect_same = [&](const auto& call, const auto& request) {
      const std::string mine = Text(call(ours, request));
      ASSERT_EQ(mine, Text(call(theirs, request))) << "request " << i << ": " << request.ShortDebugString();
      if (!mine.empty()) ++rows_read;
    };
    const size_t kind = requests.Pick(20);
    if (kind < 5) {
      expect_same([](BigtableTester& c, const auto& r) { return c.Mutate(r); }, requests.Mutate());
    } else if (kind < 6) {
      expect_same([](BigtableTester& c, const auto& r) { return c.MutateRows(r); }, requests.MutateRows());
    } else if (kind < 8) {
      expect_same([](BigtableTester& c, const auto& r) { return c.CheckAndMutate(r); }, requests.CheckAndMutate());
    } else if (kind < 9) {
      const bt::ReadModifyWriteRowRequest request = requests.ReadModifyWrite();
      expect_same([](BigtableTester& c, const auto& r) { return c.ReadModifyWrite(r); }, request);
      bt::MutateRowRequest erase;
      erase.set_table_name(request.table_name());
      erase.set_row_key(request.row_key());
      erase.add_mutations()->mutable_delete_from_family()->set_family_name("counters");
      expect_same([](BigtableTester& c, const auto& r) { return c.Mutate(r); }, erase);
    } else {
      expect_same([](BigtableTester& c, const auto& r) { return c.Read(r); }, requests.Read());
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(rows_read, kRequests / 4);
}

}  // namespace
}  // namespace percolator
