// SPDX-License-Identifier: Apache-2.0

// The rows of a request, their division into messages, and that the store's part of a filter agrees with the filter.

#include <google/protobuf/text_format.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/server/bigtable/read.h"
#include "src/store/bigtable/row_parser.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

std::string Ranges(const std::string& text) {
  bt::RowSet rows;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &rows)) << text;
  const absl::StatusOr<std::vector<RowRange>> ranges = RangesOf(rows);
  if (!ranges.ok()) return std::string(absl::StatusCodeToString(ranges.status().code()));
  std::string out;
  for (const RowRange& range : *ranges) {
    out += StrCat(out.empty() ? "" : " ", range.start, "-", range.limit.value_or("inf"));
  }
  for (char& c : out) c = c == '\0' ? '+' : c;
  return out;
}

TEST(RowSetTest, RangesAreSortedAndDisjoint) {
  EXPECT_EQ(Ranges(""), "-inf");
  EXPECT_EQ(Ranges("row_keys: 'b' row_keys: 'a' row_keys: 'b'"), "a-a+ b-b+");
  EXPECT_EQ(Ranges("row_ranges { }"), "-inf");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'a' end_key_open: 'c' }"), "a-c");
  EXPECT_EQ(Ranges("row_ranges { start_key_open: 'a' end_key_closed: 'c' }"), "a+-c+");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'm' } row_keys: 'b' row_ranges { end_key_open: 'c' }"), "-c m-inf");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'a' end_key_open: 'e' } "
                   "row_ranges { start_key_closed: 'c' end_key_open: 'd' } row_keys: 'dd' row_keys: 'x'"),
            "a-e x-x+");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'b' end_key_open: 'd' } "
                   "row_ranges { start_key_closed: 'a' end_key_closed: 'c' }"),
            "a-d");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'a' end_key_open: 'a' }"), "");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: '' end_key_open: '' }"), "-inf");
  EXPECT_EQ(Ranges("row_ranges { start_key_closed: 'b' end_key_open: 'a' }"), "INVALID_ARGUMENT");
  EXPECT_EQ(Ranges("row_keys: ''"), "INVALID_ARGUMENT");
  EXPECT_EQ(Ranges(StrCat("row_keys: '", std::string(4097, 'k'), "'")), "INVALID_ARGUMENT");
  EXPECT_EQ(Ranges(StrCat("row_ranges { end_key_open: '", std::string(4097, 'k'), "' }")), "INVALID_ARGUMENT");
}

// A chunk as text: its parts of key/family/qualifier@timestamp=value, ">N" for the size of a split value, "!" at the
// end of a row.
std::string Text(const bt::ReadRowsResponse::CellChunk& chunk) {
  std::string text = chunk.row_key();
  if (chunk.has_family_name()) text += "/" + chunk.family_name().value();
  if (chunk.has_qualifier()) text += "/" + chunk.qualifier().value();
  text += StrCat("@", chunk.timestamp_micros());
  for (const std::string& label : chunk.labels()) text += "#" + label;
  text += chunk.value().size() > 9 ? StrCat("=", chunk.value().size()) : "=" + chunk.value();
  if (chunk.value_size() > 0) text += StrCat(">", chunk.value_size());
  return text + (chunk.commit_row() ? "!" : "");
}

std::vector<std::string> Text(const std::vector<bt::ReadRowsResponse>& messages) {
  std::vector<std::string> out;
  for (const bt::ReadRowsResponse& message : messages) {
    std::string text;
    for (const auto& chunk : message.chunks()) text += (text.empty() ? "" : " ") + Text(chunk);
    out.push_back(text);
  }
  return out;
}

