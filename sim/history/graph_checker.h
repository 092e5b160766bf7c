// Judges a history of list appends without trusting any timestamp: by who saw what, and by what was over before what
// began.
//
// What transactions saw forces an order on when they started and committed:
//
//   ww  b appended right after a                    so a committed before b started: else one of the two must fail
//   wr  b saw what a appended last                  so a committed before b started
//   rw  a saw a version, and b appended the next    so a started before b committed
//   rt  a was over before b was invoked             so a committed before b started
//
// The history has an explanation under snapshot isolation with real time if and only if those demands do not run in a
// circle: D or D;rw has no cycle, where D is ww, wr and rt together. Each rw is followed by one of D, else nothing
// follows: two transactions that overlap, each of which overlooks the other, are write skew, and allowed.
//
// Anomalies, besides those of list_history.h:
//   G0              a circle of ww: two transactions' appends came in different orders
//   G1c             of ww and wr: information flowed in a circle
//   G-single        with one rw: someone saw a state that there never was (read skew, lost update)
//   G-nonadjacent   with several rw, no two in a row: two readers saw two writers in different orders (long fork)
// and each of them with "-realtime" after it, if there is such a circle only with rt. Of circles that hang together,
// a short one of the first of these kinds is told.
//
// What the check does not see: nothing is known about versions that nobody read, except that they came after those that
// someone did. A run should end with a transaction that reads all keys.

#ifndef PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_
#define PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_

#include <cstddef>
#include <optional>

#include "sim/history/findings.h"
#include "sim/history/history.h"

namespace percolator {

struct GraphOptions {
  // The transaction that read all keys when everything else was over: what is not in there is lost.
  std::optional<TxnId> final_read;
};

struct GraphReport {
  Findings findings;
  // How much the history says: dependencies of each kind between transactions, ww, wr and rw.
  size_t dependencies = 0;
  // Transactions that a serial order can't place, and need not: they overlooked another's write, and another overlooked
  // theirs, in a circle. With none of them a run has not come near what it should test.
  size_t write_skew_pivots = 0;
};

GraphReport CheckGraph(const History& history, const GraphOptions& options = {});

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_GRAPH_CHECKER_H_
