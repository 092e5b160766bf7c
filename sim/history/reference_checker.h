// SPDX-License-Identifier: Apache-2.0

// Snapshot isolation with real time in its plainest form, to test the checkers by. Far too slow for more than a handful
// of transactions.

#ifndef PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_

#include "sim/history/history.h"

namespace percolator {

// Whether any order of starts and commits explains the history. Tries them all, and ignores timestamps.
bool HasExplanation(const History& history);

// Whether the order given by the timestamps explains the history. REQUIRES: no outcome and no timestamp is unknown.
bool TimestampsExplain(const History& history);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_