TEST(RowChunkerTest, UnchangedNamesAreNotRepeated) {
  RowChunker chunker;
  chunker.Add("r1", {{"f", "a", 2, "v", {}}, {"f", "a", 1, "", "l"}, {"f", "b", 1, "w", {}}, {"g", "b", 1, "x", {}}});
  chunker.Add("r2", {{"g", "b", 1, "y", {}}});
  EXPECT_EQ(Text(chunker.Take()), (std::vector<std::string>{"r1/f/a@2=v @1#l= /b@1=w /g/b@1=x! r2/g/b@1=y!"}));
  EXPECT_TRUE(chunker.Take().empty());
}

TEST(RowChunkerTest, ALargeValueIsSplit) {
  const std::string large(RowChunker::kPieceBytes * 2 + 100, 'x');
  const std::string exact(RowChunker::kPieceBytes, 'y');
  RowChunker chunker;
  chunker.Add("r", {{"f", "a", 1, large, {}}, {"f", "a", 0, exact, {}}});
  const std::vector<bt::ReadRowsResponse> messages = chunker.Take();
  EXPECT_EQ(Text(messages),
            (std::vector<std::string>{"r/f/a@1=1048576>2097252 @0=1048576>2097252 @0=100 @0=1048576!"}));
}

TEST(RowChunkerTest, MessagesConsistOfWholeRows) {
  const std::string value(100 << 10, 'x');
  RowChunker chunker;
  for (int i = 0; i < 50; ++i) chunker.Add(StrCat("row", i), {{"f", "a", 1, value, {}}});
  const std::vector<bt::ReadRowsResponse> messages = chunker.Take();
  EXPECT_EQ(messages.size(), 5u);
  for (const bt::ReadRowsResponse& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), RowChunker::kMessageBytes);
    EXPECT_TRUE(message.chunks(0).row_key().starts_with("row"));
    EXPECT_TRUE(message.chunks(message.chunks_size() - 1).commit_row());
  }
  // A row larger than a message has a message of its own.
  for (int i = 0; i < 3; ++i) chunker.Add("small", {{"f", "a", 1, "", {}}});
  chunker.Add("z", BigtableCells(20, {"f", "a", 1, value, {}}));
  chunker.Add("zz", {{"f", "a", 1, "", {}}});
  EXPECT_EQ(chunker.Take().size(), 3u);
}

// --- The store's part of a filter

class PlanTest : public ::testing::TestWithParam<bool> {
 protected:
  PlanTest() : tables_(store_.get()) {
    v1::BigtableSchema schema;
    for (const std::string& family : families_) (*schema.mutable_families())[family];
    const auto table = tables_.Create("t", schema);
    EXPECT_THAT(table, IsOk());
    table_ = *table;
    EXPECT_EQ(table_->native(), GetParam());
  }

  size_t Pick(size_t of) { return random_() % of; }
  std::string Qualifier() { return std::string(Pick(3), static_cast<char>('a' + Pick(2))); }
  std::string PickFamily() { return Pick(10) == 0 ? "other" : families_[Pick(families_.size())]; }

  void WriteRow() {
    RowMutation mutation{"t", "row", {}, {}};
    for (size_t i = Pick(20); i > 0; --i) {
      const BigtableTable::Place place = table_->PlaceOf(families_[Pick(families_.size())], Qualifier());
      mutation.mutations.push_back(Mutation::Set(place.family, place.column, Timestamp(1 + Pick(4)), StrCat("v", i)));
    }
    ASSERT_THAT(store_->Mutate({mutation}).front(), IsOk());
  }

  bt::RowFilter Columns() {
    bt::RowFilter filter;
    switch (Pick(4)) {
      case 0:
        filter.set_family_name_regex_filter(PickFamily());
        break;
      case 1:
        filter.mutable_column_range_filter()->set_family_name(PickFamily());
        break;
      default:
        filter.mutable_column_range_filter()->set_family_name(PickFamily());
        filter.mutable_column_range_filter()->set_start_qualifier_closed(Qualifier());
        filter.mutable_column_range_filter()->set_end_qualifier_closed(
            Pick(5) == 0 ? "b" : filter.column_range_filter().start_qualifier_closed());
    }
    return filter;
  }

