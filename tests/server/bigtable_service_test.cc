// SPDX-License-Identifier: Apache-2.0

// The server of Bigtable's API, called over loopback.

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/server/bigtable/mutate.h"
#include "src/server/bigtable/tables.h"
#include "src/wire/channel.h"
#include "tests/server/bigtable_server.h"
#include "tests/server/bigtable_tester.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace admin = google::bigtable::admin::v2;
namespace bt = google::bigtable::v2;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AdminStub = admin::BigtableTableAdmin::Stub;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr std::chrono::seconds kPatience(120);

MATCHER_P(IsText, text, "") {
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return *arg == text;
}

std::string Set(const std::string& column, int ts, const std::string& value) {
  const size_t colon = column.find(':');
  return StrCat("{ set_cell { family_name: '", column.substr(0, colon), "' column_qualifier: '",
                column.substr(colon + 1), "' timestamp_micros: ", ts * 1000, " value: '", value, "' } } ");
}

class BigtableServiceTest : public ::testing::Test {
 protected:
  BigtableServiceTest() : server_(store_.get()), client_(server_.target()) {
    EXPECT_THAT(client_.CreateTable("t", {"f", "g"}), IsOk());
    EXPECT_THAT(client_.CreateTable("n", {"data", "lock", "write", "notify"}), IsOk());
  }

  absl::Status SetRow(const std::string& row, const std::vector<std::string>& sets) {
    std::string text = StrCat("row_key: '", row, "' ");
    for (const std::string& set : sets) text += "mutations " + set;
    return client_.Mutate(text);
  }

  const std::unique_ptr<Store> store_ = NewMemoryStore();
  BigtableServer server_;
  BigtableTester client_;
};

