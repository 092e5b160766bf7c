// SPDX-License-Identifier: Apache-2.0

#include "tests/server/bigtable_tester.h"

#include <google/protobuf/text_format.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

namespace admin = google::bigtable::admin::v2;
namespace bt = google::bigtable::v2;

constexpr std::chrono::seconds kPatience(120);

std::string Escaped(const std::string& bytes) { return absl::CHexEscape(bytes); }

std::string CellText(const std::string& family, const std::string& qualifier, int64_t timestamp,
                     const std::string& value) {
  return StrCat(family, ":", Escaped(qualifier), "@", timestamp, "=", Escaped(value));
}

// Assembles rows from chunks.
class Assembler {
 public:
  // Returns an error, or an empty string.
  std::string Add(const bt::ReadRowsResponse::CellChunk& chunk) {
    if (chunk.reset_row()) return "reset_row";
    if (!in_cell_) {
      if (!in_row_ && (chunk.row_key().empty() || !chunk.has_family_name() || !chunk.has_qualifier())) {
        return "a row begins without its names";
      }
      if (!in_row_ && chunk.row_key() <= key_) return "rows are not in order";
      if (!chunk.row_key().empty()) key_ = chunk.row_key();
      if (chunk.has_family_name()) family_ = chunk.family_name().value();
      if (chunk.has_qualifier()) qualifier_ = chunk.qualifier().value();
      timestamp_ = chunk.timestamp_micros();
      labels_.clear();
      for (const std::string& label : chunk.labels()) labels_ += "#" + label;
      value_.clear();
    }
    in_row_ = true;
    value_ += chunk.value();
    in_cell_ = chunk.value_size() > 0;
    if (in_cell_) return chunk.commit_row() ? "a row ends within a cell" : "";
    families_[family_].push_back(CellText(family_, qualifier_, timestamp_, value_) + labels_);
    if (chunk.commit_row()) EndRow();
    return "";
  }
  bool complete() const { return !in_row_; }
  const std::string& text() const { return text_; }

 private:
  void EndRow() {
    std::string cells;
    for (const auto& [name, texts] : families_) {
      for (const std::string& cell : texts) cells += (cells.empty() ? "" : " ") + cell;
    }
    text_ += StrCat(text_.empty() ? "" : " ", Escaped(key_), "{", cells, "}");
    families_.clear();
    in_row_ = false;
  }

  bool in_row_ = false;
  bool in_cell_ = false;
  std::string key_;
  std::string family_;
  std::string qualifier_;
  int64_t timestamp_ = 0;
  std::string labels_;
  std::string value_;
  std::map<std::string, std::vector<std::string>> families_;
  std::string text_;
};

template <typename Request>
Request Parse(const std::string& text) {
  Request request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  if constexpr (requires { request.table_name(); }) {
    if (request.table_name().empty()) request.set_table_name(TestTable("t"));
  }
  return request;
}

void SetDeadline(grpc::ClientContext* context) { context->set_deadline(std::chrono::system_clock::now() + kPatience); }

}  // namespace

std::string TestTable(std::string_view id) { return StrCat(kTestInstance, "/tables/", id); }

BigtableTester::BigtableTester(const std::string& target) {
  const auto channel = OpenChannel(target, {});
  if (!channel.ok()) std::abort();
  data_ = bt::Bigtable::NewStub(*channel);
  admin_ = admin::BigtableTableAdmin::NewStub(*channel);
  instance_ = admin::BigtableInstanceAdmin::NewStub(*channel);
}

absl::Status BigtableTester::CreateTable(std::string_view id, const std::vector<std::string>& families) {
  admin::CreateTableRequest request;
  request.set_parent(kTestInstance);
  request.set_table_id(std::string(id));
  for (const std::string& family : families) (*request.mutable_table()->mutable_column_families())[family];
  admin::Table response;
  return Call(*admin_, &admin::BigtableTableAdmin::Stub::CreateTable, kPatience, request, &response);
}

