// SPDX-License-Identifier: Apache-2.0

// Row filters, one by one: a row, a filter in protobuf's text format, and the remaining cells.

#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/server/bigtable/filter.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

bt::RowFilter Parse(const std::string& text) {
  bt::RowFilter filter;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &filter)) << text;
  return filter;
}

std::string Text(const BigtableCells& cells) {
  std::string text;
  for (const BigtableCell& cell : cells) {
    text += StrCat(text.empty() ? "" : " ", cell.family, ":", cell.qualifier, "@", cell.timestamp_micros / 1000);
    if (cell.value != StrCat(cell.qualifier, cell.timestamp_micros / 1000)) text += StrCat("=", cell.value);
    if (!cell.label.empty()) text += StrCat("#", cell.label);
  }
  return text;
}

// Row "row", cells f:a@2 f:a@1 f:b@2 g:a@3 g:c@1; the value of q@t is "qt".
class Filtered {
 public:
  Filtered() {
    for (const auto& [family, qualifier, ts] :
         {std::tuple("f", "a", 2), {"f", "a", 1}, {"f", "b", 2}, {"g", "a", 3}, {"g", "c", 1}}) {
      values_.push_back(StrCat(qualifier, ts));
      cells_.push_back({family, qualifier, ts * 1000, {}, {}, cells_.size()});
    }
    for (size_t i = 0; i < cells_.size(); ++i) cells_[i].value = values_[i];
  }

  std::string By(const std::string& text) const {
    const bt::RowFilter filter = Parse(text);
    const absl::StatusOr<BigtableFilter> compiled = BigtableFilter::Compile(filter);
    return compiled.ok() ? Text(*compiled->Apply("row", cells_)) : std::string(compiled.status().ToString());
  }

 private:
  std::vector<std::string> values_;
  BigtableCells cells_;
};

struct Case {
  const char* filter;
  const char* left;
};

constexpr char kAll[] = "f:a@2 f:a@1 f:b@2 g:a@3 g:c@1";

