// SPDX-License-Identifier: Apache-2.0

// The names in a script: cells and transactions are words, timestamps are small numbers.
//
// CellMap   maps the cells of a script to places. Cells keep their order in every layout, so the same one is the
// primary. Stamps    numbers the timestamps that become known, starts and commits, in their order: 1, 2, 3. The
// oracle's values
//           depend on how often it was asked and on how much time has passed, the numbers on neither; so a history
//           reads
//           the same in every variant.

#ifndef PERCOLATOR_TESTS_HISTORIES_NAMES_H_
#define PERCOLATOR_TESTS_HISTORIES_NAMES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator {

enum class Layout { kOneRow, kTwoRows, kTwoTables };

class CellMap {
 public:
  CellMap(Layout layout, const std::vector<std::vector<std::string>>& groups);

  // Returns null if the cell is unknown.
  const CellName* Find(const std::string& name) const;
  // The cell's word, if it has one; "ack of x by copy" for the acknowledgement of an observer.
  std::string NameOf(const CellName& cell) const;
  // A row by its place in the layout: "row1".
  static std::string NameOfRow(const std::string& table, const std::string& row);
  const std::vector<std::string>& tables() const { return tables_; }

 private:
  std::map<std::string, CellName> cells_;
  std::vector<std::string> tables_;
};

class Stamps {
 public:
  // Gives a timestamp the number `number`, or the next one. A timestamp keeps its number; one that is older than the
  // last numbered one gets none.
  absl::Status Number(Timestamp ts, std::optional<int> number = std::nullopt);

  // "@7"; "@7+" for a timestamp after 7 that has no number.
  std::string Text(Timestamp ts) const;
  // "7", or "7+".
  std::string NumberText(Timestamp ts) const;
  std::optional<Timestamp> Find(int number) const;
  // All numbered timestamps, in order.
  const std::map<Timestamp, int>& all() const { return numbers_; }

  void NameTransaction(Timestamp start_ts, const std::string& name) { transactions_[start_ts] = name; }
  // "t1", or its timestamp.
  std::string TransactionName(Timestamp start_ts) const;

 private:
  std::map<Timestamp, int> numbers_;
  std::map<Timestamp, std::string> transactions_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_NAMES_H_
