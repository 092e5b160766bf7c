// Looks through all that a store holds, and says what must never be there: the invariants of docs/invariants.md that can
// be seen in the records alone. Of each, this much:
//
//   T1  the primary of a transaction has at most one verdict
//   T2  all records of a transaction carry the same commit timestamp, and a record without an inline value has its data
//   T3  a transaction that was rolled back in a row has no record there, and none anywhere if that was its primary's row
//   T4  a cell has at most one lock; a lock and a record of one start do not meet in a cell; the starts of a cell's records
//       are distinct
//   T5  the lives of the transactions that wrote a cell do not overlap
//   T6  a commit is later than its start
//   G5  no data without a lock or record that points to it
//   N1  a pending mark stands beside each lock of an observed cell, and beside nothing else
//   N2  between two runs of an observer that committed for a cell, it has changed (as long as no versions were collected)

#ifndef PERCOLATOR_TESTS_TXN_AUDIT_H_
#define PERCOLATOR_TESTS_TXN_AUDIT_H_

#include <string>
#include <vector>

#include "percolator/spi/store.h"

namespace percolator {

// One line per finding, which begins with the name of the invariant; none if all is well.
std::vector<std::string> Audit(Store* store);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TXN_AUDIT_H_