TEST_F(BigtableServiceTest, WrittenCellsAreRead) {
  ASSERT_THAT(SetRow("r2", {Set("g:b", 1, "x"), Set("f:a", 2, "y"), Set("f:a", 1, "z")}), IsOk());
  ASSERT_THAT(SetRow("r1", {Set("f:", 0, "")}), IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r1{f:@0=} r2{f:a@2000=y f:a@1000=z g:b@1000=x}"));
  EXPECT_THAT(client_.Read("rows_limit: 1"), IsText("r1{f:@0=}"));
  EXPECT_THAT(client_.Read("rows { row_keys: 'r2' row_keys: 'r0' } filter { cells_per_column_limit_filter: 1 }"),
              IsText("r2{f:a@2000=y g:b@1000=x}"));
  EXPECT_THAT(client_.Read("filter { family_name_regex_filter: 'g' } rows_limit: 1"), IsText("r2{g:b@1000=x}"));
  EXPECT_THAT(client_.Read("rows { row_ranges { start_key_open: 'r1' } }"),
              IsText("r2{f:a@2000=y f:a@1000=z g:b@1000=x}"));
}

TEST_F(BigtableServiceTest, MutationsAreAppliedInTheirOrder) {
  ASSERT_THAT(SetRow("r", {Set("f:a", 1, "1"), Set("f:b", 1, "1"), Set("g:a", 1, "1")}), IsOk());
  ASSERT_THAT(client_.Mutate("row_key: 'r' mutations { delete_from_family { family_name: 'f' } } mutations " +
                             Set("f:a", 2, "2")),
              IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r{f:a@2000=2 g:a@1000=1}"));
  ASSERT_THAT(client_.Mutate("row_key: 'r' mutations " + Set("f:c", 3, "3") +
                             "mutations { delete_from_row { } } mutations " + Set("g:b", 4, "4")),
              IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r{g:b@4000=4}"));
  ASSERT_THAT(SetRow("r", {Set("g:b", 5, "5"), Set("g:b", 6, "6")}), IsOk());
  ASSERT_THAT(client_.Mutate("row_key: 'r' mutations { delete_from_column { family_name: 'g' column_qualifier: 'b' "
                             "time_range { start_timestamp_micros: 5000 end_timestamp_micros: 6000 } } }"),
              IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r{g:b@6000=6 g:b@4000=4}"));
}

// Tables made by Percolator have a schema; those made by a client of Bigtable with the same families have none.
TEST(BigtableTablesTest, TablesOfTransactionsAreReadOnlyUnlessTheServerAllowsIt) {
  const std::unique_ptr<Store> store = NewMemoryStore();
  ASSERT_THAT(store->CreateTable({"transactional", "\x01"}), IsOk());
  ASSERT_THAT(store->CreateTable({"native", ""}), IsOk());
  const std::string tables = "projects/p/instances/i/tables/";
  for (const bool all : {false, true}) {
    BigtableTables seen(store.get(), all);
    BigtableMutator mutator(store.get(), &seen);
    google::bigtable::v2::MutateRowRequest request;
    request.set_table_name(tables + "transactional");
    request.set_row_key("r");
    auto* const set = request.add_mutations()->mutable_set_cell();
    set->set_family_name("data");
    set->set_timestamp_micros(1000);
    const absl::StatusCode expected = all ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied;
    EXPECT_EQ(mutator.MutateRow(request).code(), expected);
    EXPECT_EQ(seen.FindToWrite(tables + "transactional").status().code(), expected);
    EXPECT_THAT(seen.Find(tables + "transactional"), IsOk());
    EXPECT_THAT(seen.FindToWrite(tables + "native"), IsOk());
    EXPECT_EQ(seen.Drop(tables + "transactional").code(), expected);
  }
}

TEST_F(BigtableServiceTest, TheServerSetsTimestamps) {
  const auto micros = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  };
  const int64_t before = micros();
  ASSERT_THAT(client_.Mutate("row_key: 'r' mutations { set_cell { family_name: 'f' timestamp_micros: -1 } }"), IsOk());
  const absl::StatusOr<std::string> read = client_.Read("");
  ASSERT_THAT(read, IsOk());
  const int64_t ts = std::stoll(read->substr(read->find('@') + 1));
  EXPECT_EQ(ts % 1000, 0);
  EXPECT_GE(ts, before - 1000);
  EXPECT_LE(ts, micros());
}

TEST_F(BigtableServiceTest, EachEntryHasItsStatus) {
  bt::MutateRowsRequest request;
  request.set_table_name(TestTable("t"));
  for (const char* family : {"f", "x", "g"}) {
    auto* entry = request.add_entries();
    entry->set_row_key("r");
    for (const char* part : {"f", family}) {
      auto* set = entry->add_mutations()->mutable_set_cell();
      set->set_family_name(part);
      set->set_column_qualifier(family);
    }
  }
  request.add_entries()->set_row_key("empty");
  const auto statuses = client_.MutateRows(request);
  ASSERT_THAT(statuses, IsOk());
  EXPECT_THAT((*statuses)[0], IsOk());
  EXPECT_THAT((*statuses)[1], StatusIs(kNotFound));
  EXPECT_THAT((*statuses)[2], IsOk());
  EXPECT_THAT((*statuses)[3], StatusIs(kInvalid));
  EXPECT_THAT(client_.Read(""), IsText("r{f:f@0= f:g@0= g:g@0=}")) << "the second entry did nothing, not even half";
}

TEST_F(BigtableServiceTest, ChecksAndMutates) {
  ASSERT_THAT(SetRow("r", {Set("f:a", 1, "1")}), IsOk());
  const std::string outcomes = "true_mutations " + Set("g:t", 1, "") + "false_mutations " + Set("g:f", 1, "");
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'r' predicate_filter { value_regex_filter: '2' } " + outcomes),
              IsText(false));
  EXPECT_THAT(client_.Read(""), IsText("r{f:a@1000=1 g:f@1000=}"));
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'r' predicate_filter { value_regex_filter: '1' } " + outcomes),
              IsText(true));
  EXPECT_THAT(client_.Read(""), IsText("r{f:a@1000=1 g:f@1000= g:t@1000=}"));
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'new' " + outcomes), IsText(false)) << "no cell at all";
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'new' " + outcomes), IsText(true));
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'r' true_mutations { delete_from_row { } }"), IsText(true));
  EXPECT_THAT(client_.Read(""), IsText("new{g:f@1000= g:t@1000=}"));
}

TEST_F(BigtableServiceTest, ReadsModifiesAndWrites) {
  const std::string append = "rules { family_name: 'f' column_qualifier: 'a' append_value: 'x' } ";
  const std::string increment = "rules { family_name: 'g' column_qualifier: 'n' increment_amount: -2 } ";
  EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r' " + append + increment + append),
              IsText("r f:a@0=xx g:n@0=\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe"));
  EXPECT_THAT(
      client_.ReadModifyWrite("row_key: 'r' rules { family_name: 'g' column_qualifier: 'n' increment_amount: 3 }"),
      IsText("r g:n@0=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01"));
  EXPECT_THAT(
      client_.ReadModifyWrite("row_key: 'r' rules { family_name: 'f' column_qualifier: 'a' increment_amount: 3 }"),
      StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r' " + append + "rules { family_name: 'x' increment_amount: 1 }"),
              StatusIs(kNotFound));
  EXPECT_THAT(client_.Read("filter { value_regex_filter: 'xx' }"), IsOk()) << "the failed ones did nothing";
}

