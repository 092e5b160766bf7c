// SPDX-License-Identifier: Apache-2.0

// Judges a history of any values by its timestamps: replays it in their order and compares each read with the value
// that must have been there.
//
// It trusts that start_ts and commit_ts are those that the system used. It detects what the graph checker cannot:
// mistakes that no later read reveals, and mistakes with values that are not unique. It makes one pass in the order of
// the timestamps, with memory for the keys and the open transactions.
//
// Anomalies:
//   wrong-read           a read at start_ts is not the newest committed value there (T7, T8)
//   internal             a read contradicts the transaction's own earlier reads and writes (T9)
//   overlapping-writers  two committed transactions that overlap in time wrote a key, or one of them verified it (T5)
//   real-time            a was over before b was invoked, but b's start_ts is smaller than a timestamp of a (O1, T10)
//   duplicate-timestamp  two transactions have the same timestamp (O1)
//   commit-before-start  commit_ts <= start_ts (T6)
//   missing-timestamp    the history itself is wrong: a transaction that succeeded has no start_ts, or wrote without
//                        commit_ts
//
// Transactions of unknown outcome (kInfo): one with a commit_ts counts as committed if another transaction read a value
// that no other wrote to that key. All others may have committed or not: from its commit_ts on, or from its start_ts
// if it has no commit_ts, both its value and the one below are accepted, until a later committed write covers both. In
// doubt the check accepts; a recorder that resolves these transactions first (TxnRecord::Resolve) loses nothing.

#ifndef PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_

#include "sim/history/findings.h"
#include "sim/history/history.h"

namespace percolator {

Findings CheckSweep(const History& history);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_SWEEP_CHECKER_H_
