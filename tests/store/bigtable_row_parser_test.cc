// SPDX-License-Identifier: Apache-2.0

// The parser of ReadRows: the cases that Google's own clients have to pass, and cases that these omit.

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/store/bigtable/row_parser.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::google::protobuf::Struct;
using ::google::protobuf::Value;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Chunk = RowParser::Response::CellChunk;

constexpr char kCases[] =
    "/usr/share/gocode/src/cloud.google.com/go/bigtable/internal/conformance/testdata/readrows.json";
constexpr int kCaseCount = 48;

std::string Field(const Struct& message, const std::string& name) {
  const auto it = message.fields().find(name);
  return it == message.fields().end() ? "" : it->second.string_value();
}

// One cell per line, in the order of the answer.
std::string Line(const std::string& row, const WireCell& cell) {
  const std::string label = cell.labels.empty() ? "" : cell.labels[0];
  return StrCat(row, " ", cell.family, ":", cell.column, "@", cell.timestamp_micros, "=", cell.value, " ", label);
}

struct Outcome {
  std::vector<std::string> cells;
  bool error = false;
};

Outcome Expected(const Struct& test) {
  Outcome outcome;
  const auto it = test.fields().find("results");
  if (it == test.fields().end()) return outcome;
  for (const Value& value : it->second.list_value().values()) {
    const Struct& result = value.struct_value();
    if (const auto error = result.fields().find("error");
        error != result.fields().end() && error->second.bool_value()) {
      outcome.error = true;
      continue;
    }
    const std::string micros = Field(result, "timestampMicros");
    const WireCell cell{Field(result, "familyName"),
                        Field(result, "qualifier"),
                        micros.empty() ? 0 : std::stoll(micros),
                        Field(result, "value"),
                        {Field(result, "label")}};
    outcome.cells.push_back(Line(Field(result, "rowKey"), cell));
  }
  return outcome;
}

Outcome Parsed(const std::vector<Chunk>& chunks, size_t chunks_per_message) {
  Outcome outcome;
  RowParser parser;
  for (size_t i = 0; i < chunks.size() && !outcome.error; i += chunks_per_message) {
    RowParser::Response response;
    for (size_t j = i; j < std::min(i + chunks_per_message, chunks.size()); ++j) *response.add_chunks() = chunks[j];
    std::vector<WireRow> rows;
    outcome.error = !parser.Consume(&response, &rows).ok();
    for (const WireRow& row : rows) {
      for (const WireCell& cell : row.cells) outcome.cells.push_back(Line(row.key, cell));
    }
  }
  if (!outcome.error) outcome.error = !parser.Finish().ok();
  return outcome;
}

std::vector<Chunk> ChunksOf(const Struct& test) {
  std::vector<Chunk> chunks;
  const auto it = test.fields().find("chunks");
  if (it == test.fields().end()) return chunks;
  for (const Value& value : it->second.list_value().values()) {
    std::string json;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(value, &json).ok());
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &chunks.emplace_back()).ok()) << json;
  }
  return chunks;
}

TEST(RowParserTest, PassesTheAcceptanceCasesOfGooglesClients) {
  std::ifstream file(kCases);
  if (!file.good()) GTEST_SKIP() << "no acceptance cases: install golang-google-cloud-dev (" << kCases << ")";
  const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Struct all;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &all).ok());
  const auto& tests = all.fields().at("readRowsTests").list_value().values();
  ASSERT_EQ(tests.size(), kCaseCount);
  for (const Value& value : tests) {
    const Struct& test = value.struct_value();
    SCOPED_TRACE(Field(test, "description"));
    const std::vector<Chunk> chunks = ChunksOf(test);
    const Outcome expected = Expected(test);
    for (const size_t chunks_per_message : {size_t{1}, size_t{2}, size_t{1000}}) {
      const Outcome parsed = Parsed(chunks, chunks_per_message);
      EXPECT_EQ(parsed.error, expected.error);
      EXPECT_EQ(parsed.cells, expected.cells);
    }
  }
}

// A complete chunk, which begins and ends a row.
Chunk Whole(const std::string& row, const std::string& value) {
  Chunk chunk;
  chunk.set_row_key(row);
  chunk.mutable_family_name()->set_value("data");
  chunk.mutable_qualifier()->set_value("c");
  chunk.set_value(value);
  chunk.set_commit_row(true);
  return chunk;
}

TEST(RowParserTest, ReportsHowFarTheAnswerIsComplete) {
  RowParser parser;
  std::vector<WireRow> rows;
  EXPECT_EQ(parser.done(), "");
  RowParser::Response response;
  *response.add_chunks() = Whole("b", "1");
  ASSERT_THAT(parser.Consume(&response, &rows), IsOk());
  EXPECT_EQ(parser.done(), "b");
  response.Clear();
  response.set_last_scanned_row_key("d");
  ASSERT_THAT(parser.Consume(&response, &rows), IsOk());
  EXPECT_EQ(parser.done(), "d");
  response.Clear();
  *response.add_chunks() = Whole("e", "2");
  response.mutable_chunks(0)->clear_commit_row();
  ASSERT_THAT(parser.Consume(&response, &rows), IsOk());
  EXPECT_EQ(parser.done(), "d") << "a row in progress is not complete";
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_FALSE(parser.Finish().ok());
}

TEST(RowParserTest, AKeyThatWasScannedDoesNotGoBack) {
  for (const char* scanned : {"a", "b"}) {
    RowParser parser;
    std::vector<WireRow> rows;
    RowParser::Response response;
    *response.add_chunks() = Whole("b", "1");
    response.set_last_scanned_row_key(scanned);
    EXPECT_THAT(parser.Consume(&response, &rows), StatusIs(absl::StatusCode::kInternal)) << scanned;
  }
  RowParser parser;
  std::vector<WireRow> rows;
  RowParser::Response response;
  response.set_last_scanned_row_key("c");
  ASSERT_THAT(parser.Consume(&response, &rows), IsOk());
  response.Clear();
  *response.add_chunks() = Whole("c", "1");
  EXPECT_THAT(parser.Consume(&response, &rows), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(rows, IsEmpty());
}

TEST(RowParserTest, AResetDropsARowInTheMiddleOfACell) {
  Chunk part = Whole("r", "wro");
  part.clear_commit_row();
  part.set_value_size(6);
  Chunk reset;
  reset.set_reset_row(true);
  EXPECT_THAT(Parsed({part, reset, Whole("r", "right")}, 10).cells, ElementsAre("r data:c@0=right "));
  EXPECT_FALSE(Parsed({part, reset}, 10).error) << "the row is gone";
  EXPECT_TRUE(Parsed({part}, 10).error);
}

}  // namespace
}  // namespace percolator
