// SPDX-License-Identifier: Apache-2.0

// The reads of snapshots that the store has answered, to check T8: once a cell was read at a timestamp without finding
// a lock, no record at or below that timestamp may appear in it.
//
// A read counts as soon as the store answers, even if the answer is lost. A read of a snapshot is recognised by what it
// selects: the newest write record from zero to the snapshot.

#ifndef PERCOLATOR_SIM_ANSWERED_READS_H_
#define PERCOLATOR_SIM_ANSWERED_READS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "percolator/spi/store.h"
#include "percolator/status.h"

namespace percolator::sim {

class AnsweredReads {
 public:
  void Add(const RowRead& read, const Row& row);
  // Adds all rows from the start of the request (its last row, if it is a reverse one) to `end` or the end of the
  // request.
  void Add(const ScanRequest& request, const std::optional<std::string>& end, const std::vector<Row>& rows);

  // The timestamp of a snapshot at or after `from` that has read the cell; zero if there is none.
  Timestamp ReadFrom(const CellName& cell, Timestamp from) const;

 private:
  // Rows that were read, in all columns or in one.
  struct Range {
    Timestamp ts;
    std::string start;
    std::optional<std::string> limit;
    std::set<std::pair<std::string, std::string>> locked;  // row and column: not answered
  };
  struct Ranges {
    std::vector<Range> all;
    Timestamp latest;
  };

  static void AddRange(Ranges* ranges, Range range);
  static Timestamp AnyOf(const Ranges& ranges, const CellName& cell, Timestamp from);

  std::map<CellName, Timestamp> cells_;
  std::map<std::string, Ranges> whole_;                              // by table
  std::map<std::pair<std::string, std::string>, Ranges> by_column_;  // by table and column
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_ANSWERED_READS_H_
