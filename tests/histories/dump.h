// SPDX-License-Identifier: Apache-2.0

// The raw cells of a store as scripts show them.
//
// A dump looks like figure 4 of the paper: each cell with the content of its three columns, one version below the
// other, newest first.
//
//         | data | lock                  | write
//     Bob |      | 7: put 3, primary     | 6: put 10 @5
//     Joe |      | 7: put 9, primary Bob | 6: put 2 @5
//
// In the column write, "@5" is the start of the transaction that wrote the record, and the timestamp of its data if the
// value is not shown. "primary" marks the primary, "primary Bob" names it. Rollback markers belong to a row, and are
// shown with its name. Marks for observers are in a fourth column: "8: mark" is final, "7: pending" belongs to a lock.
// An acknowledgement is "ack of Bob by pay", with "seen @9" for the start of its run. Percolator's own table is not
// shown.

#ifndef PERCOLATOR_TESTS_HISTORIES_DUMP_H_
#define PERCOLATOR_TESTS_HISTORIES_DUMP_H_

#include <string>
#include <vector>

#include "tests/harness/raw_cells.h"
#include "tests/histories/names.h"

namespace percolator {

// As lines of text.
std::string DumpText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// "x by t1, y by t1", or "none".
std::string LocksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// "x @4, y pending @3", or "none".
std::string MarksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// A value in the notation of scripts: long values of equal letters as "300*a".
std::string ValueText(const std::string& value);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_DUMP_H_