  bt::RowFilter Branch() {
    std::vector<bt::RowFilter> links;
    if (Pick(4) != 0) links.push_back(Columns());
    if (Pick(2) == 0) {
      auto* range = links.emplace_back().mutable_timestamp_range_filter();
      range->set_start_timestamp_micros(static_cast<int64_t>(Pick(4) * 1000));
      range->set_end_timestamp_micros(static_cast<int64_t>(Pick(6) * 1000));
    }
    if (Pick(2) == 0) links.emplace_back().set_cells_per_column_limit_filter(static_cast<int>(Pick(3)));
    if (Pick(4) == 0) links.emplace_back().set_cells_per_row_offset_filter(static_cast<int>(Pick(4)));
    if (Pick(4) == 0) links.emplace_back().set_strip_value_transformer(true);
    if (links.empty()) links.emplace_back().set_pass_all_filter(true);
    if (links.size() == 1) return links.front();
    bt::RowFilter chain;
    for (const bt::RowFilter& link : links) *chain.mutable_chain()->add_filters() = link;
    return chain;
  }

  bt::RowFilter Filter() {
    bt::RowFilter filter;
    if (Pick(3) == 0) return Branch();
    for (size_t i = 2 + Pick(3); i > 0; --i) *filter.mutable_interleave()->add_filters() = Branch();
    if (Pick(2) == 0) return filter;
    bt::RowFilter chain;
    *chain.mutable_chain()->add_filters() = filter;
    chain.mutable_chain()->add_filters()->set_cells_per_row_offset_filter(static_cast<int>(Pick(3)));
    return chain;
  }

  // The row, read with these selectors and filtered.
  std::string Read(const std::vector<Selector>& selectors, const BigtableFilter& filter) {
    const absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "row", selectors}});
    EXPECT_THAT(rows, IsOk());
    std::string text;
    const absl::StatusOr<BigtableCells> cells = filter.Apply("row", table_->CellsOf(rows->front()));
    EXPECT_THAT(cells, IsOk());
    for (const BigtableCell& cell : *cells) {
      text += StrCat(cell.family, ":", cell.qualifier, "@", cell.timestamp_micros, "=", cell.value, " ");
    }
    return text;
  }

  const std::vector<std::string> families_ = GetParam() ? std::vector<std::string>{"data", "lock", "write", "notify"}
                                                        : std::vector<std::string>{"f", "fg", "g.a"};
  const std::unique_ptr<Store> store_ = NewMemoryStore();
  BigtableTables tables_;
  std::shared_ptr<const BigtableTable> table_;
  std::mt19937_64 random_{7};
};

TEST_P(PlanTest, TheStoresPartAgreesWithTheFilter) {
  std::vector<Selector> all;
  for (const Family family : table_->families()) all.push_back({.family = family});
  int less = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 10 == 0) WriteRow();
    const bt::RowFilter filter = Filter();
    const absl::StatusOr<ReadPlan> plan = PlanRead(*table_, filter);
    const absl::StatusOr<BigtableFilter> whole = BigtableFilter::Compile(filter);
    ASSERT_THAT(plan, IsOk()) << filter.ShortDebugString();
    ASSERT_THAT(whole, IsOk());
    ASSERT_EQ(Read(plan->selectors, plan->rest), Read(all, *whole)) << filter.ShortDebugString();
    if (plan->rest.passes_all()) ++less;
  }
  EXPECT_GT(less, 100) << "filters that the store evaluates completely";
}

INSTANTIATE_TEST_SUITE_P(Tables, PlanTest, ::testing::Bool(),
                         [](const auto& param_info) { return param_info.param ? "Native" : "Foreign"; });

// --- The server's progress

class RowReaderTest : public ::testing::Test {
 protected:
  RowReaderTest() : store_(NewMemoryStore({.max_scan_work = 10})), tables_(store_.get()) {
    v1::BigtableSchema schema;
    for (const char* family : {"data", "lock", "write", "notify"}) (*schema.mutable_families())[family];
    EXPECT_THAT(tables_.Create("t", schema), IsOk());
    request_.set_table_name("projects/p/instances/i/tables/t");
    for (int i = 0; i < 500; ++i) WriteRow(i % 50 == 0);
  }

