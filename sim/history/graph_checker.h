// SPDX-License-Identifier: Apache-2.0

// Judges a history of list appends without trusting any timestamp: by the versions that transactions saw, and by the
// order in which they were over and began.
//
// The reads force an order on the starts and commits of transactions:
//
//   ww  b appended right after a                    so a committed before b started; otherwise one of the two must fail
//   wr  b saw what a appended last                  so a committed before b started
//   rw  a saw a version, and b appended the next    so a started before b committed
//   rt  a was over before b was invoked             so a committed before b started
//
// The history has an explanation under snapshot isolation with real time if and only if those demands do not form a
// cycle: neither D nor D;rw has a cycle, where D is ww, wr and rt together. Each rw must be followed by one of D. Two
// rw in a row prove nothing: two transactions that overlap, each of which overlooks the other, are write skew, which is
// allowed.
//
// Anomalies, besides those of list_history.h:
//   G0              a cycle of ww: two transactions' appends came in different orders
//   G1c             a cycle of ww and wr: information flowed in a circle
//   G-single        a cycle with one rw: a reader saw a state that never existed (read skew, lost update)
//   G-nonadjacent   a cycle with several rw, no two in a row: two readers saw two writers in different orders (long
//                   fork)
// and each of them with "-realtime" after it, if there is such a cycle only with rt. Of cycles that share nodes, only a
// short one of the first of these kinds is reported.
//
// Limits of the check: of versions that were never read it knows only that they came after those that were read. So a run
// should end with a transaction that reads all keys.

#ifndef PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_

#include <cstddef>
#include <optional>

#include "sim/history/findings.h"
#include "sim/history/history.h"

namespace percolator {

struct GraphOptions {
  // The transaction that read all keys when everything else was over. An element missing from it is lost.
  std::optional<TxnId> final_read;
};

struct GraphReport {
  Findings findings;
  // How much the history reveals: dependencies of each kind between transactions, ww, wr and rw.
  size_t dependencies = 0;
  // Transactions that a serial order cannot place, and need not: each overlooked another's write and was overlooked, in
  // a cycle. A run without any does not come near what it should test.
  size_t write_skew_pivots = 0;
};

GraphReport CheckGraph(const History& history, const GraphOptions& options = {});

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_
