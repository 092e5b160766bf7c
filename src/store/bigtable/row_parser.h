// RowParser: the rows in the answer to ReadRows.
//
// A server sends cells as chunks. A chunk leaves out what is as in the one before (row key, family, column), a large value
// comes in several, and a row counts only once its last chunk says that it is committed; until then the server may take
// it back (reset) and begin again. The parser is in one of three states:
//
//     new row  --first chunk-->  row in progress  <--last part / first part of a split value-->  cell in progress
//        ^                            |
//        +----- commit or reset ------+            (a reset also ends a cell in progress)
//
// Whatever else a server sends is an error, and then the parser is not to be used any more: half a row must never be taken
// for a whole one.

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

  // `reverse`: of an answer to a request that has `reversed` set. Then keys must descend.
  explicit RowParser(bool reverse = false) : reverse_(reverse) {}

  // Takes the chunks of a message, which it may empty, and appends the rows that are complete with them. kInternal: the
  // server broke the rules; rows that were complete before are appended. kUnimplemented: the second key is above the
  // first, although keys have to descend, so the server does not know `reversed`.
  absl::Status Consume(Response* response, std::vector<WireRow>* rows);
  // To be called at the end of the stream. kInternal: a row is not complete.
  absl::Status Finish() const;

  // Up to this key (in reverse: from it on), itself included, the answer is complete: the last row, or one that the server
  // looked at and found not to match. Empty: nothing is yet.
  const std::string& done() const { return done_; }

  // Whether more than one key has come, so that their order is known. Until then nothing of a reverse answer that is not
  // complete can be relied on.
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
  // Of the cell before, or the one in progress.
  std::string family_;
  std::string column_;
  std::string done_;
  bool order_known_ = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_ROW_PARSER_H_
