// SPDX-License-Identifier: Apache-2.0

#include "src/txn/publish_marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/txn/apply.h"
#include "src/txn/outcome.h"

namespace percolator {

CommitResult PublishMarksOnly(Environment& env, const Writes& writes, const Deadline& deadline) {
  const absl::StatusOr<Timestamp> commit_ts = DrawTimestamp(env, [&] { return deadline; });
  if (!commit_ts.ok()) return AbortedBy({}, writes.start_ts, commit_ts.status());
  if (absl::Status s = WriteMarks(env, writes, *commit_ts, deadline); !s.ok()) return AbortedBy({}, writes.start_ts, s);
  return CommittedAt({}, writes.start_ts, *commit_ts);
}

absl::Status WriteMarks(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline) {
  std::vector<RowMutation> marks;
  AddMarks(writes, commit_ts, &marks);
  return ApplyInTime(env, std::move(marks), deadline);
}

// A worker of this process may have started during the commit, which was built without its observers. They must see all
// that is committed from then on, and a backfill, whose snapshot may be older than this commit, does not.
void PublishLateMarks(Environment& env, const Writes& writes, const std::set<CellName>& notified, Timestamp commit_ts,
                      const Deadline& deadline) {
  Writes late{.start_ts = writes.start_ts,
              .rows = {},
              .notified = {},
              .depth = writes.depth,
              .continued = writes.continued,
              .removal = {}};
  for (const RowWrites& row : writes.rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.kind == WriteKind::kVerify || cell.lock.observed) continue;
      if (env.observed.Contains(row.table, cell.column)) late.notified.push_back({row.table, row.row, cell.column});
    }
  }
  for (const CellName& cell : notified) {
    const bool marked = std::find(writes.notified.begin(), writes.notified.end(), cell) != writes.notified.end();
    if (!marked && env.observed.Contains(cell.table, cell.column)) late.notified.push_back(cell);
  }
  if (late.notified.empty()) return;
  env.marks_begun.fetch_add(1);
  WriteMarks(env, late, commit_ts, deadline).IgnoreError();  // after a crash here, a backfill finds them
  env.marks_ended.fetch_add(1);
  SendHints(env, late);
}

void SendHints(Environment& env, const Writes& writes) {
  for (const RowWrites& row : writes.rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.observed) env.coordinator->SendHint({row.table, row.row, cell.column});
    }
  }
  for (const CellName& cell : writes.notified) env.coordinator->SendHint(cell);
}

}  // namespace percolator