TEST_F(BigtableServiceTest, IncrementsAreNotLost) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kEach; ++j) {
        EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r' rules { family_name: 'f' increment_amount: 1 }"), IsOk());
        // Other threads change the same row meanwhile.
        EXPECT_THAT(SetRow("r", {Set(StrCat("g:", i), j, "")}), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r' rules { family_name: 'f' increment_amount: 0 }"),
              IsText("r f:@0=\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x90"));
}

TEST_F(BigtableServiceTest, LargeValuesAndManyRowsAreRead) {
  bt::MutateRowRequest request;
  request.set_table_name(TestTable("t"));
  auto* set = request.add_mutations()->mutable_set_cell();
  set->set_family_name("f");
  std::string expected;
  for (int i = 0; i < 6; ++i) {
    request.set_row_key(StrCat("r", i));
    set->set_value(std::string((5u << 20) / static_cast<unsigned>(i * i + 1) + 7, static_cast<char>('a' + i)));
    ASSERT_THAT(client_.Mutate(request), IsOk());
    expected += StrCat(i == 0 ? "" : " ", "r", i, "{f:@0=", set->value(), "}");
  }
  const absl::StatusOr<std::string> read = client_.Read("");
  ASSERT_THAT(read, IsOk());
  EXPECT_TRUE(*read == expected) << read->size() << " bytes instead of " << expected.size();
}

TEST_F(BigtableServiceTest, AClientThatDisconnectsEndsItsRead) {
  bt::MutateRowRequest request;
  request.set_table_name(TestTable("t"));
  auto* set = request.add_mutations()->mutable_set_cell();
  set->set_family_name("f");
  set->set_value(std::string(1 << 20, 'x'));
  for (int i = 0; i < 30; ++i) {
    request.set_row_key(StrCat("r", i));
    ASSERT_THAT(client_.Mutate(request), IsOk());
  }
  bt::ReadRowsRequest read;
  read.set_table_name(TestTable("t"));
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto reader = client_.data().ReadRows(&context, read);
    bt::ReadRowsResponse response;
    EXPECT_TRUE(i % 2 == 0 || reader->Read(&response));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // Many clients that do not read: they hold no thread, so others are served.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<bt::ReadRowsResponse>>> readers;
  for (int i = 0; i < 20; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(client_.data().ReadRows(contexts.back().get(), read));
  }
  EXPECT_THAT(client_.Read("rows { row_keys: 'r1' } filter { strip_value_transformer: true }"), IsText("r1{f:@0=}"));
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) (void)reader->Finish();
}

// --- Tables of Percolator

TEST_F(BigtableServiceTest, PercolatorsTablesAreReadUnchanged) {
  RowMutation mutation{"n", "r", {}, {}};
  mutation.mutations = {
      Mutation::Set(Family::kData, "c", Timestamp(7), "v"), Mutation::Set(Family::kLock, "c", Timestamp(7), "l"),
      Mutation::Set(Family::kWrite, "c", Timestamp(6), "w"), Mutation::Set(Family::kNotify, "c", Timestamp(5), "")};
  ASSERT_THAT(store_->Mutate({mutation}).front(), IsOk());
  const std::string table = StrCat("table_name: '", TestTable("n"), "' ");
  EXPECT_THAT(client_.Read(table), IsText("r{data:c@7000=v lock:c@7000=l notify:c@5000= write:c@6000=w}"));
  EXPECT_THAT(client_.Read(table + "rows_limit: 1 filter { family_name_regex_filter: 'write' }"),
              IsText("r{write:c@6000=w}"));
  ASSERT_THAT(client_.Mutate(table + "row_key: 'r' mutations " + Set("data:c", 8, "v8") +
                             "mutations { delete_from_column { family_name: 'lock' column_qualifier: 'c' } }"),
              IsOk());
  const absl::StatusOr<std::vector<Row>> rows = store_->Read({{"n", "r", {{Family::kData}, {Family::kLock}}}});
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->front().cells,
              ElementsAre(Cell{Family::kData, "c", Timestamp(8), "v8"}, Cell{Family::kData, "c", Timestamp(7), "v"}));
}

std::string Column(const std::string& family, const std::string& more = "") {
  const std::string column = StrCat("column_range_filter { family_name: '", family,
                                    "' start_qualifier_closed: 'c' end_qualifier_closed: 'c' }");
  return more.empty() ? column : StrCat("chain { filters { ", column, " } ", more, " }");
}

