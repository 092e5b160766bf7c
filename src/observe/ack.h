// SPDX-License-Identifier: Apache-2.0

// Acknowledgements: the changes of a cell that an observer has seen.
//
// An acknowledgement is a cell in the observed cell's row, in a reserved column (src/txn/columns.h). The observer's
// transaction writes it:
//
//   ack := start_ts | nothing      fixed64: the run that started then has seen all earlier commits; nothing: the observer
//                                  has to run again in any case

#ifndef PERCOLATOR_OBSERVE_ACK_H_
#define PERCOLATOR_OBSERVE_ACK_H_

#include <string>

#include "absl/status/statusor.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"
#include "src/observe/registry.h"
#include "src/txn/row_view.h"

namespace percolator {

CellName AckCell(const ObserverInfo& observer, const CellName& cell);

std::string EncodeAck(Timestamp start_ts);

// N2: returns whether the observer has something to do, given what one snapshot sees of the observed cell and of the
// acknowledgement.
absl::StatusOr<bool> IsDirty(const Version& observed, const Version& ack);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_ACK_H_
