// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/row_parser.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

absl::Status Malformed(std::string_view what) {
  return absl::InternalError(StrCat("invalid response from Bigtable to ReadRows: ", what));
}

}  // namespace

absl::Status RowParser::Consume(Response* response, std::vector<WireRow>* rows) {
  for (Chunk& chunk : *response->mutable_chunks()) {
    PERCOLATOR_RETURN_IF_ERROR(ConsumeChunk(&chunk, rows));
  }
  const std::string& scanned = response->last_scanned_row_key();
  if (scanned.empty()) return absl::OkStatus();
  if (state_ != State::kNewRow) return Malformed("a scanned key within a row");
  PERCOLATOR_RETURN_IF_ERROR(CheckOrder("scanned keys", scanned));
  Done(scanned);
  return absl::OkStatus();
}

absl::Status RowParser::CheckOrder(std::string_view what, const std::string& key) const {
  if (done_.empty() || (reverse_ ? key < done_ : key > done_)) return absl::OkStatus();
  if (reverse_ && !order_known_ && key > done_) {
    return absl::UnimplementedError("the Bigtable server does not support reverse scans");
  }
  return Malformed(StrCat(what, reverse_ ? " do not descend" : " do not ascend"));
}

void RowParser::Done(std::string key) {
  order_known_ = !done_.empty();
  done_ = std::move(key);
}

absl::Status RowParser::Finish() const {
  if (state_ == State::kNewRow) return absl::OkStatus();
  return Malformed(StrCat("it ends within the row ", absl::CHexEscape(row_.key)));
}

absl::Status RowParser::ConsumeChunk(Chunk* chunk, std::vector<WireRow>* rows) {
  if (chunk->reset_row()) return Reset(*chunk);
  absl::Status status;
  switch (state_) {
    case State::kNewRow:
      status = BeginRow(*chunk);
      if (status.ok()) status = BeginCell(chunk);
      break;
    case State::kRow:
      status = CheckRow(*chunk);
      if (status.ok()) status = BeginCell(chunk);
      break;
    case State::kCell:
      status = ContinueCell(*chunk);
      break;
  }
  return status.ok() ? EndChunk(*chunk, rows) : status;
}

absl::Status RowParser::BeginRow(const Chunk& chunk) {
  if (chunk.row_key().empty()) return Malformed("a row without a key");
  PERCOLATOR_RETURN_IF_ERROR(CheckOrder("row keys", chunk.row_key()));
  if (!chunk.has_family_name()) return Malformed("a row that begins without a family");
  if (!chunk.has_qualifier()) return Malformed("a row that begins without a column");
  row_.key = chunk.row_key();
  return absl::OkStatus();
}

absl::Status RowParser::CheckRow(const Chunk& chunk) const {
  if (!chunk.row_key().empty() && chunk.row_key() != row_.key)
    return Malformed("a new row before the last was committed");
  return absl::OkStatus();
}

absl::Status RowParser::BeginCell(Chunk* chunk) {
  if (chunk->has_family_name()) {
    if (!chunk->has_qualifier()) return Malformed("a new family without a column");
    family_ = chunk->family_name().value();
  }
  if (chunk->has_qualifier()) column_ = chunk->qualifier().value();
  WireCell& cell = row_.cells.emplace_back(
      WireCell{family_, column_, chunk->timestamp_micros(), std::move(*chunk->mutable_value()), {}});
  cell.labels.assign(chunk->labels().begin(), chunk->labels().end());
  if (chunk->value_size() > 0) cell.value.reserve(static_cast<size_t>(chunk->value_size()));
  return absl::OkStatus();
}

absl::Status RowParser::ContinueCell(const Chunk& chunk) {
  const bool names_something = !chunk.row_key().empty() || chunk.has_family_name() || chunk.has_qualifier() ||
                               chunk.timestamp_micros() != 0 || chunk.labels_size() > 0;
  if (names_something) return Malformed("a cell within a cell");
  row_.cells.back().value.append(chunk.value());
  return absl::OkStatus();
}

absl::Status RowParser::EndChunk(const Chunk& chunk, std::vector<WireRow>* rows) {
  if (chunk.value_size() < 0) return Malformed("a value of negative size");
  const bool more = chunk.value_size() > 0;
  if (more && chunk.commit_row()) return Malformed("a row committed within a cell");
  state_ = more ? State::kCell : State::kRow;
  if (!chunk.commit_row()) return absl::OkStatus();
  Done(row_.key);
  rows->push_back(std::exchange(row_, {}));
  state_ = State::kNewRow;
  return absl::OkStatus();
}

absl::Status RowParser::Reset(const Chunk& chunk) {
  const bool says_more = !chunk.row_key().empty() || chunk.has_family_name() || chunk.has_qualifier() ||
                         chunk.timestamp_micros() != 0 || chunk.labels_size() > 0 || !chunk.value().empty() ||
                         chunk.value_size() != 0;
  if (says_more) return Malformed("a reset with other fields");
  if (state_ == State::kNewRow) return Malformed("a reset outside of a row");
  row_ = {};
  state_ = State::kNewRow;
  return absl::OkStatus();
}

}  // namespace percolator