const Case kCases[] = {
    {"", kAll},
    {"pass_all_filter: true", kAll},
    {"block_all_filter: true", ""},
    {"row_key_regex_filter: 'r.w'", kAll},
    {"row_key_regex_filter: 'ro'", ""},  // a partial match is not enough
    {"row_key_regex_filter: 'ro|row'", kAll},
    {"family_name_regex_filter: '[a-f]'", "f:a@2 f:a@1 f:b@2"},
    {"family_name_regex_filter: ''", ""},
    {"column_qualifier_regex_filter: 'a|c'", "f:a@2 f:a@1 g:a@3 g:c@1"},
    {"column_qualifier_regex_filter: '\\\\C'", kAll},
    {"value_regex_filter: '.2'", "f:a@2 f:b@2"},
    {"column_range_filter { family_name: 'f' }", "f:a@2 f:a@1 f:b@2"},
    {"column_range_filter { family_name: 'x' }", ""},
    {"column_range_filter { family_name: 'g' start_qualifier_closed: 'a' end_qualifier_open: 'c' }", "g:a@3"},
    {"column_range_filter { family_name: 'g' start_qualifier_open: 'a' end_qualifier_closed: 'c' }", "g:c@1"},
    {"timestamp_range_filter { start_timestamp_micros: 2000 }", "f:a@2 f:b@2 g:a@3"},
    {"timestamp_range_filter { start_timestamp_micros: 1000 end_timestamp_micros: 2000 }", "f:a@1 g:c@1"},
    {"timestamp_range_filter { start_timestamp_micros: 2000 end_timestamp_micros: 2000 }", ""},
    {"value_range_filter { start_value_closed: 'a2' end_value_closed: 'a3' }", "f:a@2 g:a@3"},
    {"value_range_filter { start_value_open: 'a2' end_value_open: 'c1' }", "f:b@2 g:a@3"},
    {"value_range_filter { }", kAll},
    {"cells_per_row_offset_filter: 3", "g:a@3 g:c@1"},
    {"cells_per_row_offset_filter: 9", ""},
    {"cells_per_row_limit_filter: 2", "f:a@2 f:a@1"},
    {"cells_per_row_limit_filter: 9", kAll},
    {"cells_per_column_limit_filter: 1", "f:a@2 f:b@2 g:a@3 g:c@1"},
    {"cells_per_column_limit_filter: 0", ""},
    {"strip_value_transformer: true", "f:a@2= f:a@1= f:b@2= g:a@3= g:c@1="},
    {"apply_label_transformer: 'l-1'", "f:a@2#l-1 f:a@1#l-1 f:b@2#l-1 g:a@3#l-1 g:c@1#l-1"},
    // Each filter of a chain gets the output of the previous one.
    {"chain { filters { timestamp_range_filter { end_timestamp_micros: 2000 } } "
     "filters { cells_per_column_limit_filter: 1 } }",
     "f:a@1 g:c@1"},
    {"chain { filters { cells_per_column_limit_filter: 1 } "
     "filters { timestamp_range_filter { end_timestamp_micros: 2000 } } }",
     "g:c@1"},
    {"chain { filters { strip_value_transformer: true } filters { value_regex_filter: 'a2' } }", ""},
    // An interleave keeps the order, and duplicates cells that two branches return.
    {"interleave { filters { family_name_regex_filter: 'g' } filters { column_qualifier_regex_filter: 'a' } }",
     "f:a@2 f:a@1 g:a@3 g:a@3 g:c@1"},
    {"interleave { filters { block_all_filter: true } filters { block_all_filter: true } }", ""},
    {"chain { filters { interleave { filters { pass_all_filter: true } filters { strip_value_transformer: true } } } "
     "filters { cells_per_row_limit_filter: 2 } }",
     "f:a@2 f:a@2="},
    // A column's limit counts copies.
    {"chain { filters { interleave { filters { pass_all_filter: true } filters { pass_all_filter: true } } } "
     "filters { cells_per_column_limit_filter: 1 } }",
     "f:a@2 f:b@2 g:a@3 g:c@1"},
    {"interleave { filters { apply_label_transformer: 'x' } filters { apply_label_transformer: 'y' } "
     "filters { block_all_filter: true } }",
     "f:a@2#x f:a@2#y f:a@1#x f:a@1#y f:b@2#x f:b@2#y g:a@3#x g:a@3#y g:c@1#x g:c@1#y"},
    {"condition { predicate_filter { value_regex_filter: 'c1' } true_filter { family_name_regex_filter: 'f' } "
     "false_filter { pass_all_filter: true } }",
     "f:a@2 f:a@1 f:b@2"},
    {"condition { predicate_filter { value_regex_filter: 'x' } true_filter { pass_all_filter: true } "
     "false_filter { family_name_regex_filter: 'g' } }",
     "g:a@3 g:c@1"},
    {"condition { predicate_filter { pass_all_filter: true } }", ""},
    {"condition { predicate_filter { cells_per_row_offset_filter: 5 } true_filter { pass_all_filter: true } }", ""},
    // A cell that reaches a sink is in the result, and skips the later filters.
    {"chain { filters { family_name_regex_filter: 'f' } filters { interleave { filters { pass_all_filter: true } "
     "filters { chain { filters { apply_label_transformer: 'foo' } filters { sink: true } } } } } "
     "filters { column_qualifier_regex_filter: 'b' } }",
     "f:a@2#foo f:a@1#foo f:b@2 f:b@2#foo"},
    {"chain { filters { sink: true } filters { pass_all_filter: true } }", kAll},
};

TEST(BigtableFilterTest, EachFilterLeavesItsCells) {
  const Filtered row;
  for (const Case& c : kCases) EXPECT_EQ(row.By(c.filter), c.left) << c.filter;
}

