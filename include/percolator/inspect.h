// Raw cells in words: for looking at what transactions leave in the store.
//
// A column `c` of a row is several columns of the store below it (figure 4 of the paper): c in family data holds long
// values, in family lock the locks of transactions under way, in family write the committed versions.

#ifndef PERCOLATOR_INSPECT_H_
#define PERCOLATOR_INSPECT_H_

#include <string>

#include "percolator/store.h"

namespace percolator {

// What a cell means, in one short line without its timestamp, for example
//
//     lock    "primary, put $3"                      this cell is the primary of its transaction
//     lock    "primary at accounts/Bob/bal, put $9"
//     write   "put $10, started 5"                   a short value, kept in the record itself
//     write   "put, started 5"                       the value is in the family data, at 5
//     data    "$10"
//
// Values that are no printable text are escaped, long ones cut. Bytes that are no record are said to be so.
std::string DescribeCell(const Cell& cell);

}  // namespace percolator

#endif  // PERCOLATOR_INSPECT_H_
