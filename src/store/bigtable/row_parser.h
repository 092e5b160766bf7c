// SPDX-License-Identifier: Apache-2.0

// RowParser: the rows in the answer to ReadRows.
//
// A server sends cells as chunks. A chunk omits what is the same as in the one before (row key, family, column), and a
// large value comes in several. A row counts only when its last chunk commits it; until then the server may reset it
// and begin again. The parser is in one of three states:
//
//     new row  --first chunk-->  row in progress  <--last part / first part of a split value-->  cell in progress
//        ^                            |
//        +----- commit or reset ------+            (a reset also ends a cell in progress)
//
// Any other chunk is an error. After an error the parser must not be used: half a row must never be taken for a
// complete one.

#ifndef PERCOLATOR_STORE_BIGTABLE_ROW_PARSER_H_
#define PERCOLATOR_STORE_BIGTABLE_ROW_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

struct WireCell {
  std::string family;
  std::string column;
  int64_t timestamp_micros = 0;
  std::string value;
  std::vector<std::string> labels;
};

struct WireRow {
  std::string key;
  std::vector<WireCell> cells;
};

class RowParser {
 public:
  using Response = google::bigtable::v2::ReadRowsResponse;

  // `reverse`: the request has `reversed` set, so keys must descend.
  explicit RowParser(bool reverse = false) : reverse_(reverse) {}

  // Takes the chunks of a message, which it may empty, and appends the rows that they complete. Returns Internal if the
  // server broke the rules; rows that were complete before are appended. Returns Unimplemented if the second key is
  // above the first although keys must descend: then the server does not support `reversed`.
  absl::Status Consume(Response* response, std::vector<WireRow>* rows);
  // Called at the end of the stream. Returns Internal if a row is not complete.
  absl::Status Finish() const;

  // The key up to which (in reverse: from which) the answer is complete, inclusive: that of the last row, or of one
  // that the server scanned and did not match. Empty before the first.
  const std::string& done() const { return done_; }

  // Whether more than one key has come, so that their order is known. Until then, an incomplete reverse answer proves
  // nothing.
  bool order_known() const { return order_known_; }

 private:
  using Chunk = Response::CellChunk;
  enum class State : uint8_t { kNewRow, kRow, kCell };

  absl::Status CheckOrder(std::string_view what, const std::string& key) const;
  void Done(std::string key);
  absl::Status ConsumeChunk(Chunk* chunk, std::vector<WireRow>* rows);
  absl::Status BeginRow(const Chunk& chunk);
  absl::Status CheckRow(const Chunk& chunk) const;
  absl::Status BeginCell(Chunk* chunk);
  absl::Status ContinueCell(const Chunk& chunk);
  absl::Status EndChunk(const Chunk& chunk, std::vector<WireRow>* rows);
  absl::Status Reset(const Chunk& chunk);

  const bool reverse_;
  State state_ = State::kNewRow;
  WireRow row_;
  // Of the last cell, or the one in progress.
  std::string family_;
  std::string column_;
  std::string done_;
  bool order_known_ = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_ROW_PARSER_H_