TEST(BigtableFilterTest, RegularExpressionsMatchBytes) {
  for (const std::string_view value :
       {std::string_view("\x80\xff"), std::string_view("a\0b", 3), std::string_view("\n")}) {
    bt::RowFilter filter;
    std::string quoted;
    for (const char c : value) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    filter.set_value_regex_filter(quoted);
    const auto compiled = BigtableFilter::Compile(filter);
    ASSERT_THAT(compiled, IsOk());
    EXPECT_EQ(compiled->Apply("r", {{"f", "q", 0, value, {}, 0}})->size(), 1u) << quoted;
    EXPECT_EQ(compiled->Apply("r", {{"f", "q", 0, "other", {}, 0}})->size(), 0u) << quoted;
  }
  // A byte that stands for itself, and the bytes that a dot does not match.
  bt::RowFilter filter;
  filter.set_value_regex_filter("\xe9.");
  const auto compiled = BigtableFilter::Compile(filter);
  ASSERT_THAT(compiled, IsOk());
  EXPECT_EQ(compiled->Apply("r", {{"f", "q", 0, "\xe9\xe9", {}, 0}})->size(), 1u);
  EXPECT_EQ(compiled->Apply("r", {{"f", "q", 0, "\xe9\n", {}, 0}})->size(), 0u);
}

TEST(BigtableFilterTest, ASampleHasWholeRows) {
  bt::RowFilter filter;
  filter.set_row_sample_filter(0.5);
  const auto compiled = BigtableFilter::Compile(filter);
  ASSERT_THAT(compiled, IsOk());
  int passed = 0;
  for (int i = 0; i < 1000; ++i) {
    const size_t left = compiled->Apply("r", {{"f", "a", 0, "", {}, 0}, {"f", "b", 0, "", {}, 1}})->size();
    EXPECT_TRUE(left == 0 || left == 2);
    if (left == 2) ++passed;
  }
  EXPECT_GT(passed, 300);
  EXPECT_LT(passed, 700);
}