TEST_F(BigtableServiceTest, PredicatesOfPercolatorAreDecidedByTheStore) {
  const std::string request = StrCat("table_name: '", TestTable("n"), "' row_key: 'r' ");
  const std::string latest = "filters { cells_per_column_limit_filter: 1 } ";
  const std::string from_5 = "filters { timestamp_range_filter { start_timestamp_micros: 5000 } } ";
  const std::string prewrite = StrCat(request, "predicate_filter { interleave { filters { ", Column("lock"),
                                      " } filters { ", Column("write", from_5), " } } } false_mutations ",
                                      Set("lock:c", 5, "l"), "false_mutations ", Set("data:c", 5, "d"));
  EXPECT_THAT(client_.CheckAndMutate(prewrite), IsText(false)) << "there is no obstacle";
  EXPECT_THAT(client_.CheckAndMutate(prewrite), IsText(true)) << "the lock is the obstacle";
  const std::string all =
      StrCat("predicate_filter { chain { filters { interleave { filters { ", Column("lock", latest), " } filters { ",
             Column("data", from_5 + latest), " } } } filters { cells_per_row_offset_filter: 1 } } } ");
  const std::string commit =
      StrCat(request, all, "true_mutations ", Set("write:c", 6, "w"),
             "true_mutations { delete_from_column { family_name: 'lock' column_qualifier: 'c' } }");
  EXPECT_THAT(client_.CheckAndMutate(commit), IsText(true));
  EXPECT_THAT(client_.CheckAndMutate(commit), IsText(false)) << "the lock is gone";
  EXPECT_THAT(client_.CheckAndMutate(prewrite), IsText(true)) << "a newer write is the obstacle";
  EXPECT_THAT(client_.Read(StrCat("table_name: '", TestTable("n"), "'")), IsText("r{data:c@5000=d write:c@6000=w}"));
  const std::string one = StrCat(request, "predicate_filter { ", Column("write", latest), " } ");
  EXPECT_THAT(client_.CheckAndMutate(StrCat(one, "true_mutations ", Set("notify:c", 1, ""))), IsText(true));

  for (const std::string& other : {
           StrCat(request, all, "false_mutations ", Set("data:c", 9, "")),
           StrCat(one, "true_mutations ", Set("data:c", 9, ""), "false_mutations ", Set("data:c", 9, "")),
           StrCat(request, "true_mutations ", Set("data:c", 9, "")),
           StrCat(request, "predicate_filter { value_regex_filter: 'd' } true_mutations ", Set("data:c", 9, "")),
           StrCat(request, "predicate_filter { column_range_filter { family_name: 'data' } } true_mutations ",
                  Set("data:c", 9, "")),
           StrCat(request, "predicate_filter { ", Column("write"), " } true_mutations { delete_from_row { } }"),
       }) {
    EXPECT_THAT(client_.CheckAndMutate(other), StatusIs(kUnimplemented)) << other;
  }
  EXPECT_THAT(client_.Mutate(request + "mutations { delete_from_family { family_name: 'data' } }"),
              StatusIs(kUnimplemented));
  EXPECT_THAT(client_.ReadModifyWrite(request + "rules { family_name: 'data' append_value: 'x' }"),
              StatusIs(kUnimplemented));
  EXPECT_THAT(client_.Mutate(request + "mutations { set_cell { family_name: 'data' timestamp_micros: -1 } }"),
              StatusIs(kInvalid));
  EXPECT_THAT(client_.ModifyFamilies("n", "modifications { id: 'f' create { } }"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(BigtableServiceTest, APredicateMayNameColumnsInAPattern) {
  ASSERT_THAT(store_->Mutate({{"n", "r", {}, {Mutation::Set(Family::kLock, "a.b", Timestamp(5), "")}}}).front(),
              IsOk());
  ASSERT_THAT(store_->Mutate({{"n", "r", {}, {Mutation::Set(Family::kLock, "c", Timestamp(5), "")}}}).front(), IsOk());
  // Whether true_mutations, which have no effect, would be applied.
  const auto matches = [&](const std::string& pattern, const std::string& families, int offset = -1) {
    const std::string names = StrCat("filters { column_qualifier_regex_filter: '", pattern, "' } ");
    std::string filter = StrCat("chain { ", names, "filters { ", families, " } }");
    if (offset >= 0) {
      filter = StrCat("chain { filters { ", filter, " } filters { cells_per_row_offset_filter: ", offset, " } }");
    }
    return client_.CheckAndMutate(
        StrCat("table_name: '", TestTable("n"), "' row_key: 'r' predicate_filter { ", filter,
               " } true_mutations { delete_from_column { family_name: 'data' column_qualifier: 'x' } }"));
  };
  const std::string lock = "column_range_filter { family_name: 'lock' }";
  const std::string write = "column_range_filter { family_name: 'write' }";
  const std::string from_6 = "filters { timestamp_range_filter { start_timestamp_micros: 6000 } }";
  EXPECT_THAT(matches("x|a\\\\.b", lock), IsText(true));
  EXPECT_THAT(matches("x|aXb|a\\\\.|b|", lock), IsText(false));
  EXPECT_THAT(matches("a\\\\.b", write), IsText(false));
  EXPECT_THAT(matches("a\\\\.b", StrCat("interleave { filters { ", lock, " } filters { ", write, " } }")),
              IsText(true));
  EXPECT_THAT(matches("a\\\\.b", StrCat("chain { filters { ", lock, " } ", from_6, " }")), IsText(false));

  const std::string one_lock = StrCat("chain { filters { ", lock, " } filters { cells_per_column_limit_filter: 1 } }");
  EXPECT_THAT(matches("c|a\\\\.b", one_lock, 1), IsText(true));
  EXPECT_THAT(matches("c|d", one_lock, 1), IsText(false));
  EXPECT_THAT(matches("c|d", one_lock, 0), StatusIs(kUnimplemented)) << "one of the two";
  EXPECT_THAT(matches("c|c", one_lock, 1), StatusIs(kUnimplemented)) << "it is one column, and never two cells";
  EXPECT_THAT(matches("c|d", lock, 1), StatusIs(kUnimplemented)) << "two versions of one, or two";
  for (const char* pattern : {"a.b", "(c)", "c*", "[c]", "^c", "\\\\w", "\\\\x63", "\\377"}) {
    EXPECT_THAT(matches(pattern, lock), StatusIs(kUnimplemented)) << pattern;
  }
}

TEST_F(BigtableServiceTest, TheStoreRefusesALockBelowTheSafePoint) {
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  EXPECT_THAT(
      client_.Mutate(StrCat("table_name: '", TestTable("n"), "' row_key: 'r' mutations ", Set("lock:c", 9, ""))),
      StatusIs(absl::StatusCode::kOutOfRange));
}

// --- Administration

TEST_F(BigtableServiceTest, FamiliesAreMadeChangedAndDropped) {
  ASSERT_THAT(SetRow("r", {Set("f:a", 1, ""), Set("g:a", 1, "")}), IsOk());
  const auto table = client_.ModifyFamilies("t",
                                            "modifications { id: 'new' create { gc_rule { max_num_versions: 3 } } } "
                                            "modifications { id: 'g' update { gc_rule { max_age { seconds: 9 } } } }");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->column_families_size(), 3);
  EXPECT_EQ(table->column_families().at("new").gc_rule().max_num_versions(), 3);
  EXPECT_EQ(table->column_families().at("g").gc_rule().max_age().seconds(), 9);
  EXPECT_EQ(table->granularity(), admin::Table::MILLIS);
  ASSERT_THAT(client_.ModifyFamilies("t", "modifications { id: 'f' drop: true }"), IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r{g:a@1000=}"));
  EXPECT_THAT(SetRow("r", {Set("f:a", 1, "")}), StatusIs(kNotFound));
  ASSERT_THAT(client_.ModifyFamilies("t", "modifications { id: 'f' create { } }"), IsOk());
  EXPECT_THAT(client_.Read(""), IsText("r{g:a@1000=}")) << "a new family of the same name is empty";

  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'f' create { } }"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'x' drop: true }"), StatusIs(kNotFound));
  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'x' update { } }"), StatusIs(kNotFound));
  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'a:b' create { } }"), StatusIs(kInvalid));
  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'a' }"), StatusIs(kInvalid));
  EXPECT_THAT(client_.ModifyFamilies("t", ""), StatusIs(kInvalid));
  EXPECT_THAT(client_.ModifyFamilies("t", "modifications { id: 'y' create { } } modifications { id: 'x' drop: true }"),
              StatusIs(kNotFound));
  EXPECT_THAT(SetRow("r", {Set("y:a", 1, "")}), StatusIs(kNotFound)) << "all changes or none";
}

