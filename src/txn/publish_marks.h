// SPDX-License-Identifier: Apache-2.0

// Marks without a lock: those of weak notifications (N9), and hints of all marks (N10).

#ifndef PERCOLATOR_TXN_PUBLISH_MARKS_H_
#define PERCOLATOR_TXN_PUBLISH_MARKS_H_

#include <set>

#include "absl/status/status.h"
#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Commits a transaction that only notifies: it locks nothing and cannot conflict. If it fails, marks may have been set;
// each costs a run that finds nothing new (N6).
CommitResult PublishMarksOnly(Environment& env, const Writes& writes, const Deadline& deadline);

// Writes the marks of `writes.notified`. Harmless to repeat.
absl::Status WriteMarks(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline);

// Marks cells of columns that are observed now, but were not when `writes` were built. `notified`: all cells that the
// transaction notified.
void PublishLateMarks(Environment& env, const Writes& writes, const std::set<CellName>& notified, Timestamp commit_ts,
                      const Deadline& deadline);

// Sends hints of the change to the workers. A lost hint only delays the observer until the next scan (N10).
void SendHints(Environment& env, const Writes& writes);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_PUBLISH_MARKS_H_