TEST(BigtableFilterTest, InvalidFiltersAreRefused) {
  for (const char* text : {
           "row_key_regex_filter: '('",
           "value_regex_filter: '[z-a]'",
           "column_qualifier_regex_filter: '*'",
           "family_name_regex_filter: 'a:b'",
           "timestamp_range_filter { start_timestamp_micros: 1001 }",
           "timestamp_range_filter { end_timestamp_micros: 999 }",
           "timestamp_range_filter { start_timestamp_micros: -1000 }",
           "cells_per_row_offset_filter: -1",
           "cells_per_row_limit_filter: -1",
           "cells_per_column_limit_filter: -1",
           "row_sample_filter: 0",
           "row_sample_filter: 1",
           "row_sample_filter: nan",
           "apply_label_transformer: ''",
           "apply_label_transformer: 'Upper'",
           "apply_label_transformer: 'abcdefghijklmnop'",
           "pass_all_filter: false",
           "block_all_filter: false",
           "strip_value_transformer: false",
           "sink: false",
           "chain { }",
           "chain { filters { pass_all_filter: true } }",
           "interleave { filters { pass_all_filter: true } }",
           "condition { true_filter { pass_all_filter: true } }",
           "condition { predicate_filter { sink: true } }",
           "condition { predicate_filter { pass_all_filter: true } true_filter { sink: true } }",
           "chain { filters { apply_label_transformer: 'a' } filters { apply_label_transformer: 'b' } }",
           "chain { filters { pass_all_filter: true } filters { value_regex_filter: '(' } }",
       }) {
    const bt::RowFilter filter = Parse(text);
    EXPECT_THAT(BigtableFilter::Compile(filter), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

bt::RowFilter Deep(int depth) {
  bt::RowFilter filter;
  filter.set_pass_all_filter(true);
  for (int i = 1; i < depth; ++i) {
    bt::RowFilter chain;
    *chain.mutable_chain()->add_filters() = filter;
    chain.mutable_chain()->add_filters()->set_pass_all_filter(true);
    filter = chain;
  }
  return filter;
}

TEST(BigtableFilterTest, TooDeepOrTooLargeIsRefused) {
  EXPECT_THAT(BigtableFilter::Compile(Deep(BigtableFilter::kMaxDepth)), IsOk());
  EXPECT_THAT(BigtableFilter::Compile(Deep(BigtableFilter::kMaxDepth + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  bt::RowFilter large;
  large.set_value_regex_filter(std::string(BigtableFilter::kMaxBytes - 4, 'a'));
  EXPECT_THAT(BigtableFilter::Compile(large), IsOk());
  large.set_value_regex_filter(std::string(BigtableFilter::kMaxBytes, 'a'));
  EXPECT_THAT(BigtableFilter::Compile(large), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(BigtableFilterTest, CellsAreMultipliedUpToALimit) {
  bt::RowFilter twice;
  twice.mutable_interleave()->add_filters()->set_pass_all_filter(true);
  twice.mutable_interleave()->add_filters()->set_pass_all_filter(true);
  bt::RowFilter filter;
  for (int i = 0; i < 10; ++i) *filter.mutable_chain()->add_filters() = twice;
  const BigtableCells cell = {{"f", "q", 0, "", {}, 0}};
  auto compiled = BigtableFilter::Compile(filter);
  ASSERT_THAT(compiled, IsOk());
  EXPECT_EQ(compiled->Apply("r", cell)->size(), 1024u);
  for (int i = 0; i < 100; ++i) *filter.mutable_chain()->add_filters() = twice;
  compiled = BigtableFilter::Compile(filter);
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->Apply("r", cell), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(BigtableFilterTest, RegularExpressionsAreLimitedTogether) {
  bt::RowFilter filter;
  for (int i = 0; i < 10; ++i) filter.mutable_chain()->add_filters()->set_value_regex_filter("(?s).*a.{999}");
  EXPECT_THAT(BigtableFilter::Compile(filter), IsOk());
  for (int i = 0; i < 50; ++i) filter.mutable_chain()->add_filters()->set_value_regex_filter("(?s).*a.{999}");
  EXPECT_THAT(BigtableFilter::Compile(filter),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("32768")));
}

TEST(BigtableFilterTest, TheWorkOnARowIsLimited) {
  std::string value;  // for which the expression below has as many states as there are bytes
  for (uint32_t i = 0, random = 1; i < 1 << 20; ++i) {
    random = random * 1103515245 + 12345;
    value.push_back(((random >> 16) & 1) != 0 ? 'a' : 'b');
  }
  bt::RowFilter costly;
  costly.set_value_regex_filter("(?s).*a.{999}");
  const auto compiled = BigtableFilter::Compile(costly);
  ASSERT_THAT(compiled, IsOk());
  size_t work = 0;
  EXPECT_THAT(compiled->Apply("r", {{"f", "q", 0, value.substr(0, 100'000), {}, 0}}, &work), IsOk());
  EXPECT_GT(work, size_t{90'000'000});
  EXPECT_THAT(compiled->Apply("r", {{"f", "q", 0, value, {}, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("costs too much")));

  bt::RowFilter simple;
  simple.set_value_regex_filter(".*z.*");
  const std::string large(size_t{64} << 20, 'y');
  EXPECT_THAT(BigtableFilter::Compile(simple)->Apply("r", {{"f", "q", 0, large, {}, 0}}), IsOk());

  bt::RowFilter steps;
  for (int i = 0; i < 2000; ++i) steps.mutable_chain()->add_filters()->set_pass_all_filter(true);
  const BigtableCells cells(100'000, {"f", "q", 0, "", {}, 0});
  EXPECT_THAT(BigtableFilter::Compile(steps)->Apply("r", cells),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("costs too much")));
}

TEST(BigtableFilterTest, AnUnknownKindIsRefused) {
  bt::RowFilter filter;
  ASSERT_TRUE(filter.ParseFromString(std::string("\xf8\x06\x01", 3)));  // field 111
  EXPECT_THAT(BigtableFilter::Compile(filter), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace percolator