// Rules without content are two bytes on the wire, and take about fifty in memory.
TEST_F(BigtableServiceTest, APageOfTablesIsLimitedInMemory) {
  constexpr int kTables = 20;
  admin::CreateTableRequest create;
  create.set_parent(kTestInstance);
  auto& rules = *(*create.mutable_table()->mutable_column_families())["f"].mutable_gc_rule()->mutable_union_();
  for (int i = 0; i < 2000; ++i) rules.add_rules();
  const size_t each = create.table().SpaceUsedLong();
  for (int i = 0; i < kTables; ++i) {
    create.set_table_id(StrCat("x", i));
    admin::Table table;
    ASSERT_THAT(Call(client_.admin(), &AdminStub::CreateTable, kPatience, create, &table), IsOk());
  }
  admin::ListTablesRequest list;
  list.set_parent(kTestInstance);
  list.set_view(admin::Table::FULL);
  std::set<std::string> names;
  int pages = 0;
  do {
    admin::ListTablesResponse page;
    ASSERT_THAT(Call(client_.admin(), &AdminStub::ListTables, kPatience, list, &page), IsOk());
    EXPECT_LT(page.SpaceUsedLong(), (size_t{1} << 20) + 3 * each);
    for (const admin::Table& table : page.tables()) names.insert(table.name());
    list.set_page_token(page.next_page_token());
    ++pages;
  } while (!list.page_token().empty());
  EXPECT_EQ(names.size(), kTables + 2U);
  EXPECT_GT(pages, 1);
}

