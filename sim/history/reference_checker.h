// What snapshot isolation with real time means, as plainly as it can be said, to test the checkers by. Far too slow for
// anything but histories of a handful of transactions.

#ifndef PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_

#include "sim/history/history.h"

namespace percolator {

// Whether there is any order of starts and commits that explains the history. Tries them all. Timestamps don't count.
bool HasExplanation(const History& history);

// Whether the order that the timestamps tell explains the history.
// REQUIRES: no outcome is unknown, and no timestamp.
bool TimestampsExplain(const History& history);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_REFERENCE_CHECKER_H_
