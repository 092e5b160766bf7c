// SPDX-License-Identifier: Apache-2.0

// Whether a transaction has committed a cell: its own write record, among any number of newer ones.
//
// Other transactions may have written the cell since. Reading all their records would cost more the longer this transaction
// took, so that the slowest clients of a hot cell did the most work. The records since its start are not needed: by T5 no
// other transaction commits the cell between start and commit of this one, so its own record is the OLDEST of them, or it has
// none. A store returns the newest versions of a range; the oldest one is found by halving the range.

#ifndef PERCOLATOR_TXN_OWN_RECORD_H_
#define PERCOLATOR_TXN_OWN_RECORD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "percolator/raw_cell.h"
#include "percolator/spi/store.h"
#include "percolator/types.h"
#include "src/txn/environment.h"

namespace percolator {

// What the write family of a cell has to say to a transaction that started at some time.
struct RecordsSince {
  // The newest record that another transaction committed since; zero timestamps if there is none.
  Timestamp newest_commit_ts;
  Timestamp newest_start_ts;
  // Where the transaction itself committed.
  std::optional<Timestamp> own_commit_ts;
};

// Adds the selector that FindRecordsSince needs to the read of a row.
void SelectRecordsSince(const std::string& column, Timestamp start_ts, std::vector<Selector>* selectors);

// `found`: the cells that this selector has returned, in their order. Reads more if they do not tell. The answer is that of one
// consistent view, the one in which `found` was read: once another transaction has committed since `start_ts`, this one
// does not any more.
absl::StatusOr<RecordsSince> FindRecordsSince(Environment& env, const CellName& cell, Timestamp start_ts,
                                              const std::vector<const Cell*>& found);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_OWN_RECORD_H_