absl::StatusOr<admin::Table> BigtableTester::ModifyFamilies(std::string_view id, const std::string& text) {
  auto request = Parse<admin::ModifyColumnFamiliesRequest>(text);
  request.set_name(TestTable(id));
  admin::Table response;
  absl::Status status =
      Call(*admin_, &admin::BigtableTableAdmin::Stub::ModifyColumnFamilies, kPatience, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::Status BigtableTester::Mutate(const std::string& text) { return Mutate(Parse<bt::MutateRowRequest>(text)); }
absl::StatusOr<bool> BigtableTester::CheckAndMutate(const std::string& text) {
  return CheckAndMutate(Parse<bt::CheckAndMutateRowRequest>(text));
}
absl::StatusOr<std::string> BigtableTester::ReadModifyWrite(const std::string& text) {
  return ReadModifyWrite(Parse<bt::ReadModifyWriteRowRequest>(text));
}
absl::StatusOr<std::string> BigtableTester::Read(const std::string& text) {
  return Read(Parse<bt::ReadRowsRequest>(text));
}

absl::Status BigtableTester::Mutate(const bt::MutateRowRequest& request) {
  bt::MutateRowResponse response;
  return Call(*data_, &bt::Bigtable::Stub::MutateRow, kPatience, request, &response);
}

absl::StatusOr<std::vector<absl::Status>> BigtableTester::MutateRows(const bt::MutateRowsRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = data_->MutateRows(&context, request);
  std::vector<absl::Status> statuses(static_cast<size_t>(request.entries_size()), absl::UnknownError("no answer"));
  for (bt::MutateRowsResponse response; reader->Read(&response);) {
    for (const auto& entry : response.entries()) {
      statuses.at(static_cast<size_t>(entry.index())) =
          absl::Status(static_cast<absl::StatusCode>(entry.status().code()), entry.status().message());
    }
  }
  absl::Status status = FromGrpc(reader->Finish());
  if (!status.ok()) return status;
  return statuses;
}

absl::StatusOr<bool> BigtableTester::CheckAndMutate(const bt::CheckAndMutateRowRequest& request) {
  bt::CheckAndMutateRowResponse response;
  absl::Status status = Call(*data_, &bt::Bigtable::Stub::CheckAndMutateRow, kPatience, request, &response);
  if (!status.ok()) return status;
  return response.predicate_matched();
}

absl::StatusOr<std::string> BigtableTester::ReadModifyWrite(const bt::ReadModifyWriteRowRequest& request) {
  bt::ReadModifyWriteRowResponse response;
  absl::Status status = Call(*data_, &bt::Bigtable::Stub::ReadModifyWriteRow, kPatience, request, &response);
  if (!status.ok()) return status;
  std::map<std::string, std::string> families;
  for (const bt::Family& family : response.row().families()) {
    for (const bt::Column& column : family.columns()) {
      for (const bt::Cell& cell : column.cells()) {
        families[family.name()] += StrCat(" ", CellText(family.name(), column.qualifier(), 0, cell.value()));
      }
    }
  }
  std::string text = Escaped(response.row().key());
  for (const auto& [name, cells] : families) text += cells;
  return text;
}

absl::StatusOr<std::string> BigtableTester::Read(const bt::ReadRowsRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = data_->ReadRows(&context, request);
  Assembler assembler;
  std::string wrong;
  for (bt::ReadRowsResponse response; reader->Read(&response);) {
    for (const auto& chunk : response.chunks()) {
      if (wrong.empty()) wrong = assembler.Add(chunk);
    }
  }
  absl::Status status = FromGrpc(reader->Finish());
  if (!status.ok()) return status;
  if (!wrong.empty()) return absl::DataLossError(wrong);
  if (!assembler.complete()) return absl::DataLossError("the stream ends within a row");
  return assembler.text();
}

absl::StatusOr<std::vector<std::string>> BigtableTester::Sample(std::string_view id) {
  grpc::ClientContext context;
  SetDeadline(&context);
  bt::SampleRowKeysRequest request;
  request.set_table_name(TestTable(id));
  const auto reader = data_->SampleRowKeys(&context, request);
  std::vector<std::string> keys;
  for (bt::SampleRowKeysResponse response; reader->Read(&response);) keys.push_back(response.row_key());
  absl::Status status = FromGrpc(reader->Finish());
  if (!status.ok()) return status;
  return keys;
}

}  // namespace percolator
