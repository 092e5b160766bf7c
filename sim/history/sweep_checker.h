// Judges a history of any values by its timestamps: replays it in their order and compares what was read with what must
// have been there.
//
// It trusts that start_ts and commit_ts are those the system used, and sees what the graph checker can't: mistakes that
// nobody's later reads bring to light, and values that are not unique. One pass in the order of the timestamps; memory
// for the keys and the open transactions.
//
// Anomalies:
//   wrong-read           a read at start_ts is not the newest committed value there (T7, T8)
//   internal             a read contradicts the transaction's own earlier reads and writes (T9)
//   overlapping-writers  two committed transactions wrote a key, or one verified it, and they overlap in time (T5)
//   real-time            a was over before b was invoked, but b's start_ts is smaller than a timestamp of a (O1, T10)
//   duplicate-timestamp  one timestamp was given to two (O1)
//   commit-before-start  commit_ts <= start_ts (T6)
//   missing-timestamp    the history itself is wrong: a transaction that succeeded has no start_ts, or wrote without
//                        commit_ts
//
// Transactions of unknown outcome (kInfo). With a commit_ts, one counts as committed if another transaction read a value
// that nobody else wrote to that key. For all others both is possible: from its commit_ts on, or from its start_ts if
// there is no commit_ts, its value is accepted as well as the one below, until a later committed write covers both. In
// doubt the check is silent; who resolves these transactions before (TxnRecord::Resolve) loses nothing.

#ifndef PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_

#include "sim/history/findings.h"
#include "sim/history/history.h"

namespace percolator {

Findings CheckSweep(const History& history);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_