  // A row with a random key, perhaps next to another, which matches or not.
  void WriteRow(bool matches) {
    static constexpr std::string_view kBytes(
        "\0\x01"
        "a\xfe\xff",
        5);
    std::string key(1, kBytes[1 + random_() % 4]);
    for (size_t length = random_() % 5; key.size() < length;) key.push_back(kBytes[random_() % 5]);
    const Family family = matches ? Family::kLock : Family::kData;
    ASSERT_THAT(store_->Mutate({{"t", key, {}, {Mutation::Set(family, "c", Timestamp(1), "v")}}}).front(), IsOk());
    if (matches) matching_.insert(key);
  }

  // Reads everything, and checks after every message that exactly the rows that the client counts as done have arrived.
  // Returns the number of messages without a row.
  int ReadAll() {
    const absl::StatusOr<std::unique_ptr<RowReader>> reader = RowReader::Open(store_.get(), &tables_, request_);
    EXPECT_THAT(reader, IsOk());
    RowParser parser;
    std::set<std::string> came;
    int without = 0;
    while (!(*reader)->AtEnd()) {
      absl::StatusOr<std::vector<bt::ReadRowsResponse>> messages = (*reader)->Next();
      EXPECT_THAT(messages, IsOk());
      for (bt::ReadRowsResponse& message : *messages) {
        if (message.chunks().empty()) ++without;
        std::vector<WireRow> rows;
        EXPECT_THAT(parser.Consume(&message, &rows), IsOk());
        for (const WireRow& row : rows) came.insert(row.key);
        EXPECT_EQ(came, std::set<std::string>(matching_.begin(), matching_.upper_bound(parser.done())));
      }
    }
    EXPECT_EQ(came, matching_);
    return without;
  }

  const std::unique_ptr<Store> store_;
  BigtableTables tables_;
  bt::ReadRowsRequest request_;
  std::set<std::string> matching_;
  std::mt19937_64 random_{11};
};

TEST_F(RowReaderTest, ProgressIsReportedWhereTheStoreFindsNothing) {
  request_.mutable_filter()->mutable_column_range_filter()->set_family_name("lock");
  EXPECT_GT(ReadAll(), 5);
}

// The rest of the rows that were read waits for the next page.
TEST_F(RowReaderTest, APageEndsWhenItsFilterHasWorkedMuch) {
  for (const char* key : {"x1", "x2", "x3"}) {
    const Mutation set = Mutation::Set(Family::kData, "c", Timestamp(1), std::string(1 << 20, 'b'));
    ASSERT_THAT(store_->Mutate({{"t", key, {}, {set}}}).front(), IsOk());
  }
  request_.mutable_rows()->add_row_ranges()->set_start_key_closed("x1");
  request_.mutable_rows()->mutable_row_ranges(0)->set_end_key_open("x9");
  request_.mutable_filter()->set_value_regex_filter("(?s).*a.{99}");
  const auto reader = RowReader::Open(store_.get(), &tables_, request_);
  ASSERT_THAT(reader, IsOk());
  for (const char* key : {"x1", "x2"}) {
    const auto messages = (*reader)->Next();
    ASSERT_THAT(messages, IsOk());
    ASSERT_EQ(messages->size(), 1u);
    EXPECT_EQ(messages->front().last_scanned_row_key(), key);
    EXPECT_FALSE((*reader)->AtEnd());
  }
  EXPECT_THAT((*reader)->Next([] { return true; }), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(RowReaderTest, ProgressIsReportedWhereTheFilterLeavesNothing) {
  request_.mutable_filter()->set_family_name_regex_filter("lo.k");
  EXPECT_GT(ReadAll(), 5);
}

}  // namespace
}  // namespace percolator