TEST_F(BigtableServiceTest, TheFamiliesOfAllTablesAreLimited) {
  admin::ModifyColumnFamiliesRequest modify;
  for (int i = 0; i < 800; ++i) {
    auto* const change = modify.add_modifications();
    change->set_id(StrCat(std::string(60, 'f'), i));
    change->mutable_create();
  }
  absl::Status status;
  int modified = 0;
  for (int i = 0; status.ok() && i < 100; ++i, ++modified) {
    admin::CreateTableRequest create;
    create.set_parent(kTestInstance);
    create.set_table_id(StrCat("x", i));
    admin::Table table;
    ASSERT_THAT(Call(client_.admin(), &AdminStub::CreateTable, kPatience, create, &table), IsOk());
    modify.set_name(TestTable(StrCat("x", i)));
    status = Call(client_.admin(), &AdminStub::ModifyColumnFamilies, kPatience, modify, &table);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the families of all tables")));
  EXPECT_GT(modified, 60);
}

TEST_F(BigtableServiceTest, TablesAreListedAndDeleted) {
  admin::ListTablesRequest list;
  list.set_parent(kTestInstance);
  list.set_page_size(1);
  admin::ListTablesResponse page;
  ASSERT_THAT(Call(client_.admin(), &AdminStub::ListTables, kPatience, list, &page), IsOk());
  ASSERT_EQ(page.tables_size(), 1);
  EXPECT_EQ(page.tables(0).name(), TestTable("n"));
  list.set_page_token(page.next_page_token());
  list.set_view(admin::Table::SCHEMA_VIEW);
  ASSERT_THAT(Call(client_.admin(), &AdminStub::ListTables, kPatience, list, &page), IsOk());
  ASSERT_EQ(page.tables_size(), 1);
  EXPECT_EQ(page.tables(0).name(), TestTable("t"));
  EXPECT_EQ(page.tables(0).column_families_size(), 2);
  EXPECT_EQ(page.next_page_token(), "");

  admin::DeleteTableRequest erase;
  erase.set_name(TestTable("t"));
  google::protobuf::Empty empty;
  ASSERT_THAT(SetRow("r", {Set("f:a", 1, "")}), IsOk());
  ASSERT_THAT(Call(client_.admin(), &AdminStub::DeleteTable, kPatience, erase, &empty), IsOk());
  EXPECT_THAT(Call(client_.admin(), &AdminStub::DeleteTable, kPatience, erase, &empty), StatusIs(kNotFound));
  EXPECT_THAT(client_.Read(""), StatusIs(kNotFound));
  ASSERT_THAT(client_.CreateTable("t", {"h"}), IsOk());
  EXPECT_THAT(client_.CreateTable("t", {"h"}), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(client_.Read(""), IsText(""));
  EXPECT_THAT(SetRow("r", {Set("f:a", 1, "")}), StatusIs(kNotFound));

  admin::GetTableRequest get;
  get.set_name("projects/other/instances/another/tables/t");
  admin::Table table;
  ASSERT_THAT(Call(client_.admin(), &AdminStub::GetTable, kPatience, get, &table), IsOk());
  EXPECT_EQ(table.name(), get.name());
  EXPECT_TRUE(table.column_families().contains("h"));
}

TEST_F(BigtableServiceTest, RowsAreDropped) {
  for (const char* row : {"a1", "a2", "b1"}) ASSERT_THAT(SetRow(row, {Set("f:a", 1, ""), Set("g:a", 1, "")}), IsOk());
  ASSERT_THAT(client_.ModifyFamilies("t", "modifications { id: 'h' create { } }"), IsOk());
  admin::DropRowRangeRequest drop;
  drop.set_name(TestTable("t"));
  google::protobuf::Empty empty;
  EXPECT_THAT(Call(client_.admin(), &AdminStub::DropRowRange, kPatience, drop, &empty), StatusIs(kInvalid));
  drop.set_row_key_prefix("a");
  ASSERT_THAT(Call(client_.admin(), &AdminStub::DropRowRange, kPatience, drop, &empty), IsOk());
  EXPECT_THAT(client_.Read("filter { cells_per_row_limit_filter: 1 }"), IsText("b1{f:a@1000=}"));
  drop.set_delete_all_data_from_table(true);
  ASSERT_THAT(Call(client_.admin(), &AdminStub::DropRowRange, kPatience, drop, &empty), IsOk());
  EXPECT_THAT(client_.Read(""), IsText(""));
  EXPECT_THAT(SetRow("r", {Set("h:a", 1, "")}), IsOk()) << "the families are still there";
}

TEST_F(BigtableServiceTest, OtherMethodsOfTheServices) {
  EXPECT_THAT(client_.Sample("t"), IsOk());
  ASSERT_THAT(SetRow("r", {Set("f:a", 1, "")}), IsOk());
  const auto keys = client_.Sample("t");
  ASSERT_THAT(keys, IsOk());
  EXPECT_THAT(*keys, ElementsAre("r", ""));
  EXPECT_THAT(client_.Sample("x"), StatusIs(kNotFound));

  admin::GenerateConsistencyTokenRequest ask;
  ask.set_name(TestTable("t"));
  admin::GenerateConsistencyTokenResponse token;
  ASSERT_THAT(Call(client_.admin(), &AdminStub::GenerateConsistencyToken, kPatience, ask, &token), IsOk());
  admin::CheckConsistencyRequest check;
  check.set_name(TestTable("t"));
  check.set_consistency_token(token.consistency_token());
  admin::CheckConsistencyResponse consistent;
  ASSERT_THAT(Call(client_.admin(), &AdminStub::CheckConsistency, kPatience, check, &consistent), IsOk());
  EXPECT_TRUE(consistent.consistent());

  admin::GetInstanceRequest get;
  get.set_name(kTestInstance);
  admin::Instance instance;
  ASSERT_THAT(Call(client_.instance(), &admin::BigtableInstanceAdmin::Stub::GetInstance, kPatience, get, &instance),
              IsOk());
  EXPECT_EQ(instance.display_name(), "i");
  admin::ListClustersRequest list;
  list.set_parent(kTestInstance);
  admin::ListClustersResponse clusters;
  ASSERT_THAT(Call(client_.instance(), &admin::BigtableInstanceAdmin::Stub::ListClusters, kPatience, list, &clusters),
              IsOk());
  EXPECT_EQ(clusters.clusters_size(), 1);
  bt::PingAndWarmRequest ping;
  ping.set_name(kTestInstance);
  bt::PingAndWarmResponse pong;
  EXPECT_THAT(Call(client_.data(), &bt::Bigtable::Stub::PingAndWarm, kPatience, ping, &pong), IsOk());
}

// --- Errors

TEST_F(BigtableServiceTest, InvalidNamesAreRefused) {
  for (const char* name : {"", "t", "projects/p", "projects/p/instances/i", "projects/p/instances/i/tables/",
                           "projects//instances/i/tables/t", "projects/p/instances/i/tables/a.b",
                           "projects/p/instances/i/tables/t/x", "instances/i/projects/p/tables/t"}) {
    bt::ReadRowsRequest request;
    request.set_table_name(name);
    EXPECT_THAT(client_.Read(request), StatusIs(kInvalid)) << name;
  }
  EXPECT_THAT(client_.Read(StrCat("table_name: '", TestTable("x"), "'")), StatusIs(kNotFound));
  EXPECT_THAT(client_.CreateTable("a.b", {}), StatusIs(kInvalid));
  EXPECT_THAT(client_.CreateTable("", {}), StatusIs(kInvalid));
  EXPECT_THAT(client_.CreateTable("u", {"f g"}), StatusIs(kInvalid));
  EXPECT_THAT(client_.CreateTable("u", {""}), StatusIs(kInvalid));
  EXPECT_THAT(client_.CreateTable("u", {std::string(65, 'f')}), StatusIs(kInvalid));
}

TEST_F(BigtableServiceTest, InvalidRequestsChangeNothing) {
  const std::string good = "mutations " + Set("f:a", 1, "");
  for (const std::string& text : {
           good,  // no row key
           std::string("row_key: 'r'"),
           "row_key: 'r' mutations { } " + good,
           good + "row_key: 'r' mutations { set_cell { family_name: 'f' timestamp_micros: 1 } }",
           good + "row_key: 'r' mutations { set_cell { family_name: 'f' timestamp_micros: -2 } }",
           good + "row_key: 'r' mutations { set_cell { family_name: 'f' timestamp_micros: -1000 } }",
           good + "row_key: 'r' mutations { delete_from_column { family_name: 'f' time_range { "
                  "start_timestamp_micros: 2000 end_timestamp_micros: 2000 } } }",
           good + "row_key: 'r' mutations { delete_from_column { family_name: 'f' time_range { "
                  "end_timestamp_micros: 1 } } }",
           StrCat(good, "row_key: '", std::string(4097, 'k'), "'"),
           StrCat(good, "row_key: 'r' mutations ", Set("f:" + std::string(16 << 10, 'q'), 1, "")),
       }) {
    EXPECT_THAT(client_.Mutate(text), StatusIs(kInvalid)) << text.substr(0, 300);
  }
  for (const char* text :
       {"row_key: 'r' mutations { set_cell { } }", "row_key: 'r' mutations { delete_from_family { family_name: 'x' } }",
        "row_key: 'r' mutations { delete_from_column { family_name: 'x' } }"}) {
    EXPECT_THAT(client_.Mutate(text), StatusIs(kNotFound)) << text;
  }
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'r'"), StatusIs(kInvalid));
  EXPECT_THAT(client_.CheckAndMutate("row_key: 'r' predicate_filter { value_regex_filter: '(' } true_" + good),
              StatusIs(kInvalid));
  EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r'"), StatusIs(kInvalid));
  EXPECT_THAT(client_.ReadModifyWrite("row_key: 'r' rules { family_name: 'f' }"), StatusIs(kInvalid));
  EXPECT_THAT(client_.Read("rows_limit: -1"), StatusIs(kInvalid));
  EXPECT_THAT(client_.Read("rows { row_keys: '' }"), StatusIs(kInvalid));
  EXPECT_THAT(client_.Read("filter { value_regex_filter: '(' }"), StatusIs(kInvalid));
  EXPECT_THAT(client_.Read(""), IsText(""));
}

TEST_F(BigtableServiceTest, TooManyMutationsAreRefused) {
  bt::MutateRowRequest request;
  request.set_table_name(TestTable("t"));
  request.set_row_key("r");
  for (int i = 0; i <= 100'000; ++i) request.add_mutations()->mutable_set_cell()->set_family_name("f");
  EXPECT_THAT(client_.Mutate(request), StatusIs(kInvalid));
  request.mutable_mutations()->RemoveLast();
  EXPECT_THAT(client_.Mutate(request), IsOk());
  bt::MutateRowsRequest many;
  many.set_table_name(TestTable("t"));
  for (int i = 0; i < 2; ++i) {
    auto* entry = many.add_entries();
    entry->set_row_key("r");
    for (int j = 0; j < 50'001; ++j) entry->add_mutations()->mutable_set_cell()->set_family_name("f");
  }
  EXPECT_THAT(client_.MutateRows(many), StatusIs(kInvalid));
}

// --- Persistence

TEST(BigtableServiceRestartTest, TablesFamiliesAndCellsSurvive) {
  const TempDir dir;
  const auto open = [&] { return *OpenRocksStore(dir.path() + "/data", {.durability = Durability::kNoSync}); };
  const auto store_text = [](BigtableTester& client) { return client.Read(""); };
  {
    const std::unique_ptr<Store> store = open();
    const BigtableServer server(store.get());
    BigtableTester client(server.target());
    ASSERT_THAT(client.CreateTable("t", {"f"}), IsOk());
    ASSERT_THAT(client.ModifyFamilies("t", "modifications { id: 'g' create { gc_rule { max_num_versions: 2 } } }"),
                IsOk());
    ASSERT_THAT(client.Mutate("row_key: 'r' mutations " + Set("g:a", 1, "v")), IsOk());
  }
  {
    const std::unique_ptr<Store> store = open();
    const BigtableServer server(store.get());
    BigtableTester client(server.target());
    EXPECT_THAT(store_text(client), IsText("r{g:a@1000=v}"));
    const auto table = client.ModifyFamilies("t", "modifications { id: 'f' drop: true }");
    ASSERT_THAT(table, IsOk());
    EXPECT_EQ(table->column_families().at("g").gc_rule().max_num_versions(), 2);
  }
  const std::unique_ptr<Store> store = open();
  const BigtableServer server(store.get());
  BigtableTester client(server.target());
  EXPECT_THAT(client.Mutate("row_key: 'r' mutations " + Set("f:a", 1, "")), StatusIs(kNotFound));
  EXPECT_THAT(store_text(client), IsText("r{g:a@1000=v}"));
}

}  // namespace
}  // namespace percolator
